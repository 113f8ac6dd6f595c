//! From what the user named to the files that are read.

use anyhow::{Context, Result, bail};
use flowsieve::trace::is_capture;
use std::fs;
use std::path::{Path, PathBuf};

/// The captures among the named files and directories, and how many files in directories are none.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Files, in the order named; those of a directory sorted by path.
    pub(crate) files: Vec<PathBuf>,
    /// Files in directories that are no captures.
    pub(crate) others: usize,
}

impl Inputs {
    /// Files and `-` stay as they are; directories are walked for captures, recognised by content.
    ///
    /// # Errors
    ///
    /// A directory that cannot be listed, or that holds no capture.
    pub(crate) fn find(named: &[PathBuf]) -> Result<Self> {
        let mut inputs = Self::default();
        for path in named {
            if path.is_dir() {
                let before = inputs.files.len();
                inputs.walk(path)?;
                if inputs.files.len() == before {
                    bail!(
                        "{}: there is no capture in this directory; name one that holds pcap, pcapng or ERF files",
                        path.display()
                    );
                }
            } else {
                inputs.files.push(path.clone());
            }
        }
        Ok(inputs)
    }

    fn walk(&mut self, directory: &Path) -> Result<()> {
        let context = || format!("{}: cannot list this directory", directory.display());
        let mut entries = fs::read_dir(directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .with_context(context)?;
        entries.sort_by_key(fs::DirEntry::path);
        for entry in entries {
            let path = entry.path();
            // Links to directories are not followed: they may lead in circles.
            let kind = entry.file_type().with_context(context)?;
            if kind.is_dir() {
                self.walk(&path)?;
            } else if path.is_file() {
                // A file that cannot be read is kept: opening it says why.
                if is_capture(&path).unwrap_or(true) {
                    self.files.push(path);
                } else {
                    self.others += 1;
                }
            }
        }
        Ok(())
    }
}

/// Bytes of all files together, where they are known.
pub(crate) fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    files
        .iter()
        .map(|path| {
            fs::metadata(path)
                .ok()
                .filter(fs::Metadata::is_file)
                .map(|data| data.len())
        })
        .sum()
}
