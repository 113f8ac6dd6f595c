//! Whether two names are one file.

use std::fs;
use std::path::{Path, PathBuf};

/// What is the same for all names of a file: links, hard links, ways round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FileId {
    /// Standard output.
    Standard,
    /// Device and number of a file that is there.
    #[cfg(unix)]
    There(u64, u64),
    /// The whole path, of a file that is not there yet (or where files have no numbers).
    Path(PathBuf),
}

impl FileId {
    /// The file of this name; none for devices and pipes, to which anybody may write, and for what
    /// cannot be in any folder.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if path.as_os_str() == "-" {
            return Some(Self::Standard);
        }
        match fs::metadata(path) {
            Ok(data) if !data.is_file() => None,
            #[cfg(unix)]
            Ok(data) => {
                use std::os::unix::fs::MetadataExt;
                Some(Self::There(data.dev(), data.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => fs::canonicalize(path).ok().map(Self::Path),
            Err(_) => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    _ => Path::new("."),
                };
                let folder = fs::canonicalize(folder).ok()?;
                Some(Self::Path(folder.join(path.file_name()?)))
            }
        }
    }
}
