//! The bytes of a quotient filter: writing them, and querying them in place.
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
//! Fingerprints are in ascending order, and q is the largest number with 2^q ≤ n. So the same
//! fingerprints with the same counts are always the same bytes.

use crate::hashing::Checksum;
use crate::saved::{LoadError, check_tail};
use std::convert::Infallible;

const MARK: [u8; 8] = *b"\x89FQUOTI\n";
const VERSION: u16 = 1;

const HEAD: usize = 40;
const TAIL: usize = 8;

/// Buckets between two entries of the directory of fingerprints.
const BLOCK: u64 = 64;

/// Buckets between two entries of the directory of counts.
const COUNT_BLOCK: u64 = 512;

/// Most distinct fingerprints: the directory holds their numbers in 32 bits.
pub(super) const MAX_DISTINCT: u64 = u32::MAX as u64;

/// Most bits of all counts, so that sums of places do not overflow.
const MAX_COUNT_BITS: u64 = 1 << 40;

/// Bits that eight bytes hold at least from any bit of the first byte on.
const READABLE: u32 = 57;

/// A saved filter of which a few bytes can be read.
pub trait Words {
    /// Error of a failed read.
    type Error;

    /// Returns the eight bytes from a place on as a little-endian number. Bytes beyond the end are
    /// 0.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    fn word(&self, at: u64) -> Result<u64, Self::Error>;
}

impl Words for &[u8] {
    type Error = Infallible;

    fn word(&self, at: u64) -> Result<u64, Infallible> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..));
        let from = from.unwrap_or_default();
        let word = from.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut padded = [0; 8];
            padded[..from.len()].copy_from_slice(from);
            padded
        });
        Ok(u64::from_le_bytes(word))
    }
}

/// The head of a saved filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bits of a fingerprint (p).
    pub(super) fingerprint: u32,
    /// Distinct fingerprints (n).
    pub(super) distinct: u64,
    /// Sum of the counts.
    pub(super) insertions: u64,
    count_bits: u64,
}

impl Head {
    /// Returns the bits of a bucket's number (q).
    fn quotient(self) -> u32 {
        self.distinct.max(1).ilog2()
    }

    fn remainder(self) -> u32 {
        self.fingerprint - self.quotient()
    }

    fn buckets(self) -> u64 {
        1 << self.quotient()
    }

    /// Returns the bytes of the directory of fingerprints, that of counts, the runs, the
    /// remainders, and the counts.
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

/// Where the parts of a filter are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) head: Head,
    before: Part,
    counts_before: Part,
    runs: Part,
    remainders: Part,
    counts: Part,
}

/// Part of the bytes.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    bytes: u64,
}

impl Part {
    /// Returns `number` bits (57 at most) from a place on; bits beyond the end are 0.
    fn bits<W: Words>(self, of: &W, at: u64, number: u32) -> Result<u64, W::Error> {
        let first = at / 8;
        if first >= self.bytes {
            return Ok(0);
        }
        let word = of.word(self.start + first)?;
        let there = self.bytes - first;
        let word = if there < 8 { word & low(there as u32 * 8) } else { word };
        Ok(word >> (at % 8) & low(number))
    }
}

impl Layout {
    /// Reads the layout of a filter of `length` bytes.
    pub(super) fn read<W: Words>(of: &W, length: u64) -> Result<Result<Self, LoadError>, W::Error> {
        let damaged = |offset, reason| Ok(Err(LoadError::Damaged { offset, reason }));
        if length < (HEAD + TAIL) as u64 {
            return damaged(0, "it is too short for a quotient filter");
        }
        if of.word(0)?.to_le_bytes() != MARK {
            return damaged(0, "it is no quotient filter");
        }
        let parameters = of.word(8)?;
        if parameters & low(16) != u64::from(VERSION) {
            return damaged(8, "it is a quotient filter of an unknown version");
        }
        let head = Head {
            fingerprint: (parameters >> 16 & low(16)) as u32,
            distinct: of.word(16)?,
            insertions: of.word(24)?,
            count_bits: of.word(32)?,
        };
        if !super::FINGERPRINTS.contains(&head.fingerprint.into()) {
            return damaged(10, "fingerprints have 8 to 56 bits");
        }
        if head.distinct > MAX_DISTINCT.min(1 << head.fingerprint) {
            return damaged(16, "there cannot be so many fingerprints");
        }
        if head.count_bits > MAX_COUNT_BITS {
            return damaged(32, "there cannot be so many bits of counts");
        }
        let mut start = HEAD as u64;
        let parts = head.sections().map(|bytes| {
            let part = Part { start, bytes };
            start += bytes;
            part
        });
        if length != start + TAIL as u64 {
            return damaged(0, "its length is not what its parameters say");
        }
        let [before, counts_before, runs, remainders, counts] = parts;
        Ok(Ok(Self { head, before, counts_before, runs, remainders, counts }))
    }

    /// Returns the number of a fingerprint in ascending order, or `None` if it is not stored.
    pub(super) fn find<W: Words>(&self, of: &W, fingerprint: u64) -> Result<Option<u64>, W::Error> {
        let remainder_bits = self.head.remainder();
        let bucket = fingerprint >> remainder_bits;
        let remainder = fingerprint & low(remainder_bits);
        let block = bucket / BLOCK;
        let before = self.before.bits(of, block * 32, 32)?;
        let first = block * BLOCK + before;
        let Some(start) = self.behind_zeros(of, first, bucket % BLOCK)? else { return Ok(None) };
        let mut number = before + (start - first) - bucket % BLOCK;
        let mut at = start;
        while number < self.head.distinct && self.runs.bits(of, at, 1)? == 1 {
            let place = number * u64::from(remainder_bits);
            let found = self.remainders.bits(of, place, remainder_bits)?;
            if found >= remainder {
                return Ok((found == remainder).then_some(number));
            }
            at += 1;
            number += 1;
        }
        Ok(None)
    }

    /// Returns the place in the runs after `zeros` zeros (fewer than 64) from a place on, or `None`
    /// if there are fewer.
    fn behind_zeros<W: Words>(
        &self,
        of: &W,
        from: u64,
        zeros: u64,
    ) -> Result<Option<u64>, W::Error> {
        let (mut at, mut left) = (from, zeros);
        while at <= self.runs.bytes * 8 {
            let zeros = !self.runs.bits(of, at, READABLE)? & low(READABLE);
            let here = u64::from(zeros.count_ones());
            if left == 0 {
                return Ok(Some(at));
            }
            if left <= here {
                let others = (1..left).fold(zeros, |zeros, _| zeros & (zeros - 1));
                return Ok(Some(at + u64::from(others.trailing_zeros()) + 1));
            }
            left -= here;
            at += u64::from(READABLE);
        }
        Ok(None)
    }
}

/// A quotient filter's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    layout: Layout,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Opens the filter in these bytes, without comparing them with their checksum.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let layout = whole(Layout::read(&bytes, bytes.len() as u64));
        layout.map(|layout| Self { layout, bytes })
    }

    /// Opens the filter and checks that the bytes are those that were written, to the last bit.
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let packed = Self::open(bytes)?;
        check_tail(bytes)?;
        let (mut distinct, mut insertions) = (0, 0_u64);
        for (_, count) in packed.entries() {
            (distinct, insertions) = (distinct + 1, insertions.saturating_add(count));
        }
        let head = packed.head();
        if (distinct, insertions) != (head.distinct, head.insertions)
            || !packed.entries().is_sorted_by(|one, next| one.0 < next.0)
            || pack(head.fingerprint, distinct, packed.entries()) != bytes
        {
            let reason = "its parts contradict each other";
            return Err(LoadError::Damaged { offset: HEAD as u64, reason });
        }
        Ok(packed)
    }

    pub(super) fn head(&self) -> Head {
        self.layout.head
    }

    /// Iterates over all fingerprints in ascending order, with their counts.
    pub(super) fn entries(&self) -> Entries<'a> {
        Entries { packed: *self, number: 0, bucket: 0, at: 0, count_at: 0 }
    }

    fn bits(&self, part: Part, at: u64, number: u32) -> u64 {
        whole(part.bits(&self.bytes, at, number))
    }

    pub(super) fn find(&self, fingerprint: u64) -> Option<u64> {
        whole(self.layout.find(&self.bytes, fingerprint))
    }

    /// Returns how often a fingerprint was inserted.
    pub(super) fn count(&self, fingerprint: u64) -> u64 {
        let Some(number) = self.find(fingerprint) else { return 0 };
        let Layout { before, counts_before, .. } = self.layout;
        let block = (fingerprint >> self.head().remainder()) / COUNT_BLOCK;
        let mut at = self.bits(counts_before, block * 64, READABLE);
        let first = self.bits(before, block * (COUNT_BLOCK / BLOCK) * 32, 32);
        for _ in first..number {
            let Some((_, next)) = self.count_at(at) else { return 0 };
            at = next;
        }
        self.count_at(at).map_or(0, |(count, _)| count)
    }

    /// Returns the count at a place, and the place after it; `None` if there is no count.
    fn count_at(&self, at: u64) -> Option<(u64, u64)> {
        let counts = self.layout.counts;
        if at >= self.head().count_bits {
            return None;
        }
        let zeros = self.bits(counts, at, READABLE).trailing_zeros();
        if zeros >= READABLE {
            return None;
        }
        let behind = at + u64::from(zeros) + 1;
        let count = 1 << zeros | self.bits(counts, behind, zeros);
        Some((count, behind + u64::from(zeros)))
    }
}

/// Unwraps a result that cannot be an error, since all bytes are in memory.
fn whole<T>(of: Result<T, Infallible>) -> T {
    let Ok(of) = of;
    of
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
        let packed = self.packed;
        let (head, layout) = (packed.head(), packed.layout);
        if self.number == head.distinct {
            return None;
        }
        loop {
            let zeros = packed.bits(layout.runs, self.at, READABLE);
            let zeros = zeros.trailing_zeros().min(READABLE);
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
        let remainder = packed.bits(layout.remainders, place, head.remainder());
        let (count, behind) = packed.count_at(self.count_at)?;
        self.count_at = behind;
        self.number += 1;
        Some((self.bucket << head.remainder() | remainder, count))
    }
}

/// Returns the bytes of `distinct` fingerprints with their counts, which come in ascending order.
pub(super) fn pack(
    fingerprint: u32,
    distinct: u64,
    entries: impl Iterator<Item = (u64, u64)>,
) -> Vec<u8> {
    let mut head = Head { fingerprint, distinct, insertions: 0, count_bits: 0 };
    let (mut before, mut counts_before) = (Vec::new(), Vec::new());
    let (mut runs, mut remainders, mut counts) = <(Bits, Bits, Bits)>::default();
    let mut bucket = 0;
    // Ends and begins buckets up to `until`, before fingerprint `number`.
    let mut begin = |until: u64, number: u64, runs: &mut Bits, counts: &Bits| {
        while bucket < until {
            if bucket > 0 {
                runs.push(0, 1);
            }
            if bucket % BLOCK == 0 {
                before.extend((number as u32).to_le_bytes());
            }
            if bucket % COUNT_BLOCK == 0 {
                counts_before.extend(counts.len.to_le_bytes());
            }
            bucket += 1;
        }
    };
    for ((fingerprint, count), number) in entries.zip(0..) {
        begin((fingerprint >> head.remainder()) + 1, number, &mut runs, &counts);
        runs.push(1, 1);
        remainders.push(fingerprint & low(head.remainder()), head.remainder());
        counts.push_gamma(count);
        head.insertions = head.insertions.saturating_add(count);
    }
    begin(head.buckets(), distinct, &mut runs, &counts);
    runs.push(0, 1);
    head.count_bits = counts.len;
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
    let checksum = Checksum::of(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Returns the mask of the lowest bits, 63 at most.
const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// A growing sequence of bits.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    /// The last bits, which do not fill eight bytes yet.
    open: u64,
    len: u64,
}

impl Bits {
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

    /// Appends a number in Elias' gamma code: as many zeros as it has bits after its first one, a
    /// one, and those bits.
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
