//! Draws `docs/figures/spark-scaling.svg` from the table in `docs/cluster.md`:
//!
//! ```text
//! cargo run --example draw_scaling < docs/cluster.md > docs/figures/spark-scaling.svg
//! ```

use flowsieve::report::figure::{Axis, Drawing, Figure, Scale};
use flowsieve::report::svg::standalone;
use std::error::Error;
use std::io::{Read, Write};

/// The rows of the table, in their order.
const ROWS: [&str; 6] = ["one process", "pieces", "1 task", "2 tasks", "4 tasks", "8 tasks"];

/// The model of the page for 100 machines with two cores: seconds, and packets.
const MODEL: (f64, f64) = (17.0, 1e10);

fn main() -> Result<(), Box<dyn Error>> {
    let mut page = String::new();
    std::io::stdin().read_to_string(&mut page)?;
    // The third column of a row is a number of nanoseconds.
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(2));
    let measured = cells.filter_map(|cell| cell.strip_suffix(" ns")?.parse().ok());
    let mut values: Vec<Option<f64>> = measured.map(Some).collect();
    if values.len() != ROWS.len() {
        return Err(format!("the table has {} rows, not {}", values.len(), ROWS.len()).into());
    }
    let (seconds, packets) = MODEL;
    values.push(Some(200.0 * seconds * 1e9 / packets));
    let figure = Figure {
        name: "spark-scaling".into(),
        title: "What a packet costs on Spark".into(),
        caption: "Nanoseconds of a core for each packet: in one process, in pieces without an engine, on Spark in 1 to 8 tasks on two cores, and on paper on 100 machines with two cores.".into(),
        drawing: Drawing::Bars {
            categories: ROWS.into_iter().chain(["100 machines"]).map(Into::into).collect(),
            y: Axis { label: "CPU time a packet, ns".into(), scale: Scale::Linear },
            series: vec![("CPU time".into(), values)],
        },
    };
    std::io::stdout().write_all(standalone(&figure, &[]).as_bytes())?;
    Ok(())
}
