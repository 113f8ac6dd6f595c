//! From the values of a column to its pages.
//!
//! Whole numbers are written as differences ([`numbers`](super::numbers)); texts of which many are
//! the same as numbers in a dictionary; other texts one behind the other, their lengths before
//! them.

use super::buffer::{Buffer, Texts, Values};
use super::numbers::{push_differences, push_packed, push_runs, width_of};
use bytes::Bytes;
use hashbrown::HashTable;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a page.
const PAGE_ROWS: usize = 1 << 15;

/// Bytes of text after which a page ends although it has fewer rows.
const PAGE_TEXT_BYTES: usize = 1 << 20;

/// Texts after which it is asked whether a dictionary is worth its while.
const TRIAL: usize = 4096;

/// Most bytes of a dictionary.
const DICTIONARY_BYTES: usize = 1 << 20;

/// Bytes of texts that tell whether compression is worth its while.
const SAMPLE_BYTES: usize = 1 << 14;

/// Longest text that a column tells as its least or greatest.
const LONGEST_BOUND: usize = 64;

/// The pages of a column.
pub(super) struct EncodedColumn {
    pub(super) bytes: Bytes,
    pub(super) closed: ColumnCloseResult,
}

/// Makes pages, in memory that is used again.
pub(super) struct Encoder {
    hasher: ahash::RandomState,
    index: HashTable<u32>,
    dictionary: Dictionary,
    /// The number of each text in the dictionary.
    numbers: Vec<u32>,
    lengths: Vec<i64>,
    body: Vec<u8>,
    packed: Vec<u8>,
    snappy: snap::raw::Encoder,
}

/// Texts that are there once, one behind the other.
#[derive(Default)]
struct Dictionary {
    all: Vec<u8>,
    ends: Vec<usize>,
}

impl Dictionary {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> &[u8] {
        let before = number.checked_sub(1);
        &self.all[before.map_or(0, |before| self.ends[before])..self.ends[number]]
    }

    fn push(&mut self, text: &[u8]) {
        self.all.extend_from_slice(text);
        self.ends.push(self.all.len());
    }

    fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            hasher: ahash::RandomState::new(),
            index: HashTable::new(),
            dictionary: Dictionary::default(),
            numbers: Vec::new(),
            lengths: Vec::new(),
            body: Vec::new(),
            packed: Vec::new(),
            snappy: snap::raw::Encoder::new(),
        }
    }

    /// Encodes the values of a column.
    pub(super) fn encode(
        &mut self,
        description: &ColumnDescPtr,
        buffer: &Buffer,
    ) -> Result<EncodedColumn, ParquetError> {
        let rows = buffer.rows();
        let (encoding, has_dictionary) = match &buffer.values {
            Values::Whole(_) | Values::Unsigned(_) => (Encoding::DELTA_BINARY_PACKED, false),
            Values::Float(_) | Values::Bool(_) => (Encoding::PLAIN, false),
            Values::Text(texts) if self.find_repeated(texts) => (Encoding::RLE_DICTIONARY, true),
            Values::Text(_) => (Encoding::DELTA_LENGTH_BYTE_ARRAY, false),
        };
        let is_compressed = match &buffer.values {
            Values::Whole(_) | Values::Unsigned(_) | Values::Bool(_) => false,
            Values::Float(_) => true,
            // Numbers in a dictionary are as short as they can be.
            Values::Text(_) if has_dictionary => self.is_worth_compressing_dictionary(),
            Values::Text(texts) => self.is_worth_compressing(texts.as_bytes()),
        };
        let compression =
            if is_compressed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
        let mut pages = Pages {
            out: TrackedWrite::new(Vec::new()),
            compression,
            unpacked_bytes: 0,
            data_offset: None,
        };
        if has_dictionary {
            self.body.clear();
            for number in 0..self.dictionary.len() {
                let text = self.dictionary.get(number);
                self.body.extend((text.len() as u32).to_le_bytes());
                self.body.extend_from_slice(text);
            }
            let page = |buf| Page::DictionaryPage {
                buf,
                num_values: self.dictionary.len() as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            pages.push(&self.body, &mut self.packed, &mut self.snappy, page)?;
        }
        let (mut row, mut value) = (0, 0);
        while row < rows {
            let (end, values) = page_of(buffer, row, value);
            self.body.clear();
            if buffer.nullable {
                self.body.extend([0; 4]);
                push_runs(&buffer.present[row..end], 1, &mut self.body);
                let length = self.body.len() as u32 - 4;
                self.body[..4].copy_from_slice(&length.to_le_bytes());
            }
            self.push_values(&buffer.values, values.clone(), has_dictionary);
            let page = |buf| Page::DataPage {
                buf,
                num_values: (end - row) as u32,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            pages.push(&self.body, &mut self.packed, &mut self.snappy, page)?;
            (row, value) = (end, values.end);
        }
        let statistics = self.statistics(buffer, has_dictionary);
        let mut encodings = vec![encoding, Encoding::RLE];
        encodings.extend(has_dictionary.then_some(Encoding::PLAIN));
        let bytes = Bytes::from(pages.out.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(Arc::clone(description))
            .set_compression(compression)
            .set_encodings(encodings)
            .set_num_values(rows as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(pages.unpacked_bytes)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(pages.data_offset.unwrap_or_default())
            .set_statistics(statistics)
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(EncodedColumn { bytes, closed })
    }

    /// Looks for texts that are there several times: false if there are too few for a dictionary.
    fn find_repeated(&mut self, texts: &Texts) -> bool {
        self.index.clear();
        self.dictionary.clear();
        self.numbers.clear();
        self.numbers.reserve(texts.len());
        let dictionary = &mut self.dictionary;
        for number in 0..texts.len() {
            let text = texts.get(number);
            let hash = self.hasher.hash_one(text);
            let is_here = |&at: &u32| dictionary.get(at as usize) == text;
            let at = if let Some(&at) = self.index.find(hash, is_here) {
                at
            } else {
                let at = dictionary.len() as u32;
                dictionary.push(text);
                let hash_of = |&at: &u32| self.hasher.hash_one(dictionary.get(at as usize));
                self.index.insert_unique(hash, at, hash_of);
                at
            };
            self.numbers.push(at);
            if dictionary.all.len() > DICTIONARY_BYTES
                || (number + 1 == TRIAL && dictionary.len() > TRIAL / 4 * 3)
            {
                return false;
            }
        }
        true
    }

    fn is_worth_compressing_dictionary(&mut self) -> bool {
        let dictionary = std::mem::take(&mut self.dictionary);
        let is_worth = dictionary.all.len() * 2 > self.numbers.len()
            && self.is_worth_compressing(&dictionary.all);
        self.dictionary = dictionary;
        is_worth
    }

    /// Whether compression takes away a third of the first bytes, and so perhaps of all: of
    /// addresses it takes less, and as long as everything else that is done with them.
    fn is_worth_compressing(&mut self, bytes: &[u8]) -> bool {
        let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
        self.packed.resize(snap::raw::max_compress_len(sample.len()), 0);
        let packed = self.snappy.compress(sample, &mut self.packed);
        packed.is_ok_and(|packed| packed <= sample.len() / 3 * 2)
    }

    fn push_values(&mut self, values: &Values, range: Range<usize>, has_dictionary: bool) {
        let body = &mut self.body;
        match values {
            Values::Whole(numbers) | Values::Unsigned(numbers) => {
                push_differences(&numbers[range], body);
            }
            Values::Float(numbers) => {
                body.extend(numbers[range].iter().flat_map(|number| number.to_le_bytes()));
            }
            Values::Bool(truths) => {
                let bits = truths[range].iter().map(|&truth| u64::from(truth));
                push_packed(bits, 1, body);
            }
            Values::Text(_) if has_dictionary => {
                let width = width_of(self.dictionary.len().saturating_sub(1) as u32);
                body.push(width as u8);
                push_runs(&self.numbers[range], width, body);
            }
            Values::Text(texts) => {
                self.lengths.clear();
                let lengths = range.clone().map(|number| texts.get(number).len() as i64);
                self.lengths.extend(lengths);
                push_differences(&self.lengths, body);
                body.extend_from_slice(texts.joined(range));
            }
        }
    }

    /// The least and the greatest value of the column, and how many are missing.
    fn statistics(&self, buffer: &Buffer, has_dictionary: bool) -> Statistics {
        let missing = buffer.present.iter().filter(|&&is_there| !is_there).count();
        let missing = Some(missing as u64);
        let copied = |bounds: Option<(&i64, &i64)>| bounds.map(|(least, most)| (*least, *most));
        match &buffer.values {
            Values::Whole(numbers) => {
                let (least, most) = copied(numbers.iter().min().zip(numbers.iter().max())).unzip();
                Statistics::int64(least, most, None, missing, false)
            }
            Values::Unsigned(numbers) => {
                let unsigned = || numbers.iter().map(|number| number.cast_unsigned());
                let signed = |number: Option<u64>| number.map(u64::cast_signed);
                let (least, most) = (signed(unsigned().min()), signed(unsigned().max()));
                Statistics::int64(least, most, None, missing, false)
            }
            Values::Float(numbers) => {
                let numbers = || numbers.iter().copied().filter(|number| !number.is_nan());
                // A reader may take either zero for the other.
                let least = numbers().reduce(f64::min).map(|n| if n == 0.0 { -0.0 } else { n });
                let most = numbers().reduce(f64::max).map(|n| if n == 0.0 { 0.0 } else { n });
                Statistics::double(least, most, None, missing, false)
            }
            Values::Bool(truths) => {
                let (least, most) = (truths.iter().min().copied(), truths.iter().max().copied());
                Statistics::boolean(least, most, None, missing, false)
            }
            Values::Text(_) => {
                // Texts of which few are the same, such as identifiers, have bounds that exclude
                // nothing.
                let texts = &self.dictionary;
                let texts = || (0..texts.len()).map(|number| texts.get(number));
                let bounds = texts().min().zip(texts().max());
                let bounds = bounds.filter(|(least, most)| {
                    has_dictionary && least.len() <= LONGEST_BOUND && most.len() <= LONGEST_BOUND
                });
                let (least, most) = bounds.unzip();
                let bytes = |text: &[u8]| ByteArray::from(text.to_vec());
                Statistics::ByteArray(ValueStatistics::new(
                    least.map(bytes),
                    most.map(bytes),
                    None,
                    missing,
                    false,
                ))
            }
        }
    }
}

/// Where the page that begins with this row and value ends, and its values.
fn page_of(buffer: &Buffer, row: usize, value: usize) -> (usize, Range<usize>) {
    let end = buffer.rows().min(row + PAGE_ROWS);
    let there = |end: usize| {
        if buffer.nullable {
            let there = buffer.present[row..end].iter();
            there.filter(|&&is_there| is_there).count()
        } else {
            end - row
        }
    };
    let values = value..value + there(end);
    let Values::Text(texts) = &buffer.values else {
        return (end, values);
    };
    let fitting = texts.fitting(values.clone(), PAGE_TEXT_BYTES);
    if fitting == values.end {
        return (end, values);
    }
    // The page ends behind the last text that fits; the first one always does.
    let wanted = fitting.max(value + 1) - value;
    let end = if buffer.nullable {
        let mut places = (row..end).filter(|&row| buffer.present[row]);
        places.nth(wanted - 1).map_or(end, |last| last + 1)
    } else {
        row + wanted
    };
    (end, value..value + wanted)
}

/// The pages of a column, one behind the other.
struct Pages {
    out: TrackedWrite<Vec<u8>>,
    compression: Compression,
    unpacked_bytes: i64,
    /// Where the first page of data begins.
    data_offset: Option<i64>,
}

impl Pages {
    fn push(
        &mut self,
        body: &[u8],
        packed: &mut Vec<u8>,
        snappy: &mut snap::raw::Encoder,
        page: impl FnOnce(Bytes) -> Page,
    ) -> Result<(), ParquetError> {
        let bytes = if self.compression == Compression::SNAPPY {
            packed.resize(snap::raw::max_compress_len(body.len()), 0);
            let length = snappy.compress(body, packed);
            let length = length.map_err(|error| ParquetError::External(error.into()))?;
            &packed[..length]
        } else {
            body
        };
        let page = CompressedPage::new(page(Bytes::copy_from_slice(bytes)), body.len());
        let is_data = page.compressed_page().is_data_page();
        let written = SerializedPageWriter::new(&mut self.out).write_page(page)?;
        self.unpacked_bytes += written.uncompressed_size as i64;
        if is_data && self.data_offset.is_none() {
            self.data_offset = Some(written.offset as i64);
        }
        Ok(())
    }
}
