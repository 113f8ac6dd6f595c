//! Ground: from bytes to numbers. Digests of elements and attributes, and the probe positions that
//! filters derive from them.

mod digest;
mod h3;
mod probes;

pub use digest::{Digest, Digester};
pub use h3::H3;
pub use probes::{Probes, mix, reduce};
