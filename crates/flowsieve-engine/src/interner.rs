//! Byte strings, each once, with their numbers; bounded in memory.

use crate::memory::can_allocate;
use ahash::RandomState;
use hashbrown::HashTable;

/// Numbers distinct byte strings in the order in which they come. Hashed with random keys, so that
/// an attacker cannot choose strings that collide; the numbers do not depend on the keys.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    hasher: RandomState,
    /// Numbers of the strings.
    table: HashTable<u32>,
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Interner {
    /// Returns the number of a string, and whether it is new. `None` if the strings would need more
    /// than `limit` bytes, with `a_string` more for each, or more than the system gives.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        string: &[u8],
        a_string: usize,
        limit: u64,
    ) -> Option<(usize, bool)> {
        let hash = self.hasher.hash_one(string);
        if let Some(number) = self.find(hash, string) {
            return Some((number, false));
        }
        self.reserve(string.len(), a_string, limit)?;
        let number = self.ends.len();
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u64);
        let Self { hasher, table, bytes, ends } = self;
        let hash_of = |&number: &u32| hasher.hash_one(at(bytes, ends, number as usize));
        table.insert_unique(hash, number as u32, hash_of);
        Some((number, true))
    }

    /// Makes room for one more string of this many bytes. Whether there is some depends on the
    /// strings alone, and not on memory that was kept.
    fn reserve(&mut self, length: usize, a_string: usize, limit: u64) -> Option<()> {
        let Self { hasher, table, bytes, ends } = self;
        let (strings, room) = (ends.len(), (bytes.len() + length).next_power_of_two());
        let memory = reckoned_bytes(strings, bytes.len(), a_string);
        if reckoned_bytes(strings + 1, room, a_string) > memory {
            // Whatever grows doubles, and the old and the new one exist together for a while.
            let fits = 3 * memory + 1024 + length as u64 <= limit && can_allocate(2 * memory);
            if !fits || strings >= u32::MAX as usize {
                return None;
            }
        }
        bytes.try_reserve_exact(room - bytes.len()).ok()?;
        ends.try_reserve_exact((strings + 1).next_power_of_two() - strings).ok()?;
        let hash_of = |&number: &u32| hasher.hash_one(at(bytes, ends, number as usize));
        table.try_reserve(1, hash_of).ok()
    }

    /// Returns the number of a string, if it came before.
    pub(crate) fn number(&self, string: &[u8]) -> Option<usize> {
        self.find(self.hasher.hash_one(string), string)
    }

    pub(crate) fn contains(&self, string: &[u8]) -> bool {
        self.number(string).is_some()
    }

    fn find(&self, hash: u64, string: &[u8]) -> Option<usize> {
        let is = |&number: &u32| at(&self.bytes, &self.ends, number as usize) == string;
        self.table.find(hash, is).map(|&number| number as usize)
    }

    /// Returns how many strings there are.
    pub(crate) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the string with a number.
    pub(crate) fn get(&self, number: u64) -> &[u8] {
        at(&self.bytes, &self.ends, number as usize)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.table.allocation_size() + self.bytes.capacity() + 8 * self.ends.capacity()) as u64
    }

    /// Returns the bytes that the strings would take in new memory, with `a_string` more for each.
    pub(crate) fn reckoned_bytes(&self, a_string: usize) -> u64 {
        reckoned_bytes(self.ends.len(), self.bytes.len(), a_string)
    }

    /// Forgets all strings and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Returns the bytes that strings would take in new memory, with `a_string` more for each.
const fn reckoned_bytes(strings: usize, bytes: usize, a_string: usize) -> u64 {
    const SLOT: usize = size_of::<u32>() + 1;
    let slots = (strings + strings / 7 + 1).next_power_of_two();
    let room = strings.next_power_of_two();
    (slots * SLOT + room * (size_of::<u64>() + a_string) + bytes.next_power_of_two()) as u64
}

fn at<'a>(bytes: &'a [u8], ends: &[u64], number: usize) -> &'a [u8] {
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
            let mut set = Interner::default();
            let mut twin: Vec<Vec<u8>> = Vec::new();
            for string in &strings {
                let known = twin.iter().position(|other| other == string);
                prop_assert_eq!(set.number(string), known);
                let interned = set.intern(string, 0, 1 << 30);
                prop_assert_eq!(interned, Some((known.unwrap_or(twin.len()), known.is_none())));
                if known.is_none() {
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
        let mut set = Interner::default();
        let refused =
            (0..1_000_000_u32).find(|n| set.intern(&n.to_le_bytes(), 0, 100_000).is_none());
        assert!(refused.is_some_and(|n| n > 1000), "{refused:?}");
        assert!(set.memory_bytes() <= 100_000);
    }
}
