//! Elements by column: the batches that decode threads make.

use super::ElementKind;
use crate::decode::{Addresses, Skip};
use crate::hashing::{Digest, Digester, shard_of};
use crate::inputs::Batch;
use crate::memory::prefetch;
use crate::trace::{LinkType, LogBatch, LogEntry, PacketRef};
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
    /// Addresses of each packet, `None` if they cannot be read; empty if not wanted.
    pub addresses: Vec<Option<Addresses>>,
    /// The first and the last time, if the elements were divided among shards.
    span_ns: Option<(i64, i64)>,
    /// The elements by shard, if they were divided.
    shards: Vec<ShardElements>,
}

/// The elements of a batch that belong to one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardElements {
    pub(crate) columns: ElementColumns,
    /// Number in the batch of each element's packet, ascending.
    packets: Vec<u32>,
    /// Elements of packets that were consumed.
    taken: usize,
}

/// Lengths of a batch's lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    packets: usize,
    skipped: usize,
    further: usize,
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

/// Bytes that are moved at once when a string of another list is appended.
const PADDED: usize = 32;

impl Keys {
    /// Appends a string.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Appends the first `length` bytes of `key`. All bytes are moved, which takes less time than
    /// moving a variable number of them.
    #[inline]
    pub(crate) fn push_padded<const N: usize>(&mut self, key: &[u8; N], length: usize) {
        let end = self.bytes.len() + length.min(N);
        self.bytes.extend_from_slice(key);
        self.bytes.truncate(end);
        self.ends.push(end as u32);
    }

    /// Appends string `index` of another list.
    #[inline]
    pub(crate) fn push_from(&mut self, from: &Self, index: usize) {
        let key = from.get(index);
        let start = from.ends[index] as usize - key.len();
        match from.bytes[start..].first_chunk::<PADDED>() {
            Some(padded) if key.len() <= padded.len() => self.push_padded(padded, key.len()),
            _ => self.push(key),
        }
    }

    /// Appends these strings of another list.
    fn extend_from(&mut self, from: &Self, range: Range<usize>) {
        let place = |number: usize| number.checked_sub(1).map_or(0, |before| from.ends[before]);
        let (start, end) = (place(range.start), place(range.end));
        let moved = (self.bytes.len() as u32).wrapping_sub(start);
        self.bytes.extend_from_slice(&from.bytes[start as usize..end as usize]);
        let ends = from.ends[range].iter();
        self.ends.extend(ends.map(|end| end.wrapping_add(moved)));
    }

    /// The `index`-th.
    #[inline]
    #[doc(hidden)]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// [`prefetch`] of some strings; there may be fewer.
    fn prefetch(&self, keys: Range<usize>) {
        let place = |key: usize| {
            let before = key.min(self.len()).checked_sub(1);
            before.map_or(0, |before| self.ends[before] as usize)
        };
        prefetch(&self.ends, &keys, u64::from);
        prefetch(&self.bytes, &(place(keys.start)..place(keys.end)), u64::from);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// Their number.
    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it is empty.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all of them, and of their ends.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<u32>()
    }

    /// Removes all and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl ElementColumns {
    /// Number of elements.
    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether it is empty.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Appends an element of other columns, which has `arity` attributes.
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

    /// [`prefetch`] of some elements, each of `arity` attributes; there may be fewer.
    pub(crate) fn prefetch(&self, elements: Range<usize>, arity: usize) {
        let attributes = elements.start * arity..elements.end * arity;
        prefetch(&self.digests, &elements, Digest::value);
        prefetch(&self.attributes, &attributes, Digest::value);
        self.keys.prefetch(elements);
    }

    /// Appends consecutive elements of other columns.
    pub(crate) fn extend_from(&mut self, from: &Self, elements: Range<usize>, arity: usize) {
        self.digests.extend_from_slice(&from.digests[elements.clone()]);
        if !from.attributes.is_empty() {
            let attributes = elements.start * arity..elements.end * arity;
            self.attributes.extend_from_slice(&from.attributes[attributes]);
        }
        if !from.keys.is_empty() {
            self.keys.extend_from(&from.keys, elements);
        }
    }

    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> usize {
        (self.digests.len() + self.attributes.len()) * size_of::<Digest>() + self.keys.bytes()
    }

    /// Removes all and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.digests.clear();
        self.attributes.clear();
        self.keys.clear();
    }
}

impl ElementBatch {
    /// Appends packets, and returns the number of the first.
    pub(crate) fn append_packets(&mut self, times_ns: &[i64], skipped: &[(u32, Skip)]) -> u32 {
        let first = self.times_ns.len() as u32;
        self.times_ns.extend(times_ns);
        self.skipped.extend(skipped.iter().map(|&(packet, skip)| (first + packet, skip)));
        first
    }

    /// Removes all and keeps the memory.
    #[doc(hidden)]
    pub fn clear(&mut self) {
        self.times_ns.clear();
        self.skipped.clear();
        self.further.clear();
        self.elements.clear();
        self.addresses.clear();
        self.span_ns = None;
        self.shards.iter_mut().for_each(ShardElements::clear);
    }

    /// Returns the first and the last time, if the elements were divided.
    pub(crate) const fn span_ns(&self) -> Option<(i64, i64)> {
        self.span_ns
    }

    /// Returns the elements by shard, if they were divided.
    pub(crate) fn shards(&mut self) -> Option<&mut [ShardElements]> {
        self.span_ns.map(|_| &mut self.shards[..])
    }

    pub(crate) fn filled(&self) -> Filled {
        Filled {
            packets: self.times_ns.len(),
            skipped: self.skipped.len(),
            further: self.further.len(),
        }
    }

    /// Divides the elements of the packets behind `before` among shards. Each element has `arity`
    /// attributes.
    pub(crate) fn divide(&mut self, shards: u32, arity: usize, before: Filled) {
        let times_ns = &self.times_ns[before.packets..];
        let (Some(&first_ns), Some(&last_ns)) = (times_ns.iter().min(), times_ns.iter().max())
        else {
            return;
        };
        let (first, last) = self.span_ns.unwrap_or((first_ns, last_ns));
        self.span_ns = Some((first.min(first_ns), last.max(last_ns)));
        self.shards.resize_with(shards as usize, ShardElements::default);
        let mut skipped = self.skipped[before.skipped..].iter().peekable();
        let mut further = self.further[before.further..].iter().peekable();
        let mut packet = before.packets as u32;
        let from = &self.elements;
        // Once, and not for each element.
        let with_attributes = !from.attributes.is_empty();
        let with_keys = !from.keys.is_empty();
        for (element, &digest) in from.digests.iter().enumerate() {
            while skipped.next_if(|&&(number, _)| number == packet).is_some() {
                packet += 1;
            }
            let to = &mut self.shards[shard_of(digest, u64::from(shards))];
            to.packets.push(packet);
            to.columns.digests.push(digest);
            if with_attributes {
                let attributes = &from.attributes[element * arity..(element + 1) * arity];
                to.columns.attributes.extend_from_slice(attributes);
            }
            if with_keys {
                to.columns.keys.push_from(&from.keys, element);
            }
            if further.next_if_eq(&&packet).is_none() {
                packet += 1;
            }
        }
        self.elements.clear();
    }

    /// Appends packets; `extract` appends the elements of one and returns their number.
    #[expect(
        clippy::inline_always,
        reason = "one loop a kind, so that the choice is made once a batch and not once a packet"
    )]
    #[inline(always)]
    pub(crate) fn packets(
        &mut self,
        bytes: &[u8],
        packets: &[PacketRef],
        extract: impl Fn(LinkType, &[u8], &mut ElementColumns) -> Result<u32, Skip>,
    ) {
        let first = self.times_ns.len() as u32;
        let times = packets.iter().map(|packet| packet.time_ns);
        self.times_ns.extend(times);
        for (number, packet) in (first..).zip(packets) {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            match extract(packet.link, frame, &mut self.elements) {
                Ok(1) => {}
                Ok(elements) => self.further.extend((1..elements).map(|_| number)),
                Err(skip) => self.skipped.push((number, skip)),
            }
        }
    }

    /// Appends the records of a log in the same way.
    pub(crate) fn records(
        &mut self,
        log: &LogBatch<'_>,
        extract: impl Fn(&LogEntry, &mut ElementColumns) -> Result<u32, Skip>,
    ) {
        for entry in log.entries {
            let number = self.times_ns.len() as u32;
            self.times_ns.push(entry.time_ns);
            match extract(entry, &mut self.elements) {
                Ok(elements) => self.further.extend((1..elements).map(|_| number)),
                Err(skip) => self.skipped.push((number, skip)),
            }
        }
    }
}

impl ShardElements {
    /// Returns the numbers of the elements of these packets. Each call asks for later packets than
    /// the one before.
    pub(crate) fn of_packets(&mut self, packets: &Range<usize>) -> Range<usize> {
        let is_before = |end: usize| move |&&packet: &&u32| (packet as usize) < end;
        let rest = &self.packets[self.taken..];
        let first = self.taken + rest.iter().take_while(is_before(packets.start)).count();
        // Nearly always all of them are.
        self.taken = match self.packets.last() {
            Some(last) if is_before(packets.end)(&last) => self.packets.len(),
            _ => {
                let rest = &self.packets[first..];
                first + rest.iter().take_while(is_before(packets.end)).count()
            }
        };
        first..self.taken
    }

    fn clear(&mut self) {
        self.columns.clear();
        self.packets.clear();
        self.taken = 0;
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
    /// Appends an element of this kind, encoded as `key`.
    #[inline]
    pub(super) fn push_key(self, to: &mut ElementColumns, kind: &ElementKind, key: &[u8]) {
        to.digests.push(self.digester.digest(key));
        if self.attributes {
            let values = kind.values(key, kind.all());
            to.attributes.extend(values.map(|(_, value)| self.digester.digest(value)));
        }
        if self.keys {
            to.keys.push(key);
        }
    }

    /// Appends an element encoded as `key`, whose attributes stand one after the other between the
    /// `cuts`.
    #[expect(clippy::inline_always, reason = "so that keys of fixed length are digested as such")]
    #[inline(always)]
    pub(super) fn push(self, to: &mut ElementColumns, key: &[u8], cuts: &[usize]) {
        to.digests.push(self.digester.digest(key));
        if self.attributes {
            to.attributes
                .extend(cuts.windows(2).map(|cut| self.digester.digest(&key[cut[0]..cut[1]])));
        }
        if self.keys {
            to.keys.push(key);
        }
    }
}

/// How far a batch was consumed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Next packet.
    pub(crate) packet: usize,
    /// Next element.
    pub(crate) element: usize,
    /// Next entry of the list of skipped packets.
    skipped: usize,
    /// Next entry of the list of further elements.
    further: usize,
}

impl Cursor {
    /// Moves to packet `end` and returns the numbers of the elements before it. Calls `skip` with
    /// the reason of every packet on the way that has none.
    pub(crate) fn pass(
        &mut self,
        batch: &ElementBatch,
        end: usize,
        mut skip: impl FnMut(Skip),
    ) -> Range<usize> {
        let first = self.element;
        let mut elements = end - self.packet;
        while let Some(&(packet, reason)) = batch.skipped.get(self.skipped)
            && (packet as usize) < end
        {
            skip(reason);
            self.skipped += 1;
            elements -= 1;
        }
        while let Some(&packet) = batch.further.get(self.further)
            && (packet as usize) < end
        {
            self.further += 1;
            elements += 1;
        }
        self.packet = end;
        self.element += elements;
        first..self.element
    }
}

impl Batch for ElementBatch {
    type Cursor = Cursor;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn prefetch(&self, cursor: &Cursor, packets: usize) {
        let Cursor { packet, element, .. } = *cursor;
        prefetch(&self.times_ns, &(packet..packet + packets), i64::cast_unsigned);
        let columns = &self.elements;
        let arity = columns.attributes.len() / columns.len().max(1);
        columns.prefetch(element..element + packets, arity);
    }

    fn clear(&mut self) {
        ElementBatch::clear(self);
    }

    fn taken(cursor: &Cursor) -> usize {
        cursor.packet
    }
}
