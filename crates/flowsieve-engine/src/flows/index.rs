//! Where the flow with a hash stands: one cache line a question.
//!
//! ```text
//!     slot: hash, 32 bits │ place + 1, 32 bits; 0 is empty
//! ```
//!
//! A hash begins its search at the slot that its upper bits choose and goes on to the next ones (linear probing). Slots are
//! in the order of hashes but for these steps, so a larger table is filled from the old one from front to back. Where a flow leaves,
//! those behind it move up: no marks of what was there are left.

use crate::bits::Pages;
use crate::memory::is_given;

/// Slots of the smallest index.
const LEAST_SLOTS: usize = 1024;

/// Slots from which a look leaves the caches near the processor.
const FAR_FROM_SLOTS: usize = 1 << 15;

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    slots: Pages<u64>,
    /// Bits of a hash that do not choose the slot.
    shift: u32,
    len: usize,
}

const fn slot_of(hash: u32, place: u32) -> u64 {
    (hash as u64) << 32 | (place as u64 + 1)
}

const fn hash_in(slot: u64) -> u32 {
    (slot >> 32) as u32
}

const fn place_in(slot: u64) -> u32 {
    (slot as u32).wrapping_sub(1)
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            slots: Pages::new(LEAST_SLOTS),
            shift: u32::BITS - LEAST_SLOTS.ilog2(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether looks are worth to be prepared.
    pub(super) const fn is_far(&self) -> bool {
        self.slots.len() >= FAR_FROM_SLOTS
    }

    const fn home(&self, hash: u32) -> usize {
        (hash as u64 >> self.shift) as usize
    }

    /// The slot where the search for a hash begins, whatever is in it.
    #[inline]
    pub(super) fn first_slot(&self, hash: u32) -> u64 {
        self.slots.as_slice()[self.home(hash)]
    }

    /// The place of this hash that is the right one.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_right: impl FnMut(u32) -> bool) -> Option<u32> {
        let slots = self.slots.as_slice();
        let mut at = self.home(hash);
        loop {
            let slot = slots[at];
            if slot == 0 {
                return None;
            }
            if hash_in(slot) == hash && is_right(place_in(slot)) {
                return Some(place_in(slot));
            }
            at = (at + 1) & (slots.len() - 1);
        }
    }

    /// Forgets all and becomes a list of these places, which were in it.
    pub(super) fn become_list(&mut self, places: impl Iterator<Item = u32>) -> &mut [u64] {
        let slots = self.slots.as_mut_slice();
        let mut len = 0;
        for (slot, place) in slots.iter_mut().zip(places) {
            *slot = u64::from(place);
            len += 1;
        }
        &mut slots[..len]
    }

    /// The place with this number in the list.
    pub(super) fn listed(&self, number: usize) -> u32 {
        self.slots.as_slice()[number] as u32
    }

    /// Makes room for one more; false if the system does not give the memory.
    pub(super) fn make_room(&mut self) -> bool {
        // At most three quarters full, so that searches are short and end.
        if (self.len + 1) * 4 <= self.slots.len() * 3 {
            return true;
        }
        let wanted = self.slots.len() * 2;
        if !is_given((wanted * size_of::<u64>()) as u64) {
            return false;
        }
        let old = std::mem::replace(&mut self.slots, Pages::new(wanted));
        self.shift = u32::BITS.saturating_sub(wanted.ilog2());
        self.len = 0;
        for &slot in old.as_slice() {
            if slot != 0 {
                self.insert(hash_in(slot), place_in(slot));
            }
        }
        true
    }

    /// Adds a place, which is not there yet, and for which there is room.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, place: u32) {
        let mut at = self.home(hash);
        let slots = self.slots.as_mut_slice();
        while slots[at] != 0 {
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = slot_of(hash, place);
        self.len += 1;
    }

    /// Removes a place, which is there.
    pub(super) fn remove(&mut self, hash: u32, place: u32) {
        let mut hole = self.home(hash);
        let (slots, shift) = (self.slots.as_mut_slice(), self.shift);
        let mask = slots.len() - 1;
        while slots[hole] != slot_of(hash, place) {
            assert!(slots[hole] != 0, "every live flow is in the index");
            hole = (hole + 1) & mask;
        }
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let slot = slots[next];
            if slot == 0 {
                break;
            }
            let home = (u64::from(hash_in(slot)) >> shift) as usize;
            // What begins its search behind the hole stays.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                slots[hole] = slot;
                hole = next;
            }
        }
        slots[hole] = 0;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn what_was_put_in_and_not_taken_out_is_found(
            steps in prop::collection::vec((any::<bool>(), 0_u32..3000), 0..6000),
        ) {
            // Hashes that crowd at both ends of the table, and some that are the same.
            let hash = |place: u32| match place % 3 {
                0 => u32::MAX - place / 100,
                1 => place / 7,
                _ => place.wrapping_mul(0x9e37_79b9),
            };
            let mut index = Index::new();
            let mut expected = BTreeSet::new();
            for (adds, place) in steps {
                if adds && expected.insert(place) {
                    prop_assert!(index.make_room());
                    index.insert(hash(place), place);
                } else if !adds && expected.remove(&place) {
                    index.remove(hash(place), place);
                }
                prop_assert_eq!(index.len(), expected.len());
            }
            for place in 0..3000 {
                let found = index.find(hash(place), |other| other == place);
                prop_assert_eq!(found.is_some(), expected.contains(&place));
            }
        }
    }
}
