//! Write-behind: blocks go to a thread that compresses and writes them, while the next is filled.

use std::io::{self, Write};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::super::compression::Compression;
use super::compress::Compressor;
use crate::guard::{WorkerGone, guarded};
use crate::threads::spawn;

/// Bytes of a block: large enough that handing it over costs nothing, small enough that it is still
/// in the cache when it is written.
const BLOCK_BYTES: usize = 512 << 10;

/// Blocks under way.
const BLOCKS: usize = 4;

/// The way to a writer, in another thread if there is one.
pub(super) struct Behind<W: Write> {
    block: Vec<u8>,
    writer: Writer<W>,
}

enum Writer<W: Write> {
    Here(Box<Compressor<W>>),
    Thread {
        full: Sender<Vec<u8>>,
        empty: Receiver<Vec<u8>>,
        thread: JoinHandle<Option<io::Result<W>>>,
    },
    /// It was asked to end, or has failed.
    Ended,
}

impl<W: Write + Send + 'static> Behind<W> {
    pub(super) fn new(out: W, compression: Compression) -> io::Result<Self> {
        let out = Box::new(Compressor::new(out, compression)?);
        let (full, filled) = bounded::<Vec<u8>>(BLOCKS);
        let (used, empty) = bounded::<Vec<u8>>(BLOCKS + 2);
        let serve = move |mut out: Box<Compressor<W>>| {
            let work = move || {
                for mut block in filled {
                    out.write_all(&block)?;
                    block.clear();
                    // The other side may be gone: then nobody needs the block.
                    let _ = used.try_send(block);
                }
                out.finish()
            };
            guarded(work).unwrap_or_else(|gone| Err(broken(&gone)))
        };
        let bytes = ((BLOCKS + 2) * BLOCK_BYTES) as u64;
        let writer = match spawn("writer", bytes, serve) {
            Some(idle) => Writer::Thread { full, empty, thread: idle.begin(out) },
            None => Writer::Here(out),
        };
        Ok(Self { block: Vec::with_capacity(BLOCK_BYTES), writer })
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(BLOCK_BYTES) {
            if self.block.len() + piece.len() > BLOCK_BYTES {
                self.hand_over()?;
            }
            self.block.extend_from_slice(piece);
        }
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        match &mut self.writer {
            Writer::Here(out) => {
                let block = &mut self.block;
                let written = guarded(|| out.write_all(block));
                block.clear();
                written.unwrap_or_else(|gone| Err(broken(&gone)))
            }
            Writer::Thread { full, empty, .. } => {
                let fresh = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES));
                if full.send(std::mem::replace(&mut self.block, fresh)).is_ok() {
                    return Ok(());
                }
                // The writer has given up: its end says why.
                Err(self.end().err().unwrap_or_else(gone))
            }
            Writer::Ended => Err(gone()),
        }
    }

    fn end(&mut self) -> io::Result<W> {
        match std::mem::replace(&mut self.writer, Writer::Ended) {
            Writer::Here(out) => out.finish(),
            Writer::Thread { full, thread, .. } => {
                drop(full);
                let ended = thread.join().ok().flatten();
                ended.unwrap_or_else(|| Err(broken(&WorkerGone::silent())))
            }
            Writer::Ended => Err(gone()),
        }
    }

    /// Hands over the rest and waits until everything is written.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.hand_over()?;
        self.end()
    }
}

/// What is given up is waited for, too: then its temporary file is gone before the program is.
impl<W: Write> Drop for Behind<W> {
    fn drop(&mut self) {
        let writer = std::mem::replace(&mut self.writer, Writer::Ended);
        if let Writer::Thread { full, thread, .. } = writer {
            drop(full);
            // Nobody asks any more how it ended.
            let _ = thread.join();
        }
    }
}

/// The thread that writes panicked, which is a mistake of flowsieve's own.
fn broken(WorkerGone(reason): &WorkerGone) -> io::Error {
    io::Error::other(format!(
        "writing ended early ({reason}); this is a mistake in flowsieve, please report it"
    ))
}

fn gone() -> io::Error {
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
            let mut behind = Behind::new(Trap(taken), Compression::None).unwrap();
            let block = vec![0; BLOCK_BYTES];
            let mut put = Ok(());
            for _ in 0..20 {
                put = put.and_then(|()| behind.put(&block));
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
