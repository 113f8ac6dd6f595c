//! Wing: what remembers. One published structure a file; all of them speak digests and know nothing
//! of packets, addresses or names.

pub mod allocation;
mod bloom;
mod cmdbf;
mod filter;
mod hip;
mod mdbf;
pub mod sizing;
mod spec;
mod subset;

pub use bloom::BloomFilter;
pub use cmdbf::{Cmdbf, Combination};
pub use filter::{
    DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, RemovableFilter, Sighting,
};
pub use hip::HipCounter;
pub use mdbf::Mdbf;
pub use spec::{FilterKind, FilterSpec, Sizing, SpecError};
pub use subset::SubsetFilter;
