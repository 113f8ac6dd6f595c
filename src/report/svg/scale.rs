//! Where a number lies on an axis, where its ticks are, and how numbers are written.

use crate::report::figure::Scale;
use crate::report::number::{civil, grouped, size};
use crate::zone::Zone;
use chrono::NaiveDate;
use std::cmp::Ordering;

/// A stretch of numbers laid out along an axis: 0 is its beginning, 1 its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    /// Logarithms (of 2 for bytes, of 10 else) on logarithmic scales.
    low: f64,
    high: f64,
    /// Part of the axis below `low` where zero lies, on a logarithmic scale that has zeros to show.
    below: f64,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Place along the axis, from 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// Ticks that an axis has at most, about.
const TICKS: f64 = 6.0;

/// Part of a logarithmic axis that zero takes, where there is one.
const ZERO: f64 = 0.1;

/// Decades that a logarithmic axis of shares shows at most: what is smaller lies at its lower end.
const DECADES: f64 = 6.0;

/// An axis of shares reaches at least so far, in per cent: what is smaller is small, and looks so.
const LEAST_PERCENT: f64 = 0.1;

/// Seconds between ticks of time that people count in.
pub(super) const TIME_STEPS: [f64; 26] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0,
    120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0, 43_200.0,
];

const DAY: f64 = 86_400.0;

const YEAR: f64 = 365.25 * DAY;

/// Numbers beyond this lie at it, so that the width of a stretch is a number too.
const FAR: f64 = 1e300;

impl Span {
    /// The stretch that holds all of these numbers. `from_zero` extends it to zero where there is
    /// one, and to where the next tick would be.
    pub(super) fn over(scale: Scale, numbers: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let logarithmic = is_logarithmic(scale);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut zeros = false;
        for number in numbers.filter(|n| n.is_finite()) {
            if logarithmic && number <= 0.0 {
                zeros |= number == 0.0;
                continue;
            }
            let number = coordinate(scale, number);
            low = low.min(number);
            high = high.max(number);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if from_zero && !logarithmic {
            low = low.min(0.0);
            high = high.max(0.0);
            let reach = least(scale);
            if low.abs().max(high.abs()) < reach {
                high = if high > 0.0 || low == 0.0 { reach } else { high };
                low = if low < 0.0 { -reach } else { low };
            }
        }
        if high <= low {
            // One number alone: it lies in the middle, or above zero.
            let room = match scale {
                Scale::Log | Scale::PercentLog | Scale::Bytes => 0.5,
                Scale::Time(_) => 1.0,
                _ if low == 0.0 => 1.0,
                _ => low.abs() * 0.1,
            };
            (low, high) = (low - if low == 0.0 { 0.0 } else { room }, high + room);
        }
        if from_zero {
            match scale {
                Scale::Linear | Scale::Percent | Scale::Count => {
                    let step = even_step(scale, high - low);
                    low = (low / step).floor() * step;
                    high = (high / step).ceil() * step;
                }
                Scale::Log if high - low >= 1.0 => {
                    low = low.floor();
                    high = high.ceil();
                }
                Scale::Log => {
                    low -= 0.05;
                    high += 0.05;
                }
                Scale::PercentLog => {
                    high = high.ceil().max(0.0);
                    low = low.floor().clamp(high - DECADES, high - 1.0);
                }
                Scale::Time(_) | Scale::Bytes => {}
            }
        }
        let zero = zeros && from_zero && matches!(scale, Scale::Log | Scale::PercentLog);
        Self { scale, low, high, below: if zero { ZERO } else { 0.0 } }
    }

    /// Where the axis begins and ends: seconds of a scale of time.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Position of a number on the axis, from 0 to 1; none if the scale cannot show it.
    pub(super) fn place(&self, number: f64) -> Option<f64> {
        if !number.is_finite() {
            return None;
        }
        if is_logarithmic(self.scale) && number <= 0.0 {
            return (number == 0.0 && self.below > 0.0).then_some(0.0);
        }
        let at = coordinate(self.scale, number);
        Some(self.part(match self.scale {
            Scale::PercentLog => at.max(self.low),
            _ => at,
        }))
    }

    /// A coordinate as part of the axis.
    fn part(&self, coordinate: f64) -> f64 {
        let part = (coordinate - self.low) / (self.high - self.low);
        if self.below == 0.0 { part } else { self.below + (1.0 - self.below) * part }
    }

    /// Where bars begin: zero, or the beginning of a scale that has none.
    pub(super) fn ground(&self) -> f64 {
        self.place(0.0).unwrap_or(0.0).clamp(0.0, 1.0)
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear | Scale::Percent | Scale::Count => {
                self.even(even_step(self.scale, self.high - self.low))
            }
            Scale::Time(zone) if self.high - self.low > 3.0 * YEAR => self.years(zone),
            Scale::Time(zone) => self.times(zone, time_step(self.high - self.low)),
            Scale::Log | Scale::PercentLog => self.decades(),
            Scale::Bytes => {
                let step = ((self.high - self.low) / TICKS).ceil().max(1.0);
                self.multiples(step)
                    .map(|power| self.tick(power, size(power.exp2() as u64)))
                    .collect()
            }
        }
    }

    /// The day, or the first and the last one, of a time axis whose ticks do not say it.
    pub(super) fn day(&self) -> Option<String> {
        let Scale::Time(zone) = self.scale else {
            return None;
        };
        if time_step(self.high - self.low) >= DAY {
            return None;
        }
        let [first, last] = [self.low, self.high].map(|seconds| {
            let text = civil(nanoseconds(seconds), 0, zone);
            text.split('T').next().unwrap_or("").to_owned()
        });
        Some(if first == last { first } else { format!("{first} to {last}") })
    }

    /// Multiples of the step on the clocks of a zone. Where clocks change, they go on with the
    /// other offset: so an hour that comes twice has its ticks twice, and one that is skipped has
    /// none.
    fn times(&self, zone: Zone, step: f64) -> Vec<Tick> {
        let slack = step * 1e-6;
        let offsets = zone.offsets(nanoseconds(self.low), nanoseconds(self.high));
        let ends = offsets.iter().skip(1).map(|&(from, _)| seconds(from));
        let ends = ends.chain([f64::INFINITY]);
        let mut ticks = Vec::new();
        for (&(from, ahead), end) in offsets.iter().zip(ends) {
            let (begin, ahead) = (seconds(from).max(self.low - slack), f64::from(ahead));
            let first = ((begin + ahead) / step).ceil();
            let places = (0..200_u32).map(|i| (first + f64::from(i)) * step - ahead);
            let places = places.take_while(|&at| at <= self.high + slack && at < end);
            ticks.extend(places.map(|at| self.tick(at, clock(at, step, zone))));
        }
        ticks.truncate(200);
        ticks
    }

    /// Beginnings of years, at most a few hundred.
    fn years(&self, zone: Zone) -> Vec<Tick> {
        // A few more ticks than elsewhere: years are short.
        let step = step_of(0.7 * (self.high - self.low) / YEAR).max(1.0);
        let first = ((self.low / YEAR + 1970.0) / step).floor() * step;
        let years = (0..200_u32).map(|i| first + f64::from(i) * step);
        let ticks = years.filter_map(|year| {
            let midnight = NaiveDate::from_ymd_opt(year as i32, 1, 1)?.and_hms_opt(0, 0, 0)?;
            let local_ns = midnight.and_utc().timestamp().saturating_mul(1_000_000_000);
            let begin = seconds(zone.time_ns(local_ns));
            (begin >= self.low && begin <= self.high).then(|| self.tick(begin, year.to_string()))
        });
        ticks.collect()
    }

    fn even(&self, step: f64) -> Vec<Tick> {
        self.multiples(step).map(|n| self.tick(n, self.label(n, step))).collect()
    }

    fn label(&self, number: f64, step: f64) -> String {
        match self.scale {
            Scale::Percent => format!("{} %", decimal(number, step)),
            _ => decimal(number, step),
        }
    }

    /// Powers of ten; with few of them, their doubles and fivefolds too.
    fn decades(&self) -> Vec<Tick> {
        let between: &[f64] = match self.high - self.low {
            wide if wide > 2.5 => &[1.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let step = ((self.high - self.low) / TICKS).ceil().max(1.0);
        let unit = match self.scale {
            Scale::PercentLog => " %",
            _ => "",
        };
        let mut ticks = Vec::new();
        if self.below > 0.0 {
            ticks.push(Tick { at: 0.0, label: format!("0{unit}") });
        }
        let mut power = (self.low / step).floor() * step;
        while power <= self.high {
            for factor in between {
                let at = power + factor.log10();
                if at >= self.low - 1e-9 && at <= self.high + 1e-9 {
                    ticks.push(self.tick(at, written_power(*factor, power) + unit));
                }
            }
            power += step;
        }
        ticks
    }

    /// Multiples of the step within the stretch; a few hundred at most, for any numbers.
    fn multiples(&self, step: f64) -> impl Iterator<Item = f64> + use<> {
        let slack = step * 1e-6;
        let (first, high) = (((self.low - slack) / step).ceil(), self.high + slack);
        (0..200_u32).map(move |i| (first + f64::from(i)) * step).take_while(move |n| *n <= high)
    }

    fn tick(&self, coordinate: f64, label: String) -> Tick {
        Tick { at: self.part(coordinate), label }
    }
}

/// Whether numbers lie by their logarithm.
pub(super) fn is_logarithmic(scale: Scale) -> bool {
    matches!(scale, Scale::Log | Scale::PercentLog | Scale::Bytes)
}

/// How far an axis from zero reaches at least.
pub(super) fn least(scale: Scale) -> f64 {
    match scale {
        Scale::Percent => LEAST_PERCENT,
        Scale::Count => 1.0,
        _ => 0.0,
    }
}

/// A number as it lies along the axis.
fn coordinate(scale: Scale, number: f64) -> f64 {
    match scale {
        Scale::Log => number.log10(),
        Scale::PercentLog => (number * 100.0).min(FAR).log10(),
        Scale::Bytes => number.log2(),
        Scale::Percent => (number * 100.0).clamp(-FAR, FAR),
        Scale::Linear | Scale::Count | Scale::Time(_) => number.clamp(-FAR, FAR),
    }
}

/// The step of 1, 2 or 5 times a power of ten that gives about as many ticks as there is room for.
fn step_of(width: f64) -> f64 {
    let rough = width / (TICKS - 1.0);
    let power = 10_f64.powf(rough.log10().floor());
    let factor =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    (factor.unwrap_or(10.0) * power).max(f64::MIN_POSITIVE)
}

/// The step of an even scale: of what is counted, whole.
fn even_step(scale: Scale, width: f64) -> f64 {
    let step = step_of(width);
    if scale == Scale::Count { step.max(1.0) } else { step }
}

fn time_step(width: f64) -> f64 {
    let rough = width / TICKS;
    if rough < TIME_STEPS[0] {
        return step_of(width);
    }
    TIME_STEPS
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or_else(|| (step_of(width / DAY) * DAY).max(DAY))
}

fn nanoseconds(seconds: f64) -> i64 {
    // By microseconds: that is what a double of seconds since 1970 can tell.
    ((seconds * 1e6).round() as i64).saturating_mul(1000)
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// A time of day with as many decimals as the step needs, or a day.
fn clock(seconds: f64, step: f64, zone: Zone) -> String {
    let decimals = decimals(step).min(9);
    let text = civil(nanoseconds(seconds), decimals, zone);
    let Some((day, clock)) = text.split_once('T') else {
        return text;
    };
    match step {
        step if step >= DAY => day.to_owned(),
        step if step >= 60.0 => clock[..5].to_owned(),
        _ => clock.to_owned(),
    }
}

/// Decimals that multiples of the step have.
fn decimals(step: f64) -> usize {
    (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize
}

/// A number with the decimals of the step, in thousands, millions where they are many.
fn decimal(number: f64, step: f64) -> String {
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
    let text = format!("{:.decimals$}", number.abs() / unit);
    let (whole, rest) = text.split_once('.').map_or((&*text, None), |(w, r)| (w, Some(r)));
    let sign = if number < 0.0 { "\u{2212}" } else { "" };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    let name = if number == 0.0 { "" } else { name };
    match rest {
        Some(rest) => format!("{sign}{whole}.{rest}{name}"),
        None => format!("{sign}{whole}{name}"),
    }
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
    let sign = if number < 0.0 { "\u{2212}" } else { "" };
    if large.fract() == 0.0 {
        return format!("{sign}{}", grouped(large as u64));
    }
    let decimals = (3.0 - large.log10().floor()).max(1.0) as usize;
    let text = format!("{large:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    match rest.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        rest => format!("{sign}{whole}.{rest}"),
    }
}

fn scientific(number: f64) -> String {
    let text = format!("{number:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{} × 10{}", digits.replace('-', "\u{2212}"), raised(power))
}

/// A factor times a power of ten, as people write it on axes.
fn written_power(factor: f64, power: f64) -> String {
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

    fn labels(scale: Scale, numbers: &[f64], from_zero: bool) -> Vec<String> {
        let span = Span::over(scale, numbers.iter().copied(), from_zero);
        span.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(Scale::Linear, &[0.0, 4_321.0], true),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]
        );
        assert_eq!(
            labels(Scale::Percent, &[-0.001, 0.002], true),
            ["\u{2212}0.1 %", "0.0 %", "0.1 %", "0.2 %"]
        );
        assert_eq!(
            labels(Scale::Log, &[1e-7, 1e-3], true),
            ["10⁻⁷", "10⁻⁶", "10⁻⁵", "0.0001", "0.001"]
        );
        assert_eq!(
            labels(Scale::Bytes, &[4096.0, 262_144.0], false),
            ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB"]
        );
        assert_eq!(
            labels(Scale::Time(Zone::UTC), &[1_700_000_000.0, 1_700_000_019.0], false),
            ["22:13:20", "22:13:25", "22:13:30", "22:13:35"]
        );
        assert_eq!(
            labels(Scale::Time(Zone::UTC), &[1_700_000_000.0, 1_700_700_000.0], false)[0],
            // The first midnight of an even number of days since 1970: 19,676.
            "2023-11-15"
        );
        assert_eq!(
            labels(Scale::Time(Zone::UTC), &[0.0, 1_700_000_000.0], false),
            ["1970", "1980", "1990", "2000", "2010", "2020"]
        );
    }

    #[test]
    fn ticks_of_time_are_those_of_the_zone() {
        // Summer time begins at 1:00 UTC on 2024-03-31, and ends at 1:00 UTC on 2024-10-27.
        let changes = [(0, 1), (1_711_846_800, 2), (1_729_990_800, 1)];
        let offsets = changes.map(|(second, hours)| (second * 1_000_000_000, hours * 3_600));
        let time = Scale::Time(Zone::new("Europe/Berlin", offsets.to_vec()));
        let ticks = |from: f64, hours: f64| labels(time, &[from, from + hours * 3_600.0], false);
        // Half-hours, in front of and behind the hour that is skipped.
        assert_eq!(
            ticks(1_711_843_200.0, 2.5),
            ["01:00", "01:30", "03:00", "03:30", "04:00", "04:30"]
        );
        // The hour that comes twice.
        assert_eq!(
            ticks(1_729_987_200.0, 2.5),
            ["02:00", "02:30", "02:00", "02:30", "03:00", "03:30"]
        );
        // Midnights over the change: 23 hours lie between two of them.
        let days = Span::over(time, [1_711_753_200.0, 1_712_181_600.0].into_iter(), false);
        let at: Vec<f64> = days.ticks().iter().map(|tick| tick.at).collect();
        let labels: Vec<String> = days.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels[..3], ["2024-03-30", "2024-03-31", "2024-04-01"]);
        let hours = (at[2] - at[1]) * (1_712_181_600.0 - 1_711_753_200.0) / 3_600.0;
        assert!((hours - 23.0).abs() < 1e-6, "{hours}");
        let day = Span::over(time, [1_711_753_200.0, 1_711_760_000.0].into_iter(), false).day();
        assert_eq!(day.as_deref(), Some("2024-03-30"));
        assert_eq!(written(time, 1_711_846_800.0), "2024-03-31 03:00:00");
        // Years begin an hour before they do in UTC.
        let years = Span::over(time, [1_388_534_400.0, 1_748_534_400.0].into_iter(), false);
        let year = years.ticks().remove(0);
        assert_eq!(year.label, "2016");
        let second = 1_388_534_400.0 + year.at * 360_000_000.0;
        assert!((second - (1_451_606_400.0 - 3_600.0)).abs() < 1e-3, "{second}");
    }

    #[test]
    fn what_is_counted_has_whole_ticks() {
        assert_eq!(labels(Scale::Count, &[0.0, 2.0], true), ["0", "1", "2"]);
        assert_eq!(labels(Scale::Count, &[0.0], true), ["0", "1"]);
        assert_eq!(
            labels(Scale::Count, &[0.2, 4_321.5], true),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]
        );
    }

    #[test]
    fn a_small_share_does_not_fill_its_axis() {
        let span = Span::over(Scale::Percent, [0.0, 1e-8].into_iter(), true);
        assert!(span.place(1e-8).unwrap() < 1e-4);
        let span = Span::over(Scale::Percent, [-1e-8, 1e-8].into_iter(), true);
        assert!((span.place(0.0).unwrap() - 0.5).abs() < 1e-9);
        let span = Span::over(Scale::PercentLog, [1e-12, 1e-8].into_iter(), true);
        // From 1 % down by six decades, and what is below lies at the end.
        assert_eq!(span.place(1e-12), Some(0.0));
        assert_eq!(span.place(1e-8), Some(0.0));
        assert!((span.place(1e-4).unwrap() - 4.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn zero_has_a_place_below_a_logarithmic_axis_of_shares() {
        let numbers = [0.0, 0.001, 1.0];
        assert_eq!(
            labels(Scale::PercentLog, &numbers, true),
            ["0 %", "0.1 %", "1 %", "10 %", "100 %"]
        );
        let span = Span::over(Scale::PercentLog, numbers.into_iter(), true);
        assert_eq!(span.place(0.0), Some(0.0));
        assert_eq!(span.place(0.001), Some(ZERO));
        assert_eq!(span.place(1.0), Some(1.0));
        assert_eq!(span.place(-1.0), None);
    }

    #[test]
    fn zero_has_a_place_below_any_logarithmic_axis_from_zero() {
        let numbers = [0.0, 1e-7, 1e-3];
        let labels = labels(Scale::Log, &numbers, true);
        assert_eq!(labels, ["0", "10⁻⁷", "10⁻⁶", "10⁻⁵", "0.0001", "0.001"]);
        let span = Span::over(Scale::Log, numbers.into_iter(), true);
        assert_eq!(span.place(0.0), Some(0.0));
        assert_eq!(span.place(1e-7), Some(ZERO));
        assert_eq!(span.place(1e-3), Some(1.0));
        // An axis without a zero begins at its lowest power, and one that is not from zero has
        // none.
        let without = Span::over(Scale::Log, [1e-7, 1e-3].into_iter(), true);
        assert_eq!((without.place(0.0), without.place(1e-7)), (None, Some(0.0)));
        let beside = Span::over(Scale::Log, numbers.into_iter(), false);
        assert_eq!(beside.place(0.0), None);
    }

    #[test]
    fn an_axis_over_midnight_has_both_days() {
        let day = |low: f64, high: f64| {
            Span::over(Scale::Time(Zone::UTC), [low, high].into_iter(), false).day()
        };
        assert_eq!(day(1_700_000_000.0, 1_700_000_009.0).unwrap(), "2023-11-14");
        assert_eq!(day(1_700_000_000.0, 1_700_009_000.0).unwrap(), "2023-11-14 to 2023-11-15");
    }

    #[test]
    fn places_lie_between_the_ends() {
        let span = Span::over(Scale::Log, [1.0, 1000.0].into_iter(), true);
        assert_eq!(span.place(1.0), Some(0.0));
        assert_eq!(span.place(1000.0), Some(1.0));
        assert!((span.place(10.0).unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(span.place(0.0), None);
        assert_eq!(span.place(f64::NAN), None);
    }

    #[test]
    fn any_numbers_have_an_axis() {
        let hard = [
            0.0,
            -1.0,
            1.0,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::MIN,
            f64::NAN,
            f64::INFINITY,
            1e-300,
            9e18,
        ];
        for scale in [
            Scale::Linear,
            Scale::Log,
            Scale::Time(Zone::UTC),
            Scale::Bytes,
            Scale::Percent,
            Scale::Count,
            Scale::PercentLog,
        ] {
            for a in hard {
                for b in hard {
                    let span = Span::over(scale, [a, b].into_iter(), true);
                    assert!(span.ticks().len() <= 200, "{scale:?} {a} {b}");
                    let _ = (written(scale, a), span.place(a), span.ground());
                }
            }
        }
    }

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
