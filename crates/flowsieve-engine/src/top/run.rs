//! The run: the pipeline's reading and slicing, with the ranking as its stage.

use super::extract::TopExtractor;
use super::plan::TopPlan;
use super::results::{TopSlice, TopSummary};
use super::rows::TopRows;
use super::workers::{Answer, Ranker, Task};
use crate::elements::ElementColumns;
use crate::pipeline::{
    ClosedSlice, Closing, Cut, Edges, RunError, SlicePipeline, SliceSink, Stage, StageError, Watch,
};
use crate::threads::Pool;
use std::sync::Arc;
use std::thread::{self, Scope};

/// Finds the keys with the most distinct others in each slice of the inputs, which are one trace in
/// time order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`](crate::pipeline::InputResult::error) says what happened.
///
/// # Errors
///
/// The plan does not hold, the sink failed, or a worker panicked.
pub fn top(
    plan: &TopPlan,
    sink: &mut dyn SliceSink<TopSlice>,
    watch: &dyn Watch,
) -> Result<TopSummary, RunError> {
    plan.check()?;
    plan.check_memory()?;
    // Several inputs may be open at the same time, with a thread each.
    let readers = match plan.trace.inputs.len() {
        1 => plan.trace.threads.saturating_sub(1) / 2,
        _ => plan.trace.threads.saturating_sub(2).min(1),
    };
    let is_live = plan.slicing.width_ns.is_some() && plan.trace.is_stream();
    let mut pipeline = SlicePipeline {
        trace: &plan.trace,
        extractor: Arc::new(TopExtractor::new(plan)),
        extractor_again: None,
        // The digest of the key.
        arity: 1,
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: 1,
        threads: readers,
        observers: Vec::new(),
        panes: None,
        rereads_all: false,
        recalls: false,
        delay_ns: plan.trace.delay_ns.filter(|_| is_live),
    };
    let is_live = pipeline.delay_ns.is_some();
    let read = thread::scope(|scope| {
        let edges = |grid| Edges::new(plan.slicing, &plan.trace.selection, grid);
        pipeline.read(
            scope,
            watch,
            |grid| TopStage::start(scope, plan, TopRows::new(sink, edges(grid), is_live)),
            |rows| TopStage::start(scope, plan, rows.again()),
        )
    })?;
    let cut = Cut::new(read.totals.interrupted);
    let sums = read.outcome.finish(cut).map_err(RunError::Sink)?;
    Ok(sums.summary(&plan.question, read.inputs, read.totals))
}

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
