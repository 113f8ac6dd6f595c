//! Packets by time slice.

use super::results::{DedupSlice, DropKind, Drops};
use std::collections::BTreeMap;

/// Slices that are kept; a capture whose clock is broken could have any number.
const MOST_SLICES: usize = 1 << 16;

/// The slices met so far.
#[derive(Debug)]
pub(super) struct Slices {
    width_ns: i64,
    by_index: BTreeMap<i64, Drops>,
    /// The slice of the packet before, apart from the others.
    index: i64,
    current: Drops,
    /// Packets that found no slice any more.
    pub(super) outside: u64,
}

impl Slices {
    pub(super) fn new(width_ns: i64) -> Self {
        Self {
            width_ns,
            by_index: BTreeMap::new(),
            index: 0,
            current: Drops::default(),
            outside: 0,
        }
    }

    pub(super) fn add(&mut self, time_ns: i64, bytes: u32, dropped: Option<DropKind>) {
        let index = time_ns.div_euclid(self.width_ns);
        if index != self.index {
            self.put_back();
            self.current = self.by_index.remove(&index).unwrap_or_default();
            self.index = index;
        }
        self.current.add(bytes, dropped);
    }

    fn put_back(&mut self) {
        if self.current.packets == 0 {
            return;
        }
        if self.by_index.len() < MOST_SLICES {
            self.by_index.insert(self.index, self.current);
        } else {
            self.outside += self.current.packets;
        }
    }

    pub(super) fn finish(mut self) -> (Vec<DedupSlice>, u64) {
        self.put_back();
        let width = self.width_ns;
        let slices = self.by_index.into_iter().map(|(index, drops)| {
            let start_ns = index.saturating_mul(width);
            DedupSlice {
                start_ns,
                end_ns: start_ns.saturating_add(width),
                drops,
            }
        });
        (slices.collect(), self.outside)
    }
}
