//! A comparison as a page: figures and tables, as plain data.

use super::compare_model::CompareReport;
use super::compare_pair::SliceWords;
use super::compare_table::{not_judged, omitted};
use super::compare_words::{
    basis, entry, full_filters, middle, pair_sentences, short_percent, sorted_memories, summary,
    title,
};
use super::document::{Block, Document, TableView};
use super::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use super::heading::Heading;
use super::number::{capitalised, grouped, size};
use super::over_time::{Place, caption, curve, leaves_out};
use super::run_view::{INTERRUPTED, inputs_table, packets_read, problems};
use super::traffic_page::{skipped, who_talks};
use crate::comparison::{Contender, CountErrors, CountKind, Entry, Negatives, SliceCount};
use crate::pipeline::Traffic;

/// Smallest error that a figure shows: it would take the room of those that matter.
const LEAST_SHOWN: f64 = 1e-6;

impl CompareReport<'_> {
    /// Everything to look at: the answer in words, counts over time, error against memory, false
    /// positives by combination, time, who talks to whom if that was counted, and packets without
    /// an element.
    pub fn page(&self, traffic: Option<&Traffic>) -> Document {
        let section = |title: &str| [Block::Section(title.to_owned())];
        let mut page = Document {
            title: capitalised(&title(self)),
            label: basis(self),
            zone: self.plan.trace.selection.zone,
            ..Document::default()
        };
        // That filters were full is a warning here.
        let full = full_filters(self);
        let sentences = pair_sentences(self).into_iter().chain(summary(self));
        let sentences = sentences.filter(|words| Some(words) != full.as_ref());
        page.page(sentences.map(Block::Answer));
        let totals = &self.comparison.totals;
        page.page(packets_read(totals));
        let interrupted = totals.interrupted.then(|| INTERRUPTED.to_owned());
        let warnings = [full, not_judged(self), omitted(self), interrupted];
        page.page(warnings.into_iter().flatten().map(Block::Warning));
        page.page(problems(&self.comparison.inputs));
        page.page(section("How exact the counts are"));
        page.page([Block::Sentence(basis(self))]);
        let memories = sorted_memories(self);
        if let Some(memory) = middle(&memories) {
            page.page(self.pair_over_time(memory).map(Block::Figure));
            page.page([Block::Figure(self.over_time(memory))]);
        }
        if memories.len() > 1 {
            page.page([Block::Figure(self.error_by_memory(&memories))]);
        }
        page.page([Block::Table(self.error_table(&memories))]);
        if let Some(memory) = middle(&memories) {
            page.page(section("How often the answer is a wrong yes"));
            page.page(self.rates(memory, &memories));
        }
        if self.plan.timing {
            page.page(section("How fast insertions are"));
            page.page([self.times(&memories)]);
        }
        if let Some(traffic) = traffic {
            page.page(section("Who talks to whom"));
            page.page(who_talks(traffic));
        }
        page.page(section("What was read"));
        if !totals.skipped.is_empty() {
            page.page([Block::Figure(skipped("skipped-packets", &totals.skipped))]);
        }
        page.page([inputs_table(&self.comparison.inputs)]);
        page
    }

    fn leaves_out(&self) -> bool {
        leaves_out(self.comparison.slices.iter().map(|slice| slice.partial))
    }

    /// A number of each slice over time.
    fn curve(
        &self,
        name: &str,
        style: SeriesStyle,
        numbers: impl Iterator<Item = (Option<f64>, Option<f64>)> + Clone,
    ) -> Series {
        let slices = self.comparison.slices.iter();
        let places = slices.zip(numbers).map(|(slice, (value, std_error))| Place {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            value,
            std_error,
            partial: slice.partial,
        });
        curve(name, style, places, 1)
    }

    /// The errors of the pair in each slice; nothing where there is no answer about them.
    fn pair_over_time(&self, memory: u64) -> Option<Figure> {
        let result = self.pair_row(memory)?.result.ok()?;
        let series = result.sides.each_ref().map(|side| {
            let distances = self.comparison.distances(side.contender, memory);
            let numbers = distances.iter().map(|distance| (*distance, None));
            self.curve(side.contender.name(), SeriesStyle::Line, numbers)
        });
        let [a, b] = result.sides.each_ref().map(|side| side.contender.name());
        let one = SliceWords::of(self.plan.slicing.width_ns).one();
        let counts = result.sides.each_ref().map(|side| side.count);
        let counted = if counts.contains(&CountKind::Estimate) {
            "The raw count, or the estimate of a structure that has no raw count"
        } else {
            "The raw count"
        };
        Some(Figure::new(
            "pair-over-time",
            format!("{a} against {b}: error by {one}, {} each", size(memory)),
            caption(
                format!(
                    "{counted}: how far it is from the exact one, as a share of that. The lower curve is the nearer one."
                ),
                self.leaves_out(),
            ),
            Drawing::Lines {
                x: Axis::time("beginning of the slice", self.plan.trace.selection.zone),
                y: Axis::new("error of the count", Scale::Percent),
                series: series.into(),
            },
        ))
    }

    /// The best count of every structure in each slice.
    fn over_time(&self, memory: u64) -> Figure {
        let slices = &self.comparison.slices;
        let truth = slices.iter().map(|slice| (slice.exact.map(|n| n as f64), None));
        let exact = self.curve("exact", SeriesStyle::Reference, truth);
        let of = |entry: &Entry| {
            let counts = entry.counts.iter();
            let counts = counts.map(|count| (best(count), count.std_error));
            self.curve(entry.contender.name(), SeriesStyle::Line, counts)
        };
        // In the order of the plan, so that a structure has the same colour in every figure.
        let contenders = self.plan.contenders.iter();
        let counting = contenders
            .filter(|contender| **contender != Contender::EXACT)
            .filter_map(|&contender| entry(self, contender, memory))
            .filter(|entry| entry.best_errors(slices).is_some());
        let elements = self.plan.rule.kind.plural();
        let text = "Each structure by its unbiased estimate with its standard error, or by its raw count where it has no estimate. The grey band is the exact count.";
        let drawing = Drawing::Lines {
            x: Axis::time("beginning of the slice", self.plan.trace.selection.zone),
            y: Axis::new(&*elements, Scale::Count),
            series: std::iter::once(exact).chain(counting.map(of)).collect(),
        };
        let title = format!("Distinct {elements} over time, {} each", size(memory));
        Figure::new("counts-over-time", title, caption(text.into(), self.leaves_out()), drawing)
    }

    /// The mean error of every structure against the memory.
    fn error_by_memory(&self, memories: &[u64]) -> Figure {
        let slices = &self.comparison.slices;
        let series = |contender: &Contender| -> Option<Series> {
            let points: Vec<Point> = memories
                .iter()
                .filter_map(|&memory| {
                    let errors = entry(self, *contender, memory)?.best_errors(slices)?;
                    let shown = errors.mean >= LEAST_SHOWN;
                    Some(Point {
                        x: memory as f64,
                        y: if shown { errors.mean } else { 0.0 },
                        error: 0.0,
                    })
                })
                .collect();
            (!points.is_empty()).then(|| Series {
                name: contender.name().into(),
                points,
                style: SeriesStyle::Line,
            })
        };
        let text = "Mean of the absolute relative errors over all slices. Both scales are logarithmic, with 0 below: an error below 0.0001 % counts as 0.";
        let drawing = Drawing::Lines {
            x: Axis::new("memory of a slice", Scale::Bytes),
            y: Axis::new("mean relative error", Scale::PercentLog),
            series: self.plan.contenders.iter().filter_map(series).collect(),
        };
        Figure::new("error-by-memory", "Mean error against memory", text, drawing)
    }

    /// All errors, a row a structure and memory.
    fn error_table(&self, memories: &[u64]) -> TableView {
        let columns = [
            ("memory", true),
            ("structure", false),
            ("k", true),
            ("bytes used", true),
            ("count", false),
            ("mean", true),
            ("p95", true),
            ("worst", true),
            ("bias", true),
            ("raw: mean", true),
            ("raw: worst", true),
        ];
        let asked = memories.iter().map(|&memory| Some(memory));
        let entries = asked.chain(std::iter::once(None)).flat_map(|memory| self.ranked(memory));
        TableView::new(
            columns.map(heading),
            entries.map(|(entry, errors)| self.error_row(entry, errors)),
        )
    }

    fn error_row(&self, entry: &Entry, errors: Option<CountErrors>) -> Vec<String> {
        let slices = &self.comparison.slices;
        let raw = entry.first_errors(slices);
        let share = |errors: Option<CountErrors>, of: fn(&CountErrors) -> f64| {
            errors.as_ref().map_or("–".into(), |e| short_percent(of(e)))
        };
        let memory = entry.memory_asked_bytes;
        let used = match (entry.memory_bytes, entry.needed_bytes) {
            (Some(bytes), _) if entry.exceeds_memory() => {
                format!("{}, more than asked for", grouped(bytes))
            }
            (Some(bytes), _) => grouped(bytes),
            (None, Some(needed)) => format!("does not fit, needs {}", grouped(needed)),
            (None, None) => "does not fit".into(),
        };
        vec![
            memory.map_or("any".into(), size),
            entry.contender.name().into(),
            entry.probes.map_or("–".into(), |k| k.to_string()),
            used,
            match (errors, entry.estimate_errors(slices)) {
                (None, _) => "none".into(),
                (Some(_), Some(_)) => "estimate".into(),
                (Some(_), None) => "raw".into(),
            },
            share(errors, |e| e.mean),
            share(errors, |e| e.p95),
            share(errors, |e| e.worst),
            share(errors, |e| e.bias),
            share(raw, |e| e.mean),
            share(raw, |e| e.worst),
        ]
    }

    /// False-positive rates: a figure for each kind of negatives, and a table of everything.
    fn rates(&self, memory: u64, memories: &[u64]) -> Vec<Block> {
        let mut blocks = vec![Block::Sentence(
            "Queries for absent elements, drawn from the traffic itself. Apart: values that occur in the slice but not together. Next: what the following slice has and this one has not. Predicted is what the formulas say for the numbers of elements that were there, with evenly spread values.".into(),
        )];
        for negatives in Negatives::ALL {
            blocks.extend(self.rate_figure(memory, negatives).map(Block::Figure));
        }
        let columns = [
            ("memory", true),
            ("structure", false),
            ("combination", false),
            ("negatives", false),
            ("queries", true),
            ("observed", true),
            ("± std error", true),
            ("predicted", true),
        ];
        let entries = memories.iter().flat_map(|&memory| self.ranked(Some(memory)));
        let rows = entries.flat_map(|(entry, _)| {
            let asked = entry.queries.iter().filter(|query| query.queries > 0);
            let can = asked.filter(|query| query.positives.is_some());
            can.map(move |query| {
                let share = |share: Option<f64>| share.map_or("–".into(), short_percent);
                vec![
                    entry.memory_asked_bytes.map_or("any".into(), size),
                    entry.contender.name().into(),
                    self.attributes(query.mask).join(","),
                    query.negatives.name().into(),
                    grouped(query.queries),
                    share(query.observed()),
                    share(query.std_error()),
                    share(query.predicted),
                ]
            })
        });
        blocks.push(Block::Table(TableView::new(columns.map(heading), rows)));
        blocks
    }

    fn rate_figure(&self, memory: u64, negatives: Negatives) -> Option<Figure> {
        let asked = self.comparison.asked.iter().copied();
        let contenders = self.plan.contenders.iter();
        let entries: Vec<&Entry> = contenders
            .filter_map(|&contender| entry(self, contender, memory))
            .filter(|entry| {
                let mut queries = entry.queries.iter();
                queries.any(|q| q.negatives == negatives && q.observed().is_some())
            })
            .collect();
        let masks: Vec<u32> = asked
            .filter(|&mask| {
                let mut queries = entries.iter().filter_map(|e| e.query(mask, negatives));
                queries.any(|query| query.queries > 0)
            })
            .collect();
        if masks.is_empty() {
            return None;
        }
        let series = entries.iter().map(|entry| {
            let queries = masks.iter().map(|&mask| entry.query(mask, negatives));
            let rates = queries.map(|query| query?.observed());
            (entry.contender.name().to_owned(), rates.collect())
        });
        let (title, caption) = match negatives {
            Negatives::Apart => (
                "values that occur, but not together",
                "Known hosts, ports or names that did not meet: the worst that traffic asks.",
            ),
            Negatives::Next => (
                "what only the following slice has",
                "What a filter that is asked about the present second would see.",
            ),
        };
        let drawing = Drawing::bars(
            masks.iter().map(|&mask| self.attributes(mask).join(",")).collect(),
            Axis::new("false-positive rate", Scale::PercentLog),
            series.collect(),
        );
        let caption = format!(
            "{caption} The scale is logarithmic, with 0 below; what has no bar gives no answer."
        );
        let title = format!("False positives at {}: {title}", size(memory));
        Some(Figure::new(format!("false-positives-{}", negatives.name()), title, caption, drawing))
    }

    fn times(&self, memories: &[u64]) -> Block {
        let series = self.plan.contenders.iter().map(|&contender| {
            let of = |&memory: &u64| entry(self, contender, memory)?.ns_per_element;
            (contender.name().to_owned(), memories.iter().map(of).collect::<Vec<_>>())
        });
        let text = "Measured in this run, on this machine, beside everything else that it did: the only figures that differ from run to run.";
        let drawing = Drawing::bars(
            memories.iter().map(|&memory| size(memory)).collect(),
            Axis::new("ns an element", Scale::Linear),
            series.filter(|(_, times)| times.iter().any(Option::is_some)).collect(),
        );
        Block::Figure(Figure::new("time-an-element", "Time of an insertion", text, drawing))
    }
}

/// The heading of a column of numbers or of texts.
fn heading((text, is_number): (&'static str, bool)) -> Heading {
    if is_number { Heading::number(text) } else { Heading::text(text) }
}

/// The best count of a structure: its estimate if it has one.
fn best(count: &SliceCount) -> Option<f64> {
    count.estimate.or(count.first.map(|first| first as f64))
}
