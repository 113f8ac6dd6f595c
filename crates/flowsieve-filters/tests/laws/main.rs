//! Laws that every filter obeys, tested over a table of structures and parameters.
//!
//! A new structure gets a row in [`specs`]. If it has a formula for its rate, it also gets a row in
//! `rates`, or in `partial_rates` if it answers for some of the attributes. All seeds are fixed.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

mod any_load;
mod counts;
mod elements;
mod membership;
mod numbers;
mod partial_rates;
mod patterns;
mod rates;
mod removal;
mod saved;
mod saved_files;
mod shared_attributes;
mod specs;
mod statistics;
mod union;
