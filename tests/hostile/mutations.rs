//! Reads more than 200,000 damaged captures.

use super::chain::{Outcome, read, read_from};
use super::mutate::{Dribble, mutate};
use super::random::Random;
use super::samples::{Sample, all, cdns, compress};
use flowsieve::trace::TraceErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Number of damaged captures.
const CASES: u64 = 210_000;

/// Prints the number of the case if it panics.
pub(crate) struct Tell(pub(crate) u64, pub(crate) &'static str);

impl Drop for Tell {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this was case {} of the sample {}", self.0, self.1);
        }
    }
}

/// Runs the cases in all threads, and returns the sum of the results of `case`.
pub(crate) fn in_parallel(cases: u64, case: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= cases {
                        break;
                    }
                    sum.fetch_add(case(number), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// Returns the damaged capture of this case, and its sample.
pub(crate) fn damaged(samples: &[Sample], number: u64) -> (&Sample, Vec<u8>) {
    let mut random = Random::new(number);
    let sample = &samples[number as usize % samples.len()];
    let bytes = mutate(sample, samples, &mut random);
    // If the damaged bytes are compressed again, damage reaches the container.
    let codec = match random.below(40) {
        0 => "gzip",
        1 => "zstd",
        2 => "lz4",
        3 => "bzip2",
        4 if random.below(8) == 0 => "xz",
        _ => return (sample, bytes),
    };
    (sample, compress(codec, &bytes))
}

fn same(one: &Outcome, other: &Outcome) {
    assert_eq!(one.packets, other.packets, "packets depend on how bytes arrive");
    assert_eq!(one.elements, other.elements, "elements depend on how bytes arrive");
    // The exact place where a codec finds damage depends on the sizes of the reads, so the message
    // says "near".
    let sentence = |outcome: &Outcome| {
        outcome.error.as_ref().map(|error| match error.kind {
            TraceErrorKind::DamagedCompression { codec, cut, .. } => format!("{codec:?} {cut}"),
            _ => error.to_string(),
        })
    };
    assert_eq!(sentence(one), sentence(other), "the error depends on how bytes arrive");
}

#[test]
fn damaged_captures_are_read_without_panic_and_errors_have_a_place() {
    let samples = all();
    let packets = in_parallel(CASES, |number| {
        let (sample, bytes) = damaged(&samples, number);
        let _tell = Tell(number, sample.name);
        let outcome = read(&bytes, sample.format, number);
        // The dialect of a pcap file is decided by the part of its first records that has arrived,
        // and the output of a damaged xz stream depends on the sizes of the reads.
        if number.is_multiple_of(8) && outcome.container != "pcap" && sample.name != "xz" {
            let length = bytes.len();
            let source = Dribble { bytes, at: 0, random: Random::new(number) };
            same(&outcome, &read_from(Box::new(source), length, sample.format, number));
        }
        outcome.packets as u64
    });
    // Many packets are still read, so the code after the container is tested, too.
    assert!(packets > CASES, "{packets} packets were reached");
}

#[test]
fn damaged_cdns_is_read_without_panic_and_errors_have_a_place() {
    let samples = [cdns()];
    let whole = read(&samples[0].bytes, samples[0].format, 0);
    assert!(whole.error.is_none(), "{:?}", whole.error);
    assert_eq!((whole.packets, whole.container), (12, "cdns"));
    let records = in_parallel(CASES / 10, |number| {
        let (sample, bytes) = damaged(&samples, number);
        let _tell = Tell(number, sample.name);
        let outcome = read(&bytes, sample.format, number);
        if number.is_multiple_of(8) {
            let length = bytes.len();
            let source = Dribble { bytes, at: 0, random: Random::new(number) };
            let source = Box::new(source);
            same(&outcome, &read_from(source, length, sample.format, number));
        }
        outcome.packets as u64
    });
    assert!(records > CASES / 20, "{records} records were reached");
}
