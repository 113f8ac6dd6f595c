//! The packets of flows, in batches.

use super::community_id::Upper;
use super::key::FlowKey;
use super::record::DnsRecord;
use crate::elements::{Keys, PacketRows, RowCursor, Rows};
use crate::memory::prefetch;

/// A batch of packets of flows: each has an entry in [`FlowRows::flows`] or is skipped.
pub(super) type FlowBatch = PacketRows<FlowRows>;

/// How far a batch of packets of flows was consumed.
pub(super) type FlowCursor = RowCursor<Next>;

/// The packets of a batch that belong to flows.
#[derive(Debug, Default)]
pub(super) struct FlowRows {
    /// The packets, in order.
    pub(super) flows: Vec<FlowPacket>,
    /// DNS messages, by the number of their packet among `flows`, ascending.
    pub(super) messages: Vec<Message>,
    /// The names of `messages`.
    pub(super) names: Keys,
    /// Bytes of the packets, if the flows are divided among shards.
    pub(super) bytes: u64,
    /// Where the flows are divided among shards: the packets of each, ascending.
    pub(super) of_shards: Vec<Vec<FlowPlace>>,
}

/// Numbers of the next packet of a flow and of the next message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    pub(super) flow: usize,
    pub(super) message: usize,
}

impl Rows for FlowRows {
    type Cursor = Next;

    fn prefetch(&self, next: Next, packets: usize) {
        prefetch(&self.flows, &(next.flow..next.flow + packets), |packet| packet.hash);
    }

    fn clear(&mut self) {
        self.flows.clear();
        self.messages.clear();
        self.names.clear();
        self.bytes = 0;
        self.of_shards.iter_mut().for_each(Vec::clear);
    }
}

/// Where a packet is in a batch that belongs to a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowPlace {
    /// Among `flows`.
    pub(super) flow: u32,
    /// Among all packets.
    pub(super) packet: u32,
}

/// One packet's part of its flow: a cache line, since shards pick theirs out of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct FlowPacket {
    pub(super) key: FlowKey,
    /// By the hasher of the run.
    pub(super) hash: u64,
    pub(super) bytes: u32,
    pub(super) tcp_flags: u8,
    /// The key has the ends exchanged.
    pub(super) reversed: bool,
    pub(super) vlan: Option<u16>,
    pub(super) upper: Upper,
}

/// A packet with its time, and the name in its first DNS message.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub(super) time_ns: i64,
    pub(super) packet: &'a FlowPacket,
    pub(super) name: Option<&'a [u8]>,
}

/// A DNS message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) packet: u32,
    pub(super) is_response: bool,
}

const _: () = assert!(size_of::<FlowPacket>() == 64);

impl FlowPacket {
    /// Returns the key in the direction of the packet.
    pub(super) fn directed_key(&self) -> FlowKey {
        if self.reversed { self.key.reversed() } else { self.key }
    }

    /// Its shard among `shards`, a power of two. The index of a table uses other bits of the hash.
    #[inline]
    const fn shard(&self, shards: usize) -> usize {
        self.hash as usize & (shards - 1)
    }
}

impl FlowBatch {
    /// Divides among shards the flows of the packets from this number on.
    pub(super) fn divide(&mut self, first: u32, shards: usize) {
        self.rows.of_shards.resize_with(shards, Vec::new);
        let before = self.skipped.partition_point(|&(number, _)| number < first);
        let mut skipped = self.skipped[before..].iter().peekable();
        let mut flow = first - before as u32;
        for number in first..self.times_ns.len() as u32 {
            if skipped.next_if(|(skipped, _)| *skipped == number).is_some() {
                continue;
            }
            let packet = &self.rows.flows[flow as usize];
            self.rows.bytes += u64::from(packet.bytes);
            let place = FlowPlace { flow, packet: number };
            self.rows.of_shards[packet.shard(shards)].push(place);
            flow += 1;
        }
    }

    /// Appends a packet that belongs to a flow, and its name, divided among shards.
    pub(super) fn push(&mut self, arrival: Arrival<'_>, shards: usize) {
        let Arrival { time_ns, packet, name } = arrival;
        let rows = &mut self.rows;
        let place = FlowPlace { flow: rows.flows.len() as u32, packet: self.times_ns.len() as u32 };
        rows.of_shards.resize_with(shards, Vec::new);
        rows.of_shards[packet.shard(shards)].push(place);
        self.times_ns.push(time_ns);
        rows.flows.push(*packet);
        rows.bytes += u64::from(packet.bytes);
        if let Some(name) = name {
            rows.messages.push(Message { packet: place.flow, is_response: false });
            rows.names.push(name);
        }
    }
}

impl Message {
    pub(super) fn record<'a>(
        self,
        time_ns: i64,
        packet: &FlowPacket,
        name: &'a [u8],
    ) -> DnsRecord<'a> {
        let key = packet.directed_key();
        let (addresses, ports) = (key.addresses(), key.ports());
        DnsRecord {
            time_ns,
            protocol: key.protocol(),
            server_port: if self.is_response { ports.0 } else { ports.1 },
            addresses: if self.is_response { addresses.reversed() } else { addresses },
            is_response: self.is_response,
            name,
        }
    }
}
