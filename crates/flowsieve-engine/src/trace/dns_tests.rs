//! Reads a DNS log from memory, for the tests of the readers.

use std::path::Path;

use super::{Capture, DnsLogEntry, InputFormat, TraceBatch, TraceError};

pub(super) struct Log {
    /// Records with a query, and their names.
    pub(super) entries: Vec<DnsLogEntry>,
    pub(super) names: Vec<Vec<u8>>,
    /// Number of records without one.
    pub(super) without_query: u64,
    pub(super) container: &'static str,
    pub(super) error: Option<TraceError>,
}

pub(super) fn read(text: &[u8]) -> Log {
    let reader = Box::new(std::io::Cursor::new(text.to_vec()));
    let mut capture = Capture::from_reader(Path::new("x.log"), reader, InputFormat::Auto).unwrap();
    let mut log = Log {
        entries: Vec::new(),
        names: Vec::new(),
        without_query: 0,
        container: capture.container(),
        error: None,
    };
    loop {
        match capture.next_batch() {
            Ok(Some(TraceBatch::DnsLog(batch))) => {
                for entry in batch.entries {
                    let Some(name) = entry.name.clone() else {
                        log.without_query += 1;
                        continue;
                    };
                    let name = &batch.text[name.start as usize..name.end as usize];
                    log.names.push(name.to_vec());
                    log.entries.push(entry.clone());
                }
            }
            Ok(Some(TraceBatch::Packets { .. })) => panic!("a log has no packets"),
            Ok(None) => break,
            Err(error) => log.error = Some(error),
        }
    }
    log
}

pub(super) fn names(log: &Log) -> Vec<&str> {
    log.names
        .iter()
        .map(|name| std::str::from_utf8(name).unwrap())
        .collect()
}
