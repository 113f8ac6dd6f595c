//! The file, pipe or device that a name leads to.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns what the system says of an open file.
#[cfg(unix)]
pub(crate) fn metadata_of(file: &impl std::os::fd::AsFd) -> io::Result<Metadata> {
    File::from(file.as_fd().try_clone_to_owned()?).metadata()
}

/// Returns whether this is the name of standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns whether results of this name go to standard output: `-`, and each name of the file or
/// pipe that it is, such as `/dev/stdout`.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    is_standard(path) || is_stream(path, &io::stdout())
}

/// Returns whether this is a name of the file, pipe or terminal that is open here. Other devices,
/// such as `/dev/null`, can be opened twice.
#[cfg(unix)]
pub(super) fn is_stream(path: &Path, stream: &(impl std::os::fd::AsFd + IsTerminal)) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_alone = |data: &Metadata| !data.file_type().is_char_device() || stream.is_terminal();
    let named = fs::metadata(path).ok().filter(is_alone);
    named
        .zip(metadata_of(stream).ok())
        .is_some_and(|(named, stream)| (named.dev(), named.ino()) == (stream.dev(), stream.ino()))
}

#[cfg(not(unix))]
pub(super) fn is_stream<S>(_: &Path, _: &S) -> bool {
    false
}

/// Most links that lead to a file, as on Linux.
const MOST_LINKS: usize = 40;

/// Returns the file that results of this name replace, which may not be there yet: where a link
/// leads, so that the link stays. A link stays what it is if it is one to an open file, such as
/// `/dev/fd/3`, or if the system forbids to follow it, as one of another user in `/tmp`.
pub(crate) fn destination(path: &Path) -> PathBuf {
    let is_forbidden = |path: &Path| {
        fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) if !is_open_file(&path) && !is_forbidden(&path) => {
                path = folder_of(&path).join(target);
            }
            _ => break,
        }
    }
    path
}

/// Returns whether this is a name of a file that a process has open.
fn is_open_file(path: &Path) -> bool {
    fs::canonicalize(folder_of(path)).is_ok_and(|folder| folder.starts_with("/proc"))
}

/// Returns whether results go directly to their destination (standard output, a device or an open
/// file), and not into a new file that replaces the old one at the end.
pub(crate) fn is_written_at_once(path: &Path) -> bool {
    is_standard_output(path) || is_special(&destination(path)).is_some()
}

/// Returns `None` if a new file may take this name; otherwise whether it is a regular file.
pub(super) fn is_special(path: &Path) -> Option<bool> {
    let data = fs::metadata(path).ok()?;
    (!data.is_file() || is_open_file(path)).then_some(data.is_file())
}
