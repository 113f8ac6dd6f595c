//! Retention: what is dropped is forgotten, and what is known is not indexed again.

use super::questions::{Question, questions};
use super::scan::{Packet, scan};
use super::{ask, build, pieces, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Added, Explained, GlobalFilter, Record, Settings, stats, verify};
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Returns the answers of the index to these questions, and its explanations.
fn behaviour(archive: &Path, questions: &[Question]) -> Vec<(Vec<Record>, Explained)> {
    let ask = |question: &Question| {
        let (found, explained) = ask(archive, &question.query());
        (found.into_values().flatten().collect(), explained)
    };
    questions.iter().map(ask).collect()
}

/// Adds captures to an index of others, and drops them: it answers as one to which nobody added
/// them. With `to_the_bit` filters must rule out the same as well; a global filter that had to grow
/// is larger than that of the other index, and lets less through.
fn drop_what_was_added(
    global: GlobalFilter,
    packets: usize,
    stay: usize,
    leave: usize,
    to_the_bit: bool,
) {
    let settings = || Settings { global, ..settings(FilterKind::Subset, 300) };
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), packets, stay + leave);
    let scanned: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
    let scanned: Vec<&Packet> = scanned.iter().collect();
    let questions = questions(&scanned, scanned.len() / 50);
    let (stay, leave) = paths.split_at(stay);
    let without = folder.path().join("without");
    build(&without, settings(), &[], stay);
    let expected = behaviour(&without, &questions);

    let with = folder.path().join("with");
    build(&with, settings(), &[], stay);
    let mut adding = writer(&with);
    for path in leave {
        let added = adding.add(path, &()).unwrap();
        assert!(matches!(added, Added::Indexed { damage: None, .. }), "{added:?}");
        assert_eq!(adding.add(path, &()).unwrap(), Added::Known);
    }
    adding.commit().unwrap();
    drop(adding);
    assert!(behaviour(&with, &questions) != expected);
    let mut dropping = writer(&with);
    for path in leave {
        assert_eq!(dropping.drop_captures(path).unwrap(), 1);
        assert_eq!(dropping.drop_captures(path).unwrap(), 0);
    }
    dropping.commit().unwrap();
    let found = behaviour(&with, &questions);
    for ((question, found), expected) in questions.iter().zip(found).zip(&expected) {
        assert_eq!(found.0, expected.0, "{question:?}");
        if to_the_bit {
            assert_eq!(found.1, expected.1, "{question:?}");
        } else {
            assert!(found.1.nodes_ruled_out >= expected.1.nodes_ruled_out, "{question:?}");
            assert!(found.1.regions_opened <= expected.1.regions_opened, "{question:?}");
        }
    }
    assert_eq!(verify(&with).unwrap().problems, Vec::<String>::new());
    // Dropped as a directory: nothing is left, and nothing gets through the global filter.
    assert_eq!(dropping.drop_captures(folder.path()).unwrap(), stay.len());
    dropping.commit().unwrap();
    for (question, (records, explained)) in questions.iter().zip(behaviour(&with, &questions)) {
        // Filters know nothing of prefixes.
        let prefixes = [&question.src, &question.dst, &question.host];
        let exact =
            prefixes.iter().all(|text| text.as_ref().is_none_or(|text| !text.contains('/')));
        assert_eq!((records.len(), explained.regions), (0, 0));
        assert!(explained.nodes_ruled_out == 1 || !exact, "{question:?}");
    }
    let left = fs::read_dir(with.join("node")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: BTreeSet<_> = left.collect();
    assert_eq!(left, ["lock", "node.json"].map(Into::into).into(), "nothing else is left");
}

#[test]
fn dropping_undoes_adding() {
    drop_what_was_added(GlobalFilter::Quotient, 15, 6, 4, true);
    drop_what_was_added(GlobalFilter::Quotient, 500, 6, 10, true);
    drop_what_was_added(GlobalFilter::Scalable, 15, 6, 4, true);
    drop_what_was_added(GlobalFilter::Scalable, 500, 6, 10, false);
}

#[test]
fn a_capture_is_known_by_its_content() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 3);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths[..1]);
    let mut writer = writer(&archive);
    let moved = folder.path().join("moved.pcap");
    fs::rename(&paths[0], &moved).unwrap();
    assert_eq!(writer.add(&moved, &()).unwrap(), Added::Known);
    // Another content under the same path takes the place of the first.
    fs::copy(&paths[1], &moved).unwrap();
    writer.add(&moved, &()).unwrap();
    writer.commit().unwrap();
    let captures = stats(&archive).unwrap().captures;
    let paths_now: Vec<&PathBuf> = captures.iter().map(|entry| &entry.path).collect();
    assert_eq!(paths_now, [&moved]);
    assert_eq!(captures[0].bytes, fs::metadata(&paths[1]).unwrap().len());
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
}

/// Rotated captures: the older one was known by the name that the newer one has now, and left the
/// index with it.
#[test]
fn a_capture_stays_that_was_renamed_before_another_took_its_name() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 2);
    let (latest, older) = (folder.path().join("c.pcap"), folder.path().join("c.1.pcap"));
    let shorter = fs::read(&paths[1]).unwrap();
    let mut as_long = fs::read(&paths[0]).unwrap();
    *as_long.last_mut().unwrap() ^= 1;
    for newer in [shorter, as_long] {
        fs::copy(&paths[0], &latest).unwrap();
        let archive = folder.path().join("archive");
        build(&archive, settings(FilterKind::Subset, 300), &[], std::slice::from_ref(&latest));
        fs::rename(&latest, &older).unwrap();
        fs::write(&latest, newer).unwrap();
        let mut adding = writer(&archive);
        assert_eq!(adding.add(&older, &()).unwrap(), Added::Known);
        assert!(matches!(adding.add(&latest, &()).unwrap(), Added::Indexed { .. }));
        adding.commit().unwrap();
        drop(adding);
        let captures = stats(&archive).unwrap().captures.into_iter();
        let held: BTreeSet<PathBuf> = captures.map(|entry| entry.path).collect();
        assert_eq!(held, BTreeSet::from([latest.clone(), older.clone()]));
        fs::remove_dir_all(&archive).unwrap();
    }
}

/// One file was two captures if a link led to its folder.
#[test]
fn a_file_has_one_name_whatever_links_lead_to_it() {
    let folder = TempDir::new().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let paths = pieces(&root, 300, 2);
    let [real, link, archive] = ["real", "link", "archive"].map(|name| root.join(name));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let captures = || -> Vec<PathBuf> {
        stats(&archive).unwrap().captures.into_iter().map(|entry| entry.path).collect()
    };
    fs::copy(&paths[0], real.join("c.pcap")).unwrap();
    build(&archive, settings(FilterKind::Subset, 300), &[], &[link.join("c.pcap")]);
    // It grows.
    let more = fs::read(&paths[1]).unwrap().split_off(24);
    let whole = [fs::read(&paths[0]).unwrap(), more].concat();
    fs::write(real.join("c.pcap"), whole).unwrap();
    let mut adding = writer(&archive);
    assert!(matches!(adding.add(&real.join("c.pcap"), &()).unwrap(), Added::Indexed { .. }));
    adding.commit().unwrap();
    assert_eq!(captures(), [real.join("c.pcap")]);
    for name in [link.join("c.pcap"), link.clone(), real.clone()] {
        adding.add(&real.join("c.pcap"), &()).unwrap();
        assert_eq!(adding.drop_captures(&name).unwrap(), 1, "{}", name.display());
    }
    // A link in the place of the folder that was indexed.
    adding.add(&real.join("c.pcap"), &()).unwrap();
    adding.commit().unwrap();
    drop(adding);
    fs::rename(&real, root.join("moved")).unwrap();
    std::os::unix::fs::symlink(root.join("moved"), &real).unwrap();
    fs::copy(&paths[1], real.join("c.pcap")).unwrap();
    let mut adding = writer(&archive);
    assert!(matches!(adding.add(&real.join("c.pcap"), &()).unwrap(), Added::Indexed { .. }));
    adding.commit().unwrap();
    assert_eq!(captures(), [root.join("moved/c.pcap")]);
}

/// A search named the older capture for ever, and adding its file again did not help.
#[test]
fn a_copy_of_a_known_capture_takes_the_place_of_what_was_there() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 2);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
    fs::copy(&paths[1], &paths[0]).unwrap();
    let mut adding = writer(&archive);
    assert_eq!(adding.add(&paths[0], &()).unwrap(), Added::Known);
    adding.commit().unwrap();
    let captures = stats(&archive).unwrap().captures;
    let held: Vec<&PathBuf> = captures.iter().map(|entry| &entry.path).collect();
    assert_eq!(held, [&paths[1]]);
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
}

/// A value of more regions than a counter can count: what is dropped is forgotten all the same.
#[test]
fn what_saturated_a_counter_is_forgotten_too() {
    for global in GlobalFilter::ALL {
        forget_values_of_many_regions(global);
    }
}

fn forget_values_of_many_regions(global: GlobalFilter) {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 20, 270);
    let archive = folder.path().join("archive");
    let settings = Settings { global, ..settings(FilterKind::Subset, 300) };
    build(&archive, settings, &[], &paths);
    // Quotient filters have no counters that saturate.
    let saturated = || stats(&archive).unwrap().nodes[0].saturated;
    match global {
        GlobalFilter::Scalable => assert!(saturated().is_some_and(|saturated| saturated > 0)),
        GlobalFilter::Quotient => assert_eq!(saturated(), None),
    }
    let mut dropping = writer(&archive);
    for path in &paths[2..] {
        dropping.drop_captures(path).unwrap();
    }
    dropping.commit().unwrap();
    assert_eq!(saturated().unwrap_or_default(), 0);
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    let host = |packet: &Packet| packet.ends.src;
    let left: BTreeSet<IpAddr> =
        paths[..2].iter().flat_map(|path| scan(path)).map(|p| host(&p)).collect();
    let dropped: BTreeSet<IpAddr> =
        paths[2..].iter().flat_map(|path| scan(path)).map(|p| host(&p)).collect();
    let gone: Vec<&IpAddr> = dropped.difference(&left).collect();
    let mut ruled_out = 0;
    for address in &gone {
        let query = Question { src: Some(address.to_string()), ..Question::default() }.query();
        let (found, explained) = ask(&archive, &query);
        assert!(found.is_empty());
        ruled_out += explained.nodes_ruled_out as usize;
    }
    assert!(
        gone.len() > 100 && ruled_out * 100 >= gone.len() * 97,
        "{ruled_out} of {}",
        gone.len()
    );
}

/// Each commit adds a file of region filters, and takes smaller ones into it: there are never many.
#[test]
fn filters_of_many_commits_stand_in_few_files() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 60, 40);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths[..1]);
    let mut writer = writer(&archive);
    let check = || {
        let found = stats(&archive).unwrap();
        let captures = found.captures.iter();
        let regions = captures.flat_map(|capture| &capture.regions);
        let needed: u64 = regions.flat_map(|region| region.filters.bytes).sum();
        // No bytes of what was dropped, or stands elsewhere.
        assert_eq!(found.nodes[0].region_filter_bytes, needed);
        let entries = fs::read_dir(archive.join("node")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".filters")).count()
    };
    let mut most = 0;
    for path in &paths[1..] {
        writer.add(path, &()).unwrap();
        writer.commit().unwrap();
        most = most.max(check());
    }
    assert!((2..=6).contains(&most), "{most}");
    for path in paths.iter().step_by(3) {
        assert_eq!(writer.drop_captures(path).unwrap(), 1);
        writer.commit().unwrap();
        assert!(check() <= most);
    }
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
}
