//! Bars in groups: vertical, or horizontal if the names of the groups need the room.

use super::frame::{self, Frame, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::Span;
use super::{Drawn, Geometry, Shape};
use crate::report::figure::Axis;
use crate::report::markup::{Markup, px};

/// A series: its name, and a value for each group.
type BarSeries = (String, Vec<Option<f64>>);

/// Height of a plot of vertical bars.
const HEIGHT: f64 = 230.0;

/// Thickness of a horizontal bar.
const THICKNESS: f64 = 15.0;

/// Largest width of a bar.
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

/// Where the bars are.
struct Layout {
    plot: Rect,
    /// Bars are horizontal, and groups are one below the other.
    horizontal: bool,
    /// Extent of a group.
    band: f64,
    /// Thickness of a bar.
    thick: f64,
    /// Where the first bar of a group begins.
    begin: f64,
    span: Span,
}

pub(super) fn draw(
    frame: &Frame<'_>,
    categories: &[String],
    axis: &Axis,
    series: &[BarSeries],
) -> Drawn {
    let names: Vec<String> = categories.iter().map(|name| frame::short(name)).collect();
    let layout = Layout::new(&names, axis, series, frame.head_height());
    let plot = layout.plot;
    let mut svg = Markup::default();
    let room = if layout.horizontal { 50.0 } else { 30.0 };
    frame.begin(&mut svg, plot.bottom() + room);
    if layout.horizontal {
        frame::horizontal(&mut svg, plot, axis, &layout.span, true);
    } else {
        frame::axis_name(&mut svg, plot, axis);
        frame::levels(&mut svg, plot, &layout.span.ticks(), None);
    }
    layout.names(&mut svg, &names);
    for (i, (_, values)) in series.iter().enumerate() {
        let class = format!("series {}", class(i));
        svg.open("g", &[("class", &class), ("data-series", &i)]);
        for (group, value) in values.iter().enumerate().take(categories.len()) {
            if let Some(value) = value {
                layout.bar(&mut svg, group, i, *value);
            }
        }
        svg.close("g");
        svg.line();
    }
    layout.ground(&mut svg);
    svg.close("svg");
    Drawn {
        svg: svg.finish(),
        geometry: Geometry {
            bands: (categories.len(), series.len()),
            horizontal: layout.horizontal,
            ..Geometry::new(Shape::Bars, plot)
        },
    }
}

impl Layout {
    fn new(names: &[String], axis: &Axis, series: &[BarSeries], top: f64) -> Self {
        let values = series.iter().flat_map(|(_, values)| values.iter().flatten());
        let span = Span::over(axis.scale, values.copied(), true);
        let (groups, count) = (names.len().max(1) as f64, series.len().max(1) as f64);
        let widest = names.iter().map(|name| frame::text_width(name));
        let widest = widest.fold(0.0, f64::max);
        let left = frame::labels_width(&span.ticks());
        let horizontal = widest + 6.0 > (WIDTH - left - RIGHT) / groups;
        let (left, top, height) = if horizontal {
            (widest + 24.0, top + 6.0, groups * (count * THICKNESS + 9.0))
        } else {
            (left, top + 28.0, HEIGHT)
        };
        let plot = Rect { left, top, width: WIDTH - left - RIGHT, height };
        let band = if horizontal { plot.height } else { plot.width } / groups;
        let thick = ((band * 0.8).min(WIDEST * count) / count).max(0.5);
        Self { plot, horizontal, band, thick, begin: (band - thick * count) / 2.0, span }
    }

    fn names(&self, svg: &mut Markup, names: &[String]) {
        let plot = self.plot;
        for (i, name) in names.iter().enumerate() {
            let middle = (i as f64 + 0.5) * self.band;
            let (x, y, anchor) = if self.horizontal {
                (plot.left - 10.0, plot.top + middle + 4.0, "end")
            } else {
                (plot.left + middle, plot.bottom() + 19.0, "middle")
            };
            frame::text(svg, (x, y), anchor, name);
        }
        svg.line();
    }

    /// Draws the bar of a series in a group.
    fn bar(&self, svg: &mut Markup, group: usize, series: usize, value: f64) {
        let Some(at) = self.span.place(value) else {
            return;
        };
        let plot = self.plot;
        let across = group as f64 * self.band + self.begin + series as f64 * self.thick;
        let ground = self.span.ground();
        let (low, high) = (at.min(ground), at.max(ground));
        let thick = self.thick - if self.thick > 4.0 { 1.0 } else { 0.0 };
        // A small value can still be seen, and zero is written as a number.
        let least = if value == 0.0 { 0.0 } else { 1.0 };
        if value == 0.0 {
            let middle = across + thick / 2.0;
            let (place, anchor) = if self.horizontal {
                ((plot.left + low * plot.width + 3.0, plot.top + middle + 4.0), "start")
            } else {
                ((plot.left + middle, plot.bottom() - low * plot.height - 3.0), "middle")
            };
            frame::text(svg, place, anchor, 0);
        }
        let (x, y, width, height) = if self.horizontal {
            let long = ((high - low) * plot.width).max(least);
            (plot.left + low * plot.width, plot.top + across, long, thick)
        } else {
            let long = ((high - low) * plot.height).max(least);
            let y = plot.bottom() - low * plot.height - long;
            (plot.left + across, y, thick, long)
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

    /// Draws the line on which the bars stand.
    fn ground(&self, svg: &mut Markup) {
        let (plot, ground) = (self.plot, self.span.ground());
        let line = if self.horizontal {
            let x = plot.left + ground * plot.width;
            format!("M{} {}V{}", px(x), px(plot.top), px(plot.bottom()))
        } else {
            let y = plot.bottom() - ground * plot.height;
            format!("M{} {}H{}", px(plot.left), px(y), px(plot.right()))
        };
        svg.empty("path", &[("class", &"base"), ("d", &line)]);
    }
}
