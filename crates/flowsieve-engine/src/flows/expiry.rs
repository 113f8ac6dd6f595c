//! The flows of a stream by the time at which they may have been idle for too long.
//!
//! Places are filed in lists by the time of their last packet. When the capture's time has passed a
//! list, its flows have ended, but for those that had packets since: they are filed again. So a
//! flow is looked at once in each timeout, and which flows end at which packet depends on the
//! packets before it and on nothing else.

use super::columns::{reserve, set};
use std::collections::BTreeMap;

/// Least width of a list: as late as rows of flows may be.
const LEAST_WIDTH_NS: i64 = 100_000_000;

/// Lists within a timeout.
const LISTS: i64 = 1024;

/// The place is in no list.
const UNFILED: u32 = u32::MAX;

/// The place is the last one of its list.
const LAST: u32 = u32::MAX - 1;

/// Lists of places.
#[derive(Debug)]
pub(super) struct Expiry {
    /// The capture's time when flows ended last.
    now_ns: i64,
    /// How late a packet may come.
    delay_ns: i64,
    /// Time after its last packet at which a flow ends.
    wait_ns: i64,
    width_ns: i64,
    /// Number of the list of the present, and of the last one that has passed.
    present: i64,
    passed: i64,
    /// First and last place of each list.
    lists: BTreeMap<i64, (u32, u32)>,
    /// The place behind each place in its list.
    next: Vec<u32>,
}

impl Expiry {
    /// Flows end when their idle timeout has passed by the delay.
    pub(super) fn new(idle_ns: i64, delay_ns: i64) -> Self {
        let wait_ns = idle_ns.saturating_add(delay_ns);
        let width_ns = LEAST_WIDTH_NS.max(wait_ns / LISTS);
        let mut expiry = Self {
            now_ns: i64::MIN,
            delay_ns,
            wait_ns,
            width_ns,
            present: 0,
            passed: 0,
            lists: BTreeMap::new(),
            next: Vec::new(),
        };
        expiry.set_now(i64::MIN);
        expiry
    }

    /// Makes room for this many places; false if the system does not give the memory.
    pub(super) fn make_room(&mut self, places: usize, most: usize) -> bool {
        reserve(&mut self.next, places, most)
    }

    /// Files a place, for which there is room, unless it is filed.
    pub(super) fn file(&mut self, at: u32, end_ns: i64) {
        if self.next.get(at as usize).is_some_and(|&next| next != UNFILED) {
            return;
        }
        set(&mut self.next, at as usize, LAST, |_| UNFILED);
        // A wild time must not hold the place for ever: another flow may come there.
        let list = end_ns.div_euclid(self.width_ns).clamp(self.passed + 1, self.present);
        let (_, last) = self.lists.entry(list).or_insert((at, at));
        if *last != at {
            self.next[*last as usize] = at;
            *last = at;
        }
    }

    /// Sets the capture's time and returns the time at which it has to be set next.
    pub(super) fn set_now(&mut self, now_ns: i64) -> i64 {
        self.now_ns = now_ns;
        self.present = now_ns.div_euclid(self.width_ns);
        self.passed = now_ns.saturating_sub(self.wait_ns).div_euclid(self.width_ns) - 1;
        (self.present + 1).saturating_mul(self.width_ns)
    }

    /// Takes a place from the lists that have passed.
    pub(super) fn take_passed(&mut self) -> Option<u32> {
        let mut list = self.lists.first_entry().filter(|list| *list.key() <= self.passed)?;
        let (at, last) = *list.get();
        let next = std::mem::replace(&mut self.next[at as usize], UNFILED);
        if at == last {
            list.remove();
        } else {
            list.get_mut().0 = next;
        }
        Some(at)
    }

    /// Returns whether a packet with this time comes so late that its flow may have ended.
    pub(super) const fn is_late(&self, time_ns: i64) -> bool {
        time_ns < self.now_ns.saturating_sub(self.delay_ns)
    }

    /// Whether a flow whose last packet has this time has ended by `now_ns`.
    pub(super) const fn is_over(&self, end_ns: i64, now_ns: i64) -> bool {
        now_ns.saturating_sub(end_ns) > self.wait_ns
    }
}
