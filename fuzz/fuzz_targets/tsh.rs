//! TSH, which has to be named.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    common::read(bytes, InputFormat::Tsh, choice);
});
