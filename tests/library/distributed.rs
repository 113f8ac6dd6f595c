//! A count that is joined from pieces has the report of a single run, byte for byte.

use super::common;
use flowsieve::capture_filter::CaptureFilter;
use flowsieve::decode::{Headers, Tunnel};
use flowsieve::distributed::{
    FlowSums, FlowTally, InputPart, InputTable, Joined, OpenPiece, Piece, PieceError, PiecePlan,
    PieceReader, PlacedFlow, RankedSlice, RankingSums, ShardCount, ShardFlows, ShardTally,
    ShardWhole, SlicePart, SliceRanking, SliceSums, WholePart, WholeTally, WireFormat as _, divide,
    grid_of,
};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{
    FilterKind, FilterSpec, PlannedCombination, Sizing, Structure, SubsetSpec,
};
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSummary, SortedFlows, list};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CountSummary, CounterChoice, Slicing, Totals, count,
};
use flowsieve::plan::TracePlan;
use flowsieve::report::{CountParameters, CountReport, ReportFormat, TerminalStyle, TopReport};
use flowsieve::selection::{Selection, TimeBound};
use flowsieve::top::{Question, RankBy, TopPlan, top};
use flowsieve::trace::{Capture, InputFormat};
use flowsieve::zone::Zone;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The division of a count into pieces, and the order in which they arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    range_bytes: u64,
    budget: usize,
    pub(super) shuffle: u64,
    /// True if everything arrives twice.
    twice: bool,
}

pub(super) const WHOLE: Division =
    Division { range_bytes: u64::MAX, budget: 64 << 20, shuffle: 0, twice: false };

/// Returns the report of a single run.
fn at_once(plan: &CountPlan) -> String {
    let parameters = CountParameters::from(plan);
    let mut report =
        CountReport::begin(ReportFormat::JSON, &parameters, TerminalStyle::default(), Vec::new())
            .unwrap();
    let summary = count(plan, CountExtras::default(), &mut report, &()).unwrap();
    let report = report.finish(&summary).unwrap();
    String::from_utf8(report).unwrap()
}

/// Shuffles things into an order that depends on a seed.
pub(super) fn shuffle<T>(things: &mut [T], seed: u64) {
    let random = BuildHasherDefault::<DefaultHasher>::default();
    for last in (1..things.len()).rev() {
        let other = random.hash_one((seed, last)) as usize % (last + 1);
        things.swap(last, other);
    }
}

/// The result of reading in pieces, by slice and shard, in the order of arrival. All pieces were
/// encoded and decoded.
pub(super) struct Read {
    pub(super) table: InputTable,
    pub(super) summary: Box<CountSummary>,
    pub(super) parts: BTreeMap<i64, BTreeMap<u32, Vec<SlicePart>>>,
    /// Number of pieces that were read again.
    again: usize,
}

pub(super) fn read_in_pieces(plan: &impl PiecePlan, division: Division) -> Read {
    let grid = grid_of(plan).unwrap();
    let pieces = divide(plan, division.range_bytes);
    let (mut parts, mut inputs) = (Vec::new(), Vec::new());
    let mut left = pieces.clone();
    let mut again = 0;
    let (table, summary) = loop {
        shuffle(&mut left, division.shuffle);
        for piece in &left {
            let mut reader = PieceReader::open(plan, grid, piece, division.budget).unwrap();
            parts.extend(reader.by_ref().map(|part| part.to_bytes()));
            inputs.push(reader.finish().unwrap().to_bytes());
        }
        if division.twice {
            parts.extend_from_within(..);
        }
        shuffle(&mut inputs, division.shuffle);
        let inputs: Vec<InputPart> =
            inputs.iter().map(|bytes| InputPart::from_bytes(bytes).unwrap()).collect();
        match InputTable::join(plan, &pieces, &inputs).unwrap() {
            Joined::Whole(table, summary) => break (table, summary),
            Joined::Again(pieces) => left = pieces,
        }
        again += left.len();
        assert!(again < 10_000, "no end");
    };
    shuffle(&mut parts, division.shuffle);
    let mut shuffled: BTreeMap<i64, BTreeMap<u32, Vec<SlicePart>>> = BTreeMap::new();
    for bytes in parts {
        let part = SlicePart::from_bytes(&bytes).unwrap();
        let shards = shuffled.entry(part.slice).or_default();
        shards.entry(part.shard).or_default().push(part);
    }
    Read {
        table: InputTable::from_bytes(&table.to_bytes()).unwrap(),
        summary,
        parts: shuffled,
        again,
    }
}

/// Returns the report of the same count in pieces, and how many of them were read again.
fn in_pieces(plan: &CountPlan, division: Division) -> (String, usize) {
    let read = read_in_pieces(plan, division);
    let grid = grid_of(plan).unwrap();
    let parameters = CountParameters::from(plan);
    let mut report =
        CountReport::begin(ReportFormat::JSON, &parameters, TerminalStyle::default(), Vec::new())
            .unwrap();
    let mut counter = ShardCount::new(plan).unwrap();
    let mut sums = SliceSums::new(plan, grid, &mut report);
    let mut wholes: Vec<WholePart> = Vec::new();
    let mut by_shard: BTreeMap<u32, ShardWhole> = BTreeMap::new();
    for (slice, shards) in read.parts {
        let mut tallies: Vec<ShardTally> = shards
            .iter()
            .map(|(&shard, parts)| {
                // Add the elements of some slices where they are counted.
                let even = (slice % 2 == 0).then(|| ShardWhole::new(plan, shard).ok());
                if let Some(empty) = even.flatten() {
                    let whole = by_shard.entry(shard).or_insert(empty);
                    return counter.count_with(whole, slice, parts, &read.table).unwrap();
                }
                let (tally, whole) = counter.count(slice, shard, parts, &read.table).unwrap();
                let whole = whole.map(|whole| WholePart::from_bytes(&whole.to_bytes()).unwrap());
                wholes.extend(whole);
                ShardTally::from_bytes(&tally.to_bytes()).unwrap()
            })
            .collect();
        shuffle(&mut tallies, division.shuffle);
        sums.slice(tallies).unwrap();
    }
    shuffle(&mut wholes, division.shuffle);
    for part in &wholes {
        let shard = by_shard.entry(part.shard);
        shard.or_insert_with(|| ShardWhole::new(plan, part.shard).unwrap()).add(part).unwrap();
    }
    for whole in by_shard.into_values() {
        let tally = whole.finish();
        sums.whole(WholeTally::from_bytes(&tally.to_bytes()).unwrap()).unwrap();
    }
    let summary = sums.finish(read.summary).unwrap();
    let report = report.finish(&summary).unwrap();
    (String::from_utf8(report).unwrap(), read.again)
}

/// Returns the report of a ranking in a single run.
fn ranked_at_once(plan: &TopPlan) -> String {
    let mut report = ranking_report(plan);
    let summary = top(plan, &mut report, &()).unwrap();
    String::from_utf8(report.finish(&summary).unwrap()).unwrap()
}

/// Returns the report of the same ranking in pieces.
fn ranked_in_pieces(plan: &TopPlan, division: Division) -> String {
    let read = read_in_pieces(plan, division);
    let mut report = ranking_report(plan);
    let grid = grid_of(plan).unwrap();
    let mut ranking = SliceRanking::new(plan, grid, None).unwrap();
    let mut sums = RankingSums::new(plan, grid, &mut report);
    for (slice, shards) in read.parts {
        let is_sharded = plan.slicing.width_ns.is_none() && plan.exact_limit_bytes.is_some();
        assert!(is_sharded || shards.keys().eq(&[0]), "only one slice of everything has shards");
        let mut shards: Vec<_> = shards.into_iter().collect();
        shuffle(&mut shards, division.shuffle);
        for (shard, parts) in shards {
            if let Some(ranked) = ranking.rank(slice, shard, &parts, &read.table).unwrap() {
                let ranked = RankedSlice::from_bytes(&ranked.to_bytes()).unwrap();
                assert_eq!(ranked.slice, slice);
                sums.slice(ranked.clone()).unwrap();
                assert!(sums.slice(ranked).is_err(), "it came twice");
            }
        }
    }
    let summary = sums.finish(read.summary).unwrap();
    String::from_utf8(report.finish(&summary).unwrap()).unwrap()
}

fn ranking_report(plan: &TopPlan) -> TopReport<Vec<u8>> {
    TopReport::begin(ReportFormat::JSON, plan, TerminalStyle::default(), Vec::new()).unwrap()
}

/// Returns everything reported about a list of flows: the flows in their order, and the state of
/// the inputs.
fn listed(flows: impl IntoIterator<Item = FlowRecord>, summary: &FlowSummary) -> Vec<String> {
    let flows = flows.into_iter().map(|flow| FlowRecord { number: 0, ..flow });
    let flows = flows.map(|flow| format!("{flow:?}"));
    let inputs = summary.inputs.iter().map(|input| {
        let error = input.error.as_ref().map(ToString::to_string);
        let (packets, left_out) = (input.packets, input.left_out);
        format!("{:?} {packets} {left_out} {error:?}", input.container)
    });
    let totals = format!("{:?}", summary.totals);
    flows.chain(inputs).chain([totals]).collect()
}

/// Returns the flows of a single run.
fn listed_at_once(plan: &FlowPlan) -> Vec<String> {
    let mut sorted = SortedFlows::new(1 << 30);
    let summary = list(plan, &mut sorted, &()).unwrap();
    let mut flows = Vec::new();
    sorted
        .drain(|flow| {
            flows.push(flow);
            Ok(())
        })
        .unwrap();
    listed(flows, &summary)
}

/// Returns the same flows in pieces.
fn listed_in_pieces(plan: &FlowPlan, division: Division) -> Vec<String> {
    let read = read_in_pieces(plan, division);
    let lister = ShardFlows::new(plan, None).unwrap();
    let mut sums = FlowSums::default();
    let mut flows: Vec<PlacedFlow> = Vec::new();
    for (slice, shards) in read.parts {
        assert_eq!(slice, 0, "flows are in no slice");
        for (shard, parts) in shards {
            let take = |flow| {
                flows.push(flow);
                Ok(())
            };
            let tally = lister.list(shard, &parts, &read.table, take).unwrap();
            let tally = FlowTally::from_bytes(&tally.to_bytes()).unwrap();
            sums.shard(&tally).unwrap();
            assert!(sums.shard(&tally).is_err(), "it came twice");
        }
    }
    shuffle(&mut flows, division.shuffle);
    flows.sort_by_key(|flow| (flow.flow.start_ns, flow.begun));
    let summary = sums.finish(read.summary).unwrap();
    listed(flows.into_iter().map(|flow| flow.flow), &summary)
}

/// Removes packets and bytes of keys that were not held all the time: without an exact count a
/// single run does not know these.
fn without_lost_packets(report: &str) -> serde_json::Value {
    let mut report: serde_json::Value = serde_json::from_str(report).unwrap();
    for key in report["keys"].as_array_mut().unwrap() {
        if key["exact"].is_null() && key["held_since_start"] != true {
            key["packets"].take();
            key["bytes"].take();
        }
    }
    report
}

/// Returns the file header and the records of a little-endian pcap file.
fn records(pcap: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut records = Vec::new();
    let mut at = 24;
    while at < pcap.len() {
        let length = u32::from_le_bytes(pcap[at + 8..at + 12].try_into().unwrap()) as usize;
        records.push(pcap[at..at + 16 + length].to_vec());
        at += 16 + length;
    }
    (pcap[..24].to_vec(), records)
}

fn source(which: usize) -> Vec<u8> {
    let trace = |name| fs::read(Path::new("traces").join(name)).unwrap();
    match which {
        0 => trace("netns-dns.pcap"),
        1 => trace("netns-mirror.pcap"),
        2 => trace("netns-web-loss.pcap"),
        3 => trace("generated.pcap"),
        seed => {
            let plan = GeneratePlan {
                seed: seed as u64,
                duration_ns: 2_000_000_000,
                scan_percent: 10,
                repeat_percent: 20,
                ..GeneratePlan::new(GenerateKind::Traffic, 2_000)
            };
            let mut bytes = Vec::new();
            generate(&plan, &mut bytes).unwrap();
            bytes
        }
    }
}

/// A capture that is distributed among several files, with some neighbours swapped. In some files
/// another packet may stand in the place of the first; one may be damaged.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    source: usize,
    files: usize,
    in_turn: bool,
    disorder: usize,
    other_first: Option<usize>,
    damage: Option<(usize, bool)>,
}

impl Inputs {
    pub(super) fn write(&self, folder: &TempDir) -> Vec<PathBuf> {
        let (header, mut records) = records(&source(self.source));
        if self.disorder > 0 {
            for at in (1..records.len()).step_by(self.disorder) {
                records.swap(at - 1, at);
            }
        }
        let mut files = vec![Vec::new(); self.files];
        let share = records.len().div_ceil(self.files);
        for (at, record) in records.into_iter().enumerate() {
            let file = if self.in_turn { at % self.files } else { at / share };
            files[file].push(record);
        }
        if let Some(other) = self.other_first {
            for file in files.iter_mut().skip(other % 2).step_by(2) {
                let at = other % file.len();
                file.swap(0, at);
            }
        }
        let mut files: Vec<Vec<u8>> =
            files.iter().map(|file| [header.clone(), file.concat()].concat()).collect();
        if let Some((place, cut)) = self.damage {
            let file = &mut files[place % self.files];
            let at = place % file.len();
            if cut {
                file.truncate(at);
            } else {
                let end = file.len().min(at + 40);
                file[at..end].fill(0xff);
            }
        }
        let paths = (0..).zip(&files).map(|(number, bytes)| {
            let path = folder.path().join(format!("{number}.pcap"));
            fs::write(&path, bytes).unwrap();
            path
        });
        paths.collect()
    }
}

pub(super) fn inputs() -> impl Strategy<Value = Inputs> {
    (
        0_usize..7,
        1_usize..4,
        any::<bool>(),
        prop_oneof![Just(0_usize), Just(7), Just(100)],
        prop::option::weighted(0.3, any::<usize>()),
        prop::option::weighted(0.3, (any::<usize>(), any::<bool>())),
    )
        .prop_map(|(source, files, in_turn, disorder, other_first, damage)| Inputs {
            source,
            files,
            in_turn,
            disorder,
            other_first,
            damage,
        })
}

/// Returns the structure with this number: none, `HyperLogLog`, one designed for combinations, or
/// any filter.
fn counter(which: usize, kind: ElementKind, shards: u32, bytes: u64) -> Option<CounterChoice> {
    const KINDS: [FilterKind; 12] = [
        FilterKind::Bloom,
        FilterKind::Mdbf,
        FilterKind::Cmdbf,
        FilterKind::Subset,
        FilterKind::Counting,
        FilterKind::SplitCounting,
        FilterKind::Scalable,
        FilterKind::Dleft,
        FilterKind::Cartesian,
        FilterKind::Bfm,
        FilterKind::Cbfm,
        FilterKind::Wcbfm,
    ];
    let attributes = kind.arity();
    let sizing = Sizing::Memory { bytes, expected: None };
    match which {
        0 => None,
        1 => Some(CounterChoice::registers(Structure::Hll, sizing, shards).unwrap()),
        2 => {
            let stored = (0..attributes)
                .filter(|_| attributes > 1)
                .map(|attribute| PlannedCombination { mask: 1 << attribute, probes: 2 });
            let spec = FilterSpec::Subset(SubsetSpec {
                halving: false,
                attributes,
                shape: (bytes / 64).into(),
                probes: 3,
                combinations: stored.collect(),
            });
            let wanted = (0..attributes as u32).filter(|_| attributes > 1);
            let wanted = wanted.map(|attribute| 1 << attribute).collect();
            Some(CounterChoice::designed(FilterKind::Subset, spec, wanted))
        }
        filter => {
            let kind = KINDS[filter - 3];
            // Impossible parameters give no counter.
            CounterChoice::filter(kind, attributes, sizing, shards).ok()
        }
    }
}

/// Returns a selection by number; half of them select everything.
fn selection(number: usize) -> Selection {
    let filter = |text| CaptureFilter::parse(text, Tunnel::Outer).unwrap();
    let at = |ns: i64| Some(TimeBound::At(1_700_000_000_000_000_000 + ns));
    match number {
        0 => Selection { capture_filter: Some(filter("udp or port 443")), ..Selection::default() },
        1 => Selection { from: at(400_000_000), to: at(1_300_000_000), ..Selection::default() },
        2 => Selection {
            capture_filter: Some(filter("not udp")),
            from: at(700_000_000),
            ..Selection::default()
        },
        _ => Selection::default(),
    }
}

pub(super) fn plan() -> impl Strategy<Value = CountPlan> {
    let width = prop_oneof![
        Just(None),
        Just(Some(1_000_000_000_i64)),
        Just(Some(250_000_000)),
        Just(Some(33_333_333)),
        Just(Some(1_000_000)),
    ];
    (
        (0_usize..15, 9_u32..15, 1_u32..9),
        (0_usize..5, any::<[bool; 5]>()),
        (width, any::<u64>(), 1_usize..4, 0_usize..6),
    )
        .prop_map(
            |((structure, memory, shards), (kind, flags), (width_ns, seed, threads, selected))| {
                let kolkata = Zone::new("Asia/Kolkata", vec![(0, 19_800)]);
                let kind = ElementKind::ALL[kind];
                let shards = if structure == 2 { 1 } else { shards };
                let counter = counter(structure, kind, shards, u64::from(shards) << memory);
                CountPlan {
                    trace: TracePlan {
                        selection: selection(selected),
                        headers: Headers {
                            tunnel: if flags[2] { Tunnel::Inner } else { Tunnel::Outer },
                            ..Headers::default()
                        },
                        ..TracePlan::default().with_threads(threads)
                    },
                    rule: ElementRule { kind, undirected: flags[0], queries_only: flags[1] },
                    slicing: Slicing {
                        width_ns,
                        align: match seed % 3 {
                            _ if flags[3] => Align::First,
                            0 => Align::Local(kolkata),
                            _ => Align::Epoch,
                        },
                    },
                    exact_limit_bytes: (flags[4] || counter.is_none()).then_some(1 << 30),
                    counter,
                    seed,
                    shards,
                    every_ns: None,
                }
            },
        )
}

fn ranking() -> impl Strategy<Value = TopPlan> {
    const QUESTIONS: [(&str, &str); 6] = [
        ("src", "dst"),
        ("dst", "src"),
        ("src,dst", "dst-port"),
        ("src/24", "dst"),
        ("src", "domain"),
        ("domain2", "domain"),
    ];
    let fields = |text: &str| text.split(',').map(|field| field.parse().unwrap()).collect();
    (
        (plan(), 0..QUESTIONS.len()),
        (any::<bool>(), 13_u32..18),
        (prop::option::of(1_usize..30), 1_u64..5),
    )
        .prop_map(move |((plan, question), (exact, memory), (most, least))| {
            let (by, distinct) = QUESTIONS[question];
            TopPlan {
                trace: plan.trace,
                question: Question::new(fields(by), fields(distinct)).unwrap(),
                queries_only: plan.rule.queries_only,
                slicing: plan.slicing,
                most,
                least,
                rank_by: match memory % 3 {
                    1 => RankBy::Packets,
                    2 => RankBy::Bytes,
                    _ => RankBy::Distinct,
                },
                memory_bytes: 1 << memory,
                exact_limit_bytes: exact.then_some(1 << 30),
                seed: plan.seed,
            }
        })
}

fn flows() -> impl Strategy<Value = FlowPlan> {
    let timeout = || prop::option::of(1_i64..400_000_000);
    (plan(), any::<bool>(), timeout(), timeout()).prop_map(
        |(plan, bidirectional, idle_ns, active_ns)| FlowPlan {
            trace: plan.trace,
            bidirectional,
            idle_ns,
            active_ns,
            ..FlowPlan::default()
        },
    )
}

pub(super) fn division() -> impl Strategy<Value = Division> {
    (
        prop_oneof![Just(1_000_u64), Just(20_000), Just(100_000), 1_u64..200_000, Just(u64::MAX)],
        prop_oneof![Just(1_usize), 1_usize..100_000, Just(64 << 20)],
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(|(range_bytes, budget, shuffle, twice)| Division {
            // Ranges shorter than a record would be read again many times.
            range_bytes: range_bytes.max(500),
            budget,
            shuffle,
            twice,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_the_report_of_one_run(inputs in inputs(), plan in plan(), division in division()) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs.write(&folder).into_iter().map(Into::into).collect();
        let plan = CountPlan { trace: TracePlan { inputs, ..plan.trace }, ..plan };
        let one_run = at_once(&plan);
        let (pieces, _) = in_pieces(&plan, division);
        prop_assert_eq!(pieces, one_run);
    }

    #[test]
    fn pieces_rank_as_one_run(inputs in inputs(), plan in ranking(), division in division()) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs.write(&folder).into_iter().map(Into::into).collect();
        let plan = TopPlan { trace: TracePlan { inputs, ..plan.trace }, ..plan };
        let [one_run, pieces] = [ranked_at_once(&plan), ranked_in_pieces(&plan, division)];
        if plan.exact_limit_bytes.is_some() || plan.rank_by != RankBy::Distinct {
            prop_assert_eq!(pieces, one_run);
        } else {
            prop_assert_eq!(without_lost_packets(&pieces), without_lost_packets(&one_run));
        }
    }

    #[test]
    fn parts_of_rankings_that_are_damaged_are_refused_or_ranked(
        plan in ranking(), at in any::<usize>(), value in any::<u8>(), cut in any::<bool>()
    ) {
        let trace = TracePlan {
            inputs: vec!["traces/netns-dns.pcap".into()],
            selection: Selection::default(),
            ..plan.trace
        };
        let plan = TopPlan { trace, ..plan };
        let grid = grid_of(&plan).unwrap();
        let pieces = divide(&plan, u64::MAX);
        let mut reader = PieceReader::open(&plan, grid, &pieces[0], 64 << 20).unwrap();
        // Takes any part: if there are several, only the first has filter and summary.
        let mut parts: Vec<SlicePart> = reader.by_ref().collect();
        let part = parts.swap_remove(at % parts.len());
        let input = reader.finish().unwrap();
        let Joined::Whole(table, _) = InputTable::join(&plan, &pieces, &[input]).unwrap() else {
            panic!("one piece is whole");
        };
        let damaged = |mut bytes: Vec<u8>| {
            let at = at % bytes.len();
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= value;
            }
            bytes
        };
        let mut ranking = SliceRanking::new(&plan, grid, None).unwrap();
        let mut rank = |part: &SlicePart| {
            ranking.rank(part.slice, part.shard, std::slice::from_ref(part), &table)
        };
        let whole = rank(&part).unwrap().unwrap();
        if let Ok(part) = SlicePart::from_bytes(&damaged(part.to_bytes())) {
            let _ = rank(&part);
        }
        let again = rank(&part).unwrap();
        prop_assert_eq!(again.as_ref(), Some(&whole), "a mistake leaves nothing behind");
        let mut report = ranking_report(&plan);
        let mut sums = RankingSums::new(&plan, grid, &mut report);
        if let Ok(ranked) = RankedSlice::from_bytes(&damaged(whole.to_bytes())) {
            let _ = sums.slice(ranked);
            let nothing = CountSummary { inputs: Vec::new(), totals: Totals::default(), filter: None };
            let _ = sums.finish(Box::new(nothing));
        }
    }

    #[test]
    fn pieces_list_the_flows_of_one_run(inputs in inputs(), plan in flows(), division in division()) {
        let folder = TempDir::new().unwrap();
        let inputs = inputs.write(&folder).into_iter().map(Into::into).collect();
        let plan = FlowPlan { trace: TracePlan { inputs, ..plan.trace }, ..plan };
        let expected = listed_at_once(&plan);
        prop_assert_eq!(listed_in_pieces(&plan, division), expected);
    }

    #[test]
    fn packets_of_flows_that_are_damaged_are_refused_or_listed(
        place in any::<usize>(),
        value in 1_u8..,
        bidirectional in any::<bool>(),
    ) {
        let plan = FlowPlan {
            bidirectional,
            ..FlowPlan::new(["traces/netns-dns.pcap"])
        };
        let read = read_in_pieces(&plan, WHOLE);
        let lister = ShardFlows::new(&plan, None).unwrap();
        let shards: Vec<_> = read.parts[&0].iter().filter(|(_, parts)| !parts[0].firsts.is_empty()).collect();
        let (&shard, parts) = shards[place % shards.len()];
        let mut part = parts[0].clone();
        let at = place % part.firsts.len();
        part.firsts[at] ^= value;
        let _ = lister.list(shard, &[part], &read.table, |_| Ok(()));
        let tally = lister.list(shard, parts, &read.table, |_| Ok(())).unwrap();
        let mut bytes = tally.to_bytes();
        let at = place % bytes.len();
        bytes[at] ^= value;
        let _ = FlowTally::from_bytes(&bytes);
        bytes.truncate(at);
        prop_assert!(FlowTally::from_bytes(&bytes).is_err());
        // A packet of another shard is refused.
        let other = shards[(place + 1) % shards.len()].1[0].clone();
        let moved = SlicePart { shard, ..other.clone() };
        if other.shard != shard {
            prop_assert!(lister.list(shard, &[moved], &read.table, |_| Ok(())).is_err());
        }
    }

    #[test]
    fn bytes_that_are_damaged_are_refused_or_read(at in any::<usize>(), value in any::<u8>(), cut in any::<bool>()) {
        let plan = common::plan(&["traces/netns-dns.pcap".into()], ElementKind::FLOW);
        let grid = grid_of(&plan).unwrap();
        let pieces = divide(&plan, u64::MAX);
        let mut reader = PieceReader::open(&plan, grid, &pieces[0], 64 << 20).unwrap();
        let part = reader.next().unwrap();
        let input = reader.finish().unwrap();
        let Joined::Whole(table, _) = InputTable::join(&plan, &pieces, std::slice::from_ref(&input)).unwrap() else {
            panic!("one piece is whole");
        };
        let mut counter = ShardCount::new(&plan).unwrap();
        let (tally, whole) =
            counter.count(part.slice, part.shard, std::slice::from_ref(&part), &table).unwrap();
        let whole = whole.unwrap();
        let damaged = |mut bytes: Vec<u8>| {
            let at = at % bytes.len();
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= value;
            }
            bytes
        };
        let mut nowhere = common::Slices::default();
        let mut sums = SliceSums::new(&plan, grid, &mut nowhere);
        if let Ok(part) = SlicePart::from_bytes(&damaged(part.to_bytes())) {
            let _ = counter.count(part.slice, part.shard, &[part], &table);
        }
        if let Ok(tally) = ShardTally::from_bytes(&damaged(tally.to_bytes())) {
            let _ = sums.slice([tally]);
        }
        let mut joined = ShardWhole::new(&plan, whole.shard).unwrap();
        if let Ok(part) = WholePart::from_bytes(&damaged(whole.to_bytes())) {
            let _ = joined.add(&part);
        }
        if let Ok(tally) = WholeTally::from_bytes(&damaged(joined.finish().to_bytes()))
            && sums.whole(tally).is_ok()
        {
            let summary = CountSummary { inputs: Vec::new(), totals: Totals::default(), filter: None };
            let _ = sums.finish(Box::new(summary));
        }
        let _ = InputTable::from_bytes(&damaged(table.to_bytes()));
        if let Ok(input) = InputPart::from_bytes(&damaged(input.to_bytes())) {
            let _ = InputTable::join(&plan, &pieces, &[input]);
        }
    }
}

#[test]
fn every_structure_counts_in_pieces_as_at_once() {
    let paths = ["traces/generated.pcap", "traces/netns-dns.pcap"].map(PathBuf::from);
    for structure in 0..15 {
        for (memory, exact) in [(9, true), (12, true), (12, false)] {
            let shards = if structure == 2 { 1 } else { 4 };
            let mut plan = common::plan(&paths, ElementKind::HOST_PAIR);
            plan.counter =
                counter(structure, ElementKind::HOST_PAIR, shards, u64::from(shards) << memory);
            plan.shards = shards;
            if !exact && plan.counter.is_some() {
                plan.exact_limit_bytes = None;
            }
            let division = Division {
                range_bytes: 50_000,
                budget: 5_000,
                shuffle: structure as u64,
                twice: false,
            };
            assert_eq!(in_pieces(&plan, division).0, at_once(&plan), "{structure}");
        }
    }
}

/// A frame that contains many complete records looks like record boundaries.
#[test]
fn a_range_that_was_entered_in_the_wrong_place_is_read_again() {
    let (header, records) = records(&source(3));
    let mut file = header;
    for records in records.chunks(40) {
        let inner: Vec<u8> = records.concat();
        let mut outer = records[0][..8].to_vec();
        outer.extend((inner.len() as u32).to_le_bytes().repeat(2));
        outer.extend(&inner);
        file.extend(outer);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.pcap");
    fs::write(&path, file).unwrap();
    let plan = common::plan(&[path], ElementKind::FLOW);
    let division = Division { range_bytes: 10_000, ..WHOLE };
    let (pieces, again) = in_pieces(&plan, division);
    assert!(again > 10, "{again}");
    assert_eq!(pieces, at_once(&plan));
}

#[test]
fn an_exact_count_gives_up_in_pieces_where_it_does_at_once() {
    let (header, records) = records(&source(3));
    let is_v4 = |record: &&Vec<u8>| record[16 + 12..16 + 14] == [8, 0];
    let mut file = header;
    records.iter().filter(is_v4).for_each(|record| file.extend(record));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v4.pcap");
    fs::write(&path, file).unwrap();
    let mut answers = [0, 0];
    for limit in (20_000..400_000).step_by(20_000) {
        let mut plan = common::plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR);
        plan.exact_limit_bytes = Some(limit);
        let expected = at_once(&plan);
        assert_eq!(in_pieces(&plan, WHOLE).0, expected, "{limit}");
        answers[usize::from(expected.contains("\"exact_over_limit\":true"))] += 1;
    }
    assert!(answers.iter().all(|&n| n > 0), "{answers:?}");
}

/// They would have other sums than one run.
#[test]
fn pieces_do_not_rank_by_bytes_after_the_exact_sets_gave_up() {
    for width_ns in [None, Some(1_000_000_000)] {
        let count = common::plan(&["traces/generated.pcap".into()], ElementKind::HOST_PAIR);
        let plan = TopPlan {
            trace: count.trace,
            question: Question::default(),
            queries_only: false,
            slicing: Slicing { width_ns, align: Align::Epoch },
            most: Some(20),
            least: 1,
            rank_by: RankBy::Bytes,
            memory_bytes: 1 << 20,
            exact_limit_bytes: Some(4096),
            seed: 0,
        };
        let ranked = || ranked_in_pieces(&plan, WHOLE);
        let failed = catch_unwind(AssertUnwindSafe(ranked)).unwrap_err();
        let said = failed.downcast_ref::<String>().unwrap();
        assert!(said.contains("pieces cannot rank by bytes without it"), "{said}");
    }
}

#[test]
fn an_input_that_cannot_be_read_is_an_error_or_listed_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pcap");
    let plan = common::plan(&["traces/generated.pcap".into(), missing], ElementKind::FLOW);
    let grid = grid_of(&plan).unwrap();
    let pieces = divide(&plan, u64::MAX);
    let error = PieceReader::open(&plan, grid, &pieces[1], 1 << 20).unwrap_err();
    assert!(error.to_string().contains("missing.pcap: no such file"), "{error}");
    let PieceError::Unreadable(error) = error else {
        panic!("{error}");
    };
    let reader = PieceReader::open(&plan, grid, &pieces[0], 1 << 20).unwrap();
    let parts = [reader.finish().unwrap(), InputPart::unread(&pieces[1], &error)];
    let Joined::Whole(_, summary) = InputTable::join(&plan, &pieces, &parts).unwrap() else {
        panic!("nothing is to be read again");
    };
    assert_eq!(summary.totals.packets, 8_000);
    let listed = summary.inputs[1].error.as_ref().unwrap();
    assert_eq!(listed.to_string(), error.to_string());
    assert!(InputTable::join(&plan, &pieces, &parts[..1]).is_err(), "a piece is missing");
}

/// The first range was requested endlessly, since the place where it was entered was unknown.
#[test]
fn a_range_that_cannot_be_read_ends_its_input_and_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replaced.pcap");
    fs::copy("traces/generated.pcap", &path).unwrap();
    let plan = common::plan(std::slice::from_ref(&path), ElementKind::FLOW);
    let grid = grid_of(&plan).unwrap();
    let pieces = divide(&plan, 100_000);
    assert!(pieces.len() > 4);
    let read = |piece: &Piece| {
        PieceReader::open(&plan, grid, piece, 1 << 20).and_then(PieceReader::finish)
    };
    let whole: Vec<_> = pieces.iter().map(|piece| read(piece).unwrap()).collect();
    fs::write(&path, b"no capture any more".repeat(50_000)).unwrap();
    let parts: Vec<_> = pieces.iter().map(|piece| read(piece).unwrap()).collect();
    let Joined::Whole(_, summary) = InputTable::join(&plan, &pieces, &parts).unwrap() else {
        panic!("nothing is to be read again");
    };
    let error = summary.inputs[0].error.as_ref().unwrap().to_string();
    assert!(error.contains("replaced.pcap: not a capture"), "{error}");
    // The part before it counts, and has the format of the capture.
    let mut parts = [&whole[..2], &parts[2..]].concat();
    let Joined::Again(again) = InputTable::join(&plan, &pieces, &parts).unwrap() else {
        panic!("nobody knows how many packets are before the third range");
    };
    assert_eq!(again.len(), 1);
    parts.push(read(&again[0]).unwrap());
    let Joined::Whole(_, summary) = InputTable::join(&plan, &pieces, &parts).unwrap() else {
        panic!("it was read where the second one ended");
    };
    assert_eq!(summary.inputs[0].packets, whole[0].packets + whole[1].packets);
    assert!(summary.inputs[0].container.is_some() && summary.inputs[0].error.is_some());
    // After a second answer that does not fit, there is no further request.
    let parts = [&whole[..1], &whole[2..], &parts[2..3], &parts[2..3]].concat();
    let parts: Vec<_> = parts
        .into_iter()
        .map(|part| if part.range == 2 { InputPart { range: 1, ..part } } else { part })
        .chain([whole[2].clone()])
        .collect();
    let error = InputTable::join(&plan, &pieces, &parts).unwrap_err();
    assert!(
        error.to_string().ends_with(
            "replaced.pcap: this file changed while it was read; run again when it is whole"
        ),
        "{error}"
    );
}

/// A path in a plan may have become a pipe when a worker opens it.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe.pcap");
    fs::copy("traces/generated.pcap", &path).unwrap();
    let plan = common::plan(std::slice::from_ref(&path), ElementKind::FLOW);
    let grid = grid_of(&plan).unwrap();
    let pieces = [divide(&plan, 100_000), divide(&plan, u64::MAX)].concat();
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for piece in &pieces {
        let input = PieceReader::open(&plan, grid, piece, 1 << 20).unwrap().finish().unwrap();
        let error = input.error.unwrap();
        assert!(error.contains("pipe.pcap: not a capture") && error.contains("a pipe or a device"));
    }
    assert_eq!(divide(&plan, 100_000).len(), 1);
}

/// Ranges of two different contents were joined to one count without a message.
#[test]
fn a_file_that_changed_after_the_plan_is_refused_by_each_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.pcap");
    fs::copy("traces/generated.pcap", &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let plan = common::plan(std::slice::from_ref(&path), ElementKind::FLOW);
    let grid = grid_of(&plan).unwrap();
    let pieces = divide(&plan, 100_000);
    let read = |piece: &Piece| {
        PieceReader::open(&plan, grid, piece, 1 << 20).and_then(PieceReader::finish)
    };
    let text = serde_json::to_string(&pieces[1]).unwrap();
    assert_eq!(serde_json::from_str::<Piece>(&text).unwrap(), pieces[1]);
    let without = text.replace(&format!(",\"file\":{:?}", pieces[1].file.as_ref().unwrap()), "");
    assert!(without.len() < text.len() && serde_json::from_str::<Piece>(&without).is_err());
    read(&pieces[1]).unwrap();
    // The new content has the same length, and every range can be entered.
    fs::write(&path, &bytes).unwrap();
    let changed = "changed.pcap: this file changed while it was read; run again when it is whole";
    for piece in &pieces {
        let error = read(piece).unwrap_err().to_string();
        assert!(error.ends_with(changed), "{error}");
    }
    // An undivided input is read at once, so its content may be any.
    let [whole] = &divide(&plan, u64::MAX)[..] else { panic!("it was not divided") };
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read(whole).unwrap().packets, 8_000);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let plan = common::plan(&["traces/generated.pcap".into()], ElementKind::FLOW);
    let grid = grid_of(&plan).unwrap();
    let pieces = divide(&plan, u64::MAX);
    let mut reader = PieceReader::open(&plan, grid, &pieces[0], 64 << 20).unwrap();
    let parts: Vec<SlicePart> = reader.by_ref().collect();
    let input = reader.finish().unwrap();
    let Joined::Whole(table, _) = InputTable::join(&plan, &pieces, &[input]).unwrap() else {
        panic!("one piece is whole");
    };
    let mut counter = ShardCount::new(&plan).unwrap();
    let of_another = SlicePart { shard: 1, ..parts[0].clone() };
    let error = counter.count(parts[0].slice, 1, &[of_another], &table);
    assert!(error.unwrap_err().to_string().contains("not of this shard"));
    assert!(counter.count(parts[0].slice, 1, &parts[..1], &table).is_err());
    let mut tally = |part: &SlicePart| {
        counter.count(part.slice, part.shard, std::slice::from_ref(part), &table).unwrap().0
    };
    let next = parts.iter().find(|part| part.slice > parts[0].slice).unwrap();
    let mut nowhere = common::Slices::default();
    let mut sums = SliceSums::new(&plan, grid, &mut nowhere);
    assert!(sums.slice([tally(&parts[0]), tally(&parts[0])]).is_err(), "twice");
    assert!(sums.slice([tally(&parts[0]), tally(next)]).is_err(), "two slices");
    sums.slice([tally(next)]).unwrap();
    assert!(sums.slice([tally(&parts[0])]).is_err(), "backwards");
    let exact_only = CountPlan { counter: None, ..plan.clone() };
    let mut sums = SliceSums::new(&exact_only, grid, &mut nowhere);
    assert!(sums.slice([tally(&parts[0])]).is_err(), "another plan");
}

#[test]
fn a_range_of_time_of_a_long_capture_is_read_in_pieces_as_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("long.pcap");
    let generated = GeneratePlan {
        duration_ns: 300_000_000_000,
        ..GeneratePlan::new(GenerateKind::Traffic, 160_000)
    };
    let mut bytes = Vec::new();
    generate(&generated, &mut bytes).unwrap();
    fs::write(&path, bytes).unwrap();
    let mut plan = common::plan(&[path], ElementKind::HOST_PAIR);
    let at = |second: i64| Some(TimeBound::At((1_700_000_000 + second) * 1_000_000_000));
    plan.trace.selection = Selection { from: at(100), to: at(120), ..Selection::default() };
    let expected = at_once(&plan);
    assert!(!expected.contains("\"unread_bytes\":0,"), "nothing was skipped");
    for range_bytes in [1 << 18, 1 << 20, 1 << 24, u64::MAX] {
        let division = Division { range_bytes, ..WHOLE };
        assert_eq!(in_pieces(&plan, division).0, expected, "{range_bytes}");
    }
}

#[test]
fn a_reader_of_any_kind_makes_the_same_parts() {
    let plan = common::plan(&["traces/generated.pcap".into()], ElementKind::HOST_PAIR);
    let grid = grid_of(&plan).unwrap();
    let bytes: &'static [u8] = source(3).leak();
    let head = || {
        let head = Box::new(&bytes[..1000]);
        Capture::from_reader(plan.trace.inputs[0].path(), head, InputFormat::Auto).unwrap()
    };
    for piece in divide(&plan, 100_000) {
        let range = piece.bytes.clone().unwrap();
        let begin = Capture::range_begin(&range, piece.start) as usize;
        let source = Box::new(&bytes[begin..]);
        let range = head().range(source, range, piece.start).unwrap();
        let open = OpenPiece::range(range, piece.start);
        let mut ours = PieceReader::begin(plan.outline(), grid, &piece, Ok(open), 10_000).unwrap();
        let mut theirs = PieceReader::open(&plan, grid, &piece, 10_000).unwrap();
        assert!(ours.by_ref().eq(theirs.by_ref()));
        assert_eq!(ours.finish().unwrap(), theirs.finish().unwrap());
    }
}
