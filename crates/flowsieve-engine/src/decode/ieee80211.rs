//! Wireless frames: the headers that capturing drivers add, and 802.11 itself.

use super::Skip;
use super::bytes::{array, be16, be32, byte, from, le16, le32};
use super::layer::{Layer, Step};

/// Radiotap: a bitmap of fields; only the flags matter here.
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
    let form = if flags & PADDED == 0 { Form::Plain } else { Form::Padded };
    Ok((Layer::Ieee80211(form), frame))
}

/// Prism: a block of fixed length whose second word says which; some drivers wrote AVS instead.
pub(super) fn prism(bytes: &[u8]) -> Step<'_> {
    if is_avs(bytes)? {
        return avs(bytes);
    }
    let length = le32(bytes, 4)? as usize;
    Ok((Layer::Ieee80211(Form::Plain), from(bytes, length)?))
}

/// AVS: a versioned header that states its length.
pub(super) fn avs(bytes: &[u8]) -> Step<'_> {
    if !is_avs(bytes)? {
        return Err(Skip::BadLinkHeader);
    }
    let length = be32(bytes, 4)? as usize;
    Ok((Layer::Ieee80211(Form::Plain), from(bytes, length)?))
}

fn is_avs(bytes: &[u8]) -> Result<bool, Skip> {
    Ok(be32(bytes, 0)? & 0xffff_f000 == 0x8021_1000)
}

/// The byte order and padding of an 802.11 frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// As sent.
    Plain,
    /// With the header padded to a multiple of four bytes.
    Padded,
    /// With the two bytes of the frame control swapped, and those of the sequence control.
    Swapped,
}

const DATA: u8 = 2;
const NO_DATA: u8 = 0x40;
const WITH_QUALITY: u8 = 0x80;
const TO_DISTRIBUTION: u8 = 0x01;
const FROM_DISTRIBUTION: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// Type and subtype, and the flags.
fn control(bytes: &[u8], form: Form) -> Result<[u8; 2], Skip> {
    let [first, second] = array(bytes, 0)?;
    let [control, flags] = match form {
        Form::Swapped => [second, first],
        _ => [first, second],
    };
    // The version.
    if control & 3 != 0 {
        return Err(Skip::BadLinkHeader);
    }
    Ok([control, flags])
}

/// Reads an 802.11 frame; only data frames that are neither empty nor encrypted are of use.
pub(super) fn frame(bytes: &[u8], form: Form) -> Step<'_> {
    const AGGREGATE_HEADER: usize = 14;
    // The first of several packets in one frame counts.
    let (header, aggregate) = behind_header(bytes, form)?;
    let header = if aggregate { header + AGGREGATE_HEADER } else { header };
    Ok((Layer::Llc, from(bytes, header)?))
}

/// Returns the offset of a data frame's payload, and whether that is several packets with a header
/// each.
fn behind_header(bytes: &[u8], form: Form) -> Result<(usize, bool), Skip> {
    const AGGREGATE: u8 = 0x80;
    let [control, flags] = control(bytes, form)?;
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
    Ok((header, aggregate))
}

/// Shows where addresses stand: those that frames of its type have, and those of each packet of
/// several in one frame.
pub(super) fn addresses(bytes: &[u8], form: Form, mut see: impl FnMut(usize)) {
    let count = address_count(bytes, form);
    [4, 10, 16, 24].into_iter().take(count).for_each(&mut see);
    let Ok((mut at, true)) = behind_header(bytes, form) else { return };
    // Destination, source, length; the next packet is aligned to four bytes of what is carried.
    let start = at;
    while at < bytes.len() {
        see(at);
        see(at + 6);
        let Ok(length) = be16(bytes, at + 12) else { return };
        at = start + (at - start + 14 + usize::from(length)).next_multiple_of(4);
    }
}

/// Returns the number of addresses in the header of a frame.
fn address_count(bytes: &[u8], form: Form) -> usize {
    const MANAGEMENT: u8 = 0;
    const CONTROL: u8 = 1;
    const BOTH: u8 = TO_DISTRIBUTION | FROM_DISTRIBUTION;
    let Ok([control, flags]) = control(bytes, form) else { return 0 };
    match (control >> 2 & 3, control >> 4) {
        (DATA, _) if flags & BOTH == BOTH => 4,
        (DATA | MANAGEMENT, _) => 3,
        // A wrapper, CTS, acknowledgement: the receiver's alone.
        (CONTROL, 7 | 12 | 13) => 1,
        (CONTROL, _) => 2,
        _ => 1,
    }
}

/// Returns the length of the header of a frame without readable payload: up to its addresses and
/// its sequence number.
pub(super) fn header_bytes(bytes: &[u8], form: Form) -> usize {
    [0, 10, 16, 24, 30][address_count(bytes, form)]
}
