//! Rebuilding filters from the records, which hold the same values: where filters are lost, or can
//! no longer be counted down.

use super::catalog::{CaptureEntry, Catalog};
use super::error::undamaged;
use super::global::{Global, keys_of};
use super::region::{elements_of, filters_of, read_records};
use super::segment_builder::regions_in;
use super::{IndexError, Record};
use crate::hashing::Digest;
use std::collections::HashSet;

/// Reads the records of a region, or returns `None` if they are damaged or gone. It is an error if
/// they only cannot be read: a filter without their values would hide them.
fn records(
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<Option<Vec<Record>>, IndexError> {
    let region = &entry.regions[number];
    undamaged(read_records(&catalog.capture_folder(region.node, entry.id), number, region))
}

/// Returns the distinct values of a region, or `None` if its records are lost.
pub(super) fn keys_of_region(
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<Option<Vec<Digest>>, IndexError> {
    let records = records(catalog, entry, number)?;
    Ok(records.map(|records| keys_of(catalog.settings.global, &elements_of(&records))))
}

/// Builds the global filter of these captures' regions in a node. Returns whether it lacks values,
/// because records are lost.
pub(super) fn global(
    catalog: &Catalog,
    node: usize,
    captures: &[CaptureEntry],
) -> Result<(Global, bool), IndexError> {
    let (mut keys, mut lacks_values) = (Vec::new(), false);
    for (entry, number, _) in regions_in(captures, node) {
        match keys_of_region(catalog, entry, number)? {
            Some(of_region) => keys.extend(of_region),
            None => lacks_values = true,
        }
    }
    let distinct = keys.iter().collect::<HashSet<_>>().len() as u64;
    // With room for as many again before the links of a chain must be larger.
    let mut filter = Global::new(catalog.settings.global, 2 * distinct);
    filter.insert(&keys);
    Ok((filter, lacks_values))
}

/// Builds the filters of a region, and returns them with the bytes of each. They are empty if its
/// records are lost, and then the region is always opened.
pub(super) fn region_filters(
    catalog: &Catalog,
    entry: &CaptureEntry,
    number: usize,
) -> Result<(Vec<u8>, [u64; 2]), IndexError> {
    match records(catalog, entry, number)? {
        Some(records) => filters_of(&catalog.settings, &elements_of(&records)),
        None => Ok((Vec::new(), [0; 2])),
    }
}
