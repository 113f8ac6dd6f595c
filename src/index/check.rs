//! Looking after an index: is everything as it was written, and how large is it.

use super::catalog::{CaptureEntry, Catalog, Numbered, Region, Segment, lists_file};
use super::draft::filters_in;
use super::elements::{Element, Family};
use super::global::{Fill, Global, GlobalFilter, keys_of};
use super::lists::{Inverted, Lists};
use super::region::{elements_of, read_records};
use super::region_filter;
use super::{IndexError, disk, folders};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Times that a catalogue is read anew because a writer replaced what it names.
const MOST_TRIES: u32 = 100;

/// The files of a segment, without those that are damaged.
#[derive(Default)]
struct SegmentFiles {
    captures: Vec<CaptureEntry>,
    /// Global filters by node.
    global: HashMap<usize, Global>,
    /// Files of regions' filters by node and number.
    of_regions: HashMap<(usize, u64), (PathBuf, Vec<u8>)>,
    /// A file of filters is damaged or gone.
    lacks_filters: bool,
}

/// Calls `see` for each segment with its files, until it has seen all segments of one catalogue.
fn each_segment<T: Default>(
    archive: &Path,
    problems: &mut Vec<String>,
    mut see: impl FnMut(&mut T, &Catalog, &Segment, SegmentFiles, &mut Vec<String>),
) -> Result<(Catalog, T), IndexError> {
    let mut tries = 0;
    'anew: loop {
        tries += 1;
        let catalog = Catalog::load(archive)?;
        let (mut seen, mut found) = (T::default(), Vec::new());
        for segment in &catalog.segments {
            let mut failed = Vec::new();
            let files = read(archive, &catalog, segment, &mut failed);
            if failed.iter().any(IndexError::is_missing_file)
                && tries < MOST_TRIES
                && Catalog::load(archive)?.generation != catalog.generation
            {
                continue 'anew;
            }
            let sentence = |error: &IndexError| error.of_captures(archive, &files.captures);
            found.extend(failed.iter().map(sentence));
            see(&mut seen, &catalog, segment, files, &mut found);
        }
        problems.extend(found);
        return Ok((catalog, seen));
    }
}

fn read(
    archive: &Path,
    catalog: &Catalog,
    segment: &Segment,
    problems: &mut Vec<IndexError>,
) -> SegmentFiles {
    let mut files = SegmentFiles::default();
    match segment.captures(archive) {
        Ok(captures) => files.captures = captures,
        Err(error) => problems.push(error),
    }
    let nodes = &catalog.nodes;
    for part in segment.parts.iter().filter(|part| nodes[part.node].problem.is_none()) {
        let before = problems.len();
        let (number, mark): Numbered = part.filter;
        let path = catalog.filter_file(archive, part.node, number);
        match Global::read(catalog.settings.global, &path, mark) {
            Ok(global) => drop(files.global.insert(part.node, global)),
            Err(error) => problems.push(error),
        }
        for &(number, mark) in &part.region_filters {
            let path = catalog.region_filters_file(archive, part.node, number);
            match disk::read_checked(&path, mark) {
                Ok(bytes) => {
                    files.of_regions.insert((part.node, number), (path, bytes));
                }
                Err(error) => problems.push(error),
            }
        }
        files.lacks_filters |= problems.len() > before;
    }
    files
}

/// What `repair` makes again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Damage {
    /// Captures whose records or lists are damaged, with their numbers.
    pub(super) captures: Vec<(u64, CaptureEntry)>,
    /// Segments whose filters are, by the numbers of their files.
    pub(super) segments: Vec<u64>,
}

impl Damage {
    /// The captures that are indexed again.
    pub fn captures(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().map(|(_, entry)| entry.path.as_path())
    }

    /// How many segments get new filters.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// Captures.
    pub captures: u64,
    /// Regions.
    pub regions: u64,
    /// Records.
    pub records: u64,
    /// What is not as it should be, a sentence each.
    pub problems: Vec<String>,
    /// What of that can be repaired.
    pub damage: Damage,
}

/// Compares every file with its checksum, lists with records, and filters with both.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn verify(archive: &Path) -> Result<Verified, IndexError> {
    let mut problems = Vec::new();
    let see = |verified: &mut Verified,
               catalog: &Catalog,
               segment: &Segment,
               files: SegmentFiles,
               problems: &mut Vec<String>| {
        let kind = catalog.settings.global;
        let mut is_damaged = files.lacks_filters;
        for entry in &files.captures {
            verified.captures += 1;
            let before = verified.damage.captures.len();
            for (number, region) in entry.regions.iter().enumerate() {
                if catalog.nodes[region.node].problem.is_some() {
                    continue;
                }
                verified.regions += 1;
                verified.records += region.flows + region.dns;
                let folder = catalog.capture_folder(archive, region.node, entry.id);
                let checked = verify_region(&folder, number, region)
                    .map_err(|error| (error, true))
                    .and_then(|elements| {
                        let checked = verify_filters(&folder, region, &elements, &files, kind);
                        checked.map_err(|error| (error, false))
                    });
                let Err((error, is_of_capture)) = checked else { continue };
                problems.push(error.of_captures(archive, std::slice::from_ref(entry)));
                if !is_of_capture {
                    is_damaged = true;
                } else if verified.damage.captures.len() == before {
                    verified.damage.captures.push((entry.id, entry.clone()));
                }
            }
        }
        if is_damaged {
            verified.damage.segments.push(segment.file.0);
        }
    };
    let (catalog, verified) = each_segment(archive, &mut problems, see)?;
    let of_nodes = folders::problems(archive, &catalog).into_iter();
    problems.splice(..0, of_nodes.map(|error| error.to_string()));
    Ok(Verified { problems, ..verified })
}

/// Compares the records and the lists of a region; its elements.
fn verify_region(
    folder: &Path,
    number: usize,
    region: &Region,
) -> Result<[Vec<Element>; 2], IndexError> {
    let lists = lists_file(folder, number);
    let bytes = disk::read_checked(&lists, region.lists);
    let records = read_records(folder, number, region)?;
    let damaged = |error| IndexError::damaged(&lists, error);
    let found = Lists::open(bytes?).and_then(|lists| lists.all()).map_err(damaged)?;
    if found != Inverted::of_records(&records) {
        return Err(IndexError::damaged(&lists, "its lists are not those of the records"));
    }
    Ok(elements_of(&records))
}

/// Compares the filters of a region with its elements.
fn verify_filters(
    folder: &Path,
    region: &Region,
    elements: &[Vec<Element>; 2],
    files: &SegmentFiles,
    kind: GlobalFilter,
) -> Result<(), IndexError> {
    if let Some((path, bytes)) = files.of_regions.get(&(region.node, region.filters.file)) {
        let Some(mut bytes) = filters_in(bytes, region) else {
            return Err(IndexError::damaged(path, "filters of a region are not in it"));
        };
        for (family, length) in Family::ALL.into_iter().zip(region.filters.bytes) {
            let (of_family, rest) = bytes.split_at(length as usize);
            bytes = rest;
            let has_all = region_filter::has_all(of_family, &elements[family as usize]);
            if !has_all.map_err(|error| IndexError::damaged(path, error))? {
                return Err(IndexError::damaged(path, "a filter lacks what the lists hold"));
            }
        }
    }
    if let Some(global) = files.global.get(&region.node)
        && !keys_of(kind, elements).into_iter().all(|key| global.contains(key))
    {
        return Err(IndexError::damaged(
            folder.parent().unwrap_or(folder),
            "the global filter lacks what the lists hold",
        ));
    }
    Ok(())
}

/// What an index holds.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexStats {
    /// Its nodes.
    pub nodes: Vec<NodeStats>,
    /// Its captures.
    pub captures: Vec<CaptureEntry>,
    /// Segments.
    pub segments: u64,
    /// Bytes of the catalogue, and of the files that name the captures.
    pub catalog_bytes: u64,
    /// Structure of the regions' filters.
    pub filter: &'static str,
    /// Structure of the global level.
    pub global_filter: &'static str,
    /// Length of a region in nanoseconds.
    pub region_ns: i64,
    /// Files that could not be read, a sentence each.
    pub problems: Vec<String>,
}

/// What a node holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStats {
    /// Its folder.
    pub folder: PathBuf,
    /// Its regions.
    pub regions: u64,
    /// Bytes of the files of their filters.
    pub region_filter_bytes: u64,
    /// Bytes of the files of its global filters.
    pub filter_bytes: u64,
    /// Share of these filters' counters in use, the mean over filters; nothing where there are no
    /// counters.
    pub fill: Option<f64>,
    /// Counters that reached their largest value.
    pub saturated: Option<u64>,
    /// Increments that were lost for that.
    pub overflows: Option<u64>,
    /// Probability that a global filter lets something through that is absent, the mean over
    /// filters; nothing where it is not known.
    pub fpr: Option<f64>,
}

/// Sizes and fills of an index.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn stats(archive: &Path) -> Result<IndexStats, IndexError> {
    #[derive(Default)]
    struct Seen {
        captures: Vec<CaptureEntry>,
        /// By node: fills of its global filters.
        fills: HashMap<usize, Vec<Fill>>,
    }
    let mut problems = Vec::new();
    let see =
        |seen: &mut Seen, _: &Catalog, _: &Segment, files: SegmentFiles, _: &mut Vec<String>| {
            seen.captures.extend(files.captures);
            for (node, global) in &files.global {
                seen.fills.entry(*node).or_default().push(global.fill());
            }
        };
    let (catalog, seen) = each_segment(archive, &mut problems, see)?;
    let mut nodes: Vec<NodeStats> = Vec::new();
    for node in 0..catalog.nodes.len() {
        let mut stats =
            NodeStats { folder: catalog.node_folder(archive, node), ..NodeStats::default() };
        let parts = catalog.segments.iter().flat_map(|segment| &segment.parts);
        for part in parts.filter(|part| part.node == node) {
            stats.regions += part.regions;
            stats.filter_bytes += part.filter.1.bytes;
            let of_regions = part.region_filters.iter().map(|(_, mark)| mark.bytes);
            stats.region_filter_bytes += of_regions.sum::<u64>();
        }
        let fills = seen.fills.get(&node).map_or(&[][..], Vec::as_slice);
        let mean = |of: fn(&Fill) -> Option<f64>| {
            let known: Vec<f64> = fills.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        stats.fpr = mean(|fill| fill.rate);
        stats.fill = mean(|fill| fill.counters.map(|(fill, ..)| fill));
        let counters = || fills.iter().filter_map(|fill| fill.counters);
        if counters().next().is_some() {
            stats.saturated = Some(counters().map(|(_, saturated, _)| saturated).sum());
            stats.overflows = Some(counters().map(|(_, _, overflows)| overflows).sum());
        }
        nodes.push(stats);
    }
    let of_nodes = catalog.nodes.iter().filter_map(|node| node.problem.clone());
    problems.splice(..0, of_nodes);
    Ok(IndexStats {
        nodes,
        segments: catalog.segments.len() as u64,
        catalog_bytes: catalog.bytes(archive)?,
        filter: catalog.settings.filter.name(),
        global_filter: catalog.settings.global.name(),
        region_ns: catalog.settings.region_ns,
        captures: seen.captures,
        problems,
    })
}
