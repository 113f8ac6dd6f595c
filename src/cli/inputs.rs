//! The files that are read, from those that the user named.

use super::destination::is_standard;
use super::same_file::FileId;
use flowsieve::index::{index_around, is_named_index_file};
use flowsieve::pipeline::InputResult;
use flowsieve::trace::{
    Capture, InputFormat, is_capture, is_compressed, is_named_capture, is_unfinished,
};
use flowsieve_engine::internal::Shown;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The captures among the named files and directories, and the number of other files in
/// directories.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Files, in the order named; those of a directory sorted by path.
    pub(crate) files: Vec<PathBuf>,
    /// Files in directories that are not captures, by content and by name.
    pub(crate) others: usize,
    /// Sentences about files in directories that have to be converted or unpacked.
    pub(crate) unreadable: Vec<String>,
    /// Files that interrupted runs left in directories, and hidden files.
    pub(crate) unfinished: Vec<PathBuf>,
    /// Hidden directories in directories.
    pub(crate) hidden: Vec<PathBuf>,
    /// Pipes, sockets and devices in directories that are named like captures.
    pub(crate) special: Vec<PathBuf>,
    /// Directories with problems, which are inputs that could not be read.
    pub(crate) problems: Vec<InputResult>,
}

impl Inputs {
    /// Files and `-` stay as they are; directories are walked for captures of this format.
    pub(crate) fn find(named: &[PathBuf], format: InputFormat) -> Self {
        let mut inputs = Self::default();
        for path in named {
            if path.is_dir() && index_around(path).is_some() {
                inputs.problem(path, "this is an index of captures, and its records are no input; ask it with `flowsieve index search`, or name the captures");
            } else if path.is_dir() {
                let before = (inputs.files.len(), inputs.problems.len());
                inputs.walk(path, named, format);
                if (inputs.files.len(), inputs.problems.len()) == before {
                    inputs.problem(path, "there is no capture in this directory; name one that holds captures (pcap, pcapng, ERF) or logs");
                }
            } else {
                inputs.files.push(path.clone());
            }
        }
        inputs
    }

    /// Adds a problem with this directory.
    pub(crate) fn problem(&mut self, directory: &Path, what: &str) {
        let sentence = format!("{}: {what}", directory.shown());
        self.problems.push(InputResult::unread(directory.to_owned(), sentence));
    }

    fn walk(&mut self, directory: &Path, named: &[PathBuf], format: InputFormat) {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        // An index has many files, which come and go. They are not opened, and only captures among
        // others are inputs.
        let is_index = index_around(directory).is_some();
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) if is_index && error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                let what =
                    format!("this directory cannot be listed ({error}); its captures are left out");
                return self.problem(directory, &what);
            }
        };
        entries.sort_unstable_by_key(fs::DirEntry::path);
        for entry in entries {
            let path = entry.path();
            // Links to directories are not followed: they may lead in circles. Only regular files
            // are looked into: reading from a device or a pipe may never end.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    self.hidden.push(path);
                } else {
                    self.walk(&path, named, format);
                }
                continue;
            }
            let is_named = format != InputFormat::Tsh && is_named_capture(&path);
            let is_of_index = || format == InputFormat::Tsh || is_named_index_file(&path);
            let is_found = || !is_of_index() && is_capture(&path, format).unwrap_or(false);
            if is_index && !is_named && !is_found() {
                continue;
            }
            let data = fs::metadata(&path);
            let is_file = data.as_ref().is_ok_and(fs::Metadata::is_file);
            // A file that cannot be read or reached, or is not what its name says, and a link that
            // leads nowhere, are kept: opening them says why.
            let is_input = if is_file {
                is_named || is_capture(&path, format).unwrap_or(true)
            } else {
                data.is_err()
            };
            if is_input && is_unfinished(&path) {
                self.unfinished.push(path);
            } else if is_input {
                self.files.push(path);
            } else if is_file {
                match unreadable(&path, format) {
                    Some(why) => self.unreadable.push(why),
                    None => self.others += 1,
                }
            } else if let Some(what) = unfollowed(&path, named) {
                self.problem(&path, &what);
            } else if is_named && !path.is_dir() {
                self.special.push(path);
            }
        }
    }
}

/// Says how a file that is no input could become one.
fn unreadable(path: &Path, format: InputFormat) -> Option<String> {
    let error = Capture::open(path, format).err()?.to_string();
    ["; convert it", "; unpack it"].iter().any(|remedy| error.contains(remedy)).then_some(error)
}

/// Says that a link to a directory is not followed, unless it leads to what is read anyway.
fn unfollowed(path: &Path, named: &[PathBuf]) -> Option<String> {
    let target = fs::canonicalize(path).ok().filter(|target| target.is_dir())?;
    let mut read = named.iter().filter_map(|path| fs::canonicalize(path).ok());
    (!read.any(|read| target.starts_with(read))).then(|| {
        format!(
            "this is a link to a directory, which is not followed; name {} as well",
            target.shown()
        )
    })
}

/// End of the remark about a file that is named twice. An index reads such a file once.
pub(crate) const TWICE: &str = "its packets are counted twice";

/// Returns a remark on each file that is named twice, and on each that is named together with a
/// compressed file of the same name.
pub(crate) fn twice(files: &[PathBuf]) -> Vec<String> {
    let mut seen: HashMap<FileId, &Path> = HashMap::new();
    let mut remarks = Vec::new();
    let names: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    for path in files {
        let id = FileId::of_input(path);
        if let Some(other) = id.and_then(|id| seen.insert(id, path)) {
            let (path_named, path) = (path.as_path(), path.shown());
            remarks.push(if other == path_named {
                format!("{path} is named twice; {TWICE}")
            } else {
                let [one, next] = [other, path_named]
                    .map(|path| if is_standard(path) { Path::new("standard input") } else { path });
                format!("{} and {} are the same file; {TWICE}", one.shown(), next.shown())
            });
        }
        let plain = path.with_extension("");
        if is_compressed(path) && names.contains(plain.as_path()) {
            remarks.push(format!(
                "{} and {} may be the same capture; packets of both are counted",
                plain.shown(),
                path.shown()
            ));
        }
    }
    remarks
}

/// Returns the bytes of all files together; `None` if one has no length.
pub(crate) fn total_bytes<'a>(files: impl Iterator<Item = &'a Path>) -> Option<u64> {
    files
        .map(|path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|data| data.len()))
        .sum()
}
