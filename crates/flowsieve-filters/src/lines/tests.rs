use super::*;
use crate::Sighting;
use crate::hashing::Digester;
use std::collections::HashSet;

fn digests(count: u64) -> Vec<Digest> {
    let digester = Digester::new(3);
    // With repeats.
    let number = |i: u64| if i % 3 == 2 { i / 2 } else { i };
    (0..count).map(|i| digester.digest(&number(i).to_le_bytes())).collect()
}

/// From empty to full lines.
#[test]
fn batches_of_any_length_equal_single_insertions() {
    for probes in [1, 4, 8, 9, 16, 21, 32] {
        let digests = digests(12_000);
        let mut array = LineArray::new(40);
        let mut counter = LineCounter::empty(probes);
        let one_by_one: Vec<Sighting> =
            digests.iter().map(|&digest| array.insert(&mut counter, digest)).collect();
        for length in [1, 31, 32, 33, 100, 128, 4096, 12_000] {
            let mut batched = LineArray::new(40);
            let mut count = LineCounter::empty(probes);
            let mut sightings: Vec<Sighting> = Vec::new();
            for batch in digests.chunks(length) {
                batched.insert_all(&mut count, batch, &mut sightings);
            }
            assert_eq!(sightings, one_by_one);
            assert_eq!(batched.lines, array.lines);
            assert_eq!(batched.estimate(&count), array.estimate(&counter));
        }
    }
}

/// From empty to crowded lines, with few values and many, and with one counter that does not count.
#[test]
fn digests_in_turn_equal_single_insertions() {
    let digester = Digester::new(5);
    for (columns, elements, step) in [
        (2, 6_000, 5),
        (3, 4_000, 5),
        (5, 2_500, 5),
        (128, 100, 5),
        (2, 6_000, 13),
        (4, 3_000, 7),
        (40, 200, 11),
    ] {
        // Some counters have more than eight bits.
        let most = if step == 5 { 8 } else { 30 };
        let digest = |element: usize, column: usize| {
            let number = element % (elements / (1 + column % 3));
            digester.digest(&[number, column].map(usize::to_le_bytes).concat())
        };
        let mut array = LineArray::new(40);
        let counter = |column: usize| match column {
            1 if columns == 5 => LineCounter::off(3),
            _ => LineCounter::empty(1 + column as u32 * step % most),
        };
        let counters: Vec<LineCounter> = (0..columns).map(counter).collect();
        let (mut in_turn, mut sightings) = (array.clone(), Vec::<Sighting>::new());
        let mut counts = counters.clone();
        // In several calls, so that rows end at any element.
        for (begin, end) in [(0, 1), (1, elements / 3), (elements / 3, elements)] {
            let digests_of = |element: usize, digests: &mut [Digest]| {
                for (column, place) in digests.iter_mut().enumerate() {
                    *place = digest(begin + element, column);
                }
            };
            in_turn.insert_in_turn(&mut counts, end - begin, digests_of, &mut sightings);
        }
        let (mut one_by_one, mut firsts) = (counters, Vec::new());
        for element in 0..elements {
            let all = one_by_one.iter_mut().enumerate();
            let outcome: Vec<Sighting> = all
                .map(|(column, counter)| array.insert(counter, digest(element, column)))
                .collect();
            firsts.push(outcome[0]);
        }
        assert_eq!(sightings, firsts);
        assert_eq!(in_turn.lines, array.lines);
        for (count, expected) in counts.iter().zip(&one_by_one) {
            assert_eq!(in_turn.estimate(count), array.estimate(expected));
        }
    }
}

#[test]
fn without_a_count_bits_and_answers_are_the_same() {
    let digests = digests(3_000);
    let mut array = LineArray::new(100);
    let (mut counter, mut sightings) = (LineCounter::empty(5), Vec::<Sighting>::new());
    array.insert_all(&mut counter, &digests, &mut sightings);
    let mut other = LineArray::new(100);
    let (mut off, mut answers) = (LineCounter::off(5), Vec::<Sighting>::new());
    other.insert_all(&mut off, &digests[..2_000], &mut answers);
    answers
        .extend(digests[2_000..].iter().map(|&digest| other.insert::<Sighting>(&mut off, digest)));
    assert_eq!(answers, sightings);
    assert_eq!(other.lines, array.lines);
    off.clear();
    assert_eq!((off.is_on(), off.firsts()), (false, None));
    let estimate = other.estimate(&off).unwrap();
    let exact = digests.iter().collect::<HashSet<_>>().len() as f64;
    assert!((estimate.distinct - exact).abs() < 5.0 * estimate.std_error());
}

/// Compares the mean error and its scatter over 400 arrays with the variance that each count
/// states.
#[test]
fn counts_are_unbiased_and_know_their_error() {
    const ARRAYS: u64 = 400;
    for (probes, elements) in [
        (6, 1_500_u64),
        (6, 2_400),
        (4, 2_400),
        (8, 3_600),
        (2, 1_200),
        (12, 1_500),
        (16, 1_600),
        (20, 1_800),
    ] {
        let (mut sum, mut squares, mut stated) = (0.0, 0.0, 0.0);
        for seed in 0..ARRAYS {
            let digester = Digester::new(1_000 + seed);
            let digests: Vec<Digest> =
                (0..elements).map(|i| digester.digest(&i.to_le_bytes())).collect();
            let mut array = LineArray::new(32);
            let mut counter = LineCounter::empty(probes);
            array.insert_all(&mut counter, &digests, &mut Vec::<Sighting>::new());
            let estimate = array.estimate(&counter).unwrap();
            let error = estimate.distinct - elements as f64;
            sum += error;
            squares += error * error;
            stated += estimate.variance;
        }
        let n = ARRAYS as f64;
        let (mean, variance) = (sum / n, squares / n);
        let std_error = (variance / n).sqrt();
        assert!(mean.abs() < 4.0 * std_error, "k {probes}: {mean} ± {std_error}");
        let ratio = stated / n / variance;
        // For a normal error the scatter of 400 squares is 7 % of their mean.
        assert!((0.72..1.38).contains(&ratio), "k {probes}: {ratio}");
    }
}
