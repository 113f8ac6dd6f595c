//! Wing: what remembers. One published structure a file; all of them speak digests and know nothing
//! of packets, addresses or names.

pub mod allocation;
mod bfm;
mod bloom;
mod cartesian;
mod cbfm;
mod cmdbf;
mod filter;
mod hip;
mod matrix;
pub mod matrix_sizing;
mod mdbf;
pub mod sizing;
mod spec;
mod subset;
mod wcbfm;

pub use bloom::BloomFilter;
pub use cartesian::CartesianFilter;
pub use cmdbf::{Cmdbf, Combination};
pub use filter::{
    DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, RemovableFilter, Sighting,
};
pub use hip::HipCounter;
pub use matrix::{IndexMap, MAX_COMBINATIONS, MatrixFilter, MatrixSpec};
pub use mdbf::Mdbf;
pub use spec::{FilterKind, FilterSpec, Sizing, SpecError};
pub use subset::{PlannedCombination, SubsetFilter};
