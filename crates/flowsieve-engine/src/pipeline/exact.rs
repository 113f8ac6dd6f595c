//! The ground truth: the set of the elements themselves, with a limit on its memory.

use crate::memory::is_given;
use ahash::RandomState;
use hashbrown::{HashSet, HashTable};

/// A set of byte strings of at most 65,535 bytes.
///
/// Strings of 9 bytes that begin with a 4 (IPv4 pairs) and others of at most 15 (IPv4 flows) stand in
/// tables of their own; longer ones in one growing array that a table points into. All are hashed with
/// random keys, so that nobody can choose elements that collide.
///
/// When more memory would be needed than the limit, or than the system gives, the set gives up: it frees everything, and from
/// then on it has no answer.
#[derive(Debug)]
pub struct ExactSet {
    hasher: RandomState,
    pairs: HashSet<u64, RandomState>,
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
    /// An empty set that takes at most this many bytes of memory.
    pub fn new(limit_bytes: u64) -> Self {
        let hasher = RandomState::new();
        Self {
            pairs: HashSet::with_hasher(hasher.clone()),
            short: HashSet::with_hasher(hasher.clone()),
            long: HashTable::new(),
            bytes: Vec::new(),
            hasher,
            limit_bytes,
            over_limit: false,
        }
    }

    /// Inserts `key`, of at most 65,535 bytes; true if it was new. False for everything once the limit is
    /// passed.
    #[inline]
    pub fn insert(&mut self, key: &[u8]) -> bool {
        if self.over_limit {
            return false;
        }
        if let [4, pair @ ..] = key
            && let Ok(pair) = pair.try_into()
        {
            let pair = u64::from_ne_bytes(pair);
            let full = self.pairs.len() == self.pairs.capacity();
            if full
                && (self.pairs.contains(&pair)
                    || !self.may_grow(self.pairs.allocation_size(), 1024)
                    || self.is_refused(|set| set.pairs.try_reserve(1).is_err()))
            {
                return false;
            }
            return self.pairs.insert(pair);
        }
        match short(key) {
            Some(packed) => {
                let full = self.short.len() == self.short.capacity();
                if full
                    && (self.short.contains(&packed)
                        || !self.may_grow(self.short.allocation_size(), 1024)
                        || self.is_refused(|set| set.short.try_reserve(1).is_err()))
                {
                    return false;
                }
                self.short.insert(packed)
            }
            None => self.insert_long(key),
        }
    }

    fn insert_long(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        let known = |place: &Place| place.of(&self.bytes) == key;
        if self.long.find(hash, known).is_some() {
            return false;
        }
        if (self.long.len() == self.long.capacity()
            && !self.may_grow(self.long.allocation_size(), 1024))
            || (self.bytes.len() + key.len() > self.bytes.capacity()
                && !self.may_grow(self.bytes.capacity(), key.len()))
            || self.is_refused(|set| set.reserve_long(key.len()).is_none())
        {
            return false;
        }
        let Self {
            long,
            bytes,
            hasher,
            ..
        } = self;
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
        if self.memory_bytes() + growth <= self.limit_bytes && is_given(growth) {
            return true;
        }
        self.give_up();
        false
    }

    /// Room for one more long string of this many bytes; `None` if the system does not give it.
    fn reserve_long(&mut self, length: usize) -> Option<()> {
        let Self {
            long,
            bytes,
            hasher,
            ..
        } = self;
        bytes.try_reserve(length).ok()?;
        let hash = |place: &Place| hasher.hash_one(place.of(bytes));
        long.try_reserve(1, hash).ok()
    }

    /// Gives up where the system does not give the memory.
    fn is_refused(&mut self, refused: impl FnOnce(&mut Self) -> bool) -> bool {
        let refused = refused(self);
        if refused {
            self.give_up();
        }
        refused
    }

    fn give_up(&mut self) {
        *self = Self {
            over_limit: true,
            ..Self::new(self.limit_bytes)
        };
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.pairs.allocation_size()
            + self.short.allocation_size()
            + self.long.allocation_size();
        (tables + self.bytes.capacity()) as u64
    }

    /// Inserts all strings of another set. The union of sets of which one passed its limit has no answer
    /// either.
    pub fn merge(&mut self, other: &Self) {
        if other.over_limit {
            self.give_up();
        }
        let mut key = [4; 9];
        for pair in &other.pairs {
            key[1..].copy_from_slice(&pair.to_ne_bytes());
            self.insert(&key);
        }
        for packed in &other.short {
            let (key, length) = unpacked(*packed);
            self.insert(&key[..length]);
        }
        for place in &other.long {
            self.insert(place.of(&other.bytes));
        }
    }

    /// Number of distinct strings, unless the limit was passed.
    pub fn distinct(&self) -> Option<u64> {
        let strings = self.pairs.len() + self.short.len() + self.long.len();
        (!self.over_limit).then_some(strings as u64)
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.pairs.clear();
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

/// The string that [`short`] packed, and its length.
fn unpacked(packed: [u64; 2]) -> ([u8; 16], usize) {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&packed[0].to_be_bytes());
    key[8..].copy_from_slice(&packed[1].to_be_bytes());
    (key, usize::from(key[15]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set_of_byte_strings(keys in prop::collection::vec(prop::collection::vec(3_u8..6, 0..20), 0..500)) {
            let mut set = ExactSet::new(1 << 30);
            let mut twin = BTreeSet::new();
            for key in &keys {
                prop_assert_eq!(set.insert(key), twin.insert(key.clone()));
            }
            prop_assert_eq!(set.distinct(), Some(twin.len() as u64));
            set.clear();
            prop_assert_eq!(set.distinct(), Some(0));
        }
    }

    #[test]
    fn sets_merge_to_the_set_of_all_their_strings() {
        let key = |i: u32, width: usize| {
            let mut key = vec![4; width];
            key[1..5].copy_from_slice(&i.to_be_bytes());
            key
        };
        for limit in [1 << 30, 20_000] {
            let (mut one, mut other, mut all) = (
                ExactSet::new(limit),
                ExactSet::new(limit),
                ExactSet::new(limit),
            );
            for i in 0..1_000 {
                for width in [9, 14, 33] {
                    all.insert(&key(i, width));
                    if i < 700 {
                        one.insert(&key(i, width));
                    }
                    if i >= 300 {
                        other.insert(&key(i, width));
                    }
                }
            }
            one.merge(&other);
            assert_eq!(one.distinct(), all.distinct());
            assert_eq!(one.distinct(), (limit == 1 << 30).then_some(3_000));
        }
    }

    #[test]
    fn a_full_set_does_not_give_up_for_a_string_that_it_has() {
        for width in [9, 14, 33] {
            let key = |i: u32| {
                let mut key = vec![4; width];
                key[1..5].copy_from_slice(&i.to_be_bytes());
                key
            };
            let mut set = ExactSet::new(3_000);
            let last = (0..1_000).find(|&i| !set.insert(&key(i))).unwrap();
            let mut set = ExactSet::new(3_000);
            for i in (0..last).chain(0..last) {
                set.insert(&key(i));
            }
            assert_eq!(set.distinct(), Some(last.into()), "{width}");
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
            assert_eq!(set.distinct(), None);
            set.clear();
            assert!(set.insert(b"again"));
            assert_eq!(set.distinct(), Some(1));
        }
    }
}
