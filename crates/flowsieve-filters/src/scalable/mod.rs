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
//! Each link has the counters of a [split counting filter](super::CountingFilter::split), with hash
//! functions independent of those of the other links.
//!
//! # Operations
//!
//! A link *claims* an element that it contains, truly or falsely; it *holds* an element that was
//! inserted into it and not removed. The holder always claims. A link is full when half of its
//! counters are above zero.
//!
//! - insert: the first link, from the oldest on, that claims the element counts it (a repeat). If
//!   none does, the element is new, and the rule of [`Refill`] chooses a link that is not full; if
//!   there is none, a new link is appended. After D links the newest is filled beyond a half, and
//!   the false-positive rate grows beyond the formula.
//! - contains: any link claims the element.
//! - remove: remove the element from the link that holds it. A link that became empty is freed,
//!   except the last one.
//!
//! All cost O(d k). As long as nothing is removed the two rules are the same.
//!
//! # The holder of an element
//!
//! | rule | a new element goes to | a removal takes from | what is lost |
//! |---|---|---|---|
//! | [`Refill::FirstNotFull`], published | the oldest link that is not full | the only link that claims it | removals of elements that several links claim |
//! | [`Refill::Newest`] | the newest link | the oldest link that claims it | room: older links only lose elements |
//!
//! With `Newest`, only the newest link ever takes elements that it does not claim. So the first
//! link that claimed an element when it was first inserted holds it; the links before it did not
//! claim it, and can only lose elements from then on. The first link that claims the element is
//! always the holder, and a removal undoes an insertion exactly.
//!
//! With `FirstNotFull` an older link that is filled again may come to claim, falsely, an element
//! that a newer one holds. A removal from it would make false negatives of other elements. If
//! exactly one link claims the element, it is the holder, since the holder always claims. If
//! several do, all but the holder are false positives, and it is unknown which. So *nothing is
//! removed*: the removal is counted ([`CounterStats::ambiguous_removals`]), and the element stays
//! as a false positive. There is never a false negative. About the share 1 - (1 - P)^(d-1) of the
//! removals leave up to k counters each until the filter is cleared. These add up: they take room
//! and keep links from being freed, so a chain that is never cleared needs a small P. (An element
//! that was left and is inserted again may be held by two links from then on, and be left at each
//! later removal.)
//!
//! Under either rule, a new element that is a false positive of a link is counted there (as a
//! repeat), and removed from there.
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
//! first. It is refused if there are more than D. Two links with the same functions are added up,
//! like split counting filters, if the sum is at most half full; so the union of small chains is a
//! small chain. Its rate is at most that of a chain of this many links: two links hold an element
//! that both inputs had.
//!
//! The order in which the links were filled is lost, so a union always follows `FirstNotFull`: the
//! oldest link that is not full takes new elements, from whichever input it came, and a removal
//! needs a single link that claims the element. An element that both inputs had is not removed,
//! since two links hold it; the removal is ambiguous, and the element stays until the chain is
//! cleared. The count of distinct elements only has bounds, since the fill counts such elements
//! twice.
//!
//! # Limits
//!
//! The filter does not answer for some of the attributes. Links are not merged when removals have
//! nearly emptied several.
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

pub(crate) use self::spec::SCALABLE;
pub use self::spec::ScalableSpec;
use super::counting::Counters;
use super::{
    CounterStats, DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter,
    RemovableFilter, Sighting,
};
use crate::hashing::Digest;

/// Share of counters above zero at which a link is full.
const FULL: f64 = 0.5;

/// Number of the first link's family of hash functions, apart from those of other structures.
const FIRST_FUNCTION_SET: u64 = 0x1000;

/// Which link of a chain takes a new element.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Refill {
    /// The oldest link that is not full, as published. A removal does nothing if several links
    /// claim the element.
    #[default]
    FirstNotFull,
    /// The newest link, so that a removal always undoes an insertion.
    Newest,
}

/// Largest number of a link's family of hash functions; no chain ever reaches it.
const MAX_FUNCTION_SET: u64 = 1 << 48;

/// Scalable split counting Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct ScalableFilter {
    /// At least one.
    links: Vec<Counters>,
    spec: ScalableSpec,
    ambiguous_removals: u64,
    /// Whether it is a union, which has links of several chains.
    united: bool,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

impl ScalableFilter {
    /// Creates a chain of up to `most_links` (D ≥ 1) links, each of `probes` (k ≥ 1) parts of
    /// `part` (m ≥ 1) counters of `counter_bits` (1 to 8). Allocates one link.
    pub fn new(part: u64, probes: u32, counter_bits: u32, most_links: u32, refill: Refill) -> Self {
        Self::with_spec(ScalableSpec { part, probes, counter_bits, most_links, refill })
    }

    fn with_spec(spec: ScalableSpec) -> Self {
        Self {
            links: vec![Counters::split(spec.link(), FIRST_FUNCTION_SET)],
            spec,
            ambiguous_removals: 0,
            united: false,
            counter: Some(DistinctCounter::default()),
        }
    }

    /// Returns the number of links in the chain (d).
    pub const fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns the first link that claims the element.
    fn claims(&self, digest: Digest) -> Option<usize> {
        self.links.iter().position(|link| link.contains(digest))
    }

    /// Returns the link that holds an element that was inserted, or `None` if no link claims it or
    /// if the holder is unknown; the latter counts as an ambiguous removal.
    fn holder(&mut self, digest: Digest) -> Option<usize> {
        let first = self.claims(digest)?;
        let mut later = self.links[first + 1..].iter();
        if self.rule() == Refill::FirstNotFull && later.any(|link| link.contains(digest)) {
            self.ambiguous_removals = self.ambiguous_removals.saturating_add(1);
            return None;
        }
        Some(first)
    }

    /// Returns the rule in force: a union always follows [`Refill::FirstNotFull`].
    fn rule(&self) -> Refill {
        if self.united { Refill::FirstNotFull } else { self.spec.refill }
    }

    /// Returns the link that takes a new element, and appends one if it has to.
    fn taker(&mut self) -> &mut Counters {
        let last = self.links.len() - 1;
        let candidates = match self.rule() {
            Refill::FirstNotFull => 0..=last,
            Refill::Newest => last..=last,
        };
        let mut taker =
            candidates.into_iter().find(|&link| self.links[link].array.fill_ratio() < FULL);
        if taker.is_none() && self.links.len() < self.spec.most_links as usize {
            // One more than the largest in use, so that a chain that grew and shrank again is equal
            // to the one before.
            let numbers = self.links.iter().map(|link| link.function_set);
            let number = numbers.fold(FIRST_FUNCTION_SET, u64::max) + 1;
            if number <= MAX_FUNCTION_SET {
                self.links.push(Counters::split(self.spec.link(), number));
                taker = Some(last + 1);
            }
        }
        &mut self.links[taker.unwrap_or(last)]
    }
}

/// Returns the probability that one of these links calls a new element a repeat.
fn repeat_probability(links: &[Counters]) -> f64 {
    let none: f64 = links.iter().map(|link| 1.0 - link.repeat_probability).product();
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
        if self.links[0].function_set == FIRST_FUNCTION_SET {
            self.links[0].clear();
        } else {
            self.links[0] = Counters::split(self.spec.link(), FIRST_FUNCTION_SET);
        }
        self.ambiguous_removals = 0;
        self.united = false;
        self.counter = Some(DistinctCounter::default());
    }

    fn stats(&self) -> FilterStats {
        let own =
            CounterStats { ambiguous_removals: self.ambiguous_removals, ..CounterStats::default() };
        let links = self.links.iter().map(|link| FilterStats::of_counters(&link.array));
        let stats = FilterStats::of_all(links);
        FilterStats { counters: stats.counters.map(|links| links.plus(own)), ..stats }
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
