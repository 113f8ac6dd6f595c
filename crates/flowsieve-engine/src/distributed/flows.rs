//! Lists the flows of one shard from the packets of all pieces, and joins the shards.
//!
//! Any packet of a flow may decide when it ends, so pieces emit packets and not parts of flows. A
//! flow is in one shard only, so each shard lists its own flows, with the table of a single run.

use super::trace_order::{PacketPlace, TraceOrder};
use super::wire::WireFormat;
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::flows::{
    Ended, EndedFlows, FlowPlan, FlowRecord, FlowSummary, FlowTotals, PackedFlows, Taken,
};
use crate::guard::catch_panic;
use crate::hashing::{Digest, shard_of};
use crate::pipeline::CountSummary;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::io;

/// Lists the flows of shards, one after the other.
#[derive(Clone, Debug)]
pub struct ShardFlows {
    plan: FlowPlan,
    shards: Option<u32>,
}

/// A flow and the place of its first packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlacedFlow {
    /// Orders flows that start at the same time.
    pub begun: PacketPlace,
    /// The flow. Its number is unique within its shard.
    pub flow: FlowRecord,
}

/// The totals of a shard, which [`FlowSums`] adds up.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FlowTally {
    /// Number of the shard.
    pub shard: u32,
    packets: u64,
    bytes: u64,
    dns_messages: u64,
    ended: EndedFlows,
}

impl ShardFlows {
    /// Lists the flows of this plan, in the shards of [`super::Outline::in_shards`].
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &FlowPlan, shards: Option<u32>) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        Ok(Self { plan: plan.clone(), shards })
    }

    /// Lists the flows of one shard from its parts, which may come in any order. Parts of pieces
    /// that do not count are ignored, as is the second copy of a part. `take` gets flows as they
    /// end. Each shard may take the memory of the plan, so the flows are those of a single run
    /// with enough memory.
    ///
    /// # Errors
    ///
    /// A part is of another shard, or its packets are invalid; `take` failed.
    pub fn list(
        &self,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
        mut take: impl FnMut(PlacedFlow) -> io::Result<()>,
    ) -> Result<FlowTally, PieceError> {
        let outline = self.plan.outline().in_shards(self.shards);
        let is_here = |digest: Digest| shard_of(digest, outline.shards.into()) as u32 == shard;
        let mut packets = TraceOrder::new(0, shard, parts, table)?;
        let mut flows = PackedFlows::new(&self.plan, outline.digester());
        let (mut taken_packets, mut totals) = (0, FlowTotals::default());
        let mut places = Places::default();
        while let Some(next) = packets.next_placed()? {
            let (time_ns, place, from) = next.packet("packet of a flow")?;
            let end = |flow| take(placed(flow, &mut places));
            let taken = catch_panic(|| flows.take(time_ns, from.rest, is_here, &mut totals, end))??;
            taken_packets += 1;
            match taken {
                Taken::Added => {}
                Taken::Begun(number) => {
                    places.insert(number, place);
                }
                Taken::Refused => return Err(from.error("it is not of this shard and plan")),
            }
        }
        let end = |flow| take(placed(flow, &mut places));
        catch_panic(|| flows.finish(&mut totals, end))??;
        let FlowTotals { bytes, dns_messages, ended, .. } = totals;
        Ok(FlowTally { shard, packets: taken_packets, bytes, dns_messages, ended })
    }
}

/// The places of the first packets of live flows, by the numbers of the flows.
type Places = HashMap<u64, PacketPlace, ahash::RandomState>;

/// Adds its place to a flow that has ended.
fn placed(flow: FlowRecord, places: &mut Places) -> PlacedFlow {
    let begun = places.remove(&flow.number);
    PlacedFlow { begun: begun.expect("a flow begins before it ends"), flow }
}

impl WireFormat for FlowTally {
    const LETTER: u8 = b'F';
    const NAME: &'static str = "tally of flows";
}

/// Adds up the tallies of shards.
#[derive(Debug, Default)]
pub struct FlowSums {
    seen: BTreeSet<u32>,
    packets: u64,
    totals: FlowTotals,
}

impl FlowSums {
    /// Adds the tally of a shard, in any order. A shard without parts may have none.
    ///
    /// # Errors
    ///
    /// The shard had one before.
    pub fn shard(&mut self, tally: &FlowTally) -> Result<(), PieceError> {
        let is_new = self.seen.insert(tally.shard);
        PieceError::unless(is_new, format_args!("a tally of shard {} came twice", tally.shard))?;
        self.packets = self.packets.saturating_add(tally.packets);
        let sum = &mut self.totals;
        sum.bytes = sum.bytes.saturating_add(tally.bytes);
        sum.dns_messages = sum.dns_messages.saturating_add(tally.dns_messages);
        for ended in Ended::ALL {
            sum.end_many(ended, tally.ended.of(ended));
        }
        Ok(())
    }

    /// Adds the results of the inputs.
    ///
    /// # Errors
    ///
    /// Packets are missing.
    pub fn finish(self, inputs: Box<CountSummary>) -> Result<FlowSummary, PieceError> {
        let CountSummary { inputs, totals, .. } = *inputs;
        PieceError::unless_all(self.packets, totals.elements)?;
        Ok(FlowSummary {
            inputs,
            totals: FlowTotals {
                packets: totals.packets,
                // A packet that belongs to a flow is an element.
                ip_packets: totals.elements,
                skipped: totals.skipped,
                ..self.totals
            },
            uniqueness: None,
        })
    }
}
