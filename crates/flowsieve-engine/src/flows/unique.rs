//! Each flow once, as soon as its first packet is seen.
//!
//! Which flows were seen before is known by an exact set, as long as that fits into half of the
//! memory. When it no longer does, all that it holds goes into a filter of the other half, which
//! answers from then on. It never prints a flow twice, and now and then takes a new one for an old
//! one; how many these are follows from its unbiased count of what is distinct.

use super::batch::Arrival;
use super::consumer::{FlowConsumer, Output, read};
use super::key::FlowKey;
use super::plan::FlowPlan;
use super::record::{Direction, Ended, FlowRecord};
use super::results::{FlowSink, FlowSummary, Uniqueness};
use crate::filters::bits::Lines;
use crate::filters::sizing::DEFAULT_PROBES;
use crate::filters::{
    ElementDigests, Estimate, FilterSpec, MembershipFilter, Sighting, SubsetSpec,
};
use crate::hashing::Digester;
use crate::inputs::{PlanError, RunError, Watch};
use crate::memory::{allocatable, can_allocate};
use hashbrown::HashTable;

/// Least memory of the filter.
const LEAST_FILTER_BYTES: u64 = 4096;

/// Hands every flow to `sink` once, when its first packet is seen: a record of that packet alone.
/// Memory is bounded by the plan's; timeouts play no part.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn list_unique(
    plan: &FlowPlan,
    sink: &mut dyn FlowSink,
    watch: &dyn Watch,
) -> Result<FlowSummary, RunError> {
    plan.check()?;
    let bytes = (plan.memory_bytes / 2).max(LEAST_FILTER_BYTES);
    let filter = filter_spec(bytes);
    filter.check().map_err(|error| PlanError::new(error.to_string()))?;
    let mut seen = Seen {
        answer: Answer::Exact(HashTable::new()),
        exact_limit_bytes: plan.memory_bytes / 2,
        filter_bytes: filter.memory_bytes(),
        digester: Digester::new(0),
    };
    let (inputs, totals) = read(plan, &mut seen, sink, watch)?;
    Ok(FlowSummary { inputs, totals, uniqueness: Some(seen.uniqueness()) })
}

/// A filter that knows every flow, in at most this memory.
fn filter_spec(bytes: u64) -> FilterSpec {
    let lines = (bytes / Lines::LINE_BYTES).max(1);
    SubsetSpec::knowing(1, lines, DEFAULT_PROBES).into()
}

/// The flows that were seen.
struct Seen {
    answer: Answer,
    exact_limit_bytes: u64,
    /// Memory of the filter that will follow the exact set.
    filter_bytes: u64,
    digester: Digester,
}

/// The memory of what was seen.
enum Answer {
    /// Flows with their hashes.
    Exact(HashTable<(u64, FlowKey)>),
    Filter {
        filter: Box<dyn MembershipFilter>,
        /// Flows that it called new.
        first: u64,
        /// Its count when it began to answer.
        before: Estimate,
    },
}

impl Seen {
    /// Whether the flow is new, as far as is known.
    fn is_new(&mut self, key: FlowKey, hash: u64) -> bool {
        if let Answer::Exact(exact) = &mut self.answer {
            if exact.find(hash, |&(_, other)| other == key).is_some() {
                return false;
            }
            if has_room(exact, self.exact_limit_bytes)
                && exact.try_reserve(1, |&(hash, _)| hash).is_ok()
            {
                exact.insert_unique(hash, (hash, key), |&(hash, _)| hash);
                return true;
            }
            self.give_up();
        }
        let element = element(self.digester, key);
        let Answer::Filter { filter, first, .. } = &mut self.answer else {
            unreachable!("the exact set was given up");
        };
        let is_new = filter.insert(element) == Sighting::First;
        *first += u64::from(is_new);
        is_new
    }

    /// Moves the exact set into a filter, which answers from now on.
    fn give_up(&mut self) {
        let Answer::Exact(exact) = &mut self.answer else { return };
        let exact = std::mem::take(exact);
        let mut filter = self.filter();
        let mut keys: Vec<FlowKey> = Vec::new();
        let bytes = (exact.len() * size_of::<FlowKey>()) as u64;
        if can_allocate(bytes) && keys.try_reserve_exact(exact.len()).is_ok() {
            // The filter's count depends on the order, and the set's order is another in every run.
            keys.extend(exact.into_iter().map(|(_, key)| key));
            keys.sort_unstable();
            for key in keys {
                filter.insert(element(self.digester, key));
            }
        } else {
            for (_, key) in exact {
                filter.insert(element(self.digester, key));
            }
        }
        self.answer =
            Answer::Filter { first: 0, before: filter.distinct().unwrap_or_default(), filter };
    }

    /// A filter of the memory that is planned, or of half of it as often as the system gives less.
    fn filter(&self) -> Box<dyn MembershipFilter> {
        let bytes = allocatable(self.filter_bytes, LEAST_FILTER_BYTES);
        filter_spec(bytes).build()
    }

    fn uniqueness(&self) -> Uniqueness {
        match &self.answer {
            Answer::Exact(_) => Uniqueness { exact: true, missed: 0.0, std_error: 0.0 },
            Answer::Filter { filter, first, before } => {
                let now = filter.distinct().unwrap_or_default();
                Uniqueness {
                    exact: false,
                    missed: (now.distinct - before.distinct - *first as f64).max(0.0),
                    std_error: (now.variance - before.variance).max(0.0).sqrt(),
                }
            }
        }
    }
}

/// Whether the exact set may take one more: its table is there twice while it grows.
fn has_room(exact: &HashTable<(u64, FlowKey)>, limit_bytes: u64) -> bool {
    let grows = exact.len() == exact.capacity();
    let bytes = exact.allocation_size() as u64;
    // Both tables, and the least filter if there is no more.
    !grows || (3 * bytes <= limit_bytes && can_allocate(2 * bytes))
}

fn element(digester: Digester, key: FlowKey) -> ElementDigests<'static> {
    ElementDigests { whole: digester.digest(&key.to_bytes()), attributes: &[] }
}

impl FlowConsumer for Seen {
    const TAKES_LOGS: bool = true;

    fn take(&mut self, arrival: Arrival<'_>, output: &mut Output<'_>) -> Result<(), RunError> {
        let Arrival { time_ns, packet, name } = arrival;
        if !self.is_new(packet.key, packet.hash) {
            return Ok(());
        }
        let key = packet.directed_key();
        let number = output.totals.flows;
        output.totals.flows += 1;
        output.sink.flow(FlowRecord {
            start_ns: time_ns,
            end_ns: time_ns,
            addresses: key.addresses(),
            protocol: key.protocol(),
            ports: key.ports(),
            forward: Direction {
                packets: 1,
                bytes: u64::from(packet.bytes),
                tcp_flags: packet.tcp_flags,
            },
            reverse: Direction::default(),
            vlan: packet.vlan,
            domain: name.map(Into::into),
            upper: packet.upper,
            ended: Ended::Input,
            number,
        })?;
        Ok(())
    }
}
