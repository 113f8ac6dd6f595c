//! A list of flows as Parquet with some bytes changed, or any bytes as one.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::decode::Tunnel;
use flowsieve::elements::ElementKind;
use flowsieve::export::{ExportPlan, ExportWhat, export};
use flowsieve::output::{ExportFormat, ExportParameters, ExportReport, FlowNames, ReportFormat};
use flowsieve::pipeline::{Align, Slicing};
use flowsieve::selection::Selection;
use flowsieve::trace::{Capture, InputFormat};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/netns-dns.pcap");

/// The flows of a small capture.
static LIST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let plan = ExportPlan {
        inputs: vec![CAPTURE.into()],
        input_format: InputFormat::Auto,
        selection: Selection::default(),
        tunnel: Tunnel::Outer,
        dns_ports: Vec::new(),
        what: ExportWhat::Elements {
            kind: ElementKind::Flow,
            undirected: false,
            queries_only: false,
            slicing: Slicing { width_ns: None, align: Align::Epoch },
            memory_bytes: 1 << 24,
        },
        threads: 1,
    };
    let parameters = ExportParameters::new(&plan, FlowNames::Flowsieve);
    let format = ExportFormat::Report(ReportFormat::Parquet);
    let mut report = ExportReport::begin(format, &parameters, 1, Vec::new()).expect("a list");
    let summary = export(&plan, &mut report, &()).expect("the plan holds");
    report.finish(&summary).expect("memory takes the list")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let file = if choice & 1 == 0 {
        let mut list = LIST.clone();
        // Each change has a place, counted from the end where the footer stands, and a byte.
        for change in rest.chunks_exact(4) {
            let from_end = usize::from(u16::from_le_bytes([change[0], change[1]]));
            let place = (list.len() - 1).saturating_sub(from_end);
            match change[2] % 4 {
                0 => list[place] = change[3],
                1 => list[place] ^= 1 << (change[3] % 8),
                2 => list.insert(place, change[3]),
                _ if list.len() > 16 => drop(list.remove(place)),
                _ => {}
            }
        }
        list
    } else {
        let footer = u32::try_from(rest.len() / 2).unwrap_or(0).to_le_bytes();
        [b"PAR1", rest, &footer, b"PAR1"].concat()
    };
    let file = common::file(&file);
    let Ok(mut capture) = Capture::open(file.path(), InputFormat::Auto) else {
        return;
    };
    while let Ok(Some(_)) = capture.next_batch() {}
});
