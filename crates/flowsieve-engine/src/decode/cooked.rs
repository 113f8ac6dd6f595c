//! Short headers that operating systems and old networks put before IP.

use super::bytes::{be16, byte, from, le32};
use super::ethernet::ARP;
use super::layer::{Layer, Step};
use super::{Skip, ethernet, ip};

/// An address family as operating systems number it.
pub(super) fn family(number: u32, bytes: &[u8]) -> Step<'_> {
    match number {
        2 => Ok((Layer::Ip, bytes)),
        // Linux; NetBSD and OpenBSD; FreeBSD; Darwin.
        10 | 24 | 28 | 30 => Ok((Layer::Ipv6, bytes)),
        _ => Err(Skip::NotIp),
    }
}

/// BSD loopback: an address family in the byte order of the machine that captured, which the file
/// does not say; families are small, so only one reading makes sense.
pub(super) fn loopback(bytes: &[u8]) -> Step<'_> {
    let number = le32(bytes, 0)?;
    let rest = from(bytes, 4)?;
    match (bytes, number.min(number.swap_bytes())) {
        (_, small @ ..=0xff) => family(small, rest),
        // Some systems capture PPP and Cisco HDLC links under the same type.
        ([0xff, 0x03, ..], _) => Ok((Layer::Ppp, bytes)),
        ([0x0f | 0x8f, 0, ..], _) => Ok((Layer::CiscoHdlc, bytes)),
        _ => Err(Skip::NotIp),
    }
}

/// Linux cooked capture: the protocol is an `EtherType` or one of Linux's own small numbers.
pub(super) fn linux_protocol(number: u16, bytes: &[u8]) -> Step<'_> {
    match number {
        0x0600.. => Ok((Layer::EtherType(number), bytes)),
        4 => Ok((Layer::Llc, bytes)),
        _ => Err(Skip::NotIp),
    }
}

/// FDDI: frame control and addresses.
pub(super) fn fddi(bytes: &[u8]) -> Step<'_> {
    match byte(bytes, 0)? & 0xf0 {
        0x50 => Ok((Layer::Llc, from(bytes, 13)?)),
        _ => Err(Skip::NotIp),
    }
}

/// Token ring: access and frame control, addresses, and a source route where the source address
/// has its group bit set.
pub(super) fn token_ring(bytes: &[u8]) -> Step<'_> {
    if byte(bytes, 1)? & 0xc0 != 0x40 {
        return Err(Skip::NotIp);
    }
    let route = if byte(bytes, 8)? & 0x80 == 0 { 0 } else { usize::from(byte(bytes, 14)? & 31) };
    Ok((Layer::Llc, from(bytes, 14 + route)?))
}

/// ARCNET, as BSD captures it and as Linux does (which puts two bytes of offset in between).
pub(super) fn arcnet(bytes: &[u8], linux: bool) -> Step<'_> {
    const RFC_1051_IP: u8 = 240;
    const RFC_1051_ARP: u8 = 241;
    const EXCEPTION: u8 = 0xff;
    let at = if linux { 4 } else { 2 };
    let protocol = byte(bytes, at)?;
    let layer = match protocol {
        RFC_1051_IP => return Ok((Layer::Ipv4, from(bytes, at + 1)?)),
        RFC_1051_ARP => return Ok((Layer::EtherType(ARP), from(bytes, at + 1)?)),
        213 | 214 => Layer::EtherType(ARP),
        212 | 196 => Layer::Ip,
        _ => return Err(Skip::NotIp),
    };
    let split = byte(bytes, at + 1)?;
    // A frame that had to be padded carries a second split flag and sequence number.
    let (split, header) =
        if split == EXCEPTION { (byte(bytes, at + 5)?, at + 8) } else { (split, at + 4) };
    // The first piece has an odd flag that counts the pieces, later ones an even one.
    if split != 0 && split & 1 == 0 {
        return Err(Skip::LinkFragment);
    }
    Ok((layer, from(bytes, header)?))
}

/// AAL5 frames: LLC, or bare IP on a circuit that carries nothing else.
pub(super) fn atm(bytes: &[u8]) -> Step<'_> {
    // An LLC header that matters begins with an even, high number.
    match byte(bytes, 0)? >> 4 {
        4 | 6 => ip::by_version(bytes),
        _ => Ok((Layer::Llc, bytes)),
    }
}

/// OpenBSD's encrypting interface: family in the byte order of the machine, two more words.
pub(super) fn encrypting_interface(bytes: &[u8]) -> Step<'_> {
    let number = le32(bytes, 0)?;
    family(number.min(number.swap_bytes()), from(bytes, 12)?)
}

/// The BSD packet filter's log: length (to be rounded up), family.
pub(super) fn packet_filter_log(bytes: &[u8]) -> Step<'_> {
    let length = usize::from(byte(bytes, 0)?).next_multiple_of(4);
    family(byte(bytes, 1)?.into(), from(bytes, length)?)
}

/// A switch chip's tag of `length` bytes between the Ethernet addresses and the `EtherType`.
pub(super) fn switch_tag(bytes: &[u8], length: usize) -> Step<'_> {
    ethernet::type_or_length(be16(bytes, 12 + length)?, from(bytes, 14 + length)?)
}
