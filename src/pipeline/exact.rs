//! The ground truth: the set of the elements themselves, with a limit on its memory.

use ahash::RandomState;
use hashbrown::{HashSet, HashTable};

/// A set of byte strings of at most 65,535 bytes.
///
/// Strings of at most 15 bytes (IPv4 pairs and flows) stand in the table itself; longer ones in one
/// growing array that a second table points into. Both are hashed with random keys, so that nobody
/// can choose elements that collide.
///
/// When more memory would be needed than the limit, the set gives up: it frees everything, and from
/// then on it has no answer.
#[derive(Debug)]
pub(super) struct ExactSet {
    hasher: RandomState,
    short: HashSet<[u64; 2], RandomState>,
    long: HashTable<Place>,
    bytes: Vec<u8>,
    limit_bytes: u64,
    over_limit: bool,
}

/// Where a long string stands: offset and length.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    length: u16,
}

impl Place {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.offset as usize..][..usize::from(self.length)]
    }
}

impl ExactSet {
    pub(super) fn new(limit_bytes: u64) -> Self {
        let hasher = RandomState::new();
        Self {
            short: HashSet::with_hasher(hasher.clone()),
            long: HashTable::new(),
            bytes: Vec::new(),
            hasher,
            limit_bytes,
            over_limit: false,
        }
    }

    /// Inserts `key`; true if it was new. False for everything once the limit is passed.
    #[inline]
    pub(super) fn insert(&mut self, key: &[u8]) -> bool {
        if self.over_limit {
            return false;
        }
        match short(key) {
            Some(packed) => {
                if self.short.len() == self.short.capacity()
                    && !self.may_grow(self.short.allocation_size(), 1024)
                {
                    return false;
                }
                self.short.insert(packed)
            }
            None => self.insert_long(key),
        }
    }

    fn insert_long(&mut self, key: &[u8]) -> bool {
        if (self.long.len() == self.long.capacity()
            && !self.may_grow(self.long.allocation_size(), 1024))
            || (self.bytes.len() + key.len() > self.bytes.capacity()
                && !self.may_grow(self.bytes.capacity(), key.len()))
        {
            return false;
        }
        let hash = self.hasher.hash_one(key);
        let Self {
            long,
            bytes,
            hasher,
            ..
        } = self;
        if long.find(hash, |place| place.of(bytes) == key).is_some() {
            return false;
        }
        let place = Place {
            offset: bytes.len() as u64,
            length: key.len() as u16,
        };
        bytes.extend_from_slice(key);
        long.insert_unique(hash, place, |place| hasher.hash_one(place.of(bytes)));
        true
    }

    /// Whether a part of the set that occupies `part` bytes may double (the old and the new table
    /// are there together for a while). Gives up if not.
    #[cold]
    fn may_grow(&mut self, part: usize, least: usize) -> bool {
        let growth = (2 * part).max(least) as u64;
        if self.memory_bytes() + growth <= self.limit_bytes {
            return true;
        }
        let hasher = self.hasher.clone();
        *self = Self {
            over_limit: true,
            short: HashSet::with_hasher(hasher),
            long: HashTable::new(),
            bytes: Vec::new(),
            ..std::mem::replace(self, Self::new(0))
        };
        false
    }

    /// Bytes allocated.
    fn memory_bytes(&self) -> u64 {
        (self.short.allocation_size() + self.long.allocation_size() + self.bytes.capacity()) as u64
    }

    /// Number of distinct strings, unless the limit was passed.
    pub(super) fn len(&self) -> Option<u64> {
        (!self.over_limit).then_some((self.short.len() + self.long.len()) as u64)
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.short.clear();
        self.long.clear();
        self.bytes.clear();
        self.over_limit = false;
    }
}

/// A string of at most 15 bytes with its length, in two words.
#[inline]
fn short(key: &[u8]) -> Option<[u64; 2]> {
    if key.len() > 15 {
        return None;
    }
    let mut packed = [0; 16];
    packed[..key.len()].copy_from_slice(key);
    packed[15] = key.len() as u8;
    let (low, high) = packed.split_at(8);
    let word = |half: &[u8]| {
        half.iter()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    Some([word(low), word(high)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set_of_byte_strings(keys in prop::collection::vec(prop::collection::vec(0_u8..3, 0..20), 0..500)) {
            let mut set = ExactSet::new(1 << 30);
            let mut twin = BTreeSet::new();
            for key in &keys {
                prop_assert_eq!(set.insert(key), twin.insert(key.clone()));
            }
            prop_assert_eq!(set.len(), Some(twin.len() as u64));
            set.clear();
            prop_assert_eq!(set.len(), Some(0));
        }
    }

    #[test]
    fn gives_up_at_the_limit_and_never_holds_more() {
        for width in [9, 33] {
            let mut set = ExactSet::new(100_000);
            for i in 0..100_000_u64 {
                let mut key = vec![0; width];
                key[..8].copy_from_slice(&i.to_le_bytes());
                set.insert(&key);
                assert!(set.memory_bytes() <= 100_000);
            }
            assert_eq!(set.len(), None);
            set.clear();
            assert!(set.insert(b"again"));
            assert_eq!(set.len(), Some(1));
        }
    }
}
