//! The mark of a node, `node.json`: which index owns the folder.
//!
//! An index has a random id, and each node has a mark with that id. Marks are made only in folders
//! that the user named (`--nodes`) or that are within the archive's, so a writer that finds its mark
//! knows that the folder is its own, whatever a catalogue says.
//!
//! A copy of an archive has the same id and names the same nodes outside it. So the mark of such a
//! node names the owner: the archive's path, the folder at that path (inode and time of creation,
//! which no copy shares), and the catalogue of the last commit. A copy at the same path of another
//! machine is another folder; one that a snapshot made has an older catalogue as soon as the owner
//! commits.
//!
//! A node inside the archive's folder is copied with it. Its mark names the folders of the archive
//! and of the node, so that a copy is known from the original that is mounted or moved elsewhere.

use super::catalog::{Catalog, Node};
use super::disk::{self, IndexId};
use super::layout::{MARK, SCHEMA_NAME};
use super::{IndexError, path_text};
use flowsieve_engine::internal::Shown;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Version of the mark's format.
const VERSION: u32 = 2;

/// No mark is longer: it holds a path.
const MOST_BYTES: u64 = 1 << 16;

/// The index that owns a folder.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct NodeMark {
    schema: String,
    pub(super) index: IndexId,
    /// The node's number in the catalogue.
    pub(super) node: usize,
    /// Owner of a node outside the archive's folder; `None` for one inside.
    pub(super) owner: Option<Owner>,
    /// Where a node inside the archive's folder was marked; `None` for one outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<Home>,
}

/// The folders of an archive and of a node inside it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Home {
    #[serde(with = "path_text")]
    pub(super) archive: PathBuf,
    folder: FolderId,
    node: FolderId,
}

/// The archive that a node outside its folder belongs to.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Owner {
    #[serde(with = "path_text")]
    pub(super) archive: PathBuf,
    folder: FolderId,
    /// Checksum of the catalogue that is in force; two while a commit replaces it.
    catalogs: Vec<u64>,
}

/// Distinguishes a folder from others that have or had the same path.
#[derive(Debug, Deserialize, Serialize)]
struct FolderId {
    inode: u64,
    /// When it was made, in nanoseconds since the epoch, if the file system knows.
    created_ns: Option<u64>,
}

impl FolderId {
    fn new(folder: &Path) -> Result<Self, IndexError> {
        let data = fs::metadata(folder).map_err(IndexError::io(folder))?;
        let created = data.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let created_ns = created.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Ok(Self { inode: disk::id_of(&data).1, created_ns })
    }

    fn is_same(&self, other: &Self) -> bool {
        let times = self.created_ns.zip(other.created_ns);
        self.inode == other.inode && times.is_none_or(|(one, other)| one == other)
    }
}

impl NodeMark {
    /// Returns the mark of a node of this catalogue, of whose archive these catalogues may be in
    /// force.
    fn new(catalog: &Catalog, node: usize, catalogs: &[u64]) -> Result<Self, IndexError> {
        let (archive, folder) = (catalog.archive.clone(), FolderId::new(&catalog.archive)?);
        let (owner, home) = if catalog.nodes[node].is_inside() {
            let node = FolderId::new(&catalog.node_folder(node))?;
            (None, Some(Home { archive, folder, node }))
        } else {
            (Some(Owner { archive, folder, catalogs: catalogs.to_vec() }), None)
        };
        let schema = format!("{SCHEMA_NAME}{VERSION}");
        Ok(Self { schema, index: catalog.id, node, owner, home })
    }

    /// Returns the other archive that this folder was marked in, if it is not a copy of what was
    /// marked there.
    pub(super) fn other_home(
        &self,
        catalog: &Catalog,
        folder: &Path,
    ) -> Result<Option<&Home>, IndexError> {
        let Some(home) = &self.home else { return Ok(None) };
        let is_copy = !home.node.is_same(&FolderId::new(folder)?);
        let is_own = home.folder.is_same(&FolderId::new(&catalog.archive)?);
        Ok((!is_copy && !is_own).then_some(home))
    }

    /// Reads the mark of a folder; `None` if there is none. One that does not say whose the folder
    /// is may be that of another index.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, IndexError> {
        let text = match disk::read(&folder.join(MARK), MOST_BYTES) {
            Err(error) if error.is_missing_file() => return Ok(None),
            Err(error @ IndexError::Io { .. }) => return Err(error),
            text => text.unwrap_or_default(),
        };
        let mark: Option<Self> = serde_json::from_slice(&text).ok();
        let schema = format!("{SCHEMA_NAME}{VERSION}");
        let mark = mark.filter(|mark| mark.schema == schema);
        mark.map(Some).ok_or_else(|| IndexError::Node {
            folder: folder.to_owned(),
            reason: format!(
                "the mark of this folder, {MARK}, is damaged or of another version of flowsieve, so the folder is left alone; use the flowsieve that wrote it, or restore it; if no other index uses the folder, delete the mark and run `flowsieve index adopt`"
            ),
        })
    }
}

/// Marks a node.
pub(super) fn write(catalog: &Catalog, node: usize, catalogs: &[u64]) -> Result<(), IndexError> {
    let folder = catalog.node_folder(node);
    let text = serde_json::to_vec(&NodeMark::new(catalog, node, catalogs)?);
    let mut text = text.map_err(|error| IndexError::io(&folder.join(MARK))(error.into()))?;
    text.push(b'\n');
    disk::replace(&folder, MARK, catalog.id, &text)
}

/// Marks the nodes that were copied with the archive's folder as its own.
pub(super) fn mark_copies(catalog: &Catalog) -> Result<(), IndexError> {
    for node in (0..catalog.nodes.len()).filter(|&node| catalog.nodes[node].is_inside()) {
        let now = NodeMark::new(catalog, node, &[])?.home;
        let then = NodeMark::read(&catalog.node_folder(node))?.and_then(|mark| mark.home);
        let is_there = then.zip(now).is_some_and(|(then, now)| {
            then.node.is_same(&now.node) && then.folder.is_same(&now.folder)
        });
        if !is_there {
            write(catalog, node, &[])?;
        }
    }
    Ok(())
}

/// Writes into the marks outside the archive's folder which catalogues may be in force.
pub(super) fn announce(catalog: &Catalog, catalogs: &[u64]) -> Result<(), IndexError> {
    let outside = (0..catalog.nodes.len()).filter(|&node| !catalog.nodes[node].is_inside());
    outside.into_iter().try_for_each(|node| write(catalog, node, catalogs))
}

/// Who wants to use a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum User {
    Reader,
    Writer,
}

/// Returns the folder of a node, which is where its path says: no link leads elsewhere.
pub(super) fn resolve(catalog: &Catalog, node: usize) -> Result<PathBuf, IndexError> {
    let folder = catalog.node_folder(node);
    let refuse = |reason: String| IndexError::Node { folder: folder.clone(), reason };
    let command = adopt_command(catalog);
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

/// Checks that a node's folder is marked as this index's. Readers may be those of a copy in the same
/// place: they change nothing, and checksums tell what is not theirs.
pub(super) fn check(catalog: &Catalog, node: usize, user: User) -> Result<(), IndexError> {
    let folder = resolve(catalog, node)?;
    let is_inside = catalog.nodes[node].is_inside();
    let command = adopt_command(catalog);
    let this = catalog.archive.shown();
    let reason = match NodeMark::read(&folder)? {
        None => format!(
            "this folder has no mark of the index in {this}, so it is left alone; if it is a node of that index, run {command}"
        ),
        Some(mark) if mark.index != catalog.id => format!(
            "this folder belongs to another index than the one in {this}, so it is left alone; restore the node, or build the index again"
        ),
        Some(mark) if mark.node != node => format!(
            "this folder is node {} of the index in {this}, and the catalogue names it as node {node}, so it is left alone; run {command} in their order",
            mark.node
        ),
        Some(mark @ NodeMark { owner: None, .. }) if is_inside => {
            match mark.other_home(catalog, &folder)? {
                Some(home) if user == User::Writer => format!(
                    "this folder is the node of the index in {} and no copy of it, so it is left alone; if that index is gone, run {command}, and for a copy, copy the node too and name the copy",
                    home.archive.shown()
                ),
                _ => return Ok(()),
            }
        }
        Some(NodeMark { owner: Some(owner), .. }) if owner.archive != catalog.archive => format!(
            "this folder belongs to the index in {}, and the one in {this} was copied or moved from there, so it is left alone; after a move run {command}, and for a copy, copy the nodes too and name the copies",
            owner.archive.shown()
        ),
        Some(NodeMark { owner: Some(owner), .. }) if !is_inside => {
            let is_last = || owner.catalogs.contains(&catalog.checksum);
            let is_owner = FolderId::new(&catalog.archive)?.is_same(&owner.folder) && is_last();
            if is_owner || user == User::Reader {
                return Ok(());
            }
            format!(
                "this folder belongs to an index in another folder that was also called {this}, and this one is a copy of it or was restored, so it is left alone; if the other one is gone, run {command}, and for a copy, copy the nodes too and name the copies"
            )
        }
        Some(_) => format!(
            "this folder is a copy of a node, and {this} was not told of it, so it is left alone; run {command}"
        ),
    };
    Err(IndexError::Node { folder, reason })
}

/// Notes in the catalogue why readers must leave a node alone: its folder is elsewhere or, if it is
/// outside the archive's, not marked as this index's.
pub(super) fn confirm(catalog: &mut Catalog) -> Result<(), IndexError> {
    let archive = fs::canonicalize(&catalog.archive).map_err(IndexError::io(&catalog.archive))?;
    let named = mem::replace(&mut catalog.archive, archive);
    for node in 0..catalog.nodes.len() {
        let checked = if catalog.nodes[node].is_inside() {
            resolve(catalog, node).map(drop)
        } else {
            check(catalog, node, User::Reader)
        };
        catalog.nodes[node].problem = checked.err().map(|error| error.to_string());
    }
    catalog.archive = named;
    Ok(())
}

/// Returns the command with which a user says that the folders of the nodes are the index's.
fn adopt_command(catalog: &Catalog) -> String {
    let archive = catalog.archive.shown();
    if catalog.nodes.iter().all(Node::is_inside) {
        format!("`flowsieve index adopt {archive}`")
    } else {
        format!(
            "`flowsieve index adopt {archive} --nodes DIR,...` with the folders of all its nodes"
        )
    }
}
