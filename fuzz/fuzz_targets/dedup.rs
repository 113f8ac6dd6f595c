//! dedup: what is kept is a whole capture with as many packets as were kept.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::dedup::{DedupPlan, Difference, Sameness, SieveKind, WindowWidth, Writers, dedup};
use flowsieve::trace::write::{CaptureFormat, CaptureWriter, WriteFormat};
use flowsieve::trace::{Compression, InputFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    let file = common::file(bytes);
    let kinds = [
        Sameness::Packet,
        Sameness::Frame,
        Sameness::Retransmission,
        Sameness::Flow,
    ];
    let plan = DedupPlan {
        inputs: vec![file.path().to_path_buf()],
        input_format: InputFormat::Auto,
        by: kinds[choice as usize % 4],
        distinguish: Difference::default(),
        window: WindowWidth::Packets(5),
        filter: SieveKind::Rotating,
        approximate: choice & 16 != 0,
        memory_bytes: 256 << 10,
        slice_ns: None,
        seed: Some(0),
    };
    let format = WriteFormat {
        container: CaptureFormat::Pcapng,
        compression: Compression::None,
    };
    let kept = CaptureWriter::new(Vec::new(), format, true).expect("a thread");
    let mut writers = Writers {
        kept: Some(kept),
        dropped: None,
    };
    let summary = dedup(&plan, &mut writers, &|_, _| {}).expect("pcapng has room for everything");
    let (written, _) = writers
        .kept
        .expect("it was given")
        .finish()
        .expect("memory");
    let again = common::read(&written, InputFormat::Auto, 0);
    assert_eq!(again as u64, summary.totals.kept());
});
