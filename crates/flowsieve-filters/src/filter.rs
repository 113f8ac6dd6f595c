//! The traits of all filters, and the types of their arguments and answers.

use super::saved::FilterState;
use crate::Estimate;
use crate::bits::{BitArray, CounterArray};
use crate::hashing::Digest;
use crate::matrix_sizing::{all_of, members};
use std::fmt::Debug;

/// Answer of a filter to an insertion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sighting {
    /// The element was not in the filter before. This is always true.
    First,
    /// The element was in the filter before, or it is a false positive.
    Repeat,
    /// The filter only looks at a sample of the elements, and this one is not in it.
    Unknown,
}

impl Sighting {
    /// Returns the answer for an element of which this many bits were clear.
    #[inline]
    pub(crate) const fn of_fresh(bits: u64) -> Self {
        match bits {
            0 => Self::Repeat,
            _ => Self::First,
        }
    }

    /// Returns the answers for a batch of elements, given how many bits of each were clear.
    #[inline]
    pub(crate) fn of_all_fresh(fresh: &[u8]) -> impl Iterator<Item = Self> {
        fresh.iter().map(|&bits| Self::of_fresh(bits.into()))
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
    /// Creates the digests of an element whose attributes are not needed.
    pub const fn of_whole(whole: Digest) -> Self {
        Self { whole, attributes: &[] }
    }

    /// Creates the digests of an element from those of its attributes: the digest of the whole
    /// [joins](Digest::join) theirs.
    pub fn of_attributes(attributes: &'a [Digest]) -> Self {
        let whole = Digest::join(all_of(attributes.len()), attributes.iter().copied());
        Self { whole, attributes }
    }
}

/// The digests of many elements, by column.
#[derive(Clone, Copy, Debug)]
pub struct DigestColumns<'a> {
    /// Digest of each whole element.
    pub whole: &'a [Digest],
    /// The attribute digests of all elements, one element after the other; may be empty.
    pub attributes: &'a [Digest],
}

impl<'a> DigestColumns<'a> {
    /// Returns the number of attributes of an element, or 0 if they are not given.
    pub fn arity(self) -> usize {
        let attributes = self.attributes.len();
        attributes.checked_div(self.whole.len()).unwrap_or(0)
    }

    /// Iterates over the elements.
    pub fn iter(self) -> impl Iterator<Item = ElementDigests<'a>> {
        let arity = self.arity();
        self.whole.iter().enumerate().map(move |(i, &whole)| ElementDigests {
            whole,
            attributes: &self.attributes[i * arity..(i + 1) * arity],
        })
    }
}

/// Memory and fill of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterStats {
    /// Bytes of the arrays.
    pub memory_bytes: u64,
    /// Share of set bits over all arrays, or of counters above zero, or of cells in use, as the
    /// structure has them.
    pub fill_ratio: f64,
    /// Losses of the counters, if the structure has counters.
    pub counters: Option<CounterStats>,
}

impl FilterStats {
    /// Sums up filters of the same size: shards, or links of a chain.
    pub(super) fn of_all(filters: impl Iterator<Item = Self>) -> Self {
        let stats: Vec<Self> = filters.collect();
        let counters = stats.iter().filter_map(|filter| filter.counters);
        let fill_ratios = stats.iter().map(|filter| filter.fill_ratio);
        Self {
            memory_bytes: stats.iter().map(|filter| filter.memory_bytes).sum(),
            fill_ratio: fill_ratios.sum::<f64>() / stats.len() as f64,
            counters: counters.reduce(CounterStats::plus),
        }
    }

    /// Returns memory and fill of arrays of bits together.
    pub(super) fn of_bits<'a>(arrays: impl IntoIterator<Item = &'a BitArray>) -> Self {
        let (mut ones, mut bits) = (0, 0);
        for array in arrays {
            ones += array.ones();
            bits += array.len();
        }
        let fill_ratio = ones as f64 / bits as f64;
        Self { memory_bytes: bits.div_ceil(8), fill_ratio, counters: None }
    }

    /// Returns memory, fill and losses of an array of counters.
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

/// Losses of the counters of a filter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CounterStats {
    /// Counters that have reached their largest value and are never decremented again.
    pub saturated: u64,
    /// Increments that were lost because the counter was saturated.
    pub overflows: u64,
    /// Removals that were not carried out, because several links of a chain claimed the element.
    pub ambiguous_removals: u64,
    /// Elements in the stash of a d-left filter, whose buckets were full; each takes 16 bytes.
    pub stashed: u64,
    /// Buckets that a d-left filter gave up because the stash was full: they answer yes to
    /// everything.
    pub given_up: u64,
}

impl CounterStats {
    /// Adds up two filters.
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
    /// Inserts the element and reports whether it was there before, in one pass.
    ///
    /// An element needs a digest for each of the filter's attributes. Another number is not always
    /// noticed: answers are wrong then, or the filter panics.
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting;

    /// Returns whether the element was inserted: true for all that were, and for false positives.
    fn contains(&self, element: ElementDigests<'_>) -> bool;

    /// Clears the filter and keeps its memory, for the next time slice.
    fn clear(&mut self);

    /// Returns memory and fill, in time proportional to the size.
    fn stats(&self) -> FilterStats;

    /// Returns an unbiased count of the distinct elements inserted, or `None` if the structure has
    /// none. It counts a stream of insertions: a removal ends it until the filter is cleared.
    fn distinct(&self) -> Option<Estimate>;

    /// Returns the stage of a filter that samples when it is crowded: it looks at one element in
    /// 2^stage, or at fewer in its last stage. 0 if it looks at all elements.
    fn stage(&self) -> u32 {
        0
    }

    /// Inserts many elements in order, and appends the answers that [`MembershipFilter::insert`]
    /// would have given to `sightings`.
    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        sightings.extend(elements.iter().map(|element| self.insert(element)));
    }

    /// Queries many elements, and appends the answers of [`MembershipFilter::contains`] to
    /// `answers`.
    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        answers.extend(elements.iter().map(|element| self.contains(element)));
    }

    /// Returns this filter as one that answers queries for some attributes, or `None` if it does
    /// not.
    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        None
    }

    /// Returns this filter as one from which elements can be removed, or `None` if they cannot.
    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        None
    }
}

/// Filters that answer queries for some attributes. Sealed, as [`MembershipFilter`].
pub trait MultiAttributeFilter: FilterState {
    /// Returns whether an element with the attributes of the pattern was inserted. No false
    /// negatives.
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer;

    /// Queries many patterns, and appends the answers of [`MultiAttributeFilter::contains_where`]
    /// to `answers`.
    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        patterns.for_each(|pattern| answers.push(self.contains_where(pattern)));
    }

    /// Returns an unbiased count of the distinct combinations of the attributes in `mask` (bit i
    /// for attribute i) among the elements inserted, or `None` if the structure keeps none.
    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        let _ = mask;
        None
    }

    /// Returns a raw count of the distinct combinations of the attributes in `mask`: the insertions
    /// that the filter took for the first of their combination. It is a lower bound, as
    /// [`Sighting::First`] is for whole elements. `None` if the structure does not store the
    /// combination, or the count was lost by a union.
    fn first_of(&self, mask: u32) -> Option<u64> {
        let _ = mask;
        None
    }
}

/// Filters from which elements can be removed. Sealed, as [`MembershipFilter`].
pub trait RemovableFilter: FilterState {
    /// Undoes one insertion of the element. Does nothing if it is not contained. Removing a false
    /// positive may make other elements disappear.
    fn remove(&mut self, element: ElementDigests<'_>);
}

/// Values of some attributes; an attribute that is `None` may have any value.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// Digest of the whole element: given if and only if all attributes are.
    pub whole: Option<Digest>,
    /// Digest of each attribute.
    pub attributes: &'a [Option<Digest>],
}

impl Pattern<'_> {
    /// Returns the given attributes, bit i for attribute i.
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
    /// Number of attributes of an element.
    pub arity: usize,
    /// The given attributes, at least one: bit i for attribute i.
    pub mask: u32,
    /// Digests of the given attributes, one pattern after the other.
    pub attributes: &'a [Digest],
}

impl PatternColumns<'_> {
    /// Calls `take` with each pattern.
    pub fn for_each(self, mut take: impl FnMut(Pattern<'_>)) {
        let mut attributes = vec![None; self.arity];
        for given in self.attributes.chunks_exact(self.given()) {
            for (member, &digest) in members(self.mask).zip(given) {
                attributes[member] = Some(digest);
            }
            take(Pattern { whole: None, attributes: &attributes });
        }
    }

    /// Returns the number of given attributes.
    pub(crate) const fn given(self) -> usize {
        self.mask.count_ones() as usize
    }
}

/// Answer of a filter to a pattern, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PatternAnswer {
    /// No such element was inserted. This is always true.
    Absent,
    /// The structure stores nothing about patterns of these attributes.
    Unknown,
    /// Each value was inserted (or is a false positive), but the structure does not know whether
    /// they occurred in the same element.
    PresentApart,
    /// Such an element was inserted, or it is a false positive.
    Present,
}

impl From<bool> for PatternAnswer {
    /// Returns the answer of what stores the combination itself.
    fn from(contains: bool) -> Self {
        if contains { Self::Present } else { Self::Absent }
    }
}

impl PatternAnswer {
    /// Returns its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "no",
            Self::Present => "yes",
            Self::PresentApart => "apart",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the stronger of two answers, which is the answer of both filters together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }
}
