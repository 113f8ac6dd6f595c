//! The channels that the threads use: crossbeam's, or those of a model checker.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::time::Duration;

/// A kind of channel with one receiver.
pub(crate) trait Channels {
    /// The sending end.
    type Sender<T: Send>: Clone + Send;

    /// The receiving end.
    type Receiver<T: Send>: Send;

    /// Creates a channel with room for this many items; sending more waits.
    fn bounded<T: Send>(room: usize) -> (Self::Sender<T>, Self::Receiver<T>);

    /// Creates a channel in which sending never waits.
    fn unbounded<T: Send>() -> (Self::Sender<T>, Self::Receiver<T>);

    /// Sends an item; returns false if the receiver is gone.
    fn send<T: Send>(to: &Self::Sender<T>, item: T) -> bool;

    /// Waits for the next item; `None` if every sender is gone.
    fn receive<T: Send>(from: &Self::Receiver<T>) -> Option<T>;

    /// Waits up to `at_most` for the next item; `None` if the time is over.
    fn receive_within<T: Send>(from: &Self::Receiver<T>, at_most: Duration) -> Option<Next<T>>;

    /// Returns the next item, if one is there.
    fn try_receive<T: Send>(from: &Self::Receiver<T>) -> Option<T>;
}

/// The next item, or the end.
pub(crate) enum Next<T> {
    Item(T),
    /// Every sender is gone.
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
