//! The chain on disk.

use super::{FIRST_FUNCTION_SET, MAX_FUNCTION_SET, ScalableFilter};
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use std::io;

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
        self.counter = state.distinct()?;
        self.united = state.flag()?;
        self.ambiguous_removals = state.count()?;
        let links = state.u32()?;
        if links == 0 || links > self.most_links {
            return Err(state.damaged("a chain has no links, or more than its parameters allow"));
        }
        let bytes = self.links[0].memory_bytes();
        self.links.clear();
        let mut least = FIRST_FUNCTION_SET;
        for _ in 0..links {
            let number = state.u64()?;
            if number < least || number > MAX_FUNCTION_SET {
                return Err(state.damaged(if self.united {
                    "a link of a chain has a number that none has"
                } else {
                    "the numbers of a chain's links do not ascend"
                }));
            }
            // Those of a union are of several chains.
            if !self.united {
                least = number + 1;
            }
            if bytes > state.left() {
                return Err(state.damaged("a chain has more links than there are bytes for"));
            }
            let mut link = self.shape.link(number);
            link.load_state(state)?;
            self.links.push(link);
        }
        Ok(())
    }

    fn check_union(&self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.links_with(same(other)?).map(drop)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.unite_with(same(other)?)
    }
}
