//! Counts one shard of one slice from the parts that all pieces have of it.

use super::plan::{Form, PiecePlan};
use super::trace_order::TraceOrder;
use super::wire::WireFormat;
use super::{InputTable, PieceError, ShardWhole, SlicePart, WholePart};
use crate::elements::{ElementColumns, ElementKind};
use crate::filters::{Basis, Estimate};
use crate::guard::catch_panic;
use crate::hashing::{Digest, Digester, shard_of};
use crate::pipeline::{CountPlan, Shard, ShardSpec, SliceCounts, Whole, WholeSpec};
use serde::{Deserialize, Serialize};

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
    whole: Option<WholeSpec>,
    columns: ElementColumns,
}

impl ShardCount {
    /// Counts the shards of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &CountPlan) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        Ok(Self {
            shard: Shard::new(ShardSpec::new(plan, 1, false)),
            kind: plan.rule.kind,
            digester: Digester::new(plan.seed),
            shards: plan.shards,
            with_keys: plan.outline().form() == Form::Bytes,
            with_attributes: plan.needs_attributes(),
            whole: plan.whole(),
            columns: ElementColumns::default(),
        })
    }

    /// Counts the parts of one shard of one slice, which may come in any order. Parts of pieces
    /// that do not count are ignored, as is the second copy of a part. If there may be several
    /// slices, the elements are returned for the count of all slices, too.
    ///
    /// # Errors
    ///
    /// A part is of another shard or slice, or its elements are invalid.
    pub fn count(
        &mut self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<(ShardTally, Option<WholePart>), PieceError> {
        self.shard.go_on_with(self.whole.map(Whole::new));
        let tally = self.tally(slice, shard, parts, table)?;
        let whole = self.shard.take_whole();
        Ok((tally, whole.map(|whole| WholePart::of(slice, shard, whole))))
    }

    /// Counts the parts as [`Self::count`] does, and adds the elements to the count of all slices of
    /// the shard, which is empty after an error.
    ///
    /// # Errors
    ///
    /// As [`Self::count`]; the plan has only one slice.
    pub fn count_with(
        &mut self,
        all_slices: &mut ShardWhole,
        slice: i64,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<ShardTally, PieceError> {
        let empty = self.whole.map(Whole::new).ok_or_else(mismatch)?;
        self.shard.go_on_with(Some(std::mem::replace(&mut all_slices.whole, empty)));
        let tally = self.tally(slice, all_slices.shard, parts, table)?;
        if let Some(whole) = self.shard.take_whole() {
            all_slices.whole = whole;
        }
        Ok(tally)
    }

    fn tally(
        &mut self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<ShardTally, PieceError> {
        let mut elements = TraceOrder::new(slice, shard, parts, table)?;
        while let Some(key) = elements.next()? {
            self.push(slice, shard, key)?;
        }
        self.flush(slice)?;
        let counts = catch_panic(|| self.shard.close(0, slice))?.counts;
        let TraceOrder { packets, elements, times_ns, .. } = elements;
        Ok(ShardTally { slice, shard, packets, elements, times_ns, counts })
    }

    fn push(&mut self, slice: i64, shard: u32, key: &[u8]) -> Result<(), PieceError> {
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
            self.flush(slice)?;
        }
        Ok(())
    }

    fn flush(&mut self, slice: i64) -> Result<(), PieceError> {
        if !self.columns.is_empty() {
            catch_panic(|| self.shard.add(0, slice, &self.columns))?;
            self.columns.clear();
        }
        Ok(())
    }
}

/// Error for an element of another plan or shard.
fn mismatch() -> PieceError {
    PieceError::mismatch("an element is not of this shard, or not of this plan")
}

/// The counts of one shard of one slice.
#[derive(Debug, Deserialize, Serialize)]
pub struct ShardTally {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Packets of the slice; they are counted with shard 0.
    pub packets: u64,
    /// Elements of the shard, repeats included.
    pub elements: u64,
    /// Earliest and latest packet of the slice; only with shard 0.
    pub times_ns: Option<(i64, i64)>,
    pub(super) counts: SliceCounts,
}

impl WireFormat for ShardTally {
    const LETTER: u8 = b'T';
    const NAME: &'static str = "tally of a shard";

    fn check(&self) -> Result<(), &'static str> {
        let counts = &self.counts;
        let most = [counts.first, counts.exact, Some(counts.false_repeats)];
        if most.into_iter().flatten().any(|count| count > self.elements) {
            return Err("more was counted than there was");
        }
        let of_combinations = counts.combinations.iter().filter_map(|tally| tally.count.distinct);
        if counts.estimate.into_iter().chain(of_combinations).all(is_possible) {
            return Ok(());
        }
        Err("a count is negative or no number")
    }
}

fn is_possible(estimate: Estimate) -> bool {
    let is_count = |number: f64| number >= 0.0 && number.is_finite();
    // A filter that is full sees nothing new: what it misses from then on has no bound.
    let of_stream = match estimate.basis {
        Basis::Stream(seen) => [seen.next_mean, seen.next_variance],
        Basis::Scatter | Basis::Bounds { .. } => [0.0; 2],
    };
    [estimate.distinct, estimate.variance].into_iter().all(is_count)
        && of_stream.into_iter().all(|number| number >= 0.0)
}
