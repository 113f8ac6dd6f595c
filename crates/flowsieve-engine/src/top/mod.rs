//! The keys with the most distinct others in each slice: for example who talks to the most hosts.
//!
//! ```text
//!   reading and slicing of the pipeline ──batch──┬─► filter ──weights of first sightings──► summary ─┐
//!   (decoded once; elements are key and other)   └─► exact set, and numbers by key ─────────────┤
//!                                                                                          ▼
//!   slice closes:                                     ranked keys ──► rows in the order of time ──► sink
//! ```
//!
//! The filter removes repeats. Each first sighting adds its unbiased weight to its key's sum in a
//! summary of bounded size. Both see every element of a slice in the order of the trace, so that
//! results depend on nothing but the plan and the inputs.

mod exact;
mod extract;
mod observer;
mod plan;
mod results;
mod rows;
mod run;
mod summary;
mod workers;

pub use crate::elements::{Attribute, Field};
pub(crate) use exact::{ExactAnswer, Truth};
pub(crate) use extract::{Record, Repeats, TopExtractor};
#[doc(hidden)]
pub use observer::TopObserver;
pub use plan::{Question, RankBy, TopPlan};
pub(crate) use results::order_of_keys;
pub use results::{Certainty, Exact, Recall, Spread, TopKey, TopSlice, TopSummary};
pub(crate) use rows::Sums;
pub use run::top;
pub(crate) use workers::Ranker;
