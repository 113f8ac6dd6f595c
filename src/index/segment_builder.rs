//! Segments that are being built or changed.
//!
//! ```text
//!     commit:   [ 200 regions ][ 16 ][ 5 ]  + 4 new    ─►   [ 200 ][ 16 ][ 9 ]
//! ```
//!
//! The captures of a commit become a segment, together with the newer segments that are less than twice
//! as large: so there are few small segments, and each filter is rewritten only a few times.
//! Segments of 256 regions are not merged any more, because a search reads the region filters of
//! whole segments.

use super::catalog::{CaptureEntry, Catalog, FilterPlace, Region, Segment, SegmentPart};
use super::disk;
use super::error::undamaged;
use super::global::Global;
use super::journal::NewFiles;
use super::layout::StoredFile;
use super::region::RegionKeys;
use super::{IndexError, rebuild};
use crate::hashing::Digest;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// Regions of a segment that takes in no others.
const MOST_REGIONS: u64 = 256;

/// The number of a capture, and that of a region in it.
type RegionId = (u64, usize);

/// A segment that is not written yet.
#[derive(Debug, Default)]
pub(super) struct SegmentBuilder {
    pub(super) captures: Vec<CaptureEntry>,
    parts: BTreeMap<usize, PartBuilder>,
}

/// The part of a segment in a node.
#[derive(Debug, Default)]
struct PartBuilder {
    /// The global filter, without the values of `keys`; `None` if it has to be rebuilt.
    global: Option<Global>,
    /// Whether the global filter lacks values, because records were lost when it was built.
    lacks_values: bool,
    /// Values that are not in the global filter yet.
    keys: Vec<Digest>,
    /// Filters of regions that are not damaged.
    filters: HashMap<RegionId, Vec<u8>>,
}

impl SegmentBuilder {
    /// Adds a capture to the last of the new segments, or to another one if that has no room.
    pub(super) fn add_to(
        fresh: &mut Vec<Self>,
        catalog: &Catalog,
        entry: CaptureEntry,
        regions: Vec<RegionKeys>,
    ) {
        let mut builder =
            fresh.pop_if(|builder| builder.has_room(entry.regions.len())).unwrap_or_default();
        for (number, (region, added)) in entry.regions.iter().zip(regions).enumerate() {
            let part = builder.parts.entry(region.node).or_insert_with(|| PartBuilder {
                global: Some(Global::new(catalog.settings.global, 0)),
                ..PartBuilder::default()
            });
            part.keys.extend(added.keys);
            part.filters.insert((entry.id, number), added.filters);
        }
        builder.captures.push(entry);
        fresh.push(builder);
    }

    /// Reads a segment that is to be changed. What is damaged is rebuilt when it is written.
    fn open(catalog: &Catalog, segment: &Segment) -> Result<Self, IndexError> {
        let captures = catalog.captures_of(segment, &mut Vec::new())?;
        let mut parts = BTreeMap::new();
        for of_node in &segment.parts {
            let mut part =
                PartBuilder { lacks_values: of_node.lacks_values, ..PartBuilder::default() };
            let (number, mark) = of_node.filter;
            let path = catalog.filter_file(of_node.node, number);
            part.global = undamaged(Global::read(catalog.settings.global, &path, mark))?;
            let (mut files, mut errors) = (FilterFiles::default(), Vec::new());
            files.read(catalog, of_node, &mut errors);
            for error in errors {
                undamaged::<()>(Err(error))?;
            }
            for (entry, number, region) in regions_in(&captures, of_node.node) {
                if let Some(filters) = files.of(region) {
                    part.filters.insert((entry.id, number), filters.to_vec());
                }
            }
            parts.insert(of_node.node, part);
        }
        Ok(Self { captures, parts })
    }

    /// Removes captures with the values of their regions.
    pub(super) fn remove(
        &mut self,
        catalog: &Catalog,
        leaving: &HashSet<u64>,
    ) -> Result<(), IndexError> {
        let leaves = |entry: &CaptureEntry| leaving.contains(&entry.id);
        for (&node, part) in &mut self.parts {
            let mut keys = Vec::new();
            let entries = self.captures.iter().filter(|entry| leaves(entry));
            for (entry, number, _) in regions_in(entries, node) {
                part.filters.remove(&(entry.id, number));
                if part.global.is_none() {
                    continue;
                }
                match rebuild::keys_of_region(catalog, entry, number)? {
                    Some(of_region) => keys.extend(of_region),
                    // Nobody knows which values a damaged region had.
                    None => part.global = None,
                }
            }
            part.insert_keys();
            part.global.take_if(|global| !global.remove(&keys));
        }
        self.captures.retain(|entry| !leaves(entry));
        Ok(())
    }

    /// Appends the captures of the next segment.
    fn append(&mut self, next: Self) {
        self.captures.extend(next.captures);
        for (node, mut theirs) in next.parts {
            let Some(ours) = self.parts.get_mut(&node) else {
                self.parts.insert(node, theirs);
                continue;
            };
            ours.insert_keys();
            theirs.insert_keys();
            let both = ours.global.as_mut().zip(theirs.global.as_ref());
            if !both.is_some_and(|(ours, theirs)| ours.unite(theirs)) {
                ours.global = None;
            }
            ours.lacks_values |= theirs.lacks_values;
            ours.filters.extend(theirs.filters);
        }
    }

    /// Returns whether it has room for this many regions more.
    fn has_room(&self, regions: usize) -> bool {
        self.captures.is_empty() || self.weight() + regions.max(1) as u64 <= MOST_REGIONS
    }

    /// Returns its size, compared with that of others.
    fn weight(&self) -> u64 {
        let regions = self.captures.iter().map(|entry| entry.regions.len());
        (regions.sum::<usize>()).max(self.captures.len()) as u64
    }

    /// Writes its files; returns `None` if it is empty.
    fn write(
        mut self,
        catalog: &mut Catalog,
        files: &mut NewFiles,
    ) -> Result<Option<Segment>, IndexError> {
        if self.captures.is_empty() {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for (node, part) in std::mem::take(&mut self.parts) {
            if regions_in(&self.captures, node).next().is_some() {
                parts.push(self.write_part(node, part, catalog, files)?);
            }
        }
        let number = catalog.take_number();
        files.name([StoredFile::Segment { number }])?;
        let [path, copy] = catalog.segment_files(number);
        let text = serde_json::to_vec(&self.captures);
        let text = text.map_err(|error| IndexError::io(&path)(error.into()))?;
        files.write(&copy, &text)?;
        let file = (number, files.write(&path, &text)?);
        Ok(Some(Segment::new(file, parts, &self.captures)))
    }

    /// Writes the filters of a node, and notes in the regions where theirs are.
    fn write_part(
        &mut self,
        node: usize,
        mut part: PartBuilder,
        catalog: &mut Catalog,
        files: &mut NewFiles,
    ) -> Result<SegmentPart, IndexError> {
        part.insert_keys();
        let (mut global, lacks_values) = match part.global.filter(|global| !global.is_full()) {
            Some(global) => (global, part.lacks_values),
            None => rebuild::global(catalog, node, &self.captures)?,
        };
        let number = catalog.take_number();
        files.name([StoredFile::Filter { node, number }])?;
        let filter = (number, global.write(files, &catalog.filter_file(node, number))?);
        let file = catalog.take_number();
        let mut bytes = Vec::new();
        for entry in &mut self.captures {
            for at in 0..entry.regions.len() {
                if entry.regions[at].node != node {
                    continue;
                }
                let offset = bytes.len() as u64;
                let (filters, lengths) = match part.filters.remove(&(entry.id, at)) {
                    Some(filters) => (filters, entry.regions[at].filters.bytes),
                    None => rebuild::region_filters(catalog, entry, at)?,
                };
                bytes.extend(filters);
                entry.regions[at].filters = FilterPlace { file, offset, bytes: lengths };
            }
        }
        files.name([StoredFile::Filters { node, number: file }])?;
        let path = catalog.region_filters_file(node, file);
        let region_filters = vec![(file, files.write(&path, &bytes)?)];
        Ok(SegmentPart { node, filter, lacks_values, region_filters, ..SegmentPart::default() })
    }
}

impl PartBuilder {
    /// Inserts the new values into the global filter, unless that is rebuilt.
    fn insert_keys(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if let Some(global) = self.global.as_mut().filter(|_| !keys.is_empty()) {
            global.insert(&keys);
        }
    }
}

/// A segment while a commit is prepared.
enum Prepared {
    Kept(Segment),
    Changed(SegmentBuilder),
}

impl Prepared {
    fn weight(&self) -> u64 {
        match self {
            Self::Kept(segment) => segment.regions().max(segment.captures),
            Self::Changed(builder) => builder.weight(),
        }
    }

    fn builder(self, catalog: &Catalog) -> Result<SegmentBuilder, IndexError> {
        match self {
            Self::Kept(segment) => SegmentBuilder::open(catalog, &segment),
            Self::Changed(builder) => Ok(builder),
        }
    }
}

/// Changes of captures and segments that are in the index.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Numbers of the captures that leave.
    pub(super) leaving: HashSet<u64>,
    /// New paths of captures that were moved, by their numbers.
    pub(super) moved: HashMap<u64, PathBuf>,
    /// Segments that are written again with filters from the records, by the numbers of their files.
    pub(super) rebuilt: HashSet<u64>,
}

impl Changes {
    /// Applies the changes to a segment.
    fn apply(&self, catalog: &Catalog, segment: &Segment) -> Result<Prepared, IndexError> {
        let touches = |entry: &CaptureEntry| {
            self.leaving.contains(&entry.id) || self.moved.contains_key(&entry.id)
        };
        let is_rebuilt = self.rebuilt.contains(&segment.file.0);
        let is_empty = self.leaving.is_empty() && self.moved.is_empty();
        if !is_rebuilt
            && (is_empty || !catalog.captures_of(segment, &mut Vec::new())?.iter().any(touches))
        {
            return Ok(Prepared::Kept(segment.clone()));
        }
        let mut builder = SegmentBuilder::open(catalog, segment)?;
        if is_rebuilt {
            builder.parts.values_mut().for_each(|part| *part = PartBuilder::default());
        }
        builder.remove(catalog, &self.leaving)?;
        for entry in &mut builder.captures {
            if let Some(path) = self.moved.get(&entry.id) {
                entry.path.clone_from(path);
            }
        }
        Ok(Prepared::Changed(builder))
    }
}

/// Returns the segments after a commit: without the captures that leave, with new ones, and with
/// small segments merged.
pub(super) fn rewrite(
    catalog: &mut Catalog,
    fresh: Vec<SegmentBuilder>,
    changes: &Changes,
    files: &mut NewFiles,
) -> Result<Vec<Segment>, IndexError> {
    let mut before = Vec::new();
    for segment in &catalog.segments {
        before.push(changes.apply(catalog, segment)?);
    }
    before.extend(fresh.into_iter().map(Prepared::Changed));
    before.retain(|segment| segment.weight() > 0);
    // From the newest to the oldest.
    let mut merged: Vec<Prepared> = Vec::new();
    for older in before.into_iter().rev() {
        let is_changed = |segment: &Prepared| matches!(segment, Prepared::Changed(_));
        let has_room = |newer: &mut Prepared| {
            let weights = [older.weight(), newer.weight()];
            (is_changed(&older) || is_changed(newer))
                && weights[0] + weights[1] <= MOST_REGIONS
                && weights[0] < 2 * weights[1]
        };
        let next = match merged.pop_if(has_room) {
            Some(newer) => {
                let mut builder = older.builder(catalog)?;
                builder.append(newer.builder(catalog)?);
                Prepared::Changed(builder)
            }
            None => older,
        };
        merged.push(next);
    }
    let mut after = Vec::new();
    for segment in merged.into_iter().rev() {
        match segment {
            Prepared::Kept(segment) => after.push(segment),
            Prepared::Changed(builder) => after.extend(builder.write(catalog, files)?),
        }
    }
    Ok(after)
}

/// Contents of files of region filters by their nodes and numbers, without those that cannot be read.
#[derive(Default)]
pub(super) struct FilterFiles(HashMap<(usize, u64), Vec<u8>>);

impl FilterFiles {
    /// Reads the files of a part of a segment; appends the errors of those that cannot be read.
    pub(super) fn read(
        &mut self,
        catalog: &Catalog,
        part: &SegmentPart,
        errors: &mut Vec<IndexError>,
    ) {
        for &(number, mark) in &part.region_filters {
            match disk::read_checked(&catalog.region_filters_file(part.node, number), mark) {
                Ok(bytes) => drop(self.0.insert((part.node, number), bytes)),
                Err(error) => errors.push(error),
            }
        }
    }

    /// Returns the filters of a region, or `None` if their file could not be read.
    pub(super) fn of(&self, region: &Region) -> Option<&[u8]> {
        region.filters.slice(self.0.get(&(region.node, region.filters.file))?)
    }
}

/// Returns the regions of captures in a node, with their captures and numbers.
pub(super) fn regions_in<'a>(
    captures: impl IntoIterator<Item = &'a CaptureEntry>,
    node: usize,
) -> impl Iterator<Item = (&'a CaptureEntry, usize, &'a Region)> {
    captures.into_iter().flat_map(move |entry| {
        let regions = entry.regions.iter().enumerate();
        let regions = regions.filter(move |(_, region)| region.node == node);
        regions.map(move |(number, region)| (entry, number, region))
    })
}

#[cfg(test)]
mod tests {
    use super::super::catalog::{Node, Settings};
    use super::super::disk::IndexId;
    use super::*;

    /// A capture whose regions hold nothing.
    fn capture(id: u64, regions: usize) -> (CaptureEntry, Vec<RegionKeys>) {
        let found = |_| RegionKeys { keys: Vec::new(), filters: Vec::new() };
        let entry = CaptureEntry {
            id,
            path: PathBuf::from(id.to_string()),
            regions: vec![Region::default(); regions],
            ..CaptureEntry::default()
        };
        (entry, (0..regions).map(found).collect())
    }

    /// Returns the captures and the regions of each segment after a commit of captures with these
    /// numbers of regions.
    fn committed(regions: &[usize]) -> Vec<(Vec<u64>, u64)> {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path();
        let node = archive.join("node");
        std::fs::create_dir(&node).expect("a folder");
        let id = IndexId::random().expect("an id");
        let mut catalog = Catalog::new(archive, id, Settings::default(), vec![Node::new(node)]);
        let mut fresh = Vec::new();
        for (id, &regions) in (0..).zip(regions) {
            let (entry, found) = capture(id, regions);
            SegmentBuilder::add_to(&mut fresh, &catalog, entry, found);
        }
        let (mut files, changes) = <(NewFiles, Changes)>::default();
        let segments = rewrite(&mut catalog, fresh, &changes, &mut files);
        let of_segment = |segment: &Segment| {
            let captures = catalog.captures_of(segment, &mut Vec::new()).expect("its captures");
            let ids = captures.iter().map(|entry| entry.id).collect();
            (ids, segment.regions())
        };
        segments.expect("segments").iter().map(of_segment).collect()
    }

    #[test]
    fn a_path_that_no_file_has_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("node")).expect("a folder");
        let id = IndexId::random().expect("an id");
        let nodes = vec![Node::new("node".into())];
        let mut catalog = Catalog::new(folder.path(), id, Settings::default(), nodes);
        for (length, is_read) in [(4096, true), (4097, false)] {
            let (mut entry, found) = capture(0, 1);
            entry.path = PathBuf::from("a".repeat(length));
            let mut fresh = Vec::new();
            SegmentBuilder::add_to(&mut fresh, &catalog, entry, found);
            let (mut files, changes) = <(NewFiles, Changes)>::default();
            let segments = rewrite(&mut catalog, fresh, &changes, &mut files).expect("a segment");
            assert_eq!(catalog.captures_of(&segments[0], &mut Vec::new()).is_ok(), is_read);
        }
    }

    #[test]
    fn a_commit_is_divided_into_segments_of_at_most_256_regions() {
        let captures: Vec<usize> = (0..300).map(|at| at % 5).collect();
        let segments = committed(&captures);
        assert!(segments.iter().all(|&(_, regions)| regions <= 256));
        assert!(segments.iter().all(|(ids, _)| ids.len() <= 256));
        let regions: u64 = segments.iter().map(|(_, regions)| regions).sum();
        assert_eq!(regions, 600);
        let ids: Vec<u64> = segments.into_iter().flat_map(|(ids, _)| ids).collect();
        assert_eq!(ids, (0..300).collect::<Vec<_>>());
        // A segment is filled as far as whole captures go, and one that is larger alone stays
        // whole.
        let all = |ids: std::ops::Range<u64>| ids.collect::<Vec<_>>();
        assert_eq!(
            committed(&[200, 56, 1, 300, 4]),
            [(all(0..2), 256), (all(2..3), 1), (all(3..4), 300), (all(4..5), 4)]
        );
        assert_eq!(committed(&[0; 257]).len(), 2);
    }
}
