//! Curves over time for the script of a page, which draws any part of the time.

use super::envelope::{COLUMN, MANY};
use super::scale::least;
use super::ticks::TIME_STEPS;
use crate::report::chart_rows::{LineRows, text_at};
use crate::report::figure::{Axis, Scale, Series, SeriesStyle};
use serde::Serialize;

/// Largest number of places in time of a figure on a page, and of values of all its curves.
const MOST_PLACES: usize = 10_000;
const MOST_VALUES: usize = 100_000;

/// Curves over time, for the script of a page.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    /// Ends of the axis, in microseconds since the epoch.
    from: i64,
    to: i64,
    /// The first place in microseconds, the step, and the distance between places in steps.
    first: i64,
    step: i64,
    gaps: Vec<u64>,
    /// The values of each curve at these places, as in the table of the figure, separated by `|`.
    values: Vec<String>,
    /// Number of places before thinning out.
    places: usize,
    /// Top and height of the panels that each curve is in.
    pub(super) panels: Vec<Vec<(f64, f64)>>,
    pub(super) strips: bool,
    pub(super) filled: bool,
    /// Whether each curve is in the band of its errors.
    bands: Vec<bool>,
    /// Label of the time axis, and unit of the other one.
    label: String,
    unit: &'static str,
    /// Least extent of the vertical axis, and whether its ticks are whole numbers.
    least: f64,
    whole: bool,
    /// Number of points above which a curve is drawn by columns, and the width of a column.
    many: usize,
    column: f64,
    /// Seconds between ticks.
    steps: &'static [f64],
    /// The zone, and by how many microseconds it is ahead of UTC from which microsecond on.
    zone: &'static str,
    offsets: Vec<(i64, i64)>,
}

impl Times {
    /// The values of curves over time; `None` for other axes.
    pub(super) fn new((x, y): (&Axis, &Axis), series: &[Series], ends: (f64, f64)) -> Option<Self> {
        let even = matches!(y.scale, Scale::Linear | Scale::Percent | Scale::Count);
        let Scale::Time(zone) = x.scale else { return None };
        if !even {
            return None;
        }
        let most = MOST_PLACES.min(MOST_VALUES / series.len().max(1));
        let rows = LineRows::most(series, most);
        let micros = |seconds: f64| (seconds * 1e6).round() as i64;
        let mut at: Vec<i64> = rows.x.iter().map(|x| micros(*x)).collect();
        at.dedup();
        if at.len() != rows.x.len() || at.len() < 3 {
            return None;
        }
        let gaps = || at.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
        let step = gaps().fold(0, greatest_common_divisor).max(1);
        let values = series.iter().map(|series| {
            let texts = rows.x.iter().map(|x| text_at(series, *x, y.scale));
            texts.collect::<Vec<_>>().join("|")
        });
        Some(Self {
            from: micros(ends.0),
            to: micros(ends.1),
            first: at[0],
            step: i64::try_from(step).ok()?,
            gaps: gaps().map(|gap| gap / step).collect(),
            values: values.collect(),
            places: rows.places,
            panels: Vec::new(),
            strips: false,
            filled: false,
            bands: series.iter().map(|series| series.style == SeriesStyle::Band).collect(),
            label: x.label.clone(),
            unit: if y.scale == Scale::Percent { " %" } else { "" },
            least: least(y.scale),
            whole: y.scale == Scale::Count,
            many: MANY,
            column: COLUMN,
            steps: &TIME_STEPS,
            zone: zone.name(),
            offsets: zone
                .offsets(micros(ends.0).saturating_mul(1000), micros(ends.1).saturating_mul(1000))
                .into_iter()
                .map(|(from, ahead)| (from / 1000, i64::from(ahead) * 1_000_000))
                .collect(),
        })
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::Point;
    use crate::zone::Zone;

    fn times(points: Vec<Point>, copies: usize) -> Option<Times> {
        let axes = (&Axis::new("time", Scale::Time(Zone::UTC)), &Axis::new("n", Scale::Percent));
        let series = Series { name: "a".into(), points, style: SeriesStyle::Line };
        Times::new(axes, &vec![series; copies], (1_700_000_000.0, 1_700_000_009.0))
    }

    fn point(x: f64, y: f64, error: f64) -> Point {
        Point { x, y, errors: [error; 2] }
    }

    #[test]
    fn values_are_those_of_the_table() {
        let points = vec![
            point(1_700_000_000.0, 0.5, 0.012_34),
            point(1_700_000_000.2, f64::NAN, 0.0),
            point(1_700_000_000.5, 0.25, 0.0),
        ];
        let times = times(points, 1).unwrap();
        assert_eq!(times.values, ["50 % ± 1.234 %||25 %"]);
        assert_eq!((times.first, times.step), (1_700_000_000_000_000, 100_000));
        assert_eq!(times.gaps, [2, 3]);
        assert_eq!((times.from, times.to), (1_700_000_000_000_000, 1_700_000_009_000_000));
    }

    #[test]
    fn what_a_page_has_is_bounded() {
        let points = |n: u32| (0..n).map(|i| point(1.7e9 + f64::from(i), f64::from(i % 97), 0.0));
        for (curves, places) in [(1, 40_000), (14, 30_000)] {
            let times = times(points(places).collect(), curves).unwrap();
            assert_eq!(times.places, places as usize);
            let kept = times.gaps.len() + 1;
            assert!(kept > 500 && kept <= MOST_PLACES && kept * curves <= MOST_VALUES, "{kept}");
            assert!(times.values.iter().all(|v| v.split('|').count() == kept));
        }
        assert!(times(points(2).collect(), 1).is_none(), "nothing to choose from");
    }
}
