//! Verifying an index and measuring it.

use super::catalog::{CaptureEntry, Catalog, Region, Segment};
use super::catalog_file::read_captures;
use super::elements::{Element, Family};
use super::global::{Fill, Global, keys_of};
use super::layout::lists_file;
use super::lists::{Inverted, Lists};
use super::problems::Problems;
use super::region::{elements_of, read_records};
use super::segment_builder::FilterFiles;
use super::{IndexError, disk, nodes, region_filter};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::slice;

/// The files of a segment, without those that are damaged.
#[derive(Default)]
struct SegmentFiles {
    captures: Vec<CaptureEntry>,
    /// Global filters by node.
    global: HashMap<usize, Global>,
    of_regions: FilterFiles,
    /// Whether a file could not be read.
    is_damaged: bool,
}

impl SegmentFiles {
    /// Reads what of a segment can be read, and notes the problems. Returns `None` if its captures are
    /// unknown.
    fn read(catalog: &Catalog, segment: &Segment, problems: &mut Problems) -> Option<Self> {
        let mut errors = Vec::new();
        let captures = catalog.captures_of(segment, &mut errors);
        let captures = captures.map_err(|error| errors.push(error));
        let files = captures.map(|captures| {
            let files = Self { captures, ..Self::default() };
            files.read_filters(catalog, segment, &mut errors)
        });
        let captures = files.as_ref().map_or(&[][..], |files| &files.captures);
        for error in &errors {
            problems.note_file(error, &catalog.archive, captures);
        }
        files.ok().map(|files| Self { is_damaged: !errors.is_empty(), ..files })
    }

    /// Reads the filters, and the copy of the file that names the captures.
    fn read_filters(
        mut self,
        catalog: &Catalog,
        segment: &Segment,
        errors: &mut Vec<IndexError>,
    ) -> Self {
        let is_usable = |node: usize| catalog.nodes[node].problem.is_none();
        if is_usable(0) {
            let [_, copy] = catalog.segment_files(segment.file.0);
            errors.extend(read_captures(&copy, segment).err());
        }
        for part in segment.parts.iter().filter(|part| is_usable(part.node)) {
            let (number, mark) = part.filter;
            let path = catalog.filter_file(part.node, number);
            match Global::read(catalog.settings.global, &path, mark) {
                Ok(global) => drop(self.global.insert(part.node, global)),
                Err(error) => errors.push(error),
            }
            self.of_regions.read(catalog, part, errors);
        }
        self
    }
}

/// Damage that `repair` can mend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Damage {
    /// Captures whose records or lists are damaged, with their numbers.
    pub(super) captures: Vec<(u64, CaptureEntry)>,
    /// Segments whose own files are, by the numbers of these.
    pub(super) segments: Vec<u64>,
}

impl Damage {
    /// Returns the captures that are indexed again.
    pub fn captures(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().map(|(_, entry)| entry.path.as_path())
    }

    /// Returns the number of segments that are written again.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
}

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// Captures.
    pub captures: u64,
    /// Regions.
    pub regions: u64,
    /// Records.
    pub records: u64,
    /// Problems, a sentence each.
    pub problems: Vec<String>,
    /// The damage that can be repaired.
    pub damage: Damage,
}

/// Compares every file with its checksum, lists with records, and filters with both.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn verify(archive: &Path) -> Result<Verified, IndexError> {
    let (catalog, verified, problems) = Catalog::read_with(archive, |catalog, problems| {
        let mut verified = Verified::default();
        for segment in &catalog.segments {
            verified.add(catalog, segment, problems);
        }
        verified
    })?;
    let mut sentences = nodes::problems(&catalog)?;
    sentences.extend(problems.into_sentences());
    Ok(Verified { problems: sentences, ..verified })
}

impl Verified {
    /// Verifies a segment.
    fn add(&mut self, catalog: &Catalog, segment: &Segment, problems: &mut Problems) {
        let Some(files) = SegmentFiles::read(catalog, segment, problems) else { return };
        let mut is_damaged = files.is_damaged;
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
                let elements = verify_region(&folder, number, region);
                is_whole &= elements.is_ok();
                let checked = elements.and_then(|elements| {
                    let checked = verify_filters(&folder, region, &elements, &files, catalog);
                    is_damaged |= checked.is_err();
                    checked
                });
                if let Err(error) = checked {
                    // Refused memory is reported once.
                    problems.note_file(&error, &catalog.archive, slice::from_ref(entry));
                }
            }
            if !is_whole {
                self.damage.captures.push((entry.id, entry.clone()));
            }
        }
        if is_damaged {
            self.damage.segments.push(segment.file.0);
        }
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
    catalog: &Catalog,
) -> Result<(), IndexError> {
    if let Some(mut bytes) = files.of_regions.of(region) {
        let path = &catalog.region_filters_file(region.node, region.filters.file);
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
        && !keys_of(catalog.settings.global, elements).into_iter().all(|key| global.contains(key))
    {
        return Err(IndexError::damaged(
            folder.parent().unwrap_or(folder),
            "the global filter lacks what the lists hold",
        ));
    }
    Ok(())
}

/// Content and size of an index.
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

/// Content and size of a node.
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
    let (catalog, (captures, fills), problems) =
        Catalog::read_with(archive, |catalog, problems| {
            let mut captures = Vec::new();
            // By node: fills of its global filters.
            let mut fills: HashMap<usize, Vec<Fill>> = HashMap::new();
            for segment in &catalog.segments {
                let files = SegmentFiles::read(catalog, segment, problems).unwrap_or_default();
                for (node, global) in &files.global {
                    fills.entry(*node).or_default().push(global.fill());
                }
                captures.extend(files.captures);
            }
            (captures, fills)
        })?;
    let of_nodes = catalog.nodes.iter().filter_map(|node| node.problem.clone());
    let problems = of_nodes.chain(problems.into_sentences()).collect();
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
