//! Rows by column: the one shape in which rows reach every format.

use super::cell::{
    Cell, Clock, Decimal, EpochSeconds, Joined, Kind, Name, Seconds, Time, TimeOnly, Whole,
    push_integer,
};
use super::number::RecentSeconds;
use crate::zone::Zone;
use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

/// A column of a result, as every format has it.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// Time zone for text (time columns only).
    pub(super) zone: Zone,
    /// The array with its values: the integer and the time of one moment share it.
    pub(super) array: usize,
}

/// The columns of a result, in order.
pub(super) type Schema = Arc<[Field]>;

/// A type of values that columns are made of.
pub(super) trait Value: Sized {
    /// Whether a value may be missing.
    const NULLABLE: bool = false;

    /// Returns the type of its columns.
    fn kind() -> Kind;

    /// Appends values; `None` is a row without one.
    fn append_all(values: impl Iterator<Item = Option<Self>>, array: &mut Array);

    /// Returns the value as a cell.
    fn cell(self) -> Cell {
        let mut array = Array::new(&Self::kind(), Self::NULLABLE);
        Self::append_all(once(Some(self)), &mut array);
        array.cell(0, &Self::kind(), Zone::UTC)
    }
}

/// Declares types by the values that arrays keep of them.
macro_rules! values {
    ($($own:ty => $kind:expr, $variant:ident: |$value:ident| $kept:expr;)*) => {$(
        impl Value for $own {
            fn kind() -> Kind {
                $kind
            }
            #[inline]
            fn append_all(values: impl Iterator<Item = Option<Self>>, array: &mut Array) {
                let Values::$variant(column) = &mut array.values else {
                    unreachable!("{} among {:?}", stringify!($own), array.values);
                };
                let kept = values.map(|value| value.map(|$value| $kept));
                extend(column, array.valid.as_mut(), kept);
            }
        }
    )*};
}

values! {
    Time => Kind::Time(Clock::Both), I64: |time| time.0;
    TimeOnly => Kind::Time(Clock::Time), I64: |time| time.0;
    EpochSeconds => Kind::Time(Clock::Seconds), I64: |time| time.0;
    i64 => Kind::I64, I64: |number| number;
    u64 => Kind::U64, U64: |number| number;
    u32 => Kind::U64, U64: |number| u64::from(number);
    usize => Kind::U64, U64: |number| number as u64;
    u16 => Kind::U16, U16: |number| number;
    u8 => Kind::U8, U8: |number| number;
    f64 => Kind::F64, F64: |number| number;
    Decimal => Kind::Decimal, F64: |number| number.0;
    Whole => Kind::Whole, F64: |number| number.0;
    bool => Kind::Bool, Bool: |truth| truth;
    &'static str => Kind::Word, Text: |text| text;
    String => Kind::Text, Text: |text| text;
    Seconds => Kind::Seconds, Cells: |duration| Cell::Seconds(duration.0);
    Cell => Kind::Object, Cells: |cell| cell;
}

impl<T: Value> Value for Option<T> {
    const NULLABLE: bool = true;

    fn kind() -> Kind {
        T::kind()
    }

    #[inline]
    fn append_all(values: impl Iterator<Item = Option<Self>>, array: &mut Array) {
        T::append_all(values.map(Option::flatten), array);
    }
}

impl<T: Value> Value for Joined<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn append_all(values: impl Iterator<Item = Option<Self>>, array: &mut Array) {
        let cells = |list: Vec<T>| list.into_iter().map(T::cell).collect();
        let lists = values.map(|value| value.map(|joined| Cell::List(cells(joined.0), joined.1)));
        Cell::append_all(lists, array);
    }
}

impl<T: Value> Value for Vec<T> {
    fn kind() -> Kind {
        Joined::<T>::kind()
    }

    fn append_all(values: impl Iterator<Item = Option<Self>>, array: &mut Array) {
        Joined::append_all(values.map(|value| value.map(|list| Joined(list, ","))), array);
    }
}

/// Rows by column.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) schema: Schema,
    pub(super) arrays: Vec<Array>,
    /// Number of rows: of values in each array.
    pub(super) rows: usize,
}

/// The values of a column, one a row.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) values: Values,
    /// Whether each row has a value; `None` if every row has one.
    pub(super) valid: Option<Vec<bool>>,
}

/// Values of one type. A row without a value has the type's default.
#[derive(Clone, Debug)]
pub(super) enum Values {
    I64(Vec<i64>),
    U64(Vec<u64>),
    U16(Vec<u16>),
    U8(Vec<u8>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
    /// Lists and objects.
    Cells(Vec<Cell>),
}

/// Texts, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    pub(super) all: String,
    /// Where each of them ends.
    pub(super) ends: Vec<u32>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    pub(super) fn range(&self, row: usize) -> Range<usize> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[row] as usize
    }

    pub(super) fn get(&self, row: usize) -> &str {
        &self.all[self.range(row)]
    }

    /// Appends the text of a row to `out`. Copies a window of known length and truncates where the
    /// text is short: that compiles to moves without a call.
    #[inline]
    fn push_to(&self, row: usize, out: &mut String) {
        const WINDOW: usize = 32;
        let range = self.range(row);
        match self.all.get(range.start..range.start + WINDOW) {
            Some(window) if range.len() <= WINDOW => {
                let end = out.len() + range.len();
                out.push_str(window);
                out.truncate(end);
            }
            _ => out.push_str(&self.all[range]),
        }
    }

    #[inline(never)]
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.end_of_all());
    }

    fn end_of_all(&self) -> u32 {
        let end = u32::try_from(self.all.len());
        end.expect("a batch ends long before it has 4 GiB of text")
    }
}

impl<T: AsRef<str>> Extend<T> for Texts {
    fn extend<I: IntoIterator<Item = T>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push(text.as_ref()));
    }
}

impl Batch {
    /// Returns a batch without rows.
    pub(super) fn new(schema: &Schema) -> Self {
        let mut arrays: Vec<Array> = Vec::new();
        for field in schema.iter() {
            if field.array == arrays.len() {
                arrays.push(Array::new(&field.kind, field.nullable));
            }
        }
        Self { schema: Arc::clone(schema), arrays, rows: 0 }
    }

    /// Returns the fields with their arrays.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&Field, &Array)> {
        self.schema.iter().map(|field| (field, &self.arrays[field.array]))
    }

    /// Returns the bytes of all texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.arrays.iter().map(Array::text_bytes).sum()
    }

    /// Removes all rows and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.rows = 0;
        self.arrays.iter_mut().for_each(Array::clear);
    }

    /// Returns a row as an object.
    pub(super) fn object(&self, row: usize) -> Cell {
        let fields = self
            .columns()
            .map(|(field, array)| (field.name.clone(), array.cell(row, &field.kind, field.zone)));
        Cell::Object(fields.collect())
    }
}

/// Does the same to the values of any type.
macro_rules! values {
    ($values:expr, $of:ident => $result:expr) => {
        match $values {
            Values::I64($of) => $result,
            Values::U64($of) => $result,
            Values::U16($of) => $result,
            Values::U8($of) => $result,
            Values::F64($of) => $result,
            Values::Bool($of) => $result,
            Values::Text($of) => $result,
            Values::Cells($of) => $result,
        }
    };
}

/// Said of a row that lacks what it must have.
const MISSING: &str = "a value is missing in a column that is not nullable";

/// Appends values to those of a column; `valid` takes which rows have one.
#[inline]
pub(super) fn extend<T: Default>(
    column: &mut impl Extend<T>,
    valid: Option<&mut Vec<bool>>,
    values: impl Iterator<Item = Option<T>>,
) {
    match valid {
        None => column.extend(values.map(|value| value.expect(MISSING))),
        Some(valid) => column.extend(values.map(|value| {
            valid.push(value.is_some());
            value.unwrap_or_default()
        })),
    }
}

impl Array {
    pub(super) fn new(kind: &Kind, nullable: bool) -> Self {
        let values = match kind {
            Kind::Time(_) | Kind::I64 => Values::I64(Vec::new()),
            Kind::U64 => Values::U64(Vec::new()),
            Kind::U16 => Values::U16(Vec::new()),
            Kind::U8 => Values::U8(Vec::new()),
            Kind::F64 | Kind::Decimal | Kind::Whole => Values::F64(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
            Kind::Text | Kind::Token | Kind::Address | Kind::Word => Values::Text(Texts::default()),
            Kind::Seconds | Kind::List(_) | Kind::Object => Values::Cells(Vec::new()),
        };
        Self { values, valid: nullable.then(Vec::new) }
    }

    pub(super) fn len(&self) -> usize {
        values!(&self.values, values => values.len())
    }

    fn clear(&mut self) {
        self.valid.iter_mut().for_each(Vec::clear);
        values!(&mut self.values, values => values.clear());
    }

    fn text_bytes(&self) -> usize {
        match &self.values {
            Values::Text(texts) => texts.all.len(),
            _ => 0,
        }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.valid.as_ref().is_some_and(|valid| !valid[row])
    }

    /// Appends what `write` writes; the row has no value if it returns false.
    pub(super) fn write_text(&mut self, write: impl FnOnce(&mut String) -> bool) {
        let Values::Text(texts) = &mut self.values else {
            unreachable!("a text among {:?}", self.values);
        };
        let is_valid = write(&mut texts.all);
        texts.ends.push(texts.end_of_all());
        match &mut self.valid {
            Some(valid) => valid.push(is_valid),
            None => assert!(is_valid, "{MISSING}"),
        }
    }

    /// Appends texts that follow each other in `all`, and where each of them ends there.
    pub(super) fn push_texts(
        &mut self,
        all: &str,
        ends: impl Iterator<Item = u32>,
        missing: &[bool],
    ) {
        let Values::Text(texts) = &mut self.values else {
            unreachable!("texts among {:?}", self.values);
        };
        let before = texts.end_of_all();
        texts.all.push_str(all);
        texts.end_of_all();
        texts.ends.extend(ends.map(|end| before + end));
        match &mut self.valid {
            Some(valid) => valid.extend(missing.iter().map(|is_missing| !is_missing)),
            None => assert!(!missing.contains(&true), "{MISSING}"),
        }
    }

    /// Appends a row without a value.
    pub(super) fn push_null(&mut self) {
        let valid = self.valid.as_mut();
        valid.expect(MISSING).push(false);
        values!(&mut self.values, values => values.push(<_>::default()));
    }

    /// Returns the value of a row.
    pub(super) fn cell(&self, row: usize, kind: &Kind, zone: Zone) -> Cell {
        if self.is_null(row) {
            return Cell::Null;
        }
        match (&self.values, kind) {
            (Values::I64(times), Kind::Time(Clock::Seconds)) => Cell::Seconds(times[row].into()),
            (Values::I64(times), Kind::Time(Clock::Time)) => Cell::Time(times[row], zone),
            (Values::I64(values), _) => Cell::I64(values[row]),
            (Values::U64(values), _) => Cell::U64(values[row]),
            (Values::U16(values), _) => Cell::U64(values[row].into()),
            (Values::U8(values), _) => Cell::U64(values[row].into()),
            (Values::F64(values), Kind::Decimal) => Cell::Decimal(values[row]),
            (Values::F64(values), Kind::Whole) => Cell::Whole(values[row]),
            (Values::F64(values), _) => Cell::F64(values[row]),
            (Values::Bool(values), _) => Cell::Bool(values[row]),
            (Values::Text(texts), _) => Cell::Text(texts.get(row).to_owned().into()),
            (Values::Cells(cells), _) => cells[row].clone().in_zone(zone),
        }
    }

    /// Appends the text that flat formats have for the value that a row has.
    #[inline]
    pub(super) fn push_text_of(
        &self,
        row: usize,
        field: &Field,
        recent: &mut RecentSeconds,
        out: &mut String,
    ) {
        match (&self.values, &field.kind) {
            (Values::I64(values), Kind::I64) => push_integer(values[row], out),
            (Values::I64(times), Kind::Time(Clock::Time)) => {
                recent.push_rfc3339(times[row], field.zone, out);
            }
            (Values::U64(values), _) => push_integer(values[row], out),
            (Values::U16(values), _) => push_integer(values[row], out),
            (Values::U8(values), _) => push_integer(values[row], out),
            (Values::Text(texts), _) => texts.push_to(row, out),
            _ => self.cell(row, &field.kind, field.zone).write_text(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Windows end within letters of several bytes, and behind the last text.
        #[test]
        fn texts_are_appended_as_they_are(texts in prop::collection::vec("[aé☃𝄞]{0,20}", 0..20)) {
            let mut kept = Texts::default();
            kept.extend(&texts);
            for (row, text) in texts.iter().enumerate() {
                let mut out = String::from("é");
                kept.push_to(row, &mut out);
                prop_assert_eq!(out, format!("é{text}"));
            }
        }
    }
}
