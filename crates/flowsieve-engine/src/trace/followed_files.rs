//! Which files of a directory were read, and how far.
//!
//! A file is known by device and inode, and by what was read of it: a checksum of its decompressed
//! bytes, and the first of them. So it is recognised after it was renamed, linked, touched, copied
//! or compressed, and not taken for itself after it was begun anew. Only what was compared counts as
//! read.
//!
//! Some writers change the header when they close a file (the length of the section in pcapng), so
//! its bytes are left out of comparisons. A file that was damaged and is completed later is read
//! again, and the packets that were counted are passed over.

use super::capture::{Capture, is_capture};
use super::codecs;
use super::error::{TraceError, TraceErrorKind};
use super::follow::LEAST_BYTES;
use super::format::InputFormat;
use super::stop::{Ending, StopFlag};
use crate::hashing::Checksum;
use crate::untrusted::Shown;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// First decompressed bytes of a file that are kept: more than most headers, so that there are
/// packets among them.
const HEAD_BYTES: usize = 4096;

/// So many bytes are compared while a file is still being written to.
const EARLY_BYTES: u64 = 1 << 17;

/// First and last bytes of what was read that are kept as they are in the file.
const EDGE_BYTES: usize = 256;

/// First bytes that a writer may change when it closes the file: all of a pcap header, and in pcapng
/// up to the length of the section.
const HEADER_BYTES: usize = 24;

/// Files whose first bytes are kept, and files that are remembered though they are gone.
const MOST_KNOWN: usize = 4096;

/// Sentences that are kept.
const MOST_REMARKS: usize = 100;

/// A file is compared as a whole when it has not changed for this long.
const QUIET: Duration = Duration::from_millis(500);

/// Two changes of a file within this time may have the same time.
const CLOCK_STEP: Duration = Duration::from_millis(100);

/// Names of compressed files end in these.
const COMPRESSED: [&str; 5] = ["gz", "zst", "xz", "bz2", "lz4"];

/// Device and inode.
type FileId = (u64, u64);

/// Attributes that change when a file does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Version {
    length: u64,
    modified: Option<SystemTime>,
    /// Time of the last change, also of attributes where the system has it.
    changed: Option<SystemTime>,
}

#[cfg(unix)]
pub(super) fn identity(_: &Path, data: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino())
}

/// Where files have no number, the path stands for it.
#[cfg(not(unix))]
pub(super) fn identity(path: &Path, _: &Metadata) -> FileId {
    let mut checksum = Checksum::new();
    checksum.update(path.as_os_str().as_encoded_bytes());
    (0, checksum.value())
}

impl Version {
    pub(super) fn new(data: &Metadata) -> Self {
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            let seconds = u64::try_from(data.ctime()).unwrap_or(0);
            let nanoseconds = u32::try_from(data.ctime_nsec()).unwrap_or(0);
            SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
        };
        #[cfg(not(unix))]
        let changed = data.modified().ok();
        Self { length: data.len(), modified: data.modified().ok(), changed }
    }

    /// Whether another change would have another time.
    fn is_settled(&self) -> bool {
        let elapsed = self.changed.and_then(|changed| changed.elapsed().ok());
        elapsed.is_some_and(|elapsed| elapsed > CLOCK_STEP)
    }
}

/// A version of a file without anything left to read.
#[derive(Debug)]
struct Seen {
    version: Version,
    since: Instant,
    /// Another version would look different.
    is_settled: bool,
}

/// A version of a file that perhaps was read.
#[derive(Debug)]
struct Unclear {
    version: Version,
    since: Instant,
    /// All of it was compared.
    is_compared: bool,
    path: PathBuf,
}

/// How a file compares with what was read of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Edges {
    /// It has the first and the last bytes, except perhaps the header.
    Same,
    /// It has the last bytes where they were, and others at its beginning.
    Patched,
    Different,
}

/// How far a file was read, and what distinguishes it from others.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Bytes of the file that were read, with the first and the last of them.
    pub(super) raw: u64,
    first: Vec<u8>,
    last: Vec<u8>,
    /// Where in the file the next byte is read. Bytes before `raw` are read again.
    pub(super) raw_at: u64,
    /// Decompressed bytes, the checksum of those after the header, and the first of them.
    pub(super) bytes: u64,
    checksum: Checksum,
    head: Vec<u8>,
    /// Checksums at some places, with the bytes before them: they tell a file that ends earlier from a
    /// part of this one.
    marks: Vec<(u64, u128)>,
    at: u64,
    /// Packets or records that were handed out, and where the next one begins.
    pub(super) packets: u64,
    pub(super) offset: u64,
}

impl Progress {
    /// Notes bytes that were read from the file.
    pub(super) fn note_raw(&mut self, bytes: &[u8]) {
        self.raw_at += bytes.len() as u64;
        let before = self.raw;
        let Some(new) = new_bytes(bytes, self.raw_at, &mut self.raw) else { return };
        // Skips the part of a copy that was read from the other file.
        let begin = self.raw - new.len() as u64;
        if begin == self.first.len() as u64 {
            extend_to(&mut self.first, new, EDGE_BYTES);
        }
        if begin > before {
            self.last.clear();
        }
        self.last.extend_from_slice(&new[new.len().saturating_sub(EDGE_BYTES)..]);
        self.last.drain(..self.last.len().saturating_sub(EDGE_BYTES));
    }

    /// Notes bytes that came out of the decompressor.
    fn note(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        if let Some(new) = new_bytes(bytes, self.at, &mut self.bytes) {
            extend_to(&mut self.head, new, HEAD_BYTES);
            let mut start = self.at - new.len() as u64;
            for piece in pieces(new, start) {
                self.checksum.update(after_header(piece, start));
                start += piece.len() as u64;
                if start == mark_behind(start - 1) {
                    self.marks.push((start, self.checksum.wide()));
                }
            }
        }
    }

    /// Returns the digests of a known file at its marks, and at its end.
    fn points(&self, known: usize) -> impl Iterator<Item = Point> {
        let marks = self.marks.iter().map(|&(at, checksum)| (at, checksum, false));
        let all = marks.chain([(self.bytes, self.checksum.wide(), true)]);
        all.map(move |(at, checksum, is_end)| Point { at, known, checksum, is_end })
    }

    /// Notes packets that were handed out up to this offset.
    pub(super) fn note_packets(&mut self, packets: u64, offset: u64) {
        if packets > self.packets {
            (self.packets, self.offset) = (packets, offset);
        }
    }

    /// Goes on at this place of a file that is not compressed.
    pub(super) fn seek(&mut self, offset: u64) {
        (self.raw_at, self.at) = (offset, offset);
    }

    /// Compares the first and the last bytes that were read with those of the file.
    pub(super) fn compare_edges(&self, file: &mut File) -> io::Result<Edges> {
        let mut read_at = |offset: u64, expected: &[u8]| {
            let mut there = Vec::new();
            file.seek(SeekFrom::Start(offset))?;
            (&*file).take(expected.len() as u64).read_to_end(&mut there)?;
            Ok::<_, io::Error>(there)
        };
        let last_at = self.raw - self.last.len() as u64;
        let (first, last) = (read_at(0, &self.first)?, read_at(last_at, &self.last)?);
        if first == self.first && last == self.last {
            return Ok(Edges::Same);
        }
        let has_last = after_header(&last, last_at) == after_header(&self.last, last_at);
        // A header alone says nothing about packets.
        if !has_last || self.first.len() <= 2 * HEADER_BYTES {
            return Ok(Edges::Different);
        }
        Ok(if after_header(&first, 0) == after_header(&self.first, 0) {
            Edges::Same
        } else if self.raw >= 2 * EDGE_BYTES as u64 {
            Edges::Patched
        } else {
            Edges::Different
        })
    }

    /// Whether these first bytes of a file are the `known` ones, except perhaps the header.
    fn is_head(known: &[u8], head: &[u8]) -> bool {
        let common = known.len().min(head.len());
        let from = if common > HEADER_BYTES { HEADER_BYTES } else { 0 };
        common > 0 && known[from..common] == head[from..common]
    }

    /// Returns the progress for reading another file with the same bytes.
    fn restarted(&self) -> Self {
        Self { raw: 0, raw_at: 0, first: Vec::new(), last: Vec::new(), at: 0, ..self.clone() }
    }
}

/// Returns those of `bytes`, which begin at this offset of a file, that are not its header.
fn after_header(bytes: &[u8], offset: u64) -> &[u8] {
    let before = usize::try_from(offset).unwrap_or(usize::MAX);
    &bytes[HEADER_BYTES.saturating_sub(before).min(bytes.len())..]
}

/// Returns the next place behind this one at which a checksum is kept: the same places in all files,
/// at most an eighth of the bytes before them apart, from the end of the head on.
fn mark_behind(at: u64) -> u64 {
    let at = at.max(HEAD_BYTES as u64);
    let step = (at + 1).next_power_of_two() / 16;
    (at / step + 1) * step
}

/// Divides bytes that begin at this offset where marks are.
fn pieces(mut bytes: &[u8], mut start: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let room = usize::try_from(mark_behind(start) - start).unwrap_or(usize::MAX);
        let piece = bytes.split_off(..room.min(bytes.len()))?;
        start += piece.len() as u64;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

/// Returns those of `bytes`, which end at `at`, that are not among the first `known`, and adds their
/// number to it.
fn new_bytes<'a>(bytes: &'a [u8], at: u64, known: &mut u64) -> Option<&'a [u8]> {
    let new = usize::try_from(at.checked_sub(*known)?).ok()?.min(bytes.len());
    *known = at;
    Some(&bytes[bytes.len() - new..]).filter(|new| !new.is_empty())
}

fn extend_to(first: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let room = most.saturating_sub(first.len()).min(bytes.len());
    first.extend_from_slice(&bytes[..room]);
}

/// The progress of a file, noted by its reader and by its decompressor.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedProgress(Arc<Mutex<Progress>>);

impl SharedProgress {
    pub(super) fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the decompressed bytes that are read of a file.
pub(super) struct Noting {
    pub(super) source: Box<dyn Read + Send>,
    pub(super) progress: SharedProgress,
}

impl Read for Noting {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        self.progress.lock().note(&target[..count]);
        Ok(count)
    }
}

/// The file that is read next.
pub(super) struct Next {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) progress: SharedProgress,
}

/// A file that was read.
#[derive(Debug)]
struct Known {
    id: FileId,
    path: PathBuf,
    progress: SharedProgress,
    /// The version in which it was opened.
    version: Version,
    /// It was not read to its end and cannot be.
    is_damaged: bool,
    /// Why reading ended. The file may be continued or completed, and then it is no error.
    error: Option<TraceError>,
}

/// A file of the directory.
struct Entry {
    path: PathBuf,
    id: FileId,
    version: Version,
}

/// The files of a directory.
#[derive(Debug, Default)]
pub(super) struct FollowedFiles {
    /// In the order in which they were read last.
    known: Vec<Known>,
    /// The last of them is being read.
    is_open: bool,
    seen: HashMap<FileId, Seen>,
    unclear: HashMap<FileId, Unclear>,
    /// Files that were not read.
    unread: HashMap<FileId, PathBuf>,
    /// Files whose header is not complete yet, with the error.
    headless: HashMap<FileId, (PathBuf, String)>,
    /// Files that could not be read when they were looked at, with the bytes that they had then.
    unreadable: Vec<(FileId, u64, TraceError)>,
    /// Files, or the directory, that could not be looked at the last time.
    unreached: Vec<TraceError>,
    remarks: Vec<String>,
}

/// The decision about a file.
enum Verdict {
    /// Nothing: it is no capture, or all of it was read.
    Nothing,
    /// It may become clear later.
    Later,
    /// It cannot be read.
    Unreadable(TraceError),
    /// It was not read.
    Read,
    /// The known file at this place was read up to some packet, and this one continues it.
    Continue { known: usize, file: Continued },
}

/// The known files that begin with the same bytes as another one.
#[derive(Default)]
struct Alike {
    /// The places up to which they were read, in order.
    points: Vec<Point>,
    /// One of them has more bytes.
    is_shorter: bool,
    /// The last of them that is damaged.
    damaged: Option<usize>,
}

/// The file that continues one that was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Continued {
    /// It is the same file.
    Itself,
    /// Another file begins with the same bytes.
    Copy,
    /// The file was damaged, and has other bytes now behind the packets that were read.
    Completed,
}

impl FollowedFiles {
    /// Notes that the file opened last is not read any more. If its end was not reached, it is
    /// damaged.
    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(known) = self.known.last_mut()
        {
            known.is_damaged = true;
        }
    }

    /// Notes that the open file was read to its end. If it is still in the version in which it was,
    /// nothing is left to be read; otherwise all of it is compared.
    pub(super) fn end(&mut self, version: Option<Version>) {
        self.is_open = false;
        let Some(known) = self.known.last() else { return };
        let raw = known.progress.lock().raw;
        if let Some(version) = version.filter(|version| version.length == raw) {
            self.see(known.id, version);
        }
    }

    /// Notes that the open file was begun anew.
    pub(super) fn end_anew(&mut self) {
        self.is_open = false;
        if let Some(known) = self.known.last() {
            let (path, raw) = (known.path.shown(), known.progress.lock().raw);
            self.remark(format!(
                "{path}: it was begun anew while it was read; what may have followed its first {raw} bytes is not counted"
            ));
        }
    }

    /// Keeps the error of the last file, which may be continued or completed. Returns it if there is
    /// no file.
    pub(super) fn postpone(&mut self, error: TraceError) -> Option<TraceError> {
        let Some(known) = self.known.last_mut() else { return Some(error) };
        known.error = Some(error);
        None
    }

    /// Returns the first error of a file that was not continued, and remarks on others and on what
    /// of the directory was left out.
    pub(super) fn finish(
        &mut self,
        directory: &Path,
        format: InputFormat,
    ) -> (Option<TraceError>, Vec<String>) {
        for Unclear { path, .. } in std::mem::take(&mut self.unclear).into_values() {
            // A header alone has nothing that could be missing.
            let capture = Capture::open(&path, format);
            if capture.is_ok_and(|mut capture| matches!(capture.first_time_ns(), Ok(Some(_)))) {
                self.remark(format!(
                    "{}: not read, because it begins like a file that was read, as a copy does that is being written",
                    path.shown()
                ));
            }
        }
        for (path, error) in std::mem::take(&mut self.headless).into_values() {
            let is_copy = |known: &Known| is_compressed_from(&path, &known.path);
            if !self.known.iter().any(is_copy) {
                self.remark(format!("{error}; it is not counted"));
            }
        }
        let (.., mut left_out) = list(directory).unwrap_or_default();
        left_out.retain(|path| {
            let is_input = || is_named_capture(path) || is_capture(path, format).unwrap_or(true);
            path.is_dir() || path.exists() && is_input()
        });
        left_out.sort_unstable();
        if let Some(first) = left_out.first() {
            self.remark(format!(
                "{}: not read; directories, pipes, hidden files and files of interrupted runs in a followed directory are left out ({} here); name those that you want read",
                first.shown(),
                left_out.len()
            ));
        }
        let known = self.known.iter_mut().filter_map(|known| known.error.take());
        let unreadable = self.unreadable.drain(..).map(|(_, _, error)| error);
        let unread = unreadable.chain(self.unreached.drain(..));
        let mut errors = known.chain(unread);
        let first = errors.next();
        let others: Vec<String> = errors.map(|error| error.to_string()).collect();
        for error in others {
            self.remark(error);
        }
        (first, std::mem::take(&mut self.remarks))
    }

    /// Notes that the open file has another beginning than the one that was read.
    pub(super) fn remark_open_patched(&mut self) {
        if let Some(path) = self.known.last().map(|known| known.path.clone()) {
            self.remark_patched(&path);
        }
    }

    fn remark_patched(&mut self, path: &Path) {
        self.remark(format!(
            "{}: its first bytes have changed since they were read; it is not counted again",
            path.shown()
        ));
    }

    fn remark(&mut self, sentence: String) {
        if self.remarks.len() < MOST_REMARKS && !self.remarks.contains(&sentence) {
            self.remarks.push(sentence);
        }
    }

    /// Returns the file that was written first of those that have something to read, except the one
    /// that is open. While one is open, none is taken.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub(super) fn look(
        &mut self,
        directory: &Path,
        format: InputFormat,
        stop: &StopFlag,
    ) -> io::Result<Option<Next>> {
        let (entries, unreached, _) = match list(directory) {
            Ok(listed) => listed,
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.unreached = vec![TraceErrorKind::Io(copy).in_file(directory)];
                return Err(error);
            }
        };
        self.unreached = unreached;
        self.forget(&entries);
        let open = self.known.last().filter(|_| self.is_open).map(|known| known.id);
        let mut next = None;
        for entry in &entries {
            if Some(entry.id) == open
                && let Some(known) = self.known.last_mut()
            {
                known.path.clone_from(&entry.path);
                continue;
            }
            if self.is_seen(entry) {
                continue;
            }
            if next.is_some() {
                self.unread.entry(entry.id).or_insert_with(|| entry.path.clone());
                continue;
            }
            match self.examine(entry, &entries, format, stop) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.note_unreadable(entry, TraceErrorKind::Io(error).in_file(&entry.path));
                }
                Ok(Verdict::Unreadable(error)) => self.note_unreadable(entry, error),
                Ok(Verdict::Nothing) => {
                    self.note_readable(entry, entry.version.length);
                    self.see(entry.id, entry.version.clone());
                }
                Ok(Verdict::Later) => {}
                Ok(verdict) => {
                    self.unread.insert(entry.id, entry.path.clone());
                    next = Some((entry, verdict));
                }
            }
        }
        let Some((entry, verdict)) = next else { return Ok(None) };
        let file = match File::open(&entry.path) {
            Ok(file) if identity(&entry.path, &file.metadata()?) == entry.id => file,
            // It was replaced meanwhile.
            _ => return Ok(None),
        };
        let progress = match verdict {
            Verdict::Continue { known, file } => self.continued(entry, known, file),
            _ => Progress::default(),
        };
        let progress = SharedProgress(Arc::new(Mutex::new(progress)));
        if open.is_none() {
            self.note_opened(entry, &verdict, &progress);
        }
        Ok(Some(Next { path: entry.path.clone(), file, progress }))
    }

    /// Returns how far the file is read that continues a known one.
    fn continued(&mut self, entry: &Entry, known: usize, file: Continued) -> Progress {
        let before = self.known[known].progress.lock().clone();
        match file {
            Continued::Itself => Progress { raw_at: 0, at: 0, ..before },
            Continued::Copy => before.restarted(),
            Continued::Completed => {
                self.remark(format!(
                    "{}: it was damaged when it was read, and has changed since; its first {} packets are not counted again",
                    entry.path.shown(),
                    before.packets
                ));
                let (packets, offset) = (before.packets, before.offset);
                Progress { packets, offset, ..Progress::default() }
            }
        }
    }

    /// Notes that a file is read from now on.
    fn note_opened(&mut self, entry: &Entry, verdict: &Verdict, progress: &SharedProgress) {
        if let &Verdict::Continue { known, file } = verdict {
            self.note_readable(entry, entry.version.length);
            self.known[known].error = None;
            if file != Continued::Copy || self.known[known].id == entry.id {
                self.known.remove(known);
            }
        } else {
            self.note_begun(entry);
        }
        self.unread.remove(&entry.id);
        self.unclear.remove(&entry.id);
        self.headless.remove(&entry.id);
        self.known.push(Known {
            id: entry.id,
            version: entry.version.clone(),
            path: entry.path.clone(),
            progress: progress.clone(),
            is_damaged: false,
            error: None,
        });
        self.is_open = true;
    }

    /// Notes that a file cannot be read, unless that is known. It is tried again when it changes.
    fn note_unreadable(&mut self, entry: &Entry, error: TraceError) {
        // A file that is no capture has no packets to lose.
        let is_refused = matches!(error.kind, TraceErrorKind::Io(_));
        let (id, bytes) = (entry.id, if is_refused { entry.version.length } else { 0 });
        let is_said = self.known.iter().any(|known| known.id == id && known.error.is_some());
        if let Some((_, most, _)) = self.unreadable.iter_mut().find(|(other, ..)| *other == id) {
            *most = bytes.max(*most);
        } else if !is_said && self.unreadable.len() < MOST_REMARKS {
            self.unreadable.push((id, bytes, error));
        }
        self.see(id, entry.version.clone());
    }

    /// Drops the error of a file that can be read now, unless it had more than these bytes when it
    /// could not: then some are lost.
    fn note_readable(&mut self, entry: &Entry, bytes: u64) {
        self.unreadable.retain(|&(id, most, _)| id != entry.id || most > bytes);
    }

    /// Notes that a file is read from its beginning.
    fn note_begun(&mut self, entry: &Entry) {
        // If it was begun anew, what was not read by then is lost.
        let of_file = self.known.iter().rfind(|known| known.id == entry.id);
        let read = of_file.map(|known| known.progress.lock().raw);
        self.note_readable(entry, read.unwrap_or(entry.version.length));
        // Nothing was counted of a file that could not be opened before.
        self.known.retain(|known| {
            known.id != entry.id
                || known.progress.lock().packets > 0
                || known.version.length > entry.version.length
        });
    }

    /// Whether nothing of a file is left to be read, by its version alone.
    fn is_seen(&self, entry: &Entry) -> bool {
        let seen = self.seen.get(&entry.id);
        seen.is_some_and(|seen| seen.is_settled && seen.version == entry.version)
    }

    /// Notes that nothing of a file is left to be read in this version.
    fn see(&mut self, id: FileId, version: Version) {
        self.unread.remove(&id);
        self.unclear.remove(&id);
        self.headless.remove(&id);
        let before = self.seen.remove(&id).filter(|seen| seen.version == version);
        let since = before.map_or_else(Instant::now, |seen| seen.since);
        // The clock of the files may be another one.
        let is_settled = version.is_settled() || since.elapsed() >= QUIET;
        self.seen.insert(id, Seen { version, since, is_settled });
    }

    /// Whether nothing is left to be read in any file but this many unclear ones.
    #[cfg(test)]
    pub(super) fn is_settled(&self, directory: &Path, unclear: usize) -> bool {
        let open = self.known.last().filter(|_| self.is_open);
        let is_open = |entry: &Entry| {
            open.is_some_and(|open| {
                open.id == entry.id && open.progress.lock().raw == entry.version.length
            })
        };
        let (entries, ..) = list(directory).unwrap_or_default();
        let unsettled = entries.iter().filter(|entry| !self.is_seen(entry) && !is_open(entry));
        let compared = self.unclear.values().filter(|unclear| unclear.is_compared);
        unsettled.count() == unclear && compared.count() == unclear
    }

    /// Forgets what is gone, and says so of what was not read.
    fn forget(&mut self, entries: &[Entry]) {
        let ids: HashSet<FileId> = entries.iter().map(|entry| entry.id).collect();
        let is_there = |id: &FileId| ids.contains(id);
        self.seen.retain(|id, _| is_there(id));
        self.unclear.retain(|id, _| is_there(id));
        self.headless.retain(|id, _| is_there(id));
        let gone: Vec<FileId> = self.unread.keys().filter(|id| !is_there(id)).copied().collect();
        for id in gone {
            let path = self.unread.remove(&id).unwrap_or_default();
            let is_compressed = entries.iter().any(|entry| is_compressed_from(&entry.path, &path));
            if !is_compressed {
                self.remark(format!("{}: it was gone before it was read", path.shown()));
            }
        }
        let old = self.known.len().saturating_sub(MOST_KNOWN);
        for known in &mut self.known[..old] {
            let mut progress = known.progress.lock();
            (progress.head, progress.marks) = <(Vec<u8>, Vec<_>)>::default();
        }
        let mut number = 0;
        self.known.retain(|known| {
            number += 1;
            number > old || is_there(&known.id) || known.error.is_some()
        });
        // Another file may get its inode.
        let gone = self.unreadable.iter_mut().filter(|(id, ..)| !is_there(id));
        gone.for_each(|(_, most, _)| *most = u64::MAX);
    }

    /// Finds out what of a file was read.
    fn examine(
        &mut self,
        entry: &Entry,
        entries: &[Entry],
        format: InputFormat,
        stop: &StopFlag,
    ) -> io::Result<Verdict> {
        let open = || File::open(&entry.path);
        let bytes = || -> io::Result<_> {
            let file = Box::new(Ending::new(open()?, stop.clone()));
            Ok(codecs::decompressor(file).1)
        };
        // Files whose first bytes are the same may have more in common.
        let mut head = Vec::new();
        // A file that ends too early, or is damaged, has the bytes before that.
        drop(bytes()?.take(HEAD_BYTES as u64).read_to_end(&mut head));
        let known = self.known.iter().rposition(|known| known.id == entry.id);
        let mut is_outrun = false;
        if let Some(at) = known
            && let Some(verdict) = self.examine_known(at, entry, &mut open()?)?
        {
            is_outrun = matches!(verdict, Verdict::Continue { .. }) && self.is_outrun(at, &head);
            if !is_outrun {
                return Ok(verdict);
            }
        }
        if stop.is_set() {
            return Ok(Verdict::Later);
        }
        let Alike { mut points, mut is_shorter, damaged } = self.alike(&head);
        // Behind a header that is longer than the head, other packets may follow.
        if damaged.is_none()
            && !points.is_empty()
            && matches!(compare(bytes()?.take(EARLY_BYTES), &points), Compared::Different)
        {
            points.clear();
        }
        if !points.is_empty() || is_shorter {
            // A file that has outrun the others may grow all the time.
            let is_longest =
                is_outrun && points.last().is_some_and(|it| it.at < entry.version.length);
            let unclear = self.unclear(entry);
            let is_quiet = points.is_empty() || is_longest || unclear.since.elapsed() >= QUIET;
            if unclear.is_compared || !is_quiet {
                return Ok(Verdict::Later);
            }
            match compare(bytes()?, &points) {
                Compared::Shorter => is_shorter = true,
                Compared::Different => {
                    if let Some(known) = damaged {
                        return Ok(Verdict::Continue { known, file: Continued::Completed });
                    }
                }
                // All of it is in another file.
                Compared::Same { has_more: true, .. } if is_shorter => {}
                Compared::Same { known, has_more } => {
                    if has_more && self.known[known].can_continue() {
                        return Ok(Verdict::Continue { known, file: Continued::Copy });
                    }
                    self.say_copy(entry, entries, known);
                    return Ok(Verdict::Nothing);
                }
            }
        }
        if is_shorter {
            self.unclear(entry).is_compared = true;
            return Ok(Verdict::Later);
        }
        let capture = Capture::from_reader(&entry.path, Box::new(open()?), format);
        Ok(capture.err().map_or(Verdict::Read, |error| self.examine_error(entry, error)))
    }

    /// Finds the known files that begin with the same bytes.
    fn alike(&self, head: &[u8]) -> Alike {
        let mut alike = Alike::default();
        for (at, known) in self.known.iter().enumerate() {
            let progress = known.progress.lock();
            let mut known_head = &progress.head[..];
            if known.is_damaged {
                // Behind its packets there may be other bytes now.
                let packets = usize::try_from(progress.offset).unwrap_or(usize::MAX);
                known_head = &known_head[..packets.min(known_head.len())];
            }
            if progress.packets == 0 || !Progress::is_head(known_head, head) {
                continue;
            }
            if head.len() < known_head.len() {
                alike.is_shorter = true;
            } else {
                alike.points.extend(progress.points(at));
                alike.damaged = if known.is_damaged { Some(at) } else { alike.damaged };
            }
        }
        alike.points.sort_unstable();
        alike
    }

    /// Decides about a file that cannot be opened as a capture.
    fn examine_error(&mut self, entry: &Entry, error: TraceError) -> Verdict {
        let sentence = error.to_string();
        match error.kind {
            TraceErrorKind::Empty
            | TraceErrorKind::CutInHeader { .. }
            | TraceErrorKind::DamagedCompression { cut: true, .. } => {
                self.headless.insert(entry.id, (entry.path.clone(), sentence));
                Verdict::Later
            }
            TraceErrorKind::NotACapture { .. } if !is_named_capture(&entry.path) => {
                Verdict::Nothing
            }
            TraceErrorKind::Io(_) | TraceErrorKind::NotACapture { .. } => {
                Verdict::Unreadable(error)
            }
            _ => {
                self.remark(sentence);
                Verdict::Nothing
            }
        }
    }

    /// Compares a file with what was read of it under the same device and inode. Returns `None` if it
    /// was begun anew, or all of it has to be compared.
    fn examine_known(
        &mut self,
        at: usize,
        entry: &Entry,
        file: &mut File,
    ) -> io::Result<Option<Verdict>> {
        let known = &self.known[at];
        let (progress, length) = (known.progress.lock(), entry.version.length);
        let read = progress.raw;
        if read == 0 || length < read {
            return Ok(None);
        }
        let edges = progress.compare_edges(file)?;
        if edges == Edges::Different {
            return Ok(None);
        }
        let is_patched = edges == Edges::Patched;
        let has_no_head = length == read && progress.head.is_empty();
        let seen = self.seen.get(&entry.id);
        let is_seen = seen.is_some_and(|seen| seen.version == entry.version);
        let is_damaged =
            known.is_damaged && (known.version == entry.version || !known.may_be_read_on());
        let is_over = is_damaged || is_seen || has_no_head || (is_patched && length == read);
        drop(progress);
        if is_patched {
            self.remark_patched(&entry.path);
        }
        Ok(match length > read {
            _ if is_over => Some(Verdict::Nothing),
            true => Some(Verdict::Continue { known: at, file: Continued::Itself }),
            false => None,
        })
    }

    /// Whether another file has the bytes that were read of this one, and more of it was read: a copy
    /// that went on before this file did. `head` are the first bytes of this file.
    fn is_outrun(&self, at: usize, head: &[u8]) -> bool {
        let (bytes, last_mark) = {
            let progress = self.known[at].progress.lock();
            (progress.bytes, progress.marks.last().copied())
        };
        let others = self.known.iter().enumerate();
        let others = others.filter(|(other, known)| *other != at && !known.is_damaged);
        others.map(|(_, known)| known.progress.lock()).any(|other| {
            other.packets > 0
                && other.bytes > bytes
                && Progress::is_head(&other.head, head)
                && last_mark.is_none_or(|mark| other.marks.contains(&mark))
        })
    }

    /// Returns the entry of a file that perhaps was read.
    fn unclear(&mut self, entry: &Entry) -> &mut Unclear {
        let new = || Unclear {
            version: entry.version.clone(),
            since: Instant::now(),
            is_compared: false,
            path: entry.path.clone(),
        };
        let unclear = self.unclear.entry(entry.id).or_insert_with(new);
        if unclear.version != entry.version {
            *unclear = new();
        }
        unclear
    }

    /// Says that a file is not counted because its bytes were read, unless its name says as much.
    fn say_copy(&mut self, entry: &Entry, entries: &[Entry], known: usize) {
        let Known { id, path, .. } = &self.known[known];
        let (id, path) = (*id, path.clone());
        if id == entry.id {
            return self.known[known].path.clone_from(&entry.path);
        }
        let is_there = entries.iter().any(|other| other.id == id && other.path == path);
        let is_compressed =
            is_compressed_from(&entry.path, &path) || is_compressed_from(&path, &entry.path);
        if is_there && !is_compressed {
            self.remark(format!(
                "{}: it has the bytes of {} and is not counted again",
                entry.path.shown(),
                path.shown()
            ));
        }
    }
}

impl Known {
    /// Whether the system refused to read on, which may pass.
    fn may_be_read_on(&self) -> bool {
        self.error.as_ref().is_some_and(TraceError::may_pass)
    }

    /// Whether reading can continue: it ended where the file did, or where its compressed stream was
    /// damaged and now is not.
    fn can_continue(&self) -> bool {
        let kind = self.error.as_ref().map(|error| &error.kind);
        !self.is_damaged || matches!(kind, Some(TraceErrorKind::DamagedCompression { .. }))
    }
}

/// A place in a file up to which it was read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Point {
    /// Bytes before it.
    at: u64,
    /// The place of the file among those that are known.
    known: usize,
    checksum: u128,
    /// It was read up to here.
    is_end: bool,
}

/// The relation of a file to files that were read.
enum Compared {
    /// It ends before what was read of one of them, and is not different before.
    Shorter,
    Different,
    /// It begins with all that was read of one of them.
    Same {
        known: usize,
        has_more: bool,
    },
}

/// Compares bytes with those that were read up to these places, which are in order.
fn compare(mut bytes: impl Read, points: &[Point]) -> Compared {
    let (mut checksum, mut at) = (Checksum::new(), 0);
    let (mut same, mut different) = (None, HashSet::new());
    let mut buffer = vec![0; 1 << 16];
    for point in points {
        if different.contains(&point.known) {
            continue;
        }
        while at < point.at {
            let room = buffer.len().min(usize::try_from(point.at - at).unwrap_or(usize::MAX));
            match bytes.read(&mut buffer[..room]) {
                Ok(count) if count > 0 => {
                    checksum.update(after_header(&buffer[..count], at));
                    at += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Compared::Shorter,
            }
        }
        if checksum.wide() != point.checksum {
            different.insert(point.known);
        } else if point.is_end {
            same = Some(point);
        }
    }
    match same {
        Some(&Point { known, at: end, .. }) => {
            let mut has_more = || bytes.read(&mut buffer).is_ok_and(|count| count > 0);
            Compared::Same { known, has_more: at > end || has_more() }
        }
        None => Compared::Different,
    }
}

/// Returns whether this is what an interrupted run left, or hidden as files are while programs write or
/// copy them.
#[doc(hidden)]
pub fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.ends_with(".partial") || name.contains(".partial.")
}

/// Returns whether the name ends like that of a capture, compressed or not.
#[doc(hidden)]
pub fn is_named_capture(path: &Path) -> bool {
    let plain = if is_compressed(path) { path.file_stem().map_or(path, Path::new) } else { path };
    ends_in(plain, &["pcap", "pcapng", "cap", "erf"])
}

/// Returns whether the extension is that of a compressed file.
#[doc(hidden)]
pub fn is_compressed(path: &Path) -> bool {
    ends_in(path, &COMPRESSED)
}

fn ends_in(path: &Path, all: &[&str]) -> bool {
    let end = path.extension().and_then(OsStr::to_str);
    end.is_some_and(|end| all.iter().any(|other| end.eq_ignore_ascii_case(other)))
}

/// Lists the files of a directory that may be captures, each once, in the order in which they were
/// written; those that cannot be looked at; and what is not followed.
fn list(directory: &Path) -> io::Result<(Vec<Entry>, Vec<TraceError>, Vec<PathBuf>)> {
    let (mut entries, mut unreached, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if is_unfinished(&path) {
            left_out.push(path);
            continue;
        }
        let data = match fs::metadata(&path) {
            Ok(data) => data,
            // A file may be gone by now: a ring of captures drops the oldest.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => continue,
            Err(error) => {
                unreached.push(TraceErrorKind::Io(error).in_file(&path));
                continue;
            }
        };
        if !data.is_file() {
            left_out.push(path);
        } else if data.len() >= LEAST_BYTES {
            entries.push(Entry { id: identity(&path, &data), version: Version::new(&data), path });
        }
    }
    entries
        .sort_unstable_by(|a, b| (a.version.modified, &a.path).cmp(&(b.version.modified, &b.path)));
    let mut ids = HashSet::new();
    entries.retain(|entry| ids.insert(entry.id));
    Ok((entries, unreached, left_out))
}

/// Whether a file has the name of another one that was compressed.
fn is_compressed_from(path: &Path, other: &Path) -> bool {
    is_compressed(path) && path.file_stem() == other.file_name()
}
