//! What a page shows, as plain data: figures, tables and text. Results become these; [`super`]'s
//! writers make SVG, HTML and Markdown of them, and know nothing of results.

use crate::zone::Zone;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Short name, made of `a-z`, `0-9` and `-`: file name of the SVG and anchor in the page.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What to see in it, in a sentence or two; may be empty.
    pub caption: String,
    /// The drawing.
    pub drawing: Drawing,
}

/// The drawings there are.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// Curves or points over a common x axis.
    Lines {
        /// Horizontal.
        x: Axis,
        /// Vertical.
        y: Axis,
        /// One curve each.
        series: Vec<Series>,
    },
    /// Curves one below the other over a common x axis, each with the same scale.
    Strips {
        /// Horizontal.
        x: Axis,
        /// Vertical, in every strip.
        y: Axis,
        /// One curve each.
        series: Vec<Series>,
    },
    /// Bars in groups: one group a category, one bar in it a series.
    Bars {
        /// Names of the groups.
        categories: Vec<String>,
        /// Vertical.
        y: Axis,
        /// Name of a series, and its value in each category; `None` where there is none.
        series: Vec<(String, Vec<Option<f64>>)>,
    },
    /// A matrix of shades.
    HeatMap {
        /// Names of the rows, from the top.
        rows: Vec<String>,
        /// Names of the columns, from the left.
        columns: Vec<String>,
        /// One list a row; `None` where there is nothing.
        values: Vec<Vec<Option<f64>>>,
        /// What the shades mean.
        shade: Axis,
    },
}

/// A scale with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit, such as `memory, KiB`.
    pub label: String,
    /// How numbers are laid out and written.
    pub scale: Scale,
}

/// How numbers lie along an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; zero has a place of its own below all others, and what is below zero is
    /// left out.
    Log,
    /// Evenly, as seconds since the epoch, written as times of day in this zone.
    Time(Zone),
    /// By their logarithm, as sizes in bytes, written `4 KiB`.
    Bytes,
    /// Evenly, as shares, written in per cent.
    Percent,
    /// Evenly, what is counted: ticks are whole numbers.
    Count,
    /// By their logarithm, as shares, written in per cent; zero has a place of its own below all
    /// others.
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
    /// Standard error, drawn as a bar up and down; 0 for none.
    pub error: f64,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SeriesStyle {
    /// The truth: a thick quiet line behind the others.
    Reference,
    /// A line with points if there are few.
    Line,
    /// A broken line: a formula or a prediction.
    Dashed,
    /// Points only: measurements.
    Points,
}

/// A table for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataTable {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Which columns hold numbers and stand to the right.
    pub numeric: Vec<bool>,
    /// Written values, one list a row.
    pub rows: Vec<Vec<String>>,
}

/// A page: what a report says, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Heading of the page.
    pub title: String,
    /// The answer in words, a sentence each.
    pub summary: Vec<String>,
    /// What makes the answer worth less than it looks, a sentence each.
    pub warnings: Vec<String>,
    /// Everything else.
    pub sections: Vec<PageSection>,
    /// The zone in which it shows times.
    pub zone: Zone,
}

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageSection {
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// What stands in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph of plain text.
    Text(String),
    /// A chart, with its table behind it.
    Figure(Figure),
    /// A table.
    Table(DataTable),
}

impl Drawing {
    /// Bars in groups. Of more than eight series each is a group, with its name beside it: so many
    /// colours cannot be told apart.
    pub(super) fn bars(
        categories: Vec<String>,
        y: Axis,
        series: Vec<(String, Vec<Option<f64>>)>,
    ) -> Self {
        const COLOURS: usize = 8;
        if series.len() <= COLOURS || categories.len() > COLOURS {
            return Self::Bars { categories, y, series };
        }
        let turned = categories.into_iter().enumerate().map(|(i, category)| {
            let values = series.iter();
            let values = values.map(|(_, values)| values.get(i).copied().flatten());
            (category, values.collect())
        });
        Self::Bars {
            series: turned.collect(),
            categories: series.into_iter().map(|(name, _)| name).collect(),
            y,
        }
    }
}

impl Figure {
    /// A figure with its heading and what to see in it.
    pub(super) fn new(name: &str, title: &str, caption: &str, drawing: Drawing) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            caption: caption.to_owned(),
            drawing,
        }
    }
}

impl Axis {
    /// An axis with its label.
    pub(super) fn new(label: &str, scale: Scale) -> Self {
        Self { label: label.to_owned(), scale }
    }
}

impl Axis {
    /// An axis of time in this zone, with what lies there: its name stands behind that.
    pub(super) fn time(what: &str, zone: Zone) -> Self {
        Self::new(&format!("{what}, {zone}"), Scale::Time(zone))
    }
}

impl DataTable {
    /// A table of these columns, each with whether it holds numbers.
    pub(super) fn new(columns: &[(&str, bool)], rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            numeric: columns.iter().map(|&(_, numeric)| numeric).collect(),
            rows: rows.collect(),
        }
    }
}

impl PageSection {
    /// A section with its heading.
    pub(super) fn new(title: &str, blocks: Vec<Block>) -> Self {
        Self { title: title.to_owned(), blocks }
    }
}

impl Page {
    /// All figures, in order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_series_are_groups_with_names() {
        let bars = |count: usize| {
            let series = (0..count).map(|i| (format!("s{i}"), vec![Some(i as f64), None]));
            let axis = Axis::new("n", Scale::Linear);
            let categories = vec!["a".to_owned(), "b".to_owned()];
            match Drawing::bars(categories, axis, series.collect()) {
                Drawing::Bars { categories, series, .. } => (categories, series),
                _ => (Vec::new(), Vec::new()),
            }
        };
        let (categories, series) = bars(8);
        assert_eq!((categories.len(), series.len()), (2, 8));
        let (categories, series) = bars(9);
        assert_eq!((categories.len(), series.len()), (9, 2));
        assert_eq!((categories[7].as_str(), series[0].0.as_str()), ("s7", "a"));
        assert_eq!((series[0].1[7], series[1].1[7]), (Some(7.0), None));
    }
}
