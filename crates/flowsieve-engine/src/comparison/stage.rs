//! The stage of a comparison: holds the first elements back until it is known how many a slice has,
//! then makes the structures and gives them everything.

use super::candidate::{Candidate, Design, Unfit};
use super::collector::AnswerCollector;
use super::expected::expected;
use super::negatives::Asking;
use super::plan::SETS_BYTES;
use super::results::{Expected, SliceCount};
use super::truth::{Counted, Truth};
use super::workers::{self, Task, Worker};
use super::{ComparePlan, Comparison, Contender, Entry};
use crate::elements::ElementColumns;
use crate::guard::{WorkerPanicked, catch_panic};
use crate::hashing::{Digest, Digester};
use crate::memory::can_allocate;
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
pub(super) struct CompareStage<'scope, 'env, 'plan> {
    scope: &'scope Scope<'scope, 'env>,
    plan: &'plan ComparePlan,
    phase: Phase,
    truth: Truth,
    /// Numbers of the elements of a batch that are new to the truth.
    new: Vec<u32>,
    collector: AnswerCollector,
}

enum Phase {
    /// Until [`HELD_BYTES`] came.
    Holding {
        held: Vec<Held>,
        bytes: usize,
        /// Distinct values in each slice that ended.
        slices: Vec<Vec<u64>>,
    },
    Running(Pool<Worker>),
}

/// What was held back.
enum Held {
    Add { slot: usize, elements: ElementColumns },
    Close(Closing),
}

impl<'scope, 'env, 'plan> CompareStage<'scope, 'env, 'plan> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, plan: &'plan ComparePlan) -> Self {
        Self {
            scope,
            plan,
            phase: Phase::Holding { held: Vec::new(), bytes: 0, slices: Vec::new() },
            truth: truth(plan),
            new: Vec::new(),
            collector: AnswerCollector::new(plan.asked()),
        }
    }

    /// Makes the structures and gives them what was held back.
    fn start(&mut self) -> Result<(), StageError> {
        let Phase::Holding { held, slices, .. } = &mut self.phase else {
            return Ok(());
        };
        let (held, slices) = (std::mem::take(held), std::mem::take(slices));
        let plan = self.plan;
        let expected = expected(slices, plan.expected, self.truth.counted());
        let (entries, candidates) = entries(plan, &expected, set_limit(plan));
        self.collector.begin(expected, entries);
        self.phase = Phase::Running(workers::start(self.scope, candidates, plan.trace.threads));
        // Questions are about what was there when a slice closed.
        self.truth = truth(plan);
        held.into_iter().try_for_each(|held| match held {
            Held::Add { slot, mut elements } => self.add(0, slot, &mut elements),
            Held::Close(closing) => self.close(closing),
        })
    }

    /// Asks the truth about these elements, and takes those of which the structures make something:
    /// unless repeats count, those that are new to the slice. None are left.
    fn pass(
        &mut self,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<ElementColumns, WorkerPanicked> {
        self.new.clear();
        catch_panic(|| self.truth.add(slot, &elements.keys, &mut self.new))?;
        let mut first = match &mut self.phase {
            // What is held has no more memory than it needs, and the memory of the batch is used
            // again.
            Phase::Holding { .. } => ElementColumns::default(),
            Phase::Running(workers) => workers.fresh(),
        };
        if self.plan.repeats_count() || self.new.len() == elements.len() {
            std::mem::swap(elements, &mut first);
        } else {
            let arity = self.plan.rule.kind.arity();
            first.extend_from_some(elements, &self.new, arity);
            elements.clear();
        }
        Ok(first)
    }

    /// Takes the answers that have come, and waits for more while there are this many closings
    /// without.
    fn collect(&mut self, outstanding: usize) -> Result<(), StageError> {
        let Phase::Running(workers) = &mut self.phase else {
            return Ok(());
        };
        while let Some(answer) = workers.answer(self.collector.outstanding() >= outstanding)? {
            self.collector.take(answer);
        }
        Ok(())
    }
}

impl Stage for CompareStage<'_, '_, '_> {
    const LOOKS_AHEAD: bool = true;

    type Outcome = Comparison;

    fn add(
        &mut self,
        _shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        let size = size_of_columns(elements);
        let elements = self.pass(slot, elements)?;
        match &mut self.phase {
            Phase::Holding { held, bytes, .. } => {
                held.push(Held::Add { slot, elements });
                *bytes += size;
                if *bytes >= HELD_BYTES || !can_allocate(self.plan.structure_bytes() + SETS_BYTES) {
                    return self.start();
                }
                Ok(())
            }
            Phase::Running(workers) => {
                let elements = Arc::new(elements);
                workers.push_all(Task::Add { slot, elements })?;
                self.collect(MAX_OUTSTANDING)
            }
        }
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let (slot, truth) = (closing.slot, &mut self.truth);
        match &mut self.phase {
            Phase::Holding { held, bytes, slices } => {
                slices.extend(truth.counts(slot));
                truth.clear(slot);
                held.push(Held::Close(closing));
                // Slices without elements take memory as well.
                *bytes += size_of::<Closing>();
                Ok(())
            }
            Phase::Running(workers) => {
                let questions = Arc::new(catch_panic(|| truth.questions(&closing))?);
                truth.clear(slot);
                self.collector.announce(closing.number, closing.slice, Arc::clone(&questions));
                workers.push_all(Task::Close { number: closing.number, slot, questions })?;
                self.collect(MAX_OUTSTANDING)
            }
        }
    }

    fn finish(mut self) -> Result<Comparison, StageError> {
        self.start()?;
        self.collect(1)?;
        Ok(self.collector.finish())
    }
}

/// Bytes that the sets of one slice may take: the truth's, and those of the exact set if it takes
/// part.
fn set_limit(plan: &ComparePlan) -> u64 {
    let sets = 1 + u64::from(plan.contenders.contains(&Contender::EXACT));
    plan.exact_limit_bytes / sets / plan.open_slices() as u64
}

/// The truth before the first element.
fn truth(plan: &ComparePlan) -> Truth {
    let asking = Asking {
        counted: Counted::new(plan.rule.kind, &plan.asked()),
        asked: plan.asked(),
        digester: Digester::new(plan.seed),
    };
    Truth::new(asking, set_limit(plan))
}

fn size_of_columns(elements: &ElementColumns) -> usize {
    let digests = elements.digests.len() + elements.attributes.len();
    let keys: usize = elements.keys.iter().map(|key| key.len() + 4).sum();
    // And the overhead of a batch: small slices have small ones.
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
