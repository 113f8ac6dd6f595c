//! Looking after an index: is everything as it was written, and how large is it.

use super::catalog::{CaptureEntry, Catalog, Region, filters_file, lists_file};
use super::elements::Family;
use super::lists::{self, Lists};
use super::node_filter::{NodeFilter, keys_of};
use super::region::{elements_of, read_records};
use super::region_filter::{self, may_have};
use super::search::open;
use super::{IndexError, disk};
use std::path::{Path, PathBuf};

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
        let folder = catalog.capture_folder(archive, entry);
        let path = filters_file(&folder);
        let filters = match disk::read_checked(&path, entry.filters) {
            Ok(bytes) => Some((path, bytes)),
            Err(error) => {
                verified.problems.push(error.to_string());
                None
            }
        };
        let mut offset = 0;
        for (number, region) in entry.regions.iter().enumerate() {
            verified.regions += 1;
            verified.records += region.flows + region.dns;
            let of_region = filters
                .as_ref()
                .map(|(path, bytes)| (path.as_path(), &bytes[offset..]));
            offset += region.filters.iter().sum::<u64>() as usize;
            let node = nodes[entry.node].as_ref();
            if let Err(error) = verify_region(&folder, number, region, of_region, node) {
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
    filters: Option<(&Path, &[u8])>,
    node: Option<&NodeFilter>,
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
    if let Some((path, mut bytes)) = filters {
        for (family, length) in Family::ALL.into_iter().zip(region.filters) {
            let (of_family, rest) = bytes.split_at(bytes.len().min(length as usize));
            bytes = rest;
            let filter =
                region_filter::read(of_family).map_err(|error| IndexError::damaged(path, error))?;
            let holds = |element: &[_; 3]| {
                let attributes = element.map(Some);
                filter
                    .as_ref()
                    .is_some_and(|filter| may_have(filter, &attributes))
            };
            if !elements[family as usize].iter().all(holds) {
                return Err(IndexError::damaged(
                    path,
                    "a filter lacks what the lists hold",
                ));
            }
        }
    }
    if let Some(node) = node
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
    let nodes = filters.iter().enumerate().map(|(node, filter)| {
        let (fill, saturated, overflows) =
            filter.as_ref().map(NodeFilter::fill).unwrap_or_default();
        NodeStats {
            folder: catalog.node_folder(archive, node),
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
