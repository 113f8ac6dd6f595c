//! The list of flows.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::decode::Tunnel;
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSink, list, list_unique};
use flowsieve::pipeline::Watch;
use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;

struct Nowhere(u64);

impl FlowSink for Nowhere {
    fn flow(&mut self, flow: FlowRecord) -> std::io::Result<()> {
        assert!(flow.start_ns <= flow.end_ns);
        let _ = (flow.community_id(), flow.domain_text());
        self.0 += 1;
        Ok(())
    }
}

struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _: u64, _: u64) {}
}

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    let file = common::file(bytes);
    let plan = FlowPlan {
        inputs: vec![file.path().to_path_buf()],
        input_format: InputFormat::Auto,
        tunnel: Tunnel::Inner,
        bidirectional: choice & 1 != 0,
        dns_ports: vec![5353],
        idle_ns: (choice & 2 != 0).then_some(1),
        active_ns: (choice & 4 != 0).then_some(1_000_000),
        memory_bytes: 1 << 19,
        threads: 1,
    };
    let mut sink = Nowhere(0);
    let run = if choice & 8 != 0 { list_unique } else { list };
    let summary = run(&plan, &mut sink, &Unwatched).expect("the plan holds");
    assert!(sink.0 <= summary.totals.packets);
});
