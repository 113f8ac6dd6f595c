//! Numbers, sizes and times as people read them.

use crate::zone::Zone;
use chrono::{DateTime, FixedOffset, SecondsFormat};

/// Groups digits: `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that is not negative, with one decimal.
pub(super) fn grouped_tenths(number: f64) -> String {
    let tenths = (number * 10.0).round() as u64;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// A number rounded to a whole one, with grouped digits.
pub(super) fn rounded(number: f64) -> String {
    grouped(number.round() as u64)
}

/// The text of a value, or a dash where there is none.
pub(super) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// Counts something: `1 query`, `2 queries`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    let what = if number == 1 { one } else { many };
    format!("{} {what}", grouped(number))
}

/// The same, or `None` if there is nothing to count.
pub(super) fn some(number: u64, one: &str, many: &str) -> Option<String> {
    (number > 0).then(|| counted(number, one, many))
}

/// Says in how many of all slices something is, if in any: `2 of 5 slices`.
pub(super) fn some_slices(number: u64, all: u64) -> Option<String> {
    (number > 0).then(|| format!("{} of {}", grouped(number), counted(all, "slice", "slices")))
}

/// Names the seed behind other parameters, unless it is 0.
pub(super) fn seed_words(seed: u64) -> String {
    if seed == 0 { String::new() } else { format!(", seed {seed}") }
}

/// Joins texts; `None` if there are none.
pub(super) fn joined(texts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}

/// Capitalises the first letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a share as a percentage: `1.049 %`.
pub(super) fn percent(share: f64) -> String {
    percent_to(share, 3)
}

/// Formats a share as a percentage with this many decimals; no share but 0 is written as 0.
pub(super) fn percent_to(share: f64, decimals: usize) -> String {
    let (percent, least) = (share * 100.0, 10_f64.powi(-(decimals as i32)));
    if percent != 0.0 && percent.abs() < least / 2.0 {
        return format!("<{least:.decimals$} %");
    }
    format!("{percent:.decimals$} %")
}

/// Formats a share as a percentage with two significant digits: `4.7 %`.
pub(super) fn short_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        return "0 %".to_owned();
    }
    if percent.abs() < 0.000_1 {
        return "<0.0001 %".to_owned();
    }
    let decimals = (1 - percent.abs().log10().floor() as i32).clamp(0, 5) as usize;
    format!("{percent:.decimals$} %")
}

/// As [`short_percent`], without the sign.
pub(super) fn bare(share: f64) -> String {
    short_percent(share).trim_end_matches(" %").to_owned()
}

/// Formats bytes in the largest unit that keeps them whole: `64 KiB`.
pub(super) fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", grouped(bytes / unit));
        }
    }
    format!("{} B", grouped(bytes))
}

/// Formats nanoseconds in the largest unit that keeps them whole: `500 ms`.
pub(super) fn duration(ns: i64) -> String {
    for (unit, name) in [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ] {
        if ns >= unit && ns % unit == 0 {
            return format!("{} {name}", grouped((ns / unit) as u64));
        }
    }
    format!("{ns} ns")
}

/// Says how long something took, to a tenth of the largest unit: `4.7 years`.
pub(super) fn about(ns: i128) -> String {
    const SECOND: i128 = 1_000_000_000;
    let units = [
        (2, 31_557_600 * SECOND, "years"),
        (2, 86_400 * SECOND, "days"),
        (1, 3_600 * SECOND, "h"),
        (1, 60 * SECOND, "min"),
        (1, SECOND, "s"),
        (1, 1_000_000, "ms"),
        (1, 1_000, "us"),
        (0, 1, "ns"),
    ];
    let (_, unit, name) =
        units.into_iter().find(|(least, unit, _)| ns >= least * unit).expect("it is not negative");
    let number = grouped_tenths(ns as f64 / unit as f64);
    format!("{} {name}", number.trim_end_matches(".0"))
}

/// Returns the fewest of these decimals of the second that show multiples of the width, or 9.
pub(super) fn decimals_of(width_ns: i64, choices: &[u32]) -> usize {
    let suffices = |decimals: &u32| width_ns % 10_i64.pow(9 - decimals) == 0;
    choices.iter().copied().find(suffices).unwrap_or(9) as usize
}

/// Describes the width of slices: `in slices of 1 s`.
pub(super) fn slices_of(width_ns: Option<i64>) -> String {
    match width_ns {
        Some(width) => format!("in slices of {}", duration(width)),
        None => "over everything".to_owned(),
    }
}

/// Describes slices or sliding windows: `in windows of 60 s, one every 1 s`.
pub(super) fn windows_of(width_ns: Option<i64>, every_ns: Option<i64>) -> String {
    match width_ns.zip(every_ns) {
        Some((width, every)) => {
            let [width, every] = [width, every].map(duration);
            format!("in windows of {width}, one every {every}")
        }
        None => slices_of(width_ns),
    }
}

/// Formats a time as RFC 3339 in this zone with this many decimals of the second, at most nine;
/// further ones are cut off.
pub(super) fn time(ns: i64, decimals: usize, zone: Zone) -> String {
    let mut text = rfc3339(ns, zone);
    let point = usize::from(decimals > 0);
    text.replace_range(SECONDS + point + decimals..SECONDS + 10, "");
    text
}

/// Length of a date and time without decimals.
const SECONDS: usize = "0000-00-00T00:00:00".len();

/// Returns how much longer times of this zone are than those of UTC: `+01:00` replaces `Z`.
pub(super) fn offset_width(zone: Zone) -> usize {
    if zone.is_utc() { 0 } else { 5 }
}

/// Formats the local date and time of this zone with this many decimals of the second.
pub(super) fn civil(ns: i64, decimals: usize, zone: Zone) -> String {
    let mut text = time(ns, decimals, zone);
    text.truncate(text.len() - 1 - offset_width(zone));
    text
}

/// Formats a time as RFC 3339 in this zone, to the nanosecond.
pub(super) fn rfc3339(ns: i64, zone: Zone) -> String {
    // RFC 3339 has whole minutes below a day, and the first offsets of most zones have seconds: the
    // time stays the same.
    let minutes = (zone.offset_ns(ns) as f64 / MINUTE_NS as f64).round() as i32;
    let minutes = minutes.clamp(1 - DAY_MINUTES, DAY_MINUTES - 1);
    let offset = FixedOffset::east_opt(minutes * 60).expect("it is less than a day");
    let time = DateTime::from_timestamp_nanos(ns).with_timezone(&offset);
    time.to_rfc3339_opts(SecondsFormat::Nanos, zone.is_utc())
}

/// Cache of the texts of recent seconds: many rows have times within the same few seconds.
pub(super) struct RecentSeconds(Vec<(i64, String)>);

/// Capacity of the cache.
const KEPT_SECONDS: usize = 64;

impl Default for RecentSeconds {
    fn default() -> Self {
        Self(vec![(i64::MIN, String::new()); KEPT_SECONDS])
    }
}

impl RecentSeconds {
    /// Appends the same as [`rfc3339`] returns.
    pub(super) fn push_rfc3339(&mut self, ns: i64, zone: Zone, out: &mut String) {
        let (second, in_second) = (ns.div_euclid(SECOND_NS), ns.rem_euclid(SECOND_NS));
        let (kept, text) = &mut self.0[second as usize % KEPT_SECONDS];
        // Zones change at whole seconds.
        if *kept != second {
            *kept = second;
            *text = rfc3339(ns, zone);
        }
        out.push_str(&text[..=SECONDS]);
        // A one before them keeps zeros that they begin with.
        out.push_str(&itoa::Buffer::new().format(SECOND_NS + in_second)[1..10]);
        out.push_str(&text[SECONDS + 10..]);
    }
}

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;
const DAY_MINUTES: i32 = 24 * 60;

/// Formats nanoseconds as exact decimal seconds.
pub(super) fn seconds(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_the_calendar(ns: i64) -> String {
        let time = DateTime::from_timestamp_nanos(ns);
        time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string()
    }

    proptest! {
        #[test]
        fn times_are_those_of_the_calendar(ns: i64) {
            prop_assert_eq!(rfc3339(ns, Zone::UTC), by_the_calendar(ns));
            prop_assert_eq!(time(ns, 9, Zone::UTC), by_the_calendar(ns));
        }

        #[test]
        fn times_are_the_same_whichever_seconds_are_kept(
            times in prop::collection::vec(prop_oneof![any::<i64>(), -200 * SECOND_NS..200 * SECOND_NS], 0..400),
            ahead in prop::sample::select(vec![0, 3600]),
        ) {
            let zone = Zone::new("any", vec![(0, ahead)]);
            let mut seconds = RecentSeconds::default();
            for ns in times {
                let mut text = String::new();
                seconds.push_rfc3339(ns, zone, &mut text);
                prop_assert_eq!(text, rfc3339(ns, zone));
            }
        }

        /// Another crate reads the same time out of it, in any zone.
        #[test]
        fn times_of_any_zone_are_the_same_times(ns: i64, ahead in -93_599..93_600_i32) {
            let zone = Zone::new("any", vec![(0, ahead)]);
            let text = rfc3339(ns, zone);
            let read = DateTime::parse_from_rfc3339(&text).expect("this is RFC 3339");
            let since = i128::from(read.timestamp()) * 1_000_000_000;
            prop_assert_eq!(since + i128::from(read.timestamp_subsec_nanos()), ns.into(), "{}", text);
            let off = (read.offset().local_minus_utc() - ahead).abs();
            // A day ahead cannot be written: the nearest is 23:59.
            let most = 30.max(ahead.abs() - 86_340);
            prop_assert!(off <= most, "{} is {} s off", text, off);
        }
    }

    #[test]
    fn times_at_the_ends_are_those_of_the_calendar() {
        for ns in [i64::MIN, -1, 0, 951_782_400_000_000_000, 951_868_799_999_999_999, i64::MAX] {
            assert_eq!(rfc3339(ns, Zone::UTC), by_the_calendar(ns));
        }
    }

    #[test]
    fn shares_have_two_digits() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.004_12, "0.41 %"),
            (0.471_9, "47 %"),
            (1.0, "100 %"),
            (-0.012_3, "-1.2 %"),
            (0.000_012_3, "0.0012 %"),
            (1e-9, "<0.0001 %"),
        ] {
            assert_eq!(short_percent(share), text);
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(percent(0.010_49), "1.049 %");
        assert_eq!(percent(-0.000_123_4), "-0.012 %");
        assert_eq!(percent(-0.000_001_234), "<0.001 %");
        assert_eq!(percent(0.0), "0.000 %");
        assert_eq!(size(65_536), "64 KiB");
        assert_eq!(size(1_500), "1,500 B");
        assert_eq!(duration(500_000_000), "500 ms");
        assert_eq!(duration(90_000_000_000), "90 s");
        for (ns, text) in [
            (0, "0 ns"),
            (63, "63 ns"),
            (61_000_000, "61 ms"),
            (1_000_000_000, "1 s"),
            (54_610_001_000, "54.6 s"),
            (100_000_000_000_000, "27.8 h"),
            (864_000_000_000_000, "10 days"),
            (147_398_400_000_000_000, "4.7 years"),
            (u64::MAX.into(), "584.5 years"),
        ] {
            assert_eq!(about(ns), text);
        }
        assert_eq!(time(1_700_000_000_250_000_000, 0, Zone::UTC), "2023-11-14T22:13:20Z");
        assert_eq!(time(1_700_000_000_250_000_000, 3, Zone::UTC), "2023-11-14T22:13:20.250Z");
        assert_eq!(time(-1, 0, Zone::UTC), "1969-12-31T23:59:59Z");
        let kolkata = Zone::new("Asia/Kolkata", vec![(0, 19_800)]);
        assert_eq!(time(-1, 0, kolkata), "1970-01-01T05:29:59+05:30");
        assert_eq!(time(-1, 3, kolkata), "1970-01-01T05:29:59.999+05:30");
        assert_eq!(civil(-1, 3, kolkata), "1970-01-01T05:29:59.999");
        let monrovia = Zone::new("Africa/Monrovia", vec![(0, -2_670)]);
        // 44 minutes and 30 seconds behind UTC, of which RFC 3339 takes 44 or 45.
        assert_eq!(time(0, 0, monrovia), "1969-12-31T23:15:00-00:45");
    }
}
