//! Columns of rows as people see them: those that have room, at the width that they have.

use super::column::{Column, Columns};
use super::document::TableView;
use super::heading::Heading;
use super::layout::Layout;
use super::terminal::{TerminalStyle, write_lines};
use std::io::{self, Write};

/// The columns of a table that have a heading, from the left.
#[derive(Debug)]
pub(super) struct TableColumns<R> {
    columns: Columns<R>,
    headings: Vec<Heading>,
    layout: Layout,
    style: TerminalStyle,
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
        Self { columns: Columns(columns), headings, layout, style }
    }

    /// Writes the line of headings.
    pub(super) fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        write_lines(out, self.layout.head().iter().map(|line| self.style.bold(line)).collect())
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

    /// The lines of a row; `first` replaces its first cell.
    pub(super) fn row(&self, row: &R, first: Option<String>) -> String {
        self.layout.lines(&self.cells(row, first), self.style.width).join("\n")
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

    /// Writes a remark on columns that have no room.
    pub(super) fn foot(&self, out: &mut dyn Write) -> io::Result<()> {
        self.layout.remark().map_or(Ok(()), |remark| self.style.sentence(out, &remark))
    }
}
