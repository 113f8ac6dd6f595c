//! Collects the shards' tallies of a slice.

use super::rows::Rows;
use super::shard_spec::ShardTally;
use super::slice_sum::{ClosedSlice, SliceSum};
use crate::filters::MembershipFilter;
use std::collections::BTreeMap;
use std::io;

/// Collects slices. Closings are announced in the order of their numbers; for any order in which
/// the shards answer, results are taken in that order.
pub(crate) struct Collector<'a> {
    pub(super) rows: Rows<'a>,
    shards: usize,
    waiting: BTreeMap<u64, Waiting>,
    kept: Vec<Box<dyn MembershipFilter>>,
}

struct Waiting {
    slice: ClosedSlice,
    tallies: Vec<Option<ShardTally>>,
    missing: usize,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(rows: Rows<'a>, shards: usize) -> Self {
        Self { rows, shards, waiting: BTreeMap::new(), kept: Vec::new() }
    }

    /// Announces the closing with this number; its tallies may come in any order.
    pub(crate) fn announce(&mut self, closing: u64, slice: ClosedSlice) {
        self.waiting.insert(
            closing,
            Waiting {
                slice,
                tallies: (0..self.shards).map(|_| None).collect(),
                missing: self.shards,
            },
        );
    }

    /// Returns the number of closings whose tallies are not all here.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a shard's tally.
    pub(crate) fn tally(
        &mut self,
        closing: u64,
        shard: usize,
        tally: ShardTally,
    ) -> io::Result<()> {
        if let Some(waiting) = self.waiting.get_mut(&closing) {
            waiting.tallies[shard] = Some(tally);
            waiting.missing -= 1;
        }
        while let Some(entry) = self.waiting.first_entry() {
            if entry.get().missing > 0 {
                break;
            }
            let Waiting { slice, mut tallies, .. } = entry.remove();
            let mut moved = Vec::new();
            for tally in tallies.iter_mut().flatten() {
                self.kept.extend(tally.filter.take());
                moved.append(&mut tally.moved);
            }
            let journals = tallies.iter_mut().flatten().map(|tally| tally.journal.take());
            let journal: Option<Vec<_>> = journals.collect();
            let sum = SliceSum::of(
                slice,
                tallies.into_iter().flatten().map(|tally| (tally.counts, tally.new)),
            );
            self.rows.take(sum, journal.as_ref())?;
            self.rows.move_new(&moved);
        }
        Ok(())
    }

    /// Returns the rows, and the filters that are kept, in the order of their shards.
    pub(crate) fn finish(self) -> (Rows<'a>, Vec<Box<dyn MembershipFilter>>) {
        (self.rows, self.kept)
    }
}
