//! A command that runs in its own thread, and its output.

use crate::failure;
use crate::packed::packed_batches;
use crate::table::{Table, compact, stream_capsule};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use flowsieve::cli::{Failure, Host, Place, run_for};
use flowsieve::trace::StopFlag;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::OsString;
use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, ThreadId, current, sleep};
use std::time::Duration;

/// Most pieces of output that wait to be read. A piece is a buffer of the program's output, or a
/// batch of rows.
const WAITING: usize = 4;

/// Time between two checks for signals, and two reports of progress.
const TICK: Duration = Duration::from_millis(50);

/// Time that an interrupted command gets to remove its temporary files.
const PATIENCE: Duration = Duration::from_millis(100);

/// A message of a command: its text, and the path and offset that it is about.
pub(crate) type Said = (String, Option<OsString>, Option<u64>);

/// Messages and progress of a command, and the flag that ends it.
#[derive(Default)]
struct Stage {
    said: Mutex<Vec<Said>>,
    bytes: AtomicU64,
    packets: AtomicU64,
    /// 0 if the total is not known.
    total_bytes: AtomicU64,
    stop: StopFlag,
    /// The thread that runs Python's handlers while it waits for output.
    calling: Mutex<Option<ThreadId>>,
}

/// Receives the output and messages of a command, in the thread that runs it.
struct PacketConsumer {
    output: SyncSender<Vec<u8>>,
    stage: Arc<Stage>,
}

impl Host for PacketConsumer {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.output.send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn said(&self, line: &str, place: Option<&Place>) {
        let place = place.cloned();
        let (path, offset) = place.map_or((None, None), |it| (Some(it.path.into()), it.offset));
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

/// Runs `work` with a host; returns its result and messages.
pub(crate) fn listen<T>(work: impl FnOnce(Arc<dyn Host>) -> T) -> (T, Vec<Said>) {
    let stage = Arc::new(Stage::default());
    let (output, _) = sync_channel(0);
    let result = work(Arc::new(PacketConsumer { output, stage: Arc::clone(&stage) }));
    let said = std::mem::take(&mut *locked(&stage.said));
    (result, said)
}

/// Returns the failure of a command that could read nothing: its first message.
pub(crate) fn failure_of(said: &[Said]) -> Failure {
    let Some((line, path, offset)) = said.first() else {
        return because("the command ended without a result");
    };
    let place = path.clone().map(|path| Place { path: path.into(), offset: *offset });
    Failure { place, ..because(line.trim_start_matches("flowsieve: ")) }
}

/// Locks a mutex. A panic of another thread leaves the guarded data whole, so poison is ignored.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a command, read as it comes.
struct Output {
    pieces: Receiver<Vec<u8>>,
    piece: Cursor<Vec<u8>>,
    stage: Arc<Stage>,
    /// Function that gets the bytes read, the packets seen, and the total bytes if known.
    progress: Option<Py<PyAny>>,
    /// Whether another library reads, perhaps while it holds Python's lock, so that Python must not
    /// be called.
    is_alone: bool,
    /// An exception that Python raised while the output was read.
    raised: Option<PyErr>,
}

impl Output {
    /// Lets Python handle signals, and reports progress.
    fn tick(&mut self) -> io::Result<()> {
        if self.is_alone {
            return Ok(());
        }
        *locked(&self.stage.calling) = Some(current().id());
        let result = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = &self.progress else { return Ok(()) };
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
            // Not `ErrorKind::Interrupted`, after which `Read` tries again.
            io::Error::other("interrupted")
        })
    }

    /// Waits for a piece; returns whether there is one.
    fn wait(&mut self) -> io::Result<bool> {
        while self.piece.position() == self.piece.get_ref().len() as u64 {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => self.piece = Cursor::new(piece),
                Err(RecvTimeoutError::Disconnected) => {
                    self.tick()?;
                    return Ok(false);
                }
                Err(RecvTimeoutError::Timeout) => self.tick()?,
            }
        }
        Ok(true)
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.wait()? { self.piece.read(buffer) } else { Ok(0) }
    }
}

/// How far the output of a command was read.
enum State {
    /// Nothing was read yet.
    Begun(Output),
    /// Rows are being read.
    Rows(Box<StreamReader<Output>>),
    /// Everything was read: the document after the rows, and whether all inputs were read to their
    /// end.
    Read { document: Vec<u8>, is_complete: bool },
    /// There is no result: the command failed, was interrupted, or was closed.
    Ended(Failure),
}

/// The thread of a command, which returns whether all inputs were read to their end.
type Worker = JoinHandle<Result<bool, Failure>>;

/// A command, and how far its output was read.
struct Command {
    state: State,
    /// `None` if it ended.
    worker: Option<Worker>,
    /// Whether all inputs were read to their end, if there was no thread.
    is_complete: bool,
    stage: Arc<Stage>,
    /// The next rows, which were shown but not read yet; `None` within at the end of the rows.
    shown: Option<(SchemaRef, Option<RecordBatch>)>,
    /// Readers of the rows so far: loops, streams that other libraries were given, and others.
    readers: u64,
    /// The reader that took rows.
    reader: Option<u64>,
}

/// Error of reading a command's output.
enum ReadError {
    /// Python raised an exception.
    Raised(PyErr),
    /// The command has no result.
    Failed(Failure),
}

impl From<ReadError> for PyErr {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Raised(raised) => raised,
            ReadError::Failed(failed) => failure(failed),
        }
    }
}

impl From<ArrowError> for ReadError {
    fn from(error: ArrowError) -> Self {
        Self::Failed(because(&error.to_string()))
    }
}

/// Creates a failure without a place.
pub(crate) fn because(sentence: &str) -> Failure {
    Failure { sentence: sentence.to_owned(), is_usage: false, place: None }
}

const READ_ALREADY: &str = "the rows of this result were read already, and they can be read once; \
                            keep what `.read()` returns, or run the command again";
const ROWS_FIRST: &str = "this is known when all rows were read; read them first: iterate over \
                          the stream of the result, or call its `.read()`";
const CLOSED: &str = "this result was closed before everything was read; run the command again";
const INTERRUPTED: &str =
    "this result was interrupted before everything was read; run the command again";
const FORKED: &str = "this result belongs to the process that began it, and this is another one, \
                      made by a fork; run the command again here, or read the result there";
const CALLED_BACK: &str =
    "the result is being read while progress is reported, so nothing of it can be read from there";

impl Command {
    /// Begins to read rows if nothing was read yet; returns their schema.
    fn begin_rows(&mut self) -> Result<SchemaRef, ReadError> {
        if let Some((schema, _)) = &self.shown {
            return Ok(Arc::clone(schema));
        }
        match &self.state {
            State::Begun(_) => {}
            State::Rows(rows) => return Ok(rows.schema()),
            State::Ended(failure) => return Err(ReadError::Failed(failure.clone())),
            State::Read { .. } => return Err(ReadError::Failed(because(READ_ALREADY))),
        }
        let State::Begun(mut output) = self.take() else { unreachable!("it was just looked at") };
        match output.wait() {
            Err(_) => return Err(self.interrupted(output.raised)),
            Ok(false) => return Err(self.ended_early()),
            Ok(true) => {}
        }
        let Ok(rows) = StreamReader::try_new(output, None) else { return Err(self.ended_early()) };
        let schema = rows.schema();
        self.state = State::Rows(Box::new(rows));
        Ok(schema)
    }

    /// Reads the next rows; `None` at the end, once.
    fn next(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        if let Some((_, batch)) = self.shown.take() {
            return Ok(batch);
        }
        self.begin_rows()?;
        let State::Rows(rows) = &mut self.state else { return Ok(None) };
        let ticked = rows.get_mut().tick().map_err(drop);
        let read = |()| rows.next().map(|batch| compact(&batch?)).transpose().map_err(drop);
        match ticked.and_then(read) {
            Ok(Some(batch)) => Ok(Some(batch)),
            Ok(None) => self.finish().map(|()| None),
            Err(()) => match rows.get_mut().raised.take() {
                Some(raised) => Err(self.interrupted(Some(raised))),
                None => Err(self.ended_early()),
            },
        }
    }

    fn new_reader(&mut self) -> u64 {
        self.readers += 1;
        self.readers
    }

    /// Reads the next rows for a reader, as [`Self::next`]; the first one to read is the only one, or
    /// two would have parts of the rows.
    fn next_for(&mut self, reader: u64) -> Result<Option<RecordBatch>, ReadError> {
        if *self.reader.get_or_insert(reader) != reader {
            return Err(ReadError::Failed(because(READ_ALREADY)));
        }
        self.next()
    }

    /// Reads the rest of the output of a command without rows.
    fn text(&mut self) -> Result<(Vec<u8>, bool), ReadError> {
        if matches!(self.state, State::Begun(_)) {
            self.finish()?;
        }
        self.document()
    }

    /// Returns the document after the rows, and whether all inputs were read to their end.
    fn document(&self) -> Result<(Vec<u8>, bool), ReadError> {
        match &self.state {
            State::Read { document, is_complete } => Ok((document.clone(), *is_complete)),
            State::Ended(failure) => Err(ReadError::Failed(failure.clone())),
            State::Begun(_) | State::Rows(_) => Err(ReadError::Failed(because(ROWS_FIRST))),
        }
    }

    /// Reads to the end of the output, and waits for the command.
    fn finish(&mut self) -> Result<(), ReadError> {
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
            // Without the document the rows are incomplete.
            Ok(_) if has_rows && document.is_empty() => Err(self.ended_early()),
            Ok(is_complete) => {
                self.state = State::Read { document, is_complete };
                Ok(())
            }
        }
    }

    /// Takes the state out, to replace it by another one.
    fn take(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Ended(because(INTERRUPTED)))
    }

    /// Ends the command without a result.
    fn end(&mut self, failure: Failure) -> ReadError {
        self.state = State::Ended(failure.clone());
        ReadError::Failed(failure)
    }

    fn join(&mut self) -> Result<bool, Failure> {
        let Some(thread) = self.worker.take() else { return Ok(self.is_complete) };
        let panicked = |_| Err(because("the command panicked; please report this"));
        thread.join().unwrap_or_else(panicked)
    }

    /// Ends the command and gives it a moment to remove its temporary files.
    fn stop(&mut self, sentence: &str) {
        self.stage.stop.set();
        // Dropping the output lets a command continue that waits for its reader.
        self.state = State::Ended(because(sentence));
        for _ in 0..PATIENCE.as_millis() / 5 {
            if self.worker.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Ends the command because Python raised an exception.
    fn interrupted(&mut self, raised: Option<PyErr>) -> ReadError {
        self.stop(INTERRUPTED);
        raised.map_or_else(|| ReadError::Failed(because(INTERRUPTED)), ReadError::Raised)
    }

    /// Ends the command unless everything was read.
    fn close(&mut self) {
        if matches!(self.state, State::Begun(_) | State::Rows(_)) {
            self.stop(CLOSED);
        }
    }

    /// Ends a command that has no result because it failed, or could read nothing.
    fn ended_early(&mut self) -> ReadError {
        // Drop the output, since the command may still wait for its reader.
        self.take();
        if let Err(failure) = self.join() {
            return self.end(failure);
        }
        let failure = failure_of(&locked(&self.stage.said));
        self.end(failure)
    }
}

/// A command that several threads, and children of a fork, may use.
struct Shared {
    command: Mutex<Command>,
    stage: Arc<Stage>,
    /// The process that began the command. A child of a fork has none of its threads, and perhaps
    /// locks that are never released.
    process: u32,
}

impl Shared {
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Command>, ReadError> {
        if self.is_forked() {
            return Err(ReadError::Failed(because(FORKED)));
        }
        // This thread is reading already, and Python called back.
        if *locked(&self.stage.calling) == Some(current().id()) {
            return Err(ReadError::Failed(because(CALLED_BACK)));
        }
        Ok(locked(&self.command))
    }

    /// Locks the command for a caller in Python, so that signals are handled and progress is
    /// reported.
    fn lock_for_python(&self) -> Result<MutexGuard<'_, Command>, ReadError> {
        let mut command = self.lock()?;
        if let State::Rows(rows) = &mut command.state {
            rows.get_mut().is_alone = false;
        }
        Ok(command)
    }
}

impl Drop for Shared {
    /// Forgets the copies of threads and channels in a child of a fork.
    fn drop(&mut self) {
        if self.is_forked() {
            let command = self.command.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(command.take());
            std::mem::forget(command.worker.take());
        }
    }
}

/// Rows for another library, which pulls them.
struct Rows {
    /// The number of the stream.
    number: u64,
    schema: SchemaRef,
    shared: Arc<Shared>,
    /// Function that gets the command's messages once, at the end of the rows.
    ended: Option<Py<PyAny>>,
}

impl Rows {
    /// Lets Python warn. The library may hold Python's lock while it waits for these rows, so
    /// another thread takes the lock; if that takes long, the warning comes later.
    fn warn(&mut self) -> Result<(), ReadError> {
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
        // Python may turn warnings into errors.
        warned.recv_timeout(PATIENCE).map_or(Ok(()), |raised| Err(ReadError::Raised(raised)))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.shared.lock().and_then(|mut command| {
            // A library may pull again after the end, which `next` only returns once.
            if let State::Rows(rows) = &mut command.state {
                rows.get_mut().is_alone = true;
            }
            match command.state {
                State::Read { .. } if command.reader == Some(self.number) => Ok(None),
                _ => command.next_for(self.number),
            }
        });
        let next = match next {
            Ok(None) => self.warn().map(|()| None),
            next => next,
        };
        let next = next.map_err(|error| {
            let sentence = match error {
                ReadError::Failed(failure) => failure.sentence,
                ReadError::Raised(raised) => raised.to_string(),
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

/// A running command. Its rows are read first, then the document after them.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Run {
    shared: Arc<Shared>,
}

impl Run {
    fn begin(
        pieces: Receiver<Vec<u8>>,
        piece: Vec<u8>,
        stage: Arc<Stage>,
        progress: Option<Py<PyAny>>,
        (worker, is_complete): (Option<Worker>, bool),
    ) -> Self {
        let (piece, of_output) = (Cursor::new(piece), Arc::clone(&stage));
        let output =
            Output { pieces, piece, stage: of_output, progress, is_alone: false, raised: None };
        let command = Command {
            state: State::Begun(output),
            worker,
            is_complete,
            stage: Arc::clone(&stage),
            shown: None,
            readers: 0,
            reader: None,
        };
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
        let taker = PacketConsumer { output, stage: Arc::clone(&stage) };
        let all = std::iter::once("flowsieve".into()).chain(words);
        let all: Vec<OsString> = all.collect();
        let builder = Builder::new().name("flowsieve".to_owned());
        let thread = builder.spawn(move || run_for(Arc::new(taker), all))?;
        Ok(Self::begin(pieces, Vec::new(), stage, progress, (Some(thread), false)))
    }

    /// Creates a command that has ended, from its output, its messages, and whether all inputs were
    /// read to their end.
    #[staticmethod]
    fn over(output: Vec<u8>, said: Vec<Said>, is_complete: bool) -> Self {
        let (_, pieces) = sync_channel(0);
        let stage = Arc::new(Stage { said: Mutex::new(said), ..Stage::default() });
        Self::begin(pieces, output, stage, None, (None, is_complete))
    }

    /// Returns the number of a new reader.
    fn reader(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| Ok::<_, ReadError>(self.shared.lock_for_python()?.new_reader()))?)
    }

    /// Returns the next rows for a reader, or None once at the end.
    fn next(&self, py: Python<'_>, reader: u64) -> PyResult<Option<Table>> {
        let (schema, batch) = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            Ok::<_, ReadError>((schema, command.next_for(reader)?))
        })?;
        Ok(batch.map(|batch| Table::new(schema, vec![batch])))
    }

    /// Returns the next rows without reading them: an empty table at the end.
    fn show(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            let batch = command.next()?;
            command.shown = Some((Arc::clone(&schema), batch.clone()));
            Ok(Table::new(schema, batch.into_iter().collect()))
        })
    }

    /// Returns all rows.
    fn rows(&self, py: Python<'_>) -> PyResult<Table> {
        let (schema, batches) = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            let reader = command.new_reader();
            let batches =
                packed_batches(std::iter::from_fn(|| command.next_for(reader).transpose()))?;
            Ok::<_, ReadError>((schema, batches))
        })?;
        Ok(Table::new(schema, batches))
    }

    /// Returns the whole output of a command without rows, and whether all inputs were read to
    /// their end.
    fn text(&self, py: Python<'_>) -> PyResult<(Vec<u8>, bool)> {
        Ok(py.detach(|| self.shared.lock_for_python()?.text())?)
    }

    /// Returns the document after the rows, and whether all inputs were read to their end. Raises
    /// unless all rows were read.
    fn document(&self, py: Python<'_>) -> PyResult<(Vec<u8>, bool)> {
        Ok(py.detach(|| self.shared.lock_for_python()?.document())?)
    }

    /// Returns the messages of the command since the last call, with the path and offset of a
    /// problem.
    fn said(&self) -> Vec<Said> {
        std::mem::take(&mut locked(&self.shared.stage.said))
    }

    /// Ends the command, unless everything was read.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            // Another thread that is reading ends soon.
            self.shared.stage.stop.set();
            if let Ok(mut command) = self.shared.lock() {
                command.close();
            }
        });
    }

    /// Returns the rows as an Arrow C stream, which reads them when they are pulled. Calls `ended`
    /// at their end with the command's messages.
    fn stream<'py>(&self, py: Python<'py>, ended: Py<PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = py.detach(|| {
            let mut command = self.shared.lock_for_python()?;
            let schema = command.begin_rows()?;
            if let State::Rows(rows) = &mut command.state {
                rows.get_mut().is_alone = true;
            }
            let (number, shared) = (command.new_reader(), Arc::clone(&self.shared));
            Ok::<_, ReadError>(Rows { number, schema, shared, ended: Some(ended) })
        })?;
        stream_capsule(py, rows)
    }
}

impl Drop for Run {
    /// Stops the command, unless another library reads the rows.
    fn drop(&mut self) {
        if Arc::strong_count(&self.shared) == 1 {
            self.shared.stage.stop.set();
        }
    }
}
