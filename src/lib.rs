//! flowsieve reads packet captures, passes their packets through multi-attribute Bloom filters and
//! answers how many distinct host pairs, flows or DNS triples there were in each time slice,
//! in bounded memory and with the error of every answer.
//!
//! How many pairs of hosts talked in each second of a capture:
//!
//! ```
//! use flowsieve::{Count, elements::ElementKind};
//! use std::time::Duration;
//!
//! let counted = Count::of(["traces/generated.pcap"])
//!     .element(ElementKind::HOST_PAIR)
//!     .slice(Duration::from_secs(1))
//!     .run()?;
//! for second in &counted {
//!     let (estimate, error) = (second.estimate.unwrap(), second.std_error.unwrap());
//!     println!("{}: {estimate:.0} ± {error:.0} pairs of hosts", second.start_ns);
//!     // The exact count is kept beside the filter's until it is switched off.
//!     assert!((estimate - second.exact.unwrap() as f64).abs() <= 5.0 * error + 1.0);
//! }
//! assert_eq!(counted.summary.totals.packets, 8_000);
//! # Ok::<(), flowsieve::pipeline::RunError>(())
//! ```
//!
//! Captures come from paths or from any reader ([`trace::Source`]); results are typed rows
//! ([`pipeline::SliceResult`]), all at once ([`Count::run`]) or as they come ([`Count::rows`],
//! [`Count::run_into`]).
//!
//! | to | begin with |
//! |---|---|
//! | count what is distinct | [`Count`], or [`pipeline::count`] with a plan of all choices |
//! | divide a count among processes or machines | [`distributed`] |
//! | keep the packets that match an expression | [`capture_filter`] |
//! | list flows | [`flows::list`] |
//! | rank hosts, or other keys | [`top::top`] with a [`top::TopPlan`] |
//! | get packets, or elements of slices, as rows | [`export::export`] |
//! | drop duplicates of packets | [`dedup`] |
//! | index an archive of captures, and search it | [`index`] |
//! | write results in a format | [`output`] |
//! | read packets yourself | [`trace::Capture`], [`elements::Extractor`] |
//! | use a filter alone | [`filters`], which is the crate `flowsieve-filters` |
//!
//! `examples/` has six short programs.
//!
//! Features on by default: `cli` (the program), `parquet` (results in Parquet, and [`index`], whose
//! records are Parquet), `reproduce` (the papers' experiments, a command of the program), `zstd`
//! (captures compressed by zstd). And `arrow`: results as Arrow record
//! batches.

#![cfg_attr(test, allow(clippy::excessive_nesting, reason = "tests loop over all cases"))]

// Hidden modules are no part of the public surface: the program's own, and a door for tests.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
mod count;
#[cfg(feature = "reproduce")]
#[doc(hidden)]
pub mod experiments;
#[doc(hidden)]
pub mod generate;
#[cfg(feature = "parquet")]
pub mod index;
#[cfg(feature = "parquet")]
mod parquet_column;
#[doc(hidden)]
pub mod planner;
#[doc(hidden)]
pub mod report;

#[doc(hidden)]
pub use flowsieve_engine::{anonymize, comparison, decode, internal::Shown};
#[doc(inline)]
pub use flowsieve_engine::{
    capture_filter, dedup, distributed, elements, export, flows, pipeline, plan, selection, top,
    trace, zone,
};

// The program's module speaks of the library as others do.
#[cfg(feature = "cli")]
extern crate self as flowsieve;

/// Writers of results: each takes what a run yields, in one of the formats.
pub mod output {
    #[cfg(feature = "arrow")]
    pub use crate::report::RecordBatches;
    pub use crate::report::{
        CountParameters, CountReport, ExportParameters, ExportReport, FlowNames, FlowParameters,
        FlowReport, ReportFormat, TerminalStyle,
    };
}

pub use count::{Count, CountRows, Counted};
pub use flowsieve_filters as filters;
#[doc(hidden)]
pub use flowsieve_filters::{bits, hashing};
