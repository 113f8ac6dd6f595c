use super::*;
use crate::hashing::Digester;
use crate::hashing::mix;

fn whole(number: u32) -> ElementDigests<'static> {
    ElementDigests { whole: Digester::new(11).digest(&number.to_le_bytes()), attributes: &[] }
}

/// Inserts one element too many for the buckets, then for the stash, and removes them again.
#[test]
fn nothing_is_lost_when_buckets_and_stash_are_full() {
    // 32 cells, a stash of 64, and q = 30 bits, so that no two elements share an H.
    let mut filter = DleftFilter::<Bucket32>::new(1, 30, 2);
    for number in 0..96 {
        assert_eq!(filter.insert(whole(number)), Sighting::First);
    }
    assert_eq!((filter.loads(), filter.stashed(), filter.given_up()), ([8; 4], 64, 0));
    assert!(filter.distinct().is_some());
    assert!(!filter.contains(whole(96)));
    let memory = filter.stats().memory_bytes;
    assert_eq!(memory, 4 * 32 + 64 * 16);

    assert_eq!(filter.insert(whole(96)), Sighting::First);
    assert_eq!((filter.stashed(), filter.given_up()), (64, 1));
    assert_eq!(filter.distinct().and_then(Estimate::point), None);
    assert_eq!(filter.distinct().map(|count| count.distinct.round()), Some(97.0));
    // The only bucket is given up: everything is contained from now on.
    assert!(filter.contains(whole(1_000_000)));
    assert_eq!(filter.insert(whole(97)), Sighting::Repeat);
    // A bit and a count for the bucket.
    assert_eq!(filter.stats().memory_bytes, memory + 1 + 4);

    for number in 0..96 {
        filter.remove(whole(number));
    }
    assert_eq!((filter.loads(), filter.stashed(), filter.given_up()), ([0; 4], 0, 1));
    assert!(filter.contains(whole(96)) && filter.contains(whole(97)));
    filter.clear();
    assert_eq!(filter.given_up(), 0);
    assert!(!filter.contains(whole(96)));
}

#[test]
fn a_saturated_count_is_never_decremented() {
    for (counter_bits, largest) in [(2, 3), (4, 15)] {
        let mut filter = DleftFilter::<Bucket16>::new(16, 10, counter_bits);
        for _ in 0..largest - 1 {
            filter.insert(whole(1));
        }
        assert_eq!(filter.stats().counters, Some(CounterStats::default()));
        for _ in 0..3 {
            filter.insert(whole(1));
        }
        let counters = CounterStats { saturated: 1, overflows: 2, ..CounterStats::default() };
        assert_eq!(filter.stats().counters, Some(counters));
        for _ in 0..100 {
            filter.remove(whole(1));
        }
        assert!(filter.contains(whole(1)));
    }
}

/// Compares every cell value with every tag for small widths: a cell matches if and only if it is
/// in use and has the remainder.
#[test]
fn matches_are_cells_in_use_with_the_remainder() {
    let (remainder_bits, counter_bits) = (4, 2);
    let largest = (1 << counter_bits) - 1;
    for value in 0..1 << (remainder_bits + counter_bits) {
        if value != 0 && value & largest == 0 {
            continue; // a remainder without a count is never stored
        }
        for remainder in 0..1 << remainder_bits {
            let tag = remainder << counter_bits;
            let expected = value & largest != 0 && value >> counter_bits == remainder;
            let (mut small, mut large) = (Bucket16::default(), Bucket32::default());
            let mut middle = Bucket24::default();
            small.set(5, value);
            middle.set(5, value);
            large.set(5, value);
            assert_eq!(middle.matches(tag, largest), u32::from(expected) << 5);
            assert_eq!((middle.occupied(), middle.get(5)), (u32::from(value != 0) << 5, value));
            let mask = u32::from(expected) << 5;
            assert_eq!(small.matches(tag, largest), mask, "{value} {remainder}");
            assert_eq!(large.matches(tag, largest), mask, "{value} {remainder}");
            assert_eq!(small.occupied(), u32::from(value != 0) << 5);
            assert_eq!((small.get(5), large.get(5)), (value, value));
        }
    }
}

/// In a filter so large that a batch fetches its buckets first.
#[test]
fn a_large_batch_equals_single_insertions() {
    let mut batched = DleftFilter::<Bucket16>::new(1 << 15, 8, 2);
    let mut one_by_one = batched.clone();
    let digests: Vec<Digest> =
        (0..10_007_u32).map(|i| Digester::new(1).digest(&(i % 7000).to_le_bytes())).collect();
    let columns = DigestColumns { whole: &digests, attributes: &[] };
    let mut sightings = Vec::new();
    batched.insert_batch(columns, &mut sightings);
    let expected: Vec<Sighting> = columns.iter().map(|e| one_by_one.insert(e)).collect();
    assert_eq!(sightings, expected);
    assert_eq!(batched.loads(), one_by_one.loads());
    assert_eq!(batched.distinct(), one_by_one.distinct());
    let asked: Vec<Digest> =
        (5000..9000_u32).map(|i| Digester::new(1).digest(&i.to_le_bytes())).collect();
    let columns = DigestColumns { whole: &asked, attributes: &[] };
    let mut answers = Vec::new();
    batched.contains_batch(columns, &mut answers);
    let expected: Vec<bool> = columns.iter().map(|e| one_by_one.contains(e)).collect();
    assert_eq!(answers, expected);
}

/// Queries batches of any length, where buckets, stash and buckets given up say yes.
#[test]
fn batches_of_queries_equal_single_queries() {
    fn check<B: Bucket>(buckets: u64, remainder_bits: u32, elements: u32) -> (usize, u64) {
        let mut filter = DleftFilter::<B>::new(buckets, remainder_bits, 2);
        for number in 0..elements {
            filter.insert(whole(number));
        }
        let digests: Vec<Digest> = (0..2 * elements)
            .map(|number| whole(number.wrapping_mul(7) % (2 * elements)).whole)
            .collect();
        for length in [0, 1, 7, 8, 9, 31, 32, 33, 63, digests.len()] {
            let columns =
                DigestColumns { whole: &digests[..length.min(digests.len())], attributes: &[] };
            let mut answers = vec![false];
            filter.contains_batch(columns, &mut answers);
            let expected: Vec<bool> = std::iter::once(false)
                .chain(columns.iter().map(|element| filter.contains(element)))
                .collect();
            assert_eq!(answers, expected);
        }
        (filter.stashed(), filter.given_up())
    }
    assert_eq!(check::<Bucket16>(256, 14, 6_000), (0, 0));
    assert_eq!(check::<Bucket32>(1 << 15, 30, 20_000), (0, 0));
    assert_eq!(check::<Bucket24>(9_999, 22, 20_000), (0, 0));
    assert_eq!(check::<Bucket16>(300, 14, 6_000), (0, 0));
    let (stashed, given_up) = check::<Bucket16>(256, 10, 8_050);
    assert!(stashed > 0 && given_up == 0, "{stashed} {given_up}");
    let (stashed, given_up) = check::<Bucket32>(64, 30, 2_200);
    assert!(stashed > 0 && given_up > 0, "{stashed} {given_up}");
    let (stashed, given_up) = check::<Bucket24>(63, 20, 2_200);
    assert!(stashed > 0 && given_up > 0, "{stashed} {given_up}");
}

#[test]
fn a_bucket_holds_what_it_matches() {
    fn check<B: Bucket>(remainder_bits: u32, counter_bits: u32) {
        let largest = (1 << counter_bits) - 1;
        for seed in 0..2_000_u64 {
            let mut bucket = B::default();
            for cell in 0..CELLS as u32 {
                let random = mix(Digest::from_value(seed), 100 + u64::from(cell));
                // Few remainders, and counts of 0, so that both answers are frequent.
                let remainder = (random as u32 & 7) << (remainder_bits - 3);
                bucket.set(cell, remainder << counter_bits | (random >> 32) as u32 & largest);
            }
            for remainder in 0..8 {
                let tag = remainder << (remainder_bits - 3) << counter_bits;
                let matches = bucket.matches(tag, largest) != 0;
                assert_eq!(B::any_holds([&bucket], [tag], largest), matches, "{bucket:?} {tag}");
            }
        }
    }
    check::<Bucket16>(14, 2);
    check::<Bucket16>(10, 4);
    check::<Bucket24>(22, 2);
    check::<Bucket24>(20, 4);
    check::<Bucket24>(9, 2);
    check::<Bucket32>(30, 2);
    check::<Bucket32>(20, 4);
}

/// Files may claim nearly the largest number of lost increments, and be united.
#[test]
fn lost_increments_saturate() {
    let mut filter = DleftFilter::<Bucket16>::new(16, 10, 2);
    filter.overflows = u64::MAX - 1;
    for _ in 0..9 {
        filter.insert(whole(1));
    }
    assert_eq!(filter.stats().counters.unwrap().overflows, u64::MAX);
    filter.unite_with(&filter.clone());
    assert_eq!(filter.stats().counters.unwrap().overflows, u64::MAX);
}
