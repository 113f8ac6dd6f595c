//! Wireless frames: the headers that capturing drivers add, and 802.11 itself.

use super::Skip;
use super::bytes::{array, be32, byte, from, le16, le32};
use super::layer::{Layer, Step};

/// Radiotap: a bitmap of fields, of which only the flags matter here.
pub(super) fn radiotap(bytes: &[u8]) -> Step<'_> {
    const MORE_BITMAPS: u32 = 1 << 31;
    const TIMER: u32 = 1;
    const FLAGS: u32 = 2;
    const PADDED: u8 = 0x20;
    let length = usize::from(le16(bytes, 2)?);
    let header = bytes.get(..length).ok_or(Skip::CutShort)?;
    let present = le32(header, 4).map_err(|_| Skip::BadLinkHeader)?;
    let mut at = 8;
    let mut bitmap = present;
    while bitmap & MORE_BITMAPS != 0 {
        bitmap = le32(header, at).map_err(|_| Skip::BadLinkHeader)?;
        at += 4;
    }
    if present & TIMER != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = match present & FLAGS {
        0 => 0,
        _ => byte(header, at).map_err(|_| Skip::BadLinkHeader)?,
    };
    let frame = from(bytes, length)?;
    Ok(match flags & PADDED {
        0 => (Layer::Ieee80211, frame),
        _ => (Layer::Ieee80211Padded, frame),
    })
}

/// Prism: a block of fixed length whose second word says which; some drivers wrote AVS instead.
pub(super) fn prism(bytes: &[u8]) -> Step<'_> {
    if is_avs(bytes)? {
        return avs(bytes);
    }
    let length = le32(bytes, 4)? as usize;
    Ok((Layer::Ieee80211, from(bytes, length)?))
}

/// AVS: a versioned header that states its length.
pub(super) fn avs(bytes: &[u8]) -> Step<'_> {
    if !is_avs(bytes)? {
        return Err(Skip::BadLinkHeader);
    }
    let length = be32(bytes, 4)? as usize;
    Ok((Layer::Ieee80211, from(bytes, length)?))
}

fn is_avs(bytes: &[u8]) -> Result<bool, Skip> {
    Ok(be32(bytes, 0)? & 0xffff_f000 == 0x8021_1000)
}

/// How an 802.11 frame was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// As sent.
    Plain,
    /// With the header padded to a multiple of four bytes.
    Padded,
    /// With the two bytes of the frame control swapped, and those of the sequence control.
    Swapped,
}

/// An 802.11 frame; of use are data frames that are neither empty nor encrypted.
pub(super) fn frame(bytes: &[u8], form: Form) -> Step<'_> {
    const DATA: u8 = 2;
    const NO_DATA: u8 = 0x40;
    const WITH_QUALITY: u8 = 0x80;
    const TO_DISTRIBUTION: u8 = 0x01;
    const FROM_DISTRIBUTION: u8 = 0x02;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    const AGGREGATE_HEADER: usize = 14;

    let [mut control, mut flags] = array(bytes, 0)?;
    if form == Form::Swapped {
        (control, flags) = (flags, control);
    }
    if control & 3 != 0 {
        return Err(Skip::BadLinkHeader);
    }
    if control >> 2 & 3 != DATA || control & NO_DATA != 0 {
        return Err(Skip::WlanNoData);
    }
    if flags & PROTECTED != 0 {
        return Err(Skip::Encrypted);
    }
    let sequence = le16(bytes, 22)?;
    let fragment = match form {
        Form::Swapped => sequence.swap_bytes(),
        _ => sequence,
    };
    if fragment & 15 != 0 {
        return Err(Skip::LinkFragment);
    }
    let mut header = 24;
    if flags & TO_DISTRIBUTION != 0 && flags & FROM_DISTRIBUTION != 0 {
        header += 6;
    }
    let mut aggregate = false;
    if control & WITH_QUALITY != 0 {
        aggregate = byte(bytes, header)? & AGGREGATE != 0;
        header += 2;
        if flags & ORDER != 0 {
            header += 4;
        }
    }
    if form == Form::Padded {
        header = header.next_multiple_of(4);
    }
    if aggregate {
        // Of several packets in one frame the first counts.
        header += AGGREGATE_HEADER;
    }
    Ok((Layer::Llc, from(bytes, header)?))
}
