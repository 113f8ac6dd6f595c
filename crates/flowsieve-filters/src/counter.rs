//! Counters of the elements of a stream: a filter, which also reports which elements are new, a
//! [`HyperLogLog`], an [`ExaLogLog`], or a pane of a sliding window.

use super::{
    CombinationCount, DigestColumns, Estimate, ExaLogLog, FilterSpec, HyperLogLog,
    MembershipFilter, PaneBitmap, Sighting, SlidingBitmap, Structure,
};

/// Parameters of a counter.
#[derive(Clone, Debug, PartialEq)]
pub enum CounterSpec {
    /// A filter.
    Filter(FilterSpec),
    /// A [`HyperLogLog`].
    HyperLogLog {
        /// Binary logarithm of the registers of one byte (p), from [`HyperLogLog::MIN_PRECISION`]
        /// to [`HyperLogLog::MAX_PRECISION`].
        precision: u8,
    },
    /// An [`ExaLogLog`].
    ExaLogLog {
        /// Binary logarithm of the registers of four bytes (p), from [`ExaLogLog::MIN_PRECISION`]
        /// to [`ExaLogLog::MAX_PRECISION`].
        precision: u8,
    },
    /// A [`SlidingBitmap`], of which one pane is built.
    Sliding {
        /// Cells of the window.
        cells: u64,
        /// Panes of the window.
        panes: u16,
    },
}

/// A counter of digests.
#[derive(Debug)]
pub enum Counter {
    /// A filter.
    Filter(Box<dyn MembershipFilter>),
    /// Registers of one byte.
    HyperLogLog(HyperLogLog),
    /// Registers of four bytes.
    ExaLogLog(ExaLogLog),
    /// A pane of a window.
    Pane(PaneBitmap),
}

/// Matches on a [`Counter`]: a filter, or any of the sketches, which have the same methods.
macro_rules! with_counter {
    ($counter:expr, $filter:ident => $of_filter:expr, $sketch:ident => $of_sketch:expr) => {
        match $counter {
            Counter::Filter($filter) => $of_filter,
            Counter::HyperLogLog($sketch) => $of_sketch,
            Counter::ExaLogLog($sketch) => $of_sketch,
            Counter::Pane($sketch) => $of_sketch,
        }
    };
}

impl CounterSpec {
    /// Builds an empty counter.
    ///
    /// # Panics
    ///
    /// If [`FilterSpec::check`] finds an error.
    pub fn build(&self) -> Counter {
        match *self {
            Self::Filter(ref spec) => Counter::Filter(spec.build()),
            Self::HyperLogLog { precision } => Counter::HyperLogLog(HyperLogLog::new(precision)),
            Self::ExaLogLog { precision } => Counter::ExaLogLog(ExaLogLog::new(precision)),
            Self::Sliding { cells, .. } => Counter::Pane(PaneBitmap::new(cells as usize)),
        }
    }

    /// Returns the registers of the highest precision within `bytes`, or `None` if the memory is
    /// too small, and the fewest bytes that registers take. They are those of an [`ExaLogLog`] if
    /// the structure is one, else of a [`HyperLogLog`].
    pub fn of_registers(structure: Structure, bytes: u64) -> (Option<Self>, u64) {
        if structure == Structure::Ell {
            let precision = ExaLogLog::precision_within(bytes);
            let least = ExaLogLog::bytes_of(ExaLogLog::MIN_PRECISION);
            (precision.map(|precision| Self::ExaLogLog { precision }), least)
        } else {
            let precision = HyperLogLog::precision_within(bytes);
            let least = 1 << HyperLogLog::MIN_PRECISION;
            (precision.map(|precision| Self::HyperLogLog { precision }), least)
        }
    }

    /// Returns the filter's parameters, or `None` if it is no filter.
    pub const fn filter(&self) -> Option<&FilterSpec> {
        if let Self::Filter(spec) = self { Some(spec) } else { None }
    }

    /// Returns the bytes of the arrays or registers.
    pub fn memory_bytes(&self) -> u64 {
        match *self {
            Self::Filter(ref spec) => spec.memory_bytes(),
            Self::HyperLogLog { precision } => 1 << precision,
            Self::ExaLogLog { precision } => ExaLogLog::bytes_of(precision),
            Self::Sliding { cells, panes } => SlidingBitmap::bytes_of(cells, panes),
        }
    }

    /// Returns whether the counter needs the digests of the attributes, not just that of the whole
    /// element.
    pub fn needs_attributes(&self) -> bool {
        self.filter().is_some_and(FilterSpec::needs_attributes)
    }

    /// Returns whether the counter reports of each element if it is new.
    pub const fn tells_first(&self) -> bool {
        self.filter().is_some()
    }

    /// Returns whether the counter has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        self.filter().is_none_or(FilterSpec::counts_distinct)
    }
}

impl Counter {
    /// Inserts many elements in order. A filter appends an answer for each element to `sightings`;
    /// a counter that [reports none](CounterSpec::tells_first) appends nothing.
    pub fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        with_counter!(self,
            filter => filter.insert_batch(elements, sightings),
            sketch => elements.whole.iter().for_each(|&digest| sketch.insert(digest)));
    }

    /// Returns an unbiased count of the distinct elements, or `None` if the structure has none.
    pub fn distinct(&self) -> Option<Estimate> {
        with_counter!(self, filter => filter.distinct(), sketch => Some(sketch.estimate()))
    }

    /// Returns the bytes of the arrays or registers.
    pub fn memory_bytes(&self) -> u64 {
        with_counter!(self, filter => filter.stats().memory_bytes, sketch => sketch.memory_bytes())
    }

    /// Returns the counts of a combination of attributes, as far as the structure has them.
    pub fn combination(&self, mask: u32) -> CombinationCount {
        let filter = with_counter!(self, filter => filter.as_multi_attribute(), _sketch => None);
        CombinationCount::of(filter, mask)
    }

    /// Returns whether the counter is full: it notices too few new elements for its count to have
    /// an upper bound, or, if it has no estimate, fewer than one in a hundred. Its raw count then
    /// means nothing.
    ///
    /// `distinct` is its [estimate](Self::distinct), and `first` the number of elements that it
    /// called new. While these are few for its memory, a structure without an estimate is not scanned.
    pub fn is_saturated(&self, spec: &CounterSpec, distinct: Option<Estimate>, first: u64) -> bool {
        /// No element sets more than a quarter of the bits of this many bytes.
        const BYTES_A_FIRST: u64 = 16;
        let (Self::Filter(filter), Some(parameters)) = (self, spec.filter()) else { return false };
        // Planned combinations in the same lines set many more bits.
        let whole_only = parameters.shape().stored.is_empty();
        let is_raw = whole_only && !parameters.counts_distinct();
        let has_room = is_raw && first.saturating_mul(BYTES_A_FIRST) < parameters.memory_bytes();
        !has_room && parameters.is_full(distinct, || filter.stats())
    }

    /// Clears the counter.
    pub fn clear(&mut self) {
        with_counter!(self, filter => filter.clear(), sketch => sketch.clear());
    }

    /// Returns the filter, or `None` if the counter is no filter.
    pub fn into_filter(self) -> Option<Box<dyn MembershipFilter>> {
        if let Self::Filter(filter) = self { Some(filter) } else { None }
    }
}
