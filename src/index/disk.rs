//! Files of an index: written whole and synchronised, read whole and compared with their checksum.
//!
//! What a file has is written down in the catalogue, so that a file is known to be whole before
//! anything in it is believed. Files that are read in parts are in `blocks`.

use super::IndexError;
use crate::hashing::Checksum;
use crate::trace::StopFlag;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes read at a time: they are in the caches next to the processor when their checksum is made.
const BUFFER: usize = 1 << 17;

/// Length and checksum of a file.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FileMark {
    /// Bytes.
    pub bytes: u64,
    /// XXH3 of 64 bits.
    pub checksum: u64,
}

impl FileMark {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut checksum = Checksum::new();
        checksum.update(bytes);
        Self { bytes: bytes.len() as u64, checksum: checksum.value() }
    }
}

/// New files, which are synchronised together: the first then makes the others' names last as well.
#[derive(Debug, Default)]
pub(super) struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    /// Writes a new file. Part of a file is not left behind: a disk that is full needs the room.
    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<FileMark, IndexError> {
        fs::write(path, bytes).map_err(|error| {
            let _ = fs::remove_file(path);
            IndexError::io(path)(error)
        })?;
        self.0.push(path.to_owned());
        Ok(FileMark::of(bytes))
    }

    /// No longer waits for the files below a folder, which are deleted.
    pub(super) fn forget(&mut self, folder: &Path) {
        self.0.retain(|path| !path.starts_with(folder));
    }

    /// Waits until all of them are on the disk, with their names.
    pub(super) fn sync(&self) -> Result<(), IndexError> {
        for path in &self.0 {
            let sync = || File::open(path)?.sync_all();
            sync().map_err(IndexError::io(path))?;
        }
        let folders: BTreeSet<&Path> = self.0.iter().filter_map(|path| path.parent()).collect();
        folders.into_iter().try_for_each(sync_folder)
    }

    /// A catalogue names them now.
    pub(super) fn keep(&mut self) {
        self.0.clear();
    }

    /// Deletes them: no catalogue will name them, and a disk that is full needs the room.
    pub(super) fn discard(&mut self) {
        for path in self.0.drain(..) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Puts a file in place of another one of that name: readers see the old one or the new one.
pub(super) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), IndexError> {
    let temporary = folder.join(format!("{name}.new"));
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        IndexError::io(&temporary)(error)
    })?;
    let path = folder.join(name);
    fs::rename(&temporary, &path).map_err(IndexError::io(&path))?;
    sync_folder(folder)
}

/// Makes names in a folder last.
pub(super) fn sync_folder(folder: &Path) -> Result<(), IndexError> {
    if cfg!(unix) {
        let sync = || File::open(folder)?.sync_all();
        sync().map_err(IndexError::io(folder))?;
    }
    Ok(())
}

/// Reads a file that should have this mark.
pub(super) fn read_checked(path: &Path, mark: FileMark) -> Result<Vec<u8>, IndexError> {
    let file = File::open(path).map_err(IndexError::io(path))?;
    let length = file.metadata().map_err(IndexError::io(path))?.len();
    if length != mark.bytes {
        return Err(IndexError::damaged(
            path,
            format!("it has {length} bytes and should have {}", mark.bytes),
        ));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length).read_to_end(&mut bytes).map_err(IndexError::io(path))?;
    if FileMark::of(&bytes) != mark {
        return Err(IndexError::damaged(path, "its checksum is another one"));
    }
    Ok(bytes)
}

/// A digest of a file's content as the catalogue has it.
pub(super) fn digest_text(digest: u128) -> String {
    format!("{digest:032x}")
}

/// XXH3 of 128 bits of a file's content, and its length; nothing if the flag was set before its
/// end.
pub(super) fn content_of(path: &Path, stop: &StopFlag) -> Result<Option<(u128, u64)>, IndexError> {
    let mut file = File::open(path).map_err(IndexError::io(path))?;
    let mut checksum = Checksum::new();
    let (mut buffer, mut length) = (vec![0; BUFFER], 0);
    loop {
        match file.read(&mut buffer) {
            _ if stop.is_set() => return Ok(None),
            Ok(0) => return Ok(Some((checksum.wide(), length))),
            Ok(read) => {
                checksum.update(&buffer[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(IndexError::io(path)(error)),
        }
    }
}
