//! Channels as the protocols need them: crossbeam's, or those of a model checker.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::time::Duration;

/// A kind of channel with one receiver.
pub(crate) trait Channels {
    /// The end that items go into.
    type Sender<T: Send>: Clone + Send;

    /// The end that they come out of.
    type Receiver<T: Send>: Send;

    /// A channel with room for this many items; whoever sends more waits.
    fn bounded<T: Send>(room: usize) -> (Self::Sender<T>, Self::Receiver<T>);

    /// A channel that nobody waits to send to.
    fn unbounded<T: Send>() -> (Self::Sender<T>, Self::Receiver<T>);

    /// Sends an item; false if nobody is left to receive it.
    fn send<T: Send>(to: &Self::Sender<T>, item: T) -> bool;

    /// Waits for the next item; none if nobody is left to send one.
    fn receive<T: Send>(from: &Self::Receiver<T>) -> Option<T>;

    /// The same, but for no longer than this.
    fn receive_within<T: Send>(from: &Self::Receiver<T>, at_most: Duration) -> Option<Next<T>>;

    /// The next item, if one is there.
    fn try_receive<T: Send>(from: &Self::Receiver<T>) -> Option<T>;
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next<T> {
    Item(T),
    /// Nobody is left to send one.
    End,
}

/// The channels of every run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crossbeam {}

impl Channels for Crossbeam {
    type Sender<T: Send> = Sender<T>;
    type Receiver<T: Send> = Receiver<T>;

    fn bounded<T: Send>(room: usize) -> (Sender<T>, Receiver<T>) {
        bounded(room)
    }

    fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }

    fn send<T: Send>(to: &Sender<T>, item: T) -> bool {
        to.send(item).is_ok()
    }

    fn receive<T: Send>(from: &Receiver<T>) -> Option<T> {
        from.recv().ok()
    }

    fn receive_within<T: Send>(from: &Receiver<T>, at_most: Duration) -> Option<Next<T>> {
        match from.recv_timeout(at_most) {
            Ok(item) => Some(Next::Item(item)),
            Err(RecvTimeoutError::Disconnected) => Some(Next::End),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    fn try_receive<T: Send>(from: &Receiver<T>) -> Option<T> {
        from.try_recv().ok()
    }
}
