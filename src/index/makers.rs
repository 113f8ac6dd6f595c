//! Threads that make regions, which come back in the order of their records.

use super::catalog::Settings;
use super::gather::REGION_BYTES;
use super::region::Made;
use super::{IndexError, Record};
use flowsieve_engine::internal::spawn_scoped;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

type Result<T> = std::result::Result<T, IndexError>;

/// The threads.
pub(super) struct Makers<'scope> {
    /// None if the caller makes the regions.
    workers: Vec<Worker<'scope>>,
    capture: &'scope Path,
    settings: &'scope Settings,
    /// Regions given to workers, in turn, and those that came back.
    given: usize,
    back: usize,
}

struct Worker<'scope> {
    records: SyncSender<Vec<Record>>,
    made: Receiver<Result<Made>>,
    thread: ScopedJoinHandle<'scope, Option<()>>,
}

impl<'scope> Makers<'scope> {
    /// Up to this many threads, each with one region at a time.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        threads: usize,
        capture: &'env Path,
        settings: &'env Settings,
    ) -> Self {
        let worker = |_| {
            let (records, given) = sync_channel::<Vec<Record>>(0);
            let (give_back, made) = sync_channel(1);
            let make = move |given: Receiver<Vec<Record>>| {
                for records in given {
                    let made = Made::of(capture, settings, &records);
                    if give_back.send(made).is_err() {
                        return;
                    }
                }
            };
            let thread = spawn_scoped(scope, "region", REGION_BYTES, make)?.begin(given);
            Some(Worker { records, made, thread })
        };
        let workers = (0..threads.max(1)).map_while(worker).collect();
        Self { workers, capture, settings, given: 0, back: 0 }
    }

    /// Takes the records of a region; an earlier one that was made goes to `done`.
    pub(super) fn give(
        &mut self,
        records: Vec<Record>,
        done: &mut impl FnMut(Made) -> Result<()>,
    ) -> Result<()> {
        if self.workers.is_empty() {
            return done(Made::of(self.capture, self.settings, &records)?);
        }
        if self.given - self.back == self.workers.len() {
            done(self.receive()?)?;
        }
        let worker = self.given % self.workers.len();
        self.given += 1;
        if self.workers[worker].records.send(records).is_err() {
            self.panic();
        }
        Ok(())
    }

    /// Everything that is still to come goes to `done`.
    pub(super) fn rest(&mut self, done: &mut impl FnMut(Made) -> Result<()>) -> Result<()> {
        while self.back < self.given {
            done(self.receive()?)?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Made> {
        let worker = self.back % self.workers.len();
        self.back += 1;
        match self.workers[worker].made.recv() {
            Ok(made) => made,
            Err(_) => self.panic(),
        }
    }

    /// A worker ends only when it panics, and then so does this.
    fn panic(&mut self) -> ! {
        for worker in std::mem::take(&mut self.workers) {
            drop((worker.records, worker.made));
            if let Err(panic) = worker.thread.join() {
                resume_unwind(panic);
            }
        }
        unreachable!("a worker ended before its records did")
    }
}
