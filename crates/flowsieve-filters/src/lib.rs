//! Bloom filters of many kinds, each with what its paper promises: membership without false negatives,
//! questions about some attributes of an element, removal, union, and unbiased counts of distinct elements.

pub mod bits;
mod filters;
pub mod hashing;

pub use filters::*;
