//! LZ4 frame format: frames one after another, skippable frames between them.

use std::io::Read;

use lz4_flex::frame::FrameDecoder;

use super::input::Input;
use super::parts::empty_input;
use super::{Codec, Step, trailing};

pub(super) struct Lz4 {
    /// A decoder serves one frame only: its buffers are made for the block size of that.
    frame: Box<FrameDecoder<Input>>,
    /// `None` between frames.
    kind: Option<Kind>,
    any: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Frame,
    /// The frame of the first tools, which has no mark at its end.
    Legacy,
}

impl Lz4 {
    pub(super) fn new(input: Input) -> Self {
        Self { frame: Box::new(FrameDecoder::new(input)), kind: None, any: false }
    }

    /// Enters the next frame; `Some` if there is none.
    fn enter_frame(&mut self) -> Option<Step> {
        let any = self.any;
        let input = self.input();
        match input.peek(8) {
            &[magic @ (0x04 | 0x02), 0x22 | 0x21, 0x4d | 0x4c, 0x18, ..] => {
                self.kind = Some(if magic == 0x04 { Kind::Frame } else { Kind::Legacy });
                self.any = true;
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

    fn leave_frame(&mut self) {
        let mut next = FrameDecoder::new(empty_input());
        std::mem::swap(next.get_mut(), self.frame.get_mut());
        *self.frame = next;
        self.kind = None;
    }
}

impl Codec for Lz4 {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            let Some(kind) = self.kind else {
                if let Some(end) = self.enter_frame() {
                    return end;
                }
                continue;
            };
            match self.frame.read(target) {
                // Both the end of a frame and the end of the input between its blocks show as 0.
                Ok(0) if kind == Kind::Frame && self.input().overdrawn => return Step::cut(0),
                Ok(0) => self.leave_frame(),
                Ok(produced) => return Step::produced(produced),
                Err(_) if self.input().at_end() => return Step::cut(0),
                Err(error) => return Step::damaged(0, error.to_string()),
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        self.frame.get_mut()
    }
}
