//! Captures without their duplicates, in one pass.
//!
//! ```text
//!   captures ─► merge by time ─► keys ─► window ─► kept packets ─► writer
//!                                 │        │   └─► dropped packets ─► writer
//!                          128 bits of     filter that follows the window,
//!                     what has to be equal   digests of the window
//! ```
//!
//! A key is a digest of everything that must be equal in two packets that count as the same. The
//! window holds the keys of the packets seen last. Its filter answers first: what it calls new is
//! new. What it calls a repeat is looked up among the digests, so no packet is dropped wrongly.
//!
//! | file | what it does |
//! |---|---|
//! | `plan` | what is asked for |
//! | `key`, `tcp` | what makes two packets the same; the state of TCP connections |
//! | `window`, `window_filter` | the digests of the window; the filter that follows it |
//! | `approximate` | the window without digests |
//! | `cut` | packets that are written with fewer bytes |
//! | `run`, `slices`, `results` | the loop; what is reported |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod approximate;
mod key;
mod plan;
mod results;
mod run;
mod slices;
mod snaplen;
mod tcp;
mod window;
mod window_filter;

pub use plan::{DedupPlan, Difference, Sameness, SnapLength, WindowFilterKind, WindowWidth};
pub use results::{DedupSlice, DedupSummary, DropKind, Drops, WindowReport};
pub use run::{Writers, dedup};
