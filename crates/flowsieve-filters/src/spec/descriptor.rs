//! The description of a structure in its own file.

use super::{FilterSpec, Query, Shape, Sizing, SpecError, Workload};
use crate::MembershipFilter;
use std::fmt::Debug;

/// Parameters of a structure. [`FilterSpec`] documents the methods.
pub(crate) trait Parameters: Debug {
    /// Returns the index of the kind among those of the structure in the registry.
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

    fn additional_bytes(&self, _elements: f64) -> u64 {
        0
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

/// A name of a structure, and the properties that do not depend on its parameters.
pub(crate) struct Descriptor {
    /// Name in the command line and in reports.
    pub(crate) name: &'static str,
    /// Help line, with the source.
    pub(crate) summary: &'static str,
    pub(crate) reach: Reach,
    /// Whether a repeated insertion changes nothing.
    pub(crate) ignores_repeats: bool,
    /// Returns parameters for elements of this many attributes.
    pub(crate) size: fn(usize, Sizing) -> Result<FilterSpec, SpecError>,
    pub(crate) search: Option<Search>,
}

/// The queries that a structure answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Queries for whole elements.
    Whole,
    /// Queries for whole elements and for planned combinations of attributes.
    Planned,
    /// Queries for any attributes, by an array for each attribute.
    Attributes,
    /// Queries for any attributes, by cells for combinations. The formulas assume evenly spread
    /// values.
    Matrix {
        /// Combinations can be cut.
        cuts: bool,
        /// Each attribute can have its own size.
        weights: bool,
    },
}

/// Search for the best filter of a structure for given queries: each size has a best filter, and a
/// larger one has a lower rate.
#[derive(Debug)]
pub struct Search {
    /// Returns the best filter in this many bytes, or the smallest filter if that needs more.
    pub in_memory: fn(&Workload<'_>, bytes: u64) -> FilterSpec,
    /// Largest size that is tried for a rate.
    pub most: u64,
    /// Returns the best filter of a size (bits of an array, lines).
    pub fit: fn(&Workload<'_>, size: u64) -> FilterSpec,
    /// Returns the filter for the rate of a single attribute, by the rule of the CBFM paper's
    /// tables. `None` if the structure has no such rule; a rate is then that of the queries.
    pub by_attribute_rate: Option<fn(&Workload<'_>, fpr: f64) -> FilterSpec>,
    /// Explains why no size has a rate, given the lowest rate.
    pub out_of_reach: fn(lowest: f64) -> String,
}
