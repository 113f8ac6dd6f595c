//! Draws `docs/figures/counts-at-any-load.svg`; `scripts/measure-counting` runs it.
//!
//! Standard input has a line for each measured load: bytes of memory, elements, and in per cent of
//! them the root of the mean squared error, the stated standard error and half the distance between
//! the bounds.

use flowsieve::report::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use flowsieve::report::svg::standalone;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};

/// What was measured at a load.
struct Load {
    elements: f64,
    root: f64,
    stated: f64,
    bounds: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut loads: BTreeMap<u64, Vec<Load>> = BTreeMap::new();
    for line in text.lines() {
        let numbers: Vec<f64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [bytes, elements, root, stated, bounds] = numbers[..] else {
            return Err(format!("five numbers are needed, not `{line}`").into());
        };
        loads.entry(bytes as u64).or_default().push(Load { elements, root, stated, bounds });
    }
    let series = loads.iter_mut().flat_map(|(bytes, loads)| {
        loads.sort_by(|a, b| b.elements.total_cmp(&a.elements));
        curves(*bytes, loads)
    });
    let axis = |label: &str| Axis { label: label.into(), scale: Scale::Log };
    let figure = Figure {
        name: "counts-at-any-load".into(),
        title: "How far counts are off at any load".into(),
        caption: "Relative error of subset by its load: measured error (root of the mean square), stated standard error, and half the distance between the bounds.".into(),
        drawing: Drawing::Lines {
            x: axis("bits an element"),
            y: axis("relative error, %"),
            series: series.collect(),
        },
    };
    std::io::stdout().write_all(standalone(&figure, &[]).as_bytes())?;
    Ok(())
}

/// The curves of a memory.
fn curves(bytes: u64, loads: &[Load]) -> [Series; 3] {
    let curve = |what: &str, style: SeriesStyle, value: &dyn Fn(&Load) -> f64| Series {
        name: format!("{} KiB, {what}", bytes >> 10),
        points: loads
            .iter()
            .map(|load| Point {
                // Elements are whole numbers; the axis ends at a round number of bits.
                x: (800.0 * bytes as f64 / load.elements).round() / 100.0,
                y: value(load),
                errors: [0.0; 2],
            })
            .collect(),
        style,
    };
    [
        curve("measured", SeriesStyle::Points, &|load| load.root),
        curve("stated", SeriesStyle::Line, &|load| load.stated),
        curve("bounds", SeriesStyle::Line, &|load| load.bounds),
    ]
}
