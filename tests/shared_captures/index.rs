//! Compares the answers of an index with a scan of all packets.

use crate::library::index::{answers::compare_with_scan, settings};
use flowsieve::filters::FilterKind;
use std::fs;
use std::path::Path;

pub(crate) fn answers_are_those_of_a_scan(folder: &Path) {
    let mut captures = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let length = fs::metadata(&path).unwrap().len();
            if path.is_dir() {
                folders.push(path);
            } else if length < 100_000 {
                // The naive scan would take minutes for large ones.
                captures.push(path);
            }
        }
    }
    captures.sort();
    assert!(captures.len() > 100);
    compare_with_scan(&captures, settings(FilterKind::Subset, 5), 4, 1999);
}
