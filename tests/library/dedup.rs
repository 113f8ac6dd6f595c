//! Compares deduplication with a naive one that knows how the frames were made, with editcap, and
//! the approximate mode with its own prediction.

use flowsieve::dedup::{
    DedupPlan, DedupSummary, Difference, DropKind, Sameness, WindowFilterKind, WindowWidth,
    Writers, dedup,
};
use flowsieve::trace::write::{CaptureWriter, WriteFormat};
use flowsieve::trace::{Capture, InputFormat, TraceBatch};
use proptest::prelude::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub(crate) fn plan(inputs: &[PathBuf], by: Sameness, window: WindowWidth) -> DedupPlan {
    DedupPlan { by, window, ..DedupPlan::new(inputs) }
}

fn writer(path: &Path, plan: &DedupPlan) -> CaptureWriter<File> {
    let file = File::create(path).unwrap();
    CaptureWriter::new(file, WriteFormat::of_name(path), plan.trace.inputs.len() == 1).unwrap()
}

/// Runs a plan; kept and dropped packets go to two files of the folder. A run that writes nothing
/// reports the same, with any number of threads.
pub(crate) fn run(plan: &DedupPlan, folder: &Path) -> (DedupSummary, Vec<Frame>, Vec<Frame>) {
    let plan = &DedupPlan { seed: Some(plan.seed.unwrap_or(5)), ..plan.clone() };
    let paths = ["kept.pcapng", "dropped.pcapng"].map(|name| folder.join(name));
    let mut writers = Writers {
        kept: Some(writer(&paths[0], plan)),
        dropped: Some(writer(&paths[1], plan)),
        anonymizer: None,
    };
    let summary = dedup(plan, &mut writers, &()).unwrap();
    writers.kept.unwrap().finish().unwrap();
    writers.dropped.unwrap().finish().unwrap();
    let [kept, dropped] = paths.map(|path| frames(&path));
    assert_eq!(summary.totals.kept(), kept.len() as u64);
    assert_eq!(summary.totals.dropped(), dropped.len() as u64);
    for threads in [1, 2, 4] {
        let mut nowhere = Writers::<File> { kept: None, dropped: None, anonymizer: None };
        let mut plan = plan.clone();
        plan.trace.threads = threads;
        let dry = dedup(&plan, &mut nowhere, &()).unwrap();
        assert_eq!(said(&dry), said(&summary), "{threads} threads: {plan:?}");
    }
    (summary, kept, dropped)
}

/// All that a summary says of packets.
fn said(summary: &DedupSummary) -> String {
    let DedupSummary {
        totals,
        not_compared,
        out_of_order,
        slices,
        outside_slices,
        window,
        inputs,
        interrupted,
    } = summary;
    let inputs: Vec<_> = inputs.iter().map(|input| (input.packets, &input.path)).collect();
    format!(
        "{totals:?} {not_compared} {out_of_order} {slices:?} {outside_slices} {window:?} {inputs:?} {interrupted}"
    )
}

/// Time and bytes.
pub(crate) type Frame = (i64, Vec<u8>);

pub(crate) fn frames(path: &Path) -> Vec<Frame> {
    let mut capture = Capture::open(path, InputFormat::Auto).unwrap();
    // Whatever the packets are wrapped in stays around them.
    capture.keep_records();
    let mut all = Vec::new();
    while matches!(capture.next_batch(), Ok(Some(TraceBatch::Packets { .. }))) {
        let batch = capture.record_batch();
        for index in 0..batch.packets.len() {
            let record = batch.record(index);
            let bytes = &batch.bytes[record.start as usize..][..record.captured as usize];
            all.push((batch.packets[index].time_ns, bytes.to_vec()));
        }
    }
    all
}

/// The description of a frame.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    time_ns: i64,
    mac: u8,
    vlans: Vec<u16>,
    padding: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Arp(u8),
    Ip { v6: bool, ttl: u8, id: u8, host: u8, tcp: Option<Tcp> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tcp {
    back: bool,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    length: usize,
    fill: u8,
}

impl Made {
    fn bytes(&self) -> Vec<u8> {
        let mut frame = vec![self.mac; 12];
        for vlan in &self.vlans {
            frame.extend([0x81, 0, (vlan >> 8) as u8, *vlan as u8]);
        }
        match &self.what {
            What::Arp(byte) => frame.extend([&[8, 6][..], &[*byte; 46]].concat()),
            What::Ip { v6, ttl, id, host, tcp } => {
                let (protocol, upper) = match tcp {
                    Some(tcp) => (6, tcp.bytes()),
                    None => (17, vec![0, 53, 0, 54, 0, 12, 0, 0, *host, 1, 2, 3]),
                };
                let (mut from, mut to) = ([*host, 1], [9, 2]);
                if tcp.is_some_and(|tcp| tcp.back) {
                    (from, to) = (to, from);
                }
                if *v6 {
                    frame.extend([0x86, 0xdd, 0x60, 0, 0, *id, 0, upper.len() as u8]);
                    frame.extend([protocol, *ttl]);
                    frame.extend([&[0x20; 14][..], &from, &[0x20; 14], &to].concat());
                } else {
                    let length = 20 + upper.len() as u8;
                    frame.extend([8, 0, 0x45, 0, 0, length, 0, *id, 0, 0, *ttl, protocol]);
                    // The checksum depends on the TTL, like a real one.
                    frame.extend([*ttl, 0x55, 10, 0, from[0], from[1], 10, 0, to[0], to[1]]);
                }
                frame.extend(upper);
            }
        }
        frame.extend(vec![0; self.padding]);
        frame
    }

    fn tcp(&self) -> Option<Tcp> {
        match &self.what {
            What::Ip { tcp, .. } => *tcp,
            What::Arp(_) => None,
        }
    }

    /// Returns the IP packet without the fields that routers change.
    fn stable(&self) -> Option<What> {
        match self.what.clone() {
            What::Ip { v6, id, host, tcp, .. } => Some(What::Ip { v6, ttl: 0, id, host, tcp }),
            What::Arp(_) => None,
        }
    }

    fn is_same(&self, other: &Self, by: Sameness, distinguish: Difference) -> bool {
        match by {
            Sameness::Frame => self.bytes() == other.bytes(),
            Sameness::Packet => match (self.stable(), other.stable()) {
                (Some(one), Some(two)) => {
                    one == two
                        && (!distinguish.ttl || self.what == other.what)
                        && (!distinguish.mac || self.mac == other.mac)
                        && (!distinguish.vlan || self.vlans == other.vlans)
                }
                (None, None) => self.bytes() == other.bytes(),
                _ => false,
            },
            Sameness::Flow => match (&self.what, &other.what) {
                (What::Ip { v6, host, tcp, .. }, What::Ip { v6: v, host: h, tcp: t, .. }) => {
                    (v6, host, tcp.map(|tcp| tcp.back)) == (v, h, t.map(|tcp| tcp.back))
                }
                _ => false,
            },
            Sameness::Retransmission => {
                let key = |made: &Self| match &made.what {
                    What::Ip { v6, host, tcp: Some(tcp), .. } => Some((
                        *v6,
                        *host,
                        tcp.back,
                        tcp.sequence,
                        tcp.length,
                        vec![tcp.fill; tcp.length],
                    )),
                    _ => None,
                };
                key(self).is_some() && key(self) == key(other)
            }
        }
    }
}

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let ports: [u8; 4] = if self.back { [0, 80, 1, 1] } else { [1, 1, 0, 80] };
        let mut segment = ports.to_vec();
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgement.to_be_bytes());
        segment.extend([0x50, self.flags, 1, 1, 0, 0, 0, 0]);
        segment.extend(vec![self.fill; self.length]);
        segment
    }

    fn end(&self) -> u32 {
        let controls = u32::from(self.flags & 2 != 0) + u32::from(self.flags & 1 != 0);
        self.sequence + self.length as u32 + controls
    }
}

/// Returns the reason to drop a segment by the definitions, from all frames before it.
fn tcp_kind(all: &[Made], index: usize) -> Option<DropKind> {
    let tcp = all[index].tcp()?;
    let ends = |made: &Made| match made.what {
        What::Ip { v6, host, .. } => Some((v6, host)),
        What::Arp(_) => None,
    };
    let side = |back: bool| -> Vec<(usize, Tcp)> {
        let before = all[..index].iter().enumerate();
        before
            .filter(|(_, made)| ends(made) == ends(&all[index]))
            .filter_map(|(at, made)| Some((at, made.tcp()?)))
            .filter(|(_, tcp)| tcp.back == back)
            .collect()
    };
    let mine = side(tcp.back);
    // Each SYN starts a new connection, also that of this segment.
    let begun = mine.iter().rev().find(|(_, tcp)| tcp.flags & 2 != 0).map(|(at, _)| *at);
    let begun = if tcp.flags & 2 != 0 { Some(index) } else { begun };
    let since = |at: usize| begun.is_none_or(|begun| at >= begun);
    let next = mine.iter().filter(|(at, _)| since(*at)).map(|(_, tcp)| tcp.end()).max();
    let theirs = side(!tcp.back);
    let confirmed = theirs
        .iter()
        .filter(|(at, tcp)| since(*at) && tcp.flags & 0x10 != 0)
        .map(|(_, tcp)| tcp.acknowledgement)
        .max();
    let controls = [1, 2, 4].iter().any(|flag| tcp.flags & flag != 0);
    if tcp.length <= 1 && !controls && next == Some(tcp.sequence + 1) {
        Some(DropKind::KeepAlive)
    } else if tcp.length == 0 {
        None
    } else if confirmed.is_some_and(|confirmed| tcp.sequence + tcp.length as u32 <= confirmed) {
        Some(DropKind::SpuriousRetransmission)
    } else {
        Some(DropKind::Retransmission)
    }
}

/// Returns the reason to drop each packet, by comparing it with all before it.
fn naive(all: &[Made], plan: &DedupPlan) -> Vec<Option<DropKind>> {
    let kinds: Vec<Option<DropKind>> = (0..all.len())
        .map(|index| match (plan.by, &all[index].what) {
            (Sameness::Frame, _) | (Sameness::Packet, What::Arp(_)) => Some(DropKind::Frame),
            (Sameness::Packet, _) => Some(DropKind::Packet),
            (Sameness::Flow, What::Ip { .. }) => Some(DropKind::Flow),
            (Sameness::Flow, What::Arp(_)) => None,
            (Sameness::Retransmission, _) => tcp_kind(all, index),
        })
        .collect();
    let compared: Vec<usize> = (0..all.len()).filter(|&index| kinds[index].is_some()).collect();
    let apart = |one: usize, two: usize| match plan.window {
        WindowWidth::Time(_) => all[one].time_ns.abs_diff(all[two].time_ns),
        WindowWidth::Packets(_) => one.abs_diff(two) as u64,
    };
    let width = match plan.window {
        WindowWidth::Time(width) => width as u64,
        WindowWidth::Packets(count) => count - 1,
    };
    let mut fates = vec![None; all.len()];
    let mut front = 0;
    for (at, &index) in compared.iter().enumerate() {
        while front < at && apart(compared[front], index) > width {
            front += 1;
        }
        let same = |&&other: &&usize| all[other].is_same(&all[index], plan.by, plan.distinguish);
        let last = compared[front..at].iter().rev().find(same);
        if last.is_some_and(|&last| apart(last, index) <= width) {
            fates[index] = kinds[index];
        }
    }
    fates
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let tcp = (
        any::<bool>(),
        0..12_u32,
        0..12_u32,
        prop_oneof![8 => Just(0x10u8), 1 => Just(0x02), 1 => Just(0x11), 1 => Just(0x00)],
        0..3_usize,
        0..2_u8,
    )
        .prop_map(|(back, sequence, acknowledgement, flags, length, fill)| Tcp {
            back,
            sequence,
            acknowledgement,
            flags,
            length,
            // Without bytes to fill, two descriptions of the same frame would differ.
            fill: if length == 0 { 0 } else { fill },
        });
    let ip = (any::<bool>(), 62..65_u8, 0..3_u8, 0..3_u8, proptest::option::of(tcp))
        .prop_map(|(v6, ttl, id, host, tcp)| What::Ip { v6, ttl, id, host, tcp });
    let what = prop_oneof![6 => ip, 1 => (0..2_u8).prop_map(What::Arp)];
    let one = (
        0..2_u8,
        prop_oneof![3 => Just(vec![]), 1 => Just(vec![5]), 1 => Just(vec![5, 6])],
        prop_oneof![Just(0_usize), Just(6)],
        what,
        prop_oneof![6 => 0..40_i64, 1 => -60..400_i64],
    );
    proptest::collection::vec(one, 0..150).prop_map(|all| {
        let mut time_ns = 1_700_000_000_000_000_000;
        all.into_iter()
            .map(|(mac, vlans, padding, what, step)| {
                time_ns += step * 1_000_000;
                Made { time_ns, mac, vlans, padding, what }
            })
            .collect()
    })
}

fn pcap_of<'a>(frames: impl Iterator<Item = (i64, &'a [u8])>) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 1]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    for (time_ns, frame) in frames {
        let words = [
            (time_ns / 1_000_000_000) as u32,
            (time_ns % 1_000_000_000) as u32,
            frame.len() as u32,
            frame.len() as u32,
        ];
        file.extend(words.into_iter().flat_map(u32::to_le_bytes));
        file.extend_from_slice(frame);
    }
    file
}

const FILTERS: [WindowFilterKind; 4] = [
    WindowFilterKind::Dleft,
    WindowFilterKind::SplitCounting,
    WindowFilterKind::Counting,
    WindowFilterKind::Rotating,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_dropped_is_what_a_naive_comparison_finds(
        all in made(),
        by in prop_oneof![Just(Sameness::Packet), Just(Sameness::Frame), Just(Sameness::Retransmission), Just(Sameness::Flow)],
        window in prop_oneof![
            (0..200_i64).prop_map(|ms| WindowWidth::Time(ms * 1_000_000)),
            (1..40_u64).prop_map(WindowWidth::Packets),
        ],
        filter in 0..FILTERS.len(),
        differences in any::<[bool; 3]>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.pcap");
        let bytes: Vec<Vec<u8>> = all.iter().map(Made::bytes).collect();
        let frames = all.iter().zip(&bytes).map(|(made, bytes)| (made.time_ns, &bytes[..]));
        fs::write(&path, pcap_of(frames.clone())).unwrap();
        let mut plan = plan(&[path], by, window);
        plan.filter = FILTERS[filter];
        if by == Sameness::Packet {
            let [vlan, mac, ttl] = differences;
            plan.distinguish = Difference { vlan, mac, ttl, interface: false };
        }
        let fates = naive(&all, &plan);
        let (summary, kept, dropped) = run(&plan, folder.path());
        let expected = |is_kept: bool| -> Vec<Frame> {
            let chosen = frames.clone().zip(&fates).filter(|(_, fate)| fate.is_none() == is_kept);
            chosen.map(|((time, bytes), _)| (time, bytes.to_vec())).collect()
        };
        prop_assert_eq!(kept, expected(true));
        prop_assert_eq!(dropped, expected(false));
        for (kind, count) in DropKind::ALL.iter().zip(summary.totals.by_kind) {
            prop_assert_eq!(fates.iter().filter(|fate| **fate == Some(*kind)).count() as u64, count);
        }
    }
}

/// Returns distinct frames, of which every `again`-th is repeated `distance` frames later.
fn stream(count: u32, again: u32, distance: u32) -> Vec<Vec<u8>> {
    let frame = |number: u32| [&[3; 56][..], &number.to_be_bytes()].concat();
    let mut frames = Vec::new();
    for number in 0..count {
        frames.push(frame(number));
        if again > 0 && number >= distance && (number - distance).is_multiple_of(again) {
            frames.push(frame(number - distance));
        }
    }
    frames
}

fn write_stream(folder: &Path, frames: &[Vec<u8>], step_ns: i64) -> PathBuf {
    let path = folder.join("in.pcap");
    let frames = frames.iter().enumerate();
    fs::write(&path, pcap_of(frames.map(|(n, frame)| (n as i64 * step_ns, &frame[..])))).unwrap();
    path
}

/// Tests windows that have to grow, and windows as large as their memory.
#[test]
fn large_windows_find_everything_with_every_filter() {
    let folder = tempfile::tempdir().unwrap();
    let distance = 50_000;
    let frames = stream(200_000, 7, distance);
    let path = write_stream(folder.path(), &frames, 1000);
    let repeats = frames.len() as u64 - 200_000;
    // Number of frames between a frame and its repeat, with the repeats of others.
    let reach = u64::from(distance) * 8 / 7 + 10;
    for filter in FILTERS {
        for window in [WindowWidth::Packets(reach), WindowWidth::Time(reach as i64 * 1000)] {
            let plan =
                DedupPlan { filter, ..plan(std::slice::from_ref(&path), Sameness::Frame, window) };
            let (summary, ..) = run(&plan, folder.path());
            assert_eq!(summary.totals.dropped(), repeats, "{filter:?} {window:?}");
            assert_eq!((summary.window.left_early, summary.window.least_reach), (0, None));
            assert!(summary.window.memory_bytes <= plan.memory_bytes);
            // A useless filter would cause a lookup for every frame.
            assert!(summary.window.looked_up < repeats + 20_000, "{filter:?} {summary:?}");
        }
    }
}

#[test]
fn a_window_that_does_not_fit_shrinks_and_drops_nothing_wrongly() {
    let folder = tempfile::tempdir().unwrap();
    let frames = stream(100_000, 7, 20_000);
    let path = write_stream(folder.path(), &frames, 1000);
    for (memory, found) in [(256 << 10, false), (4 << 20, true)] {
        for filter in FILTERS {
            let window = WindowWidth::Packets(40_000);
            let plan = DedupPlan {
                memory_bytes: memory,
                filter,
                ..plan(std::slice::from_ref(&path), Sameness::Frame, window)
            };
            let (summary, kept, _) = run(&plan, folder.path());
            let repeats = frames.len() as u64 - 100_000;
            assert_eq!(summary.totals.dropped(), if found { repeats } else { 0 });
            assert_eq!(summary.window.least_reach.is_some(), !found);
            assert_eq!(kept.len() as u64, frames.len() as u64 - summary.totals.dropped());
            if let Some(reach) = summary.window.least_reach {
                assert!((4096..20_000).contains(&reach), "{reach}");
            }
        }
    }
}

#[test]
fn approximate_mode_expects_what_happens() {
    let folder = tempfile::tempdir().unwrap();
    let count = 300_000;
    let path = write_stream(folder.path(), &stream(count, 0, 0), 1000);
    for window in
        [WindowWidth::Packets(60_000), WindowWidth::Time(100_000_000), WindowWidth::Time(i64::MAX)]
    {
        let plan = DedupPlan {
            approximate: true,
            memory_bytes: 256 << 10,
            seed: Some(1),
            ..plan(std::slice::from_ref(&path), Sameness::Frame, window)
        };
        let (summary, ..) = run(&plan, folder.path());
        // All frames differ: every drop is wrong.
        let observed = summary.totals.dropped() as f64;
        let expected = summary.window.expected_wrong.unwrap();
        assert!(observed > 100.0, "{window:?}: {observed}, nothing to compare");
        let error = (observed - expected).abs();
        assert!(
            error < 5.0 * expected.sqrt() + 0.03 * expected,
            "{window:?}: {observed} observed, {expected} expected"
        );
        assert!(summary.window.memory_bytes <= plan.memory_bytes);
    }
    // Nearly all packets are called repeats here, and few are left to judge them by.
    let path = write_stream(folder.path(), &stream(2 * count, 0, 0), 1000);
    let plan = DedupPlan {
        approximate: true,
        memory_bytes: 256 << 10,
        seed: Some(1),
        ..plan(&[path], Sameness::Frame, WindowWidth::Time(i64::MAX))
    };
    let (summary, ..) = run(&plan, folder.path());
    assert!(summary.totals.dropped() > u64::from(count));
    assert_eq!(summary.window.expected_wrong, None);
}

/// All repeats within the window are found, and none beyond one and a half windows.
#[test]
fn approximate_mode_remembers_between_one_and_one_and_a_half_windows() {
    let folder = tempfile::tempdir().unwrap();
    for (distance, found) in [(900, true), (1600, false)] {
        let frames = stream(100_000, 10, distance);
        let path = write_stream(folder.path(), &frames, 1000);
        let plan = DedupPlan {
            approximate: true,
            seed: Some(0),
            // Distances grow by the repeats between.
            ..plan(&[path], Sameness::Frame, WindowWidth::Time(1_000_000))
        };
        let (summary, ..) = run(&plan, folder.path());
        let repeats = frames.len() as u64 - 100_000;
        assert_eq!(summary.totals.dropped(), if found { repeats } else { 0 }, "{distance}");
    }
}

#[test]
fn several_inputs_are_merged_and_told_apart_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let frames = stream(3000, 0, 0);
    let paths = [0, 1].map(|leg: i64| {
        let path = folder.path().join(format!("leg{leg}.pcap"));
        let frames = frames.iter().enumerate();
        let bytes = pcap_of(frames.map(|(n, frame)| (n as i64 * 1000 + leg * 300, &frame[..])));
        fs::write(&path, bytes).unwrap();
        path
    });
    let mut plan = plan(&paths, Sameness::Packet, WindowWidth::Packets(2));
    let (summary, kept, _) = run(&plan, folder.path());
    assert_eq!((summary.totals.packets, summary.totals.dropped()), (6000, 3000));
    assert_eq!(kept, self::frames(&paths[0]), "of two the first is kept");
    assert_eq!(summary.out_of_order, 0);
    plan.distinguish.interface = true;
    let (summary, kept, _) = run(&plan, folder.path());
    assert_eq!(summary.totals.dropped(), 0);
    assert!(kept.is_sorted_by_key(|(time, _)| *time));
}
