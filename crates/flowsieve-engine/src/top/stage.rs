//! The stage of a ranking: batches go to the worker, and the slices that it closes to the rows.

use super::plan::TopPlan;
use super::rows::TopRows;
use super::workers::{Answer, Ranker, Task};
use crate::elements::ElementColumns;
use crate::pipeline::{ClosedSlice, Closing, Stage, StageError};
use crate::threads::Pool;
use std::thread::Scope;

pub(super) struct TopStage<'a> {
    workers: Pool<Ranker>,
    rows: TopRows<'a>,
    /// Closings without an answer.
    outstanding: usize,
}

/// Closings whose answers may be outstanding before they are waited for.
const MOST_OUTSTANDING: usize = 16;

impl<'a> TopStage<'a> {
    /// Starts a thread for the worker if there are two or more.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: &TopPlan,
        rows: TopRows<'a>,
    ) -> Self {
        let threads = usize::from(plan.trace.threads >= 2);
        let workers = Pool::start(scope, "ranking", threads, |_, _| Ranker::new(plan));
        Self { workers, rows, outstanding: 0 }
    }

    /// Collects the answers that have come, and waits for more while this many are outstanding.
    fn collect(&mut self, outstanding: usize) -> Result<(), StageError> {
        while self.outstanding > 0 {
            let wait = self.outstanding >= outstanding;
            let Some(Answer { slice, is_closed }) = self.workers.answer(wait)? else {
                return Ok(());
            };
            self.outstanding -= 1;
            self.rows.take(slice, is_closed)?;
        }
        Ok(())
    }

    fn ask(&mut self, task: Task) -> Result<(), StageError> {
        self.workers.push(0, task)?;
        self.outstanding += 1;
        self.collect(MOST_OUTSTANDING)
    }
}

impl<'a> Stage for TopStage<'a> {
    /// A ranking cannot be restored: its packets and bytes depend on repeats.
    const KEEPS_OPEN: bool = true;

    type Outcome = TopRows<'a>;

    fn add(
        &mut self,
        _shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        let fresh = self.workers.fresh();
        let elements = std::mem::replace(elements, fresh);
        Ok(self.workers.push(0, Task::Add { slot, elements })?)
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let Closing { slot, slice, .. } = closing;
        self.ask(Task::Rank { slot, slice, is_closed: true })
    }

    fn show(&mut self, slot: usize, slice: ClosedSlice) -> Result<(), StageError> {
        if self.rows.is_shown(&slice) {
            return Ok(());
        }
        self.ask(Task::Rank { slot, slice, is_closed: false })
    }

    fn emit_final(&mut self, final_ns: i64) -> Result<(), StageError> {
        self.collect(1)?;
        Ok(self.rows.show(final_ns)?)
    }

    fn finish(mut self) -> Result<TopRows<'a>, StageError> {
        self.collect(1)?;
        Ok(self.rows)
    }
}
