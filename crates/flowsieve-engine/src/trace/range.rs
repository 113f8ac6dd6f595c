//! The records of a plain pcap file that begin in a range of its bytes, read by whoever has these
//! bytes.
//!
//! Where the first of them begins is a guess, as in [`super::segments`]: it is right if the range
//! before ends exactly there, and else the range has to be read again from where that one ended.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::capture::{Capture, CountedReader, InputFormat};
use super::error::{Fault, TraceError};
use super::segments::{BYTES_TO_LOOK_AT, Segments};
use super::stop::{StopFlag, Stoppable};

/// Where the first record of a range is known to begin.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RangeStart {
    /// Its offset in the file.
    pub offset: u64,
    /// Packets before it, for the numbers in errors.
    pub packets: u64,
}

/// A capture that yields the packets of a range, and where it was entered.
#[derive(Debug)]
pub struct CaptureRange {
    /// Yields the packets whose records begin in the range; [`Capture::offset`] is then where it
    /// ended.
    pub capture: Capture,
    /// Offset of the first record; none if no place looked like one, and then there are no packets.
    pub entered: Option<u64>,
}

impl Capture {
    /// Whether parts of the file can be read on their own: it is plain pcap.
    #[doc(hidden)]
    pub fn has_ranges(&self) -> bool {
        self.enterable().is_some()
    }

    /// A range of the file at `path`; none if it [has none](Self::has_ranges).
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
        let refused = |error| Fault::from_io(error, range.start).in_file(path);
        let mut file = File::open(path).map_err(refused)?;
        let from = Self::range_begin(&range, start);
        file.seek(SeekFrom::Start(from)).map_err(refused)?;
        let source = Box::new(Stoppable::new(file, stop.clone()));
        Ok(whole.range(source, range, start))
    }

    /// A range of this capture, of which only the head has to be at hand. `source` gives the bytes
    /// of the file from [`Self::range_begin`] on. None if the capture [has no
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
        let known = start.is_some() || range.start <= Segments::BEGIN;
        let packets = start.map_or(0, |start| start.packets);
        capture.restart(begin, packets, range.end);
        let found = known || capture.step_to_boundary(BYTES_TO_LOOK_AT);
        if !found {
            // No record begins before 0.
            capture.restart(begin, packets, 0);
        }
        Some(CaptureRange { entered: found.then(|| capture.offset()), capture })
    }

    /// Offset of the first byte that is needed to read a range.
    #[doc(hidden)]
    pub fn range_begin(range: &Range<u64>, start: Option<RangeStart>) -> u64 {
        start.map_or(range.start.max(Segments::BEGIN), |start| start.offset)
    }
}
