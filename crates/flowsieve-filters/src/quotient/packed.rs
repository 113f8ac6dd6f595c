//! The bytes of a quotient filter: how they are written, and how they are asked where they lie.
//!
//! All numbers are little-endian, and bits are counted from the lowest one of a byte.
//!
//! ```text
//!     mark, version, p, n, insertions, bits of the counts                     40 bytes
//!     for every 64 buckets:   fingerprints before them                        32 bits each
//!     for every 512 buckets:  bits of counts before them                      64 bits each
//!     runs:        of each bucket a 1 for every fingerprint, and then a 0     n + 2^q bits
//!     remainders:  the low p - q bits of each fingerprint                     n (p - q) bits
//!     counts:      of each fingerprint, in Elias' gamma code
//!     checksum                                                                8 bytes
//! ```
//!
//! Fingerprints are in ascending order, and q is the largest number with 2^q ≤ n. So the same fingerprints with the same
//! counts are always the same bytes.

use crate::hashing::Checksum;
use crate::saved::LoadError;

const MARK: [u8; 8] = *b"\x89FQUOTI\n";
const VERSION: u16 = 1;

const HEAD: usize = 40;
const TAIL: usize = 8;

/// Buckets between two entries of the directory of fingerprints.
const BLOCK: u64 = 64;

/// Buckets between two entries of the directory of counts.
const COUNT_BLOCK: u64 = 512;

/// Most distinct fingerprints: the directory has their numbers in 32 bits.
pub(super) const MAX_DISTINCT: u64 = u32::MAX as u64;

/// Most bits of all counts, so that sums of places do not overflow.
const MAX_COUNT_BITS: u64 = 1 << 40;

/// Bits that one reading of eight bytes has at least.
const READABLE: u32 = 57;

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// Bits of a fingerprint (p).
    fingerprint: u32,
    /// Distinct fingerprints (n).
    distinct: u64,
    /// Sum of the counts.
    insertions: u64,
    count_bits: u64,
}

impl Head {
    /// Bits of a bucket's number (q).
    fn quotient(self) -> u32 {
        self.distinct.max(1).ilog2()
    }

    fn remainder(self) -> u32 {
        self.fingerprint - self.quotient()
    }

    fn buckets(self) -> u64 {
        1 << self.quotient()
    }

    /// Bytes of the directory of fingerprints, that of counts, the runs, the remainders, and the counts.
    fn sections(self) -> [u64; 5] {
        [
            self.buckets().div_ceil(BLOCK) * 4,
            self.buckets().div_ceil(COUNT_BLOCK) * 8,
            (self.distinct + self.buckets()).div_ceil(8),
            (self.distinct * u64::from(self.remainder())).div_ceil(8),
            self.count_bits.div_ceil(8),
        ]
    }
}

/// A quotient filter's bytes in their parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    head: Head,
    before: &'a [u8],
    counts_before: &'a [u8],
    runs: &'a [u8],
    remainders: &'a [u8],
    counts: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Whether these bytes begin as a saved quotient filter does.
    pub(super) fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK)
    }

    /// The parts of these bytes, which have the length that their head says.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let damaged = |offset, reason| LoadError::Damaged { offset, reason };
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Err(damaged(0, "it is too short for a quotient filter"));
        };
        if head[..8] != MARK {
            return Err(damaged(0, "it is no quotient filter"));
        }
        let number = |at: u64| bits(head, at * 8, READABLE) | bits(head, at * 8 + 56, 8) << 56;
        if bits(head, 64, 16) != u64::from(VERSION) {
            return Err(damaged(8, "it is a quotient filter of an unknown version"));
        }
        let head = Head {
            fingerprint: bits(head, 80, 16) as u32,
            distinct: number(16),
            insertions: number(24),
            count_bits: number(32),
        };
        if !super::FINGERPRINTS.contains(&head.fingerprint) {
            return Err(damaged(10, "fingerprints have 8 to 56 bits"));
        }
        if head.distinct > MAX_DISTINCT.min(1 << head.fingerprint) {
            return Err(damaged(16, "there cannot be so many fingerprints"));
        }
        if head.count_bits > MAX_COUNT_BITS {
            return Err(damaged(32, "there cannot be so many bits of counts"));
        }
        let mut rest = rest;
        let mut section = |bytes: u64| {
            let (part, others) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
            rest = others;
            Some(part)
        };
        let parts: Option<Vec<_>> = head.sections().into_iter().map(&mut section).collect();
        let parts = parts.filter(|_| rest.len() == TAIL);
        let Some(&[before, counts_before, runs, remainders, counts]) = parts.as_deref() else {
            return Err(damaged(0, "its length is not what its parameters say"));
        };
        Ok(Self {
            head,
            before,
            counts_before,
            runs,
            remainders,
            counts,
        })
    }

    /// The same, if the bytes are those that were written, to the last bit.
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let packed = Self::open(bytes)?;
        let damaged = |offset, reason| LoadError::Damaged { offset, reason };
        let (before, stored) = bytes.split_at(bytes.len() - TAIL);
        if checksum(before).to_le_bytes() != stored {
            return Err(damaged(before.len() as u64, "its checksum is another one"));
        }
        let (distinct, insertions) = sums(packed.entries());
        let Head { fingerprint, .. } = packed.head;
        if (distinct, insertions) != (packed.head.distinct, packed.head.insertions)
            || !packed.entries().is_sorted_by(|one, next| one.0 < next.0)
            || pack(fingerprint, distinct, packed.entries()) != bytes
        {
            return Err(damaged(HEAD as u64, "its parts contradict each other"));
        }
        Ok(packed)
    }

    pub(super) fn fingerprint_bits(&self) -> u32 {
        self.head.fingerprint
    }

    pub(super) fn distinct(&self) -> u64 {
        self.head.distinct
    }

    pub(super) fn insertions(&self) -> u64 {
        self.head.insertions
    }

    /// All fingerprints in ascending order, with their counts.
    pub(super) fn entries(&self) -> Entries<'a> {
        Entries {
            packed: *self,
            number: 0,
            bucket: 0,
            at: 0,
            count_at: 0,
        }
    }

    pub(super) fn contains(&self, fingerprint: u64) -> bool {
        self.find(fingerprint).is_some()
    }

    /// How often a fingerprint was inserted.
    pub(super) fn count(&self, fingerprint: u64) -> u64 {
        let Some(number) = self.find(fingerprint) else {
            return 0;
        };
        let block = (fingerprint >> self.head.remainder()) / COUNT_BLOCK;
        let mut at = bits(self.counts_before, block * 64, READABLE);
        let first = bits(self.before, block * (COUNT_BLOCK / BLOCK) * 32, 32);
        for _ in first..number {
            let Some((_, next)) = self.count_at(at) else {
                return 0;
            };
            at = next;
        }
        self.count_at(at).map_or(0, |(count, _)| count)
    }

    /// The number of a fingerprint in ascending order, if it is there.
    fn find(&self, fingerprint: u64) -> Option<u64> {
        if self.head.distinct == 0 {
            return None;
        }
        let remainder_bits = self.head.remainder();
        let bucket = fingerprint >> remainder_bits;
        let remainder = fingerprint & low(remainder_bits);
        let block = bucket / BLOCK;
        let before = bits(self.before, block * 32, 32);
        let first = block * BLOCK + before;
        let start = self.behind_zeros(first, bucket % BLOCK)?;
        let mut number = before + (start - first) - bucket % BLOCK;
        let mut at = start;
        while bits(self.runs, at, 1) == 1 {
            let found = bits(
                self.remainders,
                number * u64::from(remainder_bits),
                remainder_bits,
            );
            if found >= remainder {
                return (found == remainder).then_some(number);
            }
            at += 1;
            number += 1;
        }
        None
    }

    /// The place in the runs behind so many zeros from a place on; fewer than 64.
    fn behind_zeros(&self, from: u64, zeros: u64) -> Option<u64> {
        let (mut at, mut left) = (from, zeros);
        while at <= self.runs.len() as u64 * 8 {
            let zeros = !bits(self.runs, at, READABLE) & low(READABLE);
            let here = u64::from(zeros.count_ones());
            if left == 0 {
                return Some(at);
            }
            if left <= here {
                let others = (1..left).fold(zeros, |zeros, _| zeros & (zeros - 1));
                return Some(at + u64::from(others.trailing_zeros()) + 1);
            }
            left -= here;
            at += u64::from(READABLE);
        }
        None
    }

    /// The count at a place, and the place behind it.
    fn count_at(&self, at: u64) -> Option<(u64, u64)> {
        if at >= self.head.count_bits {
            return None;
        }
        let zeros = bits(self.counts, at, READABLE).trailing_zeros();
        if zeros >= READABLE {
            return None;
        }
        let behind = at + u64::from(zeros) + 1;
        let count = 1 << zeros | bits(self.counts, behind, zeros);
        Some((count, behind + u64::from(zeros)))
    }
}

/// Fingerprints with their counts.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a> {
    packed: Packed<'a>,
    number: u64,
    bucket: u64,
    /// Place in the runs.
    at: u64,
    /// Place in the counts.
    count_at: u64,
}

impl Iterator for Entries<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let head = self.packed.head;
        if self.number == head.distinct {
            return None;
        }
        loop {
            let zeros = bits(self.packed.runs, self.at, READABLE)
                .trailing_zeros()
                .min(READABLE);
            self.bucket += u64::from(zeros);
            self.at += u64::from(zeros);
            if self.bucket >= head.buckets() {
                return None;
            }
            if zeros < READABLE {
                break;
            }
        }
        self.at += 1;
        let place = self.number * u64::from(head.remainder());
        let remainder = bits(self.packed.remainders, place, head.remainder());
        let (count, behind) = self.packed.count_at(self.count_at)?;
        self.count_at = behind;
        self.number += 1;
        Some((self.bucket << head.remainder() | remainder, count))
    }
}

/// How many entries there are, and the sum of their counts.
pub(super) fn sums(entries: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    entries.fold((0, 0), |(distinct, insertions), (_, count)| {
        (distinct + 1, u64::saturating_add(insertions, count))
    })
}

/// The bytes of these fingerprints with their counts, which come in ascending order and are so many.
pub(super) fn pack(
    fingerprint: u32,
    distinct: u64,
    entries: impl Iterator<Item = (u64, u64)>,
) -> Vec<u8> {
    let mut head = Head {
        fingerprint,
        distinct,
        insertions: 0,
        count_bits: 0,
    };
    let (mut before, mut counts_before) = (Vec::new(), Vec::new());
    let (mut runs, mut remainders, mut counts) = <(Bits, Bits, Bits)>::default();
    let mut bucket = 0;
    // Ends the buckets before one, and begins those that follow.
    let mut begin = |until: u64, number: u64, runs: &mut Bits, counts: &Bits| {
        while bucket < until {
            if bucket > 0 {
                runs.push(0, 1);
            }
            if bucket % BLOCK == 0 {
                before.extend((number as u32).to_le_bytes());
            }
            if bucket % COUNT_BLOCK == 0 {
                counts_before.extend(counts.len().to_le_bytes());
            }
            bucket += 1;
        }
    };
    for ((fingerprint, count), number) in entries.zip(0..) {
        begin(
            (fingerprint >> head.remainder()) + 1,
            number,
            &mut runs,
            &counts,
        );
        runs.push(1, 1);
        remainders.push(fingerprint & low(head.remainder()), head.remainder());
        counts.push_gamma(count);
        head.insertions = head.insertions.saturating_add(count);
    }
    begin(head.buckets(), distinct, &mut runs, &counts);
    runs.push(0, 1);
    head.count_bits = counts.len();
    let mut bytes = Vec::with_capacity(HEAD + head.sections().iter().sum::<u64>() as usize + TAIL);
    bytes.extend(MARK);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((fingerprint as u16).to_le_bytes());
    bytes.extend([0; 4]);
    for number in [head.distinct, head.insertions, head.count_bits] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(before);
    bytes.extend(counts_before);
    for bits in [runs, remainders, counts] {
        bytes.extend(bits.into_bytes());
    }
    let checksum = checksum(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.update(bytes);
    checksum.value()
}

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// So many bits (57 at most) from a place on; beyond the end they are 0.
fn bits(bytes: &[u8], at: u64, number: u32) -> u64 {
    let from = usize::try_from(at / 8)
        .ok()
        .and_then(|first| bytes.get(first..));
    let from = from.unwrap_or_default();
    let chunk = from.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..from.len().min(8)].copy_from_slice(&from[..from.len().min(8)]);
        padded
    });
    u64::from_le_bytes(chunk) >> (at % 8) & low(number)
}

/// Bits, one behind the other.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Those that do not fill eight bytes yet.
    open: u64,
    len: u64,
}

impl Bits {
    fn len(&self) -> u64 {
        self.len
    }

    /// Appends the low bits of a value, 63 at most.
    fn push(&mut self, value: u64, number: u32) {
        let used = (self.len % 64) as u32;
        self.open |= value << used;
        self.len += u64::from(number);
        if used + number >= 64 {
            self.bytes.extend(self.open.to_le_bytes());
            self.open = if used == 0 { 0 } else { value >> (64 - used) };
        }
    }

    /// Appends a number in Elias' gamma code: as many zeros as it has bits behind its first, a one, and those bits.
    fn push_gamma(&mut self, number: u64) {
        let behind = number.max(1).ilog2().min(READABLE - 1);
        self.push(1 << behind, behind + 1);
        self.push(number & low(behind), behind);
    }

    fn into_bytes(mut self) -> Vec<u8> {
        let used = (self.len % 64).div_ceil(8) as usize;
        self.bytes.extend(&self.open.to_le_bytes()[..used]);
        self.bytes
    }
}
