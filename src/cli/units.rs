//! Numbers with a unit, as people type them: counts, durations, sizes, times.
//!
//! A number may have a decimal fraction as long as the result is whole (`1.5k`, `0.5s`). What is
//! understood is said to people in [`VALUES`].

use chrono::{NaiveDate, NaiveDateTime};
use flowsieve::capture_filter::port_of_name;
use flowsieve::selection::TimeBound;
use flowsieve::trace::time_from_text;
use flowsieve::zone::Zone;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

/// The values of options, as `flowsieve --help` explains them.
pub(crate) const VALUES: &str = "\
Values:
  SIZE      bytes (65536), or 64KiB, 64K (powers of two), 64kB, 64KB (powers of ten); also M, G, T
  COUNT     2500, 10k, 1.5M, 2G
  DURATION  seconds (60, 0.5), or with a unit: ns, us, ms, s, min or m, h, d or day (1h30m)
  RATE      a share (0.001) or a percentage (0.1%)
  TIME      2014-01-01 and 2014-01-01T12:30 (of --timezone), RFC 3339, or seconds since 1970";

/// Parses a port by its number or its name.
pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().or_else(|| port_of_name(text));
    port.ok_or_else(|| {
        "a port is a number from 0 to 65535, or a name that capture filters know, such as dns, https or ssh".to_owned()
    })
}

/// Parses a port of an option that is repeated for several.
pub(crate) fn parse_one_port(text: &str) -> Result<u16, String> {
    parse_port(text).map_err(|error| format!("{error}; repeat the option for several"))
}

/// Returns the first two examples of a command.
pub(crate) fn in_short(examples: &str) -> String {
    // Titles of examples are indented by two spaces, command lines by more.
    let is_title = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let mut titles = 0;
    let lines = examples.lines().take_while(|line| {
        titles += u32::from(is_title(line));
        titles <= 2
    });
    let lines: Vec<&str> = lines.collect();
    lines.join("\n")
}

/// Returns examples of a command, and where its values are explained.
pub(crate) fn with_values(examples: &str) -> String {
    format!("{examples}\n\nHow sizes, counts, durations and times are written: flowsieve --help")
}

// Why a value was not understood: the rule with an example.
const COUNT: &str = "a count is a number with k, M, G or nothing behind it, such as 10M or 2500";
const DURATION: &str = "a duration is a number of seconds, or one with its unit (ns, us, ms, s, min, h or d), such as 500ms or 1h30m";
const DELAY: &str = "a delay is at most 292 years, such as 2s";
const SIZE: &str = "a size is a number of bytes, or one with KiB, MiB, GiB, TiB (powers of two; K, M, G, T for short) or kB, MB, GB, TB (powers of ten), such as 64KiB";
const TIME: &str = "a time is a date such as 2014-01-01, RFC 3339 such as 2026-11-20T12:00:00Z, or a number of seconds since 1970";
const BOUND: &str = "a time is a date such as 2014-01-01, RFC 3339 such as 2026-11-20T12:00:00Z, a number of seconds since 1970, +90s after the first packet, or -5min before the last";
const SHARE: &str = "a share is a number, such as 0.001, or a percentage, such as 0.1%";
const SEED: &str = "a seed is a number from 0 to 2^64 - 1, or random";

/// Why [`parse_width_ns`] did not take a duration.
pub(crate) const WIDTH: &str = "a duration must be above 0 and at most 292 years here, such as 1s";

/// A value, or the rule that the text breaks.
type Parsed<T> = Result<T, &'static str>;

/// Parses `10M`, `2.5k` or `400`: a number with a decimal suffix or none.
pub(crate) fn parse_count(text: &str) -> Parsed<u64> {
    let unit = |suffix: &str| match suffix {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        _ => None,
    };
    parse(text, unit).ok_or(COUNT)
}

/// Parses `500ms`, `1h`, `1h30m` or `60` into nanoseconds: numbers with units that become smaller,
/// or a number of seconds.
pub(crate) fn parse_duration_ns(text: &str) -> Parsed<u64> {
    let unit = |suffix: &str| match suffix {
        "ns" => Some(1),
        "us" | "µs" | "μs" => Some(1_000),
        "ms" => Some(1_000_000),
        "" | "s" | "sec" | "second" | "seconds" => Some(1_000_000_000),
        "m" | "min" | "minute" | "minutes" => Some(60_000_000_000),
        "h" | "hour" | "hours" => Some(3_600_000_000_000),
        "d" | "day" | "days" => Some(86_400_000_000_000),
        _ => None,
    };
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let end = rest[number..].find(is_number).map_or(rest.len(), |end| number + end);
        parts.push((unit(&rest[number..end]).ok_or(DURATION)?, &rest[..end]));
        rest = &rest[end..];
    }
    let is_seconds = text.ends_with(|c: char| c.is_ascii_digit());
    if parts.is_empty() || !parts.is_sorted_by(|a, b| a.0 > b.0) || (is_seconds && parts.len() > 1)
    {
        return Err(DURATION);
    }
    let sum = parts.iter().try_fold(0_u64, |sum, (_, part)| sum.checked_add(parse(part, unit)?));
    sum.ok_or(DURATION)
}

/// Parses `0.001` or `0.1%`.
pub(crate) fn parse_share(text: &str) -> Parsed<f64> {
    let share = match text.strip_suffix('%') {
        // Exactly what the digits say: a division would round twice.
        Some(percent) if !percent.contains(['e', 'E']) => format!("{percent}e-2").parse(),
        _ => text.parse(),
    };
    share.map_err(|_| SHARE)
}

/// Parses a duration above 0, as a difference of two times.
pub(crate) fn parse_width_ns(text: &str) -> Parsed<i64> {
    let width = i64::try_from(parse_duration_ns(text)?);
    width.ok().filter(|&ns| ns > 0).ok_or(WIDTH)
}

/// Parses a duration from 0 on, as a difference of two times.
pub(crate) fn parse_delay_ns(text: &str) -> Parsed<i64> {
    i64::try_from(parse_duration_ns(text)?).map_err(|_| DELAY)
}

/// Parses `64KiB`, `64K`, `64kB` or `65536` into bytes: powers of two unless a B follows the letter,
/// as in GNU's tools; upper and lower case mean the same.
pub(crate) fn parse_size(text: &str) -> Parsed<u64> {
    let unit = |suffix: &str| match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "t" | "tib" => Some(1 << 40),
        _ => None,
    };
    parse(text, unit).ok_or(SIZE)
}

/// A time as it was typed, in nanoseconds since 1970 began: in UTC, or in the local time of a zone
/// that is known later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TypedTime {
    Utc(i64),
    Local(i64),
}

impl TypedTime {
    /// Returns the time in nanoseconds since the epoch.
    pub(crate) fn in_zone(self, zone: Zone) -> i64 {
        match self {
            Self::Utc(time_ns) => time_ns,
            Self::Local(local_ns) => zone.time_ns(local_ns),
        }
    }
}

/// Parses `2014-01-01`, `2014-01-01T12:30`, RFC 3339 or seconds since 1970. A date is the time at
/// which it begins.
pub(crate) fn parse_time(text: &str) -> Result<TypedTime, String> {
    // Nobody who types a year means a time in the first hour of 1970.
    if let (4, Ok(year @ 1970..=2262)) = (text.len(), text.parse::<u16>()) {
        return Err(format!(
            "{year} would be {year} seconds after 1970 began; a time is a date, such as {year}-01-01, or seconds since 1970"
        ));
    }
    let civil = || {
        let at_begin = |day: NaiveDate| day.and_hms_opt(0, 0, 0);
        let of_day = || at_begin(text.parse().ok()?);
        let to_the = |format| NaiveDateTime::parse_from_str(text, format).ok();
        let seconds = || to_the("%Y-%m-%dT%H:%M:%S%.f").or_else(|| to_the("%Y-%m-%d %H:%M:%S%.f"));
        let minutes = || to_the("%Y-%m-%dT%H:%M").or_else(|| to_the("%Y-%m-%d %H:%M"));
        of_day().or_else(seconds).or_else(minutes)
    };
    let local = || {
        let time = civil()?.and_utc();
        let beyond = if time.timestamp() < 0 { i64::MIN } else { i64::MAX };
        Some(time.timestamp_nanos_opt().unwrap_or(beyond))
    };
    let utc = time_from_text(text).map(TypedTime::Utc);
    utc.or_else(|| local().map(TypedTime::Local)).ok_or_else(|| TIME.to_owned())
}

/// An end of a range of time as it was typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TypedBound {
    Time(TypedTime),
    Relative(TimeBound),
}

impl TypedBound {
    /// Returns the end; times without an offset are in this zone.
    pub(crate) fn in_zone(self, zone: Zone) -> TimeBound {
        match self {
            Self::Time(time) => TimeBound::At(time.in_zone(zone)),
            Self::Relative(bound) => bound,
        }
    }
}

/// Parses an end of a range of time: a time as in [`parse_time`], `+90s` after the first packet, or
/// `-5min` before the last.
pub(crate) fn parse_bound(text: &str) -> Result<TypedBound, String> {
    let relative = |sign| parse_delay_ns(text.strip_prefix(sign)?).ok();
    if let Some(after) = relative('+') {
        Ok(TypedBound::Relative(TimeBound::AfterStart(after)))
    } else if let Some(before) = relative('-') {
        Ok(TypedBound::Relative(TimeBound::BeforeEnd(before)))
    } else {
        let time = parse_time(text).map(TypedBound::Time);
        time.map_err(|error| if error == TIME { BOUND.to_owned() } else { error })
    }
}

/// Parses a number, or `random`: an unpredictable one of 53 bits, which every reader of
/// JSON keeps.
pub(crate) fn parse_seed(text: &str) -> Parsed<u64> {
    if text == "random" {
        return Ok(RandomState::new().hash_one(0_u8) >> 11);
    }
    text.parse().map_err(|_| SEED)
}

/// Returns a parser of the whole numbers from `least` to `most`.
pub(crate) fn whole<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("this takes a whole number from {least} to {most}"))
    }
}

/// Parses digits, perhaps a point and more digits, then a unit. `None` if it is anything else, too
/// large or not whole.
fn parse(text: &str, unit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    if whole.is_empty() || fraction.len() > 18 {
        return None;
    }
    let unit = unit(suffix)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let digits = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit);
    let scale = 10_u128.pow(fraction.len() as u32);
    if digits % scale != 0 {
        return None;
    }
    whole.checked_add(u64::try_from(digits / scale).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_time_ns(text: &str) -> Result<i64, String> {
        parse_time(text).map(|time| time.in_zone(Zone::UTC))
    }

    fn check(parser: fn(&str) -> Parsed<u64>, good: &[(&str, u64)], bad: &[&str], error: &str) {
        for &(text, value) in good {
            assert_eq!(parser(text), Ok(value), "{text}");
        }
        for text in bad {
            assert_eq!(parser(text), Err(error), "{text}");
        }
    }

    #[test]
    fn counts() {
        check(
            parse_count,
            &[
                ("0", 0),
                ("400", 400),
                ("10k", 10_000),
                ("10K", 10_000),
                ("10M", 10_000_000),
                ("2G", 2_000_000_000),
                ("1.5k", 1_500),
                ("0.25M", 250_000),
                ("1m", 1_000_000),
                ("2g", 2_000_000_000),
                ("18446744073709551615", u64::MAX),
            ],
            &[
                "",
                "k",
                "-1",
                "+1",
                " 1",
                "1 k",
                "1.5",
                "1.k",
                ".5k",
                "1.2.3k",
                "10KiB",
                "1T",
                "18446744073709551616",
                "18446744074G",
                "٣",
            ],
            COUNT,
        );
    }

    #[test]
    fn durations() {
        check(
            parse_duration_ns,
            &[
                ("0s", 0),
                ("7ns", 7),
                ("20us", 20_000),
                ("20µs", 20_000),
                ("500ms", 500_000_000),
                ("1s", 1_000_000_000),
                ("0.5s", 500_000_000),
                ("5min", 300_000_000_000),
                ("1h", 3_600_000_000_000),
                ("60", 60_000_000_000),
                ("0.5", 500_000_000),
                ("2m", 120_000_000_000),
                ("2minutes", 120_000_000_000),
                ("1d", 86_400_000_000_000),
                ("1day", 86_400_000_000_000),
                ("2days", 172_800_000_000_000),
                ("1h30m", 5_400_000_000_000),
                ("1d2h3min4s5ms", 93_784_005_000_000),
                ("1.5h0.5s", 5_400_500_000_000),
            ],
            &[
                "1h30", "30m1h", "1h1h", "1h 30m", "1hm", "", "1M", "1S", "s", "1 s", "-1s",
                "0.5ns", "1e3s", "6000000h",
            ],
            DURATION,
        );
    }

    #[test]
    fn sizes() {
        check(
            parse_size,
            &[
                ("65536", 65_536),
                ("65536B", 65_536),
                ("64KiB", 65_536),
                ("64K", 65_536),
                ("64k", 65_536),
                ("64kib", 65_536),
                ("64kB", 64_000),
                ("64KB", 64_000),
                ("1m", 1 << 20),
                ("1MiB", 1 << 20),
                ("1.5MiB", 3 << 19),
                ("1GB", 1_000_000_000),
                ("2TiB", 2 << 40),
            ],
            &["", "64Ki", "64KBit", "64 KiB", "KiB", "0.3KiB", "-1", "16777216TiB"],
            SIZE,
        );
    }

    #[test]
    fn widths() {
        assert_eq!(parse_width_ns("1s"), Ok(1_000_000_000));
        assert_eq!(parse_width_ns("106751d"), Ok(9_223_286_400_000_000_000));
        for outside in ["0s", "0", "106752d", "200000d"] {
            assert_eq!(parse_width_ns(outside), Err(WIDTH), "{outside}");
        }
        assert_eq!(parse_width_ns("soon"), Err(DURATION));
    }

    #[test]
    fn times() {
        const NEW_YEAR: i64 = 1_388_534_400_000_000_000;
        for text in [
            "2014-01-01",
            "2014-01-01T00:00",
            "2014-01-01 00:00:00",
            "2014-01-01T00:00:00Z",
            "2014-01-01T01:00:00+01:00",
            "2013-12-31T19:00-05:00",
            "1388534400",
            "1388534400.0",
        ] {
            assert_eq!(parse_time_ns(text), Ok(NEW_YEAR), "{text}");
        }
        assert_eq!(parse_time_ns("2014-01-01T00:00:00.5"), Ok(NEW_YEAR + 500_000_000));
        assert_eq!(parse_time_ns("9999-01-01"), Ok(i64::MAX));
        for text in [
            "",
            "2014",
            "2014-01",
            "2014-13-01",
            "2014-01-01T25:00",
            "2014-01-01-05:00",
            "2014-01-01T00:00[Europe/Berlin]",
            "yesterday",
        ] {
            let year = "2014 would be 2014 seconds after 1970 began; a time is a date, such as 2014-01-01, or seconds since 1970";
            let error = if text == "2014" { year } else { TIME };
            assert_eq!(parse_time_ns(text), Err(error.to_owned()), "{text}");
        }
        for seconds in ["1969", "2263", "2014.0", "02014"] {
            assert!(parse_time_ns(seconds).is_ok(), "{seconds}");
        }
    }

    #[test]
    fn times_without_an_offset_are_of_the_zone() {
        const NEW_YEAR: i64 = 1_388_534_400_000_000_000;
        const HOUR: i64 = 3_600_000_000_000;
        let zone = Zone::new("two hours ahead", vec![(0, 7_200)]);
        let time = |text| parse_time(text).map(|time| time.in_zone(zone));
        for text in ["2014-01-01", "2014-01-01T00:00", "2014-01-01 00:00:00"] {
            assert_eq!(time(text), Ok(NEW_YEAR - 2 * HOUR), "{text}");
        }
        for text in ["1388534400", "2014-01-01T00:00Z", "2013-12-31T19:00-05:00"] {
            assert_eq!(time(text), Ok(NEW_YEAR), "{text}");
        }
        let bound = |text| parse_bound(text).map(|bound| bound.in_zone(zone));
        assert_eq!(bound("2014-01-01"), Ok(TimeBound::At(NEW_YEAR - 2 * HOUR)));
        assert_eq!(bound("+2h"), Ok(TimeBound::AfterStart(2 * HOUR)));
    }

    #[test]
    fn every_error_is_one_sentence_with_an_example() {
        for error in [COUNT, DURATION, WIDTH, SIZE, TIME] {
            let message = error.to_string();
            assert!(message.contains("such as") && !message.contains(". "), "{message}");
        }
    }

    #[test]
    fn shares() {
        for (text, share) in
            [("0.001", 0.001), ("0.1%", 0.001), ("5%", 0.05), ("100%", 1.0), ("-1%", -0.01)]
        {
            assert_eq!(parse_share(text), Ok(share), "{text}");
        }
        for wrong in ["", "%", "1 %", "1%%", "1e-3%", "much"] {
            assert_eq!(parse_share(wrong), Err(SHARE), "{wrong}");
        }
    }

    #[test]
    fn seeds() {
        assert_eq!(parse_seed("0"), Ok(0));
        assert_eq!(parse_seed("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "-1", "Random", "0x7", "18446744073709551616"] {
            assert_eq!(parse_seed(wrong), Err(SEED), "{wrong}");
        }
        let drawn: Vec<u64> = (0..4).filter_map(|_| parse_seed("random").ok()).collect();
        assert!(drawn.iter().all(|&seed| seed < 1 << 53) && drawn.len() == 4);
        assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]), "{drawn:?}");
    }

    /// Any text is a value or an error: 100,000 texts of pieces that mean something.
    #[test]
    fn hostile_texts_are_values_or_errors() {
        const PIECES: [&str; 26] = [
            "0",
            "1",
            "9",
            "18446744073709551615",
            "999999999999999999",
            ".",
            ".5",
            "-",
            "+",
            "e9",
            "ns",
            "µs",
            "min",
            "d",
            "day",
            "m",
            "KiB",
            "TiB",
            "GB",
            "K",
            "k",
            "-01-01",
            "G",
            " ",
            "\u{1f980}",
            "0000000000000000000",
        ];
        let mut state = 7_u64;
        for _ in 0..100_000 {
            let mut text = String::new();
            for _ in 0..4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text += PIECES[(state >> 33) as usize % PIECES.len()];
            }
            for parser in [parse_count, parse_duration_ns, parse_size, parse_seed] {
                if let Ok(value) = parser(&text) {
                    assert!(
                        value == 0 || text.contains(|c: char| ('1'..='9').contains(&c)),
                        "{text} is {value}"
                    );
                }
            }
            if let Err(error) = parse_time_ns(&text) {
                assert!(error == TIME || error.contains("after 1970 began"), "{text}");
            }
        }
    }
}
