//! Checks comparisons with counts from sets of the packets' bytes, with `count`, and with the
//! formulas.

use super::common::{self};
use flowsieve::comparison::statistics::{LOOKS, Margin, Rule, Verdict};
use flowsieve::comparison::{
    ComparePlan, Comparison, Contender, CountKind, Entry, ExpectedFrom, Negatives, ProbeRule,
    Seeds, Sizes, compare,
};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, FilterSpec, Sizing, Structure};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::pipeline::{Align, CounterChoice, Slicing};
use flowsieve::plan::TracePlan;
use flowsieve::report::document::Block;
use flowsieve::report::figure::{Drawing, Series, SeriesStyle};
use flowsieve::report::{CompareReport, ReportFormat, TerminalStyle};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The structures that are compared.
pub(crate) const PAIR: [Contender; 2] = [
    Contender::Plain(Structure::Filter(FilterKind::Mdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Cmdbf)),
];

const KINDS: [FilterKind; 14] = [
    FilterKind::Subset,
    FilterKind::Bloom,
    FilterKind::Mdbf,
    FilterKind::Cmdbf,
    FilterKind::CmdbfXor,
    FilterKind::CmdbfXorIndependent,
    FilterKind::Cartesian,
    FilterKind::Bfm,
    FilterKind::Cbfm,
    FilterKind::Wcbfm,
    FilterKind::Counting,
    FilterKind::SplitCounting,
    FilterKind::Scalable,
    FilterKind::Dleft,
];

fn everybody() -> Vec<Contender> {
    let others =
        [Contender::Planned, Structure::Hll.into_contender(), Structure::Ell.into_contender()];
    KINDS.map(Contender::from).into_iter().chain(others).collect()
}

/// Converts a structure to a contender.
trait IntoContender {
    fn into_contender(self) -> Contender;
}

impl IntoContender for Structure {
    fn into_contender(self) -> Contender {
        Contender::Plain(self)
    }
}

pub(crate) fn plan(inputs: &[PathBuf], kind: ElementKind, memories: &[u64]) -> ComparePlan {
    ComparePlan {
        trace: TracePlan::new(inputs).with_threads(1),
        rule: ElementRule { kind, ..ElementRule::default() },
        slicing: Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch },
        whole_slices: false,
        contenders: everybody(),
        pair: Some(PAIR),
        sizes: Sizes::Total(memories.to_vec()),
        queries: true,
        combinations: ComparePlan::usual_combinations(kind),
        wanted: vec![(kind.all(), 1.0)],
        expected: None,
        probes: ProbeRule::Formula,
        weigh: None,
        recommend: Some(flowsieve::planner::recommended),
        exact_limit_bytes: 1 << 30,
        seed: 0,
        seeds: Seeds::Fixed(1),
        margin: Margin::default(),
    }
}

pub(crate) fn run(plan: &ComparePlan) -> Comparison {
    compare(plan, None, &()).unwrap()
}

fn entry(comparison: &Comparison, contender: Contender) -> &Entry {
    let mut entries = comparison.entries.iter();
    entries.find(|entry| entry.contender == contender).unwrap()
}

fn filter(comparison: &Comparison, kind: FilterKind) -> &Entry {
    entry(comparison, Contender::from(kind))
}

pub(crate) fn report<'a>(plan: &'a ComparePlan, comparison: &'a Comparison) -> CompareReport<'a> {
    CompareReport {
        plan,
        comparison,
        anonymized: false,
        counts: true,
        by: None,
        captures: Vec::new(),
        command: "flowsieve compare".to_owned(),
    }
}

/// Returns the raw counts of a replicate.
fn firsts(entry: &Entry, replicate: usize) -> Vec<u64> {
    entry.replicates[replicate].first.iter().map(|&first| first.into()).collect()
}

fn generated(folder: &TempDir, kind: GenerateKind) -> (PathBuf, Vec<u8>) {
    let plan = GeneratePlan { duration_ns: 5_000_000_000, ..GeneratePlan::new(kind, 30_000) };
    let mut pcap = Vec::new();
    generate(&plan, &mut pcap).unwrap();
    let path = folder.path().join("generated.pcap");
    fs::write(&path, &pcap).unwrap();
    (path, pcap)
}

/// Returns second, source and destination of every packet of a classic little-endian microsecond
/// pcap of Ethernet frames, all of which are IP with at most one VLAN tag.
fn naive_pairs(pcap: &[u8]) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    let mut pairs = Vec::new();
    let mut at = 24;
    while at < pcap.len() {
        let length = word(at + 8) as usize;
        let frame = &pcap[at + 16..at + 16 + length];
        let tag = if frame[12..14] == [0x81, 0x00] { 4 } else { 0 };
        let ip = &frame[14 + tag..];
        let (source, destination) = match ip[0] >> 4 {
            4 => (ip[12..16].to_vec(), ip[16..20].to_vec()),
            _ => (ip[8..24].to_vec(), ip[24..40].to_vec()),
        };
        pairs.push((word(at), source, destination));
        at += 16 + length;
    }
    pairs
}

/// The exact sets of a second, and the counts of an MDBF of infinite memory, which misses a pair if
/// both of its addresses occurred before.
#[derive(Default)]
struct Second {
    pairs: HashSet<(Vec<u8>, Vec<u8>)>,
    sources: HashSet<Vec<u8>>,
    destinations: HashSet<Vec<u8>>,
    called_new: u64,
    /// The undirected pairs: the XOR of two addresses has no direction, and it is 0 for a packet
    /// from a host to itself.
    undirected: HashSet<(Vec<u8>, Vec<u8>)>,
    called_new_by_xor: u64,
}

fn simulated(pcap: &[u8]) -> BTreeMap<u32, Second> {
    let mut seconds: BTreeMap<u32, Second> = BTreeMap::new();
    for (second, source, destination) in naive_pairs(pcap) {
        let second = seconds.entry(second).or_default();
        let new = second.sources.insert(source.clone());
        let new = second.destinations.insert(destination.clone()) || new;
        second.called_new += u64::from(new);
        let is_self = source == destination;
        let (a, b) =
            (source.clone().min(destination.clone()), source.clone().max(destination.clone()));
        let pair = if is_self { (Vec::new(), Vec::new()) } else { (a, b) };
        second.called_new_by_xor += u64::from(second.undirected.insert(pair) || new);
        second.pairs.insert((source, destination));
    }
    seconds
}

#[test]
fn the_truth_is_what_sets_of_the_packets_bytes_say() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pcap) = generated(&folder, GenerateKind::Traffic);
    let comparison = run(&plan(&[path], ElementKind::HOST_PAIR, &[1 << 12]));
    let seconds = simulated(&pcap);
    let naive: Vec<Vec<u64>> = seconds
        .values()
        .map(|s| [s.pairs.len(), s.sources.len(), s.destinations.len()].map(|n| n as u64).to_vec())
        .collect();
    let ours: Vec<Vec<u64>> = comparison.slices.iter().map(|s| s.values.clone()).collect();
    assert_eq!(ours, naive);
    assert_eq!(comparison.asked, [0b11, 0b01, 0b10]);
    for (slice, values) in comparison.slices.iter().zip(&naive) {
        assert_eq!(slice.exact, Some(values[0]));
    }
    // Every slice ended, so the number of hash functions is chosen for the 95th percentile of all.
    let mut pairs: Vec<u64> = naive.iter().map(|values| values[0]).collect();
    pairs.sort_unstable();
    let large = pairs[(pairs.len() * 95).div_ceil(100) - 1];
    assert_eq!(comparison.expected.elements, Some(large));
    assert_eq!(comparison.expected.from, ExpectedFrom::Percentile95(pairs.len() as u64));
    // The floor of arrays of single attributes at any memory equals the count with sets.
    for (slice, second) in comparison.slices.iter().zip(seconds.values()) {
        assert_eq!(slice.floors.new_values, second.called_new);
    }
}

/// With plenty of memory the losses of mdbf depend only on the trace, not on the hash functions.
#[test]
fn mdbf_loses_what_it_loses_with_infinite_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pcap) = generated(&folder, GenerateKind::Traffic);
    let mut plan = plan(&[path], ElementKind::HOST_PAIR, &[1 << 20]);
    plan.contenders = [FilterKind::Mdbf, FilterKind::CmdbfXor].map(Contender::from).into();
    plan.pair = None;
    plan.seeds = Seeds::Fixed(3);
    let comparison = run(&plan);
    let mdbf = filter(&comparison, FilterKind::Mdbf);
    let seconds = simulated(&pcap);
    let expected: Vec<u64> = seconds.values().map(|s| s.called_new).collect();
    let by_xor: Vec<u64> = seconds.values().map(|s| s.called_new_by_xor).collect();
    for replicate in 0..3 {
        assert_eq!(firsts(mdbf, replicate), expected);
        assert_eq!(firsts(filter(&comparison, FilterKind::CmdbfXor), replicate), by_xor);
    }
    let lost: f64 =
        seconds.values().map(|s| 1.0 - s.called_new as f64 / s.pairs.len() as f64).sum::<f64>()
            / seconds.len() as f64;
    assert!(lost > 0.02, "there is something to lose: {lost}");
    let errors = comparison.errors(mdbf, CountKind::Raw).unwrap();
    assert!((errors.error.value - lost).abs() < 1e-12, "{errors:?} {lost}");
    assert!((errors.bias + lost).abs() < 1e-12);
    assert!(comparison.errors(mdbf, CountKind::Estimate).is_none());
    let floors = comparison.floors(&plan);
    assert_eq!(floors.len(), 2);
    assert!((floors[0].mean - lost).abs() < 1e-12);
    assert!(floors[1].mean < floors[0].mean);
    let apart = mdbf.query(0b11, Negatives::Apart).unwrap();
    assert_eq!(apart.observed(), Some(1.0), "known hosts that did not meet");
}

/// Replicate 0 equals the result of `count` with one shard and the same seed, bit for bit.
#[test]
fn counts_are_those_of_count() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, element) in
        [(GenerateKind::Traffic, ElementKind::HOST_PAIR), (GenerateKind::Dns, ElementKind::DNS)]
    {
        let (path, _) = generated(&folder, kind);
        let inputs = [path];
        let (memory, expected) = (2048, Some(2000));
        let seed = 7;
        let compared = ComparePlan {
            expected,
            seed,
            seeds: Seeds::Fixed(2),
            ..plan(&inputs, element, &[memory])
        };
        let comparison = run(&compared);
        let sizing = Sizing::Memory { bytes: memory, expected };
        for entry in &comparison.entries {
            let Contender::Plain(structure) = entry.contender else { continue };
            let counter = match structure {
                Structure::Filter(kind) => {
                    let spec = FilterSpec::new(kind, element.arity(), sizing).unwrap();
                    let probes = entry.probes.unwrap();
                    let with_probes = spec.with_probes(probes).unwrap();
                    let is_of_bloom_filters = matches!(
                        spec,
                        FilterSpec::Bloom(_) | FilterSpec::Mdbf(_) | FilterSpec::Cmdbf(_)
                    );
                    assert!(is_of_bloom_filters || spec.probes() == probes);
                    CounterChoice::designed(kind, with_probes.unwrap_or(spec), Vec::new())
                }
                _ => CounterChoice::registers(structure, sizing, 1).unwrap(),
            };
            let mut counted = common::plan(&inputs, element);
            counted.counter = Some(counter);
            counted.shards = 1;
            counted.seed = seed;
            let (slices, summary) = common::run(&counted);
            let name = entry.contender.name();
            let exact: Vec<_> = slices.iter().map(|slice| slice.exact).collect();
            assert_eq!(comparison.slices.iter().map(|s| s.exact).collect::<Vec<_>>(), exact);
            let first: Vec<u64> = slices.iter().filter_map(|slice| slice.first).collect();
            assert_eq!(firsts(entry, 0), first, "{name}");
            // A filter that notices nothing any more has a lower bound alone, which is judged.
            let estimates: Vec<f64> = slices
                .iter()
                .filter_map(|slice| slice.estimate.or(slice.lower.map(|lower| lower as f64)))
                .collect();
            assert_eq!(entry.replicates[0].estimates, estimates, "{name}");
            assert_ne!(entry.replicates[0], entry.replicates[1], "{name}");
            assert_eq!(comparison.totals.packets, summary.totals.packets);
            assert_eq!(comparison.totals.skipped, summary.totals.skipped);
        }
    }
}

/// Repeats are left out, unless one of the structures counts them. One of the runs exceeds the
/// limit, so that repeats are left out for a part of a slice.
#[test]
fn answers_do_not_depend_on_the_repeats_that_are_left_out() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let counts_repeats = |contender: &Contender| match contender {
        Contender::Plain(structure) => !structure.ignores_repeats(),
        Contender::Planned => true,
    };
    for exact_limit_bytes in [1 << 30, 2_000_000] {
        let all = ComparePlan {
            exact_limit_bytes,
            seeds: Seeds::Fixed(2),
            ..plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[512, 8192])
        };
        let mut some = all.clone();
        some.contenders.retain(|contender| !counts_repeats(contender));
        assert!(some.contenders.len() < all.contenders.len());
        let (all, some) = (run(&all), run(&some));
        assert_eq!(all.slices, some.slices);
        let of_all = all.entries.iter();
        let of_all = of_all.filter(|entry| !counts_repeats(&entry.contender));
        for (of_all, of_some) in of_all.zip(&some.entries) {
            assert_eq!(format!("{of_all:?}"), format!("{of_some:?}"));
        }
    }
}

/// Slices that are kept for further looks and slices that are evaluated as they close have the same
/// counts.
#[test]
fn a_trace_that_is_not_kept_gives_the_same_counts() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    for threads in [1, 3] {
        let kept = ComparePlan {
            trace: TracePlan::new(std::slice::from_ref(&path)).with_threads(threads),
            seeds: Seeds::Fixed(4),
            // Without this, k would be chosen for a number that is known only if slices are kept.
            expected: Some(1000),
            contenders: PAIR.to_vec(),
            queries: false,
            slicing: Slicing { width_ns: Some(10_000_000), align: Align::Epoch },
            ..plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[480, 1920])
        };
        let streamed = ComparePlan { exact_limit_bytes: 1_200_000, ..kept.clone() };
        let (kept, streamed) = (run(&kept), run(&streamed));
        assert!(!kept.is_streamed && streamed.is_streamed, "{:?}", streamed.slices.len());
        assert_eq!(kept.slices, streamed.slices);
        assert_eq!(kept.entries, streamed.entries);
    }
}

#[test]
fn counts_take_a_share_of_the_exact_limit_and_further_slices_are_left_out() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let all = ComparePlan {
        seeds: Seeds::Fixed(30),
        queries: false,
        slicing: Slicing { width_ns: Some(1_000_000), align: Align::Epoch },
        exact_limit_bytes: 1 << 30,
        ..plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[96])
    };
    let some = ComparePlan { exact_limit_bytes: 4 << 20, ..all.clone() };
    let (all, some) = (run(&all), run(&some));
    assert_eq!(all.slices_omitted, 0);
    assert_eq!(some.slices.len() as u64 + some.slices_omitted, all.slices.len() as u64);
    assert!(some.slices.len() * everybody().len() * 30 * 12 <= 1 << 20, "{}", some.slices.len());
    assert!(!some.slices.is_empty());
}

/// In the setting of the paper a yes of cmdbf implies a yes of mdbf, so its error is never larger.
#[test]
fn with_equal_arrays_cmdbf_is_never_farther_off() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let comparison = run(&ComparePlan {
        contenders: PAIR.to_vec(),
        sizes: Sizes::Arrays(vec![128, 512, 2048, 8192]),
        seeds: Seeds::Fixed(10),
        ..plan(&[path], ElementKind::HOST_PAIR, &[1])
    });
    let mut nearer = 0;
    for size in [128, 512, 2048, 8192] {
        let [mdbf, cmdbf] = PAIR.map(|it| comparison.entry(it, size).unwrap());
        assert_eq!([mdbf.probes, cmdbf.probes], [Some(4); 2]);
        for replicate in 0..10 {
            for (mdbf, cmdbf) in firsts(mdbf, replicate).iter().zip(firsts(cmdbf, replicate)) {
                assert!(cmdbf >= *mdbf);
                nearer += u64::from(cmdbf > *mdbf);
            }
        }
        let verdict = comparison.verdict(PAIR, size, CountKind::Raw).result.unwrap();
        assert!(verdict.difference.value >= 0.0 && verdict.verdict != Verdict::A);
    }
    assert!(nearer > 0);
}

/// Compares one structure with itself: two halves of its replicates differ significantly in at most
/// 5 % of a thousand runs.
#[test]
fn a_structure_is_rarely_told_from_itself() {
    const MOST: usize = LOOKS[3] as usize;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("uniform.pcap");
    fs::write(&path, uniform(1, 100, 1000)).unwrap();
    let rule = Rule { looks: LOOKS.len(), sizes: 1, margin: Margin { points: 0.0, share: 0.0 } };
    let (mut runs, mut decided) = (0, 0);
    for seed in 0..6 {
        let comparison = run(&ComparePlan {
            contenders: vec![Contender::from(FilterKind::Bloom)],
            pair: None,
            queries: false,
            seed,
            seeds: Seeds::Fixed(10_000),
            ..plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[48])
        });
        let errors = comparison.seed_errors(&comparison.entries[0], CountKind::Raw);
        let errors: Vec<f64> = errors.iter().map(|errors| errors.mean).collect();
        for pair in errors.chunks_exact(2 * MOST) {
            let (a, b) = pair.split_at(MOST);
            let is_told = |look: &u32| {
                let look = *look as usize;
                rule.judge(&a[..look], &b[..look], false).verdict.is_nearer()
            };
            runs += 1;
            decided += u32::from(LOOKS.iter().any(is_told));
        }
    }
    assert!(runs >= 990 && decided * 20 <= runs, "{decided} of {runs}");
}

/// Replicates are added until the pair is decided at each size.
#[test]
fn there_are_as_many_seeds_as_it_takes() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let comparison = run(&ComparePlan {
        contenders: PAIR.to_vec(),
        sizes: Sizes::Auto,
        seeds: Seeds::Auto,
        queries: false,
        ..plan(&[path], ElementKind::HOST_PAIR, &[])
    });
    assert_eq!(comparison.sizes.len(), 4);
    let pairs = comparison.expected.elements.unwrap();
    for (size, eighths) in comparison.sizes.iter().zip([1, 4, 16, 64]) {
        assert_eq!(size % 48, 0);
        assert!(size.abs_diff(pairs * eighths / 8) <= 24, "{size} for {pairs}");
        let seeds: Vec<usize> =
            PAIR.map(|it| comparison.entry(it, *size).unwrap().replicates.len()).into();
        assert_eq!(seeds[0], seeds[1]);
        assert!(LOOKS.contains(&(seeds[0] as u32)));
        let judged = comparison.verdict(PAIR, *size, CountKind::Raw).result.unwrap();
        assert!(Rule::is_decided(&judged) || seeds[0] == 30);
        let excludes_zero = judged.joint.low > 0.0 || judged.joint.high < 0.0;
        assert!(!judged.verdict.is_nearer() || excludes_zero);
    }
}

/// The best number of hash functions is not worse than that of the formula.
#[test]
fn the_best_k_is_found_by_trial() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let with = |probes: ProbeRule| {
        run(&ComparePlan {
            contenders: PAIR.to_vec(),
            queries: false,
            probes,
            seeds: Seeds::Fixed(5),
            // The formula gets a wrong number.
            expected: Some(100_000),
            ..plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[9600])
        })
    };
    let (formula, best) = (with(ProbeRule::Formula), with(ProbeRule::Best));
    let mean = |comparison: &Comparison, kind: FilterKind| {
        comparison.errors(filter(comparison, kind), CountKind::Raw).unwrap().error.value
    };
    for kind in [FilterKind::Mdbf, FilterKind::Cmdbf] {
        assert_eq!(filter(&formula, kind).probes, Some(1));
        assert!(filter(&best, kind).probes > Some(1));
        assert!(mean(&best, kind) < mean(&formula, kind));
    }
    // The replicates with the k of the formula are included.
    assert_eq!(best.by_formula.len(), 2);
    assert_eq!(best.by_formula[0].replicates, formula.entries[0].replicates);
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, element) in
        [(GenerateKind::Traffic, ElementKind::FLOW), (GenerateKind::Dns, ElementKind::DNS)]
    {
        let (path, _) = generated(&folder, kind);
        let written = |threads: usize| {
            let mut plan = plan(std::slice::from_ref(&path), element, &[512, 4096]);
            plan.trace.threads = threads;
            plan.seeds = Seeds::Fixed(3);
            let comparison = run(&plan);
            let report = report(&plan, &comparison);
            let latex = ReportFormat::named("latex").unwrap();
            let formats = [ReportFormat::JSON, ReportFormat::CSV, ReportFormat::TABLE, latex];
            let texts = formats.map(|format| {
                let text =
                    report.complete().write(format, TerminalStyle::default(), Vec::new()).unwrap();
                String::from_utf8(text).unwrap()
            });
            (texts, report.page(None))
        };
        let (alone, page) = written(1);
        for threads in [2, 3, 4, 64] {
            let (texts, other) = written(threads);
            assert_eq!(texts, alone, "{threads} threads");
            // Compares the texts, since missing values are NaN, which is not equal to itself.
            assert_eq!(format!("{other:?}"), format!("{page:?}"));
        }
    }
}

/// Returns a pcap of IPv4 packets without transport. The addresses are random, and no two seconds
/// share any.
fn uniform(seconds: u32, pairs: usize, hosts: u64) -> Vec<u8> {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.extend([0; 8]);
    pcap.extend(65_535_u32.to_le_bytes());
    pcap.extend(101_u32.to_le_bytes());
    let mut state = 1_u64;
    let mut random = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for second in 0..seconds {
        for _ in 0..pairs {
            let mut ip = [0_u8; 20];
            ip[0] = 0x45;
            ip[3] = 20;
            ip[9] = 253;
            // The second is in the address, so that no two seconds share any.
            let mut host = || (u64::from(second) << 24 | random(hosts)) as u32;
            ip[12..16].copy_from_slice(&host().to_be_bytes());
            ip[16..20].copy_from_slice(&host().to_be_bytes());
            pcap.extend((1_700_000_000 + second).to_le_bytes());
            pcap.extend([0; 4]);
            pcap.extend(20_u32.to_le_bytes());
            pcap.extend(20_u32.to_le_bytes());
            pcap.extend(ip);
        }
    }
    pcap
}

#[test]
fn observed_rates_are_within_four_standard_errors_of_the_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uniform.pcap");
    fs::write(&path, uniform(40, 2000, 1000)).unwrap();
    let comparison = run(&plan(&[path], ElementKind::HOST_PAIR, &[2048]));
    assert_eq!(comparison.slices.len(), 40);
    let mut compared = 0;
    for entry in &comparison.entries {
        // The formulas for matrices are approximate for rows as short as these.
        if let Contender::Plain(Structure::Filter(
            FilterKind::Cartesian
            | FilterKind::Bfm
            | FilterKind::Cbfm
            | FilterKind::Wcbfm
            | FilterKind::Dleft,
        )) = entry.contender
        {
            continue;
        }
        for query in entry.queries.iter().filter(|query| query.queries > 0) {
            let (Some(observed), Some(predicted)) = (query.observed(), query.predicted()) else {
                continue;
            };
            let name =
                format!("{} {:#b} {:?}", entry.contender.name(), query.mask, query.negatives);
            assert!(query.queries > 10_000, "{name}");
            let error = (predicted * (1.0 - predicted) / query.queries as f64).sqrt();
            assert!(
                (observed - predicted).abs() <= 4.0 * error,
                "{name}: {observed} {predicted} ± {error}"
            );
            compared += 1;
        }
    }
    // Six structures; mdbf and cmdbf answer for parts as well.
    assert!(compared >= 16, "{compared}");
    // A sketch answers nothing, and a filter of whole elements nothing about parts.
    let hll = entry(&comparison, Contender::Plain(Structure::Hll));
    assert!(hll.queries.iter().all(|query| query.observed().is_none()));
    let bloom = filter(&comparison, FilterKind::Bloom);
    assert!(bloom.query(0b01, Negatives::Next).unwrap().positives.is_none());
    // Queries for values that do not occur together need at least two values.
    let mdbf = filter(&comparison, FilterKind::Mdbf);
    assert_eq!(mdbf.query(0b01, Negatives::Apart).unwrap().queries, 0);
}

/// The filter that a plan recommends answers queries for parts at the predicted rate.
#[test]
fn of_dns_the_plan_answers_for_source_and_domain() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Dns);
    let comparison = run(&ComparePlan {
        wanted: vec![(0b111, 1.0), (0b101, 1.0)],
        ..plan(&[path], ElementKind::DNS, &[1 << 15])
    });
    let rate = |contender: Contender| {
        let query = entry(&comparison, contender).query(0b101, Negatives::Apart);
        query.unwrap().observed()
    };
    let planned = rate(Contender::Planned).unwrap();
    let mdbf = rate(Contender::from(FilterKind::Mdbf)).unwrap();
    assert!(planned < 0.02 && mdbf > 0.99, "{planned} {mdbf}");
    assert_eq!(rate(Contender::from(FilterKind::Subset)), None);
}

/// The planner's weights lower the predicted rate of false positives, and are used.
#[test]
fn a_wcbfm_has_the_weights_that_a_plan_gives_it() {
    let folder = TempDir::new().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Dns);
    let kinds = [FilterKind::Cbfm, FilterKind::Wcbfm].map(Contender::from);
    let compared = run(&ComparePlan {
        contenders: kinds.to_vec(),
        combinations: vec![0b101, 0b100],
        weigh: Some(flowsieve::planner::weighted),
        ..plan(&[path], ElementKind::DNS, &[2048])
    });
    let [equal, weighted] = kinds.map(|kind| {
        let queries = &entry(&compared, kind).queries;
        let apart = queries.iter().filter(|it| it.negatives == Negatives::Apart);
        // A query without an answer counts as a false positive.
        let rates = apart.map(|it| (it.observed().unwrap_or(1.0), it.predicted().unwrap_or(1.0)));
        let (observed, predicted): (Vec<f64>, Vec<f64>) = rates.unzip();
        [observed, predicted].map(|rates| rates.iter().sum::<f64>() / rates.len() as f64)
    });
    println!("observed, predicted: equal {equal:?}, weighted {weighted:?}");
    // The formula assumes evenly spread values, which this traffic does not have. So only the
    // prediction is certainly lower; the observed rate just differs.
    assert!(weighted[1] < equal[1]);
    assert!((weighted[0] - equal[0]).abs() > 0.01);
}

#[test]
fn what_does_not_fit_says_what_it_needs_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let comparison = run(&plan(&[path], ElementKind::FLOW, &[32]));
    let subset = filter(&comparison, FilterKind::Subset);
    assert_eq!((subset.needed_bytes, subset.memory_bytes), (Some(64), None));
    assert!(subset.unfit.is_some() && subset.replicates.is_empty());
    let bloom = filter(&comparison, FilterKind::Bloom);
    assert_eq!(bloom.memory_bytes, Some(32));
    assert_eq!(bloom.replicates[0].first.len(), comparison.slices.len());
}

#[test]
fn a_truth_that_passes_its_limit_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pcap) = generated(&folder, GenerateKind::Traffic);
    let mut plan = plan(&[path], ElementKind::HOST_PAIR, &[4096]);
    plan.exact_limit_bytes = 100_000;
    let comparison = run(&plan);
    assert_eq!(comparison.slices.len(), simulated(&pcap).len());
    assert!(comparison.slices.iter().all(|slice| slice.exact.is_none()));
    assert_eq!(comparison.expected.from, ExpectedFrom::Unknown);
    let bloom = filter(&comparison, FilterKind::Bloom);
    assert_eq!(bloom.probes, Some(4), "the usual number, as nothing is known");
    assert!(comparison.errors(bloom, CountKind::Raw).is_none());
    assert!(bloom.queries.iter().all(|query| query.queries == 0));
}

#[test]
fn no_packets_are_no_slices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.pcap");
    fs::write(&path, uniform(0, 0, 1)).unwrap();
    for threads in [1, 4] {
        let mut plan = plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[4096]);
        plan.trace.threads = threads;
        let comparison = run(&plan);
        assert!(comparison.slices.is_empty());
        let report = report(&plan, &comparison);
        for format in
            ["table", "json", "csv", "jsonl"].map(|name| ReportFormat::named(name).unwrap())
        {
            assert!(
                !report
                    .complete()
                    .write(format, TerminalStyle::default(), Vec::new())
                    .unwrap()
                    .is_empty()
            );
        }
        report.page(None);
    }
}

#[test]
fn the_page_has_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let plan = ComparePlan {
        seeds: Seeds::Fixed(3),
        ..plan(&[path], ElementKind::HOST_PAIR, &[4096, 960, 16384])
    };
    let comparison = run(&plan);
    let page = report(&plan, &comparison).page(None);
    let mut names = Vec::new();
    for (_, block) in &page.blocks {
        match block {
            Block::Figure(figure) => {
                names.push(figure.name.as_str());
                if let ("counts-over-time", Drawing::Lines { panels, .. }) =
                    (figure.name.as_str(), &figure.drawing)
                {
                    let (_, series) = &panels[0];
                    assert_eq!(series[0].name, "exact");
                    assert!(series.iter().all(|s| s.points.len() == comparison.slices.len()));
                }
                if let ("error-by-memory", Drawing::Lines { panels, .. }) =
                    (figure.name.as_str(), &figure.drawing)
                {
                    let [(raw, of_raw), (estimate, of_estimates)] = &panels[..] else {
                        panic!("two panels");
                    };
                    assert_eq!([raw, estimate], ["raw", "estimate"]);
                    let names = |series: &[Series]| -> Vec<String> {
                        series.iter().map(|series| series.name.clone()).collect()
                    };
                    assert_eq!(names(of_raw), names(of_estimates), "one legend");
                    let of = |panel: &[Series], name: &str| {
                        panel.iter().find(|series| series.name == name).unwrap().points.len()
                    };
                    assert_eq!(
                        [of(of_raw, "mdbf, floor"), of(of_estimates, "mdbf, floor")],
                        [2, 0]
                    );
                    assert_eq!([of(of_raw, "bloom"), of(of_estimates, "bloom")], [3, 3]);
                    let bloom = of_raw.iter().find(|series| series.name == "bloom").unwrap();
                    assert_eq!(bloom.style, SeriesStyle::Band);
                    let curves = of_raw.iter().chain(of_estimates);
                    for curve in curves.filter(|curve| curve.style == SeriesStyle::Band) {
                        assert!(curve.points.is_sorted_by(|a, b| a.x < b.x));
                    }
                }
            }
            Block::Table(table) => {
                assert!(table.rows.iter().all(|row| row.len() == table.headings.len()));
            }
            _ => {}
        }
    }
    let figures = ["error-by-memory", "counts-over-time", "difference-by-load"];
    assert_eq!(names, figures);
    assert!(page.answers().next().unwrap().contains("is nearer: "), "{page:?}");
    assert!(page.answers().any(|text| text.contains("mdbf loses at least")), "{page:?}");
}

/// Writes a trace of which `floods` seconds have `pairs` pairs, and the others 100.
fn flood(folder: &TempDir, seconds: u32, floods: u32, pairs: usize) -> PathBuf {
    let mut pcap = uniform(0, 0, 1);
    for second in 0..seconds {
        let pairs = if second < floods { pairs } else { 100 };
        for number in 0..pairs {
            let mut ip = [0_u8; 20];
            (ip[0], ip[3], ip[9]) = (0x45, 20, 253);
            ip[12..16].copy_from_slice(&(number as u32).to_be_bytes());
            ip[16..20].copy_from_slice(&7_u32.to_be_bytes());
            pcap.extend((1_700_000_000 + second).to_le_bytes());
            pcap.extend([0; 4]);
            pcap.extend(20_u32.to_le_bytes());
            pcap.extend(20_u32.to_le_bytes());
            pcap.extend(ip);
        }
    }
    let path = folder.path().join("flood.pcap");
    fs::write(&path, pcap).unwrap();
    path
}

#[test]
fn k_is_chosen_for_the_95th_percentile_of_the_slices() {
    let folder = tempfile::tempdir().unwrap();
    // By the nearest rank, this is the largest of up to 19 slices, the second of 20, the third of
    // 40.
    for (seconds, floods, expected) in [
        (1, 1, 5000),
        (8, 1, 5000),
        (19, 1, 5000),
        (20, 1, 100),
        (20, 2, 5000),
        (40, 2, 100),
        (40, 3, 5000),
    ] {
        let path = flood(&folder, seconds, floods, 5000);
        let mut plan = plan(&[path], ElementKind::HOST_PAIR, &[2048]);
        plan.contenders = vec![Contender::from(FilterKind::Bloom)];
        let found = run(&plan).expected;
        assert_eq!(found.elements, Some(expected), "{floods} of {seconds}");
        assert_eq!(found.from, ExpectedFrom::Percentile95(seconds.into()));
        assert_eq!(found.values[0], (0b11, expected));
    }
}

/// k is chosen for the usual slice, and a flood is still counted well with it.
#[test]
fn a_flood_is_counted_with_the_k_of_the_usual_slice() {
    let folder = tempfile::tempdir().unwrap();
    let path = flood(&folder, 12, 1, 5000);
    let worst = |expected: Option<u64>| {
        let mut plan = plan(std::slice::from_ref(&path), ElementKind::HOST_PAIR, &[3072]);
        plan.contenders = vec![Contender::from(FilterKind::Bloom)];
        plan.expected = expected;
        let comparison = run(&plan);
        let bloom = filter(&comparison, FilterKind::Bloom);
        comparison.errors(bloom, CountKind::Raw).unwrap().worst
    };
    let (usual, large) = (worst(Some(100)), worst(None));
    assert!(usual < 0.05 && large < 0.05, "{usual} {large}");
}

#[test]
fn the_pair_is_judged_seed_by_seed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = generated(&folder, GenerateKind::Traffic);
    let seeds = 5;
    let plan = ComparePlan {
        seeds: Seeds::Fixed(seeds),
        ..plan(&[path], ElementKind::HOST_PAIR, &[48, 480, 4080])
    };
    let comparison = run(&plan);
    for memory in [48, 480, 4080] {
        let verdict = comparison.verdict(PAIR, memory, CountKind::Raw);
        let judged = verdict.result.unwrap();
        // Computes the differences by hand.
        let mut differences = Vec::new();
        for seed in 0..seeds as usize {
            let means = PAIR.map(|contender| {
                let counts = firsts(comparison.entry(contender, memory).unwrap(), seed);
                let exact = comparison.slices.iter().map(|slice| slice.exact.unwrap());
                let off = counts.iter().zip(exact);
                let off = off.map(|(&count, n)| (n - count) as f64 / n as f64);
                off.sum::<f64>() / comparison.slices.len() as f64
            });
            differences.push(means[0] - means[1]);
        }
        let mean = differences.iter().sum::<f64>() / f64::from(seeds);
        assert!((judged.difference.value - mean).abs() < 1e-12);
        let squares = differences.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
        let half = 2.776_445 * (squares / 4.0 / 5.0).sqrt();
        assert!((judged.difference.high - mean - half).abs() < 1e-6);
        let nearer = differences.iter().filter(|it| **it < 0.0).count();
        assert_eq!(judged.seeds_nearer[0], nearer);
        // Exchanging the two gives the same.
        let turned = comparison.verdict([PAIR[1], PAIR[0]], memory, CountKind::Raw);
        let turned = turned.result.unwrap();
        assert_eq!(turned.means, [judged.means[1], judged.means[0]]);
        assert!((turned.difference.value + mean).abs() < 1e-12);
    }
    let hll = Contender::Plain(Structure::Hll);
    assert!(comparison.verdict([PAIR[0], hll], 4080, CountKind::Raw).result.is_err());
    // Errors of both signs do not cancel out in a slice.
    let sketch = comparison.entry(hll, 480).unwrap();
    let errors = comparison.slice_errors(sketch, CountKind::Estimate);
    for (number, slice) in comparison.slices.iter().enumerate() {
        let exact = slice.exact.unwrap() as f64;
        let off = sketch.replicates.iter().map(|it| (it.estimates[number] - exact).abs() / exact);
        let mean = off.sum::<f64>() / f64::from(seeds);
        assert!((errors[number].unwrap() - mean).abs() < 1e-12);
    }
    // Without equal memory there is no verdict.
    let dleft = Contender::from(FilterKind::Dleft);
    let unequal = comparison.verdict([PAIR[0], dleft], 480, CountKind::Raw).result.unwrap_err();
    assert!(unequal.contains("same memory"), "{unequal}");
}
