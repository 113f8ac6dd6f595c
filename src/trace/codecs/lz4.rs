//! LZ4 frame format: frames one after another, skippable frames between them.

use std::io::Read;

use lz4_flex::frame::FrameDecoder;

use super::input::Input;
use super::{Codec, Step, trailing};

pub(super) struct Lz4 {
    frame: FrameDecoder<Input>,
    in_frame: bool,
    frames: u64,
}

impl Lz4 {
    pub(super) fn new(input: Input) -> Self {
        Self { frame: FrameDecoder::new(input), in_frame: false, frames: 0 }
    }

    /// Looks for the next frame; `Some` if there is none.
    fn next_frame(&mut self) -> Option<Step> {
        let any = self.frames > 0;
        let input = self.frame.get_mut();
        match input.peek(8) {
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => {
                self.in_frame = true;
                self.frames += 1;
                None
            }
            &[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
                let length = u32::from_le_bytes([a, b, c, d]);
                (!input.skip(8 + u64::from(length))).then(|| Step::cut(0))
            }
            [] if any => Some(Step::produced(0)),
            short if short.len() < 8 && !any => Some(Step::cut(0)),
            _ => Some(trailing(input, "what follows the last frame is not lz4 data")),
        }
    }
}

impl Codec for Lz4 {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            if !self.in_frame {
                if let Some(end) = self.next_frame() {
                    return end;
                }
                continue;
            }
            match self.frame.read(target) {
                // The end of a frame shows as 0, as the end of the input does.
                Ok(0) => self.in_frame = false,
                Ok(produced) => return Step::produced(produced),
                Err(_) if self.frame.get_mut().at_end() => return Step::cut(0),
                Err(error) => return Step::damaged(0, error),
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        self.frame.get_mut()
    }
}
