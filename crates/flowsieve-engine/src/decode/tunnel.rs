//! The layers that may be inside an IP packet, by protocol number.

use super::bytes::{array, be16, byte, from};
use super::layer::{Layer, Step};
use super::{IpPacket, Skip, ethernet, udp_tunnel};
use etherparse::IpNumber;

/// The beginning of the inside of a tunnel, if the packet is a tunnel's. ICMP is none: the header
/// that its errors quote was never on its way here.
pub(super) fn inside<'a>(packet: &IpPacket<'a>) -> Option<(Layer, &'a [u8])> {
    if packet.later_fragment {
        return None;
    }
    let bytes = packet.transport;
    match IpNumber(packet.protocol) {
        IpNumber::IPV4 => Some((Layer::Ip, bytes)),
        IpNumber::IPV6 => Some((Layer::Ipv6, bytes)),
        IpNumber::GRE => gre(bytes).ok(),
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

/// Generic routing encapsulation, also of PPP (version 1).
pub(super) fn gre(bytes: &[u8]) -> Step<'_> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    const VERSION: u16 = 7;

    let flags = be16(bytes, 0)?;
    let protocol = be16(bytes, 2)?;
    let word = |flag: u16| if flags & flag == 0 { 0 } else { 4 };
    if flags & VERSION == 1 {
        // Without sequence number there is no payload, only an acknowledgement.
        if flags & SEQUENCE == 0 {
            return Err(Skip::NotIp);
        }
        return Ok((Layer::Ppp, from(bytes, 12 + word(ACKNOWLEDGEMENT))?));
    }
    let mut at = 4 + word(CHECKSUM | ROUTING) + word(KEY) + word(SEQUENCE);
    if flags & ROUTING != 0 {
        at = behind_source_routes(bytes, at)?;
    }
    match protocol {
        // Mirrored traffic: the flags say whether it is of type I, which has no header.
        0x88be => {
            let header = if flags & SEQUENCE == 0 { 0 } else { 8 };
            Ok((Layer::Ethernet, from(bytes, at + header)?))
        }
        0x22eb => erspan_3(from(bytes, at)?),
        // Web cache redirection puts a word before the packet in its second version.
        0x883e => {
            let header = if byte(bytes, at)? >> 4 == 4 { 0 } else { 4 };
            Ok((Layer::Ip, from(bytes, at + header)?))
        }
        // Cisco metadata: here the EtherType of the packet comes first, and not last.
        0x8909 => ethernet::type_or_length(be16(bytes, at)?, from(bytes, at + 8)?),
        // Wireless frames of one maker's access points.
        0x8200..=0x83ff | 0x9000 => Ok((Layer::Ieee80211, from(bytes, at)?)),
        _ => Ok((Layer::EtherType(protocol), from(bytes, at)?)),
    }
}

/// Skips source routes: family, offset, length, addresses; the last has neither family nor length.
fn behind_source_routes(bytes: &[u8], mut at: usize) -> Result<usize, Skip> {
    loop {
        let [family_high, family_low, _, length] = array(bytes, at)?;
        at += 4 + usize::from(length);
        if [family_high, family_low, length] == [0; 3] {
            return Ok(at);
        }
    }
}

/// ERSPAN type III: a fixed header, one of its flags for a second one.
fn erspan_3(bytes: &[u8]) -> Step<'_> {
    const SECOND_HEADER: u16 = 1;
    const FRAME_TYPE_IP: u16 = 2;
    let last = be16(bytes, 10)?;
    let header = if last & SECOND_HEADER == 0 { 12 } else { 20 };
    let layer = match last >> 10 & 31 {
        FRAME_TYPE_IP => Layer::Ip,
        _ => Layer::Ethernet,
    };
    Ok((layer, from(bytes, header)?))
}

/// A multicast packet on its way to the rendezvous point.
fn pim_register(bytes: &[u8]) -> Step<'_> {
    const VERSION_2_REGISTER: u8 = 0x21;
    match byte(bytes, 0)? {
        VERSION_2_REGISTER => Ok((Layer::Ip, from(bytes, 8)?)),
        _ => Err(Skip::NotIp),
    }
}
