//! `MANIFEST.tsv`: the figures of an independent tool for each shared capture.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Cells by file and column.
pub(crate) struct Manifest(BTreeMap<String, BTreeMap<String, String>>);

impl Manifest {
    /// Reads the manifest of a folder, all of whose captures have to be there.
    pub(crate) fn read(folder: &Path) -> Self {
        let path = folder.join("MANIFEST.tsv");
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
        let rows = lines.map(|line| {
            let cells = header.iter().zip(line.split('\t'));
            cells
                .map(|(column, cell)| ((*column).to_owned(), cell.to_owned()))
                .collect::<BTreeMap<_, _>>()
        });
        let manifest = Self(rows.map(|cells| (cells["file"].clone(), cells)).collect());
        let files = manifest.0.len();
        assert!(files >= 448, "{} has {files} files", path.display());
        for file in manifest.files() {
            assert!(folder.join(file).is_file(), "{file} is missing");
        }
        manifest
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn cell(&self, file: &str, column: &str) -> &str {
        &self.0[file][column]
    }

    pub(crate) fn number(&self, file: &str, column: &str) -> u64 {
        self.cell(file, column).parse().unwrap()
    }
}
