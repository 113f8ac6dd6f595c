//! A run over selected packets has the result of a run over a capture that holds nothing else.

use super::common;
use flate2::Compression;
use flate2::write::GzEncoder;
use flowsieve::Count;
use flowsieve::capture_filter::CaptureFilter;
use flowsieve::decode::Tunnel;
use flowsieve::elements::ElementKind;
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSink, list};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::pipeline::SliceResult;
use flowsieve::selection::{Selection, TimeBound, TimeRangeError};
use flowsieve::trace::{InputFormat, Source, StopFlag};
use std::fs::{self, File};
use std::io::{self, Cursor, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Writes a capture large enough to be decoded in segments by several threads.
fn large(folder: &Path) -> PathBuf {
    let path = folder.join("large.pcap");
    let plan = GeneratePlan {
        duration_ns: 5_000_000_000,
        ..GeneratePlan::new(GenerateKind::Traffic, 60_000)
    };
    let mut bytes = Vec::new();
    generate(&plan, &mut bytes).unwrap();
    assert!(bytes.len() > 4 << 20);
    fs::write(&path, bytes).unwrap();
    path
}

/// The fields of a packet, decoded without flowsieve: protocol and ports after Ethernet and VLAN
/// tags, over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    protocol: u8,
    ports: Option<(u16, u16)>,
}

fn look(frame: &[u8]) -> Seen {
    let short = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let mut at = 12;
    while matches!(short(at), 0x8100 | 0x88a8) {
        at += 4;
    }
    let ip = at + 2;
    let (protocol, transport) = match short(at) {
        0x0800 => (frame[ip + 9], ip + usize::from(frame[ip] & 15) * 4),
        0x86dd => (frame[ip + 6], ip + 40),
        _ => return Seen::default(),
    };
    let ports = matches!(protocol, 6 | 17).then(|| (short(transport), short(transport + 2)));
    Seen { protocol, ports }
}

/// Returns a copy of a pcap file with only the packets to keep, and the number of the others.
fn copy(path: &Path, times: &Range<i64>, keep: Keep) -> (Vec<u8>, u64) {
    let bytes = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let fraction = match word(0) {
        0xa1b2_c3d4 => 1000,
        0xa1b2_3c4d => 1,
        other => panic!("{other:x}"),
    };
    let (mut out, mut others, mut at) = (bytes[..24].to_vec(), 0, 24);
    while at < bytes.len() {
        let end = at + 16 + word(at + 8) as usize;
        let time = i64::from(word(at)) * 1_000_000_000 + i64::from(word(at + 4)) * fraction;
        if times.contains(&time) && keep(look(&bytes[at + 16..end])) {
            out.extend(&bytes[at..end]);
        } else {
            others += 1;
        }
        at = end;
    }
    (out, others)
}

/// Returns true for packets to keep.
type Keep = fn(Seen) -> bool;

/// Expressions, and equivalent functions.
const EXPRESSIONS: &[(&str, Keep)] = &[
    ("", |_| true),
    ("udp", |packet| packet.protocol == 17),
    ("not tcp", |packet| packet.protocol != 6),
    ("tcp dst port 443", |packet| {
        packet.protocol == 6 && packet.ports.is_some_and(|(_, to)| to == 443)
    }),
    ("port 53", |packet| packet.ports.is_some_and(|(from, to)| from == 53 || to == 53)),
    ("udp and tcp", |_| false),
];

const START_NS: i64 = 1_700_000_000_000_000_000;
const TIMES: &[Range<i64>] = &[
    i64::MIN..i64::MAX,
    START_NS + 1_250_000_000..START_NS + 3_000_000_000,
    START_NS + 2_000_000_000..i64::MAX,
];

fn selection(expression: &str, times: &Range<i64>) -> Selection {
    let filter =
        (!expression.is_empty()).then(|| CaptureFilter::parse(expression, Tunnel::Outer).unwrap());
    Selection {
        capture_filter: filter,
        from: (times.start > i64::MIN).then_some(TimeBound::At(times.start)),
        to: (times.end < i64::MAX).then_some(TimeBound::At(times.end)),
        ..Selection::default()
    }
}

/// Removes the marks of incomplete slices: a selection that ends at the border of a slice covers
/// all of it, but that cannot be seen in the copy.
fn unmarked(rows: Vec<SliceResult>) -> Vec<SliceResult> {
    rows.into_iter().map(|row| SliceResult { partial: false, ..row }).collect()
}

#[test]
fn selected_packets_count_as_a_capture_that_has_only_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    let gz = folder.path().join("large.pcap.gz");
    let mut out = GzEncoder::new(File::create(&gz).unwrap(), Compression::fast());
    out.write_all(&fs::read(&path).unwrap()).unwrap();
    out.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut some = 0;
    for (expression, keep) in EXPRESSIONS {
        for times in TIMES {
            let (bytes, others) = copy(&path, times, *keep);
            let alone = folder.path().join("alone.pcap");
            fs::write(&alone, bytes).unwrap();
            let mut expected = common::plan(std::slice::from_ref(&alone), ElementKind::FLOW);
            let (rows, summary) = common::run(&expected);
            some += u32::from(!rows.is_empty() && others > 0);
            expected.trace.selection = selection(expression, times);
            for (source, threads) in [
                (Source::from(&path), 1),
                (Source::from(&path), 2),
                (Source::from(&path), 4),
                (Source::from(&gz), 2),
                (Source::reader("a pipe", Cursor::new(whole.clone())), 2),
            ] {
                let mut plan = expected.clone();
                (plan.trace.inputs, plan.trace.threads) = (vec![source], threads);
                let (found, selected) = common::run(&plan);
                let what =
                    format!("{expression}, {times:?}, {:?}, {threads} threads", plan.trace.inputs);
                assert_eq!(unmarked(found), unmarked(rows.clone()), "{what}");
                assert_eq!(selected.totals, summary.totals, "{what}");
                let [input] = &selected.inputs[..] else { panic!("there is one input") };
                assert_eq!(input.left_out, others, "{what}");
                assert_eq!(input.packets, summary.totals.packets, "{what}");
            }
        }
    }
    assert!(some > 8, "hardly anything was selected: {some}");
}

/// Writes a capture of 300 s, large enough that times are searched by position.
fn long(folder: &Path) -> PathBuf {
    let path = folder.join("long.pcap");
    let plan = GeneratePlan {
        duration_ns: 300_000_000_000,
        ..GeneratePlan::new(GenerateKind::Traffic, 160_000)
    };
    let mut bytes = Vec::new();
    generate(&plan, &mut bytes).unwrap();
    assert!(bytes.len() > 16 << 20, "{}", bytes.len());
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn of_a_long_capture_in_order_the_rest_is_not_read_and_nothing_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = long(folder.path());
    let second = |s: i64| START_NS + s * 1_000_000_000;
    for (times, is_left_unread) in [
        (second(100)..second(120), true),
        (i64::MIN..second(7), true),
        (second(280)..i64::MAX, true),
        (second(-500)..second(-400), true),
        (second(1000)..second(2000), true),
        (second(1)..second(299), false),
    ] {
        let alone = folder.path().join("alone.pcap");
        let (bytes, others) = copy(&path, &times, |_| true);
        fs::write(&alone, bytes).unwrap();
        let expected = common::plan(std::slice::from_ref(&alone), ElementKind::FLOW);
        let (rows, summary) = common::run(&expected);
        for threads in [1, 2, 4] {
            let mut plan = common::plan(std::slice::from_ref(&path), ElementKind::FLOW);
            (plan.trace.selection, plan.trace.threads) = (selection("", &times), threads);
            let (found, selected) = common::run(&plan);
            assert_eq!(unmarked(found), unmarked(rows.clone()), "{times:?}, {threads} threads");
            assert_eq!(selected.totals, summary.totals);
            let input = &selected.inputs[0];
            assert_eq!(input.unread_bytes > 0, is_left_unread, "{times:?}");
            assert_eq!(input.left_out < others, is_left_unread, "{times:?}");
        }
    }
}

#[test]
fn of_a_long_capture_out_of_order_everything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = long(folder.path());
    // Exchanges the two halves.
    let middle = START_NS + 150_000_000_000;
    let (mut turned, _) = copy(&path, &(middle..i64::MAX), |_| true);
    turned.extend(&copy(&path, &(i64::MIN..middle), |_| true).0[24..]);
    fs::write(&path, turned).unwrap();
    let times = START_NS + 10_000_000_000..START_NS + 20_000_000_000;
    let (bytes, others) = copy(&path, &times, |_| true);
    let alone = folder.path().join("alone.pcap");
    fs::write(&alone, bytes).unwrap();
    let (rows, _) = common::run(&common::plan(&[alone], ElementKind::FLOW));
    let mut plan = common::plan(&[path], ElementKind::FLOW);
    plan.trace.selection = selection("", &times);
    let (found, selected) = common::run(&plan);
    assert_eq!(unmarked(found), unmarked(rows));
    let input = &selected.inputs[0];
    assert_eq!((input.unread_bytes, input.left_out), (0, others));
}

#[test]
fn damage_behind_what_is_not_read_has_the_number_of_its_packet() {
    let folder = tempfile::tempdir().unwrap();
    let path = long(folder.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let error = |selection, threads| {
        let mut plan = common::plan(std::slice::from_ref(&path), ElementKind::FLOW);
        (plan.trace.selection, plan.trace.threads) = (selection, threads);
        let (_, summary) = common::run(&plan);
        let input = &summary.inputs[0];
        (input.error.as_ref().unwrap().to_string(), input.unread_bytes)
    };
    let (expected, _) = error(Selection::default(), 1);
    assert!(expected.contains("packet 160000"), "{expected}");
    let times = START_NS + 200_000_000_000..i64::MAX;
    for threads in [1, 2, 4] {
        let (found, unread) = error(selection("", &times), threads);
        assert_eq!(found, expected);
        assert!(unread > 10 << 20, "{unread}");
    }
}

/// Collects the flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl FlowSink for Flows {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.0.push(flow);
        Ok(())
    }
}

#[test]
fn flows_of_selected_packets_are_those_of_a_capture_that_has_only_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    for (expression, keep) in EXPRESSIONS {
        let times = &TIMES[1];
        let alone = folder.path().join("alone.pcap");
        fs::write(&alone, copy(&path, times, *keep).0).unwrap();
        let flows = |mut plan: FlowPlan, threads| {
            plan.trace.threads = threads;
            let mut flows = Flows::default();
            list(&plan, &mut flows, &()).unwrap();
            flows.0
        };
        let expected = flows(FlowPlan::new([&alone]), 1);
        for threads in [1, 2] {
            let mut plan = FlowPlan::new([&path]);
            plan.trace.selection = selection(expression, times);
            assert_eq!(flows(plan, threads), expected, "{expression}");
        }
    }
}

fn rows(count: &Count) -> Vec<SliceResult> {
    count.run().unwrap().slices
}

#[test]
fn times_relative_to_a_capture_are_those_of_its_first_and_last_packet() {
    let path = "traces/generated.pcap";
    let all = rows(&Count::of([path]));
    let (first, last) = (all[0].start_ns, all[all.len() - 1].end_ns);
    assert_eq!((first, last), (START_NS, START_NS + 8_000_000_000));
    let at = |from, to| Selection { from, to, ..Selection::default() };
    let resolved = |selection: Selection, sources: &[Source]| {
        selection.resolved(sources, InputFormat::Auto, &StopFlag::default())
    };
    let relative =
        at(Some(TimeBound::AfterStart(2_000_000_000)), Some(TimeBound::BeforeEnd(1_000_000_000)));
    let found = resolved(relative.clone(), &[path.into()]).unwrap();
    let (Some(TimeBound::At(from)), Some(TimeBound::At(to))) = (found.from, found.to) else {
        panic!("{found:?}")
    };
    assert!(found.is_resolved() && !relative.is_resolved());
    let second = 1_000_000_000;
    assert!((START_NS + 2 * second..START_NS + 3 * second).contains(&from), "{from}");
    assert!((START_NS + 6 * second..START_NS + 7 * second).contains(&to), "{to}");
    // The end of the selection is exactly one second before the last packet: rounding would lose
    // packets of that second.
    let absolute = rows(&Count::of([path]).only(found));
    assert_eq!(rows(&Count::of([path]).only(relative.clone())), absolute);
    assert_eq!(absolute.len(), 5);

    // The end of a pipe is unknown, and its beginning is known only when it arrives.
    let pipe = || Source::reader("a pipe", File::open(path).unwrap());
    assert_eq!(resolved(relative, &[pipe()]).unwrap_err(), TimeRangeError::EndOfStream);
    let from = at(Some(TimeBound::AfterStart(2_000_000_000)), None);
    assert_eq!(
        resolved(from.clone(), &[pipe(), path.into()]).unwrap_err(),
        TimeRangeError::SeveralStreams
    );
    let of_file = rows(&Count::of([path]).only(from.clone()));
    assert_eq!(rows(&Count::of([pipe()]).only(from)), of_file);
    assert_eq!(of_file.len(), 6);
}
