//! SSCBF, the scalable split counting Bloom filter: a chain of equal filters that grows and
//! shrinks.
//!
//! # Memory
//!
//! ```text
//!     link 1 (full) ──► link 2 (full) ──► … ──► link d (takes new elements)      at most D links
//!     k parts of m      k parts of m            k parts of m counters
//! ```
//!
//! Each link is the memory of a [split counting filter](super::CountingFilter::split) with hash
//! functions.
//!
//! # Operations
//!
//! A link *claims* an element that it contains, truly or falsely; it *holds* those that were
//! inserted into it and not taken back. The holder always claims. A link is full when half of its
//! counters are above zero.
//!
//! - insert: the first link, from the oldest on, that claims the element counts it (a repeat). If
//!   none does, the element is new, and the rule of [`Refill`] says which link takes it; if that is
//!   none, a new link is appended. With D links there is no new one: the newest is filled beyond a
//!   half, and the false-positive rate grows beyond the formula.
//! - contains: any link claims it.
//! - remove: the link that holds the element takes it back. A link that became empty gives its
//!   memory back (the last one stays).
//!
//! All cost O(d k). As long as nothing is removed the two rules are the same.
//!
//! # Which link holds it
//!
//! | rule | a new element goes to | a removal takes from | what is lost |
//! |---|---|---|---|
//! | [`Refill::FirstNotFull`], published | the oldest link that is not full | the only link that claims it | removals of elements that several links claim |
//! | [`Refill::Newest`] | the newest link | the oldest link that claims it | room: older links only lose elements |
//!
//! With `Newest`, only the newest link ever takes elements that it does not claim. So an element
//! stands in the first link that said yes when it was first inserted; those before it said no, and
//! can only lose elements from then on: the first link that says yes is always the holder, and a
//! removal undoes an insertion exactly.
//!
//! With `FirstNotFull` an older link that is filled up again may come to claim, falsely, what a
//! newer one holds. Taking from it would take from strangers, and make false negatives of them. If
//! exactly one link claims the element, it is the holder, since the holder always claims. If
//! several do, all but the holder are false positives and nothing tells which, so *nothing is
//! taken*: the removal is counted ([`CounterStats::ambiguous_removals`]) and the element stays, as
//! one that is contained without being there. There is never a false negative; what is left over is
//! at most k counters a removal, for about the share 1 - (1 - P)^(d-1) of them, until the filter is
//! cleared. Leftovers add up: they take room, and keep a link from being given back, so a chain
//! that never rests wants a small P. (An element that was left over and comes back may be held by
//! two links from then on, and be left over at each later removal.)
//!
//! An element that is new but a false positive of some link is counted there (as a repeat), and
//! taken back from there, under either rule.
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
//! # Union
//!
//! The union of two chains has the links of both, its own and then the other's, each the oldest
//! first, if those are at most D; else there is none. Two links with the same functions are added
//! up, as split counting filters are, if the sum is at most half full; so the union of small chains
//! is a small chain. Its rate is at most that of a chain of this many links: an element that both
//! inputs had stands in two.
//!
//! Nothing tells any more in which order the links were filled, so a union goes by `FirstNotFull`
//! whatever its own rule: the oldest link that is not full takes what is new, from whichever input
//! it came, and a removal takes from the only link that claims the element. Of an element that two
//! links hold, since both inputs had it, nothing is taken; it counts as ambiguous and stays until
//! the chain is cleared. There is no count of distinct elements, since the fill counts such
//! elements twice.
//!
//! # Limits
//!
//! Answer for part of the attributes. Merge full links: after removals several may be nearly empty.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MembershipFilter, Refill, ScalableFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = ScalableFilter::new(100, 7, 4, 8, Refill::default());
//! for number in 0..300 {
//!     filter.insert(word(&number.to_string()));
//! }
//! // A link is full with 69 elements.
//! assert_eq!(filter.links(), 5);
//! assert!(filter.contains(word("17")));
//! ```
//!
//! Reference: the SCBF paper's scalable form; Almeida, Baquero, Preguiça, Hutchison, "Scalable
//! Bloom filters", Information Processing Letters 101(6), 2007, for chains.

mod large_rate;
mod rate;
mod small_rate;
mod spec;
mod state;
mod union;

pub(crate) use self::spec::SCALABLE;
pub use self::spec::ScalableSpec;
use super::counting::Counters;
use super::{
    CounterStats, DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter,
    RemovableFilter, Sighting,
};
use crate::hashing::Digest;

/// A link is full when this share of its counters is above zero.
const FULL: f64 = 0.5;

/// Function sets of the links begin here, away from those of other structures.
const FIRST_FUNCTION_SET: u64 = 0x1000;

/// Which link of a chain takes a new element.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Refill {
    /// The oldest one that is not full, as published. A removal takes nothing if several links
    /// claim the element.
    #[default]
    FirstNotFull,
    /// The newest one, so that a removal always undoes an insertion.
    Newest,
}

/// Number beyond those of all links that there will ever be.
const MAX_FUNCTION_SET: u64 = 1 << 48;

/// Scalable split counting Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct ScalableFilter {
    /// At least one.
    links: Vec<Counters>,
    shape: LinkShape,
    most_links: u32,
    refill: Refill,
    ambiguous_removals: u64,
    /// Whether it has links of several chains.
    united: bool,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

#[derive(Clone, Copy, Debug)]
struct LinkShape {
    part: u64,
    probes: u32,
    counter_bits: u32,
}

impl LinkShape {
    fn link(self, function_set: u64) -> Counters {
        Counters::split(self.part, self.probes, self.counter_bits, function_set)
    }
}

impl ScalableFilter {
    /// A chain of up to `most_links` (D ≥ 1) links, each of `probes` (k ≥ 1) parts of `part` (m ≥
    /// 1) counters of `counter_bits` (1 to 8). One link is allocated.
    pub fn new(part: u64, probes: u32, counter_bits: u32, most_links: u32, refill: Refill) -> Self {
        let shape = LinkShape { part, probes, counter_bits };
        Self {
            links: vec![shape.link(FIRST_FUNCTION_SET)],
            shape,
            most_links,
            refill,
            ambiguous_removals: 0,
            united: false,
            counter: Some(DistinctCounter::default()),
        }
    }

    /// Links in the chain (d).
    pub const fn links(&self) -> usize {
        self.links.len()
    }

    /// The first link that claims the element.
    fn claims(&self, digest: Digest) -> Option<usize> {
        self.links.iter().position(|link| link.contains(digest))
    }

    /// The link that holds an element that was inserted, as far as that is known.
    fn holder(&mut self, digest: Digest) -> Option<usize> {
        let first = self.claims(digest)?;
        let mut later = self.links[first + 1..].iter();
        if self.rule() == Refill::FirstNotFull && later.any(|link| link.contains(digest)) {
            self.ambiguous_removals = self.ambiguous_removals.saturating_add(1);
            return None;
        }
        Some(first)
    }

    /// The rule that it goes by.
    fn rule(&self) -> Refill {
        if self.united { Refill::FirstNotFull } else { self.refill }
    }

    /// The link that takes a new element.
    fn taker(&mut self) -> &mut Counters {
        let last = self.links.len() - 1;
        let candidates = match self.rule() {
            Refill::FirstNotFull => 0..=last,
            Refill::Newest => last..=last,
        };
        let mut taker = candidates.into_iter().find(|&link| self.links[link].fill_ratio() < FULL);
        if taker.is_none() && self.links.len() < self.most_links as usize {
            // The number after the largest: a chain that grew and shrank again is as before.
            let numbers = self.links.iter().map(Counters::function_set);
            let number = numbers.fold(FIRST_FUNCTION_SET, u64::max) + 1;
            if number <= MAX_FUNCTION_SET {
                self.links.push(self.shape.link(number));
                taker = Some(last + 1);
            }
        }
        &mut self.links[taker.unwrap_or(last)]
    }
}

/// Probability that a new element is called a repeat by one of these links.
fn repeat_probability(links: &[Counters]) -> f64 {
    let none: f64 = links.iter().map(|link| 1.0 - link.repeat_probability()).product();
    1.0 - none
}

impl MembershipFilter for ScalableFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let claims = self.claims(element.whole);
        let sighting = if claims.is_some() { Sighting::Repeat } else { Sighting::First };
        if let Some(counter) = &mut self.counter {
            counter.record(sighting, || repeat_probability(&self.links));
        }
        match claims {
            Some(link) => self.links[link].insert(element.whole),
            None => self.taker().insert(element.whole),
        };
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.claims(element.whole).is_some()
    }

    fn clear(&mut self) {
        self.links.truncate(1);
        if self.links[0].function_set() == FIRST_FUNCTION_SET {
            self.links[0].clear();
        } else {
            self.links[0] = self.shape.link(FIRST_FUNCTION_SET);
        }
        self.ambiguous_removals = 0;
        self.united = false;
        self.counter = Some(DistinctCounter::default());
    }

    fn stats(&self) -> FilterStats {
        let links = || self.links.iter().map(Counters::stats);
        let counters = || links().filter_map(|stats| stats.counters);
        FilterStats {
            memory_bytes: self.links.iter().map(Counters::memory_bytes).sum(),
            fill_ratio: links().map(|stats| stats.fill_ratio).sum::<f64>()
                / self.links.len() as f64,
            counters: Some(CounterStats {
                saturated: counters().map(|c| c.saturated).sum(),
                overflows: counters().map(|c| c.overflows).sum(),
                ambiguous_removals: self.ambiguous_removals,
                ..CounterStats::default()
            }),
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter?.estimate(|| repeat_probability(&self.links)))
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl RemovableFilter for ScalableFilter {
    fn remove(&mut self, element: ElementDigests<'_>) {
        let Some(holder) = self.holder(element.whole) else {
            // An ambiguous removal ends the count as well.
            if self.ambiguous_removals != 0 {
                self.counter = None;
            }
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
mod tests;
