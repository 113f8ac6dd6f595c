//! Numbers, sizes and times as people read them.

/// `1234567` as `1,234,567`.
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

/// A text with a capital at its beginning.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// A rate or an error as a percentage: `1.049 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent != 0.0 && percent.abs() < 0.000_5 {
        return "<0.001 %".to_owned();
    }
    format!("{percent:.3} %")
}

/// Bytes in the largest unit that keeps them whole: `64 KiB`.
pub(super) fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", grouped(bytes / unit));
        }
    }
    format!("{} B", grouped(bytes))
}

/// Nanoseconds in the largest unit that keeps them whole: `500 ms`.
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

/// How wide slices are: `in slices of 1 s`.
pub(super) fn slices_of(width_ns: Option<i64>) -> String {
    match width_ns {
        Some(width) => format!("in slices of {}", duration(width)),
        None => "over everything".to_owned(),
    }
}

/// A time as RFC 3339 with this many decimals of the second, at most nine; further ones are cut off.
pub(super) fn time(ns: i64, decimals: usize) -> String {
    const SECONDS: usize = "0000-00-00T00:00:00".len();
    let mut text = rfc3339(ns);
    text.truncate(if decimals == 0 {
        SECONDS
    } else {
        SECONDS + 1 + decimals
    });
    text.push('Z');
    text
}

/// A time as RFC 3339 to the nanosecond.
pub(super) fn rfc3339(ns: i64) -> String {
    let mut text = String::with_capacity(30);
    write_rfc3339(ns, &mut text);
    text
}

/// Appends a time as RFC 3339 to the nanosecond. This is written for every row, so it does without the generality
/// of a calendar and of formatting.
pub(super) fn write_rfc3339(ns: i64, out: &mut String) {
    let (days, in_day) = (ns.div_euclid(DAY_NS), ns.rem_euclid(DAY_NS));
    // Years begin in March here, so that the day of a leap year is the last: 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (second, ns) = (in_day / 1_000_000_000, in_day % 1_000_000_000);
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    // All of it lies between the years 1677 and 2262.
    for (number, last, digits) in [
        (year, 3, 4),
        (month, 6, 2),
        (day, 9, 2),
        (second / 3600, 12, 2),
        (second / 60 % 60, 15, 2),
        (second % 60, 18, 2),
        (ns, 28, 9),
    ] {
        let mut left = number as u32;
        for place in (last + 1 - digits..=last).rev() {
            text[place] += (left % 10) as u8;
            left /= 10;
        }
    }
    out.push_str(std::str::from_utf8(&text).expect("digits are ASCII"));
}

const DAY_NS: i64 = 86_400_000_000_000;

/// Nanoseconds as decimal seconds, exact.
pub(super) fn seconds(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use proptest::prelude::*;

    fn by_the_calendar(ns: i64) -> String {
        let time = DateTime::from_timestamp_nanos(ns);
        time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string()
    }

    proptest! {
        #[test]
        fn times_are_those_of_the_calendar(ns: i64) {
            prop_assert_eq!(rfc3339(ns), by_the_calendar(ns));
            prop_assert_eq!(time(ns, 9), by_the_calendar(ns));
        }
    }

    #[test]
    fn times_at_the_ends_are_those_of_the_calendar() {
        for ns in [
            i64::MIN,
            -1,
            0,
            951_782_400_000_000_000,
            951_868_799_999_999_999,
            i64::MAX,
        ] {
            assert_eq!(rfc3339(ns), by_the_calendar(ns));
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
        assert_eq!(time(1_700_000_000_250_000_000, 0), "2023-11-14T22:13:20Z");
        assert_eq!(
            time(1_700_000_000_250_000_000, 3),
            "2023-11-14T22:13:20.250Z"
        );
        assert_eq!(time(-1, 0), "1969-12-31T23:59:59Z");
    }
}
