//! State that several threads share, and its changes, for which they wait: std's, or a model
//! checker's.

use std::sync::{Condvar, Mutex, PoisonError};

/// A kind of shared state.
pub trait Monitors {
    /// State behind a lock.
    type Monitor<S: Send>: Send + Sync;

    /// Creates the state.
    fn monitor<S: Send>(state: S) -> Self::Monitor<S>;

    /// Changes the state and wakes the threads that wait for a change.
    fn update<S: Send, R>(monitor: &Self::Monitor<S>, change: impl FnOnce(&mut S) -> R) -> R;

    /// Waits until `take` returns something.
    fn wait<S: Send, R>(monitor: &Self::Monitor<S>, take: impl FnMut(&mut S) -> Option<R>) -> R;
}

/// The state of every run.
#[derive(Clone, Copy, Debug)]
pub enum StdMonitors {}

/// A lock and its condition. Nothing panics while it holds the lock.
#[derive(Debug)]
pub struct StdMonitor<S> {
    state: Mutex<S>,
    changed: Condvar,
}

impl Monitors for StdMonitors {
    type Monitor<S: Send> = StdMonitor<S>;

    fn monitor<S: Send>(state: S) -> StdMonitor<S> {
        StdMonitor { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn update<S: Send, R>(monitor: &StdMonitor<S>, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut monitor.state.lock().unwrap_or_else(PoisonError::into_inner));
        monitor.changed.notify_all();
        result
    }

    fn wait<S: Send, R>(monitor: &StdMonitor<S>, mut take: impl FnMut(&mut S) -> Option<R>) -> R {
        let mut state = monitor.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = take(&mut state) {
                return result;
            }
            state = monitor.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
