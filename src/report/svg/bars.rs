//! Bars in groups: upright, or lying where the names of the groups need the room.

use super::frame::{self, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::Span;
use super::{Drawn, Geometry, Shape};
use crate::report::figure::{Axis, Figure};
use crate::report::markup::{Markup, px};

/// A series: its name, and a value for each group.
type BarSeries = (String, Vec<Option<f64>>);

/// Height of a plot of upright bars.
const HEIGHT: f64 = 230.0;

/// Thickness of a lying bar.
const LYING: f64 = 15.0;

/// A bar is at most so wide.
const WIDEST: f64 = 56.0;

pub(super) fn keys(series: &[BarSeries]) -> Vec<Key> {
    if series.len() < 2 {
        return Vec::new();
    }
    let keys = series.iter().enumerate().map(|(i, (name, _))| Key {
        name: name.clone(),
        class: class(i),
        swatch: Swatch::Bar,
    });
    keys.collect()
}

fn class(index: usize) -> String {
    format!("s{}", index % 8)
}

pub(super) fn draw(
    figure: &Figure,
    categories: &[String],
    axis: &Axis,
    series: &[BarSeries],
    alone: bool,
) -> Drawn {
    let keys = keys(series);
    let values = series
        .iter()
        .flat_map(|(_, values)| values.iter().flatten());
    let span = Span::over(axis.scale, values.copied(), true);
    let ticks = span.ticks();
    let groups = categories.len().max(1) as f64;
    let names: Vec<String> = categories.iter().map(|name| frame::short(name)).collect();
    let widest = names
        .iter()
        .map(|name| frame::text_width(name))
        .fold(0.0, f64::max);
    let left = frame::labels_width(&ticks);
    let lying = widest + 10.0 > (WIDTH - left - RIGHT) / groups;
    let top = frame::head_height(figure, &keys, alone);
    let plot = if lying {
        let left = widest + 24.0;
        Rect {
            left,
            top: top + 6.0,
            width: WIDTH - left - RIGHT,
            height: groups * (series.len().max(1) as f64 * LYING + 9.0),
        }
    } else {
        Rect {
            left,
            top: top + 26.0,
            width: WIDTH - left - RIGHT,
            height: HEIGHT,
        }
    };
    let mut svg = Markup::default();
    let room = if lying { 50.0 } else { 30.0 };
    frame::begin(&mut svg, figure, &keys, plot.bottom() + room, alone);
    if lying {
        frame::horizontal(&mut svg, plot, axis, &span, true);
    } else {
        frame::vertical(&mut svg, plot, axis, &ticks);
    }
    let band = if lying { plot.height } else { plot.width } / groups;
    for (i, name) in names.iter().enumerate() {
        let middle = (i as f64 + 0.5) * band;
        let (x, y, anchor) = if lying {
            (plot.left - 10.0, plot.top + middle + 4.0, "end")
        } else {
            (plot.left + middle, plot.bottom() + 19.0, "middle")
        };
        svg.leaf(
            "text",
            &[("x", &px(x)), ("y", &px(y)), ("text-anchor", &anchor)],
            name,
        );
    }
    svg.line();
    let count = series.len().max(1) as f64;
    let thick = ((band * 0.8).min(WIDEST * count) / count).max(0.5);
    let begin = (band - thick * count) / 2.0;
    let ground = span.ground();
    for (i, (_, values)) in series.iter().enumerate() {
        svg.open(
            "g",
            &[
                ("class", &format!("series {}", class(i))),
                ("data-series", &i),
            ],
        );
        for (group, value) in values.iter().enumerate().take(categories.len()) {
            let Some(at) = value.and_then(|value| span.place(value)) else {
                continue;
            };
            let across = group as f64 * band + begin + i as f64 * thick;
            let (low, high) = (at.min(ground), at.max(ground));
            let gap = if thick > 4.0 { 1.0 } else { 0.0 };
            let (x, y, width, height) = if lying {
                let x = plot.left + low * plot.width;
                (x, plot.top + across, (high - low) * plot.width, thick - gap)
            } else {
                let y = plot.bottom() - high * plot.height;
                (
                    plot.left + across,
                    y,
                    thick - gap,
                    (high - low) * plot.height,
                )
            };
            // What is not zero can be seen.
            let seen = |length: f64| {
                if value == &Some(0.0) {
                    length
                } else {
                    length.max(1.0)
                }
            };
            let (width, height) = if lying {
                (seen(width), height)
            } else {
                (width, seen(height))
            };
            svg.empty(
                "rect",
                &[
                    ("class", &"bar"),
                    ("x", &px(x)),
                    ("y", &px(y)),
                    ("width", &px(width)),
                    ("height", &px(height)),
                ],
            );
        }
        svg.close("g");
        svg.line();
    }
    let base = if lying {
        format!(
            "M{} {}V{}",
            px(plot.left + ground * plot.width),
            px(plot.top),
            px(plot.bottom())
        )
    } else {
        format!(
            "M{} {}H{}",
            px(plot.left),
            px(plot.bottom() - ground * plot.height),
            px(plot.right())
        )
    };
    svg.empty("path", &[("class", &"base"), ("d", &base)]);
    svg.close("svg");
    Drawn {
        svg: svg.finish(),
        geometry: Geometry {
            bands: (categories.len(), series.len()),
            horizontal: lying,
            ..Geometry::of(Shape::Bars, plot)
        },
    }
}
