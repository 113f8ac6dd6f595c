//! Counts at any load: the mean error, the stated variance and the bounds, of every structure that
//! counts.
//!
//! The seeds are fixed, so a test that passes once always passes. A correct count passes all cells
//! of a test together with a probability of 999 in 1000, so other seeds pass as well.

use crate::elements::{Elements, insert_all};
use crate::specs::{bloom, subset};
use flowsieve_filters::hashing::{Digest, Digester, shard_of};
use flowsieve_filters::{
    CartesianSpec, CmdbfSpec, Combination, CountingSpec, CuckooSpec, DigestColumns, DleftSpec,
    ElementDigests, Estimate, FilterSpec, IndexMap, LineShape, MatrixSpec, MdbfSpec,
    MembershipFilter, PlannedCombination, Refill, ScalableSpec, SplitCountingSpec, SubsetFilter,
};

/// Many counts of the same number of elements.
#[derive(Default)]
struct Counts {
    runs: f64,
    sum: f64,
    squares: f64,
    fourths: f64,
    stated: f64,
    covered: f64,
    full: u32,
}

impl Counts {
    fn record(&mut self, estimate: Estimate, elements: u64) {
        let error = estimate.distinct - elements as f64;
        self.runs += 1.0;
        self.sum += error;
        self.squares += error * error;
        self.fourths += error.powi(4);
        self.stated += estimate.variance;
        let below = estimate.upper().is_none_or(|upper| elements <= upper);
        self.covered += f64::from(u8::from(estimate.lower() <= elements && below));
        self.full += u32::from(estimate.is_full());
    }

    /// Asserts that the counts are unbiased, and that their stated errors and bounds are right,
    /// within this many standard errors.
    fn check(&self, what: &str, errors: f64) {
        let (mean, square) = (self.sum / self.runs, self.squares / self.runs);
        let stated = self.stated / self.runs;
        let covered = self.covered / self.runs;
        println!(
            "{what}: mean {:+.2} errors, square / stated {:.3}, covered {:.1} %, {stated:.2} missed or so",
            mean / (square / self.runs).sqrt().max(1e-300),
            square / stated.max(1e-300),
            100.0 * covered
        );
        let error = errors * (0.05 * 0.95 / self.runs).sqrt();
        assert!(covered > 0.95 - error, "{what}: {covered}");
        if self.full > 0 {
            // Full filters claim nothing.
            return;
        }
        // If hardly any run misses an element, the squares do not give the error of the mean.
        let variance = square.max(stated);
        assert!(mean.abs() <= errors * (variance / self.runs).sqrt() + 1e-6, "{what}: {mean}");
        if stated >= 10.0 {
            let spread = (self.fourths / self.runs - square * square).max(0.0);
            let error = errors * (spread / self.runs).sqrt() / stated;
            let ratio = square / stated;
            assert!(ratio > 0.8 - error && ratio < 1.25 + error, "{what}: {ratio}");
        }
    }
}

/// Returns the number of standard errors that a normal error exceeds with a probability of 1 in
/// 1000 in any of this many cells, with three numbers in each.
fn allowed(cells: usize) -> f64 {
    // The tail beyond z is about e^(-z²/2) / (z √(2π)).
    let wanted = 0.001 / (6.0 * cells as f64);
    let mut z = 3.0_f64;
    while (-z * z / 2.0).exp() / (z * 2.506) > wanted {
        z += 0.01;
    }
    z
}

fn digests(seed: u64, elements: u64) -> Vec<Digest> {
    let digester = Digester::new(seed);
    (0..elements).map(|number| digester.digest(&number.to_le_bytes())).collect()
}

/// Lines, from empty to a hundred elements a bit, in one shard and in eight.
#[test]
fn lines_count_at_any_load() {
    let mut cells = Vec::new();
    for bytes in [64_u64, 100, 512, 1000, 4096, 9999, 65_536, 1 << 20] {
        for shards in [1, 8] {
            for elements in [1_u64, 3, 10, 30, 100, 300, 1_000, 10_000, 100_000] {
                // Higher loads take minutes: scripts/measure-counting covers them.
                let runs = (6_000_000 / elements).clamp(60, 600);
                if bytes >= 64 * shards {
                    cells.push((bytes, shards, elements, runs));
                }
            }
        }
    }
    let errors = allowed(cells.len());
    for (bytes, shards, elements, runs) in cells {
        let probes = 1 + (bytes.trailing_zeros() + elements as u32) % 8;
        let mut filters: Vec<SubsetFilter> = (0..shards)
            .map(|_| SubsetFilter::halving(LineShape::halving(bytes / shards), probes))
            .collect();
        let mut counts = Counts::default();
        for run in 0..runs {
            let mut columns = vec![Vec::new(); shards as usize];
            for digest in digests(elements << 20 | run, elements) {
                columns[shard_of(digest, shards)].push(digest);
            }
            let mut sum = Estimate::default();
            for (filter, column) in filters.iter_mut().zip(&columns) {
                filter.clear();
                let columns = DigestColumns { whole: column, attributes: &[] };
                filter.insert_batch(columns, &mut Vec::new());
                sum = sum.plus(filter.distinct().expect("it counts"));
            }
            counts.record(sum, elements);
        }
        assert_eq!(counts.full, 0, "it never is");
        let what = format!("{bytes} bytes, {shards} shards, k = {probes}, {elements} elements");
        counts.check(&what, errors);
    }
}

/// Combinations in the same lines have no upper bound when the lines are full.
#[test]
fn combinations_count_at_any_load() {
    const CELLS: [(u64, u64); 5] = [(1, 100), (2, 400), (2, 3_000), (16, 3_000), (16, 20_000)];
    let errors = allowed(3 * CELLS.len());
    for (lines, elements) in CELLS {
        let planned =
            [(0b01, 3), (0b10, 5)].map(|(mask, probes)| PlannedCombination { mask, probes });
        let mut all = [(); 3].map(|()| Counts::default());
        for run in 0..300 {
            let mut filter = SubsetFilter::with_combinations(2, lines, 4, &planned)
                .expect("the parameters can be");
            let digester = Digester::new(run);
            let value = |of: u64, number: u64| {
                digester.digest(&[of, number].map(u64::to_le_bytes).concat())
            };
            let whole = digests(5_000 + run, elements);
            let attributes: Vec<Digest> = (0..elements)
                .flat_map(|number| [value(1, number % (elements / 4)), value(2, number / 2)])
                .collect();
            let columns = DigestColumns { whole: &whole, attributes: &attributes };
            filter.insert_batch(columns, &mut Vec::new());
            let combinations = filter.as_multi_attribute().expect("it has some");
            let counted = [(0b11, elements), (0b01, elements / 4), (0b10, elements / 2)];
            for (counts, (mask, exact)) in all.iter_mut().zip(counted) {
                let estimate = combinations.distinct_of(mask).expect("it is stored");
                counts.record(estimate, exact);
            }
        }
        for (counts, name) in all.iter().zip(["whole", "first", "second"]) {
            counts.check(&format!("{lines} lines, {elements} elements, {name}"), errors);
            let full = elements * 4 > lines * 512 * 2;
            assert_eq!(counts.full, if full { 300 } else { 0 }, "{lines} {elements}");
        }
    }
}

/// Every structure that counts, far beyond its size, with values that many elements share.
#[test]
fn every_structure_counts_at_any_load() {
    const LOADS: [u32; 4] = [30, 300, 3_000, 12_000];
    let specs = [
        bloom(600, 3),
        subset(2, 2, 6, &[]),
        subset(2, 3, 8, &[]),
        FilterSpec::Cmdbf(CmdbfSpec {
            attributes: 2,
            bits: 512,
            probes: 2,
            combination: Combination::Joint,
        }),
        FilterSpec::Counting(CountingSpec { counters: 600, probes: 3, counter_bits: 4 }),
        FilterSpec::SplitCounting(SplitCountingSpec { part: 200, probes: 3, counter_bits: 2 }),
        FilterSpec::Scalable(ScalableSpec {
            part: 50,
            probes: 4,
            counter_bits: 4,
            most_links: 3,
            refill: Refill::FirstNotFull,
        }),
        FilterSpec::Dleft(DleftSpec { buckets: 8, remainder_bits: 8, counter_bits: 2 }),
        FilterSpec::Dleft(DleftSpec { buckets: 13, remainder_bits: 5, counter_bits: 4 }),
        FilterSpec::Cuckoo(CuckooSpec { buckets: 90, fingerprint_bits: 5 }),
    ];
    let errors = allowed(specs.len() * LOADS.len());
    for spec in &specs {
        for elements in LOADS {
            let mut counts = Counts::default();
            for run in 0..300 {
                let mut filter = spec.build();
                for numbers in [0..elements / 2, elements / 4..elements, 0..elements] {
                    let shared = Elements::sharing(2, 77_000 + 1000 * run, 4_001, numbers);
                    insert_all(&mut *filter, &shared);
                }
                let estimate = filter.distinct().expect("nothing was removed");
                counts.record(estimate, elements.into());
            }
            counts.check(&format!("{spec:?}, {elements} elements"), errors);
        }
    }
}

/// A matrix and a Cartesian join of one attribute.
#[test]
fn single_attributes_count_at_any_load() {
    const LOADS: [u32; 3] = [20, 200, 4_000];
    let matrix = FilterSpec::Matrix(MatrixSpec {
        sizes: vec![60],
        cuts: Vec::new(),
        probes: 2,
        index_map: IndexMap::Rank,
    });
    let join = FilterSpec::Cartesian(CartesianSpec { attributes: 1, size: 60, probes: 2 });
    let errors = allowed(2 * LOADS.len());
    for spec in [matrix, join] {
        for elements in LOADS {
            let mut counts = Counts::default();
            for run in 0..300 {
                let mut filter = spec.build();
                for value in digests(31_000 + run, elements.into()) {
                    filter.insert(ElementDigests::of_attributes(&[value]));
                }
                let estimate = filter.distinct().expect("one attribute is counted");
                counts.record(estimate, elements.into());
            }
            counts.check(&format!("{spec:?}, {elements} elements"), errors);
        }
    }
}

/// Structures whose answers are not random have no estimate.
#[test]
fn structures_that_cannot_count_have_no_estimate() {
    let xor = |combination| {
        FilterSpec::Cmdbf(CmdbfSpec { attributes: 2, bits: 512, probes: 2, combination })
    };
    let mdbf = FilterSpec::Mdbf(MdbfSpec { attributes: 2, bits: 512, probes: 2 });
    for spec in [xor(Combination::XorSame), xor(Combination::XorIndependent), mdbf] {
        let mut filter = spec.build();
        assert!(filter.distinct().is_none());
        insert_all(&mut *filter, &Elements::sharing(2, 5, 61, 0..100));
        assert!(filter.distinct().is_none());
    }
}
