//! The journal: the files that a writer is about to make or delete, one per line.
//!
//! A line is written before its file is. If the writer is killed, the next one deletes the files in
//! the journal that the catalogue does not name, and no others. The journal exists only while it
//! names something.

use super::catalog::Catalog;
use super::disk::FileMark;
use super::layout::{JOURNAL, StoredFile};
use super::nodes::Lock;
use super::{IndexError, disk};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// No line is longer.
const MOST_LINE: u64 = 256;

/// No journal is longer; of one that is, the rest is not read.
const MOST_BYTES: u64 = 1 << 30;

/// Returns whether a file is a journal, or the rest of one after a power failure, and not another file.
fn is_journal(path: &Path) -> Result<bool, IndexError> {
    let mut head = Vec::new();
    let file = disk::open(path)?.take(MOST_LINE);
    BufReader::new(file).read_to_end(&mut head).map_err(IndexError::io(path))?;
    let head = head.strip_prefix(b"\n").unwrap_or(&head);
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_cut = line.len() == head.len();
    let is_begun = StoredFile::KINDS.iter().any(|kind| {
        let begin = format!("{{\"{kind}\":{{");
        line.starts_with(begin.as_bytes()) || begin.as_bytes().starts_with(line)
    });
    Ok(serde_json::from_slice::<StoredFile>(line).is_ok()
        || (!line.is_empty() && line.iter().all(|&byte| byte == 0))
        || (is_cut && is_begun))
}

/// The journal of the process that writes.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Option<File>,
}

impl Journal {
    /// Returns an empty journal of the index in this folder.
    pub(super) fn new(archive: &Path) -> Self {
        Self { path: archive.join(JOURNAL), file: None }
    }

    /// Deletes what the journal of a killed writer names and is not `known` to the catalogue; then
    /// begins an empty journal.
    pub(super) fn recover(
        catalog: &Catalog,
        known: &HashSet<StoredFile>,
    ) -> Result<Self, IndexError> {
        let journal = Self::new(&catalog.archive);
        let file = match disk::open(&journal.path) {
            Ok(file) => file,
            Err(error) if error.is_missing_file() => return Ok(journal),
            Err(error) => return Err(error),
        };
        if !is_journal(&journal.path)? {
            return Err(disk::not_made(&journal.path));
        }
        // The catalogue that no longer names the files may be one that a power failure takes back.
        disk::sync_folder(&catalog.archive)?;
        let mut text = BufReader::new(file.take(MOST_BYTES));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut text).take(MOST_LINE).read_until(b'\n', &mut line);
            if read.map_err(IndexError::io(&journal.path))? == 0 {
                break;
            }
            // The last line may be cut off: its file was not begun.
            let stored = serde_json::from_slice(&line).ok();
            if let Some(stored) = stored.filter(|stored| !known.contains(stored)) {
                catalog.delete(stored)?;
            }
        }
        disk::remove(&journal.path).map_err(IndexError::io(&journal.path))?;
        Ok(journal)
    }

    /// Names files that will be made or deleted.
    pub(super) fn name(
        &mut self,
        stored: impl IntoIterator<Item = StoredFile>,
    ) -> Result<(), IndexError> {
        let failed = IndexError::io(&self.path);
        // A full disk may have cut the last line off.
        let mut lines = vec![b'\n'];
        for stored in stored {
            serde_json::to_writer(&mut lines, &stored).map_err(|error| failed(error.into()))?;
            lines.push(b'\n');
        }
        if lines.len() == 1 {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(disk::create(&self.path).map_err(&failed)?),
        };
        // A power failure may leave the files that follow: then their names are on the disk, too.
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(failed)
    }

    /// Forgets all files: the catalogue names them, or they are deleted.
    pub(super) fn clear(&mut self) {
        if self.file.take().is_some() {
            // Otherwise the next writer looks for its files once more.
            let _ = disk::remove(&self.path);
        }
    }
}

/// New files, which are synchronised together and deleted unless they are committed.
#[derive(Debug, Default)]
pub(super) struct NewFiles {
    paths: Vec<PathBuf>,
    /// Names them before they are made; `None` in tests.
    journal: Option<Journal>,
    /// Files may be left that the next writer has to look for.
    pub(super) is_left: bool,
    /// Locks of the archive's folder and of the nodes, in this order.
    pub(super) locks: Vec<Lock>,
}

impl NewFiles {
    pub(super) fn with_journal(journal: Journal, locks: Vec<Lock>) -> Self {
        Self { paths: Vec::new(), journal: Some(journal), is_left: false, locks }
    }

    /// Checks that this writer still holds all locks. If a lock was deleted or its folder moved, files
    /// of these names may belong to another writer or index.
    pub(super) fn check_locks(&self) -> Result<(), IndexError> {
        self.locks.iter().try_for_each(Lock::check)
    }

    pub(super) fn is_locked(&self) -> bool {
        self.check_locks().is_ok()
    }

    /// Names files that will be made or deleted: the next writer deletes those that the catalogue
    /// does not name, if this one is killed.
    pub(super) fn name(
        &mut self,
        stored: impl IntoIterator<Item = StoredFile>,
    ) -> Result<(), IndexError> {
        self.check_locks()?;
        self.journal.as_mut().map_or(Ok(()), |journal| journal.name(stored))
    }

    /// Writes a new file, which must not exist. Part of a file is not left behind: a full disk needs
    /// the room.
    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<FileMark, IndexError> {
        self.check_locks()?;
        let mut file = disk::create(path).map_err(IndexError::io(path))?;
        file.write_all(bytes).map_err(|error| {
            self.is_left |= fs::remove_file(path).is_err();
            IndexError::io(path)(error)
        })?;
        self.paths.push(path.to_owned());
        Ok(FileMark::new(bytes))
    }

    /// Deletes the new files of a folder, and the folder if nothing else is in it.
    pub(super) fn abandon(&mut self, folder: &Path) -> Result<(), IndexError> {
        if !self.is_locked() {
            self.is_left = true;
            return Ok(());
        }
        for path in self.paths.extract_if(.., |path| path.starts_with(folder)) {
            if let Err(error) = disk::remove(&path) {
                self.is_left = true;
                return Err(IndexError::io(&path)(error));
            }
        }
        let _ = fs::remove_dir(folder);
        Ok(())
    }

    /// Waits until all of them are on the disk, with their names.
    pub(super) fn sync(&self) -> Result<(), IndexError> {
        for path in &self.paths {
            disk::sync(path).map_err(IndexError::io(path))?;
        }
        let folders: BTreeSet<&Path> = self.paths.iter().filter_map(|path| path.parent()).collect();
        folders.into_iter().try_for_each(disk::sync_folder)
    }

    /// Returns the files, which a catalogue is about to name.
    pub(super) fn take(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.paths)
    }

    /// Ends the journal: all that it names is in the catalogue or deleted.
    pub(super) fn clear_journal(&mut self) {
        let is_own = !self.is_left && self.is_locked();
        if let Some(journal) = self.journal.as_mut().filter(|_| is_own) {
            journal.clear();
        }
    }

    /// Deletes new files that no catalogue will name: a full disk needs the room.
    pub(super) fn discard(&mut self, paths: &[PathBuf]) {
        if !self.is_locked() {
            self.is_left = true;
            return;
        }
        for path in paths {
            self.is_left |= disk::remove(path).is_err();
        }
        // The folders of captures; others hold a lock.
        let folders: BTreeSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        for folder in folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Deletes what was not committed.
impl Drop for NewFiles {
    fn drop(&mut self) {
        if self.journal.is_some() {
            let paths = self.take();
            self.discard(&paths);
            self.clear_journal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_deleted_stays_in_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = NewFiles::with_journal(Journal::new(folder.path()), Vec::new());
        files.name([StoredFile::Filter { node: 0, number: 7 }]).unwrap();
        let path = folder.path().join("7.filter");
        files.write(&path, b"filter").unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(files.abandon(folder.path()).is_err());
        files.clear_journal();
        assert!(folder.path().join(JOURNAL).exists());
    }
}
