//! Finds the packets of a range of time in a large plain pcap file without reading all of it.
//!
//! The time of a record is read at some places. If these times never decrease, the file counts as
//! in order, and what lies well before or behind the range is not read. A place is a guess; those
//! at which reading begins and ends are confirmed by reading the records before them.

use std::ops::Range;
use std::path::Path;

use super::capture::Capture;
use super::format::InputFormat;
use super::part::{FIRST_RECORD, FilePart};
use super::segments::SegmentReader;
use super::stop::StopFlag;

/// Places that are looked at, at most.
const PLACES: u64 = 128;

/// Least distance between them.
const LEAST_STEP: u64 = 1 << 20;

/// Files with fewer steps are read whole.
const LEAST_STEPS: u64 = 16;

/// Largest disorder of packets in a file: ten seconds.
const DISORDER_NS: i64 = 10_000_000_000;

/// A place in the file.
struct Place {
    offset: u64,
    time_ns: i64,
}

/// Returns the part of a file outside which no packet has a time in this range; `None` if all of it
/// has to be read.
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
    let segments = Capture::open_until(path, format, stop).ok()?.segments(step)?;
    let mut reader = segments.reader();
    let mut places = Vec::new();
    for number in 0..segments.count {
        let offset = reader.enter(number, None)?;
        let time_ns = reader.capture.first_time_ns().ok()??;
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
    let mut confirmed = |number: usize| {
        let offset = places.get(number)?.offset;
        let is_there = number == 0 || is_confirmed(&mut reader, number as u64 - 1, &places);
        is_there.then_some(offset)
    };
    let begin = confirmed(first).unwrap_or(FIRST_RECORD);
    let end = confirmed(last).unwrap_or(u64::MAX);
    Some(FilePart::new(begin..end, length)).filter(|part| part.unread_bytes > 0)
}

/// Returns whether the records of a segment end exactly where the next one was entered.
fn is_confirmed(reader: &mut SegmentReader, number: u64, places: &[Place]) -> bool {
    let [this, next] = [number, number + 1].map(|number| places[number as usize].offset);
    reader.enter(number, Some(this));
    loop {
        match reader.capture.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return reader.capture.offset() == next,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SECOND: i64 = 1_000_000_000;

    fn put(pcap: &mut Vec<u8>, second: u32, bytes: &[u8]) {
        for word in [second, 0, bytes.len() as u32, bytes.len() as u32] {
            pcap.extend_from_slice(&word.to_le_bytes());
        }
        pcap.extend_from_slice(bytes);
    }

    /// A capture of more than 17 MiB with a packet of 1 kB each second, and where its records
    /// begin. At this place a packet holds another capture, as when somebody copies one. Its clock
    /// is `ahead` seconds ahead, and its last record is an hour later.
    fn capture_in_a_capture(mebibytes: usize, ahead: u32) -> (Vec<u8>, Vec<u64>) {
        let mut pcap = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            pcap.extend_from_slice(&word.to_le_bytes());
        }
        let mut begins = Vec::new();
        let mut second = 1_700_000_000;
        let mut is_copied = false;
        while pcap.len() < 17 << 20 {
            begins.push(pcap.len() as u64);
            if !is_copied && pcap.len() > (mebibytes << 20) - 10_000 {
                is_copied = true;
                let mut copy = Vec::new();
                while copy.len() < 40_000 {
                    put(&mut copy, second + ahead, &[0; 84]);
                }
                put(&mut copy, second + ahead + 3600, &[0; 84]);
                put(&mut pcap, second, &copy);
            } else {
                put(&mut pcap, second, &[0; 1000]);
            }
            second += 1;
        }
        (pcap, begins)
    }

    #[test]
    fn a_packet_that_holds_a_capture_is_no_place_to_begin() {
        let (pcap, begins) = capture_in_a_capture(8, 0);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &pcap).unwrap();
        let none = StopFlag::default();
        let mut reader = Capture::open_until(file.path(), InputFormat::Auto, &none)
            .unwrap()
            .segments(LEAST_STEP)
            .unwrap()
            .reader();
        let is_begin = |offset: u64| begins.binary_search(&offset).is_ok();
        for number in 0..17 {
            let guess = reader.enter(number, None).unwrap();
            assert_eq!(is_begin(guess), number != 8, "segment {number}: {guess}");
        }
        let second = |mebibytes: u64| {
            let place = begins.partition_point(|&begin| begin < mebibytes << 20);
            1_700_000_000 + place as i64
        };
        for mebibytes in [5, 8, 11] {
            let from = (second(mebibytes) + 60) * SECOND;
            let part = part_in_time(file.path(), InputFormat::Auto, &(from..i64::MAX), &none);
            // Behind a wrong guess the file is read from its begin, and not at all as if part of it
            // were unread.
            let begin = part.map_or(FIRST_RECORD, |part| part.bytes.start);
            assert!(is_begin(begin), "{mebibytes} MiB: {begin} is inside a packet");
            assert_eq!(begin == FIRST_RECORD, mebibytes == 8, "{mebibytes} MiB: {begin}");
        }
    }

    #[test]
    fn a_packet_that_holds_a_capture_is_no_place_to_end() {
        let (pcap, begins) = capture_in_a_capture(16, 1500);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &pcap).unwrap();
        for (mebibytes, is_read_to_its_end) in [(12, false), (16, true)] {
            let place = begins.partition_point(|&begin| begin < mebibytes << 20);
            let to = (1_700_000_000 + place as i64 + 300) * SECOND;
            let range = to - 60 * SECOND..to;
            let part =
                part_in_time(file.path(), InputFormat::Auto, &range, &StopFlag::default()).unwrap();
            let end = part.bytes.end;
            assert_eq!(end == u64::MAX, is_read_to_its_end, "{mebibytes} MiB: {end}");
            assert!(is_read_to_its_end || begins.binary_search(&end).is_ok(), "{end}");
        }
    }
}
