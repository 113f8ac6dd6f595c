//! The elements of the parts of one shard of one slice, in the order of the trace.

use super::part::FirstSightings;
use super::wire::Values;
use super::{InputTable, PieceError, SlicePart};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The sums of the parts, and their elements one after the other.
#[derive(Default)]
pub(super) struct TraceOrder<'a> {
    /// Packets of the slice, if the parts are of shard 0.
    pub(super) packets: u64,
    /// Elements, repeats included.
    pub(super) elements: u64,
    /// Earliest and latest packet of the slice, if the parts are of shard 0.
    pub(super) times_ns: Option<(i64, i64)>,
    /// The parts that count.
    pub(super) parts: Vec<&'a SlicePart>,
    /// Each input's parts, last first.
    inputs: Vec<(u32, Vec<Placed<'a>>)>,
    /// The next element of each input.
    heads: BinaryHeap<Reverse<Sighted<'a>>>,
}

/// The elements of a part that are not merged yet.
struct Placed<'a> {
    range: u32,
    /// Latest time in the pieces before.
    earlier_ns: i64,
    sightings: FirstSightings<'a>,
}

/// An element. Elements of several inputs compare as they stand in the trace.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Sighted<'a> {
    /// Latest time of its input up to it.
    pub(super) latest_ns: i64,
    pub(super) input: u32,
    /// Place of the input among those at hand.
    at: usize,
    /// Number of its piece.
    pub(super) range: u32,
    /// Latest time of its piece up to it.
    pub(super) latest_in_range_ns: i64,
    pub(super) bytes: &'a [u8],
}

/// The place of a packet. Places compare as packets do in the order of the trace.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PacketPlace {
    /// Latest time in the input up to the packet, in nanoseconds since the epoch.
    pub latest_ns: i64,
    /// Number of the input, in the order given.
    pub input: u32,
    /// Number of the piece within its input.
    pub range: u32,
    /// Number of the packet within the piece.
    pub packet: u64,
}

impl<'a> Sighted<'a> {
    /// Returns the time of an element that is a packet, its place, and its compact form.
    pub(super) fn packet(
        self,
        name: &'static str,
    ) -> Result<(i64, PacketPlace, Values<'a>), PieceError> {
        let Self { latest_ns, input, range, .. } = self;
        let mut values = Values::new(self.bytes, name);
        let (behind_ns, packet) = values.next()?;
        let time_ns = self.latest_in_range_ns.checked_sub_unsigned(behind_ns);
        let time_ns = time_ns.ok_or_else(|| values.error("its time is beyond the range"))?;
        Ok((time_ns, PacketPlace { latest_ns, input, range, packet }, values))
    }
}

impl<'a> TraceOrder<'a> {
    /// Orders the elements of these parts, which may come in any order. Parts of pieces that do not
    /// count are ignored, as is the second copy of a part.
    pub(super) fn new(
        slice: i64,
        shard: u32,
        parts: &'a [SlicePart],
        table: &InputTable,
    ) -> Result<Self, PieceError> {
        let are_here = parts.iter().all(|part| part.slice == slice && part.shard == shard);
        let what = format_args!("a part is not of shard {shard} of slice {slice}");
        PieceError::unless(are_here, what)?;
        // By input, piece and number: within an input that is the order of the packets.
        let mut placed: BTreeMap<(u32, u32, u32), (i64, &SlicePart)> = BTreeMap::new();
        for part in parts {
            if let Some(earlier_ns) = table.place(part) {
                placed.insert((part.input, part.range, part.part), (earlier_ns, part));
            }
        }
        let mut merged = Self::default();
        for (&(input, _, _), &(earlier_ns, part)) in placed.iter().rev() {
            merged.packets = merged.packets.saturating_add(part.packets);
            merged.elements = merged.elements.saturating_add(part.elements);
            merged.times_ns = match (merged.times_ns, part.times_ns) {
                (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                (one, other) => one.or(other),
            };
            merged.parts.push(part);
            let sightings =
                Placed { range: part.range, earlier_ns, sightings: FirstSightings::new(part) };
            match merged.inputs.last_mut() {
                Some((last, parts)) if *last == input => parts.push(sightings),
                _ => merged.inputs.push((input, vec![sightings])),
            }
        }
        for at in 0..merged.inputs.len() {
            merged.follow(at)?;
        }
        Ok(merged)
    }

    /// Returns the bytes of the next element.
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, PieceError> {
        Ok(self.next_placed()?.map(|sighted| sighted.bytes))
    }

    /// Returns the next element.
    pub(super) fn next_placed(&mut self) -> Result<Option<Sighted<'a>>, PieceError> {
        let Some(Reverse(sighted)) = self.heads.pop() else { return Ok(None) };
        self.follow(sighted.at)?;
        Ok(Some(sighted))
    }

    /// Puts the next element of an input among the heads.
    fn follow(&mut self, at: usize) -> Result<(), PieceError> {
        let (input, parts) = &mut self.inputs[at];
        while let Some(part) = parts.last_mut() {
            if let Some((latest_in_range_ns, bytes)) = part.sightings.next()? {
                self.heads.push(Reverse(Sighted {
                    latest_ns: latest_in_range_ns.max(part.earlier_ns),
                    input: *input,
                    at,
                    range: part.range,
                    latest_in_range_ns,
                    bytes,
                }));
                break;
            }
            parts.pop();
        }
        Ok(())
    }
}
