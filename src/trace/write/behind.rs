//! Write-behind: blocks go to a thread that compresses and writes them, while the next is filled.

use std::io::{self, Write};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::super::compression::Compression;
use super::compress::Compressor;

/// Bytes of a block: large enough that handing it over costs nothing, small enough that it is still in
/// the cache when it is written.
const BLOCK_BYTES: usize = 512 << 10;

/// Blocks under way.
const BLOCKS: usize = 4;

/// The way to a writer in another thread.
pub(super) struct Behind<W> {
    block: Vec<u8>,
    full: Option<Sender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<W>>>,
}

impl<W: Write + Send + 'static> Behind<W> {
    pub(super) fn new(out: W, compression: Compression) -> io::Result<Self> {
        let mut out = Compressor::new(out, compression)?;
        let (full, filled) = bounded::<Vec<u8>>(BLOCKS);
        let (used, empty) = bounded::<Vec<u8>>(BLOCKS + 2);
        let thread = Builder::new().name("writer".into()).spawn(move || {
            for mut block in filled {
                out.write_all(&block)?;
                block.clear();
                // The other side may be gone: then nobody needs the block.
                let _ = used.try_send(block);
            }
            out.finish()
        })?;
        Ok(Self {
            block: Vec::with_capacity(BLOCK_BYTES),
            full: Some(full),
            empty,
            thread: Some(thread),
        })
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
        let fresh = self
            .empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES));
        let block = std::mem::replace(&mut self.block, fresh);
        match &self.full {
            Some(full) if full.send(block).is_ok() => Ok(()),
            // The writer has given up: its end says why.
            _ => Err(self.end().err().unwrap_or_else(gone)),
        }
    }

    fn end(&mut self) -> io::Result<W> {
        self.full = None;
        match self.thread.take() {
            Some(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Err(gone()),
        }
    }

    /// Hands over the rest and waits until everything is written.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.hand_over()?;
        self.end()
    }
}

/// What is given up is waited for, too: then its temporary file is gone before the program is.
impl<W> Drop for Behind<W> {
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            // Nobody asks any more how it ended.
            let _ = thread.join();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("writing had failed before")
}
