//! The ground truth: the set of the elements themselves, with a limit on its memory.

use super::byte_map::{ByteMap, Put};

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
