//! Sources that generate their bytes as they are read, and count the reads.

use flowsieve::decode::{Headers, Skip, Tunnel};
use flowsieve::elements::{ElementBatch, ElementRule, Extractor};
use flowsieve::hashing::Digester;
use flowsieve::trace::{Capture, InputFormat, TraceError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of a head and a piece that is repeated.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) head: Vec<u8>,
    pub(crate) piece: Vec<u8>,
    pub(crate) times: u64,
    at: usize,
    in_head: bool,
}

impl Repeated {
    pub(crate) fn new(head: Vec<u8>, piece: Vec<u8>, times: u64) -> Self {
        Self { head, piece, times, at: 0, in_head: true }
    }
}

impl Read for Repeated {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        let mut given = 0;
        while given < target.len() {
            let from = if self.in_head { &self.head } else { &self.piece };
            if !self.in_head && self.times == 0 {
                break;
            }
            let here = &from[self.at..];
            let count = here.len().min(target.len() - given);
            target[given..given + count].copy_from_slice(&here[..count]);
            given += count;
            self.at += count;
            if self.at == from.len() {
                self.at = 0;
                if self.in_head {
                    self.in_head = false;
                } else {
                    self.times -= 1;
                }
            }
        }
        Ok(given)
    }
}

/// Counts calls and bytes.
struct Counted<R> {
    inner: R,
    calls: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.inner.read(target)
    }
}

/// The work and the result of reading.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) packets: u64,
    pub(crate) elements: u64,
    pub(crate) skipped: BTreeMap<Skip, u64>,
    pub(crate) batches: u64,
    /// Number of reads of the source.
    pub(crate) calls: u64,
    /// Number of bytes read.
    pub(crate) bytes: u64,
    pub(crate) error: Option<TraceError>,
}

/// Reads all of a source and extracts its elements.
pub(crate) fn work(source: impl Read + Send + 'static, rule: ElementRule) -> Work {
    let calls = Arc::new(AtomicU64::new(0));
    let source = Box::new(Counted { inner: source, calls: Arc::clone(&calls) });
    let headers = Headers { tunnel: Tunnel::Inner, ..Headers::default() };
    let extractor = Extractor::new(rule, &headers, Digester::new(0), true, true);
    let mut work = Work::default();
    let mut out = ElementBatch::default();
    match Capture::from_reader(Path::new("hostile"), source, InputFormat::Auto) {
        Err(error) => work.error = Some(error),
        Ok(mut capture) => {
            loop {
                match capture.next_batch() {
                    Ok(Some(batch)) => {
                        out.clear();
                        extractor.extract(batch, &mut out);
                        work.batches += 1;
                        work.packets += out.times_ns.len() as u64;
                        work.elements += out.elements.digests.len() as u64;
                        for &(_, skip) in &out.skipped {
                            *work.skipped.entry(skip).or_default() += 1;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        work.error = Some(error);
                        break;
                    }
                }
            }
            work.bytes = capture.bytes_read().load(Ordering::Relaxed);
        }
    }
    work.calls = calls.load(Ordering::Relaxed);
    work
}

/// Returns the header of a little-endian pcap file.
pub(crate) fn pcap_header(link: u32) -> Vec<u8> {
    let words = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, link];
    words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
}

/// Returns a record of a pcap file.
pub(crate) fn record(seconds: u32, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let head = [seconds, 0, length, length];
    let mut out: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend_from_slice(frame);
    out
}

/// Returns an IPv4 packet.
pub(crate) fn ipv4(source: u32, destination: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(((20 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// Returns a block of a little-endian pcapng file.
pub(crate) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    let mut out = [kind.to_le_bytes(), length.to_le_bytes()].concat();
    out.extend_from_slice(body);
    out.resize(length as usize - 4, 0);
    out.extend(length.to_le_bytes());
    out
}

/// Returns a section header block.
pub(crate) fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[255; 8]].concat())
}
