//! Thousands of points reduced to the lowest, the median and the highest in each narrow column of
//! the drawing, so that a peak of a single point stays visible.
//!
//! The script of a page (`html/time.js`) does the same for the part of the time that is chosen.

use crate::report::markup::px;
use std::fmt::Write as _;
use std::mem::take;

/// A point on the drawing; `None` for a gap of the curve.
pub(super) type Spot = Option<(f64, f64)>;

/// Number of points above which a curve is drawn by columns.
pub(super) const MANY: usize = 1000;

/// Width of a column.
pub(super) const COLUMN: f64 = 3.0;

/// The points in a column. Heights count from above, so the highest point has the least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    x: f64,
    top: f64,
    median: f64,
    bottom: f64,
}

/// The columns of these spots, in parts between which the curve has a gap. A gap within a column,
/// or between two that touch, is narrower than what can be seen.
pub(super) fn columns(spots: &[Spot]) -> Vec<Vec<Column>> {
    let mut parts: Vec<Vec<Column>> = Vec::new();
    let (mut last, mut gap) = (i64::MIN, false);
    // The number of the column, whether a gap is before the spot, and its height.
    let placed = spots.iter().filter_map(|spot| {
        let Some((x, y)) = *spot else {
            gap = true;
            return None;
        };
        Some(((x / COLUMN).floor() as i64, take(&mut gap), y))
    });
    for spots in placed.collect::<Vec<_>>().chunk_by(|one, next| one.0 == next.0) {
        let (number, gap, _) = spots[0];
        let mut heights: Vec<f64> = spots.iter().map(|spot| spot.2).collect();
        heights.sort_unstable_by(f64::total_cmp);
        let middle = heights.len() / 2;
        let column = Column {
            x: (number as f64 + 0.5) * COLUMN,
            top: heights[0],
            median: if heights.len().is_multiple_of(2) {
                f64::midpoint(heights[middle - 1], heights[middle])
            } else {
                heights[middle]
            },
            bottom: heights[heights.len() - 1],
        };
        let apart = gap && last.saturating_add(1) < number;
        match parts.last_mut() {
            Some(part) if !apart => part.push(column),
            _ => parts.push(vec![column]),
        }
        last = number;
    }
    parts
}

/// The band from the lowest to the highest, and the line of the medians.
pub(super) fn paths(parts: &[Vec<Column>]) -> (String, String) {
    let (mut band, mut line) = (String::new(), String::new());
    for part in parts {
        let there = part.iter().map(|column| (column.x, column.top));
        let back = part.iter().rev().map(|column| (column.x, column.bottom));
        push_path(&mut band, there.chain(back));
        band.push('z');
        push_path(&mut line, part.iter().map(|column| (column.x, column.median)));
        if part.len() == 1 {
            line.push_str("h0.1");
        }
    }
    (band, line)
}

/// Appends a line through these places to a path.
pub(super) fn push_path(path: &mut String, places: impl Iterator<Item = (f64, f64)>) {
    for (i, (x, y)) in places.enumerate() {
        let command = if i == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        let _ = write!(path, "{command}{} {}", px(x), px(y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lowest, the median and the highest of the heights in a column, by sorting all of them.
    fn by_hand(spots: &[Spot], column: i64) -> Option<(f64, f64, f64)> {
        let inside = spots.iter().flatten();
        let inside = inside
            .filter(|(x, _)| *x >= column as f64 * COLUMN && *x < (column + 1) as f64 * COLUMN);
        let mut heights: Vec<f64> = inside.map(|(_, y)| *y).collect();
        heights.sort_unstable_by(f64::total_cmp);
        let median = match heights.len() {
            0 => return None,
            n if n % 2 == 1 => heights[n / 2],
            n => f64::midpoint(heights[n / 2 - 1], heights[n / 2]),
        };
        Some((heights[0], median, heights[heights.len() - 1]))
    }

    proptest! {
        #[test]
        fn columns_are_those_of_all_points(
            heights in prop::collection::vec(prop::option::weighted(0.8, 0.0..100.0), 1..3000),
            width in 1.0..700.0,
        ) {
            let step = width / heights.len() as f64;
            let spots: Vec<Spot> = heights.iter().enumerate()
                .map(|(i, y)| y.map(|y| (i as f64 * step, y)))
                .collect();
            let parts = columns(&spots);
            let mut found: Vec<(i64, Column)> = parts.iter().flatten()
                .map(|column| ((column.x / COLUMN).floor() as i64, *column))
                .collect();
            let numbers: Vec<i64> = found.iter().map(|(number, _)| *number).collect();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "each column once");
            for number in 0..=(width / COLUMN) as i64 {
                let place = found.iter().position(|(found, _)| *found == number);
                let column = place.map(|place| found.remove(place).1);
                let column = column.map(|c| (c.top, c.median, c.bottom));
                prop_assert_eq!(column, by_hand(&spots, number));
            }
            prop_assert!(found.is_empty());
        }
    }

    #[test]
    fn a_gap_that_can_be_seen_breaks_the_band() {
        let spots = |last: f64| [Some((1.0, 5.0)), Some((2.0, 7.0)), None, Some((last, 1.0))];
        assert_eq!(columns(&spots(4.0)).len(), 1, "columns that touch");
        let parts = columns(&spots(7.0));
        let (band, line) = paths(&parts);
        assert_eq!(band, "M1.5 5L1.5 7zM7.5 1L7.5 1z");
        assert_eq!(line, "M1.5 6h0.1M7.5 1h0.1");
        assert!(columns(&[None, None]).is_empty());
        // Without a gap, points that lie far apart are joined.
        assert_eq!(columns(&[Some((1.0, 5.0)), Some((60.0, 7.0))]).len(), 1);
    }
}
