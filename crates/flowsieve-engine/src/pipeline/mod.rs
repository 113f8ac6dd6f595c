//! Counts: packets in, one result per time slice out.
//!
//! ```text
//!   feed (one thread an input)          sequencer                     shards (T threads)
//!   read → decode → digest   ══batch══► merge by time → slice → route ══batch══► counter, exact set
//!                                            ▲                                        │
//!   sink ◄── rows in order ◄── collector ════╧═══════════ tallies of a closed slice ══╛
//! ```

mod by_slice;
mod byte_map;
mod edges;
mod plan;
mod recent;
mod results;
mod rows;
mod run;
mod sample;
mod sequencer;
#[cfg(test)]
mod sequencer_tests;
mod shard;
mod shard_spec;
mod slice_pipeline;
mod slice_set;
mod time_slice;
mod traffic;
mod whole;
mod window;
mod workers;

pub use crate::decode::{Skip, Tunnel};
pub use crate::guard::Broken;
pub use crate::inputs::{InputResult, PlanError, RunError, Watch};
pub(crate) use by_slice::SliceSorter;
pub(crate) use byte_map::ExactSet;
pub(crate) use edges::{Cut, Edges};
pub use plan::{CountPlan, CounterChoice, Slicing};
pub use results::{
    CombinationResult, CountSummary, Quantiles, SliceResult, SliceSink, Totals, WholeResult,
};
pub(crate) use rows::Rows;
pub use run::{CountExtras, count};
#[doc(hidden)]
pub use sample::{SKEWED, SamplePlan, SampleResult, Spread, sample};
pub(crate) use sequencer::{Closing, Stage, StageError};
pub(crate) use shard::Shard;
pub(crate) use shard_spec::{ClosedSlice, ShardSpec, SliceCounts, SliceSum};
#[doc(hidden)]
pub use slice_pipeline::Observer;
pub(crate) use slice_pipeline::{PipelineResult, SlicePipeline};
pub(crate) use slice_set::SliceSet;
pub use time_slice::{Align, SliceGrid};
pub(crate) use time_slice::{OpenSlices, Place};
#[doc(hidden)]
pub use traffic::{Traffic, TrafficPair, prefix_name};
pub(crate) use whole::{Whole, WholeElements, WholeSpec, WholeTally, is_level};
