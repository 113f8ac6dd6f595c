//! Shared by the targets: reads a capture, decodes it and extracts its elements.

use flowsieve::decode::{Headers, Tunnel};
use flowsieve::elements::{ElementBatch, ElementKind, ElementRule, Extractor};
use flowsieve::hashing::Digester;
use flowsieve::trace::{Capture, InputFormat};
use std::io::{Cursor, Read};
use std::path::Path;

/// Reads everything and returns the number of packets before the end or the first error.
#[allow(dead_code)]
pub fn read(bytes: &[u8], format: InputFormat, choice: u8) -> usize {
    let source: Box<dyn Read + Send> = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut capture) = Capture::from_reader(Path::new("fuzz"), source, format) else { return 0 };
    if choice & 128 != 0 {
        capture.keep_records();
    }
    let rule = ElementRule {
        kind: ElementKind::ALL[choice as usize % 5],
        undirected: choice & 8 != 0,
        queries_only: choice & 16 != 0,
    };
    let tunnel = if choice & 32 == 0 { Tunnel::Outer } else { Tunnel::Inner };
    let headers = Headers { tunnel, dns_ports: vec![5353] };
    let extractor = Extractor::new(rule, &headers, Digester::new(0), true, true).with_addresses();
    let mut out = ElementBatch::default();
    let mut packets = 0;
    loop {
        match capture.next_batch() {
            Ok(Some(batch)) => {
                out.clear();
                extractor.extract(batch, &mut out);
                packets += out.times_ns.len();
                let elements = out.times_ns.len() - out.skipped.len() + out.further.len();
                assert_eq!(out.elements.digests.len(), elements);
            }
            Ok(None) => return packets,
            Err(error) => {
                assert!(error.offset.is_some(), "{error}");
                assert!(matches!(capture.next_batch(), Ok(None)));
                return packets;
            }
        }
    }
}

/// Returns a temporary file that holds the bytes.
#[allow(dead_code)]
pub fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file can be written");
    file
}
