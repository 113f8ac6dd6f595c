//! bzip2: streams one after another.

use bzip2::{Decompress, Status};

use crate::memory::MEMORY_REFUSED;

use super::streams::{Stream, Streams};

pub(super) type Bzip2 = Streams<Decompress>;

impl Stream for Decompress {
    const MARK: &'static [u8] = b"BZh";
    const TRAILING: &'static str = "what follows the last stream is not bzip2 data";

    fn start() -> Self {
        Self::new(false)
    }

    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn decompress(&mut self, input: &[u8], target: &mut [u8]) -> Result<bool, String> {
        match Self::decompress(self, input, target) {
            Ok(Status::MemNeeded) => Err(MEMORY_REFUSED.to_owned()),
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(error.to_string()),
        }
    }
}
