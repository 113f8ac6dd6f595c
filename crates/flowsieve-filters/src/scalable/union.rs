//! The union of two chains.

use super::{FULL, ScalableFilter, SplitCounters};
use crate::DistinctCounter;
use crate::saved::UnionError;

impl ScalableFilter {
    /// Makes this the chain of both.
    pub(super) fn unite_with(&mut self, other: &Self) -> Result<(), UnionError> {
        let links = self.links_with(other)?;
        let both = !self.is_empty() && !other.is_empty();
        if both || self.is_union() || other.is_union() {
            // That of a chain whose count has ended says nothing, and that of a union lasts.
            let mut counter = self.counter.take().unwrap_or(DistinctCounter::LOST);
            counter.unite_streams(other.counter.as_ref().unwrap_or(&DistinctCounter::LOST));
            self.counter = Some(counter);
        } else {
            DistinctCounter::unite_where_known(&mut self.counter, other.counter.as_ref());
        }
        self.links = links;
        self.ambiguous_removals = self.ambiguous_removals.saturating_add(other.ambiguous_removals);
        Ok(())
    }

    /// The links of the union: ours and then the other's, each the oldest first. One of the other's
    /// that has the functions of one of ours, and fills at most half of a link together with it, is
    /// added to it.
    pub(super) fn links_with(&self, other: &Self) -> Result<Vec<SplitCounters>, UnionError> {
        if self.is_empty() {
            return Ok(other.links.clone());
        }
        let mut links = self.links.clone();
        for more in other.links.iter().filter(|link| !link.is_empty()) {
            let number = more.function_set();
            let added = links.iter_mut().filter(|link| link.function_set() == number).any(|link| {
                let mut sum = link.clone();
                sum.unite(more);
                let fits = sum.fill_ratio() <= FULL;
                if fits {
                    *link = sum;
                }
                fits
            });
            if !added {
                links.push(more.clone());
            }
        }
        if links.len() > self.most_links as usize {
            return Err(UnionError::Links { links: links.len(), most: self.most_links });
        }
        Ok(links)
    }

    /// Whether nothing is in it.
    fn is_empty(&self) -> bool {
        self.links.iter().all(SplitCounters::is_empty)
    }
}
