//! The columns of exported packets and elements, and what stands around them.

use super::batch::Value;
use super::cell::{EpochSeconds, Kind, Time, TimeOnly};
use super::column::{Append, Columns, columns};
use super::count_model::{SKIPPED_DOC, tally};
use super::flows_model::{FlowNames, FlowShape, flow_columns, protocol_name};
use super::format::{Frame, Tail};
use super::number::some;
use super::run_view::{ended, inputs_cell, reasons};
use super::selection::trace_columns;
use crate::decode::{rcode_name, type_name};
use crate::elements::{Attribute, ElementKind};
use crate::export::{ExportPlan, ExportRows, ExportSummary, ExportWhat, Texts};
use crate::pipeline::Slicing;
use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

/// The parameters of an export.
#[derive(Clone, Debug)]
pub struct ExportParameters {
    /// The request.
    pub plan: ExportPlan,
    /// The tool whose names the fields have.
    pub names: FlowNames,
}

impl ExportParameters {
    /// The parameters of a plan.
    pub fn new(plan: &ExportPlan, names: FlowNames) -> Self {
        Self { plan: plan.clone(), names }
    }

    /// Returns the element kind, or `None` if each row is a packet.
    pub(super) const fn kind(&self) -> Option<ElementKind> {
        let ExportWhat::Elements { kind, .. } = self.plan.what else { return None };
        Some(kind)
    }

    /// Returns the slicing, or `None` if each row is a packet.
    const fn slicing(&self) -> Option<Slicing> {
        let ExportWhat::Elements { slicing, .. } = self.plan.what else { return None };
        Some(slicing)
    }
}

/// The columns of the parameters.
pub(super) fn parameter_columns() -> Columns<ExportParameters> {
    columns! { field p: ExportParameters;
        element = p.kind().map(|kind| kind.name().into_owned()),
            "as for `count`; null with `--all`, where a row is a packet";
        undirected = matches!(p.plan.what, ExportWhat::Elements { undirected: true, .. }),
            "both directions are one element";
        queries_only = matches!(p.plan.what, ExportWhat::Elements { queries_only: true, .. }),
            "count DNS queries only";
        ..borrowed(trace_columns(), |p| &p.plan.trace);
        dns_ports = p.plan.trace.headers.dns_ports.clone(), "DNS ports besides 53";
        slice_ns = p.slicing()?.width_ns, "width of a slice; null for one slice over everything";
        align = Some(p.slicing()?.align.name()), "`epoch` or `first`: where slices begin";
        memory_bytes = match p.plan.what {
            ExportWhat::Elements { memory_bytes, .. } => Some(memory_bytes),
            ExportWhat::Packets => None,
        }, "memory of the elements of open slices";
    }
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
            T::append_all(part.range.clone().map(|row| Some(value(&part.rows, row))), array);
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
                T::append_all(values.iter().copied().map(Some), array);
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
                let (all, ends, missing) = texts(&part.rows).part(part.range.clone());
                array.push_texts(all, ends, missing);
            }
        });
        self.column(name, kind, nullable, append)
    }
}

/// The columns of a row: of an element of this kind, or of a packet. Most are those of a flow.
pub(super) fn export_columns(kind: Option<ElementKind>, names: FlowNames) -> Columns<ExportPart> {
    let columns = columns! { field part: ExportPart;
        ..column("start_ns", Time::kind(), false, each_row(|rows, row| Time(rows.start_ns[row]))),
            "time of the packet; of an element's earliest packet in the slice",
            aliases(["ts", "event.start", "flowStartNanoseconds"]);
        ..texts("src", Kind::Address, false, |rows| &rows.src);
        ..texts("dst", Kind::Address, false, |rows| &rows.dst);
        ..values("src_port", |rows| &rows.src_port);
        ..values("dst_port", |rows| &rows.dst_port);
        ..values("proto", |rows| &rows.proto);
        ..values("packets", |rows| &rows.packets),
            "not with `--all`: the element's packets in the slice",
            aliases(["orig_pkts", "source.packets", "packetDeltaCount"]);
        ..values("bytes", |rows| &rows.bytes);
        ..values("tcp_flags", |rows| &rows.tcp_flags);
        ..values("vlan", |rows| &rows.vlan);
        ..texts("domain", Kind::Text, true, |rows| &rows.domain);
        ..values("dns_type", |rows| &rows.dns_type),
            "type of that question: 1 is A, 28 is AAAA; ECS has its name, and Zeek also `qtype_name`",
            aliases(["qtype", "dns.question.type", ""]);
        ..values("dns_rcode", |rows| &rows.dns_rcode),
            "response code of that message: 3 is no such domain; ECS has its name, and Zeek also `rcode_name`",
            aliases(["rcode", "dns.response_code", ""]);
        ..column("qtype_name", Kind::Text, true, each_row(dns_type_name));
        ..column("rcode_name", Kind::Text, true, each_row(dns_rcode_name));
        ..texts("community_id", Kind::Token, true, |rows| &rows.community_id);
        ..column("ended", Kind::Word, false, each_row(|rows, row| rows.left[row].name())),
            "not with `--all`: `slice`: the row has all packets of the element in its slice; `memory`: memory was full, and another row may follow; `late`: a late packet from a pipe";
    };
    let has = |attribute| kind.is_none_or(|kind| kind.field(attribute).is_some());
    let is_flow = kind.is_none_or(|kind| kind == ElementKind::FLOW);
    let has_dns = is_flow || kind.is_some_and(|kind| kind.has_name());
    let columns = columns.only(|name| match name {
        "src" => has(Attribute::Source),
        "dst" => has(Attribute::Destination),
        "src_port" => has(Attribute::SourcePort),
        "dst_port" => has(Attribute::DestinationPort),
        "proto" => has(Attribute::Protocol),
        "packets" | "ended" => kind.is_some(),
        "tcp_flags" | "community_id" => is_flow,
        "vlan" => is_flow || has(Attribute::Vlan),
        "domain" | "dns_type" | "dns_rcode" => has_dns,
        "qtype_name" | "rcode_name" => has_dns && names == FlowNames::Zeek,
        _ => true,
    });
    let flows = flow_columns(FlowShape::Directed, FlowNames::Flowsieve);
    under_names(columns.documented_as(&flows), names)
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
    columns! { field summary: ExportSummary;
        packets = summary.totals.packets, "packets read";
        rows = summary.totals.rows, "rows written";
        row_packets = summary.totals.row_packets, "packets in the rows";
        bytes = summary.totals.bytes, "their bytes from the IP header on";
        slices = summary.totals.slices, "slices with elements";
        early = summary.totals.early,
            "rows written before their slice was closed, because the memory was full";
        late = summary.totals.late, "rows of late packets from a pipe";
        ..ending(|summary| ended(&summary.inputs, summary.totals.interrupted));
        skipped = tally(&summary.totals.skipped), SKIPPED_DOC;
    }
}

/// Returns a sentence for each consequence of too little memory, of packets out of order, or of
/// packets without elements.
pub fn export_shortcomings(summary: &ExportSummary) -> Vec<String> {
    let totals = &summary.totals;
    let is_empty = totals.rows == 0 && !totals.skipped.is_empty();
    let none = is_empty.then(|| format!("no rows: {}", reasons(&totals.skipped)));
    let early = some(totals.early, "row was", "rows were").map(|rows| {
        format!("{rows} written early because the memory was full, so an element may have several rows; raise it with --memory")
    });
    let late = some(totals.late, "packet came", "packets came").map(|packets| {
        format!("{packets} late, after the slice was closed: each has a separate row; from files, which can be read twice, each element has one")
    });
    [none, early, late].into_iter().flatten().collect()
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
