//! Crypto-PAn: Xu, Fan, Ammar, Moon, "Prefix-preserving IP address anonymization: measurement-based
//! security evaluation and a new cryptography-based scheme", ICNP 2002.
//!
//! Bit i of an address is flipped or not as a block cipher says of the i bits before it, filled up
//! with a secret pad. So it depends on these bits and the key alone: equal beginnings stay equal,
//! and where two addresses part, their images part too. For IPv6 the same is done over 128 bits.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

/// Bytes of a key: half of them for the cipher, half for the pad.
pub const KEY_BYTES: usize = 32;

/// Bits that are looked up at once: the cipher works on several blocks at a time.
const AT_ONCE: usize = 32;

/// A secret from which the mapping follows. It is not shown, not even for debugging.
#[derive(Clone)]
pub struct AnonymizeKey([u8; KEY_BYTES]);

impl AnonymizeKey {
    /// The key with these bytes.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// A cipher for something else than IP addresses, whose key follows from this one and the
    /// purpose.
    pub(super) fn cipher_for(&self, purpose: &[u8; 16]) -> Aes128 {
        let (first, _) = self.0.split_at(KEY_BYTES / 2);
        let mut derived = Block::from(*purpose);
        Aes128::new(&block_of(first)).encrypt_block(&mut derived);
        Aes128::new(&derived)
    }
}

/// A block of 16 bytes.
fn block_of(bytes: &[u8]) -> Block {
    let mut block = Block::default();
    block.copy_from_slice(bytes);
    block
}

impl std::fmt::Debug for AnonymizeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnonymizeKey(…)")
    }
}

/// A one-to-one mapping of addresses that keeps prefixes.
pub struct CryptoPan {
    cipher: Aes128,
    pad: u128,
}

impl CryptoPan {
    /// The mapping that follows from a key.
    pub fn new(key: &AnonymizeKey) -> Self {
        let (first, second) = key.0.split_at(KEY_BYTES / 2);
        let cipher = Aes128::new(&block_of(first));
        let mut pad = block_of(second);
        cipher.encrypt_block(&mut pad);
        Self { cipher, pad: u128::from_be_bytes(pad.into()) }
    }

    /// The image of an IPv4 address.
    pub fn v4(&self, address: [u8; 4]) -> [u8; 4] {
        let bits = u128::from(u32::from_be_bytes(address)) << 96;
        ((self.map(bits, 32) >> 96) as u32).to_be_bytes()
    }

    /// The image of an IPv6 address.
    pub fn v6(&self, address: [u8; 16]) -> [u8; 16] {
        self.map(u128::from_be_bytes(address), 128).to_be_bytes()
    }

    /// Maps the first `count` bits, a multiple of [`AT_ONCE`].
    fn map(&self, address: u128, count: usize) -> u128 {
        let mut flips = 0;
        for first in (0..count).step_by(AT_ONCE) {
            let mut blocks = [Block::default(); AT_ONCE];
            for (bit, block) in (first as u32..).zip(&mut blocks) {
                let rest = u128::MAX.checked_shr(bit).unwrap_or(0);
                *block = (address & !rest | self.pad & rest).to_be_bytes().into();
            }
            self.cipher.encrypt_blocks(&mut blocks);
            for (bit, block) in (first..).zip(&blocks) {
                flips |= u128::from(block[0] >> 7) << (127 - bit);
            }
        }
        address ^ flips
    }
}

impl std::fmt::Debug for CryptoPan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CryptoPan(…)")
    }
}
