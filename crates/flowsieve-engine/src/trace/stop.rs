//! Ending a run from elsewhere: a flag that every read looks at, also while it waits for bytes.

#[cfg(target_os = "linux")]
use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::File;
use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag by which reading is ended from another thread or from a signal's handler. Clones are the
/// same flag. Once set it stays so.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends what looks at the flag: no more is read, and what was read already is still taken.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether it was set.
    #[inline]
    #[doc(hidden)]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// For those who set flags and know no more of them, such as handlers of signals.
impl From<StopFlag> for Arc<AtomicBool> {
    fn from(flag: StopFlag) -> Self {
        flag.0
    }
}

/// A source whose reads fail once the flag is set.
#[derive(Debug)]
pub(super) struct Ending<R> {
    source: R,
    stop: StopFlag,
}

impl<R: Read> Ending<R> {
    pub(super) fn new(source: R, stop: StopFlag) -> Self {
        Self { source, stop }
    }
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(ended());
        }
        self.source.read(target)
    }
}

/// The error of a read once the flag is set.
pub(super) fn ended() -> io::Error {
    io::Error::other("the run was ended")
}

/// A file or pipe whose reads fail once the flag is set, also while they wait.
#[derive(Debug)]
pub struct Stoppable {
    file: Ending<File>,
    /// Reads may wait for a writer: a pipe, a terminal, a socket.
    waits: bool,
}

impl Stoppable {
    /// Reads `source` until its end, or until the flag is set.
    pub fn new(source: File, stop: StopFlag) -> Self {
        let waits = source.metadata().is_ok_and(|data| !data.is_file());
        Self { file: Ending::new(source, stop), waits }
    }
}

impl Read for Stoppable {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.waits {
            wait(&self.file.source, &self.file.stop)?;
        }
        self.file.read(target)
    }
}

/// Opens a file. A pipe that nobody writes to yet is waited for, until the flag is set.
pub(super) fn open_file(path: &Path, stop: &StopFlag) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if std::fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo()) {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let pipe = File::options().read(true).custom_flags(flags).open(path)?;
        wait(&pipe, stop)?;
        fcntl_setfl(&pipe, OFlags::empty())?;
        return Ok(pipe);
    }
    let _ = stop;
    File::open(path)
}

/// Waits until a read returns without waiting, or the flag is set. Signals reach any thread, and
/// may come just before it begins to wait: so the flag is looked at now and then, and not only when
/// a wait is interrupted.
#[cfg(unix)]
fn wait(source: &File, stop: &StopFlag) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    const A_WHILE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !stop.is_set() {
        let mut ready = [PollFd::new(source, PollFlags::IN)];
        match poll(&mut ready, Some(&A_WHILE)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn wait(_: &File, _: &StopFlag) -> io::Result<()> {
    Ok(())
}
