//! What `dedup` did: a table for people, JSON and CSV for programs.

use super::INTERRUPTED;
use super::number::{duration, grouped, percent, size, time};
use crate::dedup::{DedupPlan, DedupSummary, DropKind, Drops, WindowWidth};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.dedup/1";

/// How the summary is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DedupFormat {
    /// For people.
    Table,
    /// A line a slice, or one line.
    Csv,
    /// One document.
    Json,
}

/// What the summary depends on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DedupParameters {
    by: &'static str,
    distinguish: Distinguish,
    window_ns: Option<i64>,
    window_packets: Option<u64>,
    filter: &'static str,
    approximate: bool,
    memory_bytes: u64,
    slice_ns: Option<i64>,
    /// The addresses in what was written are replaced.
    pub anonymized: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they go together in any way"
)]
struct Distinguish {
    vlan: bool,
    mac: bool,
    ttl: bool,
    interface: bool,
}

impl From<&DedupPlan> for DedupParameters {
    fn from(plan: &DedupPlan) -> Self {
        let (window_ns, window_packets) = match plan.window {
            WindowWidth::Time(width) => (Some(width), None),
            WindowWidth::Packets(count) => (None, Some(count)),
        };
        Self {
            by: plan.by.name(),
            distinguish: Distinguish {
                vlan: plan.distinguish.vlan,
                mac: plan.distinguish.mac,
                ttl: plan.distinguish.ttl,
                interface: plan.distinguish.interface,
            },
            window_ns,
            window_packets,
            filter: plan.filter.name(),
            approximate: plan.approximate,
            memory_bytes: plan.memory_bytes,
            slice_ns: plan.slice_ns,
            anonymized: false,
        }
    }
}

/// Writes the summary.
///
/// # Errors
///
/// Writing failed.
pub fn write_dedup(
    format: DedupFormat,
    parameters: &DedupParameters,
    summary: &DedupSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        DedupFormat::Table => write_table(parameters, summary, out),
        DedupFormat::Csv => write_csv(parameters, summary, out),
        DedupFormat::Json => write_json(parameters, summary, out),
    }
}

/// The numbers of a slice, or of everything, by name and in order.
fn columns(drops: &Drops) -> impl Iterator<Item = (String, u64)> + '_ {
    let all = [
        ("packets", drops.packets),
        ("kept", drops.kept()),
        ("dropped", drops.dropped()),
        ("bytes", drops.bytes),
        ("dropped_bytes", drops.dropped_bytes),
    ];
    let kinds = DropKind::ALL.into_iter().zip(drops.by_kind);
    all.into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .chain(kinds.map(|(kind, count)| (format!("dropped_{}", kind.name()), count)))
}

fn object(drops: &Drops) -> Map<String, Value> {
    columns(drops)
        .map(|(name, count)| (name, count.into()))
        .collect()
}

fn write_json(
    parameters: &DedupParameters,
    summary: &DedupSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let slices: Option<Vec<Value>> = parameters.slice_ns.map(|_| {
        let rows = summary.slices.iter().map(|slice| {
            let mut row = object(&slice.drops);
            row.insert("start_ns".into(), slice.start_ns.into());
            row.insert("end_ns".into(), slice.end_ns.into());
            row.into()
        });
        rows.collect()
    });
    let inputs = summary.inputs.iter().map(|input| {
        json!({
            "path": input.path.display().to_string(),
            "container": input.container,
            "packets": input.packets,
            "error": input.error.as_ref().map(ToString::to_string),
        })
    });
    let inputs: Vec<Value> = inputs.collect();
    let window = &summary.window;
    let mut totals = object(&summary.totals);
    for (name, value) in [
        ("not_compared", json!(summary.not_compared)),
        ("out_of_order", json!(summary.out_of_order)),
        ("interrupted", json!(summary.interrupted)),
        ("outside_slices", json!(summary.outside_slices)),
        ("left_early", json!(window.left_early)),
        ("least_reach", json!(window.least_reach)),
        ("window_bytes", json!(window.memory_bytes)),
        ("filter_first", json!(window.first)),
        ("looked_up", json!(window.looked_up)),
        ("expected_wrong", json!(window.expected_wrong)),
    ] {
        totals.insert(name.into(), value);
    }
    let document = json!({
        "schema": SCHEMA,
        "parameters": parameters,
        "slices": slices,
        "inputs": inputs,
        "totals": totals,
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn write_csv(
    parameters: &DedupParameters,
    summary: &DedupSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names: Vec<String> = columns(&Drops::default()).map(|(name, _)| name).collect();
    writeln!(out, "start_ns,end_ns,{}", names.join(","))?;
    let mut line = |start: String, end: String, drops: &Drops| {
        let counts: Vec<String> = columns(drops).map(|(_, count)| count.to_string()).collect();
        writeln!(out, "{start},{end},{}", counts.join(","))
    };
    if parameters.slice_ns.is_none() {
        return line(String::new(), String::new(), &summary.totals);
    }
    summary.slices.iter().try_for_each(|slice| {
        line(
            slice.start_ns.to_string(),
            slice.end_ns.to_string(),
            &slice.drops,
        )
    })
}

fn write_table(
    parameters: &DedupParameters,
    summary: &DedupSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let window = match (parameters.window_ns, parameters.window_packets) {
        (Some(width), _) => duration(width),
        (_, packets) => format!("{} packets", grouped(packets.unwrap_or_default())),
    };
    let how = if parameters.approximate {
        "approximate"
    } else {
        "exact"
    };
    writeln!(
        out,
        "duplicates by {} in a window of {window}; {} filter, {how}",
        parameters.by, parameters.filter
    )?;
    if let Some(width) = parameters.slice_ns {
        let decimals = [(1_000_000_000, 0), (1_000_000, 3), (1_000, 6)]
            .into_iter()
            .find(|(unit, _)| width % unit == 0)
            .map_or(9, |(_, decimals)| decimals);
        let header = ["packets", "kept", "dropped"].map(|name| format!("{name:>13}"));
        let width = time(0, decimals).len();
        writeln!(out, "{:<width$}{}", "start", header.concat())?;
        for slice in &summary.slices {
            let drops = &slice.drops;
            let cells = [drops.packets, drops.kept(), drops.dropped()];
            let cells = cells.map(|count| format!("{:>13}", grouped(count)));
            let start = time(slice.start_ns, decimals);
            writeln!(out, "{start:<width$}{}", cells.concat())?;
        }
    }
    write_totals(parameters, summary, out)
}

fn write_totals(
    parameters: &DedupParameters,
    summary: &DedupSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (totals, report) = (&summary.totals, &summary.window);
    let mut line = |name: &str, count: u64, note: &str| {
        let text = format!("{name:<26}{:>15}{note}", grouped(count));
        writeln!(out, "{}", text.trim_end())
    };
    let share = totals.dropped() as f64 / totals.packets.max(1) as f64;
    line("packets", totals.packets, "")?;
    line("kept", totals.kept(), "")?;
    line(
        "dropped",
        totals.dropped(),
        &format!("  {}", percent(share)),
    )?;
    for (kind, count) in DropKind::ALL.into_iter().zip(totals.by_kind) {
        if count > 0 {
            line(&format!("  {}", kind.name().replace('_', " ")), count, "")?;
        }
    }
    line("dropped bytes", totals.dropped_bytes, "")?;
    for (name, count) in [
        ("not compared", summary.not_compared),
        ("out of order", summary.out_of_order),
        ("in no slice", summary.outside_slices),
    ] {
        if count > 0 {
            line(name, count, "")?;
        }
    }
    if summary.interrupted {
        writeln!(out, "{INTERRUPTED}")?;
    }
    if let Some(expected) = report.expected_wrong {
        writeln!(out, "{:<26}{expected:>15.3}", "expected wrong drops")?;
    }
    if let Some(reach) = report.least_reach {
        let reach = match parameters.window_ns {
            Some(_) => duration(i64::try_from(reach).unwrap_or(i64::MAX)),
            None => format!("{} packets", grouped(reach)),
        };
        writeln!(
            out,
            "the window did not fit into {}: {} packets left it early, and it shrank to {reach}",
            size(parameters.memory_bytes),
            grouped(report.left_early)
        )?;
    }
    Ok(())
}
