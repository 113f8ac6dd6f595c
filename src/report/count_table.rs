//! A count for people: a line a slice, a picture of the series, and the totals.

use super::INTERRUPTED;
use super::column::Columns;
use super::count_combinations::{CountDesign, cell, heading, remark};
use super::count_model::{CountParameters, slice_columns};
use super::look::Look;
use super::number::{counted, duration, grouped, size, windows_of};
use super::selection::Selected;
use super::sparkline::Sparkline;
use super::table_columns::TableColumns;
use super::table_rows::TableRows;
use crate::decode::Skip;
use crate::pipeline::{CountSummary, SliceResult, Totals};
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Debug)]
pub(super) struct CountTable<W: Write> {
    out: W,
    columns: TableColumns<SliceResult>,
    rows: TableRows,
    look: Look,
    elements: String,
    series: Sparkline,
    last_end_ns: Option<i64>,
    /// Slices whose exact set passed its limit.
    over_limit: u64,
    selected: Selected,
    /// Slices that are covered in part.
    partial: u64,
    /// There is more than one slice over everything.
    has_slices: bool,
    /// Windows slide.
    slides: bool,
}

impl<W: Write> CountTable<W> {
    pub(super) fn begin(mut out: W, parameters: &CountParameters, look: Look) -> io::Result<Self> {
        let columns = TableColumns::of(shown_columns(parameters), look);
        look.sentence(&mut out, &title(parameters))?;
        columns.head(&mut out)?;
        Ok(Self {
            out,
            columns,
            rows: TableRows::of(look),
            look,
            elements: parameters.elements_plural.clone(),
            series: Sparkline::default(),
            last_end_ns: None,
            over_limit: 0,
            partial: 0,
            selected: parameters.selected.clone(),
            has_slices: parameters.slice_ns.is_some(),
            slides: parameters.every_ns.is_some(),
        })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let mut row = self.columns.row(slice, None);
        if slice.revised {
            row += "  revised";
            return self.rows.row(&mut self.out, None, row);
        }
        if let Some(end) = self.last_end_ns
            && end < slice.start_ns
        {
            row = format!("  … no packets for {}\n{row}", gap(slice.start_ns, end));
        }
        self.last_end_ns = Some(slice.end_ns);
        self.series.push(slice.best().unwrap_or(0.0));
        self.over_limit += u64::from(slice.exact_over_limit);
        self.partial += u64::from(slice.partial);
        self.rows.row(&mut self.out, None, row)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let totals = &summary.totals;
        self.rows.finish(&mut self.out)?;
        if totals.slices > 1 {
            self.sums(totals)?;
        }
        self.columns.foot(&mut self.out)?;
        let before = format!("{} over time: ", self.elements);
        let room = self.look.width.map(|width| width.saturating_sub(before.chars().count()));
        let line = self.series.draw(room);
        if !line.is_empty() {
            writeln!(self.out, "{before}{line}")?;
        }
        for sentence in self.sentences(totals) {
            self.look.sentence(&mut self.out, &sentence)?;
        }
        write_read(&mut self.out, totals, self.look)?;
        if let Some(words) = self.selected.words(&summary.inputs) {
            self.look.sentence(&mut self.out, &words)?;
        }
        Ok(self.out)
    }

    /// What people should know of the slices.
    fn sentences(&self, totals: &Totals) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(q) = totals.quantiles.filter(|_| totals.slices > 1) {
            let [min, p50, p90, p99, max] = [q.min, q.p50, q.p90, q.p99, q.max].map(grouped);
            let elements = &self.elements;
            let slice = if self.slides { "window" } else { "slice" };
            said.push(format!(
                "{elements} a {slice}: min {min}, median {p50}, p90 {p90}, p99 {p99}, max {max}"
            ));
        }
        said.extend(remark(&totals.combinations).map(str::to_owned));
        if totals.interrupted {
            said.push(INTERRUPTED.to_owned());
        }
        if self.partial > 0 && self.has_slices {
            let slices = if self.slides { "windows" } else { "slices" };
            said.push(format!(
                "{slices} at the beginning or the end that may be covered only in part: {}",
                grouped(self.partial)
            ));
        }
        let words = [full_filters(totals), over_limit(self.over_limit, totals.slices)];
        said.extend(words.into_iter().flatten());
        if totals.empty_slices_omitted > 0 {
            let omitted = grouped(totals.empty_slices_omitted);
            said.push(format!("{omitted} empty slices in long gaps are not listed"));
        }
        said
    }

    fn sums(&mut self, totals: &Totals) -> io::Result<()> {
        let sum = SliceResult {
            start_ns: 0,
            end_ns: 0,
            packets: totals.packets,
            elements: totals.elements,
            exact: totals.exact,
            exact_over_limit: false,
            first: totals.first,
            estimate: totals.estimate,
            std_error: totals.std_error,
            lower: totals.lower,
            upper: totals.upper,
            observed_fpr: totals.observed_fpr,
            saturated: false,
            combinations: totals.combinations.clone(),
            revised: false,
            partial: false,
        };
        let slices = grouped(totals.slices);
        let label = if self.slides {
            format!("in {slices} windows")
        } else {
            format!("sum of {slices} slices")
        };
        writeln!(self.out, "{}", self.columns.row(&sum, Some(label)))
    }
}

/// The columns of a slice that people see: not every run has all of them.
fn shown_columns(parameters: &CountParameters) -> Columns<SliceResult> {
    let exact = parameters.exact_limit_bytes.is_some();
    let counter = parameters.memory_bytes.is_some();
    // The counter says which elements are new.
    let filter = parameters.probes.is_some();
    let zone = parameters.selected.zone;
    let mut columns = slice_columns(decimals(parameters.slice_ns)).in_zone(zone);
    for (name, shown) in [
        ("exact", exact),
        ("first", filter),
        ("estimate", counter),
        ("std_error", counter),
        ("lower", counter),
        ("upper", counter),
        ("rel_error", counter && exact),
        ("observed_fpr", filter && exact),
    ] {
        if !shown {
            columns.hide(name);
        }
    }
    let combinations = parameters.design.iter().flat_map(|design| &design.combinations);
    for (index, names) in combinations.enumerate() {
        columns = columns
            .field(names.join("_"), |_| "")
            .heading(heading(names))
            .text(move |slice| slice.combinations.get(index).map_or_else(String::new, cell));
    }
    columns
}

/// Says that filters were full.
pub(super) fn full_filters(totals: &Totals) -> Option<String> {
    let [full, all] = [totals.saturated_slices, totals.slices].map(grouped);
    (totals.saturated_slices > 0).then(|| {
        format!(
            "filters were full in {full} of {all} slices: what they called new is far too little; give more --memory"
        )
    })
}

/// Says that exact sets passed their limit in so many of the slices.
pub(super) fn over_limit(over: u64, slices: u64) -> Option<String> {
    let [number, all] = [over, slices].map(grouped);
    (over > 0).then(|| {
        format!(
            "the exact set passed its limit in {number} of {all} slices; raise it with --exact-limit, if this machine has the memory"
        )
    })
}

/// Says that slices were revised.
pub(super) fn late(totals: &Totals) -> Option<String> {
    (totals.late > 0).then(|| {
        format!(
            "{} came too late for the row of a slice, which was revised",
            counted(totals.late, "packet", "packets")
        )
    })
}

/// What was read, and what of it could not be counted.
pub(super) fn write_read(out: &mut dyn Write, totals: &Totals, look: Look) -> io::Result<()> {
    let [packets, ip] = [totals.packets, totals.ip_packets].map(grouped);
    let mut read = vec![format!("{packets} packets, {ip} of them IP")];
    if totals.late > 0 {
        let late = grouped(totals.late);
        read.push(format!("{late} after the row of their slice, which was revised"));
    }
    if totals.uncounted > 0 {
        let uncounted = grouped(totals.uncounted);
        read.push(format!("{uncounted} in no slice, since they came too late"));
    }
    look.sentence(out, &read.join(", "))?;
    if totals.skipped.is_empty() {
        return Ok(());
    }
    let reasons = reasons(&totals.skipped);
    look.sentence(out, &format!("without an element: {reasons}"))
}

/// Packets by reason, in a sentence.
pub(super) fn reasons(skipped: &BTreeMap<Skip, u64>) -> String {
    let reasons = skipped.iter();
    let reasons: Vec<String> =
        reasons.map(|(skip, &count)| format!("{} {}", grouped(count), skip.words())).collect();
    reasons.join(", ")
}

fn title(parameters: &CountParameters) -> String {
    let slices = windows_of(parameters.slice_ns, parameters.every_ns);
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
                "{} {what}, {} {} in {} shard{}{probes}",
                parameters.filter,
                size(bytes),
                parameters.every_ns.map_or("a slice", |_| "a window"),
                parameters.shards,
                if parameters.shards == 1 { "" } else { "s" }
            )
        },
    );
    let seed = match parameters.seed {
        0 => String::new(),
        seed => format!(", seed {seed}"),
    };
    let direction = if parameters.undirected { "undirected " } else { "" };
    format!(
        "distinct {direction}{} {slices}; {counter}{seed}{}",
        &parameters.elements_plural,
        parameters.selected.zone_words()
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

/// The time between two slices, in whole seconds if it has any: it may be longer than an `i64` of
/// nanoseconds.
fn gap(start_ns: i64, end_ns: i64) -> String {
    let ns = i128::from(start_ns) - i128::from(end_ns);
    match i64::try_from(ns) {
        Ok(ns) if ns < 1_000_000_000 => duration(ns),
        _ => format!("{} s", grouped((ns / 1_000_000_000) as u64)),
    }
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
