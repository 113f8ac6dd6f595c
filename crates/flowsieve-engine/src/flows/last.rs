//! The flows that are there when the inputs end, in the order of their start.

use super::index::Index;
use super::record::{Ended, FlowRecord};
use super::table::Flows;
use crate::memory::is_given;
use std::fmt;
use std::ops::Range;

/// Flows whose memory is read at once.
const APPROACHED: usize = 32;

/// The flows that had not ended when the inputs did, in the order of their start; of equal ones, in the order in which they began.
///
/// They stay where they were until they are taken, so they need little more memory.
pub struct LastFlows {
    flows: Flows,
    order: Order,
    /// Of the order, what is still to come.
    left: Range<usize>,
}

enum Order {
    /// That of places.
    Places,
    /// Start and place.
    Listed(Vec<(i64, u32)>),
    /// Places, in the memory of an index that is needed no more.
    Index(Index),
}

impl LastFlows {
    /// All flows that live; the index gives up its memory for their order where no other is given. `is_begun_in_order` says that
    /// flows with higher numbers never start earlier.
    pub(super) fn new(mut index: Index, flows: Flows, is_begun_in_order: bool) -> Self {
        let live = index.len();
        let places = 0..flows.len() as u32;
        let is_next = |at| at == 0 || flows.order(at - 1) < flows.order(at);
        let is_known = is_begun_in_order && flows.are_numbered_by_place();
        let in_order = live == flows.len() && (is_known || places.clone().all(is_next));
        let places = places.filter(|&at| flows.is_live(at));
        let mut listed: Vec<(i64, u32)> = Vec::new();
        let order = if in_order {
            Order::Places
        } else if is_given((live * size_of::<(i64, u32)>()) as u64)
            && listed.try_reserve_exact(live).is_ok()
        {
            drop(index);
            listed.extend(places.map(|at| (flows.order(at).0, at)));
            listed.sort_unstable_by(|a, b| {
                let further = || flows.order(a.1).cmp(&flows.order(b.1));
                a.0.cmp(&b.0).then_with(further)
            });
            Order::Listed(listed)
        } else {
            let order = index.become_list(places);
            order.sort_unstable_by_key(|&at| flows.order(at));
            Order::Index(index)
        };
        Self {
            flows,
            order,
            left: 0..live,
        }
    }

    /// Gives copies of some of the flows: those with these numbers. They can be asked for in several threads.
    pub fn copies(&self, range: Range<usize>, take: &mut dyn FnMut(&mut FlowRecord)) {
        for first in range.clone().step_by(APPROACHED) {
            let numbers = first..range.end.min(first + APPROACHED);
            self.flows.approach(numbers.clone().map(|n| self.place(n)));
            for number in numbers {
                take(&mut self.flows.copy(self.place(number), Ended::Input));
            }
        }
    }

    fn place(&self, number: usize) -> u32 {
        match &self.order {
            Order::Places => number as u32,
            Order::Listed(listed) => listed[number].1,
            Order::Index(index) => index.listed(number),
        }
    }
}

impl Iterator for LastFlows {
    type Item = FlowRecord;

    fn next(&mut self) -> Option<FlowRecord> {
        let number = self.left.next()?;
        if number.is_multiple_of(APPROACHED) {
            let end = self.left.end.min(number + APPROACHED);
            let places = (number..end).map(|number| self.place(number));
            self.flows.approach(places);
        }
        Some(self.flows.take(self.place(number), Ended::Input))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for LastFlows {}

impl fmt::Debug for LastFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastFlows")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
