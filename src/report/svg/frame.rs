//! The parts that all drawings share: the picture, its words for screen readers, axes, legend.

use super::scale::Span;
use super::ticks::Tick;
use crate::report::figure::{Axis, Figure, SeriesStyle};
use crate::report::layout::wrapped;
use crate::report::markup::{Attributes, Markup, px};
use serde::Serialize;
use std::fmt::{Display, Write as _};

/// Width of every picture.
pub(super) const WIDTH: f64 = 760.0;

/// Space to the right of the plot, for half a label.
pub(super) const RIGHT: f64 = 24.0;

/// Approximate width of a letter.
const LETTER: f64 = 6.6;

/// Letters of the longest name that is not shortened.
const LONGEST: usize = 34;

/// Height of a line below the figure, and the largest number of such lines.
const NOTE: f64 = 16.0;
const MOST_NOTES: usize = 6;

/// Space between a figure and these lines.
const NOTE_GAP: f64 = 12.0;

/// A part of the picture.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// An entry of the legend.
#[derive(Clone, Debug)]
pub(in crate::report) struct Key {
    pub(in crate::report) name: String,
    /// CSS class of its colour.
    pub(in crate::report) class: String,
    pub(in crate::report) swatch: Swatch,
}

/// How a series looks in a legend.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) enum Swatch {
    /// A line, with the marker of this number if it has any.
    Line(SeriesStyle, Option<usize>),
    Bar,
}

/// Approximate width of a text.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// The text, shortened if it is too long for a picture.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LONGEST - 1).collect();
    format!("{begin}…")
}

/// The surroundings of a drawing.
pub(super) struct FigureFrame<'a> {
    pub(super) figure: &'a Figure,
    /// The legend.
    pub(super) keys: Vec<Key>,
    /// For a separate file: the lines below the figure that say what made it.
    pub(super) provenance: Option<&'a [String]>,
}

impl FigureFrame<'_> {
    /// Height that heading and legend take above the drawing.
    pub(super) fn head_height(&self) -> f64 {
        if self.provenance.is_none() {
            return 10.0;
        }
        let heading = if self.figure.title.is_empty() { 10.0 } else { 34.0 };
        heading + legend_lines(&self.keys).len() as f64 * 20.0
    }

    /// Begins the picture: title and description for screen readers; in a separate file also style,
    /// background, heading, legend and provenance.
    pub(super) fn begin(&self, svg: &mut Markup, height: f64) {
        let figure = self.figure;
        let [title, text] = ["title", "desc"].map(|part| format!("{}-{part}", figure.name));
        let notes = self.notes();
        let below = if notes.is_empty() { 0.0 } else { NOTE_GAP };
        let all = height + below + notes.len() as f64 * NOTE;
        let (all, width) = (px(all), px(WIDTH));
        let view = format!("0 0 {width} {all}");
        let labels = format!("{title} {text}");
        svg.open(
            "svg",
            &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("viewBox", &view),
                ("width", &width),
                ("height", &all),
                ("class", &"fs"),
                ("role", &"img"),
                ("aria-labelledby", &labels),
            ],
        );
        svg.leaf("title", &[("id", &title)], &figure.title);
        let (caption, how) = super::caption(figure);
        let words = [Some(caption), how].into_iter().flatten();
        let words: Vec<&str> = words.filter(|words| !words.is_empty()).collect();
        svg.leaf("desc", &[("id", &text)], words.join(" "));
        svg.line();
        if self.provenance.is_none() {
            return;
        }
        svg.open("style", &[]);
        svg.own(super::STYLE);
        svg.close_line("style");
        svg.empty("rect", &[("class", &"ground"), ("width", &width), ("height", &all)]);
        self.heading(svg);
        for (number, note) in notes.iter().enumerate() {
            let y = height + NOTE_GAP + number as f64 * NOTE;
            label(svg, (12.0, y), "start", note);
        }
        svg.line();
    }

    /// Writes the heading and the legend.
    fn heading(&self, svg: &mut Markup) {
        let mut y = 24.0;
        if !self.figure.title.is_empty() {
            let place: Attributes<'_> = &[("class", &"heading"), ("x", &12), ("y", &y)];
            svg.leaf("text", place, &self.figure.title);
            y += 20.0;
        }
        for line in legend_lines(&self.keys) {
            let mut x = 12.0;
            for key in line {
                svg.open("g", &[("class", &key.class)]);
                swatch(svg, key.swatch, x, y - 4.0);
                svg.close("g");
                let name = short(&key.name);
                svg.leaf("text", &[("x", &px(x + 32.0)), ("y", &px(y))], &name);
                x += 52.0 + text_width(&name);
            }
            y += 20.0;
            svg.line();
        }
    }

    /// The lines of the provenance.
    fn notes(&self) -> Vec<String> {
        let width = (WIDTH / LETTER) as usize - 4;
        let lines = self.provenance.iter().flat_map(|lines| lines.iter());
        let cut = |line: String| line.chars().take(width).collect();
        lines.flat_map(|line| wrapped(line, width)).map(cut).take(MOST_NOTES).collect()
    }
}

/// Entries of the legend, in lines.
fn legend_lines(keys: &[Key]) -> Vec<Vec<&Key>> {
    let mut lines: Vec<Vec<&Key>> = Vec::new();
    let mut x = f64::INFINITY;
    for key in keys {
        let width = 52.0 + text_width(&short(&key.name));
        if x + width > WIDTH {
            lines.push(Vec::new());
            x = 12.0;
        }
        if let Some(line) = lines.last_mut() {
            line.push(key);
        }
        x += width;
    }
    lines
}

/// A sample of the series, 26 wide, around `y`.
pub(in crate::report) fn swatch(svg: &mut Markup, swatch: Swatch, x: f64, y: f64) {
    match swatch {
        Swatch::Bar => svg.empty(
            "rect",
            &[
                ("class", &"bar"),
                ("x", &px(x + 7.0)),
                ("y", &px(y - 6.0)),
                ("width", &12),
                ("height", &12),
                ("rx", &2),
            ],
        ),
        Swatch::Line(style, marker) => {
            svg.open("g", &[("class", &style_class(style))]);
            if style != SeriesStyle::Points {
                let path = format!("M{} {}h26", px(x), px(y));
                svg.empty("path", &[("class", &"line"), ("d", &path)]);
            }
            if let Some(number) = marker {
                mark(svg, number, (x + 13.0, y));
            }
            svg.close("g");
        }
    }
}

pub(super) fn style_class(style: SeriesStyle) -> &'static str {
    match style {
        SeriesStyle::Reference | SeriesStyle::Places => "reference",
        SeriesStyle::Line | SeriesStyle::Band => "solid",
        SeriesStyle::Dashed => "dashed",
        SeriesStyle::Points => "points",
    }
}

/// A marker; each number has its own shape.
pub(super) fn mark(svg: &mut Markup, number: usize, (x, y): (f64, f64)) {
    let (x, y) = (px(x), px(y));
    let class = if number % 8 < 4 { "mark" } else { "open" };
    let path = match number % 4 {
        0 => format!("M{x} {y}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"),
        1 => format!("M{x} {y}m-3.2 -3.2h6.4v6.4h-6.4z"),
        2 => format!("M{x} {y}m0 -4.2l4.2 7.4h-8.4z"),
        _ => format!("M{x} {y}m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z"),
    };
    svg.empty("path", &[("class", &class), ("d", &path)]);
}

/// Writes a text whose start, middle or end is at this place, as `anchor` says.
pub(super) fn text(svg: &mut Markup, (x, y): (f64, f64), anchor: &str, text: impl Display) {
    let place: Attributes<'_> = &[("x", &px(x)), ("y", &px(y)), ("text-anchor", &anchor)];
    svg.leaf("text", place, text);
}

/// As [`text`], in a quiet colour, for labels of axes.
pub(super) fn label(svg: &mut Markup, (x, y): (f64, f64), anchor: &str, text: impl Display) {
    let (x, y) = (px(x), px(y));
    let place: Attributes<'_> =
        &[("class", &"quiet"), ("x", &x), ("y", &y), ("text-anchor", &anchor)];
    svg.leaf("text", place, text);
}

/// Width of the labels of a vertical axis.
pub(super) fn labels_width(ticks: &[Tick]) -> f64 {
    let widest = ticks.iter().map(|tick| text_width(&tick.label));
    widest.fold(20.0, f64::max) + 20.0
}

/// Writes the name of the vertical axis above the plot.
pub(super) fn axis_name(svg: &mut Markup, plot: Rect, axis: &Axis) {
    svg.leaf("text", &[("class", &"quiet"), ("x", &12), ("y", &px(plot.top - 15.0))], &axis.label);
}

/// Writes the ticks of a vertical axis, with a grid line for each, and the line at `ground`.
/// `labels` says whether they have their numbers.
pub(super) fn levels(
    svg: &mut Markup,
    plot: Rect,
    ticks: &[Tick],
    ground: Option<f64>,
    labels: bool,
) {
    let mut grid = String::new();
    for tick in ticks {
        let y = plot.bottom() - tick.at * plot.height;
        // Writing to a String cannot fail.
        let _ = write!(grid, "M{} {}H{}", px(plot.left), px(y), px(plot.right()));
        if labels {
            label(svg, (plot.left - 8.0, y + 4.0), "end", &tick.label);
        }
    }
    svg.empty("path", &[("class", &"grid"), ("d", &grid)]);
    if let Some(ground) = ground {
        let y = plot.bottom() - ground * plot.height;
        let base = format!("M{} {}H{}", px(plot.left), px(y), px(plot.right()));
        svg.empty("path", &[("class", &"base"), ("d", &base)]);
    }
    svg.line();
}

/// Writes a horizontal axis with its name below the plot.
pub(super) fn horizontal(svg: &mut Markup, plot: Rect, axis: &Axis, span: &Span, lines: bool) {
    svg.open("g", &[("class", &"axis-x")]);
    let mut marks = String::new();
    let mut free = f64::NEG_INFINITY;
    for tick in span.ticks() {
        let x = plot.left + tick.at * plot.width;
        let (from, to) =
            if lines { (plot.top, plot.bottom()) } else { (plot.bottom(), plot.bottom() + 5.0) };
        let _ = write!(marks, "M{} {}V{}", px(x), px(from), px(to));
        let half = text_width(&tick.label) / 2.0;
        // A label at the end stays within the picture, even if it is not centred below its tick.
        let x = x.min(WIDTH - half - 2.0).max(half + 2.0);
        if x - half < free {
            continue;
        }
        free = x + half + 8.0;
        label(svg, (x, plot.bottom() + 19.0), "middle", &tick.label);
    }
    let class = if lines { "grid" } else { "base" };
    svg.empty("path", &[("class", &class), ("d", &marks)]);
    let name = match span.day() {
        Some(day) => format!("{} ({day})", axis.label),
        None => axis.label.clone(),
    };
    let middle = plot.left + plot.width / 2.0;
    label(svg, (middle, plot.bottom() + 39.0), "middle", name);
    svg.close_line("g");
}
