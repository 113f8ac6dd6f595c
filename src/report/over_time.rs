//! Curves over time.

use super::figure::{Axis, Drawing, Figure, Point, Series, SeriesStyle};

/// The beginning and the end of a slice, and whether the capture covers it only in part.
pub(super) type Place = (i64, i64, bool);

/// The value of a slice, and the lengths of its error bar, down and up.
pub(super) type Value = (Option<f64>, [f64; 2]);

/// Slices in the order of time, for figures of their values.
#[derive(Debug)]
pub(super) struct OverTime {
    x: Axis,
    places: Vec<Place>,
    /// Curves leave out partial slices: some slices are partial, but not all.
    pub(super) leaves_out: bool,
    /// The longest time without slices that is no gap, in nanoseconds.
    widest: i64,
    /// The word for a slice: `slice` or `window`.
    pub(super) slice: &'static str,
    /// Curves lie one below the other.
    pub(super) strips: bool,
}

/// Adds a remark to a caption if curves leave out partial slices, which are called `slice` or `window`.
pub(super) fn caption(mut text: String, leaves_out: bool, slice: &str) -> String {
    if leaves_out {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(if slice == "window" { "Windows" } else { "Slices" });
        text.push_str(
            " at the beginning and the end that the capture covers only in part are left out.",
        );
    }
    text
}

impl OverTime {
    /// `each` is the number of slices that each place stands for after thinning out.
    pub(super) fn new(x: Axis, places: impl Iterator<Item = Place>, each: u64) -> Self {
        let places: Vec<Place> = places.collect();
        let widths = places.iter().map(|(start, end, _)| end.saturating_sub(*start));
        let width = widths.max().unwrap_or(0);
        // Up to 60 empty slices are listed, and thinning out leaves no gaps.
        let widest = match each {
            0 | 1 => width / 2,
            _ => width.saturating_mul((60 * each).min(1 << 40) as i64),
        };
        let has = |partial: bool| places.iter().any(|place| place.2 == partial);
        Self {
            x,
            leaves_out: has(true) && has(false),
            places,
            widest,
            slice: "slice",
            strips: false,
        }
    }

    /// A value of each slice at its beginning, with a gap where there are no slices.
    pub(super) fn curve(
        &self,
        name: &str,
        style: SeriesStyle,
        values: impl Iterator<Item = Value>,
    ) -> Series {
        let mut points = Vec::new();
        let mut last_end = i64::MAX;
        for (&(start, end, partial), (value, errors)) in self.places.iter().zip(values) {
            if start.saturating_sub(last_end) > self.widest {
                points.push(Point::new(seconds(last_end), f64::NAN));
            }
            last_end = end;
            let value = value.filter(|_| !(self.leaves_out && partial));
            points.push(Point { x: seconds(start), y: value.unwrap_or(f64::NAN), errors });
        }
        Series { name: name.to_owned(), points, style }
    }

    /// A figure of these curves.
    pub(super) fn figure(
        &self,
        name: &str,
        title: impl Into<String>,
        text: impl Into<String>,
        y: Axis,
        series: Vec<Series>,
    ) -> Figure {
        let (x, panels) = (self.x.clone(), vec![(String::new(), series)]);
        let drawing = Drawing::Lines { x, y, panels, strips: self.strips };
        Figure::new(name, title, caption(text.into(), self.leaves_out, self.slice), drawing)
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::Scale;

    fn curve_of(places: &[Place], each: u64) -> Series {
        let time = OverTime::new(Axis::new("x", Scale::Linear), places.iter().copied(), each);
        time.curve("a", SeriesStyle::Line, places.iter().map(|_| (Some(1.0), [0.0; 2])))
    }

    #[test]
    fn a_curve_breaks_where_there_are_no_slices() {
        let gaps = |each| {
            let places = [0, 10, 50].map(|start| (start, start + 10, false));
            let series = curve_of(&places, each);
            series.points.iter().filter(|p| p.y.is_nan()).count()
        };
        assert_eq!(gaps(1), 1);
        assert_eq!(gaps(2), 0, "of each two slices one was left out");
    }

    #[test]
    fn a_curve_leaves_out_partial_slices_unless_there_are_no_others() {
        let place = |start, partial| (start, start + 10, partial);
        let drawn = |places: &[Place]| {
            let series = curve_of(places, 1);
            series.points.iter().map(|point| !point.y.is_nan()).collect::<Vec<_>>()
        };
        let whole = [place(0, true), place(10, false), place(20, true)];
        assert_eq!(drawn(&whole), [false, true, false]);
        assert_eq!(drawn(&[place(0, true), place(10, true)]), [true, true]);
    }
}
