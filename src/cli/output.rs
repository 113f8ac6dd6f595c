//! Where results go: standard output, or a file that gets its name when it is complete.
//!
//! Results of a run that was interrupted or failed get the name with `.partial` behind it.

use super::UsageError;
use super::host::{self, HostWriter};
use super::new_file::NewFile;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use flowsieve::report::TerminalStyle;
use flowsieve_engine::internal::Shown;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether the results that are committed are complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    Complete,
    /// The run was interrupted.
    Partial,
}

/// Partial results of a run, which all of its outputs share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partials(Arc<PartialState>);

#[derive(Debug, Default)]
struct PartialState {
    /// The run failed, so outputs that are dropped keep what they have.
    has_failed: AtomicBool,
    kept: Mutex<Vec<PathBuf>>,
}

impl Partials {
    /// From now on outputs that are dropped keep what was written to them.
    pub(crate) fn keep_dropped(&self) {
        self.0.has_failed.store(true, Ordering::Relaxed);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the end of a sentence that names the files with partial results, if there are any.
    pub(crate) fn words(&self) -> String {
        let names: Vec<_> = self.kept().iter().map(|path| path.shown().to_string()).collect();
        match &names[..] {
            [] => String::new(),
            names => format!("; what there is was written to {}", names.join(" and ")),
        }
    }
}

/// A destination of results. A file appears only if the output is committed, or if it is dropped
/// after the run has failed; otherwise what was written is dropped.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` once it is committed or dropped.
    out: Option<BufWriter<Target>>,
    /// The file's name; `-` for standard output.
    path: PathBuf,
    /// Something was written.
    is_begun: bool,
    partials: Partials,
}

#[derive(Debug)]
enum Target {
    Standard(io::Stdout),
    Host(HostWriter),
    Error(io::Stderr),
    /// Gets its name at the end.
    New(NewFile),
    /// Something that is no regular file (a device, a named pipe) and so must not be replaced.
    Special(File),
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;

impl Output {
    /// Opens `path`, or standard output if there is none or it is `-`.
    pub(crate) fn open(partials: &Partials, path: Option<&Path>) -> Result<Self> {
        let path = path.unwrap_or(Path::new("-"));
        let target = if is_standard(path) {
            let host = host::writer().map(Target::Host);
            Ok(host.unwrap_or_else(|| Target::Standard(io::stdout())))
        } else if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
            let file = OpenOptions::new().write(true).open(path);
            file.map(Target::Special)
        } else {
            NewFile::create(path).map(Target::New)
        };
        Ok(Self::new(partials, target.with_context(|| unwritten(path))?, path))
    }

    fn new(partials: &Partials, target: Target, path: &Path) -> Self {
        Self {
            out: Some(BufWriter::with_capacity(BUFFER, target)),
            path: path.to_owned(),
            is_begun: false,
            partials: partials.clone(),
        }
    }

    /// Opens `path` for the report on a capture that is written. Without a name this is standard
    /// error if the capture goes to standard output.
    pub(crate) fn report(
        partials: &Partials,
        capture: Option<&Path>,
        path: Option<&Path>,
    ) -> Result<Self> {
        if path.is_none() && capture.is_some_and(is_standard) {
            return Ok(Self::new(partials, Target::Error(io::stderr()), Path::new("-")));
        }
        Self::open(partials, path)
    }

    /// Opens `path` if there is one.
    pub(crate) fn named(partials: &Partials, path: Option<&Path>) -> Result<Option<Self>> {
        path.map(|path| Self::open(partials, Some(path))).transpose()
    }

    /// Opens `path` for a capture, which is not for a terminal.
    pub(crate) fn capture(partials: &Partials, path: &Path) -> Result<Self> {
        if is_standard(path) && is_shown() {
            bail!(UsageError::new(
                "a capture is not for a terminal: name a file with -w, or redirect the output"
            ));
        }
        Self::open(partials, Some(path))
    }

    fn target(&self) -> Option<&Target> {
        self.out.as_ref().map(BufWriter::get_ref)
    }

    /// Returns whether this is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.target(), Some(Target::Standard(_))) && io::stdout().is_terminal()
    }

    /// Returns the style of a table there, with at most this many rows on a terminal.
    pub(crate) fn style(&self, rows: Option<usize>) -> TerminalStyle {
        let is_standard = matches!(self.target(), Some(Target::Standard(_)));
        let colors = AutoStream::choice(&io::stdout());
        let is_terminal = self.is_terminal();
        TerminalStyle {
            bold: is_standard && colors != ColorChoice::Never,
            width: is_terminal.then(terminal_width),
            rows: rows.filter(|_| is_terminal),
        }
    }

    /// Returns whether this is a file that appears when it is committed.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.target(), Some(Target::New(_)))
    }

    /// Puts the results in place, or under another name if they are partial.
    pub(crate) fn commit(mut self, ending: Ending) -> Result<()> {
        match self.out.take() {
            Some(out) => self.put(out, ending).with_context(|| unwritten(&self.path)),
            None => Ok(()),
        }
    }

    fn put(&self, out: BufWriter<Target>, ending: Ending) -> io::Result<()> {
        if host::is_cancelled() {
            drop(out.into_parts());
            return Err(io::ErrorKind::Interrupted.into());
        }
        match out.into_inner().map_err(io::IntoInnerError::into_error)? {
            Target::New(file) if ending == Ending::Partial => {
                let partial = file.persist_new(partial_paths(&self.path))?;
                self.partials.kept().push(partial);
                Ok(())
            }
            Target::New(file) => file.persist(&self.path),
            mut target => target.flush(),
        }
    }
}

impl Drop for Output {
    /// A buffered writer that is dropped writes what it holds; its parts do not.
    fn drop(&mut self) {
        let Some(out) = self.out.take() else {
            return;
        };
        let is_kept = self.partials.0.has_failed.load(Ordering::Relaxed) && self.is_begun;
        if is_kept && matches!(out.get_ref(), Target::New(_)) {
            // The error that ended the run is the one to report.
            let _ = self.put(out, Ending::Partial);
        } else {
            drop(out.into_parts());
        }
    }
}

/// Returns names for a partial result. The first that no file has is taken, since an older partial result may be all that there
/// is, or an input of this run.
fn partial_paths(path: &Path) -> impl Iterator<Item = PathBuf> {
    let mut name = OsString::from(path);
    name.push(".partial");
    let numbered = name.clone();
    let numbered = (2_u64..).map(move |number| {
        let mut name = numbered.clone();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    std::iter::once(PathBuf::from(name)).chain(numbered)
}

/// Returns the words for a file that cannot be written.
pub(crate) fn unwritten(path: &Path) -> String {
    if is_standard(path) {
        "cannot write to standard output".to_owned()
    } else {
        format!("cannot write {}", path.shown())
    }
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

impl Target {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Standard(out) => out,
            Self::Host(out) => out,
            Self::Error(out) => out,
            Self::New(file) => file,
            Self::Special(file) => file,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_begun = true;
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Columns of a terminal that does not report its width.
const USUAL_WIDTH: usize = 80;

/// Returns the columns of the terminal at standard output.
fn terminal_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(USUAL_WIDTH, |(width, _)| width.0.into())
}

/// Returns whether standard output is a pipe: whatever reads it may write to the terminal at any
/// time.
pub(crate) fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileTypeExt;
        let copy = io::stdout().as_fd().try_clone_to_owned();
        let data = copy.and_then(|fd| File::from(fd).metadata());
        data.is_ok_and(|data| data.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        !io::stdout().is_terminal()
    }
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_shown() -> bool {
    host::current().is_none() && io::stdout().is_terminal()
}

/// Returns whether standard input is a terminal.
pub(crate) fn is_typed() -> bool {
    host::current().is_none() && io::stdin().is_terminal()
}

/// Returns whether this name stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}
