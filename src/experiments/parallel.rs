//! Independent repetitions side by side.

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
