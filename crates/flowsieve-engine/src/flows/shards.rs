//! The live flows divided among shards, each with its own table, served by any idle thread.
//!
//! ```text
//!     batch ──► waiting, one queue a shard ──► table of the shard     one thread at a time
//!       ▲                                          │
//!       └───────── empty, when all shards have taken their packets of it ──► flows that ended in it
//! ```
//!
//! A shard takes batches in the order in which they were given, so each flow gets its packets in
//! the order of the trace.

use super::batch::{FlowBatch, FlowPlace};
use super::plan::FlowPlan;
use super::record::FlowRecord;
use super::table::{FLOW_BYTES, FlowTable};
use crate::guard::{WorkerPanicked, catch_panic};
use crate::inputs::Batch as _;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

/// Packets whose memory is read ahead together.
const PREFETCHED: usize = 64;

/// The shards.
pub(super) struct Shards {
    each: Vec<Shard>,
    /// Memory of all flows, as the tables reckon it.
    used_bytes: AtomicU64,
    /// Batches that were given and that not all shards have taken.
    under_way: AtomicUsize,
    /// The system refused memory to a table.
    is_short: AtomicBool,
    done: Mutex<Done>,
}

struct Shard {
    waiting: Mutex<Waiting>,
    table: Mutex<FlowTable>,
}

/// Batches that wait for a shard.
#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Arc<Given>>,
    /// The thread that served the shard last, whose caches have what it changed.
    server: Option<ThreadId>,
}

/// A batch for all shards.
#[derive(Debug)]
struct Given {
    batch: FlowBatch,
    /// Which batch it is, and the number of its first flow's packet among all.
    number: u64,
    first: u64,
    ended: Mutex<Vec<EndedAt>>,
}

/// A flow that ended, and the number of the packet at which it did.
type EndedAt = (u64, FlowRecord);

/// Results of batches that all shards have taken.
#[derive(Debug, Default)]
struct Done {
    /// Batches to be filled again.
    spare: Vec<FlowBatch>,
    /// Flows that ended, by the number of the batch.
    ended: BTreeMap<u64, Vec<EndedAt>>,
    failed: Option<WorkerPanicked>,
}

/// Whether a thread waits for a shard that another one serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wait {
    Never,
    IfAllAreServed,
}

/// Nothing in here is half changed when a thread panics.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless another thread has it.
fn locked_now<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Shards {
    /// This many shards, a power of two.
    pub(super) fn new(plan: &FlowPlan, shards: usize) -> Self {
        let shard =
            || Shard { waiting: Mutex::default(), table: Mutex::new(FlowTable::one_of_many(plan)) };
        Self {
            each: (0..shards).map(|_| shard()).collect(),
            used_bytes: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
            done: Mutex::default(),
        }
    }

    /// Number of shards.
    pub(super) const fn len(&self) -> usize {
        self.each.len()
    }

    /// Batches under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    /// Memory of all flows, but for those that batches under way begin.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Acquire)
    }

    /// An empty batch.
    pub(super) fn spare(&self) -> FlowBatch {
        locked(&self.done).spare.pop().unwrap_or_default()
    }

    /// Pushes batch `number`, whose first packet that belongs to a flow has number `first`.
    pub(super) fn give(&self, batch: FlowBatch, number: u64, first: u64) {
        let given = Arc::new(Given { batch, number, first, ended: Mutex::default() });
        self.under_way.fetch_add(1, Ordering::AcqRel);
        for (shard, places) in self.each.iter().zip(&given.batch.rows.of_shards) {
            if !places.is_empty() {
                locked(&shard.waiting).batches.push_back(Arc::clone(&given));
            }
        }
        self.release(given);
    }

    /// Processes queued batches of one shard; returns whether any were queued. Skips shards that
    /// another thread serves, unless the thread is to wait: then it serves such a shard as soon as
    /// the other thread is done.
    pub(super) fn serve(&self, wait: Wait) -> bool {
        let this_thread = thread::current().id();
        // Those that it served last come first.
        for served_last in [true, false] {
            for (number, shard) in self.each.iter().enumerate() {
                let waiting = locked(&shard.waiting);
                let is_wanted = !waiting.batches.is_empty()
                    && (waiting.server == Some(this_thread)) == served_last;
                drop(waiting);
                if is_wanted
                    && let Some(table) = locked_now(&shard.table)
                    && self.take_waiting(number, table)
                {
                    return true;
                }
            }
        }
        // The thread that serves a shard has taken its batches out of the queue, and may be the last
        // one.
        let mut shards = self.each.iter().enumerate();
        wait == Wait::IfAllAreServed
            && shards.any(|(number, shard)| self.take_waiting(number, locked(&shard.table)))
    }

    /// Returns the flows that ended in the batch with this number, in the order in which they did;
    /// `None` if it is under way.
    pub(super) fn ended(&self, number: u64) -> Option<Vec<EndedAt>> {
        let mut ended = locked(&self.done).ended.remove(&number)?;
        ended.sort_unstable_by_key(|&(at, _)| at);
        Some(ended)
    }

    /// Returns the message of a thread that panicked; no packets go into tables any more then.
    pub(super) fn failure(&self) -> Option<WorkerPanicked> {
        locked(&self.done).failed.clone()
    }

    /// Whether the system refused memory to a table.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// Limits the memory of each shard to what it has now.
    pub(super) fn limit(&self) {
        for shard in &self.each {
            let mut table = locked(&shard.table);
            let used = table.used_bytes();
            table.limit(used.max(FLOW_BYTES));
        }
    }

    /// The tables, when no batch is under way.
    pub(super) fn take_tables(&self, plan: &FlowPlan) -> Vec<FlowTable> {
        let tables = self.each.iter().map(|shard| locked(&shard.table));
        tables.map(|mut table| mem::replace(&mut *table, FlowTable::new(plan))).collect()
    }

    /// Processes all queued batches of one shard; returns whether any were queued.
    fn take_waiting(&self, number: usize, mut table: MutexGuard<'_, FlowTable>) -> bool {
        let mut waiting = locked(&self.each[number].waiting);
        let batches = mem::take(&mut waiting.batches);
        waiting.server = Some(thread::current().id());
        drop(waiting);
        if batches.is_empty() {
            return false;
        }
        let before = table.used_bytes();
        let mut failed = self.failure();
        for given in &batches {
            if failed.is_some() {
                break;
            }
            match catch_panic(|| add(&mut table, given, &given.batch.rows.of_shards[number])) {
                Ok(ended) if ended.is_empty() => {}
                Ok(ended) => locked(&given.ended).extend(ended),
                Err(gone) => failed = Some(gone),
            }
        }
        let used = table.used_bytes().wrapping_sub(before);
        self.used_bytes.fetch_add(used, Ordering::AcqRel);
        if table.is_short() {
            self.is_short.store(true, Ordering::Release);
        }
        drop(table);
        if let Some(gone) = failed {
            locked(&self.done).failed.get_or_insert(gone);
        }
        for given in batches {
            self.release(given);
        }
        true
    }

    /// Releases a batch, which is done if no shard holds it any more.
    fn release(&self, given: Arc<Given>) {
        let Some(Given { mut batch, number, ended, .. }) = Arc::into_inner(given) else { return };
        batch.clear();
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut done = locked(&self.done);
        done.spare.push(batch);
        done.ended.insert(number, ended);
        drop(done);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Adds the packets of a shard to its table; flows that end.
fn add(table: &mut FlowTable, given: &Given, places: &[FlowPlace]) -> Vec<EndedAt> {
    let batch = &given.batch;
    let mut ended = Vec::new();
    let mut message = 0;
    for places in places.chunks(PREFETCHED) {
        table.prefetch(places.iter().map(|place| &batch.rows.flows[place.flow as usize]));
        for &FlowPlace { flow, packet } in places {
            let number = given.first + u64::from(flow);
            let time_ns = batch.times_ns[packet as usize];
            let at = table.add(time_ns, &batch.rows.flows[flow as usize], number, &mut |flow| {
                ended.push((number, flow));
                Ok::<_, Infallible>(())
            });
            let Ok(at) = at;
            while let Some(other) = batch.rows.messages.get(message)
                && other.packet < flow
            {
                message += 1;
            }
            if let Some(named) = batch.rows.messages.get(message)
                && named.packet == flow
            {
                table.name(at, batch.rows.names.get(message));
            }
        }
    }
    ended
}
