//! Lists the flows of a trace, with packets, bytes and names, in bounded memory.
//!
//! ```text
//!   feed (one thread an input)         table of live flows, or one    sink
//!                                      for each shard
//!   read → decode → key    ══batch══►  merge by time → add up   ──►   flows as they end, DNS messages
//!                                                                     └─► SortedFlows: in order of start
//! ```
//!
//! A flow is the packets of one five-tuple; with [`FlowPlan::bidirectional`] those of both
//! directions. [`list`] gives each flow to a [`FlowSink`] when it ends, [`list_unique`] as soon as
//! its first packet is seen.

mod batch;
mod batch_builder;
mod columns;
mod community_id;
mod consumer;
mod expiry;
mod key;
mod largest;
mod packed;
mod plan;
mod record;
mod remaining;
mod results;
mod shards;
mod slots;
mod sorted;
mod table;
mod tables;
mod unique;

pub(crate) use community_id::push_community_id;
#[doc(hidden)]
pub use community_id::{Upper, community_id};
pub(crate) use key::{FlowKey, KeyMask};
#[doc(hidden)]
pub use largest::{FlowOrder, LargestFlows};
pub(crate) use packed::{PackedFlowBuilder, PackedFlows, Taken};
pub use plan::FlowPlan;
#[doc(hidden)]
pub use record::DnsRecord;
pub use record::{Direction, Ended, FlowRecord};
#[doc(hidden)]
pub use remaining::{RemainingFlows, RemainingPart};
pub use results::{EndedFlows, FlowSink, FlowSummary, FlowTotals, Uniqueness};
#[doc(hidden)]
pub use sorted::SortedFlows;
pub use tables::list;
pub use unique::list_unique;
