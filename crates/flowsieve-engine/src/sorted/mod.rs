//! Items in order, in bounded memory: an external merge sort.
//!
//! Items are kept in memory up to a limit; then they are sorted and written to a temporary file, a
//! run. In the end all runs are merged. When there are many runs they are merged to one before, so
//! that the number of open files and of read buffers is bounded, too.

mod run;

use self::run::{Run, RunWriter, Source, refused};
use crate::memory::can_allocate;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::iter;

/// Runs of one size that are merged to one.
const RUNS_MERGED: usize = 64;

/// An item that can be sorted.
pub(crate) trait Item: Serialize + DeserializeOwned {
    /// The sort key. No two items are equal.
    type Order: Ord;

    /// Returns the sort key.
    fn order(&self) -> Self::Order;

    /// Returns the bytes that it has in memory in addition to its own size.
    fn further_bytes(&self) -> usize;
}

/// Gathers items and gives them back in order.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    items: Vec<T>,
    bytes: u64,
    limit_bytes: u64,
    /// Runs by how often their items were written.
    levels: Vec<Vec<Run>>,
    /// Returns whether the system gives this many bytes.
    can_allocate: fn(u64) -> bool,
}

impl<T> Sorted<T> {
    /// Keeps this many bytes of items in memory, and further ones in temporary files.
    pub(crate) const fn new(limit_bytes: u64) -> Self {
        Self { items: Vec::new(), bytes: 0, limit_bytes, levels: Vec::new(), can_allocate }
    }
}

impl<T: Item> Sorted<T> {
    /// Returns whether it has no item.
    pub(crate) const fn is_empty(&self) -> bool {
        self.items.is_empty() && self.levels.is_empty()
    }

    /// Takes an item.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be written.
    pub(crate) fn push(&mut self, item: T) -> io::Result<()> {
        let cost = (size_of::<T>() + item.further_bytes()) as u64;
        if self.bytes + cost > self.limit_bytes && !self.items.is_empty() {
            self.spill()?;
        }
        if self.items.len() == self.items.capacity() {
            // Never for more than the limit allows.
            let most = usize::try_from(self.limit_bytes).unwrap_or(usize::MAX) / size_of::<T>();
            let length = self.items.len();
            let more = length.max(1024).min(most.saturating_sub(length)).max(1);
            let bytes = (length + more) * size_of::<T>();
            // The first items do not ask: if there were room for only a few at a time, every few
            // items would become a file.
            let has_room = length == 0 || (self.can_allocate)(bytes as u64);
            if !has_room || self.items.try_reserve_exact(more).is_err() {
                // Without memory, a file takes it.
                if length > 0 {
                    self.spill()?;
                }
                self.items.try_reserve(1).map_err(|_| refused())?;
            }
        }
        self.bytes += cost;
        self.items.push(item);
        Ok(())
    }

    /// Gives all items in order.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `take` failed.
    pub(crate) fn drain<E: From<io::Error>>(
        self,
        take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.drain_among(None::<iter::Empty<T>>, take)
    }

    /// Takes out the items in order, each with whether it is the last one. Of items that are the
    /// `same`, only the last is taken.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `take` failed.
    pub(crate) fn drain_last<E: From<io::Error>>(
        self,
        same: impl Fn(&T, &T) -> bool,
        mut take: impl FnMut(T, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut held: Option<T> = None;
        self.drain(|item| {
            let before = held.take().filter(|before| !same(before, &item));
            held = Some(item);
            before.map_or(Ok(()), |before| take(before, false))
        })?;
        held.map_or(Ok(()), |last| take(last, true))
    }

    /// Gives all items in order, and among them some that are in order already.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `take` failed.
    pub(crate) fn drain_among<E: From<io::Error>>(
        mut self,
        ordered: Option<impl Iterator<Item = T>>,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.items.sort_unstable_by_key(T::order);
        let mut sources: Vec<Source<'_, T>> = Vec::new();
        if let Some(ordered) = ordered {
            sources.push(Box::new(ordered.map(Ok)));
        }
        if sources.is_empty() || !self.items.is_empty() {
            sources.push(Box::new(self.items.into_iter().map(Ok)));
        }
        for run in self.levels.into_iter().flatten() {
            sources.push(run.read()?);
        }
        merge(sources, &mut take)
    }

    fn spill(&mut self) -> io::Result<()> {
        self.items.sort_unstable_by_key(T::order);
        let mut writer = RunWriter::new()?;
        for item in self.items.drain(..) {
            writer.write(&item)?;
        }
        self.bytes = 0;
        let mut run = writer.finish()?;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(run);
            if self.levels[level].len() < RUNS_MERGED {
                break;
            }
            let mut writer = RunWriter::new()?;
            let sources = self.levels[level].drain(..);
            let sources: io::Result<Vec<_>> = sources.map(Run::read).collect();
            merge(sources?, &mut |item: T| writer.write(&item))?;
            run = writer.finish()?;
        }
        Ok(())
    }
}

/// Takes sorted sources in order.
fn merge<T: Item, E: From<io::Error>>(
    mut sources: Vec<Source<'_, T>>,
    take: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    if let [source] = &mut sources[..] {
        return source.try_for_each(|item| take(item?));
    }
    let mut heads = Vec::with_capacity(sources.len());
    let mut heap = BinaryHeap::with_capacity(sources.len());
    for (number, source) in sources.iter_mut().enumerate() {
        let head = source.next().transpose()?;
        heap.extend(head.as_ref().map(|item| Reverse((item.order(), number))));
        heads.push(head);
    }
    while let Some(Reverse((_, number))) = heap.pop() {
        let next = sources[number].next().transpose()?;
        heap.extend(next.as_ref().map(|item| Reverse((item.order(), number))));
        let item = std::mem::replace(&mut heads[number], next);
        take(item.expect("a source on the heap has a head"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use proptest::prelude::*;

    impl Item for (i64, u64, Vec<u8>) {
        type Order = (i64, u64);

        fn order(&self) -> (i64, u64) {
            (self.0, self.1)
        }

        fn further_bytes(&self) -> usize {
            self.2.len()
        }
    }

    proptest! {
        #[test]
        fn items_come_back_whole_and_in_order_whatever_the_memory(
            items in prop::collection::vec((-5_i64..5, prop::collection::vec(any::<u8>(), 0..99)), 0..400),
            limit in 0_u64..20_000,
        ) {
            let mut sorted = Sorted::new(limit);
            let mut expected = Vec::new();
            for (number, (key, bytes)) in items.into_iter().enumerate() {
                let item = (key, number as u64, bytes);
                sorted.push(item.clone()).unwrap();
                expected.push(item);
            }
            let mut back = Vec::new();
            sorted.drain(|item| {
                back.push(item);
                Ok::<_, io::Error>(())
            }).unwrap();
            expected.sort_by_key(|item| item.0);
            prop_assert_eq!(back, expected);
        }
    }

    #[test]
    fn a_sorter_that_is_given_no_memory_writes_long_runs() {
        let mut sorted = Sorted::new(u64::MAX);
        sorted.can_allocate = |_| false;
        for number in 0..5000 {
            sorted.push((0, number, Vec::new())).unwrap();
        }
        let runs: usize = sorted.levels.iter().map(Vec::len).sum();
        assert!((1..=5000 / 1024).contains(&runs), "{runs} runs");
    }
}
