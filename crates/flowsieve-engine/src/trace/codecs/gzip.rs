//! gzip: members one after another; zeros after the last one are ignored, as gzip(1) does.

use flate2::{Decompress, FlushDecompress, Status};

use super::streams::{Stream, Streams};

/// The largest history that DEFLATE knows: 2^15 bytes.
const WINDOW_BITS: u8 = 15;

pub(super) type Gzip = Streams<Decompress>;

impl Stream for Decompress {
    const MARK: &'static [u8] = &[0x1f, 0x8b];
    const TRAILING: &'static str = "what follows the last member is not gzip data";

    fn start() -> Self {
        Self::new_gzip(WINDOW_BITS)
    }

    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn decompress(&mut self, input: &[u8], target: &mut [u8]) -> Result<bool, String> {
        match Self::decompress(self, input, target, FlushDecompress::None) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(_) => Err("the deflate data or its checksum is wrong".to_owned()),
        }
    }
}
