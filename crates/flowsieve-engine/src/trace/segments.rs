//! A plain pcap file read at several places at once.
//!
//! A record is only found through the one before it, so a file has one place to begin. But a run of
//! plausible record headers in the middle gives away a boundary with next to no doubt; and the
//! doubt is gone when the reader of the part before arrives exactly there. Segments are parts of
//! equal length of the file; to a segment belong the records that begin in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::capture::{Capture, PlainFile};
use super::part::{FIRST_RECORD, FilePart};
use super::pcap::Pcap;
use super::select::Chooser;
use super::stop::{StopFlag, ended};

/// Bytes that are looked through for a boundary at the begin of a segment: a packet of the longest
/// common kind, and 16 records of usual length behind it.
pub(super) const BYTES_TO_LOOK_AT: usize = 128 * 1024;

/// Bytes read beyond the end of a segment at a time, for the record that reaches across it.
const BEYOND: u64 = 4096;

/// The whole segments of a file. What follows the last of them is read from where that ended.
pub(crate) struct Segments {
    path: PathBuf,
    file: Arc<File>,
    pcap: Pcap,
    bytes: u64,
    /// Number behind the last one. They are numbered from [`Self::first`] on.
    pub(crate) count: u64,
    stop: StopFlag,
    bytes_read: Arc<AtomicU64>,
    chooser: Option<Chooser>,
    part: Option<FilePart>,
}

impl Segments {
    /// Returns the number of the first one.
    pub(crate) fn first(&self) -> u64 {
        self.begin() / self.bytes
    }

    /// Returns the offset of the first record.
    pub(crate) fn begin(&self) -> u64 {
        let part = self.part.as_ref();
        part.map_or(FIRST_RECORD, |part| part.bytes.start)
    }

    /// Creates a reader of segments with its own buffer and its own count of excluded packets.
    pub(crate) fn reader(&self) -> SegmentReader {
        let place = Arc::new(Place::default());
        let source = FromPlace {
            file: Arc::clone(&self.file),
            place: Arc::clone(&place),
            stop: self.stop.clone(),
            bytes_read: Arc::clone(&self.bytes_read),
        };
        let bytes_read = Arc::clone(&self.bytes_read);
        let mut capture =
            Capture::of_pcap(&self.path, Box::new(source), self.pcap.clone(), bytes_read);
        capture.chooser = self.chooser.as_ref().map(|chooser| Box::new(chooser.again()));
        SegmentReader {
            left_out: capture.left_out(),
            capture,
            place,
            first: (self.first(), self.begin()),
            bytes: self.bytes,
        }
    }

    /// Counts the packets that were excluded from a segment.
    pub(crate) fn leave_out(&self, packets: u64) {
        if let Some(chooser) = &self.chooser {
            chooser.left_out.fetch_add(packets, Ordering::Relaxed);
        }
    }

    /// Opens the file from `offset` to its present end, behind `packets` others.
    pub(crate) fn rest(&self, offset: u64, packets: u64) -> Capture {
        let mut reader = self.reader();
        let mut before = packets;
        if let Some(chooser) = &self.chooser {
            before += chooser.left_out.load(Ordering::Relaxed);
            reader.capture.chooser = Some(Box::new(chooser.shared()));
        }
        let until = self.part.as_ref().map_or(u64::MAX, |part| part.bytes.end);
        reader.go_to(offset, before, until);
        reader.capture.part.clone_from(&self.part);
        reader.capture
    }
}

impl Capture {
    /// Returns segments of this many bytes that can be read in any order, if the capture is a plain
    /// pcap file, or a part of one, with several of them, and the system can read from any place.
    /// Call it before the first batch is read.
    pub(crate) fn segments(&self, bytes: u64) -> Option<Segments> {
        let PlainFile { file, stop, .. } = self.file.as_ref()?;
        let (pcap, part) = (self.enterable()?, self.part.as_ref());
        let length = file.metadata().ok()?.len();
        let end = part.map_or(length, |part| part.bytes.end.min(length));
        let segments = Segments {
            path: self.path().to_path_buf(),
            file: Arc::new(file.try_clone().ok()?),
            pcap: pcap.clone(),
            bytes,
            count: end / bytes,
            stop: stop.clone(),
            bytes_read: self.bytes_read(),
            chooser: self.chooser.as_deref().map(Chooser::shared),
            part: part.cloned(),
        };
        if cfg!(not(unix)) || segments.first() + 1 >= segments.count {
            return None;
        }
        // The bytes by which the file was recognised are read again.
        segments.bytes_read.store(segments.begin(), Ordering::Relaxed);
        Some(segments)
    }
}

/// Reads one segment after the other, in any order.
pub(crate) struct SegmentReader {
    /// Yields the packets of the segment entered.
    pub(crate) capture: Capture,
    left_out: Arc<AtomicU64>,
    place: Arc<Place>,
    /// Number of the first segment, and where its first record begins.
    first: (u64, u64),
    bytes: u64,
}

impl SegmentReader {
    /// Goes to the first record of a segment: to `exact` if that is known, or to where one seems to
    /// begin. Returns its offset; `None` if no place looks like one.
    pub(crate) fn enter(&mut self, number: u64, exact: Option<u64>) -> Option<u64> {
        let until = (number + 1) * self.bytes;
        let (first, begin) = self.first;
        let known = exact.or((number == first).then_some(begin));
        self.go_to(known.unwrap_or(number * self.bytes), 0, until);
        let found = known.is_some() || self.capture.step_to_boundary(BYTES_TO_LOOK_AT);
        found.then(|| self.capture.offset())
    }

    /// Returns the number of packets excluded since the last call.
    pub(crate) fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }

    fn go_to(&mut self, offset: u64, packets: u64, until: u64) {
        self.place.next.store(offset, Ordering::Relaxed);
        self.place.until.store(until, Ordering::Relaxed);
        self.capture.restart(offset, packets, until);
    }
}

/// The place at which a source continues, and up to which its bytes are wanted. Only one thread at
/// a time uses it.
#[derive(Default)]
struct Place {
    next: AtomicU64,
    until: AtomicU64,
}

struct FromPlace {
    file: Arc<File>,
    place: Arc<Place>,
    stop: StopFlag,
    bytes_read: Arc<AtomicU64>,
}

impl Read for FromPlace {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(ended());
        }
        let from = self.place.next.load(Ordering::Relaxed);
        let wanted = self.place.until.load(Ordering::Relaxed).saturating_sub(from);
        let room = usize::try_from(wanted.saturating_add(BEYOND)).unwrap_or(usize::MAX);
        let room = room.min(target.len());
        let count = read_at(&self.file, &mut target[..room], from)?;
        self.place.next.store(from + count as u64, Ordering::Relaxed);
        self.bytes_read.fetch_add(wanted.min(count as u64), Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(unix)]
fn read_at(file: &File, target: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, target, offset)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
