//! bzip2: streams one after another.

use bzip2::{Decompress, Status};

use super::input::Input;
use super::{Codec, Step, trailing};

pub(super) struct Bzip2 {
    input: Input,
    stream: Option<Decompress>,
    streams: u64,
}

impl Bzip2 {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            stream: None,
            streams: 0,
        }
    }
}

impl Codec for Bzip2 {
    fn step(&mut self, target: &mut [u8]) -> Step {
        let mut produced = 0;
        while produced < target.len() {
            let Some(stream) = &mut self.stream else {
                if produced > 0 {
                    break;
                }
                match self.input.peek(3) {
                    [b'B', b'Z', b'h', ..] => {}
                    [] if self.streams > 0 => return Step::produced(0),
                    [] | [b'B'] | [b'B', b'Z'] => return Step::cut(0),
                    _ => {
                        return trailing(
                            &mut self.input,
                            "what follows the last stream is not bzip2 data",
                        );
                    }
                }
                self.stream = Some(Decompress::new(false));
                continue;
            };
            let (in_before, out_before) = (stream.total_in(), stream.total_out());
            let result = stream.decompress(self.input.available(), &mut target[produced..]);
            let consumed = (stream.total_in() - in_before) as usize;
            let got = (stream.total_out() - out_before) as usize;
            produced += got;
            self.input.consume(consumed);
            match result {
                Err(error) => return Step::damaged(produced, error.to_string()),
                Ok(Status::StreamEnd) => {
                    self.stream = None;
                    self.streams += 1;
                }
                Ok(_) if consumed == 0 && got == 0 => {
                    if self.input.at_end() {
                        return Step::cut(produced);
                    }
                    return Step::damaged(produced, "no progress");
                }
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
