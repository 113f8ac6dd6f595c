//! The packets of flows in compact form, for distributed lists of flows: a [`Compact`] as postcard
//! writes it, and the name in the first DNS message.

use super::batch::{FlowBatch, FlowPacket};
use super::batch_builder::FlowBatchBuilder;
use super::community_id::Upper;
use super::key::FlowKey;
use super::plan::FlowPlan;
use super::record::{Ended, FlowRecord};
use super::results::FlowTotals;
use super::table::FlowTable;
use crate::decode::{Addresses, NAME_MAX};
use crate::elements::ElementBatch;
use crate::hashing::{Digest, Digester};
use crate::inputs::BatchBuilder;
use crate::trace::TraceBatch;
use serde::{Deserialize, Serialize};
use std::io;

/// A packet, in its own direction.
#[derive(Deserialize, Serialize)]
struct Compact {
    addresses: Addresses,
    protocol: u8,
    upper: Upper,
    bytes: u32,
    tcp_flags: u8,
    vlan: Option<u16>,
    /// DNS messages in the packet; it has a name if there are any.
    messages: u32,
}

/// Makes packets of flows: their digests are those of the flows' keys, and their bytes the compact
/// form.
pub(crate) struct PackedFlowBuilder {
    builder: FlowBatchBuilder,
    digester: Digester,
}

impl PackedFlowBuilder {
    pub(crate) fn of(plan: &FlowPlan, digester: Digester) -> Self {
        let builder = FlowBatchBuilder::new(&plan.trace.headers, plan.bidirectional, false);
        Self { builder, digester }
    }
}

impl BatchBuilder for PackedFlowBuilder {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        let mut made = FlowBatch::default();
        self.builder.append(batch, &mut made);
        out.append_packets(&made.times_ns, &made.skipped);
        let mut message = 0;
        let mut bytes = Vec::new();
        for (number, packet) in (0_u32..).zip(&made.rows.flows) {
            let rest = &made.rows.messages[message..];
            let messages = rest.iter().take_while(|m| m.packet == number).count();
            let name = (messages > 0).then(|| made.rows.names.get(message));
            message += messages;
            bytes.clear();
            bytes = pack(packet, messages as u32, name, bytes);
            out.elements.digests.push(digest(self.digester, packet.key));
            out.elements.keys.push(&bytes);
        }
    }
}

fn digest(digester: Digester, key: FlowKey) -> Digest {
    digester.digest(&key.to_bytes())
}

fn pack(packet: &FlowPacket, messages: u32, name: Option<&[u8]>, out: Vec<u8>) -> Vec<u8> {
    let &FlowPacket { bytes, tcp_flags, vlan, upper, .. } = packet;
    let key = packet.directed_key();
    let (addresses, protocol) = (key.addresses(), key.protocol());
    let compact = Compact { addresses, protocol, upper, bytes, tcp_flags, vlan, messages };
    let packed = postcard::to_extend(&compact, out);
    let mut packed = packed.expect("a Vec takes all that is written");
    packed.extend_from_slice(name.unwrap_or_default());
    packed
}

/// Reads a packet, the number of DNS messages in it and the name in the first from the compact form;
/// `None` if the bytes are invalid. The packet's hash is filled in later.
fn unpack(bytes: &[u8], bidirectional: bool) -> Option<(FlowPacket, u64, Option<&[u8]>)> {
    let (compact, name) = postcard::take_from_bytes(bytes).ok()?;
    let Compact { addresses, protocol, upper, bytes, tcp_flags, vlan, messages } = compact;
    if name.len() > NAME_MAX || (messages == 0 && !name.is_empty()) {
        return None;
    }
    let key = FlowKey::new(addresses, protocol, upper.ports());
    let (key, reversed) = if bidirectional { key.undirected() } else { (key, false) };
    let packet = FlowPacket { key, hash: 0, bytes, tcp_flags, reversed, vlan, upper };
    Some((packet, messages.into(), (messages > 0).then_some(name)))
}

/// The table of live flows, filled from packets in compact form.
pub(crate) struct PackedFlows {
    table: FlowTable,
    bidirectional: bool,
    hasher: ahash::RandomState,
    digester: Digester,
}

/// Result of adding a packet in compact form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    /// It is of a flow, or an element, that had begun.
    Added,
    /// It begins one with this number.
    Begun(u64),
    /// The bytes are not of this form, or not wanted.
    Refused,
}

impl PackedFlows {
    pub(crate) fn new(plan: &FlowPlan, digester: Digester) -> Self {
        Self {
            table: FlowTable::new(plan),
            bidirectional: plan.bidirectional,
            hasher: ahash::RandomState::new(),
            digester,
        }
    }

    /// Takes a packet of a flow whose digest is wanted. `end` takes flows that end now.
    pub(crate) fn take(
        &mut self,
        time_ns: i64,
        bytes: &[u8],
        is_wanted: impl FnOnce(Digest) -> bool,
        totals: &mut FlowTotals,
        mut end: impl FnMut(FlowRecord) -> io::Result<()>,
    ) -> io::Result<Taken> {
        let unpacked = unpack(bytes, self.bidirectional)
            .filter(|(packet, ..)| is_wanted(digest(self.digester, packet.key)));
        let Some((mut packet, messages, name)) = unpacked else { return Ok(Taken::Refused) };
        packet.hash = packet.key.hash_with(&self.hasher);
        totals.bytes = totals.bytes.saturating_add(packet.bytes.into());
        totals.dns_messages = totals.dns_messages.saturating_add(messages);
        let next = self.table.begun();
        let at = self.table.add(time_ns, &packet, next, &mut |flow| {
            totals.end_many(flow.ended, 1);
            end(flow)
        })?;
        if let Some(name) = name {
            self.table.name(at, name);
        }
        Ok(if self.table.begun() == next { Taken::Added } else { Taken::Begun(next) })
    }

    /// Ends all flows, in the order in which they began.
    pub(crate) fn finish(
        self,
        totals: &mut FlowTotals,
        mut end: impl FnMut(FlowRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        let last = self.table.finish();
        totals.end_many(Ended::Input, last.len() as u64);
        last.into_iter().try_for_each(&mut end)
    }
}
