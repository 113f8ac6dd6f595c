//! Laws that every filter keeps, over a table of structures and parameters.
//!
//! A new structure joins by a row in [`specs`]; one that has a formula for its rate also by a row in
//! `observed_rates_are_those_of_the_formulas`. All seeds are fixed.

use flowsieve::filters::matrix_sizing::{matrix_fpr, uncut_fpr};
use flowsieve::filters::saved::{SavedFilter, UnionError};
use flowsieve::filters::sizing::{
    blocked_fpr, bloom_fpr, dleft_fpr, hip_variance, scalable_fpr, split_fpr,
};
use flowsieve::filters::{
    BloomLayout, Combination, DigestColumns, ElementDigests, Estimate, FilterSpec, FilterStats,
    IndexMap, MatrixSpec, MembershipFilter, Pattern, PatternAnswer, PlannedCombination, Refill,
    Sighting,
};
use flowsieve::hashing::{Digest, Digester};

/// Small filters, some of them far too small for the elements of the laws.
fn specs() -> Vec<FilterSpec> {
    let mut specs = Vec::new();
    for (bits, probes) in [(1, 1), (100, 3), (1 << 13, 4), (100_003, 7), (1 << 17, 32)] {
        specs.push(bloom(bits, probes, BloomLayout::Anywhere));
        specs.push(FilterSpec::Mdbf {
            attributes: 2,
            bits,
            probes,
        });
    }
    for (bits, probes) in [(512, 1), (16 * 512, 4), (200 * 512, 8)] {
        specs.push(bloom(bits, probes, BloomLayout::Lines));
        specs.push(subset(bits / 512, probes, &[]));
        specs.push(subset(bits / 512, probes, &[(0b01, 2), (0b10, 5)]));
    }
    for (size, probes) in [(1, 1), (12, 3), (90, 4), (300, 7)] {
        specs.push(FilterSpec::Cartesian {
            attributes: 2,
            size,
            probes,
        });
        for cuts in [&[][..], &[0b11]] {
            specs.push(matrix(&[size, size], cuts, probes));
            specs.push(matrix(&[size, 2 * size + 1], cuts, probes));
        }
    }
    for combination in [
        Combination::Joint,
        Combination::XorIndependent,
        Combination::XorSame,
    ] {
        for (bits, probes) in [(1 << 8, 2), (1 << 14, 4)] {
            specs.push(FilterSpec::Cmdbf {
                attributes: 2,
                bits,
                probes,
                combination,
            });
        }
    }
    for counter_bits in 1..=8 {
        for (counters, probes) in [(50, 2), (1 << 12, 3), (30_000, 7)] {
            specs.push(FilterSpec::Counting {
                counters,
                probes,
                counter_bits,
            });
            let part = counters / u64::from(probes);
            specs.push(FilterSpec::SplitCounting {
                part,
                probes,
                counter_bits,
            });
            for most_links in [1, 3, 200] {
                for refill in [Refill::FirstNotFull, Refill::Newest] {
                    specs.push(FilterSpec::Scalable {
                        part: part / 4,
                        probes,
                        counter_bits,
                        most_links,
                        refill,
                    });
                }
            }
        }
    }
    for bucket_bits in [0, 3, 7, 10] {
        for (remainder_bits, counter_bits) in [(3, 2), (12, 4), (14, 2), (20, 4), (30, 2)] {
            specs.push(FilterSpec::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            });
        }
    }
    for spec in &specs {
        spec.check().expect("the table has filters that can be");
    }
    specs
}

/// A subset filter that also stores these combinations (mask, bits of each value).
fn subset(lines: u64, probes: u32, combinations: &[(u32, u32)]) -> FilterSpec {
    FilterSpec::Subset {
        attributes: 2,
        lines,
        probes,
        combinations: combinations
            .iter()
            .map(|&(mask, probes)| PlannedCombination { mask, probes })
            .collect(),
    }
}

/// BFM, CBFM or WCBFM.
fn matrix(sizes: &[u64], cuts: &[u32], probes: u32) -> FilterSpec {
    FilterSpec::Matrix(MatrixSpec {
        sizes: sizes.to_vec(),
        cuts: cuts.to_vec(),
        probes,
        index_map: IndexMap::default(),
    })
}

fn bloom(bits: u64, probes: u32, layout: BloomLayout) -> FilterSpec {
    FilterSpec::Bloom {
        bits,
        probes,
        layout,
    }
}

/// Elements of two attributes, by column.
struct Elements {
    whole: Vec<Digest>,
    attributes: Vec<Digest>,
}

impl Elements {
    /// Elements with these numbers, whose attributes have `values` values each: elements share them.
    fn sharing(seed: u64, values: u32, numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut elements = Self {
            whole: Vec::new(),
            attributes: Vec::new(),
        };
        for number in numbers {
            let pair = [number % values, number.wrapping_mul(2_654_435_761) % values];
            for (place, value) in pair.into_iter().enumerate() {
                let digester = Digester::new(seed + 1 + place as u64);
                elements
                    .attributes
                    .push(digester.digest(&value.to_le_bytes()));
            }
            elements
                .whole
                .push(Digester::new(seed).digest(&number.to_le_bytes()));
        }
        elements
    }

    /// Elements with these numbers, none of which has a value of another.
    fn apart(seed: u64, numbers: impl IntoIterator<Item = u32>) -> Self {
        Self::sharing(seed, u32::MAX, numbers)
    }

    fn iter(&self) -> impl Iterator<Item = ElementDigests<'_>> {
        self.columns().iter()
    }

    fn columns(&self) -> DigestColumns<'_> {
        DigestColumns {
            whole: &self.whole,
            attributes: &self.attributes,
        }
    }
}

/// A stream of `length` elements with numbers below `distinct`, most of which come several times.
fn stream(seed: u64, distinct: u32, length: u32) -> Elements {
    let digester = Digester::new(seed ^ 0x5eed);
    Elements::sharing(
        seed,
        97,
        (0..length).map(|i| {
            let random = digester.digest(&i.to_le_bytes()).value();
            (random % u64::from(distinct)) as u32
        }),
    )
}

fn answers(filter: &dyn MembershipFilter, elements: &Elements) -> Vec<bool> {
    elements.iter().map(|e| filter.contains(e)).collect()
}

fn insert_all(filter: &mut dyn MembershipFilter, elements: &Elements) -> Vec<Sighting> {
    elements.iter().map(|e| filter.insert(e)).collect()
}

/// Everything that can be seen of a filter.
fn state(
    filter: &dyn MembershipFilter,
    probes: &Elements,
) -> (Vec<bool>, FilterStats, Option<Estimate>) {
    (answers(filter, probes), filter.stats(), filter.distinct())
}

#[test]
fn what_was_inserted_is_contained() {
    let elements = stream(1, 2000, 3000);
    for spec in specs() {
        let mut filter = spec.build();
        for (i, element) in elements.iter().enumerate() {
            filter.insert(element);
            assert!(filter.contains(element), "{spec:?} {i}");
        }
        assert!(!answers(&*filter, &elements).contains(&false), "{spec:?}");
    }
}

#[test]
fn an_insert_says_what_contains_would_have_said() {
    let elements = stream(2, 2000, 3000);
    for spec in specs() {
        let mut filter = spec.build();
        for (i, element) in elements.iter().enumerate() {
            let before = filter.contains(element);
            let sighting = filter.insert(element);
            assert_eq!(sighting == Sighting::Repeat, before, "{spec:?} {i}");
        }
    }
}

#[test]
fn a_batch_is_its_elements_one_by_one() {
    let elements = stream(3, 2000, 3000);
    let others = stream(4, 2000, 3000);
    for spec in specs() {
        let mut one_by_one = spec.build();
        let mut batched = spec.build();
        let sightings = insert_all(&mut *one_by_one, &elements);
        let mut appended = vec![Sighting::First];
        batched.insert_batch(elements.columns(), &mut appended);
        assert_eq!(appended[1..], sightings, "{spec:?}");
        for asked in [&elements, &others] {
            let mut answers = vec![true];
            batched.contains_batch(asked.columns(), &mut answers);
            let expected: Vec<bool> = asked.iter().map(|e| one_by_one.contains(e)).collect();
            assert_eq!(answers[1..], expected, "{spec:?}");
        }
        assert_eq!(
            state(&*batched, &others),
            state(&*one_by_one, &others),
            "{spec:?}"
        );
    }
}

#[test]
fn a_cleared_filter_is_a_new_one() {
    let elements = stream(5, 2000, 3000);
    for spec in specs() {
        let mut filter = spec.build();
        let fresh = state(&*filter, &elements);
        assert!(!fresh.0.contains(&true), "{spec:?}");
        assert_eq!(fresh.2.is_some(), spec.counts_distinct(), "{spec:?}");
        let sightings = insert_all(&mut *filter, &elements);
        let full = state(&*filter, &elements);
        if let Some(removable) = filter.as_removable() {
            elements.iter().take(100).for_each(|e| removable.remove(e));
        }
        filter.clear();
        assert_eq!(state(&*filter, &elements), fresh, "{spec:?}");
        assert_eq!(insert_all(&mut *filter, &elements), sightings, "{spec:?}");
        assert_eq!(state(&*filter, &elements), full, "{spec:?}");
    }
}

#[test]
fn a_removal_undoes_an_insertion() {
    // Some of the first are among the second, so that elements are there more than once.
    let first = stream(6, 400, 400);
    let second = Elements::sharing(6, 97, (300..700).rev());
    let others = stream(7, 4000, 4000);
    let (mut undone, mut undone_refilled) = (0, 0);
    for spec in specs() {
        let mut filter = spec.build();
        let refills = matches!(
            spec,
            FilterSpec::Scalable {
                refill: Refill::FirstNotFull,
                ..
            }
        );
        if filter.as_removable().is_none() {
            continue;
        }
        insert_all(&mut *filter, &first);
        let before = (answers(&*filter, &others), filter.stats());
        insert_all(&mut *filter, &second);
        let exact = filter.stats().counters.unwrap().saturated == 0 && filter.distinct().is_some();
        let removable = filter.as_removable().unwrap();
        second.iter().for_each(|e| removable.remove(e));
        assert_eq!(filter.distinct(), None, "{spec:?}");
        assert!(!answers(&*filter, &first).contains(&false), "{spec:?}");
        // Saturated counters, and buckets given up, stay; so does what several links claim, which
        // happens under the published rule of a chain only.
        let ambiguous =
            |filter: &dyn MembershipFilter| filter.stats().counters.unwrap().ambiguous_removals;
        assert!(refills || ambiguous(&*filter) == 0, "{spec:?}");
        if !exact || ambiguous(&*filter) != 0 {
            continue;
        }
        undone += 1;
        undone_refilled += u32::from(refills);
        assert_eq!(
            (answers(&*filter, &others), filter.stats()),
            before,
            "{spec:?}"
        );
        let removable = filter.as_removable().unwrap();
        first.iter().for_each(|e| removable.remove(e));
        if refills && ambiguous(&*filter) != 0 {
            continue;
        }
        assert_eq!(filter.stats(), spec.build().stats(), "{spec:?}");
        assert!(!answers(&*filter, &first).contains(&true), "{spec:?}");
        // What is not contained is left alone.
        let removable = filter.as_removable().unwrap();
        first.iter().for_each(|e| removable.remove(e));
        assert_eq!(filter.stats(), spec.build().stats(), "{spec:?}");
    }
    assert!(undone >= 60, "only {undone} filters were exact");
    assert!(undone_refilled >= 6, "only {undone_refilled} chains");
}

/// Elements come and go at random, some of them several times; each removal undoes an insertion.
#[test]
fn justified_removals_take_nothing_from_others() {
    const DISTINCT: u32 = 700;
    let elements = Elements::sharing(9, 97, 0..DISTINCT);
    let columns: Vec<ElementDigests<'_>> = elements.iter().collect();
    let digester = Digester::new(10);
    for spec in specs() {
        let mut filter = spec.build();
        if filter.as_removable().is_none() {
            continue;
        }
        let mut there = [0_u32; DISTINCT as usize];
        for step in 0..6000_u32 {
            let random = digester.digest(&step.to_le_bytes()).value();
            let which = (random % u64::from(DISTINCT)) as usize;
            // Fills up in the first half, empties in the second.
            let insert = (random >> 32) % 100 < if step < 3000 { 60 } else { 40 };
            if insert {
                filter.insert(columns[which]);
                there[which] += 1;
            } else if there[which] > 0 {
                let removable = filter.as_removable().expect("it is one");
                removable.remove(columns[which]);
                there[which] -= 1;
            }
            if step % 500 == 499 {
                for (&element, &count) in columns.iter().zip(&there) {
                    assert!(count == 0 || filter.contains(element), "{spec:?} {step}");
                }
            }
        }
    }
}

#[test]
fn no_pattern_of_an_inserted_element_is_absent() {
    let elements = stream(8, 2000, 3000);
    for spec in specs() {
        let mut filter = spec.build();
        insert_all(&mut *filter, &elements);
        let Some(filter) = filter.as_multi_attribute() else {
            continue;
        };
        for element in elements.iter() {
            for mask in 0..4_u32 {
                let attributes: Vec<Option<Digest>> = element
                    .attributes
                    .iter()
                    .enumerate()
                    .map(|(i, &digest)| (mask >> i & 1 == 1).then_some(digest))
                    .collect();
                let pattern = Pattern {
                    whole: (mask == 3).then_some(element.whole),
                    attributes: &attributes,
                };
                assert_eq!(pattern.mask(), mask);
                assert_ne!(
                    filter.contains_where(pattern),
                    PatternAnswer::Absent,
                    "{spec:?}"
                );
            }
        }
    }
}

#[test]
fn memory_is_what_the_spec_says() {
    for spec in specs() {
        let built = spec.build().stats().memory_bytes;
        let most = match spec {
            FilterSpec::Scalable { most_links, .. } => built * u64::from(most_links),
            _ => built,
        };
        // Arrays of bits are rounded up to words.
        assert!(most.abs_diff(spec.memory_bytes()) < 16, "{spec:?}");
    }
}

/// The bytes of a filter.
fn saved(filter: &SavedFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).expect("a vector takes everything");
    bytes
}

fn loaded(bytes: &[u8]) -> SavedFilter {
    SavedFilter::read(&mut &*bytes, bytes.len() as u64).expect("what was saved is loaded")
}

/// A filter in three shards with these elements.
fn sharded(spec: &FilterSpec, elements: &Elements) -> SavedFilter {
    let mut filter = SavedFilter::empty(spec.clone(), 0, b"pairs".to_vec(), 3)
        .expect("the table has filters that can be");
    elements.iter().for_each(|element| filter.insert(element));
    filter
}

fn saved_answers(filter: &SavedFilter, elements: &Elements) -> Vec<(bool, Vec<PatternAnswer>)> {
    let ask = |element: ElementDigests<'_>| {
        let patterns = (0..4_u32).map(|mask| {
            let values: Vec<Option<Digest>> = element
                .attributes
                .iter()
                .enumerate()
                .map(|(i, &digest)| (mask >> i & 1 == 1).then_some(digest))
                .collect();
            filter.contains_where(Pattern {
                whole: (mask == 3).then_some(element.whole),
                attributes: &values,
            })
        });
        (filter.contains(element), patterns.collect())
    };
    elements.iter().map(ask).collect()
}

#[test]
fn a_loaded_filter_is_the_one_that_was_saved() {
    let elements = stream(20, 700, 1000);
    let more = stream(20, 1500, 500);
    for spec in specs() {
        let mut filter = sharded(&spec, &elements);
        let bytes = saved(&filter);
        let mut again = loaded(&bytes);
        assert_eq!(saved(&again), bytes, "{spec:?}");
        assert_eq!(again.spec(), &spec);
        // And so is everything that comes after it.
        for _ in 0..2 {
            assert_eq!(again.stats(), filter.stats(), "{spec:?}");
            assert_eq!(again.distinct(), filter.distinct(), "{spec:?}");
            assert_eq!(
                saved_answers(&again, &more),
                saved_answers(&filter, &more),
                "{spec:?}"
            );
            more.iter().for_each(|element| again.insert(element));
            more.iter().for_each(|element| filter.insert(element));
        }
        assert_eq!(saved(&again), saved(&filter), "{spec:?}");
    }
}

#[test]
fn a_union_is_the_filter_of_both_inputs() {
    let (first, second) = (
        Elements::sharing(21, 97, 0..500),
        Elements::sharing(21, 97, 300..900),
    );
    let both = Elements::sharing(21, 97, (0..500).chain(300..900));
    let others = Elements::sharing(21, 97, 0..3000);
    for spec in specs() {
        let (mut union, with) = (sharded(&spec, &first), sharded(&spec, &second));
        let before = saved(&union);
        if matches!(spec, FilterSpec::Scalable { .. } | FilterSpec::Dleft { .. }) {
            assert_eq!(union.unite(&with), Err(UnionError::Structure), "{spec:?}");
            assert_eq!(saved(&union), before);
            continue;
        }
        union.unite(&with).unwrap();
        let whole = sharded(&spec, &both);
        assert_eq!(union.stats(), whole.stats(), "{spec:?}");
        assert_eq!(
            saved_answers(&union, &others),
            saved_answers(&whole, &others),
            "{spec:?}"
        );
        // What does not rest on a stream of insertions is bit for bit the same.
        let (bytes, whole_bytes) = (saved(&union), saved(&whole));
        if matches!(spec, FilterSpec::Mdbf { .. }) {
            assert_eq!(bytes, whole_bytes, "{spec:?}");
        }
        let again = loaded(&bytes);
        assert_eq!(saved(&again), bytes, "{spec:?}");
        assert_eq!(again.distinct(), union.distinct(), "{spec:?}");
        if let (Some(estimate), Some(watched)) = (union.distinct(), whole.distinct()) {
            let error = estimate.distinct - 900.0;
            let allowed = 5.0 * estimate.std_error() + 5.0 * watched.std_error() + 9.0;
            // A filter that is nearly full counts badly, and knows it.
            if whole.stats().fill_ratio < 0.9 {
                assert!(error.abs() < allowed, "{spec:?} {estimate:?}");
            }
        }
        // Nothing comes from nothing, and the estimate of a stream stays.
        let mut none = sharded(&spec, &Elements::sharing(21, 97, []));
        none.unite(&with).unwrap();
        assert_eq!(saved(&none), saved(&with), "{spec:?}");
        none.unite(&sharded(&spec, &Elements::sharing(21, 97, [])))
            .unwrap();
        assert_eq!(saved(&none), saved(&with), "{spec:?}");
    }
}

/// Mean of the numbers and its standard error; the standard deviation.
fn mean_and_errors(numbers: &[f64]) -> (f64, f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt(), variance.sqrt())
}

/// Over several filters, so that the spread between filters of the same parameters is in the error.
#[test]
fn observed_rates_are_those_of_the_formulas() {
    const ELEMENTS: u32 = 4000;
    const STRANGERS: u32 = 12_000;
    const RUNS: u64 = 60;
    let n = f64::from(ELEMENTS);
    let cmdbf = |combination| FilterSpec::Cmdbf {
        attributes: 2,
        bits: 1 << 14,
        probes: 3,
        combination,
    };
    let counting = FilterSpec::Counting {
        counters: 24_000,
        probes: 4,
        counter_bits: 4,
    };
    let split = FilterSpec::SplitCounting {
        part: 6000,
        probes: 4,
        counter_bits: 3,
    };
    let dleft = |bucket_bits, remainder_bits| FilterSpec::Dleft {
        bucket_bits,
        remainder_bits,
        counter_bits: 2,
    };
    for (spec, formula) in [
        (
            bloom(24_000, 4, BloomLayout::Anywhere),
            bloom_fpr(24_000.0, 4, n),
        ),
        (
            bloom(40_000, 7, BloomLayout::Anywhere),
            bloom_fpr(40_000.0, 7, n),
        ),
        (
            bloom(512 * 63, 8, BloomLayout::Lines),
            blocked_fpr(63.0, 8, n),
        ),
        (
            bloom(512 * 40, 5, BloomLayout::Lines),
            blocked_fpr(40.0, 5, n),
        ),
        (subset(63, 6, &[]), blocked_fpr(63.0, 6, n)),
        // The cells of strangers are uniform, and so are those of elements that share no values.
        (
            FilterSpec::Cartesian {
                attributes: 2,
                size: 150,
                probes: 4,
            },
            uncut_fpr(150.0, 4, n, 2),
        ),
        (
            matrix(&[150, 150], &[], 4),
            matrix_fpr(&[150, 150], &[], 4, n, 0.0, 0b11),
        ),
        (
            matrix(&[9000, 9000], &[0b11], 3),
            matrix_fpr(&[9000, 9000], &[0b11], 3, n, 0.0, 0b11),
        ),
        // Strangers have no value of an element, so the arrays' rates multiply.
        (
            FilterSpec::Mdbf {
                attributes: 2,
                bits: 1 << 14,
                probes: 3,
            },
            bloom_fpr(16_384.0, 3, n).powi(2),
        ),
        (cmdbf(Combination::Joint), bloom_fpr(16_384.0, 3, n).powi(3)),
        (
            cmdbf(Combination::XorIndependent),
            bloom_fpr(16_384.0, 3, n).powi(3),
        ),
        (counting, bloom_fpr(24_000.0, 4, n)),
        (split, split_fpr(6000.0, 4, n)),
        (dleft(8, 8), dleft_fpr(16, n)),
        (dleft(7, 11), dleft_fpr(18, n)),
        (dleft(8, 10), dleft_fpr(18, n)),
        // Overfull: the stash takes what the buckets cannot, and changes no answer.
        (dleft(7, 10), dleft_fpr(17, n)),
    ] {
        let rates: Vec<f64> = (0..RUNS)
            .map(|run| {
                let mut filter = spec.build();
                insert_all(&mut *filter, &Elements::apart(1000 * run, 0..ELEMENTS));
                let strangers = Elements::apart(1000 * run, ELEMENTS..ELEMENTS + STRANGERS);
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

#[test]
fn a_chain_of_full_links_has_its_rate() {
    use flowsieve::filters::ScalableFilter;
    const STRANGERS: u32 = 12_000;
    for (probes, links) in [(3, 1), (5, 2), (5, 4), (7, 8)] {
        let rates: Vec<f64> = (0..60_u64)
            .map(|run| {
                let mut filter = ScalableFilter::new(512, probes, 4, links + 1, Refill::default());
                let elements = Elements::apart(1000 * run, 0..20_000);
                for element in elements.iter() {
                    filter.insert(element);
                    if filter.links() > links as usize {
                        break;
                    }
                }
                let strangers = Elements::apart(1000 * run, 20_000..20_000 + STRANGERS);
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

/// Estimates of many runs over `elements` distinct elements, each of which comes twice; with what they
/// state as their variance.
fn estimates(spec: &FilterSpec, elements: u32, runs: u64) -> (Vec<f64>, f64) {
    let mut stated = 0.0;
    let estimates = (0..runs)
        .map(|run| {
            let mut filter = spec.build();
            let (early, late) = (elements / 2, elements);
            // Values are shared: the count must not need strangers.
            for numbers in [0..early, early / 2..late, 0..late] {
                insert_all(&mut *filter, &Elements::sharing(1000 * run, 61, numbers));
            }
            let estimate = filter.distinct().expect("no removal has ended the count");
            stated += estimate.variance / runs as f64;
            estimate.distinct
        })
        .collect();
    (estimates, stated)
}

#[test]
fn counts_are_unbiased_and_as_exact_as_they_say() {
    const ELEMENTS: u32 = 1500;
    const RUNS: u64 = 400;
    for spec in [
        bloom(6000, 3, BloomLayout::Anywhere),
        bloom(512 * 14, 6, BloomLayout::Lines),
        subset(14, 8, &[]),
        FilterSpec::Cmdbf {
            attributes: 2,
            bits: 4096,
            probes: 2,
            combination: Combination::Joint,
        },
        FilterSpec::Counting {
            counters: 6000,
            probes: 3,
            counter_bits: 4,
        },
        FilterSpec::SplitCounting {
            part: 2000,
            probes: 3,
            counter_bits: 2,
        },
        FilterSpec::Scalable {
            part: 300,
            probes: 4,
            counter_bits: 4,
            most_links: 20,
            refill: Refill::FirstNotFull,
        },
        FilterSpec::Scalable {
            part: 300,
            probes: 4,
            counter_bits: 4,
            most_links: 2,
            refill: Refill::Newest,
        },
        FilterSpec::Dleft {
            bucket_bits: 6,
            remainder_bits: 8,
            counter_bits: 2,
        },
        FilterSpec::Dleft {
            bucket_bits: 6,
            remainder_bits: 5,
            counter_bits: 4,
        },
    ] {
        let (estimates, stated) = estimates(&spec, ELEMENTS, RUNS);
        let (mean, error, sd) = mean_and_errors(&estimates);
        let n = f64::from(ELEMENTS);
        assert!((mean - n).abs() < 4.0 * error, "{spec:?}: {mean} ± {error}");
        // The relative error of a standard deviation of R normal numbers is 1 / √(2R).
        let tolerance = 4.0 / (2.0 * RUNS as f64).sqrt();
        assert!(
            (sd / stated.sqrt() - 1.0).abs() < tolerance,
            "{spec:?}: {sd}, stated {}",
            stated.sqrt()
        );
    }
}

/// Counts of a Bloom filter, raw and unbiased, against an independent computation: bits an element,
/// k, bias of the raw count, standard error of the unbiased one, both relative, at n = 10 000.
#[test]
fn raw_and_unbiased_counts_of_the_bloom_filter() {
    const ELEMENTS: u32 = 10_000;
    const RUNS: u64 = 200;
    for (bits, probes, bias, sd) in [
        (1_u32, 1, -0.367_88, 0.008_475),
        (2, 1, -0.213_06, 0.005_454),
        (2, 2, -0.168_09, 0.004_813),
        (4, 3, -0.045_61, 0.002_240),
        (6, 4, -0.013_93, 0.001_200),
        (8, 2, -0.017_34, 0.001_337),
        (8, 6, -0.004_07, 0.000_642),
        (10, 7, -0.001_34, 0.000_367),
        (16, 4, -0.000_52, 0.000_228),
    ] {
        let n = f64::from(ELEMENTS);
        let spec = bloom(u64::from(bits * ELEMENTS), probes, BloomLayout::Anywhere);
        let (raw, unbiased): (Vec<f64>, Vec<f64>) = (0..RUNS)
            .map(|run| {
                let mut filter = spec.build();
                let digester = Digester::new(run);
                let first = (0..ELEMENTS)
                    .filter(|i| {
                        let element = ElementDigests {
                            whole: digester.digest(&i.to_le_bytes()),
                            attributes: &[],
                        };
                        filter.insert(element) == Sighting::First
                    })
                    .count();
                (
                    first as f64,
                    filter
                        .distinct()
                        .expect("no removal has ended the count")
                        .distinct,
                )
            })
            .unzip();
        let (mean, error, _) = mean_and_errors(&raw);
        // The bias is given to 0.001 %.
        assert!(
            (mean / n - 1.0 - bias).abs() < 4.0 * error / n + 6e-6,
            "{bits} {probes}: raw {mean} ± {error}"
        );
        let (mean, error, spread) = mean_and_errors(&unbiased);
        assert!(
            (mean - n).abs() < 4.0 * error,
            "{bits} {probes}: {mean} ± {error}"
        );
        let tolerance = 4.0 / (2.0 * RUNS as f64).sqrt();
        assert!(
            (spread / n / sd - 1.0).abs() < tolerance,
            "{bits} {probes}: {spread}"
        );
        let formula = (hip_variance(f64::from(bits), probes, 1.0) / n).sqrt();
        assert!((formula - sd).abs() < 0.6e-6);
    }
}
