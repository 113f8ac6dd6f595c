//! Compares flows with independent computations: a table without limits, etherparse, tshark.

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use flowsieve::decode::Addresses;
use flowsieve::flows::{
    Direction, Ended, FlowPlan, FlowRecord, FlowSink, FlowSummary, SortedFlows, list, list_unique,
};
use flowsieve::plan::TracePlan;
use flowsieve::trace::{Capture, InputFormat, LinkType, Source, TraceBatch};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

pub(crate) fn plan(input: &Path) -> FlowPlan {
    FlowPlan { trace: TracePlan::new([input]).with_threads(1), ..FlowPlan::default() }
}

/// Returns the flows in the order of their start.
pub(crate) fn flows(plan: &FlowPlan) -> (Vec<FlowRecord>, FlowSummary) {
    let mut sorted = SortedFlows::new(1 << 30);
    let summary = list(plan, &mut sorted, &()).expect("the plan holds");
    let mut flows = Vec::new();
    let drained = sorted.drain(|flow| {
        flows.push(flow);
        Ok(())
    });
    drained.expect("memory does not fail");
    (flows, summary)
}

/// A packet of a synthetic capture.
#[derive(Clone, Debug)]
struct Packet {
    time_ns: i64,
    hosts: (u8, u8),
    protocol: u8,
    ports: (u16, u16),
    flags: u8,
    payload: usize,
}

impl Packet {
    fn ports(&self) -> (u16, u16) {
        if self.protocol == 1 { (0, 0) } else { self.ports }
    }

    fn upper_bytes(&self) -> usize {
        match self.protocol {
            6 => 20,
            _ => 8,
        }
    }

    fn ip_bytes(&self) -> usize {
        20 + self.upper_bytes() + self.payload
    }

    fn addresses(&self) -> Addresses {
        Addresses::V4 { source: [10, 0, 0, self.hosts.0], destination: [10, 0, 0, self.hosts.1] }
    }

    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((self.ip_bytes() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, self.protocol, 0, 0]);
        frame.extend([10, 0, 0, self.hosts.0, 10, 0, 0, self.hosts.1]);
        let mut upper = vec![0; self.upper_bytes()];
        if self.protocol != 1 {
            upper[..2].copy_from_slice(&self.ports.0.to_be_bytes());
            upper[2..4].copy_from_slice(&self.ports.1.to_be_bytes());
        }
        if self.protocol == 6 {
            upper[12] = 0x50;
            upper[13] = self.flags;
        }
        frame.extend(upper);
        frame.resize(frame.len() + self.payload, 0);
        frame
    }
}

/// Writes a capture with nanoseconds.
fn capture(packets: &[Packet]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(&capture_bytes(packets)).expect("room for it");
    file
}

fn capture_bytes(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for packet in packets {
        let frame = packet.frame();
        let (seconds, rest) = (packet.time_ns / 1_000_000_000, packet.time_ns % 1_000_000_000);
        for word in [seconds as u32, rest as u32, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

/// A flow according to the definition.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    start_ns: i64,
    end_ns: i64,
    addresses: Addresses,
    protocol: u8,
    ports: (u16, u16),
    directions: [Direction; 2],
    ended: Ended,
    number: usize,
}

/// Computes the flows by their definition, with a table without limits.
fn defined(packets: &[Packet], plan: &FlowPlan) -> Vec<Plain> {
    let mut all: Vec<Plain> = Vec::new();
    let mut live: HashMap<_, usize> = HashMap::new();
    for packet in packets {
        let (ports, hosts) = (packet.ports(), packet.hosts);
        let (a, b) = ((hosts.0, ports.0), (hosts.1, ports.1));
        let key = if plan.bidirectional && a > b { (b, a) } else { (a, b) };
        let key = (key, packet.protocol);
        let time = packet.time_ns;
        if let Some(&at) = live.get(&key) {
            let ended = if plan.idle_ns.is_some_and(|idle| time - all[at].end_ns > idle) {
                Some(Ended::Idle)
            } else if plan.active_ns.is_some_and(|active| time - all[at].start_ns > active) {
                Some(Ended::Active)
            } else {
                None
            };
            if let Some(ended) = ended {
                all[at].ended = ended;
                live.remove(&key);
            }
        }
        let at = *live.entry(key).or_insert_with(|| {
            all.push(Plain {
                start_ns: time,
                end_ns: time,
                addresses: packet.addresses(),
                protocol: packet.protocol,
                ports,
                directions: [Direction::default(); 2],
                ended: Ended::Input,
                number: all.len(),
            });
            all.len() - 1
        });
        let flow = &mut all[at];
        flow.start_ns = flow.start_ns.min(time);
        flow.end_ns = flow.end_ns.max(time);
        let back = usize::from(flow.addresses != packet.addresses() || flow.ports != ports);
        let direction = &mut flow.directions[back];
        direction.packets += 1;
        direction.bytes += packet.ip_bytes() as u64;
        if packet.protocol == 6 {
            direction.tcp_flags |= packet.flags;
        }
    }
    all.sort_by_key(|flow| (flow.start_ns, flow.number));
    all
}

fn plain(flow: &FlowRecord) -> Plain {
    Plain {
        start_ns: flow.start_ns,
        end_ns: flow.end_ns,
        addresses: flow.addresses,
        protocol: flow.protocol,
        ports: flow.ports,
        directions: [flow.forward, flow.reverse],
        ended: flow.ended,
        number: flow.number as usize,
    }
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let packet = (
        0_i64..60,
        (0_u8..3, 0_u8..3),
        prop::sample::select(vec![1_u8, 6, 17]),
        (0_u16..2, 0_u16..2),
        any::<u8>(),
        0_usize..20,
    )
        .prop_map(|(time_ns, hosts, protocol, ports, flags, payload)| Packet {
            time_ns: time_ns * 1_000_000_000,
            hosts,
            protocol,
            ports,
            flags,
            payload,
        });
    prop::collection::vec(packet, 0..120)
}

proptest! {
    #[test]
    fn flows_are_as_defined(
        mut packets in packets(),
        in_order: bool,
        bidirectional: bool,
        idle in prop::option::of(1_i64..20),
        active in prop::option::of(1_i64..30),
        threads in 1_usize..4,
    ) {
        if in_order {
            packets.sort_by_key(|packet| packet.time_ns);
        }
        let file = capture(&packets);
        let plan = FlowPlan {
            bidirectional,
            idle_ns: idle.map(|seconds| seconds * 1_000_000_000),
            active_ns: active.map(|seconds| seconds * 1_000_000_000),
            trace: plan(file.path()).trace.with_threads(threads),
            ..plan(file.path())
        };
        let (flows, summary) = flows(&plan);
        let flows: Vec<Plain> = flows.iter().map(plain).collect();
        prop_assert_eq!(&flows, &defined(&packets, &plan));
        prop_assert_eq!(summary.totals.flows, flows.len() as u64);
        prop_assert_eq!(summary.totals.packets, packets.len() as u64);
        for ended in Ended::ALL {
            let count = flows.iter().filter(|flow| flow.ended == ended).count();
            prop_assert_eq!(summary.totals.ended.of(ended), count as u64);
        }
    }
}

/// Collects flows, and counts the flushes.
#[derive(Default)]
struct Listed {
    flows: Vec<FlowRecord>,
    flushes: Arc<AtomicUsize>,
}

impl FlowSink for Listed {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.flows.push(flow);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A pipe that delivers bytes in pieces of these lengths. Before a piece with a pause it waits
/// until the program has flushed its output, because it noticed that nothing arrives.
struct Stuttering {
    bytes: Vec<u8>,
    given: usize,
    pieces: Vec<(usize, bool)>,
    turn: usize,
    flushes: Arc<AtomicUsize>,
}

impl Read for Stuttering {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (length, pauses) = self.pieces[self.turn % self.pieces.len()];
        self.turn += 1;
        // No pause near the header, since the program does not flush while it waits for that.
        if pauses && self.given > 1000 {
            let (before, begun) = (self.flushes.load(Ordering::SeqCst), Instant::now());
            while self.flushes.load(Ordering::SeqCst) < before + 2 {
                assert!(begun.elapsed() < Duration::from_secs(60), "the silence is noticed");
                thread::sleep(Duration::from_millis(5));
            }
        }
        let count = length.min(out.len()).min(self.bytes.len() - self.given);
        out[..count].copy_from_slice(&self.bytes[self.given..][..count]);
        self.given += count;
        Ok(count)
    }
}

/// Returns the flows of a pipe in the order in which they are listed.
fn from_pipe(packets: &[Packet], plan: &FlowPlan, pieces: &[(usize, bool)]) -> Vec<FlowRecord> {
    let mut listed = Listed::default();
    let pipe = Stuttering {
        bytes: capture_bytes(packets),
        given: 0,
        pieces: pieces.to_vec(),
        turn: 0,
        flushes: Arc::clone(&listed.flushes),
    };
    let mut plan = plan.clone();
    plan.trace.inputs = vec![Source::reader("pipe", pipe)];
    list(&plan, &mut listed, &()).expect("the plan holds");
    listed.flows
}

proptest! {
    #[test]
    fn flows_of_a_pipe_are_as_defined_in_whatever_pieces_it_comes(
        mut packets in packets(),
        in_order: bool,
        idle in 1_i64..20,
        active in prop::option::of(1_i64..30),
        delay in 0_i64..5,
        pieces in prop::collection::vec(1_usize..3000, 1..5),
    ) {
        if in_order {
            packets.sort_by_key(|packet| packet.time_ns);
        }
        let second = 1_000_000_000;
        let mut plan = FlowPlan {
            idle_ns: Some(idle * second),
            active_ns: active.map(|seconds| seconds * second),
            ..plan(Path::new("pipe"))
        };
        plan.trace.delay_ns = Some(delay * second);
        let pieces: Vec<_> = pieces.into_iter().map(|length| (length, false)).collect();
        let flows = from_pipe(&packets, &plan, &pieces);
        prop_assert_eq!(&flows, &from_pipe(&packets, &plan, &[(usize::MAX, false)]));
        if !in_order {
            return Ok(());
        }
        // The flows are those of a file, except that idle flows have ended before the end of the
        // pipe.
        let mut listed: Vec<Plain> = flows.iter().map(plain).collect();
        listed.sort_by_key(|flow| (flow.start_ns, flow.number));
        let mut expected = defined(&packets, &plan);
        let agreed_ns = packets.len().checked_sub(4).map(|fourth| packets[fourth].time_ns);
        let passed_ns = agreed_ns.unwrap_or(i64::MIN).saturating_sub((idle + delay) * second);
        for (flow, listed) in expected.iter_mut().zip(&listed) {
            if flow.ended == Ended::Input && flow.end_ns < passed_ns {
                // A flow may be listed some time after it has ended.
                prop_assert!(listed.ended == Ended::Idle || flow.end_ns >= passed_ns - second);
                flow.ended = listed.ended;
            }
        }
        prop_assert_eq!(listed, expected);
    }
}

#[test]
fn flows_of_a_pipe_do_not_depend_on_when_its_bytes_come() {
    // Flows with one packet per 50 ms; some end after ten rounds.
    let packets: Vec<Packet> = (0..4000)
        .map(|number| Packet {
            time_ns: 1_000_000_000 + number * 1_000_000,
            hosts: ((number % 50) as u8, 200),
            protocol: 17,
            ports: ((number / 500) as u16 * u16::from(number % 3 == 0), 53),
            flags: 0,
            payload: 4,
        })
        .collect();
    let mut plan = FlowPlan { idle_ns: Some(200_000_000), ..plan(Path::new("pipe")) };
    plan.trace.delay_ns = Some(0);
    let fast = from_pipe(&packets, &plan, &[(usize::MAX, false)]);
    let ended = |ended| fast.iter().filter(|flow| flow.ended == ended).count();
    assert!(ended(Ended::Idle) > 50 && ended(Ended::Input) > 50);
    for pieces in [
        &[(100_000, false), (100_000, true)][..],
        &[(3000, false), (7, true), (50_000, false), (17, true), (50_001, true), (99_999, false)],
        &[(1, false)],
    ] {
        assert!(from_pipe(&packets, &plan, pieces) == fast, "{pieces:?}");
    }
}

/// Returns `flows` flows of two packets each, a millisecond apart. The second packets follow `lag`
/// flows later.
fn many(flows: usize, lag: usize) -> Vec<Packet> {
    let packet = |i: usize, step: usize| Packet {
        time_ns: (step as i64 + 1) * 1_000_000,
        hosts: ((i >> 16) as u8, 200),
        protocol: 17,
        ports: (i as u16, 53),
        flags: 0,
        payload: 4,
    };
    let mut packets = Vec::new();
    for step in 0..flows + lag {
        if step < flows {
            packets.push(packet(step, step));
        }
        if step >= lag {
            packets.push(packet(step - lag, step));
        }
    }
    packets
}

#[test]
fn a_full_table_ends_flows_early_and_loses_nothing() {
    let packets = many(100_000, 50_000);
    let file = capture(&packets);
    let small = FlowPlan { memory_bytes: 1 << 20, ..plan(file.path()) };
    let (flows_small, summary) = flows(&small);
    let early = summary.totals.ended.of(Ended::Memory);
    assert!(early > 90_000, "{early}");
    assert_eq!(flows_small.len() as u64, summary.totals.flows);
    let sum: u64 = flows_small.iter().map(FlowRecord::packets).sum();
    assert_eq!(sum, packets.len() as u64);
    let sum: u64 = flows_small.iter().map(FlowRecord::bytes).sum();
    assert_eq!(sum, packets.iter().map(|p| p.ip_bytes() as u64).sum::<u64>());
    let ordered = flows_small
        .windows(2)
        .all(|two| (two[0].start_ns, two[0].number) < (two[1].start_ns, two[1].number));
    assert!(ordered);
    // With enough memory no flow is cut.
    let (flows_large, summary) = flows(&plan(file.path()));
    assert_eq!((flows_large.len(), summary.totals.ended.of(Ended::Memory)), (100_000, 0));
    // The number of threads does not matter.
    let (again, _) = flows(&FlowPlan { trace: small.trace.clone().with_threads(4), ..small });
    assert_eq!(flows_small, again);
}

#[test]
fn flows_in_use_stay_when_the_table_is_full() {
    // One long flow among flows of one packet that fill the table many times.
    let mut packets = many(50_000, 0);
    packets.truncate(60_000);
    for (i, packet) in packets.iter_mut().enumerate().filter(|(i, _)| i % 100 == 0) {
        *packet = Packet {
            time_ns: packet.time_ns,
            hosts: (9, 9),
            protocol: 6,
            ports: (1, 2),
            flags: 1 << (i / 100 % 8),
            payload: 0,
        };
    }
    let file = capture(&packets);
    let (flows, summary) = flows(&FlowPlan { memory_bytes: 1 << 20, ..plan(file.path()) });
    assert!(summary.totals.ended.of(Ended::Memory) > 10_000);
    let conversations: Vec<&FlowRecord> = flows.iter().filter(|flow| flow.protocol == 6).collect();
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations[0].forward.packets, 600);
    assert_eq!(conversations[0].forward.tcp_flags, 0xff);
}

#[test]
fn what_has_passed_its_timeout_makes_room_without_being_early() {
    // A second packet after 300 ms, idle timeout 400 ms: at most 700 flows are alive at a time.
    let packets = many(60_000, 300);
    let file = capture(&packets);
    let plan = FlowPlan { idle_ns: Some(400_000_000), memory_bytes: 1 << 20, ..plan(file.path()) };
    let (flows, summary) = flows(&plan);
    assert_eq!(summary.totals.ended.of(Ended::Memory), 0);
    assert!(summary.totals.ended.of(Ended::Idle) > 50_000);
    assert_eq!(flows.len(), 60_000);
    assert!(flows.iter().all(|flow| flow.forward.packets == 2));
}

/// Collects the five-tuples.
#[derive(Default)]
struct Tuples(Vec<(Addresses, u8, (u16, u16))>);

impl FlowSink for Tuples {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.0.push((flow.addresses, flow.protocol, flow.ports));
        Ok(())
    }
}

#[test]
fn unique_flows_are_all_of_them_once_in_the_order_of_their_first_packets() {
    let packets = many(200_000, 1000);
    let file = capture(&packets);
    let mut seen = HashSet::new();
    let mut expected = Vec::new();
    for packet in &packets {
        let tuple = (packet.addresses(), packet.protocol, packet.ports());
        if seen.insert(tuple) {
            expected.push(tuple);
        }
    }
    let mut all = Tuples::default();
    let summary = list_unique(&plan(file.path()), &mut all, &()).expect("it runs");
    assert_eq!(all.0, expected);
    let unique = summary.uniqueness.expect("it is said");
    assert!(unique.exact && unique.missed == 0.0);

    // In memory for a few thousand flows the filter answers: some flows are missing, none is
    // listed twice.
    let small = FlowPlan { memory_bytes: 1 << 19, ..plan(file.path()) };
    let mut some = Tuples::default();
    let summary = list_unique(&small, &mut some, &()).expect("it runs");
    let printed: HashSet<_> = some.0.iter().collect();
    assert_eq!(printed.len(), some.0.len());
    assert!(some.0.iter().all(|tuple| seen.contains(tuple)));
    let missed = (expected.len() - some.0.len()) as f64;
    let unique = summary.uniqueness.expect("it is said");
    assert!(!unique.exact && missed > 0.0, "{missed} missed, {unique:?}");
    // The number of misses is random, in addition to the error of the count.
    let deviation = unique.std_error + missed.sqrt();
    assert!((unique.missed - missed).abs() < 5.0 * deviation, "{missed} missed, {unique:?}");
}

/// Packets, bytes, flags, first and last time by five-tuple, as etherparse reads the packets.
type Parsed = HashMap<(IpAddr, IpAddr, u8, u16, u16), (u64, u64, u8, i64, i64)>;

fn parsed(path: &Path) -> Parsed {
    let mut table = Parsed::new();
    let mut capture = Capture::open(path, InputFormat::Auto).expect("a capture");
    while let Some(batch) = capture.next_batch().expect("a sound capture") {
        let TraceBatch::Packets { bytes, packets } = batch else { panic!("packets") };
        for packet in packets {
            assert_eq!(packet.link, LinkType::ETHERNET);
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let Ok(sliced) = LaxSlicedPacket::from_ethernet(frame) else { panic!("{frame:x?}") };
            let (source, destination, protocol, length): (IpAddr, IpAddr, _, u64) =
                match &sliced.net {
                    Some(LaxNetSlice::Ipv4(ip)) => (
                        ip.header().source_addr().into(),
                        ip.header().destination_addr().into(),
                        ip.payload().ip_number.0,
                        ip.header().total_len().into(),
                    ),
                    Some(LaxNetSlice::Ipv6(ip)) => (
                        ip.header().source_addr().into(),
                        ip.header().destination_addr().into(),
                        ip.payload().ip_number.0,
                        u64::from(ip.header().payload_length()) + 40,
                    ),
                    _ => continue,
                };
            let (ports, flags) = match &sliced.transport {
                Some(TransportSlice::Tcp(tcp)) => {
                    ((tcp.source_port(), tcp.destination_port()), tcp.slice()[13])
                }
                Some(TransportSlice::Udp(udp)) => ((udp.source_port(), udp.destination_port()), 0),
                _ => ((0, 0), 0),
            };
            let key = (source, destination, protocol, ports.0, ports.1);
            let time = packet.time_ns;
            let row = table.entry(key).or_insert((0, 0, 0, time, time));
            row.0 += 1;
            row.1 += length;
            row.2 |= flags;
            row.3 = row.3.min(time);
            row.4 = row.4.max(time);
        }
    }
    table
}

#[test]
fn flows_of_own_captures_are_those_that_etherparse_sees() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    for name in ["generated.pcap", "netns-dns.pcap", "netns-web-loss.pcap"] {
        let path = folder.join(name);
        let expected = parsed(&path);
        let (listed, _) = flows(&plan(&path));
        let mut table = Parsed::new();
        for flow in &listed {
            let (source, destination): (IpAddr, IpAddr) = match flow.addresses {
                Addresses::V4 { source, destination } => (source.into(), destination.into()),
                Addresses::V6 { source, destination } => (source.into(), destination.into()),
            };
            let key = (source, destination, flow.protocol, flow.ports.0, flow.ports.1);
            let forward = flow.forward;
            let row =
                (forward.packets, forward.bytes, forward.tcp_flags, flow.start_ns, flow.end_ns);
            assert_eq!(table.insert(key, row), None, "{name}: {key:?} twice");
        }
        assert!(!table.is_empty());
        assert_eq!(table, expected, "{name}");
        // Both directions together have the same packets, and no more flows.
        let both = FlowPlan { bidirectional: true, ..plan(&path) };
        let (both, _) = flows(&both);
        assert!(both.len() < listed.len());
        let sum = |flows: &[FlowRecord]| -> (u64, u64) {
            let packets = flows.iter().map(FlowRecord::packets).sum();
            (packets, flows.iter().map(FlowRecord::bytes).sum())
        };
        assert_eq!(sum(&both), sum(&listed), "{name}");
    }
}
