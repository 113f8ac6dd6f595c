//! Rows that threads turn into what is written, in chunks, which come back in order.

use flowsieve_engine::internal::spawn;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem::{replace, take};
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

/// Rows of a chunk, unless they are made where they are wanted. Lines of so many rows go past the
/// buffer of a file.
pub(super) const CHUNK_ROWS: usize = 2048;

/// Chunks that wait for each thread, at least.
const QUEUED: usize = 2;

/// The same where so many rows have to come to one thread: while it works at them, the next thread
/// gets its own.
const fn queued(turn_rows: usize) -> usize {
    let turn = turn_rows / CHUNK_ROWS;
    if turn > QUEUED { turn } else { QUEUED }
}

/// Makes something of rows. Each thread of a crew has one.
pub(super) trait Make<R>: Send + 'static {
    /// What is written.
    type Made: Send + 'static;

    /// Memory that a thread takes: rows that wait, and what is made of them.
    const THREAD_BYTES: u64 = 4 << 20;

    /// Rows, a multiple of those of a chunk, that have to come to the same thread one after the
    /// other.
    const TURN_ROWS: usize = CHUNK_ROWS;

    /// Takes a row, or rows if each is a batch of them.
    fn row(&mut self, row: &mut R);

    /// What was made since this was asked last; behind the last row, all that is left.
    fn made(&mut self, is_end: bool) -> Self::Made;
}

/// A maker that takes batches of rows.
pub(super) struct OfBatches<K>(pub(super) K);

/// Rows that are made where they are wanted: each goes to the function.
pub(super) type LazyRows<R> = Box<dyn FnOnce(&mut dyn FnMut(&mut R)) + Send>;

/// What a thread is given.
enum Chunk<R> {
    Rows(Vec<R>),
    Lazy(LazyRows<R>),
    End,
}

/// Threads that make something of every chunk of rows.
pub(super) struct Crew<R, M> {
    workers: Vec<Worker<R, M>>,
    gathered: Vec<R>,
    /// Memory of chunks that were made.
    spare: Vec<Vec<R>>,
    /// Rows of a turn.
    turn: usize,
    /// Rows that were given.
    given: usize,
    /// The workers of those that did not come back yet, in order.
    under_way: VecDeque<usize>,
}

/// A thread, and the ends of its channels as functions: channels of every kind of row would make
/// the program larger by half a megabyte.
struct Worker<R, M> {
    /// Gives it a chunk; false if it has ended.
    give: Box<dyn Fn(Chunk<R>) -> bool + Send>,
    /// Takes what it made, and the memory of the chunk; none if it has ended.
    take: Box<dyn Fn() -> Option<(M, Vec<R>)> + Send>,
    thread: JoinHandle<Option<()>>,
}

impl<R, M> fmt::Debug for Crew<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

impl<R: Send + 'static, M: Send + 'static> Crew<R, M> {
    /// Up to this many threads, each with its own maker; `None` if there is not even one.
    pub(super) fn start<K: Make<R, Made = M>>(
        threads: usize,
        mut maker: impl FnMut() -> K,
    ) -> Option<Self> {
        let queued = queued(K::TURN_ROWS);
        let worker = |_| {
            let (chunks, given) = sync_channel::<Chunk<R>>(queued);
            let (give_back, made) = sync_channel(queued + 1);
            let work = move |mut maker: K| {
                for chunk in given {
                    let is_end = matches!(chunk, Chunk::End);
                    let mut memory = Vec::new();
                    match chunk {
                        Chunk::Rows(mut rows) => {
                            for row in &mut rows {
                                maker.row(row);
                            }
                            memory = rows;
                            memory.clear();
                        }
                        Chunk::Lazy(rows) => rows(&mut |row| maker.row(row)),
                        Chunk::End => {}
                    }
                    if give_back.send((maker.made(is_end), memory)).is_err() {
                        return;
                    }
                }
            };
            Some(Worker {
                give: Box::new(move |chunk| chunks.send(chunk).is_ok()),
                take: Box::new(move || made.recv().ok()),
                thread: spawn("rows", K::THREAD_BYTES, work)?.begin(maker()),
            })
        };
        let workers: Vec<_> = (0..threads).map_while(worker).collect();
        (!workers.is_empty()).then(|| Self {
            workers,
            gathered: Vec::new(),
            spare: Vec::new(),
            turn: K::TURN_ROWS,
            given: 0,
            under_way: VecDeque::new(),
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
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(CHUNK_ROWS);
        }
        self.gathered.push(row);
        if self.gathered.len() < CHUNK_ROWS {
            return Ok(());
        }
        self.give_rows(done)
    }

    /// How many rows that are made where they are wanted may come next.
    pub(super) const fn lazy_rows(&self) -> usize {
        self.turn - self.given % self.turn
    }

    /// Takes so many rows that are made where they are wanted, at most
    /// [`lazy_rows`](Self::lazy_rows).
    pub(super) fn lazy(
        &mut self,
        count: usize,
        rows: LazyRows<R>,
        done: &mut impl FnMut(M) -> io::Result<()>,
    ) -> io::Result<()> {
        self.give(count, Chunk::Lazy(rows), done)
    }

    /// Takes what was made of all rows so far, but for those that are gathered.
    pub(super) fn settle(&mut self, done: &mut impl FnMut(M) -> io::Result<()>) -> io::Result<()> {
        while !self.under_way.is_empty() {
            done(self.receive())?;
        }
        Ok(())
    }

    /// Everything that is still to come goes to `done`. A turn begins behind it.
    pub(super) fn rest(&mut self, done: &mut impl FnMut(M) -> io::Result<()>) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.give_rows(done)?;
        }
        if !self.given.is_multiple_of(self.turn) {
            // Whose turn it is has what is left.
            self.give(0, Chunk::End, done)?;
            self.given = self.given.next_multiple_of(self.turn);
        }
        self.settle(done)
    }

    /// Whether there is a row that waits for others.
    pub(super) const fn is_gathering(&self) -> bool {
        !self.gathered.is_empty()
    }

    fn give_rows(&mut self, done: &mut impl FnMut(M) -> io::Result<()>) -> io::Result<()> {
        let fresh = self.spare.pop().unwrap_or_default();
        let chunk = replace(&mut self.gathered, fresh);
        self.give(chunk.len(), Chunk::Rows(chunk), done)
    }

    /// Gives a chunk of so many rows to whose turn it is, and takes what came back if too much is
    /// under way.
    fn give(
        &mut self,
        rows: usize,
        chunk: Chunk<R>,
        done: &mut impl FnMut(M) -> io::Result<()>,
    ) -> io::Result<()> {
        let worker = self.given / self.turn % self.workers.len();
        self.given += rows;
        if !(self.workers[worker].give)(chunk) {
            self.panic();
        }
        self.under_way.push_back(worker);
        if self.under_way.len() >= self.workers.len() * queued(self.turn) {
            done(self.receive())?;
        }
        Ok(())
    }

    fn receive(&mut self) -> M {
        let worker = self.under_way.pop_front();
        let worker = worker.expect("there is something under way");
        match (self.workers[worker].take)() {
            Some((made, memory)) => {
                if memory.capacity() > 0 {
                    self.spare.push(memory);
                }
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

    /// Keeps the rows of a turn together.
    struct Turns<const CHUNKS: usize>(Vec<usize>);

    impl<const CHUNKS: usize> Make<usize> for Turns<CHUNKS> {
        type Made = Vec<usize>;
        const TURN_ROWS: usize = CHUNKS * CHUNK_ROWS;

        fn row(&mut self, row: &mut usize) {
            assert_ne!(*row, usize::MAX);
            self.0.push(*row);
        }

        fn made(&mut self, is_end: bool) -> Vec<usize> {
            if is_end || self.0.len() == Self::TURN_ROWS { take(&mut self.0) } else { Vec::new() }
        }
    }

    fn chunks_come_back<const CHUNKS: usize>(threads: usize, rows: usize, lazy: bool) {
        let mut crew = Crew::start(threads, || Turns::<CHUNKS>(Vec::new())).unwrap();
        let mut back = Vec::new();
        let mut done = |made: Vec<usize>| {
            back.extend(made);
            Ok(())
        };
        if lazy {
            let mut first = 0;
            while first < rows {
                let end = rows.min(first + crew.lazy_rows().min(1000 + first % 7000));
                let some = first..end;
                let some: LazyRows<usize> =
                    Box::new(move |take| some.for_each(|mut row| take(&mut row)));
                crew.lazy(end - first, some, &mut done).unwrap();
                first = end;
            }
            crew.settle(&mut done).unwrap();
        } else {
            for row in 0..rows {
                crew.row(row, &mut done).unwrap();
            }
        }
        crew.rest(&mut done).unwrap();
        assert_eq!(back, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn chunks_come_back_in_order_and_whole() {
        for (threads, rows) in [(1, 0), (1, 5), (2, 10_000), (3, 4 * CHUNK_ROWS), (3, 70_000)] {
            for lazy in [false, true] {
                chunks_come_back::<1>(threads, rows, lazy);
                chunks_come_back::<3>(threads, rows, lazy);
                chunks_come_back::<16>(threads, rows, lazy);
            }
        }
    }

    #[test]
    fn a_panic_is_handed_on() {
        let panic = catch_unwind(|| {
            let mut crew = Crew::start(2, || Turns::<1>(Vec::new())).unwrap();
            for row in 0..100_000 {
                let row = if row == 3000 { usize::MAX } else { row };
                crew.row(row, &mut |_| Ok(())).unwrap();
            }
        });
        assert!(panic.is_err());
    }
}
