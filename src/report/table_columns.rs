//! Columns of rows as people see them: those that have room, at the width that they have.

use super::column::{Column, Columns};
use super::document::{Document, TableView};
use super::heading::Heading;
use super::layout::{Layout, remark_on};
use super::table_rows::TableRows;
use super::terminal::{self, TerminalStyle, write_lines};
use std::io::{self, Write};

/// A table whose rows are written as they come.
#[derive(Debug)]
pub(super) struct RowTable<W: Write, R> {
    pub(super) out: W,
    columns: TableColumns<R>,
    rows: TableRows,
    style: TerminalStyle,
}

impl<W: Write, R> RowTable<W, R> {
    /// Writes the title and the headings.
    pub(super) fn begin(
        mut out: W,
        title: &str,
        columns: Columns<R>,
        style: TerminalStyle,
    ) -> io::Result<Self> {
        let columns = TableColumns::new(columns, style);
        style.sentence(&mut out, title)?;
        write_lines(&mut out, columns.layout.head().iter().map(|line| style.bold(line)).collect())?;
        Ok(Self { out, columns, rows: TableRows::new(style.rows), style })
    }

    /// The lines of a row; `first` replaces its first cell.
    pub(super) fn text(&self, row: &R, first: Option<String>) -> String {
        self.columns.layout.lines(&self.columns.cells(row, first), self.style.width).join("\n")
    }

    /// Writes the lines of a row.
    pub(super) fn row(&mut self, text: String) -> io::Result<()> {
        self.rows.row(&mut self.out, None, text)
    }

    /// Ends the rows, with these below them, remarks on columns that have no room, prints a document
    /// and gives the writer back, flushed.
    pub(super) fn finish(mut self, sums: &[(R, String)], closing: &Document) -> io::Result<W> {
        self.rows.finish(&mut self.out)?;
        for (row, first) in sums {
            writeln!(self.out, "{}", self.text(row, Some(first.clone())))?;
        }
        if let Some(remark) = remark_on(&self.columns.layout.dropped) {
            self.style.sentence(&mut self.out, &remark)?;
        }
        terminal::write(closing, self.style, self.out)
    }
}

/// The columns of a table that have a heading, from the left.
#[derive(Debug)]
pub(super) struct TableColumns<R> {
    columns: Columns<R>,
    headings: Vec<Heading>,
    layout: Layout,
}

impl<R> TableColumns<R> {
    /// Lays out the columns that have a heading.
    pub(super) fn new(columns: Columns<R>, style: TerminalStyle) -> Self {
        let mut shown: Vec<(Heading, Column<R>)> = columns
            .0
            .into_iter()
            .filter_map(|mut column| Some((column.heading.take()?, column)))
            .collect();
        shown.sort_by_key(|(heading, _)| heading.place);
        let (headings, columns): (Vec<_>, _) = shown.into_iter().unzip();
        let layout = Layout::new(&headings, style.width);
        Self { columns: Columns(columns), headings, layout }
    }

    /// The cells of a row; `first` replaces the first of them.
    fn cells(&self, row: &R, first: Option<String>) -> Vec<String> {
        let cells =
            self.columns.0.iter().map(|column| column.for_people(row, self.layout.is_narrow));
        let mut cells: Vec<String> = cells.collect();
        if let (Some(first), Some(cell)) = (first, cells.first_mut()) {
            *cell = first;
        }
        cells
    }

    /// A table of these rows, each perhaps with another first cell.
    pub(super) fn view<'a>(
        &self,
        rows: impl IntoIterator<Item = (&'a R, Option<String>)>,
    ) -> TableView
    where
        R: 'a,
    {
        let rows = rows.into_iter().map(|(row, first)| self.cells(row, first));
        TableView::new(self.headings.iter().cloned(), rows)
    }
}
