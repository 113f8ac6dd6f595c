//! The planner against brute force, against other parts of the library, and against numbers from an
//! independent computation.

use super::*;
use crate::filters::allocation::{Demand, shared_probes};
use crate::filters::matrix_sizing::{cells, matrix_fpr};
use proptest::prelude::*;

/// A request for abstract attributes; `known` by mask.
pub(super) fn request(
    attributes: usize,
    wanted: &[(u32, f64)],
    n: &[(u32, u64)],
    goal: Goal,
) -> PlanRequest {
    let known: Vec<_> = n.iter().map(|&(mask, n)| (mask, n, Origin::Given)).collect();
    PlanRequest {
        attributes: (1..=attributes).map(|number| number.to_string()).collect(),
        wanted: wanted.iter().map(|&(mask, weight)| Wanted { mask, weight }).collect(),
        elements: {
            let for_all = known.is_empty().then_some(1);
            Elements::new(&vec![None; attributes], &known, for_all, |m| m.to_string()).unwrap()
        },
        goal,
        most_elements_in: None,
        known: 1.0,
        structures: Structure::all().collect(),
        cuts: None,
        weights: None,
        skewed: false,
        key_bytes: 8,
    }
}

pub(super) fn row(request: &PlanRequest, kind: FilterKind) -> PlanRow {
    let structure = Structure::Filter(kind);
    match request.most_elements_in {
        Some(bytes) => most_elements(request, structure, bytes),
        None => row_for(request, structure),
    }
}

pub(super) fn near(ours: f64, theirs: f64, relative: f64) -> bool {
    (ours / theirs - 1.0).abs() < relative
}

/// Every list of cuts, every size and every k: nothing is better than what was found.
#[test]
fn cuts_sizes_and_k_are_the_best_there_are() {
    let n = 60.0;
    for wanted in [
        &[(0b111, 1.0)][..],
        &[(0b111, 3.0), (0b011, 1.0)],
        &[(0b101, 1.0), (0b110, 1.0), (0b001, 0.5)],
        &[(0b100, 1.0)],
    ] {
        let goal = Goal::Memory { bytes: 512 };
        let mut request = request(3, wanted, &[(7, 60), (1, 60), (2, 60), (4, 60)], goal);
        request.known = 0.0;
        let found = row(&request, FilterKind::Cbfm).weighted.unwrap();
        let mut best = f64::INFINITY;
        let sets = [0b011, 0b101, 0b110, 0b111];
        for chosen in 0..16 {
            let cuts: Vec<u32> = (0..4).filter(|i| chosen >> i & 1 == 1).map(|i| sets[i]).collect();
            for size in (1..4096).take_while(|&m| cells(&[m; 3], &cuts).unwrap() <= 4096) {
                for k in 1..=32 {
                    let rates = wanted.iter().map(|&(mask, weight)| {
                        weight * matrix_fpr(&[size; 3], &cuts, k, n, 0.0, mask)
                    });
                    best = rates.sum::<f64>().min(best);
                }
            }
        }
        let sum: f64 = wanted.iter().map(|(_, weight)| weight).sum();
        assert!(near(found, best / sum, 1e-9), "{wanted:?}: {found} {}", best / sum);
    }
}

/// Against all pairs of sizes.
#[test]
fn weights_are_as_good_as_brute_force() {
    for wanted in [&[(0b11, 1.0), (0b01, 1.0)][..], &[(0b11, 1.0), (0b01, 0.2), (0b10, 0.4)]] {
        let goal = Goal::Memory { bytes: 64 };
        let mut request = request(2, wanted, &[(1, 20), (2, 40), (3, 60)], goal);
        request.known = 0.0;
        let found = row(&request, FilterKind::Wcbfm);
        let mut best = f64::INFINITY;
        for cuts in [&[][..], &[0b11]] {
            for first in 1..512_u64 {
                for second in 1..512_u64 {
                    if cells(&[first, second], cuts).unwrap() > 512 {
                        break;
                    }
                    for k in 1..=32 {
                        let sizes = &[first, second];
                        let n = [0.0, 20.0, 40.0, 60.0];
                        let rates = wanted.iter().map(|&(mask, weight)| {
                            // A pair that is cut is asked for in two parts, each with its own
                            // number.
                            let parts =
                                if mask == 3 && !cuts.is_empty() { vec![1, 2] } else { vec![mask] };
                            let rate = |part: &u32| {
                                matrix_fpr(sizes, cuts, k, n[*part as usize], 0.0, *part)
                            };
                            weight * parts.iter().map(rate).product::<f64>()
                        });
                        best = rates.sum::<f64>().min(best);
                    }
                }
            }
        }
        let best = best / wanted.iter().map(|(_, weight)| weight).sum::<f64>();
        let found = found.weighted.unwrap();
        assert!(found < best * 1.05 && found > best * (1.0 - 1e-9), "{found} {best}");
    }
}

#[test]
fn weights_are_never_worse_than_none() {
    for goal in [Goal::Memory { bytes: 1 << 16 }, Goal::Rate { fpr: 0.01 }] {
        let n = [(7, 50_000), (1, 500), (2, 20_000), (4, 90)];
        let request = request(3, &[(7, 2.0), (1, 1.0), (6, 1.0)], &n, goal);
        let (equal, weighted) = (row(&request, FilterKind::Cbfm), row(&request, FilterKind::Wcbfm));
        if let Goal::Rate { fpr } = goal {
            assert!(weighted.memory_bytes <= equal.memory_bytes);
            assert!(weighted.weighted.unwrap() <= fpr && equal.weighted.unwrap() <= fpr);
        } else {
            assert!(weighted.weighted <= equal.weighted);
        }
    }
}

proptest! {
    #[test]
    fn the_subset_filter_gets_the_shared_allocation(
        n in prop::collection::vec(10_u64..100_000, 2),
        weights in prop::collection::vec(0.01_f64..10.0, 3),
        lines in 10_u64..10_000,
    ) {
        let whole = n[0] * n[1].min(5);
        let n = [(1, n[0]), (2, n[1].min(whole)), (3, whole)];
        let wanted = [(3, weights[0]), (1, weights[1]), (2, weights[2])];
        let request = request(2, &wanted, &n, Goal::Memory { bytes: lines * 64 });
        let design = row(&request, FilterKind::Subset).shape().unwrap();
        let shares = request.shares();
        let demands: Vec<Demand> = [3, 1, 2]
            .iter()
            .zip(shares)
            .map(|(&mask, weight)| Demand { elements: request.elements.of(mask), weight })
            .collect();
        // In one line each as long as that is all that there is room for, and then in several.
        let bits = (lines * 512) as f64;
        let is_shared = |most: &u32| {
            let expected = shared_probes(&demands, bits, *most);
            design.probes == Some(expected[0])
                && design.stored == [(1, expected[1]), (2, expected[2])]
        };
        let most = [8, 16, 24, 32].into_iter().find(is_shared);
        prop_assert!(most.is_some(), "{:?} {:?}", design.probes, design.stored);
        let elements: f64 = demands.iter().map(|demand| demand.elements).sum();
        if bits / elements <= 24.0 {
            prop_assert_eq!(most, Some(8));
        }
    }
}

/// Numbers of Fig. 7 of the CBFM paper and of the same matrix with different numbers of values.
#[test]
fn rates_of_matrices_are_those_of_an_independent_computation() {
    let wanted = [(7, 1.0), (5, 1.0), (6, 1.0), (2, 1.0)];
    let even = [(7, 5_000_000), (1, 5_000_000), (2, 5_000_000), (4, 5_000_000)];
    let goal = Goal::Memory { bytes: 1 << 24 };
    let rates = |known: f64, n: &[(u32, u64)], cuts: &[u32], size: f64| -> Vec<f64> {
        let mut request = request(3, &wanted, n, goal);
        request.known = known;
        let rates = matrices::rates_of(&request, FilterKind::Cbfm, cuts, &[size; 3], 6);
        rates.into_iter().flatten().collect()
    };
    let one_cut = rates(0.0, &even, &[0b011], 8191.0);
    assert!(near(one_cut[0], 4.825_692_433_405_637_5e-6, 1e-9));
    assert!(near(one_cut[1], 0.002_196_745_873_651_669_6, 1e-9));
    assert!(near(one_cut[2], 0.002_196_745_873_651_669_6, 1e-9));
    assert!(near(rates(0.0, &even, &[], 511.0)[0], 6.663_573_307_511_084e-5, 1e-9));
    let two_cuts = rates(0.0, &even, &[0b011, 0b101], 11_583.0);
    assert!(near(two_cuts[0], 6.471_000_935_633_525e-5, 1e-9));
    // Known values have rows of their own, which makes half a percent here.
    let known = rates(1.0, &even, &[0b011], 8191.0)[1];
    assert!(known > one_cut[1] && near(known, one_cut[1], 0.005));
    let marginals = [
        (1, 200_000),
        (2, 2000),
        (4, 500_000),
        (3, 600_000),
        (5, 3_000_000),
        (6, 900_000),
        (7, 5_000_000),
    ];
    let small = rates(0.0, &marginals, &[0b011], 8191.0);
    for (ours, theirs) in small.iter().zip([
        3.630_907_421_350_22e-11,
        0.000_169_768_143_502_260_5,
        2.138_744_847_205_02e-7,
        0.206_686_179_056_707_94,
    ]) {
        assert!(near(*ours, theirs, 1e-9), "{ours} {theirs}");
    }
}

/// Simulated elsewhere: `background` pairs of values that occur once, and one source with D
/// destinations, whose next pair is asked for. The planner gives every source D destinations, with
/// equally many pairs in all. Small matrices are up to 15 % above the formula, which leaves out
/// that the k rows of a value may coincide.
#[test]
fn rows_that_are_full_of_one_value_are_seen() {
    for (size, k, background, destinations, simulated) in [
        (312.0, 4, 5000, 156, 0.076_446),
        (312.0, 4, 5000, 312, 0.274_1),
        (312.0, 4, 5000, 624, 0.661_394),
        (8191.0, 6, 2_000_000, 4095, 0.014_284),
        (8191.0, 6, 2_000_000, 8191, 0.108_91),
        (8191.0, 6, 2_000_000, 16_382, 0.482_112),
    ] {
        let pairs = background + destinations;
        let n = [(1, pairs / destinations), (2, pairs), (3, pairs)];
        let request = request(2, &[(3, 1.0)], &n, Goal::Memory { bytes: 1 << 20 });
        let rates = matrices::rates_of(&request, FilterKind::Bfm, &[], &[size; 2], k);
        let ours = rates[0].unwrap();
        assert!(near(ours, simulated, 0.15), "{size} {destinations}: {ours} {simulated}");
    }
}

#[test]
fn rates_are_reached_in_no_more_memory_than_needed() {
    let n = [(7, 20_000), (1, 3000), (2, 500), (4, 9000)];
    for fpr in [0.2, 0.01, 1e-4] {
        let request = request(3, &[(7, 1.0)], &n, Goal::Rate { fpr });
        for row in plan(&request).unwrap().rows {
            let Structure::Filter(kind) = row.structure else { continue };
            if kind == FilterKind::Mdbf {
                // All of the values of a negative occur.
                assert_eq!(row.design, None);
                continue;
            }
            let reached = row.weighted.unwrap();
            // The counting structures' k is a whole number.
            assert!(reached <= fpr * 1.08, "{kind:?} {reached}");
            let bytes = row.memory_bytes.unwrap() as u64;
            if !matches!(kind, FilterKind::Dleft | FilterKind::Scalable) {
                let goal = Goal::Memory { bytes: bytes * 9 / 10 };
                let smaller = PlanRequest { goal, ..request.clone() };
                let less = row_for(&smaller, row.structure).weighted.unwrap();
                assert!(less > fpr, "{kind:?} {less} {fpr}");
            }
        }
    }
}

#[test]
fn what_is_not_answered_is_said_and_not_recommended() {
    let n = [(3, 1000), (1, 100), (2, 100)];
    let plan = plan(&request(2, &[(3, 1.0), (1, 1.0)], &n, Goal::Memory { bytes: 8192 })).unwrap();
    assert_eq!(plan.rows.len(), Structure::all().count());
    for row in &plan.rows {
        let whole_only = ["bloom", "counting", "split-counting", "scalable", "dleft", "cuckoo"];
        let expected = match row.structure.name() {
            name if whole_only.contains(&name) => [true, false],
            "hll" | "ell" => [false, false],
            _ => [true, true],
        };
        assert_eq!(row.rates.iter().map(Option::is_some).collect::<Vec<_>>(), expected);
    }
    let best = plan.recommended.unwrap();
    let best = plan.rows.iter().find(|row| row.structure == best).unwrap();
    assert!(best.answers_all() && best.weighted.unwrap() < 0.01);
    assert!(plan.reason.contains(best.structure.name()));
}

/// The reason does not call a rate lower by less than a half what is lower by orders of magnitude.
#[test]
fn rates_that_are_next_to_none_are_called_so() {
    let plan_in = |bytes: u64| {
        let n = [(3, 2000), (1, 900), (2, 900)];
        let mut request = request(2, &[(3, 3.0), (1, 1.0)], &n, Goal::Memory { bytes });
        request.skewed = true;
        plan(&request).unwrap()
    };
    let roomy = plan_in(1 << 18);
    let weighted = |kind: FilterKind| {
        let rows = &roomy.rows;
        let row = rows.iter().find(|row| row.structure == Structure::Filter(kind));
        row.unwrap().weighted.unwrap()
    };
    assert!(weighted(FilterKind::Cmdbf) < weighted(FilterKind::Subset) / 1e3);
    assert!(
        roomy.reason.contains("subset has one of the rates")
            && roomy.reason.contains("cmdbf has a lower one"),
        "{}",
        roomy.reason
    );
    let tight = plan_in(1 << 12);
    assert!(tight.reason.contains("has the lowest predicted rate"), "{}", tight.reason);
}

#[test]
fn a_matrix_is_not_recommended_where_values_are_skewed() {
    let n = [(7, 100_000), (1, 100_000), (2, 100_000), (4, 100_000)];
    let mut request =
        request(3, &[(7, 1.0), (5, 1.0), (6, 1.0)], &n, Goal::Memory { bytes: 1 << 18 });
    request.structures = vec![Structure::Filter(FilterKind::Cbfm)];
    let recommended = |request: &PlanRequest| plan(request).unwrap().recommended;
    assert_eq!(recommended(&request).map(Structure::name), Some("cbfm"));
    request.skewed = true;
    assert_eq!(recommended(&request), None);
}

/// Fewer values crowd the rows of a pair, and make a single attribute rarer.
#[test]
fn a_matrix_of_bounded_values_says_that_pairs_may_have_a_higher_rate() {
    let says = |wanted: u32, n: &[(u32, u64)]| {
        let request = request(2, &[(wanted, 1.0)], n, Goal::Memory { bytes: 1 << 15 });
        let notes = row(&request, FilterKind::Cbfm).notes;
        notes.iter().any(|note| note.contains("such as --expect 1=1000"))
    };
    let rate = |n: &[(u32, u64)]| {
        let request = request(2, &[(3, 1.0)], n, Goal::Memory { bytes: 1 << 15 });
        row(&request, FilterKind::Cbfm).weighted.unwrap()
    };
    let stated = [(3, 1_566), (1, 150), (2, 200)];
    assert!(rate(&stated) > rate(&[(3, 1_566)]));
    assert!(says(3, &[(3, 1_566)]) && !says(3, &stated) && !says(1, &[(3, 1_566)]));
}

/// One destination and one protocol: whoever knows the source knows three attributes, and a cut
/// between the source and the port leaves nothing to say no.
#[test]
fn a_matrix_is_not_recommended_where_all_its_parts_occur() {
    let goal = Goal::Memory { bytes: 5000 };
    let values = [(15, 4000), (1, 2800), (2, 1), (4, 1), (8, 3900)];
    let with = |origin: Origin| {
        let known = values.map(|(mask, n)| (mask, n, origin));
        let name = |mask: u32| format!("{mask:b}");
        let mut request = request(4, &[(15, 1.0)], &values, goal);
        request.elements = Elements::new(&[None; 4], &known, None, name).unwrap();
        request.structures = [FilterKind::Subset, FilterKind::Cbfm].map(Structure::Filter).into();
        plan(&request).unwrap()
    };
    let (given, sampled) = (with(Origin::Given), with(Origin::Measured));
    let name = |plan: &Plan| plan.recommended.map(Structure::name);
    assert_eq!(name(&given), Some("cbfm"));
    assert_eq!(name(&sampled), Some("subset"));
    let note = "all stored parts of at least 100 % of the negatives occur";
    assert!(sampled.rows[1].notes[0].starts_with(note), "{:?}", sampled.rows[1].notes);
    assert!(!given.rows[1].notes[0].starts_with(note));
}

#[test]
fn many_attributes_are_planned_too() {
    let wanted: Vec<(u32, f64)> = vec![((1 << 12) - 1, 1.0), (3, 1.0)];
    let n: Vec<(u32, u64)> =
        std::iter::once(((1 << 12) - 1, 1000)).chain((0..12).map(|one| (1 << one, 1000))).collect();
    let plan = plan(&request(12, &wanted, &n, Goal::Memory { bytes: 1 << 20 })).unwrap();
    let cbfm = plan.rows.iter().find(|row| row.structure.name() == "cbfm").unwrap();
    assert!(cbfm.design.is_some() && cbfm.memory_bytes.unwrap() <= 1_048_576.0);
}

/// Rates that are all next to none differ by many orders of magnitude, and only one of them is the
/// lowest.
#[test]
fn no_rate_is_called_the_lowest_beside_a_lower_one() {
    for bytes in [1 << 18, 1 << 20, 1 << 22] {
        for skewed in [false, true] {
            let n = [(3, 10_000), (1, 10_000), (2, 10_000)];
            let mut request = request(2, &[(3, 1.0)], &n, Goal::Memory { bytes });
            request.skewed = skewed;
            let plan = plan(&request).unwrap();
            let best = plan.recommended.unwrap();
            let rate = |row: &PlanRow| row.weighted.unwrap_or(1.0);
            let filters = plan.rows.iter().filter(|row| row.structure.filter().is_some());
            let lowest = filters.min_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap();
            assert_ne!(lowest.structure, best);
            let name = format!("({} has a lower one)", lowest.structure.name());
            let reason = &plan.reason;
            assert!(reason.contains(&name) && !reason.contains("lowest"), "{reason}");
        }
    }
}

/// A yes to everything is no answer, however good the other answers are.
#[test]
fn what_always_says_yes_is_not_recommended() {
    let n = [(3, 1000), (1, 100), (2, 100)];
    let goal = Goal::Memory { bytes: 8192 };
    let mut request = request(2, &[(3, 1.0), (1, 1.0)], &n, goal);
    request.structures = vec![Structure::Filter(FilterKind::Mdbf)];
    let plan = plan(&request).unwrap();
    let rates = &plan.rows[0].rates;
    assert!(rates[0] == Some(1.0) && rates[1] < Some(0.01), "{rates:?}");
    assert_eq!(plan.recommended, None);
}
