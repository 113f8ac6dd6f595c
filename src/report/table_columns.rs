//! Columns as people see them: those that have room, at the width that they have.

use super::column::{Column, Columns};
use super::look::Look;
use super::table::{Heading, Layout, bold, layout};
use std::fmt;
use std::io::{self, Write};

/// The columns of a table, from the left.
pub(super) struct TableColumns<R> {
    /// None in the place of one that has no room.
    columns: Vec<Option<Column<R>>>,
    layout: Layout,
    look: Look,
}

impl<R> fmt::Debug for TableColumns<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableColumns").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl<R> TableColumns<R> {
    /// Those that have a heading, as far as they have room.
    pub(super) fn of(columns: Columns<R>, look: Look) -> Self {
        let mut shown: Vec<(Heading, Column<R>)> = columns
            .0
            .into_iter()
            .filter_map(|mut column| Some((column.heading.take()?, column)))
            .collect();
        shown.sort_by_key(|(heading, _)| heading.place);
        let (headings, columns): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
        let layout = layout(&headings, look.width);
        let stays = columns.into_iter().zip(&layout.stays);
        let columns = stays.map(|(column, &stays)| stays.then_some(column));
        Self { columns: columns.collect(), layout, look }
    }

    /// Writes the line of headings.
    pub(super) fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.layout.head().into_iter();
        lines.try_for_each(|line| bold(out, self.look.bold, &line))
    }

    /// The line of a row, or its lines; `first` takes the place of its first cell.
    pub(super) fn row(&self, row: &R, first: Option<String>) -> String {
        let columns = self.columns.iter().map(|column| match column {
            Some(column) => column.for_people(row, self.layout.tight),
            None => String::new(),
        });
        let mut cells: Vec<String> = columns.collect();
        if let (Some(first), Some(cell)) = (first, cells.first_mut()) {
            *cell = first;
        }
        self.layout.lines(cells, self.look.width).join("\n")
    }

    /// Writes what people should know of columns that have no room.
    pub(super) fn foot(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.layout.remark() {
            Some(remark) => self.look.sentence(out, &remark),
            None => Ok(()),
        }
    }
}
