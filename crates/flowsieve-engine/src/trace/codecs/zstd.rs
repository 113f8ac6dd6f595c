//! Zstandard: frames one after another, skippable frames between them, in bounded memory.

use ::zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::input::Input;
use super::{Codec, Step, trailing};

/// Largest window that a frame may ask for, as a power of two: that of `zstd --ultra -22` and of
/// `--long`, and zstd's own limit.
const WINDOW_LOG_LIMIT: u32 = 27;

/// Bytes of the head of a block, which the decoder asks for together with the block before it.
const BLOCK_HEAD: usize = 3;

pub(super) struct Zstd {
    input: Input,
    frame: Decoder<'static>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before a frame; whether there was one already.
    Between { any: bool },
    /// The decoder wants this many bytes next.
    InFrame { wants: usize },
}

impl Zstd {
    pub(super) fn new(input: Input) -> Self {
        let mut frame = Decoder::new().expect("the system gives memory for a decoder");
        frame
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_LIMIT))
            .expect("the limit is one that zstd knows");
        Self {
            input,
            frame,
            state: State::Between { any: false },
        }
    }

    /// Enters the next frame; `Some` if there is none.
    fn enter_frame(&mut self, any: bool) -> Option<Step> {
        match self.input.peek(8) {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                if let Err(error) = self.frame.reinit() {
                    return Some(Step::damaged(0, error.to_string()));
                }
                self.state = State::InFrame { wants: BLOCK_HEAD };
                None
            }
            &[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
                let length = u32::from_le_bytes([a, b, c, d]);
                self.state = State::Between { any: true };
                (!self.input.skip(8 + u64::from(length))).then(|| Step::cut(0))
            }
            [] if any => Some(Step::produced(0)),
            short if short.len() < 8 && !any => Some(Step::cut(0)),
            _ => Some(trailing(
                &mut self.input,
                "what follows the last frame is not zstd data",
            )),
        }
    }
}

impl Codec for Zstd {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            let wants = match self.state {
                State::Between { any } => {
                    if let Some(end) = self.enter_frame(any) {
                        return end;
                    }
                    continue;
                }
                State::InFrame { wants } => wants,
            };
            // A block and the head of the next one in two steps: what a step decoded before it finds
            // damage is lost.
            let most = if wants > BLOCK_HEAD {
                wants - BLOCK_HEAD
            } else {
                wants
            };
            let here = self.input.available();
            let given = &here[..here.len().min(most)];
            let mut from = InBuffer::around(given);
            let mut to = OutBuffer::around(&mut *target);
            let result = self.frame.run(&mut from, &mut to);
            let (consumed, produced) = (from.pos(), to.pos());
            let ended = given.is_empty();
            self.input.consume(consumed);
            match result {
                Ok(0) => self.state = State::Between { any: true },
                Ok(wants) => self.state = State::InFrame { wants },
                Err(error) => return Step::damaged(0, error.to_string()),
            }
            if produced > 0 {
                return Step::produced(produced);
            }
            if ended {
                return Step::cut(0);
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
}
