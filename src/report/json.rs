//! JSON: documents, and lines of one schema.

use super::cell::{Cell, Clock, Kind, Name, names_in_text};
use super::number::{rfc3339, seconds};
use crate::zone::Zone;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// How a document is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// In one line.
    Compact,
    /// In one line, the fields of each object in the order of their names.
    Sorted,
    /// With a line a field.
    Pretty,
}

/// An object of these fields.
pub(super) fn object<const N: usize>(fields: [(&'static str, Cell); N]) -> Cell {
    Cell::Object(fields.map(|(name, cell)| (name.into(), cell)).into())
}

/// Writes a document, and ends the line.
pub(super) fn write_document(
    out: &mut dyn Write,
    layout: Layout,
    document: &Cell,
) -> io::Result<()> {
    match layout {
        Layout::Compact => serde_json::to_writer(&mut *out, document)?,
        Layout::Sorted => serde_json::to_writer(&mut *out, &serde_json::to_value(document)?)?,
        Layout::Pretty => serde_json::to_writer_pretty(&mut *out, document)?,
    }
    writeln!(out)
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Digit by digit: a float has no room for nanoseconds since 1970.
        let decimal = |ns| RawValue::from_string(seconds(ns)).expect("decimal digits are a number");
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Time(ns, Clock::Nanoseconds) | Self::I64(ns) => serializer.serialize_i64(*ns),
            Self::Time(ns, Clock::Seconds) => decimal((*ns).into()).serialize(serializer),
            Self::Time(ns, Clock::Rfc3339(zone)) => serializer.serialize_str(&rfc3339(*ns, *zone)),
            Self::Seconds(ns) => decimal(*ns).serialize(serializer),
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
            Self::Tally(counts) => {
                let mut map = serializer.serialize_map(Some(counts.len()))?;
                for (name, count) in counts {
                    map.serialize_entry(name, count)?;
                }
                map.end()
            }
        }
    }
}

/// An object a line. All lines have the same fields, null where there is nothing, and a field has
/// one type; `record` says what a line is about.
#[derive(Debug)]
pub(super) struct JsonLines<W: Write> {
    out: W,
    /// For each record the fields that it does not have, as they end its line.
    rest: BTreeMap<&'static str, String>,
    /// The zone in which texts show times.
    zone: Zone,
}

impl<W: Write> JsonLines<W> {
    /// Begins with a line about the parameters. Every other field has an empty value of its type
    /// there: many programs take the types of fields from the first lines.
    pub(super) fn begin(
        mut out: W,
        head: &[(&'static str, Cell)],
        records: &[(&'static str, Vec<(Name, Kind)>)],
    ) -> io::Result<Self> {
        let mut all: Vec<(Name, Kind)> = Vec::new();
        for (name, kind) in records.iter().flat_map(|(_, kinds)| kinds) {
            if !all.iter().any(|(known, _)| known == name) {
                all.push((name.clone(), kind.clone()));
            }
        }
        let mut line = vec![("record".into(), Cell::Text("parameters".into()))];
        line.extend(head.iter().map(|(name, cell)| ((*name).into(), cell.clone())));
        if let Cell::Object(empty) = Kind::empty_object(&all) {
            line.extend(empty);
        }
        serde_json::to_writer(&mut out, &Cell::Object(line).of_one_type())?;
        writeln!(out)?;
        let rest = records.iter().map(|(record, kinds)| {
            let others = all.iter().filter(|(name, _)| !kinds.iter().any(|(own, _)| own == name));
            let others = others.flat_map(|(name, kind)| names_in_text(name, kind));
            let names = head.iter().map(|(name, _)| Name::Borrowed(*name));
            let nulls: Vec<String> =
                names.chain(others).map(|name| format!(",\"{name}\":null")).collect();
            (*record, nulls.concat())
        });
        Ok(Self { out, rest: rest.collect(), zone: Zone::UTC })
    }

    /// Lines of rows alone, for programs that know their fields.
    pub(super) fn bare(out: W) -> Self {
        Self { out, rest: BTreeMap::new(), zone: Zone::UTC }
    }

    /// With the texts of times in this zone.
    pub(super) fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// Writes a line about a row.
    pub(super) fn line(&mut self, record: &'static str, row: Cell) -> io::Result<()> {
        let row = serde_json::to_vec(&row.of_one_type().in_zone(self.zone))?;
        let Some(rest) = self.rest.get(record) else {
            self.out.write_all(&row)?;
            return writeln!(self.out);
        };
        let fields = &row[1..row.len() - 1];
        write!(self.out, "{{\"record\":\"{record}\",")?;
        self.out.write_all(fields)?;
        writeln!(self.out, "{rest}}}")
    }

    pub(super) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    pub(super) fn finish(self) -> W {
        self.out
    }
}

impl Cell {
    /// The cell with a type that depends on the column alone, and not on what is in it.
    fn of_one_type(self) -> Self {
        match self {
            Self::Whole(number) => Self::F64(number),
            Self::List(cells, between) => {
                Self::List(cells.into_iter().map(Self::of_one_type).collect(), between)
            }
            Self::Object(fields) => {
                let fields = fields.into_iter();
                Self::Object(fields.map(|(name, cell)| (name, cell.of_one_type())).collect())
            }
            Self::Tally(counts) => {
                let count = |(reason, packets)| {
                    object([
                        ("reason", Self::Text(Name::Owned(reason))),
                        ("packets", Self::U64(packets)),
                    ])
                };
                Self::List(counts.into_iter().map(count).collect(), "")
            }
            cell => cell,
        }
    }
}
