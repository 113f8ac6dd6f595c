//! Detects names of the same file, so that no result replaces an input or another result.

use super::UsageError;
use super::output::{destination, folder_of, is_standard};
#[cfg(unix)]
use super::output::{is_standard_output, metadata_of};
use flowsieve::index::is_in_index;
use flowsieve_engine::internal::Shown;
use std::fs;
use std::path::{Path, PathBuf};

/// Identifies a file by any of its names: symbolic links, hard links, relative paths.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum FileId {
    /// Standard output.
    Standard,
    /// Device and inode of a file that exists.
    #[cfg(unix)]
    There(u64, u64),
    /// The whole path of a file that does not exist yet (or where files have no inodes).
    Path(PathBuf),
}

impl FileId {
    /// Returns the file of this name; `None` for devices and pipes, to which several may write, and
    /// if the folder does not exist.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if is_standard(path) {
            return Some(Self::Standard);
        }
        match fs::metadata(path) {
            Ok(data) if !data.is_file() => None,
            #[cfg(unix)]
            Ok(data) => Some(Self::there(&data)),
            #[cfg(not(unix))]
            Ok(_) => fs::canonicalize(path).ok().map(Self::Path),
            Err(_) => {
                let path = destination(path);
                let folder = fs::canonicalize(folder_of(&path)).ok()?;
                Some(Self::Path(folder.join(path.file_name()?)))
            }
        }
    }

    #[cfg(unix)]
    fn there(data: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self::There(data.dev(), data.ino())
    }

    /// Returns the file that results of this name go to: of standard output, that which it is.
    fn of_output(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        if is_standard_output(path) && super::host::current().is_none() {
            let data = metadata_of(&std::io::stdout()).ok().filter(fs::Metadata::is_file);
            return Some(data.map_or(Self::Standard, |data| Self::there(&data)));
        }
        Self::of(path)
    }
}

/// Refuses to write where an input is, into an index, and two results into one file. `written` are
/// the options that name results, with their files.
pub(crate) fn keep_apart<'a>(
    written: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
    inputs: &[PathBuf],
) -> Result<(), UsageError> {
    let mut seen: Vec<(&str, FileId)> = Vec::new();
    for (name, path) in written {
        let Some((path, id)) = path.and_then(|path| Some((path, FileId::of_output(path)?))) else {
            continue;
        };
        let folder = fs::canonicalize(folder_of(&destination(path))).ok();
        if folder.is_some_and(|folder| is_in_index(&folder)) {
            return Err(within_index(name, path));
        }
        let is_input = |input: &PathBuf| {
            !is_standard(input) && FileId::of(input).is_some_and(|input| input == id)
        };
        if inputs.iter().any(is_input) {
            return Err(UsageError::new(format!(
                "{} is an input as well as the file of {name}; give the output a name of its own",
                path.shown()
            )));
        }
        if let Some((other, _)) = seen.iter().find(|(_, other)| *other == id) {
            return Err(UsageError::new(format!(
                "{other} and {name} name the same file, {}; each needs one of its own",
                path.shown()
            )));
        }
        seen.push((name, id));
    }
    Ok(())
}

/// Refuses to write a result among the files of an index.
pub(crate) fn within_index(name: &str, path: &Path) -> UsageError {
    UsageError::new(format!(
        "{} is inside the directory of the index, where only the index keeps files; choose another path for {name}",
        path.shown()
    ))
}
