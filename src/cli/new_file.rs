//! A file that has no name until it is complete, so that nothing is left of a run that is killed.

use super::destination::folder_of;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

/// A file without its name.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    /// Name for the meantime, where the file system has no files without names.
    temporary: Option<TempPath>,
    /// Names a file that has no name yet.
    link: fn(&File, &Path) -> io::Result<()>,
}

impl NewFile {
    /// Creates a file for this path, with the permissions of the file that it replaces, or those that
    /// any new file gets.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let new = if let Some(file) = unnamed(folder_of(path)) {
            Self { file, temporary: None, link }
        } else {
            let (file, temporary) = named(path, |path| File::create_new(path))?.into_parts();
            Self { file, temporary: Some(temporary), link }
        };
        if let Ok(older) = fs::metadata(path) {
            permit(&new.file, &older, acl_of(path))?;
        }
        Ok(new)
    }

    /// Gives the file its name; a file of that name is replaced. If that is refused, the file is given
    /// back.
    pub(super) fn persist(self, path: &Path) -> Result<(), (io::Error, Option<Self>)> {
        let link = self.link;
        let lost = |error| (error, None);
        self.file.sync_all().map_err(lost)?;
        let temporary = match self.temporary {
            Some(temporary) => temporary,
            None => match link(&self.file, path) {
                Ok(()) => return Ok(()),
                // A link replaces nothing, and a rename needs a name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    match named(path, |name| link(&self.file, name)) {
                        Ok(named) => named.into_temp_path(),
                        Err(_) => copied(&self.file, path).map_err(lost)?,
                    }
                }
                Err(_) => copied(&self.file, path).map_err(lost)?,
            },
        };
        let refused = temporary.persist(path);
        refused.map_err(|refused| {
            let temporary = Some(refused.path);
            (refused.error, Some(Self { temporary, ..self }))
        })
    }

    /// Gives the file the first of these names that no file has, and returns it. Another run that wants the same name gets the next.
    pub(super) fn persist_new(
        mut self,
        paths: impl Iterator<Item = PathBuf>,
    ) -> io::Result<PathBuf> {
        self.file.sync_all()?;
        for path in paths {
            if self.temporary.is_none() {
                match (self.link)(&self.file, &path) {
                    Ok(()) => return Ok(path),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(_) => self.temporary = Some(copied(&self.file, &path)?),
                }
            }
            let Some(temporary) = self.temporary.take() else { continue };
            match temporary.persist_noclobber(&path) {
                Ok(()) => return Ok(path),
                Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                    self.temporary = Some(refused.path);
                }
                Err(refused) => return Err(refused.error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes a temporary file that is named after this process, so that you can see whether it still runs.
fn named<R>(path: &Path, make: impl FnMut(&Path) -> io::Result<R>) -> io::Result<NamedTempFile<R>> {
    let prefix = format!(".flowsieve-{}-", std::process::id());
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    builder.make_in(folder_of(path), make).map_err(without_path)
}

/// Returns a copy with a name, for file systems that have files without names and refuse to name
/// them.
fn copied(file: &File, path: &Path) -> io::Result<TempPath> {
    let mut copy = named(path, |name| File::create_new(name))?;
    let path = in_proc(file);
    permit(copy.as_file(), &file.metadata()?, acl_of(path.as_ref()))?;
    io::copy(&mut File::open(path)?, copy.as_file_mut())?;
    copy.as_file().sync_all()?;
    Ok(copy.into_temp_path())
}

/// Gives a file the owner, the group and the permissions of another, so that no other user can read it.
/// If the group cannot be set, it gets the permissions of others, and the ACL is not copied.
#[cfg(unix)]
fn permit(file: &File, older: &Metadata, acl: Option<Vec<u8>>) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let (new, mut mode) = (file.metadata()?, older.mode() & 0o777);
    let is_others = new.gid() != older.gid() && fchown(file, None, Some(older.gid())).is_err();
    let had_acl = acl.is_some();
    let is_listed = set_acl(file, acl.filter(|_| !is_others))?;
    // Under an ACL, the group bits are its mask.
    if is_others || had_acl && !is_listed {
        mode = mode & 0o707 | (mode & 0o007) << 3;
    }
    // Some file systems have one mode for all files, and refuse to set it.
    if new.mode() & 0o777 != mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    if new.uid() != older.uid() {
        // Only root may.
        let _ = fchown(file, Some(older.uid()), None);
    }
    Ok(())
}

#[cfg(not(unix))]
fn permit(_: &File, _: &Metadata, _: Option<Vec<u8>>) -> io::Result<()> {
    Ok(())
}

/// Name of the list of permissions among the attributes of a file.
#[cfg(target_os = "linux")]
const ACL: &str = "system.posix_acl_access";

/// Returns the POSIX ACL of a file, encoded as its extended attribute; `None` without one.
#[cfg(target_os = "linux")]
fn acl_of(path: &Path) -> Option<Vec<u8>> {
    // Linux limits attributes to 64 KiB.
    let mut list = vec![0; 1 << 16];
    let length = rustix::fs::getxattr(path, ACL, &mut list[..]).ok()?;
    list.truncate(length);
    Some(list)
}

#[cfg(not(target_os = "linux"))]
fn acl_of(_: &Path) -> Option<Vec<u8>> {
    None
}

/// Sets the ACL of a file, or removes the one that it got from its directory. Returns whether the
/// file has this ACL now.
#[cfg(target_os = "linux")]
fn set_acl(file: &File, acl: Option<Vec<u8>>) -> io::Result<bool> {
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    if acl.is_some_and(|list| fsetxattr(file, ACL, &list, XattrFlags::empty()).is_ok()) {
        return Ok(true);
    }
    // An ACL does not fit into one byte: `RANGE` means that there is one.
    if matches!(fgetxattr(file, ACL, &mut [0_u8][..]), Ok(_) | Err(Errno::RANGE)) {
        fremovexattr(file, ACL)?;
    }
    Ok(false)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn set_acl(_: &File, _: Option<Vec<u8>>) -> io::Result<bool> {
    Ok(false)
}

/// Returns a file without a name, where there are such files.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    // It gets its name through this.
    fs::metadata(in_proc(&file)).is_ok().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn in_proc(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives a file without a name this one, which no file has.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};

    let from = in_proc(file);
    Ok(linkat(CWD, from.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn in_proc(_: &File) -> String {
    String::new()
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the error without the name of the temporary file, which the user does not know.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_refused_is_given_to_a_copy() {
        let refused = |_: &File, _: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let made = tempfile::tempdir().unwrap();
        let path = made.path().join("result");
        let write = |text: &str| {
            let mut file = NewFile { link: refused, ..NewFile::create(&path).unwrap() };
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        for text in ["new", "instead of the first"] {
            write(text).persist(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let names = [path.clone(), made.path().join("next")];
        let taken = write("other").persist_new(names.clone().into_iter()).unwrap();
        assert_eq!((&taken, fs::read_to_string(&taken).unwrap().as_str()), (&names[1], "other"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "instead of the first");
        assert_eq!(fs::read_dir(made.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_given_back() {
        let made = tempfile::tempdir().unwrap();
        let path = made.path().join("result");
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"all of it").unwrap();
        // It becomes a directory meanwhile.
        fs::create_dir(&path).unwrap();
        let (_, file) = file.persist(&path).unwrap_err();
        let kept = file.unwrap().persist_new([made.path().join("kept")].into_iter()).unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"all of it");
        assert_eq!(fs::read_dir(made.path()).unwrap().count(), 2);
    }

    /// Encodes an ACL: read and write for the owner, and these permissions for a user, the group and
    /// others.
    #[cfg(target_os = "linux")]
    fn list(user: u16, group: u16, others: u16) -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, may, id) in [
            (1_u16, 6_u16, u32::MAX),
            (2, user, 1234),
            (4, group, u32::MAX),
            (16, user | group, u32::MAX),
            (32, others, u32::MAX),
        ] {
            list.extend(tag.to_le_bytes());
            list.extend(may.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        list
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_replaced_keeps_its_list_of_permissions_and_gets_none_of_its_folder() {
        use rustix::fs::{XattrFlags, setxattr};
        use std::os::unix::fs::PermissionsExt;

        let made = tempfile::tempdir().unwrap();
        let path = made.path().join("result");
        let refused = |_: &File, _: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let state = || (fs::metadata(&path).unwrap().permissions().mode() & 0o777, acl_of(&path));
        let default = "system.posix_acl_default";
        if setxattr(made.path(), default, &list(6, 4, 4), XattrFlags::empty()).is_err() {
            return;
        }
        fs::write(&path, "").unwrap();
        assert!(state().1.is_some(), "a new file gets what its folder says");
        for acl in [None, Some(list(6, 0, 0)), Some(list(4, 6, 4))] {
            set_acl(&File::open(&path).unwrap(), acl.clone()).unwrap();
            if acl.is_none() {
                fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            }
            let before = state();
            assert_eq!(before.1, acl);
            NewFile::create(&path).unwrap().persist(&path).unwrap();
            assert_eq!(state(), before);
            let file = NewFile { link: refused, ..NewFile::create(&path).unwrap() };
            file.persist(&path).unwrap();
            assert_eq!(state(), before);
        }
    }

    #[test]
    fn names_of_partial_results_are_taken_once() {
        let made = tempfile::tempdir().unwrap();
        let folder = made.path();
        let names = || (0_u32..).map(|number| folder.join(number.to_string()));
        let paths: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0_u32..16)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut file = NewFile::create(&folder.join("result")).unwrap();
                        file.write_all(&thread.to_le_bytes()).unwrap();
                        (thread, file.persist_new(names()).unwrap())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (thread, path) in &paths {
            assert_eq!(fs::read(path).unwrap(), thread.to_le_bytes());
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), 16);
    }
}
