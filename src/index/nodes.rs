//! The folders of an index: making them, locking them, and adopting those that were moved or copied.

use super::catalog::{Catalog, Node, Settings};
use super::disk::IndexId;
use super::layout::{CATALOG, LOCK, MARK, NODE, index_or_node_around};
use super::node_mark::{self, NodeMark, User};
use super::{IndexError, disk};
use flowsieve_engine::internal::Shown;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf, absolute};

/// Returns a sentence for each problem with a node: those of now, and those that the reader of this
/// catalogue met.
pub(super) fn problems(used: &Catalog) -> Result<Vec<String>, IndexError> {
    let archive = fs::canonicalize(&used.archive).map_err(IndexError::io(&used.archive))?;
    // A writer that commits meanwhile replaces the catalogue and the marks.
    let (_, problems, _) = Catalog::read_with(&archive, |catalog, met| {
        let nodes = 0..catalog.nodes.len();
        let checked = nodes.filter_map(|node| node_mark::check(catalog, node, User::Writer).err());
        let problems: Vec<String> = checked.map(|error| error.to_string()).collect();
        met.is_missing = !problems.is_empty();
        problems
    })?;
    let skipped = used.nodes.iter().filter_map(|node| node.problem.clone());
    let mut passed: Vec<String> = skipped.filter(|problem| !problems.contains(problem)).collect();
    passed.extend(problems);
    Ok(passed)
}

/// Locks the nodes of an index for writing, if all of them are its own.
pub(super) fn claim(catalog: &Catalog) -> Result<Vec<Lock>, IndexError> {
    let mut locks = Vec::new();
    for node in 0..catalog.nodes.len() {
        // Not even a lock file is made in a folder of others.
        node_mark::check(catalog, node, User::Writer)?;
        locks.push(lock(&catalog.node_folder(node))?);
        node_mark::check(catalog, node, User::Writer)?;
    }
    node_mark::mark_copies(catalog)?;
    Ok(locks)
}

/// Makes the folders of a new index, with its nodes in the folders named, or in one within the
/// archive's. All of them must be new or empty, and nothing is made if one is not. Returns the
/// catalogue, which is not committed, and the locks.
pub(super) fn make(
    archive: &Path,
    settings: Settings,
    nodes: &[PathBuf],
) -> Result<(Catalog, Vec<Lock>), IndexError> {
    check_archive(archive)?;
    let inside = [archive.join(NODE)];
    let nodes = if nodes.is_empty() {
        check_not_link(&inside[0])?;
        &inside[..]
    } else {
        nodes
    };
    let places: Vec<PathBuf> =
        nodes.iter().map(absolute).collect::<Result<_, _>>().map_err(IndexError::io(archive))?;
    for (number, (named, folder)) in nodes.iter().zip(&places).enumerate() {
        check_apart(folder, places[..number].iter().cloned(), named)?;
    }
    let place = fs::canonicalize(archive).or_else(|_| absolute(archive));
    let place = place.map_err(IndexError::io(archive))?;
    for folder in nodes.iter().filter_map(|node| fs::canonicalize(node).ok()) {
        check_node(&place, &folder)?;
    }
    disk::create_folder(archive)?;
    let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
    let mut locks = vec![lock(archive)?];
    // Another build may have begun before it was locked.
    check_archive(archive)?;
    let mut catalog = Catalog::new(archive, IndexId::random()?, settings, Vec::new());
    for named in nodes {
        disk::create_folder(named)?;
        let folder = fs::canonicalize(named).map_err(IndexError::io(named))?;
        let node = Node::new(name_of(archive, &folder)?);
        let others = (0..catalog.nodes.len()).map(|other| catalog.node_folder(other));
        check_apart(&folder, others, named)?;
        check_node(archive, &folder)?;
        locks.push(lock(&folder)?);
        check_node(archive, &folder)?;
        catalog.nodes.push(node);
    }
    // A mark makes a folder this index's, so it comes when all folders can be had.
    for node in 0..catalog.nodes.len() {
        node_mark::write(&catalog, node, &[])?;
    }
    Ok((catalog, locks))
}

/// Refuses a link in the place of the node that nobody named: its target is not the index's.
fn check_not_link(node: &Path) -> Result<(), IndexError> {
    match disk::if_there(fs::symlink_metadata(node)).map_err(IndexError::io(node))? {
        Some(data) if !data.is_dir() => Err(IndexError::Plan(format!(
            "{}: the index makes a directory of this name, and there is a link or a file; remove it, or name the folders of the nodes with --nodes",
            node.shown()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a folder among the files of another index.
fn check_around(named: &Path, folder: &Path) -> Result<(), IndexError> {
    let Some(other) = index_or_node_around(folder) else { return Ok(()) };
    Err(IndexError::Plan(format!(
        "{}: this is inside a directory of an index ({}), where only that index keeps files; choose another folder",
        named.shown(),
        other.shown()
    )))
}

/// Checks that an archive's folder is new or empty, and in no other index.
fn check_archive(archive: &Path) -> Result<(), IndexError> {
    let refuse = |reason: &str| Err(IndexError::Plan(format!("{}: {reason}", archive.shown())));
    let Ok(data) = fs::metadata(archive) else {
        if archive.is_symlink() {
            return refuse(
                "this link leads nowhere, so no index can be made there; delete the link",
            );
        }
        // The folder that it will be in may be reached by a link.
        let path = absolute(archive).map_err(IndexError::io(archive))?;
        let mut above = path.ancestors().filter_map(|above| fs::canonicalize(above).ok());
        return above.next().map_or(Ok(()), |above| check_around(archive, &above.join(NODE)));
    };
    if !data.is_dir() {
        return refuse(
            "an index is a directory, and this is a file; name the directory first, and then the captures",
        );
    }
    if archive.join(CATALOG).exists() {
        return refuse(
            "there is an index in this folder already; `flowsieve index add` adds to it",
        );
    }
    check_around(archive, &fs::canonicalize(archive).map_err(IndexError::io(archive))?)?;
    // A build that was killed may have left these; it makes a journal only when there is a catalogue.
    check_empty(archive, &[LOCK, NODE], CATALOG)
}

/// Checks that a node's folder is empty, or was left by a killed build of this archive.
fn check_node(archive: &Path, folder: &Path) -> Result<(), IndexError> {
    if folder == archive {
        return Err(IndexError::Plan(format!(
            "{}: this is the directory of the index; a node needs one of its own, below it or elsewhere",
            folder.shown()
        )));
    }
    check_around(folder, folder)?;
    let owner = name_of(archive, folder)?.is_absolute().then_some(archive);
    let mut left = vec![LOCK];
    match NodeMark::read(folder) {
        // A file of that name that is no mark is somebody else's.
        Ok(None) | Err(IndexError::Node { .. }) => {}
        Err(error) => return Err(error),
        Ok(Some(mark)) if mark.owner.as_ref().map(|owner| &*owner.archive) == owner => {
            left.push(MARK);
        }
        Ok(Some(_)) => left.clear(),
    }
    check_empty(folder, &left, MARK)
}

/// Returns how the catalogue names a folder: relative to the archive's if it is copied and moved
/// with it, which another file system that is mounted there is not.
fn name_of(archive: &Path, folder: &Path) -> Result<PathBuf, IndexError> {
    let Ok(inside) = folder.strip_prefix(archive) else { return Ok(folder.to_owned()) };
    let is_mounted = archive.exists() && device(archive)? != device(folder)?;
    Ok(if is_mounted { folder } else { inside }.to_owned())
}

fn device(folder: &Path) -> Result<u64, IndexError> {
    Ok(disk::id_of(&fs::metadata(folder).map_err(IndexError::io(folder))?).0)
}

/// Whether two names lead to one folder, also through a second mount of it.
fn is_one_folder(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    let id = |folder: &Path| fs::metadata(folder).ok().map(|data| disk::id_of(&data));
    #[cfg(not(unix))]
    let id = |folder: &Path| fs::canonicalize(folder).ok();
    one == other || id(one).zip(id(other)).is_some_and(|(one, other)| one == other)
}

/// Refuses a node's folder that is the same as another node's, inside it, or around it.
fn check_apart(
    folder: &Path,
    mut others: impl Iterator<Item = PathBuf>,
    named: &Path,
) -> Result<(), IndexError> {
    let is_in = |one: &Path, other: &Path| one.ancestors().any(|above| is_one_folder(above, other));
    let Some(other) = others.find(|other| is_in(folder, other) || is_in(other, folder)) else {
        return Ok(());
    };
    let named = named.shown();
    Err(IndexError::Plan(if is_one_folder(folder, &other) {
        format!("{named}: this folder is named twice; name another one for each node")
    } else {
        let other = other.shown();
        format!(
            "{named} and {other}: one of these folders is inside the other; name folders that are not"
        )
    }))
}

/// Makes folders that the user named the nodes of an index that was moved or copied, or whose marks
/// are gone. Without `nodes` they are those of the catalogue, which must be within the archive's
/// folder. Returns their number.
///
/// # Errors
///
/// A folder belongs to another index, or is not the node that it is named as.
#[doc(hidden)]
pub fn adopt(archive: &Path, nodes: &[PathBuf]) -> Result<usize, IndexError> {
    // A folder without an index gets no lock file.
    Catalog::load(archive)?;
    let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
    let mut locks = vec![lock(archive)?];
    let mut catalog = Catalog::load(archive)?;
    let outside = catalog.nodes.iter().filter(|node| !node.is_inside());
    let outside: Vec<String> = outside.map(|node| node.folder.shown().to_string()).collect();
    let count = catalog.nodes.len();
    if nodes.is_empty() && !outside.is_empty() {
        return Err(IndexError::Plan(format!(
            "{}: nodes of this index are in other folders ({}); with --nodes name the folders of all {count} nodes in their order, or those of their copies",
            archive.shown(),
            outside.join(", ")
        )));
    }
    if !nodes.is_empty() && nodes.len() != count {
        return Err(IndexError::Plan(format!(
            "{}: this index has {count} nodes, and {} are named; name all of them in their order",
            archive.shown(),
            nodes.len()
        )));
    }
    let own: Vec<PathBuf> = (0..count).map(|node| catalog.node_folder(node)).collect();
    let mut adopted: Vec<Node> = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for (node, named) in (if nodes.is_empty() { &own } else { nodes }).iter().enumerate() {
        let folder = fs::canonicalize(named).map_err(IndexError::io(named))?;
        if nodes.is_empty() {
            node_mark::resolve(&catalog, node)?;
        }
        let name = Node::new(name_of(archive, &folder)?);
        check_apart(&folder, folders.iter().cloned(), named)?;
        check_adoptable(&catalog, node, &folder)?;
        locks.push(lock(&folder)?);
        check_adoptable(&catalog, node, &folder)?;
        adopted.push(name);
        folders.push(folder);
    }
    catalog.nodes = adopted;
    // The commit marks those outside.
    let inside = (0..count).filter(|&node| catalog.nodes[node].is_inside());
    inside.into_iter().try_for_each(|node| node_mark::write(&catalog, node, &[]))?;
    catalog.commit()?;
    Ok(count)
}

/// Refuses a folder that another index owns, or that cannot be this node.
fn check_adoptable(catalog: &Catalog, node: usize, folder: &Path) -> Result<(), IndexError> {
    let refuse = |reason: String| Err(IndexError::Node { folder: folder.to_owned(), reason });
    let this = catalog.archive.shown();
    if folder == catalog.archive {
        return refuse(
            "a node needs a folder of its own, below or outside that of the index".into(),
        );
    }
    let around = index_or_node_around(folder).and_then(|around| fs::canonicalize(around).ok());
    if let Some(other) = around.filter(|around| *around != catalog.archive) {
        return refuse(format!(
            "this folder is part of the index in {}; copy the node, and name the copy",
            other.shown()
        ));
    }
    let Some(mark) = NodeMark::read(folder)? else { return check_content(catalog, node, folder) };
    if mark.index != catalog.id {
        return refuse(format!(
            "this folder belongs to another index than the one in {this}; name the folder of node {node}"
        ));
    }
    if mark.node != node {
        return refuse(format!(
            "this folder is node {} of the index, and it is named as node {node}; name the nodes in their order",
            mark.node
        ));
    }
    let home = mark.other_home(catalog, folder)?;
    if let Some(home) = home.filter(|_| !folder.starts_with(&catalog.archive)) {
        return refuse(format!(
            "this folder is the node of the index in {}, under another name, and no copy of it; copy it, and name the copy",
            home.archive.shown()
        ));
    }
    let owner = home.map(|home| home.archive.clone());
    let owner = owner.or_else(|| mark.owner.as_ref().map(|owner| owner.archive.clone()));
    let Some(owner) = owner.filter(|owner| *owner != catalog.archive) else { return Ok(()) };
    // The archive was moved, and its old name leads to it.
    if fs::canonicalize(&owner).is_ok_and(|owner| owner == catalog.archive) {
        return Ok(());
    }
    match is_used_by(&owner, catalog.id, folder) {
        Ok(false) => Ok(()),
        Ok(true) => refuse(format!(
            "this folder is in use by the index in {}; copy it, and name the copy",
            owner.shown()
        )),
        Err(error) => refuse(format!(
            "this folder may be in use by the index in {}, which cannot be read: {error}",
            owner.shown()
        )),
    }
}

/// Returns whether there is an index in this archive that has this id and this node.
fn is_used_by(archive: &Path, id: IndexId, node: &Path) -> Result<bool, IndexError> {
    let other = match Catalog::load(archive) {
        Err(IndexError::Missing(_)) => return Ok(false),
        other => other?,
    };
    let mut folders = (0..other.nodes.len()).map(|at| other.node_folder(at));
    Ok(other.id == id && folders.any(|used| is_one_folder(&used, node)))
}

/// Checks a folder without a mark, of which only its files tell whether it is the node: it has all
/// filters that the catalogue names there, and one of them is whole; or it is empty.
fn check_content(catalog: &Catalog, node: usize, folder: &Path) -> Result<(), IndexError> {
    let parts = catalog.segments.iter().flat_map(|segment| &segment.parts);
    let parts: Vec<_> = parts.filter(|part| part.node == node).collect();
    if parts.is_empty() {
        return check_empty(folder, &[LOCK], MARK);
    }
    let this = catalog.archive.shown();
    let refuse = |what: &str, name: &str| IndexError::Node {
        folder: folder.to_owned(),
        reason: format!(
            "this folder has neither a mark nor {what} {name} of node {node} of the index in {this}; name the folder that has it"
        ),
    };
    let mut is_proved = false;
    let mut last = String::new();
    for part in parts {
        let filters = part.region_filters.iter().map(|&(number, mark)| (number, "filters", mark));
        for (number, ending, mark) in filters.chain([(part.filter.0, "filter", part.filter.1)]) {
            last = format!("{number:06}.{ending}");
            let path = folder.join(&last);
            if !path.is_file() {
                return Err(refuse("the file", &last));
            }
            is_proved |= ending == "filters" && disk::read_checked(&path, mark).is_ok();
        }
    }
    if is_proved { Ok(()) } else { Err(refuse("an undamaged file", &last)) }
}

/// The lock of a folder, held as long as its file is open.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// Whether the file was made for it, and is not somebody else's.
    is_new: bool,
}

impl Lock {
    /// Deletes the file if it was made for this lock.
    pub(super) fn remove(&self) {
        if self.is_new && self.is_in_place().unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Checks that nobody else can be writing, so that no commit or file of others is lost.
    pub(super) fn check(&self) -> Result<(), IndexError> {
        if self.is_in_place().map_err(IndexError::io(&self.path))? {
            return Ok(());
        }
        let reason = "a lock of this index was deleted or its folder moved while it was written to, so what came after the last commit is not in it; run the command again";
        Err(IndexError::io(&self.path)(io::Error::other(reason)))
    }

    /// Whether the file still has its name. Who had it before may have deleted it, and then others
    /// lock another file of that name.
    fn is_in_place(&self) -> io::Result<bool> {
        let Some(named) = disk::if_there(fs::symlink_metadata(&self.path))? else {
            return Ok(false);
        };
        Ok(disk::id_of(&named) == disk::id_of(&self.file.metadata()?))
    }
}

/// Locks a folder for writing.
pub(super) fn lock(folder: &Path) -> Result<Lock, IndexError> {
    let path = folder.join(LOCK);
    let open = |_| File::options().create(true).truncate(false).write(true).open(&path);
    loop {
        disk::check_file(&path)?;
        let made = File::create_new(&path);
        let is_new = made.is_ok();
        let file = made.or_else(open).map_err(IndexError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(IndexError::Busy(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(IndexError::io(&path)(error)),
        }
        let lock = Lock { file, path: path.clone(), is_new };
        if lock.is_in_place().map_err(IndexError::io(&path))? {
            return Ok(lock);
        }
    }
}

/// Checks that a folder has no files but those of these names. A lock is empty.
fn check_empty(folder: &Path, but: &[&str], begun: &str) -> Result<(), IndexError> {
    for entry in fs::read_dir(folder).map_err(IndexError::io(folder))? {
        let entry = entry.map_err(IndexError::io(folder))?;
        let name = entry.file_name();
        let is_filled = || entry.metadata().is_ok_and(|data| data.len() > 0);
        let is_known = but.iter().any(|known| name == *known)
            || name.to_str().is_some_and(|name| disk::is_temporary(name, begun));
        if !is_known || (name == LOCK && is_filled()) {
            return Err(IndexError::Plan(format!(
                "{}: this folder has other files in it ({}); an index needs a folder of its own",
                folder.shown(),
                name.shown()
            )));
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    #[test]
    fn a_lock_whose_file_was_deleted_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let holders = AtomicU32::new(0);
        let hold = || {
            for _ in 0..5000 {
                if let Ok(lock) = lock(folder.path()) {
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    holders.fetch_sub(1, Ordering::SeqCst);
                    let _ = fs::remove_file(&lock.path);
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(hold))));
    }

    /// A file server that did not answer for a moment was called a deleted lock.
    #[test]
    fn a_lock_that_cannot_be_looked_at_is_not_called_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let [archive, moved] = ["A", "moved"].map(|name| folder.path().join(name));
        fs::create_dir(&archive).unwrap();
        let lock = lock(&archive).unwrap();
        let told = || lock.check().unwrap_err().to_string();
        fs::rename(&archive, &moved).unwrap();
        assert!(told().contains("was deleted or its folder moved"), "{}", told());
        std::os::unix::fs::symlink("A", &archive).unwrap();
        assert!(told().contains("symbolic links"), "{}", told());
        fs::remove_file(&archive).unwrap();
        fs::rename(&moved, &archive).unwrap();
        lock.check().unwrap();
    }

    /// `verify` said that all files are whole, though it had left out those of this node.
    #[test]
    fn a_node_that_was_away_while_an_index_was_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [archive, node, away] = ["A", "n", "away"].map(|name| folder.path().join(name));
        let nodes = [node.clone()];
        drop(super::super::IndexWriter::create(&archive, Settings::default(), &nodes).unwrap());
        fs::rename(&node, &away).unwrap();
        let used = Catalog::load(&archive).unwrap();
        assert_eq!(problems(&used).unwrap().len(), 1);
        fs::rename(&away, &node).unwrap();
        let found = problems(&used).unwrap();
        assert!(found.len() == 1 && found[0].contains("is not there"), "{found:?}");
        let used = Catalog::load(&archive).unwrap();
        assert_eq!(problems(&used).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_folder_is_known_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let [one, copy, other_name] = ["one", "copy", "link"].map(|name| folder.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&copy).unwrap();
        std::os::unix::fs::symlink(&one, &other_name).unwrap();
        assert!(is_one_folder(&one, &other_name) && !is_one_folder(&one, &copy));
        assert!(!is_one_folder(&one, &folder.path().join("none")));
    }
}
