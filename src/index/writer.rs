//! Building, adding, dropping: the one who writes.

use super::catalog::{CATALOG, CaptureEntry, Catalog, Settings, StoredFile};
use super::check::Damage;
use super::disk::{self, NewFiles};
use super::draft::{Changes, Draft, Found, add_to, rewrite};
use super::folders::IndexId;
use super::gather::{self, GatherPlan, Gathered};
use super::journal::Journal;
use super::makers::Makers;
use super::region::Made;
use super::{IndexError, folders, path_text};
use crate::selection::{SelectedPart, Selection};
use flowsieve_engine::internal::{Shown, Watch, spawn_scoped};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::{Duration, Instant};

/// Captures are committed together if they follow each other faster than this: a commit writes the
/// catalogue whole.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Writes to an index. There is one writer at a time.
#[derive(Debug)]
pub struct IndexWriter {
    archive: PathBuf,
    catalog: Catalog,
    /// The captures that are in the index or will be, by their numbers.
    known: BTreeMap<u64, Known>,
    /// Segments of the captures that were added since the last commit.
    fresh: Vec<Draft>,
    /// What becomes of captures that were there before.
    changes: Changes,
    /// Files that are not on the disk for certain.
    files: NewFiles,
    times_out_of_range: Vec<(PathBuf, u64)>,
    /// There is something to be committed.
    pending: bool,
    /// Files of regions that no later catalogue names.
    leaving: Vec<StoredFile>,
    committed: Instant,
    /// Memory for the flows of a capture.
    memory_bytes: u64,
    /// Which packets are indexed.
    selection: Selection,
    threads: usize,
    /// Of the archive's folder and of the nodes.
    _locks: Vec<File>,
}

/// What tells a capture from others.
#[derive(Debug)]
struct Known {
    digest: String,
    bytes: u64,
    path: PathBuf,
    /// The files of its regions.
    files: Vec<StoredFile>,
}

/// Memory for the flows of a capture.
const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;

/// Least such memory.
pub const LEAST_MEMORY_BYTES: u64 = 1 << 20;

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
    /// A signal came: nothing of it was indexed.
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
    /// There is something else in the folders, or they cannot be written to.
    pub fn create(
        archive: &Path,
        settings: Settings,
        nodes: &[PathBuf],
    ) -> Result<Self, IndexError> {
        if fs::metadata(archive).is_ok_and(|data| !data.is_dir()) {
            return Err(IndexError::Plan(format!(
                "{}: an index is a directory, and this is a file; name the directory first, and then the captures",
                archive.shown()
            )));
        }
        gather::check_memory()?;
        fs::create_dir_all(archive).map_err(IndexError::io(archive))?;
        let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
        let lock = folders::lock(archive)?;
        if archive.join(CATALOG).exists() {
            return Err(IndexError::Plan(format!(
                "{}: there is an index in this folder already; `flowsieve index add` adds to it",
                archive.shown()
            )));
        }
        let id = IndexId::random()?;
        let (folders, mut locks) = folders::make_nodes(archive, id, nodes)?;
        locks.push(lock);
        let mut catalog = Catalog::new(id, settings, folders);
        let journal = Journal::recover(archive, &catalog, &HashSet::new())?;
        catalog.commit(archive)?;
        Ok(Self::new(archive, catalog, &[], locks, journal))
    }

    /// Opens an index for writing, and deletes what a writer left that was killed.
    ///
    /// # Errors
    ///
    /// There is no index, its catalogue is damaged, of another format, a node is not its own, or
    /// another process writes.
    pub fn open(archive: &Path) -> Result<Self, IndexError> {
        // A folder that holds no index gets no lock file either.
        Catalog::load(archive)?;
        gather::check_memory()?;
        let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
        let lock = folders::lock(archive)?;
        let mut catalog = Catalog::load(archive)?;
        let mut locks = folders::claim(archive, &catalog)?;
        locks.push(lock);
        let captures = catalog.captures(archive)?;
        let mut ids = HashSet::new();
        if !captures.iter().all(|entry| ids.insert(entry.id)) {
            let reason = "two captures have one number".into();
            return Err(IndexError::Catalog { path: archive.join(CATALOG), reason });
        }
        let of_segments = catalog.segments.iter().flat_map(Catalog::files_of);
        let of_captures = captures.iter().flat_map(CaptureEntry::files);
        let known = of_segments.chain(of_captures).collect();
        let journal = Journal::recover(archive, &catalog, &known)?;
        catalog.next = folders::next_free(archive, &catalog)?;
        Ok(Self::new(archive, catalog, &captures, locks, journal))
    }

    fn new(
        archive: &Path,
        catalog: Catalog,
        captures: &[CaptureEntry],
        locks: Vec<File>,
        journal: Journal,
    ) -> Self {
        let known = captures.iter().map(|entry| (entry.id, Known::of(entry)));
        Self {
            archive: archive.to_owned(),
            catalog,
            known: known.collect(),
            fresh: Vec::new(),
            changes: Changes::default(),
            files: NewFiles::with_journal(journal),
            times_out_of_range: Vec::new(),
            pending: false,
            leaving: Vec::new(),
            committed: Instant::now(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            selection: Selection::default(),
            threads: 2,
            _locks: locks,
        }
    }

    /// The captures that were added with packets whose times are outside 1677 to 2262, and how many
    /// packets.
    #[doc(hidden)]
    pub fn times_out_of_range(&self) -> impl Iterator<Item = (&Path, u64)> {
        let captures = self.times_out_of_range.iter();
        captures.map(|(path, count)| (path.as_path(), *count))
    }

    /// Takes so much memory for the flows of a capture; with less, flows that last long are in more
    /// parts.
    #[must_use]
    #[doc(hidden)]
    pub fn with_memory(self, memory_bytes: u64) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Indexes these packets of the captures that are added from now on. Times in it are absolute.
    #[must_use]
    #[doc(hidden)]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Captures in the index, with those that were not committed yet.
    #[doc(hidden)]
    pub fn captures(&self) -> usize {
        self.known.len()
    }

    /// Indexes a capture, unless its content is there already. One that was indexed under this path
    /// with another content leaves. It counts from some commit on, at the latest from
    /// [`IndexWriter::commit`].
    ///
    /// # Errors
    ///
    /// The index cannot be written.
    pub fn add(&mut self, path: &Path, watch: &dyn Watch) -> Result<Added, IndexError> {
        let unreadable = |error: IndexError| Ok(Added::Unreadable(error.to_string()));
        let path = match absolute(path) {
            Ok(path) => path,
            Err(error) => return unreadable(IndexError::io(path)(error)),
        };
        if let Some(problem) = cannot_be_indexed(&path) {
            return Ok(Added::Unreadable(problem));
        }
        let stop = watch.stop();
        let before = if self.may_know(&path) {
            match disk::content_of(&path, &stop) {
                Ok(None) => return Ok(Added::Interrupted),
                Ok(Some(content)) if self.knows(content, &path, None) => return Ok(Added::Known),
                Ok(content) => content,
                Err(error) => return unreadable(error),
            }
        } else {
            None
        };
        self.index_capture(path, before, None, watch)
    }

    /// Indexes a capture, whose content is `before` if it was read already; in the place of `old`.
    fn index_capture(
        &mut self,
        path: PathBuf,
        before: Option<(u128, u64)>,
        old: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Added, IndexError> {
        let stop = watch.stop();
        let mut entry = CaptureEntry {
            id: self.catalog.take_number(),
            path: path.clone(),
            bytes: 0,
            digest: String::new(),
            packets: 0,
            damage: None,
            part: (!self.selection.is_everything()).then(|| SelectedPart::from(&self.selection)),
            regions: Vec::new(),
        };
        let (made, content) = thread::scope(|scope| {
            // What cannot be known is read by both at the same time.
            let content = || disk::content_of(&path, &stop);
            let spawn = || Some(spawn_scoped(scope, "digest", 0, move |()| content())?.begin(()));
            let reading = before.is_none().then(spawn).flatten();
            let made = self.make_regions(&mut entry, watch);
            let read = match reading {
                Some(reading) => {
                    let read = reading.join().unwrap_or_else(|panic| resume_unwind(panic));
                    read.unwrap_or_else(content)
                }
                // There was no thread to be had.
                None if before.is_none() => content(),
                None => Ok(before),
            };
            (made, read)
        });
        let (gathered, found) = made.inspect_err(|_| {
            // A disk that is full needs the room, and the next writer deletes what is left.
            let _ = self.delete_folders(entry.id);
        })?;
        let left_out = match content {
            Ok(None) => Some(Added::Interrupted),
            // Another program wrote it meanwhile.
            Ok(Some(content)) if self.knows(content, &path, old) => Some(Added::Known),
            Ok(Some((digest, bytes))) => {
                (entry.digest, entry.bytes) = (disk::digest_text(digest), bytes);
                None
            }
            Err(error) => Some(Added::Unreadable(error.to_string())),
        };
        if let Some(added) = left_out {
            self.delete_folders(entry.id)?;
            return Ok(added);
        }
        let damage = gathered.error.as_ref().map(ToString::to_string);
        // What is a capture is known from now on, even if there is nothing before the damage.
        let is_new = self.known.values().all(|known| known.path != path);
        let has_entry = !entry.regions.is_empty() || (gathered.is_capture && is_new);
        let unreadable = damage.clone().filter(|_| !has_entry);
        if gathered.interrupted || unreadable.is_some() {
            self.delete_folders(entry.id)?;
            return Ok(unreadable.map_or(Added::Interrupted, Added::Unreadable));
        }
        self.remove_where(|id, known| known.path == path || old == Some(id))?;
        entry.packets = gathered.packets;
        if gathered.times_out_of_range > 0 {
            let count = gathered.times_out_of_range;
            self.times_out_of_range.push((path, count));
        }
        entry.damage.clone_from(&damage);
        let added = Added::Indexed { packets: entry.packets, regions: entry.regions.len(), damage };
        self.known.insert(entry.id, Known::of(&entry));
        add_to(&mut self.fresh, &self.catalog, entry, found);
        self.pending = true;
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(added)
    }

    /// Whether the index may have the content of this file: not if it has none of that length.
    fn may_know(&self, path: &Path) -> bool {
        let data = File::open(path).and_then(|file| file.metadata());
        data.map_or(true, |data| {
            let mut known = self.known.values();
            !data.is_file() || known.any(|known| known.bytes == data.len())
        })
    }

    /// Whether a capture of this content is in the index. If its file is gone, it is in this one
    /// from now on.
    fn knows(&mut self, (digest, _): (u128, u64), path: &Path, but: Option<u64>) -> bool {
        let digest = disk::digest_text(digest);
        let mut known = self.known.iter_mut();
        let Some((&id, known)) =
            known.find(|(id, known)| known.digest == digest && but != Some(**id))
        else {
            return false;
        };
        if known.path != path && !known.path.exists() {
            path.clone_into(&mut known.path);
            let mut fresh = self.fresh.iter_mut().flat_map(|draft| &mut draft.captures);
            match fresh.find(|entry| entry.id == id) {
                Some(entry) => path.clone_into(&mut entry.path),
                None => drop(self.changes.moved.insert(id, path.to_owned())),
            }
            self.pending = true;
        }
        true
    }

    /// Reads a capture and writes its regions, each to the node that holds the least.
    fn make_regions(
        &mut self,
        entry: &mut CaptureEntry,
        watch: &dyn Watch,
    ) -> Result<(Gathered, Vec<Found>), IndexError> {
        let mut stored = self.stored();
        let Self { archive, catalog, files, selection, .. } = self;
        let (mut found, mut made_folders) = (Vec::new(), HashSet::new());
        let (id, path, regions) = (entry.id, &entry.path, &mut entry.regions);
        let mut write = |made: Made| {
            let emptiest = (0..stored.len()).min_by_key(|&node| stored[node]);
            let node = emptiest.unwrap_or_default();
            let folder = catalog.capture_folder(archive, node, id);
            files.name([StoredFile::Region { node, capture: id, region: regions.len() }])?;
            if made_folders.insert(node) {
                fs::create_dir(&folder).map_err(IndexError::io(&folder))?;
            }
            let (region, of_region) = made.write(&folder, node, regions.len(), files)?;
            stored[node] += region.stored();
            regions.push(region);
            found.push(of_region);
            Ok(())
        };
        let plan = GatherPlan {
            settings: &catalog.settings,
            selection,
            memory_bytes: self.memory_bytes,
            threads: self.threads,
        };
        let threads = self.threads;
        let gathered = thread::scope(|scope| {
            let mut makers = Makers::start(scope, threads, path, &catalog.settings);
            let gathered =
                gather::regions(path, &plan, watch, |records| makers.give(records, &mut write))?;
            makers.rest(&mut write)?;
            Ok::<_, IndexError>(gathered)
        })?;
        Ok((gathered, found))
    }

    /// Deletes the folders of a capture that the catalogue does not name.
    fn delete_folders(&mut self, id: u64) -> Result<(), IndexError> {
        for node in 0..self.catalog.nodes.len() {
            let folder = self.catalog.capture_folder(&self.archive, node, id);
            self.files.abandon(&folder)?;
        }
        Ok(())
    }

    /// Indexes again what is damaged: a capture whose files in the index are not whole, or the
    /// filters of a segment, from its records.
    ///
    /// # Errors
    ///
    /// The index cannot be read or written.
    #[doc(hidden)]
    pub fn repair(&mut self, damage: &Damage, watch: &dyn Watch) -> Result<Vec<Added>, IndexError> {
        let mut repaired = Vec::new();
        self.changes.rebuilt.extend(&damage.segments);
        self.pending |= !damage.segments.is_empty();
        for (id, entry) in &damage.captures {
            let path = entry.path.clone();
            let added = if let Some(problem) = cannot_be_indexed(&path) {
                Added::Unreadable(problem)
            } else if let Some(other) = is_another(&path, &entry.digest, watch)? {
                other
            } else {
                let selection = entry.selection()?;
                let usual = std::mem::replace(&mut self.selection, selection);
                let added = self.index_capture(path, None, Some(*id), watch);
                self.selection = usual;
                added?
            };
            let interrupted = added == Added::Interrupted;
            repaired.push(added);
            if interrupted {
                break;
            }
        }
        Ok(repaired)
    }

    /// Removes the captures with this path, or below this folder; how many they were.
    ///
    /// # Errors
    ///
    /// The index cannot be read or written.
    pub fn drop_captures(&mut self, path: &Path) -> Result<usize, IndexError> {
        let path = absolute(path).map_err(IndexError::io(path))?;
        self.remove_where(|_, known| known.path.starts_with(&path))
    }

    /// Removes captures with their regions' values.
    fn remove_where(&mut self, leaves: impl Fn(u64, &Known) -> bool) -> Result<usize, IndexError> {
        let leaving = self.known.iter().filter(|&(&id, known)| leaves(id, known));
        let leaving: HashSet<u64> = leaving.map(|(&id, _)| id).collect();
        if leaving.is_empty() {
            return Ok(0);
        }
        for id in &leaving {
            self.leaving.extend(self.known.remove(id).into_iter().flat_map(|known| known.files));
        }
        for draft in &mut self.fresh {
            draft.remove(&self.archive, &self.catalog, &leaving)?;
        }
        self.pending = true;
        let count = leaving.len();
        self.changes.leaving.extend(leaving);
        Ok(count)
    }

    /// Makes everything that was added and removed count, at one moment.
    ///
    /// # Errors
    ///
    /// The index cannot be written; what counted before still does. What was added since is
    /// forgotten: open the index again to go on.
    pub fn commit(&mut self) -> Result<(), IndexError> {
        if !std::mem::take(&mut self.pending) {
            self.files.clear_journal();
            return Ok(());
        }
        let fresh = std::mem::take(&mut self.fresh);
        let changes = std::mem::take(&mut self.changes);
        let mut leaving = std::mem::take(&mut self.leaving);
        let before = self.catalog.clone();
        let written = self.write(fresh, &changes, &before, &mut leaving);
        let new = self.files.take();
        let committed = written.and_then(|()| self.catalog.commit(&self.archive));
        if let Err(error) = committed {
            // After a failure behind the rename the new catalogue is in force, and needs the files.
            let now = Catalog::load(&self.archive);
            if now.is_ok_and(|now| now.generation == before.generation) {
                self.files.discard(&new);
            } else {
                self.files.leave();
            }
            self.catalog.segments = before.segments;
            return Err(error);
        }
        self.committed = Instant::now();
        for stored in leaving {
            // What cannot be deleted now is deleted by the next one who writes.
            if folders::delete(&self.archive, &self.catalog, stored).is_err() {
                self.files.leave();
            }
        }
        self.files.clear_journal();
        Ok(())
    }

    /// Writes new segments, and names in the journal what the catalogue will no longer name.
    fn write(
        &mut self,
        fresh: Vec<Draft>,
        changes: &Changes,
        before: &Catalog,
        leaving: &mut Vec<StoredFile>,
    ) -> Result<(), IndexError> {
        let after = rewrite(&self.archive, &mut self.catalog, fresh, changes, &mut self.files)?;
        let kept: HashSet<StoredFile> = after.iter().flat_map(Catalog::files_of).collect();
        let of_segments = before.segments.iter().flat_map(Catalog::files_of);
        leaving.extend(of_segments.filter(|stored| !kept.contains(stored)));
        self.files.name(leaving.iter().copied())?;
        self.catalog.segments = after;
        self.files.sync()
    }

    /// Bytes of the regions of each node.
    fn stored(&self) -> Vec<u64> {
        let mut stored = vec![0; self.catalog.nodes.len()];
        for part in self.catalog.segments.iter().flat_map(|segment| &segment.parts) {
            stored[part.node] += part.bytes;
        }
        let fresh = self.fresh.iter().flat_map(|draft| &draft.captures);
        for region in fresh.flat_map(|entry| &entry.regions) {
            stored[region.node] += region.stored();
        }
        stored
    }
}

impl Known {
    fn of(entry: &CaptureEntry) -> Self {
        Self {
            digest: entry.digest.clone(),
            bytes: entry.bytes,
            path: entry.path.clone(),
            files: entry.files().collect(),
        }
    }
}

/// Returns why a file cannot stand for the capture that was indexed, or `None` if it can. Its intact
/// regions may be all that is left of it.
fn is_another(path: &Path, digest: &str, watch: &dyn Watch) -> Result<Option<Added>, IndexError> {
    let content = disk::content_of(path, &watch.stop())?;
    Ok(match content {
        None => Some(Added::Interrupted),
        Some((found, _)) if disk::digest_text(found) == digest => None,
        Some(_) => Some(Added::Unreadable(format!(
            "{}: this file has changed since it was indexed, and the index keeps what is whole of it; drop it, or add it as it is now",
            path.shown()
        ))),
    })
}

/// Why this can be no capture of an index, without reading it.
#[doc(hidden)]
pub fn cannot_be_indexed(path: &Path) -> Option<String> {
    let why = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => "no such file; check the path",
        // It would be waited for, and have nothing when it is read again.
        Ok(data) if !data.is_file() && !data.is_dir() => {
            "a pipe or a device can be read only once, and an index reads its captures again; write it to a file first"
        }
        _ if !path_text::can_be_named(path) => {
            "the path is not Unicode, so the catalogue cannot name it; rename the file"
        }
        _ => return None,
    };
    Some(format!("{}: {why}", path.shown()))
}
