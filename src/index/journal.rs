//! The journal: the files that a writer is about to make or to delete, a line each.
//!
//! A line is written before its file is. After a writer was killed, the next one deletes the files
//! in the journal that the catalogue does not name, and no others. The journal is there only while
//! there is something in it.

use super::catalog::{Catalog, StoredFile};
use super::{IndexError, disk, folders};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the file.
pub(super) const JOURNAL: &str = "journal";

/// The journal of the one who writes.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Option<File>,
}

impl Journal {
    /// Deletes what the journal of a killed writer names and the catalogue, with these captures'
    /// files, does not; then begins an empty one.
    pub(super) fn recover(
        archive: &Path,
        catalog: &Catalog,
        known: &HashSet<StoredFile>,
    ) -> Result<Self, IndexError> {
        let path = archive.join(JOURNAL);
        let text = match disk::read(&path) {
            Ok(text) => text,
            Err(error) if error.is_missing_file() => return Ok(Self { path, file: None }),
            Err(error) => return Err(error),
        };
        // The last line may be cut off: its file was not begun.
        let lines = text.split(|&byte| byte == b'\n');
        let stored = lines.filter_map(|line| serde_json::from_slice(line).ok());
        for stored in stored.filter(|stored| !known.contains(stored)) {
            folders::delete(archive, catalog, stored)?;
        }
        fs::remove_file(&path).map_err(IndexError::io(&path))?;
        Ok(Self { path, file: None })
    }

    /// Names files that will be made or deleted.
    pub(super) fn name(
        &mut self,
        stored: impl IntoIterator<Item = StoredFile>,
    ) -> Result<(), IndexError> {
        let failed = IndexError::io(&self.path);
        // A line feed ends what a full disk cut off.
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
            none => none.insert(File::create_new(&self.path).map_err(&failed)?),
        };
        file.write_all(&lines).map_err(failed)
    }

    /// Forgets all files: the catalogue names them, or they are deleted.
    pub(super) fn clear(&mut self) {
        if self.file.take().is_some() {
            // Otherwise the next writer looks for its files once more.
            let _ = fs::remove_file(&self.path);
        }
    }
}
