//! A region's files, records and inverted lists, and its filters.

use super::catalog::{FilterPlace, Region, Settings, lists_file, records_file};
use super::elements::{self, Element, Family};
use super::{IndexError, Record, disk, lists, records, region_filter};
use std::collections::HashSet;
use std::path::Path;

/// Distinct elements of records, by family.
pub(super) fn elements_of(records: &[Record]) -> [HashSet<Element>; 2] {
    let mut found = [HashSet::new(), HashSet::new()];
    for record in records {
        elements::of_record(record, &mut |family, element| {
            found[family as usize].insert(element);
        });
    }
    found
}

/// The filters of a region with these elements, and the bytes of each.
pub(super) fn filters_of(
    settings: &Settings,
    elements: &[HashSet<Element>; 2],
) -> Result<(Vec<u8>, [u64; 2]), IndexError> {
    let (mut filters, mut lengths) = (Vec::new(), [0; 2]);
    for ((family, elements), length) in Family::ALL.iter().zip(elements).zip(&mut lengths) {
        let filter = region_filter::build(settings.filter, *family, elements);
        let filter = filter.map_err(|error| IndexError::Plan(error.to_string()))?;
        *length = filter.len() as u64;
        filters.extend(filter);
    }
    Ok((filters, lengths))
}

/// Writes a region's files in a folder of a node; where its filters will be is not known yet.
pub(super) fn write_region(
    folder: &Path,
    node: usize,
    number: usize,
    of_region: &[Record],
) -> Result<Region, IndexError> {
    let path = records_file(folder, number);
    let bytes = records::encode(of_region).map_err(|error| IndexError::damaged(&path, error))?;
    let records = disk::write_new(&path, &bytes)?;
    let path = lists_file(folder, number);
    let bytes = lists::encode(&lists::of_records(of_region))
        .map_err(|error| IndexError::damaged(&path, error))?;
    let lists = disk::write_new(&path, &bytes)?;
    let dns = of_region.iter().filter(|record| record.domain.is_some());
    let dns = dns.count() as u64;
    let times = |time: fn(&Record) -> i64| of_region.iter().map(time);
    Ok(Region {
        node,
        start_ns: times(|record| record.start_ns).min().unwrap_or_default(),
        end_ns: times(|record| record.end_ns).max().unwrap_or_default(),
        flows: of_region.len() as u64 - dns,
        dns,
        records,
        lists,
        filters: FilterPlace::default(),
    })
}

/// The records of a region.
pub(super) fn read_records(
    folder: &Path,
    number: usize,
    region: &Region,
) -> Result<Vec<Record>, IndexError> {
    let path = records_file(folder, number);
    let bytes = disk::read_checked(&path, region.records)?;
    records::decode(bytes).map_err(|error| IndexError::damaged(&path, error))
}
