//! A command at work in a thread of its own, and what comes of it.

use crate::failure;
use crate::table::{Table, compact, stream_capsule};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use flowsieve::cli::{Failure, Host, Place, run_for};
use flowsieve::trace::StopFlag;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, ThreadId, current, sleep};
use std::time::Duration;

/// Pieces of output that wait to be read. A piece is a buffer of the program's output, or a batch
/// of rows.
const WAITING: usize = 4;

/// Time between two looks at signals, and two reports of progress.
const TICK: Duration = Duration::from_millis(50);

/// Time that an interrupted command has to remove its temporary files.
const PATIENCE: Duration = Duration::from_millis(100);

/// A line that a command said: its text, and the path and offset of what it is about.
pub(crate) type Said = (String, Option<PathBuf>, Option<u64>);

/// Messages and progress of a command, and the flag that ends it.
#[derive(Default)]
struct Stage {
    said: Mutex<Vec<Said>>,
    bytes: AtomicU64,
    packets: AtomicU64,
    /// 0 if it is not known.
    total_bytes: AtomicU64,
    stop: StopFlag,
    /// The thread that runs Python's handlers while it waits for output.
    calling: Mutex<Option<ThreadId>>,
}

/// Takes what a command shows, in the thread that runs it.
struct Taker {
    output: SyncSender<Vec<u8>>,
    stage: Arc<Stage>,
}

impl Host for Taker {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.output.send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn said(&self, line: &str, place: Option<&Place>) {
        let place = place.cloned();
        let (path, offset) = place.map_or((None, None), |place| (Some(place.path), place.offset));
        locked(&self.stage.said).push((line.to_owned(), path, offset));
    }

    fn progress(&self, bytes: u64, packets: u64, total_bytes: Option<u64>) {
        self.stage.bytes.store(bytes, Relaxed);
        self.stage.packets.store(packets, Relaxed);
        let total = total_bytes.unwrap_or_default();
        self.stage.total_bytes.store(total, Relaxed);
    }

    fn stop(&self) -> StopFlag {
        self.stage.stop.clone()
    }
}

/// Runs `work` with a host; returns the lines that were said, too.
pub(crate) fn listen<T>(work: impl FnOnce(Arc<dyn Host>) -> T) -> (T, Vec<Said>) {
    let stage = Arc::new(Stage::default());
    let (output, _) = sync_channel(0);
    let result = work(Arc::new(Taker { output, stage: Arc::clone(&stage) }));
    let said = std::mem::take(&mut *locked(&stage.said));
    (result, said)
}

/// The failure of a command that could read nothing: the first line that it said.
pub(crate) fn failure_of(said: &[Said]) -> Failure {
    let Some((line, path, offset)) = said.first() else {
        return because("the command ended without a result");
    };
    let place = path.clone().map(|path| Place { path, offset: *offset });
    Failure { place, ..because(line.trim_start_matches("flowsieve: ")) }
}

/// Opens a lock; what it guards is whole even if somebody panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a command, read as it comes.
struct Output {
    pieces: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
    stage: Arc<Stage>,
    /// Called with the bytes read, the packets seen, and all bytes if that is known.
    progress: Option<Py<PyAny>>,
    /// Another library reads, perhaps while it holds Python's lock, so Python is not asked.
    is_alone: bool,
    /// The exception that Python raised meanwhile.
    raised: Option<PyErr>,
}

impl Output {
    /// Lets Python see signals, and reports progress.
    fn tick(&mut self) -> io::Result<()> {
        if self.is_alone {
            return Ok(());
        }
        *locked(&self.stage.calling) = Some(current().id());
        let result = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = &self.progress else {
                return Ok(());
            };
            let [bytes, packets, total] =
                [&self.stage.bytes, &self.stage.packets, &self.stage.total_bytes]
                    .map(|number| number.load(Relaxed));
            let done = (bytes, packets, (total > 0).then_some(total));
            progress.call1(py, done).map(|_| ())
        });
        *locked(&self.stage.calling) = None;
        result.map_err(|raised| {
            self.stage.stop.set();
            self.raised = Some(raised);
            // `Read` takes `Interrupted` for something to try again.
            io::Error::other("interrupted")
        })
    }

    /// Waits for a piece; whether there is one.
    fn wait(&mut self) -> io::Result<bool> {
        while self.at == self.piece.len() {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => (self.piece, self.at) = (piece, 0),
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => self.tick()?,
            }
        }
        Ok(true)
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.wait()? {
            return Ok(0);
        }
        let length = buffer.len().min(self.piece.len() - self.at);
        buffer[..length].copy_from_slice(&self.piece[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}

/// How far the output of a command was read.
enum State {
    /// Nothing was read yet.
    Begun(Output),
    /// Rows are being read.
    Rows(Box<StreamReader<Output>>),
    /// Everything was read: the document behind the rows, and whether all inputs were read to
    /// their end.
    Read { document: Vec<u8>, is_complete: bool },
    /// There is no result: the command failed, was interrupted, or was closed.
    Ended(Failure),
}

/// The thread of a command.
enum Worker {
    Running(JoinHandle<Result<bool, Failure>>),
    /// It ended; whether all inputs were read to their end.
    Done(bool),
}

/// A command, and how far its output was read.
struct Command {
    state: State,
    worker: Worker,
    stage: Arc<Stage>,
    /// Rows that were shown and are still to be read, or the end of the rows.
    shown: Option<(SchemaRef, Option<RecordBatch>)>,
}

/// Why nothing more can be read.
enum Trouble {
    /// Python raised while we waited.
    Raised(PyErr),
    /// There is no result.
    Failed(Failure),
}

/// The exception of a failure.
pub(crate) fn raised_of(Failure { sentence, is_usage, place }: Failure) -> PyErr {
    let (path, offset) = place.map_or((None, None), |place| (Some(place.path), place.offset));
    failure(&sentence, is_usage, path, offset)
}

impl From<Trouble> for PyErr {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Raised(raised) => raised,
            Trouble::Failed(failed) => raised_of(failed),
        }
    }
}

/// A failure without a place.
fn because(sentence: &str) -> Failure {
    Failure { sentence: sentence.to_owned(), is_usage: false, place: None }
}

const READ_ALREADY: &str = "the rows of this result were read already, and they can be read once; \
                            keep what `.read()` returns, or run the command again";
const ROWS_FIRST: &str = "this is known when all rows were read; read them first: iterate over \
                          them, or call `.read()`";
const CLOSED: &str = "this result was closed before everything was read; run the command again";
const INTERRUPTED: &str =
    "this result was interrupted before everything was read; run the command again";
const FORKED: &str = "this result belongs to the process that began it, and this is another one, \
                      made by a fork; run the command again here, or read the result there";
const CALLED_BACK: &str =
    "the result is being read while progress is reported, so nothing of it can be read from there";

impl Command {
    /// Begins to read rows if nothing was read yet; returns their names and types.
    fn begin_rows(&mut self) -> Result<SchemaRef, Trouble> {
        if let Some((schema, _)) = &self.shown {
            return Ok(Arc::clone(schema));
        }
        if !matches!(self.state, State::Begun(_)) {
            return match &self.state {
                State::Rows(rows) => Ok(rows.schema()),
                State::Ended(failure) => Err(Trouble::Failed(failure.clone())),
                State::Begun(_) | State::Read { .. } => Err(Trouble::Failed(because(READ_ALREADY))),
            };
        }
        let State::Begun(mut output) = self.take() else { unreachable!("it was just looked at") };
        match output.wait() {
            Err(_) => return Err(self.interrupted(output.raised)),
            Ok(false) => return Err(self.ended_early()),
            Ok(true) => {}
        }
        let Ok(rows) = StreamReader::try_new(output, None) else {
            return Err(self.ended_early());
        };
        let schema = rows.schema();
        self.state = State::Rows(Box::new(rows));
        Ok(schema)
    }

    /// Reads the next rows; `None` at the end, once.
    fn next(&mut self) -> Result<Option<RecordBatch>, Trouble> {
        if let Some((_, batch)) = self.shown.take() {
            return Ok(batch);
        }
        self.begin_rows()?;
        let State::Rows(rows) = &mut self.state else { return Ok(None) };
        let next = match rows.get_mut().tick() {
            Ok(()) => rows.next().map(|batch| compact(&batch?)).transpose().map_err(drop),
            Err(_) => Err(()),
        };
        match next {
            Ok(Some(batch)) => Ok(Some(batch)),
            Ok(None) => self.finish().map(|()| None),
            Err(()) => match rows.get_mut().raised.take() {
                Some(raised) => Err(self.interrupted(Some(raised))),
                None => Err(self.ended_early()),
            },
        }
    }

    /// Reads all that is left of the output of a command without rows.
    fn text(&mut self) -> Result<(Vec<u8>, bool), Trouble> {
        if matches!(self.state, State::Begun(_)) {
            self.finish()?;
        }
        self.document()
    }

    /// Returns what stood behind the rows, and whether all inputs were read to their end.
    fn document(&self) -> Result<(Vec<u8>, bool), Trouble> {
        match &self.state {
            State::Read { document, is_complete } => Ok((document.clone(), *is_complete)),
            State::Ended(failure) => Err(Trouble::Failed(failure.clone())),
            State::Begun(_) | State::Rows(_) => Err(Trouble::Failed(because(ROWS_FIRST))),
        }
    }

    /// Reads to the end of the output, and waits for the command.
    fn finish(&mut self) -> Result<(), Trouble> {
        let (output, has_rows) = match &mut self.state {
            State::Begun(output) => (output, false),
            State::Rows(rows) => (rows.get_mut(), true),
            State::Read { .. } | State::Ended(_) => return Ok(()),
        };
        let mut document = Vec::new();
        if output.read_to_end(&mut document).is_err() {
            let raised = output.raised.take();
            return Err(self.interrupted(raised));
        }
        match self.join() {
            Err(failure) => Err(self.end(failure)),
            // Rows without a document are not all of the rows.
            Ok(_) if has_rows && document.is_empty() => Err(self.ended_early()),
            Ok(is_complete) => {
                self.state = State::Read { document, is_complete };
                Ok(())
            }
        }
    }

    /// Takes the state out, to put another one in its place.
    fn take(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Ended(because(INTERRUPTED)))
    }

    /// From now on there is no result, for this reason.
    fn end(&mut self, failure: Failure) -> Trouble {
        self.state = State::Ended(failure.clone());
        Trouble::Failed(failure)
    }

    fn join(&mut self) -> Result<bool, Failure> {
        match std::mem::replace(&mut self.worker, Worker::Done(false)) {
            Worker::Done(is_complete) => Ok(is_complete),
            Worker::Running(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(because("the command panicked; please report this"))),
        }
    }

    /// Ends the command and gives it a moment to remove its temporary files.
    fn stop(&mut self, sentence: &str) {
        self.stage.stop.set();
        // Without somebody who reads, a command that waits for that goes on.
        self.state = State::Ended(because(sentence));
        for _ in 0..PATIENCE.as_millis() / 5 {
            match &self.worker {
                Worker::Running(thread) if !thread.is_finished() => sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
    }

    /// Ends the command because Python raised.
    fn interrupted(&mut self, raised: Option<PyErr>) -> Trouble {
        self.stop(INTERRUPTED);
        raised.map_or_else(|| Trouble::Failed(because(INTERRUPTED)), Trouble::Raised)
    }

    /// Ends the command unless everything was read.
    fn close(&mut self) {
        if matches!(self.state, State::Begun(_) | State::Rows(_)) {
            self.stop(CLOSED);
        }
    }

    /// The command ended without a result: because it failed, or because it could read nothing.
    fn ended_early(&mut self) -> Trouble {
        // It may still wait for somebody who reads.
        self.take();
        if let Err(failure) = self.join() {
            return self.end(failure);
        }
        let failure = failure_of(&locked(&self.stage.said));
        self.end(failure)
    }
}

/// A command among threads and processes.
struct Shared {
    command: Mutex<Command>,
    stage: Arc<Stage>,
    /// The process that began the command: a child of a fork has none of its threads, and perhaps
    /// locks that nobody opens.
    process: u32,
}

impl Shared {
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Command>, Trouble> {
        if self.is_forked() {
            return Err(Trouble::Failed(because(FORKED)));
        }
        // This thread reads already, and called Python meanwhile.
        if *locked(&self.stage.calling) == Some(current().id()) {
            return Err(Trouble::Failed(because(CALLED_BACK)));
        }
        Ok(locked(&self.command))
    }

    /// The command, for a caller in Python: signals are seen, and progress is reported.
    fn lock_for_python(&self) -> Result<MutexGuard<'_, Command>, Trouble> {
        let mut command = self.lock()?;
        if let State::Rows(rows) = &mut command.state {
            rows.get_mut().is_alone = false;
        }
        Ok(command)
    }
}

impl Drop for Shared {
    /// A child of a fork does not touch its copies of threads and channels.
    fn drop(&mut self) {
        if self.is_forked() {
            let command = self.command.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(command.take());
            std::mem::forget(std::mem::replace(&mut command.worker, Worker::Done(false)));
        }
    }
}

/// Rows for another library, which pulls them.
struct Rows {
    schema: SchemaRef,
    shared: Arc<Shared>,
    /// Called once at the end of the rows with what the command said.
    ended: Option<Py<PyAny>>,
}

impl Rows {
    /// Lets Python warn. The library may hold Python's lock while it waits for these rows, so another
    /// thread takes the lock; if it cannot get it soon, the warning comes later.
    fn warn(&mut self) -> Result<(), Trouble> {
        let said = std::mem::take(&mut *locked(&self.shared.stage.said));
        let Some(ended) = self.ended.take().filter(|_| !said.is_empty()) else { return Ok(()) };
        let (done, warned) = sync_channel(1);
        let warn = move || {
            Python::try_attach(|py| {
                if let Err(raised) = ended.call1(py, (said,))
                    && let Err(unsent) = done.try_send(raised)
                    && let TrySendError::Disconnected(raised) = unsent
                {
                    raised.write_unraisable(py, None);
                }
            });
        };
        if Builder::new().name("flowsieve-warn".to_owned()).spawn(warn).is_err() {
            return Ok(());
        }
        // Warnings may be errors.
        warned.recv_timeout(PATIENCE).map_or(Ok(()), |raised| Err(Trouble::Raised(raised)))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.shared.lock().and_then(|mut command| {
            // The end of the rows is said once, and a library may ask again.
            if let State::Rows(rows) = &mut command.state {
                rows.get_mut().is_alone = true;
            }
            match command.state {
                State::Read { .. } => Ok(None),
                _ => command.next(),
            }
        });
        let next = match next {
            Ok(None) => self.warn().map(|()| None),
            next => next,
        };
        let next = next.map_err(|trouble| {
            let sentence = match trouble {
                Trouble::Failed(failure) => failure.sentence,
                Trouble::Raised(raised) => raised.to_string(),
            };
            ArrowError::ExternalError(sentence.into())
        });
        next.transpose()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A command at work. Rows are read first, then the document behind them.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Run {
    shared: Arc<Shared>,
}

impl Run {
    fn begin(output: Output, worker: Worker) -> Self {
        let stage = Arc::clone(&output.stage);
        let command =
            Command { state: State::Begun(output), worker, stage: Arc::clone(&stage), shown: None };
        let process = std::process::id();
        Self { shared: Arc::new(Shared { command: Mutex::new(command), stage, process }) }
    }
}

#[pymethods]
impl Run {
    /// Begins the command of these words.
    #[new]
    #[pyo3(signature = (words, progress = None))]
    fn new(words: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let (output, pieces) = sync_channel(WAITING);
        let stage = Arc::new(Stage::default());
        let taker = Taker { output, stage: Arc::clone(&stage) };
        let all = std::iter::once("flowsieve".into()).chain(words);
        let all: Vec<OsString> = all.collect();
        let builder = Builder::new().name("flowsieve".to_owned());
        let thread = builder.spawn(move || run_for(Arc::new(taker), all))?;
        let output = Output {
            pieces,
            piece: Vec::new(),
            at: 0,
            stage,
            progress,
            is_alone: false,
            raised: None,
        };
        Ok(Self::begin(output, Worker::Running(thread)))
    }

    /// A command that is over: its output, the lines that it said, and whether all inputs were
    /// read to their end.
    #[staticmethod]
    fn over(output: Vec<u8>, said: Vec<Said>, is_complete: bool) -> Self {
        let (_, pieces) = sync_channel(0);
        let stage = Arc::new(Stage { said: Mutex::new(said), ..Stage::default() });
        let output = Output {
            pieces,
            piece: output,
            at: 0,
            stage,
            progress: None,
            is_alone: false,
            raised: None,
        };
        Self::begin(output, Worker::Done(is_complete))
    }

    /// The next rows, or None at the end, once.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let (schema, batch) = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            Ok::<_, Trouble>((schema, command.next()?))
        })?;
        Ok(batch.map(|batch| Table::new(schema, vec![batch])))
    }

    /// The next rows, which are still to be read: an empty table at the end.
    fn show(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            let batch = command.next()?;
            command.shown = Some((Arc::clone(&schema), batch.clone()));
            Ok(Table::new(schema, batch.into_iter().collect()))
        })
    }

    /// All rows that are left.
    fn rows(&self, py: Python<'_>) -> PyResult<Table> {
        let (schema, batches) = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            let mut batches = Vec::new();
            while let Some(batch) = command.next()? {
                batches.push(batch);
            }
            Ok::<_, Trouble>((schema, batches))
        })?;
        Ok(Table::new(schema, batches))
    }

    /// The whole output of a command without rows, and whether all inputs were read to their end.
    fn text(&self, py: Python<'_>) -> PyResult<(Vec<u8>, bool)> {
        Ok(py.detach(|| self.shared.lock_for_python()?.text())?)
    }

    /// The document behind the rows, and whether all inputs were read to their end. Raises unless
    /// all rows were read.
    fn document(&self, py: Python<'_>) -> PyResult<(Vec<u8>, bool)> {
        Ok(py.detach(|| self.shared.lock_for_python()?.document())?)
    }

    /// The lines that the command said since the last call, with the path and offset of a problem.
    fn said(&self) -> Vec<Said> {
        std::mem::take(&mut locked(&self.shared.stage.said))
    }

    /// Ends the command, unless everything was read.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            // Another thread that reads is done soon.
            self.shared.stage.stop.set();
            if let Ok(mut command) = self.shared.lock() {
                command.close();
            }
        });
    }

    /// The rows as an Arrow C stream, pulled as they come. `ended` is called at their end with
    /// what the command said.
    fn stream<'py>(&self, py: Python<'py>, ended: Py<PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            if let State::Rows(rows) = &mut command.state {
                rows.get_mut().is_alone = true;
            }
            Ok::<_, Trouble>(schema)
        })?;
        stream_capsule(py, Rows { schema, shared: Arc::clone(&self.shared), ended: Some(ended) })
    }
}

impl Drop for Run {
    /// Nobody wants the rest, unless another library reads the rows.
    fn drop(&mut self) {
        if Arc::strong_count(&self.shared) == 1 {
            self.shared.stage.stop.set();
        }
    }
}
