//! Ethernet and what stands between it and IP: tags of every kind, labels, LLC and SNAP.

use super::bytes::{be16, be32, byte, from};
use super::layer::{Layer, Step};
use super::{Skip, ip};
use etherparse::EtherType;

/// Smallest `EtherType`; smaller numbers are lengths, and those above 1500 are neither.
const ETHERTYPE_MIN: u16 = 0x600;
const LENGTH_MAX: u16 = 1500;

/// The bits of a VLAN tag's control information that name the VLAN.
pub(super) const VLAN_IDENTIFIER: u16 = 0xfff;

/// `EtherType` of IPv4.
pub(super) const IPV4: u16 = EtherType::IPV4.0;
/// `EtherType` of IPv6.
pub(super) const IPV6: u16 = EtherType::IPV6.0;
/// `EtherType` of address resolution messages.
pub(super) const ARP: u16 = EtherType::ARP.0;
/// `EtherType` of reverse address resolution.
pub(super) const REVERSE_ARP: u16 = 0x8035;

/// VLAN tags: 802.1Q, 802.1ad, and the numbers in use before 802.1ad had one.
pub(super) const VLAN_TAGS: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];

/// Bytes of an Ethernet header without tags.
pub(super) const ETHERNET_HEADER: usize = 14;
/// Bytes of a VLAN tag.
pub(super) const TAG: usize = 4;

/// Returns the `EtherType` behind up to two VLAN tags of a frame that begins with these bytes, and
/// where its payload begins.
#[inline]
pub(super) fn behind_tags<const N: usize>(head: &[u8; N]) -> (u16, usize) {
    let ether_type = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let mut at = ETHERNET_HEADER;
    while matches!(ether_type(at - 2), 0x8100 | 0x88a8) && at < ETHERNET_HEADER + 2 * TAG {
        at += TAG;
    }
    (ether_type(at - 2), at)
}

/// Returns the identifier of a VLAN tag, if this layer is one.
pub(super) fn vlan(layer: Layer, bytes: &[u8]) -> Option<u16> {
    match layer {
        Layer::EtherType(number) if VLAN_TAGS.contains(&number) => {
            be16(bytes, 0).ok().map(|tag| tag & VLAN_IDENTIFIER)
        }
        _ => None,
    }
}

/// Reads the two addresses and the `EtherType` or length.
pub(super) fn ethernet(frame: &[u8]) -> Step<'_> {
    type_or_length(be16(frame, 12)?, from(frame, 14)?)
}

/// Returns the layer that an `EtherType` or length announces.
pub(super) fn type_or_length(number: u16, bytes: &[u8]) -> Step<'_> {
    match number {
        ETHERTYPE_MIN.. => Ok((Layer::EtherType(number), bytes)),
        // Novell's raw IPX has no LLC header, but a checksum field that is never used.
        ..=LENGTH_MAX if bytes.starts_with(&[0xff, 0xff]) => Err(Skip::NotIpLlc),
        ..=LENGTH_MAX => Ok((Layer::Llc, &bytes[..bytes.len().min(number.into())])),
        _ => Err(Skip::BadLinkHeader),
    }
}

/// Goes on behind an `EtherType` at an offset.
fn tagged(bytes: &[u8], at: usize) -> Step<'_> {
    type_or_length(be16(bytes, at)?, from(bytes, at + 2)?)
}

/// Reads the payload of an `EtherType`.
pub(super) fn ether_type(number: u16, bytes: &[u8]) -> Step<'_> {
    match number {
        // Either version: some routers mark IPv6 as IPv4.
        IPV4 => Ok((Layer::Ip, bytes)),
        IPV6 => Ok((Layer::Ipv6, bytes)),
        ARP | REVERSE_ARP => Err(Skip::Arp),
        _ if VLAN_TAGS.contains(&number) => tagged(bytes, 2),
        0x8847 | 0x8848 => Ok((Layer::Mpls, bytes)),
        0x8864 => Ok((Layer::PppOe, bytes)),
        0x880b => Ok((Layer::Ppp, bytes)),
        0x894f => Ok((Layer::Nsh, bytes)),
        // Transparent Ethernet bridging.
        0x6558 => Ok((Layer::Ethernet, bytes)),
        // Cisco FabricPath: forwarding tag and time to live, then the customer's frame.
        0x8903 => Ok((Layer::Ethernet, from(bytes, 2)?)),
        // 802.1ah: service tag, then the customer's frame.
        0x88e7 => Ok((Layer::Ethernet, from(bytes, 4)?)),
        // Jumbo frames of 802.3.
        0x8870 => Ok((Layer::Llc, bytes)),
        // VN-Tag, 802.1BR, Cisco metadata, 802.1CB, and high-availability rings.
        0x8926 | 0xf1c1 | 0x892f => tagged(bytes, 4),
        0x893f | 0x8909 => tagged(bytes, 6),
        0x22f3 => trill(bytes),
        MACSEC => macsec(bytes),
        _ => Err(Skip::NotIpEthertype),
    }
}

/// TRILL: a fixed header, options in units of four bytes, the customer's frame.
fn trill(bytes: &[u8]) -> Step<'_> {
    let options = usize::from(be16(bytes, 0)? >> 6 & 31) * 4;
    Ok((Layer::Ethernet, from(bytes, 6 + options)?))
}

/// `EtherType` of `MACsec`.
pub(super) const MACSEC: u16 = 0x88e5;

/// `MACsec` flag: the secure channel identifier follows the first six bytes.
pub(super) const MACSEC_CHANNEL: u8 = 0x20;

/// `MACsec` is readable where it protects integrity only.
fn macsec(bytes: &[u8]) -> Step<'_> {
    const ENCRYPTED: u8 = 0x08;
    let flags = byte(bytes, 0)?;
    if flags & ENCRYPTED != 0 {
        return Err(Skip::Encrypted);
    }
    tagged(bytes, if flags & MACSEC_CHANNEL == 0 { 6 } else { 14 })
}

/// Reads an 802.2 LLC header, with SNAP.
pub(super) fn llc(bytes: &[u8]) -> Step<'_> {
    let destination = byte(bytes, 0)?;
    let source = byte(bytes, 1)?;
    // Unnumbered frames have a short control field.
    let header = if byte(bytes, 2)? & 3 == 3 { 3 } else { 4 };
    match (destination, source) {
        (0xaa, _) => snap(from(bytes, header)?),
        (0x06, _) => Ok((Layer::Ip, from(bytes, header)?)),
        (0xfe, _) => nlpid(byte(bytes, header)?, from(bytes, header + 1)?),
        _ => Err(Skip::NotIpLlc),
    }
}

/// Reads the payload of an OSI network layer protocol identifier.
pub(super) fn nlpid(number: u8, bytes: &[u8]) -> Step<'_> {
    match number {
        0xcc => Ok((Layer::Ipv4, bytes)),
        0x8e => Ok((Layer::Ipv6, bytes)),
        0xcf => Ok((Layer::Ppp, bytes)),
        0x80 => snap(bytes),
        _ => Err(Skip::NotIpLlc),
    }
}

/// Reads the organisation and protocol identifier of SNAP.
fn snap(bytes: &[u8]) -> Step<'_> {
    let organisation = be32(bytes, 0)? >> 8;
    let protocol = be16(bytes, 3)?;
    let bytes = from(bytes, 5)?;
    match (organisation, protocol) {
        // Encapsulated Ethernet, 802.1H, AppleTalk.
        (0x00_0000 | 0x00_00f8 | 0x08_0007, _) => Ok((Layer::EtherType(protocol), bytes)),
        // Bridged Ethernet, with and without checksum.
        (0x00_80c2, 1 | 7) => Ok((Layer::Ethernet, bytes)),
        _ => Err(Skip::NotIpLlc),
    }
}

/// Reads an MPLS label stack entry. No field says what follows the last one: the first nibble tells
/// an IP header from a pseudowire's control word.
pub(super) fn mpls(bytes: &[u8]) -> Step<'_> {
    const BOTTOM_OF_STACK: u32 = 0x100;
    const PSEUDOWIRE_CONTROL_WORD: usize = 4;
    const MAINTENANCE_LABEL: u32 = 14;
    let entry = be32(bytes, 0)?;
    let bytes = from(bytes, 4)?;
    if entry & BOTTOM_OF_STACK == 0 {
        return Ok((Layer::Mpls, bytes));
    }
    if entry >> 12 == MAINTENANCE_LABEL {
        return Err(Skip::NotIp);
    }
    match bytes.first().map(|first| first >> 4) {
        // The label is a header, also if all behind it was cut off.
        None => Ok((Layer::Ip, bytes)),
        Some(4 | 6) => ip::by_version(bytes),
        // The control word, mostly zeros, may be left out (RFC 4448), and an address of Ethernet begin
        // with 0.
        Some(0) => {
            let behind = from(bytes, PSEUDOWIRE_CONTROL_WORD)?;
            let is_frame = |bytes| matches!(be16(bytes, 12), Ok(0x0800 | 0x86dd | 0x8100 | 0x88a8));
            let is_without = !bytes.starts_with(&[0; 4]) && is_frame(bytes) && !is_frame(behind);
            Ok((Layer::Ethernet, if is_without { bytes } else { behind }))
        }
        Some(_) => Err(Skip::NotIp),
    }
}
