//! The flows that have not ended when the inputs end, in the order of their start.
//!
//! Each table of live flows becomes a run, which is in order already or is put in order where it
//! is. The runs are merged as their flows are taken; a part of all flows is a range of each run, so
//! that several threads can take a part each.

use super::columns::Flows;
use super::record::{Ended, FlowRecord};
use crate::memory::can_allocate;
use crate::place_index::Index;
use std::fmt;
use std::ops::Range;

/// Flows whose memory is read ahead together.
const PREFETCHED: usize = 32;

/// Copies that are given at a time.
const COPIED: usize = 64;

/// The flows that had not ended when the inputs did, in the order of their start; of equal ones, in
/// the order in which they began.
///
/// They stay where they were until they are taken, so they need little more memory.
pub struct RemainingFlows {
    runs: Vec<Run>,
    /// Flows that are still to come.
    left: Merged,
}

/// Flows that follow each other among the last ones.
#[derive(Debug)]
pub struct RemainingPart(Vec<Range<usize>>);

/// The flows of one table, in order.
pub(super) struct Run {
    flows: Flows,
    order: Order,
    len: usize,
}

enum Order {
    /// That of places.
    Places,
    /// Start and place.
    Listed(Vec<(i64, u32)>),
    /// Places, in the memory of an index that is needed no more.
    Index(Index),
}

/// The remaining flows of some runs.
struct Merged {
    /// Sort key of the next flow of each run; the largest number if there is none.
    next: Vec<u128>,
    /// The numbers of those flows, and of those behind them.
    ranges: Vec<Range<usize>>,
    left: usize,
}

/// Behind all flows.
const NEVER: u128 = u128::MAX;

impl Run {
    /// All flows that live; the index gives up its memory for their order where no other is given.
    /// `is_in_order` says that flows at later places never start earlier.
    pub(super) fn new(mut index: Index, flows: Flows, is_in_order: bool) -> Self {
        let live = index.len();
        let places = 0..flows.len() as u32;
        let is_next = |at| at == 0 || flows.order(at - 1) < flows.order(at);
        let is_in_order = live == flows.len() && (is_in_order || places.clone().all(is_next));
        let places = places.filter(|&at| flows.is_live(at));
        let mut listed: Vec<(i64, u32)> = Vec::new();
        let order = if is_in_order {
            Order::Places
        } else if can_allocate((live * size_of::<(i64, u32)>()) as u64)
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
        Self { flows, order, len: live }
    }

    fn place(&self, number: usize) -> u32 {
        match &self.order {
            Order::Places => number as u32,
            Order::Listed(listed) => listed[number].1,
            Order::Index(index) => index.listed(number),
        }
    }

    /// Returns the sort key of a flow: its start, and then its number in the trace, as one number that
    /// is compared without a branch.
    fn order(&self, number: usize) -> u128 {
        let (start_ns, number) = self.flows.order(self.place(number));
        let start = start_ns.cast_unsigned() ^ 1 << 63;
        u128::from(start) << 64 | u128::from(number)
    }

    /// Returns the sort key of the first flow of a range.
    fn order_of_first(&self, range: &Range<usize>) -> u128 {
        if range.start < range.end { self.order(range.start) } else { NEVER }
    }

    /// Reads flows ahead that are taken next, whenever those before were taken.
    fn prefetch(&self, next: &Range<usize>) {
        if next.start.is_multiple_of(PREFETCHED) {
            let numbers = next.start..next.end.min(next.start + PREFETCHED);
            self.flows.prefetch(numbers.map(|number| self.place(number)));
        }
    }
}

impl Merged {
    fn new(runs: &[Run], ranges: Vec<Range<usize>>) -> Self {
        let next = ranges.iter().zip(runs);
        let next = next.map(|(range, run)| run.order_of_first(range));
        Self { next: next.collect(), left: ranges.iter().map(Range::len).sum(), ranges }
    }

    /// Run and place of the next flow.
    fn next(&mut self, runs: &[Run]) -> Option<(usize, u32)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (mut first, mut number) = (NEVER, 0);
        for (other, &next) in self.next.iter().enumerate() {
            if next < first {
                (first, number) = (next, other);
            }
        }
        let (run, range) = (&runs[number], &mut self.ranges[number]);
        run.prefetch(range);
        let place = run.place(range.start);
        range.start += 1;
        self.next[number] = run.order_of_first(range);
        Some((number, place))
    }
}

impl RemainingFlows {
    /// The flows of tables that divide them.
    pub(super) fn of(runs: Vec<Run>) -> Self {
        let ranges = runs.iter().map(|run| 0..run.len);
        Self { left: Merged::new(&runs, ranges.collect()), runs }
    }

    /// This many flows behind those of another part, or the first ones; fewer if there are no more.
    pub fn part_behind(&self, before: Option<&RemainingPart>, count: usize) -> RemainingPart {
        let start = |run: usize| before.map_or(0, |RemainingPart(ranges)| ranges[run].end);
        let mut part: Vec<_> = (0..self.runs.len()).map(|run| start(run)..start(run)).collect();
        // Takes a share of what is left of each run. The share that ends first is part of what is left,
        // whatever the others are.
        let end_of = |range: &Range<usize>, run: &Run, share: usize| {
            let end = run.len.min(range.end + share);
            (run.order_of_first(&(end.saturating_sub(1)..end)), end)
        };
        let (mut left, mut share) = (count, 0);
        let mut ends = Vec::new();
        loop {
            let parts = || part.iter().zip(&self.runs);
            let open = parts().filter(|(range, run)| range.end < run.len).count();
            if open == 0 || left == 0 {
                return RemainingPart(part);
            }
            // A power of two, so that it seldom changes: then only the end of the run that went on
            // is looked up.
            let fits = 1 << (left / open).max(1).ilog2();
            if share != fits {
                share = fits;
                ends = parts().map(|(range, run)| end_of(range, run, share)).collect();
            }
            let open = (0..ends.len()).filter(|&run| part[run].end < self.runs[run].len);
            if let Some(first) = open.min_by_key(|&run| ends[run].0) {
                left -= ends[first].1 - part[first].end;
                part[first].end = ends[first].1;
                ends[first] = end_of(&part[first], &self.runs[first], share);
            }
        }
    }

    /// Gives copies of a part of the flows, some at a time. Parts can be asked for in several
    /// threads.
    pub fn copies(
        &self,
        RemainingPart(ranges): &RemainingPart,
        take: &mut dyn FnMut(&[FlowRecord]),
    ) {
        let mut merged = Merged::new(&self.runs, ranges.clone());
        let mut copies = Vec::with_capacity(COPIED);
        while let Some((run, place)) = merged.next(&self.runs) {
            copies.push(self.runs[run].flows.copy(place, Ended::Input));
            if copies.len() == COPIED {
                take(&copies);
                copies.clear();
            }
        }
        take(&copies);
    }
}

impl RemainingPart {
    /// Number of its flows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }
}

impl Iterator for RemainingFlows {
    type Item = FlowRecord;

    fn next(&mut self) -> Option<FlowRecord> {
        let (run, place) = self.left.next(&self.runs)?;
        Some(self.runs[run].flows.take(place, Ended::Input))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.left, Some(self.left.left))
    }
}

impl ExactSizeIterator for RemainingFlows {}

impl fmt::Debug for RemainingFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemainingFlows").field("left", &self.left.left).finish_non_exhaustive()
    }
}
