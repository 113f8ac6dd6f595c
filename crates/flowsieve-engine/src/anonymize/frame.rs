//! The addresses in a frame, IP and MAC, replaced where they stand, with the checksums that they
//! are part of.
//!
//! Checksums are updated by what changed in the bytes that they cover (RFC 1624), so the packet need
//! not be captured as a whole, and a checksum that was wrong stays wrong. Sums are those of
//! etherparse; only the update is our own. Places are nested: from the innermost outwards, one
//! running sum of all changes so far is the change within the next one.

use super::crypto_pan::AnonymizeKey;
use super::mac::{MacMap, VendorPart};
use super::mapping::AddressMap;
use super::messages;
use super::rewrite::Rewrite;
use crate::decode::ip::{DCCP, GRE, ICMP, ICMPV6, IGMP, TCP, UDP, UDP_LITE};
use crate::decode::{Carried, Elsewhere, Hardware, Place};
use etherparse::checksum::Sum16BitWords;

/// The mappings of addresses.
#[derive(Debug)]
pub(super) struct Images {
    pub(super) ip: AddressMap,
    pub(super) mac: MacMap,
}

impl Images {
    pub(super) fn new(key: &AnonymizeKey, vendor: VendorPart) -> Self {
        Self { ip: AddressMap::new(key), mac: MacMap::new(key, vendor) }
    }
}

/// Replaces the addresses at all places of a frame.
pub(super) fn rewrite(frame: &mut [u8], places: &[(usize, Place)], images: &mut Images) {
    let mut rewrite = Rewrite::new(frame);
    for &(end, place) in places.iter().rev() {
        rewrite.end = end;
        match place {
            Place::Ipv4 { at, carried, routed } => rewrite.v4(at, carried, routed, images),
            Place::Ipv6 { at, carried, elsewhere } => rewrite.v6(at, carried, elsewhere, images),
            Place::Arp { at } => rewrite.arp(at, images),
            Place::Hardware { at, kind } => rewrite.hardware(at, kind, &mut images.mac),
            Place::Unreadable { at, v6 } => {
                let addresses = if v6 { 8..40 } else { 12..20 };
                rewrite.blank(at + addresses.start, addresses.len());
            }
        }
    }
}

impl Rewrite<'_> {
    fn v4(&mut self, at: usize, carried: Carried, routed: bool, images: &mut Images) {
        const CHECKSUM: usize = 10;
        let map = &mut images.ip;
        match (carried.protocol, self.kind(carried)) {
            _ if carried.later_fragment => {}
            // The gateway of a redirect; the group of a query, a report, or who leaves it.
            (ICMP, Some(5)) | (IGMP, Some(0x11 | 0x12 | 0x16 | 0x17)) => {
                self.map(carried, 4, |old| map.v4(old));
            }
            (UDP, _) => messages::dhcp(self, carried, &mut images.mac),
            _ => {}
        }
        let Some((source, destination)) = self.array(at + 12).zip(self.array(at + 16)) else {
            return;
        };
        let (new_source, new_destination) = (map.v4(source), map.v4(destination));
        let from = replaced(Sum16BitWords::new(), source, new_source);
        let change = replaced(from.clone(), destination, new_destination);
        // The addresses of a source route stay as they are.
        self.fix_carried(carried, if routed { &from } else { &change });
        self.put(at + 12, &new_source);
        self.put(at + 16, &new_destination);
        self.fix(at + CHECKSUM, &change, false);
    }

    fn v6(&mut self, at: usize, carried: Carried, elsewhere: Elsewhere, images: &mut Images) {
        const TARGET: usize = 8;
        const REDIRECTED: usize = 24;
        let map = &mut images.ip;
        if carried.protocol == ICMPV6 && !carried.later_fragment {
            // Groups that are listened to, neighbours that are looked for, and redirects.
            let kind = self.kind(carried);
            if matches!(kind, Some(130..=132 | 135..=137)) {
                self.map(carried, TARGET, |old| map.v6(old));
            }
            if kind == Some(137) {
                self.map(carried, REDIRECTED, |old| map.v6(old));
            }
            messages::neighbour(self, kind, carried, &mut images.mac);
        }
        let Some((source, destination)) = self.array(at + 8).zip(self.array(at + 24)) else {
            return;
        };
        let (new_source, new_destination) = (map.v6(source), map.v6(destination));
        // Addresses in extension headers stay as they are.
        let mut change = Sum16BitWords::new();
        if !elsewhere.source {
            change = replaced(change, source, new_source);
        }
        if !elsewhere.destination {
            change = replaced(change, destination, new_destination);
        }
        self.fix_carried(carried, &change);
        self.put(at + 8, &new_source);
        self.put(at + 24, &new_destination);
    }

    /// Address resolution: hardware and protocol addresses of sender and target in turn. Protocol
    /// addresses are replaced if they are those of IPv4.
    fn arp(&mut self, at: usize, images: &mut Images) {
        let Some([_, _, high, low, hardware, protocol]) = self.array(at) else { return };
        let (bytes, kind) = (usize::from(hardware), Hardware::of_length(hardware));
        let protocol_bytes = usize::from(protocol);
        for sender_or_target in [at + 8, at + 8 + bytes + protocol_bytes] {
            self.hardware(sender_or_target, kind, &mut images.mac);
            if [high, low, protocol] == [8, 0, 4] {
                let address = sender_or_target + bytes;
                match self.array(address) {
                    Some(old) => self.put(address, &images.ip.v4(old)),
                    None => self.blank(address, 4),
                }
            }
        }
    }

    /// Returns the type of an ICMP message.
    fn kind(&self, carried: Carried) -> Option<u8> {
        (carried.length > 0).then(|| self.frame[carried.at])
    }

    /// Replaces an address in a message, or blanks as much of it as is there.
    fn map<const N: usize>(
        &mut self,
        carried: Carried,
        at: usize,
        image: impl FnOnce([u8; N]) -> [u8; N],
    ) {
        match self.array(carried.at + at) {
            Some(old) if carried.length >= at + N => self.put(carried.at + at, &image(old)),
            _ => self.blank(carried.at + at, carried.length.saturating_sub(at)),
        }
    }

    /// Updates the checksum of the payload of an IP packet, if it has one and it was captured.
    /// `addresses` is the change of the addresses, which are part of the pseudo header.
    fn fix_carried(&mut self, carried: Carried, addresses: &Sum16BitWords) {
        const CHECKSUM_PRESENT: u8 = 0x80;
        let nothing = Sum16BitWords::new();
        let (at, pseudo) = match carried.protocol {
            TCP => (16, addresses),
            UDP | UDP_LITE | DCCP => (6, addresses),
            ICMPV6 => (2, addresses),
            ICMP | IGMP => (2, &nothing),
            GRE => (4, &nothing),
            _ => return,
        };
        if carried.later_fragment || carried.length < at + 2 {
            return;
        }
        let first = self.frame[carried.at];
        if carried.protocol == GRE && first & CHECKSUM_PRESENT == 0 {
            return;
        }
        // Bytes at odd offsets of the frame may be at even offsets of the payload.
        let mut within = (!self.change.ones_complement()).to_ne_bytes();
        if !carried.at.is_multiple_of(2) {
            within.reverse();
        }
        let change = pseudo.clone().add_2bytes(within);
        self.fix(carried.at + at, &change, carried.protocol == UDP);
    }

    /// Updates a checksum by the change of the bytes that it covers. An `optional` checksum is 0 if
    /// it is absent.
    fn fix(&mut self, at: usize, change: &Sum16BitWords, optional: bool) {
        let Some(old) = self.array::<2>(at) else { return };
        // One's complement has two zeros, so a checksum is not computed anew if nothing changed: it
        // would turn 0xffff into 0.
        let is_unchanged = matches!(change.ones_complement(), 0 | u16::MAX);
        if (optional && old == [0, 0]) || is_unchanged {
            return;
        }
        let sum = change.clone().add_2bytes(old.map(|byte| !byte));
        let new =
            if optional { sum.to_ones_complement_with_no_zero() } else { sum.ones_complement() };
        self.put(at, &new.to_ne_bytes());
    }
}

/// Adds the change when `new` replaces `old` at an even offset.
fn replaced<const N: usize>(change: Sum16BitWords, old: [u8; N], new: [u8; N]) -> Sum16BitWords {
    change.add_slice(&new).add_slice(&old.map(|byte| !byte))
}
