//! The layers of ARCHITECTURE.md: a folder imports only folders below it.

use std::fs;
use std::path::{Path, PathBuf};

/// Each folder of the library, and the folders that it may import.
const LAYERS: &[(&str, &[&str])] = &[
    ("threads", &["guard", "memory"]),
    ("sorted", &["memory", "untrusted"]),
    ("trace", &["bits", "guard", "hashing", "memory", "threads", "untrusted"]),
    ("inputs", &["guard", "memory", "threads", "trace"]),
    ("generate", &[]),
    ("decode", &["trace"]),
    ("anonymize", &["decode", "trace"]),
    ("capture_filter", &["decode", "trace"]),
    ("selection", &["zone", "capture_filter", "decode", "trace"]),
    ("elements", &["selection", "decode", "hashing", "inputs", "memory", "trace"]),
    (
        "pipeline",
        &[
            "plan",
            "zone",
            "selection",
            "memory",
            "decode",
            "elements",
            "filters",
            "guard",
            "hashing",
            "inputs",
            "sorted",
            "threads",
            "trace",
        ],
    ),
    (
        "distributed",
        &[
            "plan",
            "selection",
            "decode",
            "elements",
            "export",
            "filters",
            "flows",
            "guard",
            "hashing",
            "inputs",
            "pipeline",
            "top",
            "trace",
            "untrusted",
        ],
    ),
    (
        "dedup",
        &[
            "plan",
            "zone",
            "selection",
            "memory",
            "anonymize",
            "bits",
            "decode",
            "filters",
            "guard",
            "hashing",
            "inputs",
            "trace",
        ],
    ),
    (
        "flows",
        &[
            "plan",
            "selection",
            "bits",
            "memory",
            "decode",
            "elements",
            "filters",
            "guard",
            "hashing",
            "inputs",
            "place_index",
            "sorted",
            "trace",
        ],
    ),
    (
        "export",
        &[
            "plan",
            "selection",
            "memory",
            "decode",
            "elements",
            "flows",
            "guard",
            "hashing",
            "inputs",
            "pipeline",
            "trace",
        ],
    ),
    (
        "index",
        &[
            "parquet_column",
            "plan",
            "capture_filter",
            "selection",
            "anonymize",
            "decode",
            "filters",
            "flows",
            "guard",
            "hashing",
            "inputs",
            "trace",
        ],
    ),
    ("planner", &["filters"]),
    (
        "comparison",
        &[
            "plan",
            "guard",
            "selection",
            "memory",
            "decode",
            "elements",
            "filters",
            "interner",
            "hashing",
            "pipeline",
            "threads",
            "trace",
        ],
    ),
    (
        "top",
        &[
            "plan",
            "selection",
            "memory",
            "decode",
            "elements",
            "filters",
            "interner",
            "hashing",
            "inputs",
            "pipeline",
            "place_index",
            "sorted",
            "threads",
            "trace",
        ],
    ),
    (
        "experiments",
        &[
            "plan",
            "selection",
            "bits",
            "decode",
            "elements",
            "filters",
            "generate",
            "hashing",
            "pipeline",
            "trace",
        ],
    ),
    (
        "report",
        &[
            "parquet_column",
            "plan",
            "zone",
            "selection",
            "comparison",
            "decode",
            "dedup",
            "elements",
            "experiments",
            "export",
            "filters",
            "flows",
            "index",
            "pipeline",
            "planner",
            "top",
        ],
    ),
];

/// The crates with the folders: the engine, and the library.
const CRATES: &[&str] = &["crates/flowsieve-engine/src", "src"];

#[test]
fn folders_import_only_what_stands_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for folder in CRATES.iter().flat_map(|source| folders(&root.join(source))) {
        let layer = folder.file_name().unwrap().to_str().unwrap();
        if layer == "cli" {
            continue;
        }
        let below = LAYERS.iter().find(|(name, _)| *name == layer);
        let (_, below) = below.unwrap_or_else(|| panic!("{layer} has no place among the layers"));
        for_each_source(&folder, &mut |path, text| {
            for (number, line) in text.lines().enumerate() {
                for (_, rest) in
                    line.match_indices("crate::").map(|(at, m)| line.split_at(at + m.len()))
                {
                    let name: String =
                        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    if name != layer && !below.contains(&name.as_str()) {
                        wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
                    }
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn folders(source: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(source).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    folders.map(|entry| entry.path()).collect()
}

fn for_each_source(folder: &Path, see: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_source(&path, see);
        } else {
            see(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}
