//! Compares observed false-positive rates with the formulas, for queries with some or all
//! attributes.
//!
//! An observation may differ by four standard errors of the binomial distribution. Rates also
//! differ between filters with the same parameters, so each filter gets few queries: that
//! difference stays small in comparison.

use crate::elements::{Elements, ask, insert_all};
use crate::specs::{matrix, subset};
use crate::statistics::Count;
use flowsieve_filters::matrix_sizing::{PartLoad, cmdbf_fpr, matrix_fpr, mdbf_fpr, uncut_fpr};
use flowsieve_filters::sizing::shared_blocked_fpr;
use flowsieve_filters::{
    CartesianSpec, CmdbfSpec, Combination, FilterSpec, MatrixSpec, MdbfSpec, PatternAnswer,
};
use std::collections::HashSet;

const ELEMENTS: u32 = 4000;
const QUESTIONS: u32 = 1024;
const RUNS: u64 = 200;

/// Returns how often the attributes in each mask of the elements `asked` are found after those
/// `inserted`, over all runs.
fn observed(
    spec: &FilterSpec,
    masks: &[u32],
    inserted: impl Fn(u64) -> Elements,
    asked: impl Fn(u64) -> Elements,
) -> Vec<Count> {
    spec.check().unwrap_or_else(|error| panic!("{error}"));
    let mut counts = vec![Count::default(); masks.len()];
    for run in 0..RUNS {
        let mut filter = spec.build();
        insert_all(&mut *filter, &inserted(1000 * run));
        let multi = filter.as_multi_attribute().expect("it answers in part");
        for element in asked(1000 * run).iter() {
            for (count, &mask) in counts.iter_mut().zip(masks) {
                let answer = ask(element, mask, |pattern| multi.contains_where(pattern));
                assert_ne!(answer, PatternAnswer::Unknown, "{spec:?} {mask:#b}");
                let yes = answer != PatternAnswer::Absent;
                if mask == (1 << element.attributes.len()) - 1 {
                    assert_eq!(filter.contains(element), yes, "{spec:?}");
                }
                count.record(yes);
            }
        }
    }
    counts
}

/// Returns all masks that are not empty.
fn all_masks(attributes: usize) -> Vec<u32> {
    (1..1 << attributes).collect()
}

fn members<const ARITY: usize>(seed: u64) -> Elements {
    Elements::apart(ARITY, seed, 0..ELEMENTS)
}

/// Returns elements that share no value with a member.
fn strangers<const ARITY: usize>(seed: u64) -> Elements {
    Elements::apart(ARITY, seed, ELEMENTS..ELEMENTS + QUESTIONS)
}

/// Returns elements each of whose values is that of a member with probability 1/4, independently,
/// and no two of them of the same member.
fn acquaintances(seed: u64) -> Elements {
    let tuple = |number: u32| {
        std::array::from_fn::<u32, 3, _>(|place| {
            // Two bits of the number for each attribute, so that all cases are equally frequent.
            if (number >> (2 * place)).is_multiple_of(4) {
                number % (ELEMENTS / 3) * 3 + place as u32
            } else {
                ELEMENTS + number
            }
        })
    };
    Elements::of(seed, (0..QUESTIONS).map(tuple))
}

/// Returns members whose attributes all have the member's number.
fn numbered(seed: u64) -> Elements {
    Elements::of(seed, (0..ELEMENTS).map(|number| [number; 3]))
}

fn matrix_rate(spec: &FilterSpec, known: f64, mask: u32) -> f64 {
    let FilterSpec::Matrix(MatrixSpec { sizes, cuts, probes, .. }) = spec else {
        panic!("{spec:?} is no matrix");
    };
    matrix_fpr(sizes, cuts, *probes, f64::from(ELEMENTS), known, mask)
}

/// Every maximal legal part of a query is new, so the rate is the product of their rates. The sizes
/// are such that the effect of shared attributes ([`crate::shared_attributes`]) cannot be seen.
#[test]
fn matrices_have_the_product_of_the_rates_of_the_maximal_parts() {
    let all = all_masks(3);
    for (spec, masks) in [
        // BFM; only the triple cut; CBFM with one cut; WCBFM with one cut, with overlapping cuts,
        // and with a cut and a superset of it.
        (matrix(&[31, 31, 31], &[], 4), &*all),
        (matrix(&[70, 80, 90], &[0b111], 1), &[0b011, 0b101, 0b110]),
        (matrix(&[120, 120, 120], &[0b011], 2), &all),
        (matrix(&[90, 300, 140], &[0b011], 2), &all),
        (matrix(&[100, 6000, 150], &[0b011, 0b110], 3), &all),
        (matrix(&[100, 6000, 150], &[0b011, 0b110, 0b111], 3), &all),
        (matrix(&[9000, 5000, 7000], &[0b011, 0b101, 0b110], 1), &all),
    ] {
        check_matrix(&spec, masks, members::<3>, strangers::<3>);
    }
    for spec in [
        matrix(&[130, 170, 150, 140], &[0b0011, 0b1100], 1),
        matrix(&[150, 130, 120, 140], &[0b0111, 0b1110, 0b1001], 2),
    ] {
        let masks = [0b0101, 0b0011, 0b0111, 0b1010, 0b1111];
        check_matrix(&spec, &masks, members::<4>, strangers::<4>);
    }
}

fn check_matrix(
    spec: &FilterSpec,
    masks: &[u32],
    inserted: impl Fn(u64) -> Elements,
    asked: impl Fn(u64) -> Elements,
) {
    let counts = observed(spec, masks, inserted, asked);
    for (&mask, count) in masks.iter().zip(counts) {
        let rate = matrix_rate(spec, 0.0, mask);
        count.assert_near(rate, &format!("{spec:?} {mask:#b}"));
    }
}

/// In queries for single attributes, α is the probability that the value occurs.
#[test]
fn known_values_are_found_as_often_as_they_occur() {
    const KNOWN: f64 = 0.25;
    let n = f64::from(ELEMENTS);
    let (bits, probes) = (1 << 13, 2);
    let pairs_cut = matrix(&[9000, 5000, 7000], &[0b011, 0b101, 0b110], 2);
    let mdbf = FilterSpec::Mdbf(MdbfSpec { attributes: 3, bits, probes });
    let cmdbf =
        |combination| FilterSpec::Cmdbf(CmdbfSpec { attributes: 3, bits, probes, combination });
    for spec in [
        pairs_cut,
        mdbf,
        cmdbf(Combination::Joint),
        cmdbf(Combination::XorIndependent),
        cmdbf(Combination::XorSame),
    ] {
        let masks = all_masks(3);
        for known in [0.0, KNOWN] {
            let counts = if known > 0.0 {
                observed(&spec, &masks, numbered, acquaintances)
            } else {
                observed(&spec, &masks, members::<3>, strangers::<3>)
            };
            for (&mask, count) in masks.iter().zip(counts) {
                let rate = match spec {
                    FilterSpec::Cmdbf(_) if mask == 0b111 => {
                        cmdbf_fpr(bits as f64, probes, n, known, 3)
                    }
                    FilterSpec::Matrix(_) => matrix_rate(&spec, known, mask),
                    _ => mdbf_fpr(bits as f64, probes, n, known, mask.count_ones()),
                };
                count.assert_near(rate, &format!("{spec:?} α = {known}, {mask:#b}"));
            }
        }
    }
}

/// A reversed pair only passes the second stage of a CMDBF that XORs the same functions.
#[test]
fn reversed_pairs_pass_the_second_stage_only_with_the_same_functions() {
    let n = f64::from(ELEMENTS);
    let (bits, probes) = (1 << 14, 3);
    let pair = |number: u32| [number, ELEMENTS + QUESTIONS + number];
    for (combination, stages) in
        [(Combination::Joint, 3), (Combination::XorIndependent, 3), (Combination::XorSame, 2)]
    {
        let spec = FilterSpec::Cmdbf(CmdbfSpec { attributes: 2, bits, probes, combination });
        // The seed of a value does not depend on its attribute, so that it is the same in both.
        let of = |seed: u64, reversed: bool| {
            let mut elements = Elements::of(seed, (0..ELEMENTS).flat_map(|n| pair(n).map(|v| [v])));
            elements.whole = elements.whole.chunks(2).map(|both| both[0]).collect();
            if reversed {
                elements.attributes.chunks_mut(2).for_each(|both| both.swap(0, 1));
                let unlike = Elements::of(seed, (0..ELEMENTS).map(|n| [ELEMENTS * 9 + n]));
                elements.whole = unlike.whole;
            }
            elements
        };
        let counts = observed(&spec, &[0b11], |seed| of(seed, false), |seed| of(seed, true));
        let stage = mdbf_fpr(bits as f64, probes, n, 0.0, 1);
        counts[0].assert_near(stage.powi(stages), &format!("{combination:?}"));
    }
}

#[test]
fn a_cartesian_join_answers_as_the_projection() {
    let n = f64::from(ELEMENTS);
    for (size, probes, masks) in
        [(30, 3, &[0b111][..]), (18, 1, &[0b111]), (110, 2, &[0b011, 0b101, 0b110])]
    {
        let spec = FilterSpec::Cartesian(CartesianSpec { attributes: 3, size, probes });
        let counts = observed(&spec, masks, members::<3>, strangers::<3>);
        for (&mask, count) in masks.iter().zip(counts) {
            let rate = uncut_fpr(size as f64, probes, n, mask.count_ones());
            count.assert_near(rate, &format!("{spec:?} {mask:#b}"));
        }
    }
}

/// The values of absent pairs occur with D others each, so their rows are fuller than others.
#[test]
fn the_rate_of_known_values_is_that_of_their_rows() {
    for (size, probes, partners) in [(150_u32, 4, 1), (300, 2, 2)] {
        let values = (f64::from(size * size) * 0.7 / f64::from(probes * partners)) as u32;
        let pair = move |value: u32, other: u32| [value, (value + other) % values];
        let spec = matrix(&[size.into(), size.into()], &[], probes);
        let inserted = |seed| {
            let pairs = (0..values).flat_map(|v| (0..partners).map(move |other| pair(v, other)));
            Elements::of(seed, pairs)
        };
        let asked = |seed| {
            let pairs = (0..QUESTIONS).map(|i| pair(i % values, partners + 1 + i / values));
            Elements::of(seed, pairs)
        };
        let counts = observed(&spec, &[0b11], inserted, asked);
        let elements_of = |mask: u32| match mask {
            0b11 => f64::from(values * partners),
            _ => f64::from(values),
        };
        let load = PartLoad::new(&[f64::from(size); 2], 0b11, true, elements_of);
        let rate = load.rate(probes, 1.0);
        counts[0].assert_near(rate, &format!("{size} k = {probes}, D = {partners}"));
        // The formula for evenly spread values does not include that.
        let even = uncut_fpr(f64::from(size), probes, elements_of(0b11), 2);
        assert!(counts[0].errors_from(even) > 4.0, "{counts:?} {even}");
    }
}

/// Compares the rate of each stored combination, for absent values and for values that all occur,
/// though not together.
#[test]
fn planned_combinations_have_the_rate_of_the_lines_they_share() {
    let planned = [(0b001, 3), (0b011, 4), (0b110, 7)];
    for (lines, probes) in [(130, 5), (80, 8)] {
        let spec = subset(3, lines, probes, &planned);
        // Few sources, more destinations, a name for each two elements.
        let member = |number: u32| [number % 400, number % 1999, number / 2];
        let inserted = |seed| Elements::of(seed, (0..ELEMENTS).map(member));
        let distinct = |mask: u32| {
            let part = |number: u32| {
                let values = member(number);
                let kept = |place: usize| (mask >> place & 1 == 1).then_some(values[place]);
                [kept(0), kept(1), kept(2)]
            };
            (0..ELEMENTS).map(part).collect::<HashSet<_>>().len() as f64
        };
        let mut written = vec![(f64::from(ELEMENTS), probes)];
        written.extend(planned.map(|(mask, probes)| (distinct(mask), probes)));
        let rate = |probes| shared_blocked_fpr(lines as f64, probes, &written);
        let unknown = |number: u32| [number, number, number].map(|value| ELEMENTS + value);
        // These pairs are absent, but all of their values occur.
        let apart = |number: u32| [number % 400, (number + 7) % 1999, (number / 2 + 3) % 2000];
        let there: HashSet<[u32; 2]> = (0..ELEMENTS)
            .map(member)
            .flat_map(|[a, b, c]| [[a, 10_000 + b], [20_000 + b, c]])
            .collect();
        let others: Vec<[u32; 3]> = (0..)
            .map(apart)
            .filter(|&[a, b, c]| {
                !there.contains(&[a, 10_000 + b]) && !there.contains(&[20_000 + b, c])
            })
            .take(QUESTIONS as usize)
            .collect();
        let strange = observed(&spec, &[0b001, 0b011, 0b110, 0b111], inserted, |seed| {
            Elements::of(seed, (0..QUESTIONS).map(unknown))
        });
        let known = observed(&spec, &[0b011, 0b110, 0b111], inserted, |seed| {
            Elements::of(seed, others.iter().copied())
        });
        for (count, probes) in strange.into_iter().zip([3, 4, 7, probes]) {
            count.assert_near(rate(probes), &format!("{lines} lines, {probes} bits"));
        }
        for (count, probes) in known.into_iter().zip([4, 7, probes]) {
            count.assert_near(rate(probes), &format!("{lines} lines, {probes} bits, known"));
        }
    }
}
