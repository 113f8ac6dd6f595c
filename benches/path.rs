//! Measures the steps of a packet: decoding by link layer and tunnel, digests by length, and whole
//! counts by kind of element.
//!
//! Every row compares its answer with the expected one.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(missing_docs, reason = "a program")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{plan, run};
use criterion::{Criterion, Throughput};
use flowsieve::decode::{Addresses, Decoder, Tunnel, dns_messages};
use flowsieve::elements::ElementKind;
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::hashing::Digester;
use flowsieve::trace::{Capture, InputFormat, LinkType, TraceBatch};
use std::collections::HashSet;
use std::hint::black_box;
use std::io::{Cursor, Write};
use std::path::Path;
use std::time::Duration;

/// Frames of one timed call.
const FRAMES: usize = 1024;

const PACKETS: u64 = 200_000;

const MAC: [u8; 12] = [2; 12];
const LLC: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// Returns an IPv4 packet with a UDP or TCP header and a payload. Its source address holds
/// `number`.
fn v4(number: u16, protocol: u8, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let transport = if protocol == 6 { 20 } else { 8 };
    let length = (20 + transport + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend([10, 0, high, low, 198, 51, 100, 2]);
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    packet.resize(20 + transport, 0);
    if protocol == 17 {
        packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    }
    packet.extend(payload);
    packet
}

fn v6(number: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 28, 6, 64];
    packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(number.to_be_bytes());
    packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.resize(40 + 28, 0);
    packet
}

fn tcp(number: u16) -> Vec<u8> {
    v4(number, 6, [1024, 443], &[0; 8])
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Returns the frame of a link layer with IP packet number `n`.
type Wrap = fn(u16) -> Vec<u8>;

const LINKS: [(&str, u16, Wrap); 12] = [
    ("Ethernet", 1, |n| join(&[&MAC, &[8, 0], &tcp(n)])),
    ("Ethernet, VLAN", 1, |n| join(&[&MAC, &[0x81, 0, 0, 7, 8, 0], &tcp(n)])),
    ("Ethernet, IPv6", 1, |n| join(&[&MAC, &[0x86, 0xdd], &v6(n)])),
    ("Ethernet, LLC and SNAP", 1, |n| join(&[&MAC, &[0, 56], &LLC, &tcp(n)])),
    ("BSD loopback", 0, |n| join(&[&[2, 0, 0, 0], &tcp(n)])),
    ("raw IP", 101, |n| tcp(n)),
    ("PPP", 9, |n| join(&[&[0xff, 3, 0, 0x21], &tcp(n)])),
    ("Cisco HDLC", 104, |n| join(&[&[0x0f, 0, 8, 0], &tcp(n)])),
    ("802.11", 105, |n| join(&[&[8, 0, 0, 0], &[2; 18], &[0, 0], &LLC, &tcp(n)])),
    ("Radiotap", 127, |n| {
        let header = [0, 0, 8, 0, 0, 0, 0, 0];
        join(&[&header, &[8, 0, 0, 0], &[2; 18], &[0, 0], &LLC, &tcp(n)])
    }),
    ("Linux cooked", 113, |n| join(&[&[0, 0, 0, 1, 0, 6], &[2; 8], &[8, 0], &tcp(n)])),
    ("Linux cooked 2", 276, |n| {
        let header = [8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6];
        join(&[&header, &[2; 8], &tcp(n)])
    }),
];

const TUNNELS: [(&str, Wrap); 3] = [
    ("GRE", |n| {
        let mut outer = v4(1, 47, [0, 0x0800], &[]);
        outer.truncate(24);
        outer.extend(tcp(n));
        outer[2..4].copy_from_slice(&((24 + 48) as u16).to_be_bytes());
        join(&[&MAC, &[8, 0], &outer])
    }),
    ("VXLAN", |n| {
        let inner = join(&[&[8, 0, 0, 0, 0, 0, 1, 0], &MAC, &[8, 0], &tcp(n)]);
        join(&[&MAC, &[8, 0], &v4(1, 17, [50_000, 4789], &inner)])
    }),
    ("IP in IP", |n| {
        let mut outer = v4(1, 4, [0, 0], &[]);
        outer.truncate(20);
        outer.extend(tcp(n));
        outer[2..4].copy_from_slice(&((20 + 48) as u16).to_be_bytes());
        join(&[&MAC, &[8, 0], &outer])
    }),
];

/// Returns the two low bytes of the source address, which hold the packet's number.
fn number_of(addresses: Addresses) -> u64 {
    let [.., high, low] = match addresses {
        Addresses::V4 { source, .. } => u32::from_be_bytes(source),
        Addresses::V6 { source, .. } => u128::from_be_bytes(source) as u32,
    }
    .to_be_bytes();
    u64::from(u16::from_be_bytes([high, low]))
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(FRAMES as u64));
    let links = LINKS.map(|(name, link, wrap)| (name.to_owned(), link, wrap, Tunnel::Outer));
    let tunnels = TUNNELS.map(|(name, wrap)| (format!("in {name}"), 1, wrap, Tunnel::Inner));
    for (name, link, wrap, tunnel) in links.into_iter().chain(tunnels) {
        let frames: Vec<Vec<u8>> = (0..FRAMES as u16).map(wrap).collect();
        let decoder = Decoder::new(tunnel);
        group.bench_function(name.as_str(), |bencher| {
            bencher.iter(|| {
                let mut sum = 0;
                for frame in &frames {
                    let packet = decoder.decode(LinkType(link), black_box(frame));
                    sum += number_of(packet.expect("it is an IP packet").addresses);
                }
                assert_eq!(sum, (FRAMES * (FRAMES - 1) / 2) as u64, "{name}");
            });
        });
    }
    group.finish();
}

/// Measures the decoding of DNS messages of a generated capture.
fn names(criterion: &mut Criterion) {
    let mut bytes = Vec::new();
    let summary = generate(&GeneratePlan::new(GenerateKind::Dns, 1000), &mut bytes)
        .expect("memory does not fail");
    let reader = Box::new(Cursor::new(bytes));
    let mut capture = Capture::from_reader(Path::new("generated"), reader, InputFormat::Auto)
        .expect("it is a capture");
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while let Some(batch) = capture.next_batch().expect("it is whole") {
        let TraceBatch::Packets { bytes, packets } = batch else { unreachable!("it is no log") };
        let frame = |at: usize, length: usize| bytes[at..at + length].to_vec();
        frames.extend(packets.iter().map(|p| frame(p.start as usize, p.captured as usize)));
    }
    let decoder = Decoder::new(Tunnel::Inner);
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(summary.packets));
    group.bench_function("DNS messages", |bencher| {
        bencher.iter(|| {
            let mut messages = 0;
            for frame in &frames {
                let packet = decoder
                    .decode(LinkType::ETHERNET, black_box(frame))
                    .expect("it is an IP packet");
                let told = dns_messages(&packet, &[53], |message| {
                    black_box(message.name);
                    messages += 1;
                });
                told.expect("it is a DNS message");
            }
            assert_eq!(messages, summary.packets);
        });
    });
    group.finish();
}

fn digests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("digest");
    group.throughput(Throughput::Elements(FRAMES as u64));
    // Lengths of the elements: host pairs and flows of both address families, a DNS triple with a
    // name of 23 bytes, and an attribute.
    for length in [4, 9, 14, 32, 33, 38, 64] {
        let keys: Vec<Vec<u8>> = (0..FRAMES)
            .map(|number| {
                let mut key = vec![7; length];
                key[..4].copy_from_slice(&(number as u32).to_le_bytes());
                key
            })
            .collect();
        let digester = Digester::new(1);
        let distinct: HashSet<u64> = keys.iter().map(|key| digester.digest(key).value()).collect();
        assert_eq!(distinct.len(), FRAMES);
        let sum = distinct.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
        group.bench_function(format!("{length} bytes"), |bencher| {
            bencher.iter(|| {
                let all = keys.iter().map(|key| digester.digest(black_box(key)).value());
                assert_eq!(all.fold(0, u64::wrapping_add), sum);
            });
        });
    }
    group.finish();
}

fn pipeline(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(PACKETS));
    for kind in [GenerateKind::Traffic, GenerateKind::Dns] {
        let mut file = tempfile::NamedTempFile::new().expect("there is room for a capture");
        let mut bytes = Vec::new();
        let truth =
            generate(&GeneratePlan::new(kind, PACKETS), &mut bytes).expect("memory does not fail");
        file.write_all(&bytes).expect("there is room for a capture");
        let elements = match kind {
            GenerateKind::Traffic => {
                vec![(ElementKind::HOST_PAIR, truth.pairs), (ElementKind::FLOW, truth.flows)]
            }
            GenerateKind::Dns => vec![(ElementKind::DNS, truth.dns_triples)],
        };
        for (element, distinct) in elements {
            for exact in [false, true] {
                for threads in [1, 2] {
                    let mut plan = plan(&[file.path().to_path_buf()], element);
                    plan.trace.threads = threads;
                    plan.slicing.width_ns = None;
                    if !exact {
                        plan.exact_limit_bytes = None;
                    }
                    let what = if exact { "exact" } else { "filter only" };
                    let name = format!("{}, {what}, {threads} thread(s)", element.name());
                    group.bench_function(name, |bencher| {
                        bencher.iter(|| {
                            let (slices, summary) = run(&plan);
                            assert_eq!(summary.totals.packets, PACKETS);
                            assert_eq!(slices.len(), 1);
                            let first = slices[0].first.expect("there is a filter");
                            assert!(first <= distinct, "{first} of {distinct}");
                            if exact {
                                assert_eq!(slices[0].exact, Some(distinct));
                            }
                        });
                    });
                }
            }
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    decoding(&mut criterion);
    names(&mut criterion);
    digests(&mut criterion);
    pipeline(&mut criterion);
    criterion.final_summary();
}
