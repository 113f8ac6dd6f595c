//! Behaviour of all containers: compression around them, counters, and a first look.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::super::{Compression, InputFormat, LinkType, TraceErrorKind, is_capture};
use super::{check_every_flip, open, read, read_all};
use crate::trace::Capture;

/// A pcap file of packets of five bytes, a second apart.
fn pcap(packets: u32) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    for number in 0..packets {
        file.extend(words(&[1000 + number, number * 7919 % 1_000_000, 5, 60]));
        file.extend(b"hello");
    }
    file
}

fn erf(packets: u64) -> Vec<u8> {
    let record = |number: u64| {
        let mut record = ((1000 + number) << 32 | 1 << 31).to_le_bytes().to_vec();
        record.extend([2, 0, 0, 24, 0, 0, 0, 64, 0, 0]);
        record.extend(b"hello!");
        record
    };
    (0..packets).flat_map(record).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_cut_compressed_capture_delivers_its_packets_first() {
    let file = gzip(&pcap(50_000));
    let half = file.len() / 2;
    let capture = open(&file[..half], InputFormat::Auto).unwrap();
    assert_eq!(capture.compression(), Compression::Gzip);
    let counter = capture.bytes_read();
    let outcome = read_all(capture);
    assert!(outcome.packets.len() > 20_000, "{}", outcome.packets.len());
    assert_eq!(counter.load(Ordering::Relaxed), half as u64);
    let error = outcome.error.unwrap();
    assert!(
        matches!(
            error.kind,
            TraceErrorKind::DamagedCompression { codec: Compression::Gzip, cut: true, .. }
        ),
        "{error}"
    );
    assert_eq!(error.offset, Some(half as u64));
}

#[test]
fn damage_is_told_of_the_codec_even_if_the_container_trips_first() {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(&pcap(50_000)).unwrap();
    let mut file = encoder.finish().unwrap();
    let middle = file.len() / 2;
    file[middle..middle + 9].fill(0xff);
    let outcome = read(&file);
    assert!(outcome.packets.len() > 10_000, "{}", outcome.packets.len());
    let error = outcome.error.unwrap();
    assert!(
        matches!(
            error.kind,
            TraceErrorKind::DamagedCompression { codec: Compression::Bzip2, cut: false, .. }
        ),
        "{error}"
    );
}

#[test]
fn a_damaged_start_of_a_compressed_file_is_named_as_such() {
    let mut file = gzip(&pcap(10));
    file.truncate(12);
    let error = open(&file, InputFormat::Auto).unwrap_err();
    assert!(matches!(error.kind, TraceErrorKind::DamagedCompression { .. }), "{error}");
}

#[test]
fn a_whole_compressed_capture_is_as_the_plain_one() {
    let file = pcap(50_000);
    let (plain, packed) = (read(&file), read(&gzip(&file)));
    assert_eq!(plain.times(), packed.times());
    assert!(packed.error.is_none());
}

#[test]
fn bare_erf_is_recognised_and_cut_anywhere() {
    let file = erf(5);
    let outcome = read(&file);
    assert_eq!(outcome.container, "erf");
    assert_eq!(outcome.packets.len(), 5);
    assert!(outcome.contents.iter().all(|content| content == b"hello!"));
    assert_eq!(outcome.times()[0], 1_000_500_000_000);
    assert_eq!(outcome.packets[0].link, LinkType::ETHERNET);
    for length in 0..file.len() {
        let Ok(capture) = open(&file[..length], InputFormat::Auto) else {
            assert!(length < 3 * 24, "three records are enough to recognise it");
            continue;
        };
        let outcome = read_all(capture);
        assert_eq!(outcome.packets.len(), length / 24);
        assert_eq!(outcome.error.is_some(), length % 24 != 0);
    }
    check_every_flip(&file);
}

#[test]
fn a_first_look_reads_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let capture = path("no-extension", &gzip(&pcap(3)));
    let text = path("notes.pcap", b"not a capture");
    let empty = path("empty.pcap", b"");
    let cut = path("cut.pcap", &pcap(3)[..20]);
    assert!(is_capture(&capture, InputFormat::Auto).unwrap());
    assert!(!is_capture(&text, InputFormat::Auto).unwrap());
    assert!(!is_capture(&empty, InputFormat::Auto).unwrap());
    assert!(!is_capture(folder.path(), InputFormat::Auto).unwrap());
    assert!(is_capture(&cut, InputFormat::Auto).unwrap(), "to be reported, not passed over");
    assert!(is_capture(&folder.path().join("missing"), InputFormat::Auto).is_err());
    let first = Capture::open(&capture, InputFormat::Auto).unwrap().first_time_ns().unwrap();
    assert_eq!(first, Some(1_000_000_000_000));
    let none = path("none.pcap", &pcap(0));
    let mut none = Capture::open(&none, InputFormat::Auto).unwrap();
    assert_eq!(none.first_time_ns().unwrap(), None);
    let folder = Capture::open(folder.path(), InputFormat::Auto).unwrap_err();
    assert!(folder.to_string().contains("is a directory"), "{folder}");
    let missing = Capture::open(Path::new("no/such.pcap"), InputFormat::Auto).unwrap_err();
    assert_eq!(missing.to_string(), "no/such.pcap: no such file; check the path");
}
