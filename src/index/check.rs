//! Verifying an index and measuring it.

use super::catalog::{CaptureEntry, Catalog, Region, Segment, read_captures};
use super::elements::{Element, Family};
use super::error::Problems;
use super::global::{Fill, Global, GlobalFilter, keys_of};
use super::layout::lists_file;
use super::lists::{Inverted, Lists};
use super::region::{elements_of, read_records};
use super::region_filter;
use super::{IndexError, disk, nodes};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::slice;

/// The files of a segment, without those that are damaged.
#[derive(Default)]
struct SegmentFiles {
    captures: Vec<CaptureEntry>,
    /// Global filters by node.
    global: HashMap<usize, Global>,
    /// Files of regions' filters by node and number.
    of_regions: HashMap<(usize, u64), (PathBuf, Vec<u8>)>,
}

impl SegmentFiles {
    /// Reads what of a segment can be read. `None` if nobody knows which captures it has.
    fn read(catalog: &Catalog, segment: &Segment, problems: &mut Vec<IndexError>) -> Option<Self> {
        let captures = catalog.captures_of(segment, problems);
        let captures = captures.map_err(|error| problems.push(error)).ok()?;
        let mut files = Self { captures, ..Self::default() };
        let is_usable = |node: usize| catalog.nodes[node].problem.is_none();
        if is_usable(0) {
            let [_, copy] = catalog.segment_files(segment.file.0);
            problems.extend(read_captures(&copy, segment).err());
        }
        for part in segment.parts.iter().filter(|part| is_usable(part.node)) {
            let (number, mark) = part.filter;
            let path = catalog.filter_file(part.node, number);
            match Global::read(catalog.settings.global, &path, mark) {
                Ok(global) => drop(files.global.insert(part.node, global)),
                Err(error) => problems.push(error),
            }
            for &(number, mark) in &part.region_filters {
                let path = catalog.region_filters_file(part.node, number);
                match disk::read_checked(&path, mark) {
                    Ok(bytes) => {
                        files.of_regions.insert((part.node, number), (path, bytes));
                    }
                    Err(error) => problems.push(error),
                }
            }
        }
        Some(files)
    }
}

/// What `repair` makes again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Damage {
    /// Captures whose records or lists are damaged, with their numbers.
    pub(super) captures: Vec<(u64, CaptureEntry)>,
    /// Segments whose own files are, by the numbers of these.
    pub(super) segments: Vec<u64>,
}

impl Damage {
    /// The captures that are indexed again.
    pub fn captures(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().map(|(_, entry)| entry.path.as_path())
    }

    /// The number of segments that are written again.
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
    let (catalog, mut verified) = Catalog::read_with(archive, |catalog| {
        let (mut verified, mut is_missing) = (Verified::default(), false);
        let mut problems = Problems::default();
        for segment in &catalog.segments {
            is_missing |= verified.add(catalog, segment, &mut problems);
        }
        verified.problems = problems.into_sentences();
        Ok((verified, is_missing))
    })?;
    verified.problems.splice(..0, nodes::problems(&catalog)?);
    Ok(verified)
}

impl Verified {
    /// Verifies a segment. Returns whether a file is missing.
    fn add(&mut self, catalog: &Catalog, segment: &Segment, problems: &mut Problems) -> bool {
        let mut errors = Vec::new();
        let files = SegmentFiles::read(catalog, segment, &mut errors);
        let mut is_missing = errors.iter().any(IndexError::is_missing_file);
        let captures = files.as_ref().map_or(&[][..], |files| &files.captures);
        for error in &errors {
            problems.note(error.with_captures(&catalog.archive, captures));
        }
        let Some(files) = files else {
            return is_missing;
        };
        let mut is_damaged = !errors.is_empty();
        for entry in &files.captures {
            self.captures += 1;
            let mut is_whole = true;
            for (number, region) in entry.regions.iter().enumerate() {
                if catalog.nodes[region.node].problem.is_some() {
                    continue;
                }
                self.regions += 1;
                self.records += region.flows + region.dns;
                let folder = catalog.capture_folder(region.node, entry.id);
                let error = match verify_region(&folder, number, region) {
                    Ok(elements) => {
                        let kind = catalog.settings.global;
                        let checked = verify_filters(&folder, region, &elements, &files, kind);
                        is_damaged |= checked.is_err();
                        checked.err()
                    }
                    Err(error) => {
                        is_whole = false;
                        Some(error)
                    }
                };
                is_missing |= error.as_ref().is_some_and(IndexError::is_missing_file);
                if let Some(error) = error {
                    let owner = slice::from_ref(entry);
                    // Memory that is refused is said once.
                    problems.note(error.with_captures(&catalog.archive, owner));
                }
            }
            if !is_whole {
                self.damage.captures.push((entry.id, entry.clone()));
            }
        }
        if is_damaged {
            self.damage.segments.push(segment.file.0);
        }
        is_missing
    }
}

/// Compares the records and the lists of a region, and returns its elements.
fn verify_region(
    folder: &Path,
    number: usize,
    region: &Region,
) -> Result<[Vec<Element>; 2], IndexError> {
    let lists = lists_file(folder, number);
    // Lists and elements take as much again as records.
    let _memory = disk::reserve(folder, region.read_bytes())?;
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
        let Some(mut bytes) = region.filters.slice(bytes) else {
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
    /// Bytes of the catalogue, and of the files that name the captures, each of which is kept twice.
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
    /// Share of these filters' counters in use, the mean over filters; `None` if they have none.
    pub fill: Option<f64>,
    /// Counters that reached their largest value.
    pub saturated: Option<u64>,
    /// Increments that were lost because of that.
    pub overflows: Option<u64>,
    /// False-positive rate of a global filter, the mean over filters; `None` if it is not known.
    pub fpr: Option<f64>,
}

/// Measures an index.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn stats(archive: &Path) -> Result<IndexStats, IndexError> {
    let (catalog, stats) = Catalog::read_with(archive, |catalog| {
        let (mut captures, mut is_missing) = (Vec::new(), false);
        let mut problems = Problems::default();
        // By node: fills of its global filters.
        let mut fills: HashMap<usize, Vec<Fill>> = HashMap::new();
        for segment in &catalog.segments {
            let mut errors = Vec::new();
            let files = SegmentFiles::read(catalog, segment, &mut errors).unwrap_or_default();
            is_missing |= errors.iter().any(IndexError::is_missing_file);
            for error in &errors {
                problems.note(error.with_captures(archive, &files.captures));
            }
            for (node, global) in &files.global {
                fills.entry(*node).or_default().push(global.fill());
            }
            captures.extend(files.captures);
        }
        Ok(((captures, problems.into_sentences(), fills), is_missing))
    })?;
    let (captures, mut problems, fills) = stats;
    problems.splice(..0, catalog.nodes.iter().filter_map(|node| node.problem.clone()));
    let of_node =
        |node| node_stats(&catalog, node, fills.get(&node).map_or(&[][..], Vec::as_slice));
    Ok(IndexStats {
        nodes: (0..catalog.nodes.len()).map(of_node).collect(),
        segments: catalog.segments.len() as u64,
        catalog_bytes: catalog.bytes()?,
        filter: catalog.settings.filter.name(),
        global_filter: catalog.settings.global.name(),
        region_ns: catalog.settings.region_ns,
        captures,
        problems,
    })
}

fn node_stats(catalog: &Catalog, node: usize, fills: &[Fill]) -> NodeStats {
    let mean = |of: fn(&Fill) -> Option<f64>| {
        let known: Vec<f64> = fills.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let counters = fills.iter().filter_map(|fill| fill.counters);
    let counters = counters.reduce(|all, one| (all.0, all.1 + one.1, all.2 + one.2));
    let mut stats = NodeStats {
        folder: catalog.node_folder(node),
        fpr: mean(|fill| fill.rate),
        fill: mean(|fill| fill.counters.map(|(fill, ..)| fill)),
        saturated: counters.map(|(_, saturated, _)| saturated),
        overflows: counters.map(|(.., overflows)| overflows),
        ..NodeStats::default()
    };
    let parts = catalog.segments.iter().flat_map(|segment| &segment.parts);
    for part in parts.filter(|part| part.node == node) {
        stats.regions += part.regions;
        stats.filter_bytes += part.filter.1.bytes;
        let of_regions = part.region_filters.iter().map(|(_, mark)| mark.bytes);
        stats.region_filter_bytes += of_regions.sum::<u64>();
    }
    stats
}
