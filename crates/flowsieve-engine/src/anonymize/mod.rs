//! Addresses replaced by others, so that results can be shown to those who must not know whose they
//! are.
//!
//! Two addresses with the first n bits in common are replaced by two with exactly the first n bits
//! in common (Crypto-PAn): networks stay networks, and nobody without the key can tell which.
//! `docs/privacy.md` says what is replaced, and what is not.
//!
//! | file | what it does |
//! |---|---|
//! | `crypto_pan` | the mapping of addresses |
//! | `mapping` | the same with a memory, for whole headers |
//! | `mac` | the mapping of MAC addresses, with a memory |
//! | `messages` | addresses in messages of DHCP and neighbour discovery |
//! | `rewrite` | bytes of a frame replaced, and the sum of all changes |
//! | `frame` | the addresses in a frame, with the checksums that they are part of |
//! | `packets` | batches of packets on their way to a writer |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod crypto_pan;
mod frame;
mod mac;
mod mapping;
mod messages;
mod packets;
mod rewrite;
#[cfg(test)]
mod tests;

pub use crypto_pan::{AnonymizeKey, CryptoPan, KEY_BYTES};
pub use mac::{MacMap, VendorPart};
pub use mapping::AddressMap;
pub use packets::PacketAnonymizer;
