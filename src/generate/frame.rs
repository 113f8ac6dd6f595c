//! Ethernet, VLAN, IP and transport headers, by the header types of etherparse. Its packet builder
//! is not used: it needs all of the payload, which a snaplen cuts off here, and fills in the
//! checksums of the transport layer.

use etherparse::{
    EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type,
    IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, SingleVlanHeader, TcpHeader, UdpHeader,
    VlanId, VlanPcp,
};

/// Longest frame without a VLAN tag.
pub(super) const FRAME_MAX: usize = 1514;
/// Room for one frame with a VLAN tag, rounded up.
pub(super) const FRAME_ROOM: usize = 1536;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// Hops that packets have left.
const HOPS: u8 = 64;
/// Receive window of TCP segments.
const WINDOW: u16 = 0xfaf0;

/// One direction of a conversation: addresses, protocol and ports.
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

    /// Returns the length of the Ethernet, VLAN and IP headers.
    pub(super) fn network_length(self, vlan: Option<u16>) -> usize {
        14 + if vlan.is_some() { 4 } else { 0 } + if self.ipv6 { 40 } else { 20 }
    }

    /// Returns the length of the transport header.
    pub(super) fn transport_length(self) -> usize {
        if self.protocol == TCP { 20 } else { 8 }
    }
}

/// Returns an address in `2001:db8::/32` with the upper half of the host's number in the third group
/// and all of it in the last two: a /48 network for each 65,536 hosts.
pub(super) fn ipv6_address(host: u32) -> [u8; 16] {
    let [a, b, c, d] = host.to_be_bytes();
    [0x20, 0x01, 0x0d, 0xb8, a, b, 0, 0, 0, 0, 0, 0, a, b, c, d]
}

/// Writes the headers below the transport layer for a packet with `payload` bytes above IP, and
/// returns the offset of the transport header.
pub(super) fn network_headers(
    bytes: &mut [u8],
    tuple: Tuple,
    vlan: Option<u16>,
    identification: u16,
    payload: usize,
) -> usize {
    let mac = |host: u32| {
        let [a, b, c, d] = host.to_be_bytes();
        [0x02, 0x00, a, b, c, d]
    };
    let network = if tuple.ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
    let ethernet = Ethernet2Header {
        source: mac(tuple.source),
        destination: mac(tuple.destination),
        ether_type: if vlan.is_some() { EtherType::VLAN_TAGGED_FRAME } else { network },
    };
    let mut at = write(bytes, 0, &ethernet.to_bytes());
    if let Some(vlan) = vlan {
        let tag = SingleVlanHeader {
            pcp: VlanPcp::ZERO,
            drop_eligible_indicator: false,
            vlan_id: VlanId::try_new(vlan).expect("the numbers of VLANs are below 4096"),
            ether_type: network,
        };
        at = write(bytes, at, &tag.to_bytes());
    }
    let (payload, protocol) = (payload as u16, IpNumber(tuple.protocol));
    if tuple.ipv6 {
        let header = Ipv6Header {
            traffic_class: 0,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: payload,
            next_header: protocol,
            hop_limit: HOPS,
            source: ipv6_address(tuple.source),
            destination: ipv6_address(tuple.destination),
        };
        return write(bytes, at, &header.to_bytes());
    }
    let [source, destination] = [tuple.source, tuple.destination].map(u32::to_be_bytes);
    let header = Ipv4Header::new(payload, HOPS, protocol, source, destination);
    let mut header = header.expect("a payload is no longer than a frame");
    header.identification = identification;
    header.header_checksum = header.calc_header_checksum();
    write(bytes, at, &header.to_bytes())
}

/// The fields of a transport header that change from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// TCP sequence number, or sequence number of an ICMP echo.
    pub(super) sequence: u32,
    /// Whether a TCP segment opens a connection; others carry data.
    pub(super) is_syn: bool,
    /// Whether an ICMP echo is a reply.
    pub(super) reply: bool,
    /// Bytes above the transport header.
    pub(super) payload: usize,
}

/// Writes the transport header at `at`. Its checksum stays 0, as in a capture that was taken on
/// the sending host before the network card had filled it in.
pub(super) fn transport_header(bytes: &mut [u8], at: usize, tuple: Tuple, segment: Segment) {
    let Tuple { source_port, destination_port, .. } = tuple;
    if tuple.protocol == TCP {
        let header = TcpHeader {
            syn: segment.is_syn,
            psh: !segment.is_syn,
            ack: !segment.is_syn,
            ..TcpHeader::new(source_port, destination_port, segment.sequence, WINDOW)
        };
        write(bytes, at, &header.to_bytes());
        return;
    }
    if tuple.protocol == UDP {
        let length = (UdpHeader::LEN + segment.payload) as u16;
        let header = UdpHeader { source_port, destination_port, length, checksum: 0 };
        write(bytes, at, &header.to_bytes());
        return;
    }
    let echo = IcmpEchoHeader {
        id: (tuple.source ^ tuple.destination) as u16,
        seq: segment.sequence as u16,
    };
    if tuple.ipv6 {
        let (request, reply) = (Icmpv6Type::EchoRequest(echo), Icmpv6Type::EchoReply(echo));
        let icmp_type = if segment.reply { reply } else { request };
        write(bytes, at, &Icmpv6Header { icmp_type, checksum: 0 }.to_bytes());
    } else {
        let (request, reply) = (Icmpv4Type::EchoRequest(echo), Icmpv4Type::EchoReply(echo));
        let icmp_type = if segment.reply { reply } else { request };
        write(bytes, at, &Icmpv4Header { icmp_type, checksum: 0 }.to_bytes());
    }
}

/// Writes a part of a frame at `at` and returns its end.
pub(super) fn write(bytes: &mut [u8], at: usize, part: &[u8]) -> usize {
    let end = at + part.len();
    bytes[at..end].copy_from_slice(part);
    end
}
