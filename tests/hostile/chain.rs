//! Reads a capture, decodes it and extracts its elements, and checks what must hold on the way.

use flowsieve::decode::{Decoder, Headers, Tunnel, vlan_ids};
use flowsieve::elements::{ElementBatch, ElementKind, ElementRule, Extractor};
use flowsieve::hashing::{Digest, Digester};
use flowsieve::trace::{Capture, InputFormat, MAX_BATCH, TraceBatch, TraceError, TraceErrorKind};
use std::io::{Cursor, Read};
use std::path::Path;

/// The result of reading a capture.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) packets: usize,
    pub(crate) elements: Vec<Digest>,
    pub(crate) error: Option<TraceError>,
    pub(crate) container: &'static str,
}

/// Returns the extractor of a case; the bits of its number choose the options.
pub(crate) fn extractor(case: u64) -> Extractor {
    let kinds = ElementKind::ALL;
    let rule = ElementRule {
        kind: kinds[case as usize % kinds.len()],
        undirected: case & 8 != 0,
        queries_only: case & 16 != 0,
    };
    let tunnel = if case & 32 == 0 { Tunnel::Outer } else { Tunnel::Inner };
    let headers = Headers { tunnel, dns_ports: vec![5353, 5000] };
    let extractor =
        Extractor::new(rule, &headers, Digester::new(0), case & 64 == 0, case & 128 == 0);
    if case & 256 == 0 { extractor.with_addresses() } else { extractor }
}

/// Reads a capture to its end or to its first error.
pub(crate) fn read(bytes: &[u8], format: InputFormat, case: u64) -> Outcome {
    read_from(Box::new(Cursor::new(bytes.to_vec())), bytes.len(), format, case)
}

/// Like [`read`], from any source that has `length` bytes.
pub(crate) fn read_from(
    source: Box<dyn Read + Send>,
    length: usize,
    format: InputFormat,
    case: u64,
) -> Outcome {
    let opened = Capture::from_reader(Path::new("hostile"), source, format);
    let mut outcome = Outcome::default();
    let mut capture = match opened {
        Ok(capture) => capture,
        Err(error) => {
            check_error(&error);
            outcome.error = Some(error);
            return outcome;
        }
    };
    outcome.container = capture.container();
    if case & 512 == 0 {
        capture.keep_records();
    }
    let extractor = extractor(case);
    let (outer, inner) = (Decoder::new(Tunnel::Outer), Decoder::new(Tunnel::Inner));
    let mut out = ElementBatch::default();
    loop {
        let batch = match capture.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) => {
                check_error(&error);
                outcome.error = Some(error);
                assert!(
                    matches!(capture.next_batch(), Ok(None)),
                    "after an error there is nothing"
                );
                break;
            }
        };
        let here = match batch {
            TraceBatch::Packets { bytes, packets } => {
                for packet in packets {
                    let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                    // A packet that has an inner header has an outer one.
                    assert!(
                        outer.decode(packet.link, frame).is_ok()
                            || inner.decode(packet.link, frame).is_err()
                    );
                    if let Ok(ip) = Decoder::new(Tunnel::Outer).ip_bytes(packet.link, frame) {
                        assert!(ip.bytes.len() <= frame.len());
                    }
                    assert!(vlan_ids(packet.link, frame).count() <= frame.len() / 4);
                }
                packets.len()
            }
            TraceBatch::Log(log) => log.entries.len(),
        };
        assert!((1..=MAX_BATCH).contains(&here), "a batch of {here} packets");
        outcome.packets += here;
        out.clear();
        extractor.extract(batch, &mut out);
        assert_eq!(out.times_ns.len(), here);
        let elements = here - out.skipped.len() + out.further.len();
        assert_eq!(out.elements.digests.len(), elements, "each packet gives its elements");
        outcome.elements.append(&mut out.elements.digests);
        let records = capture.record_batch();
        for (index, _) in records.packets.iter().enumerate() {
            let record = records.record(index);
            assert!(record.start as usize + record.captured as usize <= records.bytes.len());
            assert!(
                record.options_start as usize + record.options_length as usize
                    <= records.bytes.len()
            );
        }
    }
    let read = capture.bytes_read().load(std::sync::atomic::Ordering::Relaxed);
    assert!(read <= length as u64, "no byte is read twice");
    outcome
}

/// Checks that an error has an offset, is no I/O error, and that its message is one line that names
/// the file, whose name ends in `hostile`.
fn check_error(error: &TraceError) {
    let sentence = error.to_string();
    assert!(sentence.contains("hostile: ") && sentence.len() < 600, "{sentence}");
    assert!(!sentence.contains('\n'), "{sentence}");
    assert!(error.offset.is_some(), "{sentence}");
    assert!(!matches!(error.kind, TraceErrorKind::Io(_)), "there is no device: {sentence}");
}
