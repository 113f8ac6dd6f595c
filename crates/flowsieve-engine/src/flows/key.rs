//! A five-tuple in fixed bytes.

use crate::decode::Addresses;
use crate::elements::{Attribute, ElementKind, prefix_v4, prefix_v6};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A five-tuple in 40 bytes, for any family, so that it is compared and hashed without a branch.
///
/// ```text
///     source address, 16 bytes │ destination address, 16 bytes │ ports, VLAN, protocol, family
/// ```
///
/// Numbers in machine order: an IPv4 address is a number below 2^32.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct FlowKey {
    source: [u64; 2],
    destination: [u64; 2],
    rest: u64,
}

const V4: u64 = 4;
const V6: u64 = 6;

impl FlowKey {
    #[inline]
    pub(crate) fn new(addresses: Addresses, protocol: u8, ports: (u16, u16)) -> Self {
        let rest = u64::from(ports.0) << 48 | u64::from(ports.1) << 32 | u64::from(protocol) << 8;
        match addresses {
            Addresses::V4 { source, destination } => Self {
                source: [0, u64::from(u32::from_be_bytes(source))],
                destination: [0, u64::from(u32::from_be_bytes(destination))],
                rest: rest | V4,
            },
            Addresses::V6 { source, destination } => {
                Self { source: halves(source), destination: halves(destination), rest: rest | V6 }
            }
        }
    }

    /// With a VLAN, which keys of flows do not have.
    pub(crate) const fn with_vlan(self, vlan: u16) -> Self {
        Self { rest: self.rest | (vlan as u64) << 16, ..self }
    }

    pub(crate) const fn vlan(self) -> u16 {
        (self.rest >> 16) as u16
    }

    /// The same with the smaller (address, port) first, and whether that exchanged the ends.
    #[inline]
    pub(crate) fn undirected(self) -> (Self, bool) {
        let (source_port, destination_port) = self.ports();
        if (self.source, source_port) <= (self.destination, destination_port) {
            (self, false)
        } else {
            (self.reversed(), true)
        }
    }

    #[inline]
    pub(crate) fn reversed(self) -> Self {
        let ports = (self.rest >> 48) << 32 | (self.rest >> 32 & 0xffff) << 48;
        Self {
            source: self.destination,
            destination: self.source,
            rest: ports | (self.rest & 0xffff_ffff),
        }
    }

    pub(crate) fn addresses(self) -> Addresses {
        if self.rest & 0xff == V4 {
            Addresses::V4 {
                source: (self.source[1] as u32).to_be_bytes(),
                destination: (self.destination[1] as u32).to_be_bytes(),
            }
        } else {
            Addresses::V6 { source: octets(self.source), destination: octets(self.destination) }
        }
    }

    pub(crate) const fn ports(self) -> (u16, u16) {
        ((self.rest >> 48) as u16, (self.rest >> 32) as u16)
    }

    pub(crate) const fn protocol(self) -> u8 {
        (self.rest >> 8) as u8
    }

    /// Ports, protocol and family.
    #[inline]
    pub(super) const fn rest(self) -> u64 {
        self.rest
    }

    /// The addresses in two words, and in two further ones if they do not fit:
    /// [`joined`](Self::joined) puts them together.
    #[inline]
    pub(super) const fn split(self) -> ([u64; 2], Option<[u64; 2]>) {
        if self.rest & 0xff == V4 {
            ([self.source[1], self.destination[1]], None)
        } else {
            (self.source, Some(self.destination))
        }
    }

    /// Puts a key together from its parts; `far` is ignored if the addresses fit into `near`.
    pub(super) const fn joined(near: [u64; 2], rest: u64, far: [u64; 2]) -> Self {
        let (source, destination) =
            if rest & 0xff == V4 { ([0, near[0]], [0, near[1]]) } else { (near, far) };
        Self { source, destination, rest }
    }

    /// As bytes, the same on every machine.
    pub(crate) fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let words = [self.source, self.destination].concat();
        for (place, word) in bytes.chunks_exact_mut(8).zip(words.iter().chain([&self.rest])) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[inline]
    pub(crate) fn hash_with(&self, hasher: &ahash::RandomState) -> u64 {
        hasher.hash_one(self)
    }
}

/// The bits of five-tuples that a key of other fields has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyMask {
    v4: FlowKey,
    v6: FlowKey,
}

impl KeyMask {
    /// The bits of a key of this kind, but for a name.
    pub(crate) fn new(kind: &ElementKind) -> Self {
        let ones = |attribute| kind.field(attribute).map_or(0, |_| u16::MAX);
        let [source, destination] =
            [Attribute::Source, Attribute::Destination].map(|end| kind.field(end));
        let protocol = ones(Attribute::Protocol) as u8;
        let ports = (ones(Attribute::SourcePort), ones(Attribute::DestinationPort));
        let mask =
            |addresses| FlowKey::new(addresses, protocol, ports).with_vlan(ones(Attribute::Vlan));
        let v4 = mask(Addresses::V4 {
            source: source.map_or([0; 4], |field| prefix_v4([0xff; 4], field.prefix)),
            destination: destination.map_or([0; 4], |field| prefix_v4([0xff; 4], field.prefix)),
        });
        if kind.addresses() == 0 {
            // Keys of both families are the same, and have the bit that both have.
            return Self { v4, v6: v4 };
        }
        let v6 = mask(Addresses::V6 {
            source: source.map_or([0; 16], |field| prefix_v6([0xff; 16], field.prefix)),
            destination: destination.map_or([0; 16], |field| prefix_v6([0xff; 16], field.prefix)),
        });
        Self { v4, v6 }
    }

    /// Returns the fields of a five-tuple.
    #[inline]
    pub(crate) fn apply(&self, key: FlowKey) -> FlowKey {
        let mask = if key.rest & 0xff == V4 { &self.v4 } else { &self.v6 };
        let both = |a: [u64; 2], b: [u64; 2]| [a[0] & b[0], a[1] & b[1]];
        FlowKey {
            source: both(key.source, mask.source),
            destination: both(key.destination, mask.destination),
            rest: key.rest & mask.rest,
        }
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for half in [self.source, self.destination] {
            state.write_u128(u128::from(half[0]) << 64 | u128::from(half[1]));
        }
        state.write_u64(self.rest);
    }
}

fn halves(address: [u8; 16]) -> [u64; 2] {
    let address = u128::from_be_bytes(address);
    [(address >> 64) as u64, address as u64]
}

fn octets(halves: [u64; 2]) -> [u8; 16] {
    (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_be_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use proptest::prelude::*;

    fn addresses() -> impl Strategy<Value = Addresses> {
        let v4 = any::<([u8; 4], [u8; 4])>()
            .prop_map(|(source, destination)| Addresses::V4 { source, destination });
        let v6 = any::<([u8; 16], [u8; 16])>()
            .prop_map(|(source, destination)| Addresses::V6 { source, destination });
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn a_key_holds_the_whole_tuple(
            addresses in addresses(),
            protocol: u8,
            ports: (u16, u16),
        ) {
            let key = FlowKey::new(addresses, protocol, ports);
            prop_assert_eq!(key.addresses(), addresses);
            prop_assert_eq!(key.protocol(), protocol);
            prop_assert_eq!(key.ports(), ports);
            let turned = FlowKey::new(addresses.reversed(), protocol, (ports.1, ports.0));
            prop_assert_eq!(key.reversed(), turned);
            prop_assert_eq!(key.with_vlan(7).vlan(), 7);
            prop_assert_eq!(KeyMask::new(&ElementKind::FLOW).apply(key.with_vlan(7)), key);
            let (near, far) = key.split();
            prop_assert_eq!(FlowKey::joined(near, key.rest(), far.unwrap_or([5; 2])), key);
            prop_assert_eq!(key.undirected().0, turned.undirected().0);
            prop_assert_eq!(key.undirected().1 == turned.undirected().1, key == turned);
        }
    }

    #[test]
    fn families_differ() {
        let v4 = Addresses::V4 { source: [0, 0, 0, 1], destination: [0, 0, 0, 2] };
        let mut source = [0; 16];
        source[15] = 1;
        let mut destination = [0; 16];
        destination[15] = 2;
        let v6 = Addresses::V6 { source, destination };
        let keys = [v4, v6].map(|addresses| FlowKey::new(addresses, 6, (1, 2)));
        assert_ne!(keys[0], keys[1]);
        assert_ne!(keys[0].to_bytes(), keys[1].to_bytes());
    }
}
