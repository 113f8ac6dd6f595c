//! Wing: what is counted. Element kinds, their byte encoding and digests, and the step from a packet
//! or a DNS log record to elements. Knows no filter.

mod batch;
mod extract;
mod kind;
mod parts;

pub use batch::{ElementBatch, ElementColumns, Keys};
pub use extract::Extractor;
pub use kind::{ElementKind, ElementRule};
