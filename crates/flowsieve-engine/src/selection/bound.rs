//! The ends of a range of time, absolute or relative to the captures.

use super::Selection;
use crate::trace::{Capture, InputFormat, Source, StopFlag};
use std::path::Path;

/// A boundary of a range of time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeBound {
    /// A time in nanoseconds since the epoch.
    At(i64),
    /// Nanoseconds after the first packet of the captures.
    AfterStart(i64),
    /// Nanoseconds before the last packet of the captures.
    BeforeEnd(i64),
}

impl TimeBound {
    /// The time, if it is not relative to captures.
    pub(crate) const fn time_ns(self) -> Option<i64> {
        match self {
            Self::At(time_ns) => Some(time_ns),
            Self::AfterStart(_) | Self::BeforeEnd(_) => None,
        }
    }
}

/// Why a range of time cannot be had.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TimeRangeError {
    /// It ends before it begins.
    #[error("no packet comes from --from on and before --to; --to needs the later time")]
    Empty,
    /// The end of a stream is not known before it is there.
    #[error(
        "the end of a stream is not known while it is read; a time before the end needs files, and +90s counts from the beginning"
    )]
    EndOfStream,
    /// Streams cannot be opened for a look.
    #[error(
        "a time relative to the beginning needs files, or one stream alone; name a date and time, or epoch seconds"
    )]
    SeveralStreams,
}

#[doc(hidden)]
impl Selection {
    /// Replaces times that are relative to these captures. Their beginning
    /// is the earliest of their first packets, and their end the latest of their last ones;
    /// captures that cannot be read do not count. A time after the beginning of a stream stays as
    /// it is: it holds from the first packet on.
    ///
    /// For the end compressed and pcapng files are read once; of a plain pcap file the last
    /// mebibyte.
    ///
    /// # Errors
    ///
    /// The times of a stream are needed, or the range ends before it begins.
    pub fn resolved(
        &self,
        sources: &[Source],
        format: InputFormat,
        stop: &StopFlag,
    ) -> Result<Self, TimeRangeError> {
        let bounds = [self.from, self.to];
        if let [Some(TimeBound::At(from)), Some(TimeBound::At(to))] = bounds
            && from >= to
        {
            return Err(TimeRangeError::Empty);
        }
        let has = |is: fn(&TimeBound) -> bool| bounds.iter().flatten().any(is);
        let from_start = has(|bound| matches!(bound, TimeBound::AfterStart(_)));
        let from_end = has(|bound| matches!(bound, TimeBound::BeforeEnd(_)));
        let streams = sources.iter().any(|source| !source.is_readable_twice());
        if from_end && streams {
            return Err(TimeRangeError::EndOfStream);
        }
        if from_start && streams && sources.len() > 1 {
            return Err(TimeRangeError::SeveralStreams);
        }
        let paths = || sources.iter().map(Source::path);
        let start = (from_start && !streams)
            .then(|| paths().filter_map(|path| first(path, format, stop)).min())
            .flatten();
        let end =
            from_end.then(|| paths().filter_map(|path| last(path, format, stop)).max()).flatten();
        let resolve = |bound: TimeBound| match bound {
            TimeBound::At(_) => bound,
            // Where there are no packets any time will do.
            TimeBound::AfterStart(_) if streams => bound,
            TimeBound::AfterStart(after) => TimeBound::At(start.unwrap_or(0).saturating_add(after)),
            TimeBound::BeforeEnd(before) => TimeBound::At(end.unwrap_or(0).saturating_sub(before)),
        };
        Ok(Self { from: self.from.map(resolve), to: self.to.map(resolve), ..self.clone() })
    }

    /// Returns whether no time in it is relative to captures.
    pub fn is_resolved(&self) -> bool {
        let mut bounds = [self.from, self.to].into_iter().flatten();
        bounds.all(|bound| bound.time_ns().is_some())
    }
}

fn first(path: &Path, format: InputFormat, stop: &StopFlag) -> Option<i64> {
    Capture::open_until(path, format, stop).ok()?.first_time_ns().ok()?
}

/// Bytes at the end of a plain pcap file in which its last packet is looked for.
const END_BYTES: u64 = 1 << 20;

fn last(path: &Path, format: InputFormat, stop: &StopFlag) -> Option<i64> {
    let bytes = std::fs::metadata(path).ok()?.len();
    if bytes > 4 * END_BYTES && format != InputFormat::Tsh {
        let end = bytes - END_BYTES..u64::MAX;
        if let Ok(Some(range)) = Capture::open_range(path, end, None, stop)
            && let (Some(last), true) = last_of(range.capture)
        {
            return Some(last);
        }
    }
    last_of(Capture::open_until(path, format, stop).ok()?).0
}

/// Time of the last packet, and whether the capture is whole.
fn last_of(mut capture: Capture) -> (Option<i64>, bool) {
    let mut latest = None;
    loop {
        match capture.next_batch() {
            Ok(Some(batch)) => latest = batch.times_ns().next_back().or(latest),
            end => return (latest, end.is_ok()),
        }
    }
}
