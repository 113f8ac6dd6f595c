//! Which pieces there are: inputs, and byte ranges of large plain pcap files.

use super::PieceError;
use crate::pipeline::{Align, CountPlan, SliceGrid};
use crate::trace::{Capture, CaptureRange, RangeStart, StopFlag};
use std::ops::Range;

/// What is read at one place: an input, or a range of one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Where its records begin; none for the whole input.
    pub bytes: Option<Range<u64>>,
    /// Where the first of them begins, if that is known.
    pub start: Option<RangeStart>,
}

/// A piece that can be read.
#[derive(Debug)]
pub struct OpenPiece {
    pub(super) capture: Capture,
    pub(super) entered: Option<u64>,
    pub(super) packets_before: u64,
}

impl OpenPiece {
    /// A whole input.
    pub fn whole(capture: Capture) -> Self {
        Self {
            capture,
            entered: Some(0),
            packets_before: 0,
        }
    }

    /// A range of an input, which begins where `start` says if that is known.
    pub fn range(range: CaptureRange, start: Option<RangeStart>) -> Self {
        Self {
            capture: range.capture,
            entered: range.entered,
            packets_before: start.map_or(0, |start| start.packets),
        }
    }

    /// Opens a piece of an input that is a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no capture (any more).
    pub fn open(plan: &CountPlan, piece: &Piece) -> Result<Self, PieceError> {
        let source = plan.inputs.get(piece.input as usize).ok_or_else(|| {
            PieceError::Mismatch(format!("the plan has no input number {}", piece.input))
        })?;
        let stop = StopFlag::default();
        let Some(bytes) = &piece.bytes else {
            let capture = source.open(plan.input_format, &stop)?;
            return Ok(Self::whole(capture));
        };
        let path = source.path();
        let range = Capture::open_range(path, bytes.clone(), piece.start, &stop)?;
        let range = range.ok_or_else(|| {
            let path = path.display();
            PieceError::Mismatch(format!("{path} is no plain pcap file, and has no ranges"))
        })?;
        Ok(Self::range(range, piece.start))
    }
}

/// The pieces of a plan: a range of so many bytes wherever an input can be divided, else the whole of it.
///
/// # Panics
///
/// If ranges are to have no bytes.
pub fn divide(plan: &CountPlan, bytes: u64) -> Vec<Piece> {
    assert!(bytes > 0, "a range has bytes");
    let mut pieces = Vec::new();
    for (input, source) in (0..).zip(&plan.inputs) {
        let path = source.path();
        let count = if source.is_readable_twice() {
            std::fs::metadata(path).map_or(0, |data| data.len()) / bytes
        } else {
            0
        };
        let divided = count >= 2
            && Capture::open(path, plan.input_format).is_ok_and(|capture| capture.has_ranges());
        if !divided {
            pieces.push(Piece {
                input,
                range: 0,
                bytes: None,
                start: None,
            });
            continue;
        }
        pieces.extend((0..count).map(|range| Piece {
            input,
            range: range as u32,
            bytes: Some(
                range * bytes..if range + 1 == count {
                    u64::MAX
                } else {
                    (range + 1) * bytes
                },
            ),
            start: None,
        }));
    }
    pieces
}

/// The slices of a plan. If they begin with the first packet, all inputs are read up to the first that takes part.
///
/// # Errors
///
/// The width is not above 0, or the range of time is relative to the captures.
pub fn grid_of(plan: &CountPlan) -> Result<SliceGrid, PieceError> {
    plan.check()?;
    if !plan.selection.is_resolved() {
        return Err(PieceError::Mismatch(
            "a piece does not know where the whole begins and ends, so the range of time has to be absolute".to_owned(),
        ));
    }
    let slicing = plan.slicing;
    let first_ns = match (slicing.width_ns, slicing.align) {
        (Some(_), Align::First) => {
            let inputs = plan.selection.of(&plan.inputs);
            let times = inputs
                .iter()
                .map(|input| input.first_time_ns(plan.input_format));
            times
                .filter_map(|time| time.ok().flatten())
                .min()
                .unwrap_or(0)
        }
        _ => 0,
    };
    Ok(SliceGrid::new(slicing.width_ns, slicing.align, first_ns))
}
