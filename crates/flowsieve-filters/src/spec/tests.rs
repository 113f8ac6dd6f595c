//! Parameters and the filters that are built with them.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;
use crate::sizing::{bloom_fpr, dleft_overfull_fpr, scalable_fpr, split_fpr};
use crate::{CartesianSpec, CountingSpec, DleftSpec, ScalableSpec, SplitCountingSpec, SubsetSpec};
use crate::{MatrixSpec, PlannedCombination, Refill};

const WITH_COUNTERS: [FilterKind; 4] =
    [FilterKind::Counting, FilterKind::SplitCounting, FilterKind::Scalable, FilterKind::Dleft];

#[test]
fn memory_is_not_exceeded_and_the_specs_say_what_the_filters_take() {
    for kind in WITH_COUNTERS {
        for bytes in [64, 100, 4096, 1_000_003] {
            for expected in [None, Some(1), Some(1000), Some(1_000_000)] {
                let spec = FilterSpec::new(kind, 0, Sizing::Memory { bytes, expected }).unwrap();
                assert!(spec.memory_bytes() <= bytes, "{spec:?}");
                let filter = spec.build();
                let links = match spec {
                    FilterSpec::Scalable(ScalableSpec { most_links, .. }) => u64::from(most_links),
                    _ => 1,
                };
                assert_eq!(filter.stats().memory_bytes * links, spec.memory_bytes());
            }
        }
    }
}

/// Each structure takes the requested memory within a hundredth, or within one counter of each
/// part. Except for matrices and buckets, whose next size is far larger.
#[test]
fn memory_is_filled() {
    for kind in FilterKind::all().filter(|kind| !kind.is_matrix() && *kind != FilterKind::Dleft) {
        for bytes in [64_u64, 100, 440, 1000, 1536, 4096, 10_007, 1_000_003] {
            for attributes in [1, 2, 5] {
                let sizing = Sizing::Memory { bytes, expected: Some(bytes) };
                let spec = FilterSpec::new(kind, attributes, sizing).unwrap();
                let memory = spec.memory_bytes();
                let parts = match spec {
                    FilterSpec::SplitCounting(spec) => u64::from(spec.probes),
                    FilterSpec::Scalable(spec) => u64::from((spec.probes + 1) * spec.most_links),
                    _ => 1,
                };
                assert!(memory <= bytes, "{spec:?}: {memory}");
                assert!(
                    bytes - memory <= (bytes / 100).max(parts),
                    "{spec:?}: {memory} of {bytes}"
                );
                let links = spec.memory_bytes() / spec.built_bytes();
                assert_eq!(spec.build().stats().memory_bytes * links, memory, "{spec:?}");
            }
        }
    }
}

#[test]
fn rates_are_reached() {
    for fpr in [0.2, 0.01, 0.001, 0.000_001] {
        for expected in [1, 1000, 123_456, 10_000_000] {
            let n = expected as f64;
            for kind in WITH_COUNTERS {
                let spec = FilterSpec::new(kind, 0, Sizing::Rate { fpr, expected }).unwrap();
                let reached = match spec {
                    FilterSpec::Counting(CountingSpec { counters, probes, .. }) => {
                        bloom_fpr(counters as f64, probes, n)
                    }
                    FilterSpec::SplitCounting(SplitCountingSpec { part, probes, .. }) => {
                        split_fpr(part as f64, probes, n)
                    }
                    FilterSpec::Scalable(ScalableSpec { probes, most_links, .. }) => {
                        scalable_fpr(0.5_f64.powi(probes as i32), most_links)
                    }
                    FilterSpec::Dleft(DleftSpec { buckets, remainder_bits, .. }) => {
                        dleft_overfull_fpr(buckets, remainder_bits, n)
                    }
                    _ => 1.0,
                };
                assert!(reached <= fpr * (1.0 + 1e-9), "{spec:?} {reached} {fpr}");
            }
        }
    }
}

/// The paper's claim: for a rate, a d-left filter takes at most half the memory of a counting
/// filter.
#[test]
fn d_left_filters_take_half_the_memory_of_counting_filters() {
    let bytes = |kind, fpr, expected| {
        let spec = FilterSpec::new(kind, 0, Sizing::Rate { fpr, expected });
        spec.unwrap().memory_bytes() as f64
    };
    for expected in [10_000, 123_456, 500_000, 1 << 20] {
        for (fpr, most) in [(1e-3, 0.6), (1e-4, 0.45), (1e-6, 0.4), (1e-7, 0.4)] {
            let bytes = |kind| bytes(kind, fpr, expected);
            let ratio = bytes(FilterKind::Dleft) / bytes(FilterKind::Counting);
            assert!(ratio < most, "{fpr} {expected}: {ratio}");
        }
    }
}

/// In the same memory narrow cells hold more elements, and wide ones distinguish more.
#[test]
fn the_cells_of_a_d_left_filter_are_those_of_the_lowest_rate() {
    let remainder = |expected| {
        let sizing = Sizing::Memory { bytes: 4 << 20, expected };
        match FilterSpec::new(FilterKind::Dleft, 0, sizing).unwrap() {
            FilterSpec::Dleft(spec) => (spec.remainder_bits, spec.buckets),
            _ => unreachable!("it was asked for"),
        }
    };
    assert_eq!(remainder(None), (14, 1 << 16));
    assert_eq!(remainder(Some(500_000)), (30, 1 << 15));
    assert_eq!(remainder(Some(1_200_000)), (22, 43_690));
    assert_eq!(remainder(Some(1_700_000)), (14, 1 << 16));
}

#[test]
fn errors_name_the_rule_and_a_way_out() {
    let error = |spec: FilterSpec| spec.check().unwrap_err().to_string();
    assert_eq!(
        error(FilterSpec::Counting(CountingSpec { counters: 10, probes: 4, counter_bits: 9 })),
        "a counter has 1 to 8 bits, not 9; 4 works"
    );
    assert_eq!(
        error(FilterSpec::Scalable(ScalableSpec {
            part: 10,
            probes: 4,
            counter_bits: 4,
            most_links: 0,
            refill: Refill::default(),
        })),
        "a chain has 1 to 1024 links, not 0; 8 works"
    );
    assert_eq!(
        error(FilterSpec::Dleft(DleftSpec { buckets: 16, remainder_bits: 31, counter_bits: 2 })),
        "the remainder of a d-left cell has 1 to 30 bits, not 31; 14 works"
    );
    let tiny = Sizing::Memory { bytes: 63, expected: None };
    assert_eq!(
        FilterSpec::new(FilterKind::Scalable, 0, tiny).unwrap_err().to_string(),
        "a scalable filter needs at least 64 bytes, not 63; ask for 64 or more"
    );
    // 500 elements in 2^34 lines: 500 · 2^-34 · 64^-8 = 1.03e-22.
    let rate = |fpr, expected| {
        let sizing = Sizing::Rate { fpr, expected };
        FilterSpec::new(FilterKind::Subset, 2, sizing).unwrap_err().to_string()
    };
    // Counters that no array has take some memory, and filters beyond all memory are refused.
    for counter_bits in [0, 200] {
        let spec = FilterSpec::from(CountingSpec { counters: 1000, probes: 4, counter_bits });
        assert!(spec.memory_bytes() > 0 && spec.check().is_err());
    }
    let huge = FilterSpec::from(CartesianSpec { attributes: 2, size: 1 << 21, probes: 1 });
    for (shards, said) in [(1024, "the system does not give"), (1 << 20, "not 1048576")] {
        let error = crate::saved::SavedFilter::empty(huge.clone(), 0, Vec::new(), shards);
        assert!(error.unwrap_err().to_string().contains(said), "{shards}");
    }
    // No parameters of the library's users overflow.
    for (attributes, expected) in [(usize::MAX, 1), (64, 1), (2, u64::MAX), (2, 1 << 48)] {
        for kind in FilterKind::all() {
            for sizing in [
                Sizing::Rate { fpr: 0.01, expected },
                Sizing::Memory { bytes: 65_536, expected: Some(expected) },
            ] {
                let made = FilterSpec::new(kind, attributes, sizing);
                assert!(made.is_err() || attributes == 2, "{kind:?}, {attributes}, {sizing:?}");
            }
        }
    }
    assert_eq!(rate(0.01, 0), "a rate is for at least one expected element, not 0; 1000 works");
    assert_eq!(
        rate(1e-300, 500),
        "a filter in cache lines has at most 32 bits an element and reaches rates down to 1.0e-22 here, in 1 TiB, not 1e-300; 0.001 works"
    );
}

const MATRICES: [FilterKind; 4] =
    [FilterKind::Cartesian, FilterKind::Bfm, FilterKind::Cbfm, FilterKind::Wcbfm];

#[test]
fn matrices_fit_their_memory_and_use_most_of_it() {
    let bytes = 1 << 20;
    for kind in MATRICES {
        for attributes in 1..=5 {
            for expected in [None, Some(50_000)] {
                let sizing = Sizing::Memory { bytes, expected };
                let spec = FilterSpec::new(kind, attributes, sizing).unwrap();
                let memory = spec.memory_bytes();
                assert!(memory <= bytes && memory > bytes / 2, "{spec:?}: {memory}");
                assert_eq!(spec.build().distinct().is_some(), spec.counts_distinct());
                assert!(spec.needs_attributes());
            }
        }
    }
}

#[test]
fn matrices_for_a_rate_are_about_as_large_as_a_standard_filter() {
    let sizing = Sizing::Rate { fpr: 0.001, expected: 100_000 };
    let bytes = |kind| FilterSpec::new(kind, 3, sizing).unwrap().memory_bytes() as f64;
    for kind in MATRICES {
        let ratio = bytes(kind) / bytes(FilterKind::Bloom);
        assert!(ratio > 0.5 && ratio < 1.2, "{}: {ratio}", kind.name());
    }
}

/// In the setting of the paper's Fig. 7 one cut is better than none by formula, and keeping the
/// three pairs is better than both.
#[test]
fn the_cuts_of_a_matrix_are_those_of_the_lowest_rate() {
    let sizing = Sizing::Memory { bytes: 1 << 24, expected: Some(5_000_000) };
    let chosen = FilterSpec::new(FilterKind::Cbfm, 3, sizing).unwrap();
    let FilterSpec::Matrix(spec) = &chosen else {
        panic!("a CBFM is a matrix");
    };
    assert_eq!(spec.cuts, [0b111]);
    assert_eq!(FilterSpec::new(FilterKind::Wcbfm, 3, sizing).unwrap(), chosen);
}

#[test]
fn broken_rules_say_what_works() {
    let error = |kind, attributes, bytes| {
        let sizing = Sizing::Memory { bytes, expected: None };
        FilterSpec::new(kind, attributes, sizing).unwrap_err().to_string()
    };
    for kind in MATRICES {
        assert!(error(kind, 17, 1 << 20).contains("1 to 16 attributes, not 17; 3 works"));
        assert!(error(kind, 3, 4).contains("at least 8 bytes, not 4"));
    }
    // 2^7 cells of size 1.
    assert!(error(FilterKind::Bfm, 7, 15).contains("at least 16 bytes, not 15"));
    assert!(error(FilterKind::Bfm, 13, 1 << 20).contains("at most 4096 combinations"));
    let cartesian =
        |size, probes| FilterSpec::Cartesian(CartesianSpec { attributes: 3, size, probes });
    let error = |spec: FilterSpec| spec.check().unwrap_err().to_string();
    assert!(error(cartesian(0, 4)).contains("2 works"));
    assert!(error(cartesian(1 << 20, 4)).contains("2 works"));
    assert!(error(cartesian(9, 0)).contains("not 0; 4 works"));
}

/// The parameters agree with the filter about combinations.
#[test]
fn parameters_tell_what_filters_store_and_count() {
    let sizing = Sizing::Memory { bytes: 4096, expected: Some(100) };
    let mut specs: Vec<FilterSpec> = [
        FilterKind::Bloom,
        FilterKind::Mdbf,
        FilterKind::Cmdbf,
        FilterKind::Subset,
        FilterKind::Counting,
        FilterKind::Dleft,
        FilterKind::Cartesian,
        FilterKind::Bfm,
    ]
    .into_iter()
    .map(|kind| FilterSpec::new(kind, 3, sizing).unwrap())
    .collect();
    specs.push(FilterSpec::Matrix(MatrixSpec::cbfm(3, 9, &[0b011], 2)));
    let planned = [(0b001, 3), (0b110, 2)];
    specs.push(FilterSpec::Subset(SubsetSpec {
        halving: false,
        attributes: 3,
        shape: 8.into(),
        probes: 4,
        combinations: planned.map(|(mask, probes)| PlannedCombination { mask, probes }).into(),
    }));
    for spec in &specs {
        let filter = spec.build();
        let filter = filter.as_multi_attribute();
        for mask in 1..0b111 {
            let distinct = filter.is_some_and(|filter| filter.distinct_of(mask).is_some());
            assert_eq!(spec.counts_distinct_of(mask), distinct, "{spec:?} {mask:b}");
            let first = filter.is_some_and(|filter| filter.first_of(mask).is_some());
            assert_eq!(spec.counts_first_of(mask), first, "{spec:?} {mask:b}");
            assert_eq!(spec.stored().contains(&mask), first, "{spec:?} {mask:b}");
        }
    }
    assert_eq!(specs[8].stored(), [0b001, 0b010, 0b100, 0b101, 0b110]);
    assert_eq!(specs[9].probes_of(0b110), Some(2));
    assert_eq!(specs[9].probes_of(0b010), None);
}

#[test]
fn a_filter_that_knows_all_has_the_best_number_of_bits_in_its_lines() {
    for (bytes, expected) in [(64, 40), (100, 25), (256, 100), (700, 300), (4096, 3000)] {
        let sizing = Sizing::Memory { bytes, expected: Some(expected) };
        let spec = FilterSpec::new(FilterKind::Subset, 1, sizing).unwrap().knowing(Some(expected));
        let FilterSpec::Subset(subset) = &spec else { panic!("{spec:?}") };
        let rate = |probes| LinesOf::from(subset.shape).fpr(probes, expected as f64);
        let least = (1..=8).map(rate).fold(1.0, f64::min);
        assert!(rate(spec.probes()) <= least, "{spec:?}");
    }
}
