//! Elements by column: what a decode thread hands on.

use crate::decode::{Addresses, Skip};
use crate::hashing::{Digest, Digester};
use crate::memory::fetch;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A run of packets in trace order, and their elements.
///
/// A packet gives one element as a rule; the exceptions are listed, so that the rule costs nothing.
#[derive(Debug, Default)]
pub struct ElementBatch {
    /// Time of each packet in nanoseconds since the epoch.
    pub times_ns: Vec<i64>,
    /// Packets without an element, by their number in the batch, ascending.
    pub skipped: Vec<(u32, Skip)>,
    /// Packets that gave more than one (DNS over TCP), by their number, ascending: once for each
    /// further element.
    pub further: Vec<u32>,
    /// The elements, in the order of their packets.
    pub elements: ElementColumns,
    /// Addresses of each packet, none if it has none that can be read; empty if not wanted.
    pub addresses: Vec<Option<Addresses>>,
}

/// Elements by column.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct ElementColumns {
    /// Digest of each element.
    pub digests: Vec<Digest>,
    /// Digests of each element's attributes, one element after the other; empty if not wanted.
    pub attributes: Vec<Digest>,
    /// The elements' byte encodings, for exact counting; empty if not wanted.
    pub keys: Keys,
}

/// Byte strings, one after the other.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    /// Appends one.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Appends one of the first `length` bytes of `key`: as many as are there are moved, which takes less time than
    /// moving only those that count.
    #[inline]
    pub(crate) fn push_padded<const N: usize>(&mut self, key: &[u8; N], length: usize) {
        let end = self.bytes.len() + length.min(N);
        self.bytes.extend_from_slice(key);
        self.bytes.truncate(end);
        self.ends.push(end as u32);
    }

    /// Appends the `index`-th of others.
    #[inline]
    pub(crate) fn push_from(&mut self, from: &Self, index: usize) {
        let key = from.get(index);
        let start = from.ends[index] as usize - key.len();
        match from.bytes[start..].first_chunk::<32>() {
            Some(padded) if key.len() <= padded.len() => self.push_padded(padded, key.len()),
            _ => self.push(key),
        }
    }

    /// Appends those of others with these numbers.
    fn extend_from(&mut self, from: &Self, range: Range<usize>) {
        let place = |number: usize| number.checked_sub(1).map_or(0, |before| from.ends[before]);
        let (start, end) = (place(range.start), place(range.end));
        let moved = (self.bytes.len() as u32).wrapping_sub(start);
        self.bytes
            .extend_from_slice(&from.bytes[start as usize..end as usize]);
        let ends = from.ends[range].iter();
        self.ends.extend(ends.map(|end| end.wrapping_add(moved)));
    }

    /// The `index`-th.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// [`fetch`] of some of them; there need not be this many.
    fn fetch(&self, keys: Range<usize>) {
        let place = |key: usize| {
            let before = key.min(self.len()).checked_sub(1);
            before.map_or(0, |before| self.ends[before] as usize)
        };
        fetch(&self.ends, &keys, u64::from);
        fetch(
            &self.bytes,
            &(place(keys.start)..place(keys.end)),
            u64::from,
        );
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl ElementColumns {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Appends an element of other columns, of this many attributes.
    #[inline]
    pub(crate) fn push_from(&mut self, from: &Self, element: usize, arity: usize) {
        self.digests.push(from.digests[element]);
        if !from.attributes.is_empty() {
            let attributes = &from.attributes[element * arity..(element + 1) * arity];
            self.attributes.extend_from_slice(attributes);
        }
        if !from.keys.is_empty() {
            self.keys.push_from(&from.keys, element);
        }
    }

    /// [`fetch`] of some elements, of this many attributes; there need not be this many.
    pub(crate) fn fetch(&self, elements: Range<usize>, arity: usize) {
        let attributes = elements.start * arity..elements.end * arity;
        fetch(&self.digests, &elements, Digest::value);
        fetch(&self.attributes, &attributes, Digest::value);
        self.keys.fetch(elements);
    }

    /// The same for many, one after the other.
    pub(crate) fn extend_from(&mut self, from: &Self, elements: Range<usize>, arity: usize) {
        self.digests
            .extend_from_slice(&from.digests[elements.clone()]);
        if !from.attributes.is_empty() {
            let attributes = elements.start * arity..elements.end * arity;
            self.attributes
                .extend_from_slice(&from.attributes[attributes]);
        }
        if !from.keys.is_empty() {
            self.keys.extend_from(&from.keys, elements);
        }
    }

    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> usize {
        (self.digests.len() + self.attributes.len()) * size_of::<Digest>()
            + self.keys.bytes.len()
            + self.keys.ends.len() * size_of::<u32>()
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.digests.clear();
        self.attributes.clear();
        self.keys.clear();
    }
}

impl ElementBatch {
    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.times_ns.clear();
        self.skipped.clear();
        self.further.clear();
        self.elements.clear();
        self.addresses.clear();
    }
}

/// Which columns are wanted, and the digester that fills them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) digester: Digester,
    pub(super) attributes: bool,
    pub(super) keys: bool,
}

impl Columns {
    /// Appends an element encoded as `key`, whose attributes stand one after the other between the
    /// `cuts`.
    #[expect(
        clippy::inline_always,
        reason = "so that keys of fixed length are digested as such"
    )]
    #[inline(always)]
    pub(super) fn push(self, to: &mut ElementColumns, key: &[u8], cuts: &[usize]) {
        to.digests.push(self.digester.digest(key));
        if self.attributes {
            to.attributes.extend(
                cuts.windows(2)
                    .map(|cut| self.digester.digest(&key[cut[0]..cut[1]])),
            );
        }
        if self.keys {
            to.keys.push(key);
        }
    }
}
