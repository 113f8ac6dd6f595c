//! A ranking in every format: for people a table for each slice, and what is known of the whole.

use super::document::{Block, Document, TableView, TextColumns, Wrapping};
use super::format::{ReportFormat, Summary};
use super::heading::Heading;
use super::layout::remark_on;
use super::number::{
    counted, decimals_of, grouped, joined, or_dash, percent_to, rounded, seed_words, size,
    slices_of, some_slices, time,
};
use super::rows::{RowWriter, Writer};
use super::run_view::{over_limit, packets_read, shortcomings};
use super::selection::{selection_words, zone_words};
use super::table_rows::TableRows;
use super::terminal::{self, TerminalStyle, write_lines};
use super::top_model::{TopRow, frame, key_columns, ranked_number, tail};
use crate::pipeline::SliceSink;
use crate::top::{Certainty, RankBy, TopKey, TopPlan, TopSlice, TopSummary};
use std::io::{self, Write};

/// Writes a ranking.
#[derive(Debug)]
pub struct TopReport<W: Write>(Writer<TopTable<W>, RowWriter<W, TopRow>>);

impl<W: Write> TopReport<W> {
    /// Begins a report; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        plan: &TopPlan,
        style: TerminalStyle,
        out: W,
    ) -> io::Result<Self> {
        Ok(Self(if format.is_table() {
            Writer::Table(Box::new(TopTable::begin(out, plan, style)?))
        } else {
            Writer::Rows(Box::new(RowWriter::begin(format, frame(plan), key_columns(), out)?))
        }))
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &TopSummary) -> io::Result<W> {
        match self.0 {
            Writer::Table(table) => table.finish(summary),
            Writer::Rows(rows) => rows.finish(tail(summary)),
        }
    }
}

/// Returns the summary of a ranking.
pub fn top_summary(plan: &TopPlan, summary: &TopSummary) -> Summary {
    frame(plan).summary(tail(summary))
}

impl<W: Write> SliceSink<TopSlice> for TopReport<W> {
    fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(table) => table.slice(slice),
            Writer::Rows(rows) => slice.keys.iter().try_for_each(|key| {
                rows.row(&TopRow {
                    start_ns: slice.start_ns,
                    end_ns: slice.end_ns,
                    key: key.clone(),
                    partial: slice.partial,
                    revised: slice.revised,
                })
            }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(table) => table.out.flush(),
            Writer::Rows(rows) => rows.flush(),
        }
    }
}

/// Longest line in a text file.
const WRAPPING: Wrapping = Wrapping { width: 120, hanging: 0 };

/// Prints slices as they come.
#[derive(Debug)]
pub(super) struct TopTable<W: Write> {
    pub(super) out: W,
    plan: TopPlan,
    style: TerminalStyle,
    rows: TableRows,
    /// The remark on columns without room.
    dropped: Option<String>,
    any: bool,
    /// Number of listed keys that are not certain, in slices without an exact answer.
    uncertain: u64,
    /// Largest number of others of a key that the summary does not hold, over all slices.
    most_unheld: Option<u64>,
}

impl<W: Write> TopTable<W> {
    pub(super) fn begin(mut out: W, plan: &TopPlan, style: TerminalStyle) -> io::Result<Self> {
        write_lines(&mut out, style.lines(&title(plan), WRAPPING))?;
        Ok(Self {
            out,
            plan: plan.clone(),
            style,
            rows: TableRows::new(style.rows),
            dropped: None,
            any: false,
            uncertain: 0,
            most_unheld: None,
        })
    }

    pub(super) fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        if slice.exact.is_none() {
            let uncertain = slice.keys.iter();
            let uncertain = uncertain.filter(|key| key.certainty != Certainty::Certain);
            self.uncertain += uncertain.count() as u64;
            self.most_unheld = self.most_unheld.max(slice.most_unheld);
        }
        if slice.keys.is_empty() {
            return Ok(());
        }
        if !self.any {
            writeln!(self.out)?;
        }
        self.any = true;
        let width = self.style.width.unwrap_or(WRAPPING.width);
        let table = self.style.table(&key_view(&self.plan, slice), width);
        self.dropped = self.dropped.take().or_else(|| remark_on(&table.dropped));
        let heading = self.style.lines(&heading(&self.plan, slice), WRAPPING);
        let above = [heading, table.head].concat().join("\n");
        table.rows.into_iter().try_for_each(|row| self.rows.row(&mut self.out, Some(&above), row))
    }

    pub(super) fn finish(mut self, summary: &TopSummary) -> io::Result<W> {
        self.rows.finish(&mut self.out)?;
        let mut remarks = Vec::new();
        if self.uncertain > 0 && self.plan.most.is_none() {
            let (rows, least) =
                (counted(self.uncertain, "row is", "rows are"), grouped(self.plan.least));
            remarks.push(format!("{rows} not certain: a likely row has an estimate of {least} or more, a possible row only an upper bound"));
        }
        remarks.extend(self.most_unheld.map(|most| unheld(&self.plan, most)));
        let mut document = Document { wrapping: WRAPPING, ..Document::default() };
        document.terminal([Block::Gap]);
        document.terminal(self.dropped.take().map(Block::Sentence));
        let shortcomings = shortcomings(&summary.inputs, summary.totals.interrupted);
        document.terminal(shortcomings.into_iter().map(Block::Warning));
        document.terminal(closing(&self.plan, summary, self.any, remarks));
        terminal::write(&document, self.style, self.out)
    }
}

/// Sentences about the whole run, with the remarks of the table.
pub(super) fn closing(
    plan: &TopPlan,
    summary: &TopSummary,
    any: bool,
    remarks: Vec<String>,
) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !any {
        blocks.push(Block::Answer(nothing(plan)));
    }
    blocks.extend(recall(plan, summary).map(Block::Answer));
    blocks.extend(limits(plan, summary).map(Block::Warning));
    blocks.extend(remarks.into_iter().map(Block::Sentence));
    blocks.extend(packets_read(&summary.totals));
    blocks.extend(selection_words(&plan.trace.selection, &summary.inputs).map(Block::Answer));
    blocks
}

/// The heading of a slice.
pub(super) fn heading(plan: &TopPlan, slice: &TopSlice) -> String {
    let about = if slice.exact.is_some() { "" } else { "about " };
    let pairs = slice.exact.unwrap_or(slice.distinct.round() as u64);
    let pairs = format!("{about}{}", counted(pairs, "distinct pair", "distinct pairs"));
    let zone = plan.trace.selection.zone;
    let when = plan.slicing.width_ns.map_or_else(String::new, |width| {
        format!("{}: ", time(slice.start_ns, decimals_of(width, &[0]), zone))
    });
    let part = match (slice.partial, slice.revised) {
        (_, true) => " (revised)",
        (true, false) => " (slice covered in part)",
        (false, false) => "",
    };
    let (listed, plural) = (grouped(slice.keys.len() as u64), plan.question.keys_plural());
    let all = slice.exact_keys.map_or_else(String::new, |keys| format!(" of {}", grouped(keys)));
    let packets = counted(slice.packets, "packet", "packets");
    format!("{when}{plural}: {listed}{all}; {pairs} in {packets}{part}")
}

/// The keys of a slice.
pub(super) fn key_view(plan: &TopPlan, slice: &TopSlice) -> TableView {
    let number = |text: &'static str, priority| Heading::number(text).drop_priority(priority);
    let mut columns = TextColumns::<TopKey>::default();
    columns.push(number("", 0), |key| grouped(key.rank));
    columns.push(Heading::text(plan.question.by_names()), |key| key.key.clone());
    let estimate = |key: &TopKey| or_dash(key.spread.as_ref(), |it| rounded(it.estimate));
    let is_exact = slice.exact.is_some();
    if is_exact {
        let exact = |key: &TopKey| or_dash(key.exact.as_ref(), |it| grouped(it.distinct));
        columns.push(number("exact", 0), exact);
        if plan.rank_by == RankBy::Distinct {
            columns.push(number("estimate", 3), estimate);
        }
    } else {
        columns.push(number("estimate", 0), estimate);
        columns
            .push(number("lower", 4), |key| or_dash(key.spread.as_ref(), |it| grouped(it.lower)));
        columns
            .push(number("upper", 4), |key| or_dash(key.spread.as_ref(), |it| grouped(it.upper)));
    }
    let kept = |by| if plan.rank_by == by { 0 } else { 2 };
    let bytes = |key: &TopKey| or_dash(Some(key.bytes()).filter(|&bytes| bytes > 0), grouped);
    columns.push(number("share", 5), |key| or_dash(key.share, |share| percent_to(share, 1)));
    columns.push(number("packets", kept(RankBy::Packets)), |key| grouped(key.packets()));
    columns.push(number("bytes", kept(RankBy::Bytes)), bytes);
    if !is_exact && plan.rank_by != RankBy::Distinct {
        let at_most = |key: &TopKey| key.spread.as_ref().and_then(|spread| spread.at_most);
        columns.push(number("at most", 1), move |key| or_dash(at_most(key), grouped));
    }
    if !is_exact && plan.most.is_none() {
        columns.push(Heading::text(""), |key| key.certainty.name().to_owned());
    }
    let most = slice.keys.iter().map(|key| key.number).fold(0.0, f64::max);
    let bars = slice.keys.iter().map(|key| key.number / most).collect();
    TableView { bars, ..columns.table(&slice.keys) }
}

/// Says that no key has enough others to be listed.
fn nothing(plan: &TopPlan) -> String {
    let (keys, others) = (plan.question.keys_plural(), plan.question.others_plural());
    format!("none of the {keys} has {} or more distinct {others}", grouped(plan.least))
}

/// Returns the sentence on the upper bound of keys that are not in a full table.
pub(super) fn unheld(plan: &TopPlan, most: u64) -> String {
    match plan.rank_by {
        RankBy::Distinct => {
            let most = counted(most, "other", "others");
            format!("the filter noticed at most {most} of any key that is not in the table")
        }
        RankBy::Packets | RankBy::Bytes => {
            let (most, number) = (grouped(most), ranked_number(plan));
            format!("any key that is not in the table has at most {most} {number}")
        }
    }
}

/// Keys that were not found which a sentence names.
const MISSED: usize = 5;

/// How many keys of the exact answer the summary finds.
fn recall(plan: &TopPlan, summary: &TopSummary) -> Option<String> {
    let memory = size(plan.memory_bytes);
    let recall = summary.recall.as_ref().filter(|recall| recall.keys > 0);
    recall.map(|recall| {
        let [keys, found] = [recall.keys, recall.found].map(grouped);
        let keys = match (recall.keys, recall.found) {
            (1, 1) => "this key".to_owned(),
            (2, 2) => "both keys".to_owned(),
            (all, some) if all == some => format!("all {keys} keys"),
            (all, some) => {
                let share = percent_to(some as f64 / all as f64, 1);
                format!("{found} of the {keys} keys (recall {share})")
            }
        };
        let named = joined(recall.missed.iter().take(MISSED).cloned(), " ");
        let more = (recall.keys - recall.found) as usize > recall.missed.len().min(MISSED);
        let others = if more { " and others" } else { "" };
        let missed = named.map_or_else(String::new, |named| format!("; it misses {named}{others}"));
        format!("without the exact count, {memory} finds {keys}{missed}")
    })
}

/// Returns warnings about missing numbers and about memory limits that the run reached.
fn limits(plan: &TopPlan, summary: &TopSummary) -> impl Iterator<Item = String> {
    let is_log = summary.inputs.iter().any(|input| input.is_log);
    let without_bytes = (plan.rank_by == RankBy::Bytes && is_log).then(|| {
        "records of logs have no bytes in this ranking; --sort packets counts each as a packet"
            .to_owned()
    });
    let crowded = some_slices(summary.crowded, summary.slices).map(|slices| {
        format!("the filter missed more than half of the new pairs at the end of {slices}: estimates are unbiased, but far less exact; give more --memory")
    });
    let over_limit = over_limit(summary.over_limit, summary.slices);
    [without_bytes, crowded, over_limit].into_iter().flatten()
}

/// Returns the title: what is listed and how it is counted.
pub(super) fn title(plan: &TopPlan) -> String {
    let is_exact = plan.exact_limit_bytes.is_some();
    let exact = if is_exact { "with an exact count" } else { "no exact count" };
    let seed = seed_words(plan.seed);
    let each = plan.slicing.width_ns.map_or("", |_| " per slice");
    let (subject, memory) = (subject(plan), size(plan.memory_bytes));
    let zone = zone_words(plan.trace.selection.zone);
    format!("{subject}; {memory}{each} for filter and table, {exact}{seed}{zone}")
}

/// Says what is listed.
pub(super) fn subject(plan: &TopPlan) -> String {
    let (number, others) = (ranked_number(plan), plan.question.others_plural());
    let least = grouped(plan.least);
    let what = match (plan.rank_by, plan.most) {
        (RankBy::Distinct, None) => format!("{least} or more {number}"),
        (RankBy::Packets | RankBy::Bytes, _) if plan.least > 1 => {
            format!("the most {number} among those with {least} or more distinct {others}")
        }
        _ => format!("the most {number}"),
    };
    format!("{} with {what} {}", plan.question.keys_plural(), slices_of(plan.slicing.width_ns))
}
