//! Compares sliding windows with the set of elements in each of them.

use super::common;
use flowsieve::elements::ElementKind;
use flowsieve::pipeline::{CountPlan, CountSummary, CounterChoice, SliceResult};
use flowsieve::trace::Source;
use flowsieve::{Count, filters::Sizing};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::Cursor;
use std::time::Duration;

/// Width of a pane in nanoseconds.
const PANE_NS: i64 = 100;

/// Returns a pcap file with nanoseconds of IPv4 packets, given by their times and the last two
/// bytes of their source.
fn capture(packets: &[(i64, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for &(time, host) in packets {
        for word in [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, 20, 20] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 255, 0, 0, 10, 0]);
        bytes.extend(host.to_be_bytes());
        bytes.extend([10, 9, 9, 9]);
    }
    bytes
}

fn sliding(input: Source, panes: u16, threads: usize) -> CountPlan {
    let sizing = Sizing::Memory { bytes: 64 << 10, expected: None };
    let mut plan = common::plan(&[], ElementKind::HOST_PAIR);
    plan.trace.inputs = vec![input];
    plan.slicing.width_ns = Some(PANE_NS * i64::from(panes));
    plan.every_ns = Some(PANE_NS);
    plan.counter = Some(CounterChoice::sliding(sizing, panes, plan.shards).unwrap());
    plan.trace.threads = threads;
    plan
}

/// Checks that every row has the packets and the hosts of its window, and that there is a row for
/// every pane from the first to the last, except in long gaps, whose windows are empty.
fn check(
    packets: &[(i64, u16)],
    panes: u16,
    (rows, summary): &(Vec<SliceResult>, CountSummary),
) -> Result<(), TestCaseError> {
    let width = PANE_NS * i64::from(panes);
    let mut ends = BTreeSet::new();
    for row in rows {
        prop_assert_eq!(row.end_ns - row.start_ns, width);
        prop_assert_eq!(row.end_ns % PANE_NS, 0);
        let inside = packets.iter().filter(|(time, _)| (row.start_ns..row.end_ns).contains(time));
        let hosts: HashSet<u16> = inside.clone().map(|&(_, host)| host).collect();
        prop_assert_eq!(row.packets, inside.count() as u64);
        prop_assert_eq!(row.exact, Some(hosts.len() as u64));
        let estimate = row.estimate.unwrap();
        prop_assert!((estimate - hosts.len() as f64).abs() < 4.0, "{} {}", estimate, hosts.len());
        prop_assert!(ends.insert(row.end_ns));
    }
    prop_assert!(rows.is_sorted_by_key(|row| row.end_ns));
    let end = |time: i64| (time / PANE_NS + 1) * PANE_NS;
    for &(time, _) in packets {
        let mut reached = (0..i64::from(panes)).map(|pane| end(time) + pane * PANE_NS);
        let all = reached.all(|end| ends.contains(&end) || Some(&end) > ends.last());
        prop_assert!(all, "after {}", time);
    }
    prop_assert_eq!(summary.totals.packets, packets.len() as u64);
    prop_assert_eq!(summary.totals.uncounted, 0);
    prop_assert_eq!((summary.totals.exact, summary.totals.estimate), (None, None));
    Ok(())
}

/// Generates packets whose times mostly advance a little, and sometimes go back or far ahead.
fn steps(backwards: i64) -> impl Strategy<Value = Vec<(i64, u16)>> {
    let step = prop_oneof![
        30 => 0..60_i64,
        6 => 0..8 * PANE_NS,
        1 => 0..90 * PANE_NS,
        2 => -backwards..=0_i64,
    ];
    prop::collection::vec((step, 0..40_u16), 1..300).prop_map(|steps| {
        let mut time = 1_700_000_000_000_000_000;
        let moved = steps.into_iter().map(|(step, host)| {
            time += step;
            (time, host)
        });
        moved.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn windows_have_what_lies_in_them_in_any_order(packets in steps(40 * PANE_NS), panes in 2..9_u16) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        fs::write(&path, capture(&packets)).unwrap();
        let one = common::run(&sliding(Source::from(&path), panes, 1));
        check(&packets, panes, &one)?;
        for threads in [2, 5] {
            let many = common::run(&sliding(Source::from(&path), panes, threads));
            prop_assert_eq!(&one.0, &many.0);
        }
    }

    /// A stream cannot be read again, which is not needed in the order of time.
    #[test]
    fn windows_of_a_stream_are_those_of_a_file(packets in steps(0), panes in 2..9_u16, delay in 0..500_i64) {
        let stream = Source::reader("a stream", Cursor::new(capture(&packets)));
        let mut plan = sliding(stream, panes, 1);
        plan.trace.delay_ns = Some(delay);
        check(&packets, panes, &common::run(&plan))?;
    }
}

/// Packets of a stream that arrive after later windows were counted are reported, and change
/// nothing else.
#[test]
fn what_comes_too_late_in_a_stream_is_not_counted() {
    let mut packets: Vec<(i64, u16)> =
        (0..400).map(|i| (1_000_000_000 + 37 * i, i as u16 % 50)).collect();
    let in_order = sliding(Source::reader("a stream", Cursor::new(capture(&packets))), 5, 1);
    let in_order = common::run(&in_order);
    packets.push((1_000_000_500, 1));
    packets.insert(200, (1_000_400_000, 2));
    let stream = Source::reader("a stream", Cursor::new(capture(&packets)));
    let (rows, summary) = common::run(&sliding(stream, 5, 1));
    assert_eq!(summary.totals.packets, 402);
    assert!((1..=2).contains(&summary.totals.uncounted), "{}", summary.totals.uncounted);
    assert_eq!(rows[..in_order.0.len()], in_order.0[..]);
}

/// An exact count that exceeds its memory has no answer until a whole window is known again.
#[test]
fn a_window_that_passed_its_limit_has_no_exact_count() {
    let busy = |i: i64| {
        if (3000..6000).contains(&i) { i as u16 } else { 7 }
    };
    let packets: Vec<(i64, u16)> = (0..20_000).map(|i| (1_000_000_000 + i, busy(i))).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    fs::write(&path, capture(&packets)).unwrap();
    let mut plan = sliding(Source::from(&path), 10, 1);
    plan.exact_limit_bytes = Some(200_000);
    let (rows, _) = common::run(&plan);
    assert!(rows.iter().any(|row| row.exact_over_limit));
    assert_eq!(rows.last().unwrap().exact, Some(1));
    for row in rows {
        let inside = packets.iter().filter(|(time, _)| (row.start_ns..row.end_ns).contains(time));
        let hosts: HashSet<u16> = inside.map(|&(_, host)| host).collect();
        assert_eq!(row.exact_over_limit, row.exact.is_none());
        assert!(row.exact.is_none_or(|exact| exact == hosts.len() as u64), "{row:?}");
    }
}

/// A window of one pane is a slice.
#[test]
fn windows_that_do_not_overlap_are_slices() {
    let count = Count::of(["traces/generated.pcap"]).slice(Duration::from_secs(2));
    let slices = count.run().unwrap().slices;
    let windows = count.every(Duration::from_secs(2)).run().unwrap().slices;
    assert_eq!(slices, windows);
}
