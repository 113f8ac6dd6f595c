//! Figures as SVG.
//!
//! A small writer of our own: a picture is a hundred shapes, and what matters (few bytes for many points,
//! colours for light and dark, names that cannot become markup, places that a page's script can use) is
//! what the known chart crates leave to their users.
//!
//! | file | what it does |
//! |---|---|
//! | `scale` | where numbers lie, ticks, how numbers are written |
//! | `frame` | the picture, axes, legend, markers |
//! | `lines`, `strips`, `bars`, `heat` | the drawings |
//! | `thin` | thousands of points as few |

mod bars;
mod frame;
mod heat;
mod lines;
mod scale;
mod strips;
mod thin;

#[cfg(test)]
mod tests;

pub(super) use frame::{Key, swatch};
pub(super) use scale::written;

use super::figure::{Drawing, Figure};
use frame::Rect;
use serde::Serialize;

/// Colours and strokes; a page has them once for all its figures.
pub(super) const STYLE: &str = include_str!("figure.css");

/// The figure as a file of its own, with heading, legend and colours.
pub fn standalone(figure: &Figure) -> String {
    draw(figure, true).svg
}

/// A figure to stand in a page, and where its parts are.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) svg: String,
    pub(super) geometry: Geometry,
}

/// Where the parts of a drawing are, in its own units, for the script of a page. The rows are those of the table
/// behind the chart.
#[derive(Debug, Serialize)]
pub(super) struct Geometry {
    pub(super) shape: Shape,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Place of each row: from the left for lines, as a number from the first for others.
    x: Vec<Option<f64>>,
    /// Height of each series at each row, where it has a value there.
    y: Vec<Vec<Option<f64>>>,
    /// Rows, and columns beside the first, of what is laid out in bands.
    bands: (usize, usize),
    /// Bands lie one below the other.
    horizontal: bool,
}

/// What kind of drawing it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    Lines,
    Bars,
    Heat,
}

impl Geometry {
    fn of(shape: Shape, plot: Rect) -> Self {
        Self {
            shape,
            left: plot.left,
            top: plot.top,
            width: plot.width,
            height: plot.height,
            x: Vec::new(),
            y: Vec::new(),
            bands: (0, 0),
            horizontal: false,
        }
    }
}

/// Draws a figure for a page, or to stand alone.
pub(super) fn draw(figure: &Figure, alone: bool) -> Drawn {
    match &figure.drawing {
        Drawing::Lines { x, y, series } => lines::draw(figure, (x, y), series, alone),
        Drawing::Strips { x, y, series } => strips::draw(figure, (x, y), series, alone),
        Drawing::Bars {
            categories,
            y,
            series,
        } => bars::draw(figure, categories, y, series, alone),
        Drawing::HeatMap {
            rows,
            columns,
            values,
            shade,
        } => heat::draw(figure, (rows, columns), values, shade, alone),
    }
}

/// The legend of a figure: empty where there is nothing to tell apart.
pub(super) fn keys(figure: &Figure) -> Vec<Key> {
    match &figure.drawing {
        Drawing::Lines { series, .. } => lines::keys(series),
        Drawing::Bars { series, .. } => bars::keys(series),
        Drawing::Strips { .. } | Drawing::HeatMap { .. } => Vec::new(),
    }
}
