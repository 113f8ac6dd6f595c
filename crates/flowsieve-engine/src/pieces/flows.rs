//! Lists the flows of one shard from the packets that all pieces have of it, and puts the shards
//! together.
//!
//! When a flow ends may depend on every packet of it, so pieces hand on packets and not parts of
//! flows; and a flow is in one shard only, so each shard lists its own, with the table of one run.

use super::bytes::{Exchanged, Reader, Writer};
use super::merge::{Merged, PacketPlace};
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::flows::{Ended, FlowPlan, FlowRecord, FlowSummary, FlowTotals, PackedFlows, Taken};
use crate::guard::guarded;
use crate::hashing::{Digest, shard_of};
use crate::pipeline::CountSummary;
use std::collections::{BTreeSet, HashMap};
use std::io;

/// Lists the flows of shards, one after the other.
#[derive(Clone, Debug)]
pub struct ShardFlows {
    plan: FlowPlan,
}

/// A flow, and where in the order of the trace it began.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlacedFlow {
    /// Flows that start at the same time are in the order of this.
    pub begun: PacketPlace,
    /// The flow. Its number is one of its shard.
    pub flow: FlowRecord,
}

/// What is known over all flows of a shard, to be sent to whoever puts the shards together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTally {
    /// Number of the shard.
    pub shard: u32,
    totals: FlowTotals,
}

impl ShardFlows {
    /// For the shards of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &FlowPlan) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        Ok(Self { plan: plan.clone() })
    }

    /// Lists the flows of one shard from its parts, which may come in any order. Parts of pieces
    /// that do not count are passed over, as is a part that came twice. `take` gets flows as they
    /// end. Each shard may take the memory of the plan, so the flows are those of one run whose
    /// memory was enough.
    ///
    /// # Errors
    ///
    /// A part is of another shard, or its packets are none; `take` failed.
    pub fn list(
        &self,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
        mut take: impl FnMut(PlacedFlow) -> io::Result<()>,
    ) -> Result<FlowTally, PieceError> {
        let outline = self.plan.outline();
        let is_here = |digest: Digest| shard_of(digest, outline.shards.into()) as u32 == shard;
        let mut merged = Merged::of(0, shard, parts, table)?;
        let mut flows = PackedFlows::new(&self.plan, outline.digester());
        let mut totals = FlowTotals::default();
        let mut places = Places::default();
        while let Some(next) = merged.next_placed()? {
            let (time_ns, packet, from) = next.packet("packet of a flow")?;
            let end = |flow| take(placed(flow, &mut places));
            let taken = guarded(|| flows.take(time_ns, from.rest, is_here, &mut totals, end))??;
            match taken {
                Taken::Added => {}
                Taken::Begun(number) => {
                    places.insert(number, next.place(packet));
                }
                Taken::Refused => return Err(from.wrong("it is not of this shard and plan")),
            }
        }
        let end = |flow| take(placed(flow, &mut places));
        guarded(|| flows.finish(&mut totals, end))??;
        Ok(FlowTally { shard, totals })
    }
}

/// Where the flows of the table began, by their numbers.
type Places = HashMap<u64, PacketPlace, ahash::RandomState>;

/// A flow that has ended.
fn placed(flow: FlowRecord, places: &mut Places) -> PlacedFlow {
    let begun = places.remove(&flow.number);
    PlacedFlow { begun: begun.expect("a flow begins before it ends"), flow }
}

const FLOW_TALLY: u8 = b'F';

impl Exchanged for FlowTally {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(FLOW_TALLY);
        out.number(self.shard.into());
        out.number(self.totals.bytes);
        out.number(self.totals.dns_messages);
        for ended in Ended::ALL {
            out.number(self.totals.ended.of(ended));
        }
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, FLOW_TALLY, "tally of flows")?;
        let mut read = Self { shard: from.small()?, ..Self::default() };
        read.totals.bytes = from.number()?;
        read.totals.dns_messages = from.number()?;
        for ended in Ended::ALL {
            read.totals.end_many(ended, from.number()?);
        }
        from.end()?;
        Ok(read)
    }
}

/// Adds up what is known over all flows.
#[derive(Debug, Default)]
pub struct FlowSums {
    seen: BTreeSet<u32>,
    totals: FlowTotals,
}

impl FlowSums {
    /// Takes the tally of a shard, in any order. A shard without parts need not have one.
    ///
    /// # Errors
    ///
    /// There was one of this shard before.
    pub fn shard(&mut self, tally: &FlowTally) -> Result<(), PieceError> {
        if !self.seen.insert(tally.shard) {
            return Err(PieceError::Mismatch(format!(
                "a tally of shard {} came twice",
                tally.shard
            )));
        }
        let (sum, add) = (&mut self.totals, &tally.totals);
        sum.bytes = sum.bytes.saturating_add(add.bytes);
        sum.dns_messages = sum.dns_messages.saturating_add(add.dns_messages);
        for ended in Ended::ALL {
            sum.end_many(ended, add.ended.of(ended));
        }
        Ok(())
    }

    /// Adds what became of the inputs.
    pub fn finish(self, inputs: Box<CountSummary>) -> FlowSummary {
        let CountSummary { inputs, totals, .. } = *inputs;
        FlowSummary {
            inputs,
            totals: FlowTotals {
                packets: totals.packets,
                // A packet that belongs to a flow is an element.
                ip_packets: totals.elements,
                skipped: totals.skipped,
                ..self.totals
            },
            uniqueness: None,
        }
    }
}
