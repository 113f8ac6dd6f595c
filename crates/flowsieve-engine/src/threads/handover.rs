//! Batches that one thread fills and another empties and gives back.

use super::channels::{Channels, Crossbeam, Next};
use std::time::Duration;

/// The end of the thread that fills batches.
pub(crate) struct Filler<B: Send, E: Send, C: Channels = Crossbeam> {
    full: C::Sender<Result<B, E>>,
    emptied: C::Receiver<B>,
}

/// The batches, for the thread that empties them.
pub(crate) struct Batches<B: Send, E: Send, C: Channels = Crossbeam> {
    full: C::Receiver<Result<B, E>>,
    empty: C::Sender<B>,
    /// What came while somebody waited.
    at_hand: Option<Next<Result<B, E>>>,
}

/// Both ends; the filler waits while this many batches are under way.
pub(crate) fn handover<B: Send, E: Send, C: Channels>(
    queued: usize,
) -> (Filler<B, E, C>, Batches<B, E, C>) {
    let (send, full) = C::bounded(queued);
    // No more batches come back than went out, so that giving one back need never wait.
    let (empty, emptied) = C::unbounded();
    (Filler { full: send, emptied }, Batches { full, empty, at_hand: None })
}

impl<B: Default + Send, E: Send, C: Channels> Filler<B, E, C> {
    /// Hands a batch on and leaves an empty one in its place; false if nobody takes any more.
    pub(crate) fn hand_on(&self, batch: &mut B) -> bool {
        let fresh = C::try_receive(&self.emptied).unwrap_or_default();
        C::send(&self.full, Ok(std::mem::replace(batch, fresh)))
    }

    /// Ends the batches with an error.
    pub(crate) fn fail(self, error: E) {
        // If the run was given up, nobody has to know.
        let _ = C::send(&self.full, Err(error));
    }
}

impl<B: Send, E: Send, C: Channels> Batches<B, E, C> {
    /// Gives back a batch, which is empty, for the next full one; none at the end.
    pub(crate) fn next(&mut self, used: B) -> Option<Result<B, E>> {
        // The filler may be gone: then nobody needs the batch.
        let _ = C::send(&self.empty, used);
        match self.at_hand.take() {
            Some(Next::Item(next)) => Some(next),
            Some(Next::End) => None,
            None => C::receive(&self.full),
        }
    }

    /// Waits for the next batch, or the end, but not longer than this; whether one of them is
    /// there.
    pub(crate) fn wait(&mut self, at_most: Duration) -> bool {
        if self.at_hand.is_none() {
            self.at_hand = C::receive_within(&self.full, at_most);
        }
        self.at_hand.is_some()
    }
}
