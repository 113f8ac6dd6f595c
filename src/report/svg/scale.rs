//! Where numbers lie on an axis.

use crate::report::figure::Scale;

/// A range of numbers laid out along an axis: 0 is its beginning, 1 its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) scale: Scale,
    /// Ends of the axis, as coordinates: logarithms (base 2 for bytes, otherwise 10) on logarithmic
    /// scales.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Part of a logarithmic axis below `low`, where zeros lie.
    pub(super) below: f64,
}

/// Approximate number of ticks of an axis.
pub(super) const TICKS: f64 = 6.0;

/// Part of a logarithmic axis that zero takes, where there is one.
const ZERO: f64 = 0.1;

/// Decades that a logarithmic axis of shares shows at most; smaller values lie at its lower end.
const DECADES: f64 = 6.0;

/// Least extent of an axis of shares, in per cent, so that small shares look small.
const LEAST_PERCENT: f64 = 0.1;

/// Numbers beyond this lie at it, so that the width of a range is a finite number.
const FAR: f64 = 1e300;

impl Span {
    /// The range that holds all of these numbers. `from_zero` extends it to zero where the scale has
    /// one, and to the next ticks.
    pub(super) fn over(scale: Scale, numbers: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
        let is_shown = |number: &&f64| !is_logarithmic(scale) || **number > 0.0;
        let shown = numbers.iter().filter(is_shown).map(|number| coordinate(scale, *number));
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let ends = shown.fold(ends, |(low, high), number| (low.min(number), high.max(number)));
        let mut ends = if ends.0 > ends.1 { (0.0, 1.0) } else { ends };
        if from_zero && !is_logarithmic(scale) {
            ends = with_zero(ends, least(scale));
        }
        if ends.1 <= ends.0 {
            ends = around(scale, ends);
        }
        if from_zero {
            ends = to_ticks(scale, ends);
        }
        let has_zero =
            from_zero && matches!(scale, Scale::Log | Scale::PercentLog) && numbers.contains(&0.0);
        Self { scale, low: ends.0, high: ends.1, below: if has_zero { ZERO } else { 0.0 } }
    }

    /// Where the axis begins and ends: seconds for a scale of time.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Position of a number on the axis, from 0 to 1; `None` if the scale cannot show it.
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
    pub(super) fn part(&self, coordinate: f64) -> f64 {
        let part = (coordinate - self.low) / (self.high - self.low);
        if self.below == 0.0 { part } else { self.below + (1.0 - self.below) * part }
    }

    /// Where bars begin: zero, or the beginning of a scale that has none.
    pub(super) fn ground(&self) -> f64 {
        self.place(0.0).unwrap_or(0.0).clamp(0.0, 1.0)
    }
}

/// Extends a range to zero, and to at least this far from it.
fn with_zero((low, high): (f64, f64), reach: f64) -> (f64, f64) {
    let (low, high) = (low.min(0.0), high.max(0.0));
    if low.abs().max(high.abs()) >= reach {
        return (low, high);
    }
    (if low < 0.0 { -reach } else { low }, if high > 0.0 || low == 0.0 { reach } else { high })
}

/// A range around a single number, which lies in the middle, or above zero.
fn around(scale: Scale, (low, high): (f64, f64)) -> (f64, f64) {
    let room = match scale {
        Scale::Log | Scale::PercentLog | Scale::Bytes => 0.5,
        Scale::Time(_) => 1.0,
        _ if low == 0.0 => 1.0,
        _ => low.abs() * 0.1,
    };
    (if low == 0.0 { low } else { low - room }, high + room)
}

/// Extends a range to the next ticks.
fn to_ticks(scale: Scale, (low, high): (f64, f64)) -> (f64, f64) {
    match scale {
        Scale::Linear | Scale::Percent | Scale::Count => {
            let step = even_step(scale, high - low);
            ((low / step).floor() * step, (high / step).ceil() * step)
        }
        Scale::Log if high - low >= 1.0 => (low.floor(), high.ceil()),
        Scale::Log => (low - 0.05, high + 0.05),
        Scale::PercentLog => {
            let high = high.ceil().max(0.0);
            (low.floor().clamp(high - DECADES, high - 1.0), high)
        }
        Scale::Time(_) | Scale::Bytes => (low, high),
    }
}

/// Whether numbers lie by their logarithm.
pub(super) fn is_logarithmic(scale: Scale) -> bool {
    matches!(scale, Scale::Log | Scale::PercentLog | Scale::Bytes)
}

/// The least extent of an axis that begins at zero.
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
pub(super) fn step_of(width: f64) -> f64 {
    let rough = width / (TICKS - 1.0);
    let power = 10_f64.powf(rough.log10().floor());
    let factor =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    (factor.unwrap_or(10.0) * power).max(f64::MIN_POSITIVE)
}

/// The step of an even scale; a scale of counts has whole steps.
pub(super) fn even_step(scale: Scale, width: f64) -> f64 {
    let step = step_of(width);
    if scale == Scale::Count { step.max(1.0) } else { step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::svg::numbers::written;
    use crate::zone::Zone;

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
}
