//! xz: streams one after another, with padding between them, in bounded memory.

use lzma_rust2::{Action, Status, XzStream};

use super::input::Input;
use super::{Codec, Step};

/// Memory that a stream may ask for. The strongest preset of xz(1) takes 65 MiB; a dictionary of 256 MiB is
/// more than any capture is written with.
const MEMORY_LIMIT_KIB: u32 = 300 * 1024;

pub(super) struct Xz {
    input: Input,
    stream: XzStream,
}

impl Xz {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            stream: XzStream::new_mem_limit(true, MEMORY_LIMIT_KIB),
        }
    }
}

impl Codec for Xz {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            let before = self.stream.total_out();
            let here = self.input.available();
            let at_end = here.is_empty();
            let action = if at_end { Action::Finish } else { Action::Run };
            let result = self.stream.process(here, target, action);
            let produced = (self.stream.total_out() - before) as usize;
            match result {
                Err(_) if at_end => return Step::cut(produced),
                Err(error) => return Step::damaged(produced, error.to_string()),
                Ok(result) => {
                    self.input.consume(result.bytes_consumed);
                    if produced > 0 || result.status == Status::StreamEnd {
                        return Step::produced(produced);
                    }
                    if result.bytes_consumed == 0 {
                        return if at_end {
                            Step::cut(0)
                        } else {
                            Step::damaged(0, "no progress")
                        };
                    }
                }
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
}
