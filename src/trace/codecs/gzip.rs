//! gzip: members one after another; zeros after the last one are ignored, as gzip(1) does.

use flate2::{Decompress, FlushDecompress, Status};

use super::input::Input;
use super::{Codec, Step, trailing};

/// The largest history that DEFLATE knows: 2^15 bytes.
const WINDOW_BITS: u8 = 15;

pub(super) struct Gzip {
    input: Input,
    member: Option<Decompress>,
    members: u64,
}

impl Gzip {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            member: None,
            members: 0,
        }
    }
}

impl Codec for Gzip {
    fn step(&mut self, target: &mut [u8]) -> Step {
        let mut produced = 0;
        while produced < target.len() {
            let Some(member) = &mut self.member else {
                if produced > 0 {
                    break;
                }
                match self.input.peek(2) {
                    [0x1f, 0x8b, ..] => {}
                    [] if self.members > 0 => return Step::produced(0),
                    [] | [0x1f] => return Step::cut(0),
                    _ => {
                        return trailing(
                            &mut self.input,
                            "what follows the last member is not gzip data",
                        );
                    }
                }
                self.member = Some(Decompress::new_gzip(WINDOW_BITS));
                continue;
            };
            let (in_before, out_before) = (member.total_in(), member.total_out());
            let result = member.decompress(
                self.input.available(),
                &mut target[produced..],
                FlushDecompress::None,
            );
            let consumed = (member.total_in() - in_before) as usize;
            let got = (member.total_out() - out_before) as usize;
            produced += got;
            self.input.consume(consumed);
            match result {
                Err(_) => {
                    return Step::damaged(produced, "the deflate data or its checksum is wrong");
                }
                Ok(Status::StreamEnd) => {
                    self.member = None;
                    self.members += 1;
                }
                Ok(_) if consumed == 0 && got == 0 => {
                    if self.input.at_end() {
                        return Step::cut(produced);
                    }
                    return Step::damaged(produced, "no progress");
                }
                // What is there is delivered before more input is waited for.
                Ok(_) if produced > 0 && got == 0 => break,
                Ok(_) => {}
            }
        }
        Step::produced(produced)
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
}
