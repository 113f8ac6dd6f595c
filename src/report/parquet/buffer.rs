//! The values of a column until their row group is full.

use super::super::cell::{Cell, Kind};
use super::super::column::Column;
use super::super::values::Values as Many;
use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use std::ops::Range;

/// Levels of a text column that are encoded at once: a multiple of the encoder's own batches, so that pages do not depend on it.
const TEXTS_AT_ONCE: usize = 8192;

/// The values of a column that wait for their row group, and for each row whether it has one.
#[derive(Debug)]
pub(super) struct Buffer {
    name: String,
    nullable: bool,
    values: Values,
    /// 1 for a value, 0 for none; empty if the column is not nullable.
    present: Vec<i16>,
}

#[derive(Debug)]
enum Values {
    Whole(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
}

/// Texts one behind the other.
#[derive(Debug, Default)]
struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Buffer {
    pub(super) fn new<R>(column: &Column<R>) -> Self {
        Self {
            name: column.name.clone().into_owned(),
            nullable: column.nullable,
            values: match column.kind {
                Kind::I64 | Kind::Time(_) | Kind::U64 => Values::Whole(Vec::new()),
                Kind::F64 | Kind::Decimal | Kind::Whole | Kind::Seconds => {
                    Values::Float(Vec::new())
                }
                Kind::Bool => Values::Bool(Vec::new()),
                Kind::Text | Kind::List(_) | Kind::Object(_) | Kind::Tally => {
                    Values::Text(Texts::default())
                }
            },
            present: Vec::new(),
        }
    }

    /// An empty one for the same column.
    pub(super) fn like(&self) -> Self {
        Self {
            name: self.name.clone(),
            nullable: self.nullable,
            values: match self.values {
                Values::Whole(_) => Values::Whole(Vec::new()),
                Values::Float(_) => Values::Float(Vec::new()),
                Values::Bool(_) => Values::Bool(Vec::new()),
                Values::Text(_) => Values::Text(Texts::default()),
            },
            present: Vec::new(),
        }
    }

    /// Takes the value of a row; how many bytes of text it has.
    pub(super) fn take<R>(&mut self, column: &Column<R>, row: &R) -> usize {
        let Values::Text(texts) = &mut self.values else {
            return self.push(column.cell(row));
        };
        let start = texts.all.len();
        let Some(is_there) = column.push_text(row, &mut texts.all) else {
            return self.push(column.cell(row));
        };
        if self.nullable {
            self.present.push(i16::from(is_there));
        }
        if is_there {
            texts.ends.push(texts.all.len());
        } else {
            assert!(self.nullable, "{}: there is no value", self.name);
        }
        texts.all.len() - start
    }

    /// Takes rows of another buffer of the column.
    pub(super) fn append(&mut self, from: &Self, rows: Range<usize>) {
        let values = if self.nullable {
            let count = |rows: Range<usize>| {
                let present = from.present[rows].iter();
                present.map(|&one| one as usize).sum::<usize>()
            };
            let before = count(0..rows.start);
            self.present.extend_from_slice(&from.present[rows.clone()]);
            before..before + count(rows)
        } else {
            rows
        };
        match (&mut self.values, &from.values) {
            (Values::Whole(to), Values::Whole(from)) => to.extend_from_slice(&from[values]),
            (Values::Float(to), Values::Float(from)) => to.extend_from_slice(&from[values]),
            (Values::Bool(to), Values::Bool(from)) => to.extend_from_slice(&from[values]),
            (Values::Text(to), Values::Text(from)) => {
                let (first, end) = (from.start(values.start), from.start(values.end));
                to.extend(
                    &from.all[first..end],
                    from.ends[values].iter().map(|end| end - first),
                );
            }
            _ => unreachable!("{}: buffers of one column are of one kind", self.name),
        }
    }

    /// Takes a cell; how many bytes of text it has.
    pub(super) fn push(&mut self, cell: Cell) -> usize {
        if self.nullable {
            self.present.push(i16::from(cell != Cell::Null));
        }
        match (&mut self.values, cell) {
            (_, Cell::Null) => assert!(self.nullable, "{}: there is no value", self.name),
            (Values::Whole(values), Cell::I64(value) | Cell::Time(value, _)) => values.push(value),
            // Unsigned numbers lie in the same 64 bits; the logical type says how to read them.
            (Values::Whole(values), Cell::U64(value)) => values.push(value.cast_signed()),
            (
                Values::Float(values),
                Cell::F64(value) | Cell::Decimal(value) | Cell::Whole(value),
            ) => {
                values.push(value);
            }
            (Values::Float(values), Cell::Seconds(ns)) => values.push(ns as f64 / 1e9),
            (Values::Bool(values), Cell::Bool(value)) => values.push(value),
            (Values::Text(values), cell) => {
                let text = cell.in_text();
                values.extend(&text, [text.len()]);
                return text.len();
            }
            (_, cell) => panic!("{}: {cell:?} is of another kind", self.name),
        }
        0
    }

    /// Takes values of these rows; how many bytes of text they have.
    pub(super) fn extend(&mut self, values: Many<'_>, range: Range<usize>) -> usize {
        match (&mut self.values, values) {
            (Values::Whole(to), Many::Time(from)) => to.extend_from_slice(&from[range]),
            (Values::Whole(to), Many::U8(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::U16(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::U64(from)) => {
                to.extend(from[range].iter().map(|n| n.cast_signed()));
            }
            (Values::Whole(to), Many::OptionalU8(from)) => {
                let from = &from[range];
                self.present
                    .extend(from.iter().map(|n| i16::from(n.is_some())));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::OptionalU16(from)) => {
                let from = &from[range];
                self.present
                    .extend(from.iter().map(|n| i16::from(n.is_some())));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Text(to), Many::Text(from)) => {
                let missing = &from.missing()[range.clone()];
                if self.nullable {
                    self.present
                        .extend(missing.iter().map(|&no| i16::from(!no)));
                } else {
                    assert!(!missing.contains(&true), "{}: there is no value", self.name);
                }
                let first = from.start(range.start);
                let end = from.start(range.end);
                let ends = from.ends()[range].iter().zip(missing);
                let ends = ends.filter(|&(_, &missing)| !missing);
                let ends = ends.map(|(&end, _)| end as usize - first);
                to.extend(&from.as_one()[first..end], ends);
                return end - first;
            }
            (_, values) => panic!("{}: {values:?} are of another kind", self.name),
        }
        0
    }

    /// Encodes the values, and forgets them.
    pub(super) fn write(
        &mut self,
        writer: ColumnWriter<'_>,
    ) -> Result<ColumnCloseResult, ParquetError> {
        let present = self.nullable.then_some(self.present.as_slice());
        let closed = match (&mut self.values, writer) {
            (Values::Whole(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                write_column(writer, values, present)
            }
            (Values::Float(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                write_column(writer, values, present)
            }
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                write_column(writer, values, present)
            }
            (Values::Text(texts), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                texts.write(writer, present)
            }
            _ => unreachable!("{}: a writer of the column's type", self.name),
        };
        self.present.clear();
        closed
    }
}

fn write_column<T: DataType>(
    mut writer: ColumnWriterImpl<'_, T>,
    values: &mut Vec<T::T>,
    present: Option<&[i16]>,
) -> Result<ColumnCloseResult, ParquetError> {
    writer.write_batch(values, present, None)?;
    values.clear();
    writer.close()
}

impl Texts {
    /// Where the text with this number begins.
    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Appends texts that stand one behind the other.
    fn extend(&mut self, texts: &str, ends: impl IntoIterator<Item = usize>) {
        let first = self.all.len();
        self.all.push_str(texts);
        self.ends.extend(ends.into_iter().map(|end| first + end));
    }

    fn write(
        &mut self,
        mut writer: ColumnWriterImpl<'_, ByteArrayType>,
        present: Option<&[i16]>,
    ) -> Result<ColumnCloseResult, ParquetError> {
        let all = Bytes::from(std::mem::take(&mut self.all));
        let mut start = 0;
        let mut texts = self.ends.drain(..).map(|end| {
            let text = all.slice(start..end);
            start = end;
            ByteArray::from(text)
        });
        let mut some = Vec::new();
        match present {
            Some(present) => {
                for present in present.chunks(TEXTS_AT_ONCE) {
                    let count = present.iter().filter(|&&one| one == 1).count();
                    some.extend(texts.by_ref().take(count));
                    writer.write_batch(&some, Some(present), None)?;
                    some.clear();
                }
            }
            None => loop {
                some.extend(texts.by_ref().take(TEXTS_AT_ONCE));
                if some.is_empty() {
                    break;
                }
                writer.write_batch(&some, None, None)?;
                some.clear();
            },
        }
        drop(texts);
        writer.close()
    }
}
