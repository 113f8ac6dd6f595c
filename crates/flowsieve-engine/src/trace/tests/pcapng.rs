//! pcapng: sections, interfaces, the four kinds of packets, and blocks that lie.

use super::super::LinkType;
use super::{TraceErrorKind, check_every_cut, check_every_flip, open, read};
use crate::trace::InputFormat;

/// Writes blocks in one byte order.
#[derive(Clone, Copy)]
struct Writer {
    big: bool,
}

impl Writer {
    fn word(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn half(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.word(value)).collect()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32 + 12;
        [self.words(&[kind, length]), body, self.words(&[length])].concat()
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.words(&[0x1a2b_3c4d]);
        body.extend([self.half(1), self.half(0)].concat());
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = [self.half(link), self.half(0)].concat();
        body.extend(self.word(snap));
        for (code, value) in options {
            body.extend([self.half(*code), self.half(value.len() as u16)].concat());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, ticks: u64, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u32;
        let head = [interface, (ticks >> 32) as u32, ticks as u32, length, 60];
        self.block(6, &[self.words(&head), content.to_vec()].concat())
    }

    fn obsolete(self, interface: u16, ticks: u64, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u32;
        let mut body = [self.half(interface), self.half(9)].concat();
        body.extend(self.words(&[(ticks >> 32) as u32, ticks as u32, length, 60]));
        body.extend(content);
        self.block(2, &body)
    }

    fn simple(self, wire: u32, content: &[u8]) -> Vec<u8> {
        self.block(3, &[self.words(&[wire]), content.to_vec()].concat())
    }
}

const LITTLE: Writer = Writer { big: false };
const BIG: Writer = Writer { big: true };

fn start(writer: Writer) -> Vec<u8> {
    [writer.section(), writer.interface(1, 0, &[])].concat()
}

#[test]
fn sections_have_their_own_byte_order_and_interfaces() {
    let mut file = Vec::new();
    for writer in [LITTLE, BIG, LITTLE] {
        file.extend(writer.section());
        file.extend(writer.interface(1, 0, &[]));
        file.extend(writer.interface(113, 0, &[(9, &[9])]));
        file.extend(writer.enhanced(0, 5, b"one"));
        file.extend(writer.enhanced(1, 7, b"three"));
        file.extend(writer.obsolete(1, 8, b"four"));
    }
    let outcome = read(&file);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.container, "pcapng");
    assert_eq!(outcome.contents, [b"one".as_slice(), b"three", b"four"].repeat(3));
    assert_eq!(outcome.times(), [5000, 7, 8].repeat(3));
    assert_eq!(outcome.packets[4].link, LinkType::LINUX_SLL);
    assert_eq!(outcome.packets[4].wire, 60);
}

#[test]
fn the_offset_of_the_clock_follows_the_byte_order() {
    for writer in [LITTLE, BIG] {
        let offset = if writer.big { (-3i64).to_be_bytes() } else { (-3i64).to_le_bytes() };
        let mut file = writer.section();
        file.extend(writer.interface(1, 0, &[(9, &[0x83]), (14, &offset), (0, &[])]));
        file.extend(writer.enhanced(0, 12, b""));
        assert_eq!(read(&file).times(), [-1_500_000_000]);
    }
}

#[test]
fn simple_packets_take_a_time_nearby_and_the_snap_length() {
    let mut file = [LITTLE.section(), LITTLE.interface(1, 3, &[])].concat();
    file.extend(LITTLE.simple(100, b"abcd"));
    file.extend(LITTLE.enhanced(0, 5, b"x"));
    file.extend(LITTLE.simple(2, b"ab"));
    let outcome = read(&file);
    assert_eq!(outcome.contents, [b"abc".as_slice(), b"x", b"ab"]);
    assert_eq!(outcome.times(), [5000, 5000, 5000]);
    assert_eq!(outcome.packets[0].wire, 100);
    // The time goes on into the next section; without any, it is 0.
    file.extend(start(BIG));
    file.extend(BIG.simple(2, b"ab"));
    assert_eq!(read(&file).times(), [5000; 4]);
    let file = [start(BIG), BIG.simple(2, b"ab")].concat();
    assert_eq!(read(&file).times(), [0]);
}

#[test]
fn blocks_of_no_interest_are_passed_over_however_long() {
    let mut file = start(LITTLE);
    for length in [0, 4, 600_000, 40 << 20] {
        file.extend(LITTLE.block(0x777, &vec![7; length]));
        file.extend(LITTLE.enhanced(0, 5, b"x"));
    }
    let outcome = read(&file);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.packets.len(), 4);
}

#[test]
fn a_length_without_the_padding_is_understood() {
    let mut file = start(LITTLE);
    file.extend(
        [LITTLE.words(&[0x777, 17]), b"hello\0\0\0".to_vec(), LITTLE.words(&[17])].concat(),
    );
    file.extend(LITTLE.enhanced(0, 5, b"x"));
    let outcome = read(&file);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.packets.len(), 1);
}

/// Appends `block` to a file of two packets and returns what is wrong with the third.
fn damage(block: &[u8]) -> TraceErrorKind {
    let mut file = start(LITTLE);
    file.extend(LITTLE.enhanced(0, 5, b"x").repeat(2));
    let offset = file.len() as u64;
    file.extend(block);
    file.extend(LITTLE.enhanced(0, 5, b"x"));
    let outcome = read(&file);
    assert_eq!(outcome.packets.len(), 2);
    let error = outcome.error.expect("an error");
    assert_eq!(error.offset, Some(offset), "{error}");
    error.kind
}

#[test]
fn contradictions_are_damage() {
    let lies = |block: &[u8], at: usize, value: u32| {
        let mut block = block.to_vec();
        block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        block
    };
    let packet = LITTLE.enhanced(0, 5, b"abcd");
    let end = packet.len() - 4;
    let blocks = [
        LITTLE.enhanced(1, 5, b"x"),
        LITTLE.obsolete(1, 5, b"x"),
        LITTLE.simple(5, b"abcd"),
        lies(&packet, end, 8),
        lies(&packet, 4, 8),
        lies(&packet, 20, 5),
        LITTLE.block(6, b"short"),
        LITTLE.block(3, b""),
        LITTLE.block(1, b""),
        LITTLE.block(0x0a0d_0d0a, &[0; 16]),
        lies(&LITTLE.block(0x777, &vec![0; 1 << 20]), (1 << 20) + 8, 1),
    ];
    for block in blocks {
        let kind = damage(&block);
        assert!(matches!(kind, TraceErrorKind::CorruptBlock { packet: 3, .. }), "{kind:?}");
    }
    let long = damage(&lies(&packet, 4, u32::MAX));
    assert!(matches!(long, TraceErrorKind::RecordTooLong { packet: 3, .. }), "{long:?}");
    let long = damage(&lies(&packet, 20, u32::MAX));
    assert!(matches!(long, TraceErrorKind::RecordTooLong { packet: 3, .. }), "{long:?}");
    let cut = damage(&lies(&LITTLE.block(0x777, b""), 4, u32::MAX));
    assert!(matches!(cut, TraceErrorKind::CutInRecord { packet: 3, .. }), "{cut:?}");
}

#[test]
fn an_unknown_version_is_refused() {
    let mut section = LITTLE.section();
    section[12] = 2;
    let outcome = read(&section);
    assert!(
        matches!(outcome.kind(), TraceErrorKind::UnsupportedVersion { major: 2, minor: 0, .. }),
        "{outcome:?}"
    );
}

#[test]
fn a_cut_at_any_byte_leaves_the_packets_before_it() {
    let mut file = start(BIG);
    let (first, interface) = (BIG.section().len(), file.len());
    file.extend(BIG.enhanced(0, 5, b"hello"));
    let one = file.len();
    file.extend(BIG.block(0x777, b"noise"));
    let noise = file.len();
    file.extend(BIG.simple(3, b"abc"));
    let two = file.len();
    file.extend(BIG.obsolete(0, 5, b"hello"));
    let ends = [one, two, file.len()];
    check_every_cut(&file, 28, &ends, &[first, interface, one, noise, two]);
    check_every_flip(&file);
}

#[test]
fn a_file_of_a_section_header_alone_has_no_packets() {
    let outcome = read(&LITTLE.section());
    assert!(outcome.packets.is_empty() && outcome.error.is_none());
    assert!(open(&LITTLE.section()[..27], InputFormat::Auto).is_err());
}
