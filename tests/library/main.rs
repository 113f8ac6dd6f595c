//! Tests the library through its public items, against programs that are too simple to be wrong.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]
#![allow(clippy::disallowed_methods, reason = "tests name their own paths")]

#[path = "../common/mod.rs"]
pub(crate) mod common;
pub(crate) mod comparison;
pub(crate) mod decode_paths;
pub(crate) mod dedup;
mod distributed;
mod distributed_exports;
mod examples;
mod experiments;
pub(crate) mod flows;
mod front_page;
pub(crate) mod index;
mod layers;
mod pipeline;
mod planned_filters;
mod selection;
mod windows;
