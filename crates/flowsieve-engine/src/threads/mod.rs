//! Threads that share work. Three ways, each bounded in memory:
//!
//! - [`pipe`](mod@pipe): one thread fills buffers, another empties them and sends them back;
//! - [`ordered`]: workers map tasks to results, which come back in order;
//! - [`pool`]: each worker has a part of the state, and does the tasks that belong to it.
//!
//! All are generic over their channels or locks, so that a model checker runs the same code under
//! thousands of schedules (`model_tests`).

mod channels;
#[cfg(test)]
mod model_tests;
mod monitor;
mod ordered;
mod pipe;
mod pool;
mod spawn;

pub(crate) use channels::Crossbeam;
pub use ordered::{MapWorker, OrderedWorkers};
pub(crate) use pipe::{PipeReceiver, PipeSender, pipe};
pub(crate) use pool::{Pool, Reply, Work};
pub use spawn::{IdleThread, refused_threads, spawn, spawn_scoped};
