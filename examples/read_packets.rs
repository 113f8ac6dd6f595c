//! Reads a capture with the engine alone, and prints how many packets and bytes each link type has.
//!
//!     cargo run --example read_packets -- capture.pcap

use flowsieve_engine::trace::{Capture, InputFormat, LinkType, TraceBatch, TraceError};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the packets and their bytes on the wire, by link type. Records of logs are not packets.
pub(crate) fn by_link_type(path: &Path) -> Result<BTreeMap<LinkType, (u64, u64)>, TraceError> {
    let mut capture = Capture::open(path, InputFormat::Auto)?;
    let mut all = BTreeMap::new();
    while let Some(batch) = capture.next_batch()? {
        let TraceBatch::Packets { packets, .. } = batch else { continue };
        for packet in packets {
            let (count, bytes) = all.entry(packet.link).or_insert((0, 0));
            *count += 1;
            *bytes += u64::from(packet.wire);
        }
    }
    Ok(all)
}

/// Prints one line per link type.
fn main() -> Result<(), TraceError> {
    let capture = std::env::args().nth(1);
    let capture = capture.as_deref().unwrap_or("traces/generated.pcap");
    for (link, (packets, bytes)) in by_link_type(Path::new(capture))? {
        let name = link.name().unwrap_or("unknown");
        println!("{name}: {packets} packets, {bytes} bytes");
    }
    Ok(())
}
