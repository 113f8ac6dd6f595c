//! Figures as SVG.
//!
//! A small writer instead of a chart crate: a picture is a hundred shapes, and chart crates leave to
//! their users what matters here (few bytes for many points, colours for light and dark, names that
//! cannot become markup, places that the script of a page can use).
//!
//! | file | what it does |
//! |---|---|
//! | `scale`, `ticks`, `numbers` | where numbers lie, ticks, how numbers are written |
//! | `frame` | the picture, axes, legend, markers |
//! | `lines`, `bars`, `heat` | the drawings |
//! | `envelope` | thousands of points as what can be seen of them |
//! | `time` | curves over time for the script of a page |

mod bars;
mod envelope;
mod frame;
mod heat;
mod lines;
mod numbers;
mod scale;
mod ticks;
mod time;

#[cfg(test)]
mod tests;

pub(super) use frame::{Key, swatch};
pub(super) use numbers::written;

use super::figure::{Drawing, Figure};
use frame::{FigureFrame, Rect};
use serde::Serialize;
use time::Times;

/// Colours and strokes; a page has them once for all its figures.
pub(super) const STYLE: &str = include_str!("figure.css");

/// The figure as a separate file, with heading, legend and colours. The lines of `provenance` are
/// printed below it: what made the figure, and from what.
pub fn standalone(figure: &Figure, provenance: &[String]) -> String {
    draw(figure, Some(provenance)).svg
}

/// A figure for a page, and where its parts are.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) svg: String,
    pub(super) geometry: Geometry,
}

/// Where the parts of a drawing are, in its own units, for the script of a page. The rows are those
/// of the table behind the chart.
#[derive(Debug, Default, Serialize)]
pub(super) struct Geometry {
    pub(super) shape: Shape,
    #[serde(flatten)]
    plot: Rect,
    /// Place of each row: from the left for lines, as a number from the first for others.
    x: Vec<Option<f64>>,
    /// Height of each series at each row, where it has a value there.
    y: Vec<Vec<Option<f64>>>,
    /// Number of rows and of columns after the first, for drawings in bands.
    bands: (usize, usize),
    /// Bands lie one below the other.
    horizontal: bool,
    /// The curves, if they are over time.
    times: Option<Times>,
}

/// The kind of a drawing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    #[default]
    Lines,
    Bars,
    Heat,
}

impl Geometry {
    /// Whether it is higher than most figures.
    pub(super) fn is_tall(&self) -> bool {
        self.plot.height > 1.3 * lines::HEIGHT
    }

    fn new(shape: Shape, plot: Rect) -> Self {
        Self { shape, plot, ..Self::default() }
    }
}

/// Draws a figure for a page, or as a separate file with its provenance.
pub(super) fn draw(figure: &Figure, provenance: Option<&[String]>) -> Drawn {
    let frame = FigureFrame { figure, keys: keys(figure), provenance };
    match &figure.drawing {
        Drawing::Lines { x, y, panels, strips } => lines::draw(&frame, (x, y), panels, *strips),
        Drawing::Bars { categories, y, series } => bars::draw(&frame, categories, y, series),
        Drawing::HeatMap { rows, columns, values, letters, shade } => {
            heat::draw(&frame, (rows, columns), (values, letters), shade)
        }
    }
}

/// The caption of a figure, and how to read it if it has more values than columns.
pub(super) fn caption(figure: &Figure) -> (&str, Option<&'static str>) {
    let is_dense = matches!(&figure.drawing, Drawing::Lines { panels, .. }
        if panels.iter().any(|(_, series)| lines::is_dense(series)));
    let how = "Bands reach from the lowest to the highest values, lines are their medians.";
    (&figure.caption, is_dense.then_some(how))
}

/// The legend of a figure; empty for a single series.
pub(super) fn keys(figure: &Figure) -> Vec<Key> {
    match &figure.drawing {
        Drawing::Lines { panels, strips: false, .. } => {
            panels.first().map_or_else(Vec::new, |(_, series)| lines::keys(series))
        }
        Drawing::Bars { series, .. } => bars::keys(series),
        Drawing::Lines { .. } | Drawing::HeatMap { .. } => Vec::new(),
    }
}
