//! The order in which a writer changes the disk: what a catalogue names is there before the
//! catalogue is, and what it no longer names is deleted only after it.

use super::layout::{CATALOG, JOURNAL, MARK};
use super::{Catalog, IndexWriter, Settings, verify};
use std::cell::RefCell;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Steps {
    taken: Vec<(&'static str, PathBuf)>,
    /// Numbers of steps that are refused.
    refused: Option<RangeInclusive<usize>>,
}

thread_local! {
    static STEPS: RefCell<Steps> = RefCell::default();
}

/// Stands for the function that does nothing.
pub(super) fn step(step: &'static str, path: &Path) -> io::Result<()> {
    STEPS.with_borrow_mut(|steps| {
        let number = steps.taken.len();
        steps.taken.push((step, path.to_owned()));
        let is_refused = steps.refused.as_ref().is_some_and(|refused| refused.contains(&number));
        if is_refused { Err(io::Error::other("refused by the test")) } else { Ok(()) }
    })
}

/// Runs `work`, and returns its steps.
fn watched<T>(
    refused: Option<RangeInclusive<usize>>,
    work: impl FnOnce() -> T,
) -> (T, Vec<(&'static str, PathBuf)>) {
    STEPS.set(Steps { taken: Vec::new(), refused });
    let result = work();
    (result, STEPS.take().taken)
}

fn capture(name: &str) -> PathBuf {
    Path::new("traces").join(name)
}

/// An index of two captures, with a node outside.
struct TestIndex {
    folder: tempfile::TempDir,
    archive: PathBuf,
}

impl TestIndex {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("A");
        let nodes = [archive.join("n0"), folder.path().join("n1")];
        let mut writer = IndexWriter::create(&archive, Settings::default(), &nodes).unwrap();
        for name in ["netns-dns.pcap", "netns-mirror.pcap"] {
            writer.add(&capture(name), &()).unwrap();
        }
        writer.commit().unwrap();
        Self { folder, archive }
    }

    /// Drops one capture and adds another.
    fn change(&self) -> Result<(), super::IndexError> {
        let mut writer = IndexWriter::open(&self.archive)?;
        writer.drop_captures(&capture("netns-dns.pcap"))?;
        writer.add(&capture("netns-web-loss.pcap"), &())?;
        writer.commit()
    }

    fn captures(&self) -> Vec<String> {
        let entries = Catalog::load(&self.archive).unwrap().captures().unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        entries.into_iter().map(|entry| name(entry.path)).collect()
    }

    fn is_whole(&self) -> bool {
        let verified = verify(&self.archive).unwrap();
        verified.problems.is_empty()
    }
}

const BEFORE: [&str; 2] = ["netns-dns.pcap", "netns-mirror.pcap"];
const AFTER: [&str; 2] = ["netns-mirror.pcap", "netns-web-loss.pcap"];

#[test]
fn files_are_deleted_only_when_the_catalogue_without_them_is_on_the_disk() {
    let made = TestIndex::new();
    let (changed, steps) = watched(None, || made.change());
    changed.unwrap();
    assert_eq!(made.captures(), AFTER);
    let catalog = made.archive.join(CATALOG);
    let find = |from: usize, step: &str, path: &Path| {
        let mut rest = steps.iter().enumerate().skip(from);
        let found = rest.find(|(_, (other, at))| *other == step && at == path);
        found.unwrap_or_else(|| panic!("{step:?} {path:?}: {steps:?}")).0
    };
    let renamed = find(0, "rename", &catalog);
    let in_force = find(renamed, "sync", &made.archive);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_own =
        |path: &Path| [CATALOG, MARK, JOURNAL].iter().any(|own| name(path).starts_with(own));
    let (mut written, mut deleted) = (0, 0);
    for (number, (step, path)) in steps.iter().enumerate().filter(|(_, (_, path))| !is_own(path)) {
        match *step {
            "create" => {
                written += 1;
                let synced = find(number, "sync", path);
                let named = find(number, "sync", path.parent().unwrap());
                assert!(synced < renamed && named < renamed, "{path:?}: {steps:?}");
            }
            "delete" => {
                deleted += 1;
                assert!(number > in_force, "{path:?}: {steps:?}");
            }
            _ => {}
        }
    }
    assert!(written > 4 && deleted > 4, "{steps:?}");
    // The journal names files before they are made, and is there until the last is deleted.
    let journal = made.archive.join(JOURNAL);
    let first = steps.iter().position(|(step, path)| *step == "create" && !is_own(path));
    assert!(find(0, "create", &journal) < first.unwrap());
    assert_eq!(steps.last(), Some(&("delete", journal)));
}

/// Otherwise a power failure could leave a finished index without a name.
#[test]
fn names_of_new_folders_are_on_the_disk_before_the_catalogue_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let (archive, nodes) = (root.join("a/A"), [root.join("b/c/n")]);
    let create = || IndexWriter::create(&archive, Settings::default(), &nodes).unwrap();
    let (_, steps) = watched(None, create);
    let renamed = ("rename", archive.join(CATALOG));
    let renamed = steps.iter().position(|step| *step == renamed).unwrap();
    for above in [root.clone(), root.join("a"), root.join("b"), root.join("b/c")] {
        assert!(steps[..renamed].contains(&("sync", above)), "{steps:?}");
    }
}

#[test]
fn an_index_is_whole_whichever_step_is_the_last() {
    let made = TestIndex::new();
    let count = watched(None, || made.change().unwrap()).1.len();
    assert!(count > 20);
    let mut kept = [0, 0];
    for number in 0..count {
        // One step fails, or this one and all after it, as if the disk were gone.
        for refused in [number..=number, number..=usize::MAX] {
            let made = TestIndex::new();
            let outside = made.folder.path().join("n1").join("photos");
            std::fs::create_dir(&outside).unwrap();
            let (changed, _) = watched(Some(refused.clone()), || made.change());
            assert!(made.is_whole(), "{refused:?}");
            let captures = made.captures();
            assert!(captures == BEFORE || captures == AFTER, "{refused:?}: {captures:?}");
            assert!(changed.is_err() || captures == AFTER, "{refused:?}");
            kept[usize::from(captures == AFTER)] += 1;
            // The next writer deletes what is left, and goes on.
            let (again, _) = watched(None, || made.change());
            again.unwrap();
            assert!(made.is_whole() && made.captures() == AFTER, "{refused:?}");
            assert!(!made.archive.join(JOURNAL).exists() && outside.exists(), "{refused:?}");
        }
    }
    assert!(kept.iter().all(|&count| count > 4), "{kept:?}");
}
