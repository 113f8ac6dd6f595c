//! Parameters of filters as plain data, and the descriptions of the structures.
//!
//! Each structure is described in its own file: its parameters implement [`Parameters`], and each
//! of its names has a [`Descriptor`]. [`registry`] lists them, one line for each structure;
//! everything else is derived from it.

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
    check_memory, check_probes, check_range, probes_for,
};

use self::sizing::check_rate;
use super::line_rates::LinesOf;
use super::matrix_sizing::MAX_ATTRIBUTES;
use super::sizing::enlarged;
use super::{CartesianSpec, Estimate, FilterStats, LineShape, MatrixSpec, MembershipFilter};

/// A structure for counts, plans and comparisons: a filter, or one of three other structures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Structure {
    /// A filter.
    Filter(FilterKind),
    /// A [`HyperLogLog`](super::HyperLogLog): it counts, and answers no queries.
    Hll,
    /// An [`ExaLogLog`](super::ExaLogLog): it counts with three quarters of the error of a
    /// `HyperLogLog` in the same memory.
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
    /// Iterates over all structures in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        let filters = FilterKind::all().map(Self::Filter);
        filters.chain([Self::Exact, Self::Hll, Self::Ell])
    }

    /// Returns the structure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|structure| structure.name() == name)
    }

    /// Returns the name in the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter(kind) => kind.name(),
            Self::Hll => "hll",
            Self::Ell => "ell",
            Self::Exact => "exact",
        }
    }

    /// Returns the help line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Filter(kind) => kind.summary(),
            Self::Hll => "Counter that is no filter: a HyperLogLog (Flajolet et al. 2007)",
            Self::Ell => "Counter that is no filter: an ExaLogLog (Ertl 2024)",
            Self::Exact => "No filter: the exact set alone",
        }
    }

    /// Returns whether a repeated insertion changes nothing, so that it can be left out.
    pub fn ignores_repeats(self) -> bool {
        self.filter().is_none_or(|kind| kind.descriptor().ignores_repeats)
    }

    /// Returns the kind of filter, or `None` if the structure is no filter.
    pub const fn filter(self) -> Option<FilterKind> {
        if let Self::Filter(kind) = self { Some(kind) } else { None }
    }
}

impl FilterKind {
    /// Returns the name in the command line and in reports.
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Returns the help line, with the source.
    pub fn summary(self) -> &'static str {
        self.descriptor().summary
    }

    /// Returns which queries the structure answers.
    pub fn reach(self) -> Reach {
        self.descriptor().reach
    }

    /// Returns whether the structure only stores whole elements.
    pub fn is_of_whole(self) -> bool {
        self.reach() == Reach::Whole
    }

    /// Returns whether the structure is a matrix, whose predicted rates only hold for evenly spread
    /// values.
    pub fn is_matrix(self) -> bool {
        matches!(self.reach(), Reach::Matrix { .. })
    }

    /// Returns whether it is a variant of another structure that is never worse. Plans only include
    /// it if it is named.
    pub const fn is_variant(self) -> bool {
        matches!(self, Self::CmdbfXor | Self::CmdbfXorIndependent)
    }

    /// Returns whether combinations of attributes can be cut.
    pub fn has_cuts(self) -> bool {
        matches!(self.reach(), Reach::Matrix { cuts: true, .. })
    }

    /// Returns whether each attribute has its own size.
    pub fn has_weights(self) -> bool {
        matches!(self.reach(), Reach::Matrix { weights: true, .. })
    }

    /// Returns how to search for the best filter for given queries over its size, or `None` if
    /// there is another way.
    pub fn search(self) -> Option<&'static Search> {
        self.descriptor().search.as_ref()
    }
}

impl FilterSpec {
    /// Returns parameters of a structure for elements of `attributes` attributes.
    ///
    /// Counters get 4 bits. A scalable filter is a chain of up to 8 links, sized to be full with
    /// the expected elements, or larger if it would miss the rate. A d-left filter gets counts of 2
    /// bits and remainders that fill its cells of 16, 24 or 32 bits: the smallest filter for a
    /// rate, and in given memory the one with the lowest rate (16 bits if the number of elements is
    /// not known).
    ///
    /// A rate is that of an element whose values all occur, though not together, as those of
    /// traffic do: the combined array of a CMDBF reaches it alone, and an MDBF has no rate.
    ///
    /// The matrices get the largest size m that fits. A CBFM (and a WCBFM, whose weights are equal
    /// here) gets the cuts and the k with the lowest predicted false-positive rate of a full query
    /// whose values all occur. The candidates are no cut, keeping only combinations of at most r
    /// attributes, and cutting the pairs {1,2}, {3,4}, …
    /// ([`cut_families`](crate::matrix_sizing::cut_families)).
    ///
    /// # Errors
    ///
    /// The memory is less than one bit (or line) of each array, or more than 2^40 bytes; a rate is
    /// outside of (0, 1), is for no elements or more than 2^48, cannot be reached in cache lines, or
    /// is for an MDBF; there are more than 16 attributes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        if attributes > 0 {
            let most = MAX_ATTRIBUTES as u64;
            check_range("a filter is for", 1..=most, "attributes", attributes as u64, 3)?;
        }
        if let Sizing::Rate { fpr, expected } = sizing {
            if expected == 0 {
                return Err(SpecError::new(
                    "a rate is for at least one expected element, not 0; 1000 works",
                ));
            }
            check_range("a rate is for", 1..=1 << 48, "expected elements", expected, 1000)?;
            check_rate(fpr)?;
        }
        let mut spec = (kind.descriptor().size)(attributes, sizing)?;
        if let (true, Sizing::Rate { fpr, expected }) = (attributes > 1, sizing) {
            spec.enlarge(attributes, fpr, expected as f64);
        }
        if kind.is_of_whole() {
            check_memory(kind, spec.memory_bytes(), 1)?;
        }
        spec.check()?;
        Ok(spec)
    }

    /// Enlarges a matrix until it reaches the rate: its formula is for large ones.
    fn enlarge(&mut self, attributes: usize, fpr: f64, elements: f64) {
        let full = (1 << attributes) - 1;
        let query = Query { mask: full, full, known: Known::all_of(full), values: &|_| elements };
        let reaches = |spec: Self| spec.rate(&query).is_some_and(|rate| rate <= fpr);
        match self {
            Self::Cartesian(spec) => {
                spec.size = enlarged(spec.size, |size| {
                    reaches(Self::from(CartesianSpec { size, ..*spec }))
                });
            }
            Self::Matrix(spec) => {
                let with = |size| MatrixSpec { sizes: vec![size; attributes], ..spec.clone() };
                *spec = with(enlarged(spec.sizes[0], |size| reaches(with(size).into())));
            }
            _ => {}
        }
    }

    /// Returns the same filter without sampling: it stores all elements, for membership
    /// ([`SubsetSpec::knowing`]), with the best k for this many.
    ///
    /// [`SubsetSpec::knowing`]: crate::SubsetSpec::knowing
    #[must_use]
    pub fn knowing(mut self, expected: Option<u64>) -> Self {
        if let Self::Subset(spec) = &mut self
            && std::mem::take(&mut spec.halving)
        {
            spec.shape = LineShape::in_bytes(spec.shape.bytes());
            if let Some(expected) = expected {
                spec.probes = LinesOf::from(spec.shape).best_probes(expected as f64);
            }
        }
        self
    }

    /// Highest probability that a new element is called a repeat in a filter that is not full.
    #[doc(hidden)]
    pub const MOST_REPEATS: f64 = 0.99;

    /// Returns whether a filter of these parameters notices too few new elements for its count to
    /// have an upper bound, or, if it has no estimate, fewer than one in a hundred.
    #[doc(hidden)]
    pub fn is_full(&self, distinct: Option<Estimate>, stats: impl FnOnce() -> FilterStats) -> bool {
        if self.counts_distinct() {
            return distinct.is_some_and(Estimate::is_full);
        }
        stats().fill_ratio.powf(f64::from(self.probes())) > Self::MOST_REPEATS
    }

    /// Builds an empty filter.
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

    /// Returns the structure's name in the command line.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Returns the bytes of the arrays, for a chain with all of its links.
    pub fn memory_bytes(&self) -> u64 {
        self.parameters().memory_bytes()
    }

    /// Returns the expected bytes in addition to the arrays for this many elements: the stash of a
    /// d-left filter and the counters of its overfull buckets.
    #[doc(hidden)]
    pub fn additional_bytes(&self, elements: f64) -> u64 {
        self.parameters().additional_bytes(elements)
    }

    /// Returns the bytes of the arrays of an empty filter, for a chain with one link.
    pub(crate) fn built_bytes(&self) -> u64 {
        self.parameters().built_bytes()
    }

    /// Returns the number of hash functions (k), or of the subtables of a d-left filter.
    pub fn probes(&self) -> u32 {
        let shape = self.shape();
        shape.probes.or(shape.arrays).unwrap_or(1)
    }

    /// Returns the filter of the same size with this many hash functions, or `None` if their number
    /// is fixed, as the subtables of a d-left filter. In structures with several arrays or
    /// attributes it is the number for each; a subset filter sets this many bits for each
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

    /// Returns the number of attributes that the structure looks at, or `None` if it only looks at
    /// the whole element.
    pub fn attributes(&self) -> Option<usize> {
        self.parameters().attributes()
    }

    /// Returns whether the filter needs the digests of the attributes, not just that of the whole
    /// element.
    pub fn needs_attributes(&self) -> bool {
        self.attributes().is_some()
    }

    /// Returns whether the structure has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        self.parameters().counts_distinct()
    }

    /// Returns the combinations of attributes that the filter stores, without the empty one and
    /// that of all attributes; bit i for attribute i.
    pub fn stored(&self) -> Vec<u32> {
        self.parameters().stored()
    }

    /// Returns the bits that each value of a combination sets (`k_S`), or `None` if the
    /// structure is no subset filter or does not store the combination.
    pub fn probes_of(&self, mask: u32) -> Option<u32> {
        self.parameters().probes_of(mask)
    }

    /// Returns whether the structure has an unbiased count of the distinct values of a combination
    /// of some of the attributes
    /// ([`MultiAttributeFilter::distinct_of`](super::MultiAttributeFilter::distinct_of)).
    pub fn counts_distinct_of(&self, mask: u32) -> bool {
        self.parameters().counts_distinct_of(mask)
    }

    /// Returns whether the structure has a raw count of a combination of some of the attributes
    /// ([`MultiAttributeFilter::first_of`](super::MultiAttributeFilter::first_of)).
    pub fn counts_first_of(&self, mask: u32) -> bool {
        self.parameters().counts_first_of(mask)
    }

    /// Returns the predicted false-positive rate of a query by the structure's formula, or `None`
    /// if the structure does not answer it.
    ///
    /// Values are assumed to be evenly spread. The rate depends on which values of the query occur,
    /// since an array of a single attribute says yes to these.
    pub fn rate(&self, query: &Query<'_>) -> Option<f64> {
        self.parameters().rate(query)
    }

    /// Returns the predicted standard error of the unbiased count of the whole elements, as a share
    /// of them, or `None` if there is no formula.
    pub fn count_std_error(&self, workload: &Workload<'_>) -> Option<f64> {
        let elements = workload.elements();
        let variance = self.parameters().count_variance(workload)?;
        (elements > 0.0).then(|| (variance / elements).sqrt())
    }

    /// Returns caveats about the predicted rates of these queries.
    pub fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        self.parameters().remarks(workload)
    }

    /// Returns the sizes, under the same names for all structures.
    pub fn shape(&self) -> Shape {
        self.parameters().shape()
    }

    /// Describes the parameters: `m = 4096 bits, k = 4`.
    pub fn describe(&self) -> String {
        self.parameters().describe()
    }

    /// Checks that the lists among the parameters are short enough to be saved.
    pub(crate) fn can_be_saved(&self) -> Result<(), SpecError> {
        self.parameters().can_be_saved()
    }
}
