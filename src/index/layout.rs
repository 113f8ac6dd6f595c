//! Names of the files of an index, which all follow from numbers: no path in a catalogue or a
//! journal leads elsewhere.
//!
//! ```text
//!     ARCHIVE/lock             held by the process that writes
//!     ARCHIVE/catalog.json     names the segments and their files, with lengths and checksums
//!     ARCHIVE/journal          files that a writer is about to make or delete
//!     ARCHIVE/000005.segment   the captures of a segment, with their regions
//!     NODE/lock, NODE/node.json   says which index owns the folder
//!     NODE/000005.segment      a copy of that file, in the first node only
//!     NODE/000003.filter       a segment's global filter: the values of its regions in this node
//!     NODE/000004.filters      filters of these regions, one after the other
//!     NODE/000002/             regions of a capture: 0.records.parquet, 0.lists.parquet, 1.records…
//! ```

use super::catalog::{CaptureEntry, Catalog, Segment};
use super::{IndexError, disk};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf, absolute};

/// Name of the mark's format, without its version.
pub(super) const SCHEMA_NAME: &str = "flowsieve.index-node/";

/// File name of the catalogue.
pub(super) const CATALOG: &str = "catalog.json";

/// File name of the journal.
pub(super) const JOURNAL: &str = "journal";

/// File name of a folder's lock.
pub(super) const LOCK: &str = "lock";

/// File name of a node's mark.
pub(super) const MARK: &str = "node.json";

/// Name of the only node's folder, unless others were named.
pub(super) const NODE: &str = "node";

/// One or two files of an index that are made and deleted together.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StoredFile {
    /// The captures of a segment, and the copy.
    Segment { number: u64 },
    /// A global filter.
    Filter { node: usize, number: u64 },
    /// Filters of regions.
    Filters { node: usize, number: u64 },
    /// The records and the lists of a region.
    Region { node: usize, capture: u64, region: usize },
}

impl StoredFile {
    /// The names of the kinds.
    pub(super) const KINDS: [&'static str; 4] = ["segment", "filter", "filters", "region"];

    /// Returns the files that a segment names, but for those of its regions.
    pub(super) fn of_segment(segment: &Segment) -> impl Iterator<Item = Self> {
        let of_parts = segment.parts.iter().flat_map(|part| {
            let node = part.node;
            let filters = part.region_filters.iter();
            let filters = filters.map(move |&(number, _)| Self::Filters { node, number });
            filters.chain([Self::Filter { node, number: part.filter.0 }])
        });
        of_parts.chain([Self::Segment { number: segment.file.0 }])
    }

    /// Returns the files of a capture's regions.
    pub(super) fn of_capture(entry: &CaptureEntry) -> impl Iterator<Item = Self> {
        let (capture, regions) = (entry.id, entry.regions.iter().enumerate());
        regions.map(move |(region, of)| Self::Region { node: of.node, capture, region })
    }
}

impl Catalog {
    /// Returns the folder of a node.
    pub fn node_folder(&self, node: usize) -> PathBuf {
        self.archive.join(&self.nodes[node].folder)
    }

    /// Returns the file of a segment's captures, and its copy.
    pub(super) fn segment_files(&self, number: u64) -> [PathBuf; 2] {
        [self.archive.clone(), self.node_folder(0)]
            .map(|folder| in_folder(&folder, number, "segment"))
    }

    /// Returns the file of a global filter.
    pub(super) fn filter_file(&self, node: usize, number: u64) -> PathBuf {
        in_folder(&self.node_folder(node), number, "filter")
    }

    /// Returns the file of filters of regions.
    pub(super) fn region_filters_file(&self, node: usize, number: u64) -> PathBuf {
        in_folder(&self.node_folder(node), number, "filters")
    }

    /// Returns the folder of a capture's regions in a node.
    pub(super) fn capture_folder(&self, node: usize, id: u64) -> PathBuf {
        self.node_folder(node).join(format!("{id:06}"))
    }

    /// Deletes a file that the catalogue or the journal named. Nothing happens if it is gone, or if
    /// there is no such node.
    pub(super) fn delete(&self, stored: StoredFile) -> Result<(), IndexError> {
        let is_node = |node: usize| node < self.nodes.len();
        let (paths, folder) = match stored {
            StoredFile::Segment { number } => (self.segment_files(number).to_vec(), None),
            StoredFile::Filter { node, number } if is_node(node) => {
                (vec![self.filter_file(node, number)], None)
            }
            StoredFile::Filters { node, number } if is_node(node) => {
                (vec![self.region_filters_file(node, number)], None)
            }
            StoredFile::Region { node, capture, region } if is_node(node) => {
                let folder = self.capture_folder(node, capture);
                let data = disk::if_there(fs::symlink_metadata(&folder));
                // A link leads to a folder of others, and a file of that name is not the index's.
                if !data.map_err(IndexError::io(&folder))?.is_some_and(|data| data.is_dir()) {
                    return Ok(());
                }
                (vec![records_file(&folder, region), lists_file(&folder, region)], Some(folder))
            }
            _ => return Ok(()),
        };
        for path in &paths {
            // Folders and links of that name are not the index's.
            if fs::symlink_metadata(path).is_ok_and(|data| !data.is_file()) {
                continue;
            }
            disk::if_there(disk::remove(path)).map_err(IndexError::io(path))?;
        }
        // The folder goes with its last region; files of others keep it.
        let _ = folder.map(fs::remove_dir);
        Ok(())
    }

    /// Returns a number above all that stand at the beginning of names in the folders of the index:
    /// a new file never meets one that is there, whoever made it.
    pub(super) fn next_free(&self) -> Result<u64, IndexError> {
        let mut next = self.next;
        let nodes = (0..self.nodes.len()).map(|node| self.node_folder(node));
        for folder in nodes.chain([self.archive.clone()]) {
            for entry in fs::read_dir(&folder).map_err(IndexError::io(&folder))? {
                let name = entry.map_err(IndexError::io(&folder))?.file_name();
                let name = name.to_string_lossy();
                let number = name.split('.').next().and_then(|digits| digits.parse::<u64>().ok());
                if let Some(number) = number.filter(|&number| number < Self::MOST_FOUND) {
                    next = next.max(number + 1);
                }
            }
        }
        Ok(next)
    }
}

fn in_folder(folder: &Path, number: u64, ending: &str) -> PathBuf {
    folder.join(format!("{number:06}.{ending}"))
}

/// Returns the file of a region's records.
pub(super) fn records_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.records.parquet"))
}

/// Returns the file of a region's inverted lists.
pub(super) fn lists_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.lists.parquet"))
}

/// Returns whether a node's folder holds more than what makes it a node.
pub(super) fn is_filled_node(folder: &Path) -> bool {
    let is_temporary =
        |name: &OsStr| name.to_str().is_some_and(|name| disk::is_temporary(name, MARK));
    let is_other = |name: &OsStr| name != LOCK && name != MARK && !is_temporary(name);
    fs::read_dir(folder)
        .is_ok_and(|entries| entries.flatten().any(|entry| is_other(&entry.file_name())))
}

/// Returns the index, of any version, that this folder is or belongs to. Nodes elsewhere are in
/// none; see [`is_in_index`].
#[doc(hidden)]
pub fn index_around(folder: &Path) -> Option<PathBuf> {
    // Where `..` and links lead.
    let folder = &fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let index = folder.ancestors().find(|folder| names(&folder.join(CATALOG), "flowsieve.index/"));
    index.map(Path::to_path_buf)
}

/// Returns whether a file is named like one of the many in an index.
#[doc(hidden)]
pub fn is_named_index_file(file: &Path) -> bool {
    let ending = file.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| ["parquet", "filter", "filters", "segment"].contains(&ending))
}

/// Returns the absolute path of a folder without links on the way to it. Its end may not be there,
/// and so have none.
#[doc(hidden)]
pub fn folder_to_be(folder: &Path) -> io::Result<PathBuf> {
    let folder = absolute(folder)?;
    let there = |above: &Path| {
        let rest = folder.strip_prefix(above).ok()?;
        Some(fs::canonicalize(above).ok()?.join(rest))
    };
    Ok(folder.ancestors().find_map(there).unwrap_or_else(|| folder.clone()))
}

/// Returns whether this folder is or belongs to an index or a node.
#[doc(hidden)]
pub fn is_in_index(folder: &Path) -> bool {
    is_node(folder) || index_or_node_around(folder).is_some()
}

/// Returns the index that this folder is or belongs to, or the node that it is inside.
pub(super) fn index_or_node_around(folder: &Path) -> Option<PathBuf> {
    let node = || folder.ancestors().skip(1).find(|folder| is_node(folder));
    index_around(folder).or_else(|| node().map(Path::to_path_buf))
}

fn is_node(folder: &Path) -> bool {
    names(&folder.join(MARK), SCHEMA_NAME)
}

/// Returns whether a file begins with a schema of this name.
fn names(file: &Path, schema: &str) -> bool {
    let mut head = Vec::new();
    let read = disk::open(file).ok().and_then(|file| file.take(64).read_to_end(&mut head).ok());
    read.is_some() && head.windows(schema.len()).any(|part| part == schema.as_bytes())
}
