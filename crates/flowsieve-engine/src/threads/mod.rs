//! Threads that work for others: the channels between them, a pool of workers, and batches that go
//! from one thread to another and back.
//!
//! The protocols are generic over the channels, so that a model checker runs them under thousands
//! of schedules (`model`).

mod channels;
mod handover;
#[cfg(test)]
mod model;
mod pool;
mod spawn;

pub(crate) use channels::Crossbeam;
pub(crate) use handover::{Batches, Filler, handover};
pub(crate) use pool::{Pool, Reply, Work, Worker};
pub use spawn::{IdleThread, refused_threads, spawn, spawn_scoped, spawn_up_to};
