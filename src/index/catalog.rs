//! The catalogue: what an index holds at one moment, in one file that is replaced whole.
//!
//! ```text
//!     ARCHIVE/lock             held by the one who writes
//!     ARCHIVE/catalog.json     names the segments and their files, with lengths and checksums
//!     ARCHIVE/journal          files that a writer is about to make or to delete
//!     ARCHIVE/000005.segment   captures that were added one after the other, with their regions
//!     NODE/lock, NODE/node.json   says which index owns the folder
//!     NODE/000003.filter       a segment's global filter: what its regions in this node hold
//!     NODE/000004.filters      filters of its regions in this node, one behind the other
//!     NODE/000002/             regions of a capture: 0.records.parquet, 0.lists.parquet, 1.records…
//! ```
//!
//! A writer makes new files, waits until they are on the disk, and puts a new catalogue in the
//! place of the old one: that is the moment when all of it counts. Readers take the catalogue that
//! they find and wait for nobody. Files are named by numbers only ([`StoredFile`]), so no path in a
//! catalogue or a journal leads elsewhere; the folders are in `folders`.

use super::disk::{self, FileMark};
use super::folders::{self, IndexId};
use super::{GlobalFilter, IndexError, RegionFilter, path_text};
use crate::decode::Tunnel;
use crate::selection::{SelectedPart, Selection};
use flowsieve_engine::internal::Shown;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// Name and version of the format.
const SCHEMA: &str = "flowsieve.index/4";

/// Formats that are no longer read.
const OLDER: [&str; 3] = ["flowsieve.index/1", "flowsieve.index/2", "flowsieve.index/3"];

/// Numbers that no index reaches, with room for sums.
const MOST: u64 = 1 << 48;

/// More records than a region has.
const MOST_RECORDS: u64 = 1 << 20;

/// Name of the file.
pub(super) const CATALOG: &str = "catalog.json";

/// Ending of a segment's file.
pub(super) const SEGMENT: &str = ".segment";

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

/// Everything that an index holds, but for the captures of its segments.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Catalog {
    /// Names the index in the marks of its nodes.
    pub(super) id: IndexId,
    /// Counts the catalogues that there were.
    pub generation: u64,
    /// Number of the next file or folder.
    pub next: u64,
    /// How captures are indexed.
    pub settings: Settings,
    /// Storage folders.
    pub nodes: Vec<Node>,
    /// The segments, in the order in which their captures were added.
    pub segments: Vec<Segment>,
}

/// How captures are indexed; the same for the whole index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Settings {
    /// Length of a region in nanoseconds.
    pub region_ns: i64,
    /// Structure of the regions' filters.
    #[serde(with = "by_name")]
    pub filter: RegionFilter,
    /// Structure of the global level.
    #[serde(with = "global_by_name")]
    pub global: GlobalFilter,
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

/// A filter of the global level by its name.
mod global_by_name {
    use super::GlobalFilter;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(of: &GlobalFilter, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(of.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<GlobalFilter, D::Error> {
        let name = String::deserialize(input)?;
        GlobalFilter::named(&name)
            .ok_or_else(|| D::Error::custom(format!("no global filter is called {name:?}")))
    }
}

/// Regions of five minutes with the default filters.
impl Default for Settings {
    fn default() -> Self {
        Self {
            region_ns: 300_000_000_000,
            filter: RegionFilter::default(),
            global: GlobalFilter::default(),
            dns_ports: Vec::new(),
        }
    }
}

/// A storage folder.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Node {
    /// The folder; within the archive's if it is not absolute.
    #[serde(with = "path_text")]
    pub folder: PathBuf,
    /// Why readers leave its files alone, if they do; a sentence.
    #[serde(skip)]
    pub(super) problem: Option<String>,
}

impl Node {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder, problem: None }
    }

    /// Whether it is within the archive's folder.
    pub(super) fn is_inside(&self) -> bool {
        !self.folder.is_absolute()
    }

    /// Whether the path goes down only, from the root or from the archive's folder.
    fn goes_down(&self) -> bool {
        let parts = self.folder.components();
        let is_start = |part: &Component<'_>| {
            self.folder.is_absolute() && matches!(part, Component::Prefix(_) | Component::RootDir)
        };
        let mut below = parts.skip_while(is_start).peekable();
        below.peek().is_some() && below.all(|part| matches!(part, Component::Normal(_)))
    }
}

/// A file of an index, or two, by their numbers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StoredFile {
    /// The captures of a segment.
    Segment { number: u64 },
    /// A global filter.
    Filter { node: usize, number: u64 },
    /// Filters of regions.
    Filters { node: usize, number: u64 },
    /// The records and the lists of a region.
    Region { node: usize, capture: u64, region: usize },
}

/// Number and content of a file.
pub type Numbered = (u64, FileMark);

/// Captures that were added one after the other, and what finds them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Segment {
    /// The file with its captures.
    pub file: Numbered,
    /// Captures.
    pub captures: u64,
    /// Captures of which not all packets were indexed.
    pub captures_in_part: u64,
    /// Time of the earliest packet.
    pub start_ns: i64,
    /// Time of the latest one.
    pub end_ns: i64,
    /// What the nodes have of it; only those that have regions of it.
    pub parts: Vec<SegmentPart>,
}

/// What a node has of a segment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SegmentPart {
    /// The node.
    pub node: usize,
    /// Regions.
    pub regions: u64,
    /// Bytes of their files, and of their filters.
    pub bytes: u64,
    /// The global filter of these regions.
    pub filter: Numbered,
    /// Files of the regions' filters.
    pub region_filters: Vec<Numbered>,
}

impl Segment {
    /// Regions in all nodes.
    pub(super) fn regions(&self) -> u64 {
        let regions = self.parts.iter().map(|part| part.regions);
        regions.fold(0, u64::saturating_add)
    }

    /// Notes what these captures come to.
    pub(super) fn count(&mut self, captures: &[CaptureEntry]) {
        let in_part = captures.iter().filter(|entry| entry.part.is_some());
        self.captures = captures.len() as u64;
        self.captures_in_part = in_part.count() as u64;
        let regions = || captures.iter().flat_map(|entry| &entry.regions);
        self.start_ns = regions().map(|region| region.start_ns).min().unwrap_or(0);
        self.end_ns = regions().map(|region| region.end_ns).max().unwrap_or(0);
        for part in &mut self.parts {
            let here = || regions().filter(|region| region.node == part.node);
            part.regions = here().count() as u64;
            part.bytes = here().map(Region::stored).fold(0, u64::saturating_add);
        }
    }

    /// Its captures.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not what was written.
    pub(super) fn captures(&self, archive: &Path) -> Result<Vec<CaptureEntry>, IndexError> {
        let (number, mark) = self.file;
        let path = segment_file(archive, number);
        let damaged = |reason: String| IndexError::Catalog { path: path.clone(), reason };
        let text = match disk::read_checked(&path, mark) {
            Err(IndexError::Damaged { reason, .. }) => return Err(damaged(reason)),
            text => text?,
        };
        let captures: Vec<CaptureEntry> =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        self.check(&captures).map_err(|reason| damaged(reason.into()))?;
        Ok(captures)
    }

    /// What all readers rely on.
    pub(super) fn check(&self, captures: &[CaptureEntry]) -> Result<(), &'static str> {
        let mut ids = HashSet::new();
        if captures.iter().any(|entry| entry.id >= MOST || !ids.insert(entry.id)) {
            return Err("the numbers of its captures are wrong");
        }
        let sizes = captures.iter().flat_map(|entry| {
            let stored = entry.regions.iter().map(Region::stored);
            stored.chain([entry.bytes, entry.packets])
        });
        if sizes.fold(0, u64::saturating_add) >= MOST {
            return Err("its captures are larger than any can be");
        }
        for region in captures.iter().flat_map(|entry| &entry.regions) {
            let part = self.parts.iter().find(|part| part.node == region.node);
            let Some(part) = part else {
                return Err("a region is in no node");
            };
            if region.flows.saturating_add(region.dns) > MOST_RECORDS {
                return Err("a region has more records than any can have");
            }
            let FilterPlace { file, offset, bytes } = region.filters;
            let end = bytes.into_iter().fold(offset, u64::saturating_add);
            let mut files = part.region_filters.iter();
            if !files.any(|&(number, mark)| number == file && end <= mark.bytes) {
                return Err("the filters of a region are in no file");
            }
        }
        Ok(())
    }
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
                self.path.shown(),
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
    /// Bytes of its files, and of its filters.
    pub(super) fn stored(&self) -> u64 {
        let filters = self.filters.bytes.into_iter();
        filters.fold(self.records.bytes.saturating_add(self.lists.bytes), u64::saturating_add)
    }
}

impl Catalog {
    /// Numbers of files from here on are nobody's that this index could meet.
    pub(super) const MOST_FOUND: u64 = MOST / 2;

    pub(super) fn new(id: IndexId, settings: Settings, nodes: Vec<PathBuf>) -> Self {
        Self {
            id,
            generation: 0,
            next: 0,
            settings,
            nodes: nodes.into_iter().map(Node::new).collect(),
            segments: Vec::new(),
        }
    }

    /// The catalogue that is in force.
    ///
    /// # Errors
    ///
    /// There is no index, or its catalogue is gone, damaged or of another format.
    pub fn load(archive: &Path) -> Result<Self, IndexError> {
        let path = archive.join(CATALOG);
        let text = match disk::read(&path) {
            Ok(text) => text,
            Err(IndexError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Err(if is_filled_node(&archive.join(NODE)) {
                    IndexError::Catalog { path, reason: "the file is gone".into() }
                } else {
                    IndexError::Missing(archive.to_owned())
                });
            }
            Err(_) if archive.is_file() => return Err(IndexError::File(archive.to_owned())),
            Err(error) => return Err(error),
        };
        let damaged = |reason: String| IndexError::Catalog { path: path.clone(), reason };
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
        let catalog = serde_json::from_str(inner);
        let mut catalog: Self = catalog.map_err(|error| damaged(error.to_string()))?;
        catalog.check().map_err(|reason| damaged(reason.into()))?;
        folders::confirm(archive, &mut catalog)?;
        Ok(catalog)
    }

    /// What all readers rely on.
    fn check(&self) -> Result<(), &'static str> {
        if self.nodes.is_empty() {
            return Err("it has no node");
        }
        let mut folders = HashSet::new();
        if !self.nodes.iter().all(|node| node.goes_down() && folders.insert(&node.folder)) {
            return Err("the folder of a node is not one");
        }
        if self.settings.region_ns <= 0 {
            return Err("its regions have no length");
        }
        if self.generation >= MOST || self.next >= MOST {
            return Err("it counts further than any index");
        }
        // Sums of these need not look where they end.
        let mut total: u64 = 0;
        for segment in &self.segments {
            let mut nodes = HashSet::new();
            let is_node =
                |part: &SegmentPart| part.node < self.nodes.len() && nodes.insert(part.node);
            if !segment.parts.iter().all(is_node) {
                return Err("a part of a segment is in no node");
            }
            let parts = segment.parts.iter();
            let files =
                parts.clone().flat_map(|part| part.region_filters.iter().chain([&part.filter]));
            let files = files.chain([&segment.file]);
            if files.clone().any(|&(number, _)| number >= self.next) {
                return Err("a file has a number that was not given yet");
            }
            let of_parts = parts.flat_map(|part| [part.regions, part.bytes]);
            let counts = [segment.captures, segment.captures_in_part];
            let counts = counts.into_iter().chain(of_parts);
            total =
                counts.chain(files.map(|(_, mark)| mark.bytes)).fold(total, u64::saturating_add);
        }
        if total >= MOST {
            return Err("it holds more than any index");
        }
        Ok(())
    }

    /// Puts this catalogue in force.
    pub(super) fn commit(&mut self, archive: &Path) -> Result<(), IndexError> {
        self.generation += 1;
        let path = archive.join(CATALOG);
        self.check()
            .map_err(|reason| IndexError::Catalog { path: path.clone(), reason: reason.into() })?;
        let failed = |error: serde_json::Error| IndexError::io(&path)(error.into());
        let inner = serde_json::value::to_raw_value(self).map_err(failed)?;
        let envelope = Envelope {
            schema: SCHEMA.to_owned(),
            checksum: FileMark::of(inner.get().as_bytes()).checksum,
            catalog: &inner,
        };
        let mut text = serde_json::to_vec(&envelope).map_err(failed)?;
        text.push(b'\n');
        disk::replace(archive, CATALOG, &text)
    }

    /// Bytes of the file, and of those that name the captures.
    pub(super) fn bytes(&self, archive: &Path) -> Result<u64, IndexError> {
        let path = archive.join(CATALOG);
        let data = fs::metadata(&path).map_err(IndexError::io(&path))?;
        let of_segments = self.segments.iter().map(|segment| segment.file.1.bytes);
        Ok(data.len() + of_segments.sum::<u64>())
    }

    /// A number that no file has.
    pub(super) const fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// All captures, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// A segment cannot be read.
    pub fn captures(&self, archive: &Path) -> Result<Vec<CaptureEntry>, IndexError> {
        let mut captures = Vec::new();
        for segment in &self.segments {
            captures.extend(segment.captures(archive)?);
        }
        Ok(captures)
    }

    /// Folder of a node.
    pub fn node_folder(&self, archive: &Path, node: usize) -> PathBuf {
        archive.join(&self.nodes[node].folder)
    }

    /// File of a global filter in a node with this number.
    pub(super) fn filter_file(&self, archive: &Path, node: usize, number: u64) -> PathBuf {
        self.node_folder(archive, node).join(format!("{number:06}.filter"))
    }

    /// File with this number of filters of regions in a node.
    pub(super) fn region_filters_file(&self, archive: &Path, node: usize, number: u64) -> PathBuf {
        self.node_folder(archive, node).join(format!("{number:06}.filters"))
    }

    /// Folder of a capture's regions in a node.
    pub(super) fn capture_folder(&self, archive: &Path, node: usize, id: u64) -> PathBuf {
        self.node_folder(archive, node).join(format!("{id:06}"))
    }

    /// The files of a segment, without those of its regions.
    pub(super) fn files_of(segment: &Segment) -> impl Iterator<Item = StoredFile> {
        let of_parts = segment.parts.iter().flat_map(|part| {
            let node = part.node;
            let filters = part.region_filters.iter();
            let filters = filters.map(move |&(number, _)| StoredFile::Filters { node, number });
            filters.chain([StoredFile::Filter { node, number: part.filter.0 }])
        });
        of_parts.chain([StoredFile::Segment { number: segment.file.0 }])
    }

    /// The paths of a stored file; none if there is no such node.
    pub(super) fn paths_of(&self, archive: &Path, stored: StoredFile) -> Vec<PathBuf> {
        let is_node = |node: usize| node < self.nodes.len();
        match stored {
            StoredFile::Segment { number } => vec![segment_file(archive, number)],
            StoredFile::Filter { node, number } if is_node(node) => {
                vec![self.filter_file(archive, node, number)]
            }
            StoredFile::Filters { node, number } if is_node(node) => {
                vec![self.region_filters_file(archive, node, number)]
            }
            StoredFile::Region { node, capture, region } if is_node(node) => {
                let folder = self.capture_folder(archive, node, capture);
                vec![records_file(&folder, region), lists_file(&folder, region)]
            }
            _ => Vec::new(),
        }
    }
}

impl CaptureEntry {
    /// The files of its regions.
    pub(super) fn files(&self) -> impl Iterator<Item = StoredFile> {
        let regions = self.regions.iter().enumerate();
        regions.map(|(region, of)| StoredFile::Region { node: of.node, capture: self.id, region })
    }
}

/// File of a segment's captures.
pub(super) fn segment_file(archive: &Path, number: u64) -> PathBuf {
    archive.join(format!("{number:06}{SEGMENT}"))
}

/// Whether something was put into the folder of a node.
fn is_filled_node(folder: &Path) -> bool {
    let is_other = |name: &std::ffi::OsStr| name != folders::LOCK && name != folders::MARK;
    fs::read_dir(folder)
        .is_ok_and(|entries| entries.flatten().any(|entry| is_other(&entry.file_name())))
}

/// The index, of whatever version, that this folder is or belongs to. Nodes elsewhere belong to none
/// here; see [`is_in_index`].
#[doc(hidden)]
pub fn index_around(folder: &Path) -> Option<PathBuf> {
    let index = folder.ancestors().find(|folder| names(&folder.join(CATALOG), "flowsieve.index/"));
    index.map(Path::to_path_buf)
}

/// Whether this folder is or belongs to an index or a node of one, wherever that is.
#[doc(hidden)]
pub fn is_in_index(folder: &Path) -> bool {
    let is_node = |folder: &Path| names(&folder.join(folders::MARK), "flowsieve.index-node/");
    index_around(folder).is_some() || folder.ancestors().any(is_node)
}

/// Whether a file begins with a schema of this name.
fn names(file: &Path, schema: &str) -> bool {
    let mut head = Vec::new();
    let read = disk::open(file).ok().and_then(|file| file.take(64).read_to_end(&mut head).ok());
    read.is_some() && head.windows(schema.len()).any(|part| part == schema.as_bytes())
}

fn check_schema(path: &Path, found: String) -> Result<(), IndexError> {
    if found == SCHEMA {
        return Ok(());
    }
    let path = path.to_owned();
    if OLDER.contains(&found.as_str()) {
        return Err(IndexError::Older { path, found });
    }
    Err(IndexError::Newer { path, found, known: SCHEMA })
}

/// File of a region's records.
pub(super) fn records_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.records.parquet"))
}

/// File of a region's inverted lists.
pub(super) fn lists_file(capture: &Path, region: usize) -> PathBuf {
    capture.join(format!("{region}.lists.parquet"))
}
