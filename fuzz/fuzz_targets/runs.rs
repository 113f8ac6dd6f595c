//! Whole runs over a capture: `dedup`, whose output must be a valid capture with as many packets as
//! it reports, and the list of flows.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::capture_filter::CaptureFilter;
use flowsieve::decode::{Headers, Tunnel};
use flowsieve::dedup::{
    DedupPlan, Difference, Sameness, SnapLength, WindowFilterKind, WindowWidth, Writers, dedup,
};
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSink, list, list_unique};
use flowsieve::plan::TracePlan;
use flowsieve::selection::Selection;
use flowsieve::trace::write::{CaptureFormat, CaptureWriter, WriteFormat};
use flowsieve::trace::{Compression, InputFormat};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    let file = common::file(bytes);
    if choice & 64 == 0 {
        sieve(file.path(), choice);
    } else {
        flows(file.path(), choice);
    }
});

/// Returns a selection of all packets, or one by a capture filter.
fn selection(choice: u8) -> Selection {
    let filter = (choice & 128 != 0).then(|| {
        let filter = CaptureFilter::parse("not tcp port 80 and ip[8] > 5", Tunnel::Outer);
        filter.expect("it is a capture filter")
    });
    Selection { capture_filter: filter, ..Selection::default() }
}

fn sieve(path: &Path, choice: u8) {
    let kinds = [Sameness::Packet, Sameness::Frame, Sameness::Retransmission, Sameness::Flow];
    let by = kinds[choice as usize % 4];
    let plan = DedupPlan {
        trace: TracePlan {
            selection: selection(choice),
            headers: Headers {
                tunnel: if choice & 32 != 0 && by != Sameness::Frame {
                    Tunnel::Inner
                } else {
                    Tunnel::Outer
                },
                ..Headers::default()
            },
            threads: 1 + usize::from(choice & 32 != 0),
            ..TracePlan::new([path])
        },
        by,
        distinguish: Difference::default(),
        window: WindowWidth::Packets(5),
        filter: WindowFilterKind::Rotating,
        approximate: choice & 16 != 0,
        memory_bytes: 256 << 10,
        snap_length: (choice & 64 != 0).then_some(SnapLength::Headers),
        slice_ns: None,
        seed: Some(0),
    };
    let format = WriteFormat { container: CaptureFormat::Pcapng, compression: Compression::None };
    let kept = CaptureWriter::new(Vec::new(), format, true).expect("a thread");
    let mut writers = Writers { kept: Some(kept), dropped: None, anonymizer: None };
    let summary = dedup(&plan, &mut writers, &()).expect("pcapng has room for everything");
    let (written, _) = writers.kept.expect("it was given").finish().expect("memory");
    let again = common::read(&written, InputFormat::Auto, 0);
    assert_eq!(again as u64, summary.totals.kept());
}

fn flows(path: &Path, choice: u8) {
    let plan = FlowPlan {
        trace: TracePlan {
            selection: selection(choice),
            headers: Headers { tunnel: Tunnel::Inner, dns_ports: vec![5353] },
            threads: 1,
            ..TracePlan::new([path])
        },
        bidirectional: choice & 1 != 0,
        idle_ns: (choice & 2 != 0).then_some(1),
        active_ns: (choice & 4 != 0).then_some(1_000_000),
        memory_bytes: 1 << 19,
    };
    let mut sink = Nowhere(0);
    let run = if choice & 8 != 0 { list_unique } else { list };
    let summary = run(&plan, &mut sink, &()).expect("the plan holds");
    assert!(sink.0 <= summary.totals.packets);
}

struct Nowhere(u64);

impl FlowSink for Nowhere {
    fn flow(&mut self, flow: FlowRecord) -> std::io::Result<()> {
        assert!(flow.start_ns <= flow.end_ns);
        let _ = (flow.community_id(), flow.domain_text());
        self.0 += 1;
        Ok(())
    }
}
