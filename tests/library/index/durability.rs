//! Who writes: one at a time, beside readers, and killed at any moment.

use super::questions::Question;
use super::scan::scan;
use super::{ask, build, pieces, program, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Hit, HitSink, IndexError, IndexWriter, search, stats, verify};
use flowsieve::trace::StopFlag;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[test]
fn there_is_one_writer_and_readers_go_on() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 200, 30);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths[..2]);
    let mut writer = writer(&archive);
    let error = IndexWriter::open(&archive).unwrap_err();
    assert!(matches!(error, IndexError::Busy(_)), "{error}");
    let second = program(&["index", "add"], &archive, &paths[2..3]).wait_with_output().unwrap();
    let words = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(words.contains("another flowsieve is writing"), "{words}");
    // Readers see one catalogue or the next, whatever the writer does between.
    let host = scan(&paths[0])[0].ends.src.to_string();
    let query = Question { host: Some(host), ..Question::default() }.query();
    let expected = ask(&archive, &query).0[&paths[0]].clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let started = Instant::now();
            let mut searches = 0;
            while started.elapsed() < Duration::from_secs(3) {
                let (found, explained) = ask(&archive, &query);
                assert_eq!(explained.problems, Vec::<String>::new());
                assert_eq!(found[&paths[0]], expected);
                searches += 1;
            }
            searches
        });
        let started = Instant::now();
        let mut commits = 0;
        while started.elapsed() < Duration::from_millis(2500) {
            for path in &paths[2..5] {
                writer.add(path, &()).unwrap();
                writer.commit().unwrap();
            }
            for path in &paths[2..5] {
                writer.drop_captures(path).unwrap();
                writer.commit().unwrap();
            }
            commits += 6;
        }
        let searches = reader.join().unwrap();
        println!("{searches} searches beside {commits} commits");
        assert!(searches > 10 && commits > 10);
    });
}

/// Changes an index at the first answer.
struct Changing<'a> {
    change: Option<Box<dyn FnOnce() + 'a>>,
}

impl HitSink for Changing<'_> {
    fn hit(&mut self, _: Hit<'_>) -> io::Result<()> {
        if let Some(change) = self.change.take() {
            change();
        }
        Ok(())
    }
}

/// The answers of a capture that was indexed again were missing without a word, as are those of one
/// that was dropped.
#[test]
fn a_capture_that_is_indexed_again_during_a_search_is_named() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 200, 3);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths[..2]);
    let search_beside = |change: &dyn Fn(&mut IndexWriter)| {
        let change = || {
            let mut writer = writer(&archive);
            change(&mut writer);
            writer.commit().unwrap();
        };
        let mut sink = Changing { change: Some(Box::new(change)) };
        let query = Question { host: Some("0.0.0.0/0".into()), ..Question::default() }.query();
        search(&archive, &query, &StopFlag::default(), &mut sink).unwrap().problems
    };
    let problems = search_beside(&|writer| {
        fs::copy(&paths[2], &paths[1]).unwrap();
        writer.add(&paths[1], &()).unwrap();
    });
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("001.pcap: this capture was indexed again"), "{problems:?}");
    let problems = search_beside(&|writer| {
        assert_eq!(writer.drop_captures(&paths[1]).unwrap(), 1);
    });
    assert_eq!(problems, Vec::<String>::new());
    // Under another name it is the same capture.
    let mut adding = writer(&archive);
    adding.add(&paths[2], &()).unwrap();
    adding.commit().unwrap();
    drop(adding);
    let renamed = folder.path().join("renamed.pcap");
    let problems = search_beside(&|writer| {
        assert_eq!(writer.drop_captures(&paths[2]).unwrap(), 1);
        fs::rename(&paths[2], &renamed).unwrap();
        writer.add(&renamed, &()).unwrap();
    });
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("002.pcap: this capture was indexed again"), "{problems:?}");
}

/// A few numbers that look random, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) as usize) % end
    }
}

/// Kills the program at random moments of build, add and drop. After each the index opens, is
/// whole, and answers for what was committed before.
#[test]
fn a_killed_writer_leaves_what_was_committed() {
    const KILLS: usize = 210;
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 60, 8);
    let archive = folder.path().join("archive");
    let mut random = Random(7);
    // How long an operation takes, so that kills are spread over all of it.
    let mut usual = Duration::from_millis(60);
    let mut present: BTreeSet<PathBuf> = BTreeSet::new();
    let (mut killed, mut finished, mut runs) = (0, 0, 0);
    let mut of_kind = [0; 3];
    while killed < KILLS {
        runs += 1;
        assert!(runs < 4 * KILLS, "{killed} kills in {runs} runs");
        let some: Vec<PathBuf> = {
            let first = random.below(paths.len());
            let count = 1 + random.below(2);
            (first..first + count).map(|at| paths[at % paths.len()].clone()).collect()
        };
        let kind = match random.below(8) {
            // Now and then from nothing.
            0 => 0,
            1..=3 => 2,
            _ if archive.join("catalog.json").exists() => 1,
            _ => 0,
        };
        if kind == 0 {
            let _ = fs::remove_dir_all(&archive);
            present.clear();
        }
        if kind == 2 && !archive.join("catalog.json").exists() {
            continue;
        }
        let command = ["build", "add", "drop"][kind];
        let started = Instant::now();
        let mut child = program(&["index", command], &archive, &some);
        sleep(usual.mul_f64(random.below(1300) as f64 / 1000.0));
        let was_running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if was_running && output.status.code().is_none() {
            killed += 1;
            of_kind[kind] += 1;
        } else {
            finished += 1;
            usual =
                usual.mul_f64(0.9) + started.elapsed().min(Duration::from_millis(400)).mul_f64(0.1);
        }
        if !archive.join("catalog.json").exists() {
            // Killed before there was an index; building it works as if nothing had been.
            assert!(present.is_empty());
            continue;
        }
        let verified = verify(&archive).unwrap();
        assert_eq!(verified.problems, Vec::<String>::new(), "run {runs}");
        let now: BTreeSet<PathBuf> =
            stats(&archive).unwrap().captures.into_iter().map(|entry| entry.path).collect();
        let some: BTreeSet<PathBuf> = some.into_iter().collect();
        let with: BTreeSet<PathBuf> = present.union(&some).cloned().collect();
        let without: BTreeSet<PathBuf> = present.difference(&some).cloned().collect();
        match kind {
            2 => assert!(now.is_subset(&present) && now.is_superset(&without)),
            _ => assert!(now.is_superset(&present) && now.is_subset(&with)),
        }
        if output.status.success() {
            assert_eq!(now, if kind == 2 { without } else { with });
        }
        for path in now.iter().take(2) {
            let host = scan(path)[0].ends.src.to_string();
            let query = Question { host: Some(host), ..Question::default() }.query();
            assert!(!ask(&archive, &query).0[path].is_empty());
        }
        present = now;
        // The next writer deletes what nothing names.
        drop(writer(&archive));
        assert!(!archive.join("journal").exists());
        let names = fs::read_dir(archive.join("node")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(|name| name != "node.json").collect();
        let folders = names.iter().filter(|name| !name.contains('.') && *name != "lock").count();
        let catalog = fs::read_to_string(archive.join("catalog.json")).unwrap();
        let segments = catalog.matches("\"file\":[").count();
        assert_eq!((folders, names.len()), (present.len(), present.len() + 3 * segments + 1));
    }
    println!(
        "{killed} kills (build, add, drop: {of_kind:?}) in {runs} runs, {finished} finished before"
    );
    assert!(finished > 0 && of_kind.iter().all(|count| *count > 0));
}
