//! Indexes that earlier versions made, of two captures of this repository
//! (`index build --region 1s`), answer as new ones do, and can be written to.

use super::questions::questions;
use super::scan::{Packet, scan};
use super::{ask, build, settings, writer};
use flowsieve::index::{Added, IndexQuery, RegionFilter, stats, verify};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Copies a folder with the folders in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn indexes_of_earlier_versions_answer_and_go_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths: Vec<PathBuf> = ["netns-mirror.pcap", "netns-web-loss.pcap"]
        .map(|name| root.join("traces").join(name))
        .into();
    let folder = TempDir::new().unwrap();
    let new = folder.path().join("new");
    build(&new, settings(RegionFilter::Ribbon, 1), &[], &paths);
    let packets: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
    let packets: Vec<&Packet> = packets.iter().collect();
    let asked = questions(&packets, 60);
    for version in ["version-1", "version-2"] {
        let archive = folder.path().join(version);
        copy(&root.join("tests/older-indexes").join(version), &archive);
        let by_name = |archive: &Path, question: &IndexQuery| {
            let (found, explained) = ask(archive, question);
            assert_eq!(explained.problems, Vec::<String>::new());
            let name = |path: PathBuf| path.file_name().unwrap().to_owned();
            let found = found.into_iter().map(|(path, records)| (name(path), records));
            found.collect::<BTreeMap<_, _>>()
        };
        let mut answers = 0;
        for question in &asked {
            let found = by_name(&archive, &question.query());
            assert_eq!(found, by_name(&new, &question.query()), "{question:?}");
            answers += found.len();
        }
        assert!(answers > asked.len() / 4, "{answers}");
        assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
        // Added to, it has the present format, and the structure that it had.
        let more = root.join("traces/netns-dns.pcap");
        let mut adding = writer(&archive);
        assert_eq!(adding.add(&paths[0], &()).unwrap(), Added::Known);
        assert!(matches!(adding.add(&more, &()).unwrap(), Added::Indexed { .. }));
        adding.commit().unwrap();
        drop(adding);
        let catalog = fs::read_to_string(archive.join("catalog.json")).unwrap();
        assert!(catalog.contains("flowsieve.index/3"), "{catalog}");
        let now = stats(&archive).unwrap();
        assert_eq!((now.captures.len(), now.global_filter), (3, "scalable"));
        assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
        let mut dropping = writer(&archive);
        assert_eq!(dropping.drop_captures(&more).unwrap(), 1);
        dropping.commit().unwrap();
        assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
        for question in &asked {
            let found = by_name(&archive, &question.query());
            assert_eq!(found, by_name(&new, &question.query()), "{question:?}");
        }
    }
}
