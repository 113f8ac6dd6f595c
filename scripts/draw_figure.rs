//! Draws a figure of `docs/figures` with logarithmic axes, for the scripts that measure.
//!
//! Standard input has lines of fields with tabs between them. Two fields are a part of the figure
//! and its text: `name`, `title`, `caption`, `x` and `y` for the labels of the axes, and any number
//! of `note` for lines below. Five are a point: panel, curve, style (`line`, `dashed` or `points`),
//! x and y. Panels and curves are drawn in the order in which they come first; a single panel
//! without a name is the whole drawing.

use flowsieve::report::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use flowsieve::report::svg::standalone;
use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut parts: HashMap<&str, &str> = HashMap::new();
    let mut notes = Vec::new();
    let mut panels: Vec<(String, Vec<Series>)> = Vec::new();
    for line in text.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["note", text] => notes.push(text.to_owned()),
            [part, text] => drop(parts.insert(part, text)),
            [panel, curve, style, x, y] => {
                let point = Point { x: x.parse()?, y: y.parse()?, errors: [0.0; 2] };
                let style = match style {
                    "line" => SeriesStyle::Line,
                    "dashed" => SeriesStyle::Dashed,
                    "points" => SeriesStyle::Points,
                    _ => return Err(format!("there is no style `{style}`").into()),
                };
                let series = entry(&mut panels, |it| it.0 == panel, || (panel.into(), Vec::new()));
                let new = || Series { name: curve.into(), points: Vec::new(), style };
                entry(&mut series.1, |it| it.name == curve, new).points.push(point);
            }
            _ => return Err(format!("two or five fields are needed, not `{line}`").into()),
        }
    }
    let part = |name: &str| parts.get(name).copied().ok_or(format!("there is no {name}"));
    let axis = |name: &str| part(name).map(|label| Axis { label: label.into(), scale: Scale::Log });
    let (x, y) = (axis("x")?, axis("y")?);
    let drawing = match &mut panels[..] {
        [(name, series)] if name.is_empty() => {
            Drawing::Lines { x, y, series: std::mem::take(series) }
        }
        _ => Drawing::Panels { x, y, panels },
    };
    let figure = Figure {
        name: part("name")?.into(),
        title: part("title")?.into(),
        caption: part("caption")?.into(),
        drawing,
    };
    std::io::stdout().write_all(standalone(&figure, &notes).as_bytes())?;
    Ok(())
}

/// Returns the first item that is wanted, or adds it.
fn entry<T>(items: &mut Vec<T>, is_wanted: impl Fn(&T) -> bool, new: impl Fn() -> T) -> &mut T {
    let place = items.iter().position(is_wanted).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[place]
}
