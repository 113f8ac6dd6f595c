//! Reads a DNS log from memory, for the tests of the readers.

use std::path::Path;

use super::{Capture, DnsLogEntry, InputFormat, TraceBatch, TraceError};

pub(super) struct Log {
    pub(super) entries: Vec<DnsLogEntry>,
    pub(super) names: Vec<Vec<u8>>,
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
                log.entries.extend_from_slice(batch.entries);
                let name = |entry: &DnsLogEntry| {
                    batch.text[entry.name.start as usize..entry.name.end as usize].to_vec()
                };
                log.names.extend(batch.entries.iter().map(name));
            }
            Ok(Some(TraceBatch::Packets { .. })) => panic!("a log has no packets"),
            Ok(None) => break,
            Err(error) => log.error = Some(error),
        }
    }
    log.without_query = capture.records_without_query();
    log
}

pub(super) fn names(log: &Log) -> Vec<&str> {
    log.names
        .iter()
        .map(|name| std::str::from_utf8(name).unwrap())
        .collect()
}
