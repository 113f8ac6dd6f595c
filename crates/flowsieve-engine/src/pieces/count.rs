//! Counts one shard of one slice from the parts that all pieces have of it.

use super::part::FirstSightings;
use super::reader::hands_on_keys;
use super::{InputTable, PieceError, ShardTally, SlicePart};
use crate::elements::{ElementColumns, ElementKind};
use crate::guard::guarded;
use crate::hashing::{Digest, Digester, shard_of};
use crate::pipeline::{CountPlan, Shard, ShardSpec, ShardTally as Counts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Elements that the shard takes at a time.
const BATCH: usize = 1024;

/// Counts shards of slices, one after the other.
#[derive(Debug)]
pub struct ShardCount {
    shard: Shard,
    kind: ElementKind,
    digester: Digester,
    shards: u32,
    with_keys: bool,
    with_attributes: bool,
    columns: ElementColumns,
}

impl ShardCount {
    /// For the shards of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &CountPlan) -> Result<Self, PieceError> {
        plan.check()?;
        Ok(Self {
            shard: Shard::new(ShardSpec::of(plan, 1, false)),
            kind: plan.rule.kind,
            digester: Digester::new(plan.seed),
            shards: plan.shards,
            with_keys: hands_on_keys(plan),
            with_attributes: plan.needs_attributes(),
            columns: ElementColumns::default(),
        })
    }

    /// Counts the parts of one shard of one slice, which may come in any order. Parts of pieces that do not
    /// count are passed over, as is a part that came twice.
    ///
    /// # Errors
    ///
    /// A part is of another shard or slice, or its elements are none.
    pub fn count(
        &mut self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<ShardTally, PieceError> {
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
        let mut tally = ShardTally {
            slice,
            shard,
            packets: 0,
            elements: 0,
            times_ns: None,
            counts: Counts::default(),
        };
        let mut inputs: Vec<(u32, Vec<(i64, FirstSightings<'_>)>)> = Vec::new();
        for (&(input, _, _), &(earlier_ns, part)) in placed.iter().rev() {
            tally.packets = tally.packets.saturating_add(part.packets);
            tally.elements = tally.elements.saturating_add(part.elements);
            tally.times_ns = match (tally.times_ns, part.times_ns) {
                (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                (one, other) => one.or(other),
            };
            let sightings = (earlier_ns, FirstSightings::of(part));
            match inputs.last_mut() {
                Some((last, parts)) if *last == input => parts.push(sightings),
                _ => inputs.push((input, vec![sightings])),
            }
        }
        self.merge(shard, inputs)?;
        self.hand_over()?;
        tally.counts = guarded(|| self.shard.close(0))?;
        Ok(tally)
    }

    /// Takes the elements of all inputs in the order of the trace; each input's parts come last first.
    fn merge(
        &mut self,
        shard: u32,
        mut inputs: Vec<(u32, Vec<(i64, FirstSightings<'_>)>)>,
    ) -> Result<(), PieceError> {
        let mut heads = BinaryHeap::new();
        for (at, (input, parts)) in inputs.iter_mut().enumerate() {
            if let Some((time_ns, key)) = next(parts)? {
                heads.push(Reverse((time_ns, *input, at, key)));
            }
        }
        while let Some(Reverse((_, input, at, key))) = heads.pop() {
            self.take(shard, key)?;
            if let Some((time_ns, key)) = next(&mut inputs[at].1)? {
                heads.push(Reverse((time_ns, input, at, key)));
            }
        }
        Ok(())
    }

    fn take(&mut self, shard: u32, key: &[u8]) -> Result<(), PieceError> {
        let digest = if self.with_keys {
            self.digester.digest(key)
        } else {
            let value = key.try_into().map_err(|_| mismatch())?;
            Digest::from_value(u64::from_le_bytes(value))
        };
        if shard_of(digest, self.shards.into()) as u32 != shard {
            return Err(mismatch());
        }
        let columns = &mut self.columns;
        columns.digests.push(digest);
        if self.with_keys {
            columns.keys.push(key);
        }
        if self.with_attributes {
            let values = self.kind.values(key, self.kind.all());
            let digests = values.map(|(_, value)| self.digester.digest(value));
            columns.attributes.extend(digests);
        }
        if columns.len() == BATCH {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), PieceError> {
        if !self.columns.is_empty() {
            guarded(|| self.shard.add(0, &self.columns))?;
            self.columns.clear();
        }
        Ok(())
    }
}

/// An element that is not of this plan and shard.
fn mismatch() -> PieceError {
    PieceError::Mismatch("an element is not of this shard, or not of this plan".to_owned())
}

/// The next element of an input, whose parts come last first.
fn next<'a>(
    parts: &mut Vec<(i64, FirstSightings<'a>)>,
) -> Result<Option<(i64, &'a [u8])>, PieceError> {
    while let Some((earlier_ns, sightings)) = parts.last_mut() {
        if let Some((time_ns, key)) = sightings.next()? {
            return Ok(Some((time_ns.max(*earlier_ns), key)));
        }
        parts.pop();
    }
    Ok(None)
}
