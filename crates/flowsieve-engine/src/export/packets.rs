//! From what a reader yields to a row for each packet.

use super::rows::{ExportRows, Question};
use crate::decode::ip::TCP;
use crate::decode::{Headers, IpPacket, NAME_MAX, Skip};
use crate::elements::{PacketDecoder, PacketRows, Rows};
use crate::flows::Upper;
use crate::inputs::BatchBuilder;
use crate::trace::{LinkType, TraceBatch};

/// A batch of packets: each has a row or is skipped.
pub(super) type PacketBatch = PacketRows<ExportRows>;

impl Rows for ExportRows {
    type Cursor = ();

    fn clear(&mut self) {
        ExportRows::clear(self);
    }
}

/// Makes rows.
pub(super) struct PacketRowBuilder {
    decoder: PacketDecoder,
}

impl PacketRowBuilder {
    pub(super) fn new(headers: &Headers) -> Self {
        Self { decoder: PacketDecoder::new(headers) }
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
        let (source, destination) = ip.addresses.ends();
        rows.start_ns.push(time_ns);
        rows.src.push_address(source, None);
        rows.dst.push_address(destination, None);
        let ports = ip.ports().unwrap_or_default();
        rows.src_port.push(ports.0);
        rows.dst_port.push(ports.1);
        rows.proto.push(ip.protocol);
        rows.bytes.push(u64::from(ip.bytes));
        rows.tcp_flags.push(tcp_flags(&ip));
        rows.vlan.push(ip.vlan);
        rows.push_community_id(ip.addresses, ip.protocol, Upper::of(&ip));
        let mut name = [0; NAME_MAX];
        rows.push_question(first_question(&self.decoder, &ip, link, frame, &mut name));
        Ok(())
    }
}

/// Returns the first DNS message of a packet, or of the innermost one if it is a tunnel's; its name
/// is put into `name`.
#[inline]
pub(super) fn first_question<'n>(
    decoder: &PacketDecoder,
    ip: &IpPacket<'_>,
    link: LinkType,
    frame: &[u8],
    name: &'n mut [u8; NAME_MAX],
) -> Option<(Question, &'n [u8])> {
    if !decoder.may_have_messages(ip) {
        return None;
    }
    let mut first = None;
    // No message is no error: most packets are no DNS traffic.
    let _ = decoder.messages(link, frame, |message| {
        if first.is_none() {
            name[..message.name.len()].copy_from_slice(message.name);
            first = Some((Question::of(message), message.name.len()));
        }
    });
    let (question, length) = first?;
    Some((question, &name[..length]))
}

/// Returns the flags of a TCP segment, 0 if they were not captured; `None` for other protocols.
pub(super) fn tcp_flags(packet: &IpPacket<'_>) -> Option<u8> {
    (packet.protocol == TCP).then(|| packet.tcp_flags().unwrap_or_default())
}

impl BatchBuilder for PacketRowBuilder {
    type Batch = PacketBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut PacketBatch) {
        out.read(
            batch,
            |_, packet, frame, out| self.packet(packet.time_ns, packet.link, frame, out),
            |_, _, _| Err(Skip::LogRecord),
        );
    }
}
