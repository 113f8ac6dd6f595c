//! SSCBF, the scalable split counting Bloom filter: a chain of equal filters that grows and shrinks.
//!
//! # Memory
//!
//! ```text
//!     link 1 (full) ──► link 2 (full) ──► … ──► link d (takes new elements)      at most D links
//!     k parts of m      k parts of m            k parts of m counters
//! ```
//!
//! Each link is the memory of a [split counting filter](super::SplitCountingFilter) with hash
//! functions of its own.
//!
//! # Operations
//!
//! - insert: the first link, from the oldest on, that contains the element counts it (a repeat). If
//!   none does, the newest link takes it (new); if that is full, which means half of its counters are
//!   above zero, a new link is appended first. With D links there is no new one: the newest is
//!   filled beyond a half, and the false-positive rate grows beyond the formula.
//! - contains: any link does.
//! - remove: the first link, from the oldest on, that contains the element takes it back. A link that
//!   became empty gives its memory back (the last one stays).
//!
//! Only the newest link ever takes elements that it does not contain. That is what makes `remove` exact:
//! an element stands in the first link that said yes when it was first inserted; the links before it
//! said no, and can only lose elements from then on, so the first link that says yes is always the
//! one that holds it. An element that is *new* but a false positive of some link is counted there (as
//! a repeat), and taken back from there. (Filling half-empty older links up again would break this:
//! an older link could come to contain, falsely, what stands in a newer one, and a removal would then
//! take from strangers.)
//!
//! All cost O(d k).
//!
//! # Formulas
//!
//! With P the rate of one link that is just full, P = 2^-k, a chain of d has
//! `P_d` = 1 - (1 - P)^d ([`super::sizing::scalable_fpr`]):
//!
//! | P | d = 2 | 4 | 8 | 16 | most links for `P_d` ≤ 1 % |
//! |---|---|---|---|---|---|
//! | 0.01 | 0.0199 | 0.03940 | 0.07726 | 0.1485 | 1 |
//! | 0.001 | 0.001999 | 0.003994 | 0.007972 | 0.01588 | 10 |
//! | 0.0001 | 0.00020 | 0.00040 | 0.00080 | 0.001599 | 100 |
//!
//! A link is full with m ln 2 elements.
//!
//! # Distinct elements
//!
//! Until the first removal: a new element is called a repeat with p = 1 - product over the links of
//! (1 - `p_link`), exactly, since the links' functions are independent.
//!
//! # What it cannot do
//!
//! Answer for part of the attributes. Merge links: after removals several may be nearly empty.
//!
//! Reference: the SCBF paper's scalable form; Almeida, Baquero, Preguiça, Hutchison, "Scalable Bloom
//! filters", Information Processing Letters 101(6), 2007, for chains.

use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError};
use super::split_counting::SplitCounters;
use super::{
    CounterStats, ElementDigests, Estimate, FilterStats, HipCounter, MembershipFilter,
    RemovableFilter, Sighting,
};
use crate::hashing::Digest;
use std::io;

/// A link is full when this share of its counters is above zero.
const FULL: f64 = 0.5;

/// Function sets of the links begin here, away from those of other structures.
const FIRST_FUNCTION_SET: u64 = 0x1000;

/// Number beyond those of all links that there will ever be.
const MAX_FUNCTION_SET: u64 = 1 << 48;

/// Scalable split counting Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct ScalableFilter {
    /// At least one; only the last takes new elements.
    links: Vec<SplitCounters>,
    shape: LinkShape,
    most_links: u32,
    /// `None` from the first removal on.
    counter: Option<HipCounter>,
}

#[derive(Clone, Copy, Debug)]
struct LinkShape {
    part: u64,
    probes: u32,
    counter_bits: u32,
}

impl LinkShape {
    fn link(self, function_set: u64) -> SplitCounters {
        SplitCounters::new(self.part, self.probes, self.counter_bits, function_set)
    }
}

impl ScalableFilter {
    /// A chain of up to `most_links` (D ≥ 1) links, each of `probes` (k ≥ 1) parts of `part` (m ≥ 1)
    /// counters of `counter_bits` (1 to 8). One link is allocated.
    pub fn new(part: u64, probes: u32, counter_bits: u32, most_links: u32) -> Self {
        let shape = LinkShape {
            part,
            probes,
            counter_bits,
        };
        Self {
            links: vec![shape.link(FIRST_FUNCTION_SET)],
            shape,
            most_links,
            counter: Some(HipCounter::default()),
        }
    }

    /// Links in the chain (d).
    pub const fn links(&self) -> usize {
        self.links.len()
    }

    /// The link that holds the element, if it was inserted.
    fn holder(&self, digest: Digest) -> Option<usize> {
        self.links.iter().position(|link| link.contains(digest))
    }

    fn repeat_probability(&self) -> f64 {
        let none: f64 = self
            .links
            .iter()
            .map(|link| 1.0 - link.repeat_probability())
            .product();
        1.0 - none
    }

    /// The link that takes a new element.
    fn newest(&mut self) -> &mut SplitCounters {
        let last = &self.links[self.links.len() - 1];
        if last.fill_ratio() >= FULL && self.links.len() < self.most_links as usize {
            // The number after the last one's: a chain that grew and shrank again is as before.
            let link = self.shape.link(last.function_set() + 1);
            self.links.push(link);
        }
        let last = self.links.len() - 1;
        &mut self.links[last]
    }
}

impl MembershipFilter for ScalableFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        if let Some(holder) = self.holder(element.whole) {
            self.links[holder].insert(element.whole);
            return Sighting::Repeat;
        }
        let repeat_probability = self.repeat_probability();
        self.newest().insert(element.whole);
        if let Some(counter) = &mut self.counter {
            counter.record(repeat_probability);
        }
        Sighting::First
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.holder(element.whole).is_some()
    }

    fn clear(&mut self) {
        self.links.truncate(1);
        if self.links[0].function_set() == FIRST_FUNCTION_SET {
            self.links[0].clear();
        } else {
            self.links[0] = self.shape.link(FIRST_FUNCTION_SET);
        }
        self.counter = Some(HipCounter::default());
    }

    fn stats(&self) -> FilterStats {
        let links = || self.links.iter().map(SplitCounters::stats);
        let counters = || links().filter_map(|stats| stats.counters);
        FilterStats {
            memory_bytes: self.links.iter().map(SplitCounters::memory_bytes).sum(),
            fill_ratio: links().map(|stats| stats.fill_ratio).sum::<f64>()
                / self.links.len() as f64,
            counters: Some(CounterStats {
                saturated: counters().map(|c| c.saturated).sum(),
                overflows: counters().map(|c| c.overflows).sum(),
            }),
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        self.counter.map(|counter| counter.estimate())
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl FilterState for ScalableFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.hip(self.counter)?;
        state.u32(self.links.len() as u32)?;
        for link in &self.links {
            state.u64(link.function_set())?;
            link.save_state(state)?;
        }
        Ok(())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.hip()?;
        let links = state.u32()?;
        if links == 0 || links > self.most_links {
            return Err(state.damaged("a chain has no links, or more than its parameters allow"));
        }
        let bytes = self.links[0].memory_bytes();
        let mut next = FIRST_FUNCTION_SET;
        self.links.clear();
        for _ in 0..links {
            let function_set = state.u64()?;
            if function_set < next || function_set > MAX_FUNCTION_SET {
                return Err(state.damaged("the numbers of a chain's links do not ascend"));
            }
            if bytes > state.left() {
                return Err(state.damaged("a chain has more links than there are bytes for"));
            }
            next = function_set + 1;
            let mut link = self.shape.link(function_set);
            link.load_state(state)?;
            self.links.push(link);
        }
        Ok(())
    }

    /// None: an element stands in the link that was the newest when it came, and links are full.
    fn unite(&mut self, _: &dyn FilterState) -> Result<(), UnionError> {
        Err(UnionError::Structure)
    }
}

impl RemovableFilter for ScalableFilter {
    fn remove(&mut self, element: ElementDigests<'_>) {
        let Some(holder) = self.holder(element.whole) else {
            return;
        };
        self.links[holder].remove(element.whole);
        if self.links[holder].is_empty() && self.links.len() > 1 {
            self.links.remove(holder);
        }
        self.counter = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn whole(digest: &Digest) -> ElementDigests<'_> {
        ElementDigests {
            whole: *digest,
            attributes: &[],
        }
    }

    /// Churn in which old links lose elements while new ones come: with every removal justified,
    /// nothing that is left may disappear, and in the end the chain is one empty link.
    #[test]
    fn removals_are_exact_under_churn() {
        let digests: Vec<Digest> = (0..4000_u32)
            .map(|i| Digester::new(3).digest(&i.to_le_bytes()))
            .collect();
        let mut filter = ScalableFilter::new(200, 3, 8, 16);
        let mut most = 0;
        for (i, digest) in digests.iter().enumerate() {
            filter.insert(whole(digest));
            if i % 3 == 0 {
                filter.insert(whole(digest));
            }
            most = most.max(filter.links());
            if i >= 600 {
                let leaving = i - 600;
                filter.remove(whole(&digests[leaving]));
                if leaving % 3 == 0 {
                    assert!(filter.contains(whole(&digests[leaving])), "{leaving}");
                    filter.remove(whole(&digests[leaving]));
                }
                for (j, still) in digests[leaving + 1..=i].iter().enumerate().step_by(37) {
                    assert!(filter.contains(whole(still)), "{j} after {leaving}");
                }
            }
        }
        assert!((5..=16).contains(&most), "{most}");
        for (i, digest) in digests.iter().enumerate().skip(3400) {
            filter.remove(whole(digest));
            if i % 3 == 0 {
                filter.remove(whole(digest));
            }
        }
        assert_eq!(filter.links(), 1);
        assert!(filter.links[0].is_empty());
    }

    #[test]
    fn the_bound_holds_and_loses_nothing() {
        let mut filter = ScalableFilter::new(64, 4, 4, 3);
        let digests: Vec<Digest> = (0..2000_u32)
            .map(|i| Digester::new(5).digest(&i.to_le_bytes()))
            .collect();
        for digest in &digests {
            filter.insert(whole(digest));
        }
        assert_eq!(filter.links(), 3);
        assert_eq!(filter.stats().memory_bytes, 3 * 64 * 4 / 2);
        assert!(digests.iter().all(|digest| filter.contains(whole(digest))));
        filter.clear();
        assert_eq!(filter.links(), 1);
        assert!(!digests.iter().any(|digest| filter.contains(whole(digest))));
    }
}
