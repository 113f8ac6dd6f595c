//! Divides inputs into pieces: whole inputs, and byte ranges of large plain pcap files.

use super::reader::is_refusal;
use super::{PieceError, PiecePlan};
use crate::pipeline::{Align, SliceGrid};
use crate::trace::{
    Capture, CaptureRange, FilePart, InputFormat, RangeStart, Source, StopFlag, TraceError,
    TraceErrorKind,
};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::ops::Range;
use std::time::SystemTime;

/// An input or a range of one, which one process reads.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Range of offsets at which its records begin; `None` for the whole input.
    pub bytes: Option<Range<u64>>,
    /// Where the first record begins, if that is known.
    pub start: Option<RangeStart>,
    /// Range of offsets at which the records of the input begin that are read; `None` if all are.
    pub part: Option<Range<u64>>,
    /// State of the file when it was divided, which has to be the same when a range is read: its
    /// length with its time of modification, or what else its file system knows it by. `None` for
    /// whole inputs, and where the file system does not say.
    #[serde(deserialize_with = "Option::deserialize")]
    pub file: Option<String>,
}

/// Returns when an input joins the trace, as in a merge, and the time of its first packet that takes
/// part.
fn joins(input: &Source, format: InputFormat) -> Result<Option<(i64, i64)>, TraceError> {
    let mut capture = input.open(format, &StopFlag::default())?;
    let Some(first_ns) = capture.first_time_ns()? else { return Ok(None) };
    Ok(capture.begins_ns.map(|begins_ns| (begins_ns.max(first_ns), first_ns)))
}

/// Returns the length and the time of modification of a file as a text.
fn state_of(data: &Metadata) -> Option<String> {
    let since = data.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH);
    let ns = since.map_or_else(
        |before| format!("-{}", before.duration().as_nanos()),
        |after| after.as_nanos().to_string(),
    );
    Some(format!("{} bytes, {ns}", data.len()))
}

/// A piece that was opened.
#[derive(Debug)]
pub struct OpenPiece {
    pub(super) capture: Capture,
    pub(super) entered: Option<u64>,
    pub(super) packets_before: u64,
    pub(super) unread_bytes: u64,
}

#[doc(hidden)]
impl OpenPiece {
    /// Reads a whole input.
    pub fn whole(capture: Capture) -> Self {
        Self { unread_bytes: capture.unread_bytes(), capture, entered: Some(0), packets_before: 0 }
    }

    /// Reads a range of an input, which begins at `start` if that is known.
    pub fn range(range: CaptureRange, start: Option<RangeStart>) -> Self {
        Self {
            capture: range.capture,
            entered: range.entered,
            packets_before: start.map_or(0, |start| start.packets),
            unread_bytes: 0,
        }
    }

    /// Opens a piece of an input that is a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no capture (any more).
    pub fn open(plan: &impl PiecePlan, piece: &Piece) -> Result<Self, PieceError> {
        let plan = plan.outline();
        let source = plan.trace.inputs.get(piece.input as usize).ok_or_else(|| {
            PieceError::Mismatch(format!("the plan has no input number {}", piece.input))
        })?;
        let stop = StopFlag::default();
        let path = source.path();
        // Opening a pipe waits for its other end, and pieces may be read twice.
        if std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
            let reason = "it is a pipe or a device, which a run in pieces cannot read; write it to a file first";
            let kind = TraceErrorKind::NotACapture { reason: reason.to_owned() };
            return Err(TraceError { path: path.to_owned(), offset: None, kind }.into());
        }
        let part = piece.part.clone().map(|bytes| {
            let length = std::fs::metadata(path).map_or(0, |data| data.len());
            FilePart::new(bytes, length)
        });
        let Some(bytes) = &piece.bytes else {
            let mut capture = source.open(plan.trace.input_format, &stop)?;
            if let Some(part) = part {
                capture.read_part(part);
            }
            return Ok(Self::whole(capture));
        };
        let range = Capture::open_range(path, bytes.clone(), piece.start, &stop)?;
        let is_same = |file: &String| {
            std::fs::metadata(path).ok().and_then(|data| state_of(&data)).as_ref() == Some(file)
        };
        let range = range.filter(|_| piece.file.as_ref().is_none_or(is_same));
        let range = range.ok_or_else(|| PieceError::Changed(path.to_owned()))?;
        let mut open = Self::range(range, piece.start);
        // Counted once per input, with its first piece.
        let is_first = part.as_ref().is_some_and(|part| part.bytes.start == bytes.start);
        open.capture.part = part;
        open.unread_bytes = if is_first { open.capture.unread_bytes() } else { 0 };
        Ok(open)
    }
}

/// Returns the pieces of a plan: ranges of this many bytes of each input that can be divided, and
/// the others whole.
///
/// # Panics
///
/// If `bytes` is 0.
pub fn divide(plan: &impl PiecePlan, bytes: u64) -> Vec<Piece> {
    let format = plan.outline().trace.input_format;
    divide_by(plan, bytes, |source, least| {
        let path = source.path();
        let data = std::fs::metadata(path).ok().filter(|_| source.is_readable_twice())?;
        let has_ranges = data.len() >= least
            && Capture::open(path, format).is_ok_and(|capture| capture.has_ranges());
        has_ranges.then(|| (data.len(), state_of(&data)))
    })
}

/// Divides inputs that the caller opens. `length_of` returns the length of an input and its state, or
/// `None` if it is shorter than the bytes that are asked for or [has no
/// ranges](Capture::has_ranges).
///
/// # Panics
///
/// If `bytes` is 0.
#[doc(hidden)]
pub fn divide_by(
    plan: &impl PiecePlan,
    bytes: u64,
    mut length_of: impl FnMut(&Source, u64) -> Option<(u64, Option<String>)>,
) -> Vec<Piece> {
    assert!(bytes > 0, "a range has bytes");
    let plan = plan.outline();
    let mut pieces = Vec::new();
    for (input, source) in (0..).zip(plan.trace.sources()) {
        let part = source.part().map(|part| part.bytes.clone());
        let (begin, end) = part.clone().map_or((0, u64::MAX), |part| (part.start, part.end));
        let first = begin / bytes;
        let least = bytes.saturating_mul(first + 2);
        let length = if end < least { None } else { length_of(&source, least) };
        let (length, file) = length.unwrap_or_default();
        let count = end.min(length) / bytes;
        if count < first + 2 {
            pieces.push(Piece { input, range: 0, bytes: None, start: None, part, file: None });
            continue;
        }
        pieces.extend((first..count).map(|range| {
            let is_known = range == first && begin > 0;
            let stop = if range + 1 == count { end } else { (range + 1) * bytes };
            Piece {
                input,
                range: (range - first) as u32,
                bytes: Some((range * bytes).max(begin)..stop),
                start: is_known.then_some(RangeStart { offset: begin, packets: 0 }),
                part: part.clone(),
                file: file.clone(),
            }
        }));
    }
    pieces
}

/// Returns the slices of a plan. If their beginning depends on the first packet, every input is read
/// up to its first packet that takes part.
///
/// # Errors
///
/// The width is not above 0, the range of time is relative to the captures, or the system refuses to
/// read a first packet by which slices begin.
pub fn grid_of(plan: &impl PiecePlan) -> Result<SliceGrid, PieceError> {
    plan.check()?;
    let plan = plan.outline();
    if !plan.trace.selection.is_resolved() {
        return Err(PieceError::Mismatch(
            "a piece does not know where the whole begins and ends, so the range of time has to be absolute; give a date and time".to_owned(),
        ));
    }
    let slicing = plan.slicing;
    let first_ns = match (slicing.width_ns, slicing.align) {
        (Some(_), Align::First | Align::Local(_)) => {
            let mut first: Option<(i64, i64)> = None;
            for input in &plan.trace.sources() {
                match joins(input, plan.trace.input_format) {
                    Ok(here) => first = first.into_iter().chain(here).min_by_key(|first| first.0),
                    Err(error) if is_refusal(&error) => return Err(error.into()),
                    // Damage hides a first packet from one process, too.
                    Err(_) => {}
                }
            }
            first.map(|first| first.1)
        }
        _ => None,
    };
    Ok(slicing.grid(first_ns))
}
