//! A region's files: records, inverted lists, and its part of the capture's file of filters.

use super::catalog::{Region, Settings, lists_file, records_file};
use super::elements::{self, Element, Family};
use super::{IndexError, Record, disk, lists, records};
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

/// Writes a region's files, and appends its filters to `filters`.
pub(super) fn write_region(
    folder: &Path,
    number: usize,
    settings: &Settings,
    of_region: &[Record],
    elements: &[HashSet<Element>; 2],
    filters: &mut Vec<u8>,
) -> Result<Region, IndexError> {
    let path = records_file(folder, number);
    let bytes = records::encode(of_region).map_err(|error| IndexError::damaged(&path, error))?;
    let records = disk::write_new(&path, &bytes)?;
    let path = lists_file(folder, number);
    let bytes = lists::encode(&lists::of_records(of_region))
        .map_err(|error| IndexError::damaged(&path, error))?;
    let lists = disk::write_new(&path, &bytes)?;
    let mut lengths = [0; 2];
    for ((family, elements), length) in Family::ALL.iter().zip(elements).zip(&mut lengths) {
        let filter = settings.filter.build(*family, elements);
        let filter = filter.map_err(|error| IndexError::Plan(error.to_string()))?;
        *length = filter.len() as u64;
        filters.extend(filter);
    }
    let dns = of_region.iter().filter(|record| record.domain.is_some());
    let dns = dns.count() as u64;
    let times = |time: fn(&Record) -> i64| of_region.iter().map(time);
    Ok(Region {
        start_ns: times(|record| record.start_ns).min().unwrap_or_default(),
        end_ns: times(|record| record.end_ns).max().unwrap_or_default(),
        flows: of_region.len() as u64 - dns,
        dns,
        records,
        lists,
        filters: lengths,
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
