//! What the reader of a piece hands on: distinct elements of its slices, and what became of its
//! input.

use super::PieceError;
use super::bytes::{Exchanged, Reader, Writer, put_number};
use crate::decode::Skip;
use crate::top::Repeats;
use std::collections::BTreeMap;

/// What a piece has of one shard of one slice, or a part of that.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SlicePart {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Offset at which the piece was entered.
    pub entered: u64,
    /// Number of the part: the reader hands on what it has whenever its budget is used up.
    pub part: u32,
    /// Packets of the slice; they are counted with shard 0, since not all have an element.
    pub packets: u64,
    /// Elements of the shard, repeats included.
    pub elements: u64,
    /// Earliest and latest packet of the slice; only with shard 0.
    pub times_ns: Option<(i64, i64)>,
    /// The distinct elements in the order of first sight, each with its time.
    pub firsts: Vec<u8>,
    /// Of a ranking: packets and bytes of each key, besides those of first sightings.
    pub repeats: Vec<u8>,
}

const SLICE_PART: u8 = b'P';

impl SlicePart {
    /// What there was of each key besides first sightings.
    pub(super) fn repeats(&self) -> Result<Vec<Repeats<'_>>, PieceError> {
        let mut from = Reader::of(&self.repeats, "list of keys");
        let mut all = Vec::new();
        while !from.rest.is_empty() {
            all.push(Repeats {
                key: from.bytes()?,
                packets: from.number()?,
                bytes: from.number()?,
            });
        }
        Ok(all)
    }
}

impl Exchanged for SlicePart {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(SLICE_PART);
        out.signed(self.slice);
        for number in [self.shard, self.input, self.range, self.part] {
            out.number(number.into());
        }
        out.number(self.entered);
        out.number(self.packets);
        out.number(self.elements);
        out.maybe(self.times_ns, |out, (first, last)| {
            out.signed(first);
            out.signed(last);
        });
        out.bytes(&self.firsts);
        out.bytes(&self.repeats);
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, SLICE_PART, "part of a slice")?;
        let slice = from.signed()?;
        let [shard, input, range, part] =
            [from.small()?, from.small()?, from.small()?, from.small()?];
        let read = Self {
            slice,
            shard,
            input,
            range,
            part,
            entered: from.number()?,
            packets: from.number()?,
            elements: from.number()?,
            times_ns: from.maybe(|from| Ok((from.signed()?, from.signed()?)))?,
            firsts: from.bytes()?.to_vec(),
            repeats: from.bytes()?.to_vec(),
        };
        from.end()?;
        Ok(read)
    }
}

/// Appends what there was of a key besides first sightings.
pub(super) fn put_repeats(out: &mut Vec<u8>, repeats: &Repeats<'_>) {
    put_number(out, repeats.key.len() as u64);
    out.extend_from_slice(repeats.key);
    put_number(out, repeats.packets);
    put_number(out, repeats.bytes);
}

/// The distinct elements of a part in the order of first sight: for each the time since the one
/// before, and its bytes (those of its digest where the plan needs no others).
pub(super) struct FirstSightings<'a> {
    bytes: Reader<'a>,
    time_ns: i64,
}

impl<'a> FirstSightings<'a> {
    pub(super) fn of(part: &'a SlicePart) -> Self {
        Self { bytes: Reader::of(&part.firsts, "list of elements"), time_ns: i64::MIN }
    }

    /// The next one: its time, and its bytes.
    pub(super) fn next(&mut self) -> Result<Option<(i64, &'a [u8])>, PieceError> {
        if self.bytes.rest.is_empty() {
            return Ok(None);
        }
        let since = self.bytes.number()?;
        let time_ns = self.time_ns.checked_add_unsigned(since);
        self.time_ns = time_ns.ok_or_else(|| self.bytes.wrong("a time is beyond the range"))?;
        let key = self.bytes.bytes()?;
        if key.is_empty() || key.len() > usize::from(u16::MAX) {
            return Err(self.bytes.wrong("an element has no bytes, or too many"));
        }
        Ok(Some((self.time_ns, key)))
    }
}

/// What became of a piece of an input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InputPart {
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Offset at which it was entered; none if no record seemed to begin there.
    pub entered: Option<u64>,
    /// Offset at which it ended.
    pub left: u64,
    /// Packets before it, as far as the reader knew.
    pub packets_before: u64,
    /// Name of the container and of the compression; none if the input was not opened.
    pub container: Option<String>,
    /// It is a DNS log, which has no packets.
    pub is_log: bool,
    /// Packets read that take part.
    pub packets: u64,
    /// Packets that take no part.
    pub left_out: u64,
    /// Bytes that were not read, since no packet in the range of time stands there.
    pub unread_bytes: u64,
    /// Packets whose times are outside 1677 to 2262.
    pub times_out_of_range: u64,
    /// Elements, repeats included.
    pub elements: u64,
    /// Packets without an element, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Time of the latest packet.
    pub latest_ns: Option<i64>,
    /// Why reading stopped early, if it did.
    pub error: Option<String>,
}

const INPUT_PART: u8 = b'I';

impl Exchanged for InputPart {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(INPUT_PART);
        out.number(self.input.into());
        out.number(self.range.into());
        out.maybe(self.entered, Writer::number);
        for number in [
            self.left,
            self.packets_before,
            self.packets,
            self.left_out,
            self.unread_bytes,
            self.times_out_of_range,
            self.elements,
        ] {
            out.number(number);
        }
        out.maybe(self.container.as_ref(), |out, text| {
            out.bytes(text.as_bytes());
        });
        out.0.push(u8::from(self.is_log));
        out.number(self.skipped.len() as u64);
        for (skip, &count) in &self.skipped {
            out.number(skip.code().into());
            out.number(count);
        }
        out.maybe(self.latest_ns, Writer::signed);
        out.maybe(self.error.as_ref(), |out, text| out.bytes(text.as_bytes()));
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, INPUT_PART, "part of an input")?;
        let read = Self {
            input: from.small()?,
            range: from.small()?,
            entered: from.maybe(Reader::number)?,
            left: from.number()?,
            packets_before: from.number()?,
            packets: from.number()?,
            left_out: from.number()?,
            unread_bytes: from.number()?,
            times_out_of_range: from.number()?,
            elements: from.number()?,
            container: from.maybe(Reader::text)?,
            is_log: from.flag()?,
            skipped: {
                let skipped = from.many(|from| {
                    let skip = Skip::from_code(from.small()?);
                    let skip = skip.ok_or_else(|| from.wrong("a reason is unknown"))?;
                    Ok((skip, from.number()?))
                })?;
                skipped.into_iter().collect()
            },
            latest_ns: from.maybe(Reader::signed)?,
            error: from.maybe(Reader::text)?,
        };
        from.end()?;
        Ok(read)
    }
}
