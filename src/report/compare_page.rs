//! A comparison as a page: the verdicts in words, four figures at most, and tables.

use super::compare_model::CompareReport;
use super::compare_table::{pair_table, rates, with_interval};
use super::compare_words::{
    digests, middle, probes_words, seeds_rule, slice_word, title, variant_words,
};
use super::document::{Block, Document, TableView};
use super::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use super::heading::Heading;
use super::number::{grouped, or_dash, short_percent};
use super::over_time::OverTime;
use super::run_view::{inputs_table, packets_read, problems};
use super::traffic_page::{skipped, who_talks};
use crate::comparison::{Contender, CountKind, Entry};
use crate::pipeline::Traffic;

/// Smallest error that a figure shows: it would take the room of those that matter.
const LEAST_SHOWN: f64 = 1e-6;

impl CompareReport<'_> {
    /// Everything to look at: the verdicts in words, errors against memory, counts and differences
    /// by slice, false positives if they were asked for, who talks to whom if that was counted.
    pub fn page(&self, traffic: Option<&Traffic>) -> Document {
        let mut page = Document {
            title: title(self),
            label: [
                vec![probes_words(self), seeds_rule(self)],
                variant_words(self.plan),
                digests(&self.captures).collect(),
            ]
            .concat()
            .join("; "),
            zone: self.plan.trace.selection.zone,
            ..Document::default()
        };
        page.page(self.sentences().into_iter().map(Block::Answer));
        let totals = &self.comparison.totals;
        page.page(packets_read(totals));
        page.page(self.remarks().into_iter().map(Block::Warning));
        page.page(problems(&self.comparison.inputs, totals.interrupted));
        page.section(
            "How far the counts are from the truth",
            self.error_by_size().map(Block::Figure),
        );
        if let Some(size) = self.main_size() {
            page.page(self.over_time(size).map(Block::Figure));
        }
        page.page(self.by_load().map(Block::Figure));
        let verdicts = CountKind::ALL.iter().flat_map(|&kind| self.verdicts(kind));
        let verdicts: Vec<_> = verdicts.filter(|row| row.judged().is_some()).collect();
        page.page([
            Block::Sentence("Intervals are those of Student's t over the seeds, at 95 %, and those of χ² for root mean squares; differences are paired by seed.".to_owned()),
            Block::Table(pair_table(self, &verdicts)),
            Block::Table(self.error_table()),
        ]);
        if self.plan.queries {
            page.section("How often the answer is a wrong yes", [Block::Sentence("Share of the queries for absent elements that are answered by yes, in the first replicate, in per cent; in brackets what formulas predict if all values are equally frequent. apart: the values occur in the slice, but not together; next: only the following slice has it.".to_owned())]);
            page.page(rates(self).into_iter().map(Block::Table));
        }
        if let Some(traffic) = traffic {
            page.section("Who talks to whom", who_talks(traffic));
        }
        let skipped = || Block::Figure(skipped("skipped-packets", "an element", &totals.skipped));
        page.section("What was read", (!totals.skipped.is_empty()).then(skipped));
        page.page([inputs_table(&self.comparison.inputs)]);
        page
    }

    /// The size that is looked at more closely: the middle one of those where one of the pair is
    /// nearer.
    pub(super) fn main_size(&self) -> Option<u64> {
        let rows = self.verdicts(self.main_kind()).into_iter();
        let nearer = rows.filter(|row| row.judged().is_some_and(|it| it.verdict.is_nearer()));
        let nearer: Vec<u64> = nearer.map(|row| row.verdict.size).collect();
        middle(&nearer).or_else(|| middle(&self.comparison.sizes))
    }

    fn size_axis(&self) -> Axis {
        if self.comparison.has_arrays {
            return Axis::new("bits of an array", Scale::Log);
        }
        Axis::new("memory of a slice", Scale::Bytes)
    }

    /// The error of every structure against its size: a panel for each count that any has.
    fn error_by_size(&self) -> Option<Figure> {
        let has_points = |(_, series): &(String, Vec<Series>)| {
            series.iter().any(|series| !series.points.is_empty())
        };
        let panels = CountKind::ALL.map(|kind| (kind.name().to_owned(), self.error_curves(kind)));
        let panels: Vec<_> = panels.into_iter().filter(has_points).collect();
        let text = "raw: mean over slices of the share that the raw count loses; estimate: root of the mean square of the error of the unbiased estimate. Bands are intervals of 95 % over seeds, broken lines what the raw count of a structure loses at any memory; the grey bar is where the pair changes places. All scales are logarithmic; errors of 0 are on the lowest line.";
        let title = "Error of each structure against memory";
        (!panels.is_empty()).then(|| {
            let y = Axis::new("error", Scale::PercentLog);
            let drawing = Drawing::Lines { x: self.size_axis(), y, panels, strips: false };
            Figure::new("error-by-memory", title, text, drawing)
        })
    }

    /// The error of every structure by one count, floors, and where the pair changes places. Each
    /// count has the same curves; those that it lacks have no points.
    fn error_curves(&self, kind: CountKind) -> Vec<Series> {
        let comparison = self.comparison;
        let of = |contender: &Contender| {
            let points = comparison.sizes.iter().filter_map(|&size| {
                let error = comparison.errors(comparison.entry(*contender, size)?, kind)?.error;
                let y = if error.value >= LEAST_SHOWN { error.value } else { 0.0 };
                let errors = [error.value - error.low, error.high - error.value];
                let is_drawn = y > 0.0 && errors.iter().all(|length| length.is_finite());
                let errors = if is_drawn { errors } else { [0.0; 2] };
                Some(Point { errors, ..Point::new(size as f64, y) })
            });
            let name = contender.name().to_owned();
            Series { name, points: points.collect(), style: SeriesStyle::Band }
        };
        let mut series: Vec<Series> = self.plan.contenders.iter().map(of).collect();
        let lowest = series.iter().flat_map(|it| &it.points).map(|point| point.y);
        let lowest = lowest.filter(|y| *y > 0.0).fold(1.0, f64::min);
        let ends = [comparison.sizes.first(), comparison.sizes.last()].map(|it| *it.unwrap_or(&1));
        let floors = comparison.floors(self.plan).into_iter().filter(|floor| floor.mean > 0.0);
        series.extend(floors.map(|floor| Series {
            name: format!("{}, floor", floor.contender.name()),
            points: match kind {
                CountKind::Raw => ends.map(|size| Point::new(size as f64, floor.mean)).into(),
                CountKind::Estimate => Vec::new(),
            },
            style: SeriesStyle::Dashed,
        }));
        let crossings = |kind: CountKind| {
            self.plan.pair.into_iter().flat_map(move |pair| comparison.crossovers(pair, kind))
        };
        if CountKind::ALL.into_iter().flat_map(crossings).next().is_some() {
            // A gap is behind each.
            let points = crossings(kind).flat_map(|crossing| {
                let [from, to] = crossing.between.map(|size| size as f64);
                [Point::new(from, lowest), Point::new(to, lowest), Point::new(to, f64::NAN)]
            });
            series.push(Series {
                name: "they cross".to_owned(),
                points: points.collect(),
                style: SeriesStyle::Places,
            });
        }
        series
    }

    /// The exact count and that of every structure in each slice.
    fn over_time(&self, size: u64) -> Option<Figure> {
        let (comparison, kind) = (self.comparison, self.main_kind());
        let slices = &comparison.slices;
        if slices.len() < 2 {
            return None;
        }
        let x = Axis::time("beginning of the slice", self.plan.trace.selection.zone);
        let places = slices.iter().map(|it| (it.start_ns, it.end_ns, it.partial));
        let time = OverTime::new(x, places, 1);
        let exact = slices.iter().map(|slice| (slice.exact.map(|n| n as f64), [0.0; 2]));
        let mut series = vec![time.curve("exact", SeriesStyle::Reference, exact)];
        let of_size = comparison.entries.iter().filter(|entry| entry.size == size);
        for entry in of_size.filter(|entry| comparison.errors(entry, kind).is_some()) {
            let values = slices.iter().enumerate().map(|(number, slice)| {
                let range = slice.exact.and_then(|_| range_and_median(entry, kind, number));
                range.map_or((None, [0.0; 2]), |[low, middle, high]| {
                    (Some(middle), [middle - low, high - middle])
                })
            });
            series.push(time.curve(entry.contender.name(), SeriesStyle::Band, values));
        }
        let elements = self.plan.rule.kind.plural();
        let text = format!(
            "Median of the {} over the seeds, in the band from the lowest to the highest. The grey line is the exact count.",
            kind.words()
        );
        let title =
            format!("Distinct {elements} by {}, {} each", slice_word(self.plan), self.size(size));
        let y = Axis::new(&*elements, Scale::Count);
        Some(time.figure("counts-over-time", title, text, y, series))
    }

    /// The difference between the errors of the pair in each slice, against the load.
    fn by_load(&self) -> Option<Figure> {
        let (comparison, kind) = (self.comparison, self.main_kind());
        let pair = self.plan.pair?;
        let series = comparison.sizes.iter().filter_map(|&size| {
            let [a, b] = pair.map(|it| comparison.entry(it, size));
            let [a, b] = [a?, b?].map(|entry| comparison.slice_errors(entry, kind));
            let slices = comparison.slices.iter().zip(a.iter().zip(&b));
            let points = slices.filter_map(|(slice, (a, b))| {
                Some(Point::new(slice.exact? as f64 / size as f64, (*a)? - (*b)?))
            });
            let mut points: Vec<Point> = points.collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            let name = self.size(size);
            (!points.is_empty()).then_some(Series { name, points, style: SeriesStyle::Points })
        });
        let series: Vec<Series> = series.collect();
        if series.is_empty() || comparison.judged().count() < 2 {
            return None;
        }
        let [a, b] = pair.map(Contender::name);
        let elements = self.plan.rule.kind.plural();
        let per = if comparison.has_arrays { "bit of an array" } else { "byte" };
        Some(Figure::new(
            "difference-by-load",
            format!("{a} against {b} by {elements} per {per}"),
            format!(
                "Error of {a} less that of {b}, a dot a slice (mean over the seeds): above 0 {b} is nearer."
            ),
            Drawing::lines(
                Axis::new(format!("{elements} per {per}"), Scale::Log),
                Axis::new("difference of the errors", Scale::Percent),
                series,
            ),
        ))
    }

    /// All errors, a row a structure, size and count.
    fn error_table(&self) -> TableView {
        let texts = ["memory", "structure", "count"].map(Heading::text);
        let numbers = ["k", "bytes used", "error, % (95 %)", "lost", "worst", "bias", "best"];
        let numbers = numbers.map(Heading::number);
        let rows = self.comparison.entries.iter().flat_map(|entry| {
            CountKind::ALL.into_iter().filter_map(move |kind| {
                let errors = self.comparison.errors(entry, kind)?;
                Some(vec![
                    self.size(entry.size),
                    entry.contender.name().to_owned(),
                    kind.name().to_owned(),
                    or_dash(entry.probes, |k| k.to_string()),
                    or_dash(entry.memory_bytes, grouped),
                    with_interval(errors.error, '–'),
                    short_percent(errors.lost),
                    short_percent(errors.worst),
                    short_percent(errors.bias),
                    if self.is_best(entry, kind) { "*" } else { "" }.to_owned(),
                ])
            })
        });
        TableView::new(texts.into_iter().chain(numbers), rows.collect::<Vec<_>>())
    }
}

/// The lowest, the median and the highest of the counts of a slice over the replicates.
fn range_and_median(entry: &Entry, kind: CountKind, slice: usize) -> Option<[f64; 3]> {
    let counts = entry.replicates.iter().map(|replicate| replicate.count(kind, slice));
    let mut counts = counts.collect::<Option<Vec<f64>>>()?;
    counts.sort_unstable_by(f64::total_cmp);
    Some([*counts.first()?, counts[counts.len() / 2], *counts.last()?])
}
