//! Which capture, and when: an index of an archive of captures in two levels, searched by any combination
//! of addresses, port and domain.
//!
//! ```text
//!   captures ─► regions ─► records, inverted lists (Parquet), a filter each
//!                     └──► values ─► global filter a node (scalable, split counting)
//!
//!   question ─► nodes whose filter may have it ─► regions whose filter may ─► lists ─► records
//! ```
//!
//! Filters only decide where to look; answers come from the records. A catalogue that is replaced as a
//! whole names all files ([`Catalog`]).
//!
//! Reference: Huang, Fang, Zhang, "Split counting Bloom filter and its application in `HBase` secondary
//! index", 2015, for the two levels.

mod anew;
mod catalog;
mod check;
mod columns;
mod disk;
mod elements;
mod error;
mod extract;
mod folders;
mod gather;
mod lists;
mod node_filter;
mod packed;
mod path_text;
mod query;
mod record;
mod records;
mod region;
mod region_filter;
mod search;
mod writer;

pub use catalog::{CaptureEntry, Settings, index_around};
#[doc(hidden)]
pub use catalog::{Catalog, FilterPlace, Node, Region};
#[doc(hidden)]
pub use check::{IndexStats, NodeStats, stats};
pub use check::{Verified, verify};
#[doc(hidden)]
pub use disk::FileMark;
pub use error::IndexError;
pub use extract::{ExtractPlan, Extracted, extract};
pub use query::{AddressRange, DomainRange, IndexQuery};
pub use record::{Ends, Record};
pub use region_filter::RegionFilter;
pub use search::{Explained, Hit, HitSink, search};
pub use writer::{Added, IndexWriter};
#[doc(hidden)]
pub use writer::{LEAST_MEMORY_BYTES, cannot_be_indexed};
