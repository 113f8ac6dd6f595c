//! Gives two structures the same memory and the same capture, and prints their errors.
//!
//!     cargo run --example compare_filters -- capture.pcap

use flowsieve::Count;
use flowsieve::filters::FilterKind;
use std::error::Error;
use std::path::Path;

/// The errors of one structure.
pub(crate) struct Errors {
    pub(crate) name: &'static str,
    /// Error of the estimate, relative to the exact count.
    pub(crate) estimate: f64,
    /// Share of the new elements that it took for repeats.
    pub(crate) missed: f64,
}

/// Counts the host pairs of a capture with each structure in `bytes` of memory.
pub(crate) fn compare(capture: &Path, bytes: u64) -> Result<Vec<Errors>, Box<dyn Error>> {
    let mut errors = Vec::new();
    for kind in [FilterKind::Subset, FilterKind::Bloom] {
        let count = Count::of([capture]).one_slice().filter(kind).shards(1).memory(bytes);
        for row in count.run()? {
            let estimate = row.rel_error().ok_or("the structure has no estimate")?;
            let missed = row.observed_fpr.ok_or("there was no exact count")?;
            errors.push(Errors { name: kind.name(), estimate, missed });
        }
    }
    Ok(errors)
}

/// Prints one line per structure.
fn main() -> Result<(), Box<dyn Error>> {
    let capture = std::env::args().nth(1);
    let capture = capture.as_deref().unwrap_or("traces/generated.pcap");
    for errors in compare(Path::new(capture), 2 << 10)? {
        let (estimate, missed) = (100.0 * errors.estimate, 100.0 * errors.missed);
        println!("{}: error of the estimate {estimate:.2} %, missed {missed:.2} %", errors.name);
    }
    Ok(())
}
