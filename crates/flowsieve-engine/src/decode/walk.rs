//! The walk from header to header.
//!
//! Every link, shim and tunnel header is one step: it reads its own header and returns the layer
//! behind it. So nesting needs no recursion, any header may follow any other, and one constant
//! bounds the work for a frame.

use super::layer::{Layer, Step};
use super::{IpPacket, Skip, Tunnel, ethernet, ieee80211, ip, link, meta, ppp, tunnel};
use crate::trace::LinkType;
use std::ops::Range;

/// Largest number of steps for one frame. Towers of tags, labels and tunnels on real networks stay
/// below twenty headers; a frame with more was crafted.
pub(super) const STEPS_MAX: usize = 256;

/// Reads one header that is not IP.
pub(super) fn step(layer: Layer, bytes: &[u8]) -> Step<'_> {
    match layer {
        Layer::Link(link) => link::begin(link, bytes),
        Layer::Ethernet => ethernet::ethernet(bytes),
        Layer::EtherType(number) => ethernet::ether_type(number, bytes),
        Layer::Llc => ethernet::llc(bytes),
        Layer::Nlpid(number) => ethernet::nlpid(number, bytes),
        Layer::Mpls => ethernet::mpls(bytes),
        Layer::Nsh => meta::nsh(bytes),
        Layer::Ppp => ppp::ppp(bytes),
        Layer::CiscoHdlc => ppp::cisco_hdlc(bytes),
        Layer::Hdlc => ppp::hdlc(bytes),
        Layer::PppOe => ppp::pppoe(bytes),
        Layer::Ieee80211(form) => ieee80211::frame(bytes, form),
        Layer::Ip => ip::by_version(bytes),
        Layer::Ipv4 | Layer::Ipv6 => unreachable!("the walk reads IP headers itself"),
    }
}

/// Walks from the beginning of a frame to the IP header that counts.
///
/// Not inlined: the common frames never come here, and their path stays small without it.
#[inline(never)]
pub(super) fn walk(link: LinkType, frame: &[u8], tunnel: Tunnel) -> Result<IpPacket<'_>, Skip> {
    let mut found = None;
    let mut vlan = None;
    let mut layer = Layer::Link(link);
    let mut bytes = frame;
    for _ in 0..STEPS_MAX {
        let packet = match layer {
            Layer::Ipv4 => ip::v4(bytes),
            Layer::Ipv6 => ip::v6(bytes),
            other => match step(other, bytes) {
                Ok(next) => {
                    vlan = vlan.or_else(|| ethernet::vlan(layer, bytes));
                    (layer, bytes) = next;
                    continue;
                }
                Err(skip) => Err(skip),
            },
        };
        let packet = match packet {
            Ok(packet) => IpPacket { vlan, ..packet },
            // The inside cannot be read: the last IP header counts.
            Err(skip) => return found.ok_or(skip),
        };
        if tunnel == Tunnel::Outer {
            return Ok(packet);
        }
        match tunnel::inside(&packet) {
            Some(next) => (layer, bytes) = next,
            None => return Ok(packet),
        }
        found = Some(packet);
    }
    found.ok_or(Skip::TooDeep)
}

/// Walks from the beginning of a frame to its outermost IP header, and returns the bytes from there
/// on.
#[inline(never)]
pub(super) fn to_ip(link: LinkType, frame: &[u8]) -> Result<&[u8], Skip> {
    let mut at = (Layer::Link(link), frame);
    next_packet(&mut at, &mut (0..STEPS_MAX)).map(|_| at.1)
}

/// Walks to the next IP packet and leaves `at` at its header, or at the layer that cannot be read.
pub(super) fn next_packet<'a>(
    at: &mut (Layer, &'a [u8]),
    steps: &mut Range<usize>,
) -> Result<IpPacket<'a>, Skip> {
    for _ in steps {
        let (layer, bytes) = *at;
        match layer {
            Layer::Ipv4 => return ip::v4(bytes),
            Layer::Ipv6 => return ip::v6(bytes),
            other => *at = step(other, bytes)?,
        }
    }
    Err(Skip::TooDeep)
}

/// Walks from the beginning of a frame to its innermost IP header, and returns the bytes from there
/// on. Apart from [`walk`], which gets slower if it also has to return these.
#[inline(never)]
pub(super) fn to_innermost_ip(link: LinkType, frame: &[u8]) -> Result<&[u8], Skip> {
    let mut found = to_ip(link, frame)?;
    let (mut at, mut steps) = ((Layer::Ip, found), 0..STEPS_MAX);
    // If the inside cannot be read, the last IP header counts.
    while let Ok(packet) = next_packet(&mut at, &mut steps) {
        found = at.1;
        match tunnel::inside(&packet) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(found)
}
