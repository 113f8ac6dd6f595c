//! Where in a large plain pcap file packets of a range of time stand, without reading all of it.
//!
//! The file is looked into at some places, a record's time at each. If these times never go back, the file counts as in
//! order, and what lies well before or behind the range is not read. What is found at a place is a guess; for the place
//! at which reading begins it is confirmed by reading the records before it.

use std::ops::Range;
use std::path::Path;

use super::capture::{Capture, InputFormat};
use super::segments::{SegmentReader, Segments};
use super::stop::StopFlag;

/// Places that are looked at, at most.
const PLACES: u64 = 128;

/// Least distance between them.
const LEAST_STEP: u64 = 1 << 20;

/// Files with fewer steps are read whole.
const LEAST_STEPS: u64 = 16;

/// How far out of order packets may stand in a file: ten seconds.
const DISORDER_NS: i64 = 10_000_000_000;

/// Part of a plain pcap file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FilePart {
    /// The records that begin there.
    pub(crate) bytes: Range<u64>,
    /// How much of the file besides is not read.
    pub(crate) unread_bytes: u64,
}

impl FilePart {
    /// The records that begin at these bytes of a file with so many.
    pub(crate) fn of(bytes: Range<u64>, length: u64) -> Self {
        let before = bytes.start.saturating_sub(Segments::BEGIN);
        Self {
            unread_bytes: before + length.saturating_sub(bytes.end),
            bytes,
        }
    }
}

/// A place in the file.
struct Place {
    offset: u64,
    time_ns: i64,
}

/// The part of a file outside which no packet is of this range of time; none if all of it has to be read.
pub(crate) fn part_in_time(
    path: &Path,
    format: InputFormat,
    times_ns: &Range<i64>,
    stop: &StopFlag,
) -> Option<FilePart> {
    if format == InputFormat::Tsh {
        return None;
    }
    let length = std::fs::metadata(path).ok()?.len();
    let step = length.div_ceil(PLACES).max(LEAST_STEP);
    if length / step < LEAST_STEPS {
        return None;
    }
    let segments = Capture::open_until(path, format, stop)
        .ok()?
        .segments(step)?;
    let mut reader = segments.reader();
    let mut places = Vec::new();
    for number in 0..segments.count() {
        let offset = reader.enter(number, None)?;
        let time_ns = reader.capture().first_time_ns().ok()??;
        places.push(Place { offset, time_ns });
    }
    if !places.is_sorted_by_key(|place| place.time_ns) {
        return None;
    }
    let before = times_ns.start.saturating_sub(DISORDER_NS);
    let behind = times_ns.end.saturating_add(DISORDER_NS);
    // The last place before the range, and the first behind it.
    let first = places.partition_point(|place| place.time_ns <= before);
    let first = first.saturating_sub(1);
    let last = places.partition_point(|place| place.time_ns < behind);
    let begin = if first > 0 && is_confirmed(&mut reader, first as u64 - 1, &places) {
        places[first].offset
    } else {
        Segments::BEGIN
    };
    let end = places.get(last).map_or(u64::MAX, |place| place.offset);
    Some(FilePart::of(begin..end, length)).filter(|part| part.unread_bytes > 0)
}

/// Whether the records of a segment end exactly where the next one was entered.
fn is_confirmed(reader: &mut SegmentReader, number: u64, places: &[Place]) -> bool {
    let [this, next] = [number, number + 1].map(|number| places[number as usize].offset);
    reader.enter(number, Some(this));
    loop {
        match reader.capture().next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return reader.offset() == next,
            Err(_) => return false,
        }
    }
}

impl Capture {
    /// Packets that stand before the part that is read, if it is one.
    pub(super) fn packets_before(&self, part: &FilePart) -> u64 {
        let before = Segments::BEGIN..part.bytes.start;
        let Ok(Some(mut range)) = Self::open_range(self.path(), before, None, &StopFlag::default())
        else {
            return 0;
        };
        let mut packets = 0;
        while let Ok(Some(batch)) = range.capture.next_batch() {
            packets += batch.count() as u64;
        }
        packets
    }
}
