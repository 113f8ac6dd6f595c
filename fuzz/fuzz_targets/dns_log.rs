//! DNS logs: a header that is recognised, then any bytes.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;

const TSV: &[u8] = b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\n";
const JSON: &[u8] = b"{\"ts\":1700000000.5,\"id.orig_h\":\"10.0.0.1\",\"id.resp_h\":\"10.0.0.53\",\"query\":\"a.example\"}\n";
const CSV: &[u8] = b"ts,src,dst,qname\n";

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let head = [TSV, JSON, CSV][choice as usize % 3];
    common::read(&[head, rest].concat(), InputFormat::Auto, choice);
});
