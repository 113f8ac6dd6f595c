//! From a packet, or a record of a log, to the header fields that its elements are made of.

#![expect(
    clippy::inline_always,
    reason = "in line, what an element does not have is never put together in memory"
)]

use super::field::Attribute;
use crate::decode::{
    Addresses, Decoder, DnsMessage, Headers, IpPacket, NAME_MAX, Skip, Tunnel, addresses_of,
    dns_message, dns_messages, is_among, labels_from_text, logged_addresses,
};
use crate::trace::{LinkType, LogBatch, LogContent, LogEntry, LogQuestion, has_ports};

/// Finds the IP header that counts, and DNS messages.
#[derive(Debug)]
pub(crate) struct PacketDecoder {
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, for inner and outer addresses.
    inner: Decoder,
    dns_ports: Vec<u16>,
}

impl PacketDecoder {
    pub(crate) fn new(headers: &Headers) -> Self {
        Self {
            decoder: Decoder::new(headers.tunnel),
            inner: Decoder::new(Tunnel::Inner),
            dns_ports: headers.all_dns_ports(),
        }
    }

    /// Returns the IP packet whose header counts.
    #[inline(always)]
    pub(crate) fn decode<'a>(&self, link: LinkType, frame: &'a [u8]) -> Result<IpPacket<'a>, Skip> {
        self.decoder.decode(link, frame)
    }

    /// Returns whether there may be DNS messages in a packet, or inside it if it is a tunnel's.
    #[inline]
    pub(crate) fn may_have_messages(&self, ip: &IpPacket<'_>) -> bool {
        ip.may_be_tunnel() || ip.ports().is_some_and(|ports| is_among(&self.dns_ports, ports))
    }

    /// Calls `found` for every DNS message in a packet, or in the innermost one if it is a
    /// tunnel's. Decodes the frame again: few packets need this, and keeping the decoded packet for
    /// it would slow all of them down.
    ///
    /// # Errors
    ///
    /// The reason why there was none.
    #[inline(never)]
    pub(crate) fn messages(
        &self,
        link: LinkType,
        frame: &[u8],
        mut found: impl FnMut(&DnsMessage<'_>),
    ) -> Result<(), Skip> {
        let innermost = self.inner.decode(link, frame)?;
        dns_messages(&innermost, &self.dns_ports, |message| found(&message))
    }
}

/// The fields of elements.
#[derive(Clone, Copy)]
pub(crate) struct HeaderFields<'a> {
    pub(crate) addresses: Addresses,
    pub(crate) protocol: u8,
    pub(crate) ports: (u16, u16),
    pub(crate) vlan: Option<u16>,
    /// Labels of the query name.
    pub(crate) name: &'a [u8],
    /// Bytes of the packet from its IP header on; 0 for records of logs.
    pub(crate) bytes: u32,
}

impl HeaderFields<'_> {
    /// With only these addresses.
    pub(crate) const fn between(addresses: Addresses) -> Self {
        Self { addresses, protocol: 0, ports: (0, 0), vlan: None, name: &[], bytes: 0 }
    }

    /// Source and destination exchanged.
    pub(crate) fn reversed(self) -> Self {
        Self { addresses: self.addresses.reversed(), ports: (self.ports.1, self.ports.0), ..self }
    }

    /// Returns the ends, the smaller (address, port) first.
    #[inline(always)]
    pub(crate) fn undirected(self) -> Self {
        let (from, to) = self.ports;
        let swap = match self.addresses {
            Addresses::V4 { source, destination } => (source, from) > (destination, to),
            Addresses::V6 { source, destination } => (source, from) > (destination, to),
        };
        if swap { self.reversed() } else { self }
    }
}

/// Placeholder where elements have no address.
const NO_ADDRESSES: Addresses = Addresses::V4 { source: [0; 4], destination: [0; 4] };

/// Parts of a packet that have to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Needs {
    /// At most the IP header, and ports if there are any.
    Addresses,
    /// Ports: packets without them have no element.
    Ports,
    /// The names of DNS messages, each of which is an element.
    Names,
}

/// Reads the headers of the elements of packets and of records.
#[derive(Debug)]
pub(crate) struct HeaderReader {
    packets: PacketDecoder,
    needs: Needs,
    needs_transport: bool,
    /// Whether elements have the source address, and that of the destination.
    ends: [bool; 2],
    /// Both directions of a flow record are one element.
    undirected: bool,
    queries_only: bool,
}

impl HeaderReader {
    /// Reads attributes of which `any` says whether one is such.
    pub(crate) fn new(
        any: impl Fn(fn(Attribute) -> bool) -> bool,
        needs_ports: bool,
        undirected: bool,
        packets: PacketDecoder,
        queries_only: bool,
    ) -> Self {
        let needs = match (any(Attribute::is_name), needs_ports) {
            (true, _) => Needs::Names,
            (false, true) => Needs::Ports,
            (false, false) => Needs::Addresses,
        };
        let ends = [
            any(|attribute| attribute == Attribute::Source),
            any(|attribute| attribute == Attribute::Destination),
        ];
        let is_transport =
            |attribute: Attribute| attribute.is_port() || attribute == Attribute::Protocol;
        Self { packets, needs, needs_transport: any(is_transport), ends, undirected, queries_only }
    }

    /// Returns the IP packet whose header counts.
    #[inline(always)]
    pub(crate) fn decode<'a>(&self, link: LinkType, frame: &'a [u8]) -> Result<IpPacket<'a>, Skip> {
        self.packets.decode(link, frame)
    }

    /// Calls `push` for each element of a packet. Returns their number.
    #[inline(always)]
    pub(crate) fn packet(
        &self,
        link: LinkType,
        frame: &[u8],
        mut push: impl FnMut(&HeaderFields<'_>),
    ) -> Result<u32, Skip> {
        let ip = self.decode(link, frame)?;
        let headers = HeaderFields {
            protocol: ip.protocol,
            vlan: ip.vlan,
            bytes: ip.bytes,
            ..HeaderFields::between(ip.addresses)
        };
        if self.needs == Needs::Names {
            let ports = ip.ports().unwrap_or_default();
            return self.named(&HeaderFields { ports, ..headers }, link, frame, push);
        }
        let ports = match (self.needs, ip.ports()) {
            (_, Some(ports)) => ports,
            (Needs::Ports, None) => return Err(Skip::NoPorts),
            (_, None) => (0, 0),
        };
        push(&HeaderFields { ports, ..headers });
        Ok(1)
    }

    /// Returns the DNS messages of a packet: addresses and ports are those of the header that counts.
    fn named(
        &self,
        headers: &HeaderFields<'_>,
        link: LinkType,
        frame: &[u8],
        mut push: impl FnMut(&HeaderFields<'_>),
    ) -> Result<u32, Skip> {
        let mut found = 0;
        self.packets.messages(link, frame, |message| {
            if !(message.is_response && self.queries_only) {
                push(&HeaderFields { name: message.name, ..*headers });
                found += 1;
            }
        })?;
        if found == 0 {
            return Err(Skip::DnsResponse);
        }
        Ok(found)
    }

    /// Calls `push` for each element of a record: a flow has one for each direction in which packets
    /// went. Returns their number.
    pub(crate) fn record(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        mut push: impl FnMut(&HeaderFields<'_>),
    ) -> Result<u32, Skip> {
        let needs_name = self.needs == Needs::Names;
        match &entry.content {
            LogContent::NotSelected => Err(Skip::DnstapType),
            LogContent::Dns { is_response: true, .. } if self.queries_only => {
                Err(Skip::DnsResponse)
            }
            LogContent::Dns { question, .. } if needs_name => {
                let headers = self.logged(entry, true)?;
                with_name(log, question, |name| push(&HeaderFields { name, ..headers }))?;
                Ok(1)
            }
            LogContent::Dns { .. } => {
                push(&self.logged(entry, true)?);
                Ok(1)
            }
            LogContent::Flow(_) if needs_name => Err(Skip::FlowRecord),
            LogContent::Flow(flow) => {
                let [there, back] = flow.directions();
                let back = back && !(self.undirected && there);
                let headers = self.logged(entry, there && !back)?;
                if there {
                    push(&headers);
                }
                if back {
                    push(&headers.reversed());
                }
                Ok(u32::from(there) + u32::from(back))
            }
        }
    }

    /// Returns the addresses, protocol and ports of a record. Elements without addresses need none; if the
    /// packets went one way, those with one address need only that one.
    fn logged(&self, entry: &LogEntry, one_way: bool) -> Result<HeaderFields<'static>, Skip> {
        let (protocol, from, to) = match entry.transport {
            Some(transport) => transport,
            None if self.needs_transport => return Err(Skip::NoTransportInLog),
            None => (0, 0, 0),
        };
        if self.needs == Needs::Ports && !has_ports(protocol) {
            return Err(Skip::NoPorts);
        }
        let addresses = match (self.ends, entry.source, entry.destination) {
            ([false, false], ..) => NO_ADDRESSES,
            ([true, false], Some(host), None) | ([false, true], None, Some(host)) if one_way => {
                addresses_of(host, host)?
            }
            _ => logged_addresses(entry)?,
        };
        Ok(HeaderFields { protocol, ports: (from, to), ..HeaderFields::between(addresses) })
    }
}

/// Calls `found` with the name of a record's question.
pub(crate) fn with_name(
    log: &LogBatch<'_>,
    question: &LogQuestion,
    mut found: impl FnMut(&[u8]),
) -> Result<(), Skip> {
    match question {
        LogQuestion::None => Err(Skip::DnsNoQuestion),
        LogQuestion::Name(range) => {
            let mut labels = [0; NAME_MAX];
            let labels = labels_from_text(log.at(range), &mut labels);
            found(labels.ok_or(Skip::DnsMalformed)?);
            Ok(())
        }
        LogQuestion::Message(range) | LogQuestion::Other(range) => {
            dns_message(log.at(range), |message| found(message.name))
        }
    }
}
