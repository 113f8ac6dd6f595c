//! Captures are hostile input: whatever the bytes, there is no panic, no hang and no silent loss;
//! an error has a position, and the packets before it are counted.
//!
//! Everything here is deterministic: a failure prints the number of the case, which reproduces it.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]
#![allow(clippy::disallowed_methods, reason = "tests name their own paths")]

mod chain;
mod cuts;
mod files;
mod filters;
mod index_lies;
mod mutate;
mod mutations;
mod random;
mod regressions;
mod samples;
mod values;
