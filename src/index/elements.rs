//! The elements that a record gives to the filters, and their combinations.
//!
//! ```text
//!     flow    (src, dst, port)      of each direction in which packets went
//!     DNS     (src, dst, domain)    client, server, name; and the same with each domain above the name
//! ```
//!
//! - The port is the receiver's. If the other end sent nothing, there is no direction in which the
//!   sender's port is a receiver's; then it is a separate element, marked as such.
//! - Ephemeral ports, from 32768 on, are one value: they would fill the filters, and are rarely
//!   asked for. The lists distinguish them.
//! - Of the domains above a name the eight highest are elements.

use super::Record;
use super::record::{labels, reversed_labels};
use crate::hashing::{Digest, Digester};
use std::net::IpAddr;

/// Seed of the digests; the same in every index.
pub(super) const SEED: u64 = 0;

/// Ports from this one on are one value.
const EPHEMERAL: u16 = 1 << 15;

/// Domains above a name that are elements.
const MOST_DOMAINS: usize = 8;

/// Kind of an element.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Family {
    Flow,
    Dns,
}

/// Digests of the three attributes of an element.
pub(super) type Element = [Digest; 3];

/// Combinations of attributes that a region's filter has (bit i for attribute i).
pub(super) const REGION_MASKS: [u32; 7] = [FULL, 0b001, 0b010, 0b100, 0b011, 0b101, 0b110];

/// All attributes.
pub(super) const FULL: u32 = 0b111;

impl Family {
    pub(super) const ALL: [Self; 2] = [Self::Flow, Self::Dns];

    /// Combinations that a global filter has. Every query for DNS has a domain.
    pub(super) const fn node_masks(self) -> &'static [u32] {
        match self {
            Self::Flow => &[0b001, 0b010, 0b100, 0b011],
            Self::Dns => &[0b100, 0b101],
        }
    }

    /// Returns the value that a global filter stores for a combination.
    pub(super) fn node_key(self, mask: u32, digest: impl Fn(usize) -> Digest) -> Digest {
        let attributes = (0..3).filter(|attribute| mask >> attribute & 1 == 1);
        Digest::join(mask | (self as u32) << 8, attributes.map(digest))
    }
}

/// The end that a port belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PortOf {
    Receiver,
    /// A sender that got no answer.
    Sender,
}

pub(super) fn address(address: IpAddr) -> Digest {
    let digester = Digester::new(SEED);
    match address {
        IpAddr::V4(address) => digester.digest(&address.octets()),
        IpAddr::V6(address) => digester.digest(&address.octets()),
    }
}

pub(super) fn port(of: PortOf, port: u16) -> Digest {
    let [high, low] = port.min(EPHEMERAL).to_be_bytes();
    Digester::new(SEED).digest(&[of as u8, high, low])
}

/// Returns the digest of a name.
pub(super) fn domain(name: &[u8]) -> Digest {
    Digester::new(SEED).digest(&[&[0], &reversed_labels(name)[..]].concat())
}

/// Returns the digest of all names below a domain; of one with many labels, below the highest of
/// the domains above it that are elements.
pub(super) fn below(name: &[u8]) -> Digest {
    let reversed = reversed_labels(name);
    let kept = labels(&reversed).take(MOST_DOMAINS).map(<[u8]>::len).sum();
    above(&reversed[..kept])
}

fn above(reversed: &[u8]) -> Digest {
    Digester::new(SEED).digest(&[&[1], reversed].concat())
}

/// Calls `see` for each element of a record.
pub(super) fn of_record(record: &Record, see: &mut impl FnMut(Family, Element)) {
    let Some(name) = record.domain.as_deref() else {
        for ends in record.directions() {
            let [src, dst] = [ends.src, ends.dst].map(address);
            see(Family::Flow, [src, dst, port(PortOf::Receiver, ends.dst_port)]);
            if !record.is_two_way() {
                see(Family::Flow, [src, dst, port(PortOf::Sender, ends.src_port)]);
            }
        }
        return;
    };
    let [src, dst] = [record.src, record.dst].map(address);
    see(Family::Dns, [src, dst, domain(name)]);
    let reversed = reversed_labels(name);
    let mut end = 0;
    let count = labels(&reversed).count();
    // All names are below the root, which is the domain of no labels.
    for label in labels(&reversed).take(count.saturating_sub(1).min(MOST_DOMAINS)) {
        end += label.len();
        see(Family::Dns, [src, dst, above(&reversed[..end])]);
    }
}
