//! Numbers in the encodings of Parquet: differences, and runs.
//!
//! ```text
//!     differences: block, parts of a block, numbers │ first │ least difference │ widths │ what each has beyond the least │ ...
//!     runs:        times the same, number │ groups of eight, numbers one behind the other │ ...
//! ```
//!
//! Each part of a block has a width of its own, so a column of small or similar numbers takes few
//! bits a number, and needs neither a dictionary nor compression.

/// Differences of a block, and of a part of it.
const BLOCK: usize = 128;
const PART: usize = 32;
const PARTS: usize = BLOCK / PART;

/// Numbers of a group in a run; of so many that are the same a run of their own is shorter.
const GROUP: usize = 8;

/// Appends numbers in `DELTA_BINARY_PACKED`.
pub(super) fn push_differences(numbers: &[i64], out: &mut Vec<u8>) {
    push_number(BLOCK as u64, out);
    push_number(PARTS as u64, out);
    push_number(numbers.len() as u64, out);
    push_signed(numbers.first().copied().unwrap_or_default(), out);
    let mut next = 1;
    while next < numbers.len() {
        let end = numbers.len().min(next + BLOCK);
        let mut differences = [0; BLOCK];
        let differences = &mut differences[..end - next];
        let pairs = numbers[next..end].iter().zip(&numbers[next - 1..end - 1]);
        for (difference, (number, before)) in differences.iter_mut().zip(pairs) {
            *difference = number.wrapping_sub(*before);
        }
        push_block(differences, out);
        next = end;
    }
}

fn push_block(differences: &[i64], out: &mut Vec<u8>) {
    let least = differences.iter().copied().min().unwrap_or_default();
    let mut beyond = [0; BLOCK];
    for (beyond, difference) in beyond.iter_mut().zip(differences) {
        *beyond = difference.wrapping_sub(least).cast_unsigned();
    }
    push_signed(least, out);
    let widths: [u32; PARTS] = std::array::from_fn(|part| {
        let numbers = &beyond[part * PART..][..PART];
        let all = numbers.iter().fold(0_u64, |all, number| all | number);
        u64::BITS - all.leading_zeros()
    });
    out.extend(widths.map(|width| width as u8));
    let parts = differences.len().div_ceil(PART);
    for (numbers, width) in beyond.chunks(PART).zip(widths).take(parts) {
        push_packed(numbers.iter().copied(), width, out);
    }
}

/// Appends numbers in runs. They have at most this many bits.
pub(super) fn push_runs<T: Copy + PartialEq + Into<u32>>(
    numbers: &[T],
    width: u32,
    out: &mut Vec<u8>,
) {
    let (mut loose_from, mut at) = (0, 0);
    while at < numbers.len() {
        let number = numbers[at];
        let same = numbers[at..].iter().take_while(|&&other| other == number);
        let same = same.count();
        if same < GROUP {
            at = numbers.len().min(at + GROUP);
            continue;
        }
        push_groups(&numbers[loose_from..at], width, out);
        push_number((same as u64) << 1, out);
        let bytes = number.into().to_le_bytes();
        out.extend_from_slice(&bytes[..width.div_ceil(8) as usize]);
        at += same;
        loose_from = at;
    }
    push_groups(&numbers[loose_from..], width, out);
}

fn push_groups<T: Copy + Into<u32>>(numbers: &[T], width: u32, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(GROUP);
    push_number((groups as u64) << 1 | 1, out);
    let filling = std::iter::repeat_n(0, groups * GROUP - numbers.len());
    let numbers = numbers.iter().map(|&number| u64::from(number.into()));
    push_packed(numbers.chain(filling), width, out);
}

/// Appends numbers of so many bits each, the lowest bits first.
pub(super) fn push_packed(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut word, mut used) = (0_u64, 0);
    for number in numbers {
        word |= number << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            word = if used == 0 { 0 } else { number >> (width - used) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..used.div_ceil(8) as usize]);
}

/// Bits of this number.
pub(super) const fn width_of(number: u32) -> u32 {
    u32::BITS - number.leading_zeros()
}

fn push_signed(number: i64, out: &mut Vec<u8>) {
    push_number((number << 1 ^ number >> 63).cast_unsigned(), out);
}

fn push_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
