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
    /// The capture covers it only in part.
    pub(super) partial: bool,
}

/// Adds to a caption that curves leave out slices that the capture covers only in part, if they do.
pub(super) fn caption(mut text: String, leaves_out: bool) -> String {
    if leaves_out {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str("Slices at the beginning and the end that the capture covers only in part are left out.");
    }
    text
}

/// Whether curves leave out slices of which this says whether they are partial.
pub(super) fn leaves_out(partial: impl Iterator<Item = bool> + Clone) -> bool {
    partial.clone().any(|partial| partial) && partial.into_iter().any(|partial| !partial)
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
    let leaves_out = leaves_out(places.clone().map(|place| place.partial));
    let mut points = Vec::new();
    let mut end: Option<i64> = None;
    for place in places {
        if let Some(end) = end
            && place.start_ns.saturating_sub(end) > widest
        {
            points.push(Point { x: seconds(end), y: f64::NAN, error: 0.0 });
        }
        end = Some(place.end_ns);
        let value = place.value.filter(|_| !(leaves_out && place.partial));
        points.push(Point {
            x: seconds(place.start_ns),
            y: value.unwrap_or(f64::NAN),
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
        let place = |start_ns| Place {
            start_ns,
            end_ns: start_ns + 10,
            value: Some(1.0),
            std_error: None,
            partial: false,
        };
        let gaps = |each| {
            let series = curve("a", SeriesStyle::Line, [0, 10, 50].map(place).into_iter(), each);
            series.points.iter().filter(|p| p.y.is_nan()).count()
        };
        assert_eq!(gaps(1), 1);
        assert_eq!(gaps(2), 0, "of each two slices one was left out");
    }

    #[test]
    fn a_curve_leaves_out_partial_slices_unless_there_are_no_others() {
        let place = |start_ns, partial| Place {
            start_ns,
            end_ns: start_ns + 10,
            value: Some(1.0),
            std_error: None,
            partial,
        };
        let drawn = |places: &[Place]| {
            let series = curve("a", SeriesStyle::Line, places.iter().copied(), 1);
            series.points.iter().map(|point| !point.y.is_nan()).collect::<Vec<_>>()
        };
        let whole = [place(0, true), place(10, false), place(20, true)];
        assert_eq!(drawn(&whole), [false, true, false]);
        assert_eq!(drawn(&[place(0, true), place(10, true)]), [true, true]);
    }
}
