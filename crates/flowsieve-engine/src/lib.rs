//! Everything that flowsieve does with each packet, except for the form of results. The crate
//! `flowsieve` shows these modules under their own names and is what to depend on.
//!
//! It is a separate crate so that it is compiled as one unit, which is what its speed needs,
//! while the rest is compiled in pieces.

#![cfg_attr(test, allow(clippy::excessive_nesting, reason = "tests loop over all cases"))]

#[macro_use]
mod named;

#[doc(hidden)]
pub mod anonymize;
pub mod capture_filter;
#[doc(hidden)]
pub mod comparison;
#[doc(hidden)]
pub mod decode;
pub mod dedup;
pub mod distributed;
pub mod elements;
pub mod export;
pub mod flows;
mod guard;
mod inputs;
mod interner;
mod memory;
mod place_index;

pub mod pipeline;
pub mod plan;
pub mod selection;
mod sorted;
mod threads;
pub mod top;
pub mod trace;
mod untrusted;
pub mod zone;

/// For the crate `flowsieve` alone.
#[doc(hidden)]
pub mod internal {
    pub use crate::bits::MEMORY_REFUSED;
    pub use crate::guard::{Broken, WorkerPanicked, catch_panic};
    pub use crate::inputs::{Input, Merge, RecordInput, RunError, Watch};
    pub use crate::memory::{Reservation, allocatable, can_run};
    pub use crate::threads::{
        IdleThread, MapWorker, OrderedWorkers, refused_threads, spawn, spawn_scoped,
    };
    pub use crate::untrusted::{Shown, Untrusted};
}

use flowsieve_filters as filters;
use flowsieve_filters::{bits, hashing};
