use super::*;
use crate::hashing::Digester;
use proptest::prelude::*;
use std::collections::HashSet;

fn digest(seed: u64, number: u64) -> Digest {
    Digester::new(seed).digest(&number.to_le_bytes())
}

/// `SplitMix64`, as in the program that made the vectors.
fn split_mix(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Compares with a second implementation, `tests/vectors/halving.py`, to the last bit.
#[test]
fn states_are_those_of_the_second_implementation() {
    let table = include_str!("../../../tests/vectors/halving.tsv");
    let mut filter: Option<(HalvingLines, u64)> = None;
    for row in table.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        let whole = |at: usize| cells[at].parse::<u64>().unwrap();
        let hex = |at: usize| u64::from_str_radix(cells[at], 16).unwrap();
        let shape = LineShape { lines: whole(0), word_bits: whole(1) as u32 };
        let (probes, elements) = (whole(2) as u32, whole(3));
        let same = filter.take().filter(|(filter, inserted)| {
            *inserted < elements && (filter.shape(), filter.probes()) == (shape, probes)
        });
        let (mut halving, inserted) = same.unwrap_or((HalvingLines::new(shape, probes), 0));
        let seed = shape.lines << 32 | u64::from(probes) << 24;
        let all: Vec<Digest> = (inserted..elements)
            .map(|element| match element % 3 {
                2 => split_mix((!seed).wrapping_add(element)) % (element + 1),
                _ => element,
            })
            .map(|which| Digest::from_value(split_mix(seed + which)))
            .collect();
        halving.insert_all(&all, &mut Vec::<Sighting>::new());
        let words = halving.words()[..shape.bytes().div_ceil(8) as usize].iter();
        assert_eq!(
            (u64::from(halving.stage), halving.firsts(), halving.array.lines.ones()),
            (whole(4), Some(whole(5)), whole(6)),
            "{row}"
        );
        assert_eq!(words.fold(0, |digest, word| split_mix(digest ^ word)), hex(7), "{row}");
        let estimate = halving.estimate();
        let numbers = [estimate.distinct, estimate.variance].map(f64::to_bits);
        assert_eq!((halving.limit, numbers), (whole(8), [hex(9), hex(10)]), "{row}");
        filter = Some((halving, elements));
    }
}

/// Compares S and the other derived fields with the definition: place by place in generation 0, and
/// bit by bit in the others.
fn check_sums(lines: &HalvingLines) {
    let (stage, words) = (lines.stage, lines.words());
    let LineShape { lines: all, word_bits } = lines.shape();
    let (width, line_bits) = (u64::from(word_bits), lines.shape().line_bits());
    let is_set = |line: u64, bit: u64| {
        let bit = line * line_bits + bit;
        words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    };
    // The share of full places of a line of generation 0.
    let full = |line: u64| {
        let ones = |word: u64| (0..width).filter(|bit| is_set(line, word * width + bit)).count();
        let window = |first: u64| {
            let words = (0..u64::from(lines.probes())).map(|step| (first + step) % 8);
            words.map(|word| ones(word) as f64 / width as f64).product::<f64>()
        };
        (0..8).map(window).sum::<f64>() / 8.0
    };
    let clear = |line: u64| (0..line_bits).filter(|&bit| !is_set(line, bit)).count() as f64;
    let (begin, len) = (lines.begin(stage), lines.len(stage));
    assert!(begin + len <= all);
    assert!((begin + len..all).all(|line| clear(line) as u64 == line_bits), "unused lines");
    if stage == 0 {
        let share: f64 = (0..len).map(|line| 1.0 - full(line)).sum::<f64>() / len as f64;
        assert!(lines.is_of_cache() || (lines.seen_share() - share).abs() < 1e-9);
        return;
    }
    let mut seen = 0.0;
    for line in 0..len {
        // An address of the line, and its lines in the other generations.
        let of_all = u128::from(all) << (stage - 1);
        let address = (((u128::from(2 * line + 1) << 63) / of_all) as u64).min(lines.highest);
        let address = Digest::from_value(address);
        assert!(lines.line_of(stage, address) == begin + line && address.value() <= lines.highest);
        let mut unknown = clear(begin + line) / line_bits as f64;
        for generation in 1..stage {
            unknown *= clear(lines.line_of(generation, address)) / line_bits as f64;
        }
        seen += unknown * (1.0 - full(lines.line_of(0, address)));
    }
    let sampled = (all >> stage) as f64 / all as f64;
    assert_eq!(reduce(lines.highest, all), (all >> stage) - 1);
    assert!(stage == 0 || reduce(lines.highest + 1, all) == all >> stage);
    let share = seen / len as f64 * sampled * lines.limit_share();
    // Each of six factors is rounded down to 2^-32.
    assert!((lines.seen_share() / share - 1.0).abs() < 1e-7, "{share} {lines:?}");
    let ones: u64 = (begin..begin + len).map(|line| line_bits - clear(line) as u64).sum();
    assert_eq!(lines.ones, ones);
}

/// Arrays of small, odd and usual sizes, in bytes.
fn shape(bytes: u64) -> LineShape {
    LineShape::halving(bytes)
}

#[test]
fn sums_are_those_of_the_definition_at_every_stage() {
    for (bytes, probes) in
        [(64, 4), (100, 3), (333, 8), (1024, 4), (1500, 2), (4096, 4), (12_500, 6)]
    {
        let mut halving = HalvingLines::new(shape(bytes), probes);
        let (mut stage, mut number) = (0, 0);
        while number < 40_000 {
            number += 1;
            halving.insert(digest(bytes, number));
            if halving.stage != stage || number.is_power_of_two() || number % 10_000 == 0 {
                stage = halving.stage;
                check_sums(&halving);
                let mut again = halving.clone();
                again.count_anew();
                assert_eq!(
                    (again.ones, again.clear, again.limit),
                    (halving.ones, halving.clear, halving.limit)
                );
            }
        }
        assert!(stage > 0, "{bytes} {stage}");
    }
}

/// With 64 bytes, one wrong line kept in generation 0 would give a bias of 0.4 % at a load of 2,
/// and dependent places 7 % at a load of 390.
#[test]
fn counts_are_unbiased_at_loads_that_would_show_wrong_lines_or_places() {
    for (bytes, elements, runs, most) in [
        (4096, 65_000, 150, 0.003),
        (64, 10_000, 4_000, 0.01),
        (64, 200_000, 250, 0.05),
        (100, 10_000, 4_000, 0.01),
        (1000, 20_000, 1_000, 0.003),
    ] {
        let (mut sum, mut squares, mut stated) = (0.0, 0.0, 0.0);
        let mut filter = HalvingLines::new(shape(bytes), 4);
        for seed in 0..runs {
            filter.clear();
            let all: Vec<Digest> = (0..elements).map(|number| digest(seed, number)).collect();
            filter.insert_all(&all, &mut Vec::<()>::new());
            let error = filter.estimate().distinct / elements as f64 - 1.0;
            sum += error;
            squares += error * error;
            stated += filter.estimate().variance / (elements * elements) as f64;
        }
        let runs = runs as f64;
        let (mean, error) = (sum / runs, squares.sqrt() / runs);
        println!(
            "{bytes} B, {elements}: {mean:+.5} ± {error:.5}, bits x variance {:.2}",
            stated / runs * 8.0 * bytes as f64
        );
        assert!(mean.abs() < 4.0 * error, "{bytes} {elements}: {mean} ± {error}");
        assert!(4.0 * error < 2.0 * most, "too few runs to tell");
        assert!((0.6..1.5).contains(&(squares / stated)), "{squares} {stated}");
    }
}

/// The order in which elements are first seen decides which of them are counted, but neither the
/// mean nor the stated error, nor how often the bounds hold.
#[test]
fn counts_hold_in_every_order_of_first_sightings() {
    type Key = fn(u64) -> u64;
    let orders: [(&str, Key); 5] = [
        ("ascending", |number| number),
        ("descending", |number| !number),
        ("last bits first", u64::reverse_bits),
        ("by another digest", split_mix),
        ("even before odd", |number| number.rotate_right(1)),
    ];
    for (bytes, elements, runs) in [(64, 3_000, 800), (512, 2_000, 800), (4096, 60_000, 40)] {
        let mut filter = HalvingLines::new(shape(bytes), 4);
        for (order, key) in orders {
            let mut numbers: Vec<u64> = (0..elements).collect();
            numbers.sort_unstable_by_key(|&number| key(number));
            let (mut sum, mut squares, mut stated, mut held) = (0.0, 0.0, 0.0, 0.0);
            for seed in 0..runs {
                filter.clear();
                let all: Vec<Digest> = numbers.iter().map(|&number| digest(seed, number)).collect();
                filter.insert_all(&all, &mut Vec::<()>::new());
                let estimate = filter.estimate();
                let error = estimate.distinct / elements as f64 - 1.0;
                sum += error;
                squares += error * error;
                stated += estimate.variance / (elements * elements) as f64;
                let bounds = estimate.lower()..=estimate.upper().unwrap();
                held += f64::from(u8::from(bounds.contains(&elements)));
            }
            let (mean, error) = (sum / runs as f64, f64::sqrt(squares) / runs as f64);
            let held = held / runs as f64;
            println!("{bytes} B, {order}: {mean:+.5} ± {error:.5}, {held:.3} within bounds");
            assert!(mean.abs() < 4.0 * error, "{bytes} B, {order}: {mean} ± {error}");
            assert!((0.6..1.5).contains(&(squares / stated)), "{order}: {squares} {stated}");
            let noise = f64::sqrt(0.95 * 0.05 / runs as f64);
            assert!(held > 0.95 - 4.0 * noise, "{bytes} B, {order}: {held}");
        }
    }
}

/// The bits of an element in the generations, and its window, are as independent as those of
/// different elements, also among the elements of one line.
#[test]
fn places_in_generations_are_independent() {
    const NUMBERS: u64 = 400_000;
    let numbers: Vec<[u64; 16]> = (0..NUMBERS)
        .map(|number| {
            // In the first of 64 lines.
            let digest = Digest::from_value(digest(9, number).value() >> 6);
            let (later, bits) = (later_places(digest), bits_of(digest));
            std::array::from_fn(|at| match at {
                0..6 => later >> (9 * at + 3) & 31,
                6 => later & 31,
                7 => bits >> 59,
                8 => bits & 31,
                9 => bits >> 18 & 31,
                // In lines with words of 44 bits.
                _ => digit(later, 352, at as u32 - 9) / 11,
            })
        })
        .collect();
    // Lines of the cache, and short ones.
    let whole_and_short = [(0..10).collect::<Vec<_>>(), (7..16).collect()];
    let pairs = whole_and_short.iter().flat_map(|group| {
        group.iter().flat_map(move |&one| group.iter().map(move |&other| (one, other)))
    });
    {
        for (one, other) in pairs.filter(|&(one, other)| other < one && (one, other) != (6, 0)) {
            let mut cells = vec![0_u32; 32 * 32];
            for places in &numbers {
                cells[(places[one] * 32 + places[other]) as usize] += 1;
            }
            let expected = NUMBERS as f64 / 1024.0;
            let chi: f64 =
                cells.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            assert!((chi - 1023.0).abs() < 4.5 * (2.0 * 1023.0_f64).sqrt(), "{one} {other}: {chi}");
        }
    }
}

/// From empty to the last stage and its limit, with repeats, for all types of answers.
#[test]
fn batches_of_any_length_equal_single_insertions() {
    for (bytes, probes, elements) in [
        (64, 4, 9_000),
        (512, 3, 9_000),
        (777, 3, 9_000),
        (4096, 4, 120_000),
        (4096, 8, 60_000),
        (8192, 1, 150_000),
        (12_500, 4, 120_000),
    ] {
        let numbers = (0..elements).map(|i| if i % 3 == 2 { i * 7 % (i + 1) } else { i });
        let digests: Vec<Digest> = numbers.map(|number| digest(3, number)).collect();
        let mut single = HalvingLines::new(shape(bytes), probes);
        let one_by_one: Vec<Sighting> = digests.iter().map(|&one| single.insert(one)).collect();
        for length in [1, 33, 128, 4_096, 150_000] {
            let mut batched = HalvingLines::new(shape(bytes), probes);
            let mut sightings = Vec::<Sighting>::new();
            for batch in digests.chunks(length) {
                batched.insert_all(batch, &mut sightings);
            }
            assert!(sightings == one_by_one, "{bytes} B, {length}");
            assert_eq!(batched.array.lines, single.array.lines);
            assert_eq!(batched.estimate(), single.estimate());
            assert_eq!(
                (batched.stage, batched.ones, batched.clear, batched.limit),
                (single.stage, single.ones, single.clear, single.limit)
            );
        }
        assert!(single.stage > 0, "{bytes}");
        single.clear();
        let mut empty = HalvingLines::new(shape(bytes), probes);
        empty.insert_all(&digests, &mut Vec::<()>::new());
        single.insert_all(&digests, &mut Vec::<()>::new());
        assert_eq!(single.estimate(), empty.estimate());
    }
}

#[test]
fn rows_keep_the_limit_of_the_last_stage() {
    // 64 lines reach their last stage after more elements than a test can insert.
    let mut lines = HalvingLines::new(64, 4);
    let mut inserted = 0;
    while lines.stage < MOST_STAGES {
        lines.halve();
        let all: Vec<Digest> = (inserted..inserted + 20_000).map(|n| digest(8, n)).collect();
        lines.insert_all(&all, &mut Vec::<()>::new());
        inserted += 20_000;
    }
    let mut single = lines.clone();
    let all: Vec<Digest> = (inserted / 2..inserted + 900_000).map(|n| digest(8, n)).collect();
    let (mut batched, one_by_one): (Vec<Sighting>, Vec<Sighting>) =
        (Vec::new(), all.iter().map(|&one| single.insert(one)).collect());
    lines.insert_all(&all, &mut batched);
    assert!(batched == one_by_one && lines.limit < ONE);
    assert_eq!(lines.estimate(), single.estimate());
    assert_eq!(lines.array.lines, single.array.lines);
}

/// Every element of either input is contained or not sampled, and none is new again; the count goes
/// on.
#[test]
fn a_union_contains_both_and_counts_on() {
    for (bytes, sizes) in [
        (4096, [3_000_u64, 4_000]),
        (4096, [30_000, 1_000]),
        (4096, [1_000, 200_000]),
        (64, [5_000, 60]),
        (1024, [20_000, 20_000]),
        (1234, [20_000, 2_000]),
    ] {
        let [mut one, mut other] = [0, 1].map(|at| {
            let mut lines = HalvingLines::new(shape(bytes), 4);
            let begin = at as u64 * sizes[0] / 2;
            let all: Vec<Digest> = (begin..begin + sizes[at]).map(|n| digest(1, n)).collect();
            lines.insert_all(&all, &mut Vec::<()>::new());
            lines
        });
        let counts = [&one, &other].map(HalvingLines::estimate);
        let mut opposite = other.clone();
        opposite.unite(&one);
        one.unite(&other);
        assert_eq!((&opposite.array.lines, opposite.stage), (&one.array.lines, one.stage));
        let union = one.estimate();
        let exact = (sizes[0] / 2 + sizes[1]).max(sizes[0]);
        if one.stage == 0 {
            let error = union.point().unwrap() - exact as f64;
            assert!(error.abs() < 5.0 * union.std_error(), "{union:?} {exact}");
        } else {
            assert_eq!(union.point(), None);
            assert_eq!(union.lower(), counts[0].lower().max(counts[1].lower()));
            assert!(union.lower() <= exact && exact <= union.upper().unwrap());
            check_sums(&one);
        }
        for number in 0..exact {
            assert_ne!(one.contains(digest(1, number)), Some(false));
            assert_ne!(one.insert(digest(1, number)), Sighting::First);
        }
        let before = one.counter.count().unwrap().about();
        let more = 20_000;
        let all: Vec<Digest> = (0..more).map(|n| digest(2, n)).collect();
        one.insert_all(&all, &mut Vec::<()>::new());
        let counted = one.counter.count().unwrap().about() - before;
        let error = one.counter.count().unwrap().parts().3.sqrt();
        assert!((counted - more as f64).abs() < 5.0 * error, "{counted} ± {error}");
        // The union with an empty filter changes nothing.
        other.unite(&HalvingLines::new(shape(bytes), 4));
        assert_eq!(other.estimate(), counts[1]);
    }
}

proptest! {
    /// No element is counted twice in any order, repeats change nothing, and a restored filter goes
    /// on like the saved one.
    #[test]
    fn no_repeat_is_ever_counted(
        bytes in prop::sample::select(vec![64_u64, 100, 192, 512, 1000, 4096, 4500]),
        probes in 1_u32..9,
        elements in 1_usize..4_000,
        repeats in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 0..400),
        seed in 0_u64..1_000,
    ) {
        let first: Vec<Digest> = (0..elements as u64).map(|n| digest(seed, n)).collect();
        let mut plain = HalvingLines::new(shape(bytes), probes);
        plain.insert_all(&first, &mut Vec::<()>::new());
        let mut again = HalvingLines::new(shape(bytes), probes);
        let (mut taken, mut seen) = (HashSet::new(), HashSet::new());
        let mut repeats = repeats.into_iter();
        for (at, &one) in first.iter().enumerate() {
            let sighting = again.insert(one);
            seen.insert(one);
            prop_assert!(sighting != Sighting::First || taken.insert(one));
            let Some((which, times)) = repeats.next() else { continue };
            for _ in 0..times {
                let repeated = first[which.index(at + 1)];
                prop_assert_ne!(again.insert(repeated), Sighting::First);
                prop_assert_ne!(again.contains(repeated), Some(false));
            }
        }
        prop_assert_eq!(&again.array.lines, &plain.array.lines);
        prop_assert_eq!(again.estimate(), plain.estimate());
        for &one in &first {
            prop_assert_ne!(again.contains(one), Some(false));
            prop_assert_ne!(again.insert(one), Sighting::First);
        }
        let (count, stage, limit) = again.parts();
        let mut loaded = HalvingLines::new(shape(bytes), probes);
        let read = loaded.restore(*count.unwrap(), (stage, limit), |array| {
            array.lines.as_mut_slice().copy_from_slice(again.array.lines.as_slice());
            Ok::<(), ()>(())
        });
        prop_assert_eq!(read, Ok(Some(())));
        let next: Vec<Digest> = (0..500).map(|n| digest(seed + 1_000, n)).collect();
        let mut sightings: [Vec<Sighting>; 2] = [Vec::new(), Vec::new()];
        loaded.insert_all(&next, &mut sightings[0]);
        again.insert_all(&next, &mut sightings[1]);
        prop_assert_eq!(&sightings[0], &sightings[1]);
        prop_assert_eq!(loaded.estimate(), again.estimate());
    }
}
