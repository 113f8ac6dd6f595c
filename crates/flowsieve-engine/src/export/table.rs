//! The distinct elements of one open slice, exact, in the order in which they were first seen.

use super::rows::{ExportRows, Left, Question};
use super::sightings::Sighting;
use crate::elements::{Attribute, ElementKind, NO_VLAN};
use crate::flows::{FlowKey, Upper};
use hashbrown::HashTable;
use std::hint::black_box;

/// Entries that a table begins with.
const FIRST_ENTRIES: usize = 1024;

/// Bytes of names that a table begins with.
const FIRST_NAMES: usize = 1 << 14;

/// Entries from which a look leaves the caches near the processor.
const FAR_FROM_ENTRIES: usize = 1 << 12;

/// An element with its packets so far.
#[derive(Debug)]
struct Entry {
    key: FlowKey,
    is_reversed: bool,
    hash: u64,
    start_ns: i64,
    packets: u64,
    bytes: u64,
    tcp_flags: Option<u8>,
    vlan: Option<u16>,
    upper: Upper,
    question: Option<(Question, Name)>,
}

/// Where a name stands among the table's.
#[derive(Clone, Copy, Debug)]
struct Name {
    start: u32,
    length: u8,
}

/// The elements of a slice.
#[derive(Debug, Default)]
pub(super) struct SliceTable {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    names: Vec<u8>,
}

impl SliceTable {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Memory that it has.
    pub(super) fn bytes(&self) -> u64 {
        let entries = self.entries.capacity() * size_of::<Entry>();
        (entries + self.index.allocation_size() + self.names.capacity()) as u64
    }

    /// Memory that it takes in addition, while it grows to have room for another element with a
    /// name of this length. What grows moves, so it is there twice for a while.
    pub(super) fn growth_bytes(&self, name: usize) -> u64 {
        let mut bytes = 0;
        if self.entries.len() == self.entries.capacity() {
            bytes += self.next_entries() * size_of::<Entry>();
        }
        if self.index.len() == self.index.capacity() {
            bytes += (2 * self.index.allocation_size()).max(FIRST_ENTRIES * 8);
        }
        if self.names.len() + name > self.names.capacity() {
            bytes += self.next_names();
        }
        bytes as u64
    }

    fn next_entries(&self) -> usize {
        (2 * self.entries.capacity()).max(FIRST_ENTRIES)
    }

    fn next_names(&self) -> usize {
        (2 * self.names.capacity()).max(FIRST_NAMES)
    }

    /// Whether there can be another element: numbers have 32 bits.
    pub(super) fn has_numbers(&self) -> bool {
        const MOST: usize = u32::MAX as usize - 256;
        self.entries.len() < MOST && self.names.len() < MOST
    }

    /// Reads ahead the memory that these sightings need: these reads do not wait for each other.
    pub(super) fn prefetch(&self, sightings: &[Sighting]) {
        if self.entries.len() < FAR_FROM_ENTRIES {
            return;
        }
        let places = sightings.iter().map(|sighting| {
            let place = self.index.find(sighting.hash, |_| true);
            place.map_or(0, |&place| u64::from(place))
        });
        black_box(places.fold(0, |all, place| all ^ place));
        let entries = sightings.iter().map(|sighting| {
            let place = self.index.find(sighting.hash, |_| true);
            place.map_or(0, |&place| {
                let entry = &self.entries[place as usize];
                entry.hash ^ entry.start_ns.cast_unsigned()
            })
        });
        black_box(entries.fold(0, |all, word| all ^ word));
    }

    /// Adds a packet to its element; false if that is not here. The name is part of the element if
    /// `named`.
    #[inline]
    pub(super) fn add(
        &mut self,
        time_ns: i64,
        sighting: &Sighting,
        name: Option<&[u8]>,
        named: bool,
    ) -> bool {
        let found = self.index.find(sighting.hash, |&at| {
            let entry = &self.entries[at as usize];
            entry.hash == sighting.hash
                && entry.key == sighting.key
                && (!named || self.name_of(entry) == name)
        });
        let Some(&at) = found else { return false };
        let entry = &mut self.entries[at as usize];
        entry.start_ns = entry.start_ns.min(time_ns);
        entry.packets += 1;
        entry.bytes += u64::from(sighting.bytes);
        if let Some(flags) = sighting.tcp_flags {
            *entry.tcp_flags.get_or_insert(0) |= flags;
        }
        true
    }

    /// The element lacks a question that this packet has: names that come later count too, as in
    /// flows.
    pub(super) fn lacks_question(&self, sighting: &Sighting) -> Option<usize> {
        let found =
            self.index.find(sighting.hash, |&at| self.entries[at as usize].key == sighting.key);
        let at = *found? as usize;
        self.entries[at].question.is_none().then_some(at)
    }

    /// Gives an element a question.
    pub(super) fn set_question(&mut self, at: usize, question: Question, name: &[u8]) {
        let name = self.push_name(name);
        self.entries[at].question = Some((question, name));
    }

    /// Begins an element, which is not here.
    pub(super) fn begin(&mut self, time_ns: i64, sighting: &Sighting, name: Option<&[u8]>) {
        let question = match (sighting.question, name) {
            (Some((question, _)), Some(name)) => Some((question, self.push_name(name))),
            _ => None,
        };
        let at = self.entries.len() as u32;
        if self.entries.len() == self.entries.capacity() {
            let more = self.next_entries() - self.entries.len();
            self.entries.reserve_exact(more);
        }
        self.entries.push(Entry {
            key: sighting.key,
            is_reversed: sighting.is_reversed,
            hash: sighting.hash,
            start_ns: time_ns,
            packets: 1,
            bytes: u64::from(sighting.bytes),
            tcp_flags: sighting.tcp_flags,
            vlan: sighting.vlan,
            upper: sighting.upper,
            question,
        });
        let entries = &self.entries;
        self.index.insert_unique(sighting.hash, at, |&at| entries[at as usize].hash);
    }

    fn push_name(&mut self, name: &[u8]) -> Name {
        if self.names.len() + name.len() > self.names.capacity() {
            let more = self.next_names() - self.names.len();
            self.names.reserve_exact(more);
        }
        let start = self.names.len() as u32;
        self.names.extend_from_slice(name);
        Name { start, length: name.len() as u8 }
    }

    fn name_of(&self, entry: &Entry) -> Option<&[u8]> {
        let (_, name) = entry.question?;
        Some(&self.names[name.start as usize..][..name.length.into()])
    }

    /// Appends the elements with these numbers to `rows`.
    pub(super) fn write(
        &self,
        range: std::ops::Range<usize>,
        kind: ElementKind,
        left: Left,
        rows: &mut ExportRows,
    ) {
        for entry in &self.entries[range] {
            entry.write(kind, self.name_of(entry), left, rows);
        }
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn write(&self, kind: ElementKind, name: Option<&[u8]>, left: Left, rows: &mut ExportRows) {
        let key = if self.is_reversed { self.key.reversed() } else { self.key };
        let (source, destination) = key.addresses().ends();
        let ports = key.ports();
        rows.start_ns.push(self.start_ns);
        rows.packets.push(self.packets);
        rows.bytes.push(self.bytes);
        rows.left.push(left);
        for field in kind.fields() {
            match field.attribute {
                Attribute::Source => rows.src.push_address(source, field.prefix),
                Attribute::Destination => rows.dst.push_address(destination, field.prefix),
                Attribute::Protocol => rows.proto.push(key.protocol()),
                Attribute::SourcePort => rows.src_port.push(ports.0),
                Attribute::DestinationPort => rows.dst_port.push(ports.1),
                Attribute::Vlan => rows.vlan.push(Some(key.vlan()).filter(|&vlan| vlan != NO_VLAN)),
                // With the question.
                Attribute::Domain | Attribute::RegisteredDomain => {}
            }
        }
        let is_flow = kind == ElementKind::FLOW;
        if is_flow || kind.has_name() {
            let question = self.question.map(|(question, _)| question);
            rows.push_question(question.zip(name));
        }
        if is_flow {
            rows.tcp_flags.push(self.tcp_flags);
            rows.vlan.push(self.vlan);
            rows.push_community_id(key.addresses(), key.protocol(), self.upper);
        }
    }
}
