//! The second reading of captures whose packets are out of order: their elements by slice, within a slice as they come.
//!
//! What does not fit into memory waits in temporary files (an external merge sort), so memory is bounded whatever the order.

use super::cursor::Cursor;
use super::slice_set::SliceSet;
use super::time_slice::SliceGrid;
use crate::elements::{ElementBatch, ElementColumns};
use crate::hashing::Digest;
use crate::memory::given_of;
use crate::sorted::{Item, Sorted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Bytes of elements that are gathered by slice before they are put in order, and of those that are in order.
const GATHERED_BYTES: u64 = 32 << 20;
const SORTED_BYTES: u64 = 64 << 20;

/// Bytes that are enough for both, where the system gives no more.
const LEAST_BYTES: u64 = 1 << 20;

/// Bytes that a slice takes besides its elements, about.
const BYTES_A_BLOCK: usize = 256;

/// Packets of a slice.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Block {
    slice: i64,
    /// Blocks are numbered as they come.
    number: u64,
    /// Time of one of the packets.
    pub(super) time_ns: i64,
    pub(super) packets: u64,
    pub(super) elements: ElementColumns,
}

impl Item for Block {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.slice, self.number)
    }

    fn further_bytes(&self) -> usize {
        self.elements.bytes() + BYTES_A_BLOCK
    }
}

/// Gathers packets by slice.
pub(super) struct BySlice<'a> {
    grid: SliceGrid,
    arity: usize,
    /// The slices that are wanted; `None` is all of them.
    wanted: Option<&'a SliceSet>,
    gathered: BTreeMap<i64, Block>,
    bytes: usize,
    /// Bytes that may be gathered.
    gathered_bytes: usize,
    blocks: u64,
    sorted: Sorted<Block>,
}

impl<'a> BySlice<'a> {
    pub(super) fn new(grid: SliceGrid, arity: usize, wanted: Option<&'a SliceSet>) -> Self {
        Self {
            grid,
            arity,
            wanted,
            gathered: BTreeMap::new(),
            bytes: 0,
            // Elements take more than their bytes, since vectors grow ahead.
            gathered_bytes: given_of(2 * GATHERED_BYTES, LEAST_BYTES) as usize / 2,
            blocks: 0,
            sorted: Sorted::new(given_of(SORTED_BYTES, LEAST_BYTES)),
        }
    }

    /// Takes the packets of a batch up to number `end`, from where `cursor` stands.
    pub(super) fn take(
        &mut self,
        batch: &ElementBatch,
        cursor: &mut Cursor,
        end: usize,
    ) -> io::Result<()> {
        while cursor.packet < end {
            let time_ns = batch.times_ns[cursor.packet];
            let slice = self.grid.index(time_ns);
            let (start_ns, end_ns) = self.grid.bounds(slice);
            let rest = &batch.times_ns[cursor.packet + 1..end];
            let same = |time: &&i64| (start_ns..end_ns).contains(*time);
            let packets = 1 + rest.iter().take_while(same).count();
            let elements = cursor.pass(batch, cursor.packet + packets, |_| {});
            if self.wanted.is_none_or(|wanted| wanted.contains(slice)) {
                self.gather(slice, time_ns, packets as u64, &batch.elements, elements)?;
            }
        }
        Ok(())
    }

    fn gather(
        &mut self,
        slice: i64,
        time_ns: i64,
        packets: u64,
        from: &ElementColumns,
        elements: Range<usize>,
    ) -> io::Result<()> {
        let block = self.gathered.entry(slice).or_insert_with(|| {
            self.bytes += BYTES_A_BLOCK;
            Block {
                slice,
                time_ns,
                ..Block::default()
            }
        });
        block.packets += packets;
        for element in elements {
            block.elements.push_from(from, element, self.arity);
            let attributes = if from.attributes.is_empty() {
                0
            } else {
                self.arity
            };
            self.bytes += (1 + attributes) * size_of::<Digest>();
            if !from.keys.is_empty() {
                self.bytes += from.keys.get(element).len() + size_of::<u32>();
            }
        }
        if self.bytes >= self.gathered_bytes {
            self.put_in_order()?;
        }
        Ok(())
    }

    fn put_in_order(&mut self) -> io::Result<()> {
        self.bytes = 0;
        for (_, mut block) in std::mem::take(&mut self.gathered) {
            block.number = self.blocks;
            self.blocks += 1;
            self.sorted.push(block)?;
        }
        Ok(())
    }

    /// Gives all blocks, slice by slice.
    pub(super) fn drain<E: From<io::Error>>(
        mut self,
        take: impl FnMut(Block) -> Result<(), E>,
    ) -> Result<(), E> {
        self.put_in_order()?;
        self.sorted.drain(take)
    }
}
