//! Tumbling windows of packet time, and which of them are open.

use super::slice_set::SliceSet;
use crate::zone::Zone;

/// Where slice boundaries lie.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Align {
    /// At whole multiples of the width since the epoch.
    #[default]
    Epoch,
    /// The same in local time: at whole multiples of the width since 1970 began in this zone, as
    /// far from UTC as its clocks are at the first packet. Slices have one width, so where clocks
    /// change later, boundaries stay.
    Local(Zone),
    /// At multiples of the width since the first packet.
    First,
}

impl Align {
    /// The name in the command line and in reports.
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoch | Self::Local(_) => "epoch",
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
    /// Slices of `width_ns` nanoseconds, or one for everything; `first_ns` is the time of the
    /// trace's first packet, which [`Align::First`] and [`Align::Local`] look at.
    ///
    /// # Panics
    ///
    /// If the width is not above 0.
    #[doc(hidden)]
    pub fn new(width_ns: Option<i64>, align: Align, first_ns: i64) -> Self {
        assert!(width_ns.is_none_or(|width| width > 0), "a slice has a width");
        Self {
            width_ns,
            origin_ns: match align {
                Align::Epoch => 0,
                Align::Local(zone) => -zone.offset_ns(first_ns),
                Align::First => first_ns,
            },
        }
    }

    /// Where the slice with number 0 begins, in nanoseconds since the epoch.
    #[doc(hidden)]
    pub const fn origin_ns(self) -> i64 {
        self.origin_ns
    }

    /// Nanoseconds of a slice; `None` for one slice over everything.
    #[doc(hidden)]
    pub const fn width_ns(self) -> Option<i64> {
        self.width_ns
    }

    /// Number of the slice that holds this time.
    #[doc(hidden)]
    pub fn index(self, time_ns: i64) -> i64 {
        self.width_ns.map_or(0, |width| {
            if let Some(since) = time_ns.checked_sub(self.origin_ns) {
                return since.div_euclid(width);
            }
            let since = i128::from(time_ns) - i128::from(self.origin_ns);
            // Beyond the range only for widths of a few nanoseconds and a first packet at its end.
            since.div_euclid(i128::from(width)).clamp(i128::from(i64::MIN), i128::from(i64::MAX))
                as i64
        })
    }

    /// First nanosecond of the slice and first one behind it, saturated. Slices that are numbered
    /// by the ends of the range hold all that is beyond them.
    pub(crate) fn bounds(self, index: i64) -> (i64, i64) {
        let Some(width) = self.width_ns else { return (i64::MIN, i64::MAX) };
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
pub(crate) enum Place {
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
/// At most `capacity` are open. When one more is needed, and there is no place left or the
/// least recently used one was not used for [`IDLE_PACKETS`], that one is closed: in a trace in time order
/// it is the oldest; and a single packet with a wild time, or two clocks an hour apart, take one
/// place each and disturb no other slice.
pub(crate) struct OpenSlices {
    grid: SliceGrid,
    capacity: usize,
    open: Vec<Open>,
    /// The slice used last.
    current: usize,
    closed: SliceSet,
    /// Evict the oldest slice, and only when all places are taken.
    in_order: bool,
}

/// Packets after which an idle slice may be closed. In a fast trace
/// two slices take turns then, and their filters and sets stay in the cache; slices of a slow one
/// stay open as long as there is place.
const IDLE_PACKETS: u64 = 1 << 16;

struct Open {
    index: i64,
    start_ns: i64,
    end_ns: i64,
    /// Packets that there were before the last one of this slice.
    last_used: u64,
    /// It was closed, and its place is free.
    is_free: bool,
}

impl OpenSlices {
    pub(crate) fn new(grid: SliceGrid, capacity: usize) -> Self {
        Self {
            grid,
            capacity,
            open: Vec::with_capacity(capacity),
            current: 0,
            closed: SliceSet::default(),
            in_order: false,
        }
    }

    /// Evicts the oldest slice from now on, and only when all places are taken.
    pub(super) fn close_in_order(&mut self) {
        self.in_order = true;
    }

    /// Whether `time_ns` lies in the slice used last: the answer for nearly every packet.
    #[inline]
    pub(crate) fn is_current(&self, time_ns: i64) -> bool {
        self.open
            .get(self.current)
            .is_some_and(|open| open.start_ns <= time_ns && time_ns < open.end_ns)
    }

    /// Whether all these times lie in the slice used last. A loop that does not end early uses
    /// vector instructions.
    pub(super) fn are_current(&self, times_ns: &[i64]) -> bool {
        self.open.get(self.current).is_some_and(|open| {
            let current = open.start_ns..open.end_ns;
            times_ns.iter().fold(true, |all, time_ns| all & current.contains(time_ns))
        })
    }

    /// The place of the slice used last.
    #[inline]
    pub(crate) const fn current(&self) -> usize {
        self.current
    }

    /// Finds the place of a packet's slice, opening it if need be. There were `packets` before it.
    pub(crate) fn locate(&mut self, time_ns: i64, packets: u64) -> Place {
        let index = self.grid.index(time_ns);
        if let Some(left) = self.open.get_mut(self.current) {
            left.last_used = packets;
        }
        if let Some(slot) = self.place_of(index) {
            self.open[slot].last_used = packets;
            self.current = slot;
            return Place::Open(slot);
        }
        if self.closed.contains(index) {
            return Place::Late;
        }
        let slot = self.open(index, packets);
        Place::Replace { slot, index }
    }

    /// Opens a slice that is not open, and finds its place; the slice that was there (if any) is
    /// closed first.
    pub(super) fn open(&mut self, index: i64, packets: u64) -> usize {
        let (start_ns, end_ns) = self.grid.bounds(index);
        let opened = Open { index, start_ns, end_ns, last_used: packets, is_free: false };
        match self.least_useful(index) {
            Some(slot)
                if self.open.len() == self.capacity
                    || self.open[slot].is_free
                    || !self.in_order && packets - self.open[slot].last_used > IDLE_PACKETS =>
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
        self.current
    }

    /// The place of the slice with this number, if it is open.
    pub(super) fn place_of(&self, index: i64) -> Option<usize> {
        let is_here = |open: &Open| open.index == index && !open.is_free;
        self.open.iter().position(is_here)
    }

    /// Closes a slice; its place is free.
    pub(super) fn close(&mut self, slot: usize) {
        let open = &mut self.open[slot];
        self.closed.insert(open.index);
        // No time lies in it.
        open.end_ns = open.start_ns;
        open.is_free = true;
    }

    /// Takes note that few packets will come for this slice: the next one takes its place.
    pub(super) fn give_up(&mut self, slot: usize) {
        self.open[slot].last_used = 0;
    }

    /// Returns the place to reuse for the slice `index`: a free one, or else the least recently used.
    /// If the oldest is evicted, the current slice stays, and slices more than `capacity` ahead go
    /// first: wild times opened them, and they would never become the oldest.
    fn least_useful(&self, index: i64) -> Option<usize> {
        let far = index.saturating_add(self.capacity as i64);
        let key = |&slot: &usize| {
            let Open { index, last_used, is_free, .. } = self.open[slot];
            let is_used = self.in_order && slot == self.current;
            let is_wild = self.in_order && index > far;
            (!is_free, is_used, !is_wild, if self.in_order { index } else { last_used as i64 })
        };
        (0..self.open.len()).min_by_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locate_all(capacity: usize, width_ns: i64, times: &[i64]) -> Vec<Place> {
        let grid = SliceGrid::new(Some(width_ns), Align::Epoch, 0);
        let mut slices = OpenSlices::new(grid, capacity);
        (0..).zip(times).map(|(packets, &time)| slices.locate(time, packets)).collect()
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
        let slots: Vec<Place> =
            (0..5_u64).map(|i| slices.locate(i as i64 * 10, i * 2 * IDLE_PACKETS)).collect();
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
    }
}
