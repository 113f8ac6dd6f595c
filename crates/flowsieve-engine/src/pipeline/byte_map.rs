//! A map of elements in bounded memory.

use crate::memory::can_allocate;
use ahash::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashTable};
use std::hash::Hash;

/// A map of byte strings of at most 65,535 bytes.
///
/// Strings of 9 bytes that begin with a 4 (IPv4 pairs) and others of at most 15 (IPv4 flows) stand
/// in separate tables; longer ones in one growing array that a table points into. All are
/// hashed with random keys, so that an attacker cannot choose elements that collide.
///
/// When more memory would be needed than the limit, or than the system gives, the map gives up: it
/// frees everything, and from then on it refuses everything. Memory kept by
/// [`clear`](Self::clear) does not count: each table has a *room*, the capacity that it would have in a new map.
#[derive(Debug)]
pub(crate) struct ByteMap<V> {
    hasher: RandomState,
    pairs: Words<u64, V>,
    short: Words<[u64; 2], V>,
    long: HashTable<(Place, V)>,
    long_room: usize,
    bytes: Vec<u8>,
    bytes_room: usize,
    limit_bytes: u64,
    over_limit: bool,
}

/// A table of strings in a fixed number of words.
#[derive(Debug)]
struct Words<K, V> {
    table: HashMap<K, V, RandomState>,
    room: usize,
}

impl<K, V> Words<K, V> {
    fn new(hasher: &RandomState) -> Self {
        Self { table: HashMap::with_hasher(hasher.clone()), room: 0 }
    }

    const fn reckoned_bytes(&self) -> usize {
        table_bytes(self.room, size_of::<(K, V)>())
    }

    fn clear(&mut self) {
        self.table.clear();
        self.room = 0;
    }
}

/// The share of the limit that a cleared map may keep.
const KEPT: u64 = 16;

/// Returns the next capacity of a table, by the growth of `hashbrown`.
const fn next_room(room: usize) -> usize {
    match room {
        0..3 => 3,
        3..7 => 7,
        _ => 2 * room,
    }
}

/// Returns the bytes of a new table with this room, for entries of this size.
const fn table_bytes(room: usize, entry: usize) -> usize {
    if room == 0 { 0 } else { (room + 1).next_power_of_two() * (entry + 1) + 16 }
}

/// The outcome of inserting a string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Put<V> {
    /// It was not there.
    New,
    /// It was there, with this value.
    Known(V),
    /// The map gave up, now or before.
    Refused,
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

impl<V: Copy> ByteMap<V> {
    /// An empty map that takes at most this many bytes of memory.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let hasher = RandomState::new();
        Self {
            pairs: Words::new(&hasher),
            short: Words::new(&hasher),
            long: HashTable::new(),
            long_room: 0,
            bytes: Vec::new(),
            bytes_room: 0,
            hasher,
            limit_bytes,
            over_limit: false,
        }
    }

    /// Gives `key`, of at most 65,535 bytes, this value.
    #[inline]
    pub(super) fn put(&mut self, key: &[u8], value: V) -> Put<V> {
        self.put_by(key, value, |_, new| new)
    }

    /// Gives `key`, of at most 65,535 bytes, this value, or what `both` makes of the one that it has
    /// and this one.
    #[inline]
    pub(super) fn put_by(&mut self, key: &[u8], value: V, both: impl Fn(V, V) -> V) -> Put<V> {
        if self.over_limit {
            return Put::Refused;
        }
        if let [4, pair @ ..] = key
            && let Ok(pair) = pair.try_into()
        {
            return self.put_word(|map| &mut map.pairs, u64::from_ne_bytes(pair), value, both);
        }
        match short(key) {
            Some(packed) => self.put_word(|map| &mut map.short, packed, value, both),
            None => self.put_long(key, value, both),
        }
    }

    /// Puts a string into one of the tables of words.
    #[inline]
    fn put_word<K: Eq + Hash>(
        &mut self,
        words: impl Fn(&mut Self) -> &mut Words<K, V>,
        key: K,
        value: V,
        both: impl Fn(V, V) -> V,
    ) -> Put<V> {
        let Words { table, room } = words(self);
        if table.len() == *room
            && let Some(known_or_refused) = self.grow(&words, &key, value, &both)
        {
            return known_or_refused;
        }
        match words(self).table.entry(key) {
            Entry::Occupied(mut held) => Put::known(held.get_mut(), value, both),
            Entry::Vacant(place) => {
                place.insert(value);
                Put::New
            }
        }
    }

    /// Grows a full table of words. Returns the outcome if `key` needs no room: it is there already, or
    /// the map gave up.
    #[cold]
    #[inline(never)]
    fn grow<K: Eq + Hash>(
        &mut self,
        words: impl Fn(&mut Self) -> &mut Words<K, V>,
        key: &K,
        value: V,
        both: impl Fn(V, V) -> V,
    ) -> Option<Put<V>> {
        let Words { table, room } = words(self);
        // Inserting would make the table grow, also for what it has.
        if let Some(held) = table.get_mut(key) {
            return Some(Put::known(held, value, both));
        }
        *room = next_room(*room);
        let bytes = words(self).reckoned_bytes();
        let refused = !self.may_grow(bytes)
            || self.is_refused(|map| words(map).table.try_reserve(1).is_err());
        refused.then_some(Put::Refused)
    }

    #[inline(never)]
    fn put_long(&mut self, key: &[u8], value: V, both: impl Fn(V, V) -> V) -> Put<V> {
        let hash = self.hasher.hash_one(key);
        let bytes = &self.bytes;
        let known = |(place, _): &(Place, V)| place.of(bytes) == key;
        if let Some((_, held)) = self.long.find_mut(hash, known) {
            return Put::known(held, value, both);
        }
        if !self.has_room_for_long(key.len())
            || self.is_refused(|map| map.reserve_long(key.len()).is_none())
        {
            return Put::Refused;
        }
        let Self { long, bytes, hasher, .. } = self;
        let place = Place { offset: bytes.len() as u64, length: key.len() as u16 };
        bytes.extend_from_slice(key);
        long.insert_unique(hash, (place, value), |(place, _)| hasher.hash_one(place.of(bytes)));
        Put::New
    }

    /// Makes room for one more long string; gives up and returns false if the limit forbids it.
    fn has_room_for_long(&mut self, length: usize) -> bool {
        if self.long.len() == self.long_room {
            self.long_room = next_room(self.long_room);
            if !self.may_grow(table_bytes(self.long_room, size_of::<(Place, V)>())) {
                return false;
            }
        }
        let end = self.bytes.len() + length;
        if end > self.bytes_room {
            // A power of two, so that the order of the strings does not matter.
            self.bytes_room = end.next_power_of_two();
            return self.may_grow(self.bytes_room);
        }
        true
    }

    /// Checks whether a part of the map, whose room was raised, may take this many bytes. Gives up if
    /// not. An old and a new part exist together for a while; the largest one counts, so that the
    /// order of the strings does not matter.
    #[cold]
    fn may_grow(&mut self, part: usize) -> bool {
        let long = table_bytes(self.long_room, size_of::<(Place, V)>());
        let parts =
            [self.pairs.reckoned_bytes(), self.short.reckoned_bytes(), long, self.bytes_room];
        let largest = parts.into_iter().fold(0, usize::max);
        let bytes = (parts.iter().sum::<usize>() + largest / 2) as u64;
        if bytes <= self.limit_bytes - self.limit_bytes / KEPT && can_allocate(part as u64) {
            return true;
        }
        self.give_up();
        false
    }

    /// Reserves memory for one more long string; `None` if the system refuses it.
    fn reserve_long(&mut self, length: usize) -> Option<()> {
        let Self { long, bytes, hasher, bytes_room, .. } = self;
        if bytes.len() + length > bytes.capacity() {
            bytes.try_reserve_exact(*bytes_room - bytes.len()).ok()?;
        }
        let hash = |(place, _): &(Place, V)| hasher.hash_one(place.of(bytes));
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

    pub(super) fn give_up(&mut self) {
        *self = Self { over_limit: true, ..Self::new(self.limit_bytes) };
    }

    /// Bytes allocated.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let tables = self.pairs.table.allocation_size()
            + self.short.table.allocation_size()
            + self.long.allocation_size();
        (tables + self.bytes.capacity()) as u64
    }

    /// Every string with its value, in no order.
    pub(super) fn for_each(&self, mut take: impl FnMut(&[u8], V)) {
        let mut key = [4; 9];
        for (pair, &value) in &self.pairs.table {
            key[1..].copy_from_slice(&pair.to_ne_bytes());
            take(&key, value);
        }
        for (packed, &value) in &self.short.table {
            let (key, length) = unpacked(*packed);
            take(&key[..length], value);
        }
        for (place, value) in &self.long {
            take(place.of(&self.bytes), *value);
        }
    }

    /// Number of distinct strings, unless the map gave up.
    pub(crate) fn distinct(&self) -> Option<u64> {
        let strings = self.pairs.table.len() + self.short.table.len() + self.long.len();
        (!self.over_limit).then_some(strings as u64)
    }

    /// Removes everything, and keeps the memory if it is not much.
    pub(crate) fn clear(&mut self) {
        if self.over_limit || self.memory_bytes() > self.limit_bytes / KEPT {
            *self = Self::new(self.limit_bytes);
            return;
        }
        self.pairs.clear();
        self.short.clear();
        self.long.clear();
        self.bytes.clear();
        (self.long_room, self.bytes_room) = (0, 0);
    }
}

impl<V: Copy> Put<V> {
    #[inline]
    fn known(held: &mut V, value: V, both: impl Fn(V, V) -> V) -> Self {
        let before = *held;
        *held = both(before, value);
        Self::Known(before)
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
    let word = |half: &[u8]| half.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    Some([word(low), word(high)])
}

/// The string that [`short`] packed, and its length.
fn unpacked(packed: [u64; 2]) -> ([u8; 16], usize) {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&packed[0].to_be_bytes());
    key[8..].copy_from_slice(&packed[1].to_be_bytes());
    (key, usize::from(key[15]))
}

/// A set of byte strings of at most 65,535 bytes. Once the map gives up, the set has no answer.
pub(crate) type ExactSet = ByteMap<()>;

impl ExactSet {
    /// Inserts `key`, of at most 65,535 bytes; true if it was new. False for everything once the
    /// limit is passed.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8]) -> bool {
        self.put(key, ()) == Put::New
    }
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

    proptest! {
        #[test]
        fn a_cleared_set_holds_what_a_new_one_holds(
            limit in 200_u64..20_000,
            slices in prop::collection::vec((0_u16..400, 0_u16..400, 0_u16..400), 1..6),
        ) {
            let mut cleared = ExactSet::new(limit);
            for (pairs, short, long) in slices {
                let mut new = ExactSet::new(limit);
                cleared.clear();
                for (elements, width) in [(short, 14), (pairs, 9), (long, 37)] {
                    for element in 0..elements {
                        let mut key = vec![4; width];
                        key[1..3].copy_from_slice(&element.to_be_bytes());
                        prop_assert_eq!(cleared.insert(&key), new.insert(&key));
                        prop_assert!(cleared.memory_bytes().max(new.memory_bytes()) <= limit);
                    }
                }
                prop_assert_eq!(cleared.distinct(), new.distinct());
            }
        }
    }

    #[test]
    fn the_order_of_elements_does_not_decide_whether_it_gives_up() {
        let mut outcomes = [0; 2];
        for elements in (1..900_u32).step_by(7) {
            let key = |number: u32| {
                let width = [9, 14, 20, 37, 255][(number % 5) as usize];
                let mut key = vec![4; width];
                key[1..5].copy_from_slice(&number.to_be_bytes());
                key
            };
            let mut keys: Vec<Vec<u8>> = (0..elements).map(key).collect();
            let mut distinct = Vec::new();
            for _ in 0..2 {
                for _ in 0..2 {
                    let mut set = ExactSet::new(100_000);
                    for key in &keys {
                        set.insert(key);
                    }
                    distinct.push(set.distinct());
                    keys.reverse();
                }
                keys.sort_by_key(Vec::len);
            }
            assert!(distinct.iter().all(|it| *it == distinct[0]), "{elements}: {distinct:?}");
            outcomes[usize::from(distinct[0].is_some())] += 1;
        }
        assert!(outcomes.iter().all(|number| *number > 10), "{outcomes:?}");
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
