//! Lists the flows of a capture in both directions, and writes them to a Parquet file.
//!
//!     cargo run --example flows_to_parquet -- capture.pcap flows.parquet

use flowsieve::flows::{FlowPlan, list};
use flowsieve::output::ReportFormat;
use flowsieve::output::{FlowNames, FlowParameters, FlowReport, TerminalStyle};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Writes the flows and returns how many there are.
pub(crate) fn convert(capture: &Path, parquet: &Path) -> Result<u64, Box<dyn Error>> {
    let plan = FlowPlan { bidirectional: true, ..FlowPlan::new([capture]) };
    let parameters = FlowParameters::new(&plan, plan.memory_bytes, false, FlowNames::Flowsieve);
    let out = BufWriter::new(File::create(parquet)?);
    let format = ReportFormat::named("parquet").ok_or("this build has no Parquet")?;
    let mut report = FlowReport::begin(format, &parameters, TerminalStyle::default(), out)?;
    let summary = list(&plan, &mut report, &())?;
    report.finish(&summary)?;
    Ok(summary.totals.flows)
}

/// Prints how many flows were written.
fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1);
    let capture = paths.next().unwrap_or("traces/generated.pcap".into());
    let parquet = paths.next().unwrap_or("flows.parquet".into());
    let flows = convert(Path::new(&capture), Path::new(&parquet))?;
    println!("{flows} flows written to {parquet}");
    Ok(())
}
