//! The source of a capture: a file by its path, or any reader under a name.

use crate::untrusted::Shown;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::capture::Capture;
use super::error::{ReadError, TraceError};
use super::follow::Follow;
use super::format::InputFormat;
use super::part::FilePart;
use super::seek::part_in_time;
use super::select::Select;
use super::stop::{Ending, StopFlag};

/// A capture to be read: the file at a path (standard input, if that is `-`), or whatever a reader
/// gives.
///
/// A reader can be read once, by whichever clone is first.
#[derive(Clone)]
pub struct Source {
    path: PathBuf,
    origin: Origin,
    /// Selects its packets; `None` for all.
    select: Option<Arc<dyn Select>>,
    /// The part of the file that has them, if it is known.
    part: Option<FilePart>,
}

#[derive(Clone)]
enum Origin {
    File,
    Reader(Once),
    Followed(Follow),
}

/// A reader, until it is opened.
type Once = Arc<Mutex<Option<Box<dyn Read + Send>>>>;

impl Source {
    /// Creates a source from a reader; results and errors call it `name`. It need not be buffered.
    pub fn reader(name: impl Into<PathBuf>, reader: impl Read + Send + 'static) -> Self {
        let reader: Box<dyn Read + Send> = Box::new(reader);
        Self { origin: Origin::Reader(Arc::new(Mutex::new(Some(reader)))), ..Self::from(name) }
    }

    /// A capture that is still being written, or a directory into which captures are written one
    /// after the other: read until the run is ended.
    #[doc(hidden)]
    pub fn followed(path: impl Into<PathBuf>) -> Self {
        let source = Self::from(path);
        Self { origin: Origin::Followed(Follow::new(&source.path)), ..source }
    }

    /// Restricts it to selected packets.
    #[doc(hidden)]
    #[must_use]
    pub fn selected_by(mut self, select: Arc<dyn Select>) -> Self {
        self.select = Some(select);
        self
    }

    /// Restricts it to packets in this range of time: the rest of a file in order is not read.
    #[must_use]
    pub(crate) fn within_times(mut self, times_ns: &Range<i64>, format: InputFormat) -> Self {
        if self.is_readable_twice() {
            self.part = part_in_time(&self.path, format, times_ns, &StopFlag::default());
        }
        self
    }

    /// Returns the part of the file that is read, if not all of it is.
    pub(crate) fn part(&self) -> Option<&FilePart> {
        self.part.as_ref()
    }

    /// Returns its path, or name.
    #[doc(hidden)]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it can be closed and opened again: a pipe cannot. True of a missing file, which
    /// must not change how other inputs are read.
    #[doc(hidden)]
    pub fn is_readable_twice(&self) -> bool {
        matches!(self.origin, Origin::File)
            && self.path != Path::new("-")
            && fs::metadata(&self.path).map_or(true, |data| data.is_file() || data.is_dir())
    }

    /// Returns whether it can be opened again at its end, for another capture.
    pub(crate) fn has_more(&self) -> bool {
        matches!(&self.origin, Origin::Followed(follow) if follow.has_more())
    }

    /// Keeps the error of a followed file that may be continued; returns any other.
    pub(crate) fn postpone(&self, error: TraceError) -> Option<TraceError> {
        match &self.origin {
            Origin::Followed(follow) if follow.has_more() => follow.postpone(error),
            _ => Some(error),
        }
    }

    /// Returns, at the end of the run, the error of a followed file that was not continued, and
    /// remarks about uncertain files.
    pub(crate) fn finish(&self, format: InputFormat) -> (Option<TraceError>, Vec<String>) {
        match &self.origin {
            Origin::Followed(follow) => follow.finish(format),
            _ => (None, Vec::new()),
        }
    }

    /// Returns the time of its first wanted packet, in nanoseconds since the epoch. Opens it and
    /// reads up to there.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged before that packet.
    pub(crate) fn first_time_ns(&self, format: InputFormat) -> Result<Option<i64>, TraceError> {
        self.open(format, &StopFlag::default())?.first_time_ns()
    }

    /// Returns the remark for an input that was opened late because of the limit of open files.
    pub(crate) fn opened_late(&self, most_open: usize) -> String {
        format!(
            "{}, and perhaps more, was opened late, because only {most_open} captures may be open at once: packets may be out of order; raise `ulimit -n`, or name fewer captures",
            self.path.shown()
        )
    }

    /// Returns the time of the first packet, selected or not, in nanoseconds since the epoch; `None`
    /// if there is none, or it cannot be read.
    pub(crate) fn begins_ns(&self, format: InputFormat) -> Option<i64> {
        let all = Self { select: None, ..self.clone() };
        all.first_time_ns(format).ok()?
    }

    /// Opens it, as [`Capture::open_until`] does.
    ///
    /// # Errors
    /// As [`Capture::open`]; a reader was read already.
    #[doc(hidden)]
    pub fn open(&self, format: InputFormat, stop: &StopFlag) -> Result<Capture, TraceError> {
        let mut capture = self.open_whole(format, stop)?;
        if let Some(part) = &self.part {
            capture.read_part(part.clone());
        }
        if let Some(select) = &self.select {
            capture.select(Arc::clone(select));
        }
        Ok(capture)
    }

    fn open_whole(&self, format: InputFormat, stop: &StopFlag) -> Result<Capture, TraceError> {
        let reader = match &self.origin {
            Origin::File => return Capture::open_until(&self.path, format, stop),
            Origin::Followed(follow) => return follow.open(format, stop),
            Origin::Reader(reader) => reader,
        };
        let reader = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(reader) = reader else {
            let error = io::Error::other("this reader was read before, and can be read once");
            return Err(ReadError::from_io(error, 0).in_file(&self.path));
        };
        Capture::from_reader(&self.path, Box::new(Ending::new(reader, stop.clone())), format)
    }
}

impl<P: Into<PathBuf>> From<P> for Source {
    fn from(path: P) -> Self {
        Self { path: path.into(), origin: Origin::File, select: None, part: None }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.path, f)
    }
}
