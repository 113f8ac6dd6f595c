//! gzip: members one after another; zeros after the last one are ignored, as gzip(1) does.

use flate2::{Decompress, FlushDecompress, Status};

use super::ahead::Ahead;
use super::parts::Extent;
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

/// Largest content of a member that says how long it is.
const BLOCK_BYTES: usize = 64 * 1024;

/// Extent of the member at `at` of what was read ahead, if it says that itself, as those of BGZF
/// do.
pub(super) fn extent(ahead: &mut Ahead, at: usize) -> Option<Extent> {
    const HEAD: usize = 12;
    const TAIL: usize = 8;
    // No flag but that of an extra field.
    let head = ahead.look(at + HEAD)?;
    let &[0x1f, 0x8b, 8, 4, _, _, _, _, _, _, a, b] = &head[at..at + HEAD] else { return None };
    let data = HEAD + usize::from(u16::from_le_bytes([a, b]));
    let mut fields = &ahead.look(at + data)?[at + HEAD..at + data];
    let size = loop {
        match fields {
            [b'B', b'C', 2, 0, a, b, ..] => break 1 + usize::from(u16::from_le_bytes([*a, *b])),
            [_, _, a, b, rest @ ..] => {
                fields = rest.get(usize::from(u16::from_le_bytes([*a, *b]))..)?;
            }
            _ => return None,
        }
    };
    let member = &ahead.look(at + size)?[at..at + size];
    let &[a, b, c, d] = member.get(data..)?.last_chunk()?;
    let most = u32::from_le_bytes([a, b, c, d]) as usize;
    let is_whole = size >= data + TAIL && most <= BLOCK_BYTES;
    is_whole.then_some(Extent { end: at + size, most })
}
