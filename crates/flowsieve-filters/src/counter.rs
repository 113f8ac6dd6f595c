//! Counters of the elements of a stream: a filter, which also says which of them are new, a
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
    /// A [`SlidingBitmap`]: what is built is a pane of it.
    Sliding {
        /// Cells of the window.
        cells: u64,
        /// Panes of the window.
        panes: u16,
    },
}

/// A counter that is fed with digests.
#[derive(Debug)]
pub enum Counter {
    /// A filter.
    Filter(Box<dyn MembershipFilter>),
    /// Registers.
    HyperLogLog(HyperLogLog),
    /// Registers with more in them.
    ExaLogLog(ExaLogLog),
    /// A pane of a window.
    Pane(PaneBitmap),
}

impl CounterSpec {
    /// An empty counter.
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

    /// The registers of an [`ExaLogLog`], or else of a [`HyperLogLog`], of the highest precision
    /// within `bytes`, if any is; and the fewest bytes that it takes.
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

    /// The filter's parameters, if it is one.
    pub const fn filter(&self) -> Option<&FilterSpec> {
        match self {
            Self::Filter(spec) => Some(spec),
            Self::HyperLogLog { .. } | Self::ExaLogLog { .. } | Self::Sliding { .. } => None,
        }
    }

    /// Bytes of the arrays, or of the registers.
    pub fn memory_bytes(&self) -> u64 {
        match *self {
            Self::Filter(ref spec) => spec.memory_bytes(),
            Self::HyperLogLog { precision } => 1 << precision,
            Self::ExaLogLog { precision } => ExaLogLog::bytes_of(precision),
            Self::Sliding { cells, panes } => SlidingBitmap::bytes_of(cells, panes),
        }
    }

    /// Whether the counter needs the attributes' digests, not just the whole element's.
    pub fn needs_attributes(&self) -> bool {
        self.filter().is_some_and(FilterSpec::needs_attributes)
    }

    /// Whether the counter says of every element if it is new.
    pub const fn tells_first(&self) -> bool {
        self.filter().is_some()
    }

    /// Whether the counter has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        self.filter().is_none_or(FilterSpec::counts_distinct)
    }
}

impl Counter {
    /// Takes many elements in order. A filter's answers are appended to `sightings`, one an
    /// element; a counter that [tells none](CounterSpec::tells_first) appends nothing.
    pub fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        match self {
            Self::Filter(filter) => filter.insert_batch(elements, sightings),
            Self::HyperLogLog(registers) => {
                for &digest in elements.whole {
                    registers.insert(digest);
                }
            }
            Self::ExaLogLog(registers) => {
                for &digest in elements.whole {
                    registers.insert(digest);
                }
            }
            Self::Pane(pane) => {
                for &digest in elements.whole {
                    pane.insert(digest);
                }
            }
        }
    }

    /// Unbiased count of the distinct elements, if the structure has one.
    pub fn distinct(&self) -> Option<Estimate> {
        match self {
            Self::Filter(filter) => filter.distinct(),
            Self::HyperLogLog(registers) => Some(registers.estimate()),
            Self::ExaLogLog(registers) => Some(registers.estimate()),
            Self::Pane(pane) => Some(pane.estimate()),
        }
    }

    /// Bytes of its arrays, or registers.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.stats().memory_bytes,
            Self::HyperLogLog(registers) => registers.memory_bytes(),
            Self::ExaLogLog(registers) => registers.memory_bytes(),
            Self::Pane(pane) => pane.memory_bytes(),
        }
    }

    /// The counts of some of the attributes, as far as the structure has them.
    pub fn combination(&self, mask: u32) -> CombinationCount {
        let filter = match self {
            Self::Filter(filter) => filter.as_multi_attribute(),
            Self::HyperLogLog(_) | Self::ExaLogLog(_) | Self::Pane(_) => None,
        };
        CombinationCount::of(filter, mask)
    }

    /// Whether the counter is full: it notices too few new elements for its count to have an upper
    /// bound, or less than one in a hundred if it has no estimate. Then its raw count says nothing.
    ///
    /// `distinct` is its count, if it has one, and `first` how many elements it called new: while
    /// they are few for its memory, nothing is counted.
    pub fn is_saturated(&self, spec: &CounterSpec, distinct: Option<Estimate>, first: u64) -> bool {
        /// No element sets more than a quarter of this many bits.
        const BYTES_A_FIRST: u64 = 16;
        let (Self::Filter(filter), Some(parameters)) = (self, spec.filter()) else {
            return false;
        };
        // Combinations in the same lines set many more.
        let whole_only = parameters.shape().stored.is_empty();
        let is_raw = whole_only && !parameters.counts_distinct();
        let has_room = is_raw && first.saturating_mul(BYTES_A_FIRST) < parameters.memory_bytes();
        !has_room && parameters.is_full(distinct, || filter.stats())
    }

    /// Clears it.
    pub fn clear(&mut self) {
        match self {
            Self::Filter(filter) => filter.clear(),
            Self::HyperLogLog(registers) => registers.clear(),
            Self::ExaLogLog(registers) => registers.clear(),
            Self::Pane(pane) => pane.clear(),
        }
    }

    /// The filter, if it is one.
    pub fn into_filter(self) -> Option<Box<dyn MembershipFilter>> {
        match self {
            Self::Filter(filter) => Some(filter),
            Self::HyperLogLog(_) | Self::ExaLogLog(_) | Self::Pane(_) => None,
        }
    }
}
