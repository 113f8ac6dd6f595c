//! From what a reader yields to the elements that each packet shows.

use super::packets::tcp_flags;
use super::plan::{ExportPlan, ExportWhat};
use super::rows::Question;
use crate::decode::{Addresses, Decoder, IpPacket, Skip, Tunnel, dns_messages};
use crate::elements::{ElementKind, Keys};
use crate::flows::{FlowKey, Upper};
use crate::inputs::{Batch, BatchBuilder};
use crate::memory::prefetch;
use crate::trace::{LinkType, TraceBatch};
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

/// A run of packets in trace order: each has sightings or an entry in `skipped`.
#[derive(Debug, Default)]
pub(super) struct SightingBatch {
    pub(super) times_ns: Vec<i64>,
    /// What the packets show, in their order.
    pub(super) sightings: Vec<Sighting>,
    /// Names of DNS messages, each for the sightings that refer to it.
    pub(super) names: Keys,
    /// Packets without an element, by their number in the batch, ascending.
    pub(super) skipped: Vec<(u32, Skip)>,
}

/// An element that a packet shows.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Sighting {
    /// Number of the packet in the batch.
    pub(super) packet: u32,
    /// The attributes of the element but for a name; what is no part of it is 0.
    pub(super) key: FlowKey,
    /// The ends of the key are exchanged: directions do not count.
    pub(super) is_reversed: bool,
    /// By the hasher of the run, of the whole element.
    pub(super) hash: u64,
    pub(super) bytes: u32,
    pub(super) tcp_flags: Option<u8>,
    pub(super) vlan: Option<u16>,
    pub(super) upper: Upper,
    /// The message, and the number of its name.
    pub(super) question: Option<(Question, u32)>,
}

/// How far a batch has been taken: numbers of the next packet and of the next entries of its lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) packet: usize,
    pub(super) sighting: usize,
    pub(super) skipped: usize,
}

impl Batch for SightingBatch {
    type Cursor = Cursor;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn prefetch(&self, cursor: &Cursor, packets: usize) {
        let (packet, sighting) = (cursor.packet, cursor.sighting);
        prefetch(&self.times_ns, &(packet..packet + packets), i64::cast_unsigned);
        let sightings = sighting..sighting + packets;
        prefetch(&self.sightings, &sightings, |sighting| sighting.hash);
    }

    fn clear(&mut self) {
        self.times_ns.clear();
        self.sightings.clear();
        self.names.clear();
        self.skipped.clear();
    }

    fn taken(cursor: &Cursor) -> usize {
        cursor.packet
    }
}

/// Makes sightings.
#[derive(Debug)]
pub(super) struct SightingMaker {
    kind: ElementKind,
    undirected: bool,
    queries_only: bool,
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, whichever addresses count.
    inner: Decoder,
    dns_ports: Vec<u16>,
    hasher: ahash::RandomState,
}

impl SightingMaker {
    /// Makes sightings of the elements that the plan asks for. Of a packet that is a row by itself
    /// they are those of its flow, which has all that there is to say.
    pub(super) fn new(plan: &ExportPlan) -> Self {
        let (kind, undirected, queries_only) = match plan.what {
            ExportWhat::Packets => (ElementKind::Flow, false, false),
            ExportWhat::Elements { kind, undirected, queries_only, .. } => {
                (kind, undirected, queries_only)
            }
        };
        Self {
            kind,
            undirected,
            queries_only,
            decoder: Decoder::new(plan.trace.headers.tunnel),
            inner: Decoder::new(Tunnel::Inner),
            dns_ports: plan.trace.headers.all_dns_ports(),
            hasher: ahash::RandomState::new(),
        }
    }

    fn packet(
        &self,
        number: u32,
        link: LinkType,
        frame: &[u8],
        out: &mut SightingBatch,
    ) -> Result<(), Skip> {
        let ip = self.decoder.decode(link, frame)?;
        let (key, is_reversed) =
            if self.undirected { self.key(&ip).undirected() } else { (self.key(&ip), false) };
        let sighting = Sighting {
            packet: number,
            key,
            is_reversed,
            hash: 0,
            bytes: ip.bytes,
            tcp_flags: tcp_flags(&ip),
            vlan: ip.vlan,
            upper: Upper::of(&ip),
            question: None,
        };
        match self.kind {
            ElementKind::Dns => {
                let innermost = self.inner.decode(link, frame)?;
                let before = out.sightings.len();
                dns_messages(&innermost, &self.dns_ports, |message| {
                    if message.is_response && self.queries_only {
                        return;
                    }
                    let question = Question::of(&message);
                    out.sightings.push(Sighting {
                        hash: element_hash(&self.hasher, self.kind, key, Some(message.name)),
                        question: Some((question, out.names.len() as u32)),
                        ..sighting
                    });
                    out.names.push(message.name);
                })?;
                if out.sightings.len() == before {
                    return Err(Skip::DnsResponse);
                }
                Ok(())
            }
            ElementKind::Flow => {
                let mut question = None;
                // No message is no error: most packets are no DNS traffic.
                let innermost =
                    if ip.may_be_tunnel() { self.inner.decode(link, frame).ok() } else { Some(ip) };
                if let Some(innermost) = innermost {
                    let _ = dns_messages(&innermost, &self.dns_ports, |message| {
                        if question.is_none() {
                            question = Some((Question::of(&message), out.names.len() as u32));
                            out.names.push(message.name);
                        }
                    });
                }
                out.sightings.push(Sighting {
                    hash: key.hash_with(&self.hasher),
                    question,
                    ..sighting
                });
                Ok(())
            }
            _ => {
                out.sightings.push(Sighting { hash: key.hash_with(&self.hasher), ..sighting });
                Ok(())
            }
        }
    }

    /// What the element has of the packet's five-tuple.
    fn key(&self, ip: &IpPacket<'_>) -> FlowKey {
        match self.kind {
            ElementKind::Flow => {
                FlowKey::new(ip.addresses, ip.protocol, ip.ports().unwrap_or_default())
            }
            ElementKind::HostPair | ElementKind::Dns => FlowKey::new(ip.addresses, 0, (0, 0)),
            ElementKind::Source => FlowKey::new(only(ip.addresses, true), 0, (0, 0)),
            ElementKind::Destination => FlowKey::new(only(ip.addresses, false), 0, (0, 0)),
        }
    }
}

/// The hash of a whole element; a name is part of those of DNS.
pub(super) fn element_hash(
    hasher: &ahash::RandomState,
    kind: ElementKind,
    key: FlowKey,
    name: Option<&[u8]>,
) -> u64 {
    match (kind, name) {
        (ElementKind::Dns, Some(name)) => {
            let mut hasher = hasher.build_hasher();
            key.hash(&mut hasher);
            hasher.write(name);
            hasher.finish()
        }
        _ => key.hash_with(hasher),
    }
}

/// One of the addresses, with zeros in the place of the other.
fn only(addresses: Addresses, is_source: bool) -> Addresses {
    let mut addresses = addresses;
    match (&mut addresses, is_source) {
        (Addresses::V4 { destination, .. }, true) => *destination = [0; 4],
        (Addresses::V4 { source, .. }, false) => *source = [0; 4],
        (Addresses::V6 { destination, .. }, true) => *destination = [0; 16],
        (Addresses::V6 { source, .. }, false) => *source = [0; 16],
    }
    addresses
}

impl BatchBuilder for SightingMaker {
    type Batch = SightingBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut SightingBatch) {
        let first = out.times_ns.len() as u32;
        match batch {
            TraceBatch::Packets { bytes, packets } => {
                let times_ns = packets.iter().map(|packet| packet.time_ns);
                out.times_ns.extend(times_ns);
                for (number, packet) in (first..).zip(packets) {
                    let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                    if let Err(skip) = self.packet(number, packet.link, frame, out) {
                        out.skipped.push((number, skip));
                    }
                }
            }
            TraceBatch::Log(log) => {
                for (number, entry) in (first..).zip(log.entries) {
                    out.times_ns.push(entry.time_ns);
                    out.skipped.push((number, Skip::LogRecord));
                }
            }
        }
    }
}
