//! Numbers as axes, tables and hovers of a chart write them.

use crate::report::figure::Scale;
use crate::report::number::{civil, grouped, size};
use std::cmp::Ordering;

/// Seconds as whole nanoseconds.
pub(super) fn nanoseconds(seconds: f64) -> i64 {
    // A double of seconds since 1970 is exact to about a microsecond.
    ((seconds * 1e6).round() as i64).saturating_mul(1000)
}

/// Decimals that multiples of the step have.
pub(super) fn decimals(step: f64) -> usize {
    (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize
}

/// A number with the decimals of the step, in thousands, millions where they are many.
pub(super) fn decimal(number: f64, step: f64) -> String {
    let number = if number.abs() < step * 1e-6 { 0.0 } else { number };
    let (unit, name) = match number.abs().max(step) {
        large if large >= 1e9 && step >= 1e7 => (1e9, " G"),
        large if large >= 1e6 && step >= 1e4 => (1e6, " M"),
        _ => (1.0, ""),
    };
    if !(1e-6..1e15).contains(&step) {
        return if number == 0.0 { "0".to_owned() } else { scientific(number) };
    }
    let decimals = decimals(step / unit);
    let name = if number == 0.0 { "" } else { name };
    signed(number, &format!("{:.decimals$}", number.abs() / unit)) + name
}

/// The digits of a number with its sign, in groups of three.
fn signed(number: f64, digits: &str) -> String {
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let sign = if number < 0.0 { "\u{2212}" } else { "" };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    format!("{sign}{whole}{rest}")
}

/// A number as the tables and the hover of a chart give it.
pub(in crate::report) fn written(scale: Scale, number: f64) -> String {
    if !number.is_finite() {
        return "\u{2013}".to_owned();
    }
    match scale {
        Scale::Time(zone) => {
            let text = civil(nanoseconds(number), 6, zone);
            let text = text.trim_end_matches('0');
            text.trim_end_matches('.').replace('T', " ")
        }
        Scale::Bytes if number >= 0.0 => size(number as u64),
        Scale::Percent | Scale::PercentLog => format!("{} %", significant(number * 100.0)),
        _ => significant(number),
    }
}

/// Four significant digits, more for whole numbers.
fn significant(number: f64) -> String {
    let large = number.abs();
    if large == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&large) {
        return scientific(number);
    }
    if large.fract() == 0.0 {
        return signed(number, &format!("{large:.0}"));
    }
    let decimals = (3.0 - large.log10().floor()).max(1.0) as usize;
    let digits = format!("{large:.decimals$}");
    signed(number, digits.trim_end_matches('0').trim_end_matches('.'))
}

fn scientific(number: f64) -> String {
    let text = format!("{number:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{} × 10{}", digits.replace('-', "\u{2212}"), raised(power))
}

/// A factor times a power of ten, as people write it on axes.
pub(super) fn written_power(factor: f64, power: f64) -> String {
    match power.abs().partial_cmp(&4.5) {
        Some(Ordering::Less) => decimal(factor * 10_f64.powf(power), 10_f64.powf(power)),
        _ if factor > 1.0 => format!("{factor} × 10{}", raised(&power.to_string())),
        _ => format!("10{}", raised(&power.to_string())),
    }
}

fn raised(power: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    power.chars().map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::Zone;

    #[test]
    fn values_are_readable() {
        assert_eq!(written(Scale::Linear, 1_234_567.0), "1,234,567");
        assert_eq!(written(Scale::Linear, 12.345_678), "12.35");
        assert_eq!(written(Scale::Linear, -0.5), "\u{2212}0.5");
        assert_eq!(written(Scale::Log, 1.25e-7), "1.25 × 10⁻⁷");
        assert_eq!(written(Scale::Percent, 0.012_34), "1.234 %");
        assert_eq!(written(Scale::Bytes, 65_536.0), "64 KiB");
        assert_eq!(written(Scale::Time(Zone::UTC), 1_700_000_000.25), "2023-11-14 22:13:20.25");
        assert_eq!(written(Scale::Time(Zone::UTC), 1_700_000_000.0), "2023-11-14 22:13:20");
        assert_eq!(written(Scale::Linear, f64::NAN), "\u{2013}");
    }
}
