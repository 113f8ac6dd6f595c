//! Time zones, as tables of their offsets: which time of day it is somewhere, and which time a time
//! of day there is.
//!
//! The tables of the world's zones are read elsewhere; here are only numbers.

use std::fmt;
use std::sync::{Mutex, PoisonError};

const SECOND_NS: i64 = 1_000_000_000;

/// Seconds within which an offset changes at most once.
const DAY: i64 = 86_400;

/// A time zone. It is copied freely: zones with the same table are one.
///
/// ```
/// use flowsieve_engine::zone::Zone;
///
/// let kolkata = Zone::new("Asia/Kolkata", vec![(i64::MIN, 5 * 3600 + 1800)]);
/// assert_eq!(kolkata.offset_ns(0), 19_800_000_000_000);
/// assert_eq!(kolkata.name(), "Asia/Kolkata");
/// ```
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct Zone(Option<&'static Table>);

/// Where a zone's offset changes.
#[derive(Eq, PartialEq)]
struct Table {
    name: String,
    /// From this nanosecond since the epoch on, local time is this many seconds ahead of UTC; in
    /// order, from the first time there is.
    offsets: Vec<(i64, i32)>,
}

/// The tables in use. They stay: a run has one zone, and the world some hundreds.
static TABLES: Mutex<Vec<&'static Table>> = Mutex::new(Vec::new());

impl Zone {
    /// The zone of this name, with its offsets: from a time on (nanoseconds since the epoch), local
    /// time is this many seconds ahead of UTC. The first offset holds for all time before it, too;
    /// without offsets it is [`Zone::UTC`].
    pub fn new(name: &str, mut offsets: Vec<(i64, i32)>) -> Self {
        offsets.sort_by_key(|&(from, _)| from);
        offsets.dedup_by_key(|&mut (_, offset)| offset);
        let Some(first) = offsets.first_mut() else { return Self::UTC };
        first.0 = i64::MIN;
        let table = Table { name: name.to_owned(), offsets };
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tables.iter().find(|known| ***known == table);
        Self(Some(known.copied().unwrap_or_else(|| {
            let table: &'static Table = Box::leak(Box::new(table));
            tables.push(table);
            table
        })))
    }
}

/// For other crates of this program.
#[doc(hidden)]
impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(None);

    /// Returns whether it is UTC itself.
    pub const fn is_utc(self) -> bool {
        self.0.is_none()
    }

    /// The name of a system's zone that is in no table of zones.
    pub const UNNAMED: &'static str = "local";

    /// Its name: `UTC`, or that of the table of zones, such as `Europe/Berlin`, or
    /// [`Zone::UNNAMED`].
    pub fn name(self) -> &'static str {
        self.0.map_or("UTC", |table| &table.name)
    }

    /// Returns how far local time is ahead of UTC at this time, in nanoseconds.
    pub fn offset_ns(self, time_ns: i64) -> i64 {
        self.0.map_or(0, |table| i64::from(table.offset_at(time_ns)) * SECOND_NS)
    }

    /// The offsets from one time to another, the first of them with the time `from_ns`: seconds by
    /// nanoseconds.
    pub fn offsets(self, from_ns: i64, to_ns: i64) -> Vec<(i64, i32)> {
        let Some(table) = self.0 else { return vec![(from_ns, 0)] };
        let later = table.offsets.iter().copied();
        let later = later.filter(|&(time, _)| time > from_ns && time <= to_ns);
        std::iter::once((from_ns, table.offset_at(from_ns))).chain(later).collect()
    }

    /// The time at which clocks there show this: nanoseconds since 1970 began on their dials. Of a
    /// time of day that clocks show twice it is the first; one that they skip is as far behind the
    /// last time before the gap.
    pub fn time_ns(self, local_ns: i64) -> i64 {
        let Some(table) = self.0 else { return local_ns };
        let around = |days: i64| table.offset_at(local_ns.saturating_add(days * DAY * SECOND_NS));
        let [before, after] = [around(-1), around(1)];
        let at = |offset: i32| local_ns.saturating_sub(i64::from(offset) * SECOND_NS);
        let holds = |offset: i32| table.offset_at(at(offset)) == offset;
        if holds(before) || !holds(after) { at(before) } else { at(after) }
    }
}

impl Table {
    fn offset_at(&self, time_ns: i64) -> i32 {
        let number = self.offsets.partition_point(|&(from, _)| from <= time_ns);
        self.offsets[number.saturating_sub(1)].1
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * SECOND_NS;

    /// One hour ahead, two from the first hundredth hour to the two hundredth.
    fn summer() -> Zone {
        let hours = [(i64::MIN, 1), (100 * HOUR, 2), (200 * HOUR, 1)];
        Zone::new("summer", hours.map(|(from, h)| (from, h * 3600)).to_vec())
    }

    #[test]
    fn offsets_hold_from_their_time_on() {
        let zone = summer();
        for (time, hours) in [
            (i64::MIN, 1),
            (0, 1),
            (100 * HOUR - 1, 1),
            (100 * HOUR, 2),
            (200 * HOUR - 1, 2),
            (200 * HOUR, 1),
            (i64::MAX, 1),
        ] {
            assert_eq!(zone.offset_ns(time), hours * HOUR, "{time}");
        }
        assert_eq!(zone.offsets(50 * HOUR, 100 * HOUR), [(50 * HOUR, 3600), (100 * HOUR, 7200)]);
        assert_eq!(Zone::UTC.offsets(7, 9), [(7, 0)]);
    }

    #[test]
    fn every_time_is_found_from_what_clocks_show() {
        let zone = summer();
        for quarter in 0..4 * 300 {
            let time = quarter * HOUR / 4;
            let local = time + zone.offset_ns(time);
            let found = zone.time_ns(local);
            // The hour that comes twice: the first is meant.
            let twice = (200 * HOUR..201 * HOUR).contains(&time);
            assert_eq!(found, if twice { time - HOUR } else { time }, "{quarter}");
        }
        // Clocks go from 101:00 to 102:00; half an hour into that is half an hour behind the
        // change.
        assert_eq!(zone.time_ns(101 * HOUR + HOUR / 2), 100 * HOUR + HOUR / 2);
    }

    #[test]
    fn zones_with_the_same_table_are_one() {
        assert_eq!(summer(), summer());
        assert_ne!(summer(), Zone::UTC);
        assert_eq!(Zone::new("empty", Vec::new()), Zone::UTC);
        assert_eq!(Zone::default(), Zone::UTC);
    }

    #[test]
    fn the_ends_of_time_saturate() {
        for end in [i64::MIN, i64::MAX] {
            let _ = (summer().time_ns(end), summer().offsets(end, end));
        }
    }
}
