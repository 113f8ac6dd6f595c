//! Building, adding, dropping: the one who writes.

use super::catalog::{CATALOG, CaptureEntry, Catalog, Settings, filters_file};
use super::disk::{self, FileMark};
use super::node_filter::{NodeFilter, keys_of};
use super::region::{elements_of, read_records, write_region};
use super::{IndexError, folders, gather};
use crate::hashing::Digest;
use crate::pipeline::Watch;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
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
    /// Nodes whose filter differs from that on the disk.
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
    threads: usize,
    _lock: File,
}

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
    /// It is a log and has no packets.
    Log,
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
            changed: HashSet::new(),
            stale: HashSet::new(),
            pending: false,
            leaving: Vec::new(),
            committed: Instant::now(),
            memory_bytes: 256 << 20,
            threads: 2,
            _lock: lock,
        }
    }

    /// What the index holds.
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
            Ok(path) if path.to_str().is_some() => path,
            Ok(path) => {
                return Ok(Added::Unreadable(format!(
                    "{}: the path is not UTF-8, so the catalogue cannot name it; rename the file",
                    path.display()
                )));
            }
            Err(error) => return unreadable(IndexError::io(path)(error)),
        };
        let (digest, bytes) = match disk::content_of(&path) {
            Ok(content) => content,
            Err(error) => return unreadable(error),
        };
        let digest = format!("{digest:032x}");
        let same = |entry: &&mut CaptureEntry| entry.digest == digest;
        if let Some(known) = self.catalog.captures.iter_mut().find(same) {
            if known.path != path && !known.path.exists() {
                // It was moved.
                known.path = path;
                self.pending = true;
            }
            return Ok(Added::Known);
        }
        let id = self.catalog.take_number();
        let node = self.emptiest_node();
        let mut entry = CaptureEntry {
            id,
            node,
            path: path.clone(),
            bytes,
            digest,
            packets: 0,
            damage: None,
            filters: FileMark::default(),
            regions: Vec::new(),
        };
        let folder = self.catalog.capture_folder(&self.archive, &entry);
        fs::create_dir_all(&folder).map_err(IndexError::io(&folder))?;
        let mut filters = Vec::new();
        let mut keys: Vec<Vec<Digest>> = Vec::new();
        let settings = self.catalog.settings.clone();
        let regions = &mut entry.regions;
        let summary = gather::regions(
            &path,
            &settings,
            self.memory_bytes,
            self.threads,
            watch,
            |records| {
                let elements = elements_of(&records);
                keys.push(keys_of(&elements));
                regions.push(write_region(
                    &folder,
                    regions.len(),
                    &settings,
                    &records,
                    &elements,
                    &mut filters,
                )?);
                Ok(())
            },
        )?;
        let input = &summary.inputs[0];
        let damage = input.error.as_ref().map(ToString::to_string);
        let container = input.container.as_deref().unwrap_or_default();
        let is_log = container.contains("dns");
        if is_log || (entry.regions.is_empty() && damage.is_some()) {
            fs::remove_dir_all(&folder).map_err(IndexError::io(&folder))?;
            return Ok(match damage {
                Some(damage) if !is_log => Added::Unreadable(damage),
                _ => Added::Log,
            });
        }
        entry.packets = input.packets;
        entry.damage.clone_from(&damage);
        entry.filters = disk::write_new(&filters_file(&folder), &filters)?;
        disk::sync_folder(&folder)?;
        self.remove_where(|known| known.path == path)?;
        for keys in &keys {
            self.filter(node)?.insert(keys);
        }
        let regions = entry.regions.len();
        self.catalog.captures.push(entry);
        self.changed.insert(node);
        self.pending = true;
        if self.filter(node)?.is_full() {
            self.renew_filter(node)?;
        }
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(Added::Indexed { regions, damage })
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
            // While it is still in the catalogue, in case that the filter has to be made anew.
            self.filter(entry.node)?;
        }
        self.catalog.captures.retain(|entry| !leaves(entry));
        for entry in &leaving {
            if !self.stale.contains(&entry.node) {
                let saturated = self.filter(entry.node)?.is_saturated();
                // Of a damaged region nobody knows what to take back.
                let keys: Option<Vec<_>> = self.keys_of_capture(entry)?.into_iter().collect();
                match keys.filter(|_| !saturated) {
                    Some(keys) => {
                        for keys in &keys {
                            self.filter(entry.node)?.remove(keys);
                        }
                    }
                    None => {
                        self.stale.insert(entry.node);
                    }
                }
            }
            self.changed.insert(entry.node);
            self.pending = true;
            self.leaving
                .push(self.catalog.capture_folder(&self.archive, entry));
        }
        Ok(leaving.len())
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
                        Err(_) => self.made_anew(node)?,
                    }
                }
            };
            self.filters.insert(node, filter);
        }
        Ok(self.filters.get_mut(&node).expect("it was put there"))
    }

    fn renew_filter(&mut self, node: usize) -> Result<(), IndexError> {
        let filter = self.made_anew(node)?;
        self.filters.insert(node, filter);
        self.changed.insert(node);
        self.pending = true;
        Ok(())
    }

    /// The filter of a node from the records of its captures.
    fn made_anew(&self, node: usize) -> Result<NodeFilter, IndexError> {
        let of_node = || {
            self.catalog
                .captures
                .iter()
                .filter(|entry| entry.node == node)
        };
        let mut distinct = HashSet::new();
        for entry in of_node() {
            let keys = self.keys_of_capture(entry)?;
            distinct.extend(keys.into_iter().flatten().flatten());
        }
        // As many as come before links must be larger again.
        let mut filter = NodeFilter::new(2 * distinct.len() as u64);
        for entry in of_node() {
            for keys in self.keys_of_capture(entry)?.into_iter().flatten() {
                filter.insert(&keys);
            }
        }
        Ok(filter)
    }

    /// Distinct values of each region of a capture; none of a region that is damaged or gone, of which
    /// nothing can be found anyway.
    fn keys_of_capture(
        &self,
        entry: &CaptureEntry,
    ) -> Result<Vec<Option<Vec<Digest>>>, IndexError> {
        let folder = self.catalog.capture_folder(&self.archive, entry);
        let keys = entry.regions.iter().enumerate().map(|(number, region)| {
            match read_records(&folder, number, region) {
                Ok(records) => Ok(Some(keys_of(&elements_of(&records)))),
                Err(error @ IndexError::Io { .. }) if !error.is_missing_file() => Err(error),
                Err(_) => Ok(None),
            }
        });
        keys.collect()
    }

    /// The node with the fewest bytes of captures.
    fn emptiest_node(&self) -> usize {
        let mut bytes = vec![0; self.catalog.nodes.len()];
        for entry in &self.catalog.captures {
            bytes[entry.node] += entry.bytes;
        }
        (0..bytes.len())
            .min_by_key(|&node| bytes[node])
            .unwrap_or(0)
    }
}
