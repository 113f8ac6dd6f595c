//! Each flow once, as soon as its first packet is seen.
//!
//! Which flows were seen before is asked from a filter and, as long as it fits into its half of the
//! memory, from an exact set. When the set no longer fits it is given up: from then on the filter
//! answers, which has seen all flows from the beginning. It never prints a flow twice, and now and then
//! takes a new one for an old one; how many these are follows from its unbiased count of what is
//! distinct.

use super::batch::{Cursor, FlowBatch};
use super::key::FlowKey;
use super::plan::{FlowError, FlowPlan};
use super::record::{Direction, Ended, FlowRecord};
use super::results::{FlowSink, FlowSummary, FlowTotals, Uniqueness};
use super::run::{pass_skipped, read};
use crate::filters::{
    ElementDigests, Estimate, FilterKind, FilterSpec, MembershipFilter, Sighting, Sizing,
};
use crate::hashing::Digester;
use crate::pipeline::Watch;
use crate::pipeline::merge::Taker;
use hashbrown::HashTable;
use std::io;

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
) -> Result<FlowSummary, FlowError> {
    plan.check()?;
    let bytes = (plan.memory_bytes / 2).max(LEAST_FILTER_BYTES);
    let sizing = Sizing::Memory {
        bytes,
        expected: None,
    };
    let spec = FilterSpec::new(FilterKind::Subset, 1, sizing)
        .map_err(|error| FlowError::Plan(error.to_string()))?;
    let mut sieve = Sieve {
        seen: Seen {
            exact: Some(HashTable::new()),
            exact_limit_bytes: plan.memory_bytes / 2,
            filter: spec.build(),
            digester: Digester::new(0),
            by_filter: 0,
            given_up: Estimate::default(),
        },
        sink,
        totals: FlowTotals::default(),
    };
    let inputs = read(plan, &mut sieve, watch)?;
    Ok(FlowSummary {
        inputs,
        totals: sieve.totals,
        uniqueness: Some(sieve.seen.uniqueness()),
    })
}

/// What was seen.
#[derive(Debug)]
struct Seen {
    /// Flows with their hashes, none if they did not fit.
    exact: Option<HashTable<(u64, FlowKey)>>,
    exact_limit_bytes: u64,
    filter: Box<dyn MembershipFilter>,
    digester: Digester,
    /// Flows that were printed since the set was given up.
    by_filter: u64,
    /// The filter's count at that time.
    given_up: Estimate,
}

impl Seen {
    /// Whether the flow is new, as far as is known.
    fn is_new(&mut self, key: FlowKey, hash: u64) -> bool {
        if let Some(exact) = &mut self.exact {
            if exact.find(hash, |&(_, other)| other == key).is_some() {
                // The filter has it, too.
                return false;
            }
            if self.has_room() {
                let exact = self.exact.as_mut().expect("it was there a moment ago");
                exact.insert_unique(hash, (hash, key), |&(hash, _)| hash);
                self.sight(key);
                return true;
            }
            self.exact = None;
            self.given_up = self.filter.distinct().unwrap_or_default();
        }
        match self.sight(key) {
            Sighting::First => {
                self.by_filter += 1;
                true
            }
            Sighting::Repeat => false,
        }
    }

    /// Whether the exact set may take one more: its table is there twice while it grows.
    fn has_room(&self) -> bool {
        let Some(exact) = &self.exact else {
            return false;
        };
        let grows = exact.len() == exact.capacity();
        let bytes = exact.allocation_size() as u64;
        !grows || 3 * bytes <= self.exact_limit_bytes
    }

    fn sight(&mut self, key: FlowKey) -> Sighting {
        self.filter.insert(ElementDigests {
            whole: self.digester.digest(&key.to_bytes()),
            attributes: &[],
        })
    }

    fn uniqueness(&self) -> Uniqueness {
        if self.exact.is_some() {
            return Uniqueness {
                exact: true,
                missed: 0.0,
                std_error: 0.0,
            };
        }
        let estimate = self.filter.distinct().unwrap_or_default();
        let since = estimate.distinct - self.given_up.distinct;
        Uniqueness {
            exact: false,
            missed: (since - self.by_filter as f64).max(0.0),
            std_error: (estimate.variance - self.given_up.variance).max(0.0).sqrt(),
        }
    }
}

struct Sieve<'a> {
    seen: Seen,
    sink: &'a mut dyn FlowSink,
    totals: FlowTotals,
}

impl Taker<FlowBatch> for Sieve<'_> {
    type Stop = io::Error;

    fn take(&mut self, batch: &FlowBatch, cursor: &mut Cursor, end: usize) -> io::Result<()> {
        let mut skipped = cursor.skipped;
        pass_skipped(batch, cursor, end, &mut self.totals);
        for number in cursor.packet..end {
            if batch.is_skipped(number, &mut skipped) {
                continue;
            }
            let packet = &batch.flows[cursor.flow];
            let time_ns = batch.times_ns[number];
            self.totals.bytes += u64::from(packet.bytes);
            let mut domain = None;
            while let Some(message) = batch.messages.get(cursor.message)
                && message.packet as usize == cursor.flow
            {
                let name = batch.names.get(cursor.message);
                self.sink.dns(&message.record(time_ns, packet, name))?;
                self.totals.dns_messages += 1;
                domain = domain.or(Some(name));
                cursor.message += 1;
            }
            cursor.flow += 1;
            if !self.seen.is_new(packet.key, packet.hash) {
                continue;
            }
            let key = packet.directed_key();
            let flow = FlowRecord {
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
                domain: domain.map(Into::into),
                upper: packet.upper(),
                ended: Ended::Input,
                number: self.totals.flows,
            };
            self.totals.flows += 1;
            self.sink.flow(flow)?;
        }
        cursor.packet = end;
        Ok(())
    }
}
