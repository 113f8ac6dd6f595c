//! A set of slices by their numbers, in bounded memory.

use std::collections::BTreeMap;

/// Numbers of slices, as disjoint inclusive ranges in order.
///
/// Bounded: when there are too many ranges, the two lowest become one, with the numbers between
/// them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceSet {
    /// First number of each range, and its last.
    ranges: BTreeMap<i64, i64>,
}

/// Ranges that are remembered: about 2 MiB of them.
const MAX_RANGES: usize = 1 << 16;

impl SliceSet {
    /// All slices.
    pub(super) fn all() -> Self {
        Self { ranges: BTreeMap::from([(i64::MIN, i64::MAX)]) }
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the number is among them.
    pub(crate) fn contains(&self, index: i64) -> bool {
        let range = self.ranges.range(..=index).next_back();
        range.is_some_and(|(_, &last)| index <= last)
    }

    /// Adds a number.
    pub(crate) fn insert(&mut self, index: i64) {
        if self.contains(index) {
            return;
        }
        let before = self.ranges.range(..index).next_back();
        let first = match before {
            Some((&first, last)) if last.checked_add(1) == Some(index) => first,
            _ => index,
        };
        let after = index.checked_add(1);
        let last = after.and_then(|after| self.ranges.remove(&after));
        self.ranges.insert(first, last.unwrap_or(index));
        if self.ranges.len() > MAX_RANGES
            && let Some((first, _)) = self.ranges.pop_first()
            && let Some((_, last)) = self.ranges.pop_first()
        {
            self.ranges.insert(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn slices_are_bounded_and_forget_the_gaps_that_lie_lowest() {
        let mut closed = SliceSet::default();
        let count = MAX_RANGES as i64 + 10;
        for index in 0..count {
            closed.insert(2 * index);
        }
        assert_eq!(closed.ranges.len(), MAX_RANGES);
        assert!((0..count).all(|index| closed.contains(2 * index)));
        assert!(closed.contains(1) && closed.contains(19));
        assert!(!closed.contains(21) && !closed.contains(-1));
        closed.insert(i64::MAX);
        closed.insert(i64::MIN);
        assert!(closed.contains(i64::MAX) && closed.contains(i64::MIN));
    }

    proptest! {
        #[test]
        fn slices_are_a_set(indexes in prop::collection::vec(-40_i64..40, 0..100)) {
            let mut closed = SliceSet::default();
            let mut twin = BTreeSet::new();
            for index in indexes {
                prop_assert_eq!(closed.contains(index), twin.contains(&index));
                if twin.insert(index) {
                    closed.insert(index);
                }
            }
        }
    }
}
