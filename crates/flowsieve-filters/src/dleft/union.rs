//! The union of two d-left filters.
//!
//! The H of an element follows from its cell, since a subtable's places are a permutation of the H
//! ([`super::places`]). So the elements of the other filter are inserted by the ordinary rule, each
//! with its count.

use super::{Bucket, CELLS, DleftFilter, Found, STASH_LARGEST};
use crate::bits::BitArray;
use crate::{DistinctCounter, Estimate, MembershipFilter, fill};

impl<B: Bucket> DleftFilter<B> {
    /// Makes this the union of both filters.
    pub(super) fn unite_with(&mut self, other: &Self) {
        let of_both = [self.distinct(), other.distinct()];
        self.unite_contents(other);
        let more = other.counter.as_ref();
        let fill = self.count_from_contents();
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, fill);
    }

    /// Returns the count of the stored elements, or `None` if some found no room.
    fn count_from_contents(&self) -> Option<Estimate> {
        if self.given_up.is_some() {
            return None;
        }
        // Every distinct H is stored once, like the bins that balls have hit among all H.
        let hashes = self.places.hashes() as f64;
        fill::independent(self.occupied + self.stash.len() as u64, hashes, 1)
    }

    fn unite_contents(&mut self, other: &Self) {
        let (nothing_here, nothing_there) = (self.is_empty(), other.is_empty());
        self.overflows = self.overflows.saturating_add(other.overflows);
        if nothing_there {
            return;
        }
        if nothing_here {
            *self =
                Self { counter: self.counter.take(), overflows: self.overflows, ..other.clone() };
            return;
        }
        // Before the elements, since those of a bucket that is given up take no room.
        if let Some(more) = &other.given_up {
            let buckets = self.places.buckets;
            let given_up = self.given_up.get_or_insert_with(|| BitArray::new(buckets));
            given_up.unite(more);
        }
        for (hash, count) in other.elements() {
            self.insert_times(hash, count);
        }
    }

    fn is_empty(&self) -> bool {
        self.occupied == 0 && self.stash.is_empty() && self.given_up.is_none()
    }

    /// Iterates over the H of all stored elements, those in cells first, each with its count as in
    /// the stash, where a count that has ended is [`STASH_LARGEST`].
    pub(super) fn elements(&self) -> impl Iterator<Item = (u64, u32)> {
        let largest = self.largest();
        let in_cell = move |at: usize, cell: u32| {
            let hash = self.places.hash_at(at, u64::from(cell >> self.counter_bits));
            let count = cell & largest;
            (count != 0).then_some((hash, if count == largest { STASH_LARGEST } else { count }))
        };
        let buckets = self.buckets.as_slice().iter().enumerate();
        let cells = buckets
            .flat_map(|(at, bucket)| (0..CELLS as u32).map(move |cell| (at, bucket.get(cell))));
        let stash = self.stash.iter().map(|(&hash, &count)| (hash, count));
        cells.filter_map(move |(at, cell)| in_cell(at, cell)).chain(stash)
    }

    /// Inserts an element this many times, counted as in the stash.
    fn insert_times(&mut self, hash: u64, count: u32) {
        let places = self.places(hash);
        match self.find(hash, &places) {
            None => self.place(hash, &places, count),
            Some(Found::GivenUp) => {}
            Some(Found::Stash) => {
                let here = self.stash.entry(hash).or_default();
                *here = (*here + count).min(STASH_LARGEST);
            }
            Some(Found::Cell { bucket, cell }) => self.count_up(bucket, cell, count),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

    use super::super::{Bucket16, Bucket24, Bucket32};
    use super::*;
    use crate::hashing::Digester;
    use crate::{ElementDigests, MembershipFilter, RemovableFilter};
    use std::collections::BTreeMap;

    fn whole(number: u32) -> ElementDigests<'static> {
        ElementDigests { whole: Digester::new(12).digest(&number.to_le_bytes()), attributes: &[] }
    }

    fn filled<B: Bucket>(
        [buckets, remainder_bits]: [u32; 2],
        numbers: impl IntoIterator<Item = u32>,
    ) -> DleftFilter<B> {
        let mut filter = DleftFilter::new(buckets.into(), remainder_bits, 2);
        for number in numbers {
            filter.insert(whole(number));
        }
        filter
    }

    /// Returns every stored H with its count.
    fn contents<B: Bucket>(filter: &DleftFilter<B>) -> BTreeMap<u64, u32> {
        let mut contents = BTreeMap::new();
        for (hash, count) in filter.elements() {
            assert_eq!(contents.insert(hash, count), None);
        }
        contents
    }

    #[test]
    fn the_hash_of_an_element_follows_from_its_cell() {
        let filter = filled::<Bucket16>([16, 11], 0..300);
        let hashes: BTreeMap<u64, u32> =
            (0..300).map(|number| (filter.places.hash(whole(number).whole), 1)).collect();
        assert!(contents(&filter).into_keys().eq(hashes.into_keys()));
        let filter = filled::<Bucket32>([1, 1], 0..300);
        assert!(contents(&filter).into_keys().eq([0, 1]));
    }

    /// In filters with room, with a stash, and with buckets given up.
    #[test]
    fn a_union_has_the_elements_of_both_with_their_counts() {
        fn check<B: Bucket>(size: [u32; 2], end: u32) -> (usize, u64) {
            // Both have the numbers below a third, and every tenth number is in the first twice.
            let first = || (0..2 * end / 3).chain((0..2 * end / 3).step_by(10));
            let second = || (0..end / 3).chain(2 * end / 3..end);
            let mut union = filled::<B>(size, first());
            union.unite_with(&filled(size, second()));
            let at_once = filled::<B>(size, first().chain(second()));
            for number in 0..end {
                assert!(union.contains(whole(number)), "{size:?} {number}");
            }
            if union.given_up() == 0 {
                assert_eq!(union.stashed() > 0, at_once.stashed() > 0);
                assert_eq!(contents(&union), contents(&at_once));
                assert_eq!(union.stats().counters, at_once.stats().counters);
                let [ours, watched] = [&union, &at_once].map(|filter| filter.distinct().unwrap());
                let error = 5.0 * ours.std_error() + 5.0 * watched.std_error() + 1e-3;
                assert!((ours.distinct - watched.distinct).abs() < error, "{ours:?}");
            } else {
                // The number of elements that found no room is unknown.
                let estimate = union.distinct().unwrap();
                assert!(estimate.point().is_none() && estimate.lower() <= end.into());
                assert!(estimate.upper().is_none_or(|upper| upper >= end.into()), "{estimate:?}");
            }
            (union.stashed(), union.given_up())
        }
        assert_eq!(check::<Bucket16>([64, 14], 1500), (0, 0));
        assert_eq!(check::<Bucket24>([77, 22], 1500), (0, 0));
        assert_eq!(check::<Bucket32>([8, 20], 200), (0, 0));
        // At 85 % of the cells the order in which a union inserts causes no more overflow than any
        // other.
        assert_eq!(check::<Bucket16>([256, 14], 6960), (0, 0));
        let (stashed, given_up) = check::<Bucket32>([8, 30], 300);
        assert!(stashed > 0 && given_up == 0, "{stashed} {given_up}");
        let (stashed, given_up) = check::<Bucket32>([8, 30], 600);
        assert!(stashed > 0 && given_up > 0, "{stashed} {given_up}");
    }

    /// A count that has ended never changes, in the stash as in a cell.
    #[test]
    fn an_ended_count_is_never_decremented() {
        // One bucket a subtable, whose cells are full: 500 is in the stash.
        let full = || (0..32).chain([500]);
        // In the other filter it is in a cell, and its count has ended.
        let ended = filled::<Bucket32>([1, 30], [500; 7]);
        assert_eq!(ended.stats().counters.unwrap().overflows, 4);
        let mut union = filled::<Bucket32>([1, 30], full());
        union.unite_with(&ended);
        assert_eq!(union.stashed(), 1);
        let counters = union.stats().counters.unwrap();
        assert_eq!((counters.saturated, counters.overflows), (1, 4));
        let mut other_way = ended;
        other_way.unite_with(&filled([1, 30], full()));
        let saturated = |filter: &DleftFilter<Bucket32>| filter.stats().counters.unwrap().saturated;
        assert_eq!((saturated(&other_way), other_way.stashed()), (1, 1));
        for filter in [&mut union, &mut other_way] {
            filter.insert(whole(500));
            for _ in 0..100 {
                filter.remove(whole(500));
            }
            assert!(filter.contains(whole(500)));
            assert_eq!(saturated(filter), 1);
        }
    }
}
