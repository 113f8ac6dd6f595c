//! A stream that shows a failure as its end.

use std::io::{self, Read};

/// A stream that ends where it fails, and keeps the failure for who asks.
pub(super) struct FailureAsEnd<R> {
    pub(super) inner: R,
    pub(super) ended: bool,
    pub(super) failure: Option<io::Error>,
}

impl<R: Read> FailureAsEnd<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, ended: false, failure: None }
    }

    /// Reads once; returns 0 at the end, or when the stream has failed.
    pub(super) fn read(&mut self, target: &mut [u8]) -> usize {
        while !self.ended {
            match self.inner.read(target) {
                Ok(0) => self.ended = true,
                Ok(count) => return count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                }
            }
        }
        0
    }
}
