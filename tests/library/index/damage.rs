//! Damage is named, and the rest is searched.

use super::questions::Question;
use super::scan::scan;
use super::{ask, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{IndexError, verify};
use std::fs;
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
    let (whole, _) = ask(&archive, &query);
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
    // The lock is empty, and of the mark a test of its own tells.
    files.retain(|path| !path.ends_with("lock") && !path.ends_with("node.json"));
    // The captures of the segment, its global filter, and the regions' filters, records and lists.
    assert_eq!(files.len(), 3 + 2 * paths.len());
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
            } else if name.ends_with(".segment") {
                // Nobody knows which captures there are.
                assert_eq!((found.len(), explained.problems.len()), (0, 1));
            } else {
                assert_eq!(found, whole, "{name}");
            }
            assert!(explained.problems.iter().all(|problem| problem.contains(&name)));
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
    fs::write(&path, text.replace("flowsieve.index/4", "flowsieve.index/5")).unwrap();
    let error = verify(&archive).unwrap_err();
    assert!(matches!(&error, IndexError::Newer { found, .. } if found == "flowsieve.index/5"));
    for older in ["flowsieve.index/1", "flowsieve.index/2", "flowsieve.index/3"] {
        fs::write(&path, text.replace("flowsieve.index/4", older)).unwrap();
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
