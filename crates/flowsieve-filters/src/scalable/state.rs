//! The chain on disk.

use super::{FIRST_FUNCTION_SET, MAX_FUNCTION_SET, ScalableFilter};
use crate::DistinctCounter;
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use std::io;

/// What stands before the links of a saved chain.
pub(crate) struct SavedLinks {
    counter: Option<DistinctCounter>,
    united: bool,
    ambiguous_removals: u64,
    /// How many they are.
    pub(crate) count: u32,
    /// The least number that the next link's functions may have.
    least: u64,
}

impl SavedLinks {
    /// Reads it.
    pub(crate) fn load(state: &mut StateReader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            counter: state.distinct()?,
            united: state.flag()?,
            ambiguous_removals: state.count()?,
            count: state.u32()?,
            least: FIRST_FUNCTION_SET,
        })
    }

    /// Takes the number of the next link's functions: they ascend, but those of a union are of
    /// several chains.
    pub(crate) fn take(&mut self, number: u64, state: &StateReader<'_>) -> Result<(), LoadError> {
        if number < self.least || number > MAX_FUNCTION_SET {
            return Err(state.damaged(if self.united {
                "a link of a chain has a number that none has"
            } else {
                "the numbers of a chain's links do not ascend"
            }));
        }
        if !self.united {
            self.least = number + 1;
        }
        Ok(())
    }
}

impl FilterState for ScalableFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        state.u8(u8::from(self.united))?;
        state.count(self.ambiguous_removals)?;
        state.u32(self.links.len() as u32)?;
        for link in &self.links {
            state.u64(link.function_set())?;
            link.save_state(state)?;
        }
        Ok(())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        let mut saved = SavedLinks::load(state)?;
        if saved.count == 0 || saved.count > self.most_links {
            return Err(state.damaged("a chain has no links, or more than its parameters allow"));
        }
        let bytes = self.links[0].memory_bytes();
        self.links.clear();
        for _ in 0..saved.count {
            let number = state.u64()?;
            saved.take(number, state)?;
            if bytes > state.left() {
                return Err(state.damaged("a chain has more links than there are bytes for"));
            }
            let mut link = self.shape.link(number);
            link.load_state(state)?;
            self.links.push(link);
        }
        (self.counter, self.united) = (saved.counter, saved.united);
        self.ambiguous_removals = saved.ambiguous_removals;
        Ok(())
    }

    fn check_union(&self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.links_with(same(other)?).map(drop)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.unite_with(same(other)?)
    }
}
