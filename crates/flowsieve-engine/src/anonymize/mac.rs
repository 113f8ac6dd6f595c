//! MAC addresses, mapped one to one by a key.
//!
//! The bits of an address that may change are permuted by a Feistel network of ten rounds with
//! AES-128, as in FF1 (NIST SP 800-38G), over 46 bits or, if the vendor stays, over 24. The bits
//! that stay are mixed into each round, so every class of addresses has a different permutation.

use super::crypto_pan::AnonymizeKey;
use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;

/// Addresses that are remembered: 192 KiB.
const SLOTS: usize = 1 << 14;

const ROUNDS: u64 = 10;

/// Bits of an address that name no single host: these have no image but themselves.
const NO_ADDRESS: u64 = 0;
const BROADCAST: u64 = (1 << 48) - 1;

/// The bit of an address that says whether it is a group's, and the one that says whether it was
/// given locally.
const GROUP: u64 = 1 << 40;
const LOCAL: u64 = 1 << 41;

/// Treatment of the vendor part of a MAC address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum VendorPart {
    /// It is replaced like the rest.
    #[default]
    Replaced,
    /// It stays. Addresses that were given locally have none, and are replaced as a whole.
    Kept,
}

/// Maps MAC addresses, and remembers those that it mapped last.
///
/// Groups stay groups, and local addresses local ones; broadcast and the address of zeros stay as
/// they are.
pub struct MacMap {
    cipher: Aes128,
    vendor: VendorPart,
    /// Addresses with their images: at first the address of zeros.
    slots: Vec<([u8; 6], [u8; 6])>,
}

impl MacMap {
    /// The mapping that follows from a key.
    pub fn new(key: &AnonymizeKey, vendor: VendorPart) -> Self {
        Self {
            cipher: key.cipher_for(b"MAC addresses..."),
            vendor,
            slots: vec![([0; 6], [0; 6]); SLOTS],
        }
    }

    /// The image of an address.
    pub fn image(&mut self, address: [u8; 6]) -> [u8; 6] {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let number = address.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let slot = (number.wrapping_mul(SPREAD) >> 50) as usize;
        if self.slots[slot].0 != address {
            let [_, _, image @ ..] = self.map(number).to_be_bytes();
            self.slots[slot] = (address, image);
        }
        self.slots[slot].1
    }

    fn map(&self, address: u64) -> u64 {
        if matches!(address, NO_ADDRESS | BROADCAST) {
            return address;
        }
        // The image of an address that has itself for its image belongs to the one that was mapped
        // there.
        let mut image = self.permuted(address);
        while matches!(image, NO_ADDRESS | BROADCAST) {
            image = self.permuted(image);
        }
        image
    }

    fn permuted(&self, address: u64) -> u64 {
        const LOWER: u64 = GROUP - 1;
        const INTERFACE: u64 = (1 << 24) - 1;
        if self.vendor == VendorPart::Kept && address & LOCAL == 0 {
            let vendor = address & !INTERFACE;
            return vendor | self.feistel(vendor, 12, address & INTERFACE);
        }
        let kept = address & (GROUP | LOCAL);
        let rest = address >> 42 << 40 | address & LOWER;
        let image = self.feistel(kept, 23, rest);
        image >> 40 << 42 | kept | image & LOWER
    }

    /// Permutes numbers of twice `half` bits, one permutation for each `tweak`.
    fn feistel(&self, tweak: u64, half: u32, number: u64) -> u64 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..ROUNDS {
            let words =
                u128::from(tweak) << 64 | u128::from(round << 56 | u64::from(half) << 48 | right);
            let mut block = words.to_be_bytes().into();
            self.cipher.encrypt_block(&mut block);
            let mixed = u128::from_be_bytes(block.into()) as u64 & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << half | right
    }
}

impl std::fmt::Debug for MacMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MacMap(…)")
    }
}
