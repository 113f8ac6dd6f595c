//! `--timezone`: time zones by their names, from the system's tables or, without these, from those
//! in the program.

use clap::Args;
use flowsieve::zone::Zone;
use jiff::Timestamp;
use jiff::tz::{TimeZone, db};

/// The name that stands for the zone of the system.
const LOCAL: &str = Zone::UNNAMED;

/// Names less similar than this are not suggested.
const SIMILAR: f64 = 0.6;

// In which zone times are.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ZoneArgs {
    /// Zone of times, such as Europe/Berlin; `local` is that of this machine
    ///
    /// It holds for the times that results and pages show, for --from and --to without an offset,
    /// and for where slices begin: those of a day begin at its midnight.
    #[arg(id = "timezone", long = "timezone", value_name = "NAME", default_value = "UTC", value_parser = parse_zone, hide_short_help = true)]
    chosen: Chosen,
}

/// A zone, and whether it is this machine's.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    zone: Zone,
    is_local: bool,
}

impl ZoneArgs {
    /// Returns the zone.
    pub(crate) fn zone(self) -> Zone {
        self.chosen.zone
    }

    /// Returns whether it is the zone of this machine, so another machine may have another one.
    pub(crate) fn is_of_this_machine(self) -> bool {
        self.chosen.is_local
    }
}

fn parse_zone(name: &str) -> Result<Chosen, String> {
    let is_local = name == LOCAL;
    let zone = if is_local { local()? } else { named(name)? };
    Ok(Chosen { zone, is_local })
}

/// Returns the zone of this name.
///
/// # Errors
///
/// There is none; the sentence says which name is near it.
pub fn named(name: &str) -> Result<Zone, String> {
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(Zone::UTC);
    }
    db().get(name)
        .map(|zone| table(&zone))
        .map_err(|_| match similar(name) {
            Some(other) => format!("no time zone has this name; {other} is near it"),
            None => format!(
                "no time zone has this name; names are UTC, {LOCAL}, and those of the IANA table, such as Europe/Berlin"
            ),
        })
}

fn local() -> Result<Zone, String> {
    let zone = TimeZone::try_system().map_err(|_| {
        "this system does not say which its time zone is; name one, such as Europe/Berlin or UTC"
    })?;
    Ok(table(&zone))
}

/// Returns the offsets of a zone at all times that a capture can have.
fn table(zone: &TimeZone) -> Zone {
    let name = match zone.iana_name() {
        Some("UTC") => return Zone::UTC,
        name => name.unwrap_or(LOCAL),
    };
    let first = Timestamp::from_nanosecond(i64::MIN.into()).expect("1677 is a year");
    let mut offsets = vec![(i64::MIN, zone.to_offset(first).seconds())];
    let changes = zone.following(first).map_while(|change| {
        let from = i64::try_from(change.timestamp().as_nanosecond()).ok()?;
        Some((from, change.offset().seconds()))
    });
    offsets.extend(changes);
    Zone::new(name, offsets)
}

/// Returns the name that is most similar to the one that was typed, which may be only that of the
/// city.
fn similar(typed: &str) -> Option<String> {
    let typed = typed.to_ascii_lowercase().replace(' ', "_");
    let likeness = |name: &str| {
        let name = name.to_ascii_lowercase();
        let city = name.rsplit('/').next().unwrap_or(&name);
        let of = |part: &str| strsim::normalized_damerau_levenshtein(&typed, part);
        of(&name).max(of(city))
    };
    let names = db().available().map(|name| name.as_str().to_owned());
    let like = names.map(|name| (likeness(&name), name));
    let best = like.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    best.filter(|(likeness, _)| *likeness >= SIMILAR).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, NaiveDate};

    const HOUR: i64 = 3_600_000_000_000;

    fn at(text: &str) -> i64 {
        let time = DateTime::parse_from_rfc3339(text).expect("this is RFC 3339");
        time.timestamp_nanos_opt().expect("it is within the range")
    }

    fn zone(name: &str) -> Zone {
        named(name).expect("this zone is in the tables")
    }

    #[test]
    fn zones_have_the_offsets_that_their_governments_decreed() {
        for (name, time, half_hours) in [
            ("Europe/Berlin", "2024-01-15T12:00:00Z", 2),
            ("Europe/Berlin", "2024-03-31T00:59:59Z", 2),
            ("Europe/Berlin", "2024-03-31T01:00:00Z", 4),
            ("Europe/Berlin", "2024-10-27T00:59:59Z", 4),
            ("Europe/Berlin", "2024-10-27T01:00:00Z", 2),
            ("Asia/Kolkata", "2024-07-01T00:00:00Z", 11),
            ("America/New_York", "2024-03-10T06:59:59Z", -10),
            ("America/New_York", "2024-03-10T07:00:00Z", -8),
            ("America/New_York", "2024-11-03T06:00:00Z", -10),
            // Rules hold for times to come.
            ("Europe/Berlin", "2250-07-01T00:00:00Z", 4),
        ] {
            let offset = zone(name).offset_ns(at(time));
            assert_eq!(offset, half_hours * HOUR / 2, "{name} {time}");
        }
    }

    #[test]
    fn local_days_begin_at_their_midnight() {
        let of = |day: Option<NaiveDate>, name| {
            let begin = day.and_then(|day| day.and_hms_opt(0, 0, 0));
            let local = begin.and_then(|time| time.and_utc().timestamp_nanos_opt());
            zone(name).time_ns(local.expect("it is within the range"))
        };
        let midnight = |year, month, day, name| of(NaiveDate::from_ymd_opt(year, month, day), name);
        let length = |year, month, day, name| {
            let day = NaiveDate::from_ymd_opt(year, month, day);
            (of(day.and_then(|day| day.succ_opt()), name) - of(day, name)) / HOUR
        };
        assert_eq!(midnight(2024, 1, 15, "Europe/Berlin"), at("2024-01-14T23:00:00Z"));
        assert_eq!(midnight(2024, 7, 1, "Asia/Kolkata"), at("2024-06-30T18:30:00Z"));
        assert_eq!(length(2024, 3, 30, "Europe/Berlin"), 24);
        assert_eq!(length(2024, 3, 31, "Europe/Berlin"), 23);
        assert_eq!(length(2024, 10, 27, "Europe/Berlin"), 25);
        assert_eq!(length(2024, 11, 3, "America/New_York"), 25);
        // In Cairo clocks go from 0:00 to 1:00, so that this day has no midnight.
        assert_eq!(midnight(2024, 4, 26, "Africa/Cairo"), at("2024-04-26T00:00:00+02:00"));
    }

    #[test]
    fn names_are_found_and_near_ones_are_offered() {
        assert_eq!(zone("europe/berlin").name(), "Europe/Berlin");
        for name in ["UTC", "utc"] {
            assert_eq!(named(name), Ok(Zone::UTC));
        }
        for (typed, near) in [
            ("Europe/Berln", Some("Europe/Berlin")),
            ("berlin", Some("Europe/Berlin")),
            ("new york", Some("America/New_York")),
            ("Asia/Kolkatta", Some("Asia/Kolkata")),
            ("", None),
            ("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", None),
        ] {
            let error = named(typed).expect_err("there is no such zone");
            match near {
                Some(near) => assert!(error.contains(near), "{typed}: {error}"),
                None => assert!(error.contains("names are UTC"), "{typed}: {error}"),
            }
        }
    }
}
