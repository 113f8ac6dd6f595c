//! A count for people: a line for each slice, a sparkline of the series, and the totals.

use super::column::Columns;
use super::compare_structures::hash_variant;
use super::count_combinations::{CountDesign, cell, heading, remarks};
use super::count_model::{CountParameters, slice_columns};
use super::document::{Block, Document, TableView};
use super::heading::Heading;
use super::number::{
    about, counted, decimals_of, grouped, or_dash, seed_words, size, some, some_slices, windows_of,
};
use super::run_view::{over_limit, packets_read, shortcomings};
use super::selection::{selection_words, zone_words};
use super::sparkline::Sparkline;
use super::table_columns::{RowTable, TableColumns};
use super::terminal::TerminalStyle;
use crate::pipeline::{CountSummary, SliceResult, Totals};
use std::io::{self, Write};
use std::iter::once;

/// Prints slices as they come.
#[derive(Debug)]
pub(super) struct CountTable<W: Write> {
    pub(super) table: RowTable<W, SliceResult>,
    parameters: CountParameters,
    series: Sparkline,
    /// Columns of the terminal.
    room: Option<usize>,
    last_end_ns: Option<i64>,
    seen: Seen,
}

/// Number of slices to which a remark applies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Slices whose exact set passed its limit.
    pub(super) over_limit: u64,
    /// Slices that the capture covers only in part.
    pub(super) partial: u64,
}

impl Seen {
    /// Adds a slice.
    pub(super) fn add(&mut self, slice: &SliceResult) {
        self.over_limit += u64::from(slice.exact_over_limit);
        self.partial += u64::from(slice.partial);
    }

    /// Removes a slice that is replaced.
    pub(super) fn remove(&mut self, slice: &SliceResult) {
        self.over_limit -= u64::from(slice.exact_over_limit);
        self.partial -= u64::from(slice.partial);
    }
}

impl<W: Write> CountTable<W> {
    pub(super) fn begin(
        out: W,
        parameters: &CountParameters,
        style: TerminalStyle,
    ) -> io::Result<Self> {
        Ok(Self {
            table: RowTable::begin(out, &title(parameters), shown_columns(parameters), style)?,
            parameters: parameters.clone(),
            series: Sparkline::default(),
            room: style.width,
            last_end_ns: None,
            seen: Seen::default(),
        })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let mut row = self.table.text(slice, None);
        if slice.revised {
            row += "  revised";
            return self.table.row(row);
        }
        if let Some(end) = self.last_end_ns
            && end < slice.start_ns
        {
            let gap = i128::from(slice.start_ns) - i128::from(end);
            row = format!("  … no packets for {}\n{row}", about(gap));
        }
        self.last_end_ns = Some(slice.end_ns);
        self.series.push(slice.best().or(slice.first.map(|n| n as f64)).unwrap_or(0.0));
        self.seen.add(slice);
        self.table.row(row)
    }

    pub(super) fn finish(self, summary: &CountSummary) -> io::Result<W> {
        let (totals, parameters) = (&summary.totals, &self.parameters);
        let before = format!("{} over time: ", parameters.elements());
        let line =
            self.series.draw(self.room.map(|room| room.saturating_sub(before.chars().count())));
        let mut document = Document::default();
        let line = Some(line).filter(|line| !line.is_empty()).map(|line| before + &line);
        let said = line.into_iter().chain(quantiles(totals, parameters));
        document.terminal(said.chain(remarks(&totals.combinations)).map(Block::Sentence));
        let shortcomings = shortcomings(&summary.inputs, totals.interrupted);
        document.terminal(shortcomings.into_iter().map(Block::Warning));
        document.terminal(closing(parameters, summary, self.seen));
        self.table.finish(&sums(totals, parameters), &document)
    }
}

/// Sentences about the whole run.
pub(super) fn closing(
    parameters: &CountParameters,
    summary: &CountSummary,
    seen: Seen,
) -> Vec<Block> {
    let totals = &summary.totals;
    let mut blocks = Vec::new();
    if seen.partial > 0 && parameters.plan.slicing.width_ns.is_some() {
        let (slice, number) = (parameters.slice(), grouped(seen.partial));
        blocks.push(Block::Answer(format!(
            "{slice}s at the beginning or the end that may be covered only in part: {number}"
        )));
    }
    blocks.extend(bounds_held(totals, parameters.slice()).map(Block::Answer));
    let limits = [full_filters(totals), over_limit(seen.over_limit, totals.slices)];
    blocks.extend(limits.into_iter().flatten().map(Block::Warning));
    let [one, many] = ["empty slice in long gaps is", "empty slices in long gaps are"];
    let omitted = some(totals.empty_slices_omitted, one, many);
    blocks.extend(omitted.map(|omitted| Block::Answer(format!("{omitted} not listed"))));
    blocks.extend(packets_read(totals));
    blocks.extend(
        selection_words(&parameters.plan.trace.selection, &summary.inputs).map(Block::Answer),
    );
    blocks
}

/// The slices, with their sum, as the table of a page. Of sums alone it has the columns with values.
pub(super) fn slices_view(
    parameters: &CountParameters,
    slices: &[SliceResult],
    totals: &Totals,
) -> TableView {
    let columns = TableColumns::new(shown_columns(parameters), TerminalStyle::default());
    let sums = sums(totals, parameters);
    let sums = sums.iter().map(|(sum, label)| (sum, Some(label.clone())));
    let mut table = columns.view(slices.iter().map(|slice| (slice, None)).chain(sums));
    for column in (0..table.headings.len()).rev().filter(|_| slices.is_empty()) {
        if table.rows.iter().all(|row| matches!(&*row[column], "" | "–")) {
            table.headings.remove(column);
            table.rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    table
}

/// How many distinct elements a slice has.
fn quantiles(totals: &Totals, parameters: &CountParameters) -> Option<String> {
    let q = totals.quantiles.filter(|_| totals.slices > 1)?;
    let [min, p50, p90, p99, max] = [q.min, q.p50, q.p90, q.p99, q.max].map(grouped);
    let (elements, slice) = (&parameters.elements(), parameters.slice());
    Some(format!("{elements} a {slice}: min {min}, median {p50}, p90 {p90}, p99 {p99}, max {max}"))
}

/// The sum of all slices, and all of them together, as rows with their first cells; none for a
/// single slice.
fn sums(totals: &Totals, parameters: &CountParameters) -> Vec<(SliceResult, String)> {
    if totals.slices <= 1 {
        return Vec::new();
    }
    let sum = SliceResult {
        packets: totals.packets,
        elements: totals.elements,
        exact: totals.exact,
        first: totals.first,
        estimate: totals.estimate,
        std_error: totals.std_error,
        lower: totals.lower,
        upper: totals.upper,
        observed_fpr: totals.observed_fpr,
        saturated: totals.saturated_slices > 0,
        combinations: totals.combinations.clone(),
        ..SliceResult::default()
    };
    let slices = grouped(totals.slices);
    let label = match parameters.every_ns() {
        Some(_) => format!("in {slices} windows"),
        None => format!("sum of {slices} slices"),
    };
    let whole = totals.whole.map(|whole| SliceResult {
        packets: totals.packets,
        elements: totals.elements,
        exact: whole.exact,
        estimate: whole.estimate,
        std_error: whole.std_error,
        lower: whole.lower,
        upper: whole.upper,
        ..SliceResult::default()
    });
    let whole = whole.map(|whole| (whole, "whole, as one slice".to_owned()));
    once((sum, label)).chain(whole).collect()
}

/// The columns of a slice that people see in this run.
fn shown_columns(parameters: &CountParameters) -> Columns<SliceResult> {
    let exact = parameters.plan.exact_limit_bytes.is_some();
    let counter = parameters.plan.counter_bytes().is_some();
    // Only a filter says which elements are new.
    let filter = parameters.probes().is_some();
    let zone = parameters.zone();
    let width_ns = parameters.plan.slicing.width_ns;
    let decimals = width_ns.map_or(9, |width| decimals_of(width, &[0, 3]));
    let mut columns = slice_columns(decimals).in_zone(zone);
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
    if width_ns.is_some() && parameters.every_ns().is_none() {
        columns = columns
            .field("new", |slice| slice.new)
            .heading(Heading::right(11, 11, "new").narrow(9, "new").drop_priority(6))
            .text(|slice| match (slice.new, slice.new_std_error) {
                (Some(new), Some(1e-9..)) => format!("≈{}", grouped(new)),
                (new, _) => or_dash(new, grouped),
            });
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

/// Says how often bounds enclosed the exact count.
fn bounds_held(totals: &Totals, slice: &str) -> Option<String> {
    let held = grouped(totals.bounds_held);
    let checked = counted(totals.bounds_checked, slice, &format!("{slice}s"));
    match (totals.bounds_checked, totals.slices, totals.bounds_held) {
        (0, ..) => None,
        (1, 1, 1) => Some("the bounds enclose the exact count".to_owned()),
        (1, 1, _) => Some("the bounds do not enclose the exact count".to_owned()),
        _ => Some(format!("bounds enclosed the exact count in {held} of {checked}")),
    }
}

/// Says that filters were full.
fn full_filters(totals: &Totals) -> Option<String> {
    some_slices(totals.saturated_slices, totals.slices).map(|slices| {
        format!("filters were full in {slices}: what they called new is far too little; give more --memory")
    })
}

/// Returns the title: what is counted, by which structure, in which memory.
pub(super) fn title(parameters: &CountParameters) -> String {
    let slices = windows_of(parameters.plan.slicing.width_ns, parameters.every_ns());
    let shards = counted(parameters.plan.shards.into(), "shard", "shards");
    let (filter, counter) = (parameters.filter(), parameters.counter());
    let probes = parameters.probes().map_or_else(String::new, |probes| {
        let more = parameters.design.as_ref().map_or_else(String::new, CountDesign::words);
        let hash = hash_variant(filter).map_or_else(String::new, |it| format!(", {it} hash"));
        format!(", k = {probes}{hash}{more}")
    });
    let counter = parameters.plan.counter_bytes().map_or_else(
        || "exact set only".to_owned(),
        |bytes| {
            let (size, slice) = (size(bytes), parameters.slice());
            format!("{filter} {counter}, {size} a {slice} in {shards}{probes}")
        },
    );
    let seed = seed_words(parameters.plan.seed);
    let direction = if parameters.plan.rule.undirected { "undirected " } else { "" };
    let (elements, zone) = (parameters.elements(), zone_words(parameters.zone()));
    format!("distinct {direction}{elements} {slices}; {counter}{seed}{zone}")
}
