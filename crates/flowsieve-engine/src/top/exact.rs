//! The exact answer: one set of all elements, and the number of new ones of each key.

use super::extract::{Record, Repeats};
use super::results::Exact;
use crate::memory::can_allocate;
use crate::pipeline::ExactSet;
use ahash::RandomState;
use hashbrown::HashTable;

/// The truth about a slice.
#[derive(Debug)]
pub(super) struct Truth {
    elements: ExactSet,
    keys: Keys,
}

impl Truth {
    /// An empty one that takes at most this many bytes. Beyond that it gives up, and has no answer.
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self { elements: ExactSet::new(limit_bytes / 3 * 2), keys: Keys::new(limit_bytes / 3) }
    }

    /// Takes an element.
    #[inline]
    pub(super) fn add(&mut self, record: &Record<'_>) {
        if self.keys.over_limit {
            return;
        }
        let is_new = self.elements.insert(record.element);
        self.keys.add(record.key, is_new, record.bytes);
    }

    /// Takes packets of a key that are no first sightings; false if the key never came.
    pub(super) fn add_repeats(&mut self, repeats: &Repeats<'_>) -> bool {
        let Some(number) = self.keys.number_of(repeats.key) else {
            return self.keys.over_limit;
        };
        let exact = &mut self.keys.entries[number].exact;
        exact.packets = exact.packets.saturating_add(repeats.packets);
        exact.bytes = exact.bytes.saturating_add(repeats.bytes);
        true
    }

    /// Distinct elements, unless the limit was passed.
    pub(super) fn distinct(&self) -> Option<u64> {
        self.elements.distinct().filter(|_| !self.keys.over_limit)
    }

    /// Number of keys.
    pub(super) fn keys(&self) -> u64 {
        self.keys.entries.len() as u64
    }

    /// What is known of a key; nothing if it never came.
    pub(super) fn of_key(&self, key: &[u8]) -> Exact {
        let entry = self.keys.find(key);
        entry.map_or_else(Exact::default, |entry| entry.exact.clone())
    }

    /// The keys with `least` distinct others or more, at most `most` of them: the largest first,
    /// equal ones by key.
    pub(super) fn largest(&self, least: u64, most: usize) -> Vec<(Vec<u8>, Exact)> {
        let entries = self.keys.entries.iter();
        let mut largest: Vec<&Entry> =
            entries.filter(|entry| entry.exact.distinct >= least).collect();
        let order = |a: &&Entry, b: &&Entry| {
            let by_number = b.exact.distinct.cmp(&a.exact.distinct);
            by_number.then_with(|| self.keys.key(a).cmp(self.keys.key(b)))
        };
        if largest.len() > most {
            if most > 0 {
                largest.select_nth_unstable_by(most - 1, order);
            }
            largest.truncate(most);
        }
        largest.sort_unstable_by(order);
        let found = largest.into_iter();
        found.map(|entry| (self.keys.key(entry).to_vec(), entry.exact.clone())).collect()
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.elements.clear();
        self.keys.clear();
    }
}

/// Numbers by key. Hashed with random keys, so that nobody can choose keys that collide; nothing
/// that is reported depends on them.
#[derive(Debug)]
struct Keys {
    hasher: RandomState,
    /// Numbers of the entries.
    index: HashTable<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    limit_bytes: u64,
    over_limit: bool,
}

#[derive(Debug)]
struct Entry {
    at: u64,
    length: u16,
    exact: Exact,
}

impl Keys {
    fn new(limit_bytes: u64) -> Self {
        Self {
            hasher: RandomState::new(),
            index: HashTable::new(),
            entries: Vec::new(),
            bytes: Vec::new(),
            limit_bytes,
            over_limit: false,
        }
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        key_of(&self.bytes, entry)
    }

    fn find(&self, key: &[u8]) -> Option<&Entry> {
        Some(&self.entries[self.number_of(key)?])
    }

    fn number_of(&self, key: &[u8]) -> Option<usize> {
        let is = |&number: &u32| self.key(&self.entries[number as usize]) == key;
        let number = self.index.find(self.hasher.hash_one(key), is)?;
        Some(*number as usize)
    }

    #[inline]
    fn add(&mut self, key: &[u8], is_new: bool, bytes: u32) {
        let hash = self.hasher.hash_one(key);
        let is = |&number: &u32| self.key(&self.entries[number as usize]) == key;
        let number = if let Some(number) = self.index.find(hash, is) {
            *number as usize
        } else if self.reserve(key.len()).is_some() {
            self.append(hash, key)
        } else {
            *self = Self { over_limit: true, ..Self::new(self.limit_bytes) };
            return;
        };
        let exact = &mut self.entries[number].exact;
        exact.distinct += u64::from(is_new);
        exact.packets += 1;
        exact.bytes += u64::from(bytes);
    }

    fn append(&mut self, hash: u64, key: &[u8]) -> usize {
        let number = self.entries.len();
        self.entries.push(Entry {
            at: self.bytes.len() as u64,
            length: key.len() as u16,
            exact: Exact::default(),
        });
        self.bytes.extend_from_slice(key);
        let Self { hasher, index, entries, bytes, .. } = self;
        index.insert_unique(hash, number as u32, |&number| {
            hasher.hash_one(key_of(bytes, &entries[number as usize]))
        });
        number
    }

    /// Room for one key more; `None` if that passes the limit, or the system does not give it.
    fn reserve(&mut self, length: usize) -> Option<()> {
        let grows = self.index.len() == self.index.capacity()
            || self.entries.len() == self.entries.capacity()
            || self.bytes.len() + length > self.bytes.capacity();
        if !grows {
            return Some(());
        }
        // Whatever grows doubles, and the old and the new one are there together for a while.
        let memory = (self.index.allocation_size()
            + self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()) as u64;
        let fits =
            3 * memory + 1024 + length as u64 <= self.limit_bytes && can_allocate(2 * memory);
        if !fits || self.entries.len() >= u32::MAX as usize {
            return None;
        }
        let Self { hasher, index, entries, bytes, .. } = self;
        bytes.try_reserve(length).ok()?;
        entries.try_reserve(1).ok()?;
        let hash = |&number: &u32| hasher.hash_one(key_of(bytes, &entries[number as usize]));
        index.try_reserve(1, hash).ok()
    }

    fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
        self.bytes.clear();
        self.over_limit = false;
    }
}

fn key_of<'a>(bytes: &'a [u8], entry: &Entry) -> &'a [u8] {
    &bytes[entry.at as usize..][..usize::from(entry.length)]
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
                let largest = truth.largest(2, most);
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
