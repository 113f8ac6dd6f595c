//! The structures and parameters for which the laws hold.

use flowsieve_filters::{
    BloomSpec, CartesianSpec, CmdbfSpec, Combination, CountingSpec, CuckooSpec, DleftSpec,
    FilterKind, FilterSpec, IndexMap, LineShape, MatrixSpec, MdbfSpec, PlannedCombination, Refill,
    ScalableSpec, Sizing, SplitCountingSpec, SubsetSpec,
};

/// Returns small filters, some of them far too small for the elements of the laws.
pub(crate) fn specs() -> Vec<FilterSpec> {
    let mut specs =
        [of_bits(), of_lines(), matrices(), of_counters(), chains(), of_cells()].concat();
    // The toy of the recipe.
    let memory = Sizing::Memory { bytes: 4096, expected: None };
    specs.push(FilterSpec::new(FilterKind::Bitmap, 2, memory).expect("4 KiB are enough"));
    for spec in &specs {
        spec.check().expect("the table has filters that can be");
    }
    specs
}

/// Returns plain arrays of bits, for the whole element or for each attribute.
fn of_bits() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for (bits, probes) in [(1, 1), (100, 3), (1 << 13, 4), (100_003, 7), (1 << 17, 32)] {
        specs.push(bloom(bits, probes));
        for attributes in 1..=4 {
            specs.push(FilterSpec::Mdbf(MdbfSpec { attributes, bits, probes }));
        }
    }
    for combination in [Combination::Joint, Combination::XorIndependent, Combination::XorSame] {
        for (attributes, bits, probes) in
            [(1, 1 << 12, 3), (2, 300, 2), (2, 1 << 14, 4), (3, 10_001, 5), (5, 1 << 14, 2)]
        {
            specs.push(FilterSpec::Cmdbf(CmdbfSpec { attributes, bits, probes, combination }));
        }
    }
    for (attributes, size, probes) in [
        (1, 4000, 3),
        (2, 1, 1),
        (2, 12, 3),
        (2, 90, 4),
        (2, 300, 7),
        (3, 40, 2),
        (3, 7, 5),
        (4, 9, 1),
    ] {
        specs.push(FilterSpec::Cartesian(CartesianSpec { attributes, size, probes }));
    }
    specs
}

/// Returns filters in cache lines, with combinations of the attributes and without.
fn of_lines() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for (lines, probes) in [(1, 1), (16, 4), (200, 8), (60, 13), (300, 32)] {
        for (attributes, combinations) in [
            (2, &[][..]),
            (2, &[(0b01, 2), (0b10, 5)]),
            (3, &[(0b001, 1), (0b011, 3), (0b110, 8)]),
            (4, &[(0b0111, 4), (0b0001, 2), (0b1010, 6), (0b1110, 7)]),
            (5, &[(0b00011, 3), (0b11100, 5)]),
            (3, &[(0b001, 11), (0b011, 24)]),
        ] {
            specs.push(subset(attributes, lines, probes, combinations));
        }
    }
    // Crowded from the start, and with room.
    for (bytes, probes) in [(64, 4), (200, 1), (512, 8), (4096, 3), (10_000, 4), (12_288, 4)] {
        specs.push(SubsetSpec::counting(2, LineShape::halving(bytes), probes).into());
    }
    // Short lines.
    let combinations = vec![PlannedCombination { mask: 0b01, probes: 9 }];
    for (bytes, probes) in [(5, 2), (50, 8), (100, 3), (1001, 13)] {
        let spec = SubsetSpec::knowing(2, LineShape::in_bytes(bytes), probes);
        specs.push(SubsetSpec { combinations: combinations.clone(), ..spec.clone() }.into());
        specs.push(spec.into());
    }
    specs
}

/// Returns BFM, CBFM and WCBFM with disjoint, overlapping and nested cuts.
fn matrices() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for (size, probes) in [(1, 1), (12, 3), (90, 4), (300, 7)] {
        for cuts in [&[][..], &[0b11]] {
            specs.push(matrix(&[size, size], cuts, probes));
            specs.push(matrix(&[size, 2 * size + 1], cuts, probes));
        }
    }
    let triples: Vec<u32> = (0..32).filter(|mask: &u32| mask.count_ones() == 3).collect();
    for index_map in [IndexMap::Offset, IndexMap::Rank] {
        for (sizes, cuts, probes) in [
            (&[4000][..], &[][..], 3),
            (&[30, 7, 18], &[], 2),
            (&[12, 12, 12], &[0b111], 4),
            (&[40, 25, 60], &[0b011, 0b110], 5),
            (&[40, 25, 60], &[0b011, 0b111], 3),
            (&[2000, 3000, 1000], &[0b011, 0b101, 0b110], 8),
            (&[3, 17, 5, 9], &[0b0011, 0b1100], 6),
            (&[8, 8, 8, 8], &[0b0111, 0b1110, 0b1001], 1),
            (&[40, 3, 30, 5], &[0b0011, 0b0110], 32),
            (&[6, 11, 4, 9, 7], &[0b0_0011, 0b1_1100], 3),
            (&[20, 9, 20, 9, 20], &triples, 13),
            (&[1, 1, 1, 1, 1], &[0b11], 2),
        ] {
            specs.push(FilterSpec::Matrix(MatrixSpec {
                sizes: sizes.to_vec(),
                cuts: cuts.to_vec(),
                probes,
                index_map,
            }));
        }
    }
    specs
}

/// Returns arrays of counters of every width.
fn of_counters() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for counter_bits in 1..=8 {
        for (counters, probes) in COUNTERS {
            specs.push(FilterSpec::Counting(CountingSpec { counters, probes, counter_bits }));
            specs.push(FilterSpec::SplitCounting(SplitCountingSpec {
                part: counters / u64::from(probes),
                probes,
                counter_bits,
            }));
        }
    }
    specs
}

/// Returns chains of such arrays, too short and long enough, with both rules.
fn chains() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for counter_bits in 1..=8 {
        for (counters, probes) in COUNTERS {
            for most_links in [1, 3, 200] {
                for refill in [Refill::FirstNotFull, Refill::Newest] {
                    specs.push(FilterSpec::Scalable(ScalableSpec {
                        part: counters / u64::from(probes) / 4,
                        probes,
                        counter_bits,
                        most_links,
                        refill,
                    }));
                }
            }
        }
    }
    specs
}

/// Numbers of counters and of hash functions.
const COUNTERS: [(u64, u32); 3] = [(50, 2), (1 << 12, 3), (30_000, 7)];

/// Returns d-left filters with cells of all widths, and cuckoo filters.
fn of_cells() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for buckets in [1, 8, 128, 1024, 3, 150] {
        for (remainder_bits, counter_bits) in
            [(3, 2), (12, 4), (14, 2), (19, 2), (20, 4), (22, 2), (30, 2)]
        {
            specs.push(FilterSpec::Dleft(DleftSpec { buckets, remainder_bits, counter_bits }));
        }
    }
    for (buckets, fingerprint_bits) in [(1, 8), (5, 4), (1024, 2), (1500, 9), (2001, 17), (800, 32)]
    {
        specs.push(FilterSpec::Cuckoo(CuckooSpec { buckets, fingerprint_bits }));
    }
    specs
}

/// Returns a subset filter that also stores these combinations (mask, bits of each value).
pub(crate) fn subset(
    attributes: usize,
    lines: u64,
    probes: u32,
    combinations: &[(u32, u32)],
) -> FilterSpec {
    FilterSpec::Subset(SubsetSpec {
        halving: false,
        attributes,
        shape: lines.into(),
        probes,
        combinations: combinations
            .iter()
            .map(|&(mask, probes)| PlannedCombination { mask, probes })
            .collect(),
    })
}

/// Returns a BFM, CBFM or WCBFM.
pub(crate) fn matrix(sizes: &[u64], cuts: &[u32], probes: u32) -> FilterSpec {
    FilterSpec::Matrix(MatrixSpec {
        sizes: sizes.to_vec(),
        cuts: cuts.to_vec(),
        probes,
        index_map: IndexMap::default(),
    })
}

pub(crate) fn bloom(bits: u64, probes: u32) -> FilterSpec {
    FilterSpec::Bloom(BloomSpec { bits, probes })
}
