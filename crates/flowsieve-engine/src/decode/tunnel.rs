//! The layers that may be inside an IP packet, by protocol number.

use super::bytes::{byte, from};
use super::layer::{Layer, Step};
use super::{IpPacket, Skip, gre, udp_tunnel};
use etherparse::IpNumber;

/// Returns the layer inside of a tunnel, if the packet belongs to one. ICMP is no tunnel: the header
/// that its errors quote belongs to another packet.
pub(super) fn inside<'a>(packet: &IpPacket<'a>) -> Option<(Layer, &'a [u8])> {
    if packet.later_fragment {
        return None;
    }
    let bytes = packet.transport;
    match IpNumber(packet.protocol) {
        IpNumber::IPV4 => Some((Layer::Ip, bytes)),
        IpNumber::IPV6 => Some((Layer::Ipv6, bytes)),
        IpNumber::GRE => gre::gre(bytes).ok(),
        // Version, and what remains reserved.
        IpNumber::ETHER_IP => Some((Layer::Ethernet, bytes.get(2..)?)),
        IpNumber::PIM => pim_register(bytes).ok(),
        IpNumber::MPLS_IN_IP => Some((Layer::Mpls, bytes)),
        // Ethernet as such, as behind segment routing headers.
        IpNumber(143) => Some((Layer::Ethernet, bytes)),
        IpNumber::UDP => udp_tunnel::inside(bytes).ok(),
        _ => None,
    }
}

/// Returns whether packets of this protocol are in tunnels.
pub(super) fn is_one(protocol: u8) -> bool {
    matches!(
        IpNumber(protocol),
        IpNumber::IPV4
            | IpNumber::IPV6
            | IpNumber::GRE
            | IpNumber::ETHER_IP
            | IpNumber::MPLS_IN_IP
            | IpNumber(143)
    )
}

/// A multicast packet on its way to the rendezvous point.
fn pim_register(bytes: &[u8]) -> Step<'_> {
    const VERSION_2_REGISTER: u8 = 0x21;
    match byte(bytes, 0)? {
        VERSION_2_REGISTER => Ok((Layer::Ip, from(bytes, 8)?)),
        _ => Err(Skip::NotIp),
    }
}
