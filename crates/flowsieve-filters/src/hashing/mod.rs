//! Digests of elements and attributes, and the probe positions that filters derive from them.

mod checksum;
mod digest;
mod h3;
mod order;
mod probes;
mod products;
mod shard;

pub use checksum::Checksum;
pub use digest::{Digest, Digester};
pub(crate) use h3::H3;
pub use order::sorted;
pub(crate) use order::{digest_of, in_order_of};
pub(crate) use probes::{NumberedProbes, ProbeBatch, mix_all};
pub use probes::{Probes, mix, reduce};
#[cfg(target_arch = "x86_64")]
pub(crate) use products::HalfProducts;
pub(crate) use products::{ProductWork, Products, WholeProducts, run_with_products};
pub use shard::shard_of;
