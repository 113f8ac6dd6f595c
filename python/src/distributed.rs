//! The steps of a count, a ranking, a list of flows or an export that is divided among processes,
//! for any engine that can map, shuffle and reduce.
//!
//! Processes exchange text and bytes only.

use crate::run::{Said, because, failure_of, listen, locked};
use crate::table::Table;
use crate::{failure, misused};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use flowsieve::cli::{DividedPlan, DividedRun, Failure, Place, captures_of, conclude};
use flowsieve::distributed::{
    FlowSums, FlowTally, InputPart, InputTable, Joined, OpenPiece, PacketPlace, Piece, PieceError,
    PiecePlan, PieceReader, PlacedFlow, RankedSlice, RankingSums, RowPlace, RowSums, RowTally,
    ShardCount, ShardFlows, ShardRows, ShardTally, ShardWhole, SlicePart, SliceRanking, SliceSums,
    WholePart, WholeTally, WireFormat, divide, divide_by, grid_of,
};
use flowsieve::export::{ExportRows, ExportSink as _};
use flowsieve::flows::FlowSink as _;
use flowsieve::output::{
    CountParameters, CountReport, FlowParameters, FlowReport, RecordBatches, ReportFormat,
    TerminalStyle,
};
use flowsieve::pipeline::{Align, CountSummary, InputResult, SliceGrid, Totals};
use flowsieve::report::{ExportParameters, ExportReport, TopReport};
use flowsieve::selection::{SelectedPart, TimeBound};
use flowsieve::trace::{Capture, InputFormat, Source, StopFlag, TraceError, TraceErrorKind};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The description of a run that every process gets. No field may be missing: `Option::deserialize`
/// expects a null.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// The version of the package that planned the run.
    version: String,
    words: Vec<OsString>,
    inputs: Vec<PathBuf>,
    #[serde(deserialize_with = "Option::deserialize")]
    from_ns: Option<i64>,
    #[serde(deserialize_with = "Option::deserialize")]
    to_ns: Option<i64>,
    /// Beginning of the first slice, and length of slices.
    first_ns: i64,
    #[serde(deserialize_with = "Option::deserialize")]
    width_ns: Option<i64>,
    /// Number of shards of flows and packets, which have no slices, and of a ranking of everything.
    #[serde(deserialize_with = "Option::deserialize")]
    shards: Option<u32>,
    /// Everything that the result depends on, including defaults. A process that understands the
    /// words differently refuses the run.
    parameters: Map<String, Value>,
}

/// A file that Python reads.
struct PythonFile(Py<PyAny>);

impl PythonFile {
    /// Wraps a file to read it in large requests.
    fn buffered(file: Py<PyAny>) -> BufReader<Self> {
        BufReader::with_capacity(REQUEST, Self(file))
    }
}

/// Bytes that are requested from Python at a time; Python may read ahead.
const REQUEST: usize = 1 << 20;

impl Read for PythonFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let length = buffer.len().min(REQUEST);
            let bytes = self.0.bind(py).call_method1("read", (length,));
            let bytes = bytes.map_err(io::Error::other)?;
            let bytes = bytes
                .cast::<PyBytes>()
                .map_err(|error| io::Error::other(PyErr::from(error)))?
                .as_bytes();
            let bytes = bytes.get(..buffer.len()).unwrap_or(bytes);
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

fn explained(error: PieceError) -> PyErr {
    let place = match &error {
        PieceError::Unreadable(error) => Some(error.into()),
        PieceError::Changed(path) => Some(Place { path: path.clone(), offset: None }),
        _ => None,
    };
    let is_usage = matches!(error, PieceError::Plan(_));
    failure(Failure { sentence: error.to_string(), is_usage, place })
}

fn wrong(sentence: &str) -> PyErr {
    failure(because(sentence))
}

/// Takes a value that can be taken once; fails with the sentence the second time.
fn taken<T>(once: &Mutex<Option<T>>, sentence: &str) -> PyResult<T> {
    locked(once).take().ok_or_else(|| wrong(sentence))
}

/// Returns the captures that these names stand for, files and those in directories, and the
/// problems with directories.
#[pyfunction]
pub(crate) fn captures(py: Python<'_>, named: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<Problem>) {
    let (files, problems) = py.detach(|| captures_of(&named));
    let sentence = |input: &InputResult| input.error.as_ref().map(ToString::to_string);
    let problem = |input: InputResult| Some((sentence(&input)?, input.path));
    (files, problems.into_iter().filter_map(problem).collect())
}

/// A problem with a directory, in a sentence.
type Problem = (String, PathBuf);

/// The results that are known when all pieces have been read.
struct Whole {
    table: InputTable,
    summary: Box<CountSummary>,
    /// The messages of a single run about the inputs.
    said: Vec<Said>,
    /// Whether all inputs were read to their end.
    is_complete: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A run in pieces.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct DividedJob {
    job: Job,
    plan: DividedPlan,
    /// Format of the report, as in the words.
    format: ReportFormat,
    /// Whether the words suppress remarks.
    is_quiet: bool,
    grid: SliceGrid,
    whole: Mutex<Option<Whole>>,
}

impl DividedJob {
    fn of(job: Job) -> PyResult<Self> {
        let DividedRun { mut plan, format, is_quiet, .. } = planned(&job.words)?;
        plan.trace_mut().inputs = job.inputs.iter().map(Source::from).collect();
        let selection = &mut plan.trace_mut().selection;
        selection.from = job.from_ns.map(TimeBound::At);
        selection.to = job.to_ns.map(TimeBound::At);
        let grid = SliceGrid::new(job.width_ns, Align::First, job.first_ns);
        Ok(Self { job, plan, format, is_quiet, grid, whole: Mutex::new(None) })
    }

    /// Opens a piece of a file that Python opens: `open` returns a file that begins at an offset.
    fn opened(
        &self,
        py: Python<'_>,
        piece: &Piece,
        name: PathBuf,
        open: &Py<PyAny>,
    ) -> PyResult<Result<OpenPiece, PieceError>> {
        let file = |offset: u64| {
            let file = open.call1(py, (offset,))?;
            Ok::<_, PyErr>(Box::new(PythonFile::buffered(file)))
        };
        let whole = file(0)?;
        let format = self.plan.trace().input_format;
        let begun = py.detach(|| Capture::from_reader(&name, whole, format));
        let capture = match begun {
            Ok(capture) => capture,
            Err(error) => return Ok(Err(error.into())),
        };
        let Some(bytes) = piece.bytes.clone() else { return Ok(Ok(OpenPiece::whole(capture))) };
        let source = file(Capture::range_begin(&bytes, piece.start))?;
        let range = py.detach(move || capture.range(source, bytes, piece.start));
        let Some(range) = range else { return Ok(Err(PieceError::Changed(name))) };
        Ok(Ok(OpenPiece::range(range, piece.start)))
    }
}

fn planned(words: &[OsString]) -> PyResult<DividedRun> {
    let all = std::iter::once("flowsieve".into()).chain(words.iter().cloned());
    DividedRun::of(all).map_err(|error| failure(Failure { place: None, ..error }))
}

/// Joins the results of pieces, which are still bytes.
fn joined(
    plan: &DividedPlan,
    pieces: &[Piece],
    inputs: &[PyBackedBytes],
) -> Result<Joined, PieceError> {
    let inputs = inputs.iter().map(|bytes| InputPart::from_bytes(bytes));
    InputTable::join(plan, pieces, &inputs.collect::<Result<Vec<_>, _>>()?)
}

fn text_of(pieces: &[Piece]) -> Vec<String> {
    let texts = pieces.iter().map(serde_json::to_string);
    texts.map(|text| text.expect("numbers are JSON")).collect()
}

fn pieces_of(texts: &[String]) -> PyResult<Vec<Piece>> {
    let pieces = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>();
    pieces.map_err(|error| wrong(&format!("this text is no piece: {error}")))
}

/// Bytes of a report, messages, and whether all inputs were read to their end.
type Report = (Vec<u8>, Vec<Said>, bool);

/// An input that Python opens: its length if it may be divided, and a function that opens it at an
/// offset.
type Remote = (Option<u64>, Py<PyAny>);

#[pymethods]
impl DividedJob {
    /// Returns the inputs and the output file that the words name, as text: `pathlib` would make
    /// other names of addresses such as `s3://a/b`.
    #[staticmethod]
    fn named(words: Vec<OsString>) -> PyResult<(Vec<OsString>, Option<OsString>)> {
        let DividedRun { plan, output, .. } = planned(&words)?;
        let inputs = plan.trace().inputs.iter().map(|input| input.path().into());
        Ok((inputs.collect(), output.map(PathBuf::into_os_string)))
    }

    /// Creates the run of these words and inputs. `remotes` are inputs that Python opens, by their
    /// number. Reads inputs as far as relative times and the first packet require.
    #[new]
    fn new(
        py: Python<'_>,
        words: Vec<OsString>,
        inputs: Vec<PathBuf>,
        remotes: BTreeMap<u32, Py<PyAny>>,
        shards: Option<u32>,
    ) -> PyResult<Self> {
        let DividedRun { mut plan, .. } = planned(&words)?;
        plan.trace_mut().inputs = inputs.iter().map(Source::from).collect();
        for (input, source) in (0..).zip(&mut plan.trace_mut().inputs) {
            if let Some(open) = remotes.get(&input) {
                *source =
                    Source::reader(source.path(), PythonFile::buffered(open.call1(py, (0,))?));
            }
        }
        let (selection, grid) = py.detach(|| {
            let resolved = plan.trace_mut().resolve(&StopFlag::default());
            resolved.map_err(misused)?;
            let grid = grid_of(&plan).map_err(explained)?;
            Ok::<_, PyErr>((SelectedPart::from(&plan.trace().selection), grid))
        })?;
        let job = Job {
            version: VERSION.to_owned(),
            words,
            inputs,
            from_ns: selection.from_ns,
            to_ns: selection.to_ns,
            first_ns: grid.origin_ns(),
            width_ns: grid.width_ns(),
            shards,
            parameters: Map::new(),
        };
        let mut made = Self::of(job)?;
        debug_assert_eq!(made.grid, grid);
        made.job.parameters = made.parameters()?;
        Ok(made)
    }

    /// Creates the same run in another process from its text.
    #[staticmethod]
    fn of_text(text: &str) -> PyResult<Self> {
        let no_run = |error: serde_json::Error| wrong(&format!("this text is no run: {error}"));
        let fields: Value = serde_json::from_str(text).map_err(no_run)?;
        if let Some(version) = fields.get("version").filter(|version| **version != VERSION) {
            return Err(wrong(&format!(
                "the run was planned by flowsieve {version}, and this worker has {VERSION}; install one version on the driver and on all workers"
            )));
        }
        let made = Self::of(serde_json::from_value(fields).map_err(no_run)?)?;
        let (theirs, mine) = (&made.job.parameters, made.parameters()?);
        let names = theirs.keys().chain(mine.keys());
        let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
        match names.into_iter().find(|&name| theirs.get(name) != mine.get(name)) {
            None => Ok(made),
            Some(name) => Err(wrong(&format!(
                "{name} is {} for the driver and {} for this worker; install one version of flowsieve on all of them",
                shown(theirs.get(name)),
                shown(mine.get(name))
            ))),
        }
    }

    /// Returns the run as text, without its inputs: each piece comes with its path.
    fn text(&self) -> String {
        let job = Job { inputs: Vec::new(), ..self.job.clone() };
        serde_json::to_string(&job).expect("words and numbers are JSON")
    }

    /// Returns the pieces as text: ranges of this many bytes of plain pcap files, and whole inputs.
    fn pieces(
        &self,
        py: Python<'_>,
        bytes: u64,
        remotes: BTreeMap<u32, Remote>,
    ) -> PyResult<Vec<String>> {
        if remotes.is_empty() {
            return Ok(text_of(&py.detach(|| divide(&self.plan, bytes))));
        }
        let numbers: BTreeMap<&Path, u32> =
            self.plan.trace().inputs.iter().map(Source::path).zip(0..).collect();
        let mut raised = None;
        let pieces = divide_by(&self.plan, bytes, |source, least| {
            let (length, open) = remotes.get(numbers.get(source.path())?)?;
            let length = length.filter(|length| *length >= least)?;
            match open.call1(py, (0,)) {
                Ok(file) => {
                    let file = Box::new(PythonFile::buffered(file));
                    let capture = Capture::from_reader(source.path(), file, InputFormat::Auto);
                    let has_ranges = capture.is_ok_and(|capture| capture.has_ranges());
                    // Python knows which content the file has.
                    has_ranges.then_some((length, None))
                }
                Err(error) => {
                    raised = Some(error);
                    None
                }
            }
        });
        raised.map_or_else(|| Ok(text_of(&pieces)), Err)
    }

    /// Reads a piece of this file. If Python opens it, `open` returns the file from an offset on.
    #[pyo3(signature = (piece, path, budget, open = None))]
    fn read(
        &self,
        py: Python<'_>,
        piece: String,
        path: PathBuf,
        budget: usize,
        open: Option<Py<PyAny>>,
    ) -> PyResult<PartsOfPiece> {
        let piece = pieces_of(&[piece])?.remove(0);
        let opened = match open {
            Some(open) => self.opened(py, &piece, path, &open)?,
            None => py.detach(|| {
                let mut plan = self.plan.clone();
                plan.trace_mut().inputs = vec![Source::from(path)];
                OpenPiece::open(&plan, &Piece { input: 0, ..piece.clone() })
            }),
        };
        let plan = self.plan.outline().in_shards(self.job.shards);
        let reader = PieceReader::begin(plan, self.grid, &piece, opened, budget);
        let reader = reader.map_err(explained)?;
        Ok(PartsOfPiece { reader: Mutex::new(Some(reader)) })
    }

    /// Returns the result of a piece that could not be read and is left out.
    #[staticmethod]
    fn unread(piece: String, path: PathBuf, sentence: String) -> PyResult<Vec<u8>> {
        let piece = pieces_of(&[piece])?.remove(0);
        let error = TraceError { path, offset: None, kind: TraceErrorKind::Reported { sentence } };
        Ok(InputPart::unread(&piece, &error).to_bytes())
    }

    /// Joins the results of the pieces. Returns the pieces that have to be read again, if there are
    /// any. Raises if no input could be opened. `problems` are those of directories.
    fn join(
        &self,
        py: Python<'_>,
        pieces: Vec<String>,
        inputs: Vec<PyBackedBytes>,
        problems: Vec<Problem>,
    ) -> PyResult<Vec<String>> {
        let pieces = pieces_of(&pieces)?;
        let joined = py.detach(|| joined(&self.plan, &pieces, &inputs));
        let (table, mut summary) = match joined.map_err(explained)? {
            Joined::Again(pieces) => return Ok(text_of(&pieces)),
            Joined::Whole(table, summary) => (table, summary),
        };
        let unread = |(sentence, path)| InputResult::unread(path, sentence);
        let problems = problems.into_iter().map(unread).collect();
        let (is_complete, said) =
            listen(|host| conclude(host, self.is_quiet, problems, &mut summary));
        let is_complete = is_complete.ok_or_else(|| failure(failure_of(&said)))?;
        *locked(&self.whole) = Some(Whole { table, summary, said, is_complete });
        Ok(Vec::new())
    }

    /// Returns the table for the reduce step from the results of all pieces of this many inputs, or
    /// `None` if they cannot be joined.
    fn table_of(
        &self,
        py: Python<'_>,
        pieces: Vec<String>,
        inputs: Vec<PyBackedBytes>,
        count: usize,
    ) -> PyResult<Option<Vec<u8>>> {
        let pieces = pieces_of(&pieces)?;
        let joined = py.detach(|| {
            let mut plan = self.plan.clone();
            plan.trace_mut().inputs = vec![Source::from(""); count];
            joined(&plan, &pieces, &inputs)
        });
        Ok(match joined {
            Ok(Joined::Whole(table, _)) => Some(table.to_bytes()),
            Ok(Joined::Again(_)) | Err(_) => None,
        })
    }

    /// Returns the table for the reduce step: which pieces count, and the places of their packets.
    fn table(&self) -> PyResult<Vec<u8>> {
        let whole = locked(&self.whole);
        let whole = whole.as_ref().ok_or_else(|| wrong("the pieces were not joined"))?;
        Ok(whole.table.to_bytes())
    }

    /// Creates the reduce step.
    fn shards(&self, table: &[u8]) -> PyResult<Shards> {
        let reducer = match &self.plan {
            DividedPlan::Count(plan) => {
                ShardCount::new(plan).map(|count| Reducer::Count(Box::new(count)))
            }
            DividedPlan::Top(plan) => SliceRanking::new(plan, self.grid, self.job.shards)
                .map(|ranking| Reducer::Top(Box::new(ranking))),
            DividedPlan::Flows(parameters) => ShardFlows::new(&parameters.plan, self.job.shards)
                .map(|flows| Reducer::Flows(Box::new((flows, parameters.clone())))),
            DividedPlan::Export(parameters) => ShardRows::new(&parameters.plan, self.job.shards)
                .map(|rows| Reducer::Export(Box::new((rows, parameters.clone())))),
        };
        Ok(Shards {
            reducer: Mutex::new((reducer.map_err(explained)?, Vec::new())),
            table: InputTable::from_bytes(table).map_err(explained)?,
        })
    }

    /// Creates the count of all slices of this shard together.
    fn all_slices(&self, shard: u32) -> PyResult<WholeShard> {
        let DividedPlan::Count(plan) = &self.plan else {
            return Err(wrong("only a count has slices that are counted together"));
        };
        let whole = ShardWhole::new(plan, shard).map_err(explained)?;
        Ok(WholeShard { whole: Mutex::new(Some(whole)) })
    }

    /// Returns the report of all tallies in the format of the words, for flows and exports without
    /// the rows; the messages of a run in one process about its inputs; and whether all inputs were
    /// read to their end.
    fn report(&self, py: Python<'_>, tallies: Vec<Vec<u8>>) -> PyResult<Report> {
        let whole = taken(&self.whole, "the pieces were not joined, or reported already")?;
        let report = py.detach(|| self.reported(self.format, &tallies, whole.summary));
        Ok((report.map_err(explained)?, whole.said, whole.is_complete))
    }

    /// Returns an empty table with the names and types of the rows of flows or of an export.
    fn columns(&self) -> PyResult<Table> {
        let table = match &self.plan {
            DividedPlan::Flows(parameters) => table_of_flows(parameters, |_| Ok(())),
            DividedPlan::Export(parameters) => table_of_rows(parameters, |_| Ok(())),
            DividedPlan::Count(_) | DividedPlan::Top(_) => {
                return Err(wrong("the run has no rows besides its report"));
            }
        };
        Ok(table.map_err(explained)?.1)
    }
}

impl DividedJob {
    /// Returns everything that the result depends on, by name, as in its document.
    fn parameters(&self) -> PyResult<Map<String, Value>> {
        let nothing = CountSummary { inputs: Vec::new(), totals: Totals::default(), filter: None };
        let report = self.reported(ReportFormat::JSON, &[], Box::new(nothing));
        let report = report.map_err(explained)?;
        let mut document: Value = serde_json::from_slice(&report).map_err(io::Error::from)?;
        let Value::Object(mut parameters) = document["parameters"].take() else {
            return Err(wrong("the document of the run has no parameters"));
        };
        let format = format!("{:?}", self.plan.trace().input_format);
        parameters.insert("input_format".to_owned(), format.into());
        Ok(parameters)
    }

    fn reported(
        &self,
        format: ReportFormat,
        tallies: &[Vec<u8>],
        summary: Box<CountSummary>,
    ) -> Result<Vec<u8>, PieceError> {
        let tallies = tallies.iter().map(Vec::as_slice);
        let style = TerminalStyle::default();
        match &self.plan {
            DividedPlan::Count(plan) => {
                let (wholes, tallies): (Vec<_>, Vec<_>) =
                    tallies.partition(|tally| tally.first() == Some(&WholeTally::LETTER));
                let mut slices: BTreeMap<i64, Vec<ShardTally>> = BTreeMap::new();
                for tally in tallies.into_iter().map(ShardTally::from_bytes) {
                    let tally = tally?;
                    slices.entry(tally.slice).or_default().push(tally);
                }
                let parameters = CountParameters::from(plan);
                let mut report = CountReport::begin(format, &parameters, style, Vec::new())?;
                let mut sums = SliceSums::new(plan, self.grid, &mut report);
                slices.into_values().try_for_each(|tallies| sums.slice(tallies))?;
                for whole in wholes {
                    sums.whole(WholeTally::from_bytes(whole)?)?;
                }
                let summary = sums.finish(summary)?;
                Ok(report.finish(&summary)?)
            }
            DividedPlan::Top(plan) => {
                let mut slices =
                    tallies.map(RankedSlice::from_bytes).collect::<Result<Vec<_>, _>>()?;
                slices.sort_by_key(|ranked| ranked.slice);
                let mut report = TopReport::begin(format, plan, style, Vec::new())?;
                let mut sums = RankingSums::new(plan, self.grid, &mut report);
                slices.into_iter().try_for_each(|slice| sums.slice(slice))?;
                let summary = sums.finish(summary)?;
                Ok(report.finish(&summary)?)
            }
            DividedPlan::Flows(parameters) => {
                let mut sums = FlowSums::default();
                for tally in tallies.map(FlowTally::from_bytes) {
                    sums.shard(&tally?)?;
                }
                let summary = sums.finish(summary)?;
                let report = FlowReport::begin(format, parameters, style, Vec::new())?;
                Ok(report.finish(&summary)?)
            }
            DividedPlan::Export(parameters) => {
                let mut sums = RowSums::new(&parameters.plan);
                for tally in tallies.map(RowTally::from_bytes) {
                    sums.shard(&tally?)?;
                }
                let summary = sums.finish(summary)?;
                let report = ExportReport::begin(format, parameters, 1, Vec::new())?;
                Ok(report.finish(&summary)?)
            }
        }
    }
}

/// Returns a table of these rows with the columns of their places appended, by which an engine sorts
/// them.
fn placed<P>(
    rows: Vec<RecordBatch>,
    schema: &Schema,
    places: &[P],
    columns: &[PlaceColumn<P>],
) -> Table {
    let fields = schema.fields().iter().cloned();
    let behind =
        columns.iter().map(|(name, _)| Arc::new(Field::new(*name, DataType::Int64, false)));
    let schema = Arc::new(Schema::new(fields.chain(behind).collect::<Vec<_>>()));
    let mut first = 0;
    let batches = rows.into_iter().map(|batch| {
        let places = &places[first..first + batch.num_rows()];
        first += batch.num_rows();
        let behind = columns.iter().map(|(_, number)| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(places.iter().map(number)))
        });
        let columns = batch.columns().iter().cloned().chain(behind);
        RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("columns of one length")
    });
    let batches = batches.collect();
    Table::new(schema, batches)
}

/// A column of places: its name, and the number in it.
type PlaceColumn<P> = (&'static str, fn(&P) -> i64);

/// The columns by which flows are sorted after their start.
const BEGUN: [PlaceColumn<PacketPlace>; 4] = [
    ("begun_ns", |place| place.latest_ns),
    ("begun_input", |place| place.input.into()),
    ("begun_range", |place| place.range.into()),
    ("begun_packet", |place| place.packet as i64),
];

/// The columns by which rows of an export are sorted.
const PLACE: [PlaceColumn<RowPlace>; 6] = [
    ("begun_slice", |place| place.slice),
    ("begun_ns", |place| place.packet.latest_ns),
    ("begun_input", |place| place.packet.input.into()),
    ("begun_range", |place| place.packet.range.into()),
    ("begun_packet", |place| place.packet.packet as i64),
    ("begun_element", |place| place.element as i64),
];

/// Returns the result of `list` and a table of the flows that it lists.
fn table_of_flows<T>(
    parameters: &FlowParameters,
    list: impl FnOnce(&mut dyn FnMut(PlacedFlow) -> io::Result<()>) -> Result<T, PieceError>,
) -> Result<(T, Table), PieceError> {
    let (mut taken, mut places) = (Vec::new(), Vec::new());
    let take = |batch| {
        taken.push(batch);
        Ok(())
    };
    let mut batches = RecordBatches::of_flows(parameters, take);
    let tally = list(&mut |placed| {
        places.push(placed.begun);
        batches.flow(placed.flow)
    })?;
    let schema = Arc::clone(batches.schema());
    batches.finish()?;
    Ok((tally, placed(taken, &schema, &places, &BEGUN)))
}

/// Returns the result of `make` and a table of the rows that it makes.
fn table_of_rows<T>(
    parameters: &ExportParameters,
    make: impl FnOnce(
        &mut dyn FnMut(&mut ExportRows, &[RowPlace]) -> io::Result<()>,
    ) -> Result<T, PieceError>,
) -> Result<(T, Table), PieceError> {
    let (mut taken, mut places) = (Vec::new(), Vec::new());
    let take = |batch| {
        taken.push(batch);
        Ok(())
    };
    let mut batches = RecordBatches::of_export(parameters, take);
    let tally = make(&mut |rows, at| {
        places.extend_from_slice(at);
        batches.rows(rows, 0..at.len())
    })?;
    let schema = Arc::clone(batches.schema());
    batches.finish()?;
    Ok((tally, placed(taken, &schema, &places, &PLACE)))
}

/// Iterator over the parts of a piece: tuples of slice, shard and bytes.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct PartsOfPiece {
    reader: Mutex<Option<PieceReader>>,
}

#[pymethods]
impl PartsOfPiece {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Option<(i64, u32, Vec<u8>)> {
        py.detach(|| {
            let part: SlicePart = locked(&self.reader).as_mut()?.next()?;
            Some((part.slice, part.shard, part.to_bytes()))
        })
    }

    /// Returns the result of the piece. Raises if its bytes could not be read, which is no damage:
    /// another attempt may succeed.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let reader = taken(&self.reader, "the piece was finished already")?;
        Ok(py.detach(|| reader.finish()).map_err(explained)?.to_bytes())
    }
}

/// The reduce step of each kind of run.
enum Reducer {
    Count(Box<ShardCount>),
    Top(Box<SliceRanking>),
    Flows(Box<(ShardFlows, FlowParameters)>),
    Export(Box<(ShardRows, ExportParameters)>),
}

/// Reduces the parts of shards, one shard after the other.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Shards {
    /// The reducer, and the parts of the next shard.
    reducer: Mutex<(Reducer, Vec<SlicePart>)>,
    table: InputTable,
}

/// The tally of a shard, its rows, and its part of all slices, as far as they exist.
type Reduced = (Option<Vec<u8>>, Option<Table>, Option<Vec<u8>>);

#[pymethods]
impl Shards {
    /// Adds a part of the shard that is reduced next.
    fn add(&self, part: &[u8]) -> PyResult<()> {
        let part = SlicePart::from_bytes(part).map_err(explained)?;
        locked(&self.reducer).1.push(part);
        Ok(())
    }

    /// Reduces the parts of a shard of a slice. Returns its tally; for a list of flows or an export
    /// the rows of the shard, with their places; and for a count with slices its part of all
    /// slices, unless that is added to `all_slices`.
    #[pyo3(signature = (slice, shard, all_slices = None))]
    fn reduce(
        &self,
        py: Python<'_>,
        slice: i64,
        shard: u32,
        all_slices: Option<&WholeShard>,
    ) -> PyResult<Reduced> {
        let reduced = py.detach(|| {
            let mut state = locked(&self.reducer);
            let (reducer, parts) = &mut *state;
            let parts = std::mem::take(parts);
            Ok(match reducer {
                Reducer::Count(count) => {
                    let mut held = all_slices.map(|all_slices| locked(&all_slices.whole));
                    if let Some(mut whole) = held.as_deref_mut().and_then(Option::take) {
                        // After an error it is not put back, so that it cannot be finished.
                        let tally = count.count_with(&mut whole, slice, &parts, &self.table)?;
                        held.as_deref_mut().map(|held| held.insert(whole));
                        (Some(tally.to_bytes()), None, None)
                    } else {
                        let (tally, whole) = count.count(slice, shard, &parts, &self.table)?;
                        (Some(tally.to_bytes()), None, whole.map(|whole| whole.to_bytes()))
                    }
                }
                Reducer::Top(ranking) => {
                    let ranked = ranking.rank(slice, shard, &parts, &self.table)?;
                    (ranked.map(|ranked| ranked.to_bytes()), None, None)
                }
                Reducer::Flows(listing) => {
                    let (flows, parameters) = &**listing;
                    let (tally, table) = table_of_flows(parameters, |take| {
                        flows.list(shard, &parts, &self.table, take)
                    })?;
                    (Some(tally.to_bytes()), Some(table), None)
                }
                Reducer::Export(making) => {
                    let (rows, parameters) = &**making;
                    let (tally, table) = table_of_rows(parameters, |take| {
                        rows.rows(slice, shard, &parts, &self.table, take)
                    })?;
                    (Some(tally.to_bytes()), Some(table), None)
                }
            })
        });
        reduced.map_err(explained)
    }
}

/// Counts all slices of a shard together.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct WholeShard {
    whole: Mutex<Option<ShardWhole>>,
}

#[pymethods]
impl WholeShard {
    /// Adds the part of a slice.
    fn add(&self, py: Python<'_>, part: Vec<u8>) -> PyResult<()> {
        let add = || {
            let part = WholePart::from_bytes(&part)?;
            locked(&self.whole).as_mut().map_or(Ok(()), |whole| whole.add(&part))
        };
        py.detach(add).map_err(explained)
    }

    /// Returns the tally.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let whole = taken(&self.whole, "the shard was finished already")?;
        Ok(py.detach(|| whole.finish().to_bytes()))
    }
}
