//! Lists of flows and of DNS queries as Parquet files, with the columns that such lists have as
//! CSV.
//!
//! ```text
//!   PAR1 │ row group: a part of each column, page by page │ ... │ footer │ its length │ PAR1
//! ```
//!
//! A file is read from its end, so it must be a file. Of each row group only the columns that are
//! needed are read, side by side and a page of each at a time. What a file says of itself is
//! checked before it is used; the library that writes our files trusts what it reads, and takes
//! memory for lengths that nothing stands behind.

mod differences;
mod footer;
mod pages;
mod thrift;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{Fault, TraceErrorKind};
use super::log_columns::{Columns, Rows, header};
use super::log_entries::Entries;
use super::packet::MAX_BATCH;
use super::stop::{Ending, StopFlag};
pub(super) use footer::MAGIC;
use footer::{ColumnInfo, Physical, RowGroup};
use pages::{ColumnReader, MOST_BYTES, Trouble};

/// Longest footer that is read: of a billion rows in row groups of usual size.
const MOST_FOOTER_BYTES: u64 = 32 << 20;

/// Length of the footer and mark, at the end of a file.
const TAIL_BYTES: u64 = 8;

/// What can be read from any place.
trait Source: Read + Seek + Send {}

impl<T: Read + Seek + Send> Source for T {}

/// A file, from which bytes are read where they are needed.
pub(super) struct Place {
    source: Box<dyn Source>,
    length: u64,
}

impl Place {
    /// The file behind `file`, as it is read until the flag is set.
    pub(super) fn new(file: File, stop: &StopFlag) -> io::Result<Self> {
        Self::of(Ending::new(file, stop.clone()))
    }

    fn of(mut source: impl Source + 'static) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        let source = Box::new(source);
        Ok(Self { source, length })
    }

    fn read(&mut self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        found.try_reserve_exact(bytes)?;
        self.source.seek(SeekFrom::Start(offset))?;
        let read = Read::take(&mut self.source, bytes as u64).read_to_end(&mut found)?;
        if read < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(found)
    }
}

pub(super) struct Parquet {
    place: Place,
    bytes_read: Arc<AtomicU64>,
    columns: Columns,
    /// What is read, and which column of the list each is.
    infos: Vec<ColumnInfo>,
    /// The place among those that are read, for each column of the file that has one value a row.
    places: Vec<Option<usize>>,
    groups: std::vec::IntoIter<RowGroup>,
    readers: Vec<ColumnReader>,
    /// Rows of the group that were not read.
    left: u64,
    /// Where the group begins.
    offset: u64,
    records: u64,
}

impl Parquet {
    /// Reads the footer.
    pub(super) fn open(mut place: Place, bytes_read: Arc<AtomicU64>) -> Result<Self, Fault> {
        let length = place.length;
        let tail_at = length.saturating_sub(TAIL_BYTES);
        let damaged = |offset, reason: &str| {
            let (container, reason) = ("Parquet", reason.to_owned());
            Fault::at(offset, TraceErrorKind::CorruptHeader { container, reason })
        };
        if length < MAGIC.len() as u64 + TAIL_BYTES {
            return Err(damaged(length, "the file ends before its footer"));
        }
        let read = |place: &mut Place, offset, bytes| {
            let found = place.read(offset, bytes);
            found.map_err(|error| Fault::from_io(error, offset))
        };
        let tail = read(&mut place, tail_at, TAIL_BYTES as usize)?;
        let Some((&claimed, mark)) = tail.split_first_chunk() else {
            unreachable!("the tail was read")
        };
        if mark != MAGIC {
            return Err(damaged(
                length,
                "the file does not end with its footer, so it was cut or is still being written",
            ));
        }
        let footer_bytes = u64::from(u32::from_le_bytes(claimed));
        let footer_at = tail_at.checked_sub(footer_bytes);
        let Some(footer_at) = footer_at.filter(|&at| at >= MAGIC.len() as u64) else {
            return Err(damaged(tail_at, "the footer claims more bytes than the file has"));
        };
        if footer_bytes > MOST_FOOTER_BYTES {
            let reason = "the footer is longer than 32 MiB; write the list in several files";
            return Err(damaged(footer_at, reason));
        }
        let footer = read(&mut place, footer_at, footer_bytes as usize)?;
        let found = footer::columns(&footer);
        let (infos, leaves) =
            found.ok_or_else(|| damaged(footer_at, "its footer cannot be read"))?;

        let names = header(infos.iter().map(|info| info.name.as_bytes()));
        let is_nanoseconds =
            |column: usize| infos[column].unit_ns.is_some() || names[column].ends_with("_ns");
        let columns = Columns::of(&names, is_nanoseconds).ok_or_else(|| {
            let looks_like = Some(
                "it is a Parquet file without the columns of a list of flows (a start, two addresses, a protocol) or of \
                 DNS queries (ts, src, dst, qname)",
            );
            Fault::at(0, TraceErrorKind::NotACapture { looks_like })
        })?;
        let mut places = vec![None; infos.len()];
        let mut chosen = Vec::new();
        for column in columns.used() {
            if places[column].is_none() {
                places[column] = Some(chosen.len());
                chosen.push(infos[column].clone());
            }
        }
        if let Some(info) = chosen.iter().find(|info| info.physical == Physical::Other) {
            let reason = format!(
                "the column {} holds neither numbers of 32 or 64 bits nor text",
                shown(&info.name)
            );
            return Err(damaged(footer_at, &reason));
        }
        let groups = footer::row_groups(&footer, footer_at, leaves, &chosen);
        let groups = groups.map_err(|reason| damaged(footer_at, reason))?;
        let mut chunks = groups.iter().flat_map(|group| &group.chunks);
        if !chunks.all(|chunk| chunk.has_known_encodings && pages::is_readable(chunk.codec)) {
            let looks_like = Some(
                "it is a Parquet file in an encoding or a compression that is not read; write it anew with plain or dictionary \
                 encoding (version 1 of the format) and snappy, gzip, zstd or lz4_raw",
            );
            return Err(Fault::at(0, TraceErrorKind::NotACapture { looks_like }));
        }
        bytes_read.store(0, Ordering::Relaxed);
        Ok(Self {
            place,
            bytes_read,
            columns,
            infos: chosen,
            places,
            groups: groups.into_iter(),
            readers: Vec::new(),
            left: 0,
            offset: 0,
            records: 0,
        })
    }

    /// What its rows are.
    pub(super) fn rows(&self) -> Rows {
        self.columns.rows()
    }

    /// Appends records to `out` (empty when called); leaves it empty at the end.
    pub(super) fn fill(&mut self, out: &mut Entries) -> Result<(), Fault> {
        while out.is_empty() {
            while self.left == 0 {
                let Some(group) = self.groups.next() else {
                    self.bytes_read.store(self.place.length, Ordering::Relaxed);
                    return Ok(());
                };
                self.enter(&group);
            }
            self.batch(out)?;
        }
        Ok(())
    }

    fn enter(&mut self, group: &RowGroup) {
        self.left = group.rows;
        self.offset = group.chunks.iter().map(|chunk| chunk.start).min().unwrap_or(0);
        self.bytes_read.fetch_max(self.offset, Ordering::Relaxed);
        let columns = self.infos.iter().zip(&group.chunks);
        let readers = columns.map(|(info, &chunk)| ColumnReader::new(info, chunk, group.rows));
        self.readers = readers.collect();
    }

    /// Appends the records of the next rows.
    fn batch(&mut self, out: &mut Entries) -> Result<(), Fault> {
        let rows = self.left.min(MAX_BATCH as u64) as usize;
        let mut trouble = None;
        let mut whole = rows;
        for number in 0..self.readers.len() {
            let held: usize = self.readers.iter().map(ColumnReader::bytes).sum();
            let reader = &mut self.readers[number];
            let room = MOST_BYTES - (held - reader.bytes()).min(MOST_BYTES);
            if let Err(found) = reader.read(rows, &mut self.place, room)
                && reader.cells.len() < whole
            {
                whole = reader.cells.len();
                trouble = Some((number, found));
            }
        }
        self.left -= rows as u64;
        for row in 0..whole {
            self.records += 1;
            let cell = |column: usize| {
                let place = self.places[column]?;
                Some(self.readers[place].cells.get(row))
            };
            if let Err(reason) = self.columns.read(cell, out) {
                out.skip_for(|| Fault::record(self.offset, self.records, reason));
            }
        }
        let Some((number, (offset, trouble))) = trouble else {
            return Ok(());
        };
        (self.left, self.groups) = (0, Vec::new().into_iter());
        Err(match trouble {
            Trouble::Io(error) => Fault::from_io(error, offset),
            Trouble::Damage(reason) => {
                let reason = format!("column {}: {reason}", shown(&self.infos[number].name));
                let packet = self.records + 1;
                Fault::at(offset, TraceErrorKind::CorruptBlock { packet, reason })
            }
        })
    }
}

/// A name as it can stand in a sentence.
fn shown(name: &str) -> String {
    let plain = name.chars().take(60).map(|character| {
        if character.is_control() { char::REPLACEMENT_CHARACTER } else { character }
    });
    format!("`{}`", plain.collect::<String>())
}
