//! The fields of a flow, with their names here and elsewhere; documented in `docs/output.md`.

use super::model::InputRow;
use super::number::time;
use crate::decode::Tunnel;
use crate::flows::{Ended, FlowPlan, FlowRecord, FlowSummary};
use etherparse::IpNumber;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Name and version of the document.
pub(super) const FLOWS_SCHEMA: &str = "flowsieve.flows/1";

/// How flows are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FlowFormat {
    /// For people.
    #[default]
    Table,
    /// A line a flow, with a header.
    Csv,
    /// One document.
    Json,
    /// An object a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

/// Whose names the fields have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FlowNames {
    /// Those of all results of this program.
    #[default]
    Flowsieve,
    /// Those of Zeek's logs.
    Zeek,
    /// Those of the Elastic Common Schema.
    Ecs,
}

/// Which fields there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FlowShape {
    /// Packets and bytes in one direction.
    Directed,
    /// In both.
    Bidirectional,
    /// What is known when the first packet was seen.
    Unique,
}

/// What a list of flows depends on, and how it is written.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FlowParameters {
    /// Both directions are one flow.
    pub bidirectional: bool,
    /// Each flow once, when its first packet is seen.
    pub unique: bool,
    /// Which IP header counts.
    pub tunnel: &'static str,
    /// DNS ports besides 53.
    pub dns_ports: Vec<u16>,
    /// Idle timeout; null for none.
    pub idle_ns: Option<i64>,
    /// Active timeout; null for none.
    pub active_ns: Option<i64>,
    /// Memory.
    pub memory_bytes: u64,
    /// Addresses are replaced by others.
    pub anonymized: bool,
    /// Whose names the fields have.
    #[serde(skip)]
    pub names: FlowNames,
}

impl FlowParameters {
    /// The parameters of a plan; `memory_bytes` as the user gave them.
    pub fn new(plan: &FlowPlan, memory_bytes: u64, unique: bool, names: FlowNames) -> Self {
        Self {
            bidirectional: plan.bidirectional,
            unique,
            tunnel: match plan.tunnel {
                Tunnel::Outer => "outer",
                Tunnel::Inner => "inner",
            },
            dns_ports: plan.dns_ports.clone(),
            idle_ns: plan.idle_ns,
            active_ns: plan.active_ns,
            memory_bytes,
            anonymized: false,
            names,
        }
    }

    /// Which fields there are.
    pub const fn shape(&self) -> FlowShape {
        match (self.unique, self.bidirectional) {
            (true, _) => FlowShape::Unique,
            (false, true) => FlowShape::Bidirectional,
            (false, false) => FlowShape::Directed,
        }
    }
}

/// A field of a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Field {
    Start,
    End,
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    Packets,
    Bytes,
    TcpFlags,
    PacketsBack,
    BytesBack,
    TcpFlagsBack,
    Vlan,
    Domain,
    CommunityId,
    Ended,
}

use Field::{
    Bytes, BytesBack, CommunityId, Destination, DestinationPort, Domain, End, Packets, PacketsBack,
    Protocol, Source, SourcePort, Start, TcpFlags, TcpFlagsBack, Vlan,
};

impl FlowShape {
    /// The fields, in order.
    pub(super) const fn fields(self) -> &'static [Field] {
        match self {
            Self::Directed => &[
                Start,
                End,
                Source,
                Destination,
                SourcePort,
                DestinationPort,
                Protocol,
                Packets,
                Bytes,
                TcpFlags,
                Vlan,
                Domain,
                CommunityId,
                Field::Ended,
            ],
            Self::Bidirectional => &[
                Start,
                End,
                Source,
                Destination,
                SourcePort,
                DestinationPort,
                Protocol,
                Packets,
                PacketsBack,
                Bytes,
                BytesBack,
                TcpFlags,
                TcpFlagsBack,
                Vlan,
                Domain,
                CommunityId,
                Field::Ended,
            ],
            Self::Unique => &[
                Start,
                Source,
                Destination,
                SourcePort,
                DestinationPort,
                Protocol,
                Vlan,
                Domain,
                CommunityId,
            ],
        }
    }

    /// The name of a field.
    pub(super) fn name(self, field: Field, names: FlowNames) -> &'static str {
        let (ours, zeek, ecs) = match field {
            Start => ("start_ns", "ts", "event.start"),
            End => ("end_ns", "duration", "event.end"),
            Source => ("src", "id.orig_h", "source.ip"),
            Destination => ("dst", "id.resp_h", "destination.ip"),
            SourcePort => ("src_port", "id.orig_p", "source.port"),
            DestinationPort => ("dst_port", "id.resp_p", "destination.port"),
            Protocol => ("proto", "proto", "network.iana_number"),
            Packets if self == Self::Bidirectional => {
                ("packets_fwd", "orig_pkts", "source.packets")
            }
            Packets => ("packets", "orig_pkts", "source.packets"),
            PacketsBack => ("packets_rev", "resp_pkts", "destination.packets"),
            Bytes if self == Self::Bidirectional => ("bytes_fwd", "orig_ip_bytes", "source.bytes"),
            Bytes => ("bytes", "orig_ip_bytes", "source.bytes"),
            BytesBack => ("bytes_rev", "resp_ip_bytes", "destination.bytes"),
            TcpFlags if self == Self::Bidirectional => {
                ("tcp_flags_fwd", "tcp_flags_fwd", "tcp_flags_fwd")
            }
            TcpFlags => ("tcp_flags", "tcp_flags", "tcp_flags"),
            TcpFlagsBack => ("tcp_flags_rev", "tcp_flags_rev", "tcp_flags_rev"),
            Vlan => ("vlan", "vlan", "network.vlan.id"),
            Domain => ("domain", "query", "dns.question.name"),
            CommunityId => ("community_id", "community_id", "network.community_id"),
            Field::Ended => ("ended", "ended", "ended"),
        };
        match names {
            FlowNames::Flowsieve => ours,
            FlowNames::Zeek => zeek,
            FlowNames::Ecs => ecs,
        }
    }
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Number(u64),
    Text(String),
    /// Nanoseconds since the epoch.
    Nanoseconds(i64),
    /// A time in nanoseconds since the epoch, or a duration, written in seconds.
    Seconds(i128),
}

impl Cell {
    fn number(number: Option<impl Into<u64>>) -> Self {
        number.map_or(Self::Null, |number| Self::Number(number.into()))
    }

    fn text(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }

    /// As it stands in a line of text; nothing for null.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
            Self::Nanoseconds(ns) => ns.to_string(),
            Self::Seconds(ns) => seconds(ns),
        }
    }
}

/// Nanoseconds as decimal seconds, exact.
fn seconds(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The value of a field of a flow, in the units that go with the names.
pub(super) fn cell(flow: &FlowRecord, field: Field, names: FlowNames) -> Cell {
    let is_tcp = flow.protocol == IpNumber::TCP.0;
    let (start, end) = (flow.start_ns, flow.end_ns);
    let (source, destination) = flow.addresses.ends();
    match (field, names) {
        (Start, FlowNames::Flowsieve) => Cell::Nanoseconds(start),
        (End, FlowNames::Flowsieve) => Cell::Nanoseconds(end),
        (Start, FlowNames::Zeek) => Cell::Seconds(start.into()),
        (End, FlowNames::Zeek) => Cell::Seconds(i128::from(end) - i128::from(start)),
        (Start, FlowNames::Ecs) => Cell::Text(time(start, 9)),
        (End, FlowNames::Ecs) => Cell::Text(time(end, 9)),
        (Source, _) => Cell::Text(source.to_string()),
        (Destination, _) => Cell::Text(destination.to_string()),
        (SourcePort, _) => Cell::Number(flow.ports.0.into()),
        (DestinationPort, _) => Cell::Number(flow.ports.1.into()),
        (Protocol, FlowNames::Zeek) => Cell::Text(protocol_name(flow.protocol)),
        (Protocol, _) => Cell::Number(flow.protocol.into()),
        (Packets, _) => Cell::Number(flow.forward.packets),
        (Bytes, _) => Cell::Number(flow.forward.bytes),
        (TcpFlags, _) => Cell::number(is_tcp.then_some(flow.forward.tcp_flags)),
        (PacketsBack, _) => Cell::Number(flow.reverse.packets),
        (BytesBack, _) => Cell::Number(flow.reverse.bytes),
        (TcpFlagsBack, _) => Cell::number(is_tcp.then_some(flow.reverse.tcp_flags)),
        (Vlan, _) => Cell::number(flow.vlan),
        (Domain, _) => Cell::text(flow.domain_text()),
        (CommunityId, _) => Cell::text(flow.community_id()),
        (Field::Ended, _) => Cell::Text(flow.ended.name().to_owned()),
    }
}

/// The name of a protocol in lower case, or its number if it has none.
pub(super) fn protocol_name(protocol: u8) -> String {
    match IpNumber(protocol) {
        // Those that everybody calls otherwise than its registered name.
        IpNumber::ICMP | IpNumber::IPV6_ICMP => "icmp".to_owned(),
        number => number
            .keyword_str()
            .map_or_else(|| protocol.to_string(), str::to_lowercase),
    }
}

/// A flow as an object.
pub(super) struct FlowRow<'a> {
    pub(super) flow: &'a FlowRecord,
    pub(super) shape: FlowShape,
    pub(super) names: FlowNames,
}

impl Serialize for FlowRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.shape.fields();
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for &field in fields {
            let name = self.shape.name(field, self.names);
            match cell(self.flow, field, self.names) {
                Cell::Null => map.serialize_entry(name, &())?,
                Cell::Number(number) => map.serialize_entry(name, &number)?,
                Cell::Text(text) => map.serialize_entry(name, &text)?,
                Cell::Nanoseconds(ns) => map.serialize_entry(name, &ns)?,
                Cell::Seconds(ns) => {
                    // Digit by digit: a float has no room for nanoseconds since 1970.
                    let number = RawValue::from_string(seconds(ns));
                    map.serialize_entry(name, &number.expect("decimal digits are a number"))?;
                }
            }
        }
        map.end()
    }
}

/// Inputs and totals.
#[derive(Debug, Serialize)]
pub(super) struct FlowSummaryRow {
    pub(super) inputs: Vec<InputRow>,
    pub(super) totals: FlowTotalsRow,
}

/// Counts over the run.
#[derive(Debug, Serialize)]
pub(super) struct FlowTotalsRow {
    packets: u64,
    ip_packets: u64,
    bytes: u64,
    flows: u64,
    ended: Option<BTreeMap<&'static str, u64>>,
    exact: Option<bool>,
    missed: Option<f64>,
    missed_std_error: Option<f64>,
    dns_messages: u64,
    interrupted: bool,
    skipped: BTreeMap<String, u64>,
}

impl From<&FlowSummary> for FlowSummaryRow {
    fn from(summary: &FlowSummary) -> Self {
        let totals = &summary.totals;
        let unique = summary.uniqueness;
        let ended = Ended::ALL.map(|ended| (ended.name(), totals.ended.of(ended)));
        let skipped = totals.skipped.iter();
        Self {
            inputs: summary.inputs.iter().map(InputRow::from).collect(),
            totals: FlowTotalsRow {
                packets: totals.packets,
                ip_packets: totals.ip_packets,
                bytes: totals.bytes,
                flows: totals.flows,
                ended: unique.is_none().then(|| ended.into()),
                exact: unique.map(|unique| unique.exact),
                missed: unique.map(|unique| unique.missed),
                missed_std_error: unique.map(|unique| unique.std_error),
                dns_messages: totals.dns_messages,
                interrupted: totals.interrupted,
                skipped: skipped
                    .map(|(skip, &count)| (skip.name().into_owned(), count))
                    .collect(),
            },
        }
    }
}
