//! Exported rows as an Arrow IPC file (Feather, version 2), written as they come.

use super::RecordBatches;
use super::export_model::{ExportParameters, Row};
use crate::export::{ExportRows, ExportSink};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::rc::Rc;

/// Takes batches of rows.
type Take = Box<dyn FnMut(RecordBatch) -> io::Result<()>>;

/// Writes a file.
pub(super) struct ArrowFile<W: Write> {
    batches: RecordBatches<Row, Take>,
    /// Batches are written into memory, from where they go to `out`: so failures of `out` stay what
    /// they are.
    file: Rc<RefCell<FileWriter<Vec<u8>>>>,
    out: W,
}

impl<W: Write> fmt::Debug for ArrowFile<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = &mut f.debug_struct("ArrowFile");
        fields.field("batches", &self.batches).finish_non_exhaustive()
    }
}

impl<W: Write> ArrowFile<W> {
    pub(super) fn begin(parameters: &ExportParameters, out: W) -> io::Result<Self> {
        let none: Take = Box::new(|_| Ok(()));
        let schema = RecordBatches::of_export(parameters, none).schema().clone();
        let file = FileWriter::try_new(Vec::new(), &schema).map_err(io::Error::other)?;
        let file = Rc::new(RefCell::new(file));
        let writer = Rc::clone(&file);
        let take: Take =
            Box::new(move |batch| writer.borrow_mut().write(&batch).map_err(io::Error::other));
        Ok(Self { batches: RecordBatches::of_export(parameters, take), file, out })
    }

    /// Appends rows.
    pub(super) fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        ExportSink::rows(&mut self.batches, rows, range)?;
        self.hand_on()
    }

    /// Ends the file and gives the writer back, flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.batches.hand_on_rest()?;
        self.file.borrow_mut().finish().map_err(io::Error::other)?;
        self.hand_on()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let mut file = self.file.borrow_mut();
        let written = file.get_mut();
        self.out.write_all(written)?;
        written.clear();
        Ok(())
    }
}
