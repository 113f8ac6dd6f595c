//! The columns of exported packets and elements, and what stands around them.

use super::batch::Value;
use super::cell::{EpochSeconds, Kind, Time, TimeOnly};
use super::column::{Append, Columns};
use super::count_model::tally;
use super::flows_model::{FlowNames, protocol_name};
use super::inputs::inputs_cell;
use super::number::grouped;
use super::rows::{Frame, Tail};
use super::selection::selection_columns;
use crate::decode::{rcode_name, type_name};
use crate::elements::{Attribute, ElementKind};
use crate::export::{ExportPlan, ExportRows, ExportSummary, ExportWhat, Texts};
use crate::pipeline::{InputResult, Slicing};
use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

/// What an export depends on, and how it is written.
#[derive(Clone, Debug)]
pub struct ExportParameters {
    /// What is exported.
    pub plan: ExportPlan,
    /// Whose names the fields have.
    pub names: FlowNames,
}

impl ExportParameters {
    /// The parameters of a plan.
    pub fn new(plan: &ExportPlan, names: FlowNames) -> Self {
        Self { plan: plan.clone(), names }
    }

    /// What an element is; `None` if each row is a packet.
    pub(super) const fn kind(&self) -> Option<ElementKind> {
        match self.plan.what {
            ExportWhat::Elements { kind, .. } => Some(kind),
            ExportWhat::Packets => None,
        }
    }

    /// When elements are written; `None` if each row is a packet.
    const fn slicing(&self) -> Option<Slicing> {
        match self.plan.what {
            ExportWhat::Elements { slicing, .. } => Some(slicing),
            ExportWhat::Packets => None,
        }
    }
}

/// What the rows depend on.
pub(super) fn parameter_columns() -> Columns<ExportParameters> {
    Columns::default()
        .field("element", |p: &ExportParameters| p.kind().map(|kind| kind.name().into_owned()))
        .doc("as for `count`; null with `--all`, where a row is a packet")
        .field("undirected", |p| {
            matches!(p.plan.what, ExportWhat::Elements { undirected: true, .. })
        })
        .doc("both directions are one element")
        .field("queries_only", |p| {
            matches!(p.plan.what, ExportWhat::Elements { queries_only: true, .. })
        })
        .doc("count DNS queries only")
        .field("tunnel", |p| p.plan.trace.headers.tunnel.name())
        .doc("`outer` or `inner`: which IP header counts")
        .part(None, &selection_columns(), |p| Some(p.plan.trace.selection.clone()))
        .field("dns_ports", |p| p.plan.trace.headers.dns_ports.clone())
        .doc("DNS ports besides 53")
        .field("slice_ns", |p| p.slicing()?.width_ns)
        .doc("width of a slice; null for one slice over everything")
        .field("align", |p| Some(p.slicing()?.align.name()))
        .doc("`epoch` or `first`: where slices begin")
        .field("memory_bytes", |p| match p.plan.what {
            ExportWhat::Elements { memory_bytes, .. } => Some(memory_bytes),
            ExportWhat::Packets => None,
        })
        .doc("memory of the elements of open slices")
}

/// Rows of an export, which are appended to a batch together.
#[cfg_attr(not(feature = "arrow"), expect(unreachable_pub, reason = "record batches name it"))]
#[derive(Debug, Default)]
pub struct ExportPart {
    rows: ExportRows,
    range: Range<usize>,
}

/// Rows behind which the bytes of a batch's texts are looked at: parts of rows end at a multiple.
pub(super) const CHECKED_ROWS: usize = 256;

impl ExportPart {
    /// Hands on these rows in parts; `before` rows of the batch come before them.
    pub(super) fn each<E>(
        &mut self,
        rows: &mut ExportRows,
        range: Range<usize>,
        before: usize,
        mut take: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        swap(&mut self.rows, rows);
        let (mut next, mut place, mut taken) = (range.start, before, Ok(()));
        while next < range.end && taken.is_ok() {
            let end = range.end.min(next + CHECKED_ROWS - place % CHECKED_ROWS);
            self.range = next..end;
            taken = take(self);
            place += end - next;
            next = end;
        }
        swap(&mut self.rows, rows);
        taken
    }
}

/// Returns what appends this value of each row.
fn each_row<T: Value>(
    value: impl Fn(&ExportRows, usize) -> T + Send + Sync + 'static,
) -> Append<ExportPart> {
    Arc::new(move |parts, array| {
        for part in parts {
            part.range.clone().for_each(|row| value(&part.rows, row).append_to(array));
        }
    })
}

impl Columns<ExportPart> {
    fn values<T: Value + Copy + 'static>(
        self,
        name: &'static str,
        values: fn(&ExportRows) -> &Vec<T>,
    ) -> Self {
        let append: Append<ExportPart> = Arc::new(move |parts, array| {
            for part in parts {
                let values = &values(&part.rows)[part.range.clone()];
                for value in values {
                    value.append_to(array);
                }
            }
        });
        self.column(name, T::kind(), T::NULLABLE, append)
    }

    fn texts(
        self,
        name: &'static str,
        kind: Kind,
        nullable: bool,
        texts: fn(&ExportRows) -> &Texts,
    ) -> Self {
        let append: Append<ExportPart> = Arc::new(move |parts, array| {
            for part in parts {
                let texts = texts(&part.rows);
                part.range.clone().for_each(|row| match texts.get(row) {
                    Some(text) => array.push_text(text),
                    None => array.push_null(),
                });
            }
        });
        self.column(name, kind, nullable, append)
    }
}

/// The columns of a row: of an element of this kind, or of a packet.
pub(super) fn export_columns(kind: Option<ElementKind>, names: FlowNames) -> Columns<ExportPart> {
    let has = |attribute| kind.is_none_or(|kind| kind.field(attribute).is_some());
    let is_flow = kind.is_none_or(|kind| kind == ElementKind::FLOW);
    let has_dns = is_flow || kind.is_some_and(|kind| kind.has_name());
    let mut columns = Columns::default()
        .column("start_ns", Time::kind(), false, each_row(|rows, row| Time(rows.start_ns[row])))
        .doc("time of the packet; of an element's earliest packet in the slice")
        .aliases(["ts", "event.start", "flowStartNanoseconds"]);
    if has(Attribute::Source) {
        columns = columns
            .texts("src", Kind::Address, false, |rows| &rows.src)
            .doc("address of the sender of the first packet")
            .aliases(["id.orig_h", "source.ip", "sourceIPv4Address or sourceIPv6Address"]);
    }
    if has(Attribute::Destination) {
        columns = columns
            .texts("dst", Kind::Address, false, |rows| &rows.dst)
            .doc("address of its receiver")
            .aliases([
                "id.resp_h",
                "destination.ip",
                "destinationIPv4Address or destinationIPv6Address",
            ]);
    }
    if has(Attribute::SourcePort) {
        columns = columns
            .values("src_port", |rows| &rows.src_port)
            .doc("port of the sender (TCP, UDP, SCTP); 0 if there is none or it was not captured")
            .aliases(["id.orig_p", "source.port", "sourceTransportPort"]);
    }
    if has(Attribute::DestinationPort) {
        columns = columns
            .values("dst_port", |rows| &rows.dst_port)
            .doc("port of the receiver")
            .aliases(["id.resp_p", "destination.port", "destinationTransportPort"]);
    }
    if has(Attribute::Protocol) {
        columns = columns
            .values("proto", |rows| &rows.proto)
            .doc("protocol number behind extension headers; Zeek: its name")
            .aliases(["proto", "network.iana_number", "protocolIdentifier"]);
    }
    if kind.is_some() {
        columns = columns
            .values("packets", |rows| &rows.packets)
            .doc("not with `--all`: the element's packets in the slice")
            .aliases(["orig_pkts", "source.packets", "packetDeltaCount"]);
    }
    columns = columns
        .values("bytes", |rows| &rows.bytes)
        .doc("bytes from the IP header on, as it states; where it states none, those captured")
        .aliases(["orig_ip_bytes", "source.bytes", "octetDeltaCount"]);
    if is_flow {
        columns = columns
            .values("tcp_flags", |rows| &rows.tcp_flags)
            .doc("union of the TCP flags")
            .aliases(["", "", "tcpControlBits"]);
    }
    if is_flow || has(Attribute::Vlan) {
        columns = columns
            .values("vlan", |rows| &rows.vlan)
            .doc("outermost VLAN tag of the first packet")
            .aliases(["vlan", "network.vlan.id", "vlanId"]);
    }
    if has_dns {
        columns = columns
            .texts("domain", Kind::Text, true, |rows| &rows.domain)
            .doc("first query name: lower case, no final dot")
            .aliases(["query", "dns.question.name", ""])
            .values("dns_type", |rows| &rows.dns_type)
            .doc("type of that question: 1 is A, 28 is AAAA; ECS has its name, and Zeek also `qtype_name`")
            .aliases(["qtype", "dns.question.type", ""])
            .values("dns_rcode", |rows| &rows.dns_rcode)
            .doc("response code of that message: 3 is no such domain; ECS has its name, and Zeek also `rcode_name`")
            .aliases(["rcode", "dns.response_code", ""]);
    }
    if has_dns && names == FlowNames::Zeek {
        columns = columns.column("qtype_name", Kind::Text, true, each_row(dns_type_name)).column(
            "rcode_name",
            Kind::Text,
            true,
            each_row(dns_rcode_name),
        );
    }
    if is_flow {
        columns = columns
            .texts("community_id", Kind::Token, true, |rows| &rows.community_id)
            .doc("Community ID version 1, seed 0; for ICMP from the first packet")
            .aliases(["community_id", "network.community_id", ""]);
    }
    if kind.is_some() {
        columns = columns
            .column("ended", Kind::Word, false, each_row(|rows, row| rows.left[row].name()))
            .doc("not with `--all`: `slice`: the row has all packets of the element in its slice; `memory`: memory was full, and another row may follow; `late`: a late packet from a pipe");
    }
    under_names(columns, names)
}

/// Returns the columns with another tool's names and types.
fn under_names(columns: Columns<ExportPart>, names: FlowNames) -> Columns<ExportPart> {
    match names {
        FlowNames::Flowsieve => columns,
        FlowNames::Zeek => columns
            .renamed(0)
            .replaced::<EpochSeconds>("ts", each_row(|rows, row| EpochSeconds(rows.start_ns[row])))
            .replaced::<String>("proto", each_row(|rows, row| protocol_name(rows.proto[row]))),
        FlowNames::Ecs => columns
            .renamed(1)
            .replaced::<TimeOnly>("event.start", each_row(|rows, row| TimeOnly(rows.start_ns[row])))
            .replaced::<String>("dns.question.type", each_row(dns_type_name))
            .replaced::<String>("dns.response_code", each_row(dns_rcode_name)),
    }
}

fn dns_type_name(rows: &ExportRows, row: usize) -> Option<String> {
    rows.dns_type[row].map(type_name)
}

fn dns_rcode_name(rows: &ExportRows, row: usize) -> Option<String> {
    rows.dns_rcode[row].map(rcode_name)
}

/// Counts over the run.
pub(super) fn total_columns() -> Columns<ExportSummary> {
    Columns::default()
        .field("packets", |summary: &ExportSummary| summary.totals.packets)
        .doc("packets read")
        .field("rows", |summary| summary.totals.rows)
        .doc("rows written")
        .field("row_packets", |summary| summary.totals.row_packets)
        .doc("packets in the rows")
        .field("bytes", |summary| summary.totals.bytes)
        .doc("their bytes from the IP header on")
        .field("slices", |summary| summary.totals.slices)
        .doc("slices with elements")
        .field("early", |summary| summary.totals.early)
        .doc("rows written before their slice was closed, because the memory was full")
        .field("late", |summary| summary.totals.late)
        .doc("rows of late packets from a pipe")
        .ending(
            |summary| summary.totals.interrupted,
            |summary| InputResult::all_read(&summary.inputs, summary.totals.interrupted),
        )
        .field("skipped", |summary| tally(&summary.totals.skipped))
        .doc("skipped packets by [reason](#reasons-without-an-element)")
}

/// What is not as it would be with more memory, or with packets in order, a sentence each.
pub fn export_shortcomings(summary: &ExportSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    let (early, late) = (summary.totals.early, summary.totals.late);
    let counted = |number: u64, what: &str, verb: [&str; 2]| match number {
        1 => format!("1 {what} {}", verb[0]),
        _ => format!("{} {what}s {}", grouped(number), verb[1]),
    };
    if early > 0 {
        sentences.push(format!(
            "{} written early because the memory was full, so an element may have several rows; raise it with --memory",
            counted(early, "row", ["was", "were"])
        ));
    }
    if late > 0 {
        sentences.push(format!(
            "{} late, after the slice was closed: each has a row of its own; from files, which can be read twice, each element has one",
            counted(late, "packet", ["came", "came"])
        ));
    }
    sentences
}

/// Returns what the document has besides the rows.
pub(super) fn frame(parameters: &ExportParameters) -> Frame {
    Frame::new("flowsieve.export/1", "rows")
        .in_zone(parameters.plan.trace.selection.zone)
        .with("parameters", parameter_columns().object_of(parameters))
}

/// Returns the sections behind the rows.
pub(super) fn tail(summary: &ExportSummary) -> Tail {
    vec![("inputs", inputs_cell(&summary.inputs)), ("totals", total_columns().object_of(summary))]
}
