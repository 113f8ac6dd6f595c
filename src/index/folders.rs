//! The folders of an index: which index owns them, who writes to them, and what may be deleted.
//!
//! An index has a random id. Each node has a mark, `node.json`, with that id; the mark of a node
//! outside the archive's folder names that folder as well. Marks are written only where the user
//! named the folder (`--nodes`) or where it is within the archive's, so a writer that finds its mark
//! knows that the folder is its own, whatever a catalogue says. Files are deleted by the numbers
//! that the catalogue or the journal has, never by what their names look like.

use super::catalog::{CATALOG, Catalog, NODE, Node, StoredFile, index_around};
use super::journal::JOURNAL;
use super::path_text::optional;
use super::{IndexError, disk};
use flowsieve_engine::internal::Shown;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Name of the file that the one who writes has locked.
pub(super) const LOCK: &str = "lock";

/// Name of a node's mark.
pub(super) const MARK: &str = "node.json";

/// Name and version of its format.
const MARK_SCHEMA: &str = "flowsieve.index-node/1";

/// A number that no other index has; a copy of the index has the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct IndexId(u128);

impl IndexId {
    pub(super) fn random() -> Result<Self, IndexError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            IndexError::Refused(format!("the system has no random numbers for an index: {error}"))
        })?;
        Ok(Self(u128::from_le_bytes(bytes)))
    }
}

impl Serialize for IndexId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&format!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for IndexId {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let number = u128::from_str_radix(&text, 16);
        let is_id = text.len() == 32 && text.bytes().all(is_digit);
        number.ok().filter(|_| is_id).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not the id of an index: it has 32 digits"))
        })
    }
}

/// The index that owns a folder.
#[derive(Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Mark {
    schema: String,
    index: IndexId,
    /// The node's number in the catalogue.
    node: usize,
    /// The archive's folder, if the node is not within it: a copy of the archive is not the owner.
    #[serde(with = "optional")]
    archive: Option<PathBuf>,
}

impl Mark {
    fn new(index: IndexId, node: usize, archive: Option<&Path>) -> Self {
        let archive = archive.map(Path::to_owned);
        Self { schema: MARK_SCHEMA.to_owned(), index, node, archive }
    }

    /// Reads the mark of a folder; `None` if there is none that can be read.
    fn read(folder: &Path) -> Result<Option<Self>, IndexError> {
        match disk::read(&folder.join(MARK)) {
            Ok(text) => {
                let mark: Option<Self> = serde_json::from_slice(&text).ok();
                Ok(mark.filter(|mark| mark.schema == MARK_SCHEMA))
            }
            Err(error) if error.is_missing_file() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, folder: &Path) -> Result<(), IndexError> {
        let path = folder.join(MARK);
        let text = serde_json::to_vec(self);
        let mut text = text.map_err(|error| IndexError::io(&path)(error.into()))?;
        text.push(b'\n');
        disk::replace(folder, MARK, &text)
    }
}

/// The command with which a user says that these folders are the index's.
fn adopt_command(archive: &Path, nodes: &[Node]) -> String {
    let archive = archive.shown();
    if nodes.iter().all(Node::is_inside) {
        format!("`flowsieve index adopt {archive}`")
    } else {
        format!(
            "`flowsieve index adopt {archive} --nodes DIR,...` with the folders of all its nodes"
        )
    }
}

/// The folder of a node, which is where its path says: no link leads elsewhere.
fn resolve(archive: &Path, catalog: &Catalog, node: usize) -> Result<PathBuf, IndexError> {
    let folder = catalog.node_folder(archive, node);
    let refuse = |reason: String| IndexError::Node { folder: folder.clone(), reason };
    let command = adopt_command(archive, &catalog.nodes);
    match fs::canonicalize(&folder) {
        Ok(real) if real == folder => Ok(folder),
        Ok(real) => Err(refuse(format!(
            "this node of the index is a link to {}, and links are not followed; if its files are there, run {command}",
            real.shown()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(refuse(format!(
            "this node of the index is not there; restore it, or, if it was moved, run {command}"
        ))),
        Err(error) => Err(IndexError::io(&folder)(error)),
    }
}

/// Checks that a node's folder is marked as this index's.
fn check_mark(archive: &Path, catalog: &Catalog, node: usize) -> Result<(), IndexError> {
    let folder = resolve(archive, catalog, node)?;
    let is_inside = catalog.nodes[node].is_inside();
    let right = Mark::new(catalog.id, node, (!is_inside).then_some(archive));
    let command = adopt_command(archive, &catalog.nodes);
    let this = archive.shown();
    let reason = match Mark::read(&folder)? {
        Some(mark) if mark == right => return Ok(()),
        None => format!(
            "this folder has no mark of the index in {this}, so it is left alone; if it is a node of that index, run {command}"
        ),
        Some(mark) if mark.index != right.index => format!(
            "this folder belongs to another index than the one in {this}, so it is left alone; restore the node, or build the index again"
        ),
        Some(mark) if mark.node != node => format!(
            "this folder is node {} of the index in {this}, and the catalogue names it as node {node}, so it is left alone; run {command} in their order",
            mark.node
        ),
        Some(Mark { archive: Some(owner), .. }) => format!(
            "this folder belongs to the index in {}, and the one in {this} was copied or moved from there, so it is left alone; after a move run {command}, and for a copy, copy the nodes too and name the copies",
            owner.shown()
        ),
        Some(_) => format!(
            "this folder is a copy of a node, and {this} was not told of it, so it is left alone; run {command}"
        ),
    };
    Err(IndexError::Node { folder, reason })
}

/// Notes in the catalogue why readers must leave a node alone: its folder is elsewhere or, if it is
/// outside the archive's, not marked as this index's.
pub(super) fn confirm(archive: &Path, catalog: &mut Catalog) -> Result<(), IndexError> {
    let archive = fs::canonicalize(archive).map_err(IndexError::io(archive))?;
    for node in 0..catalog.nodes.len() {
        let checked = if catalog.nodes[node].is_inside() {
            resolve(&archive, catalog, node).map(drop)
        } else {
            check_mark(&archive, catalog, node)
        };
        catalog.nodes[node].problem = checked.err().map(|error| error.to_string());
    }
    Ok(())
}

/// What is wrong with the nodes for one who writes, a sentence each.
pub(super) fn problems(archive: &Path, catalog: &Catalog) -> Vec<IndexError> {
    let Ok(archive) = fs::canonicalize(archive) else {
        return Vec::new();
    };
    let nodes = 0..catalog.nodes.len();
    nodes.filter_map(|node| check_mark(&archive, catalog, node).err()).collect()
}

/// Locks the nodes of an index for writing, if all of them are its own.
pub(super) fn claim(archive: &Path, catalog: &Catalog) -> Result<Vec<File>, IndexError> {
    let mut locks = Vec::new();
    for node in 0..catalog.nodes.len() {
        // Not even a lock file is made in a folder of others.
        check_mark(archive, catalog, node)?;
        locks.push(lock(&catalog.node_folder(archive, node))?);
        check_mark(archive, catalog, node)?;
    }
    Ok(locks)
}

/// Makes the folders of the nodes, which must be empty: those named, or one within the archive's.
/// How the catalogue names them, and their locks.
pub(super) fn make_nodes(
    archive: &Path,
    id: IndexId,
    nodes: &[PathBuf],
) -> Result<(Vec<PathBuf>, Vec<File>), IndexError> {
    let temporary = [CATALOG, MARK].map(|name| format!("{name}.new"));
    let ours = [LOCK, NODE, JOURNAL, &temporary[0]];
    check_empty(archive, &ours)?;
    let inside = [archive.join(NODE)];
    let nodes = if nodes.is_empty() { &inside[..] } else { nodes };
    let (mut folders, mut locks) = (Vec::new(), Vec::new());
    for (number, node) in nodes.iter().enumerate() {
        fs::create_dir_all(node).map_err(IndexError::io(node))?;
        let folder = fs::canonicalize(node).map_err(IndexError::io(node))?;
        let name = name_of(archive, &folder);
        if folders.contains(&name) {
            return Err(named_twice(node));
        }
        if folder == archive {
            return Err(IndexError::Plan(format!(
                "{}: this is the directory of the index; a node needs one of its own, below it or elsewhere",
                node.shown()
            )));
        }
        // A build that was killed left a mark that names this archive, or is within it.
        let owner = name.is_absolute().then_some(archive);
        let check = || {
            let is_ours = Mark::read(&folder)?.is_none_or(|mark| mark.archive.as_deref() == owner);
            let ours = [LOCK, MARK, &temporary[1]];
            check_empty(&folder, if is_ours { &ours } else { &[] })
        };
        check()?;
        locks.push(lock(&folder)?);
        // Another build may have taken it before it was locked.
        check()?;
        Mark::new(id, number, owner).write(&folder)?;
        folders.push(name);
    }
    Ok((folders, locks))
}

/// How the catalogue names a folder: those within the archive's are copied and moved with it.
fn name_of(archive: &Path, folder: &Path) -> PathBuf {
    folder.strip_prefix(archive).unwrap_or(folder).to_owned()
}

fn named_twice(node: &Path) -> IndexError {
    IndexError::Plan(format!(
        "{}: this folder is named twice; each node has a folder of its own",
        node.shown()
    ))
}

/// Makes folders that the user named the nodes of an index that was moved or copied, or whose marks
/// are gone. Without `nodes` they are those of the catalogue, which must be within the archive's
/// folder.
///
/// # Errors
///
/// A folder belongs to another index, or is not the node that it is named as.
#[doc(hidden)]
pub fn adopt(archive: &Path, nodes: &[PathBuf]) -> Result<usize, IndexError> {
    Catalog::load(archive)?;
    let archive = &fs::canonicalize(archive).map_err(IndexError::io(archive))?;
    let _lock = lock(archive)?;
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
    let own: Vec<PathBuf> = (0..count).map(|node| catalog.node_folder(archive, node)).collect();
    let (mut names, mut marks, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    for (node, named) in (if nodes.is_empty() { &own } else { nodes }).iter().enumerate() {
        let folder = fs::canonicalize(named).map_err(IndexError::io(named))?;
        if nodes.is_empty() {
            resolve(archive, &catalog, node)?;
        }
        let name = name_of(archive, &folder);
        if names.contains(&name) {
            return Err(named_twice(named));
        }
        check_adoptable(archive, &catalog, node, &folder)?;
        locks.push(lock(&folder)?);
        check_adoptable(archive, &catalog, node, &folder)?;
        let owner = name.is_absolute().then_some(archive.as_path());
        marks.push((folder, Mark::new(catalog.id, node, owner)));
        names.push(name);
    }
    for (folder, mark) in marks {
        mark.write(&folder)?;
    }
    catalog.nodes = names.into_iter().map(Node::new).collect();
    catalog.commit(archive)?;
    Ok(count)
}

/// Refuses a folder that another index owns, or that cannot be this node.
fn check_adoptable(
    archive: &Path,
    catalog: &Catalog,
    node: usize,
    folder: &Path,
) -> Result<(), IndexError> {
    let refuse = |reason: String| Err(IndexError::Node { folder: folder.to_owned(), reason });
    let this = archive.shown();
    if folder == archive {
        return refuse(
            "a node needs a folder of its own, below or outside that of the index".into(),
        );
    }
    let around = index_around(folder).and_then(|around| fs::canonicalize(around).ok());
    if let Some(other) = around.filter(|around| around != archive) {
        return refuse(format!(
            "this folder is part of the index in {}; copy the node, and name the copy",
            other.shown()
        ));
    }
    let Some(mark) = Mark::read(folder)? else {
        // Without a mark its files tell.
        let segments = catalog.segments.iter().flat_map(Catalog::files_of);
        let here = |stored: &StoredFile| matches!(stored, StoredFile::Filter { node: of, .. } | StoredFile::Filters { node: of, .. } if *of == node);
        for stored in segments.filter(here) {
            let (StoredFile::Filter { number, .. } | StoredFile::Filters { number, .. }) = stored
            else {
                continue;
            };
            let ending =
                if matches!(stored, StoredFile::Filter { .. }) { "filter" } else { "filters" };
            let name = format!("{number:06}.{ending}");
            if !folder.join(&name).is_file() {
                return refuse(format!(
                    "this folder has neither a mark nor the file {name} of node {node} of the index in {this}; name the folder that has it"
                ));
            }
        }
        return Ok(());
    };
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
    let Some(owner) = mark.archive.filter(|owner| owner != archive) else {
        return Ok(());
    };
    // The archive was moved, and its old name leads to it.
    if fs::canonicalize(&owner).is_ok_and(|owner| owner == archive) {
        return Ok(());
    }
    let other = match Catalog::load(&owner) {
        Ok(other) => other,
        Err(IndexError::Missing(_)) => return Ok(()),
        Err(error) => {
            return refuse(format!(
                "this folder may be in use by the index in {}, which cannot be read: {error}",
                owner.shown()
            ));
        }
    };
    if other.id == mark.index && other.nodes.iter().any(|node| owner.join(&node.folder) == folder) {
        return refuse(format!(
            "this folder is in use by the index in {}; copy it, and name the copy",
            owner.shown()
        ));
    }
    Ok(())
}

/// Deletes a file that the catalogue or the journal named; nothing happens if it is gone.
pub(super) fn delete(
    archive: &Path,
    catalog: &Catalog,
    stored: StoredFile,
) -> Result<(), IndexError> {
    let paths = catalog.paths_of(archive, stored);
    let is_missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    let folder = match stored {
        StoredFile::Region { .. } => paths.first().and_then(|path| path.parent()),
        _ => None,
    };
    if let Some(folder) = folder {
        match fs::symlink_metadata(folder) {
            Ok(data) if data.is_dir() => {}
            // A link to a folder of others, or a file of others.
            Ok(_) => return Ok(()),
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(IndexError::io(folder)(error)),
        }
    }
    for path in &paths {
        match fs::remove_file(path) {
            Err(error) if !is_missing(&error) => return Err(IndexError::io(path)(error)),
            _ => {}
        }
    }
    // With the last region; files of others keep the folder.
    let _ = folder.map(fs::remove_dir);
    Ok(())
}

/// The number behind the last one that a name in the archive's folder or in a node has: a new file
/// never meets one that is there, whoever made it.
pub(super) fn next_free(archive: &Path, catalog: &Catalog) -> Result<u64, IndexError> {
    let mut next = catalog.next;
    let nodes = (0..catalog.nodes.len()).map(|node| catalog.node_folder(archive, node));
    for folder in nodes.chain([archive.to_owned()]) {
        for entry in fs::read_dir(&folder).map_err(IndexError::io(&folder))? {
            let name = entry.map_err(IndexError::io(&folder))?.file_name();
            let name = name.to_string_lossy();
            let number = name.split('.').next().and_then(|digits| digits.parse::<u64>().ok());
            if let Some(number) = number.filter(|&number| number < Catalog::MOST_FOUND) {
                next = next.max(number + 1);
            }
        }
    }
    Ok(next)
}

/// Locks a folder for writing, as long as the file is open.
pub(super) fn lock(folder: &Path) -> Result<File, IndexError> {
    let path = folder.join(LOCK);
    disk::check_file(&path)?;
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(IndexError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IndexError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(IndexError::io(&path)(error)),
    }
}

fn check_empty(folder: &Path, but: &[&str]) -> Result<(), IndexError> {
    for entry in fs::read_dir(folder).map_err(IndexError::io(folder))? {
        let name = entry.map_err(IndexError::io(folder))?.file_name();
        if !but.iter().any(|known| name == *known) {
            return Err(IndexError::Plan(format!(
                "{}: this folder has other files in it ({}); an index needs a folder of its own",
                folder.shown(),
                name.shown()
            )));
        }
    }
    Ok(())
}
