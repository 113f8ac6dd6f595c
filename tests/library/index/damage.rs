//! Damage is named, and the rest is searched.

use super::questions::Question;
use super::scan::scan;
use super::{ask, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Added, GlobalFilter, IndexError, IndexWriter, Settings, verify};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[test]
fn damage_is_named_and_the_rest_is_searched() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 4);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    let packets = scan(&paths[0]);
    let source = packets[0].ends.src;
    let query = Question { host: Some(source.to_string()), ..Question::default() }.query();
    let (whole, undamaged) = ask(&archive, &query);
    assert!(whole.len() > 1);
    let mut files = Vec::new();
    let mut folders = vec![archive.join("node")];
    for entry in fs::read_dir(&archive).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "segment") {
            files.push(path);
        }
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    // The lock is empty, and the mark has its own tests.
    files.retain(|path| !path.ends_with("lock") && !path.ends_with("node.json"));
    // The captures of the segment and their copy, its global filter, and the regions' filters,
    // records and lists.
    assert_eq!(files.len(), 4 + 2 * paths.len());
    for path in files {
        let bytes = fs::read(&path).unwrap();
        for damage in 0..3 {
            let mut changed = bytes.clone();
            match damage {
                0 => changed[bytes.len() / 2] ^= 1,
                1 => changed.truncate(bytes.len() / 2),
                _ => changed.clear(),
            }
            fs::write(&path, &changed).unwrap();
            let name = path.display().to_string();
            let problems = verify(&archive).unwrap().problems;
            assert!(problems.iter().any(|problem| problem.contains(&name)), "{problems:?}");
            let (found, explained) = ask(&archive, &query);
            if name.ends_with("records.parquet") {
                // The capture's own answers are gone, all others are there.
                assert!(found.len() >= whole.len() - 1);
                for (path, records) in &found {
                    assert_eq!(records, &whole[path]);
                }
            } else {
                assert_eq!(found, whole, "{name}");
            }
            assert!(explained.problems.iter().all(|problem| problem.contains(&name)));
            // Files that cannot be read are no false positives of a filter.
            assert!(explained.regions_in_vain <= undamaged.regions_in_vain, "{name}");
            assert_eq!(explained.nodes_in_vain, 0, "{name}");
        }
        fs::remove_file(&path).unwrap();
        let problems = verify(&archive).unwrap().problems;
        assert!(problems[0].contains(&path.display().to_string()), "{problems:?}");
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    // The catalogue: nothing is believed that is not whole, and a newer format is called that.
    let path = archive.join("catalog.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("flowsieve.index/6", "flowsieve.index/7")).unwrap();
    let error = verify(&archive).unwrap_err();
    assert!(matches!(&error, IndexError::Newer { found, .. } if found == "flowsieve.index/7"));
    for version in 1..=5 {
        let older = &format!("flowsieve.index/{version}");
        fs::write(&path, text.replace("flowsieve.index/6", older)).unwrap();
        let error = verify(&archive).unwrap_err().to_string();
        assert!(error.contains(older) && error.contains("build the index again"), "{error}");
    }
    fs::write(&path, text.replacen("\"captures\":4", "\"captures\":5", 1)).unwrap();
    let error = verify(&archive).unwrap_err();
    assert!(matches!(error, IndexError::Catalog { .. }), "{error}");
}

#[test]
fn lost_filters_are_made_anew_by_the_next_writer() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 4);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    for entry in fs::read_dir(archive.join("node")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "filter" || ending == "filters") {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(verify(&archive).unwrap().problems.len(), 2);
    let mut writer = writer(&archive);
    assert_eq!(writer.drop_captures(&paths[1]).unwrap(), 1);
    writer.commit().unwrap();
    let verified = verify(&archive).unwrap();
    assert_eq!((verified.captures, verified.problems.len()), (3, 0));
}

/// The files in a folder whose names end so.
fn find(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    found.sort();
    found
}

/// A region whose records are lost for good was hidden once its segment's filters were rebuilt.
#[test]
fn lost_records_are_named_after_filters_are_rebuilt() {
    for global in GlobalFilter::ALL {
        let folder = TempDir::new().unwrap();
        let paths = pieces(folder.path(), 400, 4);
        let archive = folder.path().join("archive");
        let settings = Settings { global, ..settings(FilterKind::Subset, 300) };
        build(&archive, settings, &[], &paths);
        let host = scan(&paths[0])[0].ends.src.to_string();
        let query = Question { host: Some(host), ..Question::default() }.query();
        let lost = archive.join("node/000000/0.records.parquet");
        fs::write(&lost, "").unwrap();
        fs::remove_file(&paths[0]).unwrap();
        for ending in ["filter", "filters"] {
            for path in find(&archive.join("node"), ending) {
                fs::remove_file(path).unwrap();
            }
        }
        let names = |problems: &[String]| {
            let name = lost.display().to_string();
            (problems.len(), problems.iter().all(|problem| problem.contains(&name)))
        };
        let damage = verify(&archive).unwrap().damage;
        let mut changing = writer(&archive);
        let repaired = changing.repair(&damage, &()).unwrap();
        assert!(matches!(&repaired[..], [Added::Unreadable(_)]), "{repaired:?}");
        changing.commit().unwrap();
        assert_eq!(names(&verify(&archive).unwrap().problems), (1, true));
        assert_eq!(names(&ask(&archive, &query).1.problems), (1, true));
        // Also when others leave, and when segments are merged.
        changing.drop_captures(&paths[1]).unwrap();
        changing.commit().unwrap();
        assert_eq!(names(&ask(&archive, &query).1.problems), (1, true));
        changing.add(&paths[1], &()).unwrap();
        changing.commit().unwrap();
        assert_eq!(names(&ask(&archive, &query).1.problems), (1, true));
        changing.drop_captures(&paths[0]).unwrap();
        changing.commit().unwrap();
        assert_eq!(ask(&archive, &query).1.problems, Vec::<String>::new());
        assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    }
}

/// Records that cannot be read now may be read later: no filter is built without their values.
#[test]
fn records_that_cannot_be_read_are_not_taken_for_lost() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 4);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    let (capture, aside) = (archive.join("node/000000"), archive.join("aside"));
    fs::rename(&capture, &aside).unwrap();
    fs::write(&capture, "no folder").unwrap();
    for path in find(&archive.join("node"), "filter") {
        fs::remove_file(path).unwrap();
    }
    let before = fs::read(archive.join("catalog.json")).unwrap();
    let mut changing = writer(&archive);
    changing.drop_captures(&paths[1]).unwrap();
    assert!(matches!(changing.commit(), Err(IndexError::Io { .. })));
    // The writer does not know what the index holds now.
    assert!(matches!(changing.add(&paths[1], &()), Err(IndexError::Plan(_))));
    drop(changing);
    assert_eq!(fs::read(archive.join("catalog.json")).unwrap(), before);
    fs::remove_file(&capture).unwrap();
    fs::rename(&aside, &capture).unwrap();
    let mut changing = writer(&archive);
    changing.drop_captures(&paths[1]).unwrap();
    changing.commit().unwrap();
    let verified = verify(&archive).unwrap();
    assert_eq!((verified.captures, verified.problems.len()), (3, 0));
}

#[test]
fn without_both_files_of_its_captures_a_segment_is_named_and_no_writer_goes_on() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 2);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    let host = scan(&paths[0])[0].ends.src.to_string();
    let query = Question { host: Some(host), ..Question::default() }.query();
    let before = ask(&archive, &query).0;
    let files = [&archive, &archive.join("node")].map(|folder| find(folder, "segment").remove(0));
    let bytes = fs::read(&files[0]).unwrap();
    assert_eq!(fs::read(&files[1]).unwrap(), bytes);
    for path in &files {
        fs::write(path, &bytes[1..]).unwrap();
    }
    let (found, explained) = ask(&archive, &query);
    assert_eq!((found.len(), explained.problems.len()), (0, 1));
    let error = IndexWriter::open(&archive).unwrap_err().to_string();
    for told in [&explained.problems[0], &verify(&archive).unwrap().problems[0], &error] {
        assert!(told.contains("restore one of the two files"), "{told}");
        assert!(files.iter().all(|path| told.contains(&path.display().to_string())), "{told}");
    }
    // Either of them is enough.
    for path in &files {
        fs::write(path, &bytes).unwrap();
        assert_eq!(ask(&archive, &query).0, before);
        let mut changing = writer(&archive);
        let damage = verify(&archive).unwrap().damage;
        assert_eq!(damage.segments(), 1);
        changing.repair(&damage, &()).unwrap();
        fs::write(path, "").unwrap();
    }
}

/// The undamaged part of a capture that has changed may be all that is left of it.
#[test]
fn a_repair_keeps_what_is_whole_of_a_capture_that_has_changed() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 3000, 1);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 1), &[], &paths);
    let query = Question { host: Some("0.0.0.0/0".into()), ..Question::default() }.query();
    let count = || ask(&archive, &query).0.values().map(Vec::len).sum::<usize>();
    let all = count();
    fs::write(archive.join("node/000000/0.records.parquet"), "").unwrap();
    let left = count();
    assert!(0 < left && left < all, "{left} of {all}");
    let mut bytes = fs::read(&paths[0]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&paths[0], bytes).unwrap();
    let mut changing = writer(&archive);
    let repaired = changing.repair(&verify(&archive).unwrap().damage, &()).unwrap();
    let [Added::Unreadable(sentence)] = &repaired[..] else { panic!("{repaired:?}") };
    assert!(sentence.contains("has changed since it was indexed"), "{sentence}");
    changing.commit().unwrap();
    assert_eq!(count(), left);
}
