//! Where results go: standard output, or a file that gets its name when it is complete.
//!
//! Results of a run that was interrupted or failed get the name with `.partial` behind it.

use super::UsageError;
#[cfg(unix)]
use super::destination::metadata_of;
use super::destination::{
    destination, folder_of, is_special, is_standard, is_standard_output, is_stream,
};
use super::host::{self, HostWriter};
use super::new_file::NewFile;
use super::same_file::keep_apart;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use flowsieve::report::TerminalStyle;
use flowsieve::trace::write::WriteFormat;
use flowsieve::trace::{Compression, StopFlag};
use flowsieve_engine::internal::Shown;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::{thread, time::Duration};

/// Whether the results that are committed are complete.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// The run was interrupted.
    Partial,
}

/// Partial results of a run, which all of its outputs share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partials {
    state: Arc<PartialState>,
    /// Ends the wait for a reader of a named pipe.
    pub(super) stop: StopFlag,
}

#[derive(Debug, Default)]
struct PartialState {
    /// The run failed, so outputs that are dropped keep what they have.
    has_failed: AtomicBool,
    kept: Mutex<Vec<PathBuf>>,
    /// Places that results go to.
    outputs: AtomicUsize,
}

impl Partials {
    /// From now on outputs that are dropped keep what was written to them.
    pub(crate) fn keep_dropped(&self) {
        self.state.has_failed.store(true, Ordering::Relaxed);
    }

    /// Notes a place that results go to. If one of several is a pipe that is closed, the others still
    /// get theirs. A host ends the run.
    pub(crate) fn note_output(&self) {
        if host::current().is_none() {
            self.state.outputs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether this error means that a pipe was closed, which others do not mind.
    fn is_minor(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::BrokenPipe && self.state.outputs.load(Ordering::Relaxed) > 1
    }

    fn kept(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.state.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) struct Output {
    /// `None` once it is committed or dropped, or was closed by its reader.
    out: Option<BufWriter<Target>>,
    /// The file's name, which is that of no link; `-` for standard output.
    path: PathBuf,
    /// Something was written.
    is_begun: bool,
    partials: Partials,
}

enum Target {
    Standard(io::Stdout),
    Host(HostWriter),
    Error(io::Stderr),
    /// Gets its name at the end.
    New(NewFile),
    /// Something that must not be replaced: no regular file (a device, a named pipe), or open already.
    Special(File),
}

/// Returns the name without an ending such as `.gz`.
pub(super) fn uncompressed(path: &Path) -> PathBuf {
    match WriteFormat::of_name(path).compression {
        Compression::None => path.to_owned(),
        _ => path.with_extension(""),
    }
}

/// Refuses a name that promises compression, which only captures that are copied have.
pub(super) fn refuse_compressed(path: &Path) -> Result<(), UsageError> {
    let plain = uncompressed(path);
    if plain == path {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "{}: this output is not compressed; write {} and compress it afterwards",
        path.shown(),
        plain.shown()
    )))
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;

impl Output {
    /// Opens `path`, or standard output if there is none or it is `-`, for something that is not
    /// compressed.
    pub(crate) fn open(partials: &Partials, path: Option<&Path>) -> Result<Self> {
        path.map_or(Ok(()), refuse_compressed)?;
        Self::open_any(partials, path)
    }

    fn open_any(partials: &Partials, path: Option<&Path>) -> Result<Self> {
        let named = path.unwrap_or(Path::new("-"));
        let is_output = is_standard_output(named);
        let path = if is_output { PathBuf::from("-") } else { destination(named) };
        let target = if is_output {
            let host = host::writer().filter(|_| is_standard(named)).map(Target::Host);
            Ok(host.unwrap_or_else(|| Target::Standard(io::stdout())))
        } else if is_stream(named, &io::stderr()) {
            Ok(Target::Error(io::stderr()))
        } else {
            Target::of_destination(&path, &|| partials.stop.is_set())
        };
        let target = target.with_context(|| unwritten(&path))?;
        partials.note_output();
        Ok(Self::new(partials, target, &path))
    }

    fn new(partials: &Partials, target: Target, path: &Path) -> Self {
        Self {
            out: Some(BufWriter::with_capacity(BUFFER, target)),
            path: path.to_owned(),
            is_begun: false,
            partials: partials.clone(),
        }
    }

    /// Opens `path` for the report on captures that are written. Without a name this is standard
    /// error if one of them goes to standard output.
    pub(crate) fn report<'a>(
        partials: &Partials,
        captures: impl IntoIterator<Item = &'a PathBuf>,
        path: Option<&Path>,
    ) -> Result<Self> {
        if path.is_none() && captures.into_iter().any(|capture| is_standard_output(capture)) {
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
        if is_standard_output(path) && is_shown() {
            bail!(UsageError::new(
                "a capture is not for a terminal: name a file with -w, or redirect the output"
            ));
        }
        Self::open_any(partials, Some(path))
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
            Some(out) => match self.put(out, ending) {
                Err(error) if self.partials.is_minor(&error) => Ok(()),
                put => put.with_context(|| unwritten(&self.path)),
            },
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
            Target::New(file) => file.persist(&self.path).map_err(|(error, file)| {
                // Keeps what was written: it took the whole run.
                let kept = file.map(|file| file.persist_new(partial_paths(&self.path)));
                self.partials.kept().extend(kept.and_then(Result::ok));
                error
            }),
            mut target => target.flush(),
        }
    }
}

impl Drop for Output {
    /// A buffered writer that is dropped writes what it holds; its parts do not.
    fn drop(&mut self) {
        let Some(out) = self.out.take() else { return };
        let is_kept = self.partials.state.has_failed.load(Ordering::Relaxed) && self.is_begun;
        if is_kept && matches!(out.get_ref(), Target::New(_)) {
            // The error that ended the run is the one to report.
            let _ = self.put(out, Ending::Partial);
        } else {
            drop(out.into_parts());
        }
    }
}

/// Writes a file of a host as a command writes its results: it appears when it is complete, a link
/// stays, no device is replaced, and nothing is written into an index. The wait for a reader of a
/// named pipe ends if `is_ended`.
///
/// # Errors
///
/// Those of `write` and of the file system; then the file is as it was.
pub fn write_file(
    path: &Path,
    is_ended: &dyn Fn() -> bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    keep_apart([("it", Some(path))], &[]).map_err(io::Error::other)?;
    let path = destination(path);
    let partials = Partials::default();
    let mut out = Output::new(&partials, Target::of_destination(&path, is_ended)?, &path);
    write(&mut out)?;
    let put = out.out.take().map_or(Ok(()), |written| out.put(written, Ending::Complete));
    put.map_err(|error| io::Error::new(error.kind(), format!("{error}{}", partials.words())))
}

/// Returns names for a partial result. The first that no file has is taken, since an older partial result may be all that there
/// is, or an input of this run.
fn partial_paths(path: &Path) -> impl Iterator<Item = PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    if name.len() > MOST_OF_A_NAME {
        let mut short = name.to_string_lossy().into_owned();
        while short.len() > MOST_OF_A_NAME {
            short.pop();
        }
        name = short.into();
    }
    name.push(".partial");
    let first = path.with_file_name(&name);
    let numbered = (2_u64..).map(move |number| {
        let mut name = OsString::from(&first);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    std::iter::once(path.with_file_name(name)).chain(numbered)
}

/// Bytes of a name before `.partial` and a number: names have 255 at most.
const MOST_OF_A_NAME: usize = 255 - 20;

/// Refuses to replace a file that the user may not write, although its folder allows it.
fn check_writable(path: &Path) -> io::Result<()> {
    let refused = OpenOptions::new().write(true).open(path).err();
    match refused.filter(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        None => Ok(()),
        Some(error) => Err(io::Error::new(
            error.kind(),
            format!(
                "you may not write the file that is there ({error}); choose another name, or remove it"
            ),
        )),
    }
}

/// Returns the words for a file that cannot be written.
pub(crate) fn unwritten(path: &Path) -> String {
    if is_standard(path) {
        "cannot write to standard output".to_owned()
    } else {
        format!("cannot write {}", path.shown())
    }
}

/// Adds the missing directory to the error of a file that cannot be created.
fn without_folder(error: io::Error, path: &Path) -> io::Error {
    let folder = folder_of(path);
    if error.kind() != io::ErrorKind::NotFound || folder.exists() {
        return error;
    }
    let reason = format!("there is no directory {}; make it first", folder.shown());
    io::Error::new(error.kind(), reason)
}

/// Opens an existing device, named pipe or open file. Waits for the reader of a named pipe, unless
/// `is_ended`.
fn open_read(options: &OpenOptions, path: &Path, is_ended: &dyn Fn() -> bool) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::{OFlags, fcntl_setfl};
        use rustix::io::Errno;
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

        const A_WHILE: Duration = Duration::from_millis(50);
        if fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo()) {
            let mut options = options.clone();
            options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
            loop {
                match options.open(path) {
                    Err(error) if Errno::from_io_error(&error) != Some(Errno::NXIO) => {
                        return Err(error);
                    }
                    Err(_) if is_ended() => {
                        let reason = "nothing reads this pipe";
                        return Err(io::Error::new(io::ErrorKind::Interrupted, reason));
                    }
                    Err(_) => thread::sleep(A_WHILE),
                    // Another file may have taken the name: never write into it.
                    Ok(other) if !other.metadata()?.file_type().is_fifo() => {
                        return Err(io::Error::other("it was a pipe and is another file now"));
                    }
                    Ok(pipe) => {
                        fcntl_setfl(&pipe, OFlags::empty())?;
                        return Ok(pipe);
                    }
                }
            }
        }
    }
    let _ = is_ended;
    options.open(path)
}

impl Target {
    /// Opens what `destination` returned.
    fn of_destination(path: &Path, is_ended: &dyn Fn() -> bool) -> io::Result<Self> {
        let is_there = path.is_dir();
        if is_there || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let reason = if is_there {
                "it is a directory; name a file in it"
            } else {
                "a name with / at its end is that of a directory; name a file"
            };
            return Err(io::Error::new(io::ErrorKind::IsADirectory, reason));
        }
        if let Some(is_open) = is_special(path) {
            // Appends, so that what other writers of an open file wrote stays.
            let mut options = OpenOptions::new();
            open_read(options.write(true).append(is_open), path, is_ended).map(Self::Special)
        } else if path.is_symlink() {
            Err(fs::metadata(path).err().unwrap_or(io::ErrorKind::PermissionDenied.into()))
        } else {
            check_writable(path)?;
            NewFile::create(path).map(Self::New).map_err(|error| without_folder(error, path))
        }
    }

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

impl Output {
    /// Writes, unless the reader has closed this and there are other outputs.
    fn attempt<T>(
        &mut self,
        otherwise: T,
        write: impl FnOnce(&mut BufWriter<Target>) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.out.as_mut().map(write) {
            Some(Err(error)) if self.partials.is_minor(&error) => {
                drop(self.out.take().map(BufWriter::into_parts));
                Ok(otherwise)
            }
            written => written.unwrap_or(Ok(otherwise)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.attempt(bytes.len(), |out| out.write(bytes));
        // Part of a file that cannot grow is of no use.
        self.is_begun = written.is_ok();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
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
        use std::os::unix::fs::FileTypeExt;
        metadata_of(&io::stdout()).is_ok_and(|data| data.file_type().is_fifo())
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;

    #[test]
    fn a_file_of_a_host_is_written_as_a_result() {
        let made = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| made.path().join(name));
        let goes_on = || false;
        let save = |path: &Path| write_file(path, &goes_on, |out| out.write_all(b"new"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        let failed = write_file(&link, &goes_on, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::OutOfMemory.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        save(&link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        // A result that cannot take its place is kept, and the error says where.
        let place = made.path().join("place");
        let refused = write_file(&place, &goes_on, |out| {
            out.write_all(b"new")?;
            fs::create_dir(&place)
        });
        let (refused, kept) = (refused.unwrap_err().to_string(), made.path().join("place.partial"));
        assert!(refused.contains(&*kept.to_string_lossy()), "{refused}");
        fs::remove_dir(&place).unwrap();
        fs::remove_file(&kept).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        save(&pipe).unwrap();
        assert_eq!(reader.join().unwrap(), b"new");
        // The user ends the wait for another reader.
        let ended = write_file(&pipe, &|| true, |out| out.write_all(b"new")).unwrap_err();
        assert!(ended.to_string().contains("nothing reads this pipe"), "{ended}");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(made.path()).unwrap().count(), 3);
    }
}
