//! The values of a column, page by page.
//!
//! A page is read when the one before it is used up. Before it is read its head is checked: it lies
//! inside its column, has no more values than rows are left, and what it says of its size fits its
//! compression and the memory that all columns share.

use std::io::{self, Read, Write as _};
use std::ops::Range;

use super::Place;
use super::differences::Differences;
use super::footer::{Chunk, ColumnInfo, Physical};
use super::thrift::Thrift;

/// Most bytes of a page, unpacked.
const MOST_PAGE_BYTES: usize = 16 << 20;

/// Most bytes of the pages that are at hand, of all columns together.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// The head of a page is looked for in this many bytes, then in more. It may have values in it.
const HEAD_BYTES: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Longest text that is kept of a value: no name or address is longer.
const MOST_TEXT: usize = 4096;

/// Why there are no more values.
#[derive(Debug)]
pub(super) enum Trouble {
    Damage(String),
    Io(io::Error),
}

impl From<&str> for Trouble {
    fn from(reason: &str) -> Self {
        Self::Damage(reason.to_owned())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The texts of the next values of a column. A value that is missing has none.
#[derive(Debug, Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    pub(super) fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Appends the text of a value, without its end.
    fn push(&mut self, physical: Physical, unit_ns: Option<i64>, value: &[u8]) {
        let text = &mut self.text;
        let whole = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => bytes.first_chunk().map_or(0, |&bytes| i64::from_le_bytes(bytes)),
        };
        let written = match physical {
            Physical::Int32 | Physical::Int64 => {
                let number = whole(value).saturating_mul(unit_ns.unwrap_or(1));
                write!(text, "{number}")
            }
            Physical::Float | Physical::Double => {
                let number = match physical {
                    Physical::Float => f32::from_bits(whole(value) as u32).into(),
                    _ => f64::from_bits(whole(value).cast_unsigned()),
                };
                // What has missing numbers beside whole ones is written as fractions by some
                // programs.
                if number.is_nan() { Ok(()) } else { write!(text, "{number}") }
            }
            Physical::Bytes | Physical::Other => {
                text.write_all(&value[..value.len().min(MOST_TEXT)])
            }
        };
        written.expect("memory takes all that is written");
    }
}

/// Reads a column of a row group.
#[derive(Debug)]
pub(super) struct ColumnReader {
    physical: Physical,
    is_optional: bool,
    unit_ns: Option<i64>,
    chunk: Chunk,
    /// Where the next page begins.
    next: u64,
    /// Values that are in the next pages.
    rows_left: u64,
    dictionary: Dictionary,
    page: Page,
    pub(super) cells: Cells,
}

#[derive(Debug, Default)]
struct Dictionary {
    bytes: Vec<u8>,
    /// Where values of no fixed length begin.
    starts: Vec<u32>,
    values: usize,
}

#[derive(Debug, Default)]
struct Page {
    offset: u64,
    bytes: Vec<u8>,
    /// Values that were not read.
    left: u64,
    levels: Option<Hybrid>,
    values: Values,
}

/// Where the next value stands.
#[derive(Debug)]
enum Values {
    Plain {
        at: usize,
    },
    Indexed(Hybrid),
    Differences(Differences),
    /// Texts one behind the other, from here on.
    Lengths {
        lengths: Differences,
        at: usize,
    },
}

impl Default for Values {
    fn default() -> Self {
        Self::Plain { at: 0 }
    }
}

/// What the head of a page says.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
    levels_encoding: i64,
    /// Of the second version: bytes of levels before the values, which are not compressed.
    levels: [i64; 2],
    is_packed: bool,
    /// The structure that belongs to the kind is there.
    is_whole: bool,
}

/// Kinds of pages; 0 is the first version of a page of data.
const INDEX: i64 = 1;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;

const PLAIN: i64 = 0;
const INDEXED: [i64; 2] = [2, 8];
const HYBRID: i64 = 3;
const DIFFERENCES: i64 = 5;
const LENGTHS: i64 = 6;

impl Head {
    /// Reads a head; with it, how many bytes it has.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut thrift = Thrift::new(bytes);
        let mut head = Self { is_packed: true, levels_encoding: HYBRID, ..Self::default() };
        let mut found = 0;
        thrift.structure(|thrift, field, _| {
            match field {
                1 => head.kind = thrift.number()?,
                2 => head.unpacked = thrift.number()?,
                3 => head.packed = thrift.number()?,
                5 | 7 | 8 => {
                    found = field;
                    thrift.structure(|thrift, part, kind| {
                        match (field, part) {
                            (_, 1) => head.values = thrift.number()?,
                            (5 | 7, 2) | (8, 4) => head.encoding = thrift.number()?,
                            (5, 3) => head.levels_encoding = thrift.number()?,
                            (8, 5) => head.levels[0] = thrift.number()?,
                            (8, 6) => head.levels[1] = thrift.number()?,
                            (8, 7) => head.is_packed = kind.truth()?,
                            _ => return Some(false),
                        }
                        Some(true)
                    })?;
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        let wanted = [5, 6, 7, 8].get(usize::try_from(head.kind).ok()?)?;
        head.is_whole = found == *wanted;
        Some((head, bytes.len() - thrift.left()))
    }
}

impl ColumnReader {
    pub(super) fn new(info: &ColumnInfo, chunk: Chunk, rows: u64) -> Self {
        Self {
            physical: info.physical,
            is_optional: info.is_optional,
            unit_ns: info.unit_ns,
            chunk,
            next: chunk.start,
            rows_left: rows,
            dictionary: Dictionary::default(),
            page: Page::default(),
            cells: Cells::default(),
        }
    }

    /// Bytes that are at hand.
    pub(super) fn bytes(&self) -> usize {
        let starts = size_of::<u32>() * self.dictionary.starts.capacity();
        self.dictionary.bytes.capacity() + starts + self.page.bytes.capacity()
    }

    /// Reads the next values into its cells, this many; its pages may have `room` bytes.
    ///
    /// # Errors
    /// The page at an offset is damaged or cannot be read. The values before it are in the cells.
    pub(super) fn read(
        &mut self,
        rows: usize,
        place: &mut Place,
        room: usize,
    ) -> Result<(), (u64, Trouble)> {
        self.cells.clear();
        for _ in 0..rows {
            while self.page.left == 0 {
                let offset = self.next;
                self.turn(place, room).map_err(|trouble| (offset, trouble))?;
            }
            self.page.left -= 1;
            if self.value().is_none() {
                let reason = "a page has fewer values than it claims";
                return Err((self.page.offset, reason.into()));
            }
            self.cells.ends.push(self.cells.text.len());
        }
        Ok(())
    }

    /// Adds the next value to the text.
    fn value(&mut self) -> Option<()> {
        let Page { bytes, levels, values, .. } = &mut self.page;
        if let Some(levels) = levels
            && levels.next(bytes)? == 0
        {
            return Some(());
        }
        let value = match values {
            Values::Plain { at } => {
                let value = plain(self.physical, bytes, *at)?;
                *at = value.end;
                &bytes[value]
            }
            Values::Indexed(indexes) => {
                let index = indexes.next(bytes)? as usize;
                self.dictionary.get(self.physical, index)?
            }
            Values::Differences(numbers) => {
                let number = numbers.next(bytes)?;
                let number = match self.physical {
                    // These are sums of 32 bits, too.
                    Physical::Int32 => i64::from(number as i32),
                    _ => number,
                };
                self.cells.push(self.physical, self.unit_ns, &number.to_le_bytes());
                return Some(());
            }
            Values::Lengths { lengths, at } => {
                let length = usize::try_from(lengths.next(bytes)?).ok()?;
                let value = bytes.get(*at..)?.get(..length)?;
                *at += length;
                value
            }
        };
        self.cells.push(self.physical, self.unit_ns, value);
        Some(())
    }

    /// Goes to the next page.
    fn turn(&mut self, place: &mut Place, room: usize) -> Result<(), Trouble> {
        let offset = self.next;
        let (head, head_bytes) = self.head(place)?;
        let start = offset + head_bytes as u64;
        let size = |size: i64| usize::try_from(size).ok().filter(|&size| size <= MOST_PAGE_BYTES);
        let (Some(packed), Some(unpacked)) = (size(head.packed), size(head.unpacked)) else {
            return Err("a page claims more bytes than a page may have".into());
        };
        if packed as u64 > self.chunk.end - start {
            return Err("a page claims more bytes than its column has".into());
        }
        self.next = start + packed as u64;
        if head.kind == INDEX {
            return Ok(());
        }
        // The page before is used up; a dictionary stays.
        self.page = Page::default();
        if self.bytes() + packed + unpacked > room {
            return Err("its pages need too much memory".into());
        }
        let values = u64::try_from(head.values).map_err(|_| "a page has fewer than no values")?;
        let is_indexed = INDEXED.contains(&head.encoding);
        let is_read = match head.encoding {
            PLAIN => true,
            DIFFERENCES => matches!(self.physical, Physical::Int32 | Physical::Int64),
            LENGTHS => self.physical == Physical::Bytes,
            _ => is_indexed,
        };
        if !is_read || (head.kind == DICTIONARY && head.encoding >= DIFFERENCES && !is_indexed) {
            let reason = format!("a page has encoding {}, which is not read", head.encoding);
            return Err(Trouble::Damage(reason));
        }
        let raw = place.read(start, packed)?;
        if head.kind == DICTIONARY {
            let bytes = unpack(self.chunk.codec, &raw, unpacked, Vec::new())?;
            self.dictionary = Dictionary::new(self.physical, bytes, values)
                .ok_or("a dictionary has fewer values than it claims")?;
            return Ok(());
        }
        if values > self.rows_left {
            return Err("its pages claim more values than it has rows".into());
        }
        let (bytes, levels, at) = self.levels(&head, raw, unpacked)?;
        let values_at = if is_indexed {
            let end = bytes.len();
            // Where all values are missing there are no indexes.
            let width = bytes.get(at).copied().unwrap_or(0);
            if width > 32 {
                return Err("the indexes of a page are too wide".into());
            }
            Values::Indexed(Hybrid::new((at + 1).min(end)..end, width.into()))
        } else if head.encoding == PLAIN || at == bytes.len() {
            // Where all values are missing there may be nothing.
            Values::Plain { at }
        } else {
            const WRONG: &str = "the numbers of a page are damaged";
            let numbers = Differences::new(&bytes, at, values).ok_or(WRONG)?;
            if head.encoding == LENGTHS {
                let at = numbers.end(&bytes).ok_or(WRONG)?;
                Values::Lengths { lengths: numbers, at }
            } else {
                Values::Differences(numbers)
            }
        };
        self.rows_left -= values;
        self.page = Page {
            offset,
            bytes,
            left: values,
            levels: levels.filter(|_| self.is_optional),
            values: values_at,
        };
        Ok(())
    }

    /// The head of the next page, and how long it is.
    fn head(&self, place: &mut Place) -> Result<(Head, usize), Trouble> {
        let left = self.chunk.end - self.next;
        if left == 0 {
            return Err("a column has fewer values than its row group has rows".into());
        }
        for most in HEAD_BYTES {
            let bytes = place.read(self.next, left.min(most) as usize)?;
            match Head::read(&bytes) {
                Some(found) if found.0.is_whole => return Ok(found),
                None if left > most => {}
                _ => break,
            }
        }
        Err("the head of a page cannot be read".into())
    }

    /// The bytes of a page of data; which of its values are there; and where values begin.
    fn levels(
        &self,
        head: &Head,
        raw: Vec<u8>,
        unpacked: usize,
    ) -> Result<(Vec<u8>, Option<Hybrid>, usize), Trouble> {
        const WRONG: &str = "a page claims levels that are not in it";
        if head.kind == DATA_2 {
            let levels = usize::try_from(head.levels[0]).map_err(|_| WRONG)?;
            if levels > raw.len().min(unpacked) || head.levels[1] != 0 {
                return Err(WRONG.into());
            }
            let bytes = if head.is_packed {
                let (first, packed) = raw.split_at(levels);
                unpack(self.chunk.codec, packed, unpacked - levels, first.to_vec())?
            } else {
                raw
            };
            return Ok((bytes, Some(Hybrid::new(0..levels, 1)), levels));
        }
        let bytes = unpack(self.chunk.codec, &raw, unpacked, Vec::new())?;
        if !self.is_optional {
            return Ok((bytes, None, 0));
        }
        if head.levels_encoding != HYBRID {
            let reason =
                format!("levels have encoding {}, which is not read", head.levels_encoding);
            return Err(Trouble::Damage(reason));
        }
        let length = bytes.first_chunk().map(|&length| u32::from_le_bytes(length));
        let end = length.and_then(|length| usize::try_from(length).ok()?.checked_add(4));
        let end = end.filter(|&end| end <= bytes.len()).ok_or(WRONG)?;
        Ok((bytes, Some(Hybrid::new(4..end, 1)), end))
    }
}

/// Where the value that begins here stands, without its length.
fn plain(physical: Physical, bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = bytes.get(at..)?;
    let (start, length) = match physical {
        Physical::Int32 | Physical::Float => (0, 4),
        Physical::Int64 | Physical::Double => (0, 8),
        Physical::Bytes => {
            let length = u32::from_le_bytes(*rest.first_chunk()?);
            (4, usize::try_from(length).ok()?)
        }
        Physical::Other => return None,
    };
    (length <= rest.len().checked_sub(start)?).then(|| at + start..at + start + length)
}

impl Dictionary {
    fn new(physical: Physical, bytes: Vec<u8>, values: u64) -> Option<Self> {
        // A value takes four bytes at least.
        let values = usize::try_from(values).ok().filter(|&values| values <= bytes.len() / 4)?;
        let mut starts = Vec::new();
        if physical == Physical::Bytes {
            starts.try_reserve_exact(values).ok()?;
            let mut at = 0;
            for _ in 0..values {
                starts.push(at as u32);
                at = plain(physical, &bytes, at)?.end;
            }
        }
        Some(Self { bytes, starts, values })
    }

    fn get(&self, physical: Physical, index: usize) -> Option<&[u8]> {
        if index >= self.values {
            return None;
        }
        let at = match physical {
            Physical::Bytes => self.starts[index] as usize,
            Physical::Int32 | Physical::Float => index * 4,
            _ => index * 8,
        };
        plain(physical, &self.bytes, at).map(|value| &self.bytes[value])
    }
}

/// Numbers of some bits each, in runs: of the same number, or one after the other.
#[derive(Debug)]
struct Hybrid {
    /// What was not read of them.
    part: Range<usize>,
    width: usize,
    left: u64,
    run: Run,
}

#[derive(Debug)]
enum Run {
    Same(u32),
    /// The next number begins at this bit.
    Packed {
        bit: u64,
    },
}

impl Hybrid {
    fn new(part: Range<usize>, width: usize) -> Self {
        Self { part, width, left: 0, run: Run::Same(0) }
    }

    fn next(&mut self, bytes: &[u8]) -> Option<u32> {
        if self.width == 0 {
            return Some(0);
        }
        while self.left == 0 {
            self.turn(bytes)?;
        }
        self.left -= 1;
        match &mut self.run {
            Run::Same(number) => Some(*number),
            Run::Packed { bit } => {
                let here = bytes.get((*bit / 8) as usize..)?;
                let mut word = [0; 8];
                let length = here.len().min(5);
                word[..length].copy_from_slice(&here[..length]);
                let shift = *bit % 8;
                *bit += self.width as u64;
                if (shift as usize + self.width).div_ceil(8) > length {
                    return None;
                }
                Some((u64::from_le_bytes(word) >> shift & ((1 << self.width) - 1)) as u32)
            }
        }
    }

    /// Goes to the next run.
    fn turn(&mut self, bytes: &[u8]) -> Option<()> {
        let mut head = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = *bytes[..self.part.end].get(self.part.start)?;
            self.part.start += 1;
            head |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        self.left = head >> 1;
        if head & 1 == 0 {
            let mut number = [0; 4];
            let length = self.width.div_ceil(8);
            let here = bytes[..self.part.end].get(self.part.start..)?.get(..length)?;
            number[..length].copy_from_slice(here);
            self.part.start += length;
            self.run = Run::Same(u32::from_le_bytes(number));
        } else {
            self.run = Run::Packed { bit: self.part.start as u64 * 8 };
            // Each of the runs of eight takes as many bytes as a number has bits.
            let length = self.left.checked_mul(self.width as u64)?;
            self.left *= 8;
            let end = (self.part.start as u64).checked_add(length)?;
            self.part.start = usize::try_from(end).ok()?.min(self.part.end);
        }
        Some(())
    }
}

const NONE: i64 = 0;
const SNAPPY: i64 = 1;
const GZIP: i64 = 2;
const ZSTD: i64 = 6;
const LZ4_RAW: i64 = 7;

/// Whether pages that are compressed like this can be read.
pub(super) fn is_readable(codec: i64) -> bool {
    matches!(codec, NONE | SNAPPY | GZIP | LZ4_RAW) || (cfg!(feature = "zstd") && codec == ZSTD)
}

/// Appends what is packed to `out`: this many bytes, not more and not fewer.
fn unpack(codec: i64, packed: &[u8], bytes: usize, mut out: Vec<u8>) -> Result<Vec<u8>, Trouble> {
    const WRONG: &str = "a page is not as long as it claims, or its compression is damaged";
    /// Bytes that a byte can become at most, and more.
    const SNAPPY_RATIO: usize = 64;
    const LZ4_RATIO: usize = 256;
    let before = out.len();
    let read_from = |mut source: Box<dyn Read + '_>, out: &mut Vec<u8>| {
        let read = Read::take(&mut source, bytes as u64 + 1).read_to_end(out);
        read.map(|_| ()).map_err(|_| Trouble::from(WRONG))
    };
    match codec {
        NONE => out.extend_from_slice(packed),
        SNAPPY => {
            let claimed = snap::raw::decompress_len(packed).map_err(|_| WRONG)?;
            if claimed != bytes || bytes > packed.len().saturating_mul(SNAPPY_RATIO) {
                return Err(WRONG.into());
            }
            out.try_reserve_exact(bytes).map_err(io::Error::from)?;
            out.resize(before + bytes, 0);
            let unpacked = snap::raw::Decoder::new().decompress(packed, &mut out[before..]);
            unpacked.map_err(|_| WRONG)?;
        }
        LZ4_RAW => {
            if bytes > packed.len().saturating_mul(LZ4_RATIO) {
                return Err(WRONG.into());
            }
            out.try_reserve_exact(bytes).map_err(io::Error::from)?;
            out.resize(before + bytes, 0);
            let unpacked = lz4_flex::block::decompress_into(packed, &mut out[before..]);
            if unpacked.map_err(|_| WRONG)? != bytes {
                return Err(WRONG.into());
            }
        }
        GZIP => read_from(Box::new(flate2::read::MultiGzDecoder::new(packed)), &mut out)?,
        #[cfg(feature = "zstd")]
        ZSTD => {
            let source = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| WRONG)?;
            read_from(Box::new(source), &mut out)?;
        }
        _ => {
            return Err(Trouble::Damage(format!(
                "its pages are compressed by codec {codec}, which is not read"
            )));
        }
    }
    if out.len() - before != bytes {
        return Err(WRONG.into());
    }
    Ok(out)
}
