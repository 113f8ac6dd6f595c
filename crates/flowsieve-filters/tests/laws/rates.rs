//! Compares observed false-positive rates with the formulas, for whole elements.

use crate::elements::{Elements, answers, arity, insert_all};
use crate::specs::{bloom, matrix, subset};
use crate::statistics::mean_and_errors;
use flowsieve_filters::matrix_sizing::{matrix_fpr, uncut_fpr};
use flowsieve_filters::sizing::{
    blocked_fpr, bloom_fpr, dleft_fpr, dleft_overfull_fpr, scalable_fpr, split_fpr,
};
use flowsieve_filters::{
    CartesianSpec, CmdbfSpec, Combination, CountingSpec, CuckooSpec, DleftSpec, FilterKind,
    FilterSpec, Known, MdbfSpec, MembershipFilter, Query, Refill, ScalableSpec, Sizing,
    SplitCountingSpec,
};

/// Uses several filters, so that the error includes the spread between filters of the same
/// parameters.
#[test]
fn observed_rates_are_those_of_the_formulas() {
    const ELEMENTS: u32 = 4000;
    const STRANGERS: u32 = 12_000;
    const RUNS: u64 = 60;
    let n = f64::from(ELEMENTS);
    let cmdbf = |combination| {
        FilterSpec::Cmdbf(CmdbfSpec { attributes: 2, bits: 1 << 14, probes: 3, combination })
    };
    let counting =
        FilterSpec::Counting(CountingSpec { counters: 24_000, probes: 4, counter_bits: 4 });
    let split =
        FilterSpec::SplitCounting(SplitCountingSpec { part: 6000, probes: 4, counter_bits: 3 });
    let cuckoo =
        |buckets, fingerprint_bits| FilterSpec::Cuckoo(CuckooSpec { buckets, fingerprint_bits });
    let dleft = |buckets, remainder_bits| {
        FilterSpec::Dleft(DleftSpec { buckets, remainder_bits, counter_bits: 2 })
    };
    for (spec, formula) in [
        (bloom(24_000, 4), bloom_fpr(24_000.0, 4, n)),
        (bloom(40_000, 7), bloom_fpr(40_000.0, 7, n)),
        (subset(2, 63, 8, &[]), blocked_fpr(63.0, 8, n)),
        (subset(2, 40, 5, &[]), blocked_fpr(40.0, 5, n)),
        (subset(2, 63, 6, &[]), blocked_fpr(63.0, 6, n)),
        (subset(2, 63, 16, &[]), blocked_fpr(63.0, 16, n)),
        (subset(2, 150, 13, &[]), blocked_fpr(150.0, 13, n)),
        (subset(2, 120, 20, &[]), blocked_fpr(120.0, 20, n)),
        (subset(2, 90, 11, &[]), blocked_fpr(90.0, 11, n)),
        // Cells are uniform for absent elements and for elements that share no values.
        (
            FilterSpec::Cartesian(CartesianSpec { attributes: 2, size: 150, probes: 4 }),
            uncut_fpr(150.0, 4, n, 2),
        ),
        (matrix(&[150, 150], &[], 4), matrix_fpr(&[150, 150], &[], 4, n, 0.0, 0b11)),
        (matrix(&[9000, 9000], &[0b11], 3), matrix_fpr(&[9000, 9000], &[0b11], 3, n, 0.0, 0b11)),
        // Absent elements share no value with an element, so the rates of the arrays multiply.
        (
            FilterSpec::Mdbf(MdbfSpec { attributes: 2, bits: 1 << 14, probes: 3 }),
            bloom_fpr(16_384.0, 3, n).powi(2),
        ),
        (cmdbf(Combination::Joint), bloom_fpr(16_384.0, 3, n).powi(3)),
        (cmdbf(Combination::XorIndependent), bloom_fpr(16_384.0, 3, n).powi(3)),
        (counting, bloom_fpr(24_000.0, 4, n)),
        (split, split_fpr(6000.0, 4, n)),
        (dleft(256, 8), dleft_fpr(16, n)),
        (dleft(128, 11), dleft_fpr(18, n)),
        (dleft(256, 10), dleft_fpr(18, n)),
        (dleft(200, 9), dleft_overfull_fpr(200, 9, n)),
        (dleft(131, 10), dleft_overfull_fpr(131, 10, n)),
        // Overfull: the stash takes the overflow, and changes no answer.
        (dleft(128, 10), dleft_fpr(17, n)),
        // 1 - (1 - 2 / (B (2^f - 1)))^n.
        (cuckoo(1100, 7), -(n * (-2.0 / (1100.0 * 127.0_f64)).ln_1p()).exp_m1()),
        (cuckoo(4000, 5), -(n * (-2.0 / (4000.0 * 31.0_f64)).ln_1p()).exp_m1()),
    ] {
        let rates: Vec<f64> = (0..RUNS)
            .map(|run| {
                let mut filter = spec.build();
                insert_all(&mut *filter, &Elements::apart(arity(&spec), 1000 * run, 0..ELEMENTS));
                let strangers =
                    Elements::apart(arity(&spec), 1000 * run, ELEMENTS..ELEMENTS + STRANGERS);
                let wrong = answers(&*filter, &strangers).into_iter().filter(|&yes| yes);
                wrong.count() as f64 / f64::from(STRANGERS)
            })
            .collect();
        let (mean, error, _) = mean_and_errors(&rates);
        assert!(
            (mean - formula).abs() < 4.0 * error,
            "{spec:?}: {mean} ± {error}, formula {formula}"
        );
    }
}

/// A matrix of few elements has the wanted rate, too, where all values occur, though not together.
#[test]
fn small_matrices_reach_the_wanted_rate() {
    for kind in [FilterKind::Cartesian, FilterKind::Bfm, FilterKind::Cbfm, FilterKind::Wcbfm] {
        // One attribute has no values that occur apart.
        let sizing = Sizing::Rate { fpr: 0.01, expected: 1000 };
        assert!(FilterSpec::new(kind, 1, sizing).unwrap().memory_bytes() < 1300, "{kind:?}");
        for (expected, fpr, runs) in [(20_u32, 0.1, 500), (20, 0.01, 2_000), (100, 0.01, 60)] {
            let sizing = Sizing::Rate { fpr, expected: expected.into() };
            let spec = FilterSpec::new(kind, 2, sizing).unwrap();
            let rates: Vec<f64> = (0..runs)
                .map(|run| {
                    let seed = 1000 * run;
                    let mut filter = spec.build();
                    insert_all(&mut *filter, &Elements::of(seed, (0..expected).map(|i| [i, i])));
                    let pairs = (0..expected).flat_map(|i| (0..expected).map(move |j| [i, j]));
                    let absent = Elements::of(seed, pairs.filter(|[i, j]| i != j));
                    let answers = answers(&*filter, &absent);
                    let all = answers.len() as f64;
                    answers.into_iter().filter(|&yes| yes).count() as f64 / all
                })
                .collect();
            let (mean, error, _) = mean_and_errors(&rates);
            assert!(mean < fpr + 4.0 * error, "{spec:?}: {mean} ± {error}, wanted {fpr}");
        }
    }
}

/// XOR of the addresses of one attribute alone is the array of this attribute.
#[test]
fn one_attribute_has_one_array_by_xor() {
    for (combination, arrays) in
        [(Combination::Joint, 2), (Combination::XorIndependent, 1), (Combination::XorSame, 1)]
    {
        let spec = CmdbfSpec { attributes: 1, bits: 4_000, probes: 3, combination };
        let values = |_| 1_000.0;
        let query = Query { mask: 1, full: 1, known: Known::default(), values: &values };
        let rate = FilterSpec::Cmdbf(spec).rate(&query).unwrap();
        assert!((rate - bloom_fpr(4_000.0, 3, 1_000.0).powi(arrays)).abs() < 1e-12);
    }
}

/// The number of hash functions does not depend on the bits in which counters are counted.
#[test]
fn filters_of_gigabytes_have_as_many_functions_as_smaller_ones() {
    for kind in [FilterKind::SplitCounting, FilterKind::Scalable] {
        for bytes in [1_u64 << 30, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 34, 1 << 40] {
            let sizing = Sizing::Memory { bytes, expected: Some(1000) };
            assert_eq!(FilterSpec::new(kind, 2, sizing).unwrap().probes(), 32, "{bytes}");
        }
    }
}

#[test]
fn a_chain_of_full_links_has_its_rate() {
    use flowsieve_filters::ScalableFilter;
    const STRANGERS: u32 = 12_000;
    for (probes, links) in [(3, 1), (5, 2), (5, 4), (7, 8)] {
        let rates: Vec<f64> = (0..60_u64)
            .map(|run| {
                let mut filter = ScalableFilter::new(512, probes, 4, links + 1, Refill::default());
                let elements = Elements::apart(2, 1000 * run, 0..20_000);
                for element in elements.iter() {
                    filter.insert(element);
                    if filter.links() > links as usize {
                        break;
                    }
                }
                let strangers = Elements::apart(2, 1000 * run, 20_000..20_000 + STRANGERS);
                let wrong = answers(&filter, &strangers).into_iter().filter(|&yes| yes);
                wrong.count() as f64 / f64::from(STRANGERS)
            })
            .collect();
        let (mean, error, _) = mean_and_errors(&rates);
        let formula = scalable_fpr(0.5_f64.powi(probes as i32), links);
        assert!(
            (mean - formula).abs() < 4.0 * error,
            "{probes} {links}: {mean} ± {error}, formula {formula}"
        );
    }
}

/// Compares the rate of small and large chains with their links, near the capacity and beyond.
#[test]
fn a_chain_has_its_predicted_rate_at_any_load() {
    const RUNS: u32 = 300;
    const STRANGERS: u32 = 2_000;
    for (part, probes, most_links, elements) in [
        // The sizes of 1 KiB for the elements of a busy second, and of a tiny filter.
        (64, 4, 8, 509),
        (64, 4, 8, 254),
        (8, 8, 8, 40),
        (8, 8, 8, 90),
        (128, 2, 4, 700),
        (512, 5, 3, 1_000),
        (512, 5, 3, 2_500),
        (1000, 10, 1, 4_000),
    ] {
        let spec = FilterSpec::Scalable(ScalableSpec {
            part,
            probes,
            counter_bits: 4,
            most_links,
            refill: Refill::default(),
        });
        let predicted = spec.rate(&Query {
            mask: 0b11,
            full: 0b11,
            known: Known::default(),
            values: &|_| f64::from(elements),
        });
        let predicted = predicted.expect("a chain answers for whole elements");
        let rates: Vec<f64> = (0..u64::from(RUNS))
            .map(|run| {
                let mut filter = spec.build();
                insert_all(&mut *filter, &Elements::apart(2, 7000 * run, 0..elements));
                let strangers = Elements::apart(2, 7000 * run, elements..elements + STRANGERS);
                let wrong = answers(&*filter, &strangers).into_iter().filter(|&yes| yes);
                wrong.count() as f64 / f64::from(STRANGERS)
            })
            .collect();
        let (mean, error, _) = mean_and_errors(&rates);
        println!(
            "{part} {probes} {most_links} {elements}: {mean:.5} ± {error:.5}, predicted {predicted:.5}"
        );
        assert!(
            (mean - predicted).abs() < 4.0 * error,
            "{spec:?} after {elements}: {mean} ± {error}, predicted {predicted}"
        );
    }
}
