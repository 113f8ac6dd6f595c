//! The packets of flows in compact form, for distributed lists of flows.
//!
//! ```text
//!   bits │ protocol │ addresses │ ports │ type and code of ICMP │ TCP flags │ [VLAN] │ bytes │ [messages │ first name]
//! ```
//!
//! Addresses and ports are those of the flow's key. Bytes and messages are numbers as postcard writes
//! them.

use super::batch::{FlowBatch, FlowMaker, FlowPacket, UpperKind};
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
use std::io;

const REVERSED: u8 = 1;
const IS_V6: u8 = 1 << 1;
const HAS_VLAN: u8 = 1 << 2;
const HAS_MESSAGES: u8 = 1 << 3;
const UPPER_SHIFT: u8 = 4;
const ALL_BITS: u8 = 0b11_1111;

/// By their number in the bits.
const UPPERS: [UpperKind; 4] =
    [UpperKind::Ports, UpperKind::Icmp, UpperKind::Portless, UpperKind::Unknown];

/// Makes packets of flows: their digests are those of the flows' keys, and their bytes the compact
/// form.
#[derive(Debug)]
pub(crate) struct PackedMaker {
    maker: FlowMaker,
    digester: Digester,
}

impl PackedMaker {
    pub(crate) fn of(plan: &FlowPlan, digester: Digester) -> Self {
        let maker = FlowMaker::new(&plan.trace.headers, plan.bidirectional, false);
        Self { maker, digester }
    }
}

impl BatchBuilder for PackedMaker {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        let mut made = FlowBatch::default();
        self.maker.append(batch, &mut made);
        let first = out.times_ns.len() as u32;
        out.times_ns.extend(&made.times_ns);
        let skipped = made.skipped.iter();
        out.skipped.extend(skipped.map(|&(packet, skip)| (first + packet, skip)));
        let mut message = 0;
        let mut bytes = Vec::new();
        for (number, packet) in (0_u32..).zip(&made.rows.flows) {
            let rest = &made.rows.messages[message..];
            let messages = rest.iter().take_while(|m| m.packet == number).count();
            let name = (messages > 0).then(|| made.rows.names.get(message));
            message += messages;
            bytes.clear();
            pack(packet, messages as u32, name, &mut bytes);
            out.elements.digests.push(digest(self.digester, packet.key));
            out.elements.keys.push(&bytes);
        }
    }
}

fn digest(digester: Digester, key: FlowKey) -> Digest {
    digester.digest(&key.to_bytes())
}

fn pack(packet: &FlowPacket, messages: u32, name: Option<&[u8]>, out: &mut Vec<u8>) {
    let addresses = packet.key.addresses();
    let upper = UPPERS.iter().position(|&upper| upper == packet.upper);
    let bits = [
        (packet.reversed, REVERSED),
        (matches!(addresses, Addresses::V6 { .. }), IS_V6),
        (packet.vlan.is_some(), HAS_VLAN),
        (name.is_some(), HAS_MESSAGES),
    ];
    let bits = bits.iter().filter(|(is_set, _)| *is_set);
    let bits = bits.fold(0, |all, (_, bit)| all | bit);
    out.push(bits | (upper.unwrap_or(0) as u8) << UPPER_SHIFT);
    out.push(packet.key.protocol());
    match addresses {
        Addresses::V4 { source, destination } => out.extend([source, destination].concat()),
        Addresses::V6 { source, destination } => out.extend([source, destination].concat()),
    }
    let ports = packet.key.ports();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(packet.icmp);
    out.push(packet.tcp_flags);
    out.extend(packet.vlan.iter().flat_map(|vlan| vlan.to_be_bytes()));
    put_number(out, packet.bytes);
    if let Some(name) = name {
        put_number(out, messages);
        out.extend_from_slice(name);
    }
}

/// A packet that came back from its compact form.
#[derive(Clone, Copy, Debug)]
struct Packed<'a> {
    packet: FlowPacket,
    /// DNS messages in it, and the name in the first.
    messages: u64,
    name: Option<&'a [u8]>,
}

impl<'a> Packed<'a> {
    /// Reads the compact form; `None` if the bytes are invalid. The hash is filled in later.
    fn read(bytes: &'a [u8], bidirectional: bool) -> Option<Self> {
        let mut from = Fields(bytes);
        let [bits, protocol] = from.take()?;
        let addresses = if bits & IS_V6 == 0 {
            Addresses::V4 { source: from.take()?, destination: from.take()? }
        } else {
            Addresses::V6 { source: from.take()?, destination: from.take()? }
        };
        let ports = (u16::from_be_bytes(from.take()?), u16::from_be_bytes(from.take()?));
        let key = FlowKey::new(addresses, protocol, ports);
        let reversed = bits & REVERSED != 0;
        let is_of_run = if bidirectional { key.undirected().0 == key } else { !reversed };
        let icmp = from.take()?;
        let [tcp_flags] = from.take()?;
        let vlan = if bits & HAS_VLAN == 0 { None } else { Some(u16::from_be_bytes(from.take()?)) };
        let packet = FlowPacket {
            key,
            hash: 0,
            bytes: from.number()?,
            tcp_flags,
            reversed,
            vlan,
            icmp,
            upper: UPPERS[usize::from(bits >> UPPER_SHIFT) % UPPERS.len()],
        };
        let (messages, name) = if bits & HAS_MESSAGES == 0 {
            (0, None)
        } else {
            (from.number()?.into(), Some(std::mem::take(&mut from.0)))
        };
        let fits = bits & !ALL_BITS == 0
            && is_of_run
            && from.0.is_empty()
            && (messages > 0) == name.is_some()
            && name.is_none_or(|name| name.len() <= NAME_MAX);
        fits.then_some(Self { packet, messages, name })
    }
}

fn put_number(out: &mut Vec<u8>, number: u32) {
    let mut buffer = [0; 5];
    let written = postcard::to_slice(&number, &mut buffer);
    out.extend_from_slice(written.expect("five bytes hold every number"));
}

/// Takes fields from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = postcard::take_from_bytes(self.0).ok()?;
        self.0 = rest;
        Some(number)
    }
}

/// The table of live flows, filled from packets in compact form.
#[derive(Debug)]
pub(crate) struct PackedFlows {
    table: FlowTable,
    bidirectional: bool,
    hasher: ahash::RandomState,
    digester: Digester,
}

/// What became of a packet in compact form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    /// It is in a flow that had begun.
    Added,
    /// It begins the flow with this number.
    Begun(u64),
    /// The bytes are no packet, or not one that is wanted.
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
        let packed = Packed::read(bytes, self.bidirectional);
        let Some(packed) =
            packed.filter(|packed| is_wanted(digest(self.digester, packed.packet.key)))
        else {
            return Ok(Taken::Refused);
        };
        let mut packet = packed.packet;
        packet.hash = packet.key.hash_with(&self.hasher);
        totals.bytes = totals.bytes.saturating_add(packet.bytes.into());
        totals.dns_messages = totals.dns_messages.saturating_add(packed.messages);
        let next = self.table.begun();
        let at = self.table.add(time_ns, &packet, next, &mut |flow| {
            totals.end(&flow);
            end(flow)
        })?;
        if let Some(name) = packed.name {
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
