//! The figures of a count.

use super::count_combinations::CountDesign;
use super::figure::{Axis, Drawing, Figure, Scale, Series as Curve, SeriesStyle};
use super::number::grouped;
use super::over_time::{self, OverTime, Value};
use crate::pipeline::{CombinationResult, SliceResult};
use crate::zone::Zone;
use hdrhistogram::Histogram;
use std::borrow::Cow;

/// Approximate number of bars of a distribution.
const BARS: u64 = 16;

/// Number of curves that colours can tell apart.
const COLOURS: usize = 8;

/// A value of a slice with its standard error, if it has one.
fn value(value: Option<f64>, std_error: Option<f64>) -> Value {
    (value, [std_error.unwrap_or(0.0); 2])
}

/// A count of a slice.
fn count(number: Option<u64>) -> Value {
    value(number.map(|n| n as f64), None)
}

/// The slices of the figures over time, and their names.
pub(super) struct Series<'a> {
    pub(super) slices: &'a [SliceResult],
    /// Number of slices before thinning out.
    pub(super) seen: u64,
    pub(super) plural: Cow<'a, str>,
    pub(super) has_filter: bool,
    /// `slice` or `window`.
    pub(super) slice: &'static str,
    pub(super) has_exact: bool,
    pub(super) filter: &'a str,
    pub(super) zone: Zone,
}

impl Series<'_> {
    /// Exact, estimate and raw count.
    pub(super) fn counts(&self) -> Figure {
        let exact = |slice: &SliceResult| count(slice.exact);
        let estimate = |slice: &SliceResult| value(slice.estimate, slice.std_error);
        let raw = |slice: &SliceResult| count(slice.first);
        let exact = self.has_exact.then(|| self.curve("exact", SeriesStyle::Reference, exact));
        let by_filter = if self.has_filter { self.by_filter(estimate, raw) } else { Vec::new() };
        let series = exact.into_iter().chain(by_filter).collect();
        let mut caption = Vec::new();
        if self.has_exact && self.has_filter {
            caption.push("The grey band is the exact count.".to_owned());
        }
        if self.has_estimate() {
            caption.push("The estimate has no bias; bars are its standard error.".to_owned());
        }
        if self.has_raw() {
            caption.push(format!(
                "The raw count is what the {} filter called new: it lacks its false positives.",
                self.filter
            ));
        }
        let (plural, slice) = (&self.plural, self.slice);
        let title = format!("Distinct {plural} in each {slice}");
        let y = Axis::new(format!("distinct {plural} a {slice}"), Scale::Count);
        self.time().figure("elements-over-time", title, caption.join(" "), y, series)
    }

    fn has_estimate(&self) -> bool {
        self.slices.iter().any(|slice| slice.estimate.is_some())
    }

    fn has_raw(&self) -> bool {
        self.slices.iter().any(|slice| slice.first.is_some())
    }

    /// A value of the estimate and one of the raw count, which is less prominent, where there are
    /// such counts.
    fn by_filter(
        &self,
        estimate: impl Fn(&SliceResult) -> Value,
        raw: impl Fn(&SliceResult) -> Value,
    ) -> Vec<Curve> {
        let (has_estimate, line) = (self.has_estimate(), SeriesStyle::Line);
        let raw_style = if has_estimate { SeriesStyle::Dashed } else { line };
        let estimate = has_estimate.then(|| self.curve("estimate", line, estimate));
        let raw = self.has_raw().then(|| self.curve("raw count (first)", raw_style, raw));
        estimate.into_iter().chain(raw).collect()
    }

    /// Relative errors; `None` without exact counts.
    pub(super) fn errors(&self) -> Option<Figure> {
        if !self.slices.iter().any(|slice| error_of(slice).is_some()) {
            return None;
        }
        let estimate = |slice: &SliceResult| value(slice.rel_error(), None);
        let series = self.by_filter(estimate, |slice| value(first_error_of(slice), None));
        let text = format!("Error of each {}'s count, as a share of the exact count.", self.slice);
        let y = Axis::new("relative error", Scale::Percent);
        Some(self.time().figure("error-over-time", "How far from exact", text, y, series))
    }

    /// Packets and elements.
    pub(super) fn packets(&self) -> Figure {
        let packets = |slice: &SliceResult| count(Some(slice.packets));
        let elements = |slice: &SliceResult| count(Some(slice.elements));
        let mut series = vec![self.curve("packets", SeriesStyle::Line, packets)];
        if self.slices.iter().any(|slice| slice.packets != slice.elements) {
            series.push(self.curve("elements, repeats included", SeriesStyle::Dashed, elements));
        }
        let title = format!("Packets in each {}", self.slice);
        let y = Axis::new(format!("packets a {}", self.slice), Scale::Count);
        self.time().figure("packets-over-time", title, "", y, series)
    }

    /// The counts of the first [`COLOURS`] combinations.
    pub(super) fn combinations(&self, design: &CountDesign) -> Option<Figure> {
        let names = design.combinations.iter().map(|names| names.join(","));
        let of = |slice: &SliceResult, index: usize| slice.combinations.get(index).copied();
        let curves = names.enumerate().filter_map(|(index, name)| {
            let has = |has: fn(&CombinationResult) -> bool| {
                self.slices.iter().filter_map(|slice| of(slice, index)).any(|count| has(&count))
            };
            let result = |slice: &SliceResult| of(slice, index).unwrap_or_default();
            if has(|count| count.estimate.is_some()) {
                return Some(self.curve(&name, SeriesStyle::Line, |slice| {
                    value(result(slice).estimate, result(slice).std_error)
                }));
            }
            has(|count| count.first.is_some()).then(|| {
                self.curve(&format!("{name}, lower bound"), SeriesStyle::Dashed, |slice| {
                    count(result(slice).first)
                })
            })
        });
        let mut series: Vec<Curve> = curves.collect();
        if series.is_empty() {
            return None;
        }
        let counted = series.len();
        series.truncate(COLOURS);
        let mut caption = Vec::new();
        if series.iter().any(|curve| curve.style == SeriesStyle::Line) {
            caption.push("An estimate has no bias; bars are its standard error.".to_owned());
        }
        if counted > COLOURS {
            caption.push(format!("These are the first {COLOURS} of {counted}."));
        }
        let title = match series.as_slice() {
            [only] => format!("Distinct values of {} in each {}", only.name, self.slice),
            _ => format!("Distinct values of combinations in each {}", self.slice),
        };
        let y = Axis::new(format!("distinct values a {}", self.slice), Scale::Count);
        Some(self.time().figure("combinations-over-time", title, caption.join(" "), y, series))
    }

    fn time(&self) -> OverTime {
        let x = Axis::time(&format!("beginning of the {}", self.slice), self.zone);
        let places = self.slices.iter().map(|it| (it.start_ns, it.end_ns, it.partial));
        let each = self.seen.div_ceil(self.slices.len().max(1) as u64);
        let mut time = OverTime::new(x, places, each);
        time.slice = self.slice;
        time
    }

    /// A value of each slice.
    fn curve(
        &self,
        name: &str,
        style: SeriesStyle,
        value: impl Fn(&SliceResult) -> Value,
    ) -> Curve {
        self.time().curve(name, style, self.slices.iter().map(value))
    }
}

/// How many slices have how many elements, in intervals of equal width: those that were covered
/// whole, or, if there is none, those covered in part.
pub(super) fn distribution(
    [whole, partial]: &[Histogram<u64>; 2],
    plural: &str,
    slice: &str,
) -> Option<Figure> {
    let leaves_out = !whole.is_empty() && !partial.is_empty();
    let counts = if whole.is_empty() { partial } else { whole };
    if counts.len() < 3 {
        return None;
    }
    let (low, high) = (counts.min(), counts.max());
    let width = round_width((high - low) / BARS + 1);
    let first = low / width;
    let bars = (high / width - first + 1).min(4 * BARS);
    let mut heights = vec![0_u64; bars as usize];
    // The histogram reports the upper end of each of its buckets.
    for recorded in counts.iter_recorded() {
        let bar = (recorded.value_iterated_to() / width).saturating_sub(first).min(bars - 1);
        heights[bar as usize] += recorded.count_at_value();
    }
    let names = (0..bars).map(|bar| {
        let from = (first + bar) * width;
        match width {
            1 => grouped(from),
            _ => format!("{}\u{2013}{}", grouped(from), grouped(from + width - 1)),
        }
    });
    let heights = heights.into_iter().map(|n| Some(n as f64)).collect();
    let drawing = Drawing::counts(&format!("{slice}s"), names.collect(), heights);
    let title = format!("How many {slice}s have how many distinct {plural}");
    let caption =
        "By the exact count, else the estimate, else the raw count; to three significant digits.";
    let caption = over_time::caption(caption.to_owned(), leaves_out, slice);
    Some(Figure::new("distribution", title, caption, drawing))
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_width(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            match power.checked_mul(factor) {
                Some(width) if width >= least => return width,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Relative error of the estimate, or of the raw count where the structure has no estimate.
pub(super) fn error_of(slice: &SliceResult) -> Option<f64> {
    slice.rel_error().or_else(|| first_error_of(slice))
}

fn first_error_of(slice: &SliceResult) -> Option<f64> {
    let (first, exact) = (slice.first? as f64, slice.exact? as f64);
    (exact > 0.0).then(|| (first - exact) / exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_has_every_slice() {
        let mut counts = Histogram::new(3).unwrap();
        for n in [0, 1, 5, 17, 17, 400, 999] {
            counts.record(n).unwrap();
        }
        let mut partial = Histogram::new(3).unwrap();
        partial.record(2).unwrap();
        let figure = distribution(&[counts, partial], "pairs", "window").unwrap();
        assert!(figure.caption.contains("Windows at the beginning"), "{}", figure.caption);
        let Drawing::Bars { categories, series, .. } = figure.drawing else {
            panic!("bars");
        };
        assert_eq!(categories.len(), series[0].1.len());
        assert_eq!(categories[0], "0\u{2013}99");
        assert_eq!(series[0].1[0], Some(5.0));
        assert_eq!(series[0].1.iter().flatten().sum::<f64>() as u64, 7);
    }

    #[test]
    fn widths_are_round() {
        assert_eq!([1, 2, 3, 7, 11, 60].map(round_width), [1, 2, 5, 10, 20, 100]);
        assert_eq!(round_width(u64::MAX), u64::MAX);
    }
}
