//! One input: its packets become batches, in a thread of its own or in the caller's.

use super::merge::{Batch, Maker};
use crate::trace::{Capture, Compression, TraceError};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;

/// Batches under way from one input.
const QUEUED_BATCHES: usize = 8;

/// Packets handed over at once. What a reader yields at a time may be far fewer, where packets are
/// long, and every handing over may have to wake the other thread: on whole frames 4096 instead of one
/// buffer's 600 took the run from 1.56 to 1.20 times the limit of `docs/performance.md`.
const PACKETS_AT_ONCE: usize = 4096;

/// An open input and the batch that is being taken from it.
pub(super) struct Feed<M: Maker> {
    source: Source<M>,
    /// The present batch.
    pub(super) batch: M::Batch,
    /// How far it has been taken.
    pub(super) cursor: <M::Batch as Batch>::Cursor,
    /// Packets taken.
    pub(super) packets: u64,
    bytes: Arc<AtomicU64>,
    /// Which input it is.
    pub(super) input: usize,
    /// What the input is in.
    pub(super) container: String,
}

enum Source<M: Maker> {
    Here {
        capture: Box<Capture>,
        maker: Arc<M>,
    },
    Thread {
        full: Receiver<Message<M::Batch>>,
        empty: Sender<M::Batch>,
    },
}

enum Message<B> {
    Batch(B),
    Failed(TraceError),
}

impl<M: Maker> Feed<M> {
    /// A feed that decodes in a thread of its own if `threaded`, else whenever it is asked.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        input: usize,
        capture: Capture,
        maker: &Arc<M>,
        threaded: bool,
    ) -> Self
    where
        M: 'scope,
    {
        let bytes = capture.bytes_read();
        let container = describe(&capture);
        let maker = Arc::clone(maker);
        let capture = Box::new(capture);
        let source = if threaded {
            let (send, full) = bounded(QUEUED_BATCHES);
            // Room for every batch that there is, so that giving one back never waits.
            let (empty, emptied) = bounded(QUEUED_BATCHES + 2);
            scope.spawn(move || decode(capture, &*maker, &send, &emptied));
            Source::Thread { full, empty }
        } else {
            Source::Here { capture, maker }
        };
        Self {
            source,
            batch: M::Batch::default(),
            cursor: Default::default(),
            packets: 0,
            bytes,
            input,
            container,
        }
    }

    /// Bytes of the input read so far, as they are on disk.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the present batch is used up.
    pub(super) fn is_drained(&self) -> bool {
        M::Batch::taken(&self.cursor) == self.batch.times_ns().len()
    }

    /// Time of the next packet; the present batch must not be used up.
    pub(super) fn next_ns(&self) -> i64 {
        self.batch.times_ns()[M::Batch::taken(&self.cursor)]
    }

    /// Replaces the present batch by the next one that is not empty; false at the end.
    ///
    /// # Errors
    ///
    /// The input is damaged or cannot be read further. It is at its end then.
    pub(super) fn refill(&mut self) -> Result<bool, TraceError> {
        self.cursor = Default::default();
        match &mut self.source {
            Source::Here { capture, maker } => {
                self.batch.clear();
                while self.batch.times_ns().is_empty() {
                    match capture.next_batch()? {
                        Some(batch) => maker.make(batch, &mut self.batch),
                        None => return Ok(false),
                    }
                }
                Ok(true)
            }
            Source::Thread { full, empty } => {
                let mut used = std::mem::take(&mut self.batch);
                used.clear();
                // The decode thread may be gone: then nobody needs the batch.
                let _ = empty.try_send(used);
                match full.recv() {
                    Ok(Message::Batch(batch)) => {
                        self.batch = batch;
                        Ok(true)
                    }
                    Ok(Message::Failed(error)) => Err(error),
                    Err(_) => Ok(false),
                }
            }
        }
    }
}

fn decode<M: Maker>(
    mut capture: Box<Capture>,
    maker: &M,
    send: &Sender<Message<M::Batch>>,
    emptied: &Receiver<M::Batch>,
) {
    let mut out = M::Batch::default();
    // The sequencer hangs up when the run is given up: then there is nothing more to do.
    loop {
        let end = match capture.next_batch() {
            Ok(Some(batch)) => {
                maker.make(batch, &mut out);
                if out.times_ns().len() < PACKETS_AT_ONCE {
                    continue;
                }
                None
            }
            Ok(None) => Some(None),
            Err(error) => Some(Some(error)),
        };
        if !out.times_ns().is_empty() {
            let fresh = emptied.try_recv().unwrap_or_default();
            let full = std::mem::replace(&mut out, fresh);
            if send.send(Message::Batch(full)).is_err() {
                return;
            }
        }
        let Some(end) = end else { continue };
        let Some(error) = end else { return };
        if send.send(Message::Failed(error)).is_err() {
            return;
        }
    }
}

fn describe(capture: &Capture) -> String {
    match capture.compression() {
        Compression::None => capture.container().to_owned(),
        compression => format!("{} in {}", capture.container(), compression.name()),
    }
}

/// An input that is not open yet.
pub(super) struct Upcoming {
    pub(super) path: PathBuf,
    pub(super) input: usize,
    /// Time of its first packet.
    pub(super) first_ns: i64,
}
