//! Starts threads. The system may refuse a thread, or the memory that it needs: then fewer threads
//! do the work, or the caller does.

use crate::memory::Reservation;
use crossbeam_channel::{Sender, bounded};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Bytes of a thread's stack, which count towards limits of the address space.
const STACK_BYTES: u64 = 2 << 20;

/// Number of threads that the system has refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Returns how many threads the system has refused since the program began.
pub fn refused_threads() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// A thread that waits for its work. It exists before the work is handed over, so that the caller
/// still has the work if there is no thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct IdleThread<T, H> {
    work: Sender<T>,
    handle: H,
}

impl<T, H> IdleThread<T, H> {
    /// Hands the work over and returns the thread's handle.
    pub fn begin(self, work: T) -> H {
        // The thread waits for exactly this.
        let _ = self.work.send(work);
        self.handle
    }
}

/// Starts a thread that is joined at the end of the scope at the latest. It may take `bytes` of
/// memory besides its stack. Its handle yields `None` only if it never had work.
pub fn spawn_scoped<'scope, T: Send + 'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    bytes: u64,
    work: impl FnOnce(T) -> R + Send + 'scope,
) -> Option<IdleThread<T, ScopedJoinHandle<'scope, Option<R>>>> {
    spawn_by(bytes, work, |run| Builder::new().name(name.to_owned()).spawn_scoped(scope, run))
}

/// Starts up to `count` threads that are joined at the end of the scope.
pub(super) fn spawn_up_to<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    count: usize,
    bytes: u64,
    work: impl Fn(T) + Clone + Send + 'scope,
) -> Vec<IdleThread<T, ScopedJoinHandle<'scope, Option<()>>>> {
    let spawn = |_| spawn_scoped(scope, name, bytes, work.clone());
    (0..count).map_while(spawn).collect()
}

/// Starts a thread that may outlive the caller; otherwise as [`spawn_scoped`].
pub fn spawn<T: Send + 'static, R: Send + 'static>(
    name: &str,
    bytes: u64,
    work: impl FnOnce(T) -> R + Send + 'static,
) -> Option<IdleThread<T, JoinHandle<Option<R>>>> {
    spawn_by(bytes, work, |run| Builder::new().name(name.to_owned()).spawn(run))
}

/// The body of a thread: it waits for its work, and releases its memory at the end.
type Run<'run, R> = Box<dyn FnOnce() -> Option<R> + Send + 'run>;

fn spawn_by<'run, T: Send + 'run, R, H>(
    bytes: u64,
    work: impl FnOnce(T) -> R + Send + 'run,
    spawn: impl FnOnce(Run<'run, R>) -> io::Result<H>,
) -> Option<IdleThread<T, H>> {
    let (sender, receiver) = bounded(1);
    let started = Reservation::for_thread(STACK_BYTES + bytes).and_then(|reserved| {
        let run = move || {
            let _reserved = reserved;
            receiver.recv().ok().map(work)
        };
        spawn(Box::new(run)).ok()
    });
    if started.is_none() {
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    Some(IdleThread { work: sender, handle: started? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_works_on_what_it_is_given_and_ends_without_work() {
        let doubled = spawn("double", 0, |number: u32| 2 * number).unwrap().begin(21);
        assert_eq!(doubled.join().unwrap(), Some(42));
        let IdleThread { work, handle } = spawn("idle", 0, |()| ()).unwrap();
        drop(work);
        assert_eq!(handle.join().unwrap(), None);
    }

    #[test]
    fn threads_for_whose_memory_there_is_no_room_are_not_started() {
        let before = refused_threads();
        thread::scope(|scope| {
            let threads = spawn_up_to(scope, "greedy", 3, 1 << 60, |(): ()| ());
            assert!(threads.is_empty());
        });
        assert!(refused_threads() > before);
    }
}
