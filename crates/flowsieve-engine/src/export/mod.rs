//! Exports the elements of a trace themselves, for questions that flowsieve does not answer.
//!
//! ```text
//!   feed (one thread an input)            the caller's thread
//!   read → decode → rows       ══batch══► merge by time ────────────────────────► sink: each packet
//!   read → decode → sightings  ══batch══► merge by time → table of each slice ──► sink: each element once per slice
//! ```
//!
//! Rows are columns from the decode thread to the writer; nothing is allocated per packet. Elements
//! become rows where these are written, in several threads if there are any.

mod elements;
mod packed;
mod packets;
mod plan;
mod results;
mod rows;
mod run;
mod sightings;
mod slices;
mod table;

#[doc(hidden)]
pub use elements::ElementRows;
pub(crate) use packed::{PackedRows, PackedSightingBuilder};
pub use plan::{ExportPlan, ExportWhat};
pub use results::{ExportSink, ExportSummary, ExportTotals};
#[doc(hidden)]
pub use rows::{ExportRows, Left, Texts};
pub use run::export;
