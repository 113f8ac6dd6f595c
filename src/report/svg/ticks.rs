//! Ticks of an axis: where they are, and their labels.

use super::numbers::{decimal, decimals, nanoseconds, written_power};
use super::scale::{Span, TICKS, even_step, step_of};
use crate::report::figure::Scale;
use crate::report::number::{civil, size};
use crate::zone::Zone;
use chrono::NaiveDate;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Place along the axis, from 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// Largest number of ticks, for any range.
const MOST_TICKS: u32 = 200;

/// Steps between ticks of time that people count in, in seconds.
pub(super) const TIME_STEPS: [f64; 26] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0,
    120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0, 43_200.0,
];

const DAY: f64 = 86_400.0;

const YEAR: f64 = 365.25 * DAY;

impl Span {
    /// The ticks of the axis.
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

    /// The first and the last day of a time axis whose ticks do not name days, or the only day.
    pub(super) fn day(&self) -> Option<String> {
        let Scale::Time(zone) = self.scale else { return None };
        if time_step(self.high - self.low) >= DAY {
            return None;
        }
        let [first, last] = [self.low, self.high].map(|seconds| {
            let text = civil(nanoseconds(seconds), 0, zone);
            text.split('T').next().unwrap_or("").to_owned()
        });
        Some(if first == last { first } else { format!("{first} to {last}") })
    }

    /// Multiples of the step on the clocks of a zone. Where clocks change, ticks continue with the
    /// other offset: an hour that occurs twice has its ticks twice, and a skipped hour has none.
    fn times(&self, zone: Zone, step: f64) -> Vec<Tick> {
        let slack = step * 1e-6;
        let offsets = zone.offsets(nanoseconds(self.low), nanoseconds(self.high));
        let ends = offsets.iter().skip(1).map(|&(from, _)| seconds(from));
        let ends = ends.chain([f64::INFINITY]);
        let mut ticks = Vec::new();
        for (&(from, ahead), end) in offsets.iter().zip(ends) {
            let (begin, ahead) = (seconds(from).max(self.low - slack), f64::from(ahead));
            let first = ((begin + ahead) / step).ceil();
            let places = (0..MOST_TICKS).map(|i| (first + f64::from(i)) * step - ahead);
            let places = places.take_while(|&at| at <= self.high + slack && at < end);
            ticks.extend(places.map(|at| self.tick(at, clock(at, step, zone))));
        }
        ticks.truncate(MOST_TICKS as usize);
        ticks
    }

    /// Beginnings of years, at most a few hundred.
    fn years(&self, zone: Zone) -> Vec<Tick> {
        // A few more ticks than elsewhere: years are short.
        let step = step_of(0.7 * (self.high - self.low) / YEAR).max(1.0);
        let first = ((self.low / YEAR + 1970.0) / step).floor() * step;
        let years = (0..MOST_TICKS).map(|i| first + f64::from(i) * step);
        let ticks = years.filter_map(|year| {
            let midnight = NaiveDate::from_ymd_opt(year as i32, 1, 1)?.and_hms_opt(0, 0, 0)?;
            let local_ns = midnight.and_utc().timestamp().saturating_mul(1_000_000_000);
            let begin = seconds(zone.time_ns(local_ns));
            (begin >= self.low && begin <= self.high).then(|| self.tick(begin, year.to_string()))
        });
        ticks.collect()
    }

    fn even(&self, step: f64) -> Vec<Tick> {
        let unit = if self.scale == Scale::Percent { " %" } else { "" };
        self.multiples(step).map(|n| self.tick(n, decimal(n, step) + unit)).collect()
    }

    /// Powers of ten; with few of them, their doubles and fivefolds too.
    fn decades(&self) -> Vec<Tick> {
        let between: &[f64] = if self.high - self.low > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let step = ((self.high - self.low) / TICKS).ceil().max(1.0);
        let unit = if self.scale == Scale::PercentLog { " %" } else { "" };
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
        (0..MOST_TICKS).map(move |i| (first + f64::from(i)) * step).take_while(move |n| *n <= high)
    }

    fn tick(&self, coordinate: f64, label: String) -> Tick {
        Tick { at: self.part(coordinate), label }
    }
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

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// A time of day with as many decimals as the step needs, or a day.
fn clock(seconds: f64, step: f64, zone: Zone) -> String {
    let decimals = decimals(step).min(9);
    let text = civil(nanoseconds(seconds), decimals, zone);
    let Some((day, clock)) = text.split_once('T') else { return text };
    match step {
        step if step >= DAY => day.to_owned(),
        step if step >= 60.0 => clock[..5].to_owned(),
        _ => clock.to_owned(),
    }
}
