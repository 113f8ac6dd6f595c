//! The mapping with a memory of bounded size: traffic repeats its addresses.

use super::crypto_pan::{AnonymizeKey, CryptoPan};
use crate::decode::Addresses;
use std::net::IpAddr;

/// IPv4 addresses that are remembered: 512 KiB.
const V4_SLOTS: usize = 1 << 16;
/// IPv6 addresses that are remembered: 512 KiB.
const V6_SLOTS: usize = 1 << 14;

/// Maps addresses, and remembers those that it mapped last.
///
/// Every slot holds an address with its image: at first the address of zeros, which is never wrong.
#[derive(Debug)]
pub struct AddressMap {
    pan: CryptoPan,
    v4: Vec<([u8; 4], [u8; 4])>,
    v6: Vec<([u8; 16], [u8; 16])>,
}

impl AddressMap {
    /// The mapping that follows from a key.
    pub fn new(key: &AnonymizeKey) -> Self {
        let pan = CryptoPan::new(key);
        Self {
            v4: vec![([0; 4], pan.v4([0; 4])); V4_SLOTS],
            v6: vec![([0; 16], pan.v6([0; 16])); V6_SLOTS],
            pan,
        }
    }

    /// The image of an IPv4 address.
    pub fn v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        const SPREAD: u32 = 0x9e37_79b1;
        let hash = u32::from_be_bytes(address).wrapping_mul(SPREAD);
        let slot = &mut self.v4[hash as usize >> 16];
        if slot.0 != address {
            *slot = (address, self.pan.v4(address));
        }
        slot.1
    }

    /// The image of an IPv6 address.
    pub fn v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let bits = u128::from_be_bytes(address);
        let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32).wrapping_mul(SPREAD);
        let hash = folded.wrapping_mul(SPREAD);
        let slot = &mut self.v6[(hash >> 50) as usize];
        if slot.0 != address {
            *slot = (address, self.pan.v6(address));
        }
        slot.1
    }

    /// The image of an address of either version.
    pub fn ip(&mut self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => self.v4(address.octets()).into(),
            IpAddr::V6(address) => self.v6(address.octets()).into(),
        }
    }

    /// The images of both addresses of a header.
    pub fn addresses(&mut self, addresses: Addresses) -> Addresses {
        match addresses {
            Addresses::V4 { source, destination } => {
                Addresses::V4 { source: self.v4(source), destination: self.v4(destination) }
            }
            Addresses::V6 { source, destination } => {
                Addresses::V6 { source: self.v6(source), destination: self.v6(destination) }
            }
        }
    }
}
