//! The hall where the wings meet: packets in, one result a time slice out.
//!
//! ```text
//!   feed (one thread an input)          sequencer                     shards (T threads)
//!   read → decode → digest   ══batch══► merge by time → slice → route ══batch══► filter, exact set
//!                                            ▲                                        │
//!   sink ◄── rows in order ◄── collector ════╧═══════════ tallies of a closed slice ══╛
//! ```

mod collector;
mod exact;
mod feed;
mod plan;
mod results;
mod run;
mod sample;
mod sequencer;
mod shard;
mod time_slice;
mod traffic;
mod workers;

pub use plan::{CountPlan, FilterChoice, PlanError, Slicing};
pub use results::{CountSummary, InputResult, Quantiles, SliceResult, SliceSink, Totals, Watch};
pub use run::{RunError, count, count_and_keep, count_and_more};
pub use sample::{SKEWED, SamplePlan, SampleResult, Spread, sample};
pub use time_slice::Align;
pub use traffic::{Traffic, TrafficPair};
