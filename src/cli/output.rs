//! Where results go: standard output, or a file that appears whole or not at all.

use super::UsageError;
use anyhow::{Context, Result};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A destination of results.
#[derive(Debug)]
pub(crate) enum Output {
    /// Standard output.
    Standard(BufWriter<io::Stdout>),
    /// A temporary file beside `path`, which gets its name at the end.
    File {
        file: BufWriter<NamedTempFile>,
        path: PathBuf,
    },
    /// Something that is no regular file (a device, a named pipe) and so must not be replaced.
    Special {
        file: BufWriter<File>,
        path: PathBuf,
    },
}

impl Output {
    /// Opens `path`, or standard output if there is none or it is `-`.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        match path {
            None => Ok(Self::standard()),
            Some(path) if path == Path::new("-") => Ok(Self::standard()),
            Some(path) if fs::metadata(path).is_ok_and(|data| !data.is_file()) => {
                let file = OpenOptions::new()
                    .write(true)
                    .open(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(Self::Special {
                    file: BufWriter::with_capacity(BUFFER, file),
                    path: path.to_owned(),
                })
            }
            Some(path) => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    _ => Path::new("."),
                };
                let file = temporary_file(folder)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(Self::File {
                    file: BufWriter::with_capacity(BUFFER, file),
                    path: path.to_owned(),
                })
            }
        }
    }

    fn standard() -> Self {
        Self::Standard(BufWriter::with_capacity(BUFFER, io::stdout()))
    }

    /// Whether this is a terminal that may be styled.
    pub(crate) fn is_styled(&self) -> bool {
        matches!(self, Self::Standard(_))
            && io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Whether this is a file that is not there before it is put in place.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Puts the results in place.
    pub(crate) fn commit(self) -> Result<()> {
        match self {
            Self::Standard(mut out) => out.flush().context("cannot write to standard output"),
            Self::Special { mut file, path } => file
                .flush()
                .with_context(|| format!("cannot write {}", path.display())),
            Self::File { file, path } => {
                let context = || format!("cannot write {}", path.display());
                let file = file
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)
                    .with_context(context)?;
                file.as_file().sync_all().with_context(context)?;
                file.persist(&path)
                    .map_err(|error| error.error)
                    .with_context(context)?;
                Ok(())
            }
        }
    }
}

/// A file beside the one that is to be, with the rights that any file gets which a program creates. Its name
/// has the number of the process, so that one that was killed can be told from one that is at work.
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
    let cause = error.get_ref().and_then(Error::source);
    let code = cause
        .and_then(|cause| cause.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    code.map_or(error, io::Error::from_raw_os_error)
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(out) => out.write(bytes),
            Self::Special { file, .. } => file.write(bytes),
            Self::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.flush(),
            Self::Special { file, .. } => file.flush(),
            Self::File { file, .. } => file.flush(),
        }
    }
}

/// Says that Parquet, if that is asked for, is not for a terminal.
pub(crate) fn refuse_terminal(parquet: bool, path: Option<&Path>) -> Result<(), UsageError> {
    let standard = path.is_none_or(|path| path.as_os_str() == "-");
    if parquet && standard && io::stdout().is_terminal() {
        return Err(UsageError(
            "Parquet is not for a terminal; name a file with --output, or pipe it on".into(),
        ));
    }
    Ok(())
}
