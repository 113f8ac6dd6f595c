//! Reads any bytes in an intact gzip member, so that damage reaches container and decoder.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    out.write_all(bytes).expect("memory");
    let packed = out.finish().expect("memory");
    let plain = common::read(bytes, InputFormat::Auto, 34);
    let inside = common::read(&packed, InputFormat::Auto, 34);
    // Compressed input is unpacked only once, so the two differ.
    let compressed = matches!(
        bytes,
        [0x1f, 0x8b, ..]
            | [0x28, 0xb5, ..]
            | [0xfd, ..]
            | [b'B', ..]
            | [0x02 | 0x04 | 0x50..=0x5f, ..]
    );
    assert!(compressed || plain == inside, "{plain} packets, {inside} in gzip");
});
