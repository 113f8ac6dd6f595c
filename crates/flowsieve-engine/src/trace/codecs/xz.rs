//! xz: streams one after another, with padding between them, in bounded memory.

use lzma_rust2::{Action, Status, XzStream};

use super::input::Input;
use super::{Codec, Fault, Step};
use crate::memory::allocatable;

/// Memory that a stream may ask for. The strongest preset of xz(1) takes 65 MiB; a dictionary of
/// 256 MiB is more than any capture is written with.
const MEMORY_LIMIT_KIB: u32 = 300 * 1024;

/// Less than a stream of the weakest preset takes.
const LEAST_MEMORY_KIB: u64 = 256;

/// Bytes that the decoder is given at a time: where they are damaged, it keeps back what it had
/// made of them. Larger pieces are not faster: 100 MB took the same time with pieces of 64 bytes
/// and of 128 KiB.
const PIECE_BYTES: usize = 64;

pub(super) struct Xz {
    input: Input,
    stream: XzStream,
    limit_kib: u32,
}

impl Xz {
    pub(super) fn new(input: Input) -> Self {
        // The decoder ends the program if memory is refused, so it is limited to what there is.
        let limit = allocatable(u64::from(MEMORY_LIMIT_KIB) << 10, LEAST_MEMORY_KIB << 10) >> 10;
        let limit_kib = limit as u32;
        Self { input, stream: XzStream::new_mem_limit(true, limit_kib), limit_kib }
    }

    fn needed_mib(&self) -> u32 {
        self.stream.memory_usage().unwrap_or(u32::MAX) / 1024
    }

    fn too_large(&self) -> String {
        let needed = self.needed_mib();
        format!(
            "its dictionary takes {needed} MiB of memory, and flowsieve gives it at most {}; compress the file with \
             a smaller one, such as that of `xz -9`",
            MEMORY_LIMIT_KIB / 1024
        )
    }
}

impl Codec for Xz {
    fn step(&mut self, target: &mut [u8]) -> Step {
        let mut produced = 0;
        while produced < target.len() {
            let before = self.stream.total_out();
            let here = self.input.available();
            let at_end = here.is_empty();
            let action = if at_end { Action::Finish } else { Action::Run };
            let here = &here[..here.len().min(PIECE_BYTES)];
            let result = self.stream.process(here, &mut target[produced..], action);
            let got = (self.stream.total_out() - before) as usize;
            produced += got;
            let result = match result {
                // This is no matter of the bytes at hand.
                Err(_) if self.stream.memory_usage() > Some(MEMORY_LIMIT_KIB) => {
                    return Step::stopped(produced, Fault::Unsupported, self.too_large());
                }
                Err(_) if self.stream.memory_usage() > Some(self.limit_kib) => {
                    let needed = self.needed_mib();
                    let reason = format!(
                        "decompressing it takes {needed} MiB of memory, which the system does not give"
                    );
                    return Step::stopped(produced, Fault::Refused, reason);
                }
                Err(_) if at_end => return Step::cut(produced),
                Err(error) => return Step::damaged(produced, error.to_string()),
                Ok(result) => result,
            };
            self.input.consume(result.bytes_consumed);
            if result.status == Status::StreamEnd {
                break;
            }
            if result.bytes_consumed == 0 && got == 0 {
                let no_progress = || Step::damaged(produced, "no progress");
                return if at_end { Step::cut(produced) } else { no_progress() };
            }
            // Deliver the bytes that are there before waiting for more input.
            if produced > 0 && self.input.is_drained() {
                break;
            }
        }
        Step::produced(produced)
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
}
