//! What counts the elements of a stream: a filter, which also says which of them are new, or a
//! [`HyperLogLog`], which does not.

use super::{DigestColumns, Estimate, FilterSpec, HyperLogLog, MembershipFilter, Sighting};

/// What counter is wanted, as plain data.
#[derive(Clone, Debug, PartialEq)]
pub enum CounterSpec {
    /// A filter.
    Filter(FilterSpec),
    /// A [`HyperLogLog`].
    HyperLogLog {
        /// Binary logarithm of the registers of one byte (p), from [`HyperLogLog::MIN_PRECISION`] to
        /// [`HyperLogLog::MAX_PRECISION`].
        precision: u8,
    },
}

/// A counter that is fed with digests.
#[derive(Debug)]
pub enum Counter {
    /// A filter.
    Filter(Box<dyn MembershipFilter>),
    /// Registers.
    HyperLogLog(HyperLogLog),
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
        }
    }

    /// The filter's parameters, if it is one.
    pub const fn filter(&self) -> Option<&FilterSpec> {
        match self {
            Self::Filter(spec) => Some(spec),
            Self::HyperLogLog { .. } => None,
        }
    }

    /// Bytes of the arrays, or of the registers.
    pub fn memory_bytes(&self) -> u64 {
        match *self {
            Self::Filter(ref spec) => spec.memory_bytes(),
            Self::HyperLogLog { precision } => 1 << precision,
        }
    }

    /// Whether the counter looks at the attributes' digests besides the whole element's.
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
    /// Takes many elements in order. A filter's answers are appended to `sightings`, one an element; a
    /// counter that [tells none](CounterSpec::tells_first) appends nothing.
    pub fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        match self {
            Self::Filter(filter) => filter.insert_batch(elements, sightings),
            Self::HyperLogLog(registers) => {
                for &digest in elements.whole {
                    registers.insert(digest);
                }
            }
        }
    }

    /// Unbiased count of the distinct elements, if the structure has one.
    pub fn distinct(&self) -> Option<Estimate> {
        match self {
            Self::Filter(filter) => filter.distinct(),
            Self::HyperLogLog(registers) => Some(registers.estimate()),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        match self {
            Self::Filter(filter) => filter.clear(),
            Self::HyperLogLog(registers) => registers.clear(),
        }
    }

    /// The filter, if it is one.
    pub fn into_filter(self) -> Option<Box<dyn MembershipFilter>> {
        match self {
            Self::Filter(filter) => Some(filter),
            Self::HyperLogLog(_) => None,
        }
    }
}
