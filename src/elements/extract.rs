//! From a packet, or a record of a DNS log, to its elements.
//!
//! # Encoding
//!
//! An element's bytes, from which its digest is made and by which it is counted exactly:
//!
//! ```text
//!     family (4 or 6) │ source │ destination                                    host pair
//!     family          │ source │ destination │ protocol │ src port │ dst port   flow
//!     family          │ source │ destination │ labels of the lower-cased name   DNS triple
//!     family          │ source                                                  source
//! ```
//!
//! Addresses have 4 or 16 bytes, ports 2, all in network byte order. The digest of an attribute is
//! that of its bytes alone.

use super::batch::Columns;
use super::{ElementBatch, ElementKind, ElementRule, Outcome};
use crate::decode::{
    Addresses, DNS_PORT, Decoder, IpPacket, NAME_MAX, Skip, Tunnel, dns_messages, labels_from_text,
};
use crate::hashing::Digester;
use crate::trace::{DnsLogEntry, PacketRef, TraceBatch};
use std::net::IpAddr;

/// Turns packets into elements.
#[derive(Debug)]
pub struct Extractor {
    rule: ElementRule,
    dns_ports: Vec<u16>,
    decoder: Decoder,
    columns: Columns,
}

impl Extractor {
    /// An extractor for these elements. `attributes` and `keys` say whether these columns of
    /// [`ElementBatch`] are wanted.
    pub fn new(
        rule: ElementRule,
        tunnel: Tunnel,
        digester: Digester,
        attributes: bool,
        keys: bool,
    ) -> Self {
        Self {
            dns_ports: [&[DNS_PORT], rule.dns_ports.as_slice()].concat(),
            rule,
            decoder: Decoder::new(tunnel),
            columns: Columns {
                digester,
                attributes,
                keys,
            },
        }
    }

    /// Appends what a reader yielded to `out`.
    pub fn extract(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        match batch {
            // One loop a kind, so that the choice is made once a batch and not once a packet.
            TraceBatch::Packets { bytes, packets } => match self.rule.kind {
                ElementKind::HostPair => self.packets(bytes, packets, out, Self::host_pair),
                ElementKind::Flow => self.packets(bytes, packets, out, Self::flow),
                ElementKind::Dns => self.packets(bytes, packets, out, Self::dns),
                ElementKind::Source | ElementKind::Destination => {
                    self.packets(bytes, packets, out, Self::host);
                }
            },
            TraceBatch::DnsLog(log) => {
                for entry in log.entries {
                    let name = &log.text[entry.name.start as usize..entry.name.end as usize];
                    if let Err(skip) = self.log_entry(entry, name, out) {
                        skipped(entry.time_ns, skip, out);
                    }
                }
            }
        }
    }

    #[inline]
    fn packets(
        &self,
        bytes: &[u8],
        packets: &[PacketRef],
        out: &mut ElementBatch,
        element: impl Fn(&Self, &IpPacket<'_>, i64, &mut ElementBatch) -> Result<(), Skip>,
    ) {
        for packet in packets {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let outcome = self
                .decoder
                .decode(packet.link, frame)
                .and_then(|ip| element(self, &ip, packet.time_ns, out));
            if let Err(skip) = outcome {
                skipped(packet.time_ns, skip, out);
            }
        }
    }

    #[inline]
    fn host_pair(
        &self,
        ip: &IpPacket<'_>,
        time_ns: i64,
        out: &mut ElementBatch,
    ) -> Result<(), Skip> {
        let (addresses, _) = self.directed(ip.addresses, (0, 0));
        let (key, cuts) = Key::pair(addresses);
        self.push(time_ns, key.as_slice(), &cuts, out);
        Ok(())
    }

    #[inline]
    fn host(&self, ip: &IpPacket<'_>, time_ns: i64, out: &mut ElementBatch) -> Result<(), Skip> {
        self.push_host(ip.addresses, time_ns, out);
        Ok(())
    }

    fn push_host(&self, addresses: Addresses, time_ns: i64, out: &mut ElementBatch) {
        let source = self.rule.kind == ElementKind::Source;
        let mut key = Key::default();
        match addresses {
            Addresses::V4 {
                source: s,
                destination: d,
            } => {
                key.push(&[4]);
                key.push(if source { &s } else { &d });
            }
            Addresses::V6 {
                source: s,
                destination: d,
            } => {
                key.push(&[6]);
                key.push(if source { &s } else { &d });
            }
        }
        self.push(time_ns, key.as_slice(), &[1, key.len], out);
    }

    #[inline]
    fn flow(&self, ip: &IpPacket<'_>, time_ns: i64, out: &mut ElementBatch) -> Result<(), Skip> {
        let ports = ip.ports().unwrap_or((0, 0));
        self.push_flow(ip.addresses, ip.protocol, ports, time_ns, out);
        Ok(())
    }

    #[inline]
    fn push_flow(
        &self,
        addresses: Addresses,
        protocol: u8,
        ports: (u16, u16),
        time_ns: i64,
        out: &mut ElementBatch,
    ) {
        let (addresses, ports) = self.directed(addresses, ports);
        let (mut key, [_, source, pair]) = Key::pair(addresses);
        key.push(&[protocol]);
        key.push(&ports.0.to_be_bytes());
        key.push(&ports.1.to_be_bytes());
        let cuts = [1, source, pair, pair + 1, pair + 3, pair + 5];
        self.push(time_ns, key.as_slice(), &cuts, out);
    }

    fn dns(&self, ip: &IpPacket<'_>, time_ns: i64, out: &mut ElementBatch) -> Result<(), Skip> {
        let (addresses, _) = self.directed(ip.addresses, (0, 0));
        let mut found = 0;
        dns_messages(ip, &self.dns_ports, |message| {
            if message.is_response && self.rule.queries_only {
                return;
            }
            self.push_dns(addresses, message.name, time_ns, found > 0, out);
            found += 1;
        })?;
        if found == 0 {
            return Err(Skip::DnsResponse);
        }
        Ok(())
    }

    fn push_dns(
        &self,
        addresses: Addresses,
        labels: &[u8],
        time_ns: i64,
        further: bool,
        out: &mut ElementBatch,
    ) {
        let (pair, [one, source, end]) = Key::pair(addresses);
        let mut key = [0; MAX_DNS_KEY];
        key[..end].copy_from_slice(pair.as_slice());
        key[end..end + labels.len()].copy_from_slice(labels);
        let whole = end + labels.len();
        self.push(time_ns, &key[..whole], &[one, source, end, whole], out);
        if further {
            if let Some(last) = out.outcomes.last_mut() {
                *last = Outcome::FurtherElement;
            }
        }
    }

    /// One record of a DNS log: it has an address pair and a name, and perhaps ports.
    fn log_entry(
        &self,
        entry: &DnsLogEntry,
        name: &[u8],
        out: &mut ElementBatch,
    ) -> Result<(), Skip> {
        let addresses = match (entry.source, entry.destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => Addresses::V4 {
                source: s.octets(),
                destination: d.octets(),
            },
            (IpAddr::V6(s), IpAddr::V6(d)) => Addresses::V6 {
                source: s.octets(),
                destination: d.octets(),
            },
            _ => return Err(Skip::MixedFamilies),
        };
        match self.rule.kind {
            ElementKind::HostPair => {
                let (key, cuts) = Key::pair(self.directed(addresses, (0, 0)).0);
                self.push(entry.time_ns, key.as_slice(), &cuts, out);
            }
            ElementKind::Source | ElementKind::Destination => {
                self.push_host(addresses, entry.time_ns, out);
            }
            ElementKind::Flow => {
                let (protocol, source, destination) =
                    entry.transport.ok_or(Skip::NoTransportInLog)?;
                let ports = (source, destination);
                self.push_flow(addresses, protocol, ports, entry.time_ns, out);
            }
            ElementKind::Dns => {
                let mut labels = [0; NAME_MAX];
                let labels = labels_from_text(name, &mut labels).ok_or(Skip::DnsMalformed)?;
                let (addresses, _) = self.directed(addresses, (0, 0));
                self.push_dns(addresses, labels, entry.time_ns, false, out);
            }
        }
        Ok(())
    }

    /// The addresses and ports as they are, or the smaller end first if direction does not count.
    #[inline]
    fn directed(&self, addresses: Addresses, ports: (u16, u16)) -> (Addresses, (u16, u16)) {
        if !self.rule.undirected {
            return (addresses, ports);
        }
        let swap = match addresses {
            Addresses::V4 {
                source,
                destination,
            } => (source, ports.0) > (destination, ports.1),
            Addresses::V6 {
                source,
                destination,
            } => (source, ports.0) > (destination, ports.1),
        };
        if swap {
            (addresses.reversed(), (ports.1, ports.0))
        } else {
            (addresses, ports)
        }
    }

    #[inline]
    fn push(&self, time_ns: i64, key: &[u8], cuts: &[usize], out: &mut ElementBatch) {
        out.times_ns.push(time_ns);
        out.outcomes.push(Outcome::Element);
        self.columns.push(&mut out.elements, key, cuts);
    }
}

fn skipped(time_ns: i64, skip: Skip, out: &mut ElementBatch) {
    out.times_ns.push(time_ns);
    out.outcomes.push(Outcome::Skipped(skip));
}

/// Longest encoding of a DNS triple: family, two IPv6 addresses, a name of 255 bytes.
const MAX_DNS_KEY: usize = 1 + 32 + NAME_MAX;

/// An encoding of at most a flow's length, built in place.
struct Key {
    bytes: [u8; 40],
    len: usize,
}

impl Default for Key {
    #[inline]
    fn default() -> Self {
        Self {
            bytes: [0; 40],
            len: 0,
        }
    }
}

impl Key {
    /// Family and addresses, and where the source begins, the destination begins, and both end.
    #[inline]
    fn pair(addresses: Addresses) -> (Self, [usize; 3]) {
        let mut key = Self::default();
        match addresses {
            Addresses::V4 {
                source,
                destination,
            } => {
                key.push(&[4]);
                key.push(&source);
                key.push(&destination);
                (key, [1, 5, 9])
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                key.push(&[6]);
                key.push(&source);
                key.push(&destination);
                (key, [1, 17, 33])
            }
        }
    }

    #[inline]
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
