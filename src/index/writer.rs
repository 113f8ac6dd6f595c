//! Building, adding, dropping: the one who writes.

use super::catalog::{CATALOG, CaptureEntry, Catalog, Settings};
use super::disk;
use super::gather::{GatherPlan, Gathered};
use super::node_filter::{NodeFilter, keys_of};
use super::packed::{self, Fresh};
use super::path_text;
use super::region::{elements_of, filters_of, write_region};
use super::{IndexError, Region, anew, folders, gather};
use crate::hashing::Digest;
use crate::selection::{SelectedPart, Selection};
use flowsieve_engine::internal::Watch;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, Instant};

/// Captures are committed together if they follow each other faster than this: a commit writes the
/// catalogue and the filters of the nodes whole.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Writes to an index. There is one writer at a time.
#[derive(Debug)]
pub struct IndexWriter {
    archive: PathBuf,
    catalog: Catalog,
    /// Global filters that were needed so far, by node.
    filters: HashMap<usize, NodeFilter>,
    /// Filters of regions that are not yet on the disk.
    fresh: Fresh,
    times_out_of_range: Vec<(PathBuf, u64)>,
    /// Nodes whose filters differ from those on the disk.
    changed: HashSet<usize>,
    /// Nodes whose filter has to be made anew before it is committed.
    stale: HashSet<usize>,
    /// There is something to be committed.
    pending: bool,
    /// Folders of captures that the catalogue in force names, and the next one does not.
    leaving: Vec<PathBuf>,
    committed: Instant,
    /// Memory for the flows of a capture.
    memory_bytes: u64,
    /// Which packets are indexed.
    selection: Selection,
    threads: usize,
    _lock: File,
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
    /// Makes an empty index, with its nodes in these folders, or in one within the archive if there are
    /// none.
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
                archive.display()
            )));
        }
        gather::check_memory()?;
        fs::create_dir_all(archive).map_err(IndexError::io(archive))?;
        let lock = folders::lock(archive)?;
        if archive.join(CATALOG).exists() {
            return Err(IndexError::Plan(format!(
                "{}: there is an index in this folder already; `flowsieve index add` adds to it",
                archive.display()
            )));
        }
        let folders = folders::make_nodes(archive, nodes)?;
        let mut catalog = Catalog::new(settings, folders);
        catalog.commit(archive)?;
        Ok(Self::new(archive, catalog, lock))
    }

    /// Opens an index for writing, and deletes what a writer left that was killed.
    ///
    /// # Errors
    ///
    /// There is no index, its catalogue is damaged, of another format, or another process writes.
    pub fn open(archive: &Path) -> Result<Self, IndexError> {
        // A folder that holds no index gets no lock file either.
        Catalog::load(archive)?;
        gather::check_memory()?;
        let lock = folders::lock(archive)?;
        let catalog = Catalog::load(archive)?;
        folders::delete_leftovers(archive, &catalog)?;
        Ok(Self::new(archive, catalog, lock))
    }

    fn new(archive: &Path, catalog: Catalog, lock: File) -> Self {
        Self {
            archive: archive.to_owned(),
            catalog,
            filters: HashMap::new(),
            fresh: Fresh::new(),
            times_out_of_range: Vec::new(),
            changed: HashSet::new(),
            stale: HashSet::new(),
            pending: false,
            leaving: Vec::new(),
            committed: Instant::now(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            selection: Selection::default(),
            threads: 2,
            _lock: lock,
        }
    }

    /// The captures that were added with packets whose times are outside 1677 to 2262, and how many packets.
    #[doc(hidden)]
    pub fn times_out_of_range(&self) -> impl Iterator<Item = (&Path, u64)> {
        let captures = self.times_out_of_range.iter();
        captures.map(|(path, count)| (path.as_path(), *count))
    }

    /// Takes so much memory for the flows of a capture; with less, flows that last long are in more parts.
    #[must_use]
    pub fn with_memory(self, memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            ..self
        }
    }

    /// Indexes these packets of the captures that are added from now on. Times in it are absolute.
    #[must_use]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// What the index holds.
    #[doc(hidden)]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
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
        let (digest, bytes) = match disk::content_of(&path, &watch.stop()) {
            Ok(_) if watch.stop().is_set() => return Ok(Added::Interrupted),
            Ok(content) => content,
            Err(error) => return unreadable(error),
        };
        let digest = disk::digest_text(digest);
        let same = |entry: &&mut CaptureEntry| entry.digest == digest;
        if let Some(known) = self.catalog.captures.iter_mut().find(same) {
            if known.path != path && !known.path.exists() {
                // It was moved.
                known.path = path;
                self.pending = true;
            }
            return Ok(Added::Known);
        }
        let mut entry = CaptureEntry {
            id: self.catalog.take_number(),
            path: path.clone(),
            bytes,
            digest,
            packets: 0,
            damage: None,
            part: (!self.selection.is_everything()).then(|| SelectedPart::from(&self.selection)),
            regions: Vec::new(),
        };
        let mut made = Made::default();
        let gathered = self.make_regions(&entry, &mut made, watch);
        let gathered = gathered.inspect_err(|_| {
            // A disk that is full needs the room, and the next writer deletes what is left.
            let _ = self.delete_folders(entry.id);
        })?;
        let damage = gathered.error.as_ref().map(ToString::to_string);
        let unreadable = damage.clone().filter(|_| made.regions.is_empty());
        if gathered.interrupted || unreadable.is_some() {
            self.delete_folders(entry.id)?;
            return Ok(unreadable.map_or(Added::Interrupted, Added::Unreadable));
        }
        self.remove_where(|known| known.path == path)?;
        for (region, keys) in made.regions.iter().zip(&made.keys) {
            self.filter(region.node)?.insert(keys);
            self.changed.insert(region.node);
        }
        self.fresh.extend(made.filters);
        entry.packets = gathered.packets;
        if gathered.times_out_of_range > 0 {
            let count = gathered.times_out_of_range;
            self.times_out_of_range.push((path.clone(), count));
        }
        entry.damage.clone_from(&damage);
        entry.regions = made.regions;
        let regions = entry.regions.len();
        let nodes: HashSet<usize> = entry.regions.iter().map(|region| region.node).collect();
        self.catalog.captures.push(entry);
        self.pending = true;
        for node in nodes {
            if self.filter(node)?.is_full() {
                self.renew_filter(node)?;
            }
        }
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(Added::Indexed { regions, damage })
    }

    /// Reads a capture and writes its regions, each to the node that holds the least.
    fn make_regions(
        &self,
        entry: &CaptureEntry,
        made: &mut Made,
        watch: &dyn Watch,
    ) -> Result<Gathered, IndexError> {
        let Catalog { settings, .. } = &self.catalog;
        let mut stored = self.stored();
        let mut see = |records: Vec<_>| {
            let emptiest = (0..stored.len()).min_by_key(|&node| stored[node]);
            let node = emptiest.unwrap_or_default();
            let folder = self.catalog.capture_folder(&self.archive, node, entry.id);
            fs::create_dir_all(&folder).map_err(IndexError::io(&folder))?;
            let number = made.regions.len();
            let elements = elements_of(&records);
            made.keys.push(keys_of(&elements));
            let mut region = write_region(&folder, node, number, &records)?;
            let (filters, lengths) = filters_of(settings, &elements)?;
            region.filters.bytes = lengths;
            stored[node] += region.stored();
            made.filters.push(((entry.id, number), filters));
            made.regions.push(region);
            Ok(())
        };
        let plan = GatherPlan {
            settings,
            selection: &self.selection,
            memory_bytes: self.memory_bytes,
            threads: self.threads,
        };
        let gathered = gather::regions(&entry.path, &plan, watch, &mut see)?;
        let nodes: HashSet<usize> = made.regions.iter().map(|region| region.node).collect();
        for node in nodes {
            disk::sync_folder(&self.catalog.capture_folder(&self.archive, node, entry.id))?;
        }
        Ok(gathered)
    }

    /// Deletes the folders of a capture that the catalogue does not name.
    fn delete_folders(&self, id: u64) -> Result<(), IndexError> {
        for node in 0..self.catalog.nodes.len() {
            let folder = self.catalog.capture_folder(&self.archive, node, id);
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(IndexError::io(&folder)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the captures with this path, or below this folder; how many they were.
    ///
    /// # Errors
    ///
    /// The index cannot be read or written.
    pub fn drop_captures(&mut self, path: &Path) -> Result<usize, IndexError> {
        let path = absolute(path).map_err(IndexError::io(path))?;
        self.remove_where(|entry| entry.path.starts_with(&path))
    }

    /// Removes captures with their regions' values.
    fn remove_where(
        &mut self,
        leaves: impl Fn(&CaptureEntry) -> bool,
    ) -> Result<usize, IndexError> {
        let leaving = self.catalog.captures.iter().filter(|entry| leaves(entry));
        let leaving: Vec<CaptureEntry> = leaving.cloned().collect();
        for entry in &leaving {
            for region in &entry.regions {
                // While it is still in the catalogue, in case that the filter has to be made anew.
                self.filter(region.node)?;
            }
        }
        self.catalog.captures.retain(|entry| !leaves(entry));
        for entry in &leaving {
            for (number, region) in entry.regions.iter().enumerate() {
                self.forget(entry, number, region)?;
            }
            let folder = |node| self.catalog.capture_folder(&self.archive, node, entry.id);
            let nodes: HashSet<usize> = entry.regions.iter().map(|region| region.node).collect();
            self.leaving.extend(nodes.into_iter().map(folder));
            self.pending = true;
        }
        Ok(leaving.len())
    }

    /// Takes a region's values back from the filter of its node.
    fn forget(
        &mut self,
        entry: &CaptureEntry,
        number: usize,
        region: &Region,
    ) -> Result<(), IndexError> {
        let node = region.node;
        self.fresh.remove(&(entry.id, number));
        self.changed.insert(node);
        if self.stale.contains(&node) {
            return Ok(());
        }
        let saturated = self.filter(node)?.is_saturated();
        // Of a damaged region nobody knows what to take back.
        match anew::keys_of_region(&self.archive, &self.catalog, entry, number)? {
            Some(keys) if !saturated => self.filter(node)?.remove(&keys),
            _ => {
                self.stale.insert(node);
            }
        }
        Ok(())
    }

    /// Makes everything that was added and removed count, at one moment.
    ///
    /// # Errors
    ///
    /// The index cannot be written; what counted before still does.
    pub fn commit(&mut self) -> Result<(), IndexError> {
        if !self.pending {
            return Ok(());
        }
        for node in std::mem::take(&mut self.stale) {
            self.renew_filter(node)?;
        }
        let mut old = Vec::new();
        for node in std::mem::take(&mut self.changed) {
            let number = self.catalog.take_number();
            let path = self.catalog.filter_file(&self.archive, node, number);
            let mark = disk::write_new(&path, &self.filter(node)?.save())?;
            old.extend(packed::write(
                &self.archive,
                &mut self.catalog,
                node,
                &mut self.fresh,
            )?);
            disk::sync_folder(&self.catalog.node_folder(&self.archive, node))?;
            if let Some((number, _)) = self.catalog.nodes[node].filter.replace((number, mark)) {
                old.push(self.catalog.filter_file(&self.archive, node, number));
            }
        }
        self.catalog.commit(&self.archive)?;
        self.pending = false;
        self.committed = Instant::now();
        // What cannot be deleted now is deleted by the next one who writes.
        for path in old {
            let _ = fs::remove_file(path);
        }
        for folder in std::mem::take(&mut self.leaving) {
            let _ = fs::remove_dir_all(folder);
        }
        Ok(())
    }

    /// The global filter of a node.
    fn filter(&mut self, node: usize) -> Result<&mut NodeFilter, IndexError> {
        if !self.filters.contains_key(&node) {
            let filter = match self.catalog.nodes[node].filter {
                None => NodeFilter::new(0),
                Some((number, mark)) => {
                    let path = self.catalog.filter_file(&self.archive, node, number);
                    match disk::read_checked(&path, mark) {
                        Ok(bytes) => NodeFilter::load(&path, &bytes)?,
                        // Everything that it holds stands in the records.
                        Err(_) => anew::node_filter(&self.archive, &self.catalog, node)?,
                    }
                }
            };
            self.filters.insert(node, filter);
        }
        Ok(self.filters.get_mut(&node).expect("it was put there"))
    }

    fn renew_filter(&mut self, node: usize) -> Result<(), IndexError> {
        let filter = anew::node_filter(&self.archive, &self.catalog, node)?;
        self.filters.insert(node, filter);
        self.changed.insert(node);
        self.pending = true;
        Ok(())
    }

    /// Bytes of the regions of each node.
    fn stored(&self) -> Vec<u64> {
        let mut stored = vec![0; self.catalog.nodes.len()];
        for region in self.catalog.regions() {
            stored[region.node] += region.stored();
        }
        stored
    }
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
    Some(format!("{}: {why}", path.display()))
}

/// The regions of a capture that is being indexed, with their values and filters.
#[derive(Debug, Default)]
struct Made {
    regions: Vec<Region>,
    keys: Vec<Vec<Digest>>,
    filters: Vec<((u64, usize), Vec<u8>)>,
}
