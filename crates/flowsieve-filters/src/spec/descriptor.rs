//! What a structure's own file says about it.

use super::{FilterSpec, Query, Shape, Sizing, SpecError, Workload};
use crate::MembershipFilter;
use std::fmt::Debug;

/// Parameters of a filter: everything that depends on the structure. [`FilterSpec`] documents the
/// methods.
pub(crate) trait Parameters: Debug {
    /// Which of the structure's kinds this is, as the registry lists them.
    fn variety(&self) -> usize {
        0
    }

    fn check(&self) -> Result<(), SpecError>;

    fn memory_bytes(&self) -> u64;

    fn built_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn with_probes(&self, _probes: u32) -> Option<FilterSpec> {
        None
    }

    fn attributes(&self) -> Option<usize> {
        None
    }

    fn counts_distinct(&self) -> bool {
        true
    }

    fn stored(&self) -> Vec<u32> {
        Vec::new()
    }

    fn probes_of(&self, _mask: u32) -> Option<u32> {
        None
    }

    fn counts_distinct_of(&self, _mask: u32) -> bool {
        false
    }

    fn counts_first_of(&self, _mask: u32) -> bool {
        false
    }

    fn build(&self) -> Box<dyn MembershipFilter>;

    fn can_be_saved(&self) -> Result<(), SpecError> {
        Ok(())
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64>;

    fn count_variance(&self, _workload: &Workload<'_>) -> Option<f64> {
        None
    }

    fn remarks(&self, _workload: &Workload<'_>) -> Vec<String> {
        Vec::new()
    }

    fn shape(&self) -> Shape;

    fn describe(&self) -> String;
}

/// A name under which a structure is known, and what holds for it whatever its parameters.
pub(crate) struct Descriptor {
    /// In the command line and in reports.
    pub(crate) name: &'static str,
    /// Help line, with the source.
    pub(crate) summary: &'static str,
    pub(crate) reach: Reach,
    /// Whether an element that was inserted before changes nothing.
    pub(crate) ignores_repeats: bool,
    /// Parameters for elements of this many attributes.
    pub(crate) size: fn(usize, Sizing) -> Result<FilterSpec, SpecError>,
    pub(crate) search: Option<Search>,
}

/// Which queries a structure answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Those for whole elements.
    Whole,
    /// Also those for the combinations that it was planned for.
    Planned,
    /// Those for any attributes, by an array for each.
    Attributes,
    /// Those for any attributes, by cells for combinations. The formulas hold for evenly spread
    /// values.
    Matrix {
        /// Combinations can be cut.
        cuts: bool,
        /// Each attribute can have its own size.
        weights: bool,
    },
}

/// How the best filter of a structure for given queries is found: for each size there is a best
/// one, and the larger it is the lower its rate.
#[derive(Debug)]
pub struct Search {
    /// The best filter in this many bytes, or the smallest, if that needs more.
    pub in_memory: fn(&Workload<'_>, bytes: u64) -> FilterSpec,
    /// The largest size that is looked at for a rate.
    pub most: u64,
    /// The best filter of a size (bits of an array, lines).
    pub fit: fn(&Workload<'_>, size: u64) -> FilterSpec,
    /// The filter by the rule of the CBFM paper's tables for the rate of a single attribute; where
    /// there is none, the rate is that of the queries.
    pub by_attribute_rate: Option<fn(&Workload<'_>, fpr: f64) -> FilterSpec>,
    /// Why no size has a rate, given the lowest rate.
    pub out_of_reach: fn(lowest: f64) -> String,
}
