//! Progress on standard error, if that is a terminal.

use super::host::{self, Host};
use super::say::is_seen;
use flowsieve::pipeline::Watch;
use flowsieve::trace::StopFlag;
use flowsieve_engine::internal::spawn;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A progress bar, or silence.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    packets: Arc<AtomicU64>,
    reading: Arc<Reading>,
    stop: StopFlag,
    /// The program that runs the command, if it is not a shell, and the number of bytes.
    host: Option<(Arc<dyn Host>, Option<u64>)>,
}

/// The bytes of inputs at their end, and the counters of those that are open.
#[derive(Debug, Default)]
struct Reading(Mutex<(u64, Vec<Arc<AtomicU64>>)>);

impl Reading {
    fn bytes(&self) -> u64 {
        let (done, open) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        done + open.sum::<u64>()
    }
}

/// Time between two positions of the bar.
const A_MOMENT: Duration = Duration::from_millis(100);

/// Moves the bar as bytes are read, even while no packet is selected, until it is removed.
fn follow(bar: &ProgressBar, reading: &Arc<Reading>) {
    let (bar, reading) = (bar.clone(), Arc::clone(reading));
    let follow = move |()| {
        while !bar.is_finished() {
            bar.set_position(reading.bytes());
            thread::sleep(A_MOMENT);
        }
    };
    // Without the thread the bar moves where packets are taken.
    if let Some(thread) = spawn("progress", 0, follow) {
        thread.begin(());
    }
}

impl Progress {
    /// A bar up to `bytes` (a spinner if they are not known) when standard error is a terminal and
    /// `wanted`. The flag ends the run that it watches.
    pub(crate) fn start(wanted: bool, bytes: Option<u64>, stop: StopFlag) -> Self {
        let packets = Arc::new(AtomicU64::new(0));
        let started = Instant::now();
        let host = host::current();
        let bar = (wanted && is_seen()).then(|| {
            let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr_with_hz(10));
            let template = if bytes.is_some() {
                "{bar:30} {bytes}/{total_bytes} {speed} {eta} left"
            } else {
                "{spinner} {bytes} {speed}"
            };
            let counter = Arc::clone(&packets);
            let speed = move |_: &ProgressState, out: &mut dyn Write| {
                let rate = counter.load(Ordering::Relaxed) as f64
                    / started.elapsed().as_secs_f64().max(1e-6);
                // Nothing sensible can be done if the bar cannot be drawn.
                let _ = write!(out, "{} packets/s", HumanCount(rate as u64));
            };
            bar.set_style(
                ProgressStyle::with_template(template)
                    .expect("the template is constant")
                    .with_key("speed", speed),
            );
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let reading = Arc::default();
        if let Some(bar) = &bar {
            follow(bar, &reading);
        }
        if let Some(host) = &host {
            host.progress(0, 0, bytes);
        }
        Self { bar, packets, reading, stop, host: host.map(|host| (host, bytes)) }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn progress(&self, bytes: u64, packets: u64) {
        if let Some(bar) = &self.bar {
            self.packets.store(packets, Ordering::Relaxed);
            bar.set_position(bytes);
        }
        if let Some((host, total)) = &self.host {
            host.progress(bytes, packets, *total);
        }
    }

    fn reading(&self, done: u64, open: &[Arc<AtomicU64>]) {
        let mut reading = self.reading.0.lock().unwrap_or_else(PoisonError::into_inner);
        *reading = (done, open.to_vec());
    }

    fn stop(&self) -> StopFlag {
        self.stop.clone()
    }
}
