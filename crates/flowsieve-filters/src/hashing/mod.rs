//! Ground: from bytes to numbers. Digests of elements and attributes, and the probe positions that
//! filters derive from them.

mod checksum;
mod digest;
mod h3;
mod order;
mod probes;
mod products;
mod shard;

pub use checksum::Checksum;
pub use digest::{Digest, Digester};
pub use h3::H3;
pub(crate) use order::in_order_of;
pub use order::sorted;
pub use probes::{NumberedProbes, ProbeBatch, Probes, mix, mix_all, reduce};
pub use products::{HalfProducts, ProductWork, Products, WholeProducts, run_with_products};
pub use shard::shard_of;
