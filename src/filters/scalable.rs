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
//! A link *claims* an element that it contains, truly or falsely; it *holds* those that were inserted
//! into it and not taken back. The holder always claims. A link is full when half of its counters are
//! above zero.
//!
//! - insert: the first link, from the oldest on, that claims the element counts it (a repeat). If none
//!   does, the element is new, and the rule of [`Refill`] says which link takes it; if that is none, a
//!   new link is appended. With D links there is no new one: the newest is filled beyond a half, and
//!   the false-positive rate grows beyond the formula.
//! - contains: any link claims it.
//! - remove: the link that holds the element takes it back. A link that became empty gives its memory
//!   back (the last one stays).
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
//! With `Newest`, only the newest link ever takes elements that it does not claim. So an element stands
//! in the first link that said yes when it was first inserted; those before it said no, and can only
//! lose elements from then on: the first link that says yes is always the holder, and a removal undoes
//! an insertion exactly.
//!
//! With `FirstNotFull` an older link that is filled up again may come to claim, falsely, what a newer
//! one holds. Taking from it would take from strangers, and make false negatives of them. If exactly
//! one link claims the element, it is the holder, since the holder always claims. If several do, all
//! but the holder are false positives and nothing tells which, so *nothing is taken*: the removal is
//! counted ([`CounterStats::ambiguous_removals`]) and the element stays, as one that is contained
//! without being there. There is never a false negative; what is left over is at most k counters a
//! removal, for about the share 1 - (1 - P)^(d-1) of them, until the filter is cleared. Leftovers add
//! up: they take room, and keep a link from being given back, so a chain that never rests wants a
//! small P. (An element that was left over and comes
//! back may be held by two links from then on, and be left over at each later removal.)
//!
//! An element that is new but a false positive of some link is counted there (as a repeat), and taken
//! back from there, under either rule.
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
pub(super) use super::split_counting::positions;
use super::{
    CounterStats, ElementDigests, Estimate, FilterStats, HipCounter, MembershipFilter,
    RemovableFilter, Sighting,
};
use crate::hashing::Digest;
use std::io;

/// A link is full when this share of its counters is above zero.
const FULL: f64 = 0.5;

/// Function sets of the links begin here, away from those of other structures.
pub(super) const FIRST_FUNCTION_SET: u64 = 0x1000;

/// Which link of a chain takes a new element.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Refill {
    /// The oldest one that is not full, as published. A removal takes nothing if several links claim
    /// the element.
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
    links: Vec<SplitCounters>,
    shape: LinkShape,
    most_links: u32,
    refill: Refill,
    ambiguous_removals: u64,
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
    pub fn new(part: u64, probes: u32, counter_bits: u32, most_links: u32, refill: Refill) -> Self {
        let shape = LinkShape {
            part,
            probes,
            counter_bits,
        };
        Self {
            links: vec![shape.link(FIRST_FUNCTION_SET)],
            shape,
            most_links,
            refill,
            ambiguous_removals: 0,
            counter: Some(HipCounter::default()),
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
        if self.refill == Refill::FirstNotFull && later.any(|link| link.contains(digest)) {
            self.ambiguous_removals += 1;
            return None;
        }
        Some(first)
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
    fn taker(&mut self) -> &mut SplitCounters {
        let last = self.links.len() - 1;
        let candidates = match self.refill {
            Refill::FirstNotFull => 0..=last,
            Refill::Newest => last..=last,
        };
        let mut taker = candidates
            .into_iter()
            .find(|&link| self.links[link].fill_ratio() < FULL);
        // The number after the last one's: a chain that grew and shrank again is as before.
        let number = self.links[last].function_set() + 1;
        if taker.is_none()
            && self.links.len() < self.most_links as usize
            && number <= MAX_FUNCTION_SET
        {
            self.links.push(self.shape.link(number));
            taker = Some(last + 1);
        }
        &mut self.links[taker.unwrap_or(last)]
    }
}

/// Whether a link of a saved chain may have these functions, where `next` is one more than those of the link
/// before, or [`FIRST_FUNCTION_SET`].
pub(super) const fn may_follow(function_set: u64, next: u64) -> bool {
    next <= function_set && function_set <= MAX_FUNCTION_SET
}

/// What is wrong with a chain of which one may not.
pub(super) const NOT_ASCENDING: &str = "the numbers of a chain's links do not ascend";

/// Reads what stands before the links of a saved chain: how many they are.
pub(super) fn load_links(state: &mut StateReader<'_>) -> Result<u32, LoadError> {
    state.hip()?;
    state.u64()?;
    state.u32()
}

impl MembershipFilter for ScalableFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        if let Some(link) = self.claims(element.whole) {
            self.links[link].insert(element.whole);
            return Sighting::Repeat;
        }
        let repeat_probability = self.repeat_probability();
        self.taker().insert(element.whole);
        if let Some(counter) = &mut self.counter {
            counter.record(repeat_probability);
        }
        Sighting::First
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
                ambiguous_removals: self.ambiguous_removals,
                overflow: None,
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
        state.count(self.ambiguous_removals)?;
        state.u32(self.links.len() as u32)?;
        for link in &self.links {
            state.u64(link.function_set())?;
            link.save_state(state)?;
        }
        Ok(())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.hip()?;
        self.ambiguous_removals = state.count()?;
        let links = state.u32()?;
        if links == 0 || links > self.most_links {
            return Err(state.damaged("a chain has no links, or more than its parameters allow"));
        }
        let bytes = self.links[0].memory_bytes();
        let mut next = FIRST_FUNCTION_SET;
        self.links.clear();
        for _ in 0..links {
            let function_set = state.u64()?;
            if !may_follow(function_set, next) {
                return Err(state.damaged(NOT_ASCENDING));
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
            // An ambiguous removal ends the count as well: what is left is no stream of insertions.
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
        let mut filter = ScalableFilter::new(200, 3, 8, 16, Refill::Newest);
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

    /// Elements come in, stay for a while of random length and leave: many links are filled up again
    /// and again. Nothing that is there is ever missed, and what stays behind is what the false
    /// positives of the other links explain.
    #[test]
    fn refilled_links_lose_nothing_and_keep_little() {
        const ELEMENTS: u32 = 20_000;
        let (part, probes) = (300, 10);
        let mut filter = ScalableFilter::new(part, probes, 8, 16, Refill::FirstNotFull);
        let mut there: Vec<Digest> = Vec::new();
        let (mut removals, mut most) = (0_u32, 0);
        for i in 0..ELEMENTS {
            let digest = Digester::new(7).digest(&i.to_le_bytes());
            filter.insert(whole(&digest));
            there.push(digest);
            most = most.max(filter.links());
            // The number that is there goes up and down between 500 and 1500.
            let wanted = 1000 + (500.0 * (f64::from(i) / 1500.0).sin()) as usize;
            while there.len() > wanted {
                let leaving = digest.value() as usize % there.len();
                filter.remove(whole(&there.swap_remove(leaving)));
                removals += 1;
            }
            if i % 50 == 0 {
                assert!(
                    there.iter().all(|digest| filter.contains(whole(digest))),
                    "{i}"
                );
            }
        }
        for digest in there.drain(..) {
            filter.remove(whole(&digest));
            removals += 1;
        }
        assert_eq!(removals, ELEMENTS);
        assert!((5..16).contains(&most), "{most}");
        let stats = filter.stats().counters.expect("it has counters");
        let left = stats.ambiguous_removals;
        let rate = 1.0 - (1.0 - 0.5_f64.powi(probes as i32)).powi(most as i32 - 1);
        let expected = rate * f64::from(ELEMENTS);
        println!("{left} of {removals} left over, at most {expected} expected, {most} links");
        assert!(left > 20 && (left as f64) < expected, "{left} {expected}");
        // Nothing but their counters is above zero.
        let nonzero: f64 = filter
            .links
            .iter()
            .map(|link| link.fill_ratio() * (part * u64::from(probes)) as f64)
            .sum();
        assert!(
            nonzero.round() as u64 <= left * u64::from(probes),
            "{nonzero} {left}"
        );
        filter.clear();
        assert_eq!(filter.stats().counters, Some(CounterStats::default()));
    }

    /// A link in the middle that has room takes the next new element, and one that is empty goes.
    #[test]
    fn the_oldest_link_with_room_takes_what_is_new() {
        let digests: Vec<Digest> = (0..1200_u32)
            .map(|i| Digester::new(4).digest(&i.to_le_bytes()))
            .collect();
        for refill in [Refill::FirstNotFull, Refill::Newest] {
            let mut filter = ScalableFilter::new(256, 12, 4, 20, refill);
            for digest in &digests[..600] {
                filter.insert(whole(digest));
            }
            assert_eq!(filter.links(), 4, "177 elements fill a link");
            // Elements 200 to 300 are in the second link; without them it has room.
            for digest in &digests[200..300] {
                filter.remove(whole(digest));
            }
            let newest = filter.links[3].fill_ratio();
            for digest in &digests[600..650] {
                filter.insert(whole(digest));
            }
            let grew = filter.links[3].fill_ratio() > newest;
            assert_eq!(grew, refill == Refill::Newest);
            let leaving = [&digests[600..650], &digests[150..200], &digests[300..400]];
            for digest in leaving.into_iter().flatten() {
                filter.remove(whole(digest));
            }
            assert_eq!(filter.links(), 3, "the second link is empty");
            assert!(
                digests[400..600]
                    .iter()
                    .all(|digest| filter.contains(whole(digest)))
            );
        }
    }

    #[test]
    fn the_bound_holds_and_loses_nothing() {
        let mut filter = ScalableFilter::new(64, 4, 4, 3, Refill::FirstNotFull);
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
