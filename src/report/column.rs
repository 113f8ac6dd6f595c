//! The columns that rows of a type have: each is declared once, with its name, type, unit, a line
//! of documentation, its value, and how it looks in a table for people. All formats and the tables
//! of `docs/output.md` derive from these declarations.

use super::batch::{Array, Batch, Field, Schema, Value};
use super::cell::{Cell, Clock, Kind, Name};
#[cfg(feature = "parquet")]
use super::format::Tail;
use super::heading::Heading;
use super::number::{grouped, offset_width, percent, rounded, time};
use crate::zone::Zone;
use std::fmt;
use std::iter::once;
use std::slice::from_ref;
use std::sync::Arc;

/// Declares columns as a table, a line each: name, value and documentation (`kept = drops.kept(),
/// "packets written";`). A line that begins with `..` calls another method that adds columns. Further
/// calls for the column follow behind commas.
///
/// The first word is the method that adds a value: [`Columns::field`] or [`Columns::inlined`].
macro_rules! columns {
    ($add:ident $row:ident: $type:ty; $($lines:tt)*) => {
        columns! { $add $row in $crate::report::column::Columns::<$type>::default(); $($lines)* }
    };
    ($add:ident $row:ident in $columns:expr; $(
        $(..$method:ident($($given:expr),*))? $($name:ident = $value:expr)?
        $(, $doc:expr $(, $call:ident($($argument:expr),*))*)?;
    )*) => {
        $columns$(
            $(.$method($($given),*))?
            $(.$add(stringify!($name), |$row| $value))?
            $(.doc($doc)$(.$call($($argument),*))*)?
        )*
    };
}
pub(super) use columns;

/// Appends the values that rows have in a column.
pub(super) type Append<R> = Arc<dyn Fn(&[R], &mut Array) + Send + Sync>;

/// Returns the text that people read in a row.
type Text<R> = Box<dyn Fn(&R) -> String + Send + Sync>;

/// A column of rows of the type `R`.
pub(super) struct Column<R> {
    pub(super) name: Name,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) unit: &'static str,
    pub(super) doc: &'static str,
    /// Its names in Zeek's logs, in the Elastic Common Schema and in IPFIX, where it has any.
    pub(super) aliases: Option<[&'static str; 3]>,
    append: Append<R>,
    /// The columns of an object in flat formats.
    parts: Vec<Column<R>>,
    pub(super) heading: Option<Heading>,
    text: Option<Text<R>>,
    /// Time zone for text (time columns only).
    zone: Zone,
    /// Decimals of the second in tables, and in narrow ones (time columns only).
    decimals: (usize, usize),
}

/// The columns of rows of the type `R`, in order.
pub(super) struct Columns<R>(pub(super) Vec<Column<R>>);

impl<R> fmt::Debug for Columns<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|column| &column.name)).finish()
    }
}

impl<R> Default for Columns<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> Columns<R> {
    /// Adds a column. All columns of one type share their code, which costs a call for each value;
    /// where there are many rows, use [`Self::inlined`].
    pub(super) fn field<T: Value + 'static>(self, name: impl Into<Name>, value: fn(&R) -> T) -> Self
    where
        R: 'static,
    {
        self.inlined(name, value)
    }

    /// Adds the columns that say how a run ended: whether it was interrupted, and whether it is
    /// complete.
    pub(super) fn ending(
        self,
        ended: impl Fn(&R) -> [bool; 2] + Copy + Send + Sync + 'static,
    ) -> Self {
        self.inlined("interrupted", move |row| ended(row)[0])
            .doc("a signal ended the run before everything was read; the result covers what was read until then")
            .inlined("complete", move |row| ended(row)[1])
            .doc("all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue` lacks")
    }

    /// Adds a column with its own code, or with a closure that captures something.
    pub(super) fn inlined<T: Value + 'static>(
        self,
        name: impl Into<Name>,
        value: impl Fn(&R) -> T + Send + Sync + 'static,
    ) -> Self {
        self.column(name, T::kind(), T::NULLABLE, append(value))
    }

    /// Adds a column of texts that `write` writes; a text is missing if it returns false.
    pub(super) fn written(
        self,
        name: impl Into<Name>,
        kind: Kind,
        nullable: bool,
        write: impl Fn(&R, &mut String) -> bool + Send + Sync + 'static,
    ) -> Self {
        let append = move |rows: &[R], array: &mut Array| {
            for row in rows {
                array.write_text(|text| write(row, text));
            }
        };
        self.column(name, kind, nullable, Arc::new(append))
    }

    /// Adds a column of any kind.
    pub(super) fn column(
        mut self,
        name: impl Into<Name>,
        kind: Kind,
        nullable: bool,
        append: Append<R>,
    ) -> Self {
        let name = name.into();
        let unit = match name.rsplit_once('_') {
            _ if matches!(kind, Kind::Time(_) | Kind::Bool) => "",
            Some((_, "bytes")) => "bytes",
            Some((_, "ns")) => "ns",
            Some((_, "fpr")) => "share",
            _ => "",
        };
        self.0.push(Column { unit, ..Column::new(name, kind, nullable, append) });
        self
    }

    /// Adds an object with its own columns; null where there is none.
    pub(super) fn object<S: 'static>(
        self,
        name: &'static str,
        columns: Columns<S>,
        value: impl Fn(&R) -> Option<S> + Clone + Send + Sync + 'static,
    ) -> Self {
        let parts = Self::parts(Some(name), &columns, value.clone());
        let cell = move |row: &R| value(row).map(|value| columns.object_of(&value));
        let mut this = self.column(name, Kind::Object, true, append_cells(cell));
        this.last().parts = parts;
        this
    }

    /// Adds a list of objects with their own columns.
    pub(super) fn objects<S: 'static>(
        self,
        name: &'static str,
        columns: Columns<S>,
        values: impl Fn(&R) -> Vec<S> + Send + Sync + 'static,
    ) -> Self {
        let append = append_cells(move |row| Some(columns.list_of(&values(row))));
        self.column(name, Kind::List(Box::new(Kind::Object)), false, append)
    }

    /// Adds the columns of a part of the row, which may be missing, with a prefix to their names.
    pub(super) fn part<S: 'static>(
        mut self,
        prefix: Option<&str>,
        columns: &Columns<S>,
        part: impl Fn(&R) -> Option<S> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.0.extend(Self::parts(prefix, columns, part));
        self
    }

    fn parts<S: 'static>(
        prefix: Option<&str>,
        columns: &Columns<S>,
        part: impl Fn(&R) -> Option<S> + Clone + Send + Sync + 'static,
    ) -> Vec<Column<R>> {
        let parts = columns.0.iter().map(|column| {
            let name = match prefix {
                Some(prefix) => format!("{prefix}_{}", column.name).into(),
                None => column.name.clone(),
            };
            let (part, of_part) = (part.clone(), Arc::clone(&column.append));
            let append = move |rows: &[R], array: &mut Array| {
                for row in rows {
                    match part(row) {
                        Some(part) => of_part(from_ref(&part), array),
                        None => array.push_null(),
                    }
                }
            };
            column.with(name, true, Arc::new(append))
        });
        parts.collect()
    }

    /// Adds the columns of what a row refers to.
    pub(super) fn borrowed<S: 'static>(
        mut self,
        columns: Columns<S>,
        part: impl Fn(&R) -> &S + Copy + Send + Sync + 'static,
    ) -> Self {
        let columns = columns.0.into_iter().map(|column| {
            let of_part = Arc::clone(&column.append);
            let append = move |rows: &[R], array: &mut Array| {
                for row in rows {
                    of_part(from_ref(part(row)), array);
                }
            };
            column.with(column.name.clone(), column.nullable, Arc::new(append))
        });
        self.0.extend(columns);
        self
    }

    /// Returns the columns of flat formats: objects become their columns, lists of objects go.
    pub(super) fn flat(self) -> Self {
        let is_list = |kind: &Kind| matches!(kind, Kind::List(of) if **of == Kind::Object);
        let columns = self.0.into_iter().filter(|column| !is_list(&column.kind));
        let columns = columns.flat_map(|mut column| match column.parts.len() {
            0 => vec![column],
            _ => std::mem::take(&mut column.parts),
        });
        Self(columns.collect())
    }

    fn last(&mut self) -> &mut Column<R> {
        self.0.last_mut().expect("a column was added")
    }

    /// Documents the last column.
    pub(super) fn doc(mut self, doc: &'static str) -> Self {
        self.last().doc = doc;
        self
    }

    /// Sets the unit of the last column, where its name does not end in it.
    pub(super) fn unit(mut self, unit: &'static str) -> Self {
        self.last().unit = unit;
        self
    }

    /// Sets the names of the last column in Zeek's logs, the Elastic Common Schema and IPFIX.
    pub(super) fn aliases(mut self, names: [&'static str; 3]) -> Self {
        self.last().aliases = Some(names);
        self
    }

    /// Shows the last column in tables for people.
    pub(super) fn heading(mut self, heading: Heading) -> Self {
        self.last().heading = Some(heading);
        self
    }

    /// Sets the text that tables for people have in the last column.
    pub(super) fn text(mut self, text: impl Fn(&R) -> String + Send + Sync + 'static) -> Self {
        self.last().text = Some(Box::new(text));
        self
    }

    /// Sets the decimals of the second that tables, and narrow tables, have in the last column.
    pub(super) fn decimals(mut self, wide: usize, narrow: usize) -> Self {
        self.last().decimals = (wide, narrow);
        self
    }

    /// Writes times in this zone.
    pub(super) fn in_zone(mut self, zone: Zone) -> Self {
        for column in &mut self.0 {
            column.zone = zone;
            if matches!(column.kind, Kind::Time(_)) {
                let heading = column.heading.take();
                column.heading = heading.map(|heading| heading.wider(offset_width(zone)));
            }
        }
        self
    }

    /// Renames columns to their aliases in Zeek's logs (0) or the Elastic Common Schema (1).
    pub(super) fn renamed(mut self, whose: usize) -> Self {
        for column in &mut self.0 {
            let name = column.aliases.map_or("", |names| names[whose]);
            if !name.is_empty() {
                column.name = name.into();
            }
        }
        self
    }

    /// Replaces the type and the values of a column, if there is one of this name.
    pub(super) fn replaced<T: Value>(mut self, name: &str, append: Append<R>) -> Self {
        if let Some(column) = self.0.iter_mut().find(|column| column.name == name) {
            column.kind = T::kind();
            column.append = append;
        }
        self
    }

    /// Keeps the columns whose names fulfil a condition.
    pub(super) fn only(mut self, is_kept: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|column| is_kept(&column.name));
        self
    }

    /// Removes a column.
    pub(super) fn without(self, name: &str) -> Self {
        self.only(|other| other != name)
    }

    /// Documents columns as those of the same names, where they have no documentation.
    pub(super) fn documented_as<S>(mut self, known: &Columns<S>) -> Self {
        for column in self.0.iter_mut().filter(|column| column.doc.is_empty()) {
            if let Some(same) = known.0.iter().find(|known| known.name == column.name) {
                (column.doc, column.aliases) = (same.doc, same.aliases);
            }
        }
        self
    }

    /// Hides a column from people.
    pub(super) fn hide(&mut self, name: &str) {
        for column in self.0.iter_mut().filter(|column| column.name == name) {
            column.heading = None;
        }
    }

    /// Returns the columns with these names, which spaces separate, in their order.
    pub(super) fn select(mut self, names: &str) -> Self {
        let chosen = names.split(' ').map(|name| {
            let place = self.0.iter().position(|column| column.name == name);
            self.0.remove(place.expect("names are those of columns"))
        });
        Self(chosen.collect())
    }

    /// Returns the fields of every format.
    pub(super) fn schema(&self) -> Schema {
        let columns = self.0.iter().enumerate();
        let fields = columns.flat_map(|(array, column)| {
            column.fields().into_iter().map(move |(name, kind)| Field {
                name,
                kind,
                nullable: column.nullable,
                zone: column.zone,
                array,
            })
        });
        fields.collect()
    }

    /// Appends rows to a batch of these columns.
    pub(super) fn append(&self, rows: &[R], batch: &mut Batch) {
        for (column, array) in self.0.iter().zip(&mut batch.arrays) {
            (column.append)(rows, array);
        }
        batch.rows = batch.arrays.first().map_or(0, Array::len);
    }

    /// Returns a batch of rows.
    pub(super) fn batch_of(&self, rows: &[R]) -> Batch {
        let mut batch = Batch::new(&self.schema());
        self.append(rows, &mut batch);
        batch
    }

    /// Returns a row as an object.
    pub(super) fn object_of(&self, row: &R) -> Cell {
        self.batch_of(from_ref(row)).object(0)
    }

    /// Returns a row as the sections of a document.
    #[cfg(feature = "parquet")]
    pub(super) fn sections_of(&self, row: &R) -> Tail {
        let batch = self.batch_of(from_ref(row));
        let sections = batch.columns().map(|(field, array)| {
            let Name::Borrowed(name) = field.name else {
                unreachable!("sections have constant names, unlike {}", field.name);
            };
            (name, array.cell(0, &field.kind, field.zone))
        });
        sections.collect()
    }

    /// Returns rows as a list of objects.
    pub(super) fn list_of(&self, rows: &[R]) -> Cell {
        let batch = self.batch_of(rows);
        Cell::List((0..rows.len()).map(|row| batch.object(row)).collect(), "")
    }

    /// Returns the whole number that a row has in a column.
    #[cfg(feature = "parquet")]
    pub(super) fn number(&self, name: &str, row: &R) -> u64 {
        let column = self.0.iter().find(|column| column.name == name);
        match column.map(|column| column.cell(row)) {
            Some(Cell::U64(number)) => number,
            cell => unreachable!("{name} is a whole number, not {cell:?}"),
        }
    }
}

/// Returns what appends this value of each row.
pub(super) fn append<R, T: Value>(value: impl Fn(&R) -> T + Send + Sync + 'static) -> Append<R> {
    Arc::new(move |rows: &[R], array: &mut Array| {
        T::append_all(rows.iter().map(|row| Some(value(row))), array);
    })
}

/// Returns what appends this object or list of each row. All such columns share the loop over values.
fn append_cells<R>(cell: impl Fn(&R) -> Option<Cell> + Send + Sync + 'static) -> Append<R> {
    Arc::new(move |rows: &[R], array: &mut Array| {
        for row in rows {
            Cell::append_all(once(cell(row)), array);
        }
    })
}

impl<R> Column<R> {
    /// Returns the names and types of its fields: a time has two, `start_ns` and `start`.
    pub(super) fn fields(&self) -> Vec<(Name, Kind)> {
        match self.kind {
            Kind::Time(Clock::Both) => {
                let text = self.name.trim_end_matches("_ns").to_owned().into();
                vec![(self.name.clone(), Kind::I64), (text, Kind::Time(Clock::Time))]
            }
            _ => vec![(self.name.clone(), self.kind.clone())],
        }
    }

    fn new(name: Name, kind: Kind, nullable: bool, append: Append<R>) -> Self {
        Self {
            name,
            kind,
            nullable,
            unit: "",
            doc: "",
            aliases: None,
            append,
            parts: Vec::new(),
            heading: None,
            text: None,
            zone: Zone::UTC,
            decimals: (9, 9),
        }
    }

    /// Returns the column for rows of another type.
    fn with<S>(&self, name: Name, nullable: bool, append: Append<S>) -> Column<S> {
        Column {
            unit: self.unit,
            doc: self.doc,
            zone: self.zone,
            decimals: self.decimals,
            heading: self.heading.clone(),
            ..Column::new(name, self.kind.clone(), nullable, append)
        }
    }

    fn cell(&self, row: &R) -> Cell {
        let mut array = Array::new(&self.kind, self.nullable);
        (self.append)(from_ref(row), &mut array);
        array.cell(0, &self.kind, self.zone)
    }

    /// Returns what people read; `narrow` where there is little room.
    pub(super) fn for_people(&self, row: &R, narrow: bool) -> String {
        if let Some(text) = &self.text {
            return text(row);
        }
        match self.cell(row) {
            Cell::Null => "–".to_owned(),
            Cell::I64(ns) | Cell::Time(ns, _) if matches!(self.kind, Kind::Time(_)) => {
                let (wide, few) = self.decimals;
                time(ns, if narrow { few } else { wide }, self.zone)
            }
            Cell::U64(number) => grouped(number),
            Cell::F64(share) if self.unit == "share" => percent(share),
            Cell::F64(number) => rounded(number),
            cell => cell.to_text(),
        }
    }
}
