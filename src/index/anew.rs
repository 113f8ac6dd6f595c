//! What filters hold stands in the records too: so filters are made anew where they are lost, or
//! can no longer be counted down.

use super::catalog::{CaptureEntry, Catalog};
use super::global::{Global, keys_of};
use super::region::{elements_of, filters_of, read_records};
use super::{IndexError, Record};
use crate::hashing::Digest;
use std::collections::HashSet;
use std::path::Path;

/// The records of a region; none if they are damaged or gone, and nothing can be found in it
/// anyway.
fn records(
    archive: &Path,
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<Option<Vec<Record>>, IndexError> {
    let region = &entry.regions[number];
    let folder = catalog.capture_folder(archive, region.node, entry.id);
    match read_records(&folder, number, region) {
        Ok(records) => Ok(Some(records)),
        Err(error @ IndexError::Io { .. }) if !error.is_missing_file() => Err(error),
        // They are there: a filter without their values would hide them.
        Err(error @ IndexError::Refused(_)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Distinct values of a region; none if its records are lost.
pub(super) fn keys_of_region(
    archive: &Path,
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<Option<Vec<Digest>>, IndexError> {
    let records = records(archive, catalog, entry, number)?;
    Ok(records.map(|records| keys_of(catalog.settings.global, &elements_of(&records))))
}

/// The global filter of these captures' regions in a node.
pub(super) fn global(
    archive: &Path,
    catalog: &Catalog,
    node: usize,
    captures: &[CaptureEntry],
) -> Result<Global, IndexError> {
    let mut keys = Vec::new();
    for entry in captures {
        for (number, region) in entry.regions.iter().enumerate() {
            if region.node == node {
                let of_region = keys_of_region(archive, catalog, entry, number)?;
                keys.extend(of_region.unwrap_or_default());
            }
        }
    }
    let distinct = keys.iter().collect::<HashSet<_>>().len() as u64;
    // As many as come before the links of a chain must be larger again.
    let mut filter = Global::new(catalog.settings.global, 2 * distinct);
    filter.insert(&keys);
    Ok(filter)
}

/// The filters of a region and the bytes of each; none if its records are lost, and then it is
/// always opened.
pub(super) fn region_filters(
    archive: &Path,
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<(Vec<u8>, [u64; 2]), IndexError> {
    match records(archive, catalog, entry, number)? {
        Some(records) => filters_of(&catalog.settings, &elements_of(&records)),
        None => Ok((Vec::new(), [0; 2])),
    }
}
