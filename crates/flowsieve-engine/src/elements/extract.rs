//! From a packet, or a record of a log, to its elements.
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
    Addresses, Decoder, Headers, NAME_MAX, Skip, Tunnel, addresses_of, dns_message, dns_messages,
    labels_from_text, logged_addresses,
};
use crate::hashing::Digester;
use crate::trace::{LinkType, LogBatch, LogContent, LogEntry, LogQuestion, TraceBatch};
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
    /// Among how many shards elements are divided where that is asked for.
    shards: u32,
}

impl Extractor {
    /// An extractor for these elements. `attributes` and `keys` say whether these columns of
    /// [`ElementBatch`] are wanted.
    pub fn new(
        rule: ElementRule,
        headers: &Headers,
        digester: Digester,
        attributes: bool,
        keys: bool,
    ) -> Self {
        Self {
            dns_ports: headers.all_dns_ports(),
            rule,
            decoder: Decoder::new(headers.tunnel),
            inner: Decoder::new(Tunnel::Inner),
            columns: Columns { digester, attributes, keys },
            addresses: false,
            shards: 1,
        }
    }

    /// Divides elements among this many shards where [`Self::extract_divided`] is asked for them.
    #[must_use]
    pub(crate) fn dividing(mut self, shards: u32) -> Self {
        self.shards = shards;
        self
    }

    /// Fills the column of addresses too.
    #[must_use]
    #[doc(hidden)]
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
                ElementKind::HostPair => {
                    out.packets(bytes, packets, |link, frame, out| {
                        self.host_pair(link, frame, out)
                    });
                }
                ElementKind::Flow => {
                    out.packets(bytes, packets, |link, frame, out| self.flow(link, frame, out));
                }
                ElementKind::Dns => {
                    out.packets(bytes, packets, |link, frame, out| self.dns(link, frame, out));
                }
                ElementKind::Source | ElementKind::Destination => {
                    out.packets(bytes, packets, |link, frame, out| self.host(link, frame, out));
                }
            },
            TraceBatch::Log(log) => {
                out.records(&log, |entry, out| self.log_entry(&log, entry, out));
            }
        }
    }

    /// The same, with the elements by shard if there are several.
    pub(crate) fn extract_divided(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        let before = out.filled();
        self.extract(batch, out);
        if self.shards > 1 {
            out.divide(self.shards, self.rule.kind.attributes().len(), before);
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
            TraceBatch::Log(log) => {
                out.extend(log.entries.iter().map(|entry| logged_addresses(entry).ok()));
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
            Addresses::V4 { source, destination } => {
                let key = encode_v4([source, destination], &[]);
                self.columns.push(out, &key[..9], &[1, 5, 9]);
            }
            Addresses::V6 { source, destination } => {
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
            Addresses::V4 { source, destination } => {
                let host = if of_source { source } else { destination };
                let key = encode_v4([host], &[]);
                self.columns.push(out, &key[..5], &[1, 5]);
            }
            Addresses::V6 { source, destination } => {
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
            Addresses::V4 { source, destination } => {
                let tail = [protocol, from[0], from[1], to[0], to[1]];
                let key = encode_v4([source, destination], &tail);
                self.columns.push(out, &key[..14], &[1, 5, 9, 10, 12, 14]);
            }
            Addresses::V6 { source, destination } => {
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
            Addresses::V4 { source, destination } => {
                key[..9].copy_from_slice(&encode_v4([source, destination], &[])[..9]);
                [1, 5, 9, 9 + labels.len()]
            }
            Addresses::V6 { source, destination } => {
                key[..33].copy_from_slice(&encode_v6::<33>(&[&source, &destination]));
                [1, 17, 33, 33 + labels.len()]
            }
        };
        key[cuts[2]..cuts[3]].copy_from_slice(labels);
        self.columns.push(out, &key[..cuts[3]], &cuts);
    }

    /// The elements of a record. A flow gives those of both directions in which packets went.
    fn log_entry(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        match &entry.content {
            LogContent::NotSelected => Err(Skip::DnstapType),
            LogContent::Dns { question, is_response } => {
                if *is_response && self.rule.queries_only {
                    return Err(Skip::DnsResponse);
                }
                if self.rule.kind == ElementKind::Dns {
                    self.logged_question(log, entry, question, out)?;
                } else {
                    self.logged_ends(entry, [true, false], out)?;
                }
                Ok(1)
            }
            LogContent::Flow(_) if self.rule.kind == ElementKind::Dns => Err(Skip::FlowRecord),
            LogContent::Flow(flow) => {
                let [there, back] = flow.directions();
                let both_are_one = self.rule.undirected && there;
                self.logged_ends(entry, [there, back && !both_are_one], out)
            }
        }
    }

    /// The DNS triple of a record.
    fn logged_question(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        question: &LogQuestion,
        out: &mut ElementColumns,
    ) -> Result<(), Skip> {
        match question {
            LogQuestion::None => {
                logged_addresses(entry)?;
                Err(Skip::DnsNoQuestion)
            }
            LogQuestion::Name(range) => {
                let addresses = logged_addresses(entry)?;
                let mut labels = [0; NAME_MAX];
                let labels = labels_from_text(log.at(range), &mut labels);
                self.push_dns(addresses, labels.ok_or(Skip::DnsMalformed)?, out);
                Ok(())
            }
            LogQuestion::Message(range) => {
                let addresses = logged_addresses(entry)?;
                dns_message(log.at(range), |message| {
                    self.push_dns(addresses, message.name, out);
                })
            }
        }
    }

    /// The elements of a record that are made of its addresses and ports, in the directions that
    /// are wanted.
    fn logged_ends(
        &self,
        entry: &LogEntry,
        directions: [bool; 2],
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        let ports = match (self.rule.kind, entry.transport) {
            (ElementKind::Flow, None) => return Err(Skip::NoTransportInLog),
            (_, transport) => transport.unwrap_or_default(),
        };
        let addresses = match self.rule.kind {
            ElementKind::Source => logged_address(entry.source, entry, directions)?,
            ElementKind::Destination => logged_address(entry.destination, entry, directions)?,
            _ => logged_addresses(entry)?,
        };
        let (protocol, source, destination) = ports;
        let mut push = |addresses, ports| match self.rule.kind {
            ElementKind::Source | ElementKind::Destination => self.push_host(addresses, out),
            ElementKind::Flow => self.push_flow(addresses, protocol, ports, out),
            ElementKind::HostPair | ElementKind::Dns => self.push_pair(addresses, out),
        };
        if directions[0] {
            push(addresses, (source, destination));
        }
        if directions[1] {
            push(addresses.reversed(), (destination, source));
        }
        Ok(directions.map(u32::from).iter().sum())
    }

    /// The addresses and ports as they are, or the smaller end first if direction does not count.
    #[inline(always)]
    fn directed(&self, addresses: Addresses, ports: (u16, u16)) -> (Addresses, (u16, u16)) {
        if !self.rule.undirected {
            return (addresses, ports);
        }
        let swap = match addresses {
            Addresses::V4 { source, destination } => (source, ports.0) > (destination, ports.1),
            Addresses::V6 { source, destination } => (source, ports.0) > (destination, ports.1),
        };
        if swap { (addresses.reversed(), (ports.1, ports.0)) } else { (addresses, ports) }
    }
}

/// The addresses of a record of which only `wanted` counts; where it goes in both directions, both
/// do.
fn logged_address(
    wanted: Option<IpAddr>,
    entry: &LogEntry,
    directions: [bool; 2],
) -> Result<Addresses, Skip> {
    let is_alone = entry.source.is_none() || entry.destination.is_none();
    match wanted {
        Some(host) if is_alone && directions == [true, false] => addresses_of(host, host),
        _ => logged_addresses(entry),
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
