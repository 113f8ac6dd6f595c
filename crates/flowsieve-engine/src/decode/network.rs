//! The beginning of the network layer in a frame, for callers that read the bytes of headers
//! themselves.
//!
//! Unlike [`Decoder::decode`](super::Decoder::decode) this does not ask whether the IP header is
//! whole or makes sense: what it carries is what the header before it says.

use super::bytes::{be16, be32, place_in};
use super::ethernet::{ARP, ETHERNET_HEADER, IPV4, IPV6, REVERSE_ARP, TAG, behind_tags, vlan};
use super::ip::{self, Upper};
use super::layer::Layer;
use super::walk::{STEPS_MAX, step};
use super::{IpPacket, Skip, Tunnel, tunnel};
use crate::trace::LinkType;

/// A kind of network layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NetworkKind {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Address resolution.
    Arp,
    /// Reverse address resolution.
    ReverseArp,
    /// Another network layer, or one that cannot be reached.
    Other,
    /// The captured bytes end before it is known.
    CutShort,
}

/// The network layer of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network {
    /// Its kind.
    pub kind: NetworkKind,
    /// Its offset in the frame.
    pub at: usize,
}

/// A number in a header before the network layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shim {
    /// An `EtherType`.
    EtherType,
    /// The identifier of a VLAN tag.
    Vlan,
    /// The label of an MPLS label stack entry.
    Mpls,
    /// The identifier of a PPP-over-Ethernet session.
    PppOe,
    /// The destination's service access point in an LLC header.
    Llc,
}

/// Finds the network layer of a frame that begins as `link` says: the outermost, or the innermost
/// IP header if `tunnel` says so and there is one.
#[inline]
pub fn network(link: LinkType, frame: &[u8], tunnel: Tunnel) -> Network {
    if let (Some(found), Tunnel::Outer) = (common(link, frame), tunnel) {
        return found;
    }
    match tunnel {
        Tunnel::Outer => outermost(link, frame),
        Tunnel::Inner => innermost(link, frame),
    }
}

/// IP in Ethernet with up to two VLAN tags.
#[inline]
fn common(link: LinkType, frame: &[u8]) -> Option<Network> {
    if link != LinkType::ETHERNET {
        return None;
    }
    let head: &[u8; ETHERNET_HEADER + 2 * TAG + 1] = frame.first_chunk()?;
    let (ether_type, at) = behind_tags(head);
    let kind = match ether_type {
        IPV4 if head[at] >> 4 != 6 => NetworkKind::Ipv4,
        IPV6 => NetworkKind::Ipv6,
        _ => return None,
    };
    Some(Network { kind, at })
}

/// Walks to the outermost network layer.
#[inline(never)]
fn outermost(link: LinkType, frame: &[u8]) -> Network {
    let (kind, bytes) = walk(Layer::Link(link), frame, frame, |_, _| {});
    Network { kind, at: place_in(frame, bytes) }
}

/// Walks to the innermost IP header.
#[inline(never)]
fn innermost(link: LinkType, frame: &[u8]) -> Network {
    let mut found = common(link, frame).unwrap_or_else(|| outermost(link, frame));
    for _ in 0..STEPS_MAX {
        let packet = read(found.kind, frame.get(found.at..).unwrap_or_default());
        let tunnel = packet.filter(IpPacket::may_be_tunnel);
        let Some((layer, bytes)) = tunnel.and_then(|packet| tunnel::inside(&packet)) else { break };
        let (kind, bytes) = walk(layer, bytes, frame, |_, _| {});
        // If the inside cannot be read, the last IP header counts.
        if read(kind, bytes).is_none() {
            break;
        }
        found = Network { kind, at: place_in(frame, bytes) };
    }
    found
}

/// Returns the IP packet that a network layer is, if its header can be read.
fn read(kind: NetworkKind, bytes: &[u8]) -> Option<IpPacket<'_>> {
    match kind {
        NetworkKind::Ipv4 => ip::v4(bytes).ok(),
        NetworkKind::Ipv6 => ip::v6(bytes).ok(),
        _ => None,
    }
}

/// Shows the numbers in each header before the outermost network layer; returns false if the
/// captured bytes end before that is reached.
pub fn shims(link: LinkType, frame: &[u8], mut see: impl FnMut(Shim, u32)) -> bool {
    let (kind, _) = walk(Layer::Link(link), frame, frame, |layer, bytes| {
        if let Layer::EtherType(number) = layer {
            see(Shim::EtherType, number.into());
        }
        let found = match layer {
            Layer::EtherType(_) => vlan(layer, bytes).map(|number| (Shim::Vlan, number.into())),
            Layer::Mpls => be32(bytes, 0).ok().map(|entry| (Shim::Mpls, entry >> 12)),
            Layer::PppOe => be16(bytes, 2).ok().map(|session| (Shim::PppOe, session.into())),
            Layer::Llc => bytes.first().map(|&point| (Shim::Llc, point.into())),
            _ => None,
        };
        if let Some((shim, number)) = found {
            see(shim, number);
        }
    });
    kind != NetworkKind::CutShort
}

/// Walks to the next network layer, and returns the bytes from there on.
fn walk<'a>(
    mut layer: Layer,
    mut bytes: &'a [u8],
    frame: &'a [u8],
    mut see: impl FnMut(Layer, &[u8]),
) -> (NetworkKind, &'a [u8]) {
    for _ in 0..STEPS_MAX {
        see(layer, bytes);
        let is_v6 = bytes.first().is_some_and(|first| first >> 4 == 6);
        let kind = match layer {
            // Some routers mark IPv6 as IPv4.
            Layer::EtherType(IPV4) if !is_v6 => NetworkKind::Ipv4,
            Layer::EtherType(IPV4 | IPV6) | Layer::Ipv6 => NetworkKind::Ipv6,
            Layer::Ipv4 => NetworkKind::Ipv4,
            Layer::EtherType(ARP) => NetworkKind::Arp,
            Layer::EtherType(REVERSE_ARP) => NetworkKind::ReverseArp,
            other => match step(other, bytes) {
                Ok(next) => {
                    (layer, bytes) = next;
                    continue;
                }
                // A piece that a length field ended was captured as a whole.
                Err(Skip::CutShort) if reaches_end(frame, bytes) => NetworkKind::CutShort,
                Err(_) => NetworkKind::Other,
            },
        };
        return (kind, bytes);
    }
    (NetworkKind::Other, bytes)
}

/// Returns whether a piece of a frame ends where the captured bytes end.
fn reaches_end(frame: &[u8], piece: &[u8]) -> bool {
    place_in(frame, piece) + piece.len() == frame.len()
}

/// Walks over the extension headers of an IP packet in a frame and shows the number of each.
/// Returns `None` if the byte of the IP header with the next protocol was not captured.
pub fn upper(frame: &[u8], network: Network, see: impl FnMut(u8)) -> Option<Upper> {
    let header = frame.get(network.at..)?;
    let v6 = network.kind == NetworkKind::Ipv6;
    let (protocol, length, later_fragment) = if v6 {
        (*header.get(6)?, ip::V6_HEADER, false)
    } else {
        let fragment = be16(header, 6).ok()?;
        (*header.get(9)?, usize::from(header[0] & 15) * 4, fragment & 0x1fff != 0)
    };
    let upper = Upper::new(protocol, network.at + length, later_fragment);
    Some(upper.behind_extensions(frame, v6, see))
}
