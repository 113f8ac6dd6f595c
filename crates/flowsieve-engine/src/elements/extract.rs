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

#![expect(
    clippy::inline_always,
    reason = "a key that goes through memory between two functions costs 5 ns a packet, measured"
)]

use super::batch::Columns;
use super::{ElementBatch, ElementColumns, ElementKind, ElementRule};
use crate::decode::{
    Addresses, DNS_PORT, Decoder, NAME_MAX, Skip, Tunnel, dns_messages, labels_from_text,
};
use crate::hashing::Digester;
use crate::trace::{DnsLogEntry, LinkType, PacketRef, TraceBatch};
use std::net::IpAddr;

/// Turns packets into elements.
#[derive(Debug)]
pub struct Extractor {
    rule: ElementRule,
    dns_ports: Vec<u16>,
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, whichever addresses count.
    inner: Decoder,
    columns: Columns,
    /// Whether the column of addresses is wanted.
    addresses: bool,
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
            inner: Decoder::new(Tunnel::Inner),
            columns: Columns {
                digester,
                attributes,
                keys,
            },
            addresses: false,
        }
    }

    /// Fills the column of addresses too.
    #[must_use]
    pub fn with_addresses(mut self) -> Self {
        self.addresses = true;
        self
    }

    /// Appends what a reader yielded to `out`.
    pub fn extract(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        if self.addresses {
            self.read_addresses(&batch, &mut out.addresses);
        }
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
                    let number = out.times_ns.len() as u32;
                    out.times_ns.push(entry.time_ns);
                    let name = entry.name.as_ref();
                    let name = name.map(|name| &log.text[name.start as usize..name.end as usize]);
                    if let Err(skip) = self.log_entry(entry, name, &mut out.elements) {
                        out.skipped.push((number, skip));
                    }
                }
            }
        }
    }

    /// Appends the addresses of each packet: of the header that counts, whatever the elements are.
    fn read_addresses(&self, batch: &TraceBatch<'_>, out: &mut Vec<Option<Addresses>>) {
        match batch {
            TraceBatch::Packets { bytes, packets } => out.extend(packets.iter().map(|packet| {
                let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                let ip = self.decoder.decode(packet.link, frame).ok()?;
                Some(ip.addresses)
            })),
            TraceBatch::DnsLog(log) => out.extend(log.entries.iter().map(logged_addresses)),
        }
    }

    /// Appends packets, each of which gives as many elements as `extract` says.
    #[inline(always)]
    fn packets(
        &self,
        bytes: &[u8],
        packets: &[PacketRef],
        out: &mut ElementBatch,
        extract: impl Fn(&Self, LinkType, &[u8], &mut ElementColumns) -> Result<u32, Skip>,
    ) {
        let first = out.times_ns.len() as u32;
        out.times_ns
            .extend(packets.iter().map(|packet| packet.time_ns));
        for (number, packet) in (first..).zip(packets) {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            match extract(self, packet.link, frame, &mut out.elements) {
                Ok(1) => {}
                Ok(elements) => out.further.extend((1..elements).map(|_| number)),
                Err(skip) => out.skipped.push((number, skip)),
            }
        }
    }

    #[inline(always)]
    fn host_pair(
        &self,
        link: LinkType,
        frame: &[u8],
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        let ip = self.decoder.decode(link, frame)?;
        self.push_pair(ip.addresses, out);
        Ok(1)
    }

    #[inline(always)]
    pub(super) fn push_pair(&self, addresses: Addresses, out: &mut ElementColumns) {
        match self.directed(addresses, (0, 0)).0 {
            Addresses::V4 {
                source,
                destination,
            } => {
                let key = encode_v4([source, destination], &[]);
                self.columns.push(out, &key[..9], &[1, 5, 9]);
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                let key: [u8; 33] = encode_v6(&[&source, &destination]);
                self.columns.push(out, &key, &[1, 17, 33]);
            }
        }
    }

    #[inline]
    fn host(&self, link: LinkType, frame: &[u8], out: &mut ElementColumns) -> Result<u32, Skip> {
        let ip = self.decoder.decode(link, frame)?;
        self.push_host(ip.addresses, out);
        Ok(1)
    }

    #[inline]
    pub(super) fn push_host(&self, addresses: Addresses, out: &mut ElementColumns) {
        let of_source = self.rule.kind == ElementKind::Source;
        match addresses {
            Addresses::V4 {
                source,
                destination,
            } => {
                let host = if of_source { source } else { destination };
                let key = encode_v4([host], &[]);
                self.columns.push(out, &key[..5], &[1, 5]);
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                let host = if of_source { source } else { destination };
                let key: [u8; 17] = encode_v6(&[&host]);
                self.columns.push(out, &key, &[1, 17]);
            }
        }
    }

    #[inline(always)]
    fn flow(&self, link: LinkType, frame: &[u8], out: &mut ElementColumns) -> Result<u32, Skip> {
        let ip = self.decoder.decode(link, frame)?;
        self.push_flow(ip.addresses, ip.protocol, ip.ports().unwrap_or((0, 0)), out);
        Ok(1)
    }

    #[inline(always)]
    pub(super) fn push_flow(
        &self,
        addresses: Addresses,
        protocol: u8,
        ports: (u16, u16),
        out: &mut ElementColumns,
    ) {
        let (addresses, ports) = self.directed(addresses, ports);
        let (from, to) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
        match addresses {
            Addresses::V4 {
                source,
                destination,
            } => {
                let tail = [protocol, from[0], from[1], to[0], to[1]];
                let key = encode_v4([source, destination], &tail);
                self.columns.push(out, &key[..14], &[1, 5, 9, 10, 12, 14]);
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                let parts: [&[u8]; 5] = [&source, &destination, &[protocol], &from, &to];
                let key: [u8; 38] = encode_v6(&parts);
                self.columns.push(out, &key, &[1, 17, 33, 34, 36, 38]);
            }
        }
    }

    fn dns(&self, link: LinkType, frame: &[u8], out: &mut ElementColumns) -> Result<u32, Skip> {
        let ip = self.decoder.decode(link, frame)?;
        // The addresses are those of the header that counts; the message may be further inside.
        let innermost = self.inner.decode(link, frame)?;
        let mut found = 0;
        dns_messages(&innermost, &self.dns_ports, |message| {
            if !(message.is_response && self.rule.queries_only) {
                self.push_dns(ip.addresses, message.name, out);
                found += 1;
            }
        })?;
        if found == 0 {
            return Err(Skip::DnsResponse);
        }
        Ok(found)
    }

    pub(super) fn push_dns(&self, addresses: Addresses, labels: &[u8], out: &mut ElementColumns) {
        let mut key = [0; MAX_DNS_KEY];
        let cuts = match self.directed(addresses, (0, 0)).0 {
            Addresses::V4 {
                source,
                destination,
            } => {
                key[..9].copy_from_slice(&encode_v4([source, destination], &[])[..9]);
                [1, 5, 9, 9 + labels.len()]
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                key[..33].copy_from_slice(&encode_v6::<33>(&[&source, &destination]));
                [1, 17, 33, 33 + labels.len()]
            }
        };
        key[cuts[2]..cuts[3]].copy_from_slice(labels);
        self.columns.push(out, &key[..cuts[3]], &cuts);
    }

    /// One record of a DNS log: it has an address pair and a name, and perhaps ports.
    fn log_entry(
        &self,
        entry: &DnsLogEntry,
        name: Option<&[u8]>,
        out: &mut ElementColumns,
    ) -> Result<(), Skip> {
        let addresses = logged_addresses(entry).ok_or(Skip::MixedFamilies)?;
        match self.rule.kind {
            ElementKind::HostPair => self.push_pair(addresses, out),
            ElementKind::Source | ElementKind::Destination => self.push_host(addresses, out),
            ElementKind::Flow => {
                let (protocol, source, destination) =
                    entry.transport.ok_or(Skip::NoTransportInLog)?;
                self.push_flow(addresses, protocol, (source, destination), out);
            }
            ElementKind::Dns => {
                let name = name.ok_or(Skip::DnsNoQuestion)?;
                let mut labels = [0; NAME_MAX];
                let labels = labels_from_text(name, &mut labels).ok_or(Skip::DnsMalformed)?;
                self.push_dns(addresses, labels, out);
            }
        }
        Ok(())
    }

    /// The addresses and ports as they are, or the smaller end first if direction does not count.
    #[inline(always)]
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
}

/// The addresses of a record; none if they are not of one family.
fn logged_addresses(entry: &DnsLogEntry) -> Option<Addresses> {
    match (entry.source, entry.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Addresses::V4 {
            source: source.octets(),
            destination: destination.octets(),
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Addresses::V6 {
            source: source.octets(),
            destination: destination.octets(),
        }),
        _ => None,
    }
}

/// Longest encoding of a DNS triple: family, two IPv6 addresses, a name.
const MAX_DNS_KEY: usize = 1 + 32 + NAME_MAX;

/// Family, addresses and further bytes one after the other, at most 16 together.
///
/// They are put together in a register and not in memory: a digest reads them back in words that
/// straddle the parts, and a load that straddles two recent stores costs more than all the rest.
#[inline(always)]
fn encode_v4<const N: usize>(addresses: [[u8; 4]; N], tail: &[u8]) -> [u8; 16] {
    let mut key = 4_u128;
    let mut shift = 8;
    for address in addresses {
        key |= u128::from(u32::from_le_bytes(address)) << shift;
        shift += 32;
    }
    for &byte in tail {
        key |= u128::from(byte) << shift;
        shift += 8;
    }
    key.to_le_bytes()
}

/// Family and parts one after the other; together they have N bytes.
#[inline]
fn encode_v6<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [6; N];
    let mut at = 1;
    for part in parts {
        key[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    key
}
