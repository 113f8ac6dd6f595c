//! Reads a log: a header that is recognised, then any bytes.
#![no_main]
#[path = "../common.rs"]
mod common;

use flowsieve::trace::InputFormat;
use libfuzzer_sys::fuzz_target;

const TSV: &[u8] = b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\n";
const JSON: &[u8] = b"{\"ts\":1700000000.5,\"id.orig_h\":\"10.0.0.1\",\"id.resp_h\":\"10.0.0.53\",\"query\":\"a.example\"}\n";
const CSV: &[u8] = b"ts,src,dst,qname\n";
const CONNECTIONS: &[u8] = b"#separator \\x09\n#unset_field\t-\n#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\tconn_state\torig_pkts\torig_ip_bytes\tresp_pkts\tresp_ip_bytes\n";
const EVE: &[u8] = b"{\"timestamp\":\"2023-11-14T22:13:21.000000+0000\",\"event_type\":\"dns\",\"src_ip\":\"10.0.0.1\",\"dest_ip\":\"10.0.0.53\",\"proto\":\"UDP\",\"dns\":{\"type\":\"query\",\"rrname\":\"a.example\"}}\n";
const FLOWS: &[u8] = b"start_ns,src,dst,src_port,dst_port,proto,end_ns,packets,bytes,tcp_flags\n";
const NFDUMP: &[u8] = b"ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n";
const DNSTAP: &[u8] = b"\0\0\0\0\0\0\0\x22\0\0\0\x02\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";
const CDNS: &[u8] = b"\x83\x65C-DNS\xa2\x00\x01\x03\x81\xa1\x00\xa1\x00\x19\x03\xe8\x9f";

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let heads = [TSV, JSON, CSV, CONNECTIONS, EVE, FLOWS, NFDUMP, DNSTAP, CDNS];
    let head = heads[choice as usize % heads.len()];
    common::read(&[head, rest].concat(), InputFormat::Auto, choice);
});
