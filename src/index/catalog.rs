//! The catalogue: what an index holds at one moment, in one file that is replaced whole.
//!
//! ```text
//!     ARCHIVE/lock           held by the one who writes
//!     ARCHIVE/catalog.json   names every other file, with its length and checksum
//!     NODE/000003.filter     the node's global filter
//!     NODE/000004.filters    filters of regions of the node, one behind the other
//!     NODE/000002/           regions of a capture: 0.records.parquet, 0.lists.parquet, 1.records…
//! ```
//!
//! A writer makes new files, waits until they are on the disk, and puts a new catalogue in the place of
//! the old one: that is the moment when all of it counts. Files that no catalogue names are left over
//! from a writer that was killed, and the next one deletes them. Readers take the catalogue that they
//! find and wait for nobody.

use super::IndexError;
use super::disk::{self, FileMark};
use super::{RegionFilter, path_text};
use crate::decode::Tunnel;
use crate::selection::{SelectedPart, Selection};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Name and version of the format.
const SCHEMA: &str = "flowsieve.index/2";

/// The version without ribbon filters: still read, and written where none are wanted.
const SCHEMA_WITHOUT_RIBBONS: &str = "flowsieve.index/1";

/// Numbers that no index reaches, with room for sums.
const MOST: u64 = 1 << 48;

/// More records than a region has.
const MOST_RECORDS: u64 = 1 << 20;

/// Name of the file.
pub(super) const CATALOG: &str = "catalog.json";

/// Name of the only node's folder, unless others were named.
pub(super) const NODE: &str = "node";

/// The file: the catalogue's text with its checksum.
#[derive(Deserialize, Serialize)]
struct Envelope<'a> {
    schema: String,
    checksum: u64,
    #[serde(borrow)]
    catalog: &'a RawValue,
}

/// What must be readable in every version.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// Everything that an index holds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Catalog {
    /// Counts the catalogues that there were.
    pub generation: u64,
    /// Number of the next file or folder.
    pub next: u64,
    /// How captures are indexed.
    pub settings: Settings,
    /// Storage folders.
    pub nodes: Vec<Node>,
    /// The captures, in the order in which they were added.
    pub captures: Vec<CaptureEntry>,
}

/// How captures are indexed; the same for the whole index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Settings {
    /// Length of a region in nanoseconds.
    pub region_ns: i64,
    /// Structure of the regions' filters.
    #[serde(with = "by_name")]
    pub filter: RegionFilter,
    /// Ports on which DNS is spoken, besides 53.
    pub dns_ports: Vec<u16>,
}

/// A kind of filter by its name.
mod by_name {
    use super::RegionFilter;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(of: &RegionFilter, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(of.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<RegionFilter, D::Error> {
        let name = String::deserialize(input)?;
        RegionFilter::named(&name)
            .ok_or_else(|| D::Error::custom(format!("no filter of a region is called {name:?}")))
    }
}

/// Regions of five minutes with the default filter.
impl Default for Settings {
    fn default() -> Self {
        Self {
            region_ns: 300_000_000_000,
            filter: RegionFilter::default(),
            dns_ports: Vec::new(),
        }
    }
}

/// A storage folder with its global filter.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Node {
    /// The folder; within the archive's if it is not absolute.
    #[serde(with = "path_text")]
    pub folder: PathBuf,
    /// Number of the filter's file, and what it has; none while the node is empty.
    pub filter: Option<(u64, FileMark)>,
    /// Files of filters of regions, with their numbers.
    pub region_filters: Vec<(u64, FileMark)>,
}

/// A capture that was indexed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CaptureEntry {
    /// Number of its folders, one in each node that has regions of it.
    pub id: u64,
    /// The capture, as an absolute path.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// XXH3 of 128 bits of its content, in hexadecimal.
    pub digest: String,
    /// Packets read.
    pub packets: u64,
    /// Why it could be read up to some place only.
    pub damage: Option<String>,
    /// Which of its packets were indexed, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<SelectedPart>,
    /// Its regions, in the order of time.
    pub regions: Vec<Region>,
}

impl CaptureEntry {
    /// Which packets were indexed.
    ///
    /// # Errors
    ///
    /// The expression was written by another version, and is none for this one.
    pub(super) fn selection(&self) -> Result<Selection, IndexError> {
        let Some(part) = &self.part else {
            return Ok(Selection::default());
        };
        part.selection(Tunnel::Outer).map_err(|error| {
            IndexError::Plan(format!(
                "{}: the capture filter by which it was indexed cannot be read: {}",
                self.path.display(),
                error.problem()
            ))
        })
    }
}

/// Part of a capture: what began in a range of time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Region {
    /// The node that has its files.
    pub node: usize,
    /// Time of the earliest packet.
    pub start_ns: i64,
    /// Time of the latest one.
    pub end_ns: i64,
    /// Flow records.
    pub flows: u64,
    /// DNS records.
    pub dns: u64,
    /// The file of the records.
    pub records: FileMark,
    /// The file of the inverted lists.
    pub lists: FileMark,
    /// Where its filters are.
    pub filters: FilterPlace,
}

/// Where the filters of a region are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FilterPlace {
    /// Number of the file, in the region's node.
    pub file: u64,
    /// Where they begin in it.
    pub offset: u64,
    /// Bytes of the filter of flows, and those of the filter of DNS behind it.
    pub bytes: [u64; 2],
}

impl Region {
    /// Bytes of its files.
    pub(super) fn stored(&self) -> u64 {
        self.records.bytes + self.lists.bytes + self.filters.bytes.iter().sum::<u64>()
    }
}

impl Catalog {
    /// How many captures were not indexed whole.
    pub(super) fn captures_in_part(&self) -> u64 {
        let in_part = self.captures.iter().filter(|entry| entry.part.is_some());
        in_part.count() as u64
    }

    pub(super) fn new(settings: Settings, nodes: Vec<PathBuf>) -> Self {
        let node = |folder| Node {
            folder,
            filter: None,
            region_filters: Vec::new(),
        };
        Self {
            generation: 0,
            next: 0,
            settings,
            nodes: nodes.into_iter().map(node).collect(),
            captures: Vec::new(),
        }
    }

    /// The catalogue that is in force.
    ///
    /// # Errors
    ///
    /// There is no index, or its catalogue is gone, damaged or of another format.
    pub fn load(archive: &Path) -> Result<Self, IndexError> {
        let path = archive.join(CATALOG);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(if is_filled_node(&archive.join(NODE)) {
                    IndexError::Catalog {
                        path,
                        reason: "the file is gone".into(),
                    }
                } else {
                    IndexError::Missing(archive.to_owned())
                });
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory && archive.is_file() => {
                return Err(IndexError::File(archive.to_owned()));
            }
            Err(error) => return Err(IndexError::io(&path)(error)),
        };
        let damaged = |reason: String| IndexError::Catalog {
            path: path.clone(),
            reason,
        };
        let envelope: Envelope<'_> = match serde_json::from_slice(&text) {
            Ok(envelope) => envelope,
            // Another format may have another envelope.
            Err(error) => {
                let head = serde_json::from_slice(&text);
                let Head { schema } = head.map_err(|_| damaged(error.to_string()))?;
                check_schema(&path, schema)?;
                return Err(damaged(error.to_string()));
            }
        };
        check_schema(&path, envelope.schema)?;
        let inner = envelope.catalog.get();
        if FileMark::of(inner.as_bytes()).checksum != envelope.checksum {
            return Err(damaged("its checksum is another one".into()));
        }
        let catalog: Self =
            serde_json::from_str(inner).map_err(|error| damaged(error.to_string()))?;
        catalog.check().map_err(|reason| damaged(reason.into()))?;
        Ok(catalog)
    }

    /// What all readers rely on.
    fn check(&self) -> Result<(), &'static str> {
        if self.nodes.is_empty() {
            return Err("it has no node");
        }
        if self.settings.region_ns <= 0 {
            return Err("its regions have no length");
        }
        if self.generation >= MOST || self.next >= MOST {
            return Err("it counts further than any index");
        }
        let files = self.nodes.iter().flat_map(|node| &node.region_filters);
        let mut lengths = files.map(|(_, mark)| mark.bytes);
        if lengths.any(|bytes| bytes >= MOST) || self.captures.iter().any(|c| c.bytes >= MOST) {
            return Err("a file is longer than any can be");
        }
        for region in self.regions() {
            let Some(node) = self.nodes.get(region.node) else {
                return Err("a region is in no node");
            };
            if region.flows.saturating_add(region.dns) > MOST_RECORDS {
                return Err("a region has more records than any can have");
            }
            let FilterPlace {
                file,
                offset,
                bytes,
            } = region.filters;
            let end = bytes.into_iter().fold(offset, u64::saturating_add);
            let files = &node.region_filters;
            if !(files.iter()).any(|&(number, mark)| number == file && end <= mark.bytes) {
                return Err("the filters of a region are in no file");
            }
        }
        Ok(())
    }

    /// Puts this catalogue in force.
    pub(super) fn commit(&mut self, archive: &Path) -> Result<(), IndexError> {
        self.generation += 1;
        let path = archive.join(CATALOG);
        let failed = |error: serde_json::Error| IndexError::io(&path)(error.into());
        let inner = serde_json::value::to_raw_value(self).map_err(failed)?;
        let envelope = Envelope {
            schema: match self.settings.filter {
                RegionFilter::Ribbon => SCHEMA.to_owned(),
                RegionFilter::Structure(_) => SCHEMA_WITHOUT_RIBBONS.to_owned(),
            },
            checksum: FileMark::of(inner.get().as_bytes()).checksum,
            catalog: &inner,
        };
        let mut text = serde_json::to_vec(&envelope).map_err(failed)?;
        text.push(b'\n');
        disk::replace(archive, CATALOG, &text)
    }

    /// Bytes of the file.
    pub(super) fn bytes(archive: &Path) -> Result<u64, IndexError> {
        let path = archive.join(CATALOG);
        let data = fs::metadata(&path).map_err(IndexError::io(&path))?;
        Ok(data.len())
    }

    /// A number that no file has.
    pub(super) const fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// All regions.
    pub(super) fn regions(&self) -> impl Iterator<Item = &Region> {
        self.captures.iter().flat_map(|entry| &entry.regions)
    }

    /// Folder of a node.
    pub fn node_folder(&self, archive: &Path, node: usize) -> PathBuf {
        archive.join(&self.nodes[node].folder)
    }

    /// File of a node's global filter with this number.
    pub(super) fn filter_file(&self, archive: &Path, node: usize, number: u64) -> PathBuf {
        self.node_folder(archive, node)
            .join(format!("{number:06}.filter"))
    }

    /// File with this number of filters of a node's regions.
    pub(super) fn region_filters_file(&self, archive: &Path, node: usize, number: u64) -> PathBuf {
        self.node_folder(archive, node)
            .join(format!("{number:06}.filters"))
    }

    /// Folder of a capture's regions in a node.
    pub(super) fn capture_folder(&self, archive: &Path, node: usize, id: u64) -> PathBuf {
        self.node_folder(archive, node).join(format!("{id:06}"))
    }

    /// The regions of a node, with their captures and their numbers in them.
    pub(super) fn regions_of(
        &self,
        node: usize,
    ) -> impl Iterator<Item = (&CaptureEntry, usize, &Region)> {
        self.captures.iter().flat_map(move |entry| {
            let regions = entry.regions.iter().enumerate();
            let regions = regions.filter(move |(_, region)| region.node == node);
            regions.map(move |(number, region)| (entry, number, region))
        })
    }
}

/// Whether something was put into the folder of a node.
fn is_filled_node(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// The index, of whatever version, that this folder is or belongs to.
#[doc(hidden)]
pub fn index_around(folder: &Path) -> Option<PathBuf> {
    /// The catalogue, a node, a capture.
    const DEPTH: usize = 3;
    let mut folders = folder.ancestors().take(DEPTH);
    let index = folders.find(|folder| {
        let mut head = Vec::new();
        let file = File::open(folder.join(CATALOG));
        let read = file.and_then(|file| file.take(64).read_to_end(&mut head));
        read.is_ok() && head.windows(16).any(|part| part == b"flowsieve.index/")
    });
    index.map(Path::to_path_buf)
}

fn check_schema(path: &Path, found: String) -> Result<(), IndexError> {
    if [SCHEMA, SCHEMA_WITHOUT_RIBBONS].contains(&found.as_str()) {
        return Ok(());
    }
    Err(IndexError::Newer {
        path: path.to_owned(),
        found,
        known: SCHEMA,
    })
}

/// File of a region's records.
pub(super) fn records_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.records.parquet"))
}

/// File of a region's inverted lists.
pub(super) fn lists_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.lists.parquet"))
}
