//! Reads a log from memory, for the tests of the readers.

use std::path::Path;

use super::packet::{LogContent, LogQuestion};
use super::{Capture, InputFormat, LogEntry, TraceBatch, TraceError};

pub(super) struct Log {
    /// Flows, and DNS records with a query, and the names or messages of these.
    pub(super) entries: Vec<LogEntry>,
    pub(super) names: Vec<Vec<u8>>,
    /// Number of records without one.
    pub(super) without_query: u64,
    pub(super) container: &'static str,
    pub(super) error: Option<TraceError>,
}

pub(super) fn read(text: &[u8]) -> Log {
    read_as(text, InputFormat::Auto)
}

pub(super) fn read_as(text: &[u8], format: InputFormat) -> Log {
    let reader = Box::new(std::io::Cursor::new(text.to_vec()));
    let mut capture = Capture::from_reader(Path::new("x.log"), reader, format).unwrap();
    let mut log = Log {
        entries: Vec::new(),
        names: Vec::new(),
        without_query: 0,
        container: capture.container(),
        error: None,
    };
    loop {
        match capture.next_batch() {
            Ok(Some(TraceBatch::Log(batch))) => {
                for entry in batch.entries {
                    let LogContent::Dns { question, .. } = &entry.content else {
                        log.entries.push(entry.clone());
                        continue;
                    };
                    let (LogQuestion::Name(range)
                    | LogQuestion::Message(range)
                    | LogQuestion::Other(range)) = question
                    else {
                        log.without_query += 1;
                        continue;
                    };
                    log.names.push(batch.at(range).to_vec());
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
    log.names.iter().map(|name| std::str::from_utf8(name).unwrap()).collect()
}
