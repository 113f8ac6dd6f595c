//! Write-behind: blocks go to a thread that compresses and writes them, while the next is filled.

use std::convert::Infallible;
use std::io::{self, Write};
use std::thread::JoinHandle;

use super::super::compression::Compression;
use super::compress::{Compressor, memory_bytes};
use crate::guard::{WorkerPanicked, catch_panic};
use crate::memory::{MEMORY_REFUSED, Reservation};
use crate::threads::{Crossbeam, PipeReceiver, PipeSender, pipe, spawn};

/// Bytes of a block: large enough that sending it costs nothing, small enough that it is still in
/// the cache when it is written.
const BLOCK_BYTES: usize = 512 << 10;

/// Blocks that wait for the thread.
const QUEUED: usize = 4;

/// A writer behind a thread, or in the caller's if the system refuses one.
pub(super) struct WriteBehind<W: Write> {
    /// The present block, for bytes to be appended.
    pub(super) block: Vec<u8>,
    writer: Writer<W>,
    /// Memory reserved for the compressor.
    _memory: Reservation,
}

enum Writer<W: Write> {
    Here(Box<Compressor<W>>),
    Thread {
        blocks: PipeSender<Vec<u8>, Infallible>,
        thread: JoinHandle<Option<io::Result<W>>>,
    },
    /// It was asked to end, or has failed.
    Ended,
}

impl<W: Write + Send + 'static> WriteBehind<W> {
    pub(super) fn new(out: W, compression: Compression) -> io::Result<Self> {
        let memory = Reservation::new(memory_bytes(compression))
            .ok_or_else(|| io::Error::new(io::ErrorKind::OutOfMemory, MEMORY_REFUSED))?;
        let out = Box::new(Compressor::new(out, compression)?);
        let work = |(out, blocks): (Box<Compressor<W>>, _)| {
            catch_panic(|| write_all(*out, blocks))
                .unwrap_or_else(|panicked| Err(broken(&panicked)))
        };
        let bytes = ((QUEUED + 2) * BLOCK_BYTES) as u64;
        let writer = match spawn("writer", bytes, work) {
            Some(idle) => {
                let (blocks, receiver) = pipe::<_, _, Crossbeam>(QUEUED);
                Writer::Thread { blocks, thread: idle.begin((out, receiver)) }
            }
            None => Writer::Here(out),
        };
        Ok(Self { block: Vec::with_capacity(BLOCK_BYTES), writer, _memory: memory })
    }

    /// Sends the present block if it is long enough.
    pub(super) fn send_full(&mut self) -> io::Result<()> {
        if self.block.len() < BLOCK_BYTES { Ok(()) } else { self.send_block() }
    }

    fn send_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        match &mut self.writer {
            Writer::Here(out) => {
                let block = &mut self.block;
                let written = catch_panic(|| out.write_all(block));
                block.clear();
                written.unwrap_or_else(|panicked| Err(broken(&panicked)))
            }
            Writer::Thread { blocks, .. } => {
                if blocks.send(&mut self.block) {
                    return Ok(());
                }
                // The thread has ended early: its result says why.
                Err(self.end().err().unwrap_or_else(failed_before))
            }
            Writer::Ended => Err(failed_before()),
        }
    }

    fn end(&mut self) -> io::Result<W> {
        match std::mem::replace(&mut self.writer, Writer::Ended) {
            Writer::Here(out) => out.finish(),
            Writer::Thread { blocks, thread } => {
                drop(blocks);
                let ended = thread.join().ok().flatten();
                ended.unwrap_or_else(|| Err(broken(&WorkerPanicked::silent())))
            }
            Writer::Ended => Err(failed_before()),
        }
    }

    /// Sends the rest and waits until everything is written.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.send_block()?;
        self.end()
    }
}

/// Waits for the thread also if the run was aborted: then its temporary file is gone before the
/// program ends.
impl<W: Write> Drop for WriteBehind<W> {
    fn drop(&mut self) {
        let writer = std::mem::replace(&mut self.writer, Writer::Ended);
        if let Writer::Thread { blocks, thread } = writer {
            drop(blocks);
            // Its result is of no use any more.
            let _ = thread.join();
        }
    }
}

/// Writes the blocks of a pipe until it ends.
fn write_all<W: Write>(
    mut out: Compressor<W>,
    mut blocks: PipeReceiver<Vec<u8>, Infallible>,
) -> io::Result<W> {
    let mut block = Vec::new();
    while let Some(Ok(next)) = blocks.receive(block) {
        block = next;
        out.write_all(&block)?;
        block.clear();
    }
    out.finish()
}

/// The error of a writer that panicked, which is a mistake in flowsieve.
fn broken(WorkerPanicked(reason): &WorkerPanicked) -> io::Error {
    io::Error::other(format!(
        "writing ended early ({reason}); this is a mistake in flowsieve, please report it"
    ))
}

fn failed_before() -> io::Error {
    io::Error::other("writing had failed before")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    /// Panics once it has taken this many bytes.
    #[derive(Debug)]
    struct Trap(usize);

    impl Write for Trap {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).expect("the trap");
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_panics_is_an_error_and_no_hang() {
        for taken in [0, BLOCK_BYTES, 3 * BLOCK_BYTES + 7, 20 * BLOCK_BYTES] {
            let mut behind = WriteBehind::new(Trap(taken), Compression::None).unwrap();
            let block = vec![0; BLOCK_BYTES];
            let mut put = Ok(());
            for _ in 0..20 {
                behind.block.extend_from_slice(&block);
                put = put.and_then(|()| behind.send_full());
            }
            let ended = put.and_then(|()| behind.finish().map(|_| ()));
            if taken == 20 * BLOCK_BYTES {
                assert!(ended.is_ok());
                continue;
            }
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("(the trap)") && error.contains("report"), "{error}");
        }
    }
}
