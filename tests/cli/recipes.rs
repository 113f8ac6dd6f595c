//! The recipes of CONTRIBUTING.md, each followed by a toy that only tests have.

use super::{program, repository};
use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The lines of the sources that name a toy, each behind its file.
fn places(name: &str) -> Vec<String> {
    let folders =
        ["src", "crates/flowsieve-engine/src", "crates/flowsieve-filters/src", "python/src"];
    let mut places = Vec::new();
    for file in folders.iter().flat_map(|folder| sources(&repository().join(folder))) {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.strip_prefix(repository()).unwrap().display().to_string();
        let named = text.lines().filter(|line| line.to_lowercase().contains(name));
        places.extend(named.map(|line| format!("{shown}: {}", line.trim())));
    }
    places.sort();
    places
}

/// A structure is its file, a line among the modules, a line of the registry and a row of the laws;
/// every command that knows structures knows it from there.
#[test]
fn a_structure_is_added_in_the_places_that_its_recipe_names() {
    let named = [places("bitmapspec"), places("kind::bitmap")].concat();
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("spec/registry.rs"), "{named:?}");

    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("toy.fsieve").display().to_string();
    let trace = "traces/netns-mirror.pcap";
    let knows = |args: &[&str], said: &str| {
        let run = program(args).env("FLOWSIEVE_TOY", "1").output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success() && out.contains(said), "{args:?}: {out}");
    };
    knows(&["count", "--help"], "One bit an element");
    let count = ["count", trace, "--filter", "bitmap", "--format", "json", "--slice", "all"];
    knows(&[&count[..], &["--save-filter", &saved]].concat(), r#""filter":"bitmap""#);
    knows(&["filter", "info", &saved], "bitmap");
    let compare = ["compare", trace, "--filter", "bitmap,bloom", "--memory", "1KiB"];
    knows(&[&compare[..], &["--format", "csv"]].concat(), "bitmap");
    let plan = ["plan", "--filter", "bitmap", "--expect", "1000", "--memory", "64KiB"];
    knows(&[&plan[..], &["--element", "host-pair"]].concat(), "bitmap");
}
