//! Lists of flows as Parquet, written by the library that other programs use, in several of its
//! ways: what is read is what was written, and of damaged files something or a sentence.

use super::chain::read_file;
use super::mutations::{Tell, in_parallel};
use super::random::Random;
use flowsieve::trace::{Capture, InputFormat, LogEntry, TraceBatch, TraceErrorKind};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ROWS: usize = 60;

/// A way of writing.
#[derive(Clone, Copy, Debug)]
struct Way {
    version: WriterVersion,
    values: Written,
    codec: Compression,
    page_rows: usize,
    group_rows: usize,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Written {
    Indexed,
    Plain,
    /// Whole numbers as differences, and texts behind their lengths.
    Differences,
}

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for values in [Written::Indexed, Written::Plain, Written::Differences] {
            for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
                for (page_rows, group_rows) in [(1000, 1000), (7, 25)] {
                    ways.push(Way { version, values, codec, page_rows, group_rows });
                }
            }
        }
    }
    ways
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Option<T::T>],
    is_optional: bool,
) {
    let mut column = group.next_column().unwrap().unwrap();
    let there: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    // In small steps, so that pages are as short as asked for.
    let mut before = 0;
    for levels in levels.chunks(5) {
        let count = levels.iter().filter(|&&level| level == 1).count();
        let levels = is_optional.then_some(levels);
        column.typed::<T>().write_batch(&there[before..before + count], levels, None).unwrap();
        before += count;
    }
    column.close().unwrap();
}

/// The same list in every way: with columns that are not needed, ports that are missing, a port
/// that is a fraction because others are missing, and protocols by name.
fn write(way: Way) -> Vec<u8> {
    let schema = parse_message_type(
        "message table {
            optional group unneeded { optional int32 number; optional int32 other; }
            required int64 start_ns (TIMESTAMP(MICROS, true));
            required binary src (UTF8);
            required binary dst (UTF8);
            optional double src_port;
            optional int32 dst_port;
            optional binary proto (UTF8);
            optional int64 packets;
            required float note;
            required int64 end_ns;
        }",
    );
    let mut properties = WriterProperties::builder();
    if way.values == Written::Differences {
        for (column, encoding) in [
            ("start_ns", Encoding::DELTA_BINARY_PACKED),
            ("dst_port", Encoding::DELTA_BINARY_PACKED),
            ("packets", Encoding::DELTA_BINARY_PACKED),
            ("end_ns", Encoding::DELTA_BINARY_PACKED),
            ("src", Encoding::DELTA_LENGTH_BYTE_ARRAY),
            ("dst", Encoding::DELTA_LENGTH_BYTE_ARRAY),
            ("proto", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ] {
            properties = properties.set_column_encoding(column.into(), encoding);
        }
    }
    let properties = properties
        .set_writer_version(way.version)
        .set_dictionary_enabled(way.values == Written::Indexed)
        .set_encoding(Encoding::PLAIN)
        .set_compression(way.codec)
        .set_data_page_row_count_limit(way.page_rows)
        .set_write_batch_size(1)
        .build();
    let mut file =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema.unwrap()), Arc::new(properties))
            .unwrap();
    let rows: Vec<usize> = (0..ROWS).collect();
    for rows in rows.chunks(way.group_rows) {
        let mut group = file.next_row_group().unwrap();
        let every =
            |value: fn(usize) -> i64| rows.iter().map(|&row| Some(value(row))).collect::<Vec<_>>();
        let text = |value: fn(usize) -> String| {
            let texts = rows.iter().map(|&row| Some(value(row).into_bytes().into()));
            texts.collect::<Vec<_>>()
        };
        put::<Int32Type>(&mut group, &vec![None; rows.len()], true);
        put::<Int32Type>(&mut group, &vec![None; rows.len()], true);
        put::<Int64Type>(&mut group, &every(|row| 1_700_000_000_000_000 + row as i64 / 3), false);
        put::<ByteArrayType>(&mut group, &text(|row| format!("10.0.0.{}", row % 7)), false);
        put::<ByteArrayType>(&mut group, &text(|row| format!("2001:db8::{}", row % 11)), false);
        let ports = rows.iter().map(|&row| (row % 4 != 1).then_some(1024.0 + row as f64));
        put::<DoubleType>(&mut group, &ports.collect::<Vec<_>>(), true);
        let ports = rows.iter().map(|&row| (row % 4 != 1).then_some(53 + (row % 2) as i32));
        put::<Int32Type>(&mut group, &ports.collect::<Vec<_>>(), true);
        let protocols = rows.iter().map(|&row| match row % 4 {
            0 => Some("tcp".into()),
            1 => None,
            2 => Some("17".into()),
            _ => Some("udp".into()),
        });
        put::<ByteArrayType>(&mut group, &protocols.collect::<Vec<_>>(), true);
        let packets = rows.iter().map(|&row| (row % 5 != 0).then_some(row as i64));
        put::<Int64Type>(&mut group, &packets.collect::<Vec<_>>(), true);
        let mut notes = group.next_column().unwrap().unwrap();
        let zeros = vec![0.0; rows.len()];
        let written =
            notes.typed::<parquet::data_type::FloatType>().write_batch(&zeros, None, None);
        written.unwrap();
        notes.close().unwrap();
        put::<Int64Type>(&mut group, &every(|row| 1_700_000_001_000_000_000 + row as i64), false);
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

/// The same list as CSV.
fn csv() -> String {
    let mut text = "start_ns,src,dst,src_port,dst_port,proto,packets,end_ns\n".to_owned();
    for row in 0..ROWS {
        let ports =
            if row % 4 == 1 { ",".to_owned() } else { format!("{},{}", 1024 + row, 53 + row % 2) };
        let packets = if row % 5 == 0 { String::new() } else { row.to_string() };
        writeln!(
            text,
            "{},10.0.0.{},2001:db8::{},{ports},{},{packets},{}",
            1_700_000_000_000_000_000 + row as i64 / 3 * 1000,
            row % 7,
            row % 11,
            ["tcp", "", "17", "udp"][row % 4],
            1_700_000_001_000_000_000 + row as i64,
        )
        .unwrap();
    }
    text
}

fn entries(path: &Path) -> Vec<LogEntry> {
    let mut capture = Capture::open(path, InputFormat::Auto).unwrap();
    let mut entries = Vec::new();
    while let Some(batch) = capture.next_batch().unwrap() {
        let TraceBatch::Log(log) = batch else { panic!("a log has no packets") };
        entries.extend_from_slice(log.entries);
    }
    entries
}

#[test]
fn what_other_programs_write_is_read_as_the_same_list_in_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    fs::write(&path, csv()).unwrap();
    let expected = entries(&path);
    assert_eq!(expected.len(), ROWS);
    for way in ways() {
        fs::write(&path, write(way)).unwrap();
        let found = entries(&path);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{way:?}");
        let outcome = read_file(&path, 0);
        assert_eq!((outcome.packets, outcome.container), (ROWS, "flow-parquet"));
    }
}

#[test]
fn a_list_that_was_cut_is_refused_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile");
    for way in [ways()[0], ways()[19], ways()[23]] {
        let whole = write(way);
        for end in 1..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let outcome = read_file(&path, 0);
            let error = outcome.error.expect("a list without its end");
            assert_eq!(outcome.packets, 0);
            let is_marked = end >= 4;
            assert!(
                matches!(
                    error.kind,
                    TraceErrorKind::CorruptHeader { .. } | TraceErrorKind::NotACapture { .. }
                ) && matches!(error.kind, TraceErrorKind::CorruptHeader { .. }) == is_marked,
                "{end}: {error}"
            );
        }
    }
}

/// Damage to a list: mostly where lengths, counts and places stand.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    const VARINTS: [&[u8]; 8] = [
        &[0],
        &[1],
        &[0x7f],
        &[0xff, 0xff, 0x03],
        &[0x80, 0x80, 0x80, 0x10],
        &[0xfe, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        &[0xff; 11],
    ];
    let tail = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize;
    // In the footer, or before it, or its length.
    let at = match random.below(8) {
        0..4 => tail - 1 - random.below(footer.clamp(1, tail)),
        4..7 => 4 + random.below(tail - 4),
        _ => tail + random.below(4),
    };
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => {
            let value = *random.pick(&VARINTS);
            let end = (at + value.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        3 => {
            // Another length in the place of one, and the footer as long as it then is.
            let value = *random.pick(&VARINTS);
            bytes.splice(at..=at, value.iter().copied());
            if at >= tail - footer.min(tail) && at < tail {
                let tail = bytes.len() - 8;
                let longer = (footer + value.len() - 1) as u32;
                bytes[tail..tail + 4].copy_from_slice(&longer.to_le_bytes());
            }
        }
        4 => {
            let length = random.below(30).min(tail - at.min(tail));
            bytes.drain(at..at + length);
        }
        _ => {
            let from = random.below(tail);
            let length = random.below(60).min(tail - from);
            let piece = bytes[from..from + length].to_vec();
            let end = (at + length).min(bytes.len());
            bytes[at..end].copy_from_slice(&piece[..end - at]);
        }
    }
}

#[test]
fn damaged_lists_are_read_or_refused_with_a_sentence() {
    const CASES: u64 = 30_000;
    let samples: Vec<Vec<u8>> = ways().into_iter().map(write).collect();
    let folder = tempfile::tempdir().unwrap();
    let refused = in_parallel(CASES, |case| {
        let _tell = Tell(case, "parquet");
        let mut random = Random::new(case);
        let mut bytes = samples[case as usize % samples.len()].clone();
        for _ in 0..=random.below(3) {
            if bytes.len() > 40 {
                damage(&mut bytes, &mut random);
            }
        }
        let path = folder.path().join(format!("{case}-hostile"));
        fs::write(&path, &bytes).unwrap();
        let outcome = read_file(&path, case);
        fs::remove_file(&path).unwrap();
        // As many rows as are believed without bytes for them, of three row groups.
        assert!(outcome.packets < 4 * (1 << 16) + 256 * bytes.len());
        u64::from(outcome.error.is_some())
    });
    // Flips in values are no damage that could be seen.
    assert!(refused > CASES / 3, "{refused} of {CASES} were refused");
    assert!(refused < CASES, "the damage spares something");
}
