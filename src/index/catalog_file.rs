//! The file of the catalogue, and those of its segments: reading them, and putting a new catalogue
//! in force.

use super::catalog::{CaptureEntry, Catalog, Segment};
use super::disk::{self, FileMark};
use super::layout::{CATALOG, NODE, is_filled_node};
use super::problems::Problems;
use super::{IndexError, node_mark};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Name and version of the format.
const SCHEMA: &str = "flowsieve.index/6";

/// Formats that are no longer read.
const OLDER: [&str; 5] = [
    "flowsieve.index/1",
    "flowsieve.index/2",
    "flowsieve.index/3",
    "flowsieve.index/4",
    "flowsieve.index/5",
];

/// No catalogue is longer: it names half a million segments.
const MOST_BYTES: u64 = 1 << 28;

/// How often a reader starts again because a writer replaced what the catalogue names.
const MOST_TRIES: u32 = 100;

/// The file: the catalogue's text with its checksum.
#[derive(Deserialize, Serialize)]
struct Envelope<'a> {
    schema: String,
    checksum: u64,
    #[serde(borrow)]
    catalog: &'a RawValue,
}

/// The part that must be readable in every version.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

impl Catalog {
    /// Reads the catalogue that is in force.
    ///
    /// # Errors
    ///
    /// There is no index, or its catalogue is gone, damaged or of another format.
    pub fn load(archive: &Path) -> Result<Self, IndexError> {
        let path = archive.join(CATALOG);
        let damaged = |reason: String| IndexError::Catalog { path: path.clone(), reason };
        let text = match disk::read(&path, MOST_BYTES) {
            Ok(text) => text,
            Err(error @ IndexError::Damaged { .. }) => return Err(damaged(error.reason())),
            Err(error) if error.is_missing_file() => {
                return Err(if is_filled_node(&archive.join(NODE)) {
                    damaged("the file is gone".into())
                } else {
                    IndexError::Missing(archive.to_owned())
                });
            }
            Err(_) if archive.is_file() => return Err(IndexError::File(archive.to_owned())),
            Err(error) => return Err(error),
        };
        let envelope: Envelope<'_> = match serde_json::from_slice(&text) {
            Ok(envelope) => envelope,
            // Another format may have another envelope.
            Err(error) => {
                let head = serde_json::from_slice(&text);
                let Head { schema } = head.map_err(|_| damaged(error.to_string()))?;
                check_schema(&path, schema)?;
                return Err(damaged(error.to_string()));
            }
        };
        check_schema(&path, envelope.schema)?;
        let inner = envelope.catalog.get();
        if FileMark::new(inner.as_bytes()).checksum != envelope.checksum {
            return Err(damaged(disk::OTHER_CHECKSUM.into()));
        }
        let catalog = serde_json::from_str(inner);
        let mut catalog: Self = catalog.map_err(|error| damaged(error.to_string()))?;
        archive.clone_into(&mut catalog.archive);
        catalog.checksum = envelope.checksum;
        catalog.check().map_err(|reason| damaged(reason.into()))?;
        node_mark::confirm(&mut catalog)?;
        Ok(catalog)
    }

    /// Reads an index with the catalogue that is in force. `read` returns what it found, and notes
    /// problems: if a file is missing and a writer replaced the catalogue meanwhile, it reads again.
    pub(super) fn read_with<T>(
        archive: &Path,
        mut read: impl FnMut(&Self, &mut Problems) -> T,
    ) -> Result<(Self, T, Problems), IndexError> {
        let mut catalog = Self::load(archive)?;
        let mut again = 1..MOST_TRIES;
        loop {
            let mut problems = Problems::default();
            let found = read(&catalog, &mut problems);
            if problems.is_missing && again.next().is_some() {
                let now = Self::load(archive)?;
                if now.generation != catalog.generation {
                    catalog = now;
                    continue;
                }
            }
            return Ok((catalog, found, problems));
        }
    }

    /// Puts this catalogue in force.
    pub(super) fn commit(&mut self) -> Result<(), IndexError> {
        self.generation += 1;
        let path = self.archive.join(CATALOG);
        self.check()
            .map_err(|reason| IndexError::Catalog { path: path.clone(), reason: reason.into() })?;
        let failed = |error: serde_json::Error| IndexError::io(&path)(error.into());
        let inner = serde_json::value::to_raw_value(self).map_err(failed)?;
        let checksum = FileMark::new(inner.get().as_bytes()).checksum;
        let envelope = Envelope { schema: SCHEMA.to_owned(), checksum, catalog: &inner };
        let mut text = serde_json::to_vec(&envelope).map_err(failed)?;
        text.push(b'\n');
        if text.len() as u64 > MOST_BYTES {
            let reason = "the index has its largest size; build another one for further captures";
            let error = io::Error::new(ErrorKind::FileTooLarge, reason);
            return Err(IndexError::io(&path)(error));
        }
        node_mark::announce(self, &[self.checksum, checksum])?;
        disk::replace(&self.archive, CATALOG, self.id, &text)?;
        self.checksum = checksum;
        // The catalogue is in force; otherwise the marks allow the one before it, too.
        let _ = node_mark::announce(self, &[checksum]);
        Ok(())
    }

    /// Returns the bytes of the file, and of those that name the captures.
    pub(super) fn bytes(&self) -> Result<u64, IndexError> {
        let path = self.archive.join(CATALOG);
        let data = fs::metadata(&path).map_err(IndexError::io(&path))?;
        // Each is kept twice. The numbers are those of the catalogue, which may be any.
        let sizes = self.segments.iter().map(|segment| segment.file.1.bytes.saturating_mul(2));
        Ok(sizes.fold(data.len(), u64::saturating_add))
    }

    /// Reads all captures, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// A segment cannot be read.
    pub fn captures(&self) -> Result<Vec<CaptureEntry>, IndexError> {
        let mut captures = Vec::new();
        for segment in &self.segments {
            captures.extend(self.captures_of(segment, &mut Vec::new())?);
        }
        Ok(captures)
    }

    /// Reads the captures of a segment. If their file is damaged, the copy stands in for it, and the
    /// damage is added to the problems.
    pub(super) fn captures_of(
        &self,
        segment: &Segment,
        problems: &mut Vec<IndexError>,
    ) -> Result<Vec<CaptureEntry>, IndexError> {
        let [path, copy] = self.segment_files(segment.file.0);
        let error = match read_captures(&path, segment) {
            Err(error) if error.is_damage() => error,
            captures => return captures,
        };
        let of_copy = match self.nodes[0].problem {
            None => read_captures(&copy, segment),
            Some(_) => Err(IndexError::damaged(&copy, "its node cannot be used")),
        };
        match (of_copy, error) {
            (Ok(captures), error) => {
                problems.push(error);
                Ok(captures)
            }
            (Err(of_copy), error) => Err(IndexError::Segment {
                is_missing: error.is_missing_file() && of_copy.is_missing_file(),
                reason: error.reason(),
                path,
                copy,
            }),
        }
    }
}

/// Reads the captures of a segment from one of its two files.
pub(super) fn read_captures(
    path: &Path,
    segment: &Segment,
) -> Result<Vec<CaptureEntry>, IndexError> {
    let text = disk::read_checked(path, segment.file.1)?;
    let captures = serde_json::from_slice(&text).map_err(|error| IndexError::damaged(path, error));
    let captures: Vec<CaptureEntry> = captures?;
    segment.check(&captures).map_err(|reason| IndexError::damaged(path, reason))?;
    Ok(captures)
}

fn check_schema(path: &Path, found: String) -> Result<(), IndexError> {
    if found == SCHEMA {
        return Ok(());
    }
    let path = path.to_owned();
    if OLDER.contains(&found.as_str()) {
        return Err(IndexError::Older { path, found });
    }
    Err(IndexError::Newer { path, found, known: SCHEMA })
}
