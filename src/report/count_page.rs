//! A count as a page: the answer in words, figures over time, what was skipped, who talks to whom.
//!
//! A bounded number of slices is kept, with the peaks of counts and errors.

use super::count_combinations::remarks;
use super::count_figures::{Series, distribution, error_of};
use super::count_model::CountParameters;
use super::count_table::{Seen, closing, slices_view, title};
use super::document::{Block, Document};
use super::figure::{Figure, Scale};
use super::number::{counted, grouped, percent, rounded, some_slices, windows_of};
use super::run_view::{captures, inputs_table, problems};
use super::selection::zone_words;
use super::svg::written;
use super::traffic_page::{skipped, who, who_talks};
use crate::pipeline::{CountSummary, SliceResult, SliceSink, Totals, Traffic};
use crate::top::{Question, TopSlice};
use crate::zone::Zone;
use hdrhistogram::Histogram;
use std::io;

/// Number of slices that are kept for the figures.
const MOST_SLICES: usize = 10_000;

/// Number of parts of the time whose extremes are kept: about one for each column of a figure.
const STRETCHES: usize = 250;

/// Gathers slices for a page.
#[derive(Debug)]
pub struct CountPage {
    kept: Vec<SliceResult>,
    seen: u64,
    remarks: Seen,
    /// The largest error, and the start of its slice.
    worst: Option<(f64, i64)>,
    /// The counts of slices that were covered whole, and of those covered in part.
    counts: [Histogram<u64>; 2],
}

/// Records larger counts as this one.
const MAX_RECORDED: u64 = 1 << 40;

impl Default for CountPage {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            seen: 0,
            remarks: Seen::default(),
            worst: None,
            counts: [(); 2]
                .map(|()| Histogram::new(3).expect("three significant digits are allowed")),
        }
    }
}

impl SliceSink for CountPage {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        if slice.revised {
            self.forget(slice.start_ns);
        }
        self.seen += 1;
        self.remarks.add(slice);
        if let Some(count) = slice.best() {
            record(&mut self.counts[usize::from(slice.partial)], count);
        }
        if let Some(error) = error_of(slice)
            && self.worst.is_none_or(|(worst, _)| error.abs() > worst.abs())
        {
            self.worst = Some((error, slice.start_ns));
        }
        if self.kept.len() == 2 * MOST_SLICES {
            halve(&mut self.kept);
        }
        let later = |kept: &&SliceResult| kept.start_ns > slice.start_ns;
        let place = self.kept.len() - self.kept.iter().rev().take_while(later).count();
        self.kept.insert(place, slice.clone());
        Ok(())
    }
}

fn record(counts: &mut Histogram<u64>, count: f64) {
    counts
        .record((count.round() as u64).min(MAX_RECORDED))
        .expect("the histogram grows as it needs");
}

/// Keeps every second slice, which keeps the distribution, and in each part of the time the slices
/// with the largest count, the smallest count and the largest error. The extremes of all stay,
/// however often this is done.
fn halve(slices: &mut Vec<SliceResult>) {
    let count = |slice: &SliceResult| slice.best().unwrap_or(0.0);
    let error = |slice: &SliceResult| error_of(slice).unwrap_or(0.0).abs();
    let mut kept = Vec::with_capacity(slices.len() / 2 + 3 * STRETCHES);
    for stretch in slices.chunks(slices.len().div_ceil(STRETCHES).max(1)) {
        let most = |key: &dyn Fn(&SliceResult) -> f64| {
            (0..stretch.len()).max_by(|a, b| key(&stretch[*a]).total_cmp(&key(&stretch[*b])))
        };
        let extremes = [most(&count), most(&|slice| -count(slice)), most(&error)];
        let stays = |i: &usize| i.is_multiple_of(2) || extremes.contains(&Some(*i));
        kept.extend((0..stretch.len()).filter(stays).map(|i| stretch[i].clone()));
    }
    *slices = kept;
}

impl CountPage {
    /// Removes a slice whose row is replaced.
    fn forget(&mut self, start_ns: i64) {
        let same = |kept: &SliceResult| kept.start_ns == start_ns;
        let Some(place) = self.kept.iter().rposition(same) else { return };
        let before = self.kept.remove(place);
        self.seen -= 1;
        self.remarks.remove(&before);
        if let Some(count) = before.best() {
            let counts = &mut self.counts[usize::from(before.partial)];
            let mut once = Histogram::new_from(counts);
            record(&mut once, count);
            // The count was recorded before.
            let _ = counts.subtract(&once);
        }
        if self.worst.is_some_and(|(_, at)| at == start_ns) {
            let errors = self.kept.iter();
            let errors = errors.filter_map(|kept| Some((error_of(kept)?, kept.start_ns)));
            self.worst = errors.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        }
    }

    /// Thins out the slices to the number that is drawn.
    fn thin_out(&mut self) {
        while self.kept.len() > MOST_SLICES {
            halve(&mut self.kept);
        }
    }

    /// Only the figure of counts over time, for these names of elements and filter; `None` for a
    /// single slice.
    pub fn figure(mut self, elements_plural: &str, filter: &str, zone: Zone) -> Option<Figure> {
        self.thin_out();
        let has = |value: fn(&SliceResult) -> bool| self.kept.iter().any(value);
        let series = Series {
            slices: &self.kept,
            seen: self.seen,
            plural: elements_plural.into(),
            has_filter: has(|slice| slice.first.is_some() || slice.estimate.is_some()),
            slice: match &self.kept[..] {
                [one, next, ..] if next.start_ns < one.end_ns => "window",
                _ => "slice",
            },
            has_exact: has(|slice| slice.exact.is_some()),
            filter,
            zone,
        };
        (self.kept.len() > 1).then(|| series.counts())
    }

    /// The page of all slices.
    pub fn finish(
        mut self,
        parameters: &CountParameters,
        summary: &CountSummary,
        traffic: Option<&Traffic>,
        answers: &[(Question, TopSlice)],
    ) -> Document {
        self.thin_out();
        let (totals, plural, zone) = (&summary.totals, &parameters.elements(), parameters.zone());
        let slices = windows_of(parameters.plan.slicing.width_ns, parameters.every_ns());
        let captures = captures(&summary.inputs);
        let mut page = Document {
            title: format!("Distinct {plural} of {captures}, {slices}{}", zone_words(zone)),
            label: title(parameters),
            zone,
            ..Document::default()
        };
        let answer = self.answer(totals, plural, parameters.slice());
        page.page([Block::Answer(answer), Block::Answer(self.accuracy(parameters, totals))]);
        page.page(closing(parameters, summary, self.remarks));
        page.page(problems(&summary.inputs, totals.interrupted));
        page.page(self.over_time(parameters, totals));
        page.page(self.combinations(parameters, totals));
        if let Some(figure) = distribution(&self.counts, plural, parameters.slice()) {
            let title = format!("How large {}s are", parameters.slice());
            page.section(title, [Block::Figure(figure)]);
        }
        if !answers.is_empty() {
            page.section("Who", who(answers));
        }
        if let Some(traffic) = traffic {
            page.section("Who talks to whom", who_talks(traffic));
        }
        let skipped = if totals.skipped.is_empty() {
            Block::Sentence(format!("none: every packet was counted among the {plural}"))
        } else {
            Block::Figure(skipped("skipped", "an element", &totals.skipped))
        };
        page.section("Packets without an element", [skipped]);
        page.section("What was read", [inputs_table(&summary.inputs)]);
        page
    }

    fn over_time(&self, parameters: &CountParameters, totals: &Totals) -> Vec<Block> {
        if self.kept.len() < 2 {
            let table = slices_view(parameters, &self.kept, totals);
            return vec![Block::Section("The count".into()), Block::Table(table)];
        }
        let series = self.series(parameters);
        let mut blocks = vec![Block::Section("Over time".into())];
        if (self.kept.len() as u64) < self.seen {
            let [kept, seen] = [self.kept.len() as u64, self.seen].map(grouped);
            let slice = parameters.slice();
            blocks.push(Block::Sentence(format!("The figures show {kept} of {seen} {slice}s, among them those with the largest and smallest counts and the largest errors. All of them are in the results for programs (--format).")));
        }
        let figures = [Some(series.counts()), series.errors(), Some(series.packets())];
        blocks.extend(figures.into_iter().flatten().map(Block::Figure));
        blocks.push(Block::Table(slices_view(parameters, &[], totals)));
        blocks
    }

    fn series<'a>(&'a self, parameters: &'a CountParameters) -> Series<'a> {
        Series {
            slices: &self.kept,
            seen: self.seen,
            plural: parameters.elements(),
            has_filter: parameters.plan.counter_bytes().is_some(),
            slice: parameters.slice(),
            has_exact: parameters.plan.exact_limit_bytes.is_some(),
            filter: parameters.filter(),
            zone: parameters.zone(),
        }
    }

    /// How many distinct values some of the attributes have; empty if that was not asked.
    fn combinations(&self, parameters: &CountParameters, totals: &Totals) -> Vec<Block> {
        let design = parameters.design.as_ref();
        let Some(design) = design.filter(|design| !design.combinations.is_empty()) else {
            return Vec::new();
        };
        let mut blocks = vec![Block::Section("Combinations of attributes".into())];
        if self.kept.len() > 1 {
            let figure = self.series(parameters).combinations(design);
            blocks.extend(figure.map(Block::Figure));
        }
        blocks.extend(remarks(&totals.combinations).map(Block::Sentence));
        blocks
    }

    /// How far the counts are from the exact ones, in words.
    fn accuracy(&self, parameters: &CountParameters, totals: &Totals) -> String {
        let (filter, counter) = (parameters.filter(), parameters.counter());
        let (slice, zone) = (parameters.slice(), parameters.zone());
        let (error, at) = match self.worst {
            Some((0.0, _)) => {
                return format!("The {filter} {counter}'s count was right in every {slice}.");
            }
            Some(worst) => worst,
            None if parameters.plan.counter_bytes().is_none() => {
                return "The count is exact: there was no filter.".to_owned();
            }
            None => return "How large the error is was not measured: there is no exact count to compare with.".to_owned(),
        };
        let share = |share: f64| percent(share).replace('<', "below ");
        let largest = share(error);
        let is_raw = totals.first.is_some() && totals.estimate.is_none();
        let what = if is_raw { "raw count" } else { "estimate" };
        if self.seen == 1 {
            return format!("The {filter} {counter}'s {what} is off by {largest}.");
        }
        let overall = totals.estimate.zip(totals.exact.filter(|&n| n > 0));
        let overall = overall.map_or_else(String::new, |(estimate, exact)| {
            let error = share((estimate - exact as f64) / exact as f64);
            format!(" The error of the sum of all {slice}s is {error}.")
        });
        let at = written(Scale::Time(zone), at as f64 / 1e9);
        format!(
            "The largest error of the {filter} {counter}'s {what} in a {slice} is {largest}, at {at} {zone}.{overall}"
        )
    }

    fn answer(&self, totals: &Totals, plural: &str, slice: &str) -> String {
        if let Some(slices) = some_slices(totals.saturated_slices, totals.slices)
            && totals.exact.is_none()
        {
            return format!("There is no count of all {plural}: filters were full in {slices}.");
        }
        let Some(q) = totals.quantiles else {
            let why = "the exact set passed its limit, and there was no filter";
            return match totals.packets {
                0 => "There was nothing to count: no packet was read.".to_owned(),
                _ => format!("There is no count of all {plural}: {why}."),
            };
        };
        let [min, median, max, slices] = [q.min, q.p50, q.max, self.seen].map(grouped);
        if self.seen == 1 {
            let packets = counted(totals.packets, "packet", "packets");
            return format!("{max} distinct {plural} in {packets}.");
        }
        let whole = totals.whole.and_then(|whole| {
            let exact = whole.exact.map(grouped);
            exact.or_else(|| Some(format!("About {}", rounded(whole.estimate?))))
        });
        let whole = whole.map(|number| format!("{number} distinct {plural} in all. "));
        let range = if q.min == q.max {
            format!("{max} distinct {plural} in each of")
        } else {
            format!("{min} to {max} distinct {plural} a {slice} (median {median}), in")
        };
        format!("{}{range} {slices} {slice}s.", whole.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(index: i64, exact: u64, estimate: f64) -> SliceResult {
        SliceResult {
            start_ns: index,
            end_ns: index + 1,
            packets: 1,
            elements: 1,
            exact: Some(exact),
            first: Some(exact),
            estimate: Some(estimate),
            std_error: Some(0.0),
            lower: Some(exact),
            upper: Some(exact),
            observed_fpr: Some(0.0),
            ..SliceResult::default()
        }
    }

    #[test]
    fn of_many_slices_a_bounded_number_is_kept_with_the_peaks() {
        let mut page = CountPage::default();
        let slices = 123_456;
        for i in 0..slices {
            let exact = if i == 77_777 { 5_000 } else { 100 + (i % 10) as u64 };
            let off = if i == 33_333 { 2.0 } else { 1.0 };
            page.slice(&slice(i, exact, exact as f64 * off)).unwrap();
            assert!(page.kept.len() <= 2 * MOST_SLICES);
        }
        assert_eq!(page.seen, slices as u64);
        assert!(page.kept.iter().any(|slice| slice.exact == Some(5_000)));
        assert!(page.kept.iter().any(|slice| slice.start_ns == 33_333));
        assert!(page.kept.is_sorted_by_key(|slice| slice.start_ns));
        assert_eq!(page.worst, Some((1.0, 33_333)));
        assert_eq!(page.counts[0].len(), slices as u64);
    }

    #[test]
    fn what_is_usual_stays_usual_when_slices_are_thinned_out() {
        let exact = |i: i64| 100 + (i * 7919 % 101) as u64;
        let mut slices: Vec<SliceResult> =
            (0..40_000).map(|i| slice(i, exact(i), exact(i) as f64)).collect();
        for _ in 0..2 {
            halve(&mut slices);
        }
        assert!((10_000..12_000).contains(&slices.len()), "{}", slices.len());
        let mut counts: Vec<u64> = slices.iter().filter_map(|slice| slice.exact).collect();
        counts.sort_unstable();
        let median = counts[counts.len() / 2];
        assert!(median.abs_diff(150) <= 3, "{median}");
    }

    #[test]
    fn large_counts_are_recorded_as_they_are_and_forgotten_again() {
        let mut page = CountPage::default();
        for (index, exact) in [9_000, 2_047, 2_048, 60_000, 3 << 40].into_iter().enumerate() {
            page.slice(&slice(index as i64, exact, exact as f64)).unwrap();
        }
        let partial = SliceResult { partial: true, ..slice(9, 7, 7.0) };
        page.slice(&partial).unwrap();
        page.slice(&SliceResult { revised: true, ..slice(0, 100, 100.0) }).unwrap();
        let recorded = page.counts[0].iter_recorded().map(|it| it.value_iterated_to());
        let recorded: Vec<u64> = recorded.collect();
        assert_eq!(recorded[..3], [100, 2_047, 2_049]);
        assert!((60_000..60_100).contains(&recorded[3]) && recorded[4] >= 1 << 40, "{recorded:?}");
        assert_eq!((recorded.len(), page.counts[1].len()), (5, 1));
    }
}
