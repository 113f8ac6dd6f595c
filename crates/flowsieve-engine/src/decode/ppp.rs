//! Serial lines: PPP, PPP over Ethernet, Cisco HDLC, Frame Relay.

use super::Skip;
use super::bytes::{be16, byte, from};
use super::layer::{Layer, Step};

/// PPP, with or without its address and control field, its protocol field long or short.
pub(super) fn ppp(bytes: &[u8]) -> Step<'_> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let first = byte(bytes, 0)?;
    // The last byte of a protocol number is odd, so an odd first byte is a compressed number.
    let (protocol, bytes) = if first & 1 == 1 {
        (u16::from(first), from(bytes, 1)?)
    } else {
        (be16(bytes, 0)?, from(bytes, 2)?)
    };
    match protocol {
        0x0021 => Ok((Layer::Ipv4, bytes)),
        0x0057 => Ok((Layer::Ipv6, bytes)),
        0x0281 | 0x0283 => Ok((Layer::Mpls, bytes)),
        _ => Err(Skip::NotIpPpp),
    }
}

/// The session stage of PPP over Ethernet.
pub(super) fn pppoe(bytes: &[u8]) -> Step<'_> {
    const SESSION_DATA: u8 = 0;
    let code = byte(bytes, 1)?;
    let length = usize::from(be16(bytes, 4)?);
    if code != SESSION_DATA {
        return Err(Skip::NotIpPpp);
    }
    let payload = from(bytes, 6)?;
    Ok((Layer::Ppp, &payload[..payload.len().min(length)]))
}

/// Cisco HDLC: address, control, `EtherType`.
pub(super) fn cisco_hdlc(bytes: &[u8]) -> Step<'_> {
    match be16(bytes, 2)? {
        // Cisco's own address resolution and discovery, and OSI.
        0x8035 => Err(Skip::Arp),
        0x2000 => Err(Skip::NotIpEthertype),
        0xfefe => Err(Skip::NotIpLlc),
        number => Ok((Layer::EtherType(number), from(bytes, 4)?)),
    }
}

/// HDLC framing of either kind: Cisco's has a unicast or broadcast address and no control.
pub(super) fn hdlc(bytes: &[u8]) -> Step<'_> {
    match bytes {
        [0x0f | 0x8f, ..] => cisco_hdlc(bytes),
        _ => Ok((Layer::Ppp, bytes)),
    }
}

/// Frame Relay: address, then either unnumbered information with an NLPID, or Cisco's `EtherType`.
pub(super) fn frame_relay(bytes: &[u8]) -> Step<'_> {
    const LAST_ADDRESS_BYTE: u8 = 1;
    const ADDRESS_MAX: usize = 4;
    const UNNUMBERED_INFORMATION: u8 = 3;
    let address = bytes
        .iter()
        .take(ADDRESS_MAX)
        .position(|b| b & LAST_ADDRESS_BYTE != 0)
        .ok_or(Skip::BadLinkHeader)?
        + 1;
    if byte(bytes, address)? != UNNUMBERED_INFORMATION {
        let number = be16(bytes, address)?;
        return Ok((Layer::EtherType(number), from(bytes, address + 2)?));
    }
    // One byte of padding may align what follows.
    let at = match byte(bytes, address + 1)? {
        0 => address + 2,
        _ => address + 1,
    };
    Ok((Layer::Nlpid(byte(bytes, at)?), from(bytes, at + 1)?))
}
