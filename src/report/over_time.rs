//! Curves over time.

use super::figure::{Point, Series, SeriesStyle};

/// The value of a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) value: Option<f64>,
    /// Lengths of its error bar, down and up.
    pub(super) errors: [f64; 2],
    /// The capture covers the slice only in part.
    pub(super) partial: bool,
}

/// Adds a remark to a caption if curves leave out partial slices.
pub(super) fn caption(mut text: String, leaves_out: bool) -> String {
    if leaves_out {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str("Slices at the beginning and the end that the capture covers only in part are left out.");
    }
    text
}

/// Whether curves leave out partial slices: some slices are partial, but not all.
pub(super) fn leaves_out(partial: impl Iterator<Item = bool> + Clone) -> bool {
    partial.clone().any(|partial| partial) && partial.into_iter().any(|partial| !partial)
}

/// A value of each slice at its beginning, with a gap where there are no slices. `each` is the
/// number of slices that each place stands for after thinning out.
pub(super) fn curve(
    name: &str,
    style: SeriesStyle,
    places: impl Iterator<Item = Place> + Clone,
    each: u64,
) -> Series {
    let widths = places.clone().map(|s| s.end_ns.saturating_sub(s.start_ns));
    let width = widths.max().unwrap_or(0);
    // Up to 60 empty slices are listed, and thinning out leaves no gaps.
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
            points.push(Point::new(seconds(end), f64::NAN));
        }
        end = Some(place.end_ns);
        let value = place.value.filter(|_| !(leaves_out && place.partial));
        points.push(Point {
            x: seconds(place.start_ns),
            y: value.unwrap_or(f64::NAN),
            errors: place.errors,
        });
    }
    Series { name: name.to_owned(), points, style }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
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
            errors: [0.0; 2],
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
            errors: [0.0; 2],
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
