//! Flows for people: a line a flow, and the totals.

use super::INTERRUPTED;
use super::flows_model::{FlowParameters, FlowShape, protocol_name};
use super::number::{duration, grouped, size, time};
use crate::flows::{Direction, Ended, FlowRecord, FlowSummary};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// Decimals of the second of a start.
const DECIMALS: usize = 6;

/// What varies most in width, addresses and names, stands at the end of a line, so that it moves
/// nothing out of its column.
#[derive(Debug)]
pub(super) struct FlowTable<W: Write> {
    out: W,
    shape: FlowShape,
}

impl<W: Write> FlowTable<W> {
    pub(super) fn begin(mut out: W, parameters: &FlowParameters, styled: bool) -> io::Result<Self> {
        let shape = parameters.shape();
        writeln!(out, "{}", title(parameters))?;
        let columns = match shape {
            FlowShape::Directed => format!(
                "{:>12}  {:>8}  {:>12}  {:6}  ",
                "seconds", "packets", "bytes", "flags"
            ),
            FlowShape::Bidirectional => format!(
                "{:>12}  {:>8}  {:>8}  {:>11}  {:>11}  {:6}  {:6}  ",
                "seconds", "packets→", "←packets", "bytes→", "←bytes", "flags→", "←flags"
            ),
            FlowShape::Unique => String::new(),
        };
        let start = "start";
        let proto = "proto";
        let head = format!("{start:27}  {columns}{proto:5}  flow");
        if styled {
            writeln!(out, "\x1b[1m{head}\x1b[0m")?;
        } else {
            writeln!(out, "{head}")?;
        }
        Ok(Self { out, shape })
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, "{:27}  ", time(flow.start_ns, DECIMALS))?;
        let is_tcp = flow.protocol == 6;
        let flags = |direction: &Direction| {
            if is_tcp && direction.packets > 0 {
                letters(direction.tcp_flags)
            } else {
                String::new()
            }
        };
        let (forward, reverse) = (&flow.forward, &flow.reverse);
        match self.shape {
            FlowShape::Directed => write!(
                out,
                "{:>12}  {:>8}  {:>12}  {:6}  ",
                seconds(flow),
                grouped(forward.packets),
                grouped(forward.bytes),
                flags(forward)
            )?,
            FlowShape::Bidirectional => write!(
                out,
                "{:>12}  {:>8}  {:>8}  {:>11}  {:>11}  {:6}  {:6}  ",
                seconds(flow),
                grouped(forward.packets),
                grouped(reverse.packets),
                grouped(forward.bytes),
                grouped(reverse.bytes),
                flags(forward),
                flags(reverse)
            )?,
            FlowShape::Unique => {}
        }
        let (source, destination) = flow.addresses.ends();
        let protocol = protocol_name(flow.protocol);
        let arrow = if reverse.packets > 0 { "↔" } else { "→" };
        // Two ports of 0 are none.
        let ports = flow.ports != (0, 0);
        write!(
            out,
            "{protocol:5}  {} {arrow} {}",
            end(source, flow.ports.0, ports),
            end(destination, flow.ports.1, ports)
        )?;
        if let Some(vlan) = flow.vlan {
            write!(out, "  vlan {vlan}")?;
        }
        if let Some(domain) = flow.domain_text() {
            write!(out, "  {domain}")?;
        }
        writeln!(out)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(mut self, summary: &FlowSummary) -> io::Result<W> {
        let totals = &summary.totals;
        writeln!(
            self.out,
            "{}: {} packets, {} of them IP with {} bytes",
            counted(totals.flows, "flow"),
            grouped(totals.packets),
            grouped(totals.ip_packets),
            grouped(totals.bytes)
        )?;
        if totals.interrupted {
            writeln!(self.out, "{INTERRUPTED}")?;
        }
        for shortcoming in flow_shortcomings(summary) {
            writeln!(self.out, "{shortcoming}")?;
        }
        if !totals.skipped.is_empty() {
            let reasons: Vec<String> = totals
                .skipped
                .iter()
                .map(|(skip, count)| format!("{} {}", grouped(*count), skip.name()))
                .collect();
            writeln!(self.out, "in no flow: {}", reasons.join(", "))?;
        }
        Ok(self.out)
    }
}

/// What is not as it would be with more memory, a sentence each.
pub fn flow_shortcomings(summary: &FlowSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    let early = summary.totals.ended.of(Ended::Memory);
    if early > 0 {
        sentences.push(format!(
            "{} ended early because the memory was full, so some may be listed in parts; raise it with --memory",
            counted(early, "flow")
        ));
    }
    if let Some(unique) = summary.uniqueness.filter(|unique| !unique.exact) {
        sentences.push(format!(
            "the exact set did not fit into the memory: about {:.1} ± {:.1} flows are missing; raise it with --memory",
            unique.missed, unique.std_error
        ));
    }
    sentences
}

fn title(parameters: &FlowParameters) -> String {
    let mut title = match parameters.shape() {
        FlowShape::Directed => "flows, each direction by itself".to_owned(),
        FlowShape::Bidirectional => "flows of both directions".to_owned(),
        FlowShape::Unique if parameters.bidirectional => {
            "flows of both directions, each when it is first seen".to_owned()
        }
        FlowShape::Unique => "flows, each when it is first seen".to_owned(),
    };
    let idle = parameters
        .idle_ns
        .map(|idle| format!(", ended after {} without packets", duration(idle)));
    let active = parameters
        .active_ns
        .map(|active| format!(", cut after {}", duration(active)));
    title.extend(idle.into_iter().chain(active));
    if parameters.tunnel == "inner" {
        title += ", inside tunnels";
    }
    if parameters.anonymized {
        title += ", addresses replaced";
    }
    title + &format!("; memory {}", size(parameters.memory_bytes))
}

/// `1 flow`, `2 flows`.
fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// The time between first and last packet.
fn seconds(flow: &FlowRecord) -> String {
    match flow.end_ns.saturating_sub(flow.start_ns) {
        0 => "0".to_owned(),
        ns => format!("{:.DECIMALS$}", ns as f64 / 1e9),
    }
}

/// One letter for each flag that is set: congestion window, echo, urgent, acknowledgement, push, reset,
/// synchronise, finish.
fn letters(flags: u8) -> String {
    let bits = (0..8).rev().zip("CEUAPRSF".chars());
    bits.filter(|(bit, _)| flags >> bit & 1 == 1)
        .map(|(_, letter)| letter)
        .collect()
}

fn end(address: IpAddr, port: u16, with_port: bool) -> String {
    if with_port {
        SocketAddr::new(address, port).to_string()
    } else {
        address.to_string()
    }
}
