//! A region's files, records and inverted lists, and its filters.

use super::catalog::{FilterPlace, Region, Settings};
use super::disk;
use super::elements::{self, Element, Family};
use super::global::keys_of;
use super::journal::NewFiles;
use super::layout::{lists_file, records_file};
use super::lists::Inverted;
use super::{IndexError, Record, records, region_filter};
use crate::hashing::{Digest, sorted};
use std::path::Path;

/// The values of a region for the global level, and its filters.
pub(super) struct RegionKeys {
    pub(super) keys: Vec<Digest>,
    pub(super) filters: Vec<u8>,
}

/// Returns the distinct elements of records by family, in an order that depends on nothing else.
pub(super) fn elements_of(records: &[Record]) -> [Vec<Element>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for record in records {
        elements::of_record(record, &mut |family, element| {
            found[family as usize].push(element);
        });
    }
    found.map(|elements| distinct(&elements))
}

/// Returns the distinct elements in the order of their digests.
fn distinct(elements: &[Element]) -> Vec<Element> {
    let numbered = elements.iter().enumerate();
    let order = sorted(numbered.map(|(number, element)| {
        u128::from(region_filter::whole(element).value()) << 64 | number as u128
    }));
    let mut distinct = Vec::with_capacity(order.len());
    for same in order.chunk_by(|one, next| one >> 64 == next >> 64) {
        let first = distinct.len();
        distinct.extend(same.iter().map(|&place| elements[place as u64 as usize]));
        distinct[first..].sort_unstable();
    }
    distinct.dedup();
    distinct
}

/// Builds the filters of a region with these elements, and returns the bytes of each.
pub(super) fn filters_of(
    settings: &Settings,
    elements: &[Vec<Element>; 2],
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

/// A region that is not written yet.
pub(super) struct BuiltRegion {
    /// Without its node and the places of its files and filters.
    region: Region,
    records: Vec<u8>,
    lists: Vec<u8>,
    keys: RegionKeys,
}

impl BuiltRegion {
    /// Builds the region of these records. Errors name the capture.
    pub(super) fn new(
        capture: &Path,
        settings: &Settings,
        of_region: &[Record],
    ) -> Result<Self, IndexError> {
        let unwritten = |error| IndexError::damaged(capture, error);
        let elements = elements_of(of_region);
        let keys = keys_of(settings.global, &elements);
        let (filters, lengths) = filters_of(settings, &elements)?;
        let dns = of_region.iter().filter(|record| record.domain.is_some()).count() as u64;
        let times = |time: fn(&Record) -> i64| of_region.iter().map(time);
        Ok(Self {
            region: Region {
                start_ns: times(|record| record.start_ns).min().unwrap_or_default(),
                end_ns: times(|record| record.end_ns).max().unwrap_or_default(),
                flows: of_region.len() as u64 - dns,
                dns,
                filters: FilterPlace { bytes: lengths, ..FilterPlace::default() },
                ..Region::default()
            },
            records: records::encode(of_region).map_err(unwritten)?,
            lists: Inverted::of_records(of_region).encode().map_err(unwritten)?,
            keys: RegionKeys { keys, filters },
        })
    }

    /// Writes its files into a folder of a node. Where its filters will be is not known yet.
    pub(super) fn write(
        self,
        folder: &Path,
        node: usize,
        number: usize,
        files: &mut NewFiles,
    ) -> Result<(Region, RegionKeys), IndexError> {
        let region = Region {
            node,
            records: files.write(&records_file(folder, number), &self.records)?,
            lists: files.write(&lists_file(folder, number), &self.lists)?,
            ..self.region
        };
        Ok((region, self.keys))
    }
}

/// Reads the records of a region.
pub(super) fn read_records(
    folder: &Path,
    number: usize,
    region: &Region,
) -> Result<Vec<Record>, IndexError> {
    let path = records_file(folder, number);
    let _memory = disk::reserve(folder, region.read_bytes())?;
    let bytes = disk::read_checked(&path, region.records)?;
    records::decode(bytes).map_err(|error| IndexError::damaged(&path, error))
}
