//! From what a reader yields to a row a packet.

use super::rows::{ExportRows, Question};
use crate::decode::{Decoder, Headers, IpPacket, NAME_MAX, Skip, Tunnel, dns_messages};
use crate::flows::Upper;
use crate::inputs::{Batch, BatchBuilder};
use crate::trace::{LinkType, TraceBatch};

/// A run of packets in trace order: each has a row or an entry in `skipped`.
#[derive(Debug, Default)]
pub(super) struct PacketBatch {
    times_ns: Vec<i64>,
    pub(super) rows: ExportRows,
    /// Packets without a row, by their number in the batch, ascending.
    pub(super) skipped: Vec<(u32, Skip)>,
}

/// How far a batch has been taken: numbers of the next packet and of the next entry of the list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) packet: usize,
    pub(super) skipped: usize,
}

impl Batch for PacketBatch {
    type Cursor = Cursor;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn clear(&mut self) {
        self.times_ns.clear();
        self.rows.clear();
        self.skipped.clear();
    }

    fn taken(cursor: &Cursor) -> usize {
        cursor.packet
    }
}

/// Makes rows.
#[derive(Debug)]
pub(super) struct PacketMaker {
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, whichever addresses count.
    inner: Decoder,
    dns_ports: Vec<u16>,
}

impl PacketMaker {
    pub(super) fn new(headers: &Headers) -> Self {
        Self {
            decoder: Decoder::new(headers.tunnel),
            inner: Decoder::new(Tunnel::Inner),
            dns_ports: headers.all_dns_ports(),
        }
    }

    #[inline]
    fn packet(
        &self,
        time_ns: i64,
        link: LinkType,
        frame: &[u8],
        rows: &mut ExportRows,
    ) -> Result<(), Skip> {
        let ip = self.decoder.decode(link, frame)?;
        rows.start_ns.push(time_ns);
        rows.push_addresses(ip.addresses);
        rows.push_ports(ip.ports().unwrap_or_default());
        rows.proto.push(ip.protocol);
        rows.bytes.push(u64::from(ip.bytes));
        rows.tcp_flags.push(tcp_flags(&ip));
        rows.vlan.push(ip.vlan);
        rows.push_community_id(ip.addresses, ip.protocol, Upper::of(&ip));
        if ip.may_be_tunnel() {
            // The message may be further inside.
            match self.inner.decode(link, frame) {
                Ok(innermost) => self.question(&innermost, rows),
                Err(_) => rows.push_question(None),
            }
        } else {
            self.question(&ip, rows);
        }
        Ok(())
    }

    /// Appends the first message of the packet.
    #[inline]
    fn question(&self, packet: &IpPacket<'_>, rows: &mut ExportRows) {
        let mut name = [0; NAME_MAX];
        let mut first = None;
        // No message is no error: most packets are no DNS traffic.
        let _ = dns_messages(packet, &self.dns_ports, |message| {
            if first.is_none() {
                name[..message.name.len()].copy_from_slice(message.name);
                first = Some((Question::of(&message), message.name.len()));
            }
        });
        rows.push_question(first.map(|(question, length)| (question, &name[..length])));
    }
}

/// The flags of a TCP segment, 0 if they were not captured; none for other protocols.
pub(super) fn tcp_flags(packet: &IpPacket<'_>) -> Option<u8> {
    const TCP: u8 = 6;
    (packet.protocol == TCP).then(|| packet.tcp_flags().unwrap_or_default())
}

impl BatchBuilder for PacketMaker {
    type Batch = PacketBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut PacketBatch) {
        let first = out.times_ns.len() as u32;
        match batch {
            TraceBatch::Packets { bytes, packets } => {
                let times_ns = packets.iter().map(|packet| packet.time_ns);
                out.times_ns.extend(times_ns);
                for (number, packet) in (first..).zip(packets) {
                    let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                    if let Err(skip) =
                        self.packet(packet.time_ns, packet.link, frame, &mut out.rows)
                    {
                        out.skipped.push((number, skip));
                    }
                }
            }
            TraceBatch::Log(log) => {
                for (number, entry) in (first..).zip(log.entries) {
                    out.times_ns.push(entry.time_ns);
                    out.skipped.push((number, Skip::LogRecord));
                }
            }
        }
    }
}
