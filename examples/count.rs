//! Counts the distinct flows of each second of a capture, and prints estimate and exact count.
//!
//!     cargo run --example count -- capture.pcap

use flowsieve::elements::ElementKind;
use flowsieve::{Count, Counted};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// Counts the flows of a capture.
pub(crate) fn count(capture: &Path) -> Result<Counted, Box<dyn Error>> {
    let counted = Count::of([capture])
        .element(ElementKind::FLOW)
        .slice(Duration::from_secs(1))
        .memory(8 << 10)
        .run()?;
    Ok(counted)
}

/// Prints one line per second.
fn main() -> Result<(), Box<dyn Error>> {
    let capture = std::env::args().nth(1);
    let counted = count(Path::new(capture.as_deref().unwrap_or("traces/generated.pcap")))?;
    for row in &counted {
        let (estimate, error) = (row.estimate.unwrap_or(0.0), row.std_error.unwrap_or(0.0));
        println!("{}  {estimate:.0} ± {error:.0} flows, in truth {:?}", row.start_ns, row.exact);
    }
    Ok(())
}
