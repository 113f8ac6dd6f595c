//! Figures as plain data. Results become these; `svg` draws them and knows nothing of results.

use crate::zone::Zone;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Short name, made of `a-z`, `0-9` and `-`: file name of the SVG and anchor in the page.
    pub name: String,
    /// Heading.
    pub title: String,
    /// A caption of a sentence or two; may be empty.
    pub caption: String,
    /// The drawing.
    pub drawing: Drawing,
}

/// The kinds of drawings.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// Curves or points in panels side by side, all with the same axes and one legend.
    Lines {
        /// Horizontal, in every panel.
        x: Axis,
        /// Vertical, in every panel.
        y: Axis,
        /// The curves of each with its name, which is empty for the only one: the same ones in the
        /// same order.
        panels: Vec<(String, Vec<Series>)>,
        /// Curves lie one below the other, all with the same scale.
        strips: bool,
    },
    /// Bars in groups: one group a category, one bar in it a series.
    Bars {
        /// Names of the groups.
        categories: Vec<String>,
        /// Vertical.
        y: Axis,
        /// Each series with its name, and its value in each category.
        series: Vec<(String, Vec<Option<f64>>)>,
    },
    /// A matrix of shades.
    HeatMap {
        /// Names of the rows, from the top.
        rows: Vec<String>,
        /// Names of the columns, from the left.
        columns: Vec<String>,
        /// The values of each row.
        values: Vec<Vec<Option<f64>>>,
        /// A letter or two in each cell; rows may be missing.
        letters: Vec<Vec<String>>,
        /// Meaning of the shades.
        shade: Axis,
    },
}

/// A scale with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its quantity with the unit, such as `memory, KiB`.
    pub label: String,
    /// How the axis maps and writes numbers.
    pub scale: Scale,
}

/// How an axis maps and writes numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic; zero has a separate place below all others, and negative numbers are not shown.
    Log,
    /// Seconds since the epoch, written as times of day in this zone.
    Time(Zone),
    /// Logarithmic sizes in bytes, written as `4 KiB`.
    Bytes,
    /// Linear shares in per cent.
    Percent,
    /// Linear counts, with ticks at whole numbers.
    Count,
    /// Logarithmic shares in per cent; zero has a separate place below all others.
    PercentLog,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in the order of x.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub style: SeriesStyle,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value; not a number where the curve has a gap.
    pub y: f64,
    /// Lengths of its error bar, down and up; 0 for none.
    pub errors: [f64; 2],
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SeriesStyle {
    /// Ground truth: a thick, pale line behind the others.
    Reference,
    /// A line with points if there are few.
    Line,
    /// A line with a band between the ends of its error bars.
    Band,
    /// A broken line: a formula or a prediction.
    Dashed,
    /// Points only: measurements.
    Points,
    /// A thick, pale line that marks ranges of the x axis; its y values mean nothing.
    Places,
}

impl Drawing {
    /// Curves in one panel.
    pub fn lines(x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self::Lines { x, y, panels: vec![(String::new(), series)], strips: false }
    }

    /// Bars of counts, one for each category.
    pub(super) fn counts(label: &str, categories: Vec<String>, values: Vec<Option<f64>>) -> Self {
        let (y, series) = (Axis::new(label, Scale::Count), vec![(label.to_owned(), values)]);
        Self::Bars { categories, y, series }
    }
}

impl Point {
    /// A point without an error bar.
    pub(super) const fn new(x: f64, y: f64) -> Self {
        Self { x, y, errors: [0.0; 2] }
    }
}

impl Figure {
    /// A figure with its heading and what to see in it.
    pub(super) fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        drawing: Drawing,
    ) -> Self {
        Self { name: name.into(), title: title.into(), caption: caption.into(), drawing }
    }
}

impl Axis {
    /// An axis with its label.
    pub(super) fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale }
    }

    /// An axis of time in this zone, whose name follows the label.
    pub(super) fn time(label: &str, zone: Zone) -> Self {
        Self::new(format!("{label}, {zone}"), Scale::Time(zone))
    }
}
