//! Structures side by side on the same traffic, at equal memory, against the truth.
//!
//! ```text
//!   reading and slicing of the pipeline ──batch──► truth: sets of the elements' bytes ──new elements──┬─► candidate: a structure, a memory
//!   (decoded once)                                   │ questions (negatives)                        ├─► candidate: …
//!                                                    ▼                                              ▼
//!   slice closes:  raw count, estimate and answers of each candidate ──► gather ──► Comparison
//! ```
//!
//! A candidate is one structure with one memory. Every candidate sees every batch in the order of
//! the trace, so its answers do not depend on how candidates are divided among threads. Elements
//! that the truth has seen in the slice are left out where they change nothing
//! ([`Structure::ignores_repeats`](crate::filters::Structure::ignores_repeats)). The first elements
//! are held back until it is known how many a slice has: from that follow the numbers of hash
//! functions.

mod candidate;
mod collector;
mod expected;
mod negatives;
mod pair;
mod plan;
mod results;
mod run;
mod stage;
mod truth;
mod workers;

pub use pair::{CountKind, NoPair, PairResult, PairSide};
pub use plan::{ComparePlan, Contender, Weigh};
pub use results::{
    Comparison, CountErrors, Entry, Expected, ExpectedFrom, JudgedSlice, Negatives, QueryResult,
    SliceCount,
};
pub use run::compare;
