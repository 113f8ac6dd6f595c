//! Captures built by hand: every dialect, cut at every byte, with hostile figures, and bytes that
//! are no capture at all.

mod arbitrary;
mod capture;
mod pcap;
mod pcapng;

use std::io::Cursor;
use std::path::Path;

use super::{
    Capture, InputFormat, LogContent, LogQuestion, PacketRef, TraceBatch, TraceError,
    TraceErrorKind,
};

/// The result of reading a file to its end.
#[derive(Debug)]
struct Outcome {
    container: &'static str,
    packets: Vec<PacketRef>,
    /// The bytes of each packet.
    contents: Vec<Vec<u8>>,
    error: Option<TraceError>,
}

impl Outcome {
    fn times(&self) -> Vec<i64> {
        self.packets.iter().map(|packet| packet.time_ns).collect()
    }

    fn kind(&self) -> &TraceErrorKind {
        &self.error.as_ref().expect("an error").kind
    }
}

fn open(bytes: &[u8], format: InputFormat) -> Result<Capture, TraceError> {
    Capture::from_reader(Path::new("x.cap"), Box::new(Cursor::new(bytes.to_vec())), format)
}

/// Reads to the end, checking what holds for every input: batches are not empty and not too large,
/// the packets lie within their bytes, there is one error at most, and after it the end.
fn read_all(mut capture: Capture) -> Outcome {
    let mut outcome = Outcome {
        container: capture.container(),
        packets: Vec::new(),
        contents: Vec::new(),
        error: None,
    };
    loop {
        match capture.next_batch() {
            Ok(Some(TraceBatch::Packets { bytes, packets })) => {
                assert!((1..=super::MAX_BATCH).contains(&packets.len()));
                assert!(outcome.error.is_none());
                for packet in packets {
                    let start = packet.start as usize;
                    outcome.contents.push(bytes[start..start + packet.captured as usize].to_vec());
                }
                outcome.packets.extend_from_slice(packets);
            }
            Ok(Some(TraceBatch::Log(batch))) => {
                assert!((1..=super::MAX_BATCH).contains(&batch.entries.len()));
                for entry in batch.entries {
                    if let LogContent::Dns {
                        question:
                            LogQuestion::Name(range)
                            | LogQuestion::Message(range)
                            | LogQuestion::Other(range),
                        ..
                    } = &entry.content
                    {
                        let _ = batch.at(range);
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                assert!(outcome.error.is_none(), "one error only");
                outcome.error = Some(error);
            }
        }
    }
    assert!(capture.next_batch().expect("after the end there is nothing").is_none());
    outcome
}

fn read(bytes: &[u8]) -> Outcome {
    read_all(open(bytes, InputFormat::Auto).expect("a capture"))
}

/// Cuts `file` at every byte. `ends` are the lengths at which a packet has just become complete.
fn check_every_cut(file: &[u8], header: usize, ends: &[usize], whole: &[usize]) {
    for length in 0..file.len() {
        let expected = ends.iter().filter(|&&end| end <= length).count();
        match open(&file[..length], InputFormat::Auto) {
            Ok(capture) => {
                let outcome = read_all(capture);
                assert_eq!(outcome.packets.len(), expected, "cut at {length}");
                if whole.contains(&length) {
                    assert!(outcome.error.is_none(), "cut at {length}: {:?}", outcome.error);
                } else {
                    let kind = outcome.kind();
                    let cut = matches!(kind, TraceErrorKind::CutInRecord { packet, .. }
                        if *packet == expected as u64 + 1);
                    assert!(cut, "cut at {length}: {kind:?}");
                }
            }
            Err(error) => {
                assert!(length < header, "cut at {length}: {error}");
                let kind = &error.kind;
                let fits = match length {
                    0 => matches!(kind, TraceErrorKind::Empty),
                    1..4 => matches!(kind, TraceErrorKind::NotACapture { .. }),
                    _ => matches!(kind, TraceErrorKind::CutInHeader { .. }),
                };
                assert!(fits, "cut at {length}: {error}");
            }
        }
    }
}

/// Flips every bit of `file` in turn: whatever comes, it ends without a panic.
fn check_every_flip(file: &[u8]) {
    let mut file = file.to_vec();
    for at in 0..file.len() {
        for bit in 0..8 {
            file[at] ^= 1 << bit;
            if let Ok(capture) = open(&file, InputFormat::Auto) {
                read_all(capture);
            }
            file[at] ^= 1 << bit;
        }
    }
}
