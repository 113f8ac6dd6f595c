//! The layers that may be inside a UDP datagram, by port.

use super::DNS_PORT;
use super::bytes::{array, be16, byte, from};
use super::ieee80211::Form;
use super::layer::{Layer, Step};
use super::meta::next_protocol;
use super::{IpPacket, Skip, gre, ip};

/// Returns whether a packet that the common path decoded may belong to a tunnel; true for all that
/// do.
///
/// It has no branch on the protocol, which traffic mixes at random.
#[inline]
pub(super) fn may_be_one(packet: &IpPacket<'_>) -> bool {
    let (a, b) = packet.ports().unwrap_or_default();
    let marked = |port: u16| MARKED[usize::from(port) % MARKED.len()];
    (packet.protocol == ip::UDP) & (marked(a) | marked(b))
}

/// Remainders of the ports in [`TUNNELS`]: of other ports one in a hundred has the same.
static MARKED: [bool; 1024] = {
    let mut table = [false; 1024];
    let mut at = 0;
    while at < TUNNELS.len() {
        table[TUNNELS[at].0 as usize % table.len()] = true;
        at += 1;
    }
    table
};

/// Reads the header of a tunnel.
type Header = for<'a> fn(&'a [u8]) -> Step<'a>;

/// The tunnels by their ports.
const TUNNELS: [(u16, Header); 13] = [
    (1701, l2tp),
    (2152, gtp),
    (3544, teredo),
    // Locator/identifier separation: eight bytes, then a packet.
    (4341, |bytes| Ok((Layer::Ip, from(bytes, 8)?))),
    (4342, lisp_control),
    (4754, gre::gre),
    (4789, vxlan),
    (8472, vxlan),
    (4790, vxlan_gpe),
    (5072, ayiya),
    (5247, capwap),
    (6081, geneve),
    (6635, |bytes| Ok((Layer::Mpls, bytes))),
];

/// Returns the tunnel that a port belongs to.
fn header_of(port: u16) -> Option<Header> {
    TUNNELS.iter().find(|&&(of_tunnel, _)| of_tunnel == port).map(|&(_, header)| header)
}

/// Returns the beginning of the inside of a datagram. Either port may be a tunnel's; the lower one
/// is tried first, as it is less likely to have been chosen at random. DNS is no tunnel, on any
/// port of its client.
pub(super) fn inside(datagram: &[u8]) -> Step<'_> {
    let (source, destination) = (be16(datagram, 0)?, be16(datagram, 2)?);
    if source == DNS_PORT || destination == DNS_PORT {
        return Err(Skip::NotIp);
    }
    let length = usize::from(be16(datagram, 4)?).max(8);
    let payload = from(&datagram[..datagram.len().min(length)], 8)?;
    [source.min(destination), source.max(destination)]
        .into_iter()
        .filter_map(header_of)
        .map(|header| header(payload))
        .find(Result::is_ok)
        .unwrap_or(Err(Skip::NotIp))
}

/// Anything in anything: identity and signature have the sizes that the first two bytes say.
fn ayiya(bytes: &[u8]) -> Step<'_> {
    const FORWARD: u8 = 1;
    let [sizes, signature, operation, next_header] = array(bytes, 0)?;
    if operation & 15 != FORWARD || !matches!(next_header, 4 | 41) {
        return Err(Skip::NotIp);
    }
    let identity = 1_usize << (sizes >> 4);
    let signature = usize::from(signature >> 4) * 4;
    Ok((Layer::Ip, from(bytes, 8 + identity + signature)?))
}

/// Layer two tunnelling, version 2: flags say which fields are there.
fn l2tp(bytes: &[u8]) -> Step<'_> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    const VERSION: u16 = 15;
    let flags = be16(bytes, 0)?;
    if flags & VERSION != 2 || flags & CONTROL != 0 {
        return Err(Skip::NotIp);
    }
    let field = |flag: u16, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    let mut at = 6 + field(LENGTH, 2) + field(SEQUENCE, 4);
    if flags & OFFSET != 0 {
        at += 2 + usize::from(be16(bytes, at)?);
    }
    Ok((Layer::Ppp, from(bytes, at)?))
}

/// Reads GTP-U, the user plane of mobile networks: a packet after optional fields and extension
/// headers.
fn gtp(bytes: &[u8]) -> Step<'_> {
    const VERSION_AND_KIND: u8 = 0xf0;
    const VERSION_1: u8 = 0x30;
    const EXTENSION: u8 = 0x04;
    const ANY_OPTION: u8 = 0x07;
    const USER_PACKET: u8 = 255;
    let [flags, message] = array(bytes, 0)?;
    if flags & VERSION_AND_KIND != VERSION_1 || message != USER_PACKET {
        return Err(Skip::NotIp);
    }
    let mut at = 8;
    if flags & ANY_OPTION != 0 {
        at = 12;
        let mut extension = flags & EXTENSION != 0 && byte(bytes, 11)? != 0;
        while extension {
            let length = usize::from(byte(bytes, at)?) * 4;
            if length == 0 {
                return Err(Skip::BadLinkHeader);
            }
            at += length;
            extension = byte(bytes, at - 1)? != 0;
        }
    }
    let layer = match byte(bytes, at)? >> 4 {
        4 | 6 => Layer::Ip,
        _ => Layer::Ppp,
    };
    Ok((layer, from(bytes, at)?))
}

/// IPv6 through address translators, behind authentication and origin.
fn teredo(mut bytes: &[u8]) -> Step<'_> {
    if let [0, 1, identifier, value, ..] = *bytes {
        bytes = from(bytes, 13 + usize::from(identifier) + usize::from(value))?;
    }
    if bytes.starts_with(&[0, 0]) {
        bytes = from(bytes, 8)?;
    }
    match byte(bytes, 0)? >> 4 {
        6 => Ok((Layer::Ipv6, bytes)),
        _ => Err(Skip::NotIp),
    }
}

/// The control plane of locator/identifier separation wraps whole packets to the mapping system.
fn lisp_control(bytes: &[u8]) -> Step<'_> {
    const ENCAPSULATED: u8 = 8;
    match byte(bytes, 0)? >> 4 {
        ENCAPSULATED => Ok((Layer::Ip, from(bytes, 4)?)),
        _ => Err(Skip::NotIp),
    }
}

const VXLAN_NETWORK_GIVEN: u8 = 0x08;
const VXLAN_PROTOCOL_GIVEN: u8 = 0x04;

/// Virtual extensible LAN: an Ethernet frame.
fn vxlan(bytes: &[u8]) -> Step<'_> {
    let flags = byte(bytes, 0)?;
    if flags & VXLAN_NETWORK_GIVEN == 0 {
        return Err(Skip::NotIp);
    }
    Ok((Layer::Ethernet, from(bytes, 8)?))
}

/// Its generic extension says what it carries.
fn vxlan_gpe(bytes: &[u8]) -> Step<'_> {
    let [flags, _, _, protocol] = array(bytes, 0)?;
    let layer = match flags & VXLAN_PROTOCOL_GIVEN {
        0 => Layer::Ethernet,
        _ => next_protocol(protocol)?,
    };
    Ok((layer, from(bytes, 8)?))
}

/// Generic network virtualisation: options, then what an `EtherType` says.
fn geneve(bytes: &[u8]) -> Step<'_> {
    let first = byte(bytes, 0)?;
    if first >> 6 != 0 {
        return Err(Skip::NotIp);
    }
    let options = usize::from(first & 63) * 4;
    Ok((Layer::EtherType(be16(bytes, 2)?), from(bytes, 8 + options)?))
}

/// Wireless frames between access point and controller.
fn capwap(bytes: &[u8]) -> Step<'_> {
    const PLAIN: u8 = 0;
    const NATIVE: u8 = 0x01;
    const FRAGMENT: u8 = 0x80;
    let [preamble, length, kind, flags] = array(bytes, 0)?;
    let native = kind & NATIVE != 0;
    if preamble != PLAIN {
        return Err(Skip::Encrypted);
    }
    if flags & FRAGMENT != 0 && be16(bytes, 6)? >> 3 != 0 {
        return Err(Skip::LinkFragment);
    }
    let frame = from(bytes, usize::from(length >> 3) * 4)?;
    match (native, kind >> 1 & 31) {
        (false, _) => Ok((Layer::Ethernet, frame)),
        // Some vendors' access points swap the two bytes of frame control. In data frames between
        // the two the first byte has a bit where the version, always 0, would be.
        (true, 1) if byte(frame, 0)? & 3 != 0 => Ok((Layer::Ieee80211(Form::Swapped), frame)),
        (true, 1) => Ok((Layer::Ieee80211(Form::Plain), frame)),
        (true, _) => Err(Skip::NotIp),
    }
}
