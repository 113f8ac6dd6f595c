//! Packets by time slice.

use super::results::{DedupSlice, DropKind, Drops};
use crate::zone::Zone;
use std::collections::BTreeMap;

/// Slices that are kept; a capture whose clock is broken could have any number.
const MOST_SLICES: usize = 1 << 16;

/// The slices met so far.
pub(super) struct Slices {
    width_ns: i64,
    zone: Zone,
    /// Where the slice with number 0 begins: known from the first packet on, as for `Align::Local`.
    origin_ns: Option<i64>,
    by_index: BTreeMap<i64, Drops>,
    /// The slice of the packet before, apart from the others.
    index: i64,
    current: Drops,
    /// Packets that found no slice any more.
    pub(super) outside: u64,
}

impl Slices {
    /// Slices at whole multiples of the width since 1970 began in this zone.
    pub(super) fn new(width_ns: i64, zone: Zone) -> Self {
        Self {
            width_ns,
            zone,
            origin_ns: None,
            by_index: BTreeMap::new(),
            index: 0,
            current: Drops::default(),
            outside: 0,
        }
    }

    pub(super) fn add(&mut self, time_ns: i64, bytes: u32, dropped: Option<DropKind>) {
        let origin_ns = *self.origin_ns.get_or_insert_with(|| -self.zone.offset_ns(time_ns));
        let since_ns = time_ns.saturating_sub(origin_ns);
        let index = since_ns.div_euclid(self.width_ns);
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
        let (width, origin) = (self.width_ns, self.origin_ns.unwrap_or(0));
        let slices = self.by_index.into_iter().map(|(index, drops)| {
            let start_ns = index.saturating_mul(width).saturating_add(origin);
            DedupSlice { start_ns, end_ns: start_ns.saturating_add(width), drops }
        });
        (slices.collect(), self.outside)
    }
}
