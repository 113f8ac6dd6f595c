//! What a flag that is set in the midst of the work leaves: nothing that is half done.

use super::questions::Question;
use super::{ask, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Added, Hit, HitSink, search, stats, verify};
use flowsieve::pipeline::Watch;
use flowsieve::trace::StopFlag;
use std::cell::Cell;
use std::fs;
use std::io;
use tempfile::TempDir;

/// Sets the flag when the flag has been asked for so many times: before a capture is read, or
/// later.
struct Ending {
    stop: StopFlag,
    looks: Cell<u32>,
}

impl Watch for Ending {
    fn progress(&self, _bytes: u64, _packets: u64) {}

    fn stop(&self) -> StopFlag {
        match self.looks.get() {
            0 => self.stop.set(),
            left => self.looks.set(left - 1),
        }
        self.stop.clone()
    }
}

#[test]
fn a_capture_that_is_not_done_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 700, 2);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 1), &[], &paths[..1]);
    let before = stats(&archive).unwrap();
    let files = fs::read_dir(archive.join("node")).unwrap().count();
    let mut adding = writer(&archive);
    let mut interrupted = 0;
    for looks in 0..8 {
        let watch = Ending { stop: StopFlag::default(), looks: Cell::new(looks) };
        match adding.add(&paths[1], &watch).unwrap() {
            Added::Interrupted => interrupted += 1,
            added => {
                // Looked at so often, it is indexed before the flag is set.
                assert!(matches!(added, Added::Indexed { .. }), "{added:?}");
                break;
            }
        }
        adding.commit().unwrap();
        assert_eq!(stats(&archive).unwrap().captures, before.captures);
        assert_eq!(fs::read_dir(archive.join("node")).unwrap().count(), files);
    }
    assert!((2..8).contains(&interrupted), "{interrupted}");
    adding.add(&paths[1], &()).unwrap();
    adding.commit().unwrap();
    let verified = verify(&archive).unwrap();
    assert_eq!((verified.captures, verified.problems.len()), (2, 0));
}

/// Sets the flag with the first answer.
struct First {
    stop: StopFlag,
    hits: u64,
}

impl HitSink for First {
    fn hit(&mut self, _: Hit<'_>) -> io::Result<()> {
        self.stop.set();
        self.hits += 1;
        Ok(())
    }
}

#[test]
fn a_search_that_is_ended_has_the_first_answers() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 6);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    let query = Question { host: Some("0.0.0.0/0".into()), ..Question::default() }.query();
    let (all, whole) = ask(&archive, &query);
    assert!(!whole.interrupted && all.len() == paths.len());
    let stop = StopFlag::default();
    let mut first = First { stop: stop.clone(), hits: 0 };
    let explained = search(&archive, &query, &stop, &mut first).unwrap();
    assert!(explained.interrupted);
    assert_eq!(explained.regions_opened, 1);
    assert_eq!(first.hits, explained.hits);
    assert_eq!(first.hits, all[&paths[0]].len() as u64);
    // Set before, there are no answers.
    let explained = search(&archive, &query, &stop, &mut first).unwrap();
    assert_eq!((explained.hits, explained.interrupted), (0, true));
}
