//! The exact answer: one set of all elements, and the number of new ones of each key.

use super::extract::{Record, Repeats};
use super::plan::RankBy;
use super::results::{Exact, order_of_keys};
use crate::interner::Interner;
use crate::pipeline::ExactSet;
use serde::{Deserialize, Serialize};

/// The exact answer, for all keys of a slice or for those of a shard.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ExactAnswer {
    /// Distinct elements.
    pub(crate) distinct: u64,
    /// Number of keys.
    pub(crate) keys: u64,
    /// The largest keys, the largest first.
    pub(crate) largest: Vec<(Vec<u8>, Exact)>,
}

/// The truth about a slice.
#[derive(Debug)]
pub(crate) struct Truth {
    elements: ExactSet,
    keys: Keys,
}

impl Truth {
    /// An empty one that takes at most this many bytes. Beyond that it gives up, and has no answer.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { elements: ExactSet::new(limit_bytes / 3 * 2), keys: Keys::new(limit_bytes / 3) }
    }

    /// Adds an element.
    #[inline]
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        if self.keys.over_limit {
            return;
        }
        let is_new = self.elements.insert(record.element);
        self.keys.add(record.key, is_new, record.bytes);
    }

    /// Adds packets of a key that are no first sightings; false if the key never came.
    pub(crate) fn add_repeats(&mut self, repeats: &Repeats<'_>) -> bool {
        let Some(number) = self.keys.interner.number(repeats.key) else {
            return self.keys.over_limit;
        };
        let exact = &mut self.keys.numbers[number];
        exact.packets = exact.packets.saturating_add(repeats.packets);
        exact.bytes = exact.bytes.saturating_add(repeats.bytes);
        true
    }

    /// Distinct elements, unless the limit was passed.
    fn distinct(&self) -> Option<u64> {
        self.elements.distinct().filter(|_| !self.keys.over_limit)
    }

    /// Number of keys.
    fn keys(&self) -> u64 {
        self.keys.numbers.len() as u64
    }

    /// Returns the answer with the keys of [`Self::largest`], unless the limit was passed.
    pub(crate) fn answer(&self, by: RankBy, least: u64, most: usize) -> Option<ExactAnswer> {
        let (distinct, keys) = (self.distinct()?, self.keys());
        Some(ExactAnswer { distinct, keys, largest: self.largest(by, least, most) })
    }

    /// Returns the keys with this many distinct others, in no order.
    pub(crate) fn keys_with(&self, distinct: u64) -> Vec<Vec<u8>> {
        let Keys { interner: keys, numbers, .. } = &self.keys;
        let with = (0..).zip(numbers).filter(|(_, exact)| exact.distinct == distinct);
        with.map(|(number, _)| keys.get(number).to_vec()).collect()
    }

    /// Returns the bytes of the set and of the keys.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        (self.elements.memory_bytes(), self.keys.interner.reckoned_bytes(size_of::<Exact>()))
    }

    /// Whether one process with this limit gives up before its set and its keys have this many
    /// bytes: what grows doubles, and the old and the new one exist together for a while.
    pub(crate) fn is_over(limit_bytes: u64, (set, keys): (u64, u64)) -> bool {
        let third = limit_bytes / 3;
        set.saturating_mul(3) / 2 > 2 * third || keys.saturating_mul(3) / 2 > third
    }

    /// Returns the numbers of a key; zeros if it never came.
    pub(super) fn of_key(&self, key: &[u8]) -> Exact {
        let number = self.keys.interner.number(key);
        number.map_or_else(Exact::default, |number| self.keys.numbers[number].clone())
    }

    /// The keys with `least` distinct others or more, at most `most` of them: the largest by this
    /// number first, equal ones by key.
    fn largest(&self, by: RankBy, least: u64, most: usize) -> Vec<(Vec<u8>, Exact)> {
        let Keys { interner: keys, numbers, .. } = &self.keys;
        let mut largest: Vec<usize> =
            (0..numbers.len()).filter(|&number| numbers[number].distinct >= least).collect();
        let order = |&a: &usize, &b: &usize| {
            let key = |number: usize| (keys.get(number as u64), &numbers[number]);
            order_of_keys(key(a), key(b), by)
        };
        if largest.len() > most {
            if most > 0 {
                largest.select_nth_unstable_by(most - 1, order);
            }
            largest.truncate(most);
        }
        largest.sort_unstable_by(order);
        let found = largest.into_iter();
        found.map(|number| (keys.get(number as u64).to_vec(), numbers[number].clone())).collect()
    }

    /// Removes everything, and keeps the memory if it is not much.
    pub(crate) fn clear(&mut self) {
        self.elements.clear();
        self.keys.clear();
    }
}

/// Numbers by key.
#[derive(Debug)]
struct Keys {
    interner: Interner,
    /// One for each key, by its number.
    numbers: Vec<Exact>,
    limit_bytes: u64,
    over_limit: bool,
}

impl Keys {
    fn new(limit_bytes: u64) -> Self {
        Self { interner: Interner::default(), numbers: Vec::new(), limit_bytes, over_limit: false }
    }

    #[inline]
    fn add(&mut self, key: &[u8], is_new: bool, bytes: u32) {
        let Some(number) = self.intern(key) else {
            *self = Self { over_limit: true, ..Self::new(self.limit_bytes) };
            return;
        };
        let exact = &mut self.numbers[number];
        exact.distinct += u64::from(is_new);
        exact.packets += 1;
        exact.bytes += u64::from(bytes);
    }

    /// Returns the number of a key; `None` if it passes the limit, or the system gives no memory.
    fn intern(&mut self, key: &[u8]) -> Option<usize> {
        let (number, is_new) = self.interner.intern(key, size_of::<Exact>(), self.limit_bytes)?;
        if is_new {
            self.numbers.try_reserve(1).ok()?;
            self.numbers.push(Exact::default());
        }
        Some(number)
    }

    fn clear(&mut self) {
        /// The share of the limit that may be kept.
        const KEPT: u64 = 16;
        if self.over_limit || self.interner.memory_bytes() > self.limit_bytes / KEPT {
            *self = Self::new(self.limit_bytes);
        }
        self.interner.clear();
        self.numbers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn numbers_are_those_of_sets(elements in prop::collection::vec((0_u8..9, 0_u8..30, 0_u32..99), 0..400)) {
            let mut truth = Truth::new(1 << 30);
            let mut twin: BTreeMap<u8, (BTreeSet<u8>, u64, u64)> = BTreeMap::new();
            for &(key, other, bytes) in &elements {
                let element = [key, 0, other];
                truth.add(&Record { bytes, key: &element[..2], element: &element });
                let of = twin.entry(key).or_default();
                of.0.insert(other);
                of.1 += 1;
                of.2 += u64::from(bytes);
            }
            let sum: usize = twin.values().map(|(others, ..)| others.len()).sum();
            prop_assert_eq!(truth.distinct(), Some(sum as u64));
            prop_assert_eq!(truth.keys(), twin.len() as u64);
            let mut all: Vec<(u64, u8)> = twin.iter().map(|(&key, of)| (of.0.len() as u64, key)).collect();
            all.sort_by_key(|&(number, key)| (u64::MAX - number, key));
            for most in [0, 1, 5, usize::MAX] {
                let largest = truth.largest(RankBy::Distinct, 2, most);
                let expected = all.iter().filter(|(number, _)| *number >= 2).take(most);
                prop_assert_eq!(largest.len(), expected.clone().count());
                for ((key, exact), &(number, expected)) in largest.iter().zip(expected) {
                    let (_, packets, bytes) = twin[&expected];
                    prop_assert_eq!(key, &[expected, 0]);
                    prop_assert_eq!(exact, &Exact { distinct: number, packets, bytes });
                    prop_assert_eq!(&truth.of_key(key), exact);
                }
            }
            truth.clear();
            prop_assert_eq!((truth.distinct(), truth.keys()), (Some(0), 0));
        }
    }

    proptest! {
        /// Whether a slice passes the limit does not depend on slices before it.
        #[test]
        fn a_cleared_one_gives_up_where_a_new_one_does(
            slices in prop::collection::vec((1_usize..60, 1_u32..400), 2..4),
            limit_bytes in 1_u64..200_000,
        ) {
            let mut truth = Truth::new(limit_bytes);
            for (length, elements) in slices {
                truth.clear();
                let mut fresh = Truth::new(limit_bytes);
                for number in 0..elements {
                    let mut element = vec![0; length + 4];
                    element[length..].copy_from_slice(&number.to_le_bytes());
                    let key = &element[..length + usize::from(number % 3 > 0)];
                    for one in [&mut truth, &mut fresh] {
                        one.add(&Record { bytes: 1, key, element: &element });
                    }
                }
                prop_assert_eq!(truth.distinct(), fresh.distinct());
                prop_assert_eq!(truth.keys(), fresh.keys());
            }
        }
    }

    #[test]
    fn gives_up_at_its_limit_until_it_is_cleared() {
        let mut truth = Truth::new(60_000);
        for number in 0..10_000_u32 {
            let element = number.to_le_bytes();
            truth.add(&Record { bytes: 1, key: &element, element: &element });
        }
        assert_eq!(truth.distinct(), None);
        truth.clear();
        assert_eq!(truth.distinct(), Some(0));
    }
}
