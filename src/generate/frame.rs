//! Ethernet, VLAN, IP and transport headers, written byte by byte.

/// Longest frame without a VLAN tag.
pub(super) const FRAME_MAX: usize = 1514;
/// Room for one frame with a VLAN tag, rounded up.
pub(super) const FRAME_ROOM: usize = 1536;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// One directed conversation: who speaks to whom, and how.
///
/// An IPv6 address is a function of 32 bits here (see [`ipv6_address`]), so that both families
/// share one short form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuple {
    pub(super) ipv6: bool,
    pub(super) protocol: u8,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
}

impl Tuple {
    pub(super) fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..self
        }
    }

    /// Length of the Ethernet, VLAN and IP headers.
    pub(super) fn network_length(self, vlan: Option<u16>) -> usize {
        14 + if vlan.is_some() { 4 } else { 0 } + if self.ipv6 { 40 } else { 20 }
    }

    /// Length of the transport header.
    pub(super) fn transport_length(self) -> usize {
        if self.protocol == TCP { 20 } else { 8 }
    }
}

/// `2001:db8::` with the host's upper half in the third group and all of it in the last two:
/// sixteen bits of network, as an operator would number them.
pub(super) fn ipv6_address(host: u32) -> [u8; 16] {
    let [a, b, c, d] = host.to_be_bytes();
    [0x20, 0x01, 0x0d, 0xb8, a, b, 0, 0, 0, 0, 0, 0, a, b, c, d]
}

/// Writes the headers below the transport layer for a packet with `payload` bytes above IP, and
/// returns where the transport header begins.
pub(super) fn network_headers(
    bytes: &mut [u8],
    tuple: Tuple,
    vlan: Option<u16>,
    identification: u16,
    payload: usize,
) -> usize {
    bytes[..2].copy_from_slice(&[0x02, 0x00]);
    bytes[2..6].copy_from_slice(&tuple.destination.to_be_bytes());
    bytes[6..8].copy_from_slice(&[0x02, 0x00]);
    bytes[8..12].copy_from_slice(&tuple.source.to_be_bytes());
    let mut at = 12;
    if let Some(tag) = vlan {
        put16(bytes, at, 0x8100);
        put16(bytes, at + 2, tag);
        at += 4;
    }
    put16(bytes, at, if tuple.ipv6 { 0x86dd } else { 0x0800 });
    at += 2;
    if tuple.ipv6 {
        let header = &mut bytes[at..at + 40];
        header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
        put16(header, 4, payload as u16);
        header[6] = tuple.protocol;
        header[7] = 64;
        header[8..24].copy_from_slice(&ipv6_address(tuple.source));
        header[24..40].copy_from_slice(&ipv6_address(tuple.destination));
        return at + 40;
    }
    let header = &mut bytes[at..at + 20];
    header[0] = 0x45;
    header[1] = 0;
    put16(header, 2, (20 + payload) as u16);
    put16(header, 4, identification);
    header[6..8].copy_from_slice(&[0x40, 0]);
    header[8] = 64;
    header[9] = tuple.protocol;
    put16(header, 10, 0);
    header[12..16].copy_from_slice(&tuple.source.to_be_bytes());
    header[16..20].copy_from_slice(&tuple.destination.to_be_bytes());
    let sum = !ones_complement_sum(header);
    put16(header, 10, sum);
    at + 20
}

/// The sum of RFC 1071 over an even number of bytes.
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let sum: u32 =
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// What of a transport header changes from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// TCP sequence number, and sequence number of an ICMP echo.
    pub(super) sequence: u32,
    pub(super) tcp_flags: u8,
    /// Whether an ICMP echo is a reply.
    pub(super) reply: bool,
    /// Bytes above the transport header.
    pub(super) payload: usize,
}

/// Writes the transport header at `at`. Its checksum stays 0, as in a capture that was taken on
/// the sending host before the network card had filled it in.
pub(super) fn transport_header(bytes: &mut [u8], at: usize, tuple: Tuple, segment: Segment) {
    let header = &mut bytes[at..at + tuple.transport_length()];
    header.fill(0);
    match tuple.protocol {
        TCP => {
            put16(header, 0, tuple.source_port);
            put16(header, 2, tuple.destination_port);
            header[4..8].copy_from_slice(&segment.sequence.to_be_bytes());
            header[12] = 5 << 4;
            header[13] = segment.tcp_flags;
            put16(header, 14, 0xfaf0);
        }
        UDP => {
            put16(header, 0, tuple.source_port);
            put16(header, 2, tuple.destination_port);
            put16(header, 4, (8 + segment.payload) as u16);
        }
        _ => {
            header[0] = match (tuple.ipv6, segment.reply) {
                (false, false) => 8,
                (false, true) => 0,
                (true, false) => 128,
                (true, true) => 129,
            };
            put16(header, 4, (tuple.source ^ tuple.destination) as u16);
            put16(header, 6, segment.sequence as u16);
        }
    }
}

/// Writes a number in network byte order.
pub(super) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
