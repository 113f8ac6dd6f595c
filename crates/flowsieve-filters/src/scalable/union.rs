//! The union of two chains.

use super::{Counters, FULL, ScalableFilter};
use crate::saved::UnionError;
use crate::{DistinctCounter, MembershipFilter};

impl ScalableFilter {
    /// Makes this the chain of both.
    pub(super) fn unite_with(&mut self, other: &Self) -> Result<(), UnionError> {
        let links = self.links_with(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.united |= other.united || !self.is_empty() && !other.is_empty();
        // What both hold would be counted twice by the fill of the links.
        let more = other.counter.as_ref();
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, None);
        self.links = links;
        self.ambiguous_removals = self.ambiguous_removals.saturating_add(other.ambiguous_removals);
        Ok(())
    }

    /// The links of the union: ours and then the other's, each the oldest first. One of the other's
    /// that has the functions of one of ours, and fills at most half of a link together with it, is
    /// added to it.
    pub(super) fn links_with(&self, other: &Self) -> Result<Vec<Counters>, UnionError> {
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
        self.links.iter().all(Counters::is_empty)
    }
}
