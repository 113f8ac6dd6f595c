//! The journal: the files that a writer is about to make or delete, one per line.
//!
//! A line is written before its file is. If the writer is killed, the next one deletes the files in
//! the journal that the catalogue does not name, and no others. The journal exists only while it
//! names something.

use super::catalog::Catalog;
use super::layout::{JOURNAL, StoredFile};
use super::{IndexError, disk};
use std::collections::HashSet;
use std::fs::File;
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
    let (line, is_cut) = match head.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&head[..end], false),
        None => (head, true),
    };
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
