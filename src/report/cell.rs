//! The values of results and their types, in all formats.

use crate::zone::Zone;
use std::borrow::Cow;

/// A name: our own, or made of those of attributes.
pub(super) type Name = Cow<'static, str>;

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A time in nanoseconds since the epoch.
    Time(Clock),
    /// A time or a duration in seconds, exact.
    Seconds,
    I64,
    U64,
    F64,
    /// A number that CSV has always had without exponent, and without point if it is whole.
    Decimal,
    /// A whole number that may be too large for any integer.
    Whole,
    Bool,
    Text,
    /// In flat tables joined to a text.
    List(Box<Kind>),
    Object(Vec<(Name, Kind)>),
    /// Packets by reason. JSON has it as an object, JSON lines as a list: types must not depend on
    /// names.
    Tally,
}

/// How a time is written in formats of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    /// As a whole number, beside a column with the time in RFC 3339.
    Nanoseconds,
    /// In seconds.
    Seconds,
    /// In RFC 3339, as the time of this zone.
    Rfc3339(Zone),
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Time(i64, Clock),
    Seconds(i128),
    I64(i64),
    U64(u64),
    F64(f64),
    Decimal(f64),
    Whole(f64),
    Bool(bool),
    Text(Name),
    /// The values, and what stands between them in a flat table.
    List(Vec<Cell>, &'static str),
    Object(Vec<(Name, Cell)>),
    Tally(Vec<(String, u64)>),
}

/// A type that a cell is made of: it says what its column holds.
pub(super) trait IntoCell {
    const NULLABLE: bool = false;
    fn kind() -> Kind;
    fn cell(self) -> Cell;

    /// The number of which the cell is, in 64 bits, if its kind is a whole number; none if it is
    /// null.
    fn whole(self) -> Option<i64>
    where
        Self: Sized,
    {
        match self.cell() {
            Cell::I64(number) | Cell::Time(number, _) => Some(number),
            Cell::U64(number) => Some(number.cast_signed()),
            _ => None,
        }
    }

    /// Appends it as a text by itself; false if it is null.
    fn push_text(self, text: &mut String) -> bool
    where
        Self: Sized,
    {
        let cell = self.cell();
        cell.write_text(text);
        cell != Cell::Null
    }
}

macro_rules! cells {
    ($($own:ty => $kind:expr, $cell:expr $(, $push:expr)?;)*) => {$(
        impl IntoCell for $own {
            fn kind() -> Kind { $kind }
            fn cell(self) -> Cell { $cell(self) }
            $(fn push_text(self, text: &mut String) -> bool {
                $push(self, text);
                true
            })?
        }
    )*};
}

/// Appends a whole number.
pub(super) fn push_whole(number: impl itoa::Integer, text: &mut String) {
    text.push_str(itoa::Buffer::new().format(number));
}

/// A time in nanoseconds since the epoch.
pub(super) struct Time(pub(super) i64);
/// A number for [`Kind::Decimal`].
pub(super) struct Decimal(pub(super) f64);
/// A number for [`Kind::Whole`].
pub(super) struct Whole(pub(super) f64);
/// Packets by reason.
pub(super) struct Tally(pub(super) Vec<(String, u64)>);
/// Values with what stands between them in a flat table.
pub(super) struct Joined<T>(pub(super) Vec<T>, pub(super) &'static str);

cells! {
    Time => Kind::Time(Clock::Nanoseconds), |time: Self| Cell::Time(time.0, Clock::Nanoseconds);
    i64 => Kind::I64, Cell::I64, push_whole;
    u64 => Kind::U64, Cell::U64, push_whole;
    u32 => Kind::U64, |number| Cell::U64(u64::from(number)), push_whole;
    u16 => Kind::U64, |number| Cell::U64(u64::from(number)), push_whole;
    u8 => Kind::U64, |number| Cell::U64(u64::from(number)), push_whole;
    usize => Kind::U64, |number| Cell::U64(number as u64), push_whole;
    f64 => Kind::F64, Cell::F64;
    Decimal => Kind::Decimal, |number: Self| Cell::Decimal(number.0);
    Whole => Kind::Whole, |number: Self| Cell::Whole(number.0);
    bool => Kind::Bool, Cell::Bool;
    &'static str => Kind::Text, |text| Cell::Text(Cow::Borrowed(text)), |own, text: &mut String| text.push_str(own);
    String => Kind::Text, |text| Cell::Text(Cow::Owned(text)), |own: String, text: &mut String| text.push_str(&own);
    Tally => Kind::Tally, |tally: Self| Cell::Tally(tally.0);
}

impl<T: IntoCell> IntoCell for Option<T> {
    const NULLABLE: bool = true;

    fn kind() -> Kind {
        T::kind()
    }

    fn cell(self) -> Cell {
        self.map_or(Cell::Null, T::cell)
    }

    fn whole(self) -> Option<i64> {
        self.and_then(T::whole)
    }

    fn push_text(self, text: &mut String) -> bool {
        self.is_some_and(|value| value.push_text(text))
    }
}

impl<T: IntoCell> IntoCell for Joined<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn cell(self) -> Cell {
        Cell::List(self.0.into_iter().map(T::cell).collect(), self.1)
    }
}

impl<T: IntoCell> IntoCell for Vec<T> {
    fn kind() -> Kind {
        Joined::<T>::kind()
    }

    fn cell(self) -> Cell {
        Joined(self, ",").cell()
    }
}

/// The names of a column in formats of text: a time in nanoseconds has a second one, for RFC 3339.
pub(super) fn names_in_text(name: &Name, kind: &Kind) -> Vec<Name> {
    let mut names = vec![name.clone()];
    if *kind == Kind::Time(Clock::Nanoseconds) {
        names.push(twin(name));
    }
    names
}

/// `start` beside `start_ns`.
fn twin(name: &Name) -> Name {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.trim_end_matches("_ns")),
        Cow::Owned(name) => Cow::Owned(name.trim_end_matches("_ns").to_owned()),
    }
}

/// The cell that a time in nanoseconds has beside it, in this zone.
pub(super) const fn twin_of(kind: &Kind, cell: &Cell, zone: Zone) -> Option<Cell> {
    match (kind, cell) {
        (Kind::Time(Clock::Nanoseconds), Cell::Time(ns, _)) => {
            Some(Cell::Time(*ns, Clock::Rfc3339(zone)))
        }
        (Kind::Time(Clock::Nanoseconds), _) => Some(Cell::Null),
        _ => None,
    }
}

/// Appends a field of an object, and its twin if it is a time.
pub(super) fn push_field(fields: &mut Vec<(Name, Cell)>, name: &Name, kind: &Kind, cell: Cell) {
    let second = twin_of(kind, &cell, Zone::UTC);
    fields.push((name.clone(), cell));
    if let Some(second) = second {
        fields.push((twin(name), second));
    }
}

impl Cell {
    /// With the texts of times in this zone.
    pub(super) fn in_zone(self, zone: Zone) -> Self {
        if zone.is_utc() {
            return self;
        }
        match self {
            Self::Time(ns, Clock::Rfc3339(_)) => Self::Time(ns, Clock::Rfc3339(zone)),
            Self::List(cells, between) => {
                let cells = cells.into_iter().map(|cell| cell.in_zone(zone));
                Self::List(cells.collect(), between)
            }
            Self::Object(fields) => {
                let fields = fields.into_iter();
                Self::Object(fields.map(|(name, cell)| (name, cell.in_zone(zone))).collect())
            }
            cell => cell,
        }
    }
}

impl Kind {
    /// A value that says the type and nothing else: programs that look at the first lines of a file
    /// only learn the types of all fields from it.
    pub(super) fn empty(&self) -> Cell {
        match self {
            Self::Time(clock) => Cell::Time(0, *clock),
            Self::Seconds => Cell::Seconds(0),
            Self::I64 => Cell::I64(0),
            Self::U64 => Cell::U64(0),
            Self::F64 | Self::Decimal | Self::Whole => Cell::F64(0.0),
            Self::Bool => Cell::Bool(false),
            Self::Text => Cell::Text("".into()),
            Self::List(kind) => Cell::List(vec![kind.empty()], ","),
            Self::Object(fields) => Self::empty_object(fields),
            Self::Tally => Cell::Tally(vec![(String::new(), 0)]),
        }
    }

    pub(super) fn empty_object(kinds: &[(Name, Kind)]) -> Cell {
        let mut fields = Vec::new();
        for (name, kind) in kinds {
            push_field(&mut fields, name, kind, kind.empty());
        }
        Cell::Object(fields)
    }
}
