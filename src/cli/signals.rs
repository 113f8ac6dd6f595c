//! SIGINT, SIGTERM and SIGHUP: the first ends the reading, the second the program.

use super::say::say;
use super::{Outcome, host};
use flowsieve::trace::StopFlag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signal that came, and the flag that it sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    stop: StopFlag,
    /// Number of the signal; 0 for none.
    came: Arc<AtomicUsize>,
}

/// Signals that end a run: from the terminal's Ctrl-C, from those who manage processes, and from a
/// terminal or a connection that is gone.
#[cfg(unix)]
const ENDING: [(i32, &str); 3] = [
    (signal_hook::consts::SIGINT, "SIGINT"),
    (signal_hook::consts::SIGTERM, "SIGTERM"),
    (signal_hook::consts::SIGHUP, "SIGHUP"),
];

/// Returns whether to leave SIGHUP alone: `nohup` makes the program ignore it. Where the system does
/// not say what is ignored, the signal does what it did before.
#[cfg(unix)]
fn outlives_terminal() -> bool {
    const SIGHUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & SIGHUP != 0)
}

/// Exit code of a program that a signal ended, as shells count.
const EXIT_CODE: usize = 128;

impl Signals {
    /// Makes the first signal set the flag; a second one ends the program.
    #[cfg(unix)]
    pub(crate) fn catch() -> io::Result<Self> {
        use signal_hook::flag::{register, register_conditional_shutdown, register_usize};
        // Signals are the host's.
        if let Some(host) = host::current() {
            let stop = host.stop();
            return Ok(Self { stop, ..Self::default() });
        }
        let signals = Self::default();
        let flag: Arc<_> = signals.stop.clone().into();
        let outlives_terminal = outlives_terminal();
        for (signal, _) in ENDING {
            if signal == signal_hook::consts::SIGHUP && outlives_terminal {
                continue;
            }
            let number = signal.unsigned_abs() as usize;
            let code = signal + EXIT_CODE as i32;
            // In this order: the first signal finds the flag not yet set.
            register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
            register_usize(signal, Arc::clone(&signals.came), number)?;
            register(signal, Arc::clone(&flag))?;
        }
        Ok(signals)
    }

    /// Other systems end the program at once.
    #[cfg(not(unix))]
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Returns the flag that is set when a signal has come.
    pub(crate) fn stop(&self) -> &StopFlag {
        &self.stop
    }

    /// Returns the outcome of a run that was interrupted; says by which signal, and `what` that
    /// means for the results.
    pub(crate) fn outcome(&self, what: &str) -> Outcome {
        let number = self.came.load(Ordering::Relaxed);
        #[cfg(unix)]
        let named = ENDING.iter().find(|(signal, _)| *signal as usize == number);
        #[cfg(not(unix))]
        let named: Option<&(i32, &str)> = None;
        let name = named.map_or("a signal", |(_, name)| name);
        say(format_args!("flowsieve: interrupted by {name}: {what}"));
        Outcome::Interrupted((EXIT_CODE + number) as u8)
    }
}
