//! A count as a page: the answer in words, figures over time, what was skipped, who talks to whom.
//!
//! Slices are taken as they come; of many a bounded number is kept, with the peaks of counts and
//! errors.

use super::count_combinations::{CountDesign, remark};
use super::count_figures::{Series, distribution, error_of, slices_of};
use super::count_model::CountParameters;
use super::count_table::{full_filters, late, over_limit, reasons};
use super::figure::{Block, DataTable, Figure, Page, PageSection, Scale};
use super::number::{capitalised, grouped, percent, size, windows_of};
use super::over_time::troubles;
use super::svg::written;
use super::traffic_page::{skipped, who_talks};
use super::who_page::who;
use crate::pipeline::{CountSummary, SliceResult, SliceSink, Totals, Traffic};
use crate::top::{Question, TopSlice};
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;
use hdrhistogram::Histogram;
use std::io;

/// Slices that are kept for the figures.
const MOST_SLICES: usize = 10_000;

/// Stretches of the time whose extremes stay when slices are thinned out: about one for each column
/// of a figure.
const STRETCHES: usize = 250;

/// Gathers slices for a page.
#[derive(Debug)]
pub struct CountPage {
    kept: Vec<SliceResult>,
    seen: u64,
    over_limit: u64,
    worst: Option<(f64, i64)>,
    counts: Histogram<u64>,
}

impl Default for CountPage {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            seen: 0,
            over_limit: 0,
            worst: None,
            counts: Histogram::new(3).expect("three significant digits are allowed"),
        }
    }
}

impl SliceSink for CountPage {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        if slice.revised {
            self.forget(slice.start_ns);
        }
        self.seen += 1;
        self.over_limit += u64::from(slice.exact_over_limit);
        if let Some(count) = slice.best() {
            self.counts.saturating_record(count.round() as u64);
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

/// Keeps every second slice, so that what is usual stays as usual as it was; and of each stretch of
/// the time the slices with the largest and the smallest count and the one with the largest error.
/// So the largest of all stay, however often this is done.
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
    /// Forgets a slice whose row is replaced.
    fn forget(&mut self, start_ns: i64) {
        let same = |kept: &SliceResult| kept.start_ns == start_ns;
        let Some(place) = self.kept.iter().rposition(same) else {
            return;
        };
        let before = self.kept.remove(place);
        self.seen -= 1;
        self.over_limit -= u64::from(before.exact_over_limit);
        if let Some(count) = before.best() {
            let mut once = Histogram::new_from(&self.counts);
            once.saturating_record(count.round() as u64);
            // What was recorded before can be taken out again.
            let _ = self.counts.subtract(&once);
        }
        if self.worst.is_some_and(|(_, at)| at == start_ns) {
            let errors = self.kept.iter();
            let errors = errors.filter_map(|kept| Some((error_of(kept)?, kept.start_ns)));
            self.worst = errors.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        }
    }

    /// The figure of counts over time alone, of what the parameters name `element` and `filter`;
    /// none of a single slice.
    pub fn figure(mut self, elements_plural: &str, filter: &str, zone: Zone) -> Option<Figure> {
        while self.kept.len() > MOST_SLICES {
            halve(&mut self.kept);
        }
        let series = Series {
            slices: &self.kept,
            seen: self.seen,
            plural: elements_plural,
            has_filter: (self.kept.iter())
                .any(|slice| slice.first.is_some() || slice.estimate.is_some()),
            slice: match &self.kept[..] {
                [one, next, ..] if next.start_ns < one.end_ns => "window",
                _ => "slice",
            },
            has_exact: self.kept.iter().any(|slice| slice.exact.is_some()),
            filter,
            zone,
        };
        (self.kept.len() > 1).then(|| series.counts())
    }

    /// The page, once all slices have come.
    pub fn finish(
        mut self,
        parameters: &CountParameters,
        summary: &CountSummary,
        traffic: Option<&Traffic>,
        answers: &[(Question, TopSlice)],
    ) -> Page {
        while self.kept.len() > MOST_SLICES {
            halve(&mut self.kept);
        }
        let totals = &summary.totals;
        let mut sections = vec![self.over_time(parameters)];
        let design = parameters.design.as_ref();
        if let Some(design) = design.filter(|design| !design.combinations.is_empty()) {
            sections.push(self.combinations(parameters, design, totals));
        }
        if let Some(figure) = distribution(&self.counts, &parameters.elements_plural) {
            sections.push(PageSection::new(
                &format!("How large {}s are", parameters.slice()),
                vec![Block::Figure(figure)],
            ));
        }
        if !answers.is_empty() {
            sections.push(PageSection::new("Who", who(answers)));
        }
        if let Some(traffic) = traffic {
            sections.push(PageSection::new("Who talks to whom", who_talks(traffic)));
        }
        sections.push(PageSection::new("Packets without an element", without(totals, parameters)));
        sections.push(PageSection::new(
            "What was read",
            vec![Block::Table(inputs(summary)), Block::Table(described(parameters, totals))],
        ));
        Page {
            title: title(parameters, summary),
            summary: self.words(parameters, summary),
            warnings: self.warnings(summary),
            sections,
            zone: parameters.selected.zone,
        }
    }

    fn over_time(&self, parameters: &CountParameters) -> PageSection {
        if self.kept.len() < 2 {
            let table = slices_of(&self.kept, parameters.selected.zone);
            return PageSection::new("The count", vec![Block::Table(table)]);
        }
        let series = self.series(parameters);
        let mut blocks = Vec::new();
        if (self.kept.len() as u64) < self.seen {
            blocks.push(Block::Text(format!(
                "The figures show {} of {} slices, among them those with the largest and smallest counts and the largest errors. All of them are in the results for programs (--format).",
                grouped(self.kept.len() as u64),
                grouped(self.seen)
            )));
        }
        let figures = [Some(series.counts()), series.errors(), Some(series.packets())];
        blocks.extend(figures.into_iter().flatten().map(Block::Figure));
        PageSection::new("Over time", blocks)
    }

    fn series<'a>(&'a self, parameters: &'a CountParameters) -> Series<'a> {
        Series {
            slices: &self.kept,
            seen: self.seen,
            plural: &parameters.elements_plural,
            has_filter: parameters.memory_bytes.is_some(),
            slice: parameters.slice(),
            has_exact: parameters.exact_limit_bytes.is_some(),
            filter: parameters.filter,
            zone: parameters.selected.zone,
        }
    }

    /// How many distinct values some of the attributes have.
    fn combinations(
        &self,
        parameters: &CountParameters,
        design: &CountDesign,
        totals: &Totals,
    ) -> PageSection {
        let mut blocks = Vec::new();
        if self.kept.len() > 1 {
            let figure = self.series(parameters).combinations(design);
            blocks.extend(figure.map(Block::Figure));
        }
        let counts = &totals.combinations;
        blocks.push(Block::Table(design.table(counts, totals.slices)));
        let words = remark(counts);
        blocks.extend(words.map(|words| Block::Text(format!("{words}."))));
        PageSection::new("Combinations of attributes", blocks)
    }

    /// The answer in words.
    fn words(&self, parameters: &CountParameters, summary: &CountSummary) -> Vec<String> {
        let (totals, plural) = (&summary.totals, &parameters.elements_plural);
        let mut words = Vec::new();
        words.push(self.answer(totals, plural, parameters.slice()));
        words.push(match self.worst {
            Some((0.0, _)) => format!(
                "The {} {}'s count was right in every {}.",
                parameters.filter,
                parameters.counter(),
                parameters.slice()
            ),
            Some((error, at)) => {
                let zone = parameters.selected.zone;
                let largest = share(error);
                let counter = parameters.counter();
                let overall = totals.estimate.zip(totals.exact.filter(|&n| n > 0));
                let overall = overall.map_or_else(String::new, |(estimate, exact)| {
                    format!(" Over all slices it is {}.", share((estimate - exact as f64) / exact as f64))
                });
                let what = if totals.first.is_some() && totals.estimate.is_none() { "raw count" } else { "estimate" };
                match self.seen {
                    1 => format!("The {} {counter}'s {what} is off by {largest}.", parameters.filter),
                    _ => format!(
                        "The largest error of the {} {counter}'s {what} in a {} is {largest}, at {} {zone}.{overall}",
                        parameters.filter,
                        parameters.slice(),
                        written(Scale::Time(zone), at as f64 / 1e9)
                    ),
                }
            }
            None if parameters.memory_bytes.is_none() => {
                "The count is exact: there was no filter.".to_owned()
            }
            None => "How large the error is was not measured: there is no exact count to compare with.".to_owned(),
        });
        let skipped: u64 = totals.skipped.values().sum();
        words.push(match skipped {
            0 if totals.packets == 0 => "There were no packets.".to_owned(),
            0 => format!("All {} packets had elements.", grouped(totals.packets)),
            _ => format!(
                "{} of {} packets had no element: {}.",
                grouped(skipped),
                grouped(totals.packets),
                reasons(&totals.skipped)
            ),
        });
        let selected = parameters.selected.words(&summary.inputs);
        words.extend(selected.map(|words| format!("{words}.")));
        words
    }

    /// What makes the answer worth less.
    fn warnings(&self, summary: &CountSummary) -> Vec<String> {
        let totals = &summary.totals;
        let words = [full_filters(totals), over_limit(self.over_limit, self.seen), late(totals)];
        let words = words.into_iter().flatten();
        let mut words: Vec<String> = words.map(|words| capitalised(&words) + ".").collect();
        words.extend(troubles(&summary.inputs, totals.uncounted, totals.interrupted));
        words
    }

    fn answer(&self, totals: &Totals, plural: &str, slice: &str) -> String {
        let Some(q) = totals.quantiles else {
            return match totals.packets {
                0 => "There was nothing to count: no packet was read.".to_owned(),
                _ => format!(
                    "There is no count of {plural}: the exact set passed its limit, and there was no filter."
                ),
            };
        };
        if totals.saturated_slices > 0 && totals.exact.is_none() {
            return format!(
                "There is no count of all {plural}: filters were full in {} of {} slices.",
                grouped(totals.saturated_slices),
                grouped(totals.slices)
            );
        }
        match self.seen {
            1 => format!(
                "{} distinct {plural} in {} packets.",
                grouped(q.max),
                grouped(totals.packets)
            ),
            slices if q.min == q.max => format!(
                "{} distinct {plural} in each of {} {slice}s.",
                grouped(q.max),
                grouped(slices)
            ),
            slices => format!(
                "{} to {} distinct {plural} a {slice} (median {}), in {} {slice}s.",
                grouped(q.min),
                grouped(q.max),
                grouped(q.p50),
                grouped(slices)
            ),
        }
    }
}

/// A share in words, with the digits of the table.
fn share(share: f64) -> String {
    percent(share).replace('<', "below ")
}

fn without(totals: &Totals, parameters: &CountParameters) -> Vec<Block> {
    if totals.skipped.is_empty() {
        return vec![Block::Text(format!(
            "There were none: every packet was counted among the {}.",
            &parameters.elements_plural
        ))];
    }
    let mut reasons: Vec<_> = totals.skipped.iter().collect();
    reasons.sort_by_key(|(skip, count)| (u64::MAX - **count, skip.name()));
    vec![Block::Figure(skipped("skipped", reasons.into_iter()))]
}

fn title(parameters: &CountParameters, summary: &CountSummary) -> String {
    let slices = windows_of(parameters.slice_ns, parameters.every_ns);
    let plural = &parameters.elements_plural;
    let what = match summary.inputs.as_slice() {
        [input] => input.path.file_name().map_or_else(
            || input.path.shown().to_string(),
            |name| name.to_string_lossy().into_owned(),
        ),
        inputs => format!("{} captures", grouped(inputs.len() as u64)),
    };
    let zone = parameters.selected.zone_words();
    format!("Distinct {plural} of {what}, {slices}{zone}")
}

fn inputs(summary: &CountSummary) -> DataTable {
    let rows = summary.inputs.iter().map(|input| {
        vec![
            input.path.shown().to_string(),
            input.container.clone().unwrap_or_else(|| "not recognised".to_owned()),
            grouped(input.packets),
            input.error.as_ref().map_or_else(|| "complete".to_owned(), ToString::to_string),
        ]
    });
    let columns = [("input", false), ("format", false), ("packets", true), ("how it went", false)];
    DataTable::new(&columns, rows)
}

fn described(parameters: &CountParameters, totals: &Totals) -> DataTable {
    let number = |value: Option<u64>| value.map_or_else(|| "\u{2013}".to_owned(), grouped);
    let mut rows =
        vec![("elements", parameters.element.clone()), ("structure", parameters.filter.to_owned())];
    if let Some(bytes) = parameters.memory_bytes {
        rows.push(("memory of the filters of a slice", size(bytes)));
    }
    if let Some(probes) = parameters.probes {
        rows.push(("hash functions (k)", probes.to_string()));
    }
    rows.extend([
        ("shards", parameters.shards.to_string()),
        ("seed", parameters.seed.to_string()),
        ("packets", grouped(totals.packets)),
        ("packets with a readable IP header", grouped(totals.ip_packets)),
        ("elements seen, repeats included", grouped(totals.elements)),
    ]);
    // Windows overlap.
    if parameters.every_ns.is_none() {
        rows.extend([
            ("sum of the exact counts of the slices", number(totals.exact)),
            ("sum of the raw counts", number(totals.first)),
            ("sum of the estimates", number(totals.estimate.map(|n| n.round() as u64))),
        ]);
    }
    rows.extend([(
        "observed false-positive rate",
        totals.observed_fpr.map_or_else(|| "\u{2013}".to_owned(), percent),
    )]);
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    DataTable::new(&[("what", false), ("value", true)], rows)
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
            exact_over_limit: false,
            first: Some(exact),
            estimate: Some(estimate),
            std_error: Some(0.0),
            lower: Some(exact),
            upper: Some(exact),
            observed_fpr: Some(0.0),
            revised: false,
            partial: false,
            saturated: false,
            combinations: Vec::new(),
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
        assert_eq!(page.counts.len(), slices as u64);
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
}
