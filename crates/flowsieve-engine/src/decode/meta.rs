//! Headers that say what kind of frame they carry: of capture tools, firewalls, service chains.

use super::Skip;
use super::bytes::{array, be16, byte, from, le16, le32};
use super::cooked;
use super::layer::{Layer, Step};
use crate::trace::LinkType;
use std::ops::Range;

/// Returns a carried frame. Its link type has to be another one, so that it cannot be nested.
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
    from(bytes, 4)?;
    let payload = attributes(bytes).find(|(kind, _)| *kind == PAYLOAD).ok_or(Skip::NotIp)?;
    // Cut short by the snapshot length, perhaps.
    cooked::family(number.into(), &bytes[payload.1])
}

const PAYLOAD: u16 = 9;

/// Returns the attributes of a netfilter log's record, each with its place, in the byte order in
/// which there is a payload among them; if it was cut off, in that in which the first one is
/// shorter.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, Range<usize>)> {
    let orders = [u16::from_le_bytes, u16::from_be_bytes];
    let has_payload = |number| attributes_as(bytes, number).any(|(kind, _)| kind == PAYLOAD);
    let number = orders.into_iter().find(|&number| has_payload(number));
    let number = number.unwrap_or_else(|| match array(bytes, 4) {
        Ok([low, high]) if high > low => u16::from_be_bytes,
        _ => u16::from_le_bytes,
    });
    attributes_as(bytes, number)
}

/// Netlink attributes behind a header of four bytes: length (with its own header), kind, value,
/// padding.
fn attributes_as(
    bytes: &[u8],
    number: fn([u8; 2]) -> u16,
) -> impl Iterator<Item = (u16, Range<usize>)> {
    const HEADER: usize = 4;
    let mut at = 4;
    std::iter::from_fn(move || {
        let length = usize::from(number(array(bytes, at).ok()?));
        let kind = number(array(bytes, at + 2).ok()?);
        let value = at + HEADER..(at + length).min(bytes.len());
        at += length.next_multiple_of(4);
        (length >= HEADER).then_some((kind, value))
    })
}

/// Network service header: lengths in its first word, then the kind of packet that it steers.
pub(super) fn nsh(bytes: &[u8]) -> Step<'_> {
    let length = usize::from(be16(bytes, 0)? & 63) * 4;
    if length < 8 {
        return Err(Skip::BadLinkHeader);
    }
    Ok((next_protocol(byte(bytes, 3)?)?, from(bytes, length)?))
}

/// Returns the layer that a next protocol field of NSH or VXLAN-GPE names.
pub(super) const fn next_protocol(number: u8) -> Result<Layer, Skip> {
    match number {
        1 => Ok(Layer::Ipv4),
        2 => Ok(Layer::Ipv6),
        3 => Ok(Layer::Ethernet),
        4 => Ok(Layer::Nsh),
        5 => Ok(Layer::Mpls),
        _ => Err(Skip::NotIp),
    }
}
