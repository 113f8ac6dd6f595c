//! MAC addresses inside of messages: DHCP and neighbour discovery.

use super::mac::MacMap;
use super::rewrite::Rewrite;
use crate::decode::{Carried, Hardware};

/// A DHCP or BOOTP message in an IPv4 packet: the client's hardware address, and its identifier
/// among the options.
pub(super) fn dhcp(rewrite: &mut Rewrite<'_>, carried: Carried, macs: &mut MacMap) {
    const UDP_HEADER: usize = 8;
    const HARDWARE_ADDRESS: usize = 28;
    const HARDWARE_ROOM: usize = 16;
    const OPTIONS: usize = 240;
    let end = carried.at + carried.length;
    let Some([source_high, source_low, high, low]) = rewrite.array(carried.at) else { return };
    let ports = [[source_high, source_low], [high, low]].map(u16::from_be_bytes);
    if carried.length < UDP_HEADER || !ports.iter().any(|port| matches!(port, 67 | 68)) {
        return;
    }
    let at = carried.at + UDP_HEADER;
    // Request or reply, hardware, length of the address.
    let Some([1 | 2, _, length]) = rewrite.array(at) else { return };
    let address = at + HARDWARE_ADDRESS;
    if length == 6 && address + 6 <= end {
        rewrite.hardware(address, Hardware::Mac, macs);
        rewrite.blank(address + 6, (end - address).min(HARDWARE_ROOM) - 6);
    } else {
        let room = end.saturating_sub(address).min(HARDWARE_ROOM);
        rewrite.blank(address, room);
    }
    options(rewrite, at + OPTIONS..end, macs);
}

/// DHCP's options: kind, length, value. A client's identifier that is no MAC address may be made of
/// one, and becomes zeros.
fn options(rewrite: &mut Rewrite<'_>, range: std::ops::Range<usize>, macs: &mut MacMap) {
    const PAD: u8 = 0;
    const END: u8 = 255;
    const CLIENT_IDENTIFIER: u8 = 61;
    const ETHERNET: u8 = 1;
    let mut at = range.start;
    while at < range.end {
        let kind = rewrite.frame[at];
        if kind == END {
            return;
        }
        if kind == PAD {
            at += 1;
            continue;
        }
        let Some(length) = rewrite.array(at + 1).map(|[length]: [u8; 1]| length) else { return };
        let value = at + 2;
        let next = value + usize::from(length);
        if kind == CLIENT_IDENTIFIER && length > 0 {
            let is_mac = length == 7 && next <= range.end && rewrite.frame[value] == ETHERNET;
            if is_mac {
                rewrite.hardware(value + 1, Hardware::Mac, macs);
            } else {
                let rest = next.min(range.end).saturating_sub(value + 1);
                rewrite.blank(value + 1, rest);
            }
        }
        at = next;
    }
}

/// A message of neighbour discovery: the link-layer addresses among its options.
pub(super) fn neighbour(
    rewrite: &mut Rewrite<'_>,
    kind: Option<u8>,
    carried: Carried,
    macs: &mut MacMap,
) {
    const SOURCE: u8 = 1;
    const TARGET: u8 = 2;
    let header = match kind {
        // Solicitation and advertisement of routers, of neighbours, redirect, the inverse.
        Some(133 | 141 | 142) => 8,
        Some(134) => 16,
        Some(135 | 136) => 24,
        Some(137) => 40,
        _ => return,
    };
    let (mut at, end) = (carried.at + header, carried.at + carried.length);
    while at < end {
        // The length is in units of eight bytes, which include these two.
        let Some([option, units]) = rewrite.array(at) else { return };
        let length = usize::from(units) * 8;
        if matches!(option, SOURCE | TARGET) {
            let there = end.min(at + length).saturating_sub(at + 2);
            if units == 1 && there == 6 {
                rewrite.hardware(at + 2, Hardware::Mac, macs);
            } else {
                rewrite.blank(at + 2, there);
            }
        }
        if length == 0 {
            return;
        }
        at += length;
    }
}
