//! Reads any bytes as a capture or a log, compressed or not. The container is recognised by its
//! content, except for TSH, which has to be named.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    let format = if choice & 64 == 0 { InputFormat::Auto } else { InputFormat::Tsh };
    common::read(bytes, format, choice);
});
