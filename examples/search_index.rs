//! Indexes captures in an archive, and finds who asked for a name, and when.
//!
//!     cargo run --example search_index -- archive-dir '*.example.com' a.pcap b.pcap

use flowsieve::index::{Hit, HitSink, IndexQuery, IndexWriter, Settings, search};
use flowsieve::trace::StopFlag;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Prints the hits and counts them.
struct Found(usize);

impl HitSink for Found {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.0 += 1;
        let path = hit.capture.path.to_string_lossy();
        println!("{}: {} asked {}", path.escape_debug(), hit.record.src, hit.record.dst);
        Ok(())
    }
}

/// Adds the captures to a new index in this directory, searches it and returns the number of hits.
pub(crate) fn find(
    archive: &Path,
    name: &str,
    captures: &[PathBuf],
) -> Result<usize, Box<dyn Error>> {
    let mut writer = IndexWriter::create(archive, Settings::default(), &[])?;
    for capture in captures {
        writer.add(capture, &())?;
    }
    writer.commit()?;
    let query = IndexQuery { domain: Some(name.parse()?), ..IndexQuery::default() };
    let mut found = Found(0);
    search(archive, &query, &StopFlag::default(), &mut found)?;
    Ok(found.0)
}

/// Prints one line per hit.
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let archive = arguments.next().ok_or("the first argument is the directory of the index")?;
    let name = arguments.next().ok_or("the second argument is the name to look for")?;
    let captures: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let found = find(Path::new(&archive), &name, &captures)?;
    println!("{found} answers");
    Ok(())
}
