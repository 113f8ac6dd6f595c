//! The second reading of captures whose packets are out of order: their elements by slice, within a
//! slice as they come.
//!
//! What does not fit into memory waits in temporary files (an external merge sort), so memory is
//! bounded for any order.

use super::slice_set::SliceSet;
use super::time_slice::SliceGrid;
use crate::elements::{Cursor, ElementBatch, ElementColumns};
use crate::memory::allocatable;
use crate::sorted::{Item, Sorted};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Bytes of elements that are collected by slice before they are put in order, and of those that are
/// in order.
const GATHERED_BYTES: u64 = 32 << 20;
const SORTED_BYTES: u64 = 64 << 20;

/// Bytes that are enough for both, where the system gives no more.
const LEAST_BYTES: u64 = 1 << 20;

/// Approximate overhead of a block, in bytes.
const BYTES_A_BLOCK: usize = 256;

/// Content of a slice until it was put in order.
#[derive(Debug, Deserialize, Serialize)]
struct Block<T> {
    slice: i64,
    /// Blocks are numbered as they come.
    number: u64,
    /// Bytes of the content.
    bytes: usize,
    content: T,
}

impl<T: Serialize + DeserializeOwned> Item for Block<T> {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.slice, self.number)
    }

    fn further_bytes(&self) -> usize {
        self.bytes
    }
}

/// Sorts content by slice, and keeps its order within a slice.
pub(crate) struct SliceSorter<T> {
    blocks: BTreeMap<i64, Block<T>>,
    bytes: usize,
    /// Bytes that may be collected.
    limit_bytes: usize,
    count: u64,
    sorted: Sorted<Block<T>>,
}

impl<T: Default + Serialize + DeserializeOwned> SliceSorter<T> {
    pub(crate) fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            bytes: 0,
            // Vectors grow ahead, so content takes more than its bytes.
            limit_bytes: allocatable(2 * GATHERED_BYTES, LEAST_BYTES) as usize / 2,
            count: 0,
            sorted: Sorted::new(allocatable(SORTED_BYTES, LEAST_BYTES)),
        }
    }

    /// Adds content to a slice; `add` returns its bytes.
    pub(crate) fn add(&mut self, slice: i64, add: impl FnOnce(&mut T) -> usize) -> io::Result<()> {
        let block = self.blocks.entry(slice).or_insert_with(|| {
            self.bytes += BYTES_A_BLOCK;
            Block { slice, number: 0, bytes: BYTES_A_BLOCK, content: T::default() }
        });
        let bytes = add(&mut block.content);
        block.bytes += bytes;
        self.bytes += bytes;
        if self.bytes >= self.limit_bytes {
            self.put_in_order()?;
        }
        Ok(())
    }

    fn put_in_order(&mut self) -> io::Result<()> {
        self.bytes = 0;
        for (_, mut block) in std::mem::take(&mut self.blocks) {
            block.number = self.count;
            self.count += 1;
            self.sorted.push(block)?;
        }
        Ok(())
    }

    /// Returns all content, in pieces, with the number of the slice.
    pub(crate) fn drain<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(i64, T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.put_in_order()?;
        self.sorted.drain(|block| take(block.slice, block.content))
    }
}

/// Packets of a slice.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct SlicePackets {
    /// Time of the first of them.
    pub(super) time_ns: i64,
    pub(super) packets: u64,
    pub(super) elements: ElementColumns,
}

/// Sorts packets by slice.
pub(super) struct BySlice<'a> {
    grid: SliceGrid,
    arity: usize,
    wanted: &'a SliceSet,
    gathered: SliceSorter<SlicePackets>,
}

impl<'a> BySlice<'a> {
    pub(super) fn new(grid: SliceGrid, arity: usize, wanted: &'a SliceSet) -> Self {
        Self { grid, arity, wanted, gathered: SliceSorter::new() }
    }

    /// Consumes the packets of a batch from the cursor up to number `end`.
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
            if self.wanted.contains(slice) {
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
        self.gathered.add(slice, |block| {
            if block.packets == 0 {
                block.time_ns = time_ns;
            }
            block.packets += packets;
            let before = block.elements.bytes();
            block.elements.extend_from(from, elements, self.arity);
            block.elements.bytes() - before
        })
    }

    /// Returns all packets, slice by slice.
    pub(super) fn drain<E: From<io::Error>>(
        self,
        mut take: impl FnMut(SlicePackets) -> Result<(), E>,
    ) -> Result<(), E> {
        self.gathered.drain(|_, packets| take(packets))
    }
}
