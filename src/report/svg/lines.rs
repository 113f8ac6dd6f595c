//! Curves and points over a common axis: all in one panel, or each in its own strip.

use super::envelope::{self, Spot};
use super::frame::{self, FigureFrame, Key, RIGHT, Rect, Swatch, WIDTH};
use super::scale::{Span, is_logarithmic};
use super::ticks::Tick;
use super::time::Times;
use super::{Drawn, Geometry, Shape};
use crate::report::chart_rows::LineRows;
use crate::report::figure::{Axis, Point, Scale, Series, SeriesStyle};
use crate::report::markup::{Markup, px};
use std::fmt::Write as _;

/// Height of the plot itself.
pub(super) const HEIGHT: f64 = 250.0;

/// Heights of a strip and of its name.
const STRIP: f64 = 40.0;
const NAME: f64 = 24.0;

/// Space between panels side by side.
const BETWEEN: f64 = 30.0;

/// Number of colours; more curves have a strip each.
const COLOURS: usize = 8;

/// Number of points up to which each has a marker.
const FEW: usize = 40;

/// Number of markers of a curve with more points, to tell curves apart without colour.
const MARKERS: usize = 9;

/// Number of points up to which error bars have feet.
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

/// Whether the curves have too many points to draw each.
pub(super) fn is_dense(series: &[Series]) -> bool {
    let drawn = series.iter().filter(|s| s.style != SeriesStyle::Points);
    drawn.map(|s| s.points.len()).max() > Some(envelope::MANY)
}

/// Suffixes of names of curves that belong to a measured one, after its name.
const BELONGING: [&str; 2] = [", formula", ", floor"];

/// The name of the measured curve that this one belongs to.
fn measured(name: &str) -> Option<&str> {
    BELONGING.iter().find_map(|suffix| name.strip_suffix(suffix))
}

/// Each series with the number of its colour. A formula or a floor has that of the measured series.
fn numbered(series: &[Series]) -> impl Iterator<Item = (Option<usize>, &Series)> {
    let mut next = 0;
    let mut known: Vec<(&str, usize)> = Vec::new();
    series.iter().map(move |series| {
        if matches!(series.style, SeriesStyle::Reference | SeriesStyle::Places) {
            return (None, series);
        }
        let measured = measured(&series.name);
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
    /// Panels side by side.
    columns: usize,
    /// Tops of the strips; empty for panels that are no strips.
    strips: Vec<f64>,
}

impl Layout {
    /// A panel of those side by side, over all its strips.
    fn column(&self, column: usize) -> Rect {
        let width = (self.plot.width + BETWEEN) / self.columns as f64;
        let left = self.plot.left + column as f64 * width;
        Rect { left, width: width - BETWEEN, ..self.plot }
    }

    /// The panels of a curve in a column by its number; a reference is in all of them.
    fn panels(&self, column: usize, number: Option<usize>) -> Vec<Rect> {
        let plot = self.column(column);
        let strip = |&top: &f64| Rect { top, height: STRIP, ..plot };
        match number {
            _ if self.strips.is_empty() => vec![plot],
            None => self.strips.iter().map(strip).collect(),
            Some(number) => self.strips.iter().skip(number).take(1).map(strip).collect(),
        }
    }
}

/// Draws the curves of panels side by side: in strips, if that is asked for or they are too many
/// for one panel.
pub(super) fn draw(
    frame: &FigureFrame<'_>,
    (x_axis, y_axis): (&Axis, &Axis),
    panels: &[(String, Vec<Series>)],
    strips: bool,
) -> Drawn {
    let first = panels.first().map_or(&[][..], |(_, series)| series);
    let strips = strips || needs_strips(first);
    let spans = Spans::new((x_axis, y_axis), panels);
    let mut ticks = spans.y.ticks();
    if strips {
        thin_out(&mut ticks, is_logarithmic(y_axis.scale));
    }
    let names = strip_names(first);
    let layout = Layout::new(frame, &ticks, panels.len(), strips.then_some(names.len()));
    let plot = layout.plot;
    let mut svg = Markup::default();
    frame.begin(&mut svg, plot.bottom() + 50.0);
    frame::axis_name(&mut svg, plot, y_axis);
    for (strip, name) in layout.strips.iter().zip(&names) {
        frame::text(&mut svg, (plot.left, strip - 7.0), "start", frame::short(name));
    }
    let ground = (!strips).then(|| spans.y.ground());
    svg.open("g", &[("class", &"axis-y")]);
    for column in 0..panels.len() {
        for panel in layout.panels(column, None) {
            frame::levels(&mut svg, panel, &ticks, ground, column == 0);
        }
    }
    svg.close("g");
    for (column, (name, _)) in panels.iter().enumerate() {
        let plot = layout.column(column);
        if !name.is_empty() {
            let middle = plot.left + plot.width / 2.0;
            frame::text(&mut svg, (middle, plot.top - 15.0), "middle", name);
        }
        frame::horizontal(&mut svg, plot, x_axis, &spans.x, false);
    }
    // The area below a curve that is alone in its strip is filled.
    let filled = strips && first.iter().all(|s| s.style == SeriesStyle::Line);
    for (index, (number, curve)) in numbered(first).enumerate() {
        let colour = if strips { number.map(|_| 0) } else { number };
        let style = frame::style_class(curve.style);
        let class = format!("series {} {style}", class(colour));
        svg.open("g", &[("class", &class), ("data-series", &index)]);
        for (column, (_, curves)) in panels.iter().enumerate() {
            let Some(series) = curves.get(index) else { continue };
            for panel in layout.panels(column, number) {
                let spots = series.points.iter().map(|p| spans.spot(panel, p.x, p.y)).collect();
                let several = frame.keys.len() > 1;
                let curve = Curve { series, number: colour, several, filled, panel, spots };
                match series.style {
                    _ if curve.spots.len() > envelope::MANY => {}
                    SeriesStyle::Band => band(&mut svg, series, panel, &spans),
                    _ => errors(&mut svg, series, panel, &spans),
                }
                curve.draw(&mut svg);
            }
        }
        svg.close_line("g");
    }
    svg.close("svg");
    let geometry = layout.geometry((x_axis, y_axis), &spans, panels, filled);
    Drawn { svg: svg.finish(), geometry }
}

/// The axes of the panels.
struct Spans {
    x: Span,
    y: Span,
}

impl Spans {
    fn new((x, y): (&Axis, &Axis), panels: &[(String, Vec<Series>)]) -> Self {
        let series = panels.iter().flat_map(|(_, series)| series);
        let points = series.flat_map(|series| &series.points);
        Self {
            x: Span::over(x.scale, points.clone().map(|p| p.x), false),
            y: y_span(y.scale, points),
        }
    }

    /// Where a point is in a panel; `None` if an axis cannot show it.
    fn spot(&self, panel: Rect, x: f64, y: f64) -> Spot {
        let (x, y) = (self.x.place(x)?, self.y.place(y)?);
        Some((panel.left + x * panel.width, panel.bottom() - y * panel.height))
    }

    /// The lower and the upper end of an error bar: within the panel, even if the axis cannot show
    /// them; `None` if it cannot show the point.
    fn ends(&self, panel: Rect, point: &Point) -> Option<[(f64, f64); 2]> {
        self.spot(panel, point.x, point.y)?;
        let end = |y: f64| {
            let y = if self.y.place(y).is_some() { y } else { f64::MIN_POSITIVE };
            let (x, y) = self.spot(panel, point.x, y)?;
            Some((x, y.clamp(panel.top, panel.bottom())))
        };
        Some([end(point.y - point.errors[0])?, end(point.y + point.errors[1])?])
    }
}

/// The vertical axis with room for all points and their errors.
fn y_span<'a>(scale: Scale, points: impl Iterator<Item = &'a Point>) -> Span {
    // Error bars must not make a logarithmic axis endless.
    let is_cut = scale != Scale::Bytes && is_logarithmic(scale);
    let numbers = points.flat_map(|point| match is_cut {
        true if point.y > 0.0 => [point.y, point.y, point.y + point.errors[1]],
        true => [point.y; 3],
        false => [point.y, point.y - point.errors[0], point.y + point.errors[1]],
    });
    Span::over(scale, numbers, true)
}

/// Keeps the lowest and the highest tick of a strip, with one between them if steps are not even.
fn thin_out(ticks: &mut Vec<Tick>, is_logarithmic: bool) {
    let last = ticks.len().saturating_sub(1);
    let middle = if is_logarithmic { last.div_ceil(2) } else { 0 };
    let mut number = 0..;
    ticks.retain(|_| number.next().is_some_and(|number| [0, middle, last].contains(&number)));
}

impl Layout {
    fn new(frame: &FigureFrame<'_>, ticks: &[Tick], columns: usize, strips: Option<usize>) -> Self {
        let left = frame::labels_width(ticks);
        let top = frame.head_height() + 28.0;
        let height = strips.map_or(HEIGHT, |strips| (NAME + STRIP) * strips.max(1) as f64);
        let strip = |number: usize| top + NAME + (NAME + STRIP) * number as f64;
        Self {
            plot: Rect { left, top, width: WIDTH - left - RIGHT, height },
            columns,
            strips: (0..strips.unwrap_or(0)).map(strip).collect(),
        }
    }

    /// Where the values are, for the script of a page.
    fn geometry(
        &self,
        axes: (&Axis, &Axis),
        spans: &Spans,
        panels: &[(String, Vec<Series>)],
        filled: bool,
    ) -> Geometry {
        let mut geometry = Geometry::new(Shape::Lines, self.plot);
        for (column, (_, series)) in panels.iter().enumerate() {
            let rows = LineRows::new(series);
            let spot = |number, x: f64, y: f64| {
                spans.spot(self.panels(column, number).into_iter().next()?, x, y)
            };
            let plot = self.column(column);
            let across = |x: f64| spans.x.place(x).map(|x| round(plot.left + x * plot.width));
            geometry.x.extend(rows.x.iter().map(|x| across(*x)));
            geometry.y.resize(series.len().max(geometry.y.len()), Vec::new());
            for ((number, series), heights) in numbered(series).zip(&mut geometry.y) {
                let points = rows.x.iter().map(|x| LineRows::values(series, *x).first());
                heights
                    .extend(points.map(|point| {
                        point.and_then(|it| Some(round(spot(number, it.x, it.y)?.1)))
                    }));
            }
        }
        if let [(_, series)] = panels
            && let Some(mut times) = Times::new(axes, series, spans.x.ends())
        {
            let panels = numbered(series).map(|(number, _)| {
                let panels = self.panels(0, number).into_iter();
                panels.map(|panel| (panel.top, panel.height)).collect()
            });
            times.panels = panels.collect();
            times.strips = !self.strips.is_empty();
            times.filled = filled;
            geometry.times = Some(times);
        }
        geometry
    }
}

/// The heading of each strip: the name of its first curve.
fn strip_names(series: &[Series]) -> Vec<&str> {
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
    /// Number of its marker; `None` for a reference.
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
            // The measured series has the markers.
            SeriesStyle::Dashed if measured(&self.series.name).is_some() => Vec::new(),
            _ if self.spots.len() <= FEW => spots().flatten().collect(),
            _ if self.several => {
                // Markers of different curves do not overlap.
                let step = self.spots.len() / MARKERS;
                let first = step / 2 + step * (self.number.unwrap_or(0) % 4) / 4;
                spots().skip(first).step_by(step).flatten().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A line through the spots, broken at gaps, and dots for spots that are alone between gaps.
fn path(spots: &[Spot]) -> (String, String) {
    let (mut path, mut lone) = (String::new(), String::new());
    for part in spots.split(Option::is_none) {
        envelope::push_path(&mut path, part.iter().flatten().copied());
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
        let (Some(Some(first)), Some(Some(last))) = (part.first(), part.last()) else { continue };
        let places = part.iter().flatten().copied();
        let ends = [(first.0, bottom), (last.0, bottom)];
        envelope::push_path(&mut area, ends[..1].iter().copied().chain(places).chain([ends[1]]));
        area.push('z');
    }
    area
}

/// Draws the band between the ends of the error bars, broken at gaps.
fn band(svg: &mut Markup, series: &Series, plot: Rect, spans: &Spans) {
    let mut path = String::new();
    let ends = series.points.iter().map(|point| spans.ends(plot, point));
    for part in ends.collect::<Vec<_>>().split(Option::is_none) {
        let there = part.iter().flatten().map(|[low, _]| *low);
        let back = part.iter().rev().flatten().map(|[_, high]| *high);
        if part.len() > 1 {
            envelope::push_path(&mut path, there.chain(back));
            path.push('z');
        }
    }
    svg.empty("path", &[("class", &"interval"), ("d", &path)]);
}

/// Draws errors as bars around the points, with feet if there are few.
fn errors(svg: &mut Markup, series: &Series, plot: Rect, spans: &Spans) {
    let mut path = String::new();
    let feet = series.points.len() <= FEET;
    let mut column = f64::NEG_INFINITY;
    let has_error = |point: &&Point| point.errors.iter().any(|&length| length > 0.0);
    let points = series.points.iter().filter(has_error);
    for [(x, low), (_, high)] in points.filter_map(|point| spans.ends(plot, point)) {
        // Bars that cannot be seen are not drawn, and at most one in each column.
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
