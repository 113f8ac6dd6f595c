//! Queries of many elements.
//!
//! The places of a group of elements are computed by vectors, and their buckets are touched, while
//! the buckets of an earlier group are compared. So loads are always under way, and no computation
//! waits for them.

use super::places::{GROUP, Group};
use super::{Bucket, DleftFilter, SUBTABLES};
use crate::hashing::{Digest, ProductWork, Products};
use std::hint::black_box;

/// Groups whose buckets are touched before they are compared: enough for all loads that a core can
/// have under way, and few enough that the lines are still in the first-level cache.
const AHEAD: usize = 4;

/// The queried elements and the answers.
pub(super) struct Query<'a, B: Bucket> {
    pub(super) filter: &'a DleftFilter<B>,
    pub(super) digests: &'a [Digest],
    pub(super) answers: &'a mut Vec<bool>,
}

impl<B: Bucket> ProductWork for Query<'_, B> {
    #[inline(always)]
    fn run_with<P: Products>(self) {
        let filter = self.filter;
        let touch = !filter.is_cached();
        let start = self.answers.len();
        self.answers.resize(start + self.digests.len(), false);
        let (groups, rest) = self.digests.as_chunks::<GROUP>();
        let (answers, rest_answers) = self.answers[start..].as_chunks_mut::<GROUP>();
        let mut ahead = [Group::default(); AHEAD];
        for (group, digests) in ahead.iter_mut().zip(groups) {
            group.take::<P, B>(filter, digests, touch);
        }
        for (number, answers) in answers.iter_mut().enumerate() {
            let group = &mut ahead[number % AHEAD];
            *answers = group.compare(filter);
            if let Some(digests) = groups.get(number + AHEAD) {
                group.take::<P, B>(filter, digests, touch);
            }
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            let hash = filter.places.hash(digest);
            *answer = filter.holds(hash, &filter.places(hash));
        }
    }
}

impl Group {
    /// Computes the places of these elements, and loads their buckets into the cache if `touch`.
    #[inline(always)]
    fn take<P: Products, B: Bucket>(
        &mut self,
        filter: &DleftFilter<B>,
        digests: &[Digest; GROUP],
        touch: bool,
    ) {
        filter.places.of_group::<P>(digests, self);
        if touch {
            let all = filter.buckets.as_slice();
            let mut touched = 0;
            for buckets in &self.buckets {
                for &bucket in buckets {
                    touched ^= all[bucket as usize].get(0);
                }
            }
            black_box(touched);
        }
    }

    /// Returns which elements are contained.
    #[inline(always)]
    fn compare<B: Bucket>(&self, filter: &DleftFilter<B>) -> [bool; GROUP] {
        let all = filter.buckets.as_slice();
        let mut contained = [false; GROUP];
        for (lane, contained) in contained.iter_mut().enumerate() {
            let mut buckets = [&all[0]; SUBTABLES];
            let mut tags = [0; SUBTABLES];
            for i in 0..SUBTABLES {
                buckets[i] = &all[self.buckets[i][lane] as usize];
                tags[i] = (self.remainders[i][lane] << filter.counter_bits) as u32;
            }
            *contained = B::any_holds(buckets, tags, filter.largest());
        }
        if !filter.stash.is_empty() || filter.given_up.is_some() {
            for (lane, contained) in contained.iter_mut().enumerate() {
                *contained =
                    *contained || filter.holds_apart(self.hashes[lane], self.buckets[0][lane]);
            }
        }
        contained
    }
}
