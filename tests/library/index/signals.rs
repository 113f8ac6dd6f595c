//! A flag that is set in the midst of the work leaves nothing half done.

use super::questions::Question;
use super::{ask, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Added, Hit, HitSink, search, stats, verify};
use flowsieve::pipeline::Watch;
use flowsieve::trace::StopFlag;
use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;
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

/// Changes a capture when the flag is asked for the first time.
struct Changing<F>(Cell<Option<F>>);

impl<F: FnOnce()> Watch for Changing<F> {
    fn progress(&self, _bytes: u64, _packets: u64) {}

    fn stop(&self) -> StopFlag {
        if let Some(change) = self.0.take() {
            change();
        }
        StopFlag::default()
    }
}

/// Bytes appended behind the packets that were read could be taken for indexed.
#[test]
fn what_is_appended_while_a_capture_is_read_is_left_to_the_next_writer() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 2);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &[]);
    let mut adding = writer(&archive);
    let more = fs::read(&paths[1]).unwrap().split_off(24);
    let before = fs::metadata(&paths[0]).unwrap().len();
    let append = || {
        let mut file = fs::File::options().append(true).open(&paths[0]).unwrap();
        file.write_all(&more).unwrap();
    };
    let watch = Changing(Cell::new(Some(append)));
    assert!(matches!(adding.add(&paths[0], &watch).unwrap(), Added::Indexed { .. }));
    adding.commit().unwrap();
    assert_eq!(stats(&archive).unwrap().captures[0].bytes, before);
    assert!(matches!(adding.add(&paths[0], &()).unwrap(), Added::Indexed { packets: 600, .. }));
    assert_eq!(adding.add(&paths[0], &()).unwrap(), Added::Known);
}

/// Its records could be of other bytes than its digest, by which it was known for ever.
#[test]
fn a_capture_that_is_replaced_while_it_is_read_is_left_to_the_next_writer() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 3);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &[]);
    let mut adding = writer(&archive);
    let in_place = |bytes: &[u8]| {
        // The times of a file system pass in steps.
        sleep(Duration::from_millis(20));
        let mut file = fs::File::options().write(true).open(&paths[0]).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
    };
    let bytes = fs::read(&paths[0]).unwrap();
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    let changes: [&dyn Fn(); 3] =
        [&|| in_place(&other), &|| in_place(&bytes[..bytes.len() / 2]), &|| {
            fs::rename(&paths[1], &paths[0]).unwrap();
        }];
    for change in changes {
        let watch = Changing(Cell::new(Some(change)));
        let added = adding.add(&paths[0], &watch).unwrap();
        assert!(
            matches!(&added, Added::Unreadable(told) if told.contains("changed while it was read")),
            "{added:?}"
        );
    }
    adding.commit().unwrap();
    assert_eq!(stats(&archive).unwrap().captures.len(), 0);
    assert!(matches!(adding.add(&paths[0], &()).unwrap(), Added::Indexed { .. }));
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
