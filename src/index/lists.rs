//! Inverted lists: from a value of an attribute to the records of a region that have it.
//!
//! ```text
//!     attribute │ value, ascending                │ numbers of records, ascending
//!     address   │ 4 or 16 bytes                   │ 3 17 40
//!     port      │ 2 bytes                         │ …
//!     domain    │ labels from the top down        │ …
//! ```
//!
//! An address or a port stands there for either end; which end it was stands in the record.
//! Prefixes of addresses and domains with all names below them are ranges of the values.

use super::Record;
use super::columns::{Column, Kind, Table, put, write};
use super::record::reversed_labels;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::errors::ParquetError;
use std::net::IpAddr;

const COLUMNS: [Column; 3] = [
    ("attribute", Kind::Int, false),
    ("value", Kind::Sorted, false),
    ("record", Kind::List, false),
];

/// What a value is of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Attribute {
    Address = 0,
    Port = 1,
    Domain = 2,
}

/// Attribute (or its number), value, numbers of records.
pub(super) type List<A> = (A, Vec<u8>, Vec<i32>);

/// Values from the first to the last, both included; those that begin with the last are included too.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) attribute: Attribute,
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    /// Length that the value has; of a domain with all names below it any greater one.
    pub(super) length: Option<usize>,
}

impl Wanted {
    /// One value.
    pub(super) fn value(attribute: Attribute, value: Vec<u8>) -> Self {
        Self {
            attribute,
            first: value.clone(),
            length: Some(value.len()),
            last: value,
        }
    }

    fn takes(&self, attribute: i32, value: &[u8]) -> bool {
        let right_length = match self.length {
            Some(length) => value.len() == length,
            None => value.len() > self.first.len(),
        };
        attribute == self.attribute as i32
            && right_length
            && value >= &self.first[..]
            && (value <= &self.last[..] || value.starts_with(&self.last))
    }
}

pub(super) fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Every value of a record.
fn values(record: &Record) -> impl Iterator<Item = (Attribute, Vec<u8>)> {
    let ports = match record.domain {
        Some(_) => [record.dst_port; 2],
        None => [record.src_port, record.dst_port],
    };
    let domain = record.domain.as_deref().map(reversed_labels);
    let addresses = [record.src, record.dst].map(address_bytes).into_iter();
    addresses
        .map(|address| (Attribute::Address, address))
        .chain(ports.map(|port| (Attribute::Port, port.to_be_bytes().to_vec())))
        .chain(domain.map(|name| (Attribute::Domain, name)))
}

/// All lists of these records: attribute, value, numbers.
pub(super) fn of_records(records: &[Record]) -> Vec<List<Attribute>> {
    let mut entries: Vec<_> = (0..)
        .zip(records)
        .flat_map(|(number, record)| values(record).map(move |(a, value)| (a, value, number)))
        .collect();
    entries.sort_unstable();
    entries.dedup();
    let mut lists: Vec<List<Attribute>> = Vec::new();
    for (attribute, value, number) in entries {
        match lists.last_mut() {
            Some(last) if last.0 == attribute && last.1 == value => last.2.push(number),
            _ => lists.push((attribute, value, vec![number])),
        }
    }
    lists
}

/// The file with these lists.
pub(super) fn encode(lists: &[List<Attribute>]) -> Result<Vec<u8>, ParquetError> {
    let attributes: Vec<i32> = lists.iter().map(|list| list.0 as i32).collect();
    let values: Vec<ByteArray> = lists
        .iter()
        .map(|list| ByteArray::from(list.1.clone()))
        .collect();
    let numbers: Vec<i32> = lists
        .iter()
        .flat_map(|list| list.2.iter().copied())
        .collect();
    let present = vec![1; numbers.len()];
    let repetition: Vec<i16> = lists
        .iter()
        .flat_map(|list| (0..list.2.len()).map(|place| i16::from(place > 0)))
        .collect();
    write(&COLUMNS, |group| {
        put::<Int32Type>(group, &attributes, None, None)?;
        put::<ByteArrayType>(group, &values, None, None)?;
        put::<Int32Type>(group, &numbers, Some(&present), Some(&repetition))
    })
}

/// Lists that were read.
pub(super) struct Lists {
    table: Table,
    attributes: Vec<i32>,
    values: Vec<ByteArray>,
}

impl Lists {
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, ParquetError> {
        let table = Table::open(bytes, &COLUMNS)?;
        let rows = table.rows();
        Ok(Self {
            attributes: table.get::<Int32Type>(0, 0, rows)?.values,
            values: table.get::<ByteArrayType>(1, 0, rows)?.values,
            table,
        })
    }

    /// Numbers of the records with a wanted value, ascending.
    pub(super) fn find(&self, wanted: &Wanted) -> Result<Vec<i32>, ParquetError> {
        let takes = |row: usize| wanted.takes(self.attributes[row], self.values[row].data());
        let (attribute, rows) = (wanted.attribute as i32, self.values.len());
        // Rows are in the order of attribute and value, so those wanted lie in one range.
        let from = partition(rows, |row| {
            (self.attributes[row], self.values[row].data()) < (attribute, &wanted.first[..])
        });
        let to = partition(rows, |row| {
            let value = self.values[row].data();
            (self.attributes[row], value) <= (attribute, &wanted.last[..])
                || (self.attributes[row] == attribute && value.starts_with(&wanted.last))
        });
        if from >= to {
            return Ok(Vec::new());
        }
        let found = self.table.get::<Int32Type>(2, from, to)?;
        let mut row = from;
        let mut numbers = Vec::new();
        for (place, (&number, &repetition)) in
            found.values.iter().zip(&found.repetition).enumerate()
        {
            row += usize::from(place > 0 && repetition == 0);
            if row < to && takes(row) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// All lists.
    pub(super) fn all(&self) -> Result<Vec<List<i32>>, ParquetError> {
        let rows = self.values.len();
        let found = self.table.get::<Int32Type>(2, 0, rows)?;
        let mut lists: Vec<List<i32>> = Vec::with_capacity(rows);
        for (&number, &repetition) in found.values.iter().zip(&found.repetition) {
            match lists.last_mut() {
                Some(last) if repetition > 0 => last.2.push(number),
                _ => {
                    let row = lists.len().min(rows - 1);
                    let value = self.values[row].data().to_vec();
                    lists.push((self.attributes[row], value, vec![number]));
                }
            }
        }
        Ok(lists)
    }
}

/// Number of the rows, all at the beginning, for which this holds.
fn partition(rows: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
