//! Rows that threads turn into what is written, in chunks, which come back in order.

use std::fmt;
use std::io;
use std::mem::{replace, take};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

/// Rows of a chunk. Lines of so many rows go past the buffer of a file.
const CHUNK_ROWS: usize = 2048;

/// Chunks that wait for each thread.
const QUEUED: usize = 2;

/// Threads that make an `M` of every chunk of rows.
pub(super) struct Crew<R, M> {
    workers: Vec<Worker<R, M>>,
    gathered: Vec<R>,
    /// Memory of chunks that were made.
    spare: Vec<Vec<R>>,
    /// Chunks given to workers, in turn, and those that came back.
    given: usize,
    back: usize,
}

/// A thread, and the ends of its channels as functions: channels of every kind of row would make the program larger by half a
/// megabyte.
struct Worker<R, M> {
    /// Gives it a chunk; false if it has ended.
    give: Box<dyn Fn(Vec<R>) -> bool + Send>,
    /// Takes what it made, and the memory of the chunk; none if it has ended.
    take: Box<dyn Fn() -> Option<(M, Vec<R>)> + Send>,
    thread: JoinHandle<()>,
}

impl<R, M> fmt::Debug for Crew<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

impl<R: Send + 'static, M: Send + 'static> Crew<R, M> {
    /// So many threads that do this.
    pub(super) fn start(
        threads: usize,
        make: impl Fn(&[R]) -> M + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let make = Arc::new(make);
        let worker = |_| {
            let (chunks, given) = sync_channel::<Vec<R>>(QUEUED);
            let (give_back, made) = sync_channel(QUEUED + 1);
            let make = Arc::clone(&make);
            let work = move || {
                for mut chunk in given {
                    let made = make(&chunk);
                    chunk.clear();
                    if give_back.send((made, chunk)).is_err() {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new().name("rows".to_owned());
            Ok(Worker {
                give: Box::new(move |chunk| chunks.send(chunk).is_ok()),
                take: Box::new(move || made.recv().ok()),
                thread: thread.spawn(work)?,
            })
        };
        Ok(Self {
            workers: (0..threads).map(worker).collect::<io::Result<_>>()?,
            gathered: Vec::with_capacity(CHUNK_ROWS),
            spare: Vec::new(),
            given: 0,
            back: 0,
        })
    }
}

impl<R, M> Crew<R, M> {
    /// Takes a row; what was made of an earlier chunk goes to `done`.
    #[inline]
    pub(super) fn row(
        &mut self,
        row: R,
        done: &mut impl FnMut(M) -> io::Result<()>,
    ) -> io::Result<()> {
        self.gathered.push(row);
        if self.gathered.len() < CHUNK_ROWS {
            return Ok(());
        }
        self.give();
        if self.given - self.back >= self.workers.len() * QUEUED {
            done(self.receive())?;
        }
        Ok(())
    }

    /// Everything that is still to come goes to `done`.
    pub(super) fn rest(&mut self, done: &mut impl FnMut(M) -> io::Result<()>) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.give();
        }
        while self.back < self.given {
            done(self.receive())?;
        }
        Ok(())
    }

    fn give(&mut self) {
        let fresh = self.spare.pop();
        let fresh = fresh.unwrap_or_else(|| Vec::with_capacity(CHUNK_ROWS));
        let chunk = replace(&mut self.gathered, fresh);
        let worker = self.given % self.workers.len();
        self.given += 1;
        if !(self.workers[worker].give)(chunk) {
            self.panic();
        }
    }

    fn receive(&mut self) -> M {
        let worker = self.back % self.workers.len();
        self.back += 1;
        match (self.workers[worker].take)() {
            Some((made, chunk)) => {
                self.spare.push(chunk);
                made
            }
            None => self.panic(),
        }
    }

    /// A worker ends only when it panics, and then so does this.
    fn panic(&mut self) -> ! {
        for worker in take(&mut self.workers) {
            let Worker { give, take, thread } = worker;
            drop((give, take));
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        unreachable!("a worker ends only when it panics")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn chunks_come_back_in_order_and_whole() {
        for (threads, rows) in [(1, 0), (1, 5), (2, 10_000), (3, 4 * CHUNK_ROWS)] {
            let make = |chunk: &[usize]| chunk.to_vec();
            let mut crew = Crew::start(threads, make).unwrap();
            let mut back = Vec::new();
            let mut done = |made: Vec<usize>| {
                back.extend(made);
                Ok(())
            };
            for row in 0..rows {
                crew.row(row, &mut done).unwrap();
            }
            crew.rest(&mut done).unwrap();
            assert_eq!(back, (0..rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_is_handed_on() {
        let panic = catch_unwind(|| {
            let make = |chunk: &[usize]| assert!(!chunk.contains(&3000));
            let mut crew = Crew::start(2, make).unwrap();
            for row in 0..100_000 {
                crew.row(row, &mut |()| Ok(())).unwrap();
            }
        });
        assert!(panic.is_err());
    }
}
