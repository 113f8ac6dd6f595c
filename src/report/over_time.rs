//! Curves over time, and what the head of every page says of how the run went.

use super::figure::{Point, Series, SeriesStyle};
use super::number::grouped;
use crate::pipeline::InputResult;
use flowsieve_engine::internal::Shown;

/// A slice as a curve has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) value: Option<f64>,
    pub(super) std_error: Option<f64>,
}

/// A value of each slice at its beginning; a gap where there are no slices. Each place stands for
/// `each` slices, of which the others were left out.
pub(super) fn curve(
    name: &str,
    style: SeriesStyle,
    places: impl Iterator<Item = Place> + Clone,
    each: u64,
) -> Series {
    let widths = places.clone().map(|s| s.end_ns.saturating_sub(s.start_ns));
    let width = widths.max().unwrap_or(0);
    // Up to 60 empty slices are slices too; and where slices were thinned out, those between two
    // that were kept are no gap.
    let widest = match each {
        0 | 1 => width / 2,
        _ => width.saturating_mul((60 * each).min(1 << 40) as i64),
    };
    let mut points = Vec::new();
    let mut end: Option<i64> = None;
    for place in places {
        if let Some(end) = end
            && place.start_ns.saturating_sub(end) > widest
        {
            points.push(Point { x: seconds(end), y: f64::NAN, error: 0.0 });
        }
        end = Some(place.end_ns);
        points.push(Point {
            x: seconds(place.start_ns),
            y: place.value.unwrap_or(f64::NAN),
            error: place.std_error.unwrap_or(0.0),
        });
    }
    Series { name: name.to_owned(), points, style }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// What went wrong while the inputs were read, a sentence each.
pub(super) fn troubles(inputs: &[InputResult], uncounted: u64, interrupted: bool) -> Vec<String> {
    let mut words = Vec::new();
    for input in inputs {
        if let Some(error) = &input.error {
            words.push(format!("Reading stopped early: {error}."));
        }
        if input.times_out_of_range > 0 {
            words.push(format!(
                "{} packets of {} have times that no slice can have.",
                grouped(input.times_out_of_range),
                input.path.shown()
            ));
        }
    }
    if uncounted > 0 {
        words.push(format!(
            "{} packets are in no slice, since they came too late.",
            grouped(uncounted)
        ));
    }
    if interrupted {
        words.push(super::interrupted_sentence());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_breaks_where_there_are_no_slices() {
        let place =
            |start_ns| Place { start_ns, end_ns: start_ns + 10, value: Some(1.0), std_error: None };
        let gaps = |each| {
            let series = curve("a", SeriesStyle::Line, [0, 10, 50].map(place).into_iter(), each);
            series.points.iter().filter(|p| p.y.is_nan()).count()
        };
        assert_eq!(gaps(1), 1);
        assert_eq!(gaps(2), 0, "of each two slices one was left out");
    }
}
