//! Compares counts of slices with a program that is too simple to be wrong, and with each other for
//! other numbers of threads, divisions into files and orders.

use super::common;
use flowsieve::Count;
use flowsieve::comparison::{ComparePlan, with_trial};
use flowsieve::decode::Tunnel;
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Sizing, Structure};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::pipeline::{
    self, Align, CountExtras, CountPlan, CountSummary, CounterChoice, SamplePlan, SliceResult,
    Slicing, Totals, Watch, sample,
};
use flowsieve::plan::TracePlan;
use flowsieve::trace::{Source, StopFlag};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Returns the distinct (source, destination) in each second of a classic little-endian microsecond
/// pcap of Ethernet frames, all of which are IP with at most one VLAN tag.
fn naive_pairs_a_second(pcap: &[u8]) -> BTreeMap<i64, HashSet<Vec<u8>>> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    let mut seconds: BTreeMap<i64, HashSet<Vec<u8>>> = BTreeMap::new();
    let mut at = 24;
    while at < pcap.len() {
        let length = word(at + 8) as usize;
        let frame = &pcap[at + 16..at + 16 + length];
        let tag = if frame[12..14] == [0x81, 0x00] { 4 } else { 0 };
        let ip = &frame[14 + tag..];
        let pair = match ip[0] >> 4 {
            4 => ip[12..20].to_vec(),
            _ => ip[8..40].to_vec(),
        };
        seconds.entry(word(at).into()).or_default().insert(pair);
        at += 16 + length;
    }
    seconds
}

fn generated(folder: &TempDir, plan: &GeneratePlan) -> (PathBuf, Vec<u8>) {
    let mut bytes = Vec::new();
    generate(plan, &mut bytes).unwrap();
    let path = folder.path().join(format!("{}-{}.pcap", plan.packets, plan.seed));
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

fn traffic(packets: u64, seed: u64) -> GeneratePlan {
    GeneratePlan {
        seed,
        duration_ns: 5_000_000_000,
        scan_percent: 10,
        ..GeneratePlan::new(GenerateKind::Traffic, packets)
    }
}

#[test]
fn slices_have_the_counts_of_the_naive_program() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = generated(&folder, &traffic(60_000, 3));
    let expected = naive_pairs_a_second(&bytes);
    let (slices, summary) = common::run(&common::plan(&[path], ElementKind::HOST_PAIR));
    let ours: Vec<(i64, Option<u64>)> =
        slices.iter().map(|slice| (slice.start_ns / 1_000_000_000, slice.exact)).collect();
    let theirs: Vec<(i64, Option<u64>)> =
        expected.iter().map(|(&second, pairs)| (second, Some(pairs.len() as u64))).collect();
    assert_eq!(ours, theirs);
    assert_eq!(summary.totals.packets, 60_000);
    assert_eq!(slices.iter().map(|slice| slice.packets).sum::<u64>(), 60_000);
    for slice in &slices {
        let exact = slice.exact.unwrap();
        let first = slice.first.unwrap();
        // A first sighting is always right, so the missing ones are false repeats.
        assert!(first <= exact);
        let missed = (exact - first) as f64 / exact as f64;
        assert!((slice.observed_fpr.unwrap() - missed).abs() < 1e-12);
        let error = (slice.estimate.unwrap() - exact as f64).abs();
        assert!(error <= 5.0 * slice.std_error.unwrap() + 1e-9, "{slice:?}");
    }
}

/// Returns everything that a report shows of a run.
fn report(plan: &CountPlan) -> (Vec<SliceResult>, String) {
    let (slices, summary) = common::run(plan);
    (slices, format!("{:?}", summary.totals))
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (traffic, _) = generated(&folder, &traffic(50_000, 4));
    let (dns, _) = generated(&folder, &GeneratePlan::new(GenerateKind::Dns, 20_000));
    let sizing = Sizing::Memory { bytes: 8 << 10, expected: None };
    for kind in [ElementKind::HOST_PAIR, ElementKind::FLOW, ElementKind::DNS, ElementKind::SOURCE] {
        for filter in [FilterKind::Subset, FilterKind::Bloom, FilterKind::Mdbf, FilterKind::Cmdbf] {
            let mut plan = common::plan(&[traffic.clone(), dns.clone()], kind);
            let attributes = kind.arity();
            let filter = CounterChoice::filter(filter, attributes, sizing, plan.shards).unwrap();
            counts_the_same_with_every_number_of_threads(&mut plan, filter);
        }
        let mut plan = common::plan(&[traffic.clone(), dns.clone()], kind);
        let hll = CounterChoice::registers(Structure::Hll, sizing, plan.shards).unwrap();
        counts_the_same_with_every_number_of_threads(&mut plan, hll);
    }
}

fn counts_the_same_with_every_number_of_threads(plan: &mut CountPlan, counter: CounterChoice) {
    let what = format!("{:?} {}", plan.rule.kind, counter.name);
    plan.counter = Some(counter);
    plan.slicing.width_ns = Some(300_000_000);
    plan.trace.threads = 1;
    let one = report(plan);
    for threads in [2, 3, 8] {
        plan.trace.threads = threads;
        assert_eq!(report(plan), one, "{what} {threads}");
    }
}

/// The registers fill the memory, each slice starts with empty ones, and the count has the error of
/// the published formula. There are no results that only a filter has.
#[test]
fn a_hyper_log_log_counts_and_tells_no_first() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = generated(&folder, &traffic(60_000, 3));
    let expected = naive_pairs_a_second(&bytes);
    for (memory, shards, registers) in [(1024, 1, 1024.0), (12_000, 8, 1024.0), (16, 1, 16.0)] {
        let mut plan = common::plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR);
        let sizing = Sizing::Memory { bytes: memory, expected: None };
        plan.shards = shards;
        plan.counter = Some(CounterChoice::registers(Structure::Hll, sizing, shards).unwrap());
        assert_eq!(plan.counter_bytes(), Some(registers as u64 * u64::from(shards)));
        let (slices, summary) = common::run(&plan);
        assert_eq!(slices.len(), expected.len());
        for (slice, pairs) in slices.iter().zip(expected.values()) {
            let (estimate, std_error) = (slice.estimate.unwrap(), slice.std_error.unwrap());
            assert_eq!(slice.exact, Some(pairs.len() as u64));
            assert_eq!((slice.first, slice.observed_fpr), (None, None));
            let off = (estimate - pairs.len() as f64).abs();
            assert!(off <= 4.0 * std_error, "{memory} {slice:?}");
            // √(ln 2 / m) for m registers in each of the shards, which have about equal shares. It
            // is less for few elements per register.
            let stated = estimate * (std::f64::consts::LN_2 / registers / f64::from(shards)).sqrt();
            let load = estimate / registers / f64::from(shards);
            let least = if load > 20.0 { 0.95 } else { 0.0 };
            assert!((least..1.02).contains(&(std_error / stated)), "{memory} {slice:?}");
        }
        assert_eq!((summary.totals.first, summary.totals.observed_fpr), (None, None));
        assert!(summary.totals.estimate.is_some() && summary.totals.std_error.is_some());
    }
}

#[test]
fn several_files_are_one_trace_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, bytes) = generated(&folder, &traffic(30_000, 5));
    let records = records(&bytes);
    let write = |name: &str, records: &[&[u8]]| {
        let path = folder.path().join(name);
        fs::write(&path, [&[&bytes[..24]], records].concat().concat()).unwrap();
        path
    };
    let expected = report(&common::plan(&[whole], ElementKind::HOST_PAIR));
    // Two consecutive files in the wrong order, and two files with every second packet.
    let (early, late) = records.split_at(11_111);
    let in_a_row = [write("late.pcap", late), write("early.pcap", early)];
    let odd: Vec<&[u8]> = records.iter().skip(1).step_by(2).copied().collect();
    let even: Vec<&[u8]> = records.iter().step_by(2).copied().collect();
    let interleaved = [write("even.pcap", &even), write("odd.pcap", &odd)];
    for (inputs, threads) in [(&in_a_row, 1), (&in_a_row, 4), (&interleaved, 1), (&interleaved, 4)]
    {
        let mut plan = common::plan(inputs, ElementKind::HOST_PAIR);
        plan.trace.threads = threads;
        assert_eq!(report(&plan), expected, "{inputs:?} {threads}");
    }
}

/// Returns the records of overlapping captures in the order of their merge: by the latest time in
/// the capture up to a record, by the number of the capture, and by place.
fn merged<'a>(captures: &[Vec<&'a [u8]>]) -> Vec<&'a [u8]> {
    let word =
        |record: &[u8], at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
    let mut keyed = Vec::new();
    for (number, records) in captures.iter().enumerate() {
        let mut latest = (0, 0);
        for (place, record) in records.iter().enumerate() {
            latest = latest.max((word(record, 0), word(record, 4)));
            keyed.push((latest, number, place, *record));
        }
    }
    keyed.sort_unstable_by_key(|&(latest, number, place, _)| (latest, number, place));
    keyed.into_iter().map(|(.., record)| record).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Captures are merged by the latest time so far, whatever the order in each capture.
    #[test]
    fn overlapping_captures_count_as_the_one_that_they_make(
        captures in prop::collection::vec(prop::collection::vec((0_u32..4, 0_u32..12, 0_u16..9), 1..120), 2..7),
        in_order in any::<bool>(),
        width in prop_oneof![Just(None), (1_i64..3_000_000_000).prop_map(Some)],
        first in any::<bool>(),
        structure in 0..=FilterKind::all().count(),
        shards in 1_u32..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        for packets in &captures {
            let mut packets: Vec<_> = packets.iter().map(|&(s, tick, host)| (s, tick * 83_333_333, host)).collect();
            if in_order {
                packets.sort_by_key(|&(second, nano, _)| (second, nano));
            }
            let mut pcap = pcap_at(&packets);
            // Packets of one host have no IP header, and so no element.
            for (packet, _) in pcap[24..].chunks_exact_mut(36).zip(packets).filter(|it| it.1.2 == 8) {
                packet[16] = 0;
            }
            bytes.push(pcap);
        }
        let write = |name: String, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let paths: Vec<PathBuf> = (bytes.iter().enumerate())
            .map(|(number, bytes)| write(format!("{number}.pcap"), bytes))
            .collect();
        let captures: Vec<Vec<&[u8]>> = bytes.iter().map(|bytes| records(bytes)).collect();
        let one = [&[&bytes[0][..24]], &merged(&captures)[..]].concat().concat();
        let mut plan = common::plan(&[write("one.pcap".to_owned(), &one)], ElementKind::HOST_PAIR);
        plan.trace.headers.tunnel = Tunnel::Inner;
        plan.shards = shards;
        plan.slicing = Slicing { width_ns: width, align: if first { Align::First } else { Align::Epoch } };
        let sizing = Sizing::Memory { bytes: 2048, expected: None };
        plan.counter = FilterKind::all()
            .nth(structure)
            .and_then(|kind| CounterChoice::filter(kind, 2, sizing, shards).ok());
        // Some structures count without the exact set.
        if structure % 2 == 0 && plan.counter.is_some() {
            plan.exact_limit_bytes = None;
        }
        let expected = report(&plan);
        plan.trace.inputs = paths.into_iter().map(Source::from).collect();
        for threads in 1..5 {
            plan.trace.threads = threads;
            prop_assert_eq!(&report(&plan), &expected, "{}", threads);
        }
    }
}

/// Tests captures so large that each is decoded at several places, with batches of many slices and
/// slices of many batches.
#[test]
fn large_overlapping_captures_count_as_the_one_that_they_make() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<Vec<u8>> = (0..3)
        .map(|seed| {
            let plan = GeneratePlan { repeat_percent: 20, ..traffic(40_000, seed) };
            generated(&folder, &plan).1
        })
        .collect();
    assert!(bytes.iter().all(|bytes| bytes.len() > 3 << 20), "they have segments");
    let captures: Vec<Vec<&[u8]>> = bytes.iter().map(|bytes| records(bytes)).collect();
    let one = folder.path().join("one.pcap");
    fs::write(&one, [&[&bytes[0][..24]], &merged(&captures)[..]].concat().concat()).unwrap();
    let parts: Vec<Source> =
        (0..3).map(|seed| folder.path().join(format!("40000-{seed}.pcap")).into()).collect();
    for (kind, width_ns, align) in [
        (ElementKind::HOST_PAIR, Some(700_000_000), Align::First),
        (ElementKind::FLOW, Some(20_000_000), Align::Epoch),
        (ElementKind::HOST_PAIR, None, Align::Epoch),
    ] {
        let mut plan = common::plan(std::slice::from_ref(&one), kind);
        plan.slicing = Slicing { width_ns, align };
        let expected = report(&plan);
        // The threads that build the batches divide the elements of one capture among shards.
        for threads in [2, 3, 8] {
            plan.trace.threads = threads;
            assert_eq!(report(&plan), expected, "{kind:?} {threads}");
        }
        plan.trace.inputs.clone_from(&parts);
        for threads in [1, 2, 5] {
            plan.trace.threads = threads;
            assert_eq!(report(&plan), expected, "{kind:?} {threads}");
        }
    }
}

/// Returns the records of a classic pcap, each with its header.
fn records(pcap: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    let mut rest = &pcap[24..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (record, tail) = rest.split_at(16 + length);
        records.push(record);
        rest = tail;
    }
    records
}

/// Returns a pcap with one IPv4 packet for each (seconds, nanoseconds, host).
fn pcap_at(packets: &[(u32, u32, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65535, 101] {
        bytes.extend(u32::to_le_bytes(word));
    }
    for &(seconds, nanoseconds, host) in packets {
        for word in [seconds, nanoseconds, 20, 20] {
            bytes.extend(word.to_le_bytes());
        }
        let mut ip = [0_u8; 20];
        ip[0] = 0x45;
        ip[3] = 20;
        ip[12..14].copy_from_slice(&[10, 0]);
        ip[14..16].copy_from_slice(&host.to_be_bytes());
        ip[16..20].copy_from_slice(&[10, 0, 1, 1]);
        bytes.extend(ip);
    }
    bytes
}

fn count_at(packets: &[(u32, u32, u16)], slicing: Slicing) -> (Vec<SliceResult>, u64) {
    let (slices, totals) = totals_at(packets, slicing);
    (slices, totals.uncounted)
}

/// Counts a stream, which cannot be read again. With a delay, rows are reported while packets
/// arrive.
fn stream_at(
    packets: &[(u32, u32, u16)],
    slicing: Slicing,
    delay_ns: Option<i64>,
) -> (Vec<SliceResult>, Totals) {
    let bytes = std::io::Cursor::new(pcap_at(packets));
    let mut plan = common::plan(&[], ElementKind::HOST_PAIR);
    plan.trace.inputs = vec![Source::reader("a stream", bytes)];
    plan.slicing = slicing;
    plan.trace.headers.tunnel = Tunnel::Inner;
    plan.trace.delay_ns = delay_ns;
    let (slices, summary) = common::run(&plan);
    (slices, summary.totals)
}

/// Returns the last row of each slice.
fn last_rows(rows: Vec<SliceResult>) -> Vec<SliceResult> {
    let mut last = BTreeMap::new();
    for row in rows {
        let revised = last.insert(row.start_ns, row.clone()).is_some();
        assert!(row.revised || !revised, "a row replaces another unmarked");
    }
    let rows = last.into_values();
    rows.map(|row| SliceResult { revised: false, ..row }).map(of_any_place).collect()
}

/// Removes the mark of the first and the last slice, which are not known while packets arrive.
fn of_any_place(row: SliceResult) -> SliceResult {
    SliceResult { partial: false, ..row }
}

fn totals_at(packets: &[(u32, u32, u16)], slicing: Slicing) -> (Vec<SliceResult>, Totals) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.pcap");
    fs::write(&path, pcap_at(packets)).unwrap();
    let mut plan = common::plan(&[path], ElementKind::HOST_PAIR);
    plan.slicing = slicing;
    plan.trace.headers.tunnel = Tunnel::Inner;
    let (slices, summary) = common::run(&plan);
    (slices, summary.totals)
}

const A_SECOND: Slicing = Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch };

#[test]
fn a_clock_that_jumps_by_years_costs_nothing_and_loses_nothing() {
    // Times that go forwards and backwards, and some that are far away.
    let packets: Vec<(u32, u32, u16)> = (0..200_u32)
        .map(|i| match i {
            50..60 => (4_000_000_000 + i, 0, 1),
            77 => (1, 0, 2),
            _ => (1_000 + i, 0, (i % 7) as u16),
        })
        .collect();
    let (slices, late) = count_at(&packets, A_SECOND);
    assert_eq!(late, 0);
    assert_eq!(slices.iter().map(|slice| slice.packets).sum::<u64>(), 200);
    assert!(slices.len() < 1_000, "{} slices", slices.len());
    assert!(slices.is_sorted_by_key(|slice| slice.start_ns));
}

#[test]
fn empty_slices_are_reported_in_short_gaps_only() {
    let (slices, _) = count_at(&[(100, 0, 1), (103, 0, 1), (900_000, 5, 2)], A_SECOND);
    let counts: Vec<(i64, Option<u64>)> =
        slices.iter().map(|slice| (slice.start_ns / 1_000_000_000, slice.exact)).collect();
    let expected = [(100, 1), (101, 0), (102, 0), (103, 1), (900_000, 1)];
    assert_eq!(counts, expected.map(|(start, exact)| (start, Some(exact))));
}

#[test]
fn slices_begin_at_the_first_packet_when_asked() {
    let slicing = Slicing { align: Align::First, ..A_SECOND };
    let (slices, _) = count_at(&[(100, 700, 1), (101, 600, 2), (101, 700, 3)], slicing);
    let counts: Vec<(i64, u64)> = slices.iter().map(|s| (s.start_ns, s.packets)).collect();
    assert_eq!(counts, [(100_000_000_700, 2), (101_000_000_700, 1)]);
}

#[test]
fn one_slice_reaches_from_the_first_to_the_last_packet() {
    let slicing = Slicing { width_ns: None, ..A_SECOND };
    let (slices, _) = count_at(&[(100, 5, 1), (90, 6, 2), (4_294_967_295, 7, 1)], slicing);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].start_ns, 90_000_000_006);
    assert_eq!(slices[0].end_ns, 4_294_967_295_000_000_007);
    assert_eq!(slices[0].exact, Some(2));
}

#[test]
fn totals_without_any_slice_are_null_where_there_can_be_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no-packets.pcap");
    fs::write(&path, pcap_at(&[])).unwrap();
    let plan = common::plan(&[path], ElementKind::HOST_PAIR);
    let answers = |plan: &CountPlan| {
        let (slices, CountSummary { totals, .. }) = common::run(plan);
        assert!(slices.is_empty() && totals.quantiles.is_none());
        (totals.exact, totals.first, totals.estimate)
    };
    assert_eq!(answers(&plan), (Some(0), Some(0), Some(0.0)));
    let without_exact = CountPlan { exact_limit_bytes: None, ..plan.clone() };
    assert_eq!(answers(&without_exact), (None, Some(0), Some(0.0)));
    let hll = CountPlan {
        counter: CounterChoice::registers(
            Structure::Hll,
            Sizing::Memory { bytes: 1024, expected: None },
            plan.shards,
        )
        .ok(),
        ..plan.clone()
    };
    assert_eq!(answers(&hll), (Some(0), None, Some(0.0)));
    let without_filter = CountPlan { counter: None, ..plan };
    assert_eq!(answers(&without_filter), (Some(0), None, None));
}

#[test]
fn the_least_and_the_most_of_the_slices_are_exact() {
    // 3,001 hosts in the second slice: more than three significant digits.
    let packets: Vec<(u32, u32, u16)> =
        [(1, 0, 0)].into_iter().chain((0..3_001).map(|host| (2, 0, host))).collect();
    let (_, totals) = totals_at(&packets, A_SECOND);
    let quantiles = totals.quantiles.unwrap();
    assert_eq!((quantiles.min, quantiles.max), (1, 3_001));
    assert!(quantiles.p99 <= quantiles.max);
}

/// Tests enough packets that elements are set aside, sorted and counted later in several rounds.
#[test]
fn a_shuffled_capture_counts_as_one_in_order() {
    let mut packets: Vec<(u32, u32, u16)> = (0..1_500_000_u32)
        .map(|i| (i / 3_000, i % 3_000, (i.wrapping_mul(2_654_435_761) >> 20) as u16))
        .collect();
    let (expected, totals) = totals_at(&packets, A_SECOND);
    assert_eq!(expected.len(), 500);
    // Some order that mixes all slices.
    packets.sort_by_key(|&(second, nano, _)| (second * 3_000 + nano).wrapping_mul(2_654_435_761));
    let by_exact = |slices: &[SliceResult]| -> Vec<_> {
        let counts = slices.iter();
        counts.map(|s| (s.start_ns, s.packets, s.elements, s.exact)).collect()
    };
    let file = totals_at(&packets, A_SECOND);
    assert_eq!(by_exact(&file.0), by_exact(&expected));
    assert_eq!((file.1.exact, file.1.uncounted), (totals.exact, 0));
    assert_eq!(stream_at(&packets, A_SECOND, None), file);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every packet counts in its own slice, whatever the order of times.
    #[test]
    fn every_packet_is_in_its_slice(packets in prop::collection::vec((0_u32..40, 0_u32..1_000_000_000, 0_u16..20), 1..200), width in 1_i64..5_000_000_000) {
        let slicing = Slicing { width_ns: Some(width), align: Align::Epoch };
        let (slices, totals) = totals_at(&packets, slicing);
        prop_assert_eq!((totals.late, totals.uncounted), (0, 0));
        let mut truth: BTreeMap<i64, (u64, HashSet<u16>)> = BTreeMap::new();
        for &(seconds, nanoseconds, host) in &packets {
            let time = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
            let (packets, hosts) = truth.entry(time.div_euclid(width)).or_default();
            *packets += 1;
            hosts.insert(host);
        }
        let found: BTreeMap<i64, (u64, u64)> = slices
            .iter()
            .filter(|slice| slice.packets > 0)
            .map(|slice| (slice.start_ns.div_euclid(width), (slice.packets, slice.exact.unwrap())))
            .collect();
        let expected: BTreeMap<i64, (u64, u64)> = truth
            .iter()
            .map(|(&slice, (packets, hosts))| (slice, (*packets, hosts.len() as u64)))
            .collect();
        prop_assert_eq!(&found, &expected);
        // A capture in the order of slices, with the same order within each slice, gives the same
        // result, bit for bit.
        let mut in_order = packets.clone();
        in_order.sort_by_key(|&(seconds, nanoseconds, _)| {
            (i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds)).div_euclid(width)
        });
        prop_assert_eq!(&totals_at(&in_order, slicing), &(slices.clone(), totals.clone()));
        // So does a stream, which keeps enough to continue a closed slice.
        prop_assert_eq!(&stream_at(&packets, slicing, None), &(slices.clone(), totals.clone()));
        for delay in [0, 1_000_000_000, 10_000_000_000] {
            let (rows, live) = stream_at(&packets, slicing, Some(delay));
            let with_packets = |row: &SliceResult| row.packets > 0;
            let rows: Vec<_> = last_rows(rows).into_iter().filter(with_packets).collect();
            let slices = slices.iter().filter(|row| with_packets(row)).cloned();
            let slices: Vec<_> = slices.map(of_any_place).collect();
            prop_assert_eq!(rows, slices);
            prop_assert_eq!(Totals { late: 0, ..live }, totals.clone());
        }
    }
}

/// Tests a trace with packets out of order: the new elements of each slice, and the whole.
#[test]
fn the_whole_is_what_one_slice_counts_and_new_adds_up_to_it() {
    for (memory, exact) in [(1 << 20, true), (1 << 20, false), (512, true), (2048, false)] {
        let counted = |one: bool| {
            let count = Count::of(["traces/generated.pcap"]).slice(Duration::from_millis(100));
            let count = count.memory(memory).element(ElementKind::FLOW).threads(2);
            let count = if exact { count } else { count.without_exact() };
            if one { count.one_slice() } else { count }.run().unwrap()
        };
        let slices = counted(false);
        let exactly = Count::of(["traces/generated.pcap"]).element(ElementKind::FLOW).one_slice();
        let truth = exactly.run().unwrap().slices[0].exact.unwrap();
        let whole = slices.summary.totals.whole.unwrap();
        assert_eq!(whole.exact, exact.then_some(truth));
        assert!((whole.lower..=whole.upper).contains(&Some(truth)), "{whole:?} {truth}");
        let new: u64 = slices.iter().map(|slice| slice.new.unwrap()).sum();
        assert_eq!(new, whole.exact.unwrap_or(whole.estimate.unwrap() as u64));
        assert!(counted(true).summary.totals.whole.is_none());
        let totals = &slices.summary.totals;
        assert_eq!(totals.bounds_checked > 0, exact);
        assert!(totals.bounds_held * 10 >= totals.bounds_checked * 8, "{totals:?}");
    }
}

/// Calls a function when the inputs are read a second time.
struct BeforeTheSecond<F>(AtomicUsize, F);

impl<F: Fn()> Watch for BeforeTheSecond<F> {
    fn progress(&self, _: u64, _: u64) {}

    fn stop(&self) -> StopFlag {
        if self.0.fetch_add(1, Ordering::Relaxed) == 1 {
            self.1();
        }
        StopFlag::default()
    }
}

#[test]
fn a_file_that_changes_before_it_is_read_again_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = generated(&folder, &traffic(20_000, 5));
    let (other, _) = generated(&folder, &traffic(20_000, 6));
    // Every second packet is moved to the end.
    let (mut even, mut odd, mut at) = (bytes[..24].to_vec(), Vec::new(), 24);
    while at < bytes.len() {
        let end = at + 16 + u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let half = if even.len() > odd.len() { &mut odd } else { &mut even };
        half.extend(&bytes[at..end]);
        at = end;
    }
    even.extend(odd);
    let count = |action: &dyn Fn()| {
        fs::write(&path, &even).unwrap();
        let mut plan = common::plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR);
        let (panes, sizing) = (10, Sizing::Memory { bytes: 64 << 10, expected: None });
        plan.every_ns = Some(100_000_000);
        plan.counter = Some(CounterChoice::sliding(sizing, panes, plan.shards).unwrap());
        let watch = BeforeTheSecond(AtomicUsize::new(0), action);
        let mut slices = common::Slices::default();
        let read = pipeline::count(&plan, CountExtras::default(), &mut slices, &watch).unwrap();
        assert!(watch.0.into_inner() > 1, "it is read twice");
        let error = read.inputs[0].error.as_ref().map(ToString::to_string);
        assert_eq!(read.totals.complete, error.is_none());
        error.unwrap_or_default()
    };
    assert_eq!(count(&|| ()), "");
    let gone = count(&|| fs::remove_file(&path).unwrap());
    assert!(gone.contains("no such file"), "{gone}");
    let others: [&dyn Fn(); 3] = [
        &|| fs::write(&path, fs::read(&other).unwrap()).unwrap(),
        &|| {
            let new = folder.path().join("new");
            fs::copy(&other, &new).unwrap();
            fs::rename(&new, &path).unwrap();
        },
        &|| {
            fs::OpenOptions::new()
                .append(true)
                .open(&path)
                .unwrap()
                .write_all(&even[24..])
                .unwrap();
        },
    ];
    for other in others {
        let changed = count(other);
        assert!(changed.contains("changed in between"), "{changed}");
    }
}

/// Otherwise a plan would be computed from two contents and name only one.
#[test]
fn a_sample_that_changes_before_it_is_measured_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = generated(&folder, &traffic(5_000, 5));
    let (other, _) = generated(&folder, &traffic(5_000, 6));
    let plan = SamplePlan {
        trace: TracePlan::new(std::slice::from_ref(&path)),
        rule: ElementRule::default(),
        masks: vec![0b11],
        limit_bytes: 1 << 28,
    };
    let measured = |change: &dyn Fn()| {
        fs::write(&path, &bytes).unwrap();
        let mut read = sample(&plan, &()).unwrap();
        assert!(read.elements > 0 && read.inputs[0].error.is_none());
        change();
        let wanted = vec![(0b11, 1.0)];
        let trial = ComparePlan::of_trial(plan.trace.clone(), plan.rule.clone(), wanted);
        with_trial(&trial, 1.0, &mut read.inputs, &(), |_| ()).unwrap();
        assert_eq!(read.inputs.len(), 1);
        read.inputs[0].error.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(measured(&|| ()), "");
    let changed = measured(&|| assert!(fs::copy(&other, &path).unwrap() > 0));
    assert!(changed.contains("changed in between"), "{changed}");
    let gone = measured(&|| fs::remove_file(&path).unwrap());
    assert!(gone.contains("no such file"), "{gone}");
}
