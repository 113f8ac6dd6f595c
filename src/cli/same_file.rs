//! Detects names of the same file, so that no result replaces an input or another result, and locks
//! a saved filter that a command reads and replaces.

use super::UsageError;
#[cfg(unix)]
use super::destination::metadata_of;
use super::destination::{destination, folder_of, is_standard, is_standard_output};
use super::output::uncompressed;
use anyhow::{Context, Result, bail};
use flowsieve::index::{folder_to_be, is_in_index};
use flowsieve::report::ReportFormat;
use flowsieve::trace::FileState;
use flowsieve_engine::internal::Shown;
#[cfg(unix)]
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Identifies a file by any of its names: symbolic links, hard links, relative paths.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum FileId {
    /// Standard output.
    Standard,
    /// Device and inode of a file that exists.
    #[cfg(unix)]
    There(u64, u64),
    /// The number of a block device.
    #[cfg(unix)]
    Device(u64),
    /// Device and inode of the folder of a file that does not exist yet, and its name there.
    #[cfg(unix)]
    New(u64, u64, OsString),
    /// The whole path, of a file whose folder does not exist yet, or where files have no inodes.
    Path(PathBuf),
}

impl FileId {
    /// Returns the file or block device of this name; `None` for pipes and other devices, to which
    /// several may write.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if is_standard(path) {
            return Some(Self::Standard);
        }
        match fs::metadata(path) {
            #[cfg(unix)]
            Ok(data) => Self::there(&data),
            #[cfg(not(unix))]
            Ok(data) if !data.is_file() => None,
            #[cfg(not(unix))]
            Ok(_) => fs::canonicalize(path).ok().map(Self::Path),
            Err(_) => {
                let path = destination(path);
                let name = path.file_name()?;
                #[cfg(unix)]
                if let Ok(data) = fs::metadata(folder_of(&path)) {
                    return Some(Self::New(data.dev(), data.ino(), name.to_owned()));
                }
                Some(Self::Path(folder_to_be(folder_of(&path)).ok()?.join(name)))
            }
        }
    }

    #[cfg(unix)]
    fn there(data: &fs::Metadata) -> Option<Self> {
        if data.file_type().is_block_device() {
            return Some(Self::Device(data.rdev()));
        }
        data.is_file().then(|| Self::There(data.dev(), data.ino()))
    }

    /// Returns the file that results of this name go to: of standard output, that which it is.
    fn of_output(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        if is_standard_output(path) && super::host::current().is_none() {
            return Some(Self::of_stream(&std::io::stdout()).unwrap_or(Self::Standard));
        }
        Self::of(path)
    }

    /// Returns the file that is read under this name: of standard input, that which it is.
    pub(super) fn of_input(path: &Path) -> Option<Self> {
        if !is_standard(path) {
            return Self::of(path);
        }
        #[cfg(unix)]
        if super::host::current().is_none() {
            return Self::of_stream(&std::io::stdin());
        }
        None
    }

    /// Returns the file or block device that a stream is, if it is one.
    #[cfg(unix)]
    fn of_stream(stream: &impl std::os::fd::AsFd) -> Option<Self> {
        Self::there(&metadata_of(stream).ok()?)
    }
}

/// Returns whether standard output goes to a file.
pub(crate) fn is_redirected_to_file() -> bool {
    let output = FileId::of_output(Path::new("-"));
    output.is_some_and(|output| output != FileId::Standard)
}

/// Refuses standard output that is redirected into a directory of an index.
pub(crate) fn check_redirection() -> Result<(), UsageError> {
    // Only Linux has the name of an open file.
    #[cfg(target_os = "linux")]
    if is_redirected_to_file()
        && let Ok(path) = fs::read_link("/proc/self/fd/1")
        && is_in_index(folder_of(&path))
    {
        return Err(within_index("standard output", &path));
    }
    Ok(())
}

/// Returns the name that the file of standard output has in this folder, or in one below it, if it has
/// several names.
pub(crate) fn name_of_output_in(folder: &Path) -> Option<PathBuf> {
    #[cfg(unix)]
    {
        let id = |data: &fs::Metadata| (data.dev(), data.ino());
        let output = metadata_of(&std::io::stdout()).ok().filter(|data| data.nlink() > 1)?;
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(data) if data.is_dir() => folders.push(entry.path()),
                    Ok(data) if id(&data) == id(&output) => return Some(entry.path()),
                    _ => {}
                }
            }
        }
    }
    let _ = folder;
    None
}

/// Refuses outputs that would overwrite an input, an index or each other, and names that end as
/// another format does. `written` are the options that name results, with their files; without a
/// file `--output` is standard output, and `--svg` names a folder for figures.
pub(crate) fn keep_apart<'a>(
    written: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
    inputs: &[PathBuf],
) -> Result<(), UsageError> {
    let written: Vec<_> = written.into_iter().collect();
    are_apart(&written, inputs)?;
    let mut named = written.iter().filter_map(|&(name, given)| Some((name, given?)));
    named.try_for_each(|(name, path)| refuse_foreign(name, path))
}

/// As [`keep_apart`], without the check of names.
pub(crate) fn are_apart(
    written: &[(&str, Option<&Path>)],
    inputs: &[PathBuf],
) -> Result<(), UsageError> {
    // A followed directory is not expanded.
    let files = inputs.iter().filter(|input| input.is_dir()).flat_map(|input| {
        fs::read_dir(input).into_iter().flatten().flatten().map(|entry| entry.path())
    });
    let inputs: Vec<FileId> =
        inputs.iter().cloned().chain(files).filter_map(|input| FileId::of_input(&input)).collect();
    let figures = written.iter().filter(|(name, _)| *name == FIGURES);
    let figures: Vec<_> = figures.filter_map(|(_, path)| folder_to_be((*path)?).ok()).collect();
    let takes_standard_output = written
        .iter()
        .any(|(name, path)| CAPTURES.contains(name) && path.is_some_and(is_standard_output));
    let mut seen: Vec<(&str, FileId)> = Vec::new();
    for &(name, given) in written {
        for path in files_of(name, given) {
            let Some(id) = FileId::of_output(&path) else { continue };
            if inputs.contains(&id) {
                let path = if is_standard(&path) { Path::new("standard output") } else { &path };
                return Err(UsageError::new(format!(
                    "{} is an input as well as the file of {name}; give the output a name of its own",
                    path.shown()
                )));
            }
            // A report goes to standard error if a capture takes standard output.
            if given.is_none() && (id == FileId::Standard || takes_standard_output) {
                continue;
            }
            let folder = given.and_then(|_| folder_to_be(folder_of(&destination(&path))).ok());
            if folder.as_ref().is_some_and(|folder| is_in_index(folder)) {
                return Err(within_index(name, &path));
            }
            let is_figure = folder.is_some_and(|folder| figures.contains(&folder))
                && path.extension().is_some_and(|extension| extension == "svg");
            let other = seen.iter().find(|(other, seen)| *seen == id && *other != name);
            let other = other.map(|(other, _)| *other).or(is_figure.then_some(FIGURES));
            if let Some(other) = other.filter(|other| *other != name) {
                let path = if is_standard(&path) { Path::new("standard output") } else { &path };
                return Err(UsageError::new(format!(
                    "{other} and {name} name the same file, {}; each needs one of its own",
                    path.shown()
                )));
            }
            seen.push((name, id));
        }
    }
    Ok(())
}

/// Refuses a name whose ending is that of a format which this option does not write.
pub(crate) fn refuse_foreign(name: &str, path: &Path) -> Result<(), UsageError> {
    const PROMISING: [&str; 10] =
        ["htm", "html", "svg", "png", "pdf", "cap", "pcap", "pcapng", "xls", "xlsx"];
    let plain = uncompressed(path);
    let end = plain.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_rows = ReportFormat::of_name(&plain).is_some();
    let (what, remedy) = match (name, &*end) {
        (_, end) if !is_rows && !PROMISING.contains(&end) => return Ok(()),
        ("--output" | "--od-out", _) if is_rows => return Ok(()),
        ("--html", "htm" | "html")
        | ("--markdown", "md")
        | ("--summary", "json")
        | ("-w" | "--write" | "--dropped", "cap" | "pcap" | "pcapng") => return Ok(()),
        ("--html", _) => ("a page", "write .html"),
        ("--markdown", _) => ("a page", "write .md"),
        ("--summary", _) => ("a summary", "write .json"),
        ("--save-filter" | "-o", _) => ("a filter", "write .fsieve"),
        ("-w" | "--write" | "--dropped", _) => ("packets", "write .pcap"),
        ("--output" | "--od-out", "cap" | "pcap" | "pcapng") => {
            ("rows", "packets are written by -w of dedup and of index search")
        }
        ("--output" | "--od-out", "xls" | "xlsx") => {
            ("rows", "write .csv, which spreadsheets read")
        }
        ("--output" | "--od-out", _) => ("rows", "pages are written by --html, figures by --svg"),
        _ => return Ok(()),
    };
    let path = path.shown();
    Err(UsageError::new(format!("{path}: {what} cannot be written as .{end}; {remedy}")))
}

/// The options that name captures to write.
const CAPTURES: [&str; 3] = ["-w", "--write", "--dropped"];

/// The option that names a folder for figures.
const FIGURES: &str = "--svg";

/// Returns the files that an option may write.
fn files_of(name: &str, given: Option<&Path>) -> Vec<PathBuf> {
    match given {
        None if name == "--output" => vec![PathBuf::from("-")],
        // The names of figures are known later: those that are there, and one that is not.
        Some(folder) if name == FIGURES && folder.is_dir() => {
            let there = fs::read_dir(folder).into_iter().flatten().flatten();
            let there = there.map(|entry| entry.path());
            let there = there.filter(|path| path.extension().is_some_and(|end| end == "svg"));
            there.chain([folder.join(FIGURES)]).collect()
        }
        given => given.map(Path::to_owned).into_iter().collect(),
    }
}

/// Refuses to write a result among the files of an index.
pub(crate) fn within_index(name: &str, path: &Path) -> UsageError {
    UsageError::new(format!(
        "{} is inside the directory of the index, where only the index keeps files; choose another path for {name}",
        path.shown()
    ))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Tests nothing on a machine without block devices.
    #[test]
    fn a_block_device_is_a_file() {
        let all = fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path());
        let is_block = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device())
        };
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        for device in all.filter(is_block).take(2) {
            std::os::unix::fs::symlink(&device, &link).unwrap();
            let found = FileId::of(&device);
            assert!(matches!(found, Some(FileId::Device(_))), "{}", device.shown());
            assert_eq!(FileId::of(&link), found);
            if let Ok(stream) = File::open(&device) {
                assert_eq!(FileId::of_stream(&stream), found);
            }
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(FileId::of(Path::new("/dev/null")), None);
    }
}

/// A filter that a command reads and replaces: locked, and as it was then.
pub(crate) struct Replaced {
    pub(crate) path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
    state: FileState,
}

impl Replaced {
    /// Locks the one of these files that will be replaced, so that no other command replaces it.
    /// Returns `None` if none of them will be.
    pub(crate) fn lock(files: &[PathBuf], written: Option<&Path>) -> Result<Option<Self>> {
        let written = written.and_then(FileId::of);
        let is_replaced = |path: &&PathBuf| path.is_file() && FileId::of(path) == written;
        let Some(path) = files.iter().find(is_replaced) else { return Ok(None) };
        let opened = File::open(path).and_then(|file| Ok((FileState::of(&file.metadata()?), file)));
        let (state, file) = opened.with_context(|| path.shown().to_string())?;
        // Without locks, a changed file is still noticed.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!(
                "{}: another command reads it and will replace it; wait until that has ended",
                path.shown()
            );
        }
        Ok(Some(Self { path: path.clone(), _file: file, state }))
    }

    /// Returns whether the file is unchanged since it was locked.
    pub(crate) fn is_same(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|data| FileState::of(&data) == self.state)
    }
}
