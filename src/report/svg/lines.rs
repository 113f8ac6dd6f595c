//! Curves and points over a common axis: all in one panel, or each in a strip of its own below the
//! other.

use super::envelope::{self, Spot};
use super::frame::{self, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::{Span, Tick, is_logarithmic};
use super::time::Times;
use super::{Drawn, Geometry, Shape};
use crate::report::chart_rows::LineRows;
use crate::report::figure::{Axis, Figure, Point, Scale, Series, SeriesStyle};
use crate::report::markup::{Markup, px};
use std::fmt::Write as _;

/// Height of the plot itself.
pub(super) const HEIGHT: f64 = 250.0;

/// Height of a strip, and of what stands above it.
const STRIP: f64 = 40.0;
const NAME: f64 = 24.0;

/// Colours there are: of more curves each has a strip of its own.
const COLOURS: usize = 8;

/// Points up to which each has a marker.
const FEW: usize = 40;

/// Markers of a curve of more points: enough to tell it from others without colour.
const MARKERS: usize = 9;

/// Points up to which bars of errors have feet.
const FEET: usize = 60;

/// Whether these curves cannot be told apart in one panel.
fn needs_strips(series: &[Series]) -> bool {
    let numbers = numbered(series).filter_map(|(number, _)| number);
    numbers.max().is_some_and(|most| most >= COLOURS)
}

pub(super) fn keys(series: &[Series]) -> Vec<Key> {
    if series.len() < 2 || needs_strips(series) {
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

/// Whether the curves have so many points that they are drawn by columns.
pub(super) fn is_dense(series: &[Series]) -> bool {
    let drawn = series.iter().filter(|s| s.style != SeriesStyle::Points);
    drawn.map(|s| s.points.len()).max() > Some(envelope::MANY)
}

/// What ends the name of a curve that is by formula, behind the name of what was measured.
const FORMULA: &str = ", formula";

/// Each series with its number among those that have a colour of their own. A formula has that of
/// the series that was measured for it.
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
    number.map_or_else(|| "ref".to_owned(), |number| format!("s{}", number % COLOURS))
}

/// Where the panels are.
struct Layout {
    /// All of them together.
    plot: Rect,
    /// Tops of the strips; none if there is one panel.
    strips: Vec<f64>,
}

impl Layout {
    /// The panels of a curve by its number: a reference is in every one.
    fn panels(&self, number: Option<usize>) -> Vec<Rect> {
        let strip = |&top: &f64| Rect { top, height: STRIP, ..self.plot };
        match number {
            _ if self.strips.is_empty() => vec![self.plot],
            None => self.strips.iter().map(strip).collect(),
            Some(number) => self.strips.iter().skip(number).take(1).map(strip).collect(),
        }
    }
}

/// Draws the curves: in strips, if that is asked for or they are too many to be told apart.
pub(super) fn draw(
    figure: &Figure,
    (x_axis, y_axis): (&Axis, &Axis),
    series: &[Series],
    (strips, alone): (bool, bool),
) -> Drawn {
    let strips = strips || needs_strips(series);
    let points = || series.iter().flat_map(|series| &series.points);
    let x_span = Span::over(x_axis.scale, points().map(|p| p.x), false);
    let y_span = Span::over(
        y_axis.scale,
        points().flat_map(|p| {
            // Bars of errors must not make a logarithmic axis endless.
            if y_axis.scale != Scale::Bytes && is_logarithmic(y_axis.scale) {
                let high = if p.y > 0.0 { p.y + p.error } else { p.y };
                [p.y, p.y, high]
            } else {
                [p.y, p.y - p.error, p.y + p.error]
            }
        }),
        true,
    );
    let (keys, mut ticks) = (keys(series), y_span.ticks());
    // The lowest and the highest tick are enough in a strip, with one between them where steps are
    // not even.
    if strips && ticks.len() > 2 {
        let last = ticks.len() - 1;
        let middle = is_logarithmic(y_axis.scale).then_some(last.div_ceil(2));
        let mut number = 0;
        ticks.retain(|_| {
            number += 1;
            [Some(0), middle, Some(last)].contains(&Some(number - 1))
        });
    }
    let names: Vec<&str> = panel_names(series);
    let layout = Layout::new(figure, &keys, &ticks, strips.then_some(names.len()), alone);
    let plot = layout.plot;
    let mut svg = Markup::default();
    frame::begin(&mut svg, figure, &keys, plot.bottom() + 50.0, alone);
    frame::axis_name(&mut svg, plot, y_axis);
    for (strip, name) in layout.strips.iter().zip(&names) {
        let name = frame::short(name);
        frame::text(&mut svg, (plot.left, strip - 7.0), "start", name);
    }
    let ground = (!strips).then(|| y_span.ground());
    svg.open("g", &[("class", &"axis-y")]);
    for panel in layout.all() {
        frame::levels(&mut svg, panel, &ticks, ground);
    }
    svg.close("g");
    frame::horizontal(&mut svg, plot, x_axis, &x_span, false);
    let lowest = |y: f64| {
        if y_span.place(y).is_some() { y } else { f64::MIN_POSITIVE }
    };
    // Alone in its strip a curve has the ground below it in its colour.
    let filled = strips && series.iter().all(|s| s.style == SeriesStyle::Line);
    for (index, (number, series)) in numbered(series).enumerate() {
        let colour = if strips { number.map(|_| 0) } else { number };
        let style = frame::style_class(series.style);
        let class = format!("series {} {style}", class(colour));
        svg.open("g", &[("class", &class), ("data-series", &index)]);
        for panel in layout.panels(number) {
            let place = |x: f64, y: f64| -> Spot {
                let (x, y) = (x_span.place(x)?, y_span.place(y)?);
                Some((panel.left + x * panel.width, panel.bottom() - y * panel.height))
            };
            let curve = Curve {
                series,
                number: colour,
                several: keys.len() > 1,
                filled,
                panel,
                spots: series.points.iter().map(|p| place(p.x, p.y)).collect(),
            };
            if curve.spots.len() <= envelope::MANY {
                errors(&mut svg, series, panel, |point, y| {
                    place(point.x, point.y)?;
                    let (x, y) = place(point.x, lowest(y))?;
                    Some((x, y.clamp(panel.top, panel.bottom())))
                });
            }
            curve.draw(&mut svg);
        }
        svg.close("g");
        svg.line();
    }
    svg.close("svg");
    Drawn {
        svg: svg.finish(),
        geometry: layout.geometry((x_axis, y_axis), (x_span, y_span), series, filled),
    }
}

impl Layout {
    fn new(
        figure: &Figure,
        keys: &[Key],
        ticks: &[Tick],
        strips: Option<usize>,
        alone: bool,
    ) -> Self {
        let left = frame::labels_width(ticks);
        let top = frame::head_height(figure, keys, alone) + 28.0;
        let height = strips.map_or(HEIGHT, |strips| (NAME + STRIP) * strips.max(1) as f64);
        let strip = |number: usize| top + NAME + (NAME + STRIP) * number as f64;
        Self {
            plot: Rect { left, top, width: WIDTH - left - RIGHT, height },
            strips: (0..strips.unwrap_or(0)).map(strip).collect(),
        }
    }

    fn all(&self) -> Vec<Rect> {
        self.panels(None)
    }

    /// Where the values are, for the script of a page.
    fn geometry(
        &self,
        axes: (&Axis, &Axis),
        (x_span, y_span): (Span, Span),
        series: &[Series],
        filled: bool,
    ) -> Geometry {
        let plot = self.plot;
        let rows = LineRows::of(series);
        let across = |x: f64| x_span.place(x).map(|x| round(plot.left + x * plot.width));
        let height = |number, point: &Point| {
            let panel = self.panels(number).into_iter().next()?;
            x_span.place(point.x)?;
            Some(round(panel.bottom() - y_span.place(point.y)? * panel.height))
        };
        let heights = numbered(series).map(|(number, series)| {
            let points = rows.x.iter().map(|x| LineRows::values(series, *x).first());
            points.map(|p| p.and_then(|p| height(number, p))).collect()
        });
        let panels = numbered(series).map(|(number, _)| {
            let panels = self.panels(number).into_iter();
            panels.map(|panel| (panel.top, panel.height)).collect()
        });
        let mut times = Times::of(axes, series, x_span.ends());
        if let Some(times) = &mut times {
            times.panels = panels.collect();
            times.strips = !self.strips.is_empty();
            times.filled = filled;
        }
        Geometry {
            x: rows.x.iter().map(|x| across(*x)).collect(),
            y: heights.collect(),
            times,
            ..Geometry::of(Shape::Lines, plot)
        }
    }
}

/// What stands above each strip: the name of the first of its curves.
fn panel_names(series: &[Series]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (number, series) in numbered(series) {
        if number == Some(names.len()) {
            names.push(&series.name);
        }
    }
    names
}

fn round(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

/// A curve in a panel.
struct Curve<'a> {
    series: &'a Series,
    /// Which marker it has; none for a reference.
    number: Option<usize>,
    several: bool,
    filled: bool,
    panel: Rect,
    spots: Vec<Spot>,
}

impl Curve<'_> {
    /// The curve and its markers.
    fn draw(&self, svg: &mut Markup) {
        if self.series.style != SeriesStyle::Points {
            if self.spots.len() > envelope::MANY {
                let (band, line) = envelope::paths(&envelope::columns(&self.spots));
                svg.empty("path", &[("class", &"band"), ("d", &band)]);
                svg.empty("path", &[("class", &"line"), ("d", &line)]);
                return;
            }
            if self.filled {
                let area = area(&self.spots, self.panel.bottom());
                svg.empty("path", &[("class", &"area"), ("d", &area)]);
            }
            let (line, lone) = path(&self.spots);
            svg.empty("path", &[("class", &"line"), ("d", &line)]);
            if !lone.is_empty() {
                svg.empty("path", &[("class", &"lone"), ("d", &lone)]);
            }
        }
        if let Some(number) = self.number {
            for spot in self.marked() {
                frame::mark(svg, number, spot);
            }
        }
    }

    fn marked(&self) -> Vec<(f64, f64)> {
        let spots = || self.spots.iter().copied();
        match self.series.style {
            SeriesStyle::Points => spots().flatten().collect(),
            // The markers are those of what was measured.
            SeriesStyle::Dashed if self.series.name.ends_with(FORMULA) => Vec::new(),
            _ if self.spots.len() <= FEW => spots().flatten().collect(),
            _ if self.several => {
                // Markers of different curves stand beside each other and not on top of each other.
                let step = self.spots.len() / MARKERS;
                let first = step / 2 + step * (self.number.unwrap_or(0) % 4) / 4;
                spots().skip(first).step_by(step).flatten().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A line through the spots, broken at gaps; and the spots that stand alone between gaps, which are
/// dots.
fn path(spots: &[Spot]) -> (String, String) {
    let (mut path, mut lone) = (String::new(), String::new());
    for part in spots.split(Option::is_none) {
        for (i, (x, y)) in part.iter().flatten().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            // Writing to a String cannot fail.
            let _ = write!(path, "{command}{} {}", px(*x), px(*y));
        }
        if let [Some((x, y))] = part {
            path.push_str("h0.1");
            let _ = write!(lone, "M{} {}h0.1", px(*x), px(*y));
        }
    }
    (path, lone)
}

/// The area below a line, broken at gaps.
fn area(spots: &[Spot], bottom: f64) -> String {
    let mut area = String::new();
    for part in spots.split(Option::is_none) {
        let (Some(Some(first)), Some(Some(last))) = (part.first(), part.last()) else {
            continue;
        };
        let _ = write!(area, "M{} {}", px(first.0), px(bottom));
        for (x, y) in part.iter().flatten() {
            let _ = write!(area, "L{} {}", px(*x), px(*y));
        }
        let _ = write!(area, "L{} {}z", px(last.0), px(bottom));
    }
    area
}

/// Bars of standard errors up and down of the points that have a place, with feet where there are
/// few.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_end_at_gaps() {
        let spots = [Some((1.0, 2.0)), Some((2.0, 1.0)), None, Some((4.0, 0.0))];
        let (line, lone) = path(&spots);
        assert_eq!(line, "M1 2L2 1M4 0h0.1");
        assert_eq!(lone, "M4 0h0.1");
        assert_eq!(area(&spots, 9.0), "M1 9L1 2L2 1L2 9zM4 9L4 0L4 9z");
        assert_eq!(path(&[None, None]), (String::new(), String::new()));
        assert_eq!(area(&[None, None], 9.0), "");
    }
}
