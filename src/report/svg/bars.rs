//! Bars in groups: vertical, or horizontal if the names of the groups need the room.

use super::frame::{self, FigureFrame, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::Span;
use super::{Drawn, Geometry, Shape};
use crate::report::figure::Axis;
use crate::report::markup::{Markup, px};
use std::fmt::Display;

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
    frame: &FigureFrame<'_>,
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
        frame::levels(&mut svg, plot, &layout.span.ticks(), None, true);
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
        svg.close_line("g");
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

    /// A place in the picture: `value` along the axis from 0 to 1, `across` from the first group.
    fn place(&self, value: f64, across: f64) -> (f64, f64) {
        let plot = self.plot;
        if self.horizontal {
            (plot.left + value * plot.width, plot.top + across)
        } else {
            (plot.left + across, plot.bottom() - value * plot.height)
        }
    }

    fn names(&self, svg: &mut Markup, names: &[String]) {
        for (i, name) in names.iter().enumerate() {
            let (x, y) = self.place(0.0, (i as f64 + 0.5) * self.band);
            let at_side = ((x - 10.0, y + 4.0), "end");
            let (place, anchor) = if self.horizontal { at_side } else { ((x, y + 19.0), "middle") };
            frame::text(svg, place, anchor, name);
        }
        svg.line();
    }

    /// Draws the bar of a series in a group.
    fn bar(&self, svg: &mut Markup, group: usize, series: usize, value: f64) {
        let Some(at) = self.span.place(value) else { return };
        let across = group as f64 * self.band + self.begin + series as f64 * self.thick;
        let ground = self.span.ground();
        let (low, high) = (at.min(ground), at.max(ground));
        let thick = self.thick - if self.thick > 4.0 { 1.0 } else { 0.0 };
        // A small value can still be seen, and zero is written as a number.
        let least = if value == 0.0 { 0.0 } else { 1.0 };
        if value == 0.0 {
            let (x, y) = self.place(low, across + thick / 2.0);
            let at_side = ((x + 3.0, y + 4.0), "start");
            let (place, anchor) = if self.horizontal { at_side } else { ((x, y - 3.0), "middle") };
            frame::text(svg, place, anchor, 0);
        }
        let (x, y) = self.place(low, across);
        let extent = if self.horizontal { self.plot.width } else { self.plot.height };
        let long = ((high - low) * extent).max(least);
        let (y, width, height) =
            if self.horizontal { (y, long, thick) } else { (y - long, thick, long) };
        let [x, y, width, height] = [x, y, width, height].map(px);
        let class = ("class", &"bar" as &dyn Display);
        svg.empty("rect", &[class, ("x", &x), ("y", &y), ("width", &width), ("height", &height)]);
    }

    /// Draws the line on which the bars stand.
    fn ground(&self, svg: &mut Markup) {
        let ground = self.span.ground();
        let across = if self.horizontal { self.plot.height } else { self.plot.width };
        let [from, to] = [0.0, across].map(|across| self.place(ground, across));
        let line = format!("M{} {}L{} {}", px(from.0), px(from.1), px(to.0), px(to.1));
        svg.empty("path", &[("class", &"base"), ("d", &line)]);
    }
}
