//! Saving and loading a d-left filter.

use super::{Bucket, CELLS, DleftFilter, STASH_LARGEST, stash_limit};
use crate::bits::BitArray;
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use std::io;

impl<B: Bucket> FilterState for DleftFilter<B> {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        state.count(self.overflows)?;
        for bucket in self.buckets.as_slice() {
            // Packs the cells into words, from the lowest bit on.
            let (mut cells, mut bits) = (0_u128, 0);
            for cell in 0..CELLS as u32 {
                cells |= u128::from(bucket.get(cell)) << bits;
                bits += B::CELL_BITS;
                if bits >= u64::BITS {
                    state.u64(cells as u64)?;
                    cells >>= u64::BITS;
                    bits -= u64::BITS;
                }
            }
        }
        state.u64(self.stash.len() as u64)?;
        for (&hash, &count) in &self.stash {
            state.u64(hash)?;
            state.u32(count)?;
        }
        state.flag(self.given_up.is_some())?;
        self.given_up.iter().try_for_each(|bits| state.bits(bits))
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.distinct()?;
        self.overflows = state.count()?;
        let largest = self.largest();
        let bits = self.places.remainder_bits + self.counter_bits;
        for bucket in self.buckets.as_mut_slice() {
            let (mut cells, mut there) = (0_u128, 0);
            for cell in 0..CELLS as u32 {
                if there < B::CELL_BITS {
                    cells |= u128::from(state.u64()?) << there;
                    there += u64::BITS;
                }
                let value = cells as u64 & (u64::MAX >> (64 - B::CELL_BITS));
                cells >>= B::CELL_BITS;
                there -= B::CELL_BITS;
                let count = value as u32 & largest;
                if value >> bits != 0 || (value != 0 && count == 0) {
                    return Err(state.damaged("a cell has bits that none can have"));
                }
                bucket.set(cell, value as u32);
                self.occupied += u64::from(count != 0);
                self.saturated += u64::from(count == largest);
            }
        }
        let stashed = state.u64()?;
        if stashed > stash_limit(self.places.buckets) as u64 {
            return Err(state.damaged("there are more elements in a stash than it holds"));
        }
        let mut least = 0;
        for _ in 0..stashed {
            let (hash, count) = (state.u64()?, state.u32()?);
            let is_hash = hash < self.places.hashes();
            if !is_hash || hash < least || count == 0 || count > STASH_LARGEST {
                return Err(state.damaged("an element of a stash is none that can be there"));
            }
            least = hash + 1;
            self.stash.insert(hash, count);
        }
        if !state.flag()? {
            return Ok(());
        }
        let buckets = self.places.buckets;
        if buckets.div_ceil(64) * 8 > state.left() {
            return Err(state.damaged("the list of buckets that are given up is cut short"));
        }
        let mut given_up = BitArray::new(buckets);
        state.bits(&mut given_up)?;
        self.given_up = Some(given_up);
        self.count_by_first_bucket();
        Ok(())
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.unite_with(same(other)?);
        Ok(())
    }
}
