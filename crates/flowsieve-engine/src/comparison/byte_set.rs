//! A set of byte strings from which one can be drawn: the truth about elements and their parts.

use crate::memory::can_allocate;
use ahash::RandomState;
use hashbrown::HashTable;

/// Byte strings in the order in which they came, none twice; hashed with random keys, so that
/// nobody can choose strings that collide. The order does not depend on the keys.
#[derive(Debug)]
pub(super) struct ByteSet {
    hasher: RandomState,
    /// Numbers of the strings.
    table: HashTable<u32>,
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl ByteSet {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            table: HashTable::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Inserts a string; whether it was new. `None` if the set would need more than `limit` bytes,
    /// or than the system gives.
    pub(super) fn insert(&mut self, string: &[u8], limit: u64) -> Option<bool> {
        let hash = self.hasher.hash_one(string);
        if self.find(hash, string) {
            return Some(false);
        }
        let grows = self.table.len() == self.table.capacity()
            || self.ends.len() == self.ends.capacity()
            || self.bytes.len() + string.len() > self.bytes.capacity();
        // Whatever grows doubles, and the old and the new one are there together for a while.
        if (grows
            && (3 * self.memory_bytes() + 1024 + string.len() as u64 > limit
                || !can_allocate(2 * self.memory_bytes())))
            || self.ends.len() > u32::MAX as usize
        {
            return None;
        }
        if grows {
            self.reserve(string.len())?;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u64);
        let Self { hasher, table, bytes, ends } = self;
        table.insert_unique(hash, number, |&number| hasher.hash_one(at(bytes, ends, number)));
        Some(true)
    }

    /// Room for one more string of this many bytes; `None` if the system does not give it.
    fn reserve(&mut self, length: usize) -> Option<()> {
        let Self { hasher, table, bytes, ends } = self;
        bytes.try_reserve(length).ok()?;
        ends.try_reserve(1).ok()?;
        let hash = |&number: &u32| hasher.hash_one(at(bytes, ends, number));
        table.try_reserve(1, hash).ok()
    }

    pub(super) fn contains(&self, string: &[u8]) -> bool {
        self.find(self.hasher.hash_one(string), string)
    }

    fn find(&self, hash: u64, string: &[u8]) -> bool {
        let is = |&number: &u32| at(&self.bytes, &self.ends, number) == string;
        self.table.find(hash, is).is_some()
    }

    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The string that came as number `number`, from 0 on.
    pub(super) fn get(&self, number: u64) -> &[u8] {
        at(&self.bytes, &self.ends, number as u32)
    }

    fn memory_bytes(&self) -> u64 {
        (self.table.allocation_size() + self.bytes.capacity() + 8 * self.ends.capacity()) as u64
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

fn at<'a>(bytes: &'a [u8], ends: &[u64], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start as usize..ends[number] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_list_without_repeats(strings in prop::collection::vec(prop::collection::vec(0_u8..3, 0..6), 0..300)) {
            let mut set = ByteSet::new();
            let mut twin: Vec<Vec<u8>> = Vec::new();
            for string in &strings {
                let new = !twin.contains(string);
                prop_assert_eq!(set.contains(string), !new);
                prop_assert_eq!(set.insert(string, 1 << 30), Some(new));
                if new {
                    twin.push(string.clone());
                }
            }
            prop_assert_eq!(set.len(), twin.len() as u64);
            for (number, string) in (0..).zip(&twin) {
                prop_assert_eq!(set.get(number), string.as_slice());
            }
            set.clear();
            prop_assert!(strings.iter().all(|string| !set.contains(string)));
        }
    }

    #[test]
    fn refuses_what_would_pass_the_limit() {
        let mut set = ByteSet::new();
        let refused = (0..1_000_000_u32).find(|n| set.insert(&n.to_le_bytes(), 100_000).is_none());
        assert!(refused.is_some_and(|n| n > 1000), "{refused:?}");
        assert!(set.memory_bytes() <= 100_000);
    }
}
