//! Saving, loading and uniting a chain.

use super::{Counters, FIRST_FUNCTION_SET, FULL, MAX_FUNCTION_SET, ScalableFilter};
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use crate::spec::Parameters;
use crate::{DistinctCounter, MembershipFilter};
use std::io;

impl FilterState for ScalableFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        state.flag(self.united)?;
        state.count(self.ambiguous_removals)?;
        state.u32(self.links.len() as u32)?;
        for link in &self.links {
            state.u64(link.function_set)?;
            state.counters(&link.array)?;
        }
        Ok(())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.distinct()?;
        self.united = state.flag()?;
        self.ambiguous_removals = state.count()?;
        let links = state.u32()?;
        if links == 0 || links > self.spec.most_links {
            return Err(state.damaged("a chain has no links, or more than its parameters allow"));
        }
        let bytes = self.spec.built_bytes();
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
            // A union has the links of several chains, so its numbers need not ascend.
            if !self.united {
                least = number + 1;
            }
            if bytes > state.left() {
                return Err(state.damaged("a chain has more links than there are bytes for"));
            }
            let mut link = Counters::split(self.spec.link(), number);
            link.load_state(state)?;
            self.links.push(link);
        }
        Ok(())
    }

    fn check_union(&self, other: &dyn FilterState) -> Result<(), UnionError> {
        self.links_with(same(other)?).map(drop)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let links = self.links_with(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.united |= other.united || !self.is_empty() && !other.is_empty();
        // No count from the fill: it would count twice what both inputs hold.
        let more = other.counter.as_ref();
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, None);
        self.links = links;
        self.ambiguous_removals = self.ambiguous_removals.saturating_add(other.ambiguous_removals);
        Ok(())
    }
}

impl ScalableFilter {
    /// Returns the links of the union: ours and then the other's, each the oldest first. A link of
    /// the other is added to one of ours if both have the same functions and their sum is at most
    /// half full.
    fn links_with(&self, other: &Self) -> Result<Vec<Counters>, UnionError> {
        if self.is_empty() {
            return Ok(other.links.clone());
        }
        let mut links = self.links.clone();
        for more in other.links.iter().filter(|link| !link.is_empty()) {
            let number = more.function_set;
            let added = links.iter_mut().filter(|link| link.function_set == number).any(|link| {
                let mut sum = link.clone();
                sum.unite(more);
                let fits = sum.array.fill_ratio() <= FULL;
                if fits {
                    *link = sum;
                }
                fits
            });
            if !added {
                links.push(more.clone());
            }
        }
        let most = self.spec.most_links;
        if links.len() > most as usize {
            return Err(UnionError::Links { links: links.len(), most });
        }
        Ok(links)
    }

    /// Returns whether no link holds anything.
    fn is_empty(&self) -> bool {
        self.links.iter().all(Counters::is_empty)
    }
}
