//! The places of link-layer addresses in a header.

use super::bytes::be16;
use super::ethernet::{ETHERNET_HEADER, MACSEC, MACSEC_CHANNEL};
use super::layer::Layer;
use super::{ieee80211, meta};

/// A kind of link-layer address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hardware {
    /// A MAC address of 48 bits.
    Mac,
    /// A MAC address with the bits of each byte in the order of token ring.
    ReversedMac,
    /// An address of this many bytes that is no MAC address.
    Other(u8),
}

impl Hardware {
    /// Returns the kind of an address with this many bytes.
    pub const fn of_length(bytes: u8) -> Self {
        match bytes {
            6 => Self::Mac,
            _ => Self::Other(bytes),
        }
    }
}

/// Shows the link-layer addresses of the header that `bytes` begin with: where, and what they are.
/// They may be cut off.
pub(super) fn addresses(layer: Layer, bytes: &[u8], mut see: impl FnMut(usize, Hardware)) {
    use Hardware::{Mac, Other, ReversedMac};
    let mut pair = |first: usize, second: usize, kind| {
        see(first, kind);
        see(second, kind);
    };
    match layer {
        Layer::Ethernet => pair(0, 6, Mac),
        // The secure channel identifier begins with the MAC address of the sender.
        Layer::EtherType(MACSEC)
            if bytes.first().is_some_and(|flags| flags & MACSEC_CHANNEL != 0) =>
        {
            see(6, Mac);
        }
        Layer::Ieee80211(form) => ieee80211::addresses(bytes, form, |at| see(at, Mac)),
        Layer::Link(link) => match link.0 {
            // Linux cooked captures: a length, and room for eight bytes.
            113 => see(6, in_eight(be16(bytes, 4).unwrap_or_default())),
            276 => see(12, in_eight(bytes.get(11).copied().unwrap_or_default().into())),
            239 => netfilter_log(bytes, see),
            // Token ring and FDDI.
            6 => pair(2, 8, ReversedMac),
            10 => pair(1, 7, Mac),
            // Ethernet with a switch's tag behind the addresses.
            281 | 284 | 285 => pair(0, 6, Mac),
            // Fibre Channel and FireWire: names of eight bytes; InfiniBand: identifiers as long as
            // IPv6 addresses.
            122 | 138 => pair(0, 8, Other(8)),
            242 => pair(8, 24, Other(16)),
            _ => {}
        },
        _ => {}
    }
}

/// Returns the kind of an address of this length in a field of eight bytes.
fn in_eight(length: u16) -> Hardware {
    match length {
        6 => Hardware::Mac,
        _ => Hardware::Other(8),
    }
}

/// The sender's address, and the whole link header.
fn netfilter_log(bytes: &[u8], mut see: impl FnMut(usize, Hardware)) {
    const ADDRESS: u16 = 8;
    const LINK_HEADER: u16 = 16;
    for (kind, value) in meta::attributes(bytes) {
        match kind {
            // Length, padding, eight bytes.
            ADDRESS => see(value.start + 4, in_eight(be16(bytes, value.start).unwrap_or_default())),
            LINK_HEADER if value.len() == ETHERNET_HEADER => {
                see(value.start, Hardware::Mac);
                see(value.start + 6, Hardware::Mac);
            }
            LINK_HEADER => {
                let length = value.len().min(u8::MAX.into()) as u8;
                see(value.start, Hardware::Other(length));
            }
            _ => {}
        }
    }
}
