//! Compares exact counts with those of an independent tool. The head of `MANIFEST.tsv` defines the
//! figures.

use crate::library::common;
use crate::manifest::Manifest;
use flowsieve::decode::{Addresses, Headers, Tunnel};
use flowsieve::elements::ElementKind;
use flowsieve::flows::{Direction, DnsRecord, FlowPlan, FlowRecord, FlowSink, FlowSummary, list};
use flowsieve::pipeline::{Align, CountPlan, Slicing};
use flowsieve::plan::TracePlan;
use flowsieve::trace::InputFormat;
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// The figures of one file, measured or from the manifest.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Figures {
    packets: u64,
    ip_packets: u64,
    pairs_outer: u64,
    pairs_inner: u64,
    tuples5_outer: u64,
    dns_triples: u64,
    dns_query_triples: u64,
}

impl Figures {
    fn each(&self) -> [(&'static str, u64); 7] {
        [
            ("packets", self.packets),
            ("ip_packets", self.ip_packets),
            ("pairs_outer", self.pairs_outer),
            ("pairs_inner", self.pairs_inner),
            ("tuples5_outer", self.tuples5_outer),
            ("dns_triples", self.dns_triples),
            ("dns_query_triples", self.dns_query_triples),
        ]
    }
}

/// A file, its figures in the manifest and here, and the reason why those here are right.
type Difference = (&'static str, &'static [(&'static str, u64, u64)], &'static str);

const DIFFERENCES: &[Difference] = &[
    (
        "campus/zeek-cisco-fabric-path.pcap",
        &[("ip_packets", 120, 128), ("tuples5_outer", 80, 64)],
        "tshark takes the last four bytes of the frame inside FabricPath for a checksum, and so \
         misses the end of IPv6 and SCTP headers that stand there whole; it finds addresses in 128 \
         packets, as here",
    ),
    (
        "dns/nsd-live-ignored.pcap.xz",
        &[("dns_triples", 1, 0), ("dns_query_triples", 1, 0)],
        "what has more than 255 bytes is no name; tshark shows it as <Name too long>",
    ),
    (
        "dns/nsd-live-ns.pcap.xz",
        &[("dns_triples", 20190, 20175), ("dns_query_triples", 10096, 10088)],
        "14 triples (7 of queries) of the manifest come from splitting names at the vertical bar \
         that they contain, and 1 from what has more than 255 bytes; tshark's own output has 20176 \
         triples, the name that is too long among them",
    ),
    (
        "dns/pcapplusplus-DnsEdit.pcap",
        &[("dns_triples", 7, 6), ("dns_query_triples", 6, 5)],
        "the first question counts; the first message has two",
    ),
    (
        "encap/tcpdump-edsa.pcap",
        &[
            ("packets", 0, 10),
            ("ip_packets", 0, 6),
            ("pairs_outer", 0, 2),
            ("pairs_inner", 0, 2),
            ("tuples5_outer", 0, 2),
        ],
        "tshark 4.0 does not know the link type; behind the switch's tag are ordinary ARP and IPv4 \
         packets",
    ),
    (
        "encap/zeek-ipv6-mobility-dst-opts.pcap",
        &[("tuples5_outer", 1, 2)],
        "the ports of the second packet stand beyond the end that its IPv6 header states; tshark \
         shows none",
    ),
    (
        "formats/wireshark-wireguard-ping-tcp-dsb.pcapng",
        &[("pairs_inner", 8, 2), ("dns_triples", 2, 0), ("dns_query_triples", 1, 0)],
        "tshark decrypts WireGuard with keys that the capture file brings along",
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        &[
            ("ip_packets", 328, 329),
            ("pairs_outer", 58, 59),
            ("pairs_inner", 58, 59),
            ("tuples5_outer", 89, 90),
        ],
        "packet 238 has IPv6 behind the EtherType of IPv4; tshark reads it, too, and so finds 329 \
         packets and 59 pairs",
    ),
    (
        "malformed/ndpi-malformed_dns.pcap",
        &[("dns_triples", 2, 1)],
        "the first question counts; the second, in the responses, has a name that is too long",
    ),
    (
        "malformed/pcapplusplus-clusterfuzz-testcase-FuzzTarget-5188876846235648",
        &[("dns_triples", 2, 1)],
        "the first question counts; the names of the others go round in circles",
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        &[
            ("ip_packets", 1783, 1785),
            ("pairs_outer", 447, 448),
            ("pairs_inner", 447, 448),
            ("tuples5_outer", 447, 448),
        ],
        "packets 417 and 427 end within their IPv4 options: tshark, looking for a source route, \
         finds no destination; the header's own is there",
    ),
    (
        "malformed/tcpdump-juniper_es_oobr.pcap",
        &[("packets", 0, 1)],
        "tshark 4.0 opens no file of this link type; the record is sound, and is counted as a packet \
         that cannot be decoded",
    ),
    (
        "malformed/tcpdump-juniper_monitor_invalid_cookie_length.pcap",
        &[("packets", 0, 1)],
        "as above",
    ),
];

/// Files in formats that are refused with a message that names the format: snoop, and DAG records
/// from before ERF, which have neither magic number nor type.
const REFUSED: [&str; 3] = [
    "formats/libtrace-legacy-atm.gz",
    "formats/libtrace-legacy-eth.gz",
    "formats/tcptrace-all.snoop.gz",
];

/// Files with DNS on other ports, and these ports.
const DNS_PORTS: &[(&str, &[u16])] = &[
    (
        "campus/ndpi-dnscrypt-v1-and-resolver-pings.pcap",
        &[443, 465, 553, 1053, 1443, 2053, 4343, 8443],
    ),
    ("malformed/suricata-dns__dns-incomplete__input.pcap", &[5353]),
];

/// Flows, and distinct (source, destination, name) of DNS messages in the direction of the packets.
#[derive(Debug, Default)]
struct FlowFigures {
    flows: u64,
    dns_triples: HashSet<(Addresses, Vec<u8>)>,
}

impl FlowSink for FlowFigures {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        assert!(flow.forward.packets > 0 && flow.reverse == Direction::default());
        self.flows += 1;
        Ok(())
    }

    fn dns(&mut self, message: &DnsRecord<'_>) -> io::Result<()> {
        let addresses =
            if message.is_response { message.addresses.reversed() } else { message.addresses };
        self.dns_triples.insert((addresses, message.name.to_vec()));
        Ok(())
    }
}

/// Returns the same figures from the list of flows.
fn measure_flows(path: &Path, name: &str) -> (FlowFigures, FlowSummary) {
    let is_tsh = path.extension().is_some_and(|ending| ending == "tsh");
    let dns_ports = DNS_PORTS.iter().find(|(file, _)| *file == name);
    let plan = FlowPlan {
        trace: TracePlan {
            input_format: if is_tsh { InputFormat::Tsh } else { InputFormat::Auto },
            headers: Headers {
                dns_ports: dns_ports.map_or(Vec::new(), |(_, ports)| ports.to_vec()),
                ..Headers::default()
            },
            threads: 1,
            ..TracePlan::new([path])
        },
        ..FlowPlan::default()
    };
    let mut figures = FlowFigures::default();
    let summary = list(&plan, &mut figures, &()).expect("the plan holds");
    (figures, summary)
}

/// Returns the measured figures, and the reason if the file was not read to its end.
fn measure(path: &Path, name: &str) -> (Figures, Option<String>) {
    let one = |kind, change: &dyn Fn(&mut CountPlan)| {
        let mut plan = common::plan(&[path.to_owned()], kind);
        plan.slicing = Slicing { width_ns: None, align: Align::Epoch };
        plan.counter = None;
        if path.extension().is_some_and(|ending| ending == "tsh") {
            plan.trace.input_format = InputFormat::Tsh;
        }
        if let Some((_, ports)) = DNS_PORTS.iter().find(|(file, _)| *file == name) {
            plan.trace.headers.dns_ports = ports.to_vec();
        }
        change(&mut plan);
        let (slices, summary) = common::run(&plan);
        let exact: u64 = slices.iter().map(|slice| slice.exact.expect("within the limit")).sum();
        (exact, summary)
    };
    let (pairs_outer, summary) = one(ElementKind::HOST_PAIR, &|_| {});
    let error = summary.inputs[0].error.as_ref().map(ToString::to_string);
    let figures = Figures {
        packets: summary.totals.packets,
        ip_packets: summary.totals.ip_packets,
        pairs_outer,
        pairs_inner: one(ElementKind::HOST_PAIR, &|plan| plan.trace.headers.tunnel = Tunnel::Inner)
            .0,
        tuples5_outer: one(ElementKind::FLOW, &|_| {}).0,
        dns_triples: one(ElementKind::DNS, &|_| {}).0,
        dns_query_triples: one(ElementKind::DNS, &|plan| plan.rule.queries_only = true).0,
    };
    (figures, error)
}

fn stated(manifest: &Manifest, file: &str) -> Figures {
    let number = |column| manifest.number(file, column);
    Figures {
        packets: number("packets"),
        ip_packets: number("ip_packets"),
        pairs_outer: number("pairs_outer"),
        pairs_inner: number("pairs_inner"),
        tuples5_outer: number("tuples5_outer"),
        dns_triples: number("dns_triples"),
        dns_query_triples: number("dns_query_triples"),
    }
}

pub(crate) fn every_capture_has_the_counts_of_the_independent_tool(folder: &Path) {
    let manifest = Manifest::read(folder);
    let mut problems = Vec::new();
    for name in manifest.files() {
        let stated = stated(&manifest, name);
        let (ours, error) = measure(&folder.join(name), name);
        if REFUSED.contains(&name) {
            assert!(error.is_some() && ours.packets == 0, "{name}");
            continue;
        }
        let (flows, summary) = measure_flows(&folder.join(name), name);
        let listed = Figures {
            packets: summary.totals.packets,
            ip_packets: summary.totals.ip_packets,
            tuples5_outer: flows.flows,
            dns_triples: flows.dns_triples.len() as u64,
            ..ours.clone()
        };
        if listed != ours {
            problems.push(format!("{name}: counted {ours:?}, listed {listed:?}"));
        }
        let differences = DIFFERENCES.iter().find(|(file, ..)| *file == name);
        for ((figure, stated), (_, ours)) in stated.each().into_iter().zip(ours.each()) {
            let known = differences
                .and_then(|(_, figures, _)| figures.iter().find(|known| known.0 == figure));
            let expected = known.map_or((stated, stated), |known| (known.1, known.2));
            if (stated, ours) != expected {
                problems.push(format!(
                    "{name}: {figure} {ours}, the manifest has {stated}; {}",
                    error.as_deref().unwrap_or_default()
                ));
            }
        }
    }
    for (file, ..) in DIFFERENCES {
        assert!(manifest.files().any(|name| name == *file), "{file} is not in the manifest");
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
