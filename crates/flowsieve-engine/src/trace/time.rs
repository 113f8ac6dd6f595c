//! Time stamps of all containers, turned into nanoseconds since the epoch; saturating, never
//! wrapping.

use chrono::{DateTime, FixedOffset, NaiveDateTime};

pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Clamps a time in nanoseconds to what an `i64` can hold. The ends of the range stand for all
/// times beyond them; see [`is_out_of_range`].
pub(super) fn saturate(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
}

/// Returns whether a time lies outside the range of nanoseconds in an `i64`, which is from 1677 to
/// 2262. The first and the last nanosecond of the range count as outside.
pub(crate) fn is_out_of_range(time_ns: i64) -> bool {
    time_ns == i64::MIN || time_ns == i64::MAX
}

/// Seconds in 32.32 fixed point, as ERF has them, rounded to the nearest nanosecond.
pub(super) fn from_fixed_point(stamp: u64) -> i64 {
    let seconds = i64::from((stamp >> 32) as u32);
    let fraction = stamp & 0xffff_ffff;
    let nanoseconds = (fraction * NANOS_PER_SECOND as u64 + (1 << 31)) >> 32;
    seconds * NANOS_PER_SECOND + nanoseconds.cast_signed()
}

/// Epoch seconds written as a decimal number (`1700000000.123456`), exact to the nanosecond; an
/// exponent (`1.7e9`) goes through floating point.
pub(super) fn from_decimal_seconds(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        let seconds = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        let seconds = if seconds { text.parse::<f64>().ok()? } else { return None };
        return Some((seconds * NANOS_PER_SECOND as f64).round() as i64);
    }
    // 25 digits are far beyond the range, and cannot overflow the sum below.
    let whole = whole.trim_start_matches('0');
    let seconds = if whole.len() > 25 {
        i128::from(i64::MAX)
    } else {
        whole.bytes().fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'))
    };
    let nanoseconds = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'));
    let time = seconds * i128::from(NANOS_PER_SECOND) + nanoseconds;
    Some(saturate(if negative { -time } else { time }))
}

/// A time in a log or in a question, in nanoseconds since the epoch: epoch seconds, or RFC 3339,
/// where the seconds may be left out. Twelve digits or more are milliseconds, as in nfdump's
/// `csv-fast` and Zeek's JSON, 15 or more microseconds and 18 or more nanoseconds: in the larger
/// unit, each would be in the year 5138 or later.
pub fn from_text(text: &str) -> Option<i64> {
    if text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let unit = match text.len() {
            ..15 => 1_000_000,
            15..18 => 1_000,
            _ => 1,
        };
        return Some(text.parse().unwrap_or(i64::MAX).saturating_mul(unit));
    }
    let time = || {
        DateTime::parse_from_rfc3339(text)
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M%#z"))
            .ok()
    };
    from_decimal_seconds(text).or_else(|| Some(of(&time()?)))
}

/// A time in a log: as [`from_text`], with an offset without a colon as Suricata writes it, or
/// without an offset as nfdump does, which is then taken for UTC.
pub(super) fn from_log(text: &str) -> Option<i64> {
    let offset = || DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%#z").ok();
    let none = || {
        let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
        let mut times =
            formats.iter().filter_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        Some(times.next()?.and_utc().fixed_offset())
    };
    from_text(text).or_else(|| Some(of(&offset().or_else(none)?)))
}

/// Nanoseconds since the epoch.
fn of(time: &DateTime<FixedOffset>) -> i64 {
    let seconds = i128::from(time.timestamp()) * i128::from(NANOS_PER_SECOND);
    saturate(seconds + i128::from(time.timestamp_subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_seconds_are_exact() {
        assert_eq!(from_text("1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!(from_text("1700000000.1234567899"), Some(1_700_000_000_123_456_789));
        assert_eq!(from_text("-0.5"), Some(-500_000_000));
        assert_eq!(from_text("7"), Some(7_000_000_000));
        assert_eq!(from_text("7."), Some(7_000_000_000));
        assert_eq!(from_text(".25"), Some(250_000_000));
        assert_eq!(from_text("1.5e3"), Some(1_500_000_000_000));
        for bad in ["", ".", "-", "nan", "inf", "abc", "1,5", "0x10"] {
            assert_eq!(from_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn rfc_3339_is_read() {
        assert_eq!(from_text("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
        assert_eq!(from_text("1970-01-01T01:00:01+01:00"), Some(1_000_000_000));
        assert_eq!(from_text("1970-01-01T00:01Z"), Some(60_000_000_000));
        assert_eq!(from_text("1970-01-01T01:01+01:00"), Some(60_000_000_000));
    }

    #[test]
    fn units_of_whole_times_are_known_by_their_digits() {
        for text in ["1700000000.5", "1700000000500", "1700000000500000", "1700000000500000000"] {
            assert_eq!(from_log(text), Some(1_700_000_000_500_000_000), "{text}");
        }
        assert_eq!(from_log("99999999999"), Some(i64::MAX), "seconds");
        assert_eq!(from_log(&"9".repeat(30)), Some(i64::MAX));
    }

    #[test]
    fn times_of_logs_are_read() {
        for text in [
            "1970-01-01T02:00:01.5+0200",
            "1970-01-01 00:00:01.500",
            "1970-01-01T00:00:01.5",
            "1970-01-01T00:00:01.5Z",
            "1.5",
        ] {
            assert_eq!(from_log(text), Some(1_500_000_000), "{text}");
        }
        for bad in ["", "1970-01-01", "1970-01-01 00:00", "now"] {
            assert_eq!(from_log(bad), None, "{bad}");
        }
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(from_text("99999999999999999999999999999"), Some(i64::MAX));
        assert_eq!(from_text("-99999999999999999999999999999"), Some(i64::MIN));
        assert_eq!(from_text("9e99"), Some(i64::MAX));
        assert_eq!(from_fixed_point(u64::MAX), 4_294_967_296 * NANOS_PER_SECOND);
        assert_eq!(from_fixed_point(1 << 31), 500_000_000);
    }
}
