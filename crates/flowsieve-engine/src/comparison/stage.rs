//! The stage of a comparison: holds the first elements back until it is known how many a slice has, then
//! makes the structures and gives them everything.

use super::candidate::{Candidate, Design, Unfit};
use super::expected::expected;
use super::gather::Gather;
use super::negatives::Asking;
use super::plan::SETS_BYTES;
use super::results::{Expected, SliceCount};
use super::truth::Counted;
use super::workers::{self, Task, Truth, Worker};
use super::{ComparePlan, Comparison, Contender, Entry};
use crate::elements::ElementColumns;
use crate::hashing::{Digest, Digester};
use crate::memory::is_given;
use crate::pipeline::{Closing, Stage, StageError};
use crate::threads::Pool;
use std::mem::size_of;
use std::sync::Arc;
use std::thread::Scope;

/// Bytes of elements that are held back, about: a million pairs.
const HELD_BYTES: usize = 48 << 20;

/// Closings without all answers before everybody is waited for. Their questions are in memory.
const MAX_OUTSTANDING: usize = 4;

/// The state of a comparison.
pub(super) struct Bench<'scope, 'env, 'plan> {
    scope: &'scope Scope<'scope, 'env>,
    plan: &'plan ComparePlan,
    phase: Phase,
    gather: Gather,
}

enum Phase {
    /// Until [`HELD_BYTES`] are held.
    Holding {
        tasks: Vec<Task>,
        bytes: usize,
    },
    Running(Pool<Worker>),
}

impl<'scope, 'env, 'plan> Bench<'scope, 'env, 'plan> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, plan: &'plan ComparePlan) -> Self {
        Self {
            scope,
            plan,
            phase: Phase::Holding {
                tasks: Vec::new(),
                bytes: 0,
            },
            gather: Gather::new(plan.asked()),
        }
    }

    fn counted(&self) -> Counted {
        Counted::new(self.plan.rule.kind, &self.plan.asked())
    }

    /// Makes the structures and gives them what was held back.
    fn start(&mut self) -> Result<(), StageError> {
        let Phase::Holding { tasks, .. } = &mut self.phase else {
            return Ok(());
        };
        let tasks = std::mem::take(tasks);
        let (plan, counted) = (self.plan, self.counted());
        let slices = plan.open_slices() as u64;
        // The truth and, if it takes part, the exact set.
        let sets = 1 + u64::from(plan.contenders.contains(&Contender::EXACT));
        let limit = plan.exact_limit_bytes / sets / slices;
        let expected = expected(&tasks, plan.expected, &counted, limit);
        let (entries, candidates) = entries(plan, &expected, limit);
        self.gather.begin(expected, entries);
        let truth = Truth {
            asking: Asking {
                counted,
                asked: plan.asked(),
                digester: Digester::new(plan.seed),
            },
            limit,
            slots: Vec::new(),
        };
        self.phase = Phase::Running(workers::start(self.scope, truth, candidates, plan.threads));
        tasks.into_iter().try_for_each(|task| self.give(task))
    }

    fn give(&mut self, task: Task) -> Result<(), StageError> {
        let Phase::Running(workers) = &mut self.phase else {
            return Ok(());
        };
        if let Task::Close { number, slice, .. } = task {
            self.gather.announce(number, slice);
        }
        workers.give_all(task)?;
        self.collect(MAX_OUTSTANDING)
    }

    /// Takes the answers that have come, and waits for more while there are this many closings without.
    fn collect(&mut self, outstanding: usize) -> Result<(), StageError> {
        let Phase::Running(workers) = &mut self.phase else {
            return Ok(());
        };
        while let Some(answer) = workers.answer(self.gather.outstanding() >= outstanding)? {
            self.gather.take(answer);
        }
        Ok(())
    }
}

impl Stage for Bench<'_, '_, '_> {
    const LOOKS_AHEAD: bool = true;

    type Outcome = Comparison;

    fn add(
        &mut self,
        _shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        let fresh = match &mut self.phase {
            Phase::Holding { .. } => ElementColumns::default(),
            Phase::Running(workers) => workers.fresh(),
        };
        let elements = std::mem::replace(elements, fresh);
        let size = size_of_columns(&elements);
        let task = Task::Add {
            slot,
            elements: Arc::new(elements),
        };
        match &mut self.phase {
            Phase::Holding { tasks, bytes } => {
                tasks.push(task);
                *bytes += size;
                if *bytes >= HELD_BYTES || !is_given(self.plan.structure_bytes() + SETS_BYTES) {
                    return self.start();
                }
                Ok(())
            }
            Phase::Running(_) => self.give(task),
        }
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let task = Task::Close {
            number: closing.number,
            slot: closing.slot,
            next: closing.next,
            slice: closing.slice,
        };
        match &mut self.phase {
            Phase::Holding { tasks, bytes } => {
                tasks.push(task);
                // Slices without elements take memory as well.
                *bytes += size_of::<Task>();
                Ok(())
            }
            Phase::Running(_) => self.give(task),
        }
    }

    fn finish(mut self) -> Result<Comparison, StageError> {
        self.start()?;
        self.collect(1)?;
        Ok(self.gather.finish())
    }
}

fn size_of_columns(elements: &ElementColumns) -> usize {
    let digests = elements.digests.len() + elements.attributes.len();
    let keys: usize = elements.keys.iter().map(|key| key.len() + 4).sum();
    // And what a batch takes besides: small slices have small ones.
    digests * size_of::<Digest>() + keys + 256
}

/// One entry for each memory and structure, and a candidate for each that fits.
fn entries(
    plan: &ComparePlan,
    expected: &Expected,
    exact_limit: u64,
) -> (Vec<Entry>, Vec<Candidate>) {
    let mut entries = Vec::new();
    let mut candidates = Vec::new();
    let sized = |contender: &&Contender| **contender != Contender::EXACT;
    let of_memories = plan.memories.iter().flat_map(|&bytes| {
        let contenders = plan.contenders.iter().filter(sized);
        contenders.map(move |&contender| (contender, Some(bytes)))
    });
    let exact = plan.contenders.iter().filter(|c| !sized(c));
    for (contender, asked) in of_memories.chain(exact.map(|&contender| (contender, None))) {
        let design = Design::new(contender, asked.unwrap_or(exact_limit), expected, plan);
        let mut entry = Entry {
            contender,
            memory_asked_bytes: asked,
            memory_bytes: None,
            needed_bytes: None,
            unfit: None,
            probes: None,
            stored: Vec::new(),
            counts: Vec::<SliceCount>::new(),
            queries: Vec::new(),
            ns_per_element: None,
        };
        match design {
            Err(Unfit { needed_bytes, why }) => {
                entry.needed_bytes = needed_bytes;
                entry.unfit = Some(why);
            }
            Ok(design) => {
                if let Some(spec) = design.filter() {
                    entry.probes = Some(spec.probes());
                    entry.stored = spec.shape().stored;
                }
                candidates.push(Candidate::new(design, plan));
            }
        }
        entries.push(entry);
    }
    (entries, candidates)
}
