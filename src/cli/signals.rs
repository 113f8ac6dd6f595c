//! SIGINT and SIGTERM: the first ends the reading, the second the program.

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

/// Signals that end a run: from the terminal's Ctrl-C, and from those who manage processes.
#[cfg(unix)]
const ENDING: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

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
        for signal in ENDING {
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
        let name = if number == 2 { "SIGINT" } else { "SIGTERM" };
        say(format_args!("flowsieve: interrupted by {name}: {what}"));
        Outcome::Interrupted((EXIT_CODE + number) as u8)
    }
}
