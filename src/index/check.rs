//! Looking after an index: is everything as it was written, and how large is it.

use super::catalog::{CaptureEntry, Catalog, Region, lists_file};
use super::elements::Family;
use super::lists::{self, Lists};
use super::node_filter::{NodeFilter, keys_of};
use super::packed;
use super::region::{elements_of, read_records};
use super::region_filter;
use super::{IndexError, disk};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Times that a catalogue is read anew because a writer replaced what it names.
const MOST_TRIES: u32 = 100;

/// The filters of a node; without those that are damaged.
#[derive(Default)]
struct NodeFiles {
    global: Option<NodeFilter>,
    of_regions: HashMap<u64, (PathBuf, Vec<u8>)>,
}

/// The catalogue with the filters of all nodes.
fn open(
    archive: &Path,
    problems: &mut Vec<String>,
) -> Result<(Catalog, Vec<NodeFiles>), IndexError> {
    let mut tries = 0;
    'anew: loop {
        tries += 1;
        let catalog = Catalog::load(archive)?;
        let (mut nodes, mut found) = (Vec::new(), Vec::new());
        for node in 0..catalog.nodes.len() {
            let failed_before = found.len();
            nodes.push(read_node(archive, &catalog, node, &mut found));
            let missing = found[failed_before..].iter();
            if missing.clone().any(IndexError::is_missing_file)
                && tries < MOST_TRIES
                && Catalog::load(archive)?.generation != catalog.generation
            {
                continue 'anew;
            }
        }
        problems.extend(found.iter().map(ToString::to_string));
        return Ok((catalog, nodes));
    }
}

fn read_node(
    archive: &Path,
    catalog: &Catalog,
    node: usize,
    problems: &mut Vec<IndexError>,
) -> NodeFiles {
    let mut files = NodeFiles::default();
    let state = &catalog.nodes[node];
    files.global = match state.filter {
        None => Some(NodeFilter::new(0)),
        Some((number, mark)) => {
            let path = catalog.filter_file(archive, node, number);
            let bytes = disk::read_checked(&path, mark);
            let filter = bytes.and_then(|bytes| NodeFilter::load(&path, &bytes));
            filter.map_err(|error| problems.push(error)).ok()
        }
    };
    for &(number, mark) in &state.region_filters {
        let path = catalog.region_filters_file(archive, node, number);
        match disk::read_checked(&path, mark) {
            Ok(bytes) => {
                files.of_regions.insert(number, (path, bytes));
            }
            Err(error) => problems.push(error),
        }
    }
    files
}

/// What was compared.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verified {
    /// Captures.
    pub captures: u64,
    /// Regions.
    pub regions: u64,
    /// Records.
    pub records: u64,
    /// What is not as it should be, a sentence each.
    pub problems: Vec<String>,
}

/// Compares every file with its checksum, lists with records, and filters with both.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn verify(archive: &Path) -> Result<Verified, IndexError> {
    let mut verified = Verified::default();
    let (catalog, nodes) = open(archive, &mut verified.problems)?;
    for entry in &catalog.captures {
        verified.captures += 1;
        for (number, region) in entry.regions.iter().enumerate() {
            verified.regions += 1;
            verified.records += region.flows + region.dns;
            let folder = catalog.capture_folder(archive, region.node, entry.id);
            let node = &nodes[region.node];
            if let Err(error) = verify_region(&folder, number, region, node) {
                verified.problems.push(error.to_string());
            }
        }
    }
    Ok(verified)
}

fn verify_region(
    folder: &Path,
    number: usize,
    region: &Region,
    node: &NodeFiles,
) -> Result<(), IndexError> {
    let lists = lists_file(folder, number);
    let bytes = disk::read_checked(&lists, region.lists);
    let records = read_records(folder, number, region)?;
    let damaged = |error| IndexError::damaged(&lists, error);
    let found = Lists::open(bytes?)
        .and_then(|lists| lists.all())
        .map_err(damaged)?;
    let expected = lists::of_records(&records).into_iter();
    if !found
        .into_iter()
        .eq(expected.map(|list| (list.0 as i32, list.1, list.2)))
    {
        return Err(IndexError::damaged(
            &lists,
            "its lists are not those of the records",
        ));
    }
    let elements = elements_of(&records);
    if let Some((path, bytes)) = node.of_regions.get(&region.filters.file) {
        let Some(mut bytes) = packed::part(bytes, region) else {
            return Err(IndexError::damaged(
                path,
                "filters of a region are not in it",
            ));
        };
        for (family, length) in Family::ALL.into_iter().zip(region.filters.bytes) {
            let (of_family, rest) = bytes.split_at(length as usize);
            bytes = rest;
            let has_all = region_filter::has_all(of_family, &elements[family as usize]);
            if !has_all.map_err(|error| IndexError::damaged(path, error))? {
                return Err(IndexError::damaged(
                    path,
                    "a filter lacks what the lists hold",
                ));
            }
        }
    }
    if let Some(node) = &node.global
        && !keys_of(&elements).into_iter().all(|key| node.contains(key))
    {
        return Err(IndexError::damaged(
            folder.parent().unwrap_or(folder),
            "the node's global filter lacks what the lists hold",
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
    /// Bytes of the catalogue.
    pub catalog_bytes: u64,
    /// Structure of the regions' filters.
    pub filter: &'static str,
    /// Length of a region in nanoseconds.
    pub region_ns: i64,
    /// Files that could not be read, a sentence each.
    pub problems: Vec<String>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStats {
    /// Its folder.
    pub folder: PathBuf,
    /// Its regions.
    pub regions: u64,
    /// Bytes of the files of their filters.
    pub region_filter_bytes: u64,
    /// Bytes of its global filter's file.
    pub filter_bytes: u64,
    /// Share of the filter's counters in use.
    pub fill: f64,
    /// Counters that reached their largest value.
    pub saturated: u64,
    /// Increments that were lost for that.
    pub overflows: u64,
}

/// Sizes and fills of an index.
///
/// # Errors
///
/// There is no index, or its catalogue cannot be used.
pub fn stats(archive: &Path) -> Result<IndexStats, IndexError> {
    let mut problems = Vec::new();
    let (catalog, filters) = open(archive, &mut problems)?;
    let nodes = filters.iter().enumerate().map(|(node, files)| {
        let global = files.global.as_ref();
        let (fill, saturated, overflows) = global.map(NodeFilter::fill).unwrap_or_default();
        NodeStats {
            folder: catalog.node_folder(archive, node),
            regions: catalog.regions_of(node).count() as u64,
            region_filter_bytes: catalog.nodes[node]
                .region_filters
                .iter()
                .map(|(_, mark)| mark.bytes)
                .sum(),
            filter_bytes: catalog.nodes[node].filter.map_or(0, |(_, mark)| mark.bytes),
            fill,
            saturated,
            overflows,
        }
    });
    Ok(IndexStats {
        nodes: nodes.collect(),
        catalog_bytes: Catalog::bytes(archive)?,
        filter: catalog.settings.filter.name(),
        region_ns: catalog.settings.region_ns,
        captures: catalog.captures,
        problems,
    })
}
