//! From a packet, or a record of a log, to its elements: a key, and one of the others that it has.
//!
//! # Encoding
//!
//! ```text
//!     bytes of the packet (4) │ length of the key (2) │ key │ other
//! ```
//!
//! Key and other are their fields one after the other: addresses of 4 or 16 bytes (of a prefix with
//! the rest cleared), ports of 2, protocols of 1, names as labels. The family (4 or 6) stands ahead
//! of the first part that has an address. An element's digest is that of key and other, and its
//! only attribute is the digest of the key.

use super::plan::TopPlan;
use super::question::{Attribute, Field, Question};
use super::summary::LONGEST_KEY;
use crate::decode::{
    Addresses, Decoder, Headers, IpPacket, NAME_MAX, Skip, Tunnel, dns_message, dns_messages,
    dotted, labels_from_text, logged_addresses,
};
use crate::elements::{ElementBatch, ElementColumns};
use crate::hashing::Digester;
use crate::inputs::BatchBuilder;
use crate::trace::{LogBatch, LogContent, LogEntry, LogQuestion, TraceBatch};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes ahead of the key.
const HEAD: usize = 6;

/// Longest record without a name: head, family, the four addresses of two parts, ports and
/// protocols.
const SHORT: usize = HEAD + 1 + 4 * 16 + 2 * 5;

/// Longest record: with a name in each part.
const LONG: usize = SHORT + 2 * NAME_MAX;

/// Turns packets into elements of a question.
#[derive(Debug)]
pub(crate) struct TopExtractor {
    question: Question,
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, whichever addresses count.
    inner: Decoder,
    dns_ports: Vec<u16>,
    queries_only: bool,
    need: Need,
    /// How elements of IPv4 packets are made.
    form: Form,
    digester: Digester,
}

/// What has to be read of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Need {
    Addresses,
    Ports,
    Names,
}

/// How elements of IPv4 packets are made: most questions are of few forms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// Of each source the destinations, or the other way round.
    Pair {
        reversed: bool,
    },
    /// They fit into 16 bytes.
    Short,
    Any,
}

/// What fields are taken from.
#[derive(Clone, Copy)]
struct Values<'a> {
    addresses: Addresses,
    protocol: u8,
    ports: (u16, u16),
    /// Labels of the name.
    name: &'a [u8],
    /// Bytes of the packet.
    bytes: u32,
}

impl TopExtractor {
    /// That of a plan.
    pub(crate) fn of(plan: &TopPlan) -> Self {
        Self::new(&plan.question, &plan.trace.headers, plan.queries_only, Digester::new(plan.seed))
    }

    fn new(question: &Question, headers: &Headers, queries_only: bool, digester: Digester) -> Self {
        Self {
            question: question.clone(),
            decoder: Decoder::new(headers.tunnel),
            inner: Decoder::new(Tunnel::Inner),
            dns_ports: headers.all_dns_ports(),
            queries_only,
            need: if question.is_about_dns() {
                Need::Names
            } else if question.any(Attribute::is_port) {
                Need::Ports
            } else {
                Need::Addresses
            },
            form: Form::of(question),
            digester,
        }
    }

    #[inline]
    fn packet(&self, ip: &IpPacket<'_>, out: &mut ElementColumns) -> Result<u32, Skip> {
        let ports = match (self.need, ip.ports()) {
            (_, Some(ports)) => ports,
            (Need::Ports, None) => return Err(Skip::NoPorts),
            (_, None) => (0, 0),
        };
        let values = Values {
            addresses: ip.addresses,
            protocol: ip.protocol,
            ports,
            name: &[],
            bytes: ip.bytes,
        };
        match (values.addresses, self.form) {
            (Addresses::V4 { source, destination }, Form::Short) => {
                self.push_short(&values, [source, destination], out);
            }
            _ => self.push::<SHORT>(&values, out),
        }
        Ok(1)
    }

    /// The same for a source and its destination, or the other way round.
    #[expect(clippy::inline_always, reason = "in a loop of its own")]
    #[inline(always)]
    fn pair(&self, addresses: Addresses, bytes: u32, reversed: bool, out: &mut ElementColumns) {
        match addresses {
            Addresses::V4 { source, destination } => {
                let mut words =
                    [source, destination].map(|address| u128::from(u32::from_le_bytes(address)));
                if reversed {
                    words.reverse();
                }
                let element = 4 | words[0] << 8 | words[1] << 40;
                self.push_register(bytes, element, 5, 9, out);
            }
            Addresses::V6 { source, destination } => {
                let (key, other) =
                    if reversed { (destination, source) } else { (source, destination) };
                let mut record = [6; HEAD + 33];
                record[..4].copy_from_slice(&bytes.to_le_bytes());
                record[4..HEAD].copy_from_slice(&17_u16.to_le_bytes());
                record[HEAD + 1..][..16].copy_from_slice(&key);
                record[HEAD + 17..].copy_from_slice(&other);
                out.digests.push(self.digester.digest(&record[HEAD..]));
                let key = self.digester.digest(&record[HEAD..HEAD + 17]);
                out.attributes.push(key);
                out.keys.push(&record);
            }
        }
    }

    /// The same as [`Self::push`] for an element that fits into a register, without a name: most
    /// are such.
    #[inline]
    fn push_short(&self, values: &Values<'_>, addresses: [[u8; 4]; 2], out: &mut ElementColumns) {
        let mut element = 0_u128;
        let mut shift = 0;
        let mut put = |value: u32, bits: u32| {
            element |= u128::from(value) << shift;
            shift += bits;
            shift
        };
        let mut key_bits = 0;
        let mut has_family = false;
        for (fields, is_key) in [(self.question.by(), true), (self.question.distinct(), false)] {
            if !has_family && fields.iter().any(|field| field.attribute.is_address()) {
                put(4, 8);
                has_family = true;
            }
            let mut end = 0;
            for field in fields {
                let address = |address| u32::from_le_bytes(prefix_v4(address, field.prefix));
                let port = |port: u16| port.to_be().into();
                end = match field.attribute {
                    Attribute::Source => put(address(addresses[0]), 32),
                    Attribute::Destination => put(address(addresses[1]), 32),
                    Attribute::Protocol => put(values.protocol.into(), 8),
                    Attribute::SourcePort => put(port(values.ports.0), 16),
                    Attribute::DestinationPort => put(port(values.ports.1), 16),
                    Attribute::Domain | Attribute::RegisteredDomain => end,
                };
            }
            if is_key {
                key_bits = end;
            }
        }
        let (key, all) = (key_bits as usize / 8, shift as usize / 8);
        self.push_register(values.bytes, element, key, all, out);
    }

    /// Appends an element of `all` bytes, of which the first are the key.
    #[expect(clippy::inline_always, reason = "so that keys of fixed length are digested as such")]
    #[inline(always)]
    fn push_register(
        &self,
        bytes: u32,
        element: u128,
        key: usize,
        all: usize,
        out: &mut ElementColumns,
    ) {
        let element = element.to_le_bytes();
        out.digests.push(self.digester.digest(&element[..all]));
        out.attributes.push(self.digester.digest(&element[..key]));
        let head = u128::from(bytes) | (key as u128) << 32;
        let mut record = [0; 32];
        record[..16].copy_from_slice(&head.to_le_bytes());
        record[HEAD..HEAD + 16].copy_from_slice(&element);
        out.keys.push_padded(&record, HEAD + all);
    }

    /// The messages of a packet: the addresses are those of the header that counts.
    fn messages(
        &self,
        ip: &IpPacket<'_>,
        innermost: &IpPacket<'_>,
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        let mut found = 0;
        dns_messages(innermost, &self.dns_ports, |message| {
            if message.is_response && self.queries_only {
                return;
            }
            let values = Values {
                addresses: ip.addresses,
                protocol: innermost.protocol,
                ports: innermost.ports().unwrap_or_default(),
                name: message.name,
                bytes: ip.bytes,
            };
            self.push::<LONG>(&values, out);
            found += 1;
        })?;
        if found == 0 {
            return Err(Skip::DnsResponse);
        }
        Ok(found)
    }

    /// Appends the element of these ends, or of the source and a name.
    pub(super) fn push_end(&self, addresses: Addresses, name: &[u8], out: &mut ElementColumns) {
        if let Form::Pair { reversed } = self.form {
            return self.pair(addresses, 0, reversed, out);
        }
        let values = Values { addresses, protocol: 0, ports: (0, 0), name, bytes: 0 };
        self.push::<LONG>(&values, out);
    }

    /// The elements of a record of a log: a flow has one for each direction in which packets went.
    /// Bytes are not known.
    fn log_entry(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        let needs_name = matches!(self.need, Need::Names);
        match &entry.content {
            LogContent::NotSelected => Err(Skip::DnstapType),
            LogContent::Dns { is_response: true, .. } if self.queries_only => {
                Err(Skip::DnsResponse)
            }
            LogContent::Dns { question, .. } if needs_name => {
                self.logged_name(log, entry, question, out)
            }
            LogContent::Dns { .. } => {
                self.push::<LONG>(&self.logged_values(entry, &[])?, out);
                Ok(1)
            }
            LogContent::Flow(_) if needs_name => Err(Skip::FlowRecord),
            LogContent::Flow(flow) => {
                let values = self.logged_values(entry, &[])?;
                let [there, back] = flow.directions();
                if there {
                    self.push::<LONG>(&values, out);
                }
                if back {
                    let reversed = Values {
                        addresses: values.addresses.reversed(),
                        ports: (values.ports.1, values.ports.0),
                        ..values
                    };
                    self.push::<LONG>(&reversed, out);
                }
                Ok(u32::from(there) + u32::from(back))
            }
        }
    }

    /// The element of a record that has a name.
    fn logged_name(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        question: &LogQuestion,
        out: &mut ElementColumns,
    ) -> Result<u32, Skip> {
        match question {
            LogQuestion::None => Err(Skip::DnsNoQuestion),
            LogQuestion::Name(range) => {
                let mut labels = [0; NAME_MAX];
                let labels = labels_from_text(log.at(range), &mut labels);
                let values = self.logged_values(entry, labels.ok_or(Skip::DnsMalformed)?)?;
                self.push::<LONG>(&values, out);
                Ok(1)
            }
            LogQuestion::Message(range) => {
                let without_name = self.logged_values(entry, &[])?;
                dns_message(log.at(range), |message| {
                    let values = Values { name: message.name, ..without_name };
                    self.push::<LONG>(&values, out);
                })?;
                Ok(1)
            }
        }
    }

    /// What a record says of its ends.
    fn logged_values<'a>(&self, entry: &LogEntry, name: &'a [u8]) -> Result<Values<'a>, Skip> {
        let needs_transport =
            self.question.any(|attribute| attribute.is_port() || attribute == Attribute::Protocol);
        let (protocol, from, to) = match entry.transport {
            Some(transport) => transport,
            None if needs_transport => return Err(Skip::NoTransportInLog),
            None => (0, 0, 0),
        };
        Ok(Values {
            addresses: logged_addresses(entry)?,
            protocol,
            ports: (from, to),
            name,
            bytes: 0,
        })
    }

    /// Appends the element of a packet with these values; a record of it has at most N bytes.
    #[inline]
    fn push<const N: usize>(&self, values: &Values<'_>, out: &mut ElementColumns) {
        let mut record = [0; N];
        record[..4].copy_from_slice(&values.bytes.to_le_bytes());
        let (behind_key, has_family) = write(self.question.by(), values, false, HEAD, &mut record);
        let (end, _) = write(self.question.distinct(), values, has_family, behind_key, &mut record);
        let key = (behind_key - HEAD) as u16;
        record[4..HEAD].copy_from_slice(&key.to_le_bytes());
        out.digests.push(self.digester.digest(&record[HEAD..end]));
        let key = self.digester.digest(&record[HEAD..behind_key]);
        out.attributes.push(key);
        out.keys.push(&record[..end]);
    }
}

impl Form {
    fn of(question: &Question) -> Self {
        let whole = |attribute| [Field::of(attribute)];
        let ends = [Attribute::Source, Attribute::Destination].map(whole);
        let (by, distinct) = (question.by(), question.distinct());
        for (reversed, key, other) in [(false, 0, 1), (true, 1, 0)] {
            if by == ends[key] && distinct == ends[other] {
                return Self::Pair { reversed };
            }
        }
        let fields = by.iter().chain(distinct);
        let bytes = fields.map(|field| match field.attribute {
            attribute if attribute.is_address() => 4,
            attribute if attribute.is_port() => 2,
            Attribute::Protocol => 1,
            _ => 16,
        });
        // With the family.
        if bytes.sum::<usize>() < 16 { Self::Short } else { Self::Any }
    }
}

/// Writes fields from place `at` on, the family ahead of them if it is wanted and not there yet;
/// the place behind them, and whether the family is there.
#[inline]
fn write(
    fields: &[Field],
    values: &Values<'_>,
    has_family: bool,
    mut at: usize,
    record: &mut [u8],
) -> (usize, bool) {
    let mut put = |bytes: &[u8], at: &mut usize| {
        record[*at..*at + bytes.len()].copy_from_slice(bytes);
        *at += bytes.len();
    };
    let has_address = fields.iter().any(|field| field.attribute.is_address());
    if has_address && !has_family {
        let family = match values.addresses {
            Addresses::V4 { .. } => 4,
            Addresses::V6 { .. } => 6,
        };
        put(&[family], &mut at);
    }
    for field in fields {
        match (field.attribute, values.addresses) {
            (Attribute::Source, Addresses::V4 { source, .. }) => {
                put(&prefix_v4(source, field.prefix), &mut at);
            }
            (Attribute::Destination, Addresses::V4 { destination, .. }) => {
                put(&prefix_v4(destination, field.prefix), &mut at);
            }
            (Attribute::Source, Addresses::V6 { source, .. }) => {
                put(&prefix_v6(source, field.prefix), &mut at);
            }
            (Attribute::Destination, Addresses::V6 { destination, .. }) => {
                put(&prefix_v6(destination, field.prefix), &mut at);
            }
            (Attribute::Protocol, _) => put(&[values.protocol], &mut at),
            (Attribute::SourcePort, _) => put(&values.ports.0.to_be_bytes(), &mut at),
            (Attribute::DestinationPort, _) => put(&values.ports.1.to_be_bytes(), &mut at),
            (Attribute::Domain, _) => put(values.name, &mut at),
            (Attribute::RegisteredDomain, _) => put(registered(values.name), &mut at),
        }
    }
    (at, has_family || has_address)
}

fn prefix_v4(address: [u8; 4], prefix: Option<u8>) -> [u8; 4] {
    let Some(bits) = prefix else { return address };
    let mask = u32::MAX << (32 - u32::from(bits.clamp(1, 32)));
    (u32::from_be_bytes(address) & mask).to_be_bytes()
}

fn prefix_v6(address: [u8; 16], prefix: Option<u8>) -> [u8; 16] {
    let Some(bits) = prefix else { return address };
    let mask = u128::MAX << (128 - 2 * u32::from(bits.clamp(1, 32)));
    (u128::from_be_bytes(address) & mask).to_be_bytes()
}

/// The labels of the registered domain that a name lies in: its public suffix and one label more,
/// by the Public Suffix List. The whole name if it has none, as public suffixes themselves.
fn registered(labels: &[u8]) -> &[u8] {
    // As text in the same places: a label's length byte becomes the dot ahead of it.
    let mut text = [0; NAME_MAX];
    let mut starts = [0_u8; NAME_MAX / 2 + 1];
    let (mut at, mut count) = (0, 0);
    while let Some(&length) = labels.get(at)
        && length > 0
        && let Some(label) = labels.get(at + 1..=at + usize::from(length))
        && let Some(start) = starts.get_mut(count)
    {
        *start = at as u8;
        text[at] = b'.';
        for (place, &byte) in text[at + 1..].iter_mut().zip(label) {
            // A dot inside a label ends none.
            *place = if byte == b'.' { b'_' } else { byte };
        }
        at += label.len() + 1;
        count += 1;
    }
    if count == 0 {
        return labels;
    }
    let Some(domain) = flowsieve_domains::registered(&text[1..at]) else {
        return labels;
    };
    let own = domain.split(|&byte| byte == b'.').count();
    let first = starts[count - own.min(count)];
    &labels[usize::from(first)..]
}

impl BatchBuilder for TopExtractor {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        match batch {
            TraceBatch::Packets { bytes, packets } => match (self.need, self.form) {
                (Need::Names, _) => out.packets(bytes, packets, |link, frame, out| {
                    let ip = self.decoder.decode(link, frame)?;
                    let innermost = self.inner.decode(link, frame)?;
                    self.messages(&ip, &innermost, out)
                }),
                (_, Form::Pair { reversed: false }) => {
                    out.packets(bytes, packets, |link, frame, out| {
                        let ip = self.decoder.decode(link, frame)?;
                        self.pair(ip.addresses, ip.bytes, false, out);
                        Ok(1)
                    });
                }
                (_, Form::Pair { reversed: true }) => {
                    out.packets(bytes, packets, |link, frame, out| {
                        let ip = self.decoder.decode(link, frame)?;
                        self.pair(ip.addresses, ip.bytes, true, out);
                        Ok(1)
                    });
                }
                (_, Form::Short | Form::Any) => {
                    out.packets(bytes, packets, |link, frame, out| {
                        let ip = self.decoder.decode(link, frame)?;
                        self.packet(&ip, out)
                    });
                }
            },
            TraceBatch::Log(log) => {
                out.records(&log, |entry, out| self.log_entry(&log, entry, out));
            }
        }
    }
}

/// A record's parts.
pub(crate) struct Record<'a> {
    /// Bytes of the packet.
    pub(crate) bytes: u32,
    pub(crate) key: &'a [u8],
    /// Key and other.
    pub(crate) element: &'a [u8],
}

/// Packets of a key that are no first sightings.
pub(crate) struct Repeats<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) packets: u64,
    /// Bytes of these packets.
    pub(crate) bytes: u64,
}

impl<'a> Record<'a> {
    /// Bytes of the packet.
    #[inline]
    pub(super) fn bytes_of(record: &[u8]) -> u32 {
        record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Those of bytes from elsewhere, if they are a record.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let &[_, _, _, _, low, high, ref element @ ..] = bytes else {
            return None;
        };
        let key = usize::from(u16::from_le_bytes([low, high]));
        // The root's name has no bytes.
        (key <= element.len().min(LONGEST_KEY)).then(|| Self::of(bytes))
    }

    #[inline]
    pub(crate) fn of(record: &'a [u8]) -> Self {
        let (head, element) = record.split_at(HEAD.min(record.len()));
        let &[a, b, c, d, low, high] = head else {
            return Self { bytes: 0, key: &[], element: &[] };
        };
        let key = usize::from(u16::from_le_bytes([low, high])).min(element.len());
        Self { bytes: u32::from_le_bytes([a, b, c, d]), key: &element[..key], element }
    }
}

/// A key as text: its fields, with commas between them.
pub(super) fn key_text(fields: &[Field], key: &[u8]) -> String {
    let has_address = fields.iter().any(|field| field.attribute.is_address());
    let (family, mut rest) = match key.split_first() {
        Some((&family, rest)) if has_address => (family, rest),
        _ => (0, key),
    };
    let length = |field: &Field| match field.attribute {
        Attribute::Source | Attribute::Destination if family == 4 => Some(4),
        Attribute::Source | Attribute::Destination => Some(16),
        Attribute::Protocol => Some(1),
        Attribute::SourcePort | Attribute::DestinationPort => Some(2),
        Attribute::Domain | Attribute::RegisteredDomain => None,
    };
    let fixed: usize = fields.iter().filter_map(length).sum();
    // There is at most one name, and it has what the others leave.
    let name = rest.len().saturating_sub(fixed);
    let mut texts = Vec::with_capacity(fields.len());
    for field in fields {
        let bytes = length(field).unwrap_or(name).min(rest.len());
        let (value, behind) = rest.split_at(bytes);
        rest = behind;
        texts.push(value_text(*field, value));
    }
    texts.join(",")
}

fn value_text(field: Field, value: &[u8]) -> String {
    let address: Option<(IpAddr, u8)> = match (field.attribute.is_address(), value) {
        (true, &[a, b, c, d]) => Some((Ipv4Addr::new(a, b, c, d).into(), 1)),
        (true, _) => {
            let octets: Option<[u8; 16]> = value.try_into().ok();
            octets.map(|octets| (Ipv6Addr::from(octets).into(), 2))
        }
        (false, _) => None,
    };
    match (address, field.prefix, value) {
        (Some((address, times)), Some(bits), _) => format!("{address}/{}", times * bits),
        (Some((address, _)), None, _) => address.to_string(),
        (None, _, &[high, low]) if field.attribute.is_port() => {
            u16::from_be_bytes([high, low]).to_string()
        }
        (None, _, &[protocol]) if field.attribute == Attribute::Protocol => protocol.to_string(),
        _ => dotted(value),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn labels(name: &str) -> Vec<u8> {
        let mut buffer = [0; NAME_MAX];
        labels_from_text(name.as_bytes(), &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn registered_domains_follow_the_public_suffix_list() {
        for (name, domain) in [
            ("www.example.com", "example.com"),
            ("example.com", "example.com"),
            ("a.b.c.example.co.uk", "example.co.uk"),
            ("com", "com"),
            ("co.uk", "co.uk"),
            ("printer", "printer"),
            ("a.home.invalid-tld", "home.invalid-tld"),
            ("user.github.io", "user.github.io"),
            ("www.user.github.io", "user.github.io"),
        ] {
            assert_eq!(dotted(registered(&labels(name))), domain, "{name}");
        }
        assert_eq!(registered(&[]), &[] as &[u8]);
        // A dot inside a label.
        let odd = [&[3][..], b"a.b", &[3], b"com"].concat();
        assert_eq!(registered(&odd), odd);
        let longest = [&[63][..], &[b'x'; 63]].concat().repeat(3);
        assert_eq!(registered(&longest), &longest[64..]);
        assert_eq!(registered(&[1, b'a'].repeat(127)), [1, b'a', 1, b'a']);
    }

    fn columns(by: &str, distinct: &str, values: &Values<'_>) -> ElementColumns {
        let fields = |text: &str| text.split(',').map(|field| field.parse().unwrap()).collect();
        let question = Question::new(fields(by), fields(distinct)).unwrap();
        let extractor = TopExtractor::new(&question, &Headers::default(), false, Digester::new(0));
        let mut out = ElementColumns::default();
        extractor.push::<LONG>(values, &mut out);
        let record = Record::of(out.keys.get(0));
        let text = key_text(question.by(), record.key);
        assert_eq!(record.bytes, values.bytes);
        assert!(record.element.starts_with(record.key));
        assert_eq!(text.split(',').count(), question.by().len());
        out
    }

    #[test]
    fn keys_are_read_back_as_text() {
        let name = labels("www.example.org");
        let mut values = Values {
            addresses: Addresses::V4 { source: [10, 1, 2, 3], destination: [192, 0, 2, 255] },
            protocol: 17,
            ports: (40_000, 53),
            name: &name,
            bytes: 77,
        };
        let key = |by: &str, distinct: &str, values: &Values<'_>| {
            let out = columns(by, distinct, values);
            let fields: Vec<Field> = by.split(',').map(|field| field.parse().unwrap()).collect();
            key_text(&fields, Record::of(out.keys.get(0)).key)
        };
        assert_eq!(key("src", "dst", &values), "10.1.2.3");
        assert_eq!(key("src/16,dst-port", "dst", &values), "10.1.0.0/16,53");
        assert_eq!(key("domain", "src", &values), "www.example.org");
        assert_eq!(key("src,domain2,proto", "dst", &values), "10.1.2.3,example.org,17");
        values.addresses = Addresses::V6 { source: [0x20; 16], destination: [0xfd; 16] };
        assert_eq!(key("src/24", "src", &values), "2020:2020:2020::/48");
        assert_eq!(
            key("dst,src-port", "domain", &values),
            "fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd,40000"
        );
        let long = [1, b'a'].repeat(127);
        values.name = &long;
        columns(
            "src/32,dst/32,src-port,dst-port,proto,domain",
            "src,dst,src-port,dst-port,proto,domain2",
            &values,
        );
    }

    #[test]
    fn short_elements_are_the_same_as_others() {
        let values = Values {
            addresses: Addresses::V4 { source: [10, 1, 2, 3], destination: [192, 0, 2, 255] },
            protocol: 17,
            ports: (40_000, 53),
            name: &[],
            bytes: 77,
        };
        for (by, distinct) in [
            ("src", "dst"),
            ("dst", "src"),
            ("dst-port", "src/24"),
            ("proto,src-port", "dst-port"),
            ("src/8,dst/30", "src-port,proto"),
            ("dst,src", "dst-port"),
        ] {
            let fields = |text: &str| text.split(',').map(|f| f.parse().unwrap()).collect();
            let question = Question::new(fields(by), fields(distinct)).unwrap();
            let digester = Digester::new(3);
            let extractor = TopExtractor::new(&question, &Headers::default(), false, digester);
            assert_ne!(extractor.form, Form::Any);
            let (mut short, mut long) = (ElementColumns::default(), ElementColumns::default());
            let ip = IpPacket {
                addresses: values.addresses,
                protocol: values.protocol,
                later_fragment: false,
                transport: &[156, 64, 0, 53],
                bytes: values.bytes,
                vlan: None,
            };
            match extractor.form {
                Form::Pair { reversed } => {
                    extractor.pair(ip.addresses, ip.bytes, reversed, &mut short);
                }
                _ => assert_eq!(extractor.packet(&ip, &mut short), Ok(1)),
            }
            extractor.push::<SHORT>(&values, &mut long);
            assert_eq!(short.keys.get(0), long.keys.get(0), "{by} {distinct}");
            assert_eq!(short.digests, long.digests);
            assert_eq!(short.attributes, long.attributes);
        }
    }

    #[test]
    fn pairs_of_ipv6_are_the_same_as_others() {
        let [mut source, destination] = [[0x20; 16], [0xfd; 16]];
        source[15] = 1;
        let values = Values {
            addresses: Addresses::V6 { source, destination },
            protocol: 0,
            ports: (0, 0),
            name: &[],
            bytes: 99,
        };
        for (by, distinct) in [("src", "dst"), ("dst", "src")] {
            let fields = |text: &str| vec![text.parse().unwrap()];
            let question = Question::new(fields(by), fields(distinct)).unwrap();
            let digester = Digester::new(3);
            let extractor = TopExtractor::new(&question, &Headers::default(), false, digester);
            let (mut pair, mut other) = (ElementColumns::default(), ElementColumns::default());
            extractor.pair(values.addresses, 99, by == "dst", &mut pair);
            extractor.push::<SHORT>(&values, &mut other);
            assert_eq!(pair.keys.get(0), other.keys.get(0), "{by}");
            assert_eq!(pair.digests, other.digests);
            assert_eq!(pair.attributes, other.attributes);
        }
    }

    /// Of both parts together, so that no two questions are mixed up and no two elements are one.
    #[test]
    fn digests_are_those_of_key_and_other() {
        let values = Values {
            addresses: Addresses::V4 { source: [1, 2, 3, 4], destination: [5, 6, 7, 8] },
            protocol: 6,
            ports: (1, 2),
            name: &[],
            bytes: 40,
        };
        let out = columns("src", "dst", &values);
        let digester = Digester::new(0);
        assert_eq!(out.digests[0], digester.digest(&[4, 1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(out.attributes[0], digester.digest(&[4, 1, 2, 3, 4]));
    }

    #[test]
    fn broken_records_have_nothing_in_them() {
        for record in [&[][..], &[1, 2, 3], &[0, 0, 0, 0, 9, 9], &[0, 0, 0, 0, 9, 9, 1]] {
            let record = Record::of(record);
            assert_eq!(record.key, record.element);
        }
    }
}
