//! pcap in all its dialects.

use super::super::LinkType;
use super::{TraceErrorKind, check_every_cut, check_every_flip, open, read};
use crate::trace::InputFormat;

#[derive(Clone, Copy)]
struct Dialect {
    magic: u32,
    big: bool,
    version: (u16, u16),
    network: u32,
    /// Bytes that the dialect adds to a record header.
    extra: usize,
}

const USUAL: Dialect =
    Dialect { magic: 0xa1b2_c3d4, big: false, version: (2, 4), network: 1, extra: 0 };

impl Dialect {
    fn word(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn header(self) -> Vec<u8> {
        let half = |value: u16| {
            if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        let mut bytes = self.word(self.magic).to_vec();
        bytes.extend([half(self.version.0), half(self.version.1)].concat());
        for word in [0, 0, 65_535, self.network] {
            bytes.extend(self.word(word));
        }
        bytes
    }

    fn record(self, time: (u32, u32), lengths: (u32, u32), content: &[u8]) -> Vec<u8> {
        let words = [time.0, time.1, lengths.0, lengths.1];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(|word| self.word(word)).collect();
        bytes.extend(vec![0xee; self.extra]);
        bytes.extend(content);
        bytes
    }

    fn file(self, packets: u32) -> Vec<u8> {
        let mut bytes = self.header();
        for number in 0..packets {
            bytes.extend(self.record((1000 + number, 7), (5, 60), b"hello"));
        }
        bytes
    }
}

#[test]
fn every_dialect_is_read() {
    let dialects = [
        (USUAL, 7000),
        (Dialect { big: true, ..USUAL }, 7000),
        (Dialect { magic: 0xa1b2_3c4d, ..USUAL }, 7),
        (Dialect { magic: 0xa1b2_3c4d, big: true, ..USUAL }, 7),
        (Dialect { magic: 0xa1b2_cd34, extra: 8, ..USUAL }, 7000),
        (Dialect { magic: 0xa1b2_cd34, extra: 8, big: true, ..USUAL }, 7000),
        // The same magic number as the usual one, with longer record headers.
        (Dialect { extra: 8, ..USUAL }, 7000),
        (Dialect { extra: 4, ..USUAL }, 7000),
        (Dialect { magic: 0xa1b2_cd34, extra: 12, ..USUAL }, 7000),
    ];
    for (dialect, fraction) in dialects {
        let outcome = read(&dialect.file(3000));
        let context = format!("{:x} {} {}", dialect.magic, dialect.big, dialect.extra);
        assert!(outcome.error.is_none(), "{context}: {:?}", outcome.error);
        assert_eq!(outcome.container, "pcap");
        assert_eq!(outcome.packets.len(), 3000, "{context}");
        assert!(outcome.contents.iter().all(|content| content == b"hello"), "{context}");
        let last = outcome.packets[2999];
        assert_eq!(last.time_ns, 3999 * 1_000_000_000 + fraction, "{context}");
        assert_eq!((last.wire, last.link), (60, LinkType::ETHERNET), "{context}");
    }
}

#[test]
fn old_versions_have_the_lengths_the_other_way_round() {
    for version in [(2, 0), (2, 2), (543, 0)] {
        let dialect = Dialect { version, ..USUAL };
        let mut file = dialect.header();
        file.extend(dialect.record((1, 2), (60, 5), b"hello"));
        let outcome = read(&file);
        assert_eq!(outcome.contents, [b"hello"], "{version:?}");
        assert_eq!(outcome.packets[0].wire, 60, "{version:?}");
    }
    // Version 2.3 was written both ways.
    let dialect = Dialect { version: (2, 3), big: true, ..USUAL };
    let mut file = dialect.header();
    file.extend(dialect.record((1, 2), (60, 5), b"hello"));
    file.extend(dialect.record((1, 2), (5, 60), b"hello"));
    let outcome = read(&file);
    assert_eq!(outcome.contents, [b"hello", b"hello"]);
    assert!(outcome.packets.iter().all(|packet| packet.wire == 60));
}

#[test]
fn files_of_aix_count_nanoseconds_and_name_interfaces() {
    let dialect = Dialect { version: (2, 2), network: 6, ..USUAL };
    let mut file = dialect.header();
    file.extend(dialect.record((1, 2), (60, 5), b"hello"));
    let outcome = read(&file);
    assert_eq!(outcome.times(), [1_000_000_002]);
    assert_eq!(outcome.packets[0].link, LinkType::ETHERNET);
}

#[test]
fn the_link_type_is_the_low_half_of_its_field() {
    for (network, link) in [(0x1400_0001, 1), (12, 101), (14, 101), (11, 100), (285, 285)] {
        let outcome = read(&Dialect { network, ..USUAL }.file(1));
        assert_eq!(outcome.packets[0].link, LinkType(link), "{network:#x}");
    }
    let error = open(&Dialect { network: 0x0002_0001, ..USUAL }.file(1), InputFormat::Auto);
    assert!(matches!(error.unwrap_err().kind, TraceErrorKind::CorruptHeader { .. }));
}

#[test]
fn an_unknown_version_is_refused() {
    let error = open(&Dialect { version: (1, 2), ..USUAL }.file(1), InputFormat::Auto);
    let kind = error.unwrap_err().kind;
    assert!(
        matches!(kind, TraceErrorKind::UnsupportedVersion { major: 1, minor: 2, .. }),
        "{kind:?}"
    );
}

#[test]
fn a_cut_at_any_byte_leaves_the_packets_before_it() {
    for extra in [0, 8] {
        let file = Dialect { magic: 0xa1b2_cd34, extra: 8, ..USUAL }.file(3);
        let usual = Dialect { extra: 0, ..USUAL }.file(3);
        let (file, step) = if extra == 0 { (usual, 21) } else { (file, 29) };
        let ends = [1, 2, 3].map(|number| 24 + number * step);
        check_every_cut(&file, 24, &ends, &[24, ends[0], ends[1]]);
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    check_every_flip(&USUAL.file(2));
    check_every_flip(&Dialect { big: true, version: (2, 3), ..USUAL }.file(2));
}

#[test]
fn a_hostile_length_is_an_error_after_the_packets_before() {
    for length in [262_145, 0x7fff_ffff, u32::MAX] {
        let mut file = USUAL.file(4);
        file.extend(USUAL.record((1, 2), (length, length), b"hello"));
        let outcome = read(&file);
        assert_eq!(outcome.packets.len(), 4);
        assert!(
            matches!(
                outcome.kind(),
                TraceErrorKind::RecordTooLong { packet: 5, limit: 262_144, .. }
            ),
            "{:?}",
            outcome.error
        );
        assert_eq!(outcome.error.unwrap().offset, Some(24 + 4 * 21));
    }
}

#[test]
fn the_longest_packets_are_read() {
    let mut file = USUAL.header();
    let content = vec![7; 262_144];
    for _ in 0..5 {
        file.extend(USUAL.record((1, 2), (262_144, 262_144), &content));
    }
    let outcome = read(&file);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.contents.len(), 5);
    assert!(outcome.contents.iter().all(|read| *read == content));
}

#[test]
fn times_at_the_ends_of_their_range_do_not_overflow() {
    let mut file = USUAL.header();
    file.extend(USUAL.record((u32::MAX, u32::MAX), (1, 1), b"x"));
    file.extend(USUAL.record((0, 0), (1, 1), b"x"));
    let outcome = read(&file);
    let largest = i64::from(u32::MAX) * 1_000_000_000 + i64::from(u32::MAX) * 1000;
    assert_eq!(outcome.times(), [largest, 0]);
}

#[test]
fn a_record_of_erf_is_unwrapped_and_keeps_the_time_of_the_file() {
    let dialect = Dialect { network: 197, ..USUAL };
    let mut file = dialect.header();
    let mut record = vec![0; 8];
    record.extend([2, 0, 0, 22, 0, 0, 0, 60, 0, 0, b'a', b'b', b'c', b'd']);
    file.extend(dialect.record((5, 6), (22, 22), &record));
    // Too short for an ERF header: counted, not decoded.
    file.extend(dialect.record((5, 7), (3, 3), b"abc"));
    let outcome = read(&file);
    assert_eq!(outcome.contents, [b"abcd".as_slice(), b"abc"]);
    assert_eq!(outcome.packets[0].link, LinkType::ETHERNET);
    assert_eq!(outcome.packets[0].wire, 60);
    assert_eq!(outcome.packets[1].link, LinkType::ERF);
    assert_eq!(outcome.times(), [5_000_006_000, 5_000_007_000]);
}
