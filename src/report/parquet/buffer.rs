//! The values of a column until their row group is full.

use super::super::cell::{Cell, Kind};
use super::super::column::{Column, Integer};
use super::super::values::Values as Many;
use std::ops::Range;

/// The values of a column that wait for their row group, and for each row whether it has one.
#[derive(Debug)]
pub(super) struct Buffer {
    name: String,
    pub(super) nullable: bool,
    pub(super) values: Values,
    /// Whether there is a value; empty if the column is not nullable.
    pub(super) present: Vec<bool>,
}

#[derive(Debug)]
pub(super) enum Values {
    Whole(Vec<i64>),
    /// Unsigned numbers in the same 64 bits; the logical type says how to read them.
    Unsigned(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
}

/// Texts one behind the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Buffer {
    pub(super) fn new<R>(column: &Column<R>) -> Self {
        Self {
            name: column.name.clone().into_owned(),
            nullable: column.nullable,
            values: match column.kind {
                Kind::I64 | Kind::Time(_) => Values::Whole(Vec::new()),
                Kind::U64 => Values::Unsigned(Vec::new()),
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

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        if self.nullable {
            return self.present.len();
        }
        match &self.values {
            Values::Whole(values) | Values::Unsigned(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Text(texts) => texts.len(),
        }
    }

    /// Forgets all values and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            Values::Whole(values) | Values::Unsigned(values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Bool(values) => values.clear(),
            Values::Text(texts) => texts.clear(),
        }
    }

    /// Takes the value of a row; how many bytes of text it has.
    pub(super) fn take<R>(&mut self, column: &Column<R>, row: &R) -> usize {
        if let Values::Whole(values) | Values::Unsigned(values) = &mut self.values
            && let value @ (Integer::Number(_) | Integer::Missing) = column.whole(row)
        {
            let value = match value {
                Integer::Number(value) => Some(value),
                _ => None,
            };
            if self.nullable {
                self.present.push(value.is_some());
            } else {
                assert!(value.is_some(), "{}: there is no value", self.name);
            }
            values.extend(value);
            return 0;
        }
        let Values::Text(texts) = &mut self.values else {
            return self.push(column.cell(row));
        };
        let start = texts.all.len();
        let Some(is_there) = column.push_text(row, &mut texts.all) else {
            return self.push(column.cell(row));
        };
        if self.nullable {
            self.present.push(is_there);
        }
        if is_there {
            texts.ends.push(texts.all.len());
        } else {
            assert!(self.nullable, "{}: there is no value", self.name);
        }
        texts.all.len() - start
    }

    /// Takes a cell; how many bytes of text it has.
    pub(super) fn push(&mut self, cell: Cell) -> usize {
        if self.nullable {
            self.present.push(cell != Cell::Null);
        }
        match (&mut self.values, cell) {
            (_, Cell::Null) => assert!(self.nullable, "{}: there is no value", self.name),
            (Values::Whole(values), Cell::I64(value) | Cell::Time(value, _)) => values.push(value),
            (Values::Unsigned(values), Cell::U64(value)) => values.push(value.cast_signed()),
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
            (Values::Unsigned(to), Many::U8(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Unsigned(to), Many::U16(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Unsigned(to), Many::U64(from)) => {
                to.extend(from[range].iter().map(|n| n.cast_signed()));
            }
            (Values::Unsigned(to), Many::OptionalU8(from)) => {
                let from = &from[range];
                self.present.extend(from.iter().map(Option::is_some));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Unsigned(to), Many::OptionalU16(from)) => {
                let from = &from[range];
                self.present.extend(from.iter().map(Option::is_some));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Text(to), Many::Text(from)) => {
                let missing = &from.missing()[range.clone()];
                if self.nullable {
                    self.present.extend(missing.iter().map(|&missing| !missing));
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
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all texts, one behind the other.
    pub(super) const fn as_bytes(&self) -> &[u8] {
        self.all.as_bytes()
    }

    /// The bytes of the text with this number.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        &self.as_bytes()[self.start(number)..self.ends[number]]
    }

    /// Those of the texts with these numbers, one behind the other.
    pub(super) fn joined(&self, range: Range<usize>) -> &[u8] {
        &self.as_bytes()[self.start(range.start)..self.start(range.end)]
    }

    /// Behind which of these texts so many bytes are full, or the end.
    pub(super) fn fitting(&self, range: Range<usize>, bytes: usize) -> usize {
        let most = self.start(range.start) + bytes;
        range.start + self.ends[range].partition_point(|&end| end <= most)
    }

    /// Appends texts that stand one behind the other.
    fn extend(&mut self, texts: &str, ends: impl IntoIterator<Item = usize>) {
        let first = self.all.len();
        self.all.push_str(texts);
        self.ends.extend(ends.into_iter().map(|end| first + end));
    }

    /// Forgets all texts and keeps the memory.
    fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    /// Where the text with this number begins.
    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}
