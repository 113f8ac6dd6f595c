//! Which shard an element belongs to.

use super::{Digest, mix, reduce};

/// Stream of [`mix`] for the choice of the shard; filters use others, so that a shard's filter
/// still sees uniform digests.
const ROUTE: u64 = 0x01;

/// The shard, of `shards` ≥ 1, of the element with this digest. Part of the definition of results
/// and of saved filters.
#[inline]
pub const fn shard_of(digest: Digest, shards: u64) -> usize {
    reduce(mix(digest, ROUTE), shards) as usize
}
