//! The naive side: every packet, decoded and kept.

use flowsieve::decode::{
    Addresses, DNS_PORT, Decoder, NAME_MAX, Tunnel, dns_messages, labels_from_text,
};
use flowsieve::index::Ends;
use flowsieve::trace::{Capture, InputFormat, LogContent, LogEntry, LogQuestion, TraceBatch};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// A packet as the naive scan sees it.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) time_ns: i64,
    pub(crate) ends: Ends,
    /// Client, server and name of each DNS message.
    pub(crate) questions: Vec<(Ends, Vec<u8>)>,
}

pub(crate) fn scan(path: &Path) -> Vec<Packet> {
    let (outer, inner) = (Decoder::new(Tunnel::Outer), Decoder::new(Tunnel::Inner));
    let mut packets = Vec::new();
    let Ok(mut capture) = Capture::open(path, InputFormat::Auto) else { return packets };
    while let Ok(Some(batch)) = capture.next_batch() {
        let (bytes, batch) = match batch {
            TraceBatch::Packets { bytes, packets } => (bytes, packets),
            TraceBatch::Log(log) => {
                packets.extend(log.entries.iter().map(|entry| logged(entry, log.text)));
                continue;
            }
        };
        for packet in batch {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let Ok(ip) = outer.decode(packet.link, frame) else { continue };
            let (src, dst): (IpAddr, IpAddr) = match ip.addresses {
                Addresses::V4 { source, destination } => (source.into(), destination.into()),
                Addresses::V6 { source, destination } => (source.into(), destination.into()),
            };
            let (src_port, dst_port) = ip.ports().unwrap_or_default();
            let ends = Ends { src, dst, src_port, dst_port };
            let mut questions = Vec::new();
            let message_in =
                if ip.may_be_tunnel() { inner.decode(packet.link, frame) } else { Ok(ip) };
            if let Ok(ip) = message_in {
                let _ = dns_messages(&ip, &[DNS_PORT], |message| {
                    let asked = if message.is_response {
                        Ends { src: dst, dst: src, src_port: dst_port, dst_port: src_port }
                    } else {
                        ends
                    };
                    questions.push((asked, message.name.to_vec()));
                });
            }
            packets.push(Packet { time_ns: packet.time_ns, ends, questions });
        }
    }
    packets
}

/// An entry of a log, which is a packet.
fn logged(entry: &LogEntry, text: &[u8]) -> Packet {
    let unknown = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let ends = Ends {
        src: entry.source.unwrap_or(unknown),
        dst: entry.destination.unwrap_or(unknown),
        src_port: entry.transport.map_or(0, |(_, port, _)| port),
        dst_port: entry.transport.map_or(0, |(_, _, port)| port),
    };
    let (name, asked) = match &entry.content {
        LogContent::Dns { question: LogQuestion::Name(name), is_response } => {
            let asked = if *is_response {
                Ends {
                    src: ends.dst,
                    dst: ends.src,
                    src_port: ends.dst_port,
                    dst_port: ends.src_port,
                }
            } else {
                ends
            };
            (Some(&text[name.start as usize..name.end as usize]), asked)
        }
        _ => (None, ends),
    };
    let labels =
        name.and_then(|name| labels_from_text(name, &mut [0; NAME_MAX]).map(<[u8]>::to_vec));
    let questions = labels.map(|name| (asked, name)).into_iter().collect();
    Packet { time_ns: entry.time_ns, ends, questions }
}
