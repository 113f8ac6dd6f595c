//! The result of a run, as plain data, and the sink that takes it.

use super::record::{DnsRecord, Ended, FlowRecord};
use super::remaining::RemainingFlows;
use crate::decode::Skip;
use crate::inputs::InputResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// Takes flows and DNS messages.
pub trait FlowSink {
    /// Takes a flow that has ended.
    ///
    /// # Errors
    ///
    /// It cannot be kept or written; the run ends.
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()>;

    /// Takes the flows that have not ended when the inputs end, which are the last ones.
    ///
    /// # Errors
    ///
    /// They cannot be kept or written; the run ends.
    #[doc(hidden)]
    fn last(&mut self, mut flows: RemainingFlows) -> io::Result<()> {
        flows.try_for_each(|flow| self.flow(flow))
    }

    /// Writes what it has buffered: no flow may come for a while.
    ///
    /// # Errors
    ///
    /// It cannot be written; the run ends.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Takes a DNS message, in the order of the trace. Most have no use for it.
    ///
    /// # Errors
    ///
    /// It cannot be kept or written; the run ends.
    #[doc(hidden)]
    fn dns(&mut self, _message: &DnsRecord<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Everything but the flows, which went to the sink.
#[derive(Debug)]
pub struct FlowSummary {
    /// One entry an input, in the order in which they were given.
    pub inputs: Vec<InputResult>,
    /// Counts over the run.
    pub totals: FlowTotals,
    /// How far from complete the list is, if each flow is in it once.
    pub uniqueness: Option<Uniqueness>,
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTotals {
    /// Packets read (records of a DNS log).
    pub packets: u64,
    /// Packets with a readable IP header.
    pub ip_packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Flows in the list.
    pub flows: u64,
    /// The same by the reason why they ended.
    pub ended: EndedFlows,
    /// Flows that began with a packet which came so late that its flow may have ended already: they,
    /// and later ones, may be parts of others.
    pub late: u64,
    /// DNS messages with a question.
    pub dns_messages: u64,
    /// The run was ended before the inputs were, by [`Watch::stop`](crate::inputs::Watch::stop).
    pub interrupted: bool,
    /// Packets that belong to no flow, by reason.
    pub skipped: BTreeMap<Skip, u64>,
}

impl FlowTotals {
    /// Counts this many flows that ended for this reason.
    pub(crate) fn end_many(&mut self, ended: Ended, flows: u64) {
        self.flows = self.flows.saturating_add(flows);
        let ended = &mut self.ended.0[ended as usize];
        *ended = ended.saturating_add(flows);
    }
}

/// Flows by the reason why they ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct EndedFlows([u64; Ended::ALL.len()]);

impl EndedFlows {
    /// Flows that ended for this reason.
    pub const fn of(self, ended: Ended) -> u64 {
        self.0[ended as usize]
    }
}

/// How a list in which each flow is once came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniqueness {
    /// No flow was missed: the exact set was large enough.
    pub exact: bool,
    /// Flows expected to be missing, since the filter took them for others.
    pub missed: f64,
    /// Standard error of that.
    pub std_error: f64,
}
