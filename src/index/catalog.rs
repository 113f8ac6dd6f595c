//! The catalogue: what an index holds at one moment, in one file that is replaced as a whole.
//!
//! A writer makes new files, waits until they are on the disk, and puts a new catalogue in the
//! place of the old one: at that moment all of it becomes valid. Readers use the catalogue that they
//! find and never wait. `catalog_file` reads and replaces it, `layout` has the names of the files.

use super::columns::MOST_ROWS;
use super::disk::{self, FileMark, IndexId};
use super::query::IndexQuery;
use super::{GlobalFilter, IndexError, RegionFilter, path_text};
use crate::decode::Tunnel;
use crate::selection::{SelectedPart, Selection};
use crate::trace::StopFlag;
use flowsieve_engine::internal::Shown;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A bound of all counts, with room for sums.
const MOST: u64 = 1 << 48;

/// More records than a region has.
const MOST_RECORDS: u64 = 1 << 20;

/// No path of a capture is longer. Each sentence about a file of the capture has the path.
pub(super) const MOST_PATH: usize = 4096;

/// Most DNS ports: there are no more.
const MOST_PORTS: usize = 1 << 16;

/// Everything that an index holds, except the captures of its segments.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Catalog {
    /// The archive's folder, as it was named; for a writer it is canonical.
    #[serde(skip)]
    pub(super) archive: PathBuf,
    /// Checksum of the text in the file, 0 if there is none yet.
    #[serde(skip)]
    pub(super) checksum: u64,
    /// Names the index in the marks of its nodes.
    pub(super) id: IndexId,
    /// Number of commits.
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
    pub filter: RegionFilter,
    /// Structure of the global level.
    pub global: GlobalFilter,
    /// DNS ports besides 53.
    pub dns_ports: Vec<u16>,
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
    /// The folder; relative to the archive's if it moves and is copied with it.
    #[serde(with = "path_text")]
    pub folder: PathBuf,
    /// Why readers leave its files alone, in a sentence; `None` if they do not.
    #[serde(skip)]
    pub(super) problem: Option<String>,
}

impl Node {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder, problem: None }
    }

    /// Returns whether it moves and is copied with the archive's folder.
    pub(super) fn is_inside(&self) -> bool {
        !self.folder.is_absolute()
    }

    /// Returns whether the path goes down only, from the root or from the archive's folder.
    fn goes_down(&self) -> bool {
        let is_start = |part: &Component<'_>| {
            self.folder.is_absolute() && matches!(part, Component::Prefix(_) | Component::RootDir)
        };
        let mut below = self.folder.components().skip_while(is_start).peekable();
        below.peek().is_some() && below.all(|part| matches!(part, Component::Normal(_)))
    }
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
    /// Its parts in the nodes that have regions of it.
    pub parts: Vec<SegmentPart>,
}

/// The part of a segment in a node.
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
    /// Whether it lacks values, because records were lost when it was built. It rules nothing out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_values: bool,
    /// Files of the regions' filters.
    pub region_filters: Vec<Numbered>,
}

impl Segment {
    /// Returns the regions in all nodes.
    pub(super) fn regions(&self) -> u64 {
        let regions = self.parts.iter().map(|part| part.regions);
        regions.fold(0, u64::saturating_add)
    }

    /// Makes the segment of these captures, and sets the sums of its parts.
    pub(super) fn new(
        file: Numbered,
        mut parts: Vec<SegmentPart>,
        captures: &[CaptureEntry],
    ) -> Self {
        let regions = || captures.iter().flat_map(|entry| &entry.regions);
        for part in &mut parts {
            let here = || regions().filter(|region| region.node == part.node);
            part.regions = here().count() as u64;
            part.bytes = here().map(Region::stored).fold(0, u64::saturating_add);
        }
        Self {
            file,
            captures: captures.len() as u64,
            captures_in_part: captures.iter().filter(|entry| entry.is_in_part()).count() as u64,
            start_ns: regions().map(|region| region.start_ns).min().unwrap_or(0),
            end_ns: regions().map(|region| region.end_ns).max().unwrap_or(0),
            parts,
        }
    }

    /// Checks what all readers rely on.
    pub(super) fn check(&self, captures: &[CaptureEntry]) -> Result<(), &'static str> {
        let mut ids = HashSet::new();
        let are_right = captures.iter().all(|entry| entry.id < MOST && ids.insert(entry.id));
        ensure(are_right, "the numbers of its captures are wrong")?;
        let sizes = captures.iter().flat_map(|entry| {
            let stored = entry.regions.iter().map(Region::stored);
            stored.chain([entry.bytes, entry.packets])
        });
        let size = sizes.fold(0, u64::saturating_add);
        ensure(size < MOST, "its captures are larger than any can be")?;
        let can_be = captures.iter().all(|entry| entry.path.as_os_str().len() <= MOST_PATH);
        ensure(can_be, "the path of a capture is longer than any can be")?;
        for region in captures.iter().flat_map(|entry| &entry.regions) {
            let Some(part) = self.parts.iter().find(|part| part.node == region.node) else {
                return Err("a region is in no node");
            };
            let records = region.flows.saturating_add(region.dns);
            ensure(records <= MOST_RECORDS, "a region has more records than any can have")?;
            let FilterPlace { file, offset, bytes } = region.filters;
            let end = bytes.into_iter().fold(offset, u64::saturating_add);
            let mut files = part.region_filters.iter();
            let are_there = files.any(|&(number, mark)| number == file && end <= mark.bytes);
            ensure(are_there, "the filters of a region are in no file")?;
        }
        Ok(())
    }
}

/// Returns `otherwise` as an error unless something holds.
fn ensure(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// A capture that was indexed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CaptureEntry {
    /// Number of its folders, one in each node that has regions of it.
    pub id: u64,
    /// The capture, as an absolute path.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 of its content, in hexadecimal.
    pub digest: String,
    /// Packets read.
    pub packets: u64,
    /// Why it could only be read up to some place.
    pub damage: Option<String>,
    /// Whether another reading of the same bytes may get further: the system refused something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_pass: bool,
    /// The selection of packets, if not all were indexed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<SelectedPart>,
    /// Its regions, in the order of time.
    pub regions: Vec<Region>,
}

impl CaptureEntry {
    /// Returns whether the index lacks packets of the capture.
    fn is_in_part(&self) -> bool {
        self.part.is_some() || self.damage.is_some()
    }

    /// Returns whether `file` has the content of the capture and the indexed path has not: the
    /// capture was renamed. Reads files of the capture's length.
    #[cfg(feature = "cli")]
    pub(crate) fn was_moved_to(&self, file: &Path) -> bool {
        let has_content =
            |path: &Path| self.is_content_of(path, &StopFlag::default()) == Some(true);
        has_content(file) && !has_content(&self.path)
    }

    /// Returns whether a file has the content of the capture, by length and digest; `None` if it
    /// cannot be read or `stop` is set.
    pub(super) fn is_content_of(&self, file: &Path, stop: &StopFlag) -> Option<bool> {
        let is_as_long = |data: fs::Metadata| data.is_file() && data.len() == self.bytes;
        if !fs::metadata(file).is_ok_and(is_as_long) {
            return Some(false);
        }
        let (digest, _) = disk::content_of(file, stop).ok()??;
        Some(digest == self.digest)
    }

    /// Returns which packets were indexed.
    ///
    /// # Errors
    ///
    /// Another version wrote the expression, and this one cannot read it.
    pub(super) fn selection(&self) -> Result<Selection, IndexError> {
        let Some(part) = &self.part else { return Ok(Selection::default()) };
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    /// The place of its filters.
    pub filters: FilterPlace,
}

impl Region {
    /// Returns the memory that its records take while they are read, at most: columns with room to
    /// grow, and the records.
    pub(super) fn read_bytes(&self) -> u64 {
        const RECORD: u64 = 320;
        self.flows.saturating_add(self.dns).min(MOST_ROWS.unsigned_abs()) * RECORD
    }

    /// Returns whether it may have an answer, by its time and its kinds of records.
    pub(super) fn may_answer(&self, query: &IndexQuery) -> bool {
        let records = if query.domain.is_none() { self.flows } else { self.dns };
        records > 0 && query.takes_times(self.start_ns, self.end_ns)
    }

    /// Returns the bytes of its files, and of its filters.
    pub(super) fn stored(&self) -> u64 {
        let filters = self.filters.bytes.into_iter();
        filters.fold(self.records.bytes.saturating_add(self.lists.bytes), u64::saturating_add)
    }
}

/// The place of the filters of a region.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FilterPlace {
    /// Number of the file, in the region's node.
    pub file: u64,
    /// Their offset in it.
    pub offset: u64,
    /// Bytes of the filter of flows, and of the filter of DNS after it.
    pub bytes: [u64; 2],
}

impl FilterPlace {
    /// Returns the filters in the bytes of their file, or `None` if they are not there.
    pub(super) fn slice(self, file: &[u8]) -> Option<&[u8]> {
        let end = self.bytes.into_iter().try_fold(self.offset, u64::checked_add)?;
        file.get(usize::try_from(self.offset).ok()?..usize::try_from(end).ok()?)
    }
}

impl Catalog {
    /// Folders may already hold numbers below this one; new files get numbers above those.
    pub(super) const MOST_FOUND: u64 = MOST / 2;

    pub(super) fn new(archive: &Path, id: IndexId, settings: Settings, nodes: Vec<Node>) -> Self {
        Self {
            archive: archive.to_owned(),
            checksum: 0,
            id,
            generation: 0,
            next: 0,
            settings,
            nodes,
            segments: Vec::new(),
        }
    }

    /// Checks what all readers rely on.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        ensure(!self.nodes.is_empty(), "it has no node")?;
        let mut folders = HashSet::new();
        let mut nodes = self.nodes.iter();
        let are_folders = nodes.all(|node| node.goes_down() && folders.insert(&node.folder));
        ensure(are_folders, "the folder of a node is not one")?;
        ensure(self.settings.region_ns > 0, "its regions have no length")?;
        let ports = self.settings.dns_ports.len();
        ensure(ports <= MOST_PORTS, "it has more DNS ports than there are")?;
        // A file that many segments name would be read into memory for each of them.
        let mut numbers = HashSet::new();
        let are_new = self.segments.iter().all(|segment| numbers.insert(segment.file.0));
        ensure(are_new, "two segments have one file")?;
        ensure(self.generation.max(self.next) < MOST, "it counts further than any index")?;
        // Sums of these cannot overflow.
        let mut total: u64 = 0;
        for Segment { file, captures, captures_in_part, parts, .. } in &self.segments {
            let mut nodes = HashSet::new();
            let is_node =
                |part: &SegmentPart| part.node < self.nodes.len() && nodes.insert(part.node);
            ensure(parts.iter().all(is_node), "a part of a segment is in no node")?;
            let files =
                parts.iter().flat_map(|part| part.region_filters.iter().chain([&part.filter]));
            let files = files.chain([file]);
            let are_given = files.clone().all(|&(number, _)| number < self.next);
            ensure(are_given, "a file has a number that was not given yet")?;
            let of_parts = parts.iter().flat_map(|part| [part.regions, part.bytes]);
            let counts = of_parts.chain([*captures, *captures_in_part]);
            let bytes = files.map(|(_, mark)| mark.bytes);
            total = counts.chain(bytes).fold(total, u64::saturating_add);
        }
        ensure(total < MOST, "it holds more than any index")
    }

    /// Returns a number that no file has.
    pub(super) const fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}
