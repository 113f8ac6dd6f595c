//! The output of the reader of a piece: distinct elements of its slices, and the result of its
//! input.

use super::PieceError;
use super::wire::{self, Values, WireFormat};
use crate::decode::Skip;
use crate::top::Repeats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The packets and elements of one shard of one slice that a piece has, or some of them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
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
    /// Number of the part: the reader emits what it has whenever its budget is used up.
    pub part: u32,
    /// Packets of the slice; they are counted with shard 0, since not all have an element.
    pub packets: u64,
    /// Elements of the shard, repeats included.
    pub elements: u64,
    /// Earliest and latest packet of the slice; only with shard 0.
    pub times_ns: Option<(i64, i64)>,
    /// The distinct elements in the order of first sight, each with its time.
    #[serde(with = "wire::bytes")]
    pub firsts: Vec<u8>,
    /// For a ranking: packets and bytes of each key, except those of first sightings.
    #[serde(with = "wire::bytes")]
    pub repeats: Vec<u8>,
}

impl WireFormat for SlicePart {
    const LETTER: u8 = b'P';
    const NAME: &'static str = "part of a slice";
}

impl SlicePart {
    /// Returns the packets and bytes of each key, except those of first sightings.
    pub(super) fn repeats(&self) -> Result<Vec<Repeats<'_>>, PieceError> {
        let mut values = Values::new(&self.repeats, "list of keys");
        let mut all = Vec::new();
        while !values.rest.is_empty() {
            let (key, packets, bytes) = values.next()?;
            all.push(Repeats { key, packets, bytes });
        }
        Ok(all)
    }
}

/// An element at first sight.
#[derive(Deserialize, Serialize)]
pub(super) struct FirstSighting<'a> {
    /// Time since the element before it.
    pub(super) since_ns: u64,
    /// Its bytes, or those of its digest where the plan needs no others.
    #[serde(borrow, with = "wire::bytes")]
    pub(super) bytes: &'a [u8],
}

/// Reads the distinct elements of a part in the order of first sight.
pub(super) struct FirstSightings<'a> {
    values: Values<'a>,
    time_ns: i64,
}

impl<'a> FirstSightings<'a> {
    pub(super) fn new(part: &'a SlicePart) -> Self {
        Self { values: Values::new(&part.firsts, "list of elements"), time_ns: i64::MIN }
    }

    /// Returns the time and the bytes of the next element.
    pub(super) fn next(&mut self) -> Result<Option<(i64, &'a [u8])>, PieceError> {
        if self.values.rest.is_empty() {
            return Ok(None);
        }
        let FirstSighting { since_ns, bytes } = self.values.next()?;
        let time_ns = self.time_ns.checked_add_unsigned(since_ns);
        self.time_ns = time_ns.ok_or_else(|| self.values.error("a time is beyond the range"))?;
        // The root's name has no bytes.
        if bytes.len() > usize::from(u16::MAX) {
            return Err(self.values.error("an element has too many bytes"));
        }
        Ok(Some((self.time_ns, bytes)))
    }
}

/// The result of a piece of an input.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct InputPart {
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Offset at which it was entered; `None` if no record seemed to begin there.
    pub entered: Option<u64>,
    /// Offset at which it ended.
    pub left: u64,
    /// Packets before it, as far as the reader knew.
    pub packets_before: u64,
    /// Name of the container and of the compression; `None` if the input was not opened.
    pub container: Option<String>,
    /// Whether it is a DNS log, which has no packets.
    pub is_log: bool,
    /// Packets read that take part.
    pub packets: u64,
    /// Packets that take no part.
    pub left_out: u64,
    /// Bytes that were skipped because no packet in the range of time is there.
    pub unread_bytes: u64,
    /// Packets whose times are outside 1677 to 2262.
    pub times_out_of_range: u64,
    /// Elements, repeats included.
    pub elements: u64,
    /// Packets without an element, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Time of the latest packet that takes part, or of the first one of an input if that is later.
    pub latest_ns: Option<i64>,
    /// It could not be read at all: packets that another attempt found do not count.
    pub is_unread: bool,
    /// Why it was not read in full, if it was not.
    pub error: Option<String>,
}

impl WireFormat for InputPart {
    const LETTER: u8 = b'I';
    const NAME: &'static str = "part of an input";
}
