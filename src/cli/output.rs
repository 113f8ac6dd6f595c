//! Where results go: standard output, or a file that appears whole or not at all.

use super::UsageError;
use super::host::{self, HostWriter};
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use flowsieve::report::Look;
use flowsieve_engine::internal::Shown;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A destination of results. Unless it is committed, a file does not appear, and what still waits
/// in the buffer is dropped.
#[derive(Debug)]
pub(crate) struct Output {
    /// There until the end.
    out: Option<BufWriter<Target>>,
    /// The file's name; `-` for standard output.
    path: PathBuf,
}

#[derive(Debug)]
enum Target {
    Standard(io::Stdout),
    Host(HostWriter),
    Error(io::Stderr),
    /// A temporary file beside the one that is to be, which gets its name at the end.
    New(NamedTempFile),
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
            temporary_file(folder_of(path)).map(Target::New)
        };
        Ok(Self::new(target.with_context(|| unwritten(path))?, path))
    }

    fn new(target: Target, path: &Path) -> Self {
        Self { out: Some(BufWriter::with_capacity(BUFFER, target)), path: path.to_owned() }
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

    /// Puts the results in place.
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
        drop(self.out.take().map(BufWriter::into_parts));
    }
}

fn put(out: BufWriter<Target>, path: &Path) -> io::Result<()> {
    if host::is_cancelled() {
        drop(out.into_parts());
        return Err(io::ErrorKind::Interrupted.into());
    }
    match out.into_inner().map_err(io::IntoInnerError::into_error)? {
        Target::New(file) => {
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        }
        mut target => target.flush(),
    }
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

/// A file beside the one that is to be, with the rights that any file gets which a program creates.
/// Its name has the number of the process, so that one that was killed can be distinguished from
/// one that is at work.
fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let prefix = format!(".flowsieve-{}-", std::process::id());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map_err(without_path)
}

/// The error without the name of the temporary file, which nobody gave.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what),
        None => error,
    }
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
