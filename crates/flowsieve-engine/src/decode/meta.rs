//! Headers that say what kind of frame they carry: of capture tools, firewalls, service chains.

use super::Skip;
use super::bytes::{array, be16, byte, from, le16, le32};
use super::cooked;
use super::layer::{Layer, Step};
use crate::trace::LinkType;

/// A frame of a link type that does not carry itself, so that it cannot be nested.
fn carried(own: u16, number: u32, bytes: &[u8]) -> Step<'_> {
    match u16::try_from(number) {
        Ok(number) if number != own => Ok((Layer::Link(LinkType(number)), bytes)),
        _ => Err(Skip::BadLinkHeader),
    }
}

/// Per-packet information: length, link type, fields.
pub(super) fn ppi(bytes: &[u8]) -> Step<'_> {
    let length = usize::from(le16(bytes, 2)?);
    carried(192, le32(bytes, 4)?, from(bytes, length)?)
}

/// Darwin's packet tap: length, kind of record, link type.
pub(super) fn pktap(bytes: &[u8]) -> Step<'_> {
    const PACKET: u32 = 1;
    let length = le32(bytes, 0)? as usize;
    if le32(bytes, 4)? != PACKET {
        return Err(Skip::NotIp);
    }
    carried(258, le32(bytes, 8)?, from(bytes, length)?)
}

/// Linux's netfilter log: family, then attributes in the byte order of the machine that captured.
pub(super) fn nflog(bytes: &[u8]) -> Step<'_> {
    let number = byte(bytes, 0)?;
    let attributes = from(bytes, 4)?;
    let payload = attribute_payload(attributes, u16::from_le_bytes)
        .or_else(|| attribute_payload(attributes, u16::from_be_bytes))
        .ok_or(Skip::NotIp)?;
    cooked::family(number.into(), payload)
}

/// The payload among netlink attributes: length (with its own header), kind, value, padding.
fn attribute_payload(mut bytes: &[u8], number: fn([u8; 2]) -> u16) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    const HEADER: usize = 4;
    loop {
        let length = usize::from(number(array(bytes, 0).ok()?));
        let kind = number(array(bytes, 2).ok()?);
        if length < HEADER {
            return None;
        }
        if kind == PAYLOAD {
            // Cut short by the snapshot length, perhaps.
            return bytes.get(HEADER..length.min(bytes.len()));
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

/// Network service header: lengths in its first word, then the kind of packet that it steers.
pub(super) fn nsh(bytes: &[u8]) -> Step<'_> {
    let length = usize::from(be16(bytes, 0)? & 63) * 4;
    if length < 8 {
        return Err(Skip::BadLinkHeader);
    }
    let layer = match byte(bytes, 3)? {
        1 => Layer::Ipv4,
        2 => Layer::Ipv6,
        3 => Layer::Ethernet,
        4 => Layer::Nsh,
        5 => Layer::Mpls,
        _ => return Err(Skip::NotIp),
    };
    Ok((layer, from(bytes, length)?))
}
