//! Wing: what remembers. One published structure a file; all of them speak digests and know nothing
//! of packets, addresses or names.

mod bloom;
mod cmdbf;
mod counting;
mod dleft;
mod filter;
mod hip;
mod hll;
mod line_probe;
mod mdbf;
mod scalable;
pub mod sizing;
mod spec;
mod split_counting;
mod subset;

pub use bloom::{BloomFilter, BloomLayout, BloomLineFilter};
pub use cmdbf::{Cmdbf, Combination};
pub use counting::CountingFilter;
pub use dleft::{Bucket, Bucket16, Bucket32, DleftFilter};
pub use filter::{
    CounterStats, DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter,
    MultiAttributeFilter, Pattern, PatternAnswer, RemovableFilter, Sighting,
};
pub use hip::HipCounter;
pub use hll::HyperLogLog;
pub use mdbf::Mdbf;
pub use scalable::ScalableFilter;
pub use spec::{FilterKind, FilterSpec, Sizing, SpecError};
pub use split_counting::SplitCountingFilter;
pub use subset::SubsetFilter;
