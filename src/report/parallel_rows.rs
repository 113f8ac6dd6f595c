//! Rows of a long result, which threads make and encode. No byte depends on their number.

use super::batch::Batch;
use super::column::Columns;
use super::format::{Format, Frame, Part, ReportFormat, Tail};
use super::rows::{GatheredRows, RowWriter};
use flowsieve_engine::internal::{MapWorker, OrderedWorkers, WorkerPanicked};
use std::fmt;
use std::io::{self, Write};
use std::mem::{replace, take};
use std::slice::from_ref;

/// Most threads: each has a batch in memory, and as much again waits for it.
const MOST_THREADS: usize = 8;

/// Tasks that wait for the threads, besides one for each.
const QUEUED: usize = 2;

/// Rows that a worker makes: some at a time go to the function.
pub(super) type LazyRows<R> = Box<dyn FnOnce(&mut dyn FnMut(&[R])) + Send>;

/// Work for a worker: at most a full batch.
enum Task<R> {
    Rows(Vec<R>),
    Lazy(LazyRows<R>),
    Batch(Batch),
}

/// The result of a task: one part, or several if texts are long.
type Encoded = io::Result<Vec<Part>>;

/// Encodes rows in a thread.
struct Encoder<R> {
    rows: GatheredRows<R>,
    format: Box<dyn Format>,
}

impl<R> Encoder<R> {
    fn push(&mut self, mut rows: &[R], parts: &mut Encoded) {
        while !rows.is_empty() {
            let some = rows.len().min(self.rows.unchecked());
            if self.rows.append(&rows[..some]) {
                self.encode(parts);
            }
            rows = &rows[some..];
        }
    }

    fn encode(&mut self, parts: &mut Encoded) {
        if let (Ok(done), 1..) = (&mut *parts, self.rows.batch.rows) {
            match self.format.encode(&self.rows.batch) {
                Ok(part) => done.push(part),
                Err(error) => *parts = Err(error),
            }
        }
        self.rows.pass();
        self.rows.batch.clear();
    }
}

impl<R: Send + Sync> MapWorker<Task<R>> for Encoder<R> {
    type Result = Encoded;

    fn map(&mut self, task: Task<R>) -> Encoded {
        let mut parts = Ok(Vec::new());
        self.rows.before = 0;
        match task {
            Task::Rows(rows) => self.push(&rows, &mut parts),
            Task::Lazy(rows) => rows(&mut |rows| self.push(rows, &mut parts)),
            Task::Batch(batch) => self.rows.batch = batch,
        }
        self.encode(&mut parts);
        parts
    }
}

/// Writes rows of a type, in several threads if there are any.
pub(super) struct ParallelWriter<W: Write, R: Send> {
    writer: RowWriter<W, R>,
    workers: Option<OrderedWorkers<Task<R>, Encoded>>,
    /// Rows for the next task.
    gathered: Vec<R>,
}

impl<W: Write, R: Send> fmt::Debug for ParallelWriter<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelWriter").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl<W: Write, R: Send + Sync + 'static> ParallelWriter<W, R> {
    /// Begins in this thread alone. A row may stand for several, which end at the next multiple of
    /// `checked_rows`.
    pub(super) fn begin(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        checked_rows: usize,
        out: W,
    ) -> io::Result<Self> {
        let mut writer = RowWriter::begin(format, frame, columns, out)?;
        writer.rows.checked = checked_rows;
        Ok(Self { writer, workers: None, gathered: Vec::new() })
    }

    /// Encodes in this many threads, as far as there are any to be had.
    pub(super) fn start(&mut self, threads: usize) {
        if threads > 1 {
            let format = &self.writer.format;
            let encoder = || Encoder { rows: self.writer.rows.fork(), format: format.fork() };
            let (threads, bytes) = (threads.min(MOST_THREADS), format.batch_size().bytes);
            self.workers = OrderedWorkers::start("rows", threads, bytes, QUEUED, encoder);
        }
    }

    /// Writes a row that was made here.
    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        if self.writer.rows.append(from_ref(row)) { self.write_batch() } else { Ok(()) }
    }

    /// Writes a row whose columns a worker may make, if there is one.
    pub(super) fn take(&mut self, row: R) -> io::Result<()> {
        if self.workers.is_none() {
            return self.row(&row);
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(self.writer.rows.most);
        }
        self.gathered.push(row);
        if self.gathered.len() < self.writer.rows.most { Ok(()) } else { self.write_gathered() }
    }

    /// Returns how many rows a worker may make at once, or `None` if the caller must make them.
    pub(super) fn lazy_rows(&self) -> Option<usize> {
        let rows = &self.writer.rows;
        let is_between = self.gathered.is_empty() && rows.missing() == rows.most;
        (self.workers.is_some() && is_between).then_some(rows.most)
    }

    /// Writes rows that a worker makes: as many as [`Self::lazy_rows`] says, fewer at the end only.
    pub(super) fn lazy(&mut self, rows: LazyRows<R>) -> io::Result<()> {
        self.push_task(Task::Lazy(rows))
    }

    /// Returns the rows of the batch.
    pub(super) fn batch_rows(&self) -> usize {
        self.writer.rows.batch.rows
    }

    /// Returns how many rows complete the batch, or `usize::MAX` if nobody needs to know.
    pub(super) fn missing_rows(&self) -> usize {
        match self.workers {
            Some(_) => self.writer.rows.missing(),
            None => usize::MAX,
        }
    }

    /// Writes what the workers have under way.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let done = self.workers.iter_mut().flatten();
        done.into_iter().try_for_each(|parts| write_parts(&mut self.writer, parts))
    }

    /// Writes the buffered rows, as [`RowWriter::flush`] does.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write_gathered()?;
        self.drain()?;
        self.writer.flush()
    }

    /// Ends with these sections and gives the writer back.
    pub(super) fn finish(mut self, tail: Tail) -> io::Result<W> {
        self.write_gathered()?;
        self.drain()?;
        self.writer.finish(tail)
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.workers.is_none() {
            return self.writer.write_batch();
        }
        let rows = &mut self.writer.rows;
        rows.pass();
        let fresh = Batch::new(&rows.batch.schema);
        let batch = replace(&mut rows.batch, fresh);
        self.push_task(Task::Batch(batch))
    }

    fn write_gathered(&mut self) -> io::Result<()> {
        match take(&mut self.gathered) {
            rows if rows.is_empty() => Ok(()),
            rows => self.push_task(Task::Rows(rows)),
        }
    }

    fn push_task(&mut self, task: Task<R>) -> io::Result<()> {
        let workers = self.workers.as_mut().expect("there are workers");
        let mut done = workers.push(task);
        while let Some(parts) = done {
            write_parts(&mut self.writer, parts)?;
            done = workers.try_next();
        }
        Ok(())
    }
}

fn write_parts<W: Write, R>(
    writer: &mut RowWriter<W, R>,
    parts: Result<Encoded, WorkerPanicked>,
) -> io::Result<()> {
    let parts = parts.unwrap_or_else(|panicked| panicked.resume());
    parts?.into_iter().try_for_each(|part| writer.write(part))
}
