//! Structures side by side on the same traffic, at equal memory, against the truth: once for each of
//! several sets of hash functions, so that the answer has an uncertainty.
//!
//! ```text
//!   reading and slicing of the pipeline ──batch──► truth: sets of the elements' bytes
//!   (decoded once)                                   │ first sightings, as digests
//!                                                    ▼
//!   slice closes ──► list of the slice, its exact count and floors (and questions)
//!                                                    │ kept until everything is read
//!                                                    ▼
//!   look: 5, 10, 20, 30 replicates ──► lists × replicates ──► each structure of each size
//!      ▲                               (digests hashed again)         │ raw count, estimate
//!      └── sizes that are open ◄── statistics: paired differences ◄───┘
//! ```
//!
//! - A *replicate* is the whole trace under hash functions of its own, the same in every slice and
//!   for every structure. Replicate 0 is a count with the same seed, bit for bit.
//! - The *raw* count (elements called new) is judged by its mean error over slices, the *estimate*
//!   by its mean square; they are never compared with each other.
//! - [`statistics`] decides: intervals of Student's t over the replicates, paired differences, looks
//!   with a level that covers all of them. It knows nothing of structures.
//! - *Floors* follow from the trace alone: what arrays of single attributes lose at any memory.
//! - Nothing depends on threads: answers are added in the order of slices and replicates.

mod designs;
mod evaluation;
mod negatives;
mod plan;
mod plan_check;
mod results;
mod run;
mod slice_list;
mod stage;
pub mod statistics;
mod trial;
mod truth;
mod worker;

pub use plan::{AUTO_EIGHTHS, ComparePlan, Contender, ProbeRule, Recommend, Seeds, Sizes, Weigh};
pub use results::{
    Comparison, CountErrors, CountKind, Entry, Expected, ExpectedFrom, Floor, JudgedSlice,
    Negatives, PairVerdict, QueryResult, Replicate, SeedErrors,
};
pub use run::{compare, with_trial};
pub use truth::Floors;
