//! What every filter can do, and the little data that goes in and out of it.

use super::saved::FilterState;
use crate::Estimate;
use crate::bits::{BitArray, CounterArray};
use crate::hashing::Digest;
use crate::matrix_sizing::members;
use std::fmt::Debug;

/// Answer of a filter to an insertion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sighting {
    /// The element was not there before. This is always true.
    First,
    /// The element was there before, or it is a false positive.
    Repeat,
    /// The filter looks at a sample of the elements only, and not at this one.
    Unknown,
}

impl Sighting {
    /// The answer for an element of which this many bits were clear.
    #[inline]
    pub(crate) const fn of_fresh(bits: u64) -> Self {
        match bits {
            0 => Self::Repeat,
            _ => Self::First,
        }
    }
}

/// The digests of one element.
#[derive(Clone, Copy, Debug)]
pub struct ElementDigests<'a> {
    /// Digest of the whole element.
    pub whole: Digest,
    /// Digest of each attribute, in order; may be empty for filters that
    /// [need none](crate::FilterSpec::needs_attributes).
    pub attributes: &'a [Digest],
}

impl<'a> ElementDigests<'a> {
    /// The digests of an element whose attributes are not needed.
    pub const fn of_whole(whole: Digest) -> Self {
        Self { whole, attributes: &[] }
    }

    /// The digests of an element that consists of its attributes: the whole joins theirs.
    pub fn of_attributes(attributes: &'a [Digest]) -> Self {
        let all = ((1_u64 << attributes.len()) - 1) as u32;
        Self { whole: Digest::join(all, attributes.iter().copied()), attributes }
    }
}

/// The digests of many elements, by column.
#[derive(Clone, Copy, Debug)]
pub struct DigestColumns<'a> {
    /// One digest an element.
    pub whole: &'a [Digest],
    /// The attribute digests of all elements, one element after the other; or empty.
    pub attributes: &'a [Digest],
}

impl<'a> DigestColumns<'a> {
    /// Attributes of an element; 0 where they are not given.
    pub fn arity(self) -> usize {
        let attributes = self.attributes.len();
        attributes.checked_div(self.whole.len()).unwrap_or(0)
    }

    /// The elements one by one.
    pub fn iter(self) -> impl Iterator<Item = ElementDigests<'a>> {
        let arity = self.arity();
        self.whole.iter().enumerate().map(move |(i, &whole)| ElementDigests {
            whole,
            attributes: &self.attributes[i * arity..(i + 1) * arity],
        })
    }
}

/// How a filter is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterStats {
    /// Bytes of its arrays.
    pub memory_bytes: u64,
    /// Share of set bits over all of its arrays; of counters above zero, or of cells in use, where
    /// there are such instead.
    pub fill_ratio: f64,
    /// How its counters fared, if it has some.
    pub counters: Option<CounterStats>,
}

impl FilterStats {
    /// Memory and fill of arrays of bits together.
    pub(super) fn of_bits<'a>(arrays: impl IntoIterator<Item = &'a BitArray>) -> Self {
        let (mut ones, mut bits) = (0, 0);
        for array in arrays {
            ones += array.ones();
            bits += array.len();
        }
        let fill_ratio = ones as f64 / bits as f64;
        Self { memory_bytes: bits.div_ceil(8), fill_ratio, counters: None }
    }

    /// Memory, fill and losses of an array of counters.
    pub(super) fn of_counters(counters: &CounterArray) -> Self {
        Self {
            memory_bytes: counters.memory_bytes(),
            fill_ratio: counters.fill_ratio(),
            counters: Some(CounterStats {
                saturated: counters.saturated(),
                overflows: counters.overflows(),
                ..CounterStats::default()
            }),
        }
    }
}

/// How the counters of a filter fared.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CounterStats {
    /// Counters that have reached their largest value and are never decremented again.
    pub saturated: u64,
    /// Increments that were lost because the counter was saturated.
    pub overflows: u64,
    /// Removals that took nothing, because several links of a chain claimed the element.
    pub ambiguous_removals: u64,
    /// Elements that found the cells of a d-left filter taken: each has 16 bytes of its stash.
    pub stashed: u64,
    /// Buckets of a d-left filter given up since the stash was full: they answer yes to everything.
    pub given_up: u64,
}

impl CounterStats {
    /// The sums of two filters.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = |of: fn(Self) -> u64| of(self).saturating_add(of(other));
        Self {
            saturated: sum(|stats| stats.saturated),
            overflows: sum(|stats| stats.overflows),
            ambiguous_removals: sum(|stats| stats.ambiguous_removals),
            stashed: sum(|stats| stats.stashed),
            given_up: sum(|stats| stats.given_up),
        }
    }
}

/// Approximate membership without false negatives.
///
/// Sealed: every filter comes from [`FilterSpec::build`](crate::FilterSpec::build), or from the
/// structure's own constructor, so that all of them can be saved and united.
pub trait MembershipFilter: FilterState + Debug + Send {
    /// Inserts the element and says whether it was there before, in one pass.
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting;

    /// Whether the element was inserted (true for all that were, and for false positives).
    fn contains(&self, element: ElementDigests<'_>) -> bool;

    /// Clears the filter and keeps its memory, for the next time slice.
    fn clear(&mut self);

    /// Memory and fill, in time proportional to the size.
    fn stats(&self) -> FilterStats;

    /// Unbiased count of the distinct elements inserted, if the structure has one. It is a count of
    /// a stream of insertions: after a removal there is none until the filter is cleared.
    fn distinct(&self) -> Option<Estimate>;

    /// The stage of a filter that halves what it watches: it looks at one element in 2^stage, or at
    /// less in its last stage. 0 if it looks at all.
    fn stage(&self) -> u32 {
        0
    }

    /// Inserts many elements in order, with the answers that [`MembershipFilter::insert`] would
    /// have given one by one appended to `sightings`.
    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        for element in elements.iter() {
            let sighting = self.insert(element);
            sightings.push(sighting);
        }
    }

    /// Asks for many elements, with the answers of [`MembershipFilter::contains`] appended to
    /// `answers`.
    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        answers.extend(elements.iter().map(|element| self.contains(element)));
    }

    /// This filter as one that answers with attributes left open, if it is one.
    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        None
    }

    /// This filter as one from which elements can be removed, if it is one.
    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        None
    }
}

/// Filters that can answer with some attributes left open. Sealed, as [`MembershipFilter`].
pub trait MultiAttributeFilter: FilterState {
    /// Whether an element was inserted whose attributes are those of the pattern. No false
    /// negatives.
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer;

    /// Asks for many patterns, with the answers of [`MultiAttributeFilter::contains_where`]
    /// appended to `answers`.
    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        patterns.for_each(|pattern| answers.push(self.contains_where(pattern)));
    }

    /// Unbiased count of the distinct combinations of the attributes in `mask` (bit i for attribute
    /// i) among the elements inserted, if the structure keeps one.
    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        let _ = mask;
        None
    }

    /// Raw count of the distinct combinations of the attributes in `mask`: of the insertions that
    /// were the first of theirs, as far as the filter can tell. A lower bound, as
    /// [`Sighting::First`] is for whole elements; `None` if the structure does not store the
    /// combination.
    fn first_of(&self, mask: u32) -> Option<u64> {
        let _ = mask;
        None
    }
}

/// Filters from which elements can be removed. Sealed, as [`MembershipFilter`].
pub trait RemovableFilter: FilterState {
    /// Undoes one insertion of the element. What is not contained is left alone; removing what was
    /// not inserted but is a false positive may make others disappear.
    fn remove(&mut self, element: ElementDigests<'_>);
}

/// Values of some attributes; those that are `None` may be anything.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// Digest of the whole element; only with all attributes given, and then always.
    pub whole: Option<Digest>,
    /// One entry an attribute.
    pub attributes: &'a [Option<Digest>],
}

impl Pattern<'_> {
    /// The given attributes: bit i for attribute i.
    pub fn mask(self) -> u32 {
        self.attributes
            .iter()
            .enumerate()
            .map(|(i, attribute)| u32::from(attribute.is_some()) << i)
            .sum()
    }
}

/// Many patterns with values of the same attributes.
#[derive(Clone, Copy, Debug)]
pub struct PatternColumns<'a> {
    /// Attributes of an element.
    pub arity: usize,
    /// Those that are given, at least one: bit i for attribute i.
    pub mask: u32,
    /// Digests of the given attributes, one pattern after the other.
    pub attributes: &'a [Digest],
}

impl PatternColumns<'_> {
    /// The patterns one by one.
    pub fn for_each(self, mut take: impl FnMut(Pattern<'_>)) {
        let mut attributes = vec![None; self.arity];
        for given in self.attributes.chunks_exact(self.given()) {
            for (member, &digest) in members(self.mask).zip(given) {
                attributes[member] = Some(digest);
            }
            take(Pattern { whole: None, attributes: &attributes });
        }
    }

    /// Attributes that are given.
    pub(crate) const fn given(self) -> usize {
        self.mask.count_ones() as usize
    }
}

/// Answer of a filter to a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PatternAnswer {
    /// No such element was inserted: always true.
    Absent,
    /// Such an element was inserted, or it is a false positive.
    Present,
    /// Each value was inserted (or is a false positive), but the structure does not know whether
    /// they stood in one element.
    PresentApart,
    /// The structure keeps nothing about patterns of these attributes.
    Unknown,
}

impl PatternAnswer {
    /// Returns the stronger of two answers: that of both filters together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let strength = |answer| match answer {
            Self::Absent => 0,
            Self::Unknown => 1,
            Self::PresentApart => 2,
            Self::Present => 3,
        };
        if strength(other) > strength(self) { other } else { self }
    }
}
