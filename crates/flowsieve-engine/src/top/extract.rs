//! From a packet, or a record of a log, to its elements: a key, and one of the others that it has.
//!
//! # Encoding
//!
//! ```text
//!     bytes of the packet (4) │ length of the key (2) │ key │ other
//! ```
//!
//! Key and other are encoded as keys are everywhere; the family stands ahead of the first of them
//! that has an address. An element's digest is that of key and other, and its only attribute is the
//! digest of the key.

use super::plan::{Question, TopPlan};
use crate::decode::Addresses;
use crate::elements::{
    Attribute, ElementBatch, ElementColumns, Field, HeaderFields, HeaderReader, LONGEST_KEY,
    LONGEST_NAMELESS_KEY, PacketDecoder, ShortKey, has_address, is_short, write,
};
use crate::hashing::Digester;
use crate::inputs::BatchBuilder;
use crate::trace::TraceBatch;

/// Bytes ahead of the key.
const HEAD: usize = 6;

/// Longest record without a name.
const SHORT: usize = HEAD + 2 * LONGEST_NAMELESS_KEY;

/// Longest record: with a name in each part.
const LONG: usize = HEAD + 2 * LONGEST_KEY;

/// Turns packets into elements of a question.
#[derive(Debug)]
pub(crate) struct TopExtractor {
    question: Question,
    reader: HeaderReader,
    form: Form,
    digester: Digester,
}

/// How elements of IPv4 packets are made: most questions have few forms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// The destinations of each source, or the other way round.
    Pair {
        reversed: bool,
    },
    /// They fit into 16 bytes.
    Short,
    Any,
}

impl TopExtractor {
    /// Turns packets into elements of the question of this plan.
    pub(crate) fn new(plan: &TopPlan) -> Self {
        Self::of_question(
            &plan.question,
            PacketDecoder::new(&plan.trace.headers),
            plan.queries_only,
            Digester::new(plan.seed),
        )
    }

    fn of_question(
        question: &Question,
        packets: PacketDecoder,
        queries_only: bool,
        digester: Digester,
    ) -> Self {
        let needs_ports = question.any(Attribute::is_port);
        let any = |is: fn(Attribute) -> bool| question.any(is);
        Self {
            reader: HeaderReader::new(any, needs_ports, false, packets, queries_only),
            form: Form::new(question),
            question: question.clone(),
            digester,
        }
    }

    /// Appends the element with these headers.
    #[inline]
    pub(super) fn push(&self, headers: &HeaderFields<'_>, out: &mut ElementColumns) {
        match (headers.addresses, self.form) {
            (_, Form::Pair { reversed }) => {
                self.push_pair(headers.addresses, headers.bytes, reversed, out);
            }
            (Addresses::V4 { source, destination }, Form::Short) => {
                self.push_short(headers, [source, destination], out);
            }
            _ if self.question.is_about_dns() => self.push_any::<LONG>(headers, out),
            _ => self.push_any::<SHORT>(headers, out),
        }
    }

    /// Appends a source and its destination, or the other way round.
    #[expect(clippy::inline_always, reason = "in a loop of its own")]
    #[inline(always)]
    fn push_pair(
        &self,
        addresses: Addresses,
        bytes: u32,
        reversed: bool,
        out: &mut ElementColumns,
    ) {
        let addresses = if reversed { addresses.reversed() } else { addresses };
        match addresses {
            Addresses::V4 { source: key, destination: other } => {
                self.push_register(bytes, ShortKey::V4.address(key).address(other), 5, out);
            }
            Addresses::V6 { source: key, destination: other } => {
                let mut record = [6; HEAD + 33];
                record[..4].copy_from_slice(&bytes.to_le_bytes());
                record[4..HEAD].copy_from_slice(&17_u16.to_le_bytes());
                record[HEAD + 1..][..16].copy_from_slice(&key);
                record[HEAD + 17..].copy_from_slice(&other);
                self.push_record(&record, HEAD + 17, out);
            }
        }
    }

    /// Appends an element without a name that fits into a register.
    #[inline]
    fn push_short(
        &self,
        headers: &HeaderFields<'_>,
        addresses: [[u8; 4]; 2],
        out: &mut ElementColumns,
    ) {
        let (by, distinct) = (self.question.by(), self.question.distinct());
        let in_key = has_address(by);
        let element = if in_key { ShortKey::V4 } else { ShortKey::default() };
        let element = element.fields(by, headers, addresses);
        let key = element.len();
        let element = if !in_key && has_address(distinct) { element.byte(4) } else { element };
        self.push_register(headers.bytes, element.fields(distinct, headers, addresses), key, out);
    }

    /// Appends an element whose first `key` bytes are the key.
    #[expect(clippy::inline_always, reason = "so that keys of fixed length are digested as such")]
    #[inline(always)]
    fn push_register(&self, bytes: u32, element: ShortKey, key: usize, out: &mut ElementColumns) {
        let all = element.len();
        let element = element.padded().to_le_bytes();
        out.digests.push(self.digester.digest(&element[..all]));
        out.attributes.push(self.digester.digest(&element[..key]));
        let head = u128::from(bytes) | (key as u128) << 32;
        let mut record = [0; 32];
        record[..16].copy_from_slice(&head.to_le_bytes());
        record[HEAD..HEAD + 16].copy_from_slice(&element);
        out.keys.push_padded(&record, HEAD + all);
    }

    /// Appends any element, whose record has at most N bytes.
    #[inline]
    fn push_any<const N: usize>(&self, headers: &HeaderFields<'_>, out: &mut ElementColumns) {
        let mut record = [0; N];
        record[..4].copy_from_slice(&headers.bytes.to_le_bytes());
        let (behind_key, has_family) = write(self.question.by(), headers, false, HEAD, &mut record);
        let (end, _) =
            write(self.question.distinct(), headers, has_family, behind_key, &mut record);
        let key = (behind_key - HEAD) as u16;
        record[4..HEAD].copy_from_slice(&key.to_le_bytes());
        self.push_record(&record[..end], behind_key, out);
    }

    /// Appends a record whose key ends at place `behind_key`.
    #[inline]
    fn push_record(&self, record: &[u8], behind_key: usize, out: &mut ElementColumns) {
        out.digests.push(self.digester.digest(&record[HEAD..]));
        out.attributes.push(self.digester.digest(&record[HEAD..behind_key]));
        out.keys.push(record);
    }
}

impl Form {
    fn new(question: &Question) -> Self {
        let whole = |attribute| [Field::whole(attribute)];
        let ends = [Attribute::Source, Attribute::Destination].map(whole);
        let (by, distinct) = (question.by(), question.distinct());
        for (reversed, key, other) in [(false, 0, 1), (true, 1, 0)] {
            if by == ends[key] && distinct == ends[other] {
                return Self::Pair { reversed };
            }
        }
        if is_short(by.iter().chain(distinct)) { Self::Short } else { Self::Any }
    }
}

impl BatchBuilder for TopExtractor {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        match batch {
            // One loop for each direction of pairs, so that the choice is made once a batch.
            TraceBatch::Packets { bytes, packets } => match self.form {
                Form::Pair { reversed: false } => {
                    out.packets(bytes, packets, |link, frame, out| {
                        let ip = self.reader.decode(link, frame)?;
                        self.push_pair(ip.addresses, ip.bytes, false, out);
                        Ok(1)
                    });
                }
                Form::Pair { reversed: true } => out.packets(bytes, packets, |link, frame, out| {
                    let ip = self.reader.decode(link, frame)?;
                    self.push_pair(ip.addresses, ip.bytes, true, out);
                    Ok(1)
                }),
                Form::Short | Form::Any => out.packets(bytes, packets, |link, frame, out| {
                    self.reader.packet(link, frame, |headers| self.push(headers, out))
                }),
            },
            TraceBatch::Log(log) => out.records(&log, |entry, out| {
                self.reader.record(&log, entry, |headers| self.push(headers, out))
            }),
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
    /// Returns the bytes of the packet.
    #[inline]
    pub(super) fn bytes_of(record: &[u8]) -> u32 {
        record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Reads a record from elsewhere; `None` if the bytes are none.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let &[_, _, _, _, low, high, ref element @ ..] = bytes else { return None };
        let key = usize::from(u16::from_le_bytes([low, high]));
        // The root's name has no bytes.
        (key <= element.len().min(LONGEST_KEY)).then(|| Self::read(bytes))
    }

    #[inline]
    pub(crate) fn read(record: &'a [u8]) -> Self {
        let (head, element) = record.split_at(HEAD.min(record.len()));
        let &[a, b, c, d, low, high] = head else {
            return Self { bytes: 0, key: &[], element: &[] };
        };
        let key = usize::from(u16::from_le_bytes([low, high])).min(element.len());
        Self { bytes: u32::from_le_bytes([a, b, c, d]), key: &element[..key], element }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::{Headers, NAME_MAX, labels_from_text};
    use crate::elements::key_text;

    fn labels(name: &str) -> Vec<u8> {
        let mut buffer = [0; NAME_MAX];
        labels_from_text(name.as_bytes(), &mut buffer).unwrap().to_vec()
    }

    fn extractor(by: &str, distinct: &str, seed: u64) -> TopExtractor {
        let fields = |text: &str| text.split(',').map(|field| field.parse().unwrap()).collect();
        let question = Question::new(fields(by), fields(distinct)).unwrap();
        let packets = PacketDecoder::new(&Headers::default());
        TopExtractor::of_question(&question, packets, false, Digester::new(seed))
    }

    fn columns(by: &str, distinct: &str, headers: &HeaderFields<'_>) -> ElementColumns {
        let extractor = extractor(by, distinct, 0);
        let mut out = ElementColumns::default();
        extractor.push_any::<LONG>(headers, &mut out);
        let record = Record::read(out.keys.get(0));
        let by = extractor.question.by();
        let text = key_text(by, record.key);
        assert_eq!(record.bytes, headers.bytes);
        assert!(record.element.starts_with(record.key));
        assert_eq!(text.split(',').count(), by.len());
        out
    }

    #[test]
    fn keys_are_read_back_as_text() {
        let name = labels("www.example.org");
        let mut values = HeaderFields {
            addresses: Addresses::V4 { source: [10, 1, 2, 3], destination: [192, 0, 2, 255] },
            protocol: 17,
            ports: (40_000, 53),
            vlan: Some(7),
            name: &name,
            bytes: 77,
        };
        let key = |by: &str, distinct: &str, headers: &HeaderFields<'_>| {
            let out = columns(by, distinct, headers);
            let fields: Vec<Field> = by.split(',').map(|field| field.parse().unwrap()).collect();
            key_text(&fields, Record::read(out.keys.get(0)).key)
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
            "src/32,dst/32,src-port,dst-port,proto,vlan,domain",
            "src,dst,src-port,dst-port,proto,vlan,domain2",
            &values,
        );
    }

    #[test]
    fn short_elements_are_the_same_as_others() {
        let values = HeaderFields {
            addresses: Addresses::V4 { source: [10, 1, 2, 3], destination: [192, 0, 2, 255] },
            protocol: 17,
            ports: (40_000, 53),
            vlan: Some(7),
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
            ("vlan", "dst,proto"),
        ] {
            let extractor = extractor(by, distinct, 3);
            assert_ne!(extractor.form, Form::Any);
            let (mut short, mut long) = (ElementColumns::default(), ElementColumns::default());
            extractor.push(&values, &mut short);
            extractor.push_any::<SHORT>(&values, &mut long);
            assert_eq!(short.keys.get(0), long.keys.get(0), "{by} {distinct}");
            assert_eq!(short.digests, long.digests);
            assert_eq!(short.attributes, long.attributes);
        }
    }

    #[test]
    fn pairs_of_ipv6_are_the_same_as_others() {
        let [mut source, destination] = [[0x20; 16], [0xfd; 16]];
        source[15] = 1;
        let values = HeaderFields {
            addresses: Addresses::V6 { source, destination },
            protocol: 0,
            ports: (0, 0),
            vlan: None,
            name: &[],
            bytes: 99,
        };
        for (by, distinct) in [("src", "dst"), ("dst", "src")] {
            let extractor = extractor(by, distinct, 3);
            let (mut pair, mut other) = (ElementColumns::default(), ElementColumns::default());
            extractor.push(&values, &mut pair);
            extractor.push_any::<SHORT>(&values, &mut other);
            assert_eq!(pair.keys.get(0), other.keys.get(0), "{by}");
            assert_eq!(pair.digests, other.digests);
            assert_eq!(pair.attributes, other.attributes);
        }
    }

    /// Digests are of both parts together, so that no two questions are mixed up and no two elements are one.
    #[test]
    fn digests_are_those_of_key_and_other() {
        let values = HeaderFields {
            addresses: Addresses::V4 { source: [1, 2, 3, 4], destination: [5, 6, 7, 8] },
            protocol: 6,
            ports: (1, 2),
            vlan: None,
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
            let record = Record::read(record);
            assert_eq!(record.key, record.element);
        }
    }
}
