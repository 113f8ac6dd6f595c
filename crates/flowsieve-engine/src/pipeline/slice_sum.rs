//! A slice whose shards have all answered.

use super::results::SliceResult;
use super::shard_spec::{CombinationTally, SliceCounts};
use crate::sorted::Item;
use serde::{Deserialize, Serialize};

/// Packets, elements and times of a closed slice.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ClosedSlice {
    /// Number of the slice in the grid.
    pub(crate) index: i64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) packets: u64,
    pub(crate) elements: u64,
}

/// Sums over the shards of a slice.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SliceSum {
    pub(super) slice: ClosedSlice,
    /// Number of earlier counts of the slice; the last count is the right one.
    pub(super) revision: u64,
    /// The sink has it.
    pub(super) is_shown: bool,
    pub(super) counts: SliceCounts,
    /// New elements by the exact sets, as far as it was known when the slice closed.
    pub(super) new: Option<i64>,
}

impl SliceSum {
    /// Adds up what shards counted and their new elements, in the order of shards, so that
    /// floating-point sums do not depend on timing.
    pub(crate) fn of(
        slice: ClosedSlice,
        tallies: impl Iterator<Item = (SliceCounts, Option<i64>)>,
    ) -> Self {
        let added = tallies.reduce(|(mut counts, new), (more, more_new)| {
            counts.add(&more);
            (counts, new.zip(more_new).map(|(a, b)| a + b))
        });
        let (counts, new) = added.unwrap_or_default();
        Self { slice, counts, new, ..Self::default() }
    }

    /// Returns the row.
    pub(super) fn result(&self) -> SliceResult {
        SliceResult {
            start_ns: self.slice.start_ns,
            end_ns: self.slice.end_ns,
            packets: self.slice.packets,
            elements: self.slice.elements,
            new: self.new.map(|new| u64::try_from(new).unwrap_or(0)),
            ..self.counts.row()
        }
    }
}

impl Item for SliceSum {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.slice.index, self.revision)
    }

    fn further_bytes(&self) -> usize {
        self.counts.combinations.len() * size_of::<CombinationTally>()
    }
}
