//! Curves and points over a common axis.

use super::frame::{self, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::Span;
use super::thin::{Spot, thinned};
use super::{Drawn, Geometry, Shape};
use crate::report::chart_rows::LineRows;
use crate::report::figure::{Axis, Figure, Point, Scale, Series, SeriesStyle};
use crate::report::markup::{Markup, px};
use std::fmt::Write as _;

/// Height of the plot itself.
const HEIGHT: f64 = 250.0;

/// Points up to which each has a marker.
const FEW: usize = 40;

/// Markers of a curve of more points: enough to tell it from others without colour.
const MARKERS: usize = 9;

/// Points up to which bars of errors have feet.
const FEET: usize = 60;

pub(super) fn keys(series: &[Series]) -> Vec<Key> {
    if series.len() < 2 {
        return Vec::new();
    }
    numbered(series)
        .map(|(number, series)| Key {
            name: series.name.clone(),
            class: class(number),
            swatch: Swatch::Line(series.style, number),
        })
        .collect()
}

/// What ends the name of a curve that is by formula, behind the name of what was measured.
const FORMULA: &str = ", formula";

/// Each series with its number among those that have a colour of their own. A formula has that of the
/// series that was measured for it.
fn numbered(series: &[Series]) -> impl Iterator<Item = (Option<usize>, &Series)> {
    let mut next = 0;
    let mut known: Vec<(&str, usize)> = Vec::new();
    series.iter().map(move |series| {
        if series.style == SeriesStyle::Reference {
            return (None, series);
        }
        let measured = series.name.strip_suffix(FORMULA);
        let pair = known.iter().find(|(name, _)| measured == Some(*name));
        let number = pair.map_or(next, |&(_, number)| number);
        if pair.is_none() {
            known.push((&series.name, number));
            next += 1;
        }
        (Some(number), series)
    })
}

fn class(number: Option<usize>) -> String {
    number.map_or_else(|| "ref".to_owned(), |number| format!("s{}", number % 8))
}

pub(super) fn draw(
    figure: &Figure,
    (x_axis, y_axis): (&Axis, &Axis),
    series: &[Series],
    alone: bool,
) -> Drawn {
    let points = || series.iter().flat_map(|series| &series.points);
    let x_span = Span::over(x_axis.scale, points().map(|p| p.x), false);
    let y_span = Span::over(
        y_axis.scale,
        points().flat_map(|p| {
            // Bars of errors must not make a logarithmic axis endless.
            if y_axis.scale == Scale::Log {
                let high = if p.y > 0.0 { p.y + p.error } else { p.y };
                [p.y, p.y, high]
            } else {
                [p.y, p.y - p.error, p.y + p.error]
            }
        }),
        true,
    );
    let (keys, ticks) = (keys(series), y_span.ticks());
    let left = frame::labels_width(&ticks);
    let plot = Rect {
        left,
        top: frame::head_height(figure, &keys, alone) + 28.0,
        width: WIDTH - left - RIGHT,
        height: HEIGHT,
    };
    let mut svg = Markup::default();
    frame::begin(&mut svg, figure, &keys, plot.bottom() + 50.0, alone);
    frame::vertical(&mut svg, plot, y_axis, &ticks);
    frame::horizontal(&mut svg, plot, x_axis, &x_span, false);
    let base = plot.bottom() - y_span.ground() * plot.height;
    let base = format!("M{} {}H{}", px(plot.left), px(base), px(plot.right()));
    svg.empty("path", &[("class", &"base"), ("d", &base)]);
    svg.line();
    let place = |x: f64, y: f64| -> Spot {
        let (x, y) = (x_span.place(x)?, y_span.place(y)?);
        Some((plot.left + x * plot.width, plot.bottom() - y * plot.height))
    };
    let lowest = |y: f64| {
        if y_span.place(y).is_some() {
            y
        } else {
            f64::MIN_POSITIVE
        }
    };
    for (index, (number, series)) in numbered(series).enumerate() {
        let class = format!(
            "series {} {}",
            class(number),
            frame::style_class(series.style)
        );
        svg.open("g", &[("class", &class), ("data-series", &index)]);
        errors(&mut svg, series, plot, |point, y| {
            place(point.x, point.y)?;
            let (x, y) = place(point.x, lowest(y))?;
            Some((x, y.clamp(plot.top, plot.bottom())))
        });
        let spots = series.points.iter().map(|p| place(p.x, p.y)).collect();
        curve(&mut svg, series, number, keys.len() > 1, spots, plot);
        svg.close("g");
        svg.line();
    }
    svg.close("svg");
    let rows = LineRows::of(series);
    let across = |x: f64| x_span.place(x).map(|x| round(plot.left + x * plot.width));
    let geometry = Geometry {
        x: rows.x.iter().map(|x| across(*x)).collect(),
        y: series
            .iter()
            .map(|series| {
                let values = rows.x.iter().map(|x| LineRows::values(series, *x).first());
                values
                    .map(|p| p.and_then(|p| place(p.x, p.y)).map(|(_, y)| round(y)))
                    .collect()
            })
            .collect(),
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

/// The curve and its markers.
fn curve(
    svg: &mut Markup,
    series: &Series,
    number: Option<usize>,
    several: bool,
    spots: Vec<Spot>,
    plot: Rect,
) {
    let marked: Vec<(f64, f64)> = match series.style {
        SeriesStyle::Points => {
            let spots = thinned(spots.clone(), plot.width, 0.5);
            spots.into_iter().flatten().collect()
        }
        _ if number.is_none() => Vec::new(),
        // The markers are those of what was measured.
        SeriesStyle::Dashed if series.name.ends_with(FORMULA) => Vec::new(),
        _ if spots.len() <= FEW => spots.iter().flatten().copied().collect(),
        _ if several => {
            // Markers of different curves stand beside each other and not on top of each other.
            let step = spots.len() / MARKERS;
            let first = step / 2 + step * (number.unwrap_or(0) % 4) / 4;
            let spots = spots.iter().skip(first).step_by(step);
            spots.copied().flatten().collect()
        }
        _ => Vec::new(),
    };
    if series.style != SeriesStyle::Points {
        let path = path(&thinned(spots, plot.width, 0.5));
        svg.empty("path", &[("class", &"line"), ("d", &path)]);
    }
    if let Some(number) = number {
        for spot in marked {
            frame::mark(svg, number, spot);
        }
    }
}

/// A line through the spots, broken at gaps; a spot alone between gaps is a dot.
fn path(spots: &[Spot]) -> String {
    let mut path = String::new();
    for part in spots.split(Option::is_none) {
        for (i, (x, y)) in part.iter().flatten().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            // Writing to a String cannot fail.
            let _ = write!(path, "{command}{} {}", px(*x), px(*y));
        }
        if part.len() == 1 {
            path.push_str("h0.1");
        }
    }
    path
}

/// Bars of standard errors up and down of the points that have a place, with feet where there are few.
fn errors(svg: &mut Markup, series: &Series, plot: Rect, place: impl Fn(&Point, f64) -> Spot) {
    let mut path = String::new();
    let feet = series.points.len() <= FEET;
    let mut column = f64::NEG_INFINITY;
    for point in series.points.iter().filter(|point| point.error > 0.0) {
        let low = place(point, point.y - point.error);
        let high = place(point, point.y + point.error);
        let (Some((x, low)), Some((_, high))) = (low, high) else {
            continue;
        };
        // What cannot be seen is not drawn, and of many only as many as there are columns.
        if low - high < 0.5 || (!feet && x < column + 0.5) || x > plot.right() + 0.5 {
            continue;
        }
        column = x;
        let _ = write!(path, "M{} {}V{}", px(x), px(low), px(high));
        if feet {
            let left = px(x - 3.0);
            let _ = write!(path, "M{left} {}h6M{left} {}h6", px(low), px(high));
        }
    }
    if !path.is_empty() {
        svg.empty("path", &[("class", &"errors"), ("d", &path)]);
    }
}
