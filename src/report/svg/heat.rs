//! A matrix of shades: from the colour of the ground to full colour, so that it reads in grey too.

use super::frame::{self, FigureFrame, RIGHT, Rect, WIDTH};
use super::numbers::written;
use super::scale::Span;
use super::{Drawn, Geometry, Shape};
use crate::report::figure::{Axis, Scale};
use crate::report::markup::{Attributes, Markup, px};

/// Largest width and height of a cell.
const WIDEST: f64 = 48.0;
const HIGHEST: f64 = 24.0;

/// Shade of the smallest value, which differs from no value.
const FAINTEST: f64 = 0.08;

/// Place on the scale of shades from which on a letter has the colour of the ground.
const DARK: f64 = 0.7;

/// Steps of the legend.
const STEPS: usize = 5;

/// Width of a step of the legend.
const STEP: f64 = 86.0;

pub(super) fn draw(
    frame: &FigureFrame<'_>,
    (rows, columns): (&[String], &[String]),
    (values, letters): (&[Vec<Option<f64>>], &[Vec<String>]),
    shade: &Axis,
) -> Drawn {
    let short = |names: &[String]| names.iter().map(|name| frame::short(name)).collect();
    let names: [Vec<String>; 2] = [short(rows), short(columns)];
    // The names of columns stand upright above them, as high as they are wide.
    let [left, above] = names.each_ref().map(|names| {
        let widths = names.iter().map(|name| frame::text_width(name));
        widths.fold(20.0, f64::max)
    });
    let (left, above) = (left + 20.0, above + 12.0);
    let (across, down) = (columns.len().max(1) as f64, rows.len().max(1) as f64);
    let cell = ((WIDTH - left - RIGHT) / across).min(WIDEST);
    let high = cell.clamp(14.0, HIGHEST);
    let top = frame.head_height() + above;
    let plot = Rect { left, top, width: cell * across, height: high * down };
    let mut svg = Markup::default();
    frame.begin(&mut svg, plot.bottom() + 58.0);
    write_names(&mut svg, plot, (cell, high), &names);
    let numbers = || values.iter().flatten().flatten().copied();
    let span = Span::over(shade.scale, numbers(), false);
    svg.open("g", &[("class", &"shade")]);
    for (row, values) in values.iter().enumerate().take(rows.len()) {
        for (column, value) in values.iter().enumerate().take(columns.len()) {
            let Some(at) = value.and_then(|value| span.place(value)) else { continue };
            let x = plot.left + column as f64 * cell;
            let y = plot.top + row as f64 * high;
            shaded(&mut svg, at, (x + 0.5, y + 0.5), (cell - 1.0, high - 1.0));
        }
        svg.line();
    }
    svg.close("g");
    write_letters(&mut svg, plot, (cell, high), letters, |row, column| {
        span.place(*values.get(row)?.get(column)?.as_ref()?)
    });
    let [x, y, width, height] = [plot.left, plot.top, plot.width, plot.height].map(px);
    let frame = format!("M{x} {y}h{width}v{height}h-{width}z");
    svg.empty("path", &[("class", &"grid"), ("d", &frame)]);
    legend(&mut svg, plot, shade, numbers(), &span);
    svg.close("svg");
    let bands = (rows.len(), columns.len());
    Drawn { svg: svg.finish(), geometry: Geometry { bands, ..Geometry::new(Shape::Heat, plot) } }
}

/// Writes the names of the rows and of the columns.
fn write_names(
    svg: &mut Markup,
    plot: Rect,
    (cell, high): (f64, f64),
    [rows, columns]: &[Vec<String>; 2],
) {
    for (i, name) in rows.iter().enumerate() {
        let y = plot.top + (i as f64 + 0.5) * high + 4.0;
        frame::text(svg, (plot.left - 8.0, y), "end", name);
    }
    svg.line();
    for (i, name) in columns.iter().enumerate() {
        let x = plot.left + (i as f64 + 0.5) * cell + 4.0;
        let turned = format!("translate({} {}) rotate(-90)", px(x), px(plot.top - 7.0));
        svg.leaf("text", &[("transform", &turned)], name);
    }
    svg.line();
}

/// Writes the letters of the cells: dark ones have letters in the colour of the ground.
fn write_letters(
    svg: &mut Markup,
    plot: Rect,
    (cell, high): (f64, f64),
    letters: &[Vec<String>],
    shade: impl Fn(usize, usize) -> Option<f64>,
) {
    for (row, letters) in letters.iter().enumerate() {
        for (column, letter) in letters.iter().enumerate() {
            let x = plot.left + (column as f64 + 0.5) * cell;
            let y = plot.top + (row as f64 + 0.5) * high + 4.0;
            let is_dark = shade(row, column).is_some_and(|shade| shade > DARK);
            let class = if is_dark { "on-dark" } else { "on-light" };
            let place: Attributes<'_> =
                &[("class", &class), ("x", &px(x)), ("y", &px(y)), ("text-anchor", &"middle")];
            svg.leaf("text", place, letter);
        }
    }
}

fn shaded(svg: &mut Markup, at: f64, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let shade = format!("{:.2}", FAINTEST + (1.0 - FAINTEST) * at.clamp(0.0, 1.0));
    svg.empty(
        "rect",
        &[
            ("class", &"cell"),
            ("fill-opacity", &shade),
            ("x", &px(x)),
            ("y", &px(y)),
            ("width", &px(width.max(0.5))),
            ("height", &px(height.max(0.5))),
        ],
    );
}

/// Writes the meaning of the shades below the plot.
fn legend(
    svg: &mut Markup,
    plot: Rect,
    shade: &Axis,
    numbers: impl Iterator<Item = f64>,
    span: &Span,
) {
    let usable = numbers.filter(|number| span.place(*number).is_some());
    let (low, high) =
        usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), n| (low.min(n), high.max(n)));
    if low > high {
        return;
    }
    let left = plot.left.min(WIDTH - RIGHT - STEPS as f64 * STEP).max(12.0);
    let y = plot.bottom() + 18.0;
    let steps = if low < high { STEPS } else { 1 };
    for step in 0..steps {
        let part = step as f64 / (steps.max(2) - 1) as f64;
        let mut number = match shade.scale {
            Scale::Log | Scale::Bytes => low * (high / low).powf(part),
            _ => low + (high - low) * part,
        };
        if low.fract() == 0.0 && high.fract() == 0.0 && high - low >= STEPS as f64 {
            number = number.round();
        }
        let x = left + step as f64 * STEP;
        svg.open("g", &[("class", &"shade")]);
        let at = span.place(number).unwrap_or(0.0);
        shaded(svg, at, (x, y), (STEP - 2.0, 10.0));
        svg.close("g");
        let (place, text) = ((x + STEP / 2.0, y + 25.0), written(shade.scale, number));
        frame::label(svg, place, "middle", text);
    }
    frame::label(svg, (left - 8.0, y + 9.0), "end", &shade.label);
    svg.line();
}
