//! The types of columns, and single values of any type.

use super::number::{rfc3339, seconds};
use crate::zone::Zone;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The name of a column: a constant, or made of the names of attributes.
pub(super) type Name = Cow<'static, str>;

/// The type of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A time in nanoseconds since the epoch.
    Time(Clock),
    /// A duration in nanoseconds, written as exact decimal seconds.
    Seconds,
    I64,
    U64,
    U16,
    U8,
    F64,
    /// A float that text formats write without exponent, and without point if it is whole.
    Decimal,
    /// A whole number that may exceed 64 bits.
    Whole,
    Bool,
    Text,
    /// A text without any character that a format quotes.
    Token,
    /// An address, which many rows share: like [`Self::Token`], with a dictionary in Arrow's stream.
    Address,
    /// A text out of a small set: Parquet keeps a dictionary.
    Word,
    /// Joined to one text in flat formats.
    List(Box<Kind>),
    /// Replaced by its columns in flat formats.
    Object,
}

/// How a column shows a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    /// As two columns: `start_ns` is an integer, `start` a time.
    Both,
    /// As a time: RFC 3339 in text, a timestamp in Parquet and Arrow.
    Time,
    /// As a time whose text is seconds since the epoch.
    Seconds,
}

/// A value of any type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Cell {
    #[default]
    Null,
    /// Nanoseconds since the epoch, written as RFC 3339 in this zone.
    Time(i64, Zone),
    /// Nanoseconds, written as decimal seconds.
    Seconds(i128),
    I64(i64),
    U64(u64),
    F64(f64),
    Decimal(f64),
    Whole(f64),
    Bool(bool),
    Text(Name),
    /// The values, and the separator for flat formats.
    List(Vec<Cell>, &'static str),
    Object(Vec<(Name, Cell)>),
}

/// A time that becomes two columns.
pub(super) struct Time(pub(super) i64);
/// A time that is one column.
pub(super) struct TimeOnly(pub(super) i64);
/// A time in seconds since the epoch.
pub(super) struct EpochSeconds(pub(super) i64);
/// A value for [`Kind::Seconds`].
pub(super) struct Seconds(pub(super) i128);
/// A value for [`Kind::Decimal`].
pub(super) struct Decimal(pub(super) f64);
/// A value for [`Kind::Whole`].
pub(super) struct Whole(pub(super) f64);
/// A list with its separator for flat formats.
pub(super) struct Joined<T>(pub(super) Vec<T>, pub(super) &'static str);

impl Kind {
    /// Whether tables align values to the right.
    pub(super) const fn is_number(&self) -> bool {
        self.is_float() || matches!(self, Self::I64 | Self::U64 | Self::U16 | Self::U8)
    }

    /// Whether columns of numbers have values as floats.
    pub(super) const fn is_float(&self) -> bool {
        matches!(self, Self::F64 | Self::Decimal | Self::Whole | Self::Seconds)
    }
}

/// Appends an integer.
pub(super) fn push_integer(number: impl itoa::Integer, text: &mut String) {
    text.push_str(itoa::Buffer::new().format(number));
}

impl Cell {
    /// Returns the cell with its times in this zone.
    pub(super) fn in_zone(self, zone: Zone) -> Self {
        if zone.is_utc() {
            return self;
        }
        match self {
            Self::Time(ns, _) => Self::Time(ns, zone),
            Self::List(cells, separator) => {
                let cells = cells.into_iter().map(|cell| cell.in_zone(zone));
                Self::List(cells.collect(), separator)
            }
            Self::Object(fields) => {
                let fields = fields.into_iter();
                Self::Object(fields.map(|(name, cell)| (name, cell.in_zone(zone))).collect())
            }
            cell => cell,
        }
    }

    /// Returns a duration as a float.
    #[cfg(any(feature = "parquet", feature = "arrow"))]
    pub(super) fn as_seconds(&self) -> f64 {
        match self {
            Self::Seconds(ns) => *ns as f64 / 1e9,
            cell => unreachable!("{cell:?} is no duration"),
        }
    }

    /// Returns the text of flat formats; null is empty.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text);
        text
    }

    /// Appends the text of flat formats; null is empty.
    pub(super) fn write_text(&self, out: &mut String) {
        match self {
            Self::Null => {}
            Self::Time(ns, zone) => out.push_str(&rfc3339(*ns, *zone)),
            Self::Seconds(ns) => out.push_str(&seconds(*ns)),
            Self::I64(number) => push_integer(*number, out),
            Self::U64(number) => push_integer(*number, out),
            Self::Decimal(number) => write!(out, "{number}").expect("a String takes everything"),
            Self::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Text(text) => out.push_str(text),
            Self::List(cells, separator) => {
                let texts: Vec<String> = cells.iter().map(Self::to_text).collect();
                out.push_str(&texts.join(separator));
            }
            // As in JSON, so that a number is the same in both.
            Self::F64(_) | Self::Whole(_) | Self::Object(_) => {
                out.push_str(&serde_json::to_string(self).unwrap_or_default());
            }
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Time(..) => serializer.serialize_str(&self.to_text()),
            Self::Seconds(ns) => {
                // Digit by digit: a float has no room for nanoseconds since 1970.
                let digits = RawValue::from_string(seconds(*ns));
                digits.expect("decimal digits are a number").serialize(serializer)
            }
            Self::I64(number) => serializer.serialize_i64(*number),
            Self::U64(number) => serializer.serialize_u64(*number),
            Self::Whole(number) if *number < 2.0_f64.powi(63) => {
                serializer.serialize_u64(*number as u64)
            }
            Self::F64(number) | Self::Decimal(number) | Self::Whole(number) => {
                serializer.serialize_f64(*number)
            }
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(cells, _) => serializer.collect_seq(cells),
            Self::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, cell)| (name, cell)))
            }
        }
    }
}
