//! Filters of regions on the disk: one behind the other in a few files a node, so that a search reads
//! them with a few calls, however many captures there are.
//!
//! ```text
//!     commit:   [ 64 regions ][ 16 ][ 5 ]  + 4 new    ─►   [ 64 ][ 16 ][ 9 ]
//! ```
//!
//! What a commit adds goes to a new file, together with what stands in the newer files that are less than
//! twice as large: so there are few of them, and a filter is rewritten a few times only. Files with filters
//! of dropped regions are rewritten at once.

use super::catalog::{Catalog, FilterPlace, Region};
use super::disk::{self, FileMark};
use super::{IndexError, anew};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Filters that no file has yet, by capture and number of the region.
pub(super) type Fresh = HashMap<(u64, usize), Vec<u8>>;

/// Writes what is new in a node, and notes it in the catalogue; the files that it no longer names.
pub(super) fn write(
    archive: &Path,
    catalog: &mut Catalog,
    node: usize,
    fresh: &mut Fresh,
) -> Result<Vec<PathBuf>, IndexError> {
    let leaving = leaving(catalog, node, fresh);
    let mut sources: HashMap<u64, Option<Vec<u8>>> = HashMap::new();
    for &(number, mark) in &catalog.nodes[node].region_filters {
        if leaving.contains(&number) {
            let path = catalog.region_filters_file(archive, node, number);
            let bytes = match disk::read_checked(&path, mark) {
                Ok(bytes) => Some(bytes),
                // What is lost stands in the records.
                Err(IndexError::Damaged { .. }) => None,
                Err(error) if error.is_missing_file() => None,
                Err(error) => return Err(error),
            };
            sources.insert(number, bytes);
        }
    }
    let number = catalog.take_number();
    let (mut bytes, mut places) = (Vec::new(), HashMap::new());
    for (entry, at, region) in catalog.regions_of(node) {
        let offset = bytes.len() as u64;
        let mut lengths = region.filters.bytes;
        if let Some(filters) = fresh.get(&(entry.id, at)) {
            bytes.extend(filters);
        } else if let Some(source) = sources.get(&region.filters.file) {
            let there = source.as_ref().and_then(|bytes| part(bytes, region));
            if let Some(filters) = there {
                bytes.extend(filters);
            } else {
                let remade = anew::region_filters(archive, catalog, entry, at)?;
                lengths = remade.1;
                bytes.extend(remade.0);
            }
        } else {
            continue;
        }
        let place = FilterPlace {
            file: number,
            offset,
            bytes: lengths,
        };
        places.insert((entry.id, at), place);
    }
    let mut file = None;
    if !places.is_empty() {
        let path = catalog.region_filters_file(archive, node, number);
        file = Some((number, disk::write_new(&path, &bytes)?));
    }
    fresh.retain(|place, _| !places.contains_key(place));
    put_in_place(catalog, node, &places, &leaving, file);
    let path = |&number: &u64| catalog.region_filters_file(archive, node, number);
    Ok(leaving.iter().map(path).collect())
}

/// Notes in the catalogue where filters are now.
fn put_in_place(
    catalog: &mut Catalog,
    node: usize,
    places: &HashMap<(u64, usize), FilterPlace>,
    leaving: &HashSet<u64>,
    file: Option<(u64, FileMark)>,
) {
    for entry in &mut catalog.captures {
        for (at, region) in entry.regions.iter_mut().enumerate() {
            if let Some(place) = places.get(&(entry.id, at)) {
                region.filters = *place;
            }
        }
    }
    let files = &mut catalog.nodes[node].region_filters;
    files.retain(|(number, _)| !leaving.contains(number));
    files.extend(file);
}

/// The files whose contents go to a new one.
fn leaving(catalog: &Catalog, node: usize, fresh: &Fresh) -> HashSet<u64> {
    let mut merged = 0;
    let mut alive: HashMap<u64, u64> = HashMap::new();
    for (entry, at, region) in catalog.regions_of(node) {
        let bytes = region.filters.bytes.iter().sum::<u64>();
        if fresh.contains_key(&(entry.id, at)) {
            merged += bytes;
        } else {
            *alive.entry(region.filters.file).or_default() += bytes;
        }
    }
    let mut leaving = HashSet::new();
    let mut older_stay = merged == 0;
    for &(number, mark) in catalog.nodes[node].region_filters.iter().rev() {
        let bytes = alive.get(&number).copied().unwrap_or_default();
        older_stay |= bytes >= 2 * merged;
        if !older_stay || bytes < mark.bytes {
            leaving.insert(number);
            merged += bytes;
        }
    }
    leaving
}

/// The filters of a region in their file.
pub(super) fn part<'a>(bytes: &'a [u8], region: &Region) -> Option<&'a [u8]> {
    let FilterPlace {
        offset, bytes: of, ..
    } = region.filters;
    let end = offset.checked_add(of[0].checked_add(of[1])?)?;
    bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
}
