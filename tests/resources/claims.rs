//! Files with large claims: records of 4 GiB, a million interfaces, endless tags and headers.

use super::Measured;
use super::source::{Repeated, Work, block, ipv4, pcap_header, record, section, work};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Sizing};
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CounterChoice, SliceResult, SliceSink, Slicing, count,
};
use flowsieve::plan::TracePlan;
use flowsieve::trace::TraceErrorKind;
use std::io::Write;

/// Upper limit of the memory of a reader with its buffer.
const SMALL: usize = 4 << 20;

/// Checks that the source was read in large pieces.
fn check_work(work: &Work) {
    assert!(work.calls <= 16 + work.bytes / 4096, "{} calls for {} bytes", work.calls, work.bytes);
    assert!(work.batches <= work.packets, "no batch is empty");
}

fn of(kind: ElementKind) -> ElementRule {
    ElementRule { kind, ..ElementRule::default() }
}

#[test]
fn a_record_that_claims_four_gibibytes_takes_no_memory() {
    let measured = Measured::start();
    let good = record(1, &ipv4(1, 2, 17, &[0; 8]));
    let mut lie = record(1, &[0; 64]);
    lie[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let head = [pcap_header(101), good.clone(), good.clone(), good.clone(), good].concat();
    let place = head.len() as u64;
    let done =
        work(Repeated::new([head, lie].concat(), vec![0; 4096], 4096), of(ElementKind::HOST_PAIR));
    assert_eq!(done.packets, 4);
    let error = done.error.as_ref().unwrap();
    assert!(
        matches!(
            error.kind,
            TraceErrorKind::RecordTooLong { length: 4_294_967_295, packet: 5, .. }
        ),
        "{error}"
    );
    assert_eq!(error.offset, Some(place));
    check_work(&done);
    assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
}

#[test]
fn a_pcapng_block_of_the_greatest_length_takes_no_memory() {
    for (kind, told) in [(6_u32, "claims"), (0x0bad, "ends inside")] {
        let measured = Measured::start();
        let interface = block(1, &[101, 0, 0, 0, 0, 0, 0, 0]);
        let mut lie = block(kind, &[0; 64]);
        lie[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        let head = [section(), interface, lie].concat();
        // 256 MiB of the block are in the file.
        let done = work(Repeated::new(head, vec![0; 1 << 16], 1 << 12), of(ElementKind::HOST_PAIR));
        let error = done.error.as_ref().unwrap().to_string();
        assert!(error.contains(told), "{error}");
        check_work(&done);
        assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
    }
}

#[test]
fn a_packet_of_the_longest_legal_block_takes_what_the_format_allows() {
    let measured = Measured::start();
    let interface = block(1, &[101, 0, 0, 0, 0, 0, 0, 0]);
    let mut packet = vec![0; 20];
    packet.resize((16 << 20) - 12, 0);
    let head = [section(), interface].concat();
    let done = work(Repeated::new(head, block(6, &packet), 8), of(ElementKind::HOST_PAIR));
    assert!(done.error.is_none(), "{:?}", done.error);
    assert_eq!(done.packets, 8);
    // The test itself holds the block of 16 MiB.
    assert!(measured.peak_bytes() < 6 * (16 << 20), "{} bytes", measured.peak_bytes());
}

#[test]
fn a_million_interfaces_take_memory_for_a_million_and_no_more() {
    let measured = Measured::start();
    let interface =
        block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], &[1, 0, 60, 0], &[b'x'; 60], &[0; 4]].concat());
    let done = work(Repeated::new(section(), interface, 2_000_000), of(ElementKind::HOST_PAIR));
    let error = done.error.as_ref().unwrap().to_string();
    assert!(error.contains("more than a million interfaces"), "{error}");
    check_work(&done);
    assert!(measured.peak_bytes() < 160 << 20, "{} bytes", measured.peak_bytes());
}

#[test]
fn tags_and_headers_without_end_are_bounded_steps() {
    // As many VLAN tags as a record has room for, since 65,535 are too long.
    let mut tags = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    while tags.len() < 262_140 {
        tags.extend([0x81, 0, 0, 7]);
    }
    let mut labels = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47];
    labels.resize(262_140, 0);
    let mut options = vec![0x60, 0, 0, 0, 0xff, 0xff, 0, 1];
    options.resize(40, 9);
    for _ in 0..8000 {
        options.extend([60, 0, 1, 4, 0, 0, 0, 0]);
    }
    let ethernet = |kind: [u8; 2], packet: &[u8]| {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, packet].concat()
    };
    let mut nested = ipv4(1, 2, 17, &[0; 8]);
    for _ in 0..3000 {
        nested = ipv4(1, 2, 4, &nested[..nested.len().min(60_000)]);
    }
    for frame in [tags, labels, ethernet([0x86, 0xdd], &options), ethernet([8, 0], &nested)] {
        let measured = Measured::start();
        let done =
            work(Repeated::new(pcap_header(1), record(1, &frame), 400), of(ElementKind::FLOW));
        assert_eq!(done.packets, 400);
        assert!(done.error.is_none());
        check_work(&done);
        assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
    }
}

#[test]
fn dns_names_that_point_in_circles_end() {
    let mut answers = Vec::new();
    for pointers in
        [&[0xc0_u8, 0x0c][..], &[0xc0, 0x0e, 0xc0, 0x0c], &[1, b'a', 0xc0, 0x0c], &[0xc0, 0x12]]
    {
        let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend_from_slice(pointers);
        message.extend([0, 1, 0, 1]);
        // A long chain of pointers to pointers.
        for at in 0..500_u16 {
            message.extend((0xc000 | (20 + 2 * at)).to_be_bytes());
        }
        let mut datagram = vec![0, 53, 0x13, 0x88];
        datagram.extend(((8 + message.len()) as u16).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend_from_slice(&message);
        answers.push(record(1, &ipv4(1, 2, 17, &datagram)));
    }
    let measured = Measured::start();
    let done =
        work(Repeated::new(pcap_header(101), answers.concat(), 20_000), of(ElementKind::DNS));
    assert_eq!((done.packets, done.elements), (80_000, 0));
    let mut reasons = done.skipped.keys().map(|skip| skip.name());
    assert!(reasons.all(|reason| reason.starts_with("dns_")), "{:?}", done.skipped);
    check_work(&done);
    assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
}

/// Counts slices.
struct Slices(u64);

impl SliceSink for Slices {
    fn slice(&mut self, _: &SliceResult) -> std::io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

#[test]
fn a_clock_that_jumps_by_a_billion_seconds_opens_one_slice_a_jump() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pcap_header(101)).unwrap();
    let jumps = 10_000_u32;
    for number in 0..jumps {
        let time = if number % 2 == 0 { 1_000_000_000 + number } else { 2_000_000_000 + number };
        file.write_all(&record(time, &ipv4(1, number, 17, &[0; 8]))).unwrap();
    }
    file.flush().unwrap();
    let sizing = Sizing::Memory { bytes: 64 << 10, expected: None };
    let plan = CountPlan {
        trace: TracePlan::new([file.path()]).with_threads(1),
        rule: ElementRule::default(),
        slicing: Slicing { width_ns: Some(1), align: Align::Epoch },
        counter: Some(CounterChoice::filter(FilterKind::Subset, 2, sizing, 8).unwrap()),
        exact_limit_bytes: Some(1 << 24),
        seed: 0,
        shards: 8,
        every_ns: None,
    };
    let measured = Measured::start();
    let mut slices = Slices(0);
    let summary = count(&plan, CountExtras::default(), &mut slices, &()).unwrap();
    assert_eq!(summary.totals.packets, u64::from(jumps));
    // Each jump is a slice of its own; the billions of empty slices between them are only counted.
    assert_eq!(slices.0, u64::from(jumps));
    assert!(summary.totals.empty_slices_omitted > 1_000_000_000_000_000_000 / 2);
    // Eight open slices of 64 KiB, exact sets of at most 16 MiB, and slices that wait.
    assert!(measured.peak_bytes() < 48 << 20, "{} bytes", measured.peak_bytes());
}

/// The beginning of a dnstap file.
const DNSTAP: &[u8] = b"\0\0\0\0\0\0\0\x22\0\0\0\x02\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";

#[test]
fn a_frame_of_dnstap_that_claims_much_takes_no_memory() {
    for (length, is_legal) in [(u32::MAX, false), ((1 << 20) + 1, false), (1 << 20, true)] {
        let measured = Measured::start();
        let head = [DNSTAP, &length.to_be_bytes()].concat();
        let done = work(Repeated::new(head, vec![0xff; 4096], 64), of(ElementKind::HOST_PAIR));
        assert_eq!(done.packets, 0);
        let kind = &done.error.as_ref().unwrap().kind;
        if is_legal {
            assert!(matches!(kind, TraceErrorKind::CutInRecord { .. }), "{kind:?}");
        } else {
            let claimed = u64::from(length);
            assert!(
                matches!(kind, TraceErrorKind::RecordTooLong { length, .. } if *length == claimed),
                "{kind:?}"
            );
        }
        check_work(&done);
        assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
    }
}

/// The beginning of a C-DNS file, up to the first query of its first block.
const CDNS: &[u8] = b"\x83\x65C-DNS\xa2\x00\x01\x03\x81\xa1\x00\xa1\x00\x19\x03\xe8\x9f\xa2\x00\xa1\x00\x82\x01\x02\x03\x9f";

#[test]
fn a_block_of_cdns_without_end_takes_bounded_memory() {
    let measured = Measured::start();
    // A map with a single unknown key, and a value of 255 bytes.
    let query = [&[0xa1, 0x18, 99, 0x58, 0xff][..], &[7; 255]].concat();
    let done =
        work(Repeated::new(CDNS.to_vec(), query.repeat(16), 32_768), of(ElementKind::HOST_PAIR));
    let error = done.error.as_ref().unwrap();
    assert!(matches!(error.kind, TraceErrorKind::RecordTooLong { .. }), "{error}");
    // The complete part of the block is read.
    assert!(done.packets > 60_000, "{} records", done.packets);
    check_work(&done);
    assert!(measured.peak_bytes() < 64 << 20, "{} bytes", measured.peak_bytes());
}

#[test]
fn lengths_in_cdns_take_no_memory() {
    for claim in [
        &b"\x5b\x00\xff\xff\xff\xff\xff\xff\xff"[..],
        b"\x9b\x00\xff\xff\xff\xff\xff\xff\xff",
        b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let measured = Measured::start();
        let head = [CDNS, claim].concat();
        let done = work(Repeated::new(head, vec![0xa0; 64], 64), of(ElementKind::HOST_PAIR));
        assert!(done.error.is_some());
        assert!(measured.peak_bytes() < SMALL, "{} bytes", measured.peak_bytes());
    }
}
