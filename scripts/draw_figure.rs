//! Draws figures of `docs/figures`.
//!
//! Without an argument it draws one with logarithmic axes, for the scripts that measure. Standard
//! input has lines of fields with tabs between them. Two fields are a part of the figure and its
//! text: `name`, `title`, `caption`, `x` and `y` for the labels of the axes, and any number of `note`
//! for lines below. Five are a point: panel, curve, style (`line`, `dashed` or `points`), x and y.
//! Panels and curves are drawn in the order in which they come first; a single panel without a name
//! is the whole drawing.
//!
//! With `scaling` it draws `spark-scaling.svg` from the table in `docs/cluster.md`:
//!
//! ```text
//! cargo run --example draw_figure scaling < docs/cluster.md > docs/figures/spark-scaling.svg
//! ```

use flowsieve::report::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use flowsieve::report::svg::standalone;
use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};

/// The rows of the table of `docs/cluster.md`, in their order.
const SCALING_ROWS: [&str; 6] =
    ["one process", "pieces", "1 task", "2 tasks", "4 tasks", "8 tasks"];

/// The page's model of 100 machines with two cores: seconds, and packets.
const SCALING_MODEL: (f64, f64) = (17.0, 1e10);

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let (figure, notes) = match std::env::args().nth(1).as_deref() {
        None => curves(&text)?,
        Some("scaling") => (scaling(&text)?, Vec::new()),
        Some(other) => return Err(format!("there is no figure `{other}`; scaling is one").into()),
    };
    std::io::stdout().write_all(standalone(&figure, &notes).as_bytes())?;
    Ok(())
}

/// Returns the figure that these lines describe, and its notes.
fn curves(text: &str) -> Result<(Figure, Vec<String>), Box<dyn Error>> {
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
    let drawing = Drawing::Lines { x, y, panels, strips: false };
    let figure = Figure {
        name: part("name")?.into(),
        title: part("title")?.into(),
        caption: part("caption")?.into(),
        drawing,
    };
    Ok((figure, notes))
}

/// Returns the first item that is wanted, or adds it.
fn entry<T>(items: &mut Vec<T>, is_wanted: impl Fn(&T) -> bool, new: impl Fn() -> T) -> &mut T {
    let place = items.iter().position(is_wanted).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[place]
}

/// Returns the figure of what a packet costs on Spark, from the page with the table.
fn scaling(page: &str) -> Result<Figure, Box<dyn Error>> {
    // The third column of a row is a number of nanoseconds.
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(2));
    let measured = cells.filter_map(|cell| cell.strip_suffix(" ns")?.parse().ok());
    let mut values: Vec<Option<f64>> = measured.map(Some).collect();
    let rows = SCALING_ROWS.len();
    if values.len() != rows {
        return Err(format!("the table has {} rows, not {rows}", values.len()).into());
    }
    let (seconds, packets) = SCALING_MODEL;
    values.push(Some(200.0 * seconds * 1e9 / packets));
    Ok(Figure {
        name: "spark-scaling".into(),
        title: "What a packet costs on Spark".into(),
        caption: "Nanoseconds of a core for each packet: in one process, in pieces without an engine, on Spark in 1 to 8 tasks on two cores, and on paper on 100 machines with two cores.".into(),
        drawing: Drawing::Bars {
            categories: SCALING_ROWS.into_iter().chain(["100 machines"]).map(Into::into).collect(),
            y: Axis { label: "CPU time a packet, ns".into(), scale: Scale::Linear },
            series: vec![("CPU time".into(), values)],
        },
    })
}
