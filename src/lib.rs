//! flowsieve reads packet captures, sieves their packets through multi-attribute Bloom filters and
//! answers how many distinct host pairs, flows or DNS triples there were in each time slice,
//! in bounded memory and with the error of every answer.

pub mod anonymize;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod comparison;
pub mod decode;
pub mod dedup;
pub mod elements;
pub mod experiments;
pub mod flows;
pub mod generate;
mod guard;
pub mod index;
mod inputs;
pub mod pieces;
pub mod pipeline;
pub mod planner;
pub mod report;
mod threads;
pub mod trace;

// The program's module speaks of the library as others do.
#[cfg(feature = "cli")]
extern crate self as flowsieve;

pub use flowsieve_filters as filters;
pub use flowsieve_filters::{bits, hashing};
