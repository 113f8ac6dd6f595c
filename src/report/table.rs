//! A count for people: a line a slice, a picture of the series, and the totals.

use super::INTERRUPTED;
use super::count_combinations::{CombinationColumns, CountDesign};
use super::model::CountParameters;
use super::number::{duration, grouped, percent, size, time};
use super::sparkline::Sparkline;
use crate::pipeline::{CountSummary, SliceResult, Totals};
use std::fmt::Write as _;
use std::io::{self, Write};

#[derive(Debug)]
pub(super) struct CountTable<W: Write> {
    out: W,
    /// Decimals of the second that slice boundaries need.
    decimals: usize,
    columns: Columns,
    combinations: CombinationColumns,
    elements: &'static str,
    series: Sparkline,
    last_end_ns: Option<i64>,
    /// Packets and elements of all slices; late ones are in none.
    packets: u64,
    elements_seen: u64,
    /// Slices whose exact set passed its limit.
    over_limit: u64,
}

/// Which of the columns that not every run has are there.
#[derive(Clone, Copy, Debug)]
struct Columns {
    exact: bool,
    counter: bool,
    /// The counter says which elements are new.
    filter: bool,
}

impl<W: Write> CountTable<W> {
    pub(super) fn begin(
        mut out: W,
        parameters: &CountParameters,
        styled: bool,
    ) -> io::Result<Self> {
        let columns = Columns {
            exact: parameters.exact_limit_bytes.is_some(),
            counter: parameters.memory_bytes.is_some(),
            filter: parameters.probes.is_some(),
        };
        let combinations = CombinationColumns::new(parameters.design.as_ref());
        writeln!(out, "{}", title(parameters))?;
        let head = columns.line(
            time_width(decimals(parameters.slice_ns)),
            "start",
            &[
                "packets",
                "elements",
                "exact",
                "first",
                "estimate",
                "± std error",
                "rel. error",
                "observed FPR",
            ]
            .map(str::to_owned),
        ) + &combinations.head();
        if styled {
            writeln!(out, "\x1b[1m{head}\x1b[0m")?;
        } else {
            writeln!(out, "{head}")?;
        }
        Ok(Self {
            out,
            decimals: decimals(parameters.slice_ns),
            columns,
            combinations,
            elements: parameters.elements_plural,
            series: Sparkline::default(),
            last_end_ns: None,
            packets: 0,
            elements_seen: 0,
            over_limit: 0,
        })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        if let Some(end) = self.last_end_ns
            && end < slice.start_ns
        {
            writeln!(self.out, "  … no packets for {}", gap(slice.start_ns, end))?;
        }
        self.last_end_ns = Some(slice.end_ns);
        self.series.push(slice.best().unwrap_or(0.0));
        self.over_limit += u64::from(slice.exact_over_limit);
        self.packets += slice.packets;
        self.elements_seen += slice.elements;
        let exact = if slice.exact_over_limit {
            "over limit".to_owned()
        } else {
            number(slice.exact)
        };
        let cells = [
            grouped(slice.packets),
            grouped(slice.elements),
            exact,
            number(slice.first),
            rounded(slice.estimate),
            deviation(slice.std_error),
            share(slice.rel_error()),
            share(slice.observed_fpr),
        ];
        let start = time(slice.start_ns, self.decimals);
        let line = self.columns.line(time_width(self.decimals), &start, &cells);
        let more = self.combinations.cells(&slice.combinations);
        writeln!(self.out, "{line}{more}")
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let totals = &summary.totals;
        if totals.slices > 1 {
            self.sums(totals)?;
        }
        let line = self.series.draw();
        if !line.is_empty() {
            writeln!(self.out, "{} over time: {line}", self.elements)?;
        }
        if let Some(q) = totals.quantiles.filter(|_| totals.slices > 1) {
            writeln!(
                self.out,
                "{} a slice: min {}, median {}, p90 {}, p99 {}, max {}",
                self.elements,
                grouped(q.min),
                grouped(q.p50),
                grouped(q.p90),
                grouped(q.p99),
                grouped(q.max)
            )?;
        }
        if let Some(words) = CombinationColumns::words(&totals.combinations) {
            writeln!(self.out, "{words}")?;
        }
        if totals.interrupted {
            writeln!(self.out, "{INTERRUPTED}")?;
        }
        if totals.saturated_slices > 0 {
            writeln!(
                self.out,
                "filters were full in {} of {} slices: their estimates are out of range; give more --memory",
                grouped(totals.saturated_slices),
                grouped(totals.slices)
            )?;
        }
        if self.over_limit > 0 {
            writeln!(
                self.out,
                "the exact set passed its limit in {} of {} slices; raise it with --exact-limit",
                grouped(self.over_limit),
                grouped(totals.slices)
            )?;
        }
        if totals.empty_slices_omitted > 0 {
            writeln!(
                self.out,
                "{} empty slices in long gaps are not listed",
                grouped(totals.empty_slices_omitted)
            )?;
        }
        write!(
            self.out,
            "{} packets, {} of them IP",
            grouped(totals.packets),
            grouped(totals.ip_packets)
        )?;
        if totals.late > 0 {
            write!(
                self.out,
                ", {} too late for their slice and not counted in any",
                grouped(totals.late)
            )?;
        }
        writeln!(self.out)?;
        if !totals.skipped.is_empty() {
            let reasons: Vec<String> = totals
                .skipped
                .iter()
                .map(|(skip, &count)| format!("{} {}", grouped(count), skip.name()))
                .collect();
            writeln!(self.out, "without an element: {}", reasons.join(", "))?;
        }
        Ok(self.out)
    }

    fn sums(&mut self, totals: &Totals) -> io::Result<()> {
        let rel_error = totals
            .estimate
            .zip(totals.exact.filter(|&n| n > 0))
            .map(|(estimate, exact)| (estimate - exact as f64) / exact as f64);
        let cells = [
            grouped(self.packets),
            grouped(self.elements_seen),
            number(totals.exact),
            number(totals.first),
            rounded(totals.estimate),
            deviation(totals.std_error),
            share(rel_error),
            share(totals.observed_fpr),
        ];
        let label = format!("sum of {} slices", grouped(totals.slices));
        let line = self.columns.line(time_width(self.decimals), &label, &cells);
        let more = self.combinations.cells(&totals.combinations);
        writeln!(self.out, "{line}{more}")
    }
}

impl Columns {
    fn line(self, time_width: usize, start: &str, cells: &[String; 8]) -> String {
        let shown = [
            true,
            true,
            self.exact,
            self.filter,
            self.counter,
            self.counter,
            self.counter && self.exact,
            self.filter && self.exact,
        ];
        let mut line = format!("{start:<time_width$}");
        for ((cell, shown), width) in cells
            .iter()
            .zip(shown)
            .zip([12, 12, 11, 11, 11, 12, 11, 13])
        {
            if shown {
                // Writing to a String cannot fail.
                let _ = write!(line, " {cell:>width$}");
            }
        }
        line
    }
}

fn title(parameters: &CountParameters) -> String {
    let slices = match parameters.slice_ns {
        Some(width) => format!("in slices of {}", duration(width)),
        None => "over everything".to_owned(),
    };
    let counter = parameters.memory_bytes.map_or_else(
        || "exact set only".to_owned(),
        |bytes| {
            let (what, probes) = match parameters.probes {
                Some(probes) => {
                    let design = parameters.design.as_ref();
                    let more = design.map_or_else(String::new, CountDesign::words);
                    ("filter", format!(", k = {probes}{more}"))
                }
                None => ("counter", String::new()),
            };
            format!(
                "{} {what}, {} a slice in {} shard{}{probes}",
                parameters.filter,
                size(bytes),
                parameters.shards,
                if parameters.shards == 1 { "" } else { "s" }
            )
        },
    );
    let seed = match parameters.seed {
        0 => String::new(),
        seed => format!(", seed {seed}"),
    };
    let direction = if parameters.undirected {
        "undirected "
    } else {
        ""
    };
    format!(
        "distinct {direction}{} {slices}; {counter}{seed}",
        parameters.elements_plural
    )
}

/// Decimals of the second in multiples of this width.
fn decimals(slice_ns: Option<i64>) -> usize {
    match slice_ns {
        Some(width) if width % 1_000_000_000 == 0 => 0,
        Some(width) if width % 1_000_000 == 0 => 3,
        None | Some(_) => 9,
    }
}

fn time_width(decimals: usize) -> usize {
    20 + if decimals == 0 { 0 } else { decimals + 1 }
}

/// The time between two slices, in whole seconds if it has any: it may be longer than an `i64` of
/// nanoseconds.
fn gap(start_ns: i64, end_ns: i64) -> String {
    let ns = i128::from(start_ns) - i128::from(end_ns);
    match i64::try_from(ns) {
        Ok(ns) if ns < 1_000_000_000 => duration(ns),
        _ => format!("{} s", grouped((ns / 1_000_000_000) as u64)),
    }
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "–".to_owned(), grouped)
}

fn rounded(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| grouped(value.round() as u64))
}

fn deviation(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"))
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_readable_whatever_the_width_of_a_slice() {
        assert_eq!(gap(61_000_000, 0), "61 ms");
        assert_eq!(gap(70, 7), "63 ns");
        assert_eq!(gap(3_600_000_000_000, 0), "3,600 s");
        assert_eq!(gap(i64::MAX, i64::MIN), "18,446,744,073 s");
    }
}
