//! Columns of results: each with its name, type, unit and a line of documentation, its cell taken
//! from a row, and how people see it. All formats are written from such lists, and so are the
//! tables of `docs/output.md`.

use super::cell::{Cell, IntoCell, Kind, Name, Time, names_in_text, push_field};
use super::heading::Heading;
use super::number::{grouped, offset_width, percent, time};
use super::values::{ColumnValue, RowBatch, Values};
use crate::export::Texts;
use crate::zone::Zone;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// What people read in a row.
type Text<R> = Box<dyn Fn(&R) -> String + Send + Sync>;

/// The cells of a row, one a column.
pub(super) type Cells = Vec<Cell>;

/// A cell that is a whole number.
pub(super) enum Integer {
    /// The number.
    Number(i64),
    /// The row has none.
    Missing,
    /// Cells of the column are something else.
    Other,
}

/// Takes the cell of a row.
trait Take<R: ?Sized>: Send + Sync {
    fn cell(&self, row: &R) -> Cell;

    /// Appends the cell as text without memory of its own, and says whether there is one; none if
    /// it cannot do so.
    fn push_text(&self, _row: &R, _text: &mut String) -> Option<bool> {
        None
    }

    /// The whole number of a row, without a cell.
    fn whole(&self, _row: &R) -> Integer {
        Integer::Other
    }
}

impl<R: ?Sized, F: Fn(&R) -> Cell + Send + Sync> Take<R> for F {
    fn cell(&self, row: &R) -> Cell {
        self(row)
    }
}

/// A value of a type that cells are made of.
struct OfValue<T, F>(F, PhantomData<fn() -> T>);

impl<R: ?Sized, T: IntoCell, F: Fn(&R) -> T + Send + Sync> Take<R> for OfValue<T, F> {
    fn cell(&self, row: &R) -> Cell {
        (self.0)(row).cell()
    }

    fn push_text(&self, row: &R, text: &mut String) -> Option<bool> {
        Some((self.0)(row).push_text(text))
    }

    fn whole(&self, row: &R) -> Integer {
        if !matches!(T::kind(), Kind::I64 | Kind::U64 | Kind::Time(_)) {
            return Integer::Other;
        }
        (self.0)(row).whole().map_or(Integer::Missing, Integer::Number)
    }
}

/// A text that is written where it is wanted.
struct Written<F>(F);

impl<R: ?Sized, F: Fn(&R, &mut String) -> bool + Send + Sync> Take<R> for Written<F> {
    fn cell(&self, row: &R) -> Cell {
        let mut text = String::new();
        if (self.0)(row, &mut text) { Cell::Text(text.into()) } else { Cell::Null }
    }

    fn push_text(&self, row: &R, text: &mut String) -> Option<bool> {
        Some((self.0)(row, text))
    }
}

/// The values of all rows of a batch.
type Bulk<R> = Arc<dyn for<'b> Fn(&'b R) -> Values<'b> + Send + Sync>;

/// A column of rows of the type `R`.
pub(super) struct Column<R: ?Sized> {
    pub(super) name: Name,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) unit: &'static str,
    pub(super) doc: &'static str,
    /// Its names in Zeek's logs, in the Elastic Common Schema and in IPFIX, where it has any.
    pub(super) elsewhere: Option<[&'static str; 3]>,
    cell: Arc<dyn Take<R>>,
    /// If rows are batches, all values at once.
    bulk: Option<Bulk<R>>,
    /// The columns of the object in it, as they are in flat tables.
    parts: Vec<Column<R>>,
    pub(super) heading: Option<Heading>,
    text: Option<Text<R>>,
    /// Of a time: the zone in which texts show it.
    pub(super) zone: Zone,
    /// Of a time: decimals of the second that people read, and those where there is little room.
    decimals: (usize, usize),
}

impl<R: ?Sized> Column<R> {
    pub(super) fn cell(&self, row: &R) -> Cell {
        self.cell.cell(row).in_zone(self.zone)
    }

    /// Appends the cell as text, if the column does so itself; whether there is one.
    pub(super) fn push_text(&self, row: &R, text: &mut String) -> Option<bool> {
        self.cell.push_text(row, text)
    }

    /// The whole number of a row.
    pub(super) fn whole(&self, row: &R) -> Integer {
        self.cell.whole(row)
    }

    /// All values of a batch, if the column has them.
    #[cfg(any(feature = "parquet", feature = "arrow"))]
    pub(super) fn values<'b>(&self, batch: &'b R) -> Option<Values<'b>> {
        self.bulk.as_ref().map(|bulk| bulk(batch))
    }
}

/// The columns of a result, in order.
pub(super) struct Columns<R: ?Sized>(pub(super) Vec<Column<R>>);

impl<R: ?Sized> fmt::Debug for Columns<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|column| &column.name)).finish()
    }
}

impl<R: ?Sized> Default for Columns<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: ?Sized> Columns<R> {
    /// Appends a column; its type says what it holds. All columns of one type share their code,
    /// which costs a call for each value; where there are many rows, use [`Self::inlined`].
    pub(super) fn field<T: IntoCell + 'static>(
        self,
        name: impl Into<Name>,
        value: fn(&R) -> T,
    ) -> Self
    where
        R: 'static,
    {
        self.inlined(name, value)
    }

    /// Appends a column whose value is taken by code of its own, or by a closure that knows more
    /// than the row.
    pub(super) fn inlined<T: IntoCell + 'static>(
        self,
        name: impl Into<Name>,
        value: impl Fn(&R) -> T + Send + Sync + 'static,
    ) -> Self {
        let cell = Arc::new(OfValue(value, PhantomData));
        self.column(name.into(), T::kind(), T::NULLABLE, cell)
    }

    /// Appends a column of texts that are written where they are wanted; those for which `write`
    /// says false are missing.
    pub(super) fn written(
        self,
        name: impl Into<Name>,
        nullable: bool,
        write: impl Fn(&R, &mut String) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.column(name.into(), Kind::Text, nullable, Arc::new(Written(write)))
    }

    /// Appends a column of any kind.
    fn column(mut self, name: Name, kind: Kind, nullable: bool, cell: Arc<dyn Take<R>>) -> Self {
        let unit = match name.rsplit_once('_') {
            _ if matches!(kind, Kind::Time(_) | Kind::Bool) => "",
            Some((_, "bytes")) => "bytes",
            Some((_, "ns")) => "ns",
            Some((_, "fpr")) => "share",
            _ => "",
        };
        self.0.push(Column {
            name,
            kind,
            nullable,
            unit,
            doc: "",
            elsewhere: None,
            cell,
            bulk: None,
            parts: Vec::new(),
            heading: None,
            text: None,
            zone: Zone::UTC,
            decimals: (9, 9),
        });
        self
    }

    /// Appends an object with columns of its own; null where there is none.
    pub(super) fn object<S: 'static>(
        self,
        name: &'static str,
        columns: Columns<S>,
        value: impl Fn(&R) -> Option<S> + Clone + Send + Sync + 'static,
    ) -> Self {
        let kind = Kind::Object(columns.kinds());
        let shared = Arc::new(columns);
        let (of_object, own) = (Arc::clone(&shared), value.clone());
        let cell = move |row: &R| own(row).map_or(Cell::Null, |value| of_object.object_of(&value));
        let mut this = self.column(name.into(), kind, true, Arc::new(cell));
        this.last().parts = Self::parts(Some(name), &shared, value);
        this
    }

    /// Appends a list of objects with columns of their own.
    pub(super) fn objects<S: 'static>(
        self,
        name: &'static str,
        columns: Columns<S>,
        values: impl Fn(&R) -> Vec<S> + Send + Sync + 'static,
    ) -> Self {
        let kind = Kind::List(Box::new(Kind::Object(columns.kinds())));
        let cell = move |row: &R| columns.list_of(&values(row));
        self.column(name.into(), kind, false, Arc::new(cell))
    }

    /// Appends the columns of a part of the row, which may not be there, with a prefix to their
    /// names.
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
        let parts = columns.0.iter().fold(Self::default(), |parts, column| {
            let name = match prefix {
                Some(prefix) => format!("{prefix}_{}", column.name).into(),
                None => column.name.clone(),
            };
            let (part, cell) = (part.clone(), Arc::clone(&column.cell));
            let cell = move |row: &R| part(row).map_or(Cell::Null, |part| cell.cell(&part));
            let parts = parts.column(name, column.kind.clone(), true, Arc::new(cell));
            let parts = parts.doc(column.doc).unit(column.unit);
            match &column.heading {
                Some(heading) => parts.heading(heading.clone()),
                None => parts,
            }
        });
        parts.0
    }

    /// Appends the columns of what a row refers to.
    pub(super) fn borrowed<S: 'static>(
        mut self,
        columns: Columns<S>,
        part: impl Fn(&R) -> &S + Copy + Send + Sync + 'static,
    ) -> Self {
        for column in columns.0 {
            let cell = column.cell;
            self = self
                .column(
                    column.name,
                    column.kind,
                    column.nullable,
                    Arc::new(move |row: &R| cell.cell(part(row))),
                )
                .doc(column.doc)
                .unit(column.unit);
        }
        self
    }

    /// The columns of a flat table: those of objects in the place of these, and no lists of
    /// objects.
    pub(super) fn flat(self) -> Self {
        let of_objects = |kind: &Kind| match kind {
            Kind::List(kind) => matches!(**kind, Kind::Object(_)),
            _ => false,
        };
        let columns = self.0.into_iter().filter(|column| !of_objects(&column.kind));
        let columns = columns.flat_map(|mut column| match column.parts.len() {
            0 => vec![column],
            _ => std::mem::take(&mut column.parts),
        });
        Self(columns.collect())
    }

    fn last(&mut self) -> &mut Column<R> {
        self.0.last_mut().expect("a column was appended")
    }

    /// What the last column means.
    pub(super) fn doc(mut self, doc: &'static str) -> Self {
        self.last().doc = doc;
        self
    }

    /// The unit of the last column, where its name does not end in it.
    pub(super) fn unit(mut self, unit: &'static str) -> Self {
        self.last().unit = unit;
        self
    }

    /// What others call the last column: Zeek, the Elastic Common Schema, IPFIX.
    pub(super) fn elsewhere(mut self, names: [&'static str; 3]) -> Self {
        self.last().elsewhere = Some(names);
        self
    }

    /// People see the last column.
    pub(super) fn heading(mut self, heading: Heading) -> Self {
        self.last().heading = Some(heading);
        self
    }

    /// How they read its cells, where that is not as every cell of its kind.
    pub(super) fn text(mut self, text: impl Fn(&R) -> String + Send + Sync + 'static) -> Self {
        self.last().text = Some(Box::new(text));
        self
    }

    /// Of a time: decimals of the second that people read, and those where there is little room.
    pub(super) fn decimals(mut self, wide: usize, tight: usize) -> Self {
        self.last().decimals = (wide, tight);
        self
    }

    /// With the texts of times in this zone.
    pub(super) fn in_zone(mut self, zone: Zone) -> Self {
        for column in &mut self.0 {
            column.zone = zone;
            let heading = column.heading.take();
            column.heading = heading.map(|heading| match column.kind {
                Kind::Time(_) => heading.wider(offset_width(zone)),
                _ => heading,
            });
        }
        self
    }

    /// With the names of others: of Zeek (0) or the Elastic Common Schema (1), where these have
    /// any.
    pub(super) fn renamed(mut self, whose: usize) -> Self {
        for column in &mut self.0 {
            let name = column.elsewhere.map_or("", |names| names[whose]);
            if !name.is_empty() {
                column.name = name.into();
            }
        }
        self
    }

    /// With another type of a column.
    pub(super) fn retyped(
        mut self,
        name: &str,
        kind: Kind,
        cell: impl Fn(&R) -> Cell + Send + Sync + 'static,
    ) -> Self {
        let column = self.0.iter_mut().find(|column| column.name == name);
        if let Some(column) = column {
            // A time stays the same number, however texts show it.
            if !matches!((&column.kind, &kind), (Kind::Time(_), Kind::Time(_))) {
                column.bulk = None;
            }
            column.kind = kind;
            column.cell = Arc::new(cell);
        }
        self
    }

    /// Without a column.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|column| column.name != name);
        self
    }

    /// People do not see a column.
    pub(super) fn hide(&mut self, name: &str) {
        for column in self.0.iter_mut().filter(|column| column.name == name) {
            column.heading = None;
        }
    }

    /// The columns with these names, which spaces separate, in their order.
    pub(super) fn select(mut self, names: &str) -> Self {
        let chosen = names.split(' ').map(|name| {
            let place = self.0.iter().position(|column| column.name == name);
            self.0.remove(place.expect("names are those of columns"))
        });
        Self(chosen.collect())
    }

    /// Names with what they stand for, as they are in an object.
    pub(super) fn kinds(&self) -> Vec<(Name, Kind)> {
        let columns = self.0.iter();
        columns.map(|column| (column.name.clone(), column.kind.clone())).collect()
    }

    /// The names in formats of text: a time has two.
    pub(super) fn text_names(&self) -> Vec<Name> {
        let columns = self.0.iter();
        columns.flat_map(|column| names_in_text(&column.name, &column.kind)).collect()
    }

    /// A row as an object for formats of text.
    pub(super) fn object_of(&self, row: &R) -> Cell {
        let mut fields = Vec::with_capacity(self.0.len() + 2);
        for column in &self.0 {
            push_field(&mut fields, &column.name, &column.kind, column.cell(row));
        }
        let zone = self.0.first().map_or(Zone::UTC, |column| column.zone);
        Cell::Object(fields).in_zone(zone)
    }

    /// A whole number of a row.
    #[cfg(feature = "parquet")]
    pub(super) fn number(&self, name: &str, row: &R) -> u64 {
        let column = self.0.iter().find(|column| column.name == name);
        match column.map(|column| column.cell(row)) {
            Some(Cell::U64(number)) => number,
            cell => unreachable!("{name} is a whole number, not {cell:?}"),
        }
    }

    /// The cells of a row.
    pub(super) fn cells(&self, row: &R) -> Cells {
        self.0.iter().map(|column| column.cell(row)).collect()
    }

    /// The same columns of rows that are cells already: what is written of few rows needs no code
    /// for their type.
    pub(super) fn of_cells(&self) -> Columns<Cells> {
        let columns = self.0.iter().enumerate();
        columns.fold(Columns::default(), |all, (number, column)| {
            let cell = Arc::new(move |row: &Cells| row[number].clone());
            let (name, kind) = (column.name.clone(), column.kind.clone());
            let all = all.column(name, kind, column.nullable, cell);
            all.doc(column.doc).unit(column.unit)
        })
    }

    /// Rows as a list of objects.
    pub(super) fn list_of<'a>(&self, rows: impl IntoIterator<Item = &'a R>) -> Cell
    where
        R: 'a,
    {
        let rows = rows.into_iter();
        Cell::List(rows.map(|row| self.object_of(row)).collect(), "")
    }
}

impl<R: RowBatch> Columns<R> {
    /// Appends a column of batches.
    pub(super) fn values<T: ColumnValue + 'static>(
        self,
        name: &'static str,
        column: impl for<'b> Fn(&'b R) -> &'b Vec<T> + Copy + Send + Sync + 'static,
    ) -> Self {
        self.inlined(name, move |row| column(row)[row.at()])
            .bulk(move |batch| T::values(column(batch)))
    }

    /// Appends a column of times in nanoseconds since the epoch.
    pub(super) fn times(
        self,
        name: &'static str,
        column: impl for<'b> Fn(&'b R) -> &'b Vec<i64> + Copy + Send + Sync + 'static,
    ) -> Self {
        self.inlined(name, move |row| Time(column(row)[row.at()]))
            .bulk(move |batch| Values::Time(column(batch)))
    }

    /// Appends a column of texts, none of which is missing.
    pub(super) fn texts(
        self,
        name: &'static str,
        column: impl for<'b> Fn(&'b R) -> &'b Texts + Copy + Send + Sync + 'static,
    ) -> Self {
        let text = move |row: &R| column(row).get(row.at()).unwrap_or_default().to_owned();
        self.inlined(name, text).bulk(move |batch| Values::Text(column(batch)))
    }

    /// Appends a column of texts, some of which may be missing.
    pub(super) fn optional_texts(
        self,
        name: &'static str,
        column: impl for<'b> Fn(&'b R) -> &'b Texts + Copy + Send + Sync + 'static,
    ) -> Self {
        let text = move |row: &R| column(row).get(row.at()).map(str::to_owned);
        self.inlined(name, text).bulk(move |batch| Values::Text(column(batch)))
    }

    fn bulk(mut self, bulk: impl for<'b> Fn(&'b R) -> Values<'b> + Send + Sync + 'static) -> Self {
        self.last().bulk = Some(Arc::new(bulk));
        self
    }
}

impl<R: ?Sized> Column<R> {
    /// What people read; `tight` where there is little room.
    pub(super) fn for_people(&self, row: &R, tight: bool) -> String {
        if let Some(text) = &self.text {
            return text(row);
        }
        match self.cell(row) {
            Cell::Null => "–".to_owned(),
            Cell::Time(ns, _) => {
                let (wide, narrow) = self.decimals;
                time(ns, if tight { narrow } else { wide }, self.zone)
            }
            Cell::U64(number) => grouped(number),
            Cell::F64(share) if self.unit == "share" => percent(share),
            Cell::F64(number) => grouped(number.round() as u64),
            cell => cell.in_text(),
        }
    }
}
