//! The values of a chart as a table.

use super::document::TableView;
use super::figure::{Drawing, Figure, Point, Scale, Series, SeriesStyle};
use super::heading::Heading;
use super::svg::written;

/// Largest number of rows of the table.
const MOST_ROWS: usize = 1000;

/// The places on the horizontal axis that have a row.
pub(super) struct LineRows {
    /// The places, ascending.
    pub(super) x: Vec<f64>,
    /// Number of places before thinning out.
    pub(super) places: usize,
}

impl LineRows {
    /// The places for a table.
    pub(super) fn new(series: &[Series]) -> Self {
        Self::most(series, MOST_ROWS)
    }

    /// At most this many places: all if they are few, otherwise the lowest and highest value of
    /// each curve in every part of the axis, and as many at equal distances, which show what is
    /// usual.
    pub(super) fn most(series: &[Series], most: usize) -> Self {
        let mut x: Vec<f64> = series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .filter(|x| x.is_finite())
            .collect();
        x.sort_unstable_by(f64::total_cmp);
        x.dedup();
        let places = x.len();
        if places <= most {
            return Self { x, places };
        }
        let parts = most / (4 * series.len()).max(1);
        let part = places.div_ceil(parts.max(1));
        let step = places.div_ceil((most / 2).max(1));
        let mut kept: Vec<f64> = x.iter().copied().step_by(step).collect();
        for stretch in x.chunks(part) {
            let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
            for series in series {
                let from = series.points.partition_point(|p| p.x < first);
                let to = series.points.partition_point(|p| p.x <= last);
                let seen = || {
                    let points = series.points[from..to.max(from)].iter();
                    points.filter(|p| p.y.is_finite())
                };
                let by_height = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
                kept.extend(seen().min_by(by_height).map(|p| p.x));
                kept.extend(seen().max_by(by_height).map(|p| p.x));
            }
        }
        kept.sort_unstable_by(f64::total_cmp);
        kept.dedup();
        Self { x: kept, places }
    }

    /// The points of a series at this place.
    pub(super) fn values(series: &Series, x: f64) -> &[Point] {
        let from = series.points.partition_point(|p| p.x < x);
        let to = series.points.partition_point(|p| p.x <= x);
        &series.points[from..to.max(from)]
    }
}

/// The values of a figure as a table, with a note if values are left out.
pub(super) fn table(figure: &Figure) -> (TableView, Option<String>) {
    match &figure.drawing {
        Drawing::Lines { x, y, panels, .. } => {
            let with_values = |series: &&Series| series.style != SeriesStyle::Places;
            let (mut values, mut places) = (Vec::new(), 0);
            for (panel, series) in panels {
                let rows = LineRows::new(series);
                places += rows.places;
                values.extend(rows.x.iter().map(|at| {
                    let values = series.iter().filter(with_values);
                    let values = values.map(|series| text_at(series, *at, y.scale));
                    let place = written(x.scale, *at);
                    let place = if panel.is_empty() { place } else { format!("{place}, {panel}") };
                    (place, values.collect())
                }));
            }
            let rows = values.len();
            let note = (rows < places).then(|| {
                format!("{rows} of {places} places, among them the lowest and the highest values.")
            });
            let names = panels.first().into_iter().flat_map(|(_, series)| series);
            let names = names.filter(with_values);
            (table_of(&x.label, names.map(|series| &series.name), values.into_iter()), note)
        }
        Drawing::Bars { categories, y, series } => {
            let rows = categories.iter().enumerate().map(|(i, category)| {
                let values = series.iter().map(|(_, values)| values.get(i).copied().flatten());
                (category.clone(), values.map(|value| optional(y.scale, value)).collect())
            });
            (table_of("", series.iter().map(|(name, _)| name), rows), None)
        }
        Drawing::HeatMap { rows, columns, values, letters, shade } => {
            let rows = rows.iter().zip(values).enumerate().map(|(i, (row, values))| {
                let values = values.iter().enumerate().map(|(j, value)| {
                    let letter = letters.get(i).and_then(|row| row.get(j));
                    let value = optional(shade.scale, *value);
                    letter.map_or(value.clone(), |letter| format!("{value} {letter}"))
                });
                (row.clone(), values.collect())
            });
            (table_of("", columns.iter(), rows), None)
        }
    }
}

fn optional(scale: Scale, value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| written(scale, value))
}

/// The values of a series at this place.
pub(super) fn text_at(series: &Series, x: f64, scale: Scale) -> String {
    let points = LineRows::values(series, x).iter();
    let texts: Vec<String> =
        points.filter(|point| point.y.is_finite()).map(|point| with_error(point, scale)).collect();
    texts.join("; ")
}

fn with_error(point: &Point, scale: Scale) -> String {
    let value = written(scale, point.y);
    match point.errors {
        [down, up] if down <= 0.0 && up <= 0.0 => value,
        [down, up] if down.to_bits() == up.to_bits() => format!("{value} ± {}", written(scale, up)),
        [down, up] => {
            let [low, high] = [point.y - down, point.y + up].map(|end| written(scale, end));
            format!("{value} ({low} to {high})")
        }
    }
}

/// A table with the names of the series and of the rows.
fn table_of<'a>(
    first: &str,
    names: impl Iterator<Item = &'a String>,
    rows: impl Iterator<Item = (String, Vec<String>)>,
) -> TableView {
    let names = names.map(|name| Heading::number(name.clone()));
    TableView::named(Heading::text(first.to_owned()), names, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_table_keeps_the_peaks() {
        let y = |i: u32| match i {
            7_777 => 1e6,
            8_888 => -1e6,
            _ => f64::from(i % 10),
        };
        let points = (0..20_000).map(|i| Point::new(f64::from(i), y(i)));
        let series =
            [Series { name: "a".into(), points: points.collect(), style: SeriesStyle::Line }];
        let rows = LineRows::new(&series);
        assert_eq!(rows.places, 20_000);
        assert!(rows.x.len() <= MOST_ROWS);
        assert!(rows.x.contains(&7_777.0) && rows.x.contains(&8_888.0));
        assert_eq!(LineRows::values(&series[0], 7_777.0)[0].y as u64, 1_000_000);
    }
}
