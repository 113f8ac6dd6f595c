//! Numbers, sizes and times as people read them.

use jiff::Timestamp;

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

/// A time as RFC 3339 with so many decimals of the second. Times that no calendar reaches are given
/// in seconds since the epoch.
pub(super) fn time(ns: i64, decimals: usize) -> String {
    Timestamp::from_nanosecond(i128::from(ns)).map_or_else(
        |_| format!("{:.decimals$}", ns as f64 / 1e9),
        |time| format!("{time:.decimals$}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
