//! Tumbling windows of packet time, and which of them are open.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where slice boundaries lie.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Align {
    /// At whole multiples of the width since the epoch.
    #[default]
    Epoch,
    /// At multiples of the width since the first packet.
    First,
}

impl Align {
    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::First => "first",
        }
    }
}

/// Numbers the slices of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SliceGrid {
    /// Nanoseconds; `None` is one slice for everything.
    width_ns: Option<i64>,
    origin_ns: i64,
}

impl SliceGrid {
    /// Slices of `width_ns` nanoseconds, or one for everything; `first_ns` is the time of the trace's first
    /// packet, which only [`Align::First`] looks at.
    ///
    /// # Panics
    ///
    /// If the width is not above 0.
    pub fn new(width_ns: Option<i64>, align: Align, first_ns: i64) -> Self {
        assert!(
            width_ns.is_none_or(|width| width > 0),
            "a slice has a width"
        );
        Self {
            width_ns,
            origin_ns: match align {
                Align::Epoch => 0,
                Align::First => first_ns,
            },
        }
    }

    /// Number of the slice that holds this time.
    pub fn index(self, time_ns: i64) -> i64 {
        self.width_ns.map_or(0, |width| {
            let since = i128::from(time_ns) - i128::from(self.origin_ns);
            // Beyond the range only for widths of a few nanoseconds and a first packet at its end.
            since
                .div_euclid(i128::from(width))
                .clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        })
    }

    /// First nanosecond of the slice and first one behind it, saturated. Slices that are numbered by
    /// the ends of the range hold all that is beyond them.
    pub fn bounds(self, index: i64) -> (i64, i64) {
        let Some(width) = self.width_ns else {
            return (i64::MIN, i64::MAX);
        };
        let edge = |index: i128| {
            let edge = index * i128::from(width) + i128::from(self.origin_ns);
            edge.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        };
        let (start_ns, end_ns) = (edge(index.into()), edge(i128::from(index) + 1));
        match index {
            i64::MIN => (i64::MIN, end_ns),
            i64::MAX => (start_ns, i64::MAX),
            _ => (start_ns, end_ns),
        }
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Into the open slice at this place of the table.
    Open(usize),
    /// Its slice has been closed already.
    Late,
    /// Into a new slice at this place; the slice that was there (if any) is closed first.
    Replace {
        /// Place in the table.
        slot: usize,
        /// Number of the new slice.
        index: i64,
    },
}

/// The table of open slices.
///
/// At most `capacity` are open. When one more is needed, and there is no place left or nobody used the
/// least recently used one for [`IDLE_PACKETS`], that one is closed: in a trace in time order it is the
/// oldest; and a single packet with a wild time, or two clocks an hour apart, take one place each and
/// disturb nobody.
#[derive(Debug)]
pub(super) struct OpenSlices {
    grid: SliceGrid,
    capacity: usize,
    open: Vec<Open>,
    /// The slice used last.
    current: usize,
    closed: ClosedSlices,
}

/// Packets after which a slice that got none of them is not waited for any longer. In a fast trace two
/// slices take turns then, and their filters and sets stay in the cache; slices of a slow one stay open
/// as long as there is place.
const IDLE_PACKETS: u64 = 1 << 16;

#[derive(Debug)]
struct Open {
    index: i64,
    start_ns: i64,
    end_ns: i64,
    /// Packets that there were before the last one of this slice.
    last_used: u64,
}

impl OpenSlices {
    pub(super) fn new(grid: SliceGrid, capacity: usize) -> Self {
        Self {
            grid,
            capacity,
            open: Vec::with_capacity(capacity),
            current: 0,
            closed: ClosedSlices::default(),
        }
    }

    /// Whether `time_ns` lies in the slice used last: the answer for nearly every packet.
    #[inline]
    pub(super) fn is_current(&self, time_ns: i64) -> bool {
        self.open
            .get(self.current)
            .is_some_and(|open| open.start_ns <= time_ns && time_ns < open.end_ns)
    }

    /// Times that lie in the slice used last.
    pub(super) fn current_range(&self) -> Range<i64> {
        let open = &self.open[self.current];
        open.start_ns..open.end_ns
    }

    /// The place of the slice used last.
    #[inline]
    pub(super) const fn current(&self) -> usize {
        self.current
    }

    /// Finds the place of a packet's slice, opening it if need be. There were `packets` before it.
    pub(super) fn locate(&mut self, time_ns: i64, packets: u64) -> Place {
        let index = self.grid.index(time_ns);
        if let Some(left) = self.open.get_mut(self.current) {
            left.last_used = packets;
        }
        if let Some(slot) = self.open.iter().position(|open| open.index == index) {
            self.open[slot].last_used = packets;
            self.current = slot;
            return Place::Open(slot);
        }
        if self.closed.contains(index) {
            return Place::Late;
        }
        let (start_ns, end_ns) = self.grid.bounds(index);
        let opened = Open {
            index,
            start_ns,
            end_ns,
            last_used: packets,
        };
        match self.least_recently_used() {
            Some((slot, last_used))
                if self.open.len() == self.capacity || packets - last_used > IDLE_PACKETS =>
            {
                self.closed.insert(self.open[slot].index);
                self.open[slot] = opened;
                self.current = slot;
            }
            _ => {
                self.open.push(opened);
                self.current = self.open.len() - 1;
            }
        }
        Place::Replace {
            slot: self.current,
            index,
        }
    }

    /// The slice that is longest without a packet: its place, and when the last one came.
    fn least_recently_used(&self) -> Option<(usize, u64)> {
        let last_used = self.open.iter().map(|open| open.last_used);
        last_used
            .enumerate()
            .min_by_key(|&(_, last_used)| last_used)
    }
}

/// Numbers of closed slices, as disjoint inclusive ranges in order.
///
/// Bounded: when there are too many ranges, the two lowest become one, so that packets of the gap
/// between them are counted as late instead of opening a slice.
#[derive(Debug, Default)]
struct ClosedSlices {
    /// First number of each range, and its last.
    ranges: BTreeMap<i64, i64>,
}

/// Ranges that are remembered: about 2 MiB of them.
const MAX_CLOSED_RANGES: usize = 1 << 16;

impl ClosedSlices {
    fn contains(&self, index: i64) -> bool {
        let range = self.ranges.range(..=index).next_back();
        range.is_some_and(|(_, &last)| index <= last)
    }

    /// Adds a number that is not contained.
    fn insert(&mut self, index: i64) {
        let before = self.ranges.range(..index).next_back();
        let first = match before {
            Some((&first, last)) if last.checked_add(1) == Some(index) => first,
            _ => index,
        };
        let after = index.checked_add(1);
        let last = after.and_then(|after| self.ranges.remove(&after));
        self.ranges.insert(first, last.unwrap_or(index));
        if self.ranges.len() > MAX_CLOSED_RANGES
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

    fn locate_all(capacity: usize, width_ns: i64, times: &[i64]) -> Vec<Place> {
        let grid = SliceGrid::new(Some(width_ns), Align::Epoch, 0);
        let mut slices = OpenSlices::new(grid, capacity);
        (0..)
            .zip(times)
            .map(|(packets, &time)| slices.locate(time, packets))
            .collect()
    }

    #[test]
    fn a_wild_time_takes_one_place_and_disturbs_nobody() {
        let mut times = vec![0, 10, 9_000_000_000_000, 20];
        times.extend((3..100).map(|i| i * 10));
        assert!(!locate_all(4, 10, &times).contains(&Place::Late));
    }

    #[test]
    fn a_packet_of_a_closed_slice_is_late() {
        let places = locate_all(2, 10, &[0, 10, 20, 5]);
        assert_eq!(places[3], Place::Late);
        assert_eq!(places[2], Place::Replace { slot: 0, index: 2 });
    }

    #[test]
    fn a_slice_that_nobody_uses_gives_its_place_to_the_next() {
        let mut slices = OpenSlices::new(SliceGrid::new(Some(10), Align::Epoch, 0), 8);
        let slots: Vec<Place> = (0..5_u64)
            .map(|i| slices.locate(i as i64 * 10, i * 2 * IDLE_PACKETS))
            .collect();
        let slot = |place: &Place| match *place {
            Place::Replace { slot, .. } => slot,
            _ => panic!("{place:?} is no new slice"),
        };
        assert_eq!(slots.iter().map(slot).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn slices_before_the_epoch_and_at_the_ends_of_time() {
        let grid = SliceGrid::new(Some(1_000), Align::Epoch, 0);
        assert_eq!(grid.index(-1), -1);
        assert_eq!(grid.bounds(-1), (-1_000, 0));
        for width in [1, 1_000, i64::MAX] {
            let grid = SliceGrid::new(Some(width), Align::First, i64::MAX);
            for time in [i64::MIN, -1, 0, 1, i64::MAX] {
                let (start, end) = grid.bounds(grid.index(time));
                assert!(start <= time && time <= end, "{width} {time}");
            }
        }
    }

    #[test]
    fn closed_slices_are_bounded_and_forget_the_gaps_that_lie_lowest() {
        let mut closed = ClosedSlices::default();
        let count = MAX_CLOSED_RANGES as i64 + 10;
        for index in 0..count {
            closed.insert(2 * index);
        }
        assert_eq!(closed.ranges.len(), MAX_CLOSED_RANGES);
        assert!((0..count).all(|index| closed.contains(2 * index)));
        assert!(closed.contains(1) && closed.contains(19));
        assert!(!closed.contains(21) && !closed.contains(-1));
        closed.insert(i64::MAX);
        closed.insert(i64::MIN);
        assert!(closed.contains(i64::MAX) && closed.contains(i64::MIN));
    }

    proptest! {
        #[test]
        fn slices_tile_time(width in 1_i64..1_000_000, first in any::<i32>(), time in any::<i32>()) {
            let grid = SliceGrid::new(Some(width), Align::First, first.into());
            let time = i64::from(time);
            let index = grid.index(time);
            let (start, end) = grid.bounds(index);
            prop_assert!(start <= time && time < end);
            prop_assert_eq!(end - start, width);
            prop_assert_eq!(grid.bounds(index + 1).0, end);
        }

        #[test]
        fn closed_slices_are_a_set(indexes in prop::collection::vec(-40_i64..40, 0..100)) {
            let mut closed = ClosedSlices::default();
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
