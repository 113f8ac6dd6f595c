//! Repairing an index: damaged captures are indexed again, and damaged filters rebuilt.

use super::catalog::CaptureEntry;
use super::check::Damage;
use super::writer::{Added, IndexWriter, cannot_be_indexed};
use super::{IndexError, disk};
use flowsieve_engine::internal::{Shown, Watch};

impl IndexWriter {
    /// Indexes again the captures whose files in the index are damaged, and rebuilds the filters of
    /// segments from their records.
    ///
    /// # Errors
    ///
    /// The index cannot be read or written.
    #[doc(hidden)]
    pub fn repair(&mut self, damage: &Damage, watch: &dyn Watch) -> Result<Vec<Added>, IndexError> {
        let mut repaired = Vec::new();
        self.rebuild(&damage.segments);
        for (id, entry) in &damage.captures {
            let state = disk::state_of(&entry.path);
            let added = match obstacle(entry, watch) {
                Some(obstacle) => obstacle,
                None => match entry.selection() {
                    Ok(selection) => {
                        let usual = std::mem::replace(&mut self.selection, selection);
                        let path = entry.path.clone();
                        let added = self.index_capture(path, state, &None, Some(*id), watch);
                        self.selection = usual;
                        added?
                    }
                    Err(error) => Added::Unreadable(error.to_string()),
                },
            };
            let interrupted = added == Added::Interrupted;
            repaired.push(added);
            if interrupted {
                break;
            }
        }
        Ok(repaired)
    }
}

/// Returns why a capture cannot be indexed again, or `None` if it can. One that has changed cannot:
/// its intact regions may be all that is left of what was indexed.
fn obstacle(entry: &CaptureEntry, watch: &dyn Watch) -> Option<Added> {
    let path = &entry.path;
    if let Some(problem) = cannot_be_indexed(path) {
        return Some(Added::Unreadable(problem));
    }
    match disk::content_of(path, &watch.stop()) {
        Err(error) => Some(Added::Unreadable(error.to_string())),
        Ok(None) => Some(Added::Interrupted),
        Ok(Some((digest, _))) if digest == entry.digest => None,
        Ok(Some(_)) => Some(Added::Unreadable(format!(
            "{}: this file has changed since it was indexed, and the index keeps what is whole of it; drop it, or add it as it is now",
            path.shown()
        ))),
    }
}
