//! Ground: from bytes to numbers. Digests of elements and attributes, and the probe positions that
//! filters derive from them.

mod digest;
mod probes;

pub use digest::{Digest, Digester};
pub use probes::{Probes, mix, reduce};
