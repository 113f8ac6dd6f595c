//! Inverted lists: from a value of an attribute to the records of a region that have it.
//!
//! ```text
//!     attribute │ value, ascending                │ numbers of records, ascending
//!     address   │ 4 or 16 bytes                   │ 3 17 40
//!     port      │ 2 bytes                         │ …
//!     domain    │ labels from the top down        │ …
//! ```
//!
//! An address or a port is there for either end; the record says which.
//! Prefixes of addresses and domains with all names below them are ranges of the values.

use super::Record;
use super::columns::{Column, Kind, Table, parts, put, write};
use super::record::reversed_labels;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::errors::ParquetError;
use std::collections::HashMap;
use std::net::IpAddr;

const COLUMNS: [Column; 3] = [
    ("attribute", Kind::Int, false),
    ("value", Kind::Sorted, false),
    ("record", Kind::List, false),
];

/// Attribute of a value.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Attribute {
    Address = 0,
    Port = 1,
    Domain = 2,
}

/// Values from the first to the last, both inclusive, and those that begin with the last.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) attribute: Attribute,
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    /// Length of the value; `None` for all names below a domain, which are longer.
    pub(super) length: Option<usize>,
}

impl Wanted {
    /// One value.
    pub(super) fn value(attribute: Attribute, value: Vec<u8>) -> Self {
        Self { attribute, first: value.clone(), length: Some(value.len()), last: value }
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

/// All lists of a region, by column.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Inverted {
    attributes: Vec<i32>,
    /// The values, one after the other, and where each ends.
    values: Vec<u8>,
    ends: Vec<usize>,
    numbers: Vec<i32>,
    /// 0 for the first number of each list, 1 for the others.
    repetition: Vec<i16>,
}

impl Inverted {
    /// Builds the lists of these records.
    pub(super) fn of_records(records: &[Record]) -> Self {
        // Values with the numbers of records below them.
        let (mut short, mut long, mut ports) = <(Vec<u64>, Vec<(u128, u64)>, Vec<u64>)>::default();
        let mut names: HashMap<&[u8], Vec<u64>> = HashMap::new();
        for (number, record) in (0..).zip(records) {
            for address in [record.src, record.dst] {
                match address {
                    IpAddr::V4(address) => short.push(u64::from(address.to_bits()) << 32 | number),
                    IpAddr::V6(address) => long.push((address.to_bits(), number)),
                }
            }
            ports.push(u64::from(record.dst_port) << 32 | number);
            match &record.domain {
                Some(name) => names.entry(name).or_default().push(number),
                None => ports.push(u64::from(record.src_port) << 32 | number),
            }
        }
        let mut lists = Self::default();
        lists.add_addresses(&in_order(short), &in_order(long));
        let ports = in_order(ports);
        for same in ports.chunk_by(|one, next| one >> 32 == next >> 32) {
            let port = (same[0] >> 32) as u16;
            lists.add(Attribute::Port, &port.to_be_bytes(), same.iter().copied());
        }
        let names = names.into_iter().map(|(name, numbers)| (reversed_labels(name), numbers));
        for (name, numbers) in in_order(names.collect()) {
            lists.add(Attribute::Domain, &name, numbers.into_iter());
        }
        lists
    }

    /// Adds the lists of addresses of both families, in the order of their bytes.
    fn add_addresses(&mut self, short: &[u64], long: &[(u128, u64)]) {
        let mut long = long.chunk_by(|one, next| one.0 == next.0).peekable();
        let mut add_long = |lists: &mut Self, before: Option<u128>| {
            while let Some(same) = long.next_if(|same| before.is_none_or(|end| same[0].0 < end)) {
                let numbers = same.iter().map(|&(_, number)| number);
                lists.add(Attribute::Address, &same[0].0.to_be_bytes(), numbers);
            }
        };
        for same in short.chunk_by(|one, next| one >> 32 == next >> 32) {
            let address = (same[0] >> 32) as u32;
            // An address that begins like this one is longer, and follows it.
            add_long(self, Some(u128::from(address) << 96));
            self.add(Attribute::Address, &address.to_be_bytes(), same.iter().copied());
        }
        add_long(self, None);
    }

    /// Adds a list, whose numbers are the low halves of these.
    fn add(&mut self, attribute: Attribute, value: &[u8], numbers: impl Iterator<Item = u64>) {
        self.attributes.push(attribute as i32);
        self.values.extend(value);
        self.ends.push(self.values.len());
        self.numbers.extend(numbers.map(|number| number as i32));
        self.repetition.push(0);
        self.repetition.resize(self.numbers.len(), 1);
    }

    /// Encodes the file with these lists.
    pub(super) fn encode(self) -> Result<Vec<u8>, ParquetError> {
        let values = parts(self.values, &self.ends);
        let present = vec![1; self.numbers.len()];
        write(&COLUMNS, |group| {
            put::<Int32Type>(group, &self.attributes, None, None)?;
            put::<ByteArrayType>(group, &values, None, None)?;
            put::<Int32Type>(group, &self.numbers, Some(&present), Some(&self.repetition))
        })
    }
}

/// Returns the distinct values in ascending order.
fn in_order<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

/// Lists that were read.
pub(super) struct Lists {
    table: Table,
    /// Attribute and value of each row.
    rows: Vec<(i32, ByteArray)>,
}

impl Lists {
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, ParquetError> {
        let table = Table::open(bytes, &COLUMNS)?;
        let attributes = table.get::<Int32Type>(0, 0, table.rows())?.values;
        let values = table.get::<ByteArrayType>(1, 0, table.rows())?.values;
        Ok(Self { rows: attributes.into_iter().zip(values).collect(), table })
    }

    /// Returns the numbers of the records with a wanted value, ascending.
    pub(super) fn find(&self, wanted: &Wanted) -> Result<Vec<i32>, ParquetError> {
        let attribute = wanted.attribute as i32;
        let takes = |(of, value): &(i32, ByteArray)| wanted.takes(*of, value.data());
        // Rows are in the order of attribute and value, so those wanted lie in one range.
        let from = self
            .rows
            .partition_point(|(of, value)| (*of, value.data()) < (attribute, &wanted.first[..]));
        let to = self.rows.partition_point(|(of, value)| {
            (*of, value.data()) <= (attribute, &wanted.last[..])
                || (*of == attribute && value.data().starts_with(&wanted.last))
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
            if self.rows[..to].get(row).is_some_and(takes) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Reads all lists.
    pub(super) fn all(&self) -> Result<Inverted, ParquetError> {
        let found = self.table.get::<Int32Type>(2, 0, self.rows.len())?;
        let mut lists =
            Inverted { numbers: found.values, repetition: found.repetition, ..Inverted::default() };
        for (attribute, value) in &self.rows {
            lists.attributes.push(*attribute);
            lists.values.extend(value.data());
            lists.ends.push(lists.values.len());
        }
        Ok(lists)
    }
}
