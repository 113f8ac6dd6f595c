//! The shard of an element.

use super::{Digest, mix, reduce};

/// Stream of [`mix`] for the choice of the shard. Filters use other streams, so that a shard's
/// filter still sees uniform digests.
const ROUTE: u64 = 0x01;

/// Returns the shard of an element among `shards` ≥ 1. Part of the definition of results and of
/// saved filters.
#[inline]
pub const fn shard_of(digest: Digest, shards: u64) -> usize {
    reduce(mix(digest, ROUTE), shards) as usize
}
