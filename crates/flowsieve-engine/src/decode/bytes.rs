//! Reads that fail with [`Skip::CutShort`] where the captured bytes end.

use super::Skip;

/// The byte at an offset.
#[inline]
pub(super) fn byte(bytes: &[u8], at: usize) -> Result<u8, Skip> {
    bytes.get(at).copied().ok_or(Skip::CutShort)
}

/// `N` bytes at an offset.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Skip> {
    let tail = bytes.get(at..).ok_or(Skip::CutShort)?;
    tail.first_chunk().copied().ok_or(Skip::CutShort)
}

/// A 16-bit number in network byte order.
#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> Result<u16, Skip> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// A 32-bit number in network byte order.
#[inline]
pub(super) fn be32(bytes: &[u8], at: usize) -> Result<u32, Skip> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// A 16-bit number in little-endian byte order.
#[inline]
pub(super) fn le16(bytes: &[u8], at: usize) -> Result<u16, Skip> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// A 32-bit number in little-endian byte order.
#[inline]
pub(super) fn le32(bytes: &[u8], at: usize) -> Result<u32, Skip> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// Returns all bytes from an offset on; none is no error.
#[inline]
pub(super) fn from(bytes: &[u8], at: usize) -> Result<&[u8], Skip> {
    bytes.get(at..).ok_or(Skip::CutShort)
}

/// Returns the offset of a piece of a frame; the frame's end for an empty piece. Pieces may end
/// before the frame does, so their length is not enough.
#[inline]
pub(super) fn place_in(frame: &[u8], piece: &[u8]) -> usize {
    match piece {
        [] => frame.len(),
        _ => piece.as_ptr().addr() - frame.as_ptr().addr(),
    }
}
