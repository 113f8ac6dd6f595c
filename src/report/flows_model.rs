//! The columns of a flow, with their names here and elsewhere, and what stands around the flows.

use super::cell::{EpochSeconds, Kind, Seconds, Time, TimeOnly};
use super::column::{Columns, append, columns};
use super::count_model::{SKIPPED_DOC, tally};
use super::format::{Frame, Tail};
use super::heading::Heading;
use super::run_view::{ended, inputs_cell};
use super::selection::trace_columns;
use crate::decode::push_address;
use crate::flows::{Direction, Ended, EndedFlows, FlowOrder, FlowPlan, FlowRecord, FlowSummary};
use etherparse::IpNumber;
use std::net::{IpAddr, SocketAddr};

/// Letters of most flows between IPv4 addresses with ports: `192.0.2.14:55252 → 198.51.100.5:5301`.
const USUAL_ENDS: usize = 37;

/// Where there is room, with a name behind them.
const WIDE_ENDS: usize = 56;

/// Decimals of the second that people see.
const DECIMALS: usize = 6;

/// The tool whose names the fields have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FlowNames {
    /// This program.
    #[default]
    Flowsieve,
    /// Zeek's logs.
    Zeek,
    /// The Elastic Common Schema.
    Ecs,
}

/// Which fields there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FlowShape {
    /// Packets and bytes in one direction.
    Directed,
    /// In both.
    Bidirectional,
    /// Only the fields that are known from the first packet.
    Unique,
}

/// The parameters of a list of flows.
#[derive(Clone, Debug)]
pub struct FlowParameters {
    /// The request.
    pub plan: FlowPlan,
    /// Each flow once, when its first packet is seen.
    pub unique: bool,
    /// Memory, as the user gave it.
    pub memory_bytes: u64,
    /// Addresses are replaced by others.
    pub anonymized: bool,
    /// The tool whose names the fields have.
    pub names: FlowNames,
    /// The order of the list.
    pub order: FlowOrder,
    /// Most flows to list; `None` for all.
    pub most: Option<usize>,
}

impl FlowParameters {
    /// The parameters of a plan; `memory_bytes` as the user gave them.
    pub fn new(plan: &FlowPlan, memory_bytes: u64, unique: bool, names: FlowNames) -> Self {
        Self {
            plan: plan.clone(),
            unique,
            memory_bytes,
            anonymized: false,
            names,
            order: FlowOrder::Start,
            most: None,
        }
    }

    /// Which fields there are.
    pub const fn shape(&self) -> FlowShape {
        match (self.unique, self.plan.bidirectional) {
            (true, _) => FlowShape::Unique,
            (false, true) => FlowShape::Bidirectional,
            (false, false) => FlowShape::Directed,
        }
    }
}

/// The columns of the parameters.
pub(super) fn parameter_columns() -> Columns<FlowParameters> {
    columns! { field p: FlowParameters;
        bidirectional = p.plan.bidirectional, "both directions are one flow";
        unique = p.unique, "each flow once, when its first packet is seen";
        ..borrowed(trace_columns(), |p| &p.plan.trace);
        dns_ports = p.plan.trace.headers.dns_ports.clone(), "DNS ports besides 53";
        idle_ns = p.plan.idle_ns, "idle timeout";
        active_ns = p.plan.active_ns, "active timeout";
        memory_bytes = p.memory_bytes, "memory";
        anonymized = p.anonymized, "addresses are replaced ([privacy.md](privacy.md))";
        sort = p.order.name(), "order of the list: `start`, `bytes`, `packets` or `duration`";
        most = p.most, "flows listed at most (`-n`)";
    }
}

/// The bytes of all packets; `None` for those of logs without bytes.
pub(super) fn stated_total(summary: &FlowSummary) -> Option<u64> {
    let totals = &summary.totals;
    Some(totals.bytes).filter(|&bytes| bytes > 0 || totals.ip_packets == 0)
}

/// The bytes of a direction; `None` for packets of a log that has none. No packet has no bytes.
pub(super) const fn stated_bytes(direction: &Direction) -> Option<u64> {
    match direction.bytes {
        0 if direction.packets > 0 => None,
        bytes => Some(bytes),
    }
}

/// The columns of a flow.
pub(super) fn flow_columns(shape: FlowShape, names: FlowNames) -> Columns<FlowRecord> {
    let columns = columns! { inlined flow: FlowRecord;
        start_ns = Time(flow.start_ns), "time of the earliest packet",
            aliases(["ts", "event.start", "flowStartNanoseconds"]),
            heading(Heading::left(0, 27, "start").narrow(20, "start")), decimals(DECIMALS, 0);
        end_ns = Time(flow.end_ns), "time of the latest packet",
            aliases(["duration", "event.end", "flowEndNanoseconds"]),
            heading(Heading::right(1, 12, "seconds").gap(2).narrow(10, "seconds").drop_priority(2)),
            text(seconds);
        ..written("src", Kind::Address, false, |flow, text| {
            push_address(flow.addresses.ends().0, text);
            true
        }), "address of the sender of the first packet",
            aliases(["id.orig_h", "source.ip", "sourceIPv4Address or sourceIPv6Address"]);
        ..written("dst", Kind::Address, false, |flow, text| {
            push_address(flow.addresses.ends().1, text);
            true
        }), "address of its receiver", aliases([
            "id.resp_h",
            "destination.ip",
            "destinationIPv4Address or destinationIPv6Address",
        ]);
        src_port = flow.ports.0,
            "port of the sender (TCP, UDP, SCTP); 0 if there is none or it was not captured",
            aliases(["id.orig_p", "source.port", "sourceTransportPort"]);
        dst_port = flow.ports.1, "port of the receiver",
            aliases(["id.resp_p", "destination.port", "destinationTransportPort"]);
        proto = flow.protocol, "protocol number behind extension headers; Zeek: its name",
            aliases(["proto", "network.iana_number", "protocolIdentifier"]),
            heading(Heading::left(8, 5, "proto").gap(2).narrow(5, "proto")),
            text(|flow| protocol_name(flow.protocol));
    };
    let columns = match shape {
        FlowShape::Unique => columns.without("end_ns"),
        FlowShape::Directed => traffic_columns(columns),
        FlowShape::Bidirectional => both_ways_columns(columns),
    };
    let columns = columns! { inlined flow in columns;
        vlan = flow.vlan, "outermost VLAN tag of the first packet",
            aliases(["vlan", "network.vlan.id", "vlanId"]);
        // The column whose width varies most is the last of a line, so that the others stay aligned.
        domain = flow.domain_text(), "first query name: lower case, no final dot",
            aliases(["query", "dns.question.name", ""]),
            heading(Heading::left(9, 0, "flow").gap(2).narrow(USUAL_ENDS, "flow").min_width(WIDE_ENDS)),
            text(ends);
        ..written("community_id", Kind::Token, true, FlowRecord::push_community_id),
            "Community ID version 1, seed 0; for ICMP from the first packet",
            aliases(["community_id", "network.community_id", ""]);
        ended = flow.ended.name(), "why the flow ended (below)", aliases(["", "", "flowEndReason"]);
    };
    let has_end = shape != FlowShape::Unique;
    under_names(columns.only(|name| name != "ended" || has_end), names)
}

/// Returns the columns with another tool's names and types.
fn under_names(columns: Columns<FlowRecord>, names: FlowNames) -> Columns<FlowRecord> {
    match names {
        FlowNames::Flowsieve => columns,
        FlowNames::Zeek => columns
            .renamed(0)
            .replaced::<EpochSeconds>("ts", append(|flow: &FlowRecord| EpochSeconds(flow.start_ns)))
            .replaced::<Seconds>("duration", append(duration))
            .replaced::<String>("proto", append(|flow: &FlowRecord| protocol_name(flow.protocol))),
        FlowNames::Ecs => columns
            .renamed(1)
            .replaced::<TimeOnly>(
                "event.start",
                append(|flow: &FlowRecord| TimeOnly(flow.start_ns)),
            )
            .replaced::<TimeOnly>("event.end", append(|flow: &FlowRecord| TimeOnly(flow.end_ns))),
    }
}

/// Packets, bytes and flags of one direction.
fn traffic_columns(columns: Columns<FlowRecord>) -> Columns<FlowRecord> {
    columns! { inlined flow in columns;
        packets = flow.forward.packets, "IP packets",
            aliases(["orig_pkts", "source.packets", "packetDeltaCount"]),
            heading(Heading::right(2, 8, "packets").gap(2).narrow(7, "packets"));
        bytes = stated_bytes(&flow.forward),
            "bytes from the IP header on, as it states; where it states none, those captured",
            aliases(["orig_ip_bytes", "source.bytes", "octetDeltaCount"]),
            heading(Heading::right(3, 12, "bytes").gap(2).narrow(7, "bytes"));
        tcp_flags = flags(flow, &flow.forward), "union of the TCP flags",
            aliases(["", "", "tcpControlBits"]),
            heading(Heading::left(4, 6, "flags").gap(2).narrow(5, "flags").drop_priority(1)),
            text(|flow| letters(flow, &flow.forward));
    }
}

/// Packets, bytes and flags of both directions.
fn both_ways_columns(columns: Columns<FlowRecord>) -> Columns<FlowRecord> {
    columns! { inlined flow in columns;
        packets_fwd = flow.forward.packets, "IP packets in the direction of the first one",
            aliases(["orig_pkts", "source.packets", "packetDeltaCount"]),
            heading(Heading::right(2, 8, "packets→").gap(2).narrow(8, "packets→"));
        packets_rev = flow.reverse.packets, "IP packets in the other direction",
            aliases(["resp_pkts", "destination.packets", ""]),
            heading(Heading::right(3, 8, "←packets").gap(2).narrow(8, "←packets"));
        bytes_fwd = stated_bytes(&flow.forward), "bytes of the former",
            aliases(["orig_ip_bytes", "source.bytes", "octetDeltaCount"]),
            heading(Heading::right(4, 11, "bytes→").gap(2).narrow(9, "bytes→").drop_priority(3));
        bytes_rev = stated_bytes(&flow.reverse), "bytes of the latter",
            aliases(["resp_ip_bytes", "destination.bytes", ""]),
            heading(Heading::right(5, 11, "←bytes").gap(2).narrow(9, "←bytes").drop_priority(3));
        tcp_flags_fwd = flags(flow, &flow.forward), "TCP flags of the former",
            aliases(["", "", "tcpControlBits"]),
            heading(Heading::left(6, 6, "flags→").gap(2).narrow(6, "flags→").drop_priority(1)),
            text(|flow| letters(flow, &flow.forward));
        tcp_flags_rev = flags(flow, &flow.reverse), "TCP flags of the latter",
            heading(Heading::left(7, 6, "←flags").gap(2).narrow(6, "←flags").drop_priority(1)),
            text(|flow| letters(flow, &flow.reverse));
    }
}

fn flags(flow: &FlowRecord, direction: &Direction) -> Option<u8> {
    (flow.protocol == IpNumber::TCP.0).then_some(direction.tcp_flags)
}

/// One letter for each flag that is set: congestion window, echo, urgent, acknowledgement, push,
/// reset, synchronise, finish.
fn letters(flow: &FlowRecord, direction: &Direction) -> String {
    let flags = flags(flow, direction).filter(|_| direction.packets > 0);
    let bits = (0..8).rev().zip("CEUAPRSF".chars());
    bits.filter(|(bit, _)| flags.unwrap_or(0) >> bit & 1 == 1).map(|(_, letter)| letter).collect()
}

/// The exact time between first and last packet.
fn duration(flow: &FlowRecord) -> Seconds {
    Seconds(i128::from(flow.end_ns) - i128::from(flow.start_ns))
}

/// The time between first and last packet in words.
fn seconds(flow: &FlowRecord) -> String {
    match flow.end_ns.saturating_sub(flow.start_ns) {
        0 => "0".to_owned(),
        ns => format!("{:.DECIMALS$}", ns as f64 / 1e9),
    }
}

/// Returns the addresses and ports of both ends, the VLAN and the DNS name.
fn ends(flow: &FlowRecord) -> String {
    let (source, destination) = flow.addresses.ends();
    let arrow = if flow.reverse.packets > 0 { "↔" } else { "→" };
    // Two ports of 0 are none.
    let with_port = flow.ports != (0, 0);
    let end = |address: IpAddr, port| {
        if with_port { SocketAddr::new(address, port).to_string() } else { address.to_string() }
    };
    let (source, destination) = (end(source, flow.ports.0), end(destination, flow.ports.1));
    let vlan = flow.vlan.map(|vlan| format!("  vlan {vlan}"));
    let domain = flow.domain_text().map(|domain| format!("  {domain}"));
    let more = vlan.into_iter().chain(domain).collect::<String>();
    format!("{source} {arrow} {destination}{more}")
}

/// The name of a protocol in lower case, or its number if it has none.
pub(super) fn protocol_name(protocol: u8) -> String {
    match IpNumber(protocol) {
        // Their usual name differs from the registered ones.
        IpNumber::ICMP | IpNumber::IPV6_ICMP => "icmp".to_owned(),
        number => number.keyword_str().map_or_else(|| protocol.to_string(), str::to_lowercase),
    }
}

/// Flows by why they ended.
pub(super) fn ended_columns() -> Columns<EndedFlows> {
    let doc = |ended| match ended {
        Ended::Input => "there were no more packets",
        Ended::Idle => {
            "its next packet, or in a pipe the next of any flow, came later than `--idle`"
        }
        Ended::Active => "the next packet came later than `--active` after the first",
        Ended::Memory => "the memory was full, and the flow had been idle for long",
    };
    // By name, as they have always been.
    let mut all = Ended::ALL;
    all.sort_unstable_by_key(|ended| ended.name());
    all.into_iter().fold(Columns::default(), |columns, ended| {
        columns.inlined(ended.name(), move |counts: &EndedFlows| counts.of(ended)).doc(doc(ended))
    })
}

/// Counts over the run.
pub(super) fn total_columns() -> Columns<FlowSummary> {
    columns! { field summary: FlowSummary;
        packets = summary.totals.packets, "packets read";
        ip_packets = summary.totals.ip_packets, "those that are in flows";
        bytes = stated_total(summary), "their bytes from the IP header on";
        flows = summary.totals.flows, "flows, also those that `-n` leaves out";
        ..object("ended", ended_columns(), |summary| {
            summary.uniqueness.is_none().then_some(summary.totals.ended)
        }), "the same by why they ended";
        late = summary.totals.late,
            "flows whose first packet came later than `--delay` from a pipe: they and later ones may be parts of others";
        exact = summary.uniqueness.map(|unique| unique.exact),
            "with `--unique`: no flow is missing";
        missed = summary.uniqueness.map(|unique| unique.missed),
            "with `--unique`: flows expected to be missing";
        missed_std_error = summary.uniqueness.map(|unique| unique.std_error), "its standard error";
        dns_messages = summary.totals.dns_messages, "DNS messages with a question";
        ..ending(|summary| ended(&summary.inputs, summary.totals.interrupted));
        skipped = tally(&summary.totals.skipped), SKIPPED_DOC;
    }
}

/// Returns what the document has besides the flows.
pub(super) fn frame(parameters: &FlowParameters) -> Frame {
    Frame::new("flowsieve.flows/1", "flows")
        .in_zone(parameters.plan.trace.selection.zone)
        .with("parameters", parameter_columns().object_of(parameters))
}

/// Returns the sections behind the flows.
pub(super) fn tail(summary: &FlowSummary) -> Tail {
    vec![("inputs", inputs_cell(&summary.inputs)), ("totals", total_columns().object_of(summary))]
}
