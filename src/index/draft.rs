//! A segment in the hands of the one who writes: what is new, what is put together, what captures
//! leave.
//!
//! ```text
//!     commit:   [ 200 regions ][ 16 ][ 5 ]  + 4 new    ─►   [ 200 ][ 16 ][ 9 ]
//! ```
//!
//! What a commit adds becomes a segment, together with the newer segments that are less than twice
//! as large: so there are few small ones, and a filter is rewritten a few times only. Segments of
//! 256 regions are not put together any more: a search reads the filters of the regions of a whole
//! segment.

use super::catalog::{
    CaptureEntry, Catalog, FilterPlace, Region, Segment, SegmentPart, StoredFile, segment_file,
};
use super::disk::{self, NewFiles};
use super::global::Global;
use super::{IndexError, anew};
use crate::hashing::Digest;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Regions of a segment that takes no others in.
const MOST_REGIONS: u64 = 256;

/// A region by the number of its capture and its own.
type Place = (u64, usize);

/// A segment that is not written yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) captures: Vec<CaptureEntry>,
    parts: BTreeMap<usize, DraftPart>,
}

/// What a node will have of it.
#[derive(Debug, Default)]
struct DraftPart {
    /// The global filter, where it need not be made anew; without the values of `keys`.
    global: Option<Global>,
    /// Values that it does not have yet.
    keys: Vec<Digest>,
    /// Filters of regions that are not damaged.
    filters: HashMap<Place, Vec<u8>>,
}

/// What finds a region: its values in the global level, and its filters.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) keys: Vec<Digest>,
    pub(super) filters: Vec<u8>,
}

/// Puts a capture, with what finds its regions, into the last of the new segments, or into another
/// one if that has no room.
pub(super) fn add_to(
    fresh: &mut Vec<Draft>,
    catalog: &Catalog,
    entry: CaptureEntry,
    found: Vec<Found>,
) {
    let has_room = |draft: &mut Draft| draft.has_room(entry.regions.len());
    let mut draft = fresh.pop_if(has_room).unwrap_or_default();
    draft.add(catalog, entry, found);
    fresh.push(draft);
}

impl Draft {
    /// Takes a capture with what finds its regions.
    fn add(&mut self, catalog: &Catalog, entry: CaptureEntry, found: Vec<Found>) {
        for (number, (region, found)) in entry.regions.iter().zip(found).enumerate() {
            let part = self.parts.entry(region.node).or_insert_with(|| DraftPart {
                global: Some(Global::new(catalog.settings.global, 0)),
                ..DraftPart::default()
            });
            part.keys.extend(found.keys);
            part.filters.insert((entry.id, number), found.filters);
        }
        self.captures.push(entry);
    }

    /// A segment that is there, to be changed. What is damaged is made anew when it is written.
    pub(super) fn open(
        archive: &Path,
        catalog: &Catalog,
        segment: &Segment,
    ) -> Result<Self, IndexError> {
        let captures = segment.captures(archive)?;
        let mut parts = BTreeMap::new();
        for of_node in &segment.parts {
            let mut part = DraftPart::default();
            let (number, mark) = of_node.filter;
            let path = catalog.filter_file(archive, of_node.node, number);
            part.global = readable(Global::read(catalog.settings.global, &path, mark))?;
            for &(number, mark) in &of_node.region_filters {
                let path = catalog.region_filters_file(archive, of_node.node, number);
                let Some(bytes) = readable(disk::read_checked(&path, mark))? else {
                    continue;
                };
                for (place, region) in regions_of(&captures, of_node.node) {
                    if region.filters.file == number
                        && let Some(filters) = filters_in(&bytes, region)
                    {
                        part.filters.insert(place, filters.to_vec());
                    }
                }
            }
            parts.insert(of_node.node, part);
        }
        Ok(Self { captures, parts })
    }

    /// Removes captures with the values of their regions.
    pub(super) fn remove(
        &mut self,
        archive: &Path,
        catalog: &Catalog,
        leaving: &HashSet<u64>,
    ) -> Result<(), IndexError> {
        let leaves = |entry: &CaptureEntry| leaving.contains(&entry.id);
        for (&node, part) in &mut self.parts {
            let mut keys = Vec::new();
            for entry in self.captures.iter().filter(|entry| leaves(entry)) {
                let here = entry.regions.iter().enumerate();
                for (number, _) in here.filter(|(_, region)| region.node == node) {
                    part.filters.remove(&(entry.id, number));
                    if part.global.is_none() {
                        continue;
                    }
                    match anew::keys_of_region(archive, catalog, entry, number)? {
                        Some(of_region) => keys.extend(of_region),
                        // Of a damaged region nobody knows what to take back.
                        None => part.global = None,
                    }
                }
            }
            part.settle();
            if !part.global.as_mut().is_some_and(|global| global.remove(&keys)) {
                part.global = None;
            }
        }
        self.captures.retain(|entry| !leaves(entry));
        Ok(())
    }

    /// Takes the captures of the segment behind this one in.
    fn append(&mut self, next: Self) {
        self.captures.extend(next.captures);
        for (node, mut theirs) in next.parts {
            let Some(ours) = self.parts.get_mut(&node) else {
                self.parts.insert(node, theirs);
                continue;
            };
            ours.settle();
            theirs.settle();
            let both = ours.global.as_mut().zip(theirs.global.as_ref());
            if !both.is_some_and(|(ours, theirs)| ours.unite(theirs)) {
                ours.global = None;
            }
            ours.filters.extend(theirs.filters);
        }
    }

    /// Whether it has room for this many regions more.
    fn has_room(&self, regions: usize) -> bool {
        self.captures.is_empty() || self.weight() + regions.max(1) as u64 <= MOST_REGIONS
    }

    /// How large it is beside others.
    fn weight(&self) -> u64 {
        let regions = self.captures.iter().map(|entry| entry.regions.len());
        (regions.sum::<usize>()).max(self.captures.len()) as u64
    }

    /// Writes its files; nothing if it is empty.
    fn write(
        mut self,
        archive: &Path,
        catalog: &mut Catalog,
        files: &mut NewFiles,
    ) -> Result<Option<Segment>, IndexError> {
        if self.captures.is_empty() {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for (node, mut part) in std::mem::take(&mut self.parts) {
            let places: Vec<Place> =
                regions_of(&self.captures, node).map(|(place, _)| place).collect();
            if places.is_empty() {
                continue;
            }
            part.settle();
            let global = part.global.filter(|global| !global.is_full());
            let mut global = match global {
                Some(global) => global,
                None => anew::global(archive, catalog, node, &self.captures)?,
            };
            let number = catalog.take_number();
            files.name([StoredFile::Filter { node, number }])?;
            let path = catalog.filter_file(archive, node, number);
            let filter = (number, global.write(files, &path)?);
            let number = catalog.take_number();
            let mut bytes = Vec::new();
            for (id, at) in places {
                let entry = self.captures.iter_mut().find(|entry| entry.id == id);
                let entry = entry.expect("the place is that of a capture");
                let offset = bytes.len() as u64;
                let lengths = if let Some(filters) = part.filters.get(&(id, at)) {
                    bytes.extend(filters);
                    entry.regions[at].filters.bytes
                } else {
                    let remade = anew::region_filters(archive, catalog, entry, at)?;
                    bytes.extend(remade.0);
                    remade.1
                };
                entry.regions[at].filters = FilterPlace { file: number, offset, bytes: lengths };
            }
            files.name([StoredFile::Filters { node, number }])?;
            let path = catalog.region_filters_file(archive, node, number);
            parts.push(SegmentPart {
                node,
                filter,
                region_filters: vec![(number, files.write(&path, &bytes)?)],
                ..SegmentPart::default()
            });
        }
        write_captures(archive, catalog, files, &self.captures, parts).map(Some)
    }
}

/// Writes the file with a segment's captures.
fn write_captures(
    archive: &Path,
    catalog: &mut Catalog,
    files: &mut NewFiles,
    captures: &[CaptureEntry],
    parts: Vec<SegmentPart>,
) -> Result<Segment, IndexError> {
    let number = catalog.take_number();
    files.name([StoredFile::Segment { number }])?;
    let path = segment_file(archive, number);
    let text = serde_json::to_vec(captures);
    let text = text.map_err(|error| IndexError::io(&path)(error.into()))?;
    let mut segment = Segment {
        file: (number, files.write(&path, &text)?),
        captures: 0,
        captures_in_part: 0,
        start_ns: 0,
        end_ns: 0,
        parts,
    };
    segment.count(captures);
    Ok(segment)
}

impl DraftPart {
    /// Puts the new values into the global filter, if that is not made anew.
    fn settle(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if let Some(global) = self.global.as_mut().filter(|_| !keys.is_empty()) {
            global.insert(&keys);
        }
    }
}

/// A segment before a commit.
enum Before {
    Kept(Segment),
    Changed(Draft),
}

impl Before {
    fn weight(&self) -> u64 {
        match self {
            Self::Kept(segment) => segment.regions().max(segment.captures),
            Self::Changed(draft) => draft.weight(),
        }
    }

    fn draft(self, archive: &Path, catalog: &Catalog) -> Result<Draft, IndexError> {
        match self {
            Self::Kept(segment) => Draft::open(archive, catalog, &segment),
            Self::Changed(draft) => Ok(draft),
        }
    }
}

/// What becomes of captures that are in the index, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Those that leave.
    pub(super) leaving: HashSet<u64>,
    /// Those that lie elsewhere now.
    pub(super) moved: HashMap<u64, PathBuf>,
    /// Segments, by the numbers of their files, whose filters are made again from the records.
    pub(super) rebuilt: HashSet<u64>,
}

impl Changes {
    /// A segment with what becomes of its captures.
    fn apply(
        &self,
        archive: &Path,
        catalog: &Catalog,
        segment: &Segment,
    ) -> Result<Before, IndexError> {
        let touches = |entry: &CaptureEntry| {
            self.leaving.contains(&entry.id) || self.moved.contains_key(&entry.id)
        };
        let is_rebuilt = self.rebuilt.contains(&segment.file.0);
        let is_empty = self.leaving.is_empty() && self.moved.is_empty();
        if !is_rebuilt && (is_empty || !segment.captures(archive)?.iter().any(touches)) {
            return Ok(Before::Kept(segment.clone()));
        }
        let mut draft = Draft::open(archive, catalog, segment)?;
        if is_rebuilt {
            draft.parts.values_mut().for_each(|part| *part = DraftPart::default());
        }
        draft.remove(archive, catalog, &self.leaving)?;
        for entry in &mut draft.captures {
            if let Some(path) = self.moved.get(&entry.id) {
                entry.path.clone_from(path);
            }
        }
        Ok(Before::Changed(draft))
    }
}

/// The segments after a commit: without the captures that leave, with those that are new, and small
/// ones put together.
pub(super) fn rewrite(
    archive: &Path,
    catalog: &mut Catalog,
    fresh: Vec<Draft>,
    changes: &Changes,
    files: &mut NewFiles,
) -> Result<Vec<Segment>, IndexError> {
    let mut before: Vec<Before> = Vec::new();
    for segment in &catalog.segments {
        before.push(changes.apply(archive, catalog, segment)?);
    }
    before.extend(fresh.into_iter().map(Before::Changed));
    before.retain(|segment| segment.weight() > 0);
    // From the newest to the oldest.
    let mut merged: Vec<Before> = Vec::new();
    let mut next = None;
    for older in before.into_iter().rev() {
        let Some(newer) = next.take() else {
            next = Some(older);
            continue;
        };
        let weights = [older.weight(), newer.weight()];
        let is_touched = [&older, &newer].iter().any(|of| matches!(of, Before::Changed(_)));
        let fits = weights[0] + weights[1] <= MOST_REGIONS && weights[0] < 2 * weights[1];
        if is_touched && fits {
            let mut draft = older.draft(archive, catalog)?;
            draft.append(newer.draft(archive, catalog)?);
            next = Some(Before::Changed(draft));
        } else {
            merged.push(newer);
            next = Some(older);
        }
    }
    let mut after = Vec::new();
    for segment in merged.into_iter().chain(next).rev() {
        match segment {
            Before::Kept(segment) => after.push(segment),
            Before::Changed(draft) => after.extend(draft.write(archive, catalog, files)?),
        }
    }
    Ok(after)
}

/// The regions of captures in a node.
fn regions_of(captures: &[CaptureEntry], node: usize) -> impl Iterator<Item = (Place, &Region)> {
    captures.iter().flat_map(move |entry| {
        let regions = entry.regions.iter().enumerate();
        let regions = regions.filter(move |(_, region)| region.node == node);
        regions.map(move |(number, region)| ((entry.id, number), region))
    })
}

/// The filters of a region in their file.
pub(super) fn filters_in<'a>(bytes: &'a [u8], region: &Region) -> Option<&'a [u8]> {
    let FilterPlace { offset, bytes: of, .. } = region.filters;
    let end = offset.checked_add(of[0].checked_add(of[1])?)?;
    bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
}

/// What was read; nothing if the file is damaged or gone, for what it held stands in the records.
fn readable<T>(read: Result<T, IndexError>) -> Result<Option<T>, IndexError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(IndexError::Damaged { .. }) => Ok(None),
        Err(error) if error.is_missing_file() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Settings;
    use super::super::disk::FileMark;
    use super::super::folders::IndexId;
    use super::*;

    /// A capture whose regions hold nothing.
    fn capture(id: u64, regions: usize) -> (CaptureEntry, Vec<Found>) {
        let region = Region {
            node: 0,
            start_ns: 0,
            end_ns: 0,
            flows: 0,
            dns: 0,
            records: FileMark::default(),
            lists: FileMark::default(),
            filters: FilterPlace::default(),
        };
        let found = |_| Found { keys: Vec::new(), filters: Vec::new() };
        let entry = CaptureEntry {
            id,
            path: PathBuf::from(id.to_string()),
            bytes: 0,
            digest: String::new(),
            packets: 0,
            damage: None,
            part: None,
            regions: vec![region; regions],
        };
        (entry, (0..regions).map(found).collect())
    }

    /// The captures and the regions of each segment after a commit of captures with so many regions
    /// each.
    fn committed(regions: &[usize]) -> Vec<(Vec<u64>, u64)> {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path();
        let mut catalog = Catalog::new(
            IndexId::random().expect("an id"),
            Settings::default(),
            vec![archive.to_owned()],
        );
        let mut fresh = Vec::new();
        for (id, &regions) in (0..).zip(regions) {
            let (entry, found) = capture(id, regions);
            add_to(&mut fresh, &catalog, entry, found);
        }
        let (mut files, changes) = <(NewFiles, Changes)>::default();
        let segments = rewrite(archive, &mut catalog, fresh, &changes, &mut files);
        let of_segment = |segment: &Segment| {
            let captures = segment.captures(archive).expect("its captures");
            let ids = captures.iter().map(|entry| entry.id).collect();
            (ids, segment.regions())
        };
        segments.expect("segments").iter().map(of_segment).collect()
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
