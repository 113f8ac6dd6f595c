//! What is counted: kinds of elements, their byte encoding and digests, and the step from a packet
//! or a record of a log to elements. This module knows no filter.

mod batch;
mod extract;
mod kind;
mod label;
mod parts;
mod query;

pub(crate) use batch::ShardElements;
pub use batch::{ElementBatch, ElementColumns, Keys};
pub use extract::Extractor;
pub use kind::{ElementKind, ElementRule};
#[doc(hidden)]
pub use label::ElementLabel;
#[doc(hidden)]
pub use query::{ElementQuery, QueryError, QueryPattern};
