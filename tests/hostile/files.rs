//! Runs `count`, `dedup` and `flows` over damaged captures.

use super::chain::read;
use super::mutations::{Tell, damaged, in_parallel};
use super::samples::all;
use flowsieve::decode::{Headers, Tunnel};
use flowsieve::dedup::{
    DedupPlan, Difference, Sameness, SnapLength, WindowFilterKind, WindowWidth, Writers, dedup,
};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Sizing};
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSink, list, list_unique};
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CounterChoice, SliceResult, SliceSink, Slicing, count,
};
use flowsieve::plan::TracePlan;
use flowsieve::trace::write::{CaptureFormat, CaptureWriter, WriteFormat};
use flowsieve::trace::{Compression, InputFormat};
use std::io;

/// Number of runs of each command.
const CASES: u64 = 3000;

#[derive(Default)]
struct Sums {
    flows: u64,
    packets: u64,
}

impl SliceSink for Sums {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        self.packets += slice.packets;
        assert!(slice.start_ns <= slice.end_ns);
        assert!(slice.first <= slice.exact, "a filter never counts too many");
        Ok(())
    }
}

impl FlowSink for Sums {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.flows += 1;
        assert!(flow.start_ns <= flow.end_ns);
        let _ = (flow.community_id(), flow.domain_text());
        Ok(())
    }
}

/// Writes a case to a file, which is deleted with the returned path.
fn in_file(
    samples: &[super::samples::Sample],
    number: u64,
) -> (tempfile::TempPath, InputFormat, Vec<u8>, Tell) {
    let (sample, bytes) = damaged(samples, number);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    (file.into_temp_path(), sample.format, bytes, Tell(number, sample.name))
}

#[test]
fn damaged_captures_are_counted_as_far_as_they_are_read() {
    let samples = all();
    in_parallel(CASES, |number| {
        let (path, input_format, bytes, _tell) = in_file(&samples, number);
        let kind = ElementKind::ALL[number as usize % 5];
        let filters = [FilterKind::Subset, FilterKind::Bloom, FilterKind::Cmdbf, FilterKind::Dleft];
        let sizing = Sizing::Memory { bytes: 64 << 10, expected: None };
        let filter = filters[number as usize / 5 % 4];
        let plan = CountPlan {
            trace: TracePlan {
                headers: Headers {
                    tunnel: if number % 2 == 0 { Tunnel::Outer } else { Tunnel::Inner },
                    ..Headers::default()
                },
                threads: 1 + number as usize % 4,
                input_format,
                ..TracePlan::new([&*path])
            },
            rule: ElementRule { kind, ..ElementRule::default() },
            slicing: Slicing {
                width_ns: [None, Some(1), Some(1_000_000_000), Some(i64::MAX)][number as usize % 4],
                align: if number % 3 == 0 { Align::First } else { Align::Epoch },
            },
            counter: CounterChoice::filter(filter, kind.arity(), sizing, 2).ok(),
            exact_limit_bytes: Some(1 << 22),
            seed: number,
            shards: 2,
            every_ns: None,
        };
        let mut sums = Sums::default();
        let summary = count(&plan, CountExtras::default(), &mut sums, &()).unwrap();
        let read = read(&bytes, input_format, 0);
        assert_eq!(summary.totals.packets, read.packets as u64);
        assert_eq!(sums.packets + summary.totals.late, read.packets as u64);
        assert_eq!(summary.inputs[0].error.is_some(), read.error.is_some());
        1
    });
}

#[test]
fn what_is_kept_of_a_damaged_capture_is_a_whole_capture() {
    let samples = all();
    in_parallel(CASES, |number| {
        let (path, input_format, _, _tell) = in_file(&samples, number + CASES);
        let by = [Sameness::Packet, Sameness::Frame, Sameness::Retransmission, Sameness::Flow]
            [number as usize % 4];
        let distinguish = Difference {
            vlan: number & 16 != 0,
            mac: number & 32 != 0,
            ttl: number & 64 != 0,
            interface: number & 128 != 0,
        };
        let plan = DedupPlan {
            trace: TracePlan {
                headers: Headers {
                    tunnel: if number & 1024 != 0 && by != Sameness::Frame {
                        Tunnel::Inner
                    } else {
                        Tunnel::Outer
                    },
                    ..Headers::default()
                },
                threads: 1 + (number % 3) as usize,
                input_format,
                ..TracePlan::new([&*path])
            },
            by,
            distinguish: if by == Sameness::Packet { distinguish } else { Difference::default() },
            window: if number & 256 == 0 {
                WindowWidth::Time(1_000_000)
            } else {
                WindowWidth::Packets(5)
            },
            filter: WindowFilterKind::Rotating,
            approximate: number & 512 != 0,
            memory_bytes: 256 << 10,
            snap_length: match number >> 11 & 3 {
                0 => None,
                1 => Some(SnapLength::Bytes(60)),
                _ => Some(SnapLength::Headers),
            },
            slice_ns: Some(1_000_000_000),
            seed: Some(number),
        };
        let format =
            WriteFormat { container: CaptureFormat::Pcapng, compression: Compression::None };
        let writer = || CaptureWriter::new(Vec::new(), format, true).unwrap();
        let mut writers =
            Writers { kept: Some(writer()), dropped: Some(writer()), anonymizer: None };
        let Ok(summary) = dedup(&plan, &mut writers, &()) else {
            panic!("pcapng has room for everything");
        };
        let mut nowhere = Writers::<Vec<u8>> { kept: None, dropped: None, anonymizer: None };
        let dry = dedup(&plan, &mut nowhere, &()).unwrap();
        assert_eq!(dry.totals, summary.totals, "{}", path.display());
        for (writer, packets) in
            [(writers.kept, summary.totals.kept()), (writers.dropped, summary.totals.dropped())]
        {
            let (written, _) = writer.unwrap().finish().unwrap();
            let again = read(&written, InputFormat::Auto, 0);
            assert!(again.error.is_none() || written.is_empty(), "{:?}", again.error);
            assert_eq!(again.packets as u64, packets);
        }
        1
    });
}

#[test]
fn flows_of_damaged_captures_hold_all_their_packets() {
    let samples = all();
    in_parallel(CASES, |number| {
        let (path, input_format, bytes, _tell) = in_file(&samples, number + 2 * CASES);
        let plan = FlowPlan {
            trace: TracePlan {
                headers: Headers { tunnel: Tunnel::Inner, dns_ports: vec![5000] },
                threads: 1 + number as usize % 3,
                input_format,
                ..TracePlan::new([&*path])
            },
            bidirectional: number % 2 == 0,
            idle_ns: (number % 3 == 0).then_some(1),
            active_ns: (number % 5 == 0).then_some(1_000_000),
            memory_bytes: 1 << 19,
        };
        let mut sums = Sums::default();
        let run = if number % 7 == 0 { list_unique } else { list };
        let summary = run(&plan, &mut sums, &()).unwrap();
        assert_eq!(summary.totals.packets, read(&bytes, input_format, 0).packets as u64);
        assert!(sums.flows <= summary.totals.packets);
        1
    });
}
