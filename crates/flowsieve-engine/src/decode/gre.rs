//! Generic routing encapsulation, and what is mirrored or redirected in it.

use super::bytes::{array, be16, byte, from};
use super::ieee80211::Form;
use super::layer::{Layer, Step};
use super::{Skip, ethernet};

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
        // Wireless frames of one vendor's access points.
        0x8200..=0x83ff | 0x9000 => Ok((Layer::Ieee80211(Form::Plain), from(bytes, at)?)),
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

/// ERSPAN type III: a fixed header, with a flag for a second one.
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
