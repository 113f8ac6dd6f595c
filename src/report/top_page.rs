//! The largest keys as a page: the answer in words, the keys over time, a table.
//!
//! Slices are taken as they come; of many a bounded number is kept, of each part of the time the
//! one with the most pairs.

use super::figure::{Axis, Block, DataTable, Drawing, Figure, Page, PageSection};
use super::figure::{Scale, Series, SeriesStyle};
use super::number::{capitalised, grouped, percent, size, slices_of, time};
use super::over_time::{Place, caption, curve, leaves_out, troubles};
use super::sparkline::Sparkline;
use super::top_model::TopParameters;
use super::top_table::{limits, nothing, recall, subject};
use super::traffic_page::skipped;
use crate::top::{TopSink, TopSlice, TopSummary};
use flowsieve_engine::internal::Shown;
use std::collections::HashMap;
use std::io;

/// Slices that are kept.
const MOST_SLICES: usize = 1_000;

/// Keys of a slice that are kept.
const MOST_KEYS: usize = 200;

/// Keys that are drawn, and that the table has.
const DRAWN: usize = 10;
const LISTED: usize = 50;

/// Gathers slices for a page.
#[derive(Debug, Default)]
pub struct TopPage {
    kept: Vec<Kept>,
    seen: u64,
    /// Slices of which one is kept.
    each: u64,
    /// Slices whose last one is among `kept` already.
    in_last: u64,
    /// The largest number of all slices.
    largest: Option<Largest>,
    without_exact: u64,
}

/// What is kept of a slice.
#[derive(Clone, Debug)]
struct Kept {
    start_ns: i64,
    end_ns: i64,
    pairs: f64,
    keys: Vec<(String, f64)>,
    partial: bool,
}

#[derive(Clone, Debug)]
struct Largest {
    key: String,
    start_ns: i64,
    number: f64,
    /// Another key has as many.
    tied: bool,
    /// Bounds, if it is an estimate.
    bounds: Option<(u64, u64)>,
}

impl TopSink for TopPage {
    fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        self.seen += 1;
        self.without_exact += u64::from(slice.exact.is_none());
        if let Some(largest) = &mut self.largest {
            let mut firsts = slice.keys.iter();
            largest.tied |=
                firsts.any(|k| k.key != largest.key && whole(k.best()) == whole(largest.number));
        }
        if let Some(first) = slice.keys.first()
            && self.largest.as_ref().is_none_or(|l| first.best() > l.number)
        {
            let spread = first.spread.as_ref().filter(|_| first.exact.is_none());
            self.largest = Some(Largest {
                key: first.key.clone(),
                start_ns: slice.start_ns,
                number: first.best(),
                tied: slice.keys.get(1).is_some_and(|k| whole(k.best()) == whole(first.best())),
                bounds: spread.map(|spread| (spread.lower, spread.upper)),
            });
        }
        let keys = slice.keys.iter().take(MOST_KEYS);
        let kept = Kept {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            pairs: slice.best(),
            keys: keys.map(|key| (key.key.clone(), key.best())).collect(),
            partial: slice.partial,
        };
        self.each = self.each.max(1);
        match self.kept.last_mut() {
            Some(last) if self.in_last < self.each => {
                self.in_last += 1;
                if kept.pairs > last.pairs {
                    *last = kept;
                }
            }
            _ => {
                if self.kept.len() == 2 * MOST_SLICES {
                    self.halve();
                }
                self.kept.push(kept);
                self.in_last = 1;
            }
        }
        Ok(())
    }
}

impl TopPage {
    /// Keeps of every two slices the one with more pairs.
    fn halve(&mut self) {
        let larger = |two: &[Kept]| match two {
            [one, other] if other.pairs > one.pairs => other.clone(),
            _ => two[0].clone(),
        };
        self.kept = self.kept.chunks(2).map(larger).collect();
        self.each *= 2;
    }

    /// The page, once all slices have come.
    pub fn finish(self, parameters: &TopParameters, summary: &TopSummary) -> Page {
        let ranked = self.ranked();
        let mut sections = Vec::new();
        if self.kept.len() > 1 {
            sections.push(self.over_time(parameters, &ranked));
        } else {
            sections.extend(self.single(parameters));
        }
        sections.push(self.table(parameters, &ranked));
        if !summary.totals.skipped.is_empty() {
            let mut reasons: Vec<_> = summary.totals.skipped.iter().collect();
            reasons.sort_by_key(|(skip, count)| (u64::MAX - **count, skip.name()));
            let figure = Block::Figure(skipped("skipped", reasons.into_iter()));
            sections.push(PageSection::new("Packets without a key", vec![figure]));
        }
        sections.push(PageSection::new(
            "What was read",
            vec![Block::Table(inputs(summary)), Block::Table(described(parameters, summary))],
        ));
        let name = match summary.inputs.as_slice() {
            [input] => input.path.file_name().map_or_else(
                || input.path.shown().to_string(),
                |name| name.to_string_lossy().into_owned(),
            ),
            inputs => format!("{} captures", grouped(inputs.len() as u64)),
        };
        let subject = subject(parameters);
        Page {
            title: format!("{name}: {subject}{}", parameters.selected.zone_words()),
            zone: parameters.selected.zone,
            summary: self.words(parameters, summary),
            warnings: {
                let limits = limits(summary).into_iter();
                let limits = limits.map(|words| format!("{}.", capitalised(&words)));
                let totals = &summary.totals;
                let troubles = troubles(&summary.inputs, totals.uncounted, totals.interrupted);
                limits.chain(troubles).collect()
            },
            sections,
        }
    }

    /// Keys with their largest numbers in the slices that are kept, and in how many of these they
    /// are listed; the largest first.
    fn ranked(&self) -> Vec<(String, f64, u64)> {
        let mut keys: HashMap<&str, (f64, u64)> = HashMap::new();
        for (key, number) in self.kept.iter().flat_map(|slice| &slice.keys) {
            let entry = keys.entry(key).or_default();
            entry.0 = entry.0.max(*number);
            entry.1 += 1;
        }
        let keys = keys.into_iter();
        let mut ranked: Vec<(String, f64, u64)> =
            keys.map(|(key, (number, slices))| (key.to_owned(), number, slices)).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranked
    }

    /// What a key has in each of the slices that are kept; not a number where it is not listed.
    fn series(&self, key: &str) -> Vec<f64> {
        let number = |slice: &Kept| {
            let found = slice.keys.iter().find(|(name, _)| name == key);
            found.map_or(f64::NAN, |(_, number)| *number)
        };
        self.kept.iter().map(number).collect()
    }

    fn curve(&self, name: &str, numbers: &[f64]) -> Series {
        let places = self.kept.iter().zip(numbers).map(|(slice, &number)| Place {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            value: Some(number),
            std_error: None,
            partial: slice.partial,
        });
        curve(name, SeriesStyle::Line, places, self.each)
    }

    fn over_time(&self, parameters: &TopParameters, ranked: &[(String, f64, u64)]) -> PageSection {
        let drawn = &ranked[..ranked.len().min(DRAWN)];
        let series: Vec<(Vec<f64>, Series)> = drawn
            .iter()
            .map(|(key, ..)| {
                let numbers = self.series(key);
                let curve = self.curve(key, &numbers);
                (numbers, curve)
            })
            .collect();
        let rest: Vec<f64> = (0..self.kept.len())
            .map(|at| {
                let drawn = series.iter().map(|(numbers, _)| numbers[at]);
                let drawn: f64 = drawn.filter(|number| number.is_finite()).sum();
                (self.kept[at].pairs - drawn).max(0.0)
            })
            .collect();
        let leaves_out = leaves_out(self.kept.iter().map(|slice| slice.partial));
        let x = || Axis::time("beginning of the slice", parameters.selected.zone);
        let others = &parameters.others_plural;
        let mut blocks = Vec::new();
        if self.each > 1 {
            blocks.push(Block::Text(format!(
                "The figures show one of every {} slices, the one with the most distinct pairs. All of them are in the results for programs (--format).",
                grouped(self.each)
            )));
        }
        if !drawn.is_empty() {
            let label = format!("distinct {others} of the key");
            blocks.push(Block::Figure(Figure::new(
                "keys-over-time",
                &format!("The {} largest keys over time", drawn.len()),
                &caption(
                    "One scale for all. A curve has a gap where its key is not among those listed."
                        .into(),
                    leaves_out,
                ),
                Drawing::Strips {
                    x: x(),
                    y: Axis::new(&label, Scale::Count),
                    series: series.into_iter().map(|(_, curve)| curve).collect(),
                },
            )));
        }
        blocks.push(Block::Figure(Figure::new(
            "others-over-time",
            "All other keys together",
            &caption(
                "Distinct pairs of a key and another value, but for those of the curves above."
                    .into(),
                leaves_out,
            ),
            Drawing::Strips {
                x: x(),
                y: Axis::new("distinct pairs", Scale::Count),
                series: vec![self.curve("all other keys", &rest)],
            },
        )));
        PageSection::new("Over time", blocks)
    }

    /// The keys of the only slice.
    fn single(&self, parameters: &TopParameters) -> Option<PageSection> {
        let slice = self.kept.first().filter(|slice| !slice.keys.is_empty())?;
        let keys = slice.keys.iter().take(20);
        let (categories, numbers) =
            keys.map(|(key, number)| (key.clone(), Some(number.round()))).unzip();
        let label = format!("distinct {}", parameters.others_plural);
        let figure = Figure::new(
            "keys",
            "The largest keys",
            "",
            Drawing::Bars {
                categories,
                y: Axis::new(&label, Scale::Count),
                series: vec![(label.clone(), numbers)],
            },
        );
        let blocks = vec![Block::Figure(figure)];
        Some(PageSection::new("The largest keys", blocks))
    }

    fn table(&self, parameters: &TopParameters, ranked: &[(String, f64, u64)]) -> PageSection {
        let several = self.kept.len() > 1;
        let rows = ranked.iter().take(LISTED).map(|(key, number, slices)| {
            let mut row = vec![key.clone(), grouped(number.round() as u64)];
            if several {
                let mut line = Sparkline::default();
                for number in self.series(key) {
                    line.push(if number.is_finite() { number } else { 0.0 });
                }
                row.extend([grouped(*slices), line.draw(None)]);
            }
            row
        });
        let largest = format!("distinct {}", parameters.others_plural);
        let mut columns = vec![(parameters.by.as_str(), false), (largest.as_str(), true)];
        let most;
        if several {
            most = format!("most {largest} in a slice");
            columns[1].0 = &most;
            columns.extend([("slices listed", true), ("over time", false)]);
        }
        let mut blocks = Vec::new();
        if ranked.is_empty() {
            blocks.push(Block::Text(format!("{}.", capitalised(&nothing(parameters)))));
        } else {
            blocks.push(Block::Table(DataTable::new(&columns, rows)));
        }
        PageSection::new("Keys", blocks)
    }

    /// The answer in words.
    fn words(&self, parameters: &TopParameters, summary: &TopSummary) -> Vec<String> {
        let others = &parameters.others_plural;
        let mut words = Vec::new();
        words.push(match &self.largest {
            None if summary.totals.packets == 0 => {
                "There was nothing to rank: no packet was read.".to_owned()
            }
            None => format!("{}.", capitalised(&nothing(parameters))),
            Some(largest) => {
                let number = grouped(largest.number.round() as u64);
                // The largest estimate need not be that of the largest key.
                let (who, number) = match largest.bounds {
                    None => (largest.key.clone(), number),
                    Some((lower, upper)) => (
                        format!("By the estimate {}", largest.key),
                        format!("{number} (bounds {} and {})", grouped(lower), grouped(upper)),
                    ),
                };
                let slice = match parameters.slice_ns {
                    Some(_) if self.seen > 1 => {
                        format!(
                            " in the slice that begins at {}",
                            time(largest.start_ns, 3, parameters.selected.zone)
                        )
                    }
                    _ => String::new(),
                };
                let tied = if largest.tied { "; other keys have as many" } else { "" };
                format!("{who} has the most distinct {others}: {number}{slice}{tied}.")
            }
        });
        let recall = recall(parameters, summary);
        words.extend(recall.map(|words| format!("{}.", capitalised(&words))));
        if self.without_exact > 0 && summary.over_limit == 0 {
            words.push(
                "How large errors are was not measured: there is no exact count to compare with."
                    .to_owned(),
            );
        }
        let selected = parameters.selected.words(&summary.inputs);
        words.extend(selected.map(|words| format!("{words}.")));
        words
    }
}

/// A number as people see it.
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn inputs(summary: &TopSummary) -> DataTable {
    let rows = summary.inputs.iter().map(|input| {
        let container = input.container.clone();
        let error = input.error.as_ref();
        vec![
            input.path.shown().to_string(),
            container.unwrap_or_else(|| "not recognised".to_owned()),
            grouped(input.packets),
            error.map_or_else(|| "complete".to_owned(), ToString::to_string),
        ]
    });
    let columns = [("input", false), ("format", false), ("packets", true), ("how it went", false)];
    DataTable::new(&columns, rows)
}

fn described(parameters: &TopParameters, summary: &TopSummary) -> DataTable {
    let none = || "\u{2013}".to_owned();
    let recall = summary.recall.as_ref().filter(|recall| recall.keys > 0);
    let rows = [
        ("keys", parameters.by.clone()),
        ("counted for each key", parameters.distinct.clone()),
        ("slices", slices_of(parameters.slice_ns)),
        ("memory of filter and summary of a slice", size(parameters.memory_bytes)),
        (
            "memory of the exact count, at most",
            parameters.exact_limit_bytes.map_or_else(none, size),
        ),
        (
            "keys of the exact answer that the summary alone finds",
            recall.map_or_else(none, |recall| percent(recall.found as f64 / recall.keys as f64)),
        ),
        ("seed", parameters.seed.to_string()),
        ("packets", grouped(summary.totals.packets)),
        ("packets with a key", grouped(summary.totals.elements)),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    DataTable::new(&[("what", false), ("value", true)], rows)
}
