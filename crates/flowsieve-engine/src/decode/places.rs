//! The places of addresses in a frame: in every header from the outside in, and in address
//! resolution.

use super::bytes::place_in;
use super::ethernet::{ARP, REVERSE_ARP};
use super::ip::Elsewhere;
use super::layer::Layer;
use super::walk::{STEPS_MAX, step};
use super::{Hardware, IpPacket, hardware, ip, tunnel};
use crate::trace::LinkType;

/// A place with addresses; places come from the outermost inwards, each inside what the one before
/// carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// An IPv4 header whose addresses are there.
    Ipv4 {
        /// Its offset in the frame.
        at: usize,
        /// Its payload.
        carried: Carried,
        /// The pseudo header has the last address of a source route in place of the destination.
        routed: bool,
    },
    /// An IPv6 header whose addresses are there.
    Ipv6 {
        /// Its offset in the frame.
        at: usize,
        /// Its payload.
        carried: Carried,
        /// Addresses of the pseudo-header that are not those of this header.
        elsewhere: Elsewhere,
    },
    /// An unreadable IP header, or one that was cut off within its addresses. It is the last place.
    Unreadable {
        /// Its offset in the frame.
        at: usize,
        /// Whether IPv6 was announced.
        v6: bool,
    },
    /// An address resolution message. Nothing follows.
    Arp {
        /// Its offset in the frame.
        at: usize,
    },
    /// A link-layer address, perhaps cut off.
    Hardware {
        /// Its offset in the frame.
        at: usize,
        /// Its kind.
        kind: Hardware,
    },
}

/// The payload of an IP packet, behind its header and extension headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Carried {
    /// Its offset in the frame.
    pub at: usize,
    /// Captured bytes of it.
    pub length: usize,
    /// Its protocol number.
    pub protocol: u8,
    /// Whether this is a fragment other than the first, which has no transport header.
    pub later_fragment: bool,
}

/// Finds the addresses of a frame that begins as `link` says, tunnels and the headers that ICMP
/// errors quote included: those of IP and of the link layers. `places` is cleared first; each comes
/// with the end of the packet or frame that it is in.
pub fn address_places(link: LinkType, frame: &[u8], places: &mut Vec<(usize, Place)>) {
    places.clear();
    // The rest after a step is a piece of the frame, or empty.
    let offset = |bytes: &[u8]| place_in(frame, bytes);
    let mut layer = Layer::Link(link);
    let mut bytes = frame;
    for _ in 0..STEPS_MAX {
        let at = offset(bytes);
        let end = at + bytes.len();
        let (packet, v6) = match layer {
            Layer::Ipv4 => (ip::v4(bytes), false),
            Layer::Ipv6 => (ip::v6(bytes), true),
            Layer::EtherType(ARP | REVERSE_ARP) => {
                places.push((end, Place::Arp { at }));
                return;
            }
            other => {
                hardware::addresses(other, bytes, |within, kind| {
                    let at = at + within;
                    places.push((end, Place::Hardware { at, kind }));
                });
                let Ok(next) = step(other, bytes) else {
                    if other == Layer::Ip {
                        // No version is known: the addresses of either.
                        places.push((end, Place::Unreadable { at, v6: true }));
                    }
                    return;
                };
                (layer, bytes) = next;
                continue;
            }
        };
        let Ok(packet) = packet else {
            places.push((end, Place::Unreadable { at, v6 }));
            return;
        };
        let carried = Carried {
            at: offset(packet.transport),
            length: packet.transport.len(),
            protocol: packet.protocol,
            later_fragment: packet.later_fragment,
        };
        let place = if v6 {
            Place::Ipv6 { at, carried, elsewhere: ip::pseudo_header(bytes) }
        } else {
            Place::Ipv4 { at, carried, routed: ip::has_route_ahead(bytes) }
        };
        places.push((end, place));
        match tunnel::inside(&packet).or_else(|| quoted(&packet)) {
            Some(next) => (layer, bytes) = next,
            None => return,
        }
    }
}

/// The packet that an ICMP error or redirect is about, as far as it is quoted.
fn quoted<'a>(packet: &IpPacket<'a>) -> Option<(Layer, &'a [u8])> {
    const HEADER: usize = 8;
    let kind = packet.icmp_type_and_code()?[0];
    let (layer, quoted) = match (packet.protocol, kind) {
        // Unreachable, quench, redirect, time exceeded, parameter problem.
        (ip::ICMP, 3..=5 | 11 | 12) => (Layer::Ipv4, packet.transport.get(HEADER..)?),
        // Unreachable, too big, time exceeded, parameter problem.
        (ip::ICMPV6, 1..=4) => (Layer::Ipv6, packet.transport.get(HEADER..)?),
        (ip::ICMPV6, 137) => (Layer::Ipv6, redirected(packet.transport)?),
        _ => return None,
    };
    (!quoted.is_empty()).then_some((layer, quoted))
}

/// The packet that a redirect of IPv6 quotes in an option.
fn redirected(message: &[u8]) -> Option<&[u8]> {
    const HEADER: usize = 40;
    const REDIRECTED: u8 = 4;
    const OPTION_HEADER: usize = 8;
    let mut options = message.get(HEADER..)?;
    // The length is in units of eight bytes, which include these two.
    while let &[kind, units, ..] = options
        && units > 0
    {
        let length = options.len().min(usize::from(units) * 8);
        if kind == REDIRECTED {
            return options.get(OPTION_HEADER..length);
        }
        options = &options[length..];
    }
    None
}
