//! Answers of a saved filter, in every format.

use super::cell::Cell;
use super::column::Columns;
use super::format::ReportFormat;
use super::rows::{Frame, RowWriter, Summary, Tail};
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};

/// A question as given, and the answer of the filter.
pub(super) type Answer = (String, &'static str);

/// The columns of an answer.
pub(super) fn answer_columns() -> Columns<Answer> {
    Columns::default()
        .field("question", |answer: &Answer| answer.0.clone())
        .doc("as given")
        .field("answer", |answer| answer.1)
        .doc("`yes` (seen, or a false positive), `no` (never seen in what was read), `apart` (each value was seen, perhaps in different elements) or `unknown` (the filter cannot say)")
}

fn frame() -> Frame {
    Frame::new("flowsieve.filter-query/1", "answers")
}

/// Returns the end of a report that says whether it is complete.
pub(super) fn tail(is_complete: bool) -> Tail {
    vec![("complete", Cell::Bool(is_complete))]
}

/// Returns the summary of answers. They are complete if the filter has all that was to be read and
/// all questions were answered.
pub fn answer_summary(is_complete: bool) -> Summary {
    frame().summary(tail(is_complete))
}

/// Writes answers. The table has a line for each, with a tab between question and answer.
#[derive(Debug)]
pub struct AnswerReport<W: Write>(Writer<W>);

#[derive(Debug)]
enum Writer<W: Write> {
    Table(W),
    Rows(Box<RowWriter<W, Answer>>),
}

impl<W: Write> AnswerReport<W> {
    /// Begins a report.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(format: ReportFormat, out: W) -> io::Result<Self> {
        if format.is_table() {
            return Ok(Self(Writer::Table(out)));
        }
        let rows = RowWriter::begin(format, frame(), answer_columns(), out)?;
        Ok(Self(Writer::Rows(Box::new(rows))))
    }

    /// Writes an answer.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn answer(&mut self, question: String, answer: &'static str) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(out) => writeln!(out, "{}\t{answer}", question.shown()),
            Writer::Rows(rows) => rows.row(&(question, answer)),
        }
    }

    /// Ends the report, complete or not, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, is_complete: bool) -> io::Result<W> {
        let mut out = match self.0 {
            Writer::Table(out) => out,
            Writer::Rows(rows) => rows.finish(tail(is_complete))?,
        };
        out.flush()?;
        Ok(out)
    }
}
