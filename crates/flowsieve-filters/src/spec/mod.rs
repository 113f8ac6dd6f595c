//! Parameters of filters as plain data, and what every structure says of itself.
//!
//! A structure is described in its own file: its parameters implement [`Parameters`], and each of
//! its names has a [`Descriptor`]. [`registry`] lists them, one line a structure; all else is
//! derived from it.

mod descriptor;
mod error;
mod query;
mod registry;
mod shape;
mod sizing;
#[cfg(test)]
mod tests;

pub(crate) use self::descriptor::{Descriptor, Parameters};
pub use self::descriptor::{Reach, Search};
pub use self::error::SpecError;
pub use self::query::{Known, Measure, Query, Workload};
pub use self::registry::{FilterKind, FilterSpec};
pub use self::shape::Shape;
pub use self::sizing::Sizing;
pub(crate) use self::sizing::{
    DEFAULT_COUNTER_BITS, LEAST_ARRAY_BITS, MAX_BYTES, array_bits, check_bits, check_counters,
    check_memory, check_probes, check_rate, probes_for,
};

use super::{Estimate, FilterStats, LineShape, MembershipFilter};

/// A structure that is compared, planned or counted with: a filter, or one of the three that are
/// none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Structure {
    /// A filter.
    Filter(FilterKind),
    /// A [`HyperLogLog`](super::HyperLogLog): it counts, and answers no query.
    Hll,
    /// An [`ExaLogLog`](super::ExaLogLog): as that, with three quarters of the error in the same
    /// memory.
    Ell,
    /// A hash set of the elements, which is not part of this crate.
    Exact,
}

impl From<FilterKind> for Structure {
    fn from(kind: FilterKind) -> Self {
        Self::Filter(kind)
    }
}

impl Structure {
    /// All of them, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        let filters = FilterKind::all().map(Self::Filter);
        filters.chain([Self::Exact, Self::Hll, Self::Ell])
    }

    /// The structure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|structure| structure.name() == name)
    }

    /// The name in the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter(kind) => kind.name(),
            Self::Hll => "hll",
            Self::Ell => "ell",
            Self::Exact => "exact",
        }
    }

    /// Help line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Filter(kind) => kind.summary(),
            Self::Hll => "Counter that is no filter: a HyperLogLog (Flajolet et al. 2007)",
            Self::Ell => "Counter that is no filter: an ExaLogLog (Ertl 2024)",
            Self::Exact => "No filter: the exact set alone",
        }
    }

    /// Whether an element that was inserted before changes nothing, so that it need not be inserted
    /// again.
    pub fn ignores_repeats(self) -> bool {
        match self {
            Self::Filter(kind) => kind.descriptor().ignores_repeats,
            Self::Hll | Self::Ell | Self::Exact => true,
        }
    }

    /// The kind of filter, if it is one.
    pub const fn filter(self) -> Option<FilterKind> {
        match self {
            Self::Filter(kind) => Some(kind),
            Self::Hll | Self::Ell | Self::Exact => None,
        }
    }
}

impl FilterKind {
    /// The name in the command line and in reports.
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Help line, with the source.
    pub fn summary(self) -> &'static str {
        self.descriptor().summary
    }

    /// Which queries the structure answers.
    pub fn reach(self) -> Reach {
        self.descriptor().reach
    }

    /// Whether the structure knows whole elements only, and nothing of their attributes.
    pub fn is_of_whole(self) -> bool {
        self.reach() == Reach::Whole
    }

    /// Whether the structure is a matrix, whose predicted rates hold for evenly spread values only.
    pub fn is_matrix(self) -> bool {
        matches!(self.reach(), Reach::Matrix { .. })
    }

    /// Whether it is a variant of another structure that is never worse: it is planned only where
    /// it is asked for.
    pub const fn is_variant(self) -> bool {
        matches!(self, Self::CmdbfXor | Self::CmdbfXorIndependent)
    }

    /// Whether combinations of attributes can be cut from it.
    pub fn has_cuts(self) -> bool {
        matches!(self.reach(), Reach::Matrix { cuts: true, .. })
    }

    /// Whether each attribute has its own size.
    pub fn has_weights(self) -> bool {
        matches!(self.reach(), Reach::Matrix { weights: true, .. })
    }

    /// How the best filter for given queries is found, if by a search over its size.
    pub fn search(self) -> Option<&'static Search> {
        self.descriptor().search.as_ref()
    }
}

impl FilterSpec {
    /// Parameters of a structure for elements of `attributes` attributes.
    ///
    /// Counters get 4 bits; a scalable filter is a chain of up to 8 links, sized to be full with
    /// the elements expected; a d-left filter gets counts of 2 bits and remainders that fill its
    /// cells of 16, 24 or 32 bits: for a rate the smallest filter, in given memory that with the
    /// least rate (16 bits if the number of elements is not known).
    ///
    /// A rate is that of an element whose values have all occurred, apart, as those of traffic
    /// have: a CMDBF gets arrays that reach it in the combined one alone, and an MDBF has none.
    ///
    /// The matrices get the largest size m that fits. A CBFM (and a WCBFM, whose weights are equal
    /// here) gets the cuts and the k with the least predicted false-positive rate of a full query,
    /// all values of which occur: among no cut, keeping only combinations of at most r attributes,
    /// and cutting the pairs {1,2}, {3,4}, …
    /// ([`cut_families`](crate::matrix_sizing::cut_families)).
    ///
    /// # Errors
    ///
    /// Memory for less than one bit (or line) of each array, a rate outside of (0, 1), a rate for
    /// no elements, one that a filter in cache lines does not reach, any of an MDBF, or a size
    /// beyond 2^40 bytes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        if let Sizing::Rate { expected: 0, .. } = sizing {
            return Err(SpecError::new(
                "a rate is for at least one expected element, not 0; 1000 works",
            ));
        }
        let spec = (kind.descriptor().size)(attributes, sizing)?;
        spec.check()?;
        Ok(spec)
    }

    /// The same filter, but one that knows all elements: for membership
    /// ([`SubsetSpec::knowing`]).
    ///
    /// [`SubsetSpec::knowing`]: crate::SubsetSpec::knowing
    #[must_use]
    pub fn knowing(mut self) -> Self {
        if let Self::Subset(spec) = &mut self
            && std::mem::take(&mut spec.halving)
        {
            spec.shape = LineShape::in_bytes(spec.shape.bytes());
        }
        self
    }

    /// Whether a filter of these parameters notices too few new elements for its count to have an
    /// upper bound, or less than one in a hundred if it has no estimate.
    #[doc(hidden)]
    pub fn is_full(&self, distinct: Option<Estimate>, stats: impl FnOnce() -> FilterStats) -> bool {
        /// Above this probability of being called a repeat, new elements are too few to be counted.
        const MOST_REPEATS: f64 = 0.99;
        if self.counts_distinct() {
            return distinct.is_some_and(Estimate::is_full);
        }
        stats().fill_ratio.powf(f64::from(self.probes())) > MOST_REPEATS
    }

    /// An empty filter with these parameters.
    ///
    /// # Panics
    ///
    /// If [`FilterSpec::check`] finds an error.
    pub fn build(&self) -> Box<dyn MembershipFilter> {
        self.parameters().build()
    }

    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        self.parameters().check()
    }

    /// The structure's name in the command line.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Bytes of the arrays; of a chain with all of its links.
    pub fn memory_bytes(&self) -> u64 {
        self.parameters().memory_bytes()
    }

    /// Bytes of the arrays as they are built: of a chain one link.
    pub(crate) fn built_bytes(&self) -> u64 {
        self.parameters().built_bytes()
    }

    /// Hash functions (k); the subtables of a d-left filter.
    pub fn probes(&self) -> u32 {
        let shape = self.shape();
        shape.probes.or(shape.arrays).unwrap_or(1)
    }

    /// The filter of the same size with this many hash functions; `None` if the structure has no
    /// such number: the subtables of a d-left filter are fixed. In structures with several arrays
    /// or attributes it is the number for each; a subset filter sets this many bits for each
    /// combination; a matrix keeps its cuts.
    ///
    /// # Errors
    ///
    /// More or fewer hash functions than the structure can have.
    pub fn with_probes(&self, probes: u32) -> Result<Option<Self>, SpecError> {
        let spec = self.parameters().with_probes(probes);
        spec.as_ref().map_or(Ok(()), Self::check)?;
        Ok(spec)
    }

    /// Attributes that the structure looks at; `None` if it looks at the whole element only.
    pub fn attributes(&self) -> Option<usize> {
        self.parameters().attributes()
    }

    /// Whether the filter needs the attributes' digests, not just the whole element's.
    pub fn needs_attributes(&self) -> bool {
        self.attributes().is_some()
    }

    /// Whether the structure has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        self.parameters().counts_distinct()
    }

    /// The combinations that the filter stores each by itself, without that of all attributes and
    /// the empty one; bit i for attribute i.
    pub fn stored(&self) -> Vec<u32> {
        self.parameters().stored()
    }

    /// Bits that each value of a combination sets, if it has its own: in a subset filter
    /// (`k_S`).
    pub fn probes_of(&self, mask: u32) -> Option<u32> {
        self.parameters().probes_of(mask)
    }

    /// Whether the structure has an unbiased count of the distinct values of a combination of some
    /// of the attributes
    /// ([`MultiAttributeFilter::distinct_of`](super::MultiAttributeFilter::distinct_of)).
    pub fn counts_distinct_of(&self, mask: u32) -> bool {
        self.parameters().counts_distinct_of(mask)
    }

    /// Whether the structure has a raw count of a combination of some of the attributes
    /// ([`MultiAttributeFilter::first_of`](super::MultiAttributeFilter::first_of)).
    pub fn counts_first_of(&self, mask: u32) -> bool {
        self.parameters().counts_first_of(mask)
    }

    /// Predicted false-positive rate of a query, by the structure's formula; `None` where it has no
    /// answer.
    ///
    /// Values are taken to be evenly spread. Of a query it matters which of its values occur: an
    /// array of a single attribute says yes to them.
    pub fn rate(&self, query: &Query<'_>) -> Option<f64> {
        self.parameters().rate(query)
    }

    /// Predicted standard error of the unbiased count of the whole elements, as a share of them;
    /// `None` where there is no formula for it.
    pub fn count_std_error(&self, workload: &Workload<'_>) -> Option<f64> {
        let elements = workload.elements();
        let variance = self.parameters().count_variance(workload)?;
        (elements > 0.0).then(|| (variance / elements).sqrt())
    }

    /// Caveats about the predicted rates of these queries.
    pub fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        self.parameters().remarks(workload)
    }

    /// The sizes, under names that all structures share.
    pub fn shape(&self) -> Shape {
        self.parameters().shape()
    }

    /// The parameters in words: `m = 4096 bits, k = 4`.
    pub fn describe(&self) -> String {
        self.parameters().describe()
    }

    /// Whether the lists among the parameters are short enough to be read again.
    pub(crate) fn can_be_saved(&self) -> Result<(), SpecError> {
        self.parameters().can_be_saved()
    }
}
