//! Options of pcapng blocks, from any byte order to little-endian.

const END: u16 = 0;

/// Kind of the block that has the options.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::trace) enum Block {
    Interface,
    Packet,
    /// One whose options have no numbers but those of custom options.
    Other,
}

/// Returns the width of the number in an option; 1 for bytes, which have no order.
fn width(block: Block, code: u16) -> usize {
    match (block, code) {
        // Speeds, offset of the clock; packets lost before, identifier.
        (Block::Interface, 8 | 14 | 16 | 17) | (Block::Packet, 4 | 5) => 8,
        // Time zone; flags, queue. Custom options begin with a number, and the rest is the
        // vendor's.
        (Block::Interface, 10) | (Block::Packet, 2 | 6) | (_, 2988 | 2989 | 19_372 | 19_373) => 4,
        _ => 1,
    }
}

/// Calls `see` with each well-formed option at the start of `bytes`, up to the end mark.
pub(in crate::trace) fn each(mut bytes: &[u8], big_endian: bool, mut see: impl FnMut(u16, &[u8])) {
    let short = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
    while let Some((&[a, b, c, d], rest)) = bytes.split_first_chunk::<4>() {
        let (code, length) = (short([a, b]), short([c, d]));
        let Some(value) = rest.get(..usize::from(length)).filter(|_| code != END) else { return };
        see(code, value);
        bytes = rest.get(value.len().next_multiple_of(4)..).unwrap_or_default();
    }
}

/// Appends one option.
pub(super) fn push(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Appends the options to `out`, without an end mark; returns whether there were any with `code`.
pub(in crate::trace) fn convert(
    block: Block,
    bytes: &[u8],
    big_endian: bool,
    code: u16,
    out: &mut Vec<u8>,
) -> bool {
    let mut found = false;
    each(bytes, big_endian, |this, value| {
        found |= this == code;
        let start = out.len() + 4;
        push(this, value, out);
        let width = width(block, this);
        if big_endian && width > 1 && value.len() >= width {
            out[start..start + width].reverse();
        }
    });
    found
}

/// Returns the options of an interface by which its packets are read: speed, resolution and zone of
/// times, check sequence, offset of the clock; little-endian.
pub(in crate::trace) fn about_packets(bytes: &[u8], big_endian: bool) -> Vec<u8> {
    const KEPT: [u16; 5] = [8, 9, 10, 13, 14];
    let mut all = Vec::new();
    convert(Block::Interface, bytes, big_endian, END, &mut all);
    let mut kept = Vec::new();
    each(&all, false, |code, value| {
        if KEPT.contains(&code) {
            push(code, value, &mut kept);
        }
    });
    kept
}

/// Appends the end mark if options were appended since `out` had `before` bytes.
pub(in crate::trace) fn end(before: usize, out: &mut Vec<u8>) {
    if out.len() > before {
        out.extend([0; 4]);
    }
}
