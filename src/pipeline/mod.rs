//! The hall where the wings meet: packets in, one result a time slice out.
//!
//! ```text
//!   feed (one thread an input)          sequencer                     shards (T threads)
//!   read → decode → digest   ══batch══► merge by time → slice → route ══batch══► counter, exact set
//!                                            ▲                                        │
//!   sink ◄── rows in order ◄── collector ════╧═══════════ tallies of a closed slice ══╛
//! ```

mod collector;
mod combination_sums;
mod exact;
mod feed;
pub(crate) mod merge;
mod plan;
mod results;
mod run;
mod sample;
mod segments;
mod sequencer;
mod shard;
mod time_slice;
mod traffic;
mod workers;

pub use crate::guard::Broken;
pub(crate) use crate::guard::{WorkerGone, guarded};
pub(crate) use collector::ClosedSlice;
pub(crate) use exact::ExactSet;
pub use plan::{CountPlan, CounterChoice, PlanError, Slicing};
pub use results::{
    CombinationResult, CountSummary, InputResult, Quantiles, SliceResult, SliceSink, Totals, Watch,
};
pub(crate) use run::{Read, Reading};
pub use run::{RunError, count, count_and_keep, count_and_more};
pub use sample::{SKEWED, SamplePlan, SampleResult, Spread, sample};
pub(crate) use sequencer::{Closing, Stage, Stop};
pub use time_slice::Align;
pub use traffic::{Traffic, TrafficPair};
