//! Bloom filters of many kinds, each with what its paper promises: membership without false negatives,
//! questions about some attributes of an element, removal, union, and unbiased counts of distinct elements.

pub mod allocation;
mod bfm;
pub mod bits;
mod bloom;
mod cartesian;
mod cbfm;
mod cmdbf;
mod combination_count;
mod counter;
mod counting;
mod dleft;
mod fill;
mod filter;
pub mod hashing;
mod hip;
mod hll;
mod line_rates;
mod lines;
mod matrix;
pub mod matrix_sizing;
mod mdbf;
pub mod saved;
mod scalable;
pub mod sizing;
mod spec;
mod split_counting;
mod subset;
mod wcbfm;

pub use bloom::{BloomFilter, BloomLayout, BloomLineFilter, BloomSpec};
pub use cartesian::{CartesianFilter, CartesianSpec};
pub use cmdbf::{Cmdbf, CmdbfSpec, Combination};
pub use combination_count::CombinationCount;
pub use counter::{Counter, CounterSpec};
pub use counting::{CountingFilter, CountingSpec};
pub use dleft::{Bucket, Bucket16, Bucket32, DleftFilter, DleftSpec};
pub use filter::{
    CounterStats, DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter,
    MultiAttributeFilter, Pattern, PatternAnswer, RemovableFilter, Sighting,
};
pub use hip::HipCounter;
pub use hll::HyperLogLog;
pub use matrix::{IndexMap, MAX_COMBINATIONS, MatrixFilter, MatrixSpec};
pub use mdbf::{Mdbf, MdbfSpec};
pub use scalable::{Refill, ScalableFilter, ScalableSpec};
pub use spec::{
    FilterKind, FilterSpec, Known, Query, Reach, Search, Shape, Sizing, SpecError, Structure,
    Workload,
};
pub use split_counting::{SplitCountingFilter, SplitCountingSpec};
pub use subset::{PlannedCombination, SubsetFilter, SubsetSpec};
