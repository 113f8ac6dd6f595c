//! Counts all slices together, shard by shard, from what each slice has.

use super::wire::{self, Values, WireFormat, append};
use super::{PieceError, PiecePlan};
use crate::guard::catch_panic;
use crate::pipeline::{CountPlan, Whole, WholeElements, WholeTally as Counts, is_level};
use serde::{Deserialize, Serialize};

/// The distinct elements of a shard of a slice, as far as they matter to the count of all slices.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WholePart {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Share of its elements that its counter missed.
    pub(super) missed: f64,
    /// Zeros in which the digests of the sample end, and these digests.
    pub(super) level: u32,
    pub(super) digests: Vec<u64>,
    /// The elements themselves, in order; `None` without an exact set, or if it passed its limit.
    pub(super) keys: Option<Bytes>,
}

/// Bytes that are copied at once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Bytes(#[serde(with = "wire::bytes")] Vec<u8>);

impl WireFormat for WholePart {
    const LETTER: u8 = b'D';
    const NAME: &'static str = "part of all slices";

    fn check(&self) -> Result<(), &'static str> {
        let can_be = (0.0..=1.0).contains(&self.missed) && is_level(self.level);
        if can_be { Ok(()) } else { Err("its numbers cannot be") }
    }
}

impl WholePart {
    /// Returns the part of a whole that has this slice alone.
    pub(super) fn of(slice: i64, shard: u32, whole: Whole) -> Self {
        let WholeElements { missed, level, digests, keys } = whole.into_elements();
        let keys = keys.map(|keys| {
            let mut bytes = Vec::new();
            for key in keys {
                append(&mut bytes, &key);
            }
            Bytes(bytes)
        });
        Self { slice, shard, missed, level, digests, keys }
    }
}

/// Counts the elements of all slices of a shard.
#[derive(Debug)]
pub struct ShardWhole {
    pub(super) shard: u32,
    pub(super) whole: Whole,
}

impl ShardWhole {
    /// Counts the elements of this shard.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself, or has only one slice.
    pub fn new(plan: &CountPlan, shard: u32) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        let spec = plan.whole().filter(|_| shard < plan.shards);
        let spec =
            spec.ok_or_else(|| PieceError::mismatch("the plan has one slice, or not this shard"))?;
        Ok(Self { shard, whole: Whole::new(spec) })
    }

    /// Adds the elements of a slice, in any order of slices. A part may come twice.
    ///
    /// # Errors
    ///
    /// The part is of another shard, or its elements are invalid.
    pub fn add(&mut self, part: &WholePart) -> Result<(), PieceError> {
        PieceError::unless(part.shard == self.shard, "a part is of another shard")?;
        let Self { whole, .. } = self;
        catch_panic(|| {
            whole.add_part(part.slice, part.missed, part.level, &part.digests);
        })?;
        let Some(Bytes(keys)) = &part.keys else {
            whole.lose();
            return Ok(());
        };
        let mut keys = Values::new(keys, "list of elements");
        while !keys.rest.is_empty() {
            let key: &[u8] = keys.next()?;
            if key.len() > usize::from(u16::MAX) {
                return Err(keys.error("an element has too many bytes"));
            }
            catch_panic(|| whole.add(key, part.slice))?;
        }
        Ok(())
    }

    /// Returns the new elements of all slices.
    pub fn finish(self) -> WholeTally {
        WholeTally { shard: self.shard, counts: self.whole.tally() }
    }
}

/// The new elements of all slices of a shard.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WholeTally {
    /// Number of the shard.
    pub shard: u32,
    pub(super) counts: Counts,
}

impl WireFormat for WholeTally {
    const LETTER: u8 = b'W';
    const NAME: &'static str = "tally of all slices";

    fn check(&self) -> Result<(), &'static str> {
        if self.counts.is_consistent() { Ok(()) } else { Err("its numbers cannot be") }
    }
}
