//! Cuts each sample at every byte, and flips every byte of its first kilobyte.

use super::chain::{read, read_from};
use super::mutations::{Tell, in_parallel};
use super::random::Random;
use super::samples::{Sample, all};
use flowsieve::trace::TraceErrorKind;
use std::io::Read;

/// Checks that all packets before the cut are read. The sample knows where its records end.
fn check_cut(sample: &Sample, at: usize) {
    let outcome = read(&sample.bytes[..at], sample.format, at as u64);
    let whole = sample.whole_before(at);
    if sample.is_text {
        // A last line may be complete without its line break.
        assert!(
            (whole..=whole + 1).contains(&outcome.packets) || outcome.container.is_empty(),
            "{} packets, {whole} whole lines",
            outcome.packets
        );
        return;
    }
    // ERF has no magic number: it is recognised by three records, or fewer if the file ends with
    // one.
    let unknown = sample.name == "erf" && whole < 3 && at != sample.last_end(at);
    if unknown {
        assert!(matches!(outcome.error.unwrap().kind, TraceErrorKind::NotACapture { .. }));
        return;
    }
    assert_eq!(outcome.packets, whole);
    let end = sample.last_end(at);
    match outcome.error {
        None => assert_eq!(at, end, "a cut inside a record is an error"),
        Some(error) if at == 0 => assert!(matches!(error.kind, TraceErrorKind::Empty), "{error}"),
        Some(error) if at < sample.header => assert!(
            matches!(
                error.kind,
                TraceErrorKind::CutInHeader { .. } | TraceErrorKind::NotACapture { .. }
            ),
            "{error}"
        ),
        Some(error) => {
            assert_ne!(at, end, "{error}");
            assert!(
                error.offset == Some(end as u64) || at < 28,
                "{error}: the record begins at {end}"
            );
        }
    }
}

/// Checks that a cut of a compressed capture is reported, and for gzip that all packets are read
/// whose records flate2 decompresses.
fn check_compressed_cut(sample: &Sample, at: usize, whole: &[u8]) {
    let outcome = read(&sample.bytes[..at], sample.format, at as u64);
    if at == sample.bytes.len() {
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        return;
    }
    if sample.name == "gzip" {
        let mut arrived = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&sample.bytes[..at]);
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = decoder.read(&mut buffer) {
            arrived.extend_from_slice(&buffer[..count]);
        }
        assert!(whole.starts_with(&arrived));
        let mut records = 0;
        let mut next = 24;
        while let Some(header) = arrived.get(next..next + 16) {
            next += 16 + u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
            records += usize::from(next <= arrived.len());
        }
        assert!(
            outcome.packets >= records,
            "{} packets, {records} records arrived",
            outcome.packets
        );
    }
    if sample.name != "gzip-members" {
        assert!(outcome.error.is_some(), "the cut is told");
    }
}

#[test]
fn cut_at_every_byte_every_whole_packet_counts() {
    let samples = all();
    let mut places = 0;
    for sample in &samples {
        places += in_parallel(sample.bytes.len() as u64 + 1, |at| {
            let _tell = Tell(at, sample.name);
            if sample.is_compressed {
                check_compressed_cut(sample, at as usize, &samples[0].bytes);
            } else {
                check_cut(sample, at as usize);
            }
            1
        });
    }
    assert!(places > 30_000, "{places} cuts");
}

#[test]
fn every_byte_of_the_first_kilobyte_flipped() {
    let samples = all();
    for sample in &samples {
        let most = sample.bytes.len().min(1024) as u64;
        in_parallel(most * 9, |case| {
            let _tell = Tell(case, sample.name);
            let at = (case / 9) as usize;
            let mut bytes = sample.bytes.clone();
            bytes[at] ^= [1, 2, 4, 8, 16, 32, 64, 128, 255][case as usize % 9];
            let outcome = read(&bytes, sample.format, case);
            // Damage after the header does not lose packets before it, unless it is in the first
            // three records (ten of ERF), which decide the dialect, or the format without a magic
            // number.
            let whole = sample.whole_before(at);
            let telling = match sample.name {
                "pcapng" | "pcapng-sections" => 0,
                "erf" => 10,
                _ => 3,
            };
            if !sample.is_compressed && at >= sample.header && whole >= telling {
                assert!(
                    outcome.packets >= whole,
                    "{} packets, {whole} before the damage",
                    outcome.packets
                );
            }
            1
        });
    }
}

/// A source that fails in the middle, like a broken disk.
struct Failing {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Read for Failing {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.end {
            return Err(std::io::Error::other("the disk failed"));
        }
        let count = target.len().min(self.end - self.at).min(100);
        target[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[test]
fn a_source_that_fails_is_told_and_what_it_gave_counts() {
    let mut random = Random::new(5);
    for sample in all().iter().filter(|sample| !sample.is_text && !sample.is_compressed) {
        for _ in 0..50 {
            let end = sample.ends[2] + random.below(sample.bytes.len() - sample.ends[2]);
            let bytes = sample.bytes.clone();
            let path = std::path::Path::new("failing");
            let source = Box::new(Failing { bytes, at: 0, end });
            let mut capture =
                flowsieve::trace::Capture::from_reader(path, source, sample.format).unwrap();
            let mut packets = 0;
            let error = loop {
                match capture.next_batch() {
                    Ok(Some(flowsieve::trace::TraceBatch::Packets { packets: here, .. })) => {
                        packets += here.len();
                    }
                    Ok(Some(flowsieve::trace::TraceBatch::Log(log))) => {
                        packets += log.entries.len();
                    }
                    Ok(_) => panic!("{}: the failure was not told", sample.name),
                    Err(error) => break error,
                }
            };
            assert_eq!(packets, sample.whole_before(end), "{}", sample.name);
            assert!(matches!(error.kind, TraceErrorKind::Io(_)), "{error}");
            assert_eq!(error.offset, Some(end as u64));
        }
    }
}

#[test]
fn an_intact_sample_is_read_whole() {
    for sample in all() {
        let outcome = read(&sample.bytes, sample.format, 0);
        assert!(outcome.error.is_none(), "{}: {:?}", sample.name, outcome.error);
        if !sample.is_compressed {
            assert_eq!(outcome.packets, sample.ends.len(), "{}", sample.name);
        }
        let source = Box::new(std::io::Cursor::new(sample.bytes.clone()));
        let again = read_from(source, sample.bytes.len(), sample.format, 0);
        assert_eq!(outcome.elements, again.elements);
        assert!(!outcome.elements.is_empty(), "{}", sample.name);
    }
}
