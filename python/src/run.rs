//! A command at work in a thread of its own, and what comes of it.

use crate::failure;
use crate::table::{Table, stream_capsule};
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
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// Pieces of output that wait to be read. A piece is a buffer of the program's output, or a batch
/// of rows.
const WAITING: usize = 4;

/// How often signals are looked at, and progress is reported.
const TICK: Duration = Duration::from_millis(50);

/// How long an interrupted command may take to remove its temporary files.
const PATIENCE: Duration = Duration::from_millis(100);

/// A line that a command said: its text, and the path and offset of what it is about.
type Said = (String, Option<PathBuf>, Option<u64>);

/// What a command shows besides its output.
#[derive(Default)]
struct Stage {
    said: Mutex<Vec<Said>>,
    bytes: AtomicU64,
    packets: AtomicU64,
    /// 0 if it is not known.
    total_bytes: AtomicU64,
    stop: StopFlag,
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
    /// What Python raised meanwhile.
    raised: Option<PyErr>,
}

impl Output {
    /// Lets Python see signals, and reports progress.
    fn tick(&mut self) -> io::Result<()> {
        if self.is_alone {
            return Ok(());
        }
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

/// How far the output was read.
enum Reading {
    /// Nothing was read.
    Begun(Output),
    /// The rows are being read.
    Rows(Box<StreamReader<Output>>),
    /// Everything was read.
    Over,
}

/// The command's side.
struct Command {
    reading: Reading,
    thread: Option<JoinHandle<Result<bool, Failure>>>,
    stage: Arc<Stage>,
}

/// Why nothing more can be read.
enum Trouble {
    /// Python raised while we waited.
    Raised(PyErr),
    /// The command failed.
    Failed(Failure),
}

impl From<Trouble> for PyErr {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Raised(raised) => raised,
            Trouble::Failed(Failure { sentence, is_usage, place }) => {
                let (path, offset) =
                    place.map_or((None, None), |place| (Some(place.path), place.offset));
                failure(&sentence, is_usage, path, offset)
            }
        }
    }
}

impl Command {
    /// The names and types of the rows.
    fn schema(&mut self) -> Result<SchemaRef, Trouble> {
        if matches!(self.reading, Reading::Begun(_)) {
            self.begin_rows()?;
        }
        match &self.reading {
            Reading::Rows(rows) => Ok(rows.schema()),
            _ => Err(over()),
        }
    }

    fn begin_rows(&mut self) -> Result<(), Trouble> {
        let Reading::Begun(mut output) = std::mem::replace(&mut self.reading, Reading::Over) else {
            return Ok(());
        };
        match output.wait() {
            Err(_) => return Err(self.raised(output.raised)),
            Ok(false) => return Err(self.ended_early()),
            Ok(true) => {}
        }
        match StreamReader::try_new(output, None) {
            Ok(rows) => self.reading = Reading::Rows(Box::new(rows)),
            Err(_) => return Err(self.ended_early()),
        }
        Ok(())
    }

    /// The next rows; none at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>, Trouble> {
        self.schema()?;
        let Reading::Rows(rows) = &mut self.reading else {
            return Ok(None);
        };
        if rows.get_mut().tick().is_err() {
            let raised = rows.get_mut().raised.take();
            return Err(self.raised(raised));
        }
        match rows.next() {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(_)) => {
                let raised = rows.get_mut().raised.take();
                let trouble = match raised {
                    Some(_) => self.raised(raised),
                    None => self.ended_early(),
                };
                self.reading = Reading::Over;
                Err(trouble)
            }
        }
    }

    /// All that follows the rows that were read; whether everything was read by the command.
    fn rest(&mut self) -> Result<(Vec<u8>, bool), Trouble> {
        let mut reading = std::mem::replace(&mut self.reading, Reading::Over);
        let output = match &mut reading {
            Reading::Begun(output) => output,
            Reading::Rows(rows) => rows.get_mut(),
            Reading::Over => return Err(over()),
        };
        let mut rest = Vec::new();
        if output.read_to_end(&mut rest).is_err() {
            let raised = output.raised.take();
            return Err(self.raised(raised));
        }
        match self.join() {
            Ok(is_complete) => Ok((rest, is_complete)),
            Err(failure) => Err(Trouble::Failed(failure)),
        }
    }

    fn join(&mut self) -> Result<bool, Failure> {
        let joined = self.thread.take().map(JoinHandle::join);
        joined.unwrap_or(Ok(Ok(true))).unwrap_or_else(|_| {
            Err(Failure {
                sentence: "the command panicked; please report this".to_owned(),
                is_usage: false,
                place: None,
            })
        })
    }

    /// What Python raised ends the command, which gets a moment to tidy up.
    fn raised(&mut self, raised: Option<PyErr>) -> Trouble {
        self.stage.stop.set();
        self.reading = Reading::Over;
        let thread = self.thread.take();
        for _ in 0..PATIENCE.as_millis() / 5 {
            if thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        match raised {
            Some(raised) => Trouble::Raised(raised),
            None => over(),
        }
    }

    /// The command ended without a result: because it failed, or because it could read nothing.
    fn ended_early(&mut self) -> Trouble {
        if let Err(failure) = self.join() {
            return Trouble::Failed(failure);
        }
        let said = locked(&self.stage.said).first().cloned();
        let (line, path, offset) = said.unwrap_or_default();
        Trouble::Failed(Failure {
            sentence: line.trim_start_matches("flowsieve: ").to_owned(),
            is_usage: false,
            place: path.map(|path| Place { path, offset }),
        })
    }
}

fn over() -> Trouble {
    Trouble::Failed(Failure {
        sentence: "everything of this result was read already".to_owned(),
        is_usage: false,
        place: None,
    })
}

/// Rows for another library, which pulls them.
struct Rows {
    schema: SchemaRef,
    command: Arc<Mutex<Command>>,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = locked(&self.command).next();
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

/// A command at work. Rows are read first, then the rest.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Run {
    command: Arc<Mutex<Command>>,
    stage: Arc<Stage>,
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
            stage: Arc::clone(&stage),
            progress,
            is_alone: false,
            raised: None,
        };
        let command = Command {
            reading: Reading::Begun(output),
            thread: Some(thread),
            stage: Arc::clone(&stage),
        };
        Ok(Self { command: Arc::new(Mutex::new(command)), stage })
    }

    /// A command that is over, with this output.
    #[staticmethod]
    fn over(output: Vec<u8>) -> Self {
        let (_, pieces) = sync_channel(0);
        let stage = Arc::new(Stage::default());
        let output = Output {
            pieces,
            piece: output,
            at: 0,
            stage: Arc::clone(&stage),
            progress: None,
            is_alone: false,
            raised: None,
        };
        let command =
            Command { reading: Reading::Begun(output), thread: None, stage: Arc::clone(&stage) };
        Self { command: Arc::new(Mutex::new(command)), stage }
    }

    /// The next rows, or None at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let (schema, batch) = py.detach(|| {
            let mut command = locked(&self.command);
            let schema = command.schema()?;
            Ok::<_, Trouble>((schema, command.next()?))
        })?;
        Ok(batch.map(|batch| Table::new(schema, vec![batch])))
    }

    /// All rows that are left.
    fn rows(&self, py: Python<'_>) -> PyResult<Table> {
        let (schema, batches) = py.detach(|| {
            let mut command = locked(&self.command);
            let schema = command.schema()?;
            let mut batches = Vec::new();
            while let Some(batch) = command.next()? {
                batches.push(batch);
            }
            Ok::<_, Trouble>((schema, batches))
        })?;
        Ok(Table::new(schema, batches))
    }

    /// What is left of the output, and whether everything could be read: of a run with rows the
    /// document that follows them.
    fn rest(&self, py: Python<'_>) -> PyResult<(Vec<u8>, bool)> {
        Ok(py.detach(|| locked(&self.command).rest())?)
    }

    /// The lines that the command said since the last call, with the path and offset of a problem.
    fn said(&self) -> Vec<Said> {
        std::mem::take(&mut locked(&self.stage.said))
    }

    /// Ends the command.
    fn cancel(&self) {
        self.stage.stop.set();
    }

    /// The rows as an Arrow C stream, pulled as they come.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = py.detach(|| locked(&self.command).schema())?;
        if let Reading::Rows(rows) = &mut locked(&self.command).reading {
            rows.get_mut().is_alone = true;
        }
        let command = Arc::clone(&self.command);
        stream_capsule(py, Rows { schema, command })
    }
}

impl Drop for Run {
    /// Nobody wants the rest, unless another library reads the rows.
    fn drop(&mut self) {
        if Arc::strong_count(&self.command) == 1 {
            self.stage.stop.set();
        }
    }
}
