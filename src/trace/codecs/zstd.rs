//! Zstandard: frames one after another, skippable frames between them, in bounded memory.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::input::Input;
use super::{Codec, Step, trailing};

/// Largest window that a frame may ask for: that of `zstd --ultra -22` and of `--long`, and zstd's own
/// limit.
const WINDOW_LIMIT: u64 = 128 << 20;

/// The smallest end of a frame: a last, raw, empty block, and room for a checksum.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

pub(super) struct Zstd {
    input: Input,
    frame: FrameDecoder,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before a frame; whether there was one already.
    Between {
        any: bool,
    },
    InFrame,
    /// The frame is broken; what it holds is handed over, then the damage is told.
    Broken {
        cut: bool,
    },
}

impl Zstd {
    pub(super) fn new(input: Input) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW_LIMIT);
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
                if let Err(error) = self.frame.reset(&mut self.input) {
                    return Some(if self.input.at_end() {
                        Step::cut(0)
                    } else {
                        Step::damaged(0, error.to_string())
                    });
                }
                self.state = State::InFrame;
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

    fn decode_block(&mut self) -> Result<(), Step> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        if let Err(error) = self.frame.decode_blocks(&mut self.input, one) {
            // The decoder keeps a whole window back for references to it. An artificial end of the
            // frame makes it hand over what it decoded before the damage.
            let end = BlockDecodingStrategy::UptoBlocks(1);
            let freed = self
                .frame
                .decode_blocks(END_OF_FRAME.as_slice(), end)
                .is_ok();
            let cut = self.input.at_end();
            if freed && self.frame.can_collect() > 0 {
                self.state = State::Broken { cut };
                return Ok(());
            }
            return Err(if cut {
                Step::cut(0)
            } else {
                Step::damaged(0, error.to_string())
            });
        }
        Ok(())
    }
}

impl Codec for Zstd {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            if let State::Between { any } = self.state {
                if let Some(end) = self.enter_frame(any) {
                    return end;
                }
                continue;
            }
            match self.frame.read(target) {
                Ok(0) => {}
                Ok(produced) => return Step::produced(produced),
                Err(error) => return Step::damaged(0, error.to_string()),
            }
            match self.state {
                State::Broken { cut: true } => return Step::cut(0),
                State::Broken { cut: false } => return Step::damaged(0, "a block is damaged"),
                _ if self.frame.is_finished() => {
                    self.state = State::Between { any: true };
                    if self.frame.get_checksum_from_data().is_some()
                        && self.frame.get_checksum_from_data()
                            != self.frame.get_calculated_checksum()
                    {
                        return Step::damaged(0, "the checksum of a frame is wrong");
                    }
                }
                _ => {
                    if let Err(damage) = self.decode_block() {
                        return damage;
                    }
                }
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
}
