//! The records of a plain pcap file that begin in a range of its bytes.
//!
//! The place of the first one is a guess, as in [`super::segments`]: it is right if the range
//! before ends exactly there; otherwise the range has to be read again from there.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::capture::{Capture, CountedReader};
use super::error::{ReadError, TraceError};
use super::format::InputFormat;
use super::part::{FIRST_RECORD, FilePart};
use super::segments::BYTES_TO_LOOK_AT;
use super::stop::{StopFlag, Stoppable};

/// Known start of the first record of a range.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RangeStart {
    /// Its offset in the file.
    pub offset: u64,
    /// Packets before it, for the numbers in errors.
    pub packets: u64,
}

/// A capture that yields the packets of a range, and the place of the first one.
#[derive(Debug)]
pub struct CaptureRange {
    /// Yields the packets whose records begin in the range; [`Capture::offset`] is then where it
    /// ended.
    pub capture: Capture,
    /// Offset of the first record; `None` if no place looked like one, and then there are no
    /// packets.
    pub entered: Option<u64>,
}

impl Capture {
    /// Returns the number of packets before the part that is read.
    pub(super) fn packets_before(&self, part: &FilePart) -> u64 {
        let before = FIRST_RECORD..part.bytes.start;
        let Ok(Some(mut range)) = Self::open_range(self.path(), before, None, &StopFlag::default())
        else {
            return 0;
        };
        let mut packets = 0;
        while let Ok(Some(batch)) = range.capture.next_batch() {
            packets += batch.times_ns().count() as u64;
        }
        packets
    }

    /// Returns whether ranges of the file can be read: it is plain pcap.
    #[doc(hidden)]
    pub fn has_ranges(&self) -> bool {
        self.enterable().is_some()
    }

    /// Opens a range of the file at `path`; `None` if it [has no ranges](Self::has_ranges).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_range(
        path: &Path,
        range: Range<u64>,
        start: Option<RangeStart>,
        stop: &StopFlag,
    ) -> Result<Option<CaptureRange>, TraceError> {
        let whole = Self::open_until(path, InputFormat::Auto, stop)?;
        let refused = |error| ReadError::from_io(error, range.start).in_file(path);
        let mut file = File::open(path).map_err(refused)?;
        let from = Self::range_begin(&range, start);
        file.seek(SeekFrom::Start(from)).map_err(refused)?;
        let source = Box::new(Stoppable::new(file, stop.clone()));
        Ok(whole.range(source, range, start))
    }

    /// Opens a range of this capture, which needs only its head. `source` yields the bytes of the
    /// file from [`Self::range_begin`] on. Returns `None` if the capture [has no
    /// ranges](Self::has_ranges).
    #[doc(hidden)]
    pub fn range(
        &self,
        source: Box<dyn Read + Send>,
        range: Range<u64>,
        start: Option<RangeStart>,
    ) -> Option<CaptureRange> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let source = Box::new(CountedReader { source, count: Arc::clone(&bytes_read) });
        let pcap = self.enterable()?.clone();
        let mut capture = Self::of_pcap(self.path(), source, pcap, bytes_read);
        let begin = Self::range_begin(&range, start);
        let known = start.is_some() || range.start <= FIRST_RECORD;
        let packets = start.map_or(0, |start| start.packets);
        capture.restart(begin, packets, range.end);
        let found = known || capture.step_to_boundary(BYTES_TO_LOOK_AT);
        if !found {
            // No record begins before 0.
            capture.restart(begin, packets, 0);
        }
        Some(CaptureRange { entered: found.then(|| capture.offset()), capture })
    }

    /// Returns the offset of the first byte that is needed to read a range.
    #[doc(hidden)]
    pub fn range_begin(range: &Range<u64>, start: Option<RangeStart>) -> u64 {
        start.map_or(range.start.max(FIRST_RECORD), |start| start.offset)
    }
}
