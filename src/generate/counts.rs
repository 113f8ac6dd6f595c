//! The exact distinct counts of what was written: the ground truth that comes with the capture.
//!
//! Sets of the elements themselves in their short form, not of their digests.

use ahash::RandomState;
use hashbrown::HashSet;

use super::GenerateSummary;
use super::frame::{TCP, Tuple, UDP};

/// Flows that wait to be looked up. One lookup alone waits for memory; in a loop of nothing but
/// lookups the processor waits for many at a time, which nearly halves the whole generation.
const WAITING: usize = 512;

/// Everything distinct that was emitted so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Ordered address pairs, IPv4 and IPv6 apart.
    pairs: [HashSet<u64, RandomState>; 2],
    flows: HashSet<u128, RandomState>,
    waiting: Vec<u128>,
    triples: HashSet<(u64, bool, u32), RandomState>,
    query_triples: HashSet<(u64, bool, u32), RandomState>,
}

impl Counts {
    /// Counts a packet of this conversation.
    pub(super) fn packet(&mut self, tuple: Tuple) {
        let ports = match tuple.protocol {
            TCP | UDP => u32::from(tuple.source_port) << 16 | u32::from(tuple.destination_port),
            _ => 0,
        };
        let flow = u128::from(pair(tuple))
            | u128::from(ports) << 64
            | u128::from(tuple.protocol) << 96
            | u128::from(tuple.ipv6) << 104;
        self.waiting.push(flow);
        if self.waiting.len() == WAITING {
            self.drain();
        }
    }

    /// Looks up what waits. Only a new flow can have a new pair.
    fn drain(&mut self) {
        self.waiting.retain(|flow| !self.flows.contains(flow));
        for flow in self.waiting.drain(..) {
            self.flows.insert(flow);
            self.pairs[(flow >> 104) as usize].insert(flow as u64);
        }
    }

    /// Counts a DNS message about the name with this number.
    pub(super) fn dns_message(&mut self, tuple: Tuple, name: u32, query: bool) {
        let triple = (pair(tuple), tuple.ipv6, name);
        self.triples.insert(triple);
        if query {
            self.query_triples.insert(triple);
        }
    }

    /// Returns the totals of a file of this many packets and bytes.
    pub(super) fn finish(mut self, packets: u64, bytes: u64) -> GenerateSummary {
        self.drain();
        GenerateSummary {
            packets,
            bytes,
            pairs: self.pairs.iter().map(|set| set.len() as u64).sum(),
            flows: self.flows.len() as u64,
            dns_triples: self.triples.len() as u64,
            dns_query_triples: self.query_triples.len() as u64,
        }
    }
}

fn pair(tuple: Tuple) -> u64 {
    u64::from(tuple.source) << 32 | u64::from(tuple.destination)
}
