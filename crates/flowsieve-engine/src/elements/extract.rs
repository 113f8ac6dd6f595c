//! From a packet, or a record of a log, to its elements.
//!
//! The digest of an element is that of its key's [encoding](super::key), and the digest of an
//! attribute is that of its bytes alone.

#![expect(
    clippy::inline_always,
    reason = "a key that goes through memory between two functions costs 5 ns a packet, measured"
)]

use super::batch::Columns;
use super::headers::{HeaderFields, HeaderReader, PacketDecoder};
use super::key::{LONGEST_KEY, ShortKey, is_short, prefixes, write};
use super::{Attribute, ElementBatch, ElementColumns, ElementKind, ElementRule};
use crate::decode::{Addresses, Headers, logged_addresses};
use crate::hashing::Digester;
use crate::inputs::BatchBuilder;
use crate::trace::{PacketRef, TraceBatch};

/// Turns packets into elements.
#[derive(Debug)]
pub struct Extractor {
    rule: ElementRule,
    reader: HeaderReader,
    /// How short keys of IPv4 packets begin; `None` if they are not short.
    short: Option<ShortKey>,
    /// The smaller end comes first.
    undirected: bool,
    columns: Columns,
    /// The column of addresses is wanted.
    addresses: bool,
    /// Among how many shards [`BatchBuilder::append_for_one`] divides elements.
    shards: u32,
}

impl Extractor {
    /// Returns an extractor for these elements. `attributes` and `keys` say whether these columns
    /// of [`ElementBatch`] are wanted.
    pub fn new(
        rule: ElementRule,
        headers: &Headers,
        digester: Digester,
        attributes: bool,
        keys: bool,
    ) -> Self {
        let packets = PacketDecoder::new(headers);
        Self {
            reader: HeaderReader::new(
                |is| rule.kind.any(is),
                rule.kind.needs_ports(),
                rule.undirected,
                packets,
                rule.queries_only,
            ),
            short: is_short(rule.kind.fields().iter()).then(|| match rule.kind.addresses() {
                0 => ShortKey::default(),
                _ => ShortKey::V4,
            }),
            undirected: rule.undirected && rule.kind.is_symmetric(),
            rule,
            columns: Columns { digester, attributes, keys },
            addresses: false,
            shards: 1,
        }
    }

    /// Divides elements among this many shards where several threads make batches for one.
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
            // One loop for each of these kinds, so that the choice is made once a batch.
            TraceBatch::Packets { bytes, packets } => match self.rule.kind {
                ElementKind::HOST_PAIR => out.packets(bytes, packets, |link, frame, out| {
                    let ip = self.reader.decode(link, frame)?;
                    self.push_pair(&HeaderFields::between(ip.addresses), out);
                    Ok(1)
                }),
                ElementKind::FLOW => out.packets(bytes, packets, |link, frame, out| {
                    let ip = self.reader.decode(link, frame)?;
                    let headers = HeaderFields {
                        protocol: ip.protocol,
                        ports: ip.ports().unwrap_or((0, 0)),
                        ..HeaderFields::between(ip.addresses)
                    };
                    self.push_flow(&headers, out);
                    Ok(1)
                }),
                ElementKind::SOURCE => self.extract_ends(true, bytes, packets, out),
                ElementKind::DESTINATION => self.extract_ends(false, bytes, packets, out),
                _ => out.packets(bytes, packets, |link, frame, out| {
                    self.reader.packet(link, frame, |headers| self.push(headers, out))
                }),
            },
            TraceBatch::Log(log) => out.records(&log, |entry, out| {
                self.reader.record(&log, entry, |headers| self.push(headers, out))
            }),
        }
    }

    /// Appends the addresses of each packet: of the header that counts, whatever the elements are.
    fn read_addresses(&self, batch: &TraceBatch<'_>, out: &mut Vec<Option<Addresses>>) {
        match batch {
            TraceBatch::Packets { bytes, packets } => out.extend(packets.iter().map(|packet| {
                let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                let ip = self.reader.decode(packet.link, frame).ok()?;
                Some(ip.addresses)
            })),
            TraceBatch::Log(log) => {
                out.extend(log.entries.iter().map(|entry| logged_addresses(entry).ok()));
            }
        }
    }

    #[inline(always)]
    fn push_pair(&self, headers: &HeaderFields<'_>, out: &mut ElementColumns) {
        match self.directed(*headers).addresses {
            Addresses::V4 { source, destination } => {
                let key = ShortKey::V4.address(source).address(destination);
                self.columns.push(out, &key.padded().to_le_bytes()[..9], &[1, 5, 9]);
            }
            Addresses::V6 { source, destination } => {
                let key: [u8; 33] = encode_v6(&[&source, &destination]);
                self.columns.push(out, &key, &[1, 17, 33]);
            }
        }
    }

    /// Appends elements of one address. Apart, so that the other loops stay small enough to be
    /// compiled as one.
    #[inline(never)]
    fn extract_ends(
        &self,
        is_source: bool,
        bytes: &[u8],
        packets: &[PacketRef],
        out: &mut ElementBatch,
    ) {
        out.packets(bytes, packets, |link, frame, out| {
            let ip = self.reader.decode(link, frame)?;
            self.push_end(ip.addresses, is_source, out);
            Ok(1)
        });
    }

    #[inline(always)]
    fn push_end(&self, addresses: Addresses, is_source: bool, out: &mut ElementColumns) {
        match addresses {
            Addresses::V4 { source, destination } => {
                let key = ShortKey::V4.address(if is_source { source } else { destination });
                self.columns.push(out, &key.padded().to_le_bytes()[..5], &[1, 5]);
            }
            Addresses::V6 { source, destination } => {
                let key: [u8; 17] = encode_v6(&[if is_source { &source } else { &destination }]);
                self.columns.push(out, &key, &[1, 17]);
            }
        }
    }

    #[inline(always)]
    fn push_flow(&self, headers: &HeaderFields<'_>, out: &mut ElementColumns) {
        let HeaderFields { addresses, protocol, ports, .. } = self.directed(*headers);
        match addresses {
            Addresses::V4 { source, destination } => {
                let key = ShortKey::V4.address(source).address(destination);
                let key = key.byte(protocol).number(ports.0).number(ports.1);
                let cuts = [1, 5, 9, 10, 12, 14];
                self.columns.push(out, &key.padded().to_le_bytes()[..14], &cuts);
            }
            Addresses::V6 { source, destination } => {
                let (from, to) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
                let parts: [&[u8]; 5] = [&source, &destination, &[protocol], &from, &to];
                let key: [u8; 38] = encode_v6(&parts);
                self.columns.push(out, &key, &[1, 17, 33, 34, 36, 38]);
            }
        }
    }

    /// Appends the element with these headers.
    #[inline]
    pub(super) fn push(&self, headers: &HeaderFields<'_>, out: &mut ElementColumns) {
        let kind = &self.rule.kind;
        let headers = self.directed(*headers);
        if let (Addresses::V4 { source, destination }, Some(begin)) =
            (headers.addresses, self.short)
        {
            let key = begin.fields(kind.fields(), &headers, [source, destination]);
            self.columns.push_key(out, kind, &key.padded().to_le_bytes()[..key.len()]);
        } else {
            let mut key = [0; LONGEST_KEY];
            let (end, _) = write(kind.fields(), &headers, false, 0, &mut key);
            self.columns.push_key(out, kind, &key[..end]);
        }
    }

    /// Returns the headers as they are, or the smaller end first if direction does not count. Ends
    /// are what the key has of them.
    #[inline(always)]
    fn directed<'a>(&self, headers: HeaderFields<'a>) -> HeaderFields<'a> {
        if !self.undirected {
            return headers;
        }
        let prefix = self.rule.kind.field(Attribute::Source).and_then(|field| field.prefix);
        let addresses = prefixes(headers.addresses, prefix);
        let has_ports = self.rule.kind.any(Attribute::is_port);
        let ports = if has_ports { headers.ports } else { (0, 0) };
        HeaderFields { addresses, ports, ..headers }.undirected()
    }
}

impl BatchBuilder for Extractor {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        self.extract(batch, out);
    }

    fn append_for_one(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        let before = out.filled();
        self.extract(batch, out);
        if self.shards > 1 {
            out.divide(self.shards, self.rule.kind.arity(), before);
        }
    }
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
