//! The folders of an index: made, locked for one writer, and tidied after one that was killed.

use super::IndexError;
use super::catalog::{CATALOG, CaptureEntry, Catalog, NODE, SEGMENT};
use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Name of the file that the one who writes has locked.
const LOCK: &str = "lock";

/// Makes the folders of the nodes, which must be empty: those named, or one within the archive's.
/// How the catalogue names them.
pub(super) fn make_nodes(archive: &Path, nodes: &[PathBuf]) -> Result<Vec<PathBuf>, IndexError> {
    let ours = [LOCK.to_owned(), format!("{CATALOG}.new"), NODE.to_owned()];
    check_empty(archive, &ours)?;
    let mut folders = Vec::new();
    for node in nodes {
        fs::create_dir_all(node).map_err(IndexError::io(node))?;
        check_empty(node, &[])?;
        let folder = fs::canonicalize(node).map_err(IndexError::io(node))?;
        if folders.contains(&folder) {
            return Err(IndexError::Plan(format!(
                "{}: this folder is named twice; each node has a folder of its own",
                node.display()
            )));
        }
        folders.push(folder);
    }
    if folders.is_empty() {
        let folder = archive.join(NODE);
        fs::create_dir_all(&folder).map_err(IndexError::io(&folder))?;
        folders.push(PathBuf::from(NODE));
    }
    Ok(folders)
}

/// Deletes what stands in the archive's folder and in the nodes, and is not in the catalogue.
pub(super) fn delete_leftovers(
    archive: &Path,
    catalog: &Catalog,
    captures: &[CaptureEntry],
) -> Result<(), IndexError> {
    let mut known: HashSet<PathBuf> = HashSet::new();
    for entry in captures {
        for region in &entry.regions {
            known.insert(catalog.capture_folder(archive, region.node, entry.id));
        }
    }
    let segments = catalog.segments.iter();
    known.extend(segments.flat_map(|segment| catalog.files_of(archive, segment)));
    let nodes = (0..catalog.nodes.len()).map(|node| catalog.node_folder(archive, node));
    for folder in nodes.chain([archive.to_owned()]) {
        let entries = fs::read_dir(&folder).map_err(IndexError::io(&folder))?;
        for entry in entries {
            let path = entry.map_err(IndexError::io(&folder))?.path();
            if known.contains(&path) || !is_ours(&path) {
                continue;
            }
            let deleted =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            deleted.map_err(IndexError::io(&path))?;
        }
    }
    Ok(())
}

/// Whether the name is one that a writer gives.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = [".filter", ".filters", SEGMENT];
    let number = ending.iter().find_map(|ending| name.strip_suffix(ending));
    let number = number.unwrap_or(&name);
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Locks the index for writing, as long as the file is open.
pub(super) fn lock(archive: &Path) -> Result<File, IndexError> {
    let path = archive.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(IndexError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IndexError::Busy(archive.to_owned())),
        Err(TryLockError::Error(error)) => Err(IndexError::io(&path)(error)),
    }
}

fn check_empty(folder: &Path, but: &[String]) -> Result<(), IndexError> {
    for entry in fs::read_dir(folder).map_err(IndexError::io(folder))? {
        let name = entry.map_err(IndexError::io(folder))?.file_name();
        if !but.iter().any(|known| name == known.as_str()) {
            return Err(IndexError::Plan(format!(
                "{}: this folder has other files in it ({}); an index needs a folder of its own",
                folder.display(),
                name.display()
            )));
        }
    }
    Ok(())
}
