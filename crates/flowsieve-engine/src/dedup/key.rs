//! The key by which two packets are the same: a digest of 128 bits of everything in which they must agree.
//!
//! XXH3 over an explicit encoding, with a secret made from the run's seed. What is long (a packet
//! behind the fields that change on the way, a payload) is digested first where it lies; its digest
//! then goes into the encoding, so nothing is copied.
//!
//! ```text
//!   packet          4 or 6 │ the header's first bytes without TTL and checksum │ digest of the rest │ differences
//!   (without IP)    link type │ digest of the frame                                              │ differences
//!   frame           the frame
//!   retransmission  addresses │ ports │ sequence number │ length │ digest of the payload
//!   flow            addresses │ protocol │ ports
//! ```

use super::plan::{Difference, Sameness};
use super::results::DropKind;
use super::tcp::{Segment, TcpFlows};
use crate::decode::{Addresses, Decoder, IpBytes, IpPacket, Tunnel, vlan_ids};
use crate::trace::{LinkType, PacketRef, erf_content};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_secret};

/// Bytes of the encodings that are put together.
const ENCODING_BYTES: usize = 64;

/// Bytes of XXH3's secret.
const SECRET_BYTES: usize = 192;

/// The drop reason if a packet with this digest was seen; `None` if the packet is always kept.
pub(super) type Key = (u128, Option<DropKind>);

/// Turns packets into keys.
pub(super) struct Keyer {
    by: Sameness,
    distinguish: Difference,
    secret: [u8; SECRET_BYTES],
    decoder: Decoder,
}

impl Keyer {
    pub(super) fn new(by: Sameness, tunnel: Tunnel, distinguish: Difference, seed: u64) -> Self {
        let mut secret = [0; SECRET_BYTES];
        for (number, word) in secret.chunks_exact_mut(8).enumerate() {
            let random = xxh3_64_with_seed(&number.to_le_bytes(), seed);
            word.copy_from_slice(&random.to_le_bytes());
        }
        Self { by, distinguish, secret, decoder: Decoder::new(tunnel) }
    }

    /// Whether a packet's key follows from its own bytes: not from its interface, and not from the
    /// packets before it.
    pub(super) fn needs_bytes_only(&self) -> bool {
        self.by != Sameness::Retransmission && !self.distinguish.interface
    }

    /// The key of a packet of a batch with these bytes. `interface` is its input and interface, and
    /// `flows` the TCP connections of the packets before it.
    #[inline]
    pub(super) fn key(
        &self,
        packet: &PacketRef,
        bytes: &[u8],
        interface: impl Fn() -> (u32, u32),
        flows: &mut TcpFlows,
    ) -> Key {
        let frame = &bytes[packet.start as usize..][..packet.captured as usize];
        let frame = match packet.link {
            LinkType::ERF => erf_content(frame),
            _ => frame,
        };
        match self.by {
            Sameness::Packet => self.packet(packet.link, frame, interface),
            Sameness::Frame => (self.digest(frame), Some(DropKind::Frame)),
            Sameness::Retransmission => self.segment(packet.link, frame, flows),
            Sameness::Flow => self.flow(packet.link, frame),
        }
    }

    #[inline]
    fn digest(&self, bytes: &[u8]) -> u128 {
        xxh3_128_with_secret(bytes, &self.secret)
    }

    #[inline]
    fn packet(&self, link: LinkType, frame: &[u8], interface: impl Fn() -> (u32, u32)) -> Key {
        let found = self.decoder.ip_bytes(link, frame);
        let (head, rest, kind) = match &found {
            Ok(ip) => {
                let (head, rest) = self.stable(ip.bytes);
                (head, rest, DropKind::Packet)
            }
            // The version's nibble cannot be 0 in an IP header.
            Err(_) => (u128::from(link.0) << 64, frame, DropKind::Frame),
        };
        let encoding = [head, self.digest(rest)];
        let digest = if self.distinguish == Difference::default() {
            self.digest(bytemuck::bytes_of(&encoding))
        } else {
            let ip = found.as_ref().ok();
            let differences = self.differences(link, frame, ip, interface());
            self.digest(bytemuck::bytes_of(&[encoding[0], encoding[1], differences]))
        };
        (digest, Some(kind))
    }

    /// Splits an IP packet into its first fields, without what changes on the way, and the rest.
    #[inline]
    fn stable<'a>(&self, packet: &'a [u8]) -> (u128, &'a [u8]) {
        // Version, length, TOS, identification, fragment; TTL, protocol, checksum.
        const V4_TTL: u128 = 0xff << 64;
        const V4_CHECKSUM: u128 = 0xffff << 80;
        // Version, traffic class, flow label, length, next header; hop limit.
        const V6_HOP_LIMIT: u128 = 0xff << 56;
        let (length, mut mask) =
            if packet[0] >> 4 == 4 { (12, V4_TTL | V4_CHECKSUM) } else { (8, V6_HOP_LIMIT) };
        if self.distinguish.ttl {
            mask = V4_CHECKSUM * u128::from(length == 12);
        }
        // The fixed header is there: this loads at least 20 bytes' worth.
        let head: [u8; 16] = *packet.first_chunk().expect("the fixed header is there");
        let head = u128::from_le_bytes(head) & !mask & ((1 << (length * 8)) - 1);
        (head, &packet[length..])
    }

    /// Digest of what else has to be equal.
    #[inline(never)]
    fn differences(
        &self,
        link: LinkType,
        frame: &[u8],
        ip: Option<&IpBytes<'_>>,
        interface: (u32, u32),
    ) -> u128 {
        let mut parts = Vec::with_capacity(64);
        if self.distinguish.interface {
            parts.extend(interface.0.to_le_bytes());
            parts.extend(interface.1.to_le_bytes());
        }
        // A frame without IP counts as a whole.
        if let Some(ip) = ip {
            if self.distinguish.mac {
                let addresses = if link == LinkType::ETHERNET { 12 } else { ip.offset };
                let header = &frame[..addresses.min(ip.offset)];
                parts.extend((header.len() as u64).to_le_bytes());
                parts.extend_from_slice(header);
            }
            if self.distinguish.vlan {
                parts.extend(vlan_ids(link, frame).flat_map(u16::to_le_bytes));
            }
        }
        self.digest(&parts)
    }

    fn flow(&self, link: LinkType, frame: &[u8]) -> Key {
        let Ok(ip) = self.decoder.decode(link, frame) else { return (0, None) };
        let ports = ip.ports().unwrap_or((0, 0));
        (self.ends(ip.addresses, ip.protocol, ports), Some(DropKind::Flow))
    }

    fn ends(&self, addresses: Addresses, protocol: u8, ports: (u16, u16)) -> u128 {
        let mut encoding = [0; 38];
        encoding[..37].copy_from_slice(&ends(addresses, ports));
        encoding[37] = protocol;
        self.digest(&encoding)
    }

    fn segment(&self, link: LinkType, frame: &[u8], flows: &mut TcpFlows) -> Key {
        let decoder = &self.decoder;
        let (Ok(whole), Ok(ip)) = (decoder.ip_bytes(link, frame), decoder.decode(link, frame))
        else {
            return (0, None);
        };
        let missing = whole.stated - whole.bytes.len();
        let Some((segment, payload)) = Segment::read(&ip, missing) else { return (0, None) };
        let (addresses, (from, to)) = (ip.addresses, segment.ports);
        let there = self.ends(addresses, ip.protocol, (from, to));
        let back = self.ends(addresses.reversed(), ip.protocol, (to, from));
        let Some(kind) = flows.see(there, back, &segment) else { return (0, None) };
        (self.payload(&ip, &segment, payload), Some(kind))
    }

    fn payload(&self, ip: &IpPacket<'_>, segment: &Segment, payload: &[u8]) -> u128 {
        let mut encoding = [0; ENCODING_BYTES];
        encoding[..37].copy_from_slice(&ends(ip.addresses, segment.ports));
        encoding[37..41].copy_from_slice(&segment.sequence.to_le_bytes());
        encoding[41..45].copy_from_slice(&segment.length.to_le_bytes());
        encoding[48..64].copy_from_slice(&self.digest(payload).to_le_bytes());
        self.digest(&encoding)
    }
}

/// Family, addresses and ports.
fn ends(addresses: Addresses, ports: (u16, u16)) -> [u8; 37] {
    let mut encoding = [0; 37];
    match addresses {
        Addresses::V4 { source, destination } => {
            encoding[0] = 4;
            encoding[1..5].copy_from_slice(&source);
            encoding[17..21].copy_from_slice(&destination);
        }
        Addresses::V6 { source, destination } => {
            encoding[0] = 6;
            encoding[1..17].copy_from_slice(&source);
            encoding[17..33].copy_from_slice(&destination);
        }
    }
    encoding[33..35].copy_from_slice(&ports.0.to_be_bytes());
    encoding[35..37].copy_from_slice(&ports.1.to_be_bytes());
    encoding
}
