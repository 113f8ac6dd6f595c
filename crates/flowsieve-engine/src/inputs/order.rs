//! Which of several inputs comes next: a tournament of the times of their next packets.

/// The inputs that have packets at hand, by their places. Of equal times the one at the lower place
/// goes first.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// A binary tree: each node has the lesser of the two below it, and the root is number 1.
    nodes: Vec<Key>,
    /// Number of the node of place 0.
    leaves: usize,
}

/// When an input goes on; keys compare as times do, and those of one time as places.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key(u128);

const SIGN: u64 = 1 << 63;

impl Key {
    /// Later than every packet.
    pub(super) const NEVER: Self = Self(u128::MAX);

    /// Creates the key of a packet at this time, of the input at this place.
    pub(super) fn of(time_ns: i64, place: usize) -> Self {
        let time = time_ns.cast_unsigned() ^ SIGN;
        Self(u128::from(time) << 64 | place as u128)
    }

    fn place(self) -> usize {
        self.0 as u64 as usize
    }

    /// Returns the last time at which a packet of this place comes before this key; `None` if all
    /// do.
    pub(super) fn last_before(self, place: usize) -> Option<i64> {
        let time_ns = ((self.0 >> 64) as u64 ^ SIGN).cast_signed();
        let is_before = place < self.place();
        (self != Self::NEVER).then(|| time_ns.saturating_sub(i64::from(!is_before)))
    }
}

impl Order {
    /// Begins anew, with the times of these inputs' next packets.
    pub(super) fn begin(&mut self, times_ns: impl ExactSizeIterator<Item = i64>) {
        self.leaves = times_ns.len().next_power_of_two();
        self.nodes.clear();
        self.nodes.resize(2 * self.leaves, Key::NEVER);
        for (place, time_ns) in times_ns.enumerate() {
            self.nodes[self.leaves + place] = Key::of(time_ns, place);
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// The input that goes on, if its packet goes before this key.
    #[inline]
    pub(super) fn first_before(&self, key: Key) -> Option<usize> {
        let first = self.nodes.get(1).copied();
        first.filter(|&first| first < key).map(Key::place)
    }

    /// Notes the time of the next packet of an input; `None` if it has none at hand.
    #[inline]
    pub(super) fn set(&mut self, place: usize, time_ns: Option<i64>) {
        let mut least = time_ns.map_or(Key::NEVER, |time_ns| Key::of(time_ns, place));
        let mut node = self.leaves + place;
        while node > 1 {
            self.nodes[node] = least;
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
        }
        self.nodes[1] = least;
    }

    /// The earliest of the other inputs.
    pub(super) fn others(&self, place: usize) -> Key {
        let mut least = Key::NEVER;
        let mut node = self.leaves + place;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_goes_first_and_of_equal_times_the_lower_place(
            mut times in prop::collection::vec(prop::collection::vec(-3_i64..4, 0..12), 1..9),
            edges in any::<bool>(),
        ) {
            times.retain(|times| !times.is_empty());
            if edges && let Some(times) = times.first_mut() {
                times.extend([i64::MIN, i64::MAX]);
            }
            let mut order = Order::default();
            order.begin(times.iter().map(|times| times[0]));
            let mut at = vec![0; times.len()];
            loop {
                let next = |place: usize| times[place].get(at[place]);
                let heads = (0..times.len()).filter_map(|place| Some((*next(place)?, place)));
                let mut heads: Vec<_> = heads.collect();
                heads.sort_unstable();
                let first = order.first_before(Key::NEVER);
                prop_assert_eq!(first, heads.first().map(|head| head.1));
                let Some(place) = first else { break };
                prop_assert_eq!(order.first_before(Key::of(heads[0].0, 0)), None);
                let others = order.others(place);
                prop_assert_eq!(others, heads.get(1).map_or(Key::NEVER, |head| Key::of(head.0, head.1)));
                for time in [i64::MIN, -2, 0, 2, i64::MAX] {
                    let goes_first = others.last_before(place).is_none_or(|last| time <= last);
                    let is_less = Key::of(time, place) < others;
                    // The first packet of all times is before nothing, and is taken in any case.
                    prop_assert!(goes_first == is_less || time == i64::MIN);
                }
                at[place] += 1;
                order.set(place, times[place].get(at[place]).copied());
            }
        }
    }
}
