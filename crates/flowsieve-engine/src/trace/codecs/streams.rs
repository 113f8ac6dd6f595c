//! Formats of consecutive streams, each of which begins with a mark: gzip and bzip2.

use super::input::Input;
use super::{Codec, Step, trailing};

/// The decompressor of one stream.
pub(super) trait Stream: Send {
    /// Mark at the start of a stream.
    const MARK: &'static [u8];

    /// Sentence about bytes behind the last stream.
    const TRAILING: &'static str;

    fn start() -> Self;

    /// Bytes taken and bytes given since the start.
    fn totals(&self) -> (u64, u64);

    /// Decompresses some; whether the stream is at its end, or what is wrong with it.
    fn decompress(&mut self, input: &[u8], target: &mut [u8]) -> Result<bool, String>;
}

pub(super) struct Streams<S> {
    input: Input,
    stream: Option<S>,
    finished: u64,
}

impl<S: Stream> Streams<S> {
    pub(super) fn new(input: Input) -> Self {
        Self { input, stream: None, finished: 0 }
    }

    /// Starts the stream that comes next; `Some` if there is none.
    fn start_next(&mut self) -> Option<Step> {
        match self.input.peek(S::MARK.len()) {
            found if found.starts_with(S::MARK) => {
                self.stream = Some(S::start());
                None
            }
            [] if self.finished > 0 => Some(Step::produced(0)),
            found if S::MARK.starts_with(found) => Some(Step::cut(0)),
            _ => Some(trailing(&mut self.input, S::TRAILING)),
        }
    }
}

impl<S: Stream> Codec for Streams<S> {
    fn step(&mut self, target: &mut [u8]) -> Step {
        let mut produced = 0;
        while produced < target.len() {
            let Some(stream) = &mut self.stream else {
                if produced > 0 {
                    break;
                }
                match self.start_next() {
                    Some(step) => return step,
                    None => continue,
                }
            };
            let before = stream.totals();
            let result = stream.decompress(self.input.available(), &mut target[produced..]);
            let after = stream.totals();
            let consumed = (after.0 - before.0) as usize;
            let got = (after.1 - before.1) as usize;
            produced += got;
            self.input.consume(consumed);
            match result {
                Err(reason) => return Step::damaged(produced, reason),
                Ok(true) => {
                    self.stream = None;
                    self.finished += 1;
                    if produced == 0 {
                        return Step::between();
                    }
                }
                Ok(false) if consumed == 0 && got == 0 => {
                    if self.input.at_end() {
                        return Step::cut(produced);
                    }
                    return Step::damaged(produced, "no progress");
                }
                // Deliver the bytes that are there before waiting for more input.
                Ok(false) if produced > 0 && got == 0 => break,
                Ok(false) => {}
            }
        }
        Step::produced(produced)
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    fn is_between(&self) -> bool {
        self.stream.is_none() && self.finished > 0
    }
}
