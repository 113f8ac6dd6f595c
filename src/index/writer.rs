//! Writing to an index: building, adding, dropping.

use super::catalog::{CaptureEntry, Catalog, MOST_PATH, Settings};
use super::disk::{self, Content, FileState, NewFiles};
use super::gather::{self, GatherPlan, Gathered};
use super::journal::Journal;
use super::layout::{CATALOG, JOURNAL, MARK, StoredFile};
use super::nodes::Lock;
use super::region::BuiltRegion;
use super::region_builders::RegionBuilders;
use super::segment_builder::{Changes, RegionKeys, SegmentBuilder, rewrite};
use super::{IndexError, nodes, path_text};
use crate::selection::{SelectedPart, Selection};
use crate::trace::{StopFlag, TraceError};
use flowsieve_engine::internal::{Shown, Watch, spawn_scoped};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf, absolute};
use std::sync::OnceLock;
use std::thread;
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
    times_out_of_range: Vec<(PathBuf, u64)>,
    /// Captures that are known, but by other packets than were to be indexed.
    known_in_part: Vec<(PathBuf, SelectedPart)>,
    /// Whether there is something to commit.
    pending: bool,
    /// A commit failed, and this writer no longer knows what the index holds.
    failed: bool,
    /// Files of regions that no later catalogue names.
    leaving: Vec<StoredFile>,
    committed: Instant,
    memory_bytes: u64,
    /// Which packets are indexed.
    pub(super) selection: Selection,
    threads: usize,
}

/// What distinguishes a capture from others.
#[derive(Debug)]
struct KnownCapture {
    digest: String,
    bytes: u64,
    path: PathBuf,
    /// The path without links on the way to it, once that was needed.
    place: OnceLock<PathBuf>,
    packets: u64,
    is_damaged: bool,
    may_pass: bool,
    part: Option<SelectedPart>,
    /// The files of its regions.
    files: Vec<StoredFile>,
}

/// What became of a capture.
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

/// What a capture gives, and the keys of each of its regions.
type BuiltRegions = (Gathered, Vec<RegionKeys>);

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
            pending: false,
            failed: false,
            leaving: Vec::new(),
            committed: Instant::now(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            selection: Selection::default(),
            threads: 2,
        }
    }

    /// Returns the captures that were added with packets whose times are outside 1677 to 2262, and
    /// the number of these packets.
    #[doc(hidden)]
    pub fn times_out_of_range(&self) -> impl Iterator<Item = (&Path, u64)> {
        let captures = self.times_out_of_range.iter();
        captures.map(|(path, count)| (path.as_path(), *count))
    }

    /// Returns the captures whose content was known, but of which the index holds other packets than
    /// were to be indexed, and which it holds.
    #[doc(hidden)]
    pub fn known_in_part(&self) -> &[(PathBuf, SelectedPart)] {
        &self.known_in_part
    }

    /// Sets the memory for the flows of a capture; with less, long flows are in more parts.
    #[must_use]
    #[doc(hidden)]
    pub fn with_memory(self, memory_bytes: u64) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Sets which packets of the captures are indexed that are added from now on. Times in it are
    /// absolute.
    #[must_use]
    #[doc(hidden)]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
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
        let state = FileState::of(&path);
        let (mut before, mut old) = (None, None);
        if self.may_know(&path) {
            match disk::content_of(&path, &watch.stop()) {
                Ok(None) => return Ok(Added::Interrupted),
                Ok(Some(content)) => {
                    old = self.to_read_again(content);
                    if self.knows(content, &path, old, watch)? {
                        return Ok(Added::Known);
                    }
                    before = Some(content);
                }
                Err(error) => return unreadable(error),
            }
        }
        self.index_capture(path, state, before, old, watch)
    }

    /// Returns the capture of this content if reading it failed for a reason that may have passed.
    fn to_read_again(&self, (digest, _): (u128, u64)) -> Option<u64> {
        let part = self.part();
        let mut known = self.known.iter();
        let found = known.find(|(_, known)| known.may_pass && known.has(digest));
        found.filter(|(_, known)| known.part == part).map(|(&id, _)| id)
    }

    /// Which packets are indexed, if not all.
    fn part(&self) -> Option<SelectedPart> {
        (!self.selection.is_everything()).then(|| SelectedPart::from(&self.selection))
    }

    /// Indexes a capture, whose content is `before` if it was read already, in place of `old`, which
    /// has the same content and stays if less of it can be read now. The file had this `state` before
    /// anything was read.
    pub(super) fn index_capture(
        &mut self,
        path: PathBuf,
        state: Option<FileState>,
        before: Content,
        old: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Added, IndexError> {
        self.check_usable()?;
        let mut entry = CaptureEntry {
            id: self.catalog.take_number(),
            path: path.clone(),
            bytes: 0,
            digest: String::new(),
            packets: 0,
            damage: None,
            may_pass: false,
            part: self.part(),
            regions: Vec::new(),
        };
        let (built, content) = self.read_capture(&mut entry, before, watch);
        let (gathered, keys) = built.inspect_err(|_| {
            // A full disk needs the room, and the next writer deletes what is left.
            let _ = self.delete_folders(entry.id);
        })?;
        // The regions may be of other bytes than the digest.
        let is_other = |&(digest, bytes): &(u128, u64)| {
            disk::content_up_to(&path, bytes, &watch.stop())
                .is_ok_and(|now| now.is_some_and(|now| now != (digest, bytes)))
        };
        let has_changed = state.is_some_and(|state| {
            state.has_changed(&path)
                || (FileState::of(&path) != Some(state)
                    && content.as_ref().ok().and_then(Option::as_ref).is_some_and(is_other))
        });
        let damage = gathered.error.as_ref().map(ToString::to_string);
        let is_new = self.known.values().all(|known| !known.is_at(&path));
        // A capture is known from now on, even if nothing precedes the damage.
        let has_entry = !entry.regions.is_empty() || (gathered.is_capture && is_new);
        let left_out = match (content, &damage) {
            (Ok(None), _) => Some(Added::Interrupted),
            (Ok(_), _) if has_changed && !gathered.interrupted => Some(Added::Unreadable(format!(
                "{}: this file changed while it was read, so it is not indexed; add it again when no program writes to it",
                path.shown()
            ))),
            // Another program wrote it meanwhile.
            (Ok(Some(content)), _) if self.knows(content, &path, old, watch)? => Some(Added::Known),
            (Err(error), _) => Some(Added::Unreadable(error.to_string())),
            (_, Some(damage)) if !has_entry => Some(Added::Unreadable(damage.clone())),
            _ if gathered.interrupted => Some(Added::Interrupted),
            (Ok(Some((digest, bytes))), _) => {
                (entry.digest, entry.bytes) = (disk::digest_text(digest), bytes);
                let mut leaving =
                    self.known.iter().filter(|&(&id, known)| old == Some(id) || known.is_at(&path));
                let stays = |(&id, known): (&u64, &KnownCapture)| {
                    known.why_it_stays(&entry, old == Some(id), &gathered)
                };
                leaving.find_map(stays).map(Added::Unreadable)
            }
        };
        if let Some(added) = left_out {
            self.delete_folders(entry.id)?;
            return Ok(added);
        }
        self.remove_where(|id, known| known.is_at(&path) || old == Some(id))?;
        entry.packets = gathered.packets;
        entry.may_pass = gathered.error.as_ref().is_some_and(TraceError::may_pass);
        entry.damage.clone_from(&damage);
        if gathered.times_out_of_range > 0 {
            self.times_out_of_range.push((path, gathered.times_out_of_range));
        }
        let added = Added::Indexed { packets: entry.packets, regions: entry.regions.len(), damage };
        self.known.insert(entry.id, KnownCapture::new(&entry));
        SegmentBuilder::add_to(&mut self.fresh, &self.catalog, entry, keys);
        self.pending = true;
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(added)
    }

    /// Builds the regions of a capture and, at the same time, reads its content unless that is known.
    /// What is appended meanwhile is not part of it: the regions may lack that, so the next writer
    /// must not take it for indexed.
    fn read_capture(
        &mut self,
        entry: &mut CaptureEntry,
        before: Content,
        watch: &dyn Watch,
    ) -> (Result<BuiltRegions, IndexError>, Result<Content, IndexError>) {
        let length = fs::metadata(&entry.path).map_or(u64::MAX, |data| data.len());
        let (path, stop): (_, StopFlag) = (entry.path.clone(), watch.stop());
        let content = || disk::content_up_to(&path, length, &stop);
        thread::scope(|scope| {
            let spawn = || Some(spawn_scoped(scope, "digest", 0, move |()| content())?.begin(()));
            let reading = before.is_none().then(spawn).flatten();
            let built = self.build_regions(entry, watch);
            let joined = reading
                .and_then(|reading| reading.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let read = match (joined, before) {
                (Some(read), _) => read,
                (None, Some(before)) => Ok(Some(before)),
                // There was no thread to be had.
                (None, None) => content(),
            };
            (built, read)
        })
    }

    /// Whether the index may have the content of this file: it has a capture of the same length.
    fn may_know(&self, path: &Path) -> bool {
        let data = File::open(path).and_then(|file| file.metadata());
        data.map_or(true, |data| {
            let mut known = self.known.values();
            !data.is_file() || known.any(|known| known.bytes == data.len())
        })
    }

    /// Whether a capture of this content is in the index. If its file has another content now, or is
    /// gone, it is in this one from now on: what is in its place must not take its place in the index.
    /// Removes the earlier entry of this path.
    fn knows(
        &mut self,
        (digest, _): (u128, u64),
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
        let held = known.part.clone().filter(|_| known.part != wanted);
        self.known_in_part.extend(held.map(|part| (path.to_owned(), part)));
        if !known.is_at(path) && !known.is_in_its_file(&watch.stop()) {
            path.clone_into(&mut known.path);
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

    /// Reads a capture and writes its regions, each to the node that holds the least.
    fn build_regions(
        &mut self,
        entry: &mut CaptureEntry,
        watch: &dyn Watch,
    ) -> Result<(Gathered, Vec<RegionKeys>), IndexError> {
        let mut stored = self.stored();
        let Self { catalog, files, selection, .. } = self;
        let (mut keys, mut made_folders) = (Vec::new(), HashSet::new());
        let (id, path, regions) = (entry.id, &entry.path, &mut entry.regions);
        let mut write = |built: BuiltRegion| {
            let emptiest = (0..stored.len()).min_by_key(|&node| stored[node]);
            let node = emptiest.unwrap_or_default();
            let folder = catalog.capture_folder(node, id);
            files.name([StoredFile::Region { node, capture: id, region: regions.len() }])?;
            if made_folders.insert(node) {
                fs::create_dir(&folder).map_err(IndexError::io(&folder))?;
            }
            let (region, of_region) = built.write(&folder, node, regions.len(), files)?;
            stored[node] += region.stored();
            regions.push(region);
            keys.push(of_region);
            Ok(())
        };
        let threads = self.threads;
        let plan = GatherPlan {
            settings: &catalog.settings,
            selection,
            memory_bytes: self.memory_bytes,
            threads,
        };
        let gathered = thread::scope(|scope| {
            let mut builders = RegionBuilders::start(scope, threads, path, &catalog.settings);
            let gathered =
                gather::regions(path, &plan, watch, |records| builders.push(records, &mut write))?;
            builders.finish(&mut write)?;
            Ok::<_, IndexError>(gathered)
        })?;
        Ok((gathered, keys))
    }

    /// Deletes the folders of a capture that the catalogue does not name.
    fn delete_folders(&mut self, id: u64) -> Result<(), IndexError> {
        let mut nodes = 0..self.catalog.nodes.len();
        nodes.try_for_each(|node| self.files.abandon(&self.catalog.capture_folder(node, id)))
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
        self.remove_where(|_, known| names.iter().any(|name| known.path.starts_with(name)))
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
                    self.files.leave();
                }
                return Err(error);
            }
        };
        self.committed = Instant::now();
        for stored in leaving {
            // The next writer deletes what cannot be deleted now.
            if !self.files.is_locked() || self.catalog.delete(stored).is_err() {
                self.files.leave();
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
            // As long as it is there, nobody else makes an index here.
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

    /// Returns the bytes of the regions of each node.
    fn stored(&self) -> Vec<u64> {
        let mut stored = vec![0; self.catalog.nodes.len()];
        for part in self.catalog.segments.iter().flat_map(|segment| &segment.parts) {
            stored[part.node] += part.bytes;
        }
        let fresh = self.fresh.iter().flat_map(|builder| &builder.captures);
        for region in fresh.flat_map(|entry| &entry.regions) {
            stored[region.node] += region.stored();
        }
        stored
    }
}

impl KnownCapture {
    fn new(entry: &CaptureEntry) -> Self {
        Self {
            digest: entry.digest.clone(),
            bytes: entry.bytes,
            path: entry.path.clone(),
            place: OnceLock::new(),
            packets: entry.packets,
            is_damaged: entry.damage.is_some(),
            may_pass: entry.may_pass,
            part: entry.part.clone(),
            files: StoredFile::of_capture(entry).collect(),
        }
    }

    /// Whether it was indexed under this path, which has no links on the way to it.
    fn is_at(&self, path: &Path) -> bool {
        let resolve = || place_of(&self.path).unwrap_or_else(|_| self.path.clone());
        self.path == path
            || (self.path.file_name() == path.file_name()
                && self.place.get_or_init(resolve) == path)
    }

    /// Returns why it must not leave for a new reading of the same content, or of another one in its
    /// place; `None` if it may.
    fn why_it_stays(
        &self,
        new: &CaptureEntry,
        is_same: bool,
        gathered: &Gathered,
    ) -> Option<String> {
        if is_same && self.digest != new.digest {
            return Some(format!("{}: this file changed while it was read", new.path.shown()));
        }
        if new.part.is_some() && new.part != self.part {
            return Some(format!(
                "{}: this capture has changed, and the index keeps what it had of it, since only a part was to be indexed now; to index that, drop it first: `flowsieve index drop`",
                new.path.shown()
            ));
        }
        let damage = gathered.error.as_ref()?;
        let has_all = gathered.packets >= self.packets;
        let leaves =
            if is_same { self.is_damaged && has_all } else { has_all || !damage.may_pass() };
        (!leaves).then(|| format!("{damage}; the index keeps what it has of this capture"))
    }

    /// Whether its file has its content; so it is assumed if that cannot be read.
    fn is_in_its_file(&self, stop: &StopFlag) -> bool {
        let has_length = |data: fs::Metadata| data.is_file() && data.len() == self.bytes;
        fs::metadata(&self.path).is_ok_and(has_length)
            && disk::content_of(&self.path, stop)
                .map_or(true, |content| content.is_none_or(|(digest, _)| self.has(digest)))
    }

    fn has(&self, digest: u128) -> bool {
        self.digest == disk::digest_text(digest)
    }
}

/// Returns the absolute path of a file without links on the way to it: a file has one such path,
/// unless it is a link itself. If its folder is gone, links are not known.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    let path = absolute(path)?;
    let Some((folder, name)) = path.parent().zip(path.file_name()) else {
        return Ok(path);
    };
    Ok(fs::canonicalize(folder).map_or_else(|_| path.clone(), |folder| folder.join(name)))
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
