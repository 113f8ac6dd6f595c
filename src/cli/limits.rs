//! Limits that the system sets to the program: files, file sizes, address space.

#[cfg(unix)]
use signal_hook::consts::{SIGABRT, SIGXFSZ};
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

/// Does what has to be done before anything else.
pub(super) fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    share_one_arena();
    #[cfg(unix)]
    {
        raise_open_files();
        // A file that reaches the limit of its size is from now on an error of the write, as a full
        // disk is; the signal would end the program without a word.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        // A library whose small allocation is refused aborts. It has written a line by then, and
        // the exit code is that of every other error.
        let always = Arc::new(AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, always);
    }
}

/// Starts the program again with one arena for all threads, if its address space is limited. The
/// allocator of the C library sets aside 64 MiB of address space for each thread otherwise, and
/// is configured only by the environment.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_one_arena() {
    use rustix::process::{Resource, getrlimit};
    use std::env;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const SETTING: &str = "MALLOC_ARENA_MAX";
    if getrlimit(Resource::As).current.is_none() || env::var_os(SETTING).is_some() {
        return;
    }
    let mut words = env::args_os();
    let (Ok(program), Some(name)) = (env::current_exe(), words.next()) else { return };
    // Comes back only if it failed; then fewer threads find room.
    let _ = Command::new(program).arg0(name).args(words).env(SETTING, "1").exec();
}

/// Inputs that overlap in time are open together, so as many files may be open as the system
/// allows.
#[cfg(unix)]
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some() && current != maximum {
        // Where there is no maximum, systems still refuse unlimited numbers.
        let current = maximum.or(Some(1 << 20));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}
