//! The stage of a comparison: leaves of each slice the list of its first sightings, and the truth
//! about it.
//!
//! Only the first sighting of an element can change the count of a filter without false negatives,
//! so nothing else has to reach the structures; those whose counters repeats change get all. Lists
//! are kept until everything was read, for as many replicates as it takes. If they would take too
//! much memory, all replicates are evaluated at once, and from then on each slice as it closes.

use super::evaluation::Evaluation;
use super::negatives::Asking;
use super::results::JudgedSlice;
use super::slice_list::{ClosedList, Collected, SliceList};
use super::truth::{Counted, SliceSets};
use super::{ComparePlan, Contender};
use crate::elements::ElementColumns;
use crate::filters::FilterKind;
use crate::guard::catch_panic;
use crate::hashing::Digester;
use crate::memory::can_allocate;
use crate::pipeline::{Closing, Stage, StageError};
use std::mem::take;
use std::sync::Arc;
use std::thread::Scope;

/// The state of a comparison while the inputs are read.
pub(super) struct CompareStage<'scope, 'env, 'plan> {
    scope: &'scope Scope<'scope, 'env>,
    plan: &'plan ComparePlan,
    asking: Asking,
    /// Bytes that the sets of one slice may take.
    limit: u64,
    open: Vec<(SliceSets, SliceList)>,
    /// Numbers of the elements of a batch that are new to the truth.
    new: Vec<u32>,
    closed: Vec<ClosedList>,
    /// Bytes of the lists that are kept.
    bytes: u64,
    omitted: u64,
    /// Set once lists are no longer kept.
    evaluation: Option<Evaluation<'plan>>,
}

/// Slices that are kept, at most; a result has numbers for each.
const MAX_SLICES: usize = 1 << 20;

/// Memory of the result per slice, in bytes.
const BYTES_A_SLICE: u64 = 256;

/// Memory of the result per count, in bytes, including spare capacity.
const BYTES_A_COUNT: u64 = 24;

/// Minimum budget of the result, in bytes.
const LEAST_BYTES: u64 = 1 << 20;

impl<'scope, 'env, 'plan: 'scope> CompareStage<'scope, 'env, 'plan> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, plan: &'plan ComparePlan) -> Self {
        let xored = plan.contenders.contains(&Contender::from(FilterKind::CmdbfXor));
        let asking = Asking {
            counted: Counted {
                xored,
                listed: plan.asks(),
                ..Counted::new(plan.rule.kind, &plan.counted())
            },
            asked: plan.asked(),
            digester: Digester::new(plan.seed),
        };
        // Lists get the other half.
        let limit = plan.exact_limit_bytes / 2 / plan.open_slices() as u64;
        Self {
            scope,
            plan,
            asking,
            limit,
            open: Vec::new(),
            new: Vec::new(),
            closed: Vec::new(),
            bytes: 0,
            omitted: 0,
            evaluation: None,
        }
    }

    fn reach(&mut self, slot: usize) {
        while self.open.len() <= slot {
            let sets = SliceSets::new(&self.asking.counted, self.limit);
            self.open.push((sets, SliceList::default()));
        }
    }

    /// Evaluates what was kept in all replicates, and keeps no lists from now on.
    fn stream(&mut self) -> Result<(), StageError> {
        let counted = &self.asking.counted;
        let mut evaluation =
            Evaluation::begin(self.scope, self.plan, &self.closed, counted, false)?;
        evaluation.run_streamed(&mut self.closed, 0)?;
        self.bytes = 0;
        self.evaluation = Some(evaluation);
        Ok(())
    }
}

impl<'scope, 'plan: 'scope> Stage for CompareStage<'scope, '_, 'plan> {
    const LOOKS_AHEAD: bool = true;

    type Outcome = Collected;

    fn add(
        &mut self,
        _shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        self.reach(slot);
        let (sets, list) = &mut self.open[slot];
        self.new.clear();
        catch_panic(|| sets.add(&self.asking.counted, &elements.keys, &mut self.new))?;
        if self.plan.repeats_count() {
            self.new.clear();
            self.new.extend(0..elements.len() as u32);
        }
        if !sets.over_limit && list.extend(elements, &self.new, &self.asking).is_none() {
            sets.give_up(&self.asking.counted);
        }
        elements.clear();
        Ok(())
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let slot = closing.slot;
        self.reach(slot.max(closing.next.unwrap_or(0)));
        let mut list = take(&mut self.open[slot].1);
        let sets = &self.open[slot].0;
        let (counts, floors) = (sets.counts(), sets.floors);
        if counts.is_some() && self.plan.asks() {
            let next = closing.next.map(|next| &self.open[next].0);
            let questions = || self.asking.questions(sets, next, closing.slice.index);
            list.questions = Some(catch_panic(questions)?);
        }
        self.open[slot].0.clear();
        let kept = self.closed.len() as u64 + 1;
        let bytes = kept.saturating_mul(BYTES_A_SLICE + self.plan.most_counts() * BYTES_A_COUNT);
        if self.omitted > 0
            || self.closed.len() == MAX_SLICES
            || bytes > (self.plan.exact_limit_bytes / 4).max(LEAST_BYTES)
            || !can_allocate(bytes)
        {
            self.omitted += 1;
            return Ok(());
        }
        list.whole.shrink_to_fit();
        list.attributes.shrink_to_fit();
        self.bytes += list.bytes() as u64;
        let exact = counts.as_ref().map(|values| values[0]);
        self.closed.push(ClosedList {
            index: closing.slice.index,
            slice: JudgedSlice {
                start_ns: closing.slice.start_ns,
                end_ns: closing.slice.end_ns,
                packets: closing.slice.packets,
                elements: closing.slice.elements,
                exact,
                values: counts.unwrap_or_default(),
                floors: exact.map_or_else(Default::default, |_| floors),
                partial: false,
                judged: exact > Some(0),
            },
            list: exact.map(|_| Arc::new(list)),
        });
        if let Some(evaluation) = &mut self.evaluation {
            let last = self.closed.len() - 1;
            evaluation.run_streamed(&mut self.closed, last)?;
        } else if self.bytes > self.plan.exact_limit_bytes / 2 || !can_allocate(self.bytes / 4) {
            self.stream()?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Collected, StageError> {
        Ok(Collected {
            counted: self.asking.counted,
            evaluated: self.evaluation.map(|it| it.comparison),
            slices: self.closed,
            slices_omitted: self.omitted,
        })
    }
}
