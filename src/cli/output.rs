//! Where results go: standard output, or a file that gets its name when it is complete.
//!
//! If the run was interrupted or failed, what there is gets the name with `.partial` behind it.

use super::UsageError;
use super::host::{self, HostWriter};
use super::new_file::NewFile;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use flowsieve::report::Look;
use flowsieve_engine::internal::Shown;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

thread_local! {
    /// The results of this thread's run are not complete.
    static IS_PARTIAL: Cell<bool> = const { Cell::new(false) };
    /// Files with partial results of this run.
    static KEPT: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// Says that a run begins whose results are complete so far, or that its results are not complete.
pub(crate) fn set_partial(is_partial: bool) {
    IS_PARTIAL.set(is_partial);
}

/// Ends a sentence with the files that were written instead of complete results, if there are any.
pub(crate) fn kept() -> String {
    let kept = KEPT.take();
    let names: Vec<_> = kept.iter().map(|path| path.shown().to_string()).collect();
    match &names[..] {
        [] => String::new(),
        names => format!("; what there is was written to {}", names.join(" and ")),
    }
}

/// A destination of results. Unless it is committed, a file does not appear, and what still waits
/// in the buffer is dropped; but what a failed run had written is kept as a partial result.
#[derive(Debug)]
pub(crate) struct Output {
    /// There until the end.
    out: Option<BufWriter<Target>>,
    /// The file's name; `-` for standard output.
    path: PathBuf,
    /// Something was written.
    is_begun: bool,
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
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
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
        Ok(Self::new(target.with_context(|| unwritten(path))?, path))
    }

    fn new(target: Target, path: &Path) -> Self {
        Self {
            out: Some(BufWriter::with_capacity(BUFFER, target)),
            path: path.to_owned(),
            is_begun: false,
        }
    }

    /// Opens `path` as [`open`](Self::open) does, for what is said of a capture; without a name
    /// this is standard error where the capture itself goes to standard output.
    pub(crate) fn beside(capture: Option<&Path>, path: Option<&Path>) -> Result<Self> {
        if path.is_none() && capture.is_some_and(is_standard) {
            return Ok(Self::new(Target::Error(io::stderr()), Path::new("-")));
        }
        Self::open(path)
    }

    /// Opens `path` if there is one.
    pub(crate) fn named(path: Option<&Path>) -> Result<Option<Self>> {
        path.map(|path| Self::open(Some(path))).transpose()
    }

    /// Opens `path` for a capture, which is not for a terminal.
    pub(crate) fn capture(path: &Path) -> Result<Self> {
        if is_standard(path) && is_shown() {
            bail!(UsageError::of(
                "a capture is not for a terminal: name a file with -w, or redirect the output"
            ));
        }
        Self::open(Some(path))
    }

    fn target(&self) -> Option<&Target> {
        self.out.as_ref().map(BufWriter::get_ref)
    }

    /// Whether this is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.target(), Some(Target::Standard(_))) && io::stdout().is_terminal()
    }

    /// How a table looks there, with so many rows on a terminal.
    pub(crate) fn look(&self, rows: Option<usize>) -> Look {
        let is_standard = matches!(self.target(), Some(Target::Standard(_)));
        let colors = AutoStream::choice(&io::stdout());
        let is_terminal = self.is_terminal();
        Look {
            bold: is_standard && colors != ColorChoice::Never,
            width: is_terminal.then(terminal_width),
            rows: rows.filter(|_| is_terminal),
        }
    }

    /// Whether this is a file that is not there before it is put in place.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.target(), Some(Target::New(_)))
    }

    /// Puts the results in place, or under another name if they are partial.
    pub(crate) fn commit(mut self) -> Result<()> {
        match self.out.take() {
            Some(out) => put(out, &self.path).with_context(|| unwritten(&self.path)),
            None => Ok(()),
        }
    }
}

impl Drop for Output {
    /// A buffered writer that is dropped writes what it holds; its parts do not.
    fn drop(&mut self) {
        let Some(out) = self.out.take() else {
            return;
        };
        if IS_PARTIAL.get() && self.is_begun && matches!(out.get_ref(), Target::New(_)) {
            // The error that ended the run is the one to report.
            let _ = put(out, &self.path);
        } else {
            drop(out.into_parts());
        }
    }
}

fn put(out: BufWriter<Target>, path: &Path) -> io::Result<()> {
    if host::is_cancelled() {
        drop(out.into_parts());
        return Err(io::ErrorKind::Interrupted.into());
    }
    match out.into_inner().map_err(io::IntoInnerError::into_error)? {
        Target::New(file) if IS_PARTIAL.get() => {
            let partial = partial_path(path);
            file.persist(&partial)?;
            KEPT.with_borrow_mut(|kept| kept.push(partial));
            Ok(())
        }
        Target::New(file) => file.persist(path),
        mut target => target.flush(),
    }
}

/// Name of a result that is not complete: one that no file has, since an older partial result may be
/// all that there is, or an input of this run.
fn partial_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    let numbered = |number: u64| {
        let mut name = name.clone();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let mut names = std::iter::once(PathBuf::from(&name)).chain((2..).map(numbered));
    let is_free = |name: &PathBuf| fs::symlink_metadata(name).is_err();
    names.find(is_free).expect("some number is free")
}

/// What could not be done.
pub(crate) fn unwritten(path: &Path) -> String {
    if is_standard(path) {
        "cannot write to standard output".to_owned()
    } else {
        format!("cannot write {}", path.shown())
    }
}

/// The folder that a file of this name lies in.
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

/// Width of a terminal that does not tell it.
const USUAL_WIDTH: usize = 80;

/// Columns of the terminal that standard output is.
fn terminal_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(USUAL_WIDTH, |(width, _)| width.0.into())
}

/// Whether standard output is a pipe: somebody else writes what comes out of it, nobody knows when.
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

/// Whether standard output is a terminal.
pub(crate) fn is_shown() -> bool {
    host::current().is_none() && io::stdout().is_terminal()
}

/// Whether this name stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}
