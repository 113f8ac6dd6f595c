//! Independent repetitions side by side.

use flowsieve_engine::internal::spawn_scoped;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Memory of a job: filters of a few MiB, and the sets that they are compared with.
const JOB_BYTES: u64 = 64 << 20;

/// The results of `job` for each number below `jobs`, in that order, computed by up to this many threads.
/// A job depends on its number only, so that the results are the same for every number of threads.
pub(super) fn in_parallel<T: Send>(
    threads: usize,
    jobs: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs {
                return done;
            }
            done.push((number, job(number)));
        }
    };
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let others = threads.min(jobs).saturating_sub(1);
        let spawn = |_| Some(spawn_scoped(scope, "job", JOB_BYTES, |()| work())?.begin(()));
        let others: Vec<_> = (0..others).map_while(spawn).collect();
        let mut results = work();
        for other in others {
            results.extend(other.join().expect("a job does not panic").into_iter().flatten());
        }
        results
    });
    results.sort_unstable_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
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
