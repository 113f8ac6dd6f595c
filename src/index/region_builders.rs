//! Builds regions in threads, which return them in the order of their records.

use super::catalog::Settings;
use super::gather::REGION_BYTES;
use super::region::BuiltRegion;
use super::{IndexError, Record};
use flowsieve_engine::internal::{OrderedWorkers, WorkerPanicked};
use std::path::Path;
use std::thread::Scope;

type Result<T> = std::result::Result<T, IndexError>;

/// The threads.
pub(super) struct RegionBuilders<'a> {
    /// `None` if the caller builds the regions.
    workers: Option<OrderedWorkers<Vec<Record>, Result<BuiltRegion>>>,
    capture: &'a Path,
    settings: &'a Settings,
}

impl<'a> RegionBuilders<'a> {
    /// Starts up to this many threads, each with one region at a time.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        capture: &'a Path,
        settings: &'a Settings,
    ) -> Self
    where
        'a: 'scope,
    {
        let worker = || move |records: Vec<Record>| BuiltRegion::new(capture, settings, &records);
        let threads = threads.max(1);
        let workers =
            OrderedWorkers::start_scoped(scope, "region", threads, REGION_BYTES, 1, worker);
        Self { workers, capture, settings }
    }

    /// Takes the records of a region. Passes an earlier region that is built to `done`.
    pub(super) fn push(
        &mut self,
        records: Vec<Record>,
        done: &mut impl FnMut(BuiltRegion) -> Result<()>,
    ) -> Result<()> {
        match &mut self.workers {
            None => done(BuiltRegion::new(self.capture, self.settings, &records)?),
            Some(workers) => workers.push(records).map_or(Ok(()), |built| done(unwrapped(built)?)),
        }
    }

    /// Passes all other regions to `done`.
    pub(super) fn finish(self, done: &mut impl FnMut(BuiltRegion) -> Result<()>) -> Result<()> {
        let built = self.workers.into_iter().flatten();
        built.map(unwrapped).try_for_each(|built| done(built?))
    }
}

/// Returns what a worker built; this thread panics if the worker did.
fn unwrapped(
    built: std::result::Result<Result<BuiltRegion>, WorkerPanicked>,
) -> Result<BuiltRegion> {
    built.unwrap_or_else(|panicked| panicked.resume())
}
