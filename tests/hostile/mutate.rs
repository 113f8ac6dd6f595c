//! Random damage, mostly in lengths, types, counts and pointers.

use super::random::Random;
use super::samples::Sample;

/// Limits and magic numbers of formats.
const WORDS: [u32; 18] = [
    0,
    1,
    3,
    4,
    7,
    11,
    12,
    13,
    27,
    28,
    0x7f,
    0xff,
    0xffff,
    0x4_0000,
    0x4_0001,
    0x100_0001,
    0x7fff_ffff,
    u32::MAX,
];

/// Bytes with a meaning in link headers, IP and DNS.
const BYTES: [u8; 20] = [
    0, 1, 2, 4, 5, 6, 17, 0x3f, 0x40, 0x45, 0x4f, 0x60, 0x80, 0x81, 0x88, 0xaa, 0xc0, 0xfe, 0xff,
    0x2c,
];

/// Ethertypes, next headers and ports, as two bytes.
const SHORTS: [u16; 24] = [
    0x0800, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8848, 0x8863, 0x8864, 0x8906, 0x6558, 0x880b, 0x22f3,
    53, 4789, 6081, 2152, 3544, 1701, 5353, 0xc00c, 0xc000, 0xffff, 0, 0x05dc,
];

/// Returns a damaged copy of the sample.
pub(crate) fn mutate(sample: &Sample, others: &[Sample], random: &mut Random) -> Vec<u8> {
    let mut bytes = sample.bytes.clone();
    for _ in 0..=random.below(4) {
        one(&mut bytes, sample, others, random);
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (place, byte) in bytes.iter_mut().skip(at).zip(value) {
        *place = *byte;
    }
}

fn one(bytes: &mut Vec<u8>, sample: &Sample, others: &[Sample], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(14) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => bytes[at] = *random.pick(&BYTES),
        3 => put(bytes, at, &random.pick(&SHORTS).to_be_bytes()),
        4 | 5 if !sample.fields.is_empty() => {
            let at = *random.pick(&sample.fields);
            let value = *random.pick(&WORDS);
            let value =
                if random.below(2) == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
            let width = if random.below(3) == 0 { 2 } else { 4 };
            put(bytes, at, &value[..width]);
        }
        6 if !sample.fields.is_empty() => {
            // A length that is slightly wrong.
            let at = *random.pick(&sample.fields);
            if let Some(byte) = bytes.get_mut(at + random.below(4)) {
                *byte = byte.wrapping_add([1, 2, 4, 254, 255][random.below(5)]);
            }
        }
        7 if !sample.fields.is_empty() => {
            // A link type, in the file header or in an interface.
            let link = (random.next() % 310) as u16;
            let at = if sample.header == 24 { 20 } else { *random.pick(&sample.fields) };
            put(bytes, at, &link.to_le_bytes());
        }
        8 => bytes.truncate(at),
        9 => {
            let length = random.below(40).min(bytes.len() - at);
            bytes.drain(at..at + length);
        }
        10 => {
            let length = random.below(40).min(bytes.len() - at);
            let piece = bytes[at..at + length].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        11 => {
            let other = &random.pick(others).bytes;
            let from = random.below(other.len());
            let length = random.below(200).min(other.len() - from);
            bytes.splice(at..at, other[from..from + length].iter().copied());
        }
        12 => {
            // The beginning of this sample and the records of another one.
            let other = &random.pick(others).bytes;
            bytes.truncate(at.min(128));
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
        _ => {
            let length = random.below(16);
            let value = *random.pick(&BYTES);
            put(bytes, at, &vec![value; length]);
        }
    }
}

/// A source that returns a few bytes per read, like a pipe.
#[derive(Debug)]
pub(crate) struct Dribble {
    pub(crate) bytes: Vec<u8>,
    pub(crate) at: usize,
    pub(crate) random: Random,
}

impl std::io::Read for Dribble {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        if self.random.below(50) == 0 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let left = &self.bytes[self.at..];
        let count = target.len().min(left.len()).min(1 + self.random.below(300));
        target[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}
