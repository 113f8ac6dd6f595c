//! The records of a region as a Parquet file, which other programs read as well.

use super::Record;
use super::columns::{Column, Kind, Table, parts, put, write};
use crate::decode::{NAME_MAX, labels_from_text, push_address, push_dotted};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use std::net::IpAddr;

const COLUMNS: [Column; 12] = [
    ("start_ns", Kind::Time, false),
    ("end_ns", Kind::Time, false),
    ("src", Kind::Text, false),
    ("dst", Kind::Text, false),
    ("proto", Kind::Int, false),
    ("src_port", Kind::Int, false),
    ("dst_port", Kind::Int, false),
    ("packets_fwd", Kind::Long, false),
    ("packets_rev", Kind::Long, false),
    ("bytes_fwd", Kind::Long, false),
    ("bytes_rev", Kind::Long, false),
    ("domain", Kind::Text, true),
];

/// Encodes the file with these records.
pub(super) fn encode(records: &[Record]) -> Result<Vec<u8>, ParquetError> {
    let long = |value: fn(&Record) -> i64| records.iter().map(value).collect::<Vec<_>>();
    let int = |value: fn(&Record) -> i32| records.iter().map(value).collect::<Vec<_>>();
    let address =
        |value: fn(&Record) -> IpAddr| texts(records, |r, out| push_address(value(r), out));
    write(&COLUMNS, |group| {
        put::<Int64Type>(group, &long(|r| r.start_ns), None, None)?;
        put::<Int64Type>(group, &long(|r| r.end_ns), None, None)?;
        put::<ByteArrayType>(group, &address(|r| r.src), None, None)?;
        put::<ByteArrayType>(group, &address(|r| r.dst), None, None)?;
        put::<Int32Type>(group, &int(|r| r.protocol.into()), None, None)?;
        put::<Int32Type>(group, &int(|r| r.src_port.into()), None, None)?;
        put::<Int32Type>(group, &int(|r| r.dst_port.into()), None, None)?;
        put::<Int64Type>(group, &long(|r| r.packets[0] as i64), None, None)?;
        put::<Int64Type>(group, &long(|r| r.packets[1] as i64), None, None)?;
        put::<Int64Type>(group, &long(|r| r.bytes[0] as i64), None, None)?;
        put::<Int64Type>(group, &long(|r| r.bytes[1] as i64), None, None)?;
        let names = records.iter().filter_map(|record| record.domain.as_deref());
        let names = texts(names, push_dotted);
        let present = records.iter().map(|record| record.domain.is_some().into());
        let present: Vec<i16> = present.collect();
        put::<ByteArrayType>(group, &names, Some(&present), None)
    })
}

/// Returns texts that share one allocation.
fn texts<T>(of: impl IntoIterator<Item = T>, push: impl Fn(T, &mut String)) -> Vec<ByteArray> {
    let (mut all, mut ends) = (String::new(), Vec::new());
    for item in of {
        push(item, &mut all);
        ends.push(all.len());
    }
    parts(all.into(), &ends)
}

/// Decodes the records of a file.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Vec<Record>, ParquetError> {
    let table = Table::open(bytes, &COLUMNS)?;
    let rows = table.rows();
    let long = |column| table.get::<Int64Type>(column, 0, rows).map(|cells| cells.values);
    let longs = [0, 1, 7, 8, 9, 10].into_iter().map(long).collect::<Result<Vec<_>, _>>()?;
    let int = |column| table.get::<Int32Type>(column, 0, rows).map(|cells| cells.values);
    let ints = [4, 5, 6].into_iter().map(int).collect::<Result<Vec<_>, _>>()?;
    let src = table.get::<ByteArrayType>(2, 0, rows)?.values;
    let dst = table.get::<ByteArrayType>(3, 0, rows)?.values;
    let domain = table.get::<ByteArrayType>(11, 0, rows)?;
    let mut names = domain.values.iter();
    (0..rows)
        .map(|row| {
            let has_name = domain.definition[row] != 0;
            Ok(Record {
                start_ns: longs[0][row],
                end_ns: longs[1][row],
                src: parsed(&src[row])?,
                dst: parsed(&dst[row])?,
                protocol: ints[0][row] as u8,
                src_port: ints[1][row] as u16,
                dst_port: ints[2][row] as u16,
                packets: [longs[2][row] as u64, longs[3][row] as u64],
                bytes: [longs[4][row] as u64, longs[5][row] as u64],
                domain: has_name.then(|| name(names.next())).transpose()?,
            })
        })
        .collect()
}

fn parsed<T: std::str::FromStr>(text: &ByteArray) -> Result<T, ParquetError> {
    let text = text.as_utf8()?;
    text.parse().map_err(|_| ParquetError::General(format!("`{text}` is no address")))
}

fn name(text: Option<&ByteArray>) -> Result<Box<[u8]>, ParquetError> {
    let mut buffer = [0; NAME_MAX];
    let text = text.map(ByteArray::data).unwrap_or_default();
    let labels = labels_from_text(text, &mut buffer);
    let labels = labels.ok_or_else(|| ParquetError::General("a name is none".into()))?;
    Ok((*labels).into())
}
