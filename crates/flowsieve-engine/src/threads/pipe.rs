//! A pipe: one thread fills buffers, another empties them and sends them back.

use super::channels::{Channels, Crossbeam, Next};
use std::time::Duration;

/// The end that sends full buffers.
pub(crate) struct PipeSender<B: Send, E: Send, C: Channels = Crossbeam> {
    full: C::Sender<Result<B, E>>,
    emptied: C::Receiver<B>,
}

/// The end that receives them. It ends when the sender is dropped.
pub(crate) struct PipeReceiver<B: Send, E: Send, C: Channels = Crossbeam> {
    full: C::Receiver<Result<B, E>>,
    empty: C::Sender<B>,
    /// The item that arrived during [`wait`](Self::wait).
    arrived: Option<Next<Result<B, E>>>,
}

/// Creates a pipe in which up to `queued` buffers wait; with one on each side there are
/// `queued + 2` at most.
pub(crate) fn pipe<B: Send, E: Send, C: Channels>(
    queued: usize,
) -> (PipeSender<B, E, C>, PipeReceiver<B, E, C>) {
    let (send, full) = C::bounded(queued);
    // No more buffers come back than went out, so sending one back need not wait.
    let (empty, emptied) = C::unbounded();
    (PipeSender { full: send, emptied }, PipeReceiver { full, empty, arrived: None })
}

impl<B: Default + Send, E: Send, C: Channels> PipeSender<B, E, C> {
    /// Sends a buffer and leaves a new or used one in its place; returns false if the receiver is gone.
    pub(crate) fn send(&self, buffer: &mut B) -> bool {
        let fresh = C::try_receive(&self.emptied).unwrap_or_default();
        C::send(&self.full, Ok(std::mem::replace(buffer, fresh)))
    }

    /// Ends the pipe with an error.
    pub(crate) fn fail(self, error: E) {
        // Without a receiver the run was aborted, and nobody needs the error.
        let _ = C::send(&self.full, Err(error));
    }
}

impl<B: Send, E: Send, C: Channels> PipeReceiver<B, E, C> {
    /// Sends back a used buffer as it is, and waits for the next full one; `None` at the end.
    pub(crate) fn receive(&mut self, used: B) -> Option<Result<B, E>> {
        // Without a sender nobody needs the buffer.
        let _ = C::send(&self.empty, used);
        match self.arrived.take() {
            Some(Next::Item(next)) => Some(next),
            Some(Next::End) => None,
            None => C::receive(&self.full),
        }
    }

    /// Waits up to `at_most` for the next buffer or the end; returns whether either is there.
    pub(crate) fn wait(&mut self, at_most: Duration) -> bool {
        if self.arrived.is_none() {
            self.arrived = C::receive_within(&self.full, at_most);
        }
        self.arrived.is_some()
    }
}
