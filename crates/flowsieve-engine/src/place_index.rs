//! Places of a table by hash: one cache line per lookup.
//!
//! ```text
//!     entry, 32 bits: what of the hash does not choose the entry │ place + 1; 0 is empty
//! ```
//!
//! A hash begins its search at the entry that its upper bits choose and goes on to the next ones
//! (linear probing). Entries are in the order of hashes but for these steps, so a larger table is
//! filled from the old one from front to back. Where an item leaves, those behind it move up: no
//! marks of what was there are left. There are more entries than places, so a place needs no more
//! bits than the choice of an entry, and both parts fit. Whole hashes are kept by place elsewhere.

use crate::bits::Pages;
use crate::memory::can_allocate;

/// Entries of the smallest index.
const LEAST_ENTRIES: usize = 1024;

/// Entries from which a lookup leaves the caches near the processor.
const FAR_FROM_ENTRIES: usize = 1 << 15;

/// Entries that are looked at for a guess.
const GUESSED: usize = 4;

/// No place: there are fewer.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Pages<u32>,
    /// Bits of a hash that choose the entry, and of an entry that are its place.
    bits: u32,
    len: usize,
}

impl Index {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::of(Pages::new(LEAST_ENTRIES))
    }

    /// Nothing yet, with room for this many places.
    pub(crate) fn with_room(places: usize) -> Self {
        Self::of(Pages::new(Self::entries(places)))
    }

    /// Entries for this many places: at least a quarter of them remain empty.
    pub(crate) const fn entries(places: usize) -> usize {
        (places + places / 3 + 2).next_power_of_two()
    }

    fn of(entries: Pages<u32>) -> Self {
        Self { bits: entries.len().ilog2(), entries, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether lookups gain from a prefetch.
    pub(crate) const fn is_far(&self) -> bool {
        self.entries.len() >= FAR_FROM_ENTRIES
    }

    const fn home(&self, hash: u32) -> usize {
        (hash as u64 >> (u32::BITS - self.bits)) as usize
    }

    /// Returns the bits of a hash above its place.
    const fn rest(&self, hash: u32) -> u32 {
        ((hash as u64) << self.bits) as u32
    }

    const fn place_in(&self, entry: u32) -> u32 {
        let place = entry as u64 & ((1 << self.bits) - 1);
        (place as u32).wrapping_sub(1)
    }

    const fn entry_of(&self, hash: u32, place: u32) -> u32 {
        self.rest(hash) | (place + 1)
    }

    /// The entry where the search for a hash begins, whatever is in it.
    #[inline]
    pub(crate) fn first_entry(&self, hash: u32) -> u32 {
        self.entries.as_slice()[self.home(hash)]
    }

    /// The place with this hash that `is_right` accepts. It may be asked about places with other
    /// hashes, too, since an entry has only part of one.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_right: impl FnMut(u32) -> bool) -> Option<u32> {
        let entries = self.entries.as_slice();
        let rest = u64::from(self.rest(hash));
        let mut at = self.home(hash);
        loop {
            let entry = entries[at];
            if entry == 0 {
                return None;
            }
            let has_rest = (u64::from(entry) ^ rest) >> self.bits == 0;
            if has_rest && is_right(self.place_in(entry)) {
                return Some(self.place_in(entry));
            }
            at = (at + 1) & (entries.len() - 1);
        }
    }

    /// The place that a hash most likely has; [`NOWHERE`] if it certainly has none.
    #[inline]
    pub(crate) fn guess(&self, hash: u32) -> u32 {
        let entries = self.entries.as_slice();
        let mask = entries.len() - 1;
        let (home, rest) = (self.home(hash), u64::from(self.rest(hash)));
        let mut guess = self.place_in(entries[(home + GUESSED) & mask]);
        // The first of them decides.
        for at in (0..GUESSED).rev() {
            let entry = entries[(home + at) & mask];
            let has_rest = (u64::from(entry) ^ rest) >> self.bits == 0;
            let decides = u8::from(has_rest) | u8::from(entry == 0);
            guess = if decides != 0 { self.place_in(entry) } else { guess };
        }
        guess
    }

    /// Forgets all and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.as_mut_slice().fill(0);
        self.len = 0;
    }

    /// Forgets all and becomes a list of these places, which were in it.
    pub(crate) fn become_list(&mut self, places: impl Iterator<Item = u32>) -> &mut [u32] {
        let entries = self.entries.as_mut_slice();
        let mut len = 0;
        for (entry, place) in entries.iter_mut().zip(places) {
            *entry = place;
            len += 1;
        }
        &mut entries[..len]
    }

    /// The place with this number in the list.
    pub(crate) fn listed(&self, number: usize) -> u32 {
        self.entries.as_slice()[number]
    }

    /// Makes room for one more; false if the system does not give the memory. Hashes are those of
    /// places.
    pub(crate) fn make_room(&mut self, hashes: &[u32]) -> bool {
        // At most three quarters full, so that searches are short and end.
        if (self.len + 1) * 4 <= self.entries.len() * 3 {
            return true;
        }
        let entries = self.entries.len() * 2;
        if !can_allocate((entries * size_of::<u32>()) as u64) {
            return false;
        }
        let Some(entries) = Pages::try_new(entries) else { return false };
        let old = std::mem::replace(self, Self::of(entries));
        for &entry in old.entries.as_slice() {
            if entry != 0 {
                let place = old.place_in(entry);
                self.insert(hashes[place as usize], place);
            }
        }
        true
    }

    /// Adds a place, which is not there yet, and for which there is room.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, place: u32) {
        debug_assert!(u64::from(place) + 1 < 1 << self.bits, "places are fewer than entries");
        let (mut at, new) = (self.home(hash), self.entry_of(hash, place));
        let entries = self.entries.as_mut_slice();
        while entries[at] != 0 {
            at = (at + 1) & (entries.len() - 1);
        }
        entries[at] = new;
        self.len += 1;
    }

    /// Removes a place, which is there. Hashes are those of places.
    pub(crate) fn remove(&mut self, place: u32, hashes: &[u32]) {
        let hash = hashes[place as usize];
        let gone = self.entry_of(hash, place);
        let mask = self.entries.len() - 1;
        let mut hole = self.home(hash);
        while self.entries.as_slice()[hole] != gone {
            let is_empty = self.entries.as_slice()[hole] == 0;
            assert!(!is_empty, "every place that is removed is there");
            hole = (hole + 1) & mask;
        }
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let entry = self.entries.as_slice()[next];
            if entry == 0 {
                break;
            }
            let home = self.home(hashes[self.place_in(entry) as usize]);
            // An entry whose search begins behind the hole stays.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.entries.as_mut_slice()[hole] = entry;
                hole = next;
            }
        }
        self.entries.as_mut_slice()[hole] = 0;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn what_was_put_in_and_not_taken_out_is_found(
            steps in prop::collection::vec((any::<bool>(), 0_u32..3000), 0..6000),
        ) {
            // Hashes that crowd at both ends of the table, and some that are the same.
            let hash = |flow: u32| match flow % 3 {
                0 => u32::MAX - flow / 100,
                1 => flow / 7,
                _ => flow.wrapping_mul(0x9e37_79b9),
            };
            let (mut index, mut places) = (Index::new(), BTreeMap::new());
            let (mut hashes, mut free) = (Vec::new(), Vec::new());
            for (adds, flow) in steps {
                if adds && !places.contains_key(&flow) {
                    // Places are the first that are free, as in the table of flows: there are fewer
                    // than entries.
                    let place = free.pop().unwrap_or(hashes.len() as u32);
                    prop_assert!(index.make_room(&hashes));
                    hashes.resize(hashes.len().max(place as usize + 1), 0);
                    hashes[place as usize] = hash(flow);
                    index.insert(hash(flow), place);
                    places.insert(flow, place);
                } else if !adds && let Some(place) = places.remove(&flow) {
                    index.remove(place, &hashes);
                    free.push(place);
                }
                prop_assert_eq!(index.len(), places.len());
            }
            for flow in 0..3000 {
                let place = places.get(&flow).copied();
                let found = index.find(hash(flow), |other| Some(other) == place);
                prop_assert_eq!(found, place);
            }
        }
    }

    #[test]
    fn a_large_table_is_like_any_other() {
        let places = 1_u32 << 20;
        let hashes: Vec<u32> = (0..places).map(|place| place.wrapping_mul(0x9e37_79b9)).collect();
        let mut index = Index::new();
        for place in 0..places {
            assert!(index.make_room(&hashes));
            index.insert(hashes[place as usize], place);
        }
        assert_eq!(index.len(), hashes.len());
        for (place, &hash) in (0..).zip(&hashes) {
            assert_eq!(index.find(hash, |found| found == place), Some(place));
        }
    }
}
