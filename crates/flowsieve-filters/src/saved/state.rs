//! Writing and reading the saved form of a filter: little-endian numbers, one after the other.

use super::{LoadError, UnionError};
use crate::bits::{BitArray, CounterArray, Lines};
use crate::hashing::Checksum;
use crate::{Basis, DistinctCounter, Estimate};
use std::any::Any;
use std::fmt;
use std::io::{self, Read, Write};

/// A filter whose contents can be written, read back and united.
///
/// The parameters are not part of it: a state is read into an empty filter of the same parameters.
pub trait FilterState: Any {
    /// Writes all contents: arrays, estimates, and the counts that cannot be derived from them.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()>;

    /// Reads contents into this empty filter of the same parameters.
    ///
    /// # Errors
    ///
    /// The state ends early, or has a value that no filter writes. This filter must not be used
    /// then.
    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError>;

    /// Checks that there is room for the elements of both; most structures need none.
    ///
    /// # Errors
    ///
    /// Those of [`FilterState::unite`].
    fn check_union(&self, other: &dyn FilterState) -> Result<(), UnionError> {
        let _ = other;
        Ok(())
    }

    /// Makes this the filter into which the elements of the other have been inserted as well.
    ///
    /// The estimate of a union rests on its fill, which is less exact than the count of one stream
    /// of insertions. If the fill does not give the number of elements, only bounds are known.
    ///
    /// # Errors
    ///
    /// The other filter has another structure, or there is no room for both. This filter is then
    /// unchanged. The caller has to check that the parameters are the same, as
    /// [`SavedFilter`](super::SavedFilter) does.
    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError>;
}

/// Returns the other filter if it has the structure `F`.
pub(crate) fn same<F: FilterState>(other: &dyn FilterState) -> Result<&F, UnionError> {
    let other: &dyn Any = other;
    other.downcast_ref().ok_or(UnionError::Parameters)
}

/// Sets the bits that are set in other lines of the same number.
pub(crate) fn unite_lines(lines: &mut Lines, others: &Lines) {
    for (line, other) in lines.as_mut_slice().iter_mut().zip(others.as_slice()) {
        for (word, more) in line.iter_mut().zip(other) {
            *word |= more;
        }
    }
}

/// A parameter, or all parameters of a structure, in a saved filter.
pub(crate) trait Saved: Sized {
    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()>;

    fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError>;
}

/// Implements [`Saved`] for a type by two functions.
macro_rules! saved_by {
    ($type:ty, $save:expr, $load:expr) => {
        impl Saved for $type {
            fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
                $save(out, *self)
            }

            fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
                $load(input)
            }
        }
    };
}

saved_by!(u32, StateWriter::u32, StateReader::u32);
saved_by!(u64, StateWriter::u64, StateReader::u64);
saved_by!(bool, StateWriter::flag, StateReader::flag);

/// In 32 bits.
impl Saved for usize {
    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        out.u32(*self as u32)
    }

    fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        Ok(input.u32()? as Self)
    }
}

/// The number of entries in 32 bits, and the entries. Reading allocates only as entries arrive.
impl<T: Saved> Saved for Vec<T> {
    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        self.len().save(out)?;
        self.iter().try_for_each(|entry| entry.save(out))
    }

    fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        let count = usize::load(input)?;
        if count > MAX_LIST {
            return Err(input.damaged("a list of parameters is longer than any can be"));
        }
        (0..count).map(|_| T::load(input)).collect()
    }
}

/// Implements [`Saved`] for a struct, field after field, or for an enum, as a byte.
macro_rules! saved {
    ($type:ty { $($field:ident),+ }) => {
        impl $crate::saved::Saved for $type {
            fn save(&self, out: &mut $crate::saved::StateWriter<'_>) -> std::io::Result<()> {
                $($crate::saved::Saved::save(&self.$field, out)?;)+
                Ok(())
            }

            fn load(
                input: &mut $crate::saved::StateReader<'_>,
            ) -> Result<Self, $crate::saved::LoadError> {
                Ok(Self { $($field: $crate::saved::Saved::load(input)?),+ })
            }
        }
    };
    ($type:ty { $($variant:ident = $number:literal),+; else $unknown:literal }) => {
        impl $crate::saved::Saved for $type {
            fn save(&self, out: &mut $crate::saved::StateWriter<'_>) -> std::io::Result<()> {
                out.u8(match self { $(Self::$variant => $number),+ })
            }

            fn load(
                input: &mut $crate::saved::StateReader<'_>,
            ) -> Result<Self, $crate::saved::LoadError> {
                match input.u8()? {
                    $($number => Ok(Self::$variant),)+
                    _ => Err(input.damaged($unknown)),
                }
            }
        }
    };
}

pub(crate) use saved;

/// Most entries of a list of parameters.
pub(crate) const MAX_LIST: usize = 1 << 16;

/// Bytes converted at a time.
const PIECE: usize = 4096;

/// Writes numbers and updates a checksum, or only counts the bytes that they would take.
pub struct StateWriter<'a> {
    out: Option<&'a mut dyn Write>,
    written: u64,
    checksum: Checksum,
}

impl<'a> StateWriter<'a> {
    /// Creates a writer to `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out: Some(out), written: 0, checksum: Checksum::new() }
    }

    /// Creates a writer that only counts bytes.
    pub(crate) fn counting() -> StateWriter<'static> {
        StateWriter { out: None, written: 0, checksum: Checksum::new() }
    }

    /// Returns the number of bytes written so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Returns the checksum of the bytes written so far.
    pub fn checksum(&self) -> u64 {
        self.checksum.value()
    }

    /// Writes these bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        let Some(out) = &mut self.out else { return Ok(()) };
        self.checksum.update(bytes);
        out.write_all(bytes)
    }

    /// Writes one byte.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn u8(&mut self, value: u8) -> io::Result<()> {
        self.bytes(&[value])
    }

    /// Writes 4 bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn u32(&mut self, value: u32) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes 8 bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn u64(&mut self, value: u64) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes words of 8 bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn words(&mut self, words: &[u64]) -> io::Result<()> {
        if self.out.is_none() {
            self.written += size_of_val(words) as u64;
            return Ok(());
        }
        let mut bytes = [0; PIECE];
        for piece in words.chunks(PIECE / 8) {
            for (to, word) in bytes.chunks_exact_mut(8).zip(piece) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            self.bytes(&bytes[..piece.len() * 8])?;
        }
        Ok(())
    }

    /// Writes the first `bytes` bytes of these words, all but the last of which are whole.
    fn packed(&mut self, words: &[u64], bytes: u64) -> io::Result<()> {
        let (whole, rest) = words.split_at((bytes / 8) as usize);
        self.words(whole)?;
        let last = rest.first().copied().unwrap_or(0);
        self.bytes(&last.to_le_bytes()[..(bytes % 8) as usize])
    }

    pub(crate) fn bits(&mut self, bits: &BitArray) -> io::Result<()> {
        self.packed(bits.words(), bits.memory_bytes())
    }

    /// Writes the first `bytes` bytes of these lines.
    pub(crate) fn lines(&mut self, lines: &Lines, bytes: u64) -> io::Result<()> {
        self.packed(lines.as_slice().as_flattened(), bytes)
    }

    /// Writes a count of events, at most [`MAX_COUNT`].
    pub(crate) fn count(&mut self, count: u64) -> io::Result<()> {
        self.u64(count.min(MAX_COUNT))
    }

    /// Writes a byte that is 0 or 1.
    pub(crate) fn flag(&mut self, flag: bool) -> io::Result<()> {
        self.u8(flag.into())
    }

    pub(crate) fn counters(&mut self, counters: &CounterArray) -> io::Result<()> {
        self.count(counters.overflows())?;
        self.packed(counters.words(), counters.memory_bytes())
    }

    /// Writes a count of distinct elements: one byte (0: no count; 1: a stream; 2: a stream after
    /// an estimate; 3: a stream after bounds), two numbers of 8 bytes with 2 and 3, the elements
    /// seen, and mean and variance of those that were missed.
    pub(crate) fn distinct(&mut self, counter: Option<&DistinctCounter>) -> io::Result<()> {
        let Some((base, seen, missed, variance)) = counter.map(DistinctCounter::parts) else {
            return self.u8(0);
        };
        match base.basis {
            Basis::Stream(_) => self.u8(1)?,
            Basis::Scatter => {
                self.u8(2)?;
                self.u64(base.distinct.to_bits())?;
                self.u64(base.variance.to_bits())?;
            }
            Basis::Bounds { lower, upper } => {
                self.u8(3)?;
                self.u64(lower)?;
                self.u64(upper.unwrap_or(u64::MAX))?;
            }
        }
        self.count(seen)?;
        self.u64(missed.to_bits())?;
        self.u64(variance.to_bits())
    }
}

impl fmt::Debug for StateWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateWriter").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Reads numbers from a source of known length and updates a checksum.
pub struct StateReader<'a> {
    input: &'a mut dyn Read,
    offset: u64,
    /// Offset of the value that was read last.
    began: u64,
    length: u64,
    checksum: Checksum,
    part: &'static str,
}

impl<'a> StateReader<'a> {
    /// Creates a reader of the `length` bytes of `input`.
    pub fn new(input: &'a mut dyn Read, length: u64) -> Self {
        Self { input, offset: 0, began: 0, length, checksum: Checksum::new(), part: "its head" }
    }

    /// Names the part that is read next, for errors.
    pub(super) const fn enter(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Returns the number of bytes read so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes that are left.
    pub const fn left(&self) -> u64 {
        self.length - self.offset
    }

    /// Returns the checksum of the bytes read so far.
    pub fn checksum(&self) -> u64 {
        self.checksum.value()
    }

    /// Creates an error about the value that was read last.
    pub const fn damaged(&self, reason: &'static str) -> LoadError {
        LoadError::Damaged { offset: self.began, reason }
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    ///
    /// There are not this many, or they cannot be read.
    pub fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), LoadError> {
        let (length, part) = (self.length, self.part);
        if bytes.len() as u64 > self.left() {
            return Err(LoadError::CutShort { length, part });
        }
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            // The file has become shorter since its length was read.
            io::ErrorKind::UnexpectedEof => LoadError::CutShort { length, part },
            _ => LoadError::Unreadable(error),
        })?;
        self.checksum.update(bytes);
        if !bytes.is_empty() {
            self.began = self.offset;
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.bytes(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one byte.
    ///
    /// # Errors
    ///
    /// See [`StateReader::bytes`].
    pub fn u8(&mut self) -> Result<u8, LoadError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads 2 bytes.
    ///
    /// # Errors
    ///
    /// See [`StateReader::bytes`].
    pub fn u16(&mut self) -> Result<u16, LoadError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads 4 bytes.
    ///
    /// # Errors
    ///
    /// See [`StateReader::bytes`].
    pub fn u32(&mut self) -> Result<u32, LoadError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads 8 bytes.
    ///
    /// # Errors
    ///
    /// See [`StateReader::bytes`].
    pub fn u64(&mut self) -> Result<u64, LoadError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads words of 8 bytes.
    ///
    /// # Errors
    ///
    /// See [`StateReader::bytes`].
    pub fn words(&mut self, words: &mut [u64]) -> Result<(), LoadError> {
        let mut bytes = [0; PIECE];
        for piece in words.chunks_mut(PIECE / 8) {
            let bytes = &mut bytes[..piece.len() * 8];
            self.bytes(bytes)?;
            for (word, from) in piece.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*from);
            }
        }
        Ok(())
    }

    /// Reads a count of events, at most [`MAX_COUNT`], which leaves room for more.
    pub(crate) fn count(&mut self) -> Result<u64, LoadError> {
        match self.u64()? {
            count if count <= MAX_COUNT => Ok(count),
            _ => Err(self.damaged("a count is larger than any can be")),
        }
    }

    /// Reads the first `bytes` bytes of these words, all but the last of which are whole.
    fn packed(&mut self, words: &mut [u64], bytes: u64) -> Result<(), LoadError> {
        let (whole, rest) = words.split_at_mut((bytes / 8) as usize);
        self.words(whole)?;
        let mut last = [0; 8];
        self.bytes(&mut last[..(bytes % 8) as usize])?;
        if let Some(word) = rest.first_mut() {
            *word = u64::from_le_bytes(last);
        }
        Ok(())
    }

    pub(crate) fn bits(&mut self, bits: &mut BitArray) -> Result<(), LoadError> {
        let bytes = bits.memory_bytes();
        if bits.rewrite(|words| self.packed(words, bytes))? {
            Ok(())
        } else {
            Err(self.damaged("bits are set beyond the end of an array"))
        }
    }

    /// Reads the first `bytes` bytes of these lines.
    pub(crate) fn lines(&mut self, lines: &mut Lines, bytes: u64) -> Result<(), LoadError> {
        self.packed(lines.as_mut_slice().as_flattened_mut(), bytes)
    }

    pub(crate) fn counters(&mut self, counters: &mut CounterArray) -> Result<(), LoadError> {
        let (overflows, bytes) = (self.count()?, counters.memory_bytes());
        if counters.rewrite(overflows, |words| self.packed(words, bytes))? {
            Ok(())
        } else {
            Err(self.damaged("bits are set beside the counters"))
        }
    }

    /// Reads a byte that is 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, LoadError> {
        match self.u8()? {
            flag @ (0 | 1) => Ok(flag == 1),
            _ => Err(self.damaged("a mark is neither 0 nor 1")),
        }
    }

    fn f64(&mut self) -> Result<f64, LoadError> {
        self.u64().map(f64::from_bits)
    }

    /// Reads a count of distinct elements; `None` if it had ended.
    pub(crate) fn distinct(&mut self) -> Result<Option<DistinctCounter>, LoadError> {
        let base = match self.u8()? {
            0 => return Ok(None),
            1 => Estimate::default(),
            2 => Estimate::scattered(self.f64()?, self.f64()?),
            3 => {
                let (lower, upper) = (self.u64()?, self.u64()?);
                Estimate::bounded(lower, (upper != u64::MAX).then_some(upper))
            }
            _ => return Err(self.damaged("the mark of an estimate is none of 0 to 3")),
        };
        let (seen, missed, variance) = (self.count()?, self.f64()?, self.f64()?);
        DistinctCounter::of_parts(base, seen, missed, variance)
            .ok_or_else(|| self.damaged("an estimate is no number from 0 on"))
            .map(Some)
    }

    /// Reads the count of a structure whose count never ends.
    pub(crate) fn lasting_distinct(&mut self) -> Result<DistinctCounter, LoadError> {
        self.distinct()?
            .ok_or_else(|| self.damaged("the estimate that this structure always has is missing"))
    }
}

/// Largest count that is read.
const MAX_COUNT: u64 = 1 << 62;

impl fmt::Debug for StateReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateReader")
            .field("offset", &self.offset)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
