//! From what a reader yields to the elements that each packet shows.

use super::packets::{first_question, tcp_flags};
use super::plan::{ExportPlan, ExportWhat};
use super::rows::Question;
use crate::decode::{IpPacket, NAME_MAX, Skip};
use crate::elements::{
    Attribute, ElementKind, Keys, NO_VLAN, PacketDecoder, PacketRows, Rows, registered,
};
use crate::flows::{FlowKey, KeyMask, Upper};
use crate::inputs::BatchBuilder;
use crate::memory::prefetch;
use crate::trace::{LinkType, TraceBatch};
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

/// A batch of packets: each has sightings or is skipped.
pub(super) type SightingBatch = PacketRows<Sightings>;

/// The sightings of a batch.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// The sightings, in the order of their packets.
    pub(super) all: Vec<Sighting>,
    /// Names of DNS messages, each for the sightings that refer to it.
    pub(super) names: Keys,
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

impl Rows for Sightings {
    /// Number of the next sighting.
    type Cursor = usize;

    fn prefetch(&self, next: usize, packets: usize) {
        prefetch(&self.all, &(next..next + packets), |sighting| sighting.hash);
    }

    fn clear(&mut self) {
        self.all.clear();
        self.names.clear();
    }
}

/// Makes sightings.
pub(super) struct SightingBatchBuilder {
    kind: ElementKind,
    mask: KeyMask,
    undirected: bool,
    queries_only: bool,
    decoder: PacketDecoder,
    hasher: ahash::RandomState,
}

impl SightingBatchBuilder {
    /// Makes sightings of the elements that the plan asks for. Of a packet that is a row by itself
    /// they are those of its flow, which has all that there is to say.
    pub(super) fn new(plan: &ExportPlan) -> Self {
        let (kind, undirected, queries_only) = match plan.what {
            ExportWhat::Packets => (ElementKind::FLOW, false, false),
            ExportWhat::Elements { kind, undirected, queries_only, .. } => {
                (kind, undirected, queries_only)
            }
        };
        Self {
            kind,
            mask: KeyMask::new(&kind),
            undirected,
            queries_only,
            decoder: PacketDecoder::new(&plan.trace.headers),
            hasher: ahash::RandomState::new(),
        }
    }

    fn packet(
        &self,
        number: u32,
        link: LinkType,
        frame: &[u8],
        out: &mut Sightings,
    ) -> Result<(), Skip> {
        let ip = self.decoder.decode(link, frame)?;
        if self.kind.has_name() {
            return self.messages(number, &ip, link, frame, out);
        }
        let ports = match ip.ports() {
            None if self.kind.needs_ports() => return Err(Skip::NoPorts),
            ports => ports.unwrap_or_default(),
        };
        let mut sighting = self.sighting(number, &ip, ports);
        sighting.hash = sighting.key.hash_with(&self.hasher);
        if self.kind == ElementKind::FLOW {
            let mut name = [0; NAME_MAX];
            let question = first_question(&self.decoder, &ip, link, frame, &mut name);
            sighting.question = question.map(|(question, name)| {
                out.names.push(name);
                (question, out.names.len() as u32 - 1)
            });
        }
        out.all.push(sighting);
        Ok(())
    }

    /// The DNS messages of a packet, each of which is an element.
    fn messages(
        &self,
        number: u32,
        ip: &IpPacket<'_>,
        link: LinkType,
        frame: &[u8],
        out: &mut Sightings,
    ) -> Result<(), Skip> {
        let before = out.all.len();
        let is_registered = self.kind.field(Attribute::RegisteredDomain).is_some();
        self.decoder.messages(link, frame, |message| {
            if message.is_response && self.queries_only {
                return;
            }
            let name = if is_registered { registered(message.name) } else { message.name };
            let sighting = self.sighting(number, ip, ip.ports().unwrap_or_default());
            out.all.push(Sighting {
                hash: element_hash(&self.hasher, sighting.key, Some(name)),
                question: Some((Question::of(message), out.names.len() as u32)),
                ..sighting
            });
            out.names.push(name);
        })?;
        if out.all.len() == before { Err(Skip::DnsResponse) } else { Ok(()) }
    }

    /// A sighting without hash and question.
    fn sighting(&self, packet: u32, ip: &IpPacket<'_>, ports: (u16, u16)) -> Sighting {
        let key = FlowKey::new(ip.addresses, ip.protocol, ports);
        let key = self.mask.apply(key.with_vlan(ip.vlan.unwrap_or(NO_VLAN)));
        let (key, is_reversed) = if self.undirected { key.undirected() } else { (key, false) };
        Sighting {
            packet,
            key,
            is_reversed,
            hash: 0,
            bytes: ip.bytes,
            tcp_flags: tcp_flags(ip),
            vlan: ip.vlan,
            upper: Upper::of(ip),
            question: None,
        }
    }
}

/// The hash of a whole element, and of its name if it has one.
pub(super) fn element_hash(hasher: &ahash::RandomState, key: FlowKey, name: Option<&[u8]>) -> u64 {
    let Some(name) = name else { return key.hash_with(hasher) };
    let mut hasher = hasher.build_hasher();
    key.hash(&mut hasher);
    hasher.write(name);
    hasher.finish()
}

impl BatchBuilder for SightingBatchBuilder {
    type Batch = SightingBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut SightingBatch) {
        out.read(
            batch,
            |number, packet, frame, out| self.packet(number, packet.link, frame, out),
            |_, _, _| Err(Skip::LogRecord),
        );
    }
}
