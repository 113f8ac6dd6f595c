//! Which capture, and when: an index of an archive of captures in two levels, searched by any
//! combination of addresses, port and domain.
//!
//! ```text
//!   captures ─► regions ─► records, inverted lists (Parquet), a filter each
//!                     └──► values ─► global filter of a segment in a node
//!
//!   question ─► segments whose global filter may have it ─► regions whose filter may ─► lists ─► records
//! ```
//!
//! Filters only decide where to look; answers come from the records. A segment has up to 256 regions
//! of captures that were added one after the other. A catalogue that is replaced as a whole names
//! all segments and files ([`Catalog`]).
//!
//! Reference: Huang, Fang, Zhang, "Split counting Bloom filter and its application in `HBase`
//! secondary index", 2015, for the two levels.

mod blocks;
mod catalog;
mod catalog_file;
mod check;
mod columns;
mod disk;
mod elements;
mod error;
mod extract;
mod gather;
mod global;
mod global_filter;
mod journal;
mod layout;
mod lists;
mod node_mark;
mod nodes;
#[cfg(test)]
mod order_tests;
mod path_text;
mod problems;
mod query;
mod rebuild;
mod record;
mod records;
mod region;
mod region_filter;
mod repair;
mod search;
mod segment_builder;
mod writer;

#[doc(hidden)]
pub use self::{
    catalog::{Catalog, FilterPlace, Node, Numbered, Region, Segment, SegmentPart},
    check::{Damage, IndexStats, NodeStats, Verified, stats, verify},
    disk::FileMark,
    extract::{ExtractPlan, Extracted, extract},
    layout::{folder_to_be, index_around, is_in_index, is_named_index_file},
    nodes::adopt,
    writer::{LEAST_MEMORY_BYTES, cannot_be_indexed},
};
pub use catalog::{CaptureEntry, Settings};
pub use error::IndexError;
pub use global_filter::GlobalFilter;
pub use query::{AddressRange, DomainRange, IndexQuery};
pub use record::{Ends, Record};
pub use region_filter::RegionFilter;
pub use search::{Explained, Hit, HitSink, search};
pub use writer::{Added, IndexWriter};
