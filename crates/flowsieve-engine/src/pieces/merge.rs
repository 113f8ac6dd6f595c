//! The elements of the parts of one shard of one slice, in the order of the trace.

use super::part::FirstSightings;
use super::{InputTable, PieceError, SlicePart};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What the parts have together, and their elements.
#[derive(Default)]
pub(super) struct Merged<'a> {
    /// Packets of the slice, if the parts are of shard 0.
    pub(super) packets: u64,
    /// Elements, repeats included.
    pub(super) elements: u64,
    /// Earliest and latest packet of the slice, if the parts are of shard 0.
    pub(super) times_ns: Option<(i64, i64)>,
    /// The parts that count.
    pub(super) parts: Vec<&'a SlicePart>,
    /// Each input's parts, last first.
    inputs: Vec<(u32, Vec<(i64, FirstSightings<'a>)>)>,
    /// The next element of each input: by time, then by input.
    heads: BinaryHeap<Reverse<Head<'a>>>,
}

/// Time of an element, number of its input and where that stands, and its bytes.
type Head<'a> = (i64, u32, usize, &'a [u8]);

impl<'a> Merged<'a> {
    /// Of parts in any order. Those of pieces that do not count are passed over, as is a part that came twice.
    pub(super) fn of(
        slice: i64,
        shard: u32,
        parts: &'a [SlicePart],
        table: &InputTable,
    ) -> Result<Self, PieceError> {
        if parts
            .iter()
            .any(|part| part.slice != slice || part.shard != shard)
        {
            return Err(PieceError::Mismatch(format!(
                "a part is not of shard {shard} of slice {slice}"
            )));
        }
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
            let sightings = (earlier_ns, FirstSightings::of(part));
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

    /// The bytes of the next element.
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, PieceError> {
        let Some(Reverse((_, _, at, key))) = self.heads.pop() else {
            return Ok(None);
        };
        self.follow(at)?;
        Ok(Some(key))
    }

    /// Looks for the next element of an input.
    fn follow(&mut self, at: usize) -> Result<(), PieceError> {
        let (input, parts) = &mut self.inputs[at];
        while let Some((earlier_ns, sightings)) = parts.last_mut() {
            if let Some((time_ns, key)) = sightings.next()? {
                let time_ns = time_ns.max(*earlier_ns);
                self.heads.push(Reverse((time_ns, *input, at, key)));
                break;
            }
            parts.pop();
        }
        Ok(())
    }
}
