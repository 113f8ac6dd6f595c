//! Reads a log from memory, for the tests of the readers.

use std::io::{self, Cursor, Read};
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
    let reader = Box::new(Cursor::new(text.to_vec()));
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

/// Reads at most this many bytes at a time, and panics where a pipe would wait.
struct Pipe(Cursor<Vec<u8>>, usize);

impl Read for Pipe {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let most = target.len().min(self.1);
        let count = self.0.read(&mut target[..most])?;
        assert!(count > 0, "it waits for bytes that it does not need");
        Ok(count)
    }
}

#[test]
fn lines_of_a_pipe_are_handed_on_at_once_and_known_however_they_are_cut() {
    const ZEEK: &str = "#separator \\x09\n\n#fields\tts\tid.orig_h\tid.resp_h\tquery\n";
    const DNS: &str = "{\"ts\":1,\"id.orig_h\":\"::1\",\"id.resp_h\":\"::2\",\"query\":\"a\"}\n";
    const CONN: &str =
        "{\"ts\":1,\"id.orig_h\":\"::1\",\"id.resp_h\":\"::2\",\"conn_state\":\"SF\"}\n";
    const STATS: &str = "{\"timestamp\":\"1970-01-01T00:00:01Z\",\"event_type\":\"stats\"}\n";
    let event = "{\"timestamp\":\"1970-01-01T00:00:01Z\",\"event_type\":\"dns\",\"src_ip\":\"::1\",\
        \"dest_ip\":\"::2\",\"dns\":{\"type\":\"query\",\"rrname\":\"a\"}}\n";
    for (container, first, line) in [
        ("zeek-dns-tsv", ZEEK, "1\t::1\t::2\ta\n"),
        ("zeek-dns-json", "", DNS),
        ("zeek-conn-json", CONN, DNS),
        ("eve-json", STATS, event),
        ("eve-json", "\r\n \n ", event),
        ("dns-csv", "\u{feff}ts,src,dst,qname\r\n", "1,::1,::2,a\n"),
        ("flow-csv", "start_ns,src,dst,proto\n", "1,::1,::2,6\n"),
    ] {
        let expected = 3 + usize::from(first == CONN);
        let text = format!("{first}{line}{line}{line}{}", &line[..line.len() - 1]);
        for at_once in [1, 9, text.len()] {
            let pipe = Box::new(Pipe(Cursor::new(text.clone().into()), at_once));
            let mut log = Capture::from_reader(Path::new("-"), pipe, InputFormat::Auto).unwrap();
            assert_eq!(log.container(), container);
            let mut entries = 0;
            while entries < expected {
                let Some(TraceBatch::Log(batch)) = log.next_batch().unwrap() else {
                    panic!("{line}")
                };
                entries += batch.entries.len();
            }
            assert_eq!(entries, expected, "{container}");
        }
    }
}
