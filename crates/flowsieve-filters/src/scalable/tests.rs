#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

use super::*;
use crate::hashing::Digester;
use crate::saved::{FilterState, UnionError};
use std::collections::HashSet;

fn whole(digest: &Digest) -> ElementDigests<'_> {
    ElementDigests { whole: *digest, attributes: &[] }
}

/// Old links lose elements while new ones are added. All removals are justified, so no remaining
/// element may disappear, and in the end the chain is one empty link.
#[test]
fn removals_are_exact_under_churn() {
    let digests: Vec<Digest> =
        (0..4000_u32).map(|i| Digester::new(3).digest(&i.to_le_bytes())).collect();
    let mut filter = ScalableFilter::new(200, 3, 8, 16, Refill::Newest);
    let mut most = 0;
    for (i, digest) in digests.iter().enumerate() {
        filter.insert(whole(digest));
        if i % 3 == 0 {
            filter.insert(whole(digest));
        }
        most = most.max(filter.links());
        if i >= 600 {
            let leaving = i - 600;
            filter.remove(whole(&digests[leaving]));
            if leaving % 3 == 0 {
                assert!(filter.contains(whole(&digests[leaving])), "{leaving}");
                filter.remove(whole(&digests[leaving]));
            }
            for (j, still) in digests[leaving + 1..=i].iter().enumerate().step_by(37) {
                assert!(filter.contains(whole(still)), "{j} after {leaving}");
            }
        }
    }
    assert!((5..=16).contains(&most), "{most}");
    for (i, digest) in digests.iter().enumerate().skip(3400) {
        filter.remove(whole(digest));
        if i % 3 == 0 {
            filter.remove(whole(digest));
        }
    }
    assert_eq!(filter.links(), 1);
    assert!(filter.links[0].is_empty());
}

/// Elements are inserted, stay for a random time and are removed, so links are refilled many times.
/// No present element is ever missed, and only ambiguous removals leave counters.
#[test]
fn refilled_links_lose_nothing_and_keep_little() {
    const ELEMENTS: u32 = 20_000;
    let (part, probes) = (300, 10);
    let mut filter = ScalableFilter::new(part, probes, 8, 16, Refill::FirstNotFull);
    let mut there: Vec<Digest> = Vec::new();
    let (mut removals, mut most) = (0_u32, 0);
    for i in 0..ELEMENTS {
        let digest = Digester::new(7).digest(&i.to_le_bytes());
        filter.insert(whole(&digest));
        there.push(digest);
        most = most.max(filter.links());
        // The number of present elements goes up and down between 500 and 1500.
        let wanted = 1000 + (500.0 * (f64::from(i) / 1500.0).sin()) as usize;
        while there.len() > wanted {
            let leaving = digest.value() as usize % there.len();
            filter.remove(whole(&there.swap_remove(leaving)));
            removals += 1;
        }
        if i % 50 == 0 {
            assert!(there.iter().all(|digest| filter.contains(whole(digest))), "{i}");
        }
    }
    for digest in there.drain(..) {
        filter.remove(whole(&digest));
        removals += 1;
    }
    assert_eq!(removals, ELEMENTS);
    assert!((5..16).contains(&most), "{most}");
    let stats = filter.stats().counters.expect("it has counters");
    let left = stats.ambiguous_removals;
    let rate = 1.0 - (1.0 - 0.5_f64.powi(probes as i32)).powi(most as i32 - 1);
    let expected = rate * f64::from(ELEMENTS);
    println!("{left} of {removals} left over, at most {expected} expected, {most} links");
    assert!(left > 20 && (left as f64) < expected, "{left} {expected}");
    // Only their counters are above zero.
    let nonzero: f64 = filter
        .links
        .iter()
        .map(|link| link.array.fill_ratio() * (part * u64::from(probes)) as f64)
        .sum();
    assert!(nonzero.round() as u64 <= left * u64::from(probes), "{nonzero} {left}");
    filter.clear();
    assert_eq!(filter.stats().counters, Some(CounterStats::default()));
}

/// A link in the middle that has room takes the next new element, and an empty one is freed.
#[test]
fn the_oldest_link_with_room_takes_new_elements() {
    let digests: Vec<Digest> =
        (0..1200_u32).map(|i| Digester::new(4).digest(&i.to_le_bytes())).collect();
    for refill in [Refill::FirstNotFull, Refill::Newest] {
        let mut filter = ScalableFilter::new(256, 12, 4, 20, refill);
        for digest in &digests[..600] {
            filter.insert(whole(digest));
        }
        assert_eq!(filter.links(), 4, "177 elements fill a link");
        // Elements 200 to 300 are in the second link; without them it has room.
        for digest in &digests[200..300] {
            filter.remove(whole(digest));
        }
        let newest = filter.links[3].array.fill_ratio();
        for digest in &digests[600..650] {
            filter.insert(whole(digest));
        }
        let grew = filter.links[3].array.fill_ratio() > newest;
        assert_eq!(grew, refill == Refill::Newest);
        let leaving = [&digests[600..650], &digests[150..200], &digests[300..400]];
        for digest in leaving.into_iter().flatten() {
            filter.remove(whole(digest));
        }
        assert_eq!(filter.links(), 3, "the second link is empty");
        assert!(digests[400..600].iter().all(|digest| filter.contains(whole(digest))));
    }
}

#[test]
fn the_bound_holds_and_loses_nothing() {
    let mut filter = ScalableFilter::new(64, 4, 4, 3, Refill::FirstNotFull);
    let digests: Vec<Digest> =
        (0..2000_u32).map(|i| Digester::new(5).digest(&i.to_le_bytes())).collect();
    for digest in &digests {
        filter.insert(whole(digest));
    }
    assert_eq!(filter.links(), 3);
    assert_eq!(filter.stats().memory_bytes, 3 * 64 * 4 / 2);
    assert!(digests.iter().all(|digest| filter.contains(whole(digest))));
    filter.clear();
    assert_eq!(filter.links(), 1);
    assert!(!digests.iter().any(|digest| filter.contains(whole(digest))));
}

fn digests(numbers: std::ops::Range<u32>) -> Vec<Digest> {
    numbers.map(|i| Digester::new(6).digest(&i.to_le_bytes())).collect()
}

fn chain(most_links: u32, refill: Refill, elements: &[Digest]) -> ScalableFilter {
    let mut filter = ScalableFilter::new(128, 12, 4, most_links, refill);
    for digest in elements {
        filter.insert(whole(digest));
    }
    filter
}

/// 88 elements fill a link.
#[test]
fn a_union_has_the_links_of_both_and_adds_up_small_ones() {
    let (first, second) = (digests(0..240), digests(1000..1230));
    let (mut union, other) = (chain(9, Refill::Newest, &first), chain(9, Refill::Newest, &second));
    assert_eq!((union.links(), other.links()), (3, 3));
    union.unite(&other).unwrap();
    // The two full links of each stay, and so do those with 64 and 54 elements, whose sum would be
    // more than half full.
    assert_eq!(union.links(), 6);
    let numbers: Vec<u64> = union.links.iter().map(|link| link.function_set).collect();
    assert_eq!(numbers[..3], numbers[3..]);
    let estimate = union.distinct().unwrap();
    let exact = first.iter().chain(&second).collect::<HashSet<_>>().len() as u64;
    assert!(estimate.point().is_none() && estimate.lower() <= exact, "{estimate:?}");
    assert!(estimate.upper().unwrap() >= exact, "{estimate:?}");
    // The first link that is not full takes new elements, whatever the rule was.
    let before = union.links[2].array.fill_ratio();
    union.insert(whole(&digests(5000..5001)[0]));
    assert!(union.links[2].array.fill_ratio() > before);
    for digest in digests(6000..6200) {
        union.insert(whole(&digest));
    }
    // A link with functions that no other link has.
    assert_eq!(union.links[6].function_set, FIRST_FUNCTION_SET + 3);

    // Two small chains become one link, as if all elements had been inserted into it.
    let mut union = chain(1, Refill::FirstNotFull, &first[..40]);
    let other = chain(1, Refill::FirstNotFull, &second[..40]);
    union.unite(&other).unwrap();
    let all: Vec<Digest> = [&first[..40], &second[..40]].concat();
    let at_once = chain(1, Refill::FirstNotFull, &all);
    assert_eq!(union.links(), 1);
    assert_eq!(union.stats(), at_once.stats());
    // The same again, as long as the link is not full.
    let error = union.unite(&other).map(|()| union.links());
    assert_eq!(error, Ok(1), "the same elements fill nothing more");
    let error = union.unite(&chain(1, Refill::FirstNotFull, &first[100..180]));
    assert_eq!(error, Err(UnionError::Links { links: 2, most: 1 }));
    assert_eq!(union.links(), 1);
}

/// A link of the first input that falsely claims an element of the second one must not lose
/// counters.
#[test]
fn removals_from_a_union_make_no_false_negatives() {
    for refill in [Refill::FirstNotFull, Refill::Newest] {
        // Few functions, so that links often claim elements that others hold.
        let fill = |elements: &[Digest]| {
            let mut filter = ScalableFilter::new(150, 3, 8, 60, refill);
            for digest in elements {
                filter.insert(whole(digest));
            }
            filter
        };
        let (first, second) = (digests(0..600), digests(500..1100));
        let mut union = fill(&first);
        union.unite(&fill(&second)).unwrap();
        for (number, digest) in second.iter().enumerate() {
            union.remove(whole(digest));
            let left = first.iter().chain(&second[number + 1..]);
            assert!(left.clone().all(|digest| union.contains(whole(digest))));
        }
        let stats = union.stats().counters.unwrap();
        assert!(stats.ambiguous_removals >= 100, "{stats:?}");
        assert_eq!(union.rule(), Refill::FirstNotFull);
        union.clear();
        assert_eq!((union.links(), union.rule()), (1, refill));
        assert_eq!(union.distinct(), Some(Estimate::default()));
    }
}

/// Returns the mean rate of chains after this many elements, computed exactly from the contents of
/// each, and its standard error.
fn simulated(spec: &ScalableSpec, elements: u32, runs: u32) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for run in 0..runs {
        let mut filter = ScalableFilter::new(
            spec.part,
            spec.probes,
            spec.counter_bits,
            spec.most_links,
            spec.refill,
        );
        let digester = Digester::new(0x51_0000 + u64::from(run));
        for element in 0..elements {
            filter.insert(whole(&digester.digest(&element.to_le_bytes())));
        }
        let rate = repeat_probability(&filter.links);
        sum += rate;
        squares += rate * rate;
    }
    let runs = f64::from(runs);
    let mean = sum / runs;
    (mean, ((squares / runs - mean * mean).max(0.0) / (runs - 1.0)).sqrt())
}

/// Compares predicted rates with those of simulated chains, and checks the largest difference in
/// standard errors.
fn check_rates(parts: &[u64], functions: &[u32], loads: &[f64], runs: impl Fn(u64) -> u32) {
    let (mut cells, mut worst) = (0_u32, 0.0_f64);
    for &part in parts {
        let mut worst_here = 0.0_f64;
        for &probes in functions {
            for most_links in [1, 3, 8] {
                for load in loads {
                    let capacity = part as f64 * std::f64::consts::LN_2 * f64::from(most_links);
                    let elements = (load * capacity) as u32;
                    let spec = ScalableSpec {
                        part,
                        probes,
                        counter_bits: 4,
                        most_links,
                        refill: Refill::default(),
                    };
                    let predicted = rate::chain_fpr(part, probes, most_links, elements.into());
                    let (mean, error) = simulated(&spec, elements, runs(part));
                    // If less than one counter is clear on average, few chains have one, which
                    // lowers their rate by 1 / m; perhaps none of the simulated ones has. With few
                    // elements nothing is random: allow for the last digits of a sum.
                    let (left, m) = (1.0 - predicted, part as f64);
                    let rare = if left * m < 1.0 { left / m } else { 0.0 };
                    let least = (rare / f64::from(runs(part))).sqrt().max(1e-12 * predicted);
                    let errors = (mean - predicted) / error.max(least);
                    let cell = format!(
                        "m = {part}, k = {probes}, {most_links} links, {load} of the capacity: \
                         {mean:.6} ± {error:.6}, predicted {predicted:.6}, {errors:+.2} errors"
                    );
                    println!("{cell}");
                    assert!(errors.abs() < 4.0, "{cell}");
                    cells += 1;
                    worst_here = worst_here.max(errors.abs());
                }
            }
        }
        println!("m = {part}: {worst_here:.2} standard errors at most, {} runs", runs(part));
        worst = worst.max(worst_here);
    }
    println!("{cells} cells, {worst:.2} standard errors at most");
}

/// On both sides of the border between [`super::small_rate`] and [`super::large_rate`].
#[test]
fn predicted_rates_hold_near_the_capacity_and_beyond() {
    check_rates(&[64, 129], &[2, 4, 7], &[0.5, 0.95, 1.5, 3.0], |_| 200);
}

/// `cargo test --release -p flowsieve-filters --lib predicted_rates_hold_in_a_wide_grid -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes in a release build"]
fn predicted_rates_hold_in_a_wide_grid() {
    let loads = [0.2, 0.5, 0.8, 0.95, 1.0, 1.1, 1.5, 2.0, 3.0];
    let parts = [8, 64, rate::SMALL, rate::SMALL + 1, 256, 512, 1024, 4096];
    check_rates(&parts, &[1, 2, 4, 7, 12], &loads, |part| {
        if part <= rate::SMALL {
            20_000
        } else if part <= 512 {
            3_000
        } else {
            500
        }
    });
}
