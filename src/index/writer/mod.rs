//! Writing to an index: building, adding, dropping.

mod reading;

use super::catalog::{CaptureEntry, Catalog, MOST_PATH, Settings};
use super::disk;
use super::gather::{self, CaptureReading};
use super::journal::{Journal, NewFiles};
use super::layout::{CATALOG, JOURNAL, MARK, StoredFile, folder_to_be};
use super::nodes::Lock;
use super::segment_builder::{Changes, SegmentBuilder, rewrite};
use super::{IndexError, nodes, path_text};
use crate::selection::{SelectedPart, Selection};
use crate::trace::StopFlag;
use flowsieve_engine::internal::{Shown, Watch};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf, absolute};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Captures that follow each other faster than this are committed together, because each commit
/// writes the whole catalogue.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Default memory for the flows of a capture.
const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;

/// Least memory for the flows of a capture.
pub const LEAST_MEMORY_BYTES: u64 = 1 << 20;

/// Writes to an index. There is one writer at a time.
#[derive(Debug)]
pub struct IndexWriter {
    catalog: Catalog,
    /// The captures that are in the index or will be, by their numbers.
    known: BTreeMap<u64, KnownCapture>,
    /// Segments of the captures that were added since the last commit.
    fresh: Vec<SegmentBuilder>,
    /// Changes of captures that were there before.
    changes: Changes,
    /// Files that are perhaps not on the disk yet.
    files: NewFiles,
    /// The captures that were added with packets whose times are outside 1677 to 2262, and the
    /// number of these packets.
    #[doc(hidden)]
    pub times_out_of_range: Vec<(PathBuf, u64)>,
    /// The captures whose content was known, but of which the index holds other packets than were
    /// to be indexed, and which it holds.
    #[doc(hidden)]
    pub known_in_part: Vec<(PathBuf, SelectedPart)>,
    /// The first capture whose content the index has from another file, and that file.
    #[doc(hidden)]
    pub known_elsewhere: Option<(PathBuf, PathBuf)>,
    /// Whether there is something to commit.
    pending: bool,
    /// A commit failed, and this writer no longer knows what the index holds.
    failed: bool,
    /// Files of regions that no later catalogue names.
    leaving: Vec<StoredFile>,
    committed: Instant,
    /// Memory for the flows of a capture; with less, long flows are in more parts.
    #[doc(hidden)]
    pub memory_bytes: u64,
    /// The packets to index of captures that are added from now on. Times in it are absolute.
    #[doc(hidden)]
    pub selection: Selection,
}

/// A capture that is in the index or will be.
#[derive(Debug)]
struct KnownCapture {
    /// Its entry, without its regions.
    entry: CaptureEntry,
    /// The path without links on the way to it, once that was needed.
    place: OnceLock<PathBuf>,
    /// The files of its regions.
    files: Vec<StoredFile>,
}

/// Result of adding a capture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Added {
    /// It was indexed; perhaps up to a place where it is damaged.
    Indexed {
        /// Packets, or entries of a log.
        packets: u64,
        /// Regions.
        regions: usize,
        /// Why it could not be read to its end.
        damage: Option<String>,
    },
    /// Its content is in the index already.
    Known,
    /// A signal came, and nothing of it was indexed.
    Interrupted,
    /// It could not be read; a sentence.
    Unreadable(String),
}

impl IndexWriter {
    /// Makes an empty index, with its nodes in these folders, or in one within the archive if there
    /// are none.
    ///
    /// # Errors
    ///
    /// A folder has other files in it, and then nothing is made; or it cannot be written to.
    pub fn create(
        archive: &Path,
        settings: Settings,
        nodes: &[PathBuf],
    ) -> Result<Self, IndexError> {
        gather::check_memory()?;
        let (mut catalog, locks) = nodes::make(archive, settings, nodes)?;
        let journal = Journal::new(&catalog.archive);
        catalog.commit()?;
        Ok(Self::new(catalog, &[], locks, journal))
    }

    /// Opens an index for writing, and deletes what a killed writer left.
    ///
    /// # Errors
    ///
    /// There is no index, its catalogue is damaged or of another format, a node is not its own, or
    /// another process writes.
    pub fn open(archive: &Path) -> Result<Self, IndexError> {
        // A folder without an index gets no lock file.
        Catalog::load(archive)?;
        gather::check_memory()?;
        let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
        let mut locks = vec![nodes::lock(archive)?];
        let mut catalog = Catalog::load(archive)?;
        locks.extend(nodes::claim(&catalog)?);
        let captures = catalog.captures()?;
        let mut ids = HashSet::new();
        if !captures.iter().all(|entry| ids.insert(entry.id)) {
            let reason = "two captures have one number".into();
            return Err(IndexError::Catalog { path: archive.join(CATALOG), reason });
        }
        let of_segments = catalog.segments.iter().flat_map(StoredFile::of_segment);
        let of_captures = captures.iter().flat_map(StoredFile::of_capture);
        let journal = Journal::recover(&catalog, &of_segments.chain(of_captures).collect())?;
        catalog.next = catalog.next_free()?;
        Ok(Self::new(catalog, &captures, locks, journal))
    }

    fn new(
        catalog: Catalog,
        captures: &[CaptureEntry],
        locks: Vec<Lock>,
        journal: Journal,
    ) -> Self {
        Self {
            catalog,
            known: captures.iter().map(|entry| (entry.id, KnownCapture::new(entry))).collect(),
            fresh: Vec::new(),
            changes: Changes::default(),
            files: NewFiles::with_journal(journal, locks),
            times_out_of_range: Vec::new(),
            known_in_part: Vec::new(),
            known_elsewhere: None,
            pending: false,
            failed: false,
            leaving: Vec::new(),
            committed: Instant::now(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            selection: Selection::default(),
        }
    }

    /// Returns the number of captures in the index, with those that are not committed yet.
    #[doc(hidden)]
    pub fn captures(&self) -> usize {
        self.known.len()
    }

    /// Indexes a capture, unless its content is there already; it is read again if the system refused
    /// something when it was read. One that was indexed under this path with another content leaves.
    /// It is valid from some commit on, at the latest from
    /// [`IndexWriter::commit`].
    ///
    /// # Errors
    ///
    /// The index cannot be written.
    pub fn add(&mut self, path: &Path, watch: &dyn Watch) -> Result<Added, IndexError> {
        let unreadable = |error: IndexError| Ok(Added::Unreadable(error.to_string()));
        let path = match place_of(path) {
            Ok(path) => path,
            Err(error) => return unreadable(IndexError::io(path)(error)),
        };
        if let Some(problem) = cannot_be_indexed(&path) {
            return Ok(Added::Unreadable(problem));
        }
        let state = disk::state_of(&path);
        let (mut before, mut old) = (None, None);
        if self.may_know(&path) {
            match disk::content_of(&path, &watch.stop()) {
                Ok(None) => return Ok(Added::Interrupted),
                Ok(Some(content)) => {
                    old = self.to_read_again(&content.0);
                    if self.knows(&content.0, &path, old, watch)? {
                        return Ok(Added::Known);
                    }
                    before = Some(content);
                }
                Err(error) => return unreadable(error),
            }
        }
        self.index_capture(path, state, &before, old, watch)
    }

    /// Returns the capture of this content if reading it failed for a reason that may have passed.
    fn to_read_again(&self, digest: &str) -> Option<u64> {
        let part = self.part();
        let mut known = self.known.iter();
        let found = known.find(|(_, known)| known.entry.may_pass && known.has(digest));
        found.filter(|(_, known)| known.entry.part == part).map(|(&id, _)| id)
    }

    /// Returns the selection of packets to index, if not all are.
    fn part(&self) -> Option<SelectedPart> {
        (!self.selection.is_everything()).then(|| SelectedPart::from(&self.selection))
    }

    /// Returns whether the index may have the content of this file: it has a capture of the same
    /// length.
    fn may_know(&self, path: &Path) -> bool {
        let data = File::open(path).and_then(|file| file.metadata());
        data.map_or(true, |data| {
            let mut known = self.known.values();
            !data.is_file() || known.any(|known| known.entry.bytes == data.len())
        })
    }

    /// Returns whether a capture of this content is in the index. If its file has another content
    /// now, or is gone, it is in this one from now on: what is in its place must not take its place
    /// in the index. Removes the earlier entry of this path.
    fn knows(
        &mut self,
        digest: &str,
        path: &Path,
        but: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<bool, IndexError> {
        let wanted = self.part();
        let mut known = self.known.iter_mut();
        let Some((&id, known)) = known.find(|(id, known)| known.has(digest) && but != Some(**id))
        else {
            return Ok(false);
        };
        let held = known.entry.part.clone().filter(|held| Some(held) != wanted.as_ref());
        self.known_in_part.extend(held.map(|part| (path.to_owned(), part)));
        if !known.is_at(path) && known.is_in_its_file(&watch.stop()) {
            self.known_elsewhere.get_or_insert((path.to_owned(), known.entry.path.clone()));
        } else if !known.is_at(path) {
            path.clone_into(&mut known.entry.path);
            known.place = OnceLock::new();
            let mut fresh = self.fresh.iter_mut().flat_map(|builder| &mut builder.captures);
            match fresh.find(|entry| entry.id == id) {
                Some(entry) => path.clone_into(&mut entry.path),
                None => drop(self.changes.moved.insert(id, path.to_owned())),
            }
            self.pending = true;
        }
        self.remove_where(|id, known| but != Some(id) && known.is_at(path) && !known.has(digest))?;
        Ok(true)
    }

    /// Writes these segments again at the next commit, with filters from the records.
    pub(super) fn rebuild(&mut self, segments: &[u64]) {
        self.changes.rebuilt.extend(segments);
        self.pending |= !segments.is_empty();
    }

    /// Removes the captures with this path, or below this folder; returns their number.
    ///
    /// # Errors
    ///
    /// The index cannot be read or written.
    pub fn drop_captures(&mut self, path: &Path) -> Result<usize, IndexError> {
        let failed = IndexError::io(path);
        let mut names = vec![absolute(path).map_err(&failed)?, place_of(path).map_err(&failed)?];
        if path.is_dir() {
            names.push(fs::canonicalize(path).map_err(failed)?);
        }
        self.remove_where(|_, known| names.iter().any(|name| known.entry.path.starts_with(name)))
    }

    /// Removes captures with their regions' values.
    fn remove_where(
        &mut self,
        leaves: impl Fn(u64, &KnownCapture) -> bool,
    ) -> Result<usize, IndexError> {
        self.check_usable()?;
        let leaving = self.known.iter().filter(|&(&id, known)| leaves(id, known));
        let leaving: HashSet<u64> = leaving.map(|(&id, _)| id).collect();
        if leaving.is_empty() {
            return Ok(0);
        }
        for id in &leaving {
            self.leaving.extend(self.known.remove(id).into_iter().flat_map(|known| known.files));
        }
        for builder in &mut self.fresh {
            builder.remove(&self.catalog, &leaving)?;
        }
        self.pending = true;
        let count = leaving.len();
        self.changes.leaving.extend(leaving);
        Ok(count)
    }

    fn check_usable(&self) -> Result<(), IndexError> {
        if !self.failed {
            return Ok(());
        }
        Err(IndexError::Plan(format!(
            "{}: an earlier commit failed; open the index again to go on",
            self.catalog.archive.shown()
        )))
    }

    /// Puts everything that was added and removed in force, at one moment.
    ///
    /// # Errors
    ///
    /// The index cannot be written; what was committed before stays. What was added since is
    /// forgotten, and so are later changes: open the index again to go on.
    pub fn commit(&mut self) -> Result<(), IndexError> {
        self.check_usable()?;
        if !std::mem::take(&mut self.pending) {
            self.files.clear_journal();
            return Ok(());
        }
        let before = self.catalog.generation;
        let committed = self.write().and_then(|leaving| {
            self.files.check_locks()?;
            self.catalog.commit()?;
            Ok(leaving)
        });
        let new = self.files.take();
        let leaving = match committed {
            Ok(leaving) => leaving,
            Err(error) => {
                self.failed = true;
                // If the failure followed the rename, the new catalogue is in force and needs the
                // files.
                let now = Catalog::load(&self.catalog.archive);
                let is_before = now.is_ok_and(|now| now.generation == before);
                if is_before && self.files.is_locked() {
                    self.files.discard(&new);
                } else {
                    self.files.is_left = true;
                }
                return Err(error);
            }
        };
        self.committed = Instant::now();
        for stored in leaving {
            // The next writer deletes what cannot be deleted now.
            if !self.files.is_locked() || self.catalog.delete(stored).is_err() {
                self.files.is_left = true;
            }
        }
        self.files.clear_journal();
        Ok(())
    }

    /// Deletes a new index to which nothing was committed, so that the same build can be run again.
    /// Returns whether it did; folders and files that were there before stay.
    #[doc(hidden)]
    pub fn remove_if_empty(mut self) -> bool {
        let new = self.files.take();
        self.files.discard(&new);
        self.files.clear_journal();
        let archive = &self.catalog.archive;
        let is_empty = Catalog::load(archive)
            .is_ok_and(|now| now.id == self.catalog.id && now.segments.is_empty());
        // The next writer deletes the files that the journal names.
        let is_removed = is_empty
            && self.files.is_locked()
            && !archive.join(JOURNAL).exists()
            && fs::remove_file(archive.join(CATALOG)).is_ok();
        if is_removed {
            for node in 0..self.catalog.nodes.len() {
                let folder = self.catalog.node_folder(node);
                let _ = fs::remove_file(folder.join(MARK));
                self.files.locks.get(1 + node).inspect(|lock| lock.remove());
                if self.catalog.nodes[node].is_inside() {
                    let _ = fs::remove_dir(folder);
                }
            }
            // While it exists, no other program makes an index here.
            self.files.locks.first().inspect(|lock| lock.remove());
        }
        is_removed
    }

    /// Writes the new segments. Returns the files that the next catalogue does not name, which the
    /// journal names.
    fn write(&mut self) -> Result<Vec<StoredFile>, IndexError> {
        self.files.check_locks()?;
        let fresh = std::mem::take(&mut self.fresh);
        let changes = std::mem::take(&mut self.changes);
        let mut leaving = std::mem::take(&mut self.leaving);
        let after = rewrite(&mut self.catalog, fresh, &changes, &mut self.files)?;
        let kept: HashSet<StoredFile> = after.iter().flat_map(StoredFile::of_segment).collect();
        let before = self.catalog.segments.iter().flat_map(StoredFile::of_segment);
        leaving.extend(before.filter(|stored| !kept.contains(stored)));
        self.files.name(leaving.iter().copied())?;
        self.catalog.segments = after;
        self.files.sync()?;
        Ok(leaving)
    }
}

impl KnownCapture {
    fn new(entry: &CaptureEntry) -> Self {
        let files = StoredFile::of_capture(entry).collect();
        let entry = CaptureEntry { regions: Vec::new(), ..entry.clone() };
        Self { entry, place: OnceLock::new(), files }
    }

    /// Returns whether it was indexed under this path, which has no links on the way to it.
    fn is_at(&self, path: &Path) -> bool {
        let own = &self.entry.path;
        let resolve = || place_of(own).unwrap_or_else(|_| own.clone());
        own == path
            || (own.file_name() == path.file_name() && self.place.get_or_init(resolve) == path)
    }

    /// Returns why it must not leave for a new reading of the same content, or of another one in its
    /// place; `None` if it may.
    fn why_it_stays(
        &self,
        new: &CaptureEntry,
        is_same: bool,
        gathered: &CaptureReading,
    ) -> Option<String> {
        let old = &self.entry;
        if is_same && old.digest != new.digest {
            return Some(format!("{}: this file changed while it was read", new.path.shown()));
        }
        if new.part.is_some() && new.part != old.part {
            return Some(format!(
                "{}: this capture has changed, and the index keeps what it had of it, since only a part was to be indexed now; to index that, drop it first: `flowsieve index drop`",
                new.path.shown()
            ));
        }
        let damage = gathered.error.as_ref()?;
        let has_all = gathered.packets >= old.packets;
        let leaves =
            if is_same { old.damage.is_some() && has_all } else { has_all || !damage.may_pass() };
        (!leaves).then(|| format!("{damage}; the index keeps what it has of this capture"))
    }

    /// Returns whether its file has its content; so it is assumed if that cannot be read.
    fn is_in_its_file(&self, stop: &StopFlag) -> bool {
        self.entry.is_content_of(&self.entry.path, stop) != Some(false)
    }

    fn has(&self, digest: &str) -> bool {
        self.entry.digest == digest
    }
}

/// Returns the absolute path of a file without links on the way to it: a file has one such path,
/// unless it is a link itself.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    let path = absolute(path)?;
    let Some((folder, name)) = path.parent().zip(path.file_name()) else { return Ok(path) };
    Ok(folder_to_be(folder)?.join(name))
}

/// Returns why this cannot be a capture of an index, without reading it.
#[doc(hidden)]
pub fn cannot_be_indexed(path: &Path) -> Option<String> {
    let why = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => "no such file; check the path",
        // It would be waited for, and be empty when it is read again.
        Ok(data) if !data.is_file() && !data.is_dir() => {
            "a pipe or a device can be read only once, and an index reads its captures again; write it to a file first"
        }
        _ if !path_text::can_be_named(path) => {
            "the path is not Unicode, so the catalogue cannot name it; rename the file"
        }
        _ if path.as_os_str().len() > MOST_PATH => {
            "the path is longer than 4096 bytes, so the catalogue cannot name it; move the file"
        }
        _ => return None,
    };
    Some(format!("{}: {why}", path.shown()))
}
