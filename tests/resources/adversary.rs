//! Traffic chosen by an attacker: for collisions, for saturation, and with a hundred times too many
//! elements.

use super::Measured;
use super::source::{ipv4, pcap_header, record};
use flowsieve::elements::ElementRule;
use flowsieve::filters::{ElementDigests, FilterKind, Sizing};
use flowsieve::hashing::Digester;
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CounterChoice, SliceResult, SliceSink, Slicing, count,
};
use flowsieve::plan::TracePlan;
use std::io::{BufWriter, Write};
use std::path::Path;

struct Slices(Vec<SliceResult>);

impl SliceSink for Slices {
    fn slice(&mut self, slice: &SliceResult) -> std::io::Result<()> {
        self.0.push(slice.clone());
        Ok(())
    }
}

/// Returns a plan with a single slice.
fn plan(path: &Path, kind: FilterKind, bytes: u64, shards: u32, seed: u64) -> CountPlan {
    let sizing = Sizing::Memory { bytes, expected: None };
    CountPlan {
        trace: TracePlan::new([path]).with_threads(1),
        rule: ElementRule::default(),
        slicing: Slicing { width_ns: None, align: Align::Epoch },
        counter: Some(CounterChoice::filter(kind, 2, sizing, shards).unwrap()),
        exact_limit_bytes: Some(1 << 26),
        seed,
        shards,
        every_ns: None,
    }
}

fn answer(plan: &CountPlan) -> SliceResult {
    let mut slices = Slices(Vec::new());
    count(plan, CountExtras::default(), &mut slices, &()).unwrap();
    slices.0.remove(0)
}

/// Writes a capture with a packet for each pair.
fn capture(pairs: impl Iterator<Item = (u32, u32)>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut out = BufWriter::new(&file);
    out.write_all(&pcap_header(101)).unwrap();
    for (source, destination) in pairs {
        out.write_all(&record(1, &ipv4(source, destination, 17, &[0; 4]))).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    file
}

/// Returns the error of the estimate in standard errors.
fn deviation(slice: &SliceResult) -> f64 {
    let exact = slice.exact.unwrap() as f64;
    (slice.estimate.unwrap() - exact) / slice.std_error.unwrap().max(1.0)
}

#[test]
fn pairs_chosen_to_collide_under_a_known_seed_do_not_under_another() {
    const BASE: u32 = 1500;
    let _alone = Measured::start();
    let empty = Path::new("");
    let spec = plan(empty, FilterKind::Subset, 2048, 1, 0).counter.unwrap().shard;
    let mut filter = spec.filter().unwrap().build();
    let digest = |pair: (u32, u32)| {
        let mut key = vec![4];
        key.extend(pair.0.to_be_bytes());
        key.extend(pair.1.to_be_bytes());
        Digester::new(0).digest(&key)
    };
    let base: Vec<(u32, u32)> = (0..BASE).map(|i| (0x0a00_0000 + i, 0x0a01_0000 + i)).collect();
    for &pair in &base {
        filter.insert(ElementDigests { whole: digest(pair), attributes: &[] });
    }
    // The attacker knows the filter, and sends pairs that it takes for repeats.
    let chosen = (0..).map(|i: u32| (0xc000_0000 + i, 0xc612_0000 + i));
    let chosen = chosen
        .filter(|&pair| filter.contains(ElementDigests { whole: digest(pair), attributes: &[] }));
    let attack: Vec<(u32, u32)> = base.iter().copied().chain(chosen.take(4000)).collect();
    let file = capture(attack.into_iter());
    let known = answer(&plan(file.path(), FilterKind::Subset, 2048, 1, 0));
    assert_eq!(known.exact, Some(5500), "the exact set does not depend on the seed");
    assert!(known.estimate.unwrap() < 2000.0, "the attack works: {known:?}");
    for seed in [1, 0x0012_3456_789a_bcde, 77] {
        let other = answer(&plan(file.path(), FilterKind::Subset, 2048, 1, seed));
        assert_eq!(other.exact, Some(5500));
        assert!(deviation(&other).abs() < 5.0 && !other.saturated, "{other:?}");
    }
}

#[test]
fn a_scan_of_a_hundred_times_what_was_expected_is_counted() {
    let scan = |elements: u32| capture((0..elements).map(|i| (0x0a00_0001, 0x0b00_0000 + i)));
    let kinds = [
        FilterKind::Subset,
        FilterKind::Bloom,
        FilterKind::Counting,
        FilterKind::SplitCounting,
        FilterKind::Dleft,
    ];
    for kind in kinds {
        // Eight bits per element for 4,000 elements.
        let file = scan(400_000);
        let measured = Measured::start();
        let mut plan = plan(file.path(), kind, 4000, 1, 0);
        plan.exact_limit_bytes = None;
        let slice = answer(&plan);
        assert!(slice.lower.unwrap() <= 400_000, "{kind:?}: {slice:?}");
        if kind == FilterKind::Subset {
            assert!(slice.upper.unwrap() >= 400_000, "{slice:?}");
            assert!(slice.std_error.unwrap() < 0.04 * 400_000.0, "{slice:?}");
        } else {
            // These count by their own bits, which are all set.
            assert!(slice.saturated && slice.upper.is_none(), "{kind:?}: {slice:?}");
        }
        assert!(measured.peak_bytes() < 4 << 20, "{kind:?}: {} bytes", measured.peak_bytes());
    }
}

#[test]
fn an_estimate_is_in_range_however_full_the_filter_is() {
    let _alone = Measured::start();
    for kind in [FilterKind::Subset, FilterKind::Bloom] {
        for shards in [1, 8] {
            for elements in [100, 1000, 3000, 8000, 12_000, 20_000, 40_000, 80_000, 160_000] {
                let file = capture((0..elements).map(|i| (0x0a00_0001, 0x0b00_0000 + i)));
                let slice = answer(&plan(file.path(), kind, 4096, shards, 3));
                assert_eq!(slice.exact, Some(u64::from(elements)));
                let is_full = slice.saturated && slice.upper.is_none();
                let near = deviation(&slice).abs() < 5.0 && !slice.saturated;
                // Only the default structure makes room for what comes.
                let full_is_said = kind != FilterKind::Subset && is_full;
                assert!(near || full_is_said, "{kind:?}, {shards} shards: {slice:?}");
                assert!(slice.lower.unwrap() <= u64::from(elements) || near, "{slice:?}");
            }
        }
    }
}

/// The exact set hashes with keys drawn anew each time: elements whose digests collide are as good
/// as others, and there is nothing to choose them by.
#[test]
fn the_exact_set_counts_what_collides_elsewhere() {
    let _alone = Measured::start();
    // All in one shard of 1,024 under the known seed.
    let pairs = (0..).map(|i: u32| (0xc000_0000 + i, 0xc612_0000 ^ i));
    let chosen = pairs.filter(|pair| {
        let key = [&[4][..], &pair.0.to_be_bytes(), &pair.1.to_be_bytes()].concat();
        flowsieve::hashing::shard_of(Digester::new(0).digest(&key), 1024) == 0
    });
    let file = capture(chosen.take(3000));
    let mut plan = plan(file.path(), FilterKind::Subset, 1 << 20, 1024, 0);
    plan.exact_limit_bytes = Some(1 << 28);
    assert_eq!(answer(&plan).exact, Some(3000));
}
