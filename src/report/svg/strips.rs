//! Curves one below the other over a common horizontal axis, all with the same scale.

use super::frame::{self, RIGHT, Rect, WIDTH};
use super::scale::Span;
use super::thin::{Spot, thinned};
use super::{Drawn, Geometry, Shape};
use crate::report::chart_rows::LineRows;
use crate::report::figure::{Axis, Figure, Series};
use crate::report::markup::{Markup, px};
use std::fmt::Write as _;

/// Height of a strip, and of what stands above it.
const HEIGHT: f64 = 40.0;
const NAME: f64 = 24.0;

pub(super) fn draw(
    figure: &Figure,
    (x_axis, y_axis): (&Axis, &Axis),
    series: &[Series],
    alone: bool,
) -> Drawn {
    let points = || series.iter().flat_map(|series| &series.points);
    let x_span = Span::over(x_axis.scale, points().map(|p| p.x), false);
    let y_span = Span::over(y_axis.scale, points().map(|p| p.y), true);
    // The lowest and the highest tick are enough in a strip.
    let mut ticks = y_span.ticks();
    if ticks.len() > 2 {
        ticks.drain(1..ticks.len() - 1);
    }
    let left = frame::labels_width(&ticks);
    let plot = Rect {
        left,
        top: frame::head_height(figure, &[], alone) + 28.0,
        width: WIDTH - left - RIGHT,
        height: (NAME + HEIGHT) * series.len().max(1) as f64,
    };
    let mut svg = Markup::default();
    frame::begin(&mut svg, figure, &[], plot.bottom() + 50.0, alone);
    svg.leaf(
        "text",
        &[("class", &"quiet"), ("x", &12), ("y", &px(plot.top - 15.0))],
        &y_axis.label,
    );
    frame::horizontal(&mut svg, plot, x_axis, &x_span, false);
    let strip = |number: usize| Rect {
        top: plot.top + NAME + (NAME + HEIGHT) * number as f64,
        height: HEIGHT,
        ..plot
    };
    let place = |strip: Rect, x: f64, y: f64| -> Spot {
        let (x, y) = (x_span.place(x)?, y_span.place(y)?);
        Some((
            strip.left + x * strip.width,
            strip.bottom() - y * strip.height,
        ))
    };
    for (number, series) in series.iter().enumerate() {
        let strip = strip(number);
        let mut grid = String::new();
        for tick in &ticks {
            let y = strip.bottom() - tick.at * strip.height;
            // Writing to a String cannot fail.
            let _ = write!(grid, "M{} {}H{}", px(strip.left), px(y), px(strip.right()));
            frame::label(&mut svg, (strip.left - 8.0, y + 4.0), "end", &tick.label);
        }
        svg.empty("path", &[("class", &"grid"), ("d", &grid)]);
        let name = frame::short(&series.name);
        frame::text(&mut svg, (strip.left, strip.top - 7.0), "start", name);
        svg.open(
            "g",
            &[("class", &"series s0 solid"), ("data-series", &number)],
        );
        let spots: Vec<Spot> = series
            .points
            .iter()
            .map(|p| place(strip, p.x, p.y))
            .collect();
        let spots = thinned(spots, strip.width, 0.5);
        let (line, area) = paths(&spots, strip.bottom());
        svg.empty("path", &[("class", &"area"), ("d", &area)]);
        svg.empty("path", &[("class", &"line"), ("d", &line)]);
        svg.close("g");
        svg.line();
    }
    svg.close("svg");
    let rows = LineRows::of(series);
    let across = |x: f64| x_span.place(x).map(|x| round(plot.left + x * plot.width));
    let heights = series.iter().enumerate().map(|(number, series)| {
        let points = rows.x.iter().map(|x| LineRows::values(series, *x).first());
        points
            .map(|p| {
                p.and_then(|p| place(strip(number), p.x, p.y))
                    .map(|(_, y)| round(y))
            })
            .collect()
    });
    let geometry = Geometry {
        x: rows.x.iter().map(|x| across(*x)).collect(),
        y: heights.collect(),
        ..Geometry::of(Shape::Lines, plot)
    };
    Drawn {
        svg: svg.finish(),
        geometry,
    }
}

fn round(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

/// A line through the spots, broken at gaps, and the area below it.
fn paths(spots: &[Spot], bottom: f64) -> (String, String) {
    let (mut line, mut area) = (String::new(), String::new());
    for part in spots.split(Option::is_none) {
        let part: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        let mut command = 'M';
        let _ = write!(area, "M{} {}", px(first.0), px(bottom));
        for (x, y) in &part {
            let _ = write!(line, "{command}{} {}", px(*x), px(*y));
            let _ = write!(area, "L{} {}", px(*x), px(*y));
            command = 'L';
        }
        if part.len() == 1 {
            line.push_str("h0.1");
        }
        let _ = write!(area, "L{} {}z", px(last.0), px(bottom));
    }
    (line, area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_end_at_gaps() {
        let spots = [Some((1.0, 2.0)), Some((2.0, 1.0)), None, Some((4.0, 0.0))];
        let (line, area) = paths(&spots, 9.0);
        assert_eq!(line, "M1 2L2 1M4 0h0.1");
        assert_eq!(area, "M1 9L1 2L2 1L2 9zM4 9L4 0L4 9z");
        assert_eq!(paths(&[None, None], 9.0), (String::new(), String::new()));
    }
}
