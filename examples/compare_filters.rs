//! Gives two structures the same memory and the same capture, and prints their errors.
//!
//!     cargo run --example compare_filters -- capture.pcap

use flowsieve::Count;
use flowsieve::filters::FilterKind;
use std::error::Error;
use std::path::Path;

/// The structures' names, each with its relative error and the share of new elements that it missed.
pub(crate) fn compare(
    capture: &Path,
    bytes: u64,
) -> Result<Vec<(&'static str, f64, f64)>, Box<dyn Error>> {
    let mut errors = Vec::new();
    for kind in [FilterKind::Subset, FilterKind::Bloom] {
        let count = Count::of([capture])
            .one_slice()
            .filter(kind)
            .shards(1)
            .memory(bytes);
        for row in count.run()? {
            let error = row.rel_error().ok_or("the structure has no estimate")?;
            let missed = row.observed_fpr.ok_or("there was no exact count")?;
            errors.push((kind.name(), error, missed));
        }
    }
    Ok(errors)
}

/// Prints a line a structure.
fn main() -> Result<(), Box<dyn Error>> {
    let capture = std::env::args().nth(1);
    let capture = capture.as_deref().unwrap_or("traces/generated.pcap");
    for (name, error, missed) in compare(Path::new(capture), 2 << 10)? {
        println!(
            "{name}: error of the estimate {:.2} %, missed {:.2} %",
            100.0 * error,
            100.0 * missed
        );
    }
    Ok(())
}
