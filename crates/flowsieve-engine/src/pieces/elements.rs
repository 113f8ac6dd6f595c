//! From a batch of packets to where their elements belong.

use crate::elements::ElementBatch;
use crate::hashing::{Digest, shard_of};
use crate::pipeline::SliceGrid;
use std::ops::Range;

/// An element with its place in a count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlacedElement<'a> {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Time of its packet.
    pub time_ns: i64,
    /// Its digest.
    pub digest: Digest,
    /// Its bytes, if the batch has them.
    pub key: Option<&'a [u8]>,
}

/// The packets of a batch: for each its time and the numbers of its elements.
pub(super) fn packets(batch: &ElementBatch) -> impl Iterator<Item = (i64, Range<usize>)> {
    let mut skipped = batch.skipped.iter().map(|&(packet, _)| packet).peekable();
    let mut further = batch.further.iter().copied().peekable();
    let mut element = 0;
    (0_u32..).zip(&batch.times_ns).map(move |(packet, &time_ns)| {
        let first = element;
        if skipped.next_if_eq(&packet).is_none() {
            element += 1;
        }
        while further.next_if_eq(&packet).is_some() {
            element += 1;
        }
        (time_ns, first..element)
    })
}

/// The elements of a batch in the order of their packets, each with its slice and its shard.
pub struct PlacedElements<'a> {
    elements: Box<dyn Iterator<Item = PlacedElement<'a>> + 'a>,
}

impl<'a> PlacedElements<'a> {
    /// Of a batch, among this many shards.
    pub fn of(batch: &'a ElementBatch, grid: SliceGrid, shards: u32) -> Self {
        let columns = &batch.elements;
        let elements = packets(batch).flat_map(move |(time_ns, elements)| {
            elements.map(move |element| PlacedElement {
                slice: grid.index(time_ns),
                shard: shard_of(columns.digests[element], shards.into()) as u32,
                time_ns,
                digest: columns.digests[element],
                key: (!columns.keys.is_empty()).then(|| columns.keys.get(element)),
            })
        });
        Self { elements: Box::new(elements) }
    }
}

impl<'a> Iterator for PlacedElements<'a> {
    type Item = PlacedElement<'a>;

    fn next(&mut self) -> Option<PlacedElement<'a>> {
        self.elements.next()
    }
}

impl std::fmt::Debug for PlacedElements<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlacedElements").finish_non_exhaustive()
    }
}
