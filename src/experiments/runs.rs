//! Independent repetitions side by side: their random numbers, and filters of numbers, elements that
//! never repeat and are distinguished by their digests alone.

use super::Settings;
use crate::filters::{ElementDigests, MembershipFilter};
use crate::generate::random::Random as SplitMix;
use crate::hashing::Digester;
use flowsieve_engine::internal::spawn_scoped;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Memory of a job: filters of a few MiB, and the sets that they are compared with.
const JOB_BYTES: u64 = 64 << 20;

/// Returns the results of `job` for each number below `jobs`, in that order, computed by up to this
/// many threads. A job depends on its number only, so results are the same for every number of
/// threads.
pub(super) fn in_parallel<T: Send + Sync>(
    threads: usize,
    jobs: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let results: Vec<OnceLock<T>> = (0..jobs).map(|_| OnceLock::new()).collect();
    run(threads, jobs, &|number| {
        let is_new = results[number].set(job(number)).is_ok();
        debug_assert!(is_new, "a number is taken once");
    });
    let results = results.into_iter().map(OnceLock::into_inner);
    results.map(|result| result.expect("every job was done")).collect()
}

/// Does all jobs. It is compiled once, and not for each type of result.
fn run(threads: usize, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|&number| number < jobs).for_each(job);
    };
    thread::scope(|scope| {
        let others = threads.min(jobs).saturating_sub(1);
        let spawn = |_| Some(spawn_scoped(scope, "job", JOB_BYTES, |()| work())?.begin(()));
        let others: Vec<_> = (0..others).map_while(spawn).collect();
        work();
        for other in others {
            other.join().expect("a job does not panic");
        }
    });
}

/// Returns the number as an element.
pub(super) fn element(digester: Digester, number: u64) -> ElementDigests<'static> {
    ElementDigests { whole: digester.digest(&number.to_le_bytes()), attributes: &[] }
}

/// Returns, for each of `runs` filters with the first `elements` numbers, how many of `queries`
/// other numbers it takes for elements.
pub(super) fn false_positives(
    settings: &Settings,
    (runs, elements, queries): (usize, u64, u64),
    build: impl Fn() -> Box<dyn MembershipFilter> + Sync,
) -> Vec<u64> {
    in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        let mut filter = build();
        for number in 0..elements {
            filter.insert(element(digester, number));
        }
        (elements..elements + queries)
            .filter(|&number| filter.contains(element(digester, number)))
            .count() as u64
    })
}

/// Random numbers by another function than those that the filters hash with: `SplitMix64` (Steele,
/// Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), divided into streams.
pub(super) struct Random(SplitMix);

impl Random {
    /// Returns the stream `stream` of a seed; streams of different numbers have nothing in common.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let first = SplitMix::new(seed ^ 0x5851_f42d_4c95_7f2d).next();
        Self(SplitMix::new(first ^ stream.wrapping_mul(0xd605_bbb5_8c8a_bc03)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Uniform below `bound` (bias below bound / 2^64).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        crate::hashing::reduce(self.next(), bound)
    }

    /// Uniform in [0, 1).
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        for threads in [0, 1, 3, 50] {
            assert_eq!(in_parallel(threads, 20, |i| i * i)[19], 361);
            assert_eq!(in_parallel(threads, 20, |i| i).len(), 20);
            assert!(in_parallel(threads, 0, |i| i).is_empty());
        }
    }
}
