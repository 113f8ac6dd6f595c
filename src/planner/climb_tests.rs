//! The search for cuts: against every family where there are few, against cuts by hand where there
//! are many, and within its bounds.

use super::complex::Stored;
use super::families::{WORK, Within, all, climbed};
use super::tests::{near, request, row};
use super::*;
use crate::filters::matrix_sizing::{cut_families, matrix_fpr};
use crate::filters::{FilterSpec, IndexMap, MatrixSpec};

/// Numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Some wanted combinations, numbers of values from 1 to a million, and a goal.
fn any_request(numbers: &mut Numbers, attributes: usize) -> PlanRequest {
    let full = (1_u32 << attributes) - 1;
    let mut wanted: Vec<(u32, f64)> = Vec::new();
    for _ in 0..=numbers.below(6) {
        let mask = 1 + numbers.below(u64::from(full)) as u32;
        if wanted.iter().all(|&(other, _)| other != mask) {
            wanted.push((mask, 1.0 + numbers.below(10) as f64));
        }
    }
    let mut number =
        |most_digits: u64| 1 + numbers.next() % 10_u64.pow(1 + (numbers.below(most_digits)) as u32);
    let mut n: Vec<(u32, u64)> = (0..attributes).map(|one| (1 << one, number(4))).collect();
    let largest = n.iter().map(|&(_, n)| n).max().unwrap();
    let most = n.iter().fold(1_u64, |product, &(_, n)| product.saturating_mul(n));
    n.push((full, (largest * number(3)).min(most)));
    let goal = match numbers.below(3) {
        0 => Goal::Rate { fpr: 0.1_f64.powi(1 + numbers.below(5) as i32) },
        1 => Goal::AttributeRate { fpr: 0.1_f64.powi(1 + numbers.below(4) as i32) },
        _ => Goal::Memory { bytes: 64 << numbers.below(12) },
    };
    let mut request = request(attributes, &wanted, &n, goal);
    request.known = [0.0, 0.5, 1.0][numbers.below(3) as usize];
    request
}

/// How many times as large what the search finds is, rate or cells, as the best there is; `None`
/// where no size serves the goal.
fn ratio_to_the_best(request: &PlanRequest) -> Option<f64> {
    let within = Within::of(request);
    let goal = request.goal;
    let families = within.all().unwrap().into_iter();
    let families = families.map(|sets| Stored::of_sets(request.attributes.len(), &sets));
    let best = all(request, FilterKind::Cbfm, families);
    let found = climbed(request, FilterKind::Cbfm, &within, WORK);
    let (Some((_, best)), Some((matrix, found))) = (best.first(), found.first()) else {
        assert!(best.is_empty() && found.is_empty(), "{request:?}");
        return None;
    };
    assert!(!found.is_better(best), "{request:?} {found:?} {best:?}");
    // The prediction is that of the cuts.
    let cuts = matrix.stored.cuts();
    let again = matrices::rates_of(request, FilterKind::Cbfm, &cuts, &found.sizes, found.probes);
    let again = request.with_workload(|asked| asked.weighted(&again, None));
    assert!((again - found.fpr).abs() <= found.fpr * 1e-9);
    if !best.is_better(found) {
        return Some(1.0);
    }
    Some(match goal {
        Goal::Memory { .. } => found.fpr / best.fpr,
        _ => found.cells / best.cells,
    })
}

/// In 1500 such requests each, the best family was found for 99.9 % (four attributes) and 99.7 %
/// (five), and all but one were below 1.4 times it; that one, for all of four attributes, had 18
/// times the best rate.
#[test]
fn the_search_finds_the_best_family_nearly_always() {
    for (attributes, requests) in [(4, 150), (5, 60)] {
        let mut numbers = Numbers(attributes as u64);
        let requests = (0..requests).map(|_| any_request(&mut numbers, attributes));
        let ratios: Vec<f64> = requests.filter_map(|r| ratio_to_the_best(&r)).collect();
        let share = |most: f64| {
            let near = ratios.iter().filter(|&&ratio| ratio <= most);
            near.count() as f64 / ratios.len() as f64
        };
        assert!(share(1.0) >= 0.95 && share(2.0) >= 0.99, "{ratios:?}");
    }
}

/// One wanted pair, and the other numbers of attributes: everything else is cut. By hand, m = 721
/// of six attributes and a rate of 2.7e-39 have all pairs but the wanted one cut.
#[test]
fn what_nobody_asks_for_is_cut() {
    for attributes in 2..=16 {
        let full = (1 << attributes) - 1;
        let goal = Goal::Memory { bytes: 64 << 10 };
        let singles = (0..attributes).map(|one| (1 << one, 1000));
        let n: Vec<(u32, u64)> = singles.chain([(full, 1000)]).collect();
        let request = request(attributes, &[(3, 1.0)], &n, goal);
        let found = row(&request, FilterKind::Cbfm);
        let design = found.shape().unwrap();
        let pairs = (0..=full).filter(|set: &u32| set.count_ones() == 2 && *set != 3);
        assert_eq!(design.cuts, pairs.collect::<Vec<u32>>());
        // (m + 1)^2 + (d - 2) m cells.
        let cells = |m: u64| (m + 1) * (m + 1) + (attributes as u64 - 2) * m;
        let size = design.size.unwrap();
        assert!(cells(size) <= 524_288 && cells(size + 1) > 524_288);
        if attributes == 6 {
            assert_eq!(size, 721);
            assert!(near(found.weighted.unwrap(), 2.7e-39, 0.02));
        }
    }
}

/// Beyond five attributes nothing is worse than the best of the symmetric families.
#[test]
fn more_attributes_are_planned_as_well_as_by_symmetric_families() {
    let mut numbers = Numbers(6);
    for attributes in [6, 7, 8, 6, 7, 8, 12, 14] {
        let mut request = any_request(&mut numbers, attributes);
        let found = row(&request, FilterKind::Cbfm);
        if let (Goal::Rate { fpr }, Some(reached)) = (request.goal, found.weighted) {
            assert!(reached <= fpr);
        }
        for cuts in cut_families(attributes) {
            request.cuts = Some(cuts);
            let symmetric = row(&request, FilterKind::Cbfm);
            let (Some(theirs), Some(ours)) = (symmetric.weighted, found.weighted) else {
                assert_eq!(symmetric.weighted, None);
                continue;
            };
            match request.goal {
                Goal::Memory { bytes } => {
                    assert!(ours <= theirs * (1.0 + 1e-9), "{request:?} {ours} {theirs}");
                    assert!(found.memory_bytes.unwrap() <= bytes as f64);
                }
                Goal::Rate { .. } => assert!(found.memory_bytes <= symmetric.memory_bytes),
                // The paper's rule: a family may be smaller and tell nothing.
                _ if symmetric.rates.iter().all(|rate| rate.unwrap() < 1.0) => {
                    assert!(found.memory_bytes <= symmetric.memory_bytes);
                }
                Goal::AttributeRate { .. } => {}
            }
        }
    }
}

/// All of sixteen attributes wanted, and all pairs and triples of them, for every goal: the work is
/// bounded, and what comes out can be built and saved.
#[test]
fn sixteen_attributes_are_planned_within_bounds() {
    let n: Vec<(u32, u64)> = (0..16).map(|one| (1 << one, 100 + 37 * one)).collect();
    let n = [&n[..], &[(0xffff, 50_000)]].concat();
    let few = (1..=0xffff_u32).filter(|set| (2..4).contains(&set.count_ones()));
    let few: Vec<(u32, f64)> = few.map(|set| (set, 1.0)).collect();
    for wanted in [&[(0xffff, 1.0)][..], &few] {
        for goal in [
            Goal::Memory { bytes: 1 << 20 },
            Goal::Rate { fpr: 0.01 },
            Goal::AttributeRate { fpr: 0.1 },
        ] {
            let request = request(16, wanted, &n, goal);
            let found = row(&request, FilterKind::Cbfm);
            assert!(found.fits && found.weighted.unwrap() < 1.0, "{goal:?}");
            let design = found.shape().unwrap();
            let spec = FilterSpec::Matrix(MatrixSpec {
                sizes: vec![design.size.unwrap(); 16],
                cuts: design.cuts,
                probes: design.probes.unwrap(),
                index_map: IndexMap::Offset,
            });
            assert_eq!(spec.check(), Ok(()));
            assert_eq!(spec.memory_bytes(), found.memory_bytes.unwrap() as u64);
        }
    }
}

/// The weights of many attributes: one that is asked for beside others that are not.
#[test]
fn weights_of_many_attributes_are_better_than_none() {
    let mut numbers = Numbers(7);
    for attributes in [7, 8, 10, 16] {
        for goal in [Goal::Memory { bytes: 4096 }, Goal::Rate { fpr: 0.001 }] {
            let full = (1_u32 << attributes) - 1;
            let n: Vec<(u32, u64)> =
                (0..attributes).map(|one| (1 << one, 1 + numbers.below(200))).collect();
            let n = [&n[..], &[(full, 1000)]].concat();
            let request = request(attributes, &[(0b111, 2.0), (0b11000, 1.0)], &n, goal);
            let (equal, weighted) =
                (row(&request, FilterKind::Cbfm), row(&request, FilterKind::Wcbfm));
            match goal {
                Goal::Memory { .. } => {
                    assert!(weighted.weighted < equal.weighted);
                }
                _ => assert!(weighted.memory_bytes < equal.memory_bytes),
            }
            let sizes = weighted.shape().unwrap().sizes;
            assert!(sizes[5..].iter().all(|&size| size <= sizes[0]), "{sizes:?}");
        }
    }
}

/// A filter for one more element does not fit, and with the cuts by hand no more elements do.
#[test]
fn the_most_elements_are_those_of_the_best_cuts() {
    let goal = Goal::Rate { fpr: 0.01 };
    for attributes in [3, 4, 7] {
        let full = (1 << attributes) - 1;
        let wanted = [(0b11, 1.0), (full, 1.0)];
        let mut request = request(attributes, &wanted, &[], goal);
        request.most_elements_in = Some(8192);
        let most = row(&request, FilterKind::Cbfm).elements.unwrap();
        let weighted = row(&request, FilterKind::Wcbfm);
        assert!(weighted.elements.unwrap() >= most);
        assert!(weighted.memory_bytes.unwrap() <= 8192.0 && weighted.weighted.unwrap() <= 0.01);
        let families = all_cut_families(attributes).unwrap_or_else(|| cut_families(attributes));
        for cuts in families {
            request.cuts = Some(cuts);
            let by_hand = row(&request, FilterKind::Cbfm).elements.unwrap();
            assert!(by_hand <= most, "{request:?} {by_hand} {most}");
        }
    }
}

/// The rate of the paper's tables is kept for every wanted combination, however seldom it is asked
/// for.
#[test]
fn the_rule_of_the_tables_keeps_every_wanted_combination() {
    let n = [(7, 1000), (1, 1000), (2, 1000), (4, 1000)];
    let wanted = [(0b011, 99.0), (0b110, 1.0)];
    let request = request(3, &wanted, &n, Goal::AttributeRate { fpr: 0.1 });
    let found = row(&request, FilterKind::Cbfm);
    assert_eq!(found.shape().unwrap().cuts, [0b101]);
    assert!(found.rates.iter().all(|rate| rate.unwrap() < 0.1));
    let by_hand = matrix_fpr(&[4792; 3], &[0b101], 3, 1000.0, 0.0, 0b110);
    assert!(found.rates[1].unwrap() >= by_hand);
}
