//! Counts one shard of one slice from the parts that all pieces have of it.

use super::merge::Merged;
use super::plan::{Form, PiecePlan};
use super::{InputTable, PieceError, ShardTally, SlicePart};
use crate::elements::{ElementColumns, ElementKind};
use crate::guard::guarded;
use crate::hashing::{Digest, Digester, shard_of};
use crate::pipeline::{CountPlan, Shard, ShardSpec, ShardTally as Counts};

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
        PiecePlan::check(plan)?;
        Ok(Self {
            shard: Shard::new(ShardSpec::of(plan, 1, false)),
            kind: plan.rule.kind,
            digester: Digester::new(plan.seed),
            shards: plan.shards,
            with_keys: plan.outline().form() == Form::Bytes,
            with_attributes: plan.needs_attributes(),
            columns: ElementColumns::default(),
        })
    }

    /// Counts the parts of one shard of one slice, which may come in any order. Parts of pieces
    /// that do not count are passed over, as is a part that came twice.
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
        let mut merged = Merged::of(slice, shard, parts, table)?;
        let mut tally = ShardTally {
            slice,
            shard,
            packets: merged.packets,
            elements: merged.elements,
            times_ns: merged.times_ns,
            counts: Counts::default(),
        };
        while let Some(key) = merged.next()? {
            self.take(shard, key)?;
        }
        self.hand_over()?;
        tally.counts = guarded(|| self.shard.close(0, slice))?;
        Ok(tally)
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
