//! An index writes to and deletes from its own folders only, whatever its files say.

use super::{Kept, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::hashing::Checksum;
use flowsieve::index::{Added, IndexError, IndexQuery, IndexWriter, search, stats, verify};
use flowsieve::trace::StopFlag;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with captures, an index `A` and perhaps nodes.
struct Place {
    _folder: TempDir,
    root: PathBuf,
    captures: Vec<PathBuf>,
}

impl Place {
    /// An index of two captures with nodes of these names beside it, or one within it.
    fn with_nodes(names: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let captures = pieces(&root, 300, 4);
        let place = Self { _folder: folder, root, captures };
        let nodes: Vec<PathBuf> = names.iter().map(|name| place.at(name)).collect();
        // Short regions, so that all nodes have some.
        build(&place.at("A"), settings(FilterKind::Subset, 1), &nodes, &place.captures[..2]);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn copy(&self, from: &str, to: &str) {
        let run = Command::new("cp").arg("-r").args([self.at(from), self.at(to)]).status();
        assert!(run.unwrap().success());
    }

    fn holds(&self, name: &str) -> u64 {
        let verified = verify(&self.at(name)).unwrap();
        assert_eq!(verified.problems, Vec::<String>::new());
        verified.captures
    }

    fn refused(&self, name: &str) -> String {
        refused(&self.at(name))
    }
}

/// Why this index is not opened for writing.
fn refused(archive: &Path) -> String {
    free(|| IndexWriter::open(archive)).unwrap_err().to_string()
}

/// Adopts nodes; like `writer`.
fn adopt(archive: &Path, nodes: &[PathBuf]) -> Result<usize, IndexError> {
    free(|| flowsieve::index::adopt(archive, nodes))
}

/// Waits for a lock that was given back.
fn free<T>(open: impl Fn() -> Result<T, IndexError>) -> Result<T, IndexError> {
    let started = Instant::now();
    loop {
        match open() {
            Err(IndexError::Busy(_)) if started.elapsed() < Duration::from_secs(2) => {
                sleep(Duration::from_millis(2));
            }
            opened => return opened,
        }
    }
}

/// All files below a folder with their content; links as where they lead.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        if data.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(content(&path));
        } else if data.is_file() {
            found.insert(path.clone(), fs::read(&path).unwrap());
        } else {
            found.insert(path, b"other".into());
        }
    }
    found
}

/// Puts another text into the catalogue, with the right checksum.
fn lie(archive: &Path, change: impl Fn(String) -> String) {
    let path = archive.join("catalog.json");
    let text = fs::read_to_string(&path).unwrap();
    let (_, inner) = text.split_once("\"catalog\":").unwrap();
    let inner = change(inner.trim_end().strip_suffix('}').unwrap().to_owned());
    let mut sum = Checksum::new();
    sum.update(inner.as_bytes());
    let sum = sum.value();
    let text =
        format!("{{\"schema\":\"flowsieve.index/6\",\"checksum\":{sum},\"catalog\":{inner}}}\n");
    fs::write(path, text).unwrap();
}

/// Files of somebody whose names are like those of an index.
fn photos(folder: &Path) {
    fs::create_dir_all(folder.join("000042")).unwrap();
    fs::create_dir_all(folder.join("000000")).unwrap();
    fs::create_dir_all(folder.join("20240131")).unwrap();
    for name in [
        "000042/holiday.jpg",
        "000000/0.records.parquet",
        "20240131/a.jpg",
        "000007.filter",
        "000001.filters",
        "000009.segment",
        "123456",
    ] {
        fs::write(folder.join(name), name).unwrap();
    }
}

#[test]
fn a_copy_without_its_nodes_leaves_them_alone() {
    let place = Place::with_nodes(&["n1", "n2"]);
    place.copy("A", "B");
    let before = content(&place.root);
    let told = place.refused("B");
    assert!(told.contains("index adopt") && told.contains("copy the nodes too"), "{told}");
    assert!(adopt(&place.at("B"), &[]).is_err());
    let nodes = ["n1", "n2"].map(|name| place.at(name));
    let error = adopt(&place.at("B"), &nodes).unwrap_err().to_string();
    assert!(error.contains("in use by the index in"), "{error}");
    // Its problems are named, and it is not called whole.
    let problems = verify(&place.at("B")).unwrap().problems;
    assert_eq!(problems.len(), 2, "{problems:?}");
    // A lock file is all that a refused writer leaves.
    let mut after = content(&place.root);
    after.remove(&place.at("B/lock"));
    let mut before = before;
    before.remove(&place.at("B/lock"));
    assert_eq!(after, before);
    assert_eq!(place.holds("A"), 2);
}

/// Drops, adds and puts segments together in a copy; the original stays as it is.
fn change_copy(place: &Place) {
    let before = content(&place.at("A"));
    let mut changing = writer(&place.at("B"));
    assert_eq!(changing.drop_captures(&place.captures[0]).unwrap(), 1);
    changing.commit().unwrap();
    for path in &place.captures[2..] {
        assert!(matches!(changing.add(path, &()).unwrap(), Added::Indexed { .. }));
        changing.commit().unwrap();
    }
    drop(changing);
    assert_eq!((place.holds("A"), place.holds("B")), (2, 3));
    assert_eq!(content(&place.at("A")), before);
}

#[test]
fn a_copy_with_its_node_inside_is_an_index() {
    let place = Place::with_nodes(&[]);
    place.copy("A", "B");
    change_copy(&place);
}

#[test]
fn a_copy_with_copies_of_its_nodes_is_an_index_once_they_are_named() {
    let place = Place::with_nodes(&["n1", "n2"]);
    for (from, to) in [("A", "B"), ("n1", "m1"), ("n2", "m2")] {
        place.copy(from, to);
    }
    let nodes = ["m1", "m2"].map(|name| place.at(name));
    let [first, second] = nodes.clone();
    let wrong = adopt(&place.at("B"), &[second, first.clone()]).unwrap_err().to_string();
    assert!(wrong.contains("in their order"), "{wrong}");
    let wrong = adopt(&place.at("B"), &[first]).unwrap_err().to_string();
    assert!(wrong.contains("2 nodes"), "{wrong}");
    let originals = [content(&place.at("n1")), content(&place.at("n2"))];
    assert_eq!(adopt(&place.at("B"), &nodes).unwrap(), 2);
    change_copy(&place);
    assert_eq!([content(&place.at("n1")), content(&place.at("n2"))], originals);
    // A move.
    fs::rename(place.at("B"), place.at("C")).unwrap();
    assert!(place.refused("C").contains("index adopt"));
    adopt(&place.at("C"), &nodes).unwrap();
    assert_eq!(place.holds("C"), 3);
    drop(writer(&place.at("C")));
    // Adopting was interrupted between two marks: the same command goes on.
    place.copy("C", "D");
    place.copy("m1", "k1");
    place.copy("m2", "k2");
    let mark = fs::read_to_string(place.at("k1/node.json")).unwrap();
    let [old, new] = ["C", "D"].map(|name| place.at(name).display().to_string());
    fs::write(place.at("k1/node.json"), mark.replace(&old, &new)).unwrap();
    assert!(place.refused("D").contains("index adopt"));
    adopt(&place.at("D"), &["k1", "k2"].map(|name| place.at(name))).unwrap();
    assert_eq!((place.holds("C"), place.holds("D")), (3, 3));
}

#[test]
fn a_moved_index_with_its_node_inside_goes_on() {
    let place = Place::with_nodes(&[]);
    fs::rename(place.at("A"), place.at("elsewhere")).unwrap();
    let mut adding = writer(&place.at("elsewhere"));
    adding.add(&place.captures[2], &()).unwrap();
    adding.commit().unwrap();
    drop(adding);
    assert_eq!(place.holds("elsewhere"), 3);
}

#[test]
fn a_folder_that_only_the_catalogue_names_is_left_alone() {
    let names = ["photos", "index/photos", "A/photos"];
    for name in names {
        let place = Place::with_nodes(&["n1"]);
        let folder = place.at(name);
        photos(&folder);
        let before = content(&folder);
        let named = folder.strip_prefix(place.at("A")).unwrap_or(&folder).display().to_string();
        let node = format!("\"{}\"", place.at("n1").display());
        lie(&place.at("A"), |text| text.replace(&node, &format!("\"{named}\"")));
        let told = place.refused("A");
        assert!(told.contains("no mark") && told.contains("index adopt"), "{told}");
        let problems = verify(&place.at("A")).unwrap().problems;
        assert!(problems.iter().any(|problem| problem.contains("no mark")), "{problems:?}");
        // A slip of the user's is noticed, too.
        let error = adopt(&place.at("A"), std::slice::from_ref(&folder)).unwrap_err().to_string();
        assert!(error.contains("neither a mark nor the file"), "{error}");
        assert_eq!(content(&folder), before, "{name}");
    }
}

#[test]
fn files_of_others_in_a_node_stay() {
    let place = Place::with_nodes(&["n1"]);
    photos(&place.at("n1/000042").join("deeper"));
    for folder in [place.at("n1"), place.at("A")] {
        for name in ["20240131", "900000.filter", "900001.segment", "900002.filters"] {
            fs::write(folder.join(name), name).unwrap();
        }
    }
    let capture = fs::read_dir(place.at("n1")).unwrap().map(|entry| entry.unwrap().path());
    let capture = capture.filter(|path| path.join("0.records.parquet").exists()).min().unwrap();
    fs::write(capture.join("notes.txt"), "mine").unwrap();
    let others = |text: &BTreeMap<PathBuf, Vec<u8>>| {
        let is_other = |path: &&PathBuf| {
            let name = path.display().to_string();
            ["deeper", "20240131", "90000", "notes"].iter().any(|part| name.contains(part))
        };
        text.keys().filter(is_other).cloned().collect::<Vec<_>>()
    };
    let before = others(&content(&place.root));
    assert!(before.len() > 15);
    let mut changing = writer(&place.at("A"));
    assert_eq!(changing.drop_captures(&place.root).unwrap(), 2);
    changing.commit().unwrap();
    for path in &place.captures {
        changing.add(path, &()).unwrap();
        changing.commit().unwrap();
    }
    drop(changing);
    drop(writer(&place.at("A")));
    assert_eq!(others(&content(&place.root)), before);
    assert_eq!(place.holds("A"), 4);
    assert_eq!(fs::read_to_string(capture.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn a_mark_that_is_gone_damaged_or_of_another_index_is_refused() {
    let place = Place::with_nodes(&["n1", "n2"]);
    let path = place.at("n1/node.json");
    let mark = fs::read_to_string(&path).unwrap();
    let nodes = ["n1", "n2"].map(|name| place.at(name));
    place.copy("A", "copy");
    let newer = mark.replace("index-node/2", "index-node/9");
    for text in ["", "{", "[]", &mark[..mark.len() / 2], &newer] {
        fs::write(&path, text).unwrap();
        assert!(place.refused("A").contains("index adopt"), "{text}");
        // A copy could take the node of the original.
        for archive in ["A", "copy"] {
            let error = adopt(&place.at(archive), &nodes).unwrap_err().to_string();
            assert!(error.contains("damaged or of another version"), "{text}: {error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // Readers do not read there, and say so.
        let mut kept = Kept::default();
        let query = IndexQuery { port: Some(53), ..IndexQuery::default() };
        let explained = search(&place.at("A"), &query, &StopFlag::default(), &mut kept).unwrap();
        assert_eq!(explained.problems.len(), 1, "{:?}", explained.problems);
    }
    fs::remove_file(&path).unwrap();
    assert!(place.refused("A").contains("no mark"));
    adopt(&place.at("A"), &nodes).unwrap();
    // The mark is that of before, but for the catalogue of the last commit.
    let adopted = fs::read_to_string(&path).unwrap();
    let owner = |mark: &str| mark.split("\"catalogs\"").next().unwrap().to_owned();
    assert_eq!(owner(&adopted), owner(&mark));
    let mark = adopted;
    assert_eq!(place.holds("A"), 2);
    // That of another index.
    build(&place.at("B"), settings(FilterKind::Subset, 1), &[place.at("m1")], &place.captures[..1]);
    let other = fs::read_to_string(place.at("m1/node.json")).unwrap();
    fs::write(&path, &other).unwrap();
    let told = place.refused("A");
    assert!(told.contains("belongs to another index"), "{told}");
    assert!(adopt(&place.at("A"), &nodes).is_err());
    fs::write(&path, &mark).unwrap();
    // A node of another index is not adopted, nor built on.
    let error = adopt(&place.at("A"), &[place.at("m1"), place.at("n2")]).unwrap_err();
    assert!(error.to_string().contains("another index"), "{error}");
    for node in [place.at("m1"), place.at("B"), place.at("B/..")] {
        let error = IndexWriter::create(
            &place.at("C"),
            settings(FilterKind::Subset, 1),
            std::slice::from_ref(&node),
        );
        assert!(matches!(error, Err(IndexError::Plan(_))), "{}", node.display());
    }
    assert_eq!((place.holds("A"), place.holds("B")), (2, 1));
}

/// On another machine a copy of the archive is at the same path, and the nodes are shared.
#[test]
fn a_copy_in_the_same_place_does_not_write_to_the_nodes_of_the_original() {
    let place = Place::with_nodes(&["n1", "n2"]);
    place.copy("A", "copy");
    let rename = |from: &str, to: &str| fs::rename(place.at(from), place.at(to)).unwrap();
    rename("A", "original");
    rename("copy", "A");
    let before = content(&place.root);
    let told = place.refused("A");
    assert!(told.contains("is a copy of it or was restored"), "{told}");
    assert!(told.contains("index adopt") && told.contains("copy the nodes too"), "{told}");
    assert_eq!(content(&place.root), before);
    // It can be searched.
    let query = IndexQuery { host: "0.0.0.0/0".parse().ok(), ..IndexQuery::default() };
    let mut kept = Kept::default();
    let explained = search(&place.at("A"), &query, &StopFlag::default(), &mut kept).unwrap();
    assert_eq!((explained.problems.len(), kept.0.len()), (0, 2));
    rename("A", "copy");
    rename("original", "A");
    drop(writer(&place.at("A")));
    assert_eq!(place.holds("A"), 2);
    // Once its nodes are copied and named, each of the two has its own.
    rename("A", "original");
    rename("copy", "A");
    place.copy("n1", "m1");
    place.copy("n2", "m2");
    adopt(&place.at("A"), &["m1", "m2"].map(|name| place.at(name))).unwrap();
    let mut changing = writer(&place.at("A"));
    changing.drop_captures(&place.captures[0]).unwrap();
    changing.commit().unwrap();
    drop(changing);
    assert_eq!(place.holds("A"), 1);
    rename("A", "copy");
    rename("original", "A");
    assert_eq!(place.holds("A"), 2);
}

/// A snapshot of the file system has the same folders, and the catalogue of an earlier commit.
#[test]
fn an_older_state_of_an_archive_does_not_write_to_its_nodes() {
    let place = Place::with_nodes(&["n1"]);
    let path = place.at("A/catalog.json");
    let older = fs::read(&path).unwrap();
    let mut changing = writer(&place.at("A"));
    changing.add(&place.captures[2], &()).unwrap();
    changing.commit().unwrap();
    drop(changing);
    let newer = fs::read(&path).unwrap();
    fs::write(&path, &older).unwrap();
    let before = content(&place.root);
    assert!(place.refused("A").contains("was restored"), "{}", place.refused("A"));
    assert_eq!(content(&place.root), before);
    fs::write(&path, &newer).unwrap();
    assert_eq!(place.holds("A"), 3);
    // A writer that was killed within a commit left the marks of both.
    let mark_path = place.at("n1/node.json");
    let mark = fs::read_to_string(&mark_path).unwrap();
    fs::write(&mark_path, mark.replace("\"catalogs\":[", "\"catalogs\":[17,")).unwrap();
    drop(writer(&place.at("A")));
    assert_eq!(place.holds("A"), 3);
}

#[test]
fn nothing_is_made_where_a_folder_has_files_of_others() {
    let place = Place::with_nodes(&[]);
    photos(&place.at("photos"));
    fs::create_dir(place.at("empty")).unwrap();
    let before = content(&place.root);
    let cases: [(&str, &[&str]); 5] = [
        ("photos", &[]),
        ("new", &["photos"]),
        ("new/deeper", &["fresh", "photos"]),
        ("empty", &["photos"]),
        ("A", &["fresh"]),
    ];
    for (archive, nodes) in cases {
        let nodes: Vec<PathBuf> = nodes.iter().map(|name| place.at(name)).collect();
        let made = IndexWriter::create(&place.at(archive), settings(FilterKind::Subset, 1), &nodes);
        assert!(matches!(made, Err(IndexError::Plan(_))), "{archive}");
        assert_eq!(content(&place.root), before, "{archive}");
    }
}

/// Files of others may be called as those are that a killed build leaves.
#[test]
fn a_build_replaces_no_file_that_is_only_called_like_its_own() {
    let place = Place::with_nodes(&[]);
    let create = |archive: &str, nodes: &[PathBuf]| {
        IndexWriter::create(&place.at(archive), settings(FilterKind::Subset, 1), nodes)
    };
    let folder = place.at("folder");
    fs::create_dir_all(folder.join("node")).unwrap();
    for name in ["journal", "catalog.json.new", "node/node.json", "node/node.json.new"] {
        for text in ["mine", "{\"schema\":\"mine/1\"}"] {
            fs::write(folder.join(name), text).unwrap();
            let before = content(&place.root);
            assert!(matches!(create("folder", &[]), Err(IndexError::Plan(_))), "{name}");
            let node = [folder.join("node")];
            if name.starts_with("node/") {
                assert!(matches!(create("new", &node), Err(IndexError::Plan(_))), "{name}");
            }
            assert_eq!(content(&place.root), before, "{name}");
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
    for name in ["catalog.json.new", "node/node.json.new"] {
        // A copy of a catalogue or a mark is somebody's.
        fs::write(folder.join(name), fs::read(place.at("A/catalog.json")).unwrap()).unwrap();
        assert!(matches!(create("folder", &[]), Err(IndexError::Plan(_))), "{name}");
        fs::remove_file(folder.join(name)).unwrap();
    }
    // Files that a killed build left are in nobody's way, and stay.
    for name in ["catalog.json", "node/node.json"] {
        let name = &format!("{name}.{:032x}.new", 0xa1b2_u32);
        fs::write(folder.join(name), "{\"sch").unwrap();
        drop(create("folder", &[]).unwrap());
        assert!(folder.join(name).exists());
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(folder.join("node")).unwrap();
    }
}

#[test]
fn a_build_that_cannot_have_all_nodes_marks_none() {
    let place = Place::with_nodes(&[]);
    fs::write(place.at("file"), "mine").unwrap();
    for nodes in [["x", "x"], ["x", "file/x"]] {
        let nodes = nodes.map(|node| place.at(node));
        IndexWriter::create(&place.at("new"), settings(FilterKind::Subset, 1), &nodes).unwrap_err();
        assert!(!place.at("x/node.json").exists());
    }
}

/// Nothing tells whether a folder is a node of which the catalogue names no file.
#[test]
fn a_folder_without_evidence_is_adopted_only_if_it_is_empty() {
    let place = Place::with_nodes(&[]);
    build(&place.at("E"), settings(FilterKind::Subset, 1), &[place.at("e1")], &[]);
    fs::remove_file(place.at("e1/node.json")).unwrap();
    photos(&place.at("photos"));
    fs::create_dir(place.at("package")).unwrap();
    fs::write(place.at("package/node.json"), "{}").unwrap();
    for (name, told) in
        [("photos", "has other files in it"), ("package", "damaged or of another version")]
    {
        let before = content(&place.at(name));
        let error = adopt(&place.at("E"), &[place.at(name)]).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(content(&place.at(name)), before);
    }
    adopt(&place.at("E"), &[place.at("e1")]).unwrap();
    assert_eq!(place.holds("E"), 0);
}

#[test]
fn nodes_of_an_index_that_cannot_be_read_are_not_adopted() {
    let place = Place::with_nodes(&["n1"]);
    place.copy("A", "B");
    let path = place.at("A/catalog.json");
    let catalog = fs::read(&path).unwrap();
    fs::write(&path, &catalog[..catalog.len() / 2]).unwrap();
    let error = adopt(&place.at("B"), &[place.at("n1")]).unwrap_err().to_string();
    assert!(error.contains("may be in use by the index in"), "{error}");
    fs::write(&path, &catalog).unwrap();
    assert_eq!(place.holds("A"), 2);
}

#[test]
fn nodes_are_locked_as_the_archive_is() {
    let place = Place::with_nodes(&["n1"]);
    let lock = fs::File::options().write(true).open(place.at("n1/lock")).unwrap();
    lock.lock().unwrap();
    let error = IndexWriter::open(&place.at("A")).unwrap_err();
    assert!(matches!(error, IndexError::Busy(_)), "{error}");
    assert!(matches!(adopt(&place.at("A"), &[place.at("n1")]), Err(IndexError::Busy(_))));
    drop(lock);
    drop(writer(&place.at("A")));
}

#[test]
fn a_writer_whose_lock_was_deleted_takes_back_no_commit_of_another() {
    let place = Place::with_nodes(&["n1"]);
    for left in [1, 0] {
        let mut first = writer(&place.at("A"));
        for lock in ["A/lock", "n1/lock"] {
            fs::remove_file(place.at(lock)).unwrap();
        }
        let mut second = writer(&place.at("A"));
        second.drop_captures(&place.captures[left]).unwrap();
        second.commit().unwrap();
        drop(second);
        let added = first.add(&place.captures[2], &()).map(drop);
        let error = added.and_then(|()| first.commit()).unwrap_err().to_string();
        assert!(error.contains("run the command again"), "{error}");
        drop(first);
        assert_eq!(place.holds("A"), left as u64);
    }
}

/// An inner node's folder has the name of a folder of the outer one's captures.
#[test]
fn a_node_in_another_node_is_refused() {
    let place = Place::with_nodes(&["n1", "n2"]);
    for nodes in [["k", "k/000002"], ["j/000002", "j"]] {
        let nodes = nodes.map(|node| place.at(node));
        let error = IndexWriter::create(&place.at("new"), settings(FilterKind::Subset, 1), &nodes);
        let told = error.unwrap_err().to_string();
        assert!(told.contains("one of these folders is inside the other"), "{told}");
        assert!(nodes.iter().all(|node| !node.join("node.json").exists()));
    }
    fs::rename(place.at("n2"), place.at("n1/n2")).unwrap();
    let told = adopt(&place.at("A"), &[place.at("n1"), place.at("n1/n2")]).unwrap_err();
    assert!(told.to_string().contains("one of these folders is inside the other"), "{told}");
}

/// It deleted by their names what another one had committed, or another index in its place.
#[test]
fn a_writer_whose_lock_is_gone_deletes_nothing_of_another() {
    let place = Place::with_nodes(&[]);
    let mut first = writer(&place.at("A"));
    first.add(&place.captures[2], &()).unwrap();
    for lock in ["A/lock", "A/node/lock"] {
        fs::remove_file(place.at(lock)).unwrap();
    }
    let mut second = writer(&place.at("A"));
    second.add(&place.captures[3], &()).unwrap();
    second.commit().unwrap();
    // In the midst of the next one.
    second.add(&place.captures[2], &()).unwrap();
    let before = content(&place.at("A"));
    let error = first.add(&place.captures[3], &()).unwrap_err().to_string();
    assert!(error.contains("run the command again"), "{error}");
    drop(first);
    assert!(content(&place.at("A")) == before);
    second.commit().unwrap();
    drop(second);
    assert_eq!(place.holds("A"), 4);

    let place = Place::with_nodes(&[]);
    build(&place.at("B"), settings(FilterKind::Subset, 1), &[], &place.captures[..3]);
    let mut first = writer(&place.at("A"));
    first.add(&place.captures[2], &()).unwrap();
    fs::rename(place.at("A"), place.at("away")).unwrap();
    fs::rename(place.at("B"), place.at("A")).unwrap();
    let before = content(&place.at("A"));
    assert!(first.add(&place.captures[3], &()).is_err());
    drop(first);
    assert!(content(&place.at("A")) == before);
    // The next writer deletes what is left of it.
    drop(writer(&place.at("away")));
    assert!(!place.at("away/journal").exists());
    place.holds("away");
}

#[test]
fn links_are_not_followed() {
    // A node.
    let place = Place::with_nodes(&[]);
    photos(&place.at("photos"));
    let before = content(&place.at("photos"));
    fs::rename(place.at("A/node"), place.at("moved")).unwrap();
    symlink(place.at("photos"), place.at("A/node")).unwrap();
    assert!(place.refused("A").contains("a link to"), "{}", place.refused("A"));
    assert!(adopt(&place.at("A"), &[]).is_err());
    fs::remove_file(place.at("A/node")).unwrap();
    symlink(place.at("moved"), place.at("A/node")).unwrap();
    assert!(place.refused("A").contains("a link to"));
    let told = verify(&place.at("A")).unwrap().problems;
    assert!(told.iter().all(|problem| problem.contains("a link to")), "{told:?}");
    // It is one once the user says so.
    adopt(&place.at("A"), &[place.at("moved")]).unwrap();
    assert_eq!(place.holds("A"), 2);
    // The folder of a capture, and files that a writer makes, takes or replaces.
    let place = Place { captures: place.captures.clone(), ..Place::with_nodes(&[]) };
    photos(&place.at("photos"));
    let target = place.at("photos/000000");
    let capture = place.at("A/node/000000");
    fs::rename(&capture, place.at("regions")).unwrap();
    symlink(&target, &capture).unwrap();
    let text = fs::read_to_string(place.at("A/catalog.json")).unwrap();
    let (_, next) = text.split_once("\"next\":").unwrap();
    let next: u64 = next.split(',').next().unwrap().parse().unwrap();
    symlink(place.at("photos/123456"), place.at("A/journal.new")).unwrap();
    for number in next..next + 6 {
        for ending in ["filter", "filters"] {
            let name = format!("node/{number:06}.{ending}");
            symlink(place.at("photos/123456"), place.at("A").join(name)).unwrap();
        }
        let name = format!("{number:06}.segment");
        symlink(place.at("photos/123456"), place.at("A").join(name)).unwrap();
    }
    let dropped = stats(&place.at("A")).unwrap().captures[0].path.clone();
    let mut changing = writer(&place.at("A"));
    assert_eq!(changing.drop_captures(&dropped).unwrap(), 1);
    changing.commit().unwrap();
    changing.add(&place.captures[3], &()).unwrap();
    changing.commit().unwrap();
    drop(changing);
    assert_eq!(content(&place.at("photos")), before_of(&before, &place));
    for name in ["lock", "journal", "node/lock", "node/node.json", "catalog.json"] {
        let path = place.at("A").join(name);
        let _ = fs::remove_file(&path);
        symlink(place.at("photos/made-through-a-link"), &path).unwrap();
        assert!(IndexWriter::open(&place.at("A")).is_err(), "{name}");
        fs::remove_file(&path).unwrap();
        if name.ends_with("node.json") {
            adopt(&place.at("A"), &[]).unwrap();
        }
    }
    assert_eq!(content(&place.at("photos")), before_of(&before, &place));
}

#[test]
fn links_and_folders_called_like_a_file_of_the_index_stay_and_stop_no_writer() {
    for is_link in [true, false] {
        let place = Place::with_nodes(&[]);
        let files = fs::read_dir(place.at("A/node")).unwrap().map(|entry| entry.unwrap().path());
        let filters = files.filter(|path| path.extension().is_some_and(|it| it == "filters"));
        let filters: Vec<PathBuf> = filters.collect();
        for path in &filters {
            fs::rename(path, path.with_extension("kept")).unwrap();
            if is_link {
                symlink(path.with_extension("kept"), path).unwrap();
            } else {
                fs::create_dir(path).unwrap();
            }
        }
        let captures = stats(&place.at("A")).unwrap().captures;
        let mut changing = writer(&place.at("A"));
        for capture in &captures {
            assert_eq!(changing.drop_captures(&capture.path).unwrap(), 1);
        }
        changing.commit().unwrap();
        drop(changing);
        let mut changing = writer(&place.at("A"));
        changing.add(&place.captures[3], &()).unwrap();
        changing.commit().unwrap();
        assert!(!filters.is_empty());
        assert!(filters.iter().all(|path| fs::symlink_metadata(path).is_ok()));
    }
}

/// The content of `photos` as it is in another place.
fn before_of(before: &BTreeMap<PathBuf, Vec<u8>>, place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let below = |path: &PathBuf| {
        let parts = path.components().skip_while(|part| part.as_os_str() != "photos");
        place.root.join(parts.collect::<PathBuf>())
    };
    before.iter().map(|(path, bytes)| (below(path), bytes.clone())).collect()
}

#[test]
fn pipes_in_an_index_are_not_waited_for() {
    let place = Place::with_nodes(&["n1"]);
    let archive = place.at("A");
    let files = content(&place.root).into_iter();
    let is_of_index = |path: &PathBuf| {
        path.is_file() && (path.starts_with(&archive) || path.starts_with(place.at("n1")))
    };
    let files: Vec<PathBuf> = files.map(|(path, _)| path).filter(is_of_index).collect();
    assert!(files.len() > 8, "{files:?}");
    for path in files.into_iter().chain([archive.join("journal")]) {
        let bytes = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let query = IndexQuery { host: "0.0.0.0/0".parse().ok(), ..IndexQuery::default() };
        let _ = search(&archive, &query, &StopFlag::default(), &mut Kept::default());
        let _ = (verify(&archive), stats(&archive));
        if let Ok(mut changing) = IndexWriter::open(&archive) {
            // Its content is read, too.
            let damage = verify(&archive).unwrap().damage;
            let _ = changing.repair(&damage, &());
            drop(changing);
        }
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
    }
    assert_eq!(place.holds("A"), 2);
}

/// A catalogue names captures, and a capture may be a pipe meanwhile.
#[test]
fn captures_that_became_pipes_are_not_waited_for() {
    let place = Place::with_nodes(&["n1"]);
    let archive = place.at("A");
    let capture = &place.captures[0];
    fs::rename(capture, place.at("moved.pcap")).unwrap();
    assert!(Command::new("mkfifo").arg(capture).status().unwrap().success());
    // The copy has the content of the one that the catalogue names.
    let mut changing = writer(&archive);
    assert_eq!(changing.add(&place.at("moved.pcap"), &()).unwrap(), Added::Known);
    assert!(matches!(changing.add(capture, &()).unwrap(), Added::Unreadable(_)));
    drop(changing);
    for (path, _) in content(&place.at("n1")) {
        if path.to_str().is_some_and(|path| path.ends_with(".lists.parquet")) {
            fs::write(path, "").unwrap();
        }
    }
    let damage = verify(&archive).unwrap().damage;
    let repaired = writer(&archive).repair(&damage, &()).unwrap();
    assert!(repaired.len() == 2 && !repaired.contains(&Added::Known));
    let problem = |added: &Added| matches!(added, Added::Unreadable(why) if why.contains("a pipe or a device"));
    assert_eq!(repaired.iter().filter(|added| problem(added)).count(), 1, "{repaired:?}");
    let mut changing = writer(&archive);
    assert_eq!(changing.drop_captures(capture).unwrap(), 1);
    changing.commit().unwrap();
}

#[test]
fn paths_of_nodes_go_down() {
    let place = Place::with_nodes(&[]);
    photos(&place.at("photos"));
    photos(&place.at("A/photos"));
    let before = content(&place.root);
    let catalog = fs::read(place.at("A/catalog.json")).unwrap();
    for folder in [
        "",
        ".",
        "..",
        "../photos",
        "node/../../photos",
        "node/..",
        "./node/../node/.",
        "/",
        "//",
        "/..",
    ] {
        fs::write(place.at("A/catalog.json"), &catalog).unwrap();
        lie(&place.at("A"), |text| {
            text.replace("\"folder\":\"node\"", &format!("\"folder\":\"{folder}\""))
        });
        let told = place.refused("A");
        assert!(told.contains("catalogue"), "{folder}: {told}");
        assert!(verify(&place.at("A")).is_err());
    }
    // The same folder twice.
    fs::write(place.at("A/catalog.json"), &catalog).unwrap();
    let node = "{\"folder\":\"node\"}";
    lie(&place.at("A"), |text| text.replace(node, &[node, node].join(",")));
    assert!(place.refused("A").contains("catalogue"));
    fs::write(place.at("A/catalog.json"), catalog).unwrap();
    let mut after = content(&place.root);
    let mut before = before;
    for all in [&mut after, &mut before] {
        all.remove(&place.at("A/lock"));
    }
    assert_eq!(after, before);
}

/// As it looks where the original's node is mounted a second time: it has the inode of before.
#[test]
fn the_node_of_the_original_is_no_copy_of_it() {
    let place = Place::with_nodes(&[]);
    place.copy("A", "B");
    fs::rename(place.at("A/node"), place.at("mounted")).unwrap();
    let before = content(&place.at("mounted"));
    let error = adopt(&place.at("B"), &[place.at("mounted")]).unwrap_err().to_string();
    assert!(error.contains("no copy of it") && error.contains("name the copy"), "{error}");
    fs::rename(place.at("B/node"), place.at("copy")).unwrap();
    fs::rename(place.at("mounted"), place.at("B/node")).unwrap();
    let told = place.refused("B");
    assert!(told.contains("no copy of it") && told.contains("index adopt"), "{told}");
    assert!(verify(&place.at("B")).unwrap().problems[0].contains("no copy of it"));
    let mut after = content(&place.at("B/node"));
    assert_eq!(after.len(), before.len());
    after.retain(|path, _| !path.ends_with("lock"));
    assert!(after.into_values().eq(
        before.into_iter().filter(|(path, _)| !path.ends_with("lock")).map(|(_, bytes)| bytes)
    ));
    // Each is in its place again. The first writer of the copy makes the node its own.
    fs::rename(place.at("B/node"), place.at("A/node")).unwrap();
    fs::rename(place.at("copy"), place.at("B/node")).unwrap();
    drop(writer(&place.at("A")));
    drop(writer(&place.at("B")));
    place.copy("B", "C");
    fs::remove_dir_all(place.at("C/node")).unwrap();
    fs::rename(place.at("B/node"), place.at("C/node")).unwrap();
    assert!(place.refused("C").contains("no copy of it"));
    // A folder that is not there any more needs no node.
    fs::remove_dir_all(place.at("B")).unwrap();
    adopt(&place.at("C"), &[]).unwrap();
    assert_eq!((place.holds("A"), place.holds("C")), (2, 2));
}

/// The original has another name, so nobody finds it; its node is mounted in a copy.
#[test]
fn the_node_of_a_renamed_original_is_taken_only_by_adopt_and_can_be_taken_back() {
    let place = Place::with_nodes(&[]);
    place.copy("A", "B");
    let rename = |from: &str, to: &str| fs::rename(place.at(from), place.at(to)).unwrap();
    rename("A", "renamed");
    rename("B/node", "copy");
    let records = |name: &str| {
        let mut files = content(&place.at(name));
        files.retain(|path, _| !path.ends_with("lock") && !path.ends_with("node.json"));
        files.into_values().collect::<Vec<_>>()
    };
    let before = records("renamed/node");
    rename("renamed/node", "B/node");
    let told = place.refused("B");
    assert!(told.contains("no copy of it") && told.contains("if that index is gone"), "{told}");
    assert_eq!(records("B/node"), before);
    // Only the user can tell that the original is gone.
    adopt(&place.at("B"), &[]).unwrap();
    drop(writer(&place.at("B")));
    assert_eq!(records("B/node"), before);
    // The original learns of it before it changes anything, and takes its node back.
    rename("B/node", "renamed/node");
    let told = place.refused("renamed");
    assert!(told.contains(&place.at("B").display().to_string()), "{told}");
    adopt(&place.at("renamed"), &[]).unwrap();
    assert_eq!((place.holds("renamed"), records("renamed/node")), (2, before.clone()));
    rename("renamed/node", "B/node");
    assert!(place.refused("B").contains("no copy of it"));
    assert_eq!(records("B/node"), before);
}

#[test]
fn a_build_follows_no_link_to_its_node() {
    let place = Place::with_nodes(&[]);
    fs::create_dir(place.at("empty")).unwrap();
    fs::create_dir(place.at("new")).unwrap();
    symlink(place.at("empty"), place.at("new/node")).unwrap();
    let made = IndexWriter::create(&place.at("new"), settings(FilterKind::Subset, 1), &[]);
    assert!(made.unwrap_err().to_string().contains("--nodes"));
    assert_eq!(content(&place.at("empty")).len(), 0);
    assert_eq!(content(&place.at("new")).len(), 1);
}

#[test]
fn nothing_is_built_inside_another_index() {
    let place = Place::with_nodes(&["n1"]);
    let before = content(&place.root);
    for (archive, node) in [("A/new", None), ("n1/new", None), ("new", Some("n1/new"))] {
        let node: Vec<PathBuf> = node.into_iter().map(|name| place.at(name)).collect();
        for folder in &node {
            fs::create_dir(folder).unwrap();
        }
        let made = IndexWriter::create(&place.at(archive), settings(FilterKind::Subset, 1), &node);
        let error = made.unwrap_err().to_string();
        assert!(error.contains("inside a directory of an index"), "{error}");
        for folder in &node {
            fs::remove_dir(folder).unwrap();
        }
        assert_eq!(content(&place.root), before, "{archive}");
    }
}

/// The file that replaces the catalogue had the name of a file of somebody, which was deleted.
#[test]
fn a_file_that_is_called_like_a_new_catalogue_stays() {
    let place = Place::with_nodes(&["n1"]);
    for name in ["A/catalog.json.new", "n1/node.json.new"] {
        for kind in ["file", "link", "copy"] {
            match kind {
                "file" => fs::write(place.at(name), "mine").unwrap(),
                "link" => symlink(place.at("nowhere"), place.at(name)).unwrap(),
                _ => {
                    let original = place.at(name.strip_suffix(".new").unwrap());
                    fs::copy(original, place.at(name)).map(drop).unwrap();
                }
            }
            let mut adding = writer(&place.at("A"));
            adding.add(&place.captures[2], &()).unwrap();
            let before = fs::read(place.at(name)).ok();
            adding.commit().unwrap();
            assert!(fs::symlink_metadata(place.at(name)).is_ok());
            assert_eq!(fs::read(place.at(name)).ok(), before);
            fs::remove_file(place.at(name)).unwrap();
            assert_eq!(place.holds("A"), 3);
            adding.drop_captures(&place.captures[2]).unwrap();
            adding.commit().unwrap();
        }
    }
}

/// A hostile index takes bounded memory.
#[test]
fn catalogues_that_were_made_to_do_harm_are_refused() {
    let place = Place::with_nodes(&[]);
    let path = place.at("A/catalog.json");
    let catalog = fs::read(&path).unwrap();
    lie(&place.at("A"), |text| {
        text.replace("\"dns_ports\":[]", &format!("\"dns_ports\":[{}53]", "53,".repeat(1 << 16)))
    });
    let error = verify(&place.at("A")).unwrap_err().to_string();
    assert!(error.contains("more DNS ports than there are"), "{error}");
    fs::write(&path, &catalog).unwrap();
    lie(&place.at("A"), |text| {
        let (head, segments) = text.split_once("\"segments\":[").unwrap();
        let segments = segments.strip_suffix("]}").unwrap();
        format!("{head}\"segments\":[{segments},{segments}]}}")
    });
    let error = verify(&place.at("A")).unwrap_err().to_string();
    assert!(error.contains("two segments have one file"), "{error}");
    // A hole takes no room on the disk.
    fs::write(&path, &catalog).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(3 << 30).unwrap();
    let error = verify(&place.at("A")).unwrap_err().to_string();
    assert!(
        error.contains("3221225472 bytes") && error.contains("build the index again"),
        "{error}"
    );
    fs::write(&path, &catalog).unwrap();
    let journal = place.at("A/journal");
    fs::write(place.at("A/000775.segment"), "left").unwrap();
    fs::write(&journal, "{\"segment\":{\"number\":775}}\n").unwrap();
    let file = fs::File::options().write(true).open(&journal).unwrap();
    if file.set_len(1 << 40).is_err() {
        println!("this file system has no such files");
    }
    drop(writer(&place.at("A")));
    assert!(!journal.exists() && !place.at("A/000775.segment").exists());
    assert_eq!(place.holds("A"), 2);
}

#[test]
fn a_file_that_is_called_like_a_journal_stays() {
    let place = Place::with_nodes(&[]);
    let path = place.at("A/journal");
    let lines = [
        "Monday: rain",
        "\nMonday: rain",
        "\n\nMonday: rain",
        "{\"title\":\"diary\"}",
        "{\"segment\":1}\n",
    ];
    for text in lines {
        fs::write(&path, text).unwrap();
        assert!(place.refused("A").contains("move it elsewhere"), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    for text in ["", "\n", "\n{\"seg", "\0\0\0\0"] {
        fs::write(&path, text).unwrap();
        drop(writer(&place.at("A")));
        assert!(!path.exists());
    }
}

/// Files of a killed writer are deleted by name, and a journal can name nothing else.
#[test]
fn a_journal_names_files_of_the_index_only() {
    let place = Place::with_nodes(&["n1"]);
    photos(&place.at("n1/000042"));
    fs::write(place.at("n1/000042/holiday.jpg"), "mine").unwrap();
    for name in ["n1/000778.filter", "n1/000779.filters", "A/000780.segment", "A/000781"] {
        fs::write(place.at(name), "mine").unwrap();
    }
    fs::create_dir(place.at("n1/000777")).unwrap();
    let left = [
        "n1/000777/3.records.parquet",
        "n1/000777/3.lists.parquet",
        "n1/000776.filter",
        "A/000775.segment",
    ];
    for name in left {
        fs::write(place.at(name), "left").unwrap();
    }
    let stored = fs::read_to_string(place.at("A/catalog.json")).unwrap();
    let before = content(&place.root);
    let journal = "\
{\"region\":{\"node\":0,\"capture\":777,\"region\":3}}
{\"filter\":{\"node\":0,\"number\":776}}
{\"segment\":{\"number\":775}}
{\"filter\":{\"node\":1,\"number\":7}}
{\"filter\":{\"node\":18446744073709551615,\"number\":7}}
{\"region\":{\"node\":0,\"capture\":0,\"region\":0}}
{\"region\":{\"node\":0,\"capture\":42,\"region\":\"../holiday.jpg\"}}
{\"segment\":{\"number\":-1}}
\u{0}\u{1}
{\"filters\":{\"node\":0,\"number\":";
    fs::write(place.at("A/journal"), journal).unwrap();
    drop(writer(&place.at("A")));
    let mut expected = before;
    for name in left {
        expected.remove(&place.at(name));
    }
    expected.remove(&place.at("n1/000777"));
    assert_eq!(content(&place.root), expected);
    assert_eq!(fs::read_to_string(place.at("A/catalog.json")).unwrap(), stored);
    assert_eq!(place.holds("A"), 2);
}
