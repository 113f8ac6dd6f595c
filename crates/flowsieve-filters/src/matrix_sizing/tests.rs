use super::*;
use crate::sizing::bloom_fpr;
use proptest::prelude::*;

/// One megabyte of the paper, in bits.
const MEGABYTE: f64 = 8_388_608.0;
/// The cuts {1,3} and {1,2} of the paper's tables.
const OVERLAPPING: [u32; 2] = [0b101, 0b011];

fn near(ours: f64, theirs: f64) -> bool {
    (ours / theirs - 1.0).abs() < 1e-9
}

/// Cells M by inclusion and exclusion over the cuts, or `None` beyond 2^127.
fn cells_by_inclusion_exclusion(sizes: &[u64], cuts: &[u32]) -> Option<i128> {
    (0..1_u64 << cuts.len()).try_fold(0_i128, |sum, chosen| {
        let union = cuts
            .iter()
            .enumerate()
            .filter(|(index, _)| chosen >> index & 1 == 1)
            .fold(0, |union, (_, cut)| union | cut);
        let mut product = 1_i128;
        for (attribute, &size) in sizes.iter().enumerate() {
            let factor = i128::from(size) + i128::from(union >> attribute & 1 == 0);
            product = product.checked_mul(factor)?;
        }
        sum.checked_add(if chosen.count_ones() % 2 == 0 { product } else { -product })
    })
}

/// Cells from an independent computation.
#[test]
fn cells_of_cut_families() {
    for (sizes, cuts, expected) in [
        (&[3, 3, 3][..], &[0b101, 0b011][..], 19),
        (&[2, 3, 4], &[0b110], 24),
        (&[3, 2, 2, 3], &[0b0011, 0b1100], 36),
        (&[2, 2, 2, 2], &[0b0111], 57),
        (&[2, 2, 2, 2], &[0b0111, 0b1110, 0b1001], 29),
        (&[4, 4], &[], 25),
        (&[1, 2, 3, 2, 1], &[0b00111, 0b11000], 72),
        (&[3, 3, 3], &[0b001], 16),
    ] {
        assert_eq!(cells(sizes, cuts), Some(expected));
        assert_eq!(cells_by_inclusion_exclusion(sizes, cuts), Some(expected as i128));
    }
    assert_eq!(cells(&[u64::MAX; 3], &[]), None);
    assert_eq!(cells_by_inclusion_exclusion(&[u64::MAX; 3], &[]), None);
}

#[test]
fn formula_four_is_for_disjoint_cuts_only() {
    let cells = |attributes, cuts: &[u32]| cells(&vec![9; attributes], cuts).unwrap() as f64;
    let formula =
        |attributes, cut_sizes: &[u32]| cells_of_disjoint_cuts(9.0, attributes, cut_sizes);
    assert!(near(formula(3, &[2]), cells(3, &[0b011])));
    assert!(near(formula(5, &[2, 3]), cells(5, &[0b00011, 0b11100])));
    assert!(near(formula(6, &[2, 2, 2]), cells(6, &[0b11, 0b1100, 0b11_0000])));
    assert!(near(formula(4, &[]), 10_000.0));
    // Two cuts that share an attribute: (m+1)² + m, and not what the formula says.
    assert!(near(cells(3, &OVERLAPPING), 109.0));
    assert!(formula(3, &[2, 2]) < 40.0);
    // At the paper's size: 0.0023 MB by the formula, 2.74 MB in truth.
    let wrong = cells_of_disjoint_cuts(4792.0, 3, &[2, 2]) / MEGABYTE;
    assert!((wrong - 0.002_285).abs() < 1e-5, "{wrong}");
}

#[test]
fn maximal_legal_subsets_can_be_more_than_the_attributes() {
    let of_all = |attributes: u32, cuts: &[u32]| maximal_legal_subsets((1 << attributes) - 1, cuts);
    assert_eq!(of_all(3, &OVERLAPPING), [0b001, 0b110]);
    assert_eq!(of_all(3, &[0b011]), [0b101, 0b110]);
    assert_eq!(of_all(4, &[0b0011, 0b1100]), [0b0101, 0b0110, 0b1001, 0b1010]);
    assert_eq!(of_all(5, &[0b00011, 0b11100]), [13, 14, 21, 22, 25, 26]);
    assert_eq!(of_all(6, &[0b00_0111, 0b11_1000]), [27, 29, 30, 43, 45, 46, 51, 53, 54]);
    assert_eq!(of_all(6, &[3, 12, 48]), [21, 22, 25, 26, 37, 38, 41, 42]);
    let triples = [7, 11, 19, 13, 21, 25, 14, 22, 26, 28];
    assert_eq!(of_all(5, &triples), [3, 5, 6, 9, 10, 12, 17, 18, 20, 24]);
    assert_eq!(maximal_legal_subsets(0b010, &OVERLAPPING), [0b010]);
    assert_eq!(maximal_legal_subsets(0, &OVERLAPPING), [0]);
}

/// Table 3 (n = 1000, three attributes): ε, k, m, and the printed megabytes of BFM and CBFM. The
/// first two BFM cells are 13 125.9996 and 105 007.9968: the paper splits off the integer part and
/// rounds the fraction to 1.00, losing the carry; there both roundings are accepted.
#[test]
fn table_3() {
    let two = |megabytes: f64| format!("{megabytes:.2}");
    let carry_lost = |megabytes: f64| {
        let fraction = two(megabytes.fract());
        format!("{}{}", megabytes.trunc(), &fraction[1..])
    };
    for (fpr, probes, size, bfm, bfm_rounded, cbfm) in [
        (0.1, 3, 4_792, "13125.00", "13126.00", "2.74"),
        (0.01, 6, 9_585, "105007.00", "105008.00", "10.96"),
        (1e-3, 9, 14_377, "354328.05", "354328.05", "24.65"),
        (1e-4, 13, 19_170, "839932.53", "839932.53", "43.81"),
        (1e-5, 16, 23_962, "1640339.20", "1640339.20", "68.46"),
    ] {
        assert_eq!(table_probes(fpr), probes);
        assert_eq!(attribute_size(fpr, 1000.0).floor() as u64, size);
        let megabytes = |cuts| cells(&[size; 3], cuts).unwrap() as f64 / MEGABYTE;
        assert_eq!(carry_lost(megabytes(&[])), bfm);
        assert_eq!(two(megabytes(&[])), bfm_rounded);
        assert_eq!(two(megabytes(&OVERLAPPING)), cbfm);
    }
}

/// Table 2: elements in one megabyte. The BFM column is rounded down and the CBFM column to the
/// nearest; no single rule gives both.
#[test]
fn table_2() {
    for (fpr, bfm, bfm_printed, cbfm, cbfm_printed) in [
        (0.1, 42.188, 42, 604.025, 604),
        (0.01, 21.094, 21, 302.013, 302),
        (1e-3, 14.063, 14, 201.342, 201),
        (1e-4, 10.547, 10, 151.006, 151),
        (1e-5, 8.438, 8, 120.805, 121),
    ] {
        let each: f64 = attribute_size(fpr, 1.0);
        // (m+1)³ = M, and (m+1)² + m = M.
        let bfm_elements = (MEGABYTE.cbrt() - 1.0) / each;
        let cbfm_elements = ((5.0 + 4.0 * MEGABYTE).sqrt() - 3.0) / 2.0 / each;
        assert!((bfm_elements - bfm).abs() < 5.1e-4, "{bfm_elements}");
        assert!((cbfm_elements - cbfm).abs() < 5.1e-4, "{cbfm_elements}");
        assert_eq!(bfm_elements.floor() as u32, bfm_printed);
        assert_eq!(cbfm_elements.round() as u32, cbfm_printed);
    }
}

/// Fig. 11 (n = 100, ε = 0.1) and Fig. 12 (m = 16), in bits.
#[test]
fn figures_11_and_12() {
    let size = attribute_size(0.1, 100.0).floor() as u64;
    assert_eq!(size, 479);
    for (attributes, bfm, cbfm) in
        [(3, 110_592_000_u128, 460_320_u128), (4, 53_084_160_000, 220_953_600)]
    {
        assert_eq!(cells(&vec![size; attributes], &[]), Some(bfm));
        assert_eq!(cells(&vec![size; attributes], &[0b11]), Some(cbfm));
    }
    for (attributes, bfm, cbfm, combinations) in [
        (2, 289_u128, 289_u128, 3),
        (3, 4_913, 561, 5),
        (5, 1_419_857, 162_129, 23),
        (8, 6_975_757_441, 796_539_777, 191),
    ] {
        // With two attributes the only pair is kept.
        let cuts = if attributes == 2 { &[][..] } else { &[0b11] };
        assert_eq!(cells(&vec![16; attributes], &[]), Some(bfm));
        assert_eq!(cells(&vec![16; attributes], cuts), Some(cbfm));
        assert_eq!(legal_combinations(attributes, cuts).len() - 1, combinations);
    }
}

#[test]
fn sizes_that_fill_the_memory_of_figure_7() {
    let most = 1 << 27;
    assert_eq!(largest_size(3, &[], most), 511);
    assert_eq!(largest_size(3, &[0b011], most), 8191);
    assert_eq!(largest_size(3, &OVERLAPPING, most), 11_583);
    assert_eq!(largest_cartesian_size(3, most), 512);
    assert_eq!(largest_size(3, &[], 7), 0);
    assert_eq!(largest_size(3, &[], 8), 1);
    assert_eq!(weighted_sizes(&[1.0; 3], &[0b011], most), Some(vec![8191; 3]));
    assert_eq!(weighted_sizes(&[0.0; 3], &[], most), None);
    assert_eq!(weighted_sizes(&[1.0, -1.0], &[], most), None);
    assert_eq!(weighted_sizes(&[1.0; 3], &[], 7), None);
    let sizes = weighted_sizes(&[2.0, 1.0, 0.0], &[], 1 << 20).unwrap();
    assert_eq!(sizes[2], 1);
    assert!(sizes[0].abs_diff(2 * sizes[1]) <= 1);
}

/// Fig. 7: M = 2^27, k = 6, n = 5 million (the n that the paper does not print), by an
/// independent computation.
#[test]
fn rates_of_figure_7() {
    let (bits, n, k) = (f64::from(1 << 27), 5e6, 6);
    assert!(near(bloom_fpr(bits, k, n), 6.457_630_219_659_074e-5));
    for (known, mdbf, cmdbf, mdbf_pair, cmdbf_pair) in [
        (
            0.0,
            2.516_201_452_405_383_5e-6,
            3.298_471_060_596_264e-6,
            1.849_965_399_799_628_9e-4,
            1.816_169_336_982_723e-3,
        ),
        (
            0.25,
            0.017_616_795_841_502_265,
            9.553_264_063_781_462e-4,
            0.067_704_564_296_966_68,
            0.079_502_797_115_905_05,
        ),
        (
            0.5,
            0.130_170_191_970_902_02,
            6.037_567_666_995_115e-3,
            0.256_846_920_792_632_3,
            0.271_762_311_486_048_74,
        ),
        (1.0, 1.0, 0.042_616_538_303_606_066, 1.0, 1.0),
    ] {
        let third = f64::from((1 << 27) / 3);
        assert!(near(mdbf_fpr(third, k, n, known, 3), mdbf), "{known}");
        assert!(near(mdbf_fpr(third, k, n, known, 2), mdbf_pair), "{known}");
        assert!(near(cmdbf_fpr(bits / 4.0, k, n, known, 3), cmdbf), "{known}");
        assert!(near(mdbf_fpr(bits / 4.0, k, n, known, 2), cmdbf_pair), "{known}");
    }
    let cbfm = |size, cuts: &[u32], query| matrix_fpr(&[size; 3], cuts, k, n, 0.5, query);
    assert!(near(uncut_fpr(512.0, k, n, 3), 6.457_630_219_659_074e-5));
    assert!(near(uncut_fpr(511.0, k, n, 3), 6.663_573_307_511_084e-5));
    assert!(near(uncut_fpr(511.0, k, n, 2), 1.0));
    assert!(near(cbfm(511, &[], 0b111), 6.663_573_307_511_084e-5));
    assert!(near(cbfm(8191, &[0b011], 0b111), 4.825_692_433_405_637_5e-6));
    assert!(near(cbfm(8191, &[0b011], 0b110), 2.196_745_873_651_669_6e-3));
    assert!(near(cbfm(8191, &[0b011], 0b001), 1.0));
    assert!(near(cbfm(11_583, &OVERLAPPING, 0b111), 6.471_000_935_633_525e-5));
    assert!(near(cbfm(11_583, &OVERLAPPING, 0b110), 6.471_000_935_633_525e-5));
    // α only changes the rate of single attributes.
    let of_one = |known| matrix_fpr(&[100; 2], &[], 1, 10.0, known, 0b01);
    assert!(near(of_one(0.5), 0.5 + 0.5 * of_one(0.0)));
}

/// Table 1 of the CMDBF paper: n = 10 000, m = 32 768.
#[test]
fn theory_of_table_1_of_the_cmdbf_paper() {
    let printed = [
        (2, 4, 0.061_010, 0.015_070),
        (2, 6, 0.122_980, 0.043_127),
        (2, 8, 0.232_938, 0.112_424),
        (3, 4, 0.015_070, 0.003_722),
        (3, 6, 0.043_127, 0.015_124),
        (3, 8, 0.112_424, 0.054_260),
        (4, 4, 0.003_722, 0.000_919),
        (4, 6, 0.015_124, 0.005_304),
        (4, 8, 0.054_260, 0.026_188),
        (5, 4, 0.000_919, 0.000_227),
        (5, 6, 0.005_304, 0.001_860),
        (5, 8, 0.026_188, 0.012_639),
    ];
    for (attributes, probes, mdbf, cmdbf) in printed {
        let ours = mdbf_fpr(32_768.0, probes, 1e4, 0.0, attributes);
        assert!((ours - mdbf).abs() < 5.1e-7, "{ours} {mdbf}");
        let ours = cmdbf_fpr(32_768.0, probes, 1e4, 0.0, attributes);
        assert!((ours - cmdbf).abs() < 5.1e-7, "{ours} {cmdbf}");
    }
    // All attribute values known: the worst case.
    assert!(near(mdbf_fpr(32_768.0, 4, 1e4, 1.0, 2), 1.0));
    assert!(near(cmdbf_fpr(32_768.0, 4, 1e4, 1.0, 2), 0.247_002_097_023_722_47));
}

#[test]
fn plans_use_the_memory_and_reach_their_rate() {
    for attributes in 1..=5 {
        let families = cut_families(attributes);
        let plan = best_plan(&families, attributes, 1 << 20, 20_000.0).unwrap();
        let size = |size| cells(&vec![size; attributes], &plan.cuts).unwrap();
        assert!(size(plan.size) <= 1 << 20 && size(plan.size + 1) > 1 << 20);
        let uncut = best_plan(&[vec![]], attributes, 1 << 20, 20_000.0).unwrap();
        assert!(plan.fpr <= uncut.fpr);
        let least = least_plan(&families, attributes, 0.01, 20_000.0).unwrap();
        assert!(least.fpr <= 0.01);
    }
    assert_eq!(cut_families(1), [Vec::<u32>::new()]);
    assert_eq!(cut_families(2), [Vec::<u32>::new()]);
    assert_eq!(cut_families(3), [vec![], vec![0b111], vec![0b011]]);
    assert_eq!(best_plan(&[vec![]], 3, 7, 1.0), None);
}

fn families() -> impl Strategy<Value = (Vec<u64>, Vec<u32>)> {
    (1_usize..6).prop_flat_map(|attributes| {
        (
            prop::collection::vec(1_u64..6, attributes),
            prop::collection::vec(1_u32..1 << attributes, 0..5),
        )
    })
}

proptest! {
    #[test]
    fn both_ways_to_count_cells_agree((sizes, cuts) in families()) {
        let direct = cells(&sizes, &cuts).unwrap();
        prop_assert_eq!(cells_by_inclusion_exclusion(&sizes, &cuts), Some(direct as i128));
        let tuples: u64 = sizes.iter().map(|m| m + 1).product();
        let counted = (0..tuples).filter(|&tuple| {
            let mut rest = tuple;
            let mut given = 0;
            for (i, m) in sizes.iter().enumerate() {
                given |= u32::from(rest % (m + 1) != 0) << i;
                rest /= m + 1;
            }
            is_legal(given, &cuts)
        });
        prop_assert_eq!(counted.count() as u128, direct);
    }

    #[test]
    fn every_legal_subset_lies_in_a_maximal_one((sizes, cuts) in families(), query: u32) {
        let query = query & ((1 << sizes.len()) - 1);
        let maximal = maximal_legal_subsets(query, &cuts);
        for &subset in &maximal {
            prop_assert!(subset & !query == 0 && is_legal(subset, &cuts));
            prop_assert!(maximal.iter().all(|&other| other == subset || other & subset != subset));
        }
        for subset in subsets(query).filter(|&subset| is_legal(subset, &cuts)) {
            prop_assert!(maximal.iter().any(|&larger| larger & subset == subset));
        }
    }
}
