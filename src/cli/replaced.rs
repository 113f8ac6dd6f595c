//! Saved filters that a command reads and replaces.

use super::same_file::FileId;
use anyhow::{Context, Result, bail};
use flowsieve::trace::FileState;
use flowsieve_engine::internal::Shown;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

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
