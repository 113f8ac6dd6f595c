//! The archive index against a scan of all packets, against itself, and against those who kill it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps fails where it should"
)]

use flowsieve::decode::{Addresses, DNS_PORT, Decoder, Tunnel, dns_messages, dotted};
use flowsieve::index::{
    Added, CaptureEntry, Ends, Explained, Hit, HitSink, IndexError, IndexQuery, IndexWriter,
    Record, RegionFilter, Settings, extract, search, stats, verify,
};
use flowsieve::pipeline::Watch;
use flowsieve::trace::write::WriteFormat;
use flowsieve::trace::{Capture, InputFormat, TraceBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Looks away.
struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _bytes: u64, _packets: u64) {}
}

/// Keeps the answers, by capture.
#[derive(Default)]
struct Kept(BTreeMap<PathBuf, Vec<Record>>);

impl HitSink for Kept {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        let records = self.0.entry(hit.capture.path.clone()).or_default();
        records.push(hit.record.clone());
        Ok(())
    }
}

fn settings(filter: RegionFilter, region_s: i64) -> Settings {
    Settings {
        region_ns: region_s * 1_000_000_000,
        filter,
        dns_ports: Vec::new(),
    }
}

fn build(
    archive: &Path,
    settings: Settings,
    nodes: &[PathBuf],
    captures: &[PathBuf],
) -> Vec<Added> {
    let mut writer = IndexWriter::create(archive, settings, nodes).unwrap();
    let added = captures
        .iter()
        .map(|path| writer.add(path, &Unwatched).unwrap());
    let added = added.collect();
    writer.commit().unwrap();
    added
}

/// Opens for writing. A process that another test begins has a copy of every lock until it runs its
/// program, so a lock that was given back may be held for a moment.
fn writer(archive: &Path) -> IndexWriter {
    let started = Instant::now();
    loop {
        match IndexWriter::open(archive) {
            Err(IndexError::Busy(_)) if started.elapsed() < Duration::from_secs(10) => {
                sleep(Duration::from_millis(2));
            }
            opened => return opened.unwrap(),
        }
    }
}

fn ask(archive: &Path, query: &IndexQuery) -> (BTreeMap<PathBuf, Vec<Record>>, Explained) {
    let mut kept = Kept::default();
    let explained = search(archive, query, &mut kept).unwrap();
    (kept.0, explained)
}

fn repository_captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "pcap"));
    paths.sort();
    paths
}

/// A packet as the naive scan sees it.
#[derive(Clone, Debug)]
struct Packet {
    time_ns: i64,
    ends: Ends,
    /// Client, server and name of each DNS message.
    questions: Vec<(Ends, Vec<u8>)>,
}

fn scan(path: &Path) -> Vec<Packet> {
    let (outer, inner) = (Decoder::new(Tunnel::Outer), Decoder::new(Tunnel::Inner));
    let mut packets = Vec::new();
    let Ok(mut capture) = Capture::open(path, InputFormat::Auto) else {
        return packets;
    };
    while let Ok(Some(TraceBatch::Packets {
        bytes,
        packets: batch,
    })) = capture.next_batch()
    {
        for packet in batch {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let Ok(ip) = outer.decode(packet.link, frame) else {
                continue;
            };
            let (src, dst): (IpAddr, IpAddr) = match ip.addresses {
                Addresses::V4 {
                    source,
                    destination,
                } => (source.into(), destination.into()),
                Addresses::V6 {
                    source,
                    destination,
                } => (source.into(), destination.into()),
            };
            let (src_port, dst_port) = ip.ports().unwrap_or_default();
            let ends = Ends {
                src,
                dst,
                src_port,
                dst_port,
            };
            let mut questions = Vec::new();
            let message_in = if ip.may_be_tunnel() {
                inner.decode(packet.link, frame)
            } else {
                Ok(ip)
            };
            if let Ok(ip) = message_in {
                let _ = dns_messages(&ip, &[DNS_PORT], |message| {
                    let asked = if message.is_response {
                        Ends {
                            src: dst,
                            dst: src,
                            src_port: dst_port,
                            dst_port: src_port,
                        }
                    } else {
                        ends
                    };
                    questions.push((asked, message.name.to_vec()));
                });
            }
            packets.push(Packet {
                time_ns: packet.time_ns,
                ends,
                questions,
            });
        }
    }
    packets
}

/// A question in the words of the command line, evaluated without any code of the index.
#[derive(Clone, Debug, Default)]
struct Question {
    src: Option<String>,
    dst: Option<String>,
    host: Option<String>,
    dst_port: Option<u16>,
    port: Option<u16>,
    domain: Option<String>,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

fn within(address: IpAddr, range: &str) -> bool {
    let (network, length) = range.split_once('/').unwrap_or((range, "128"));
    let bits = |address: IpAddr| -> Vec<u8> {
        match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    };
    let (address, network) = (bits(address), bits(network.parse().unwrap()));
    let length: usize = length.parse().unwrap();
    let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    address.len() == network.len()
        && (0..length.min(8 * network.len())).all(|at| bit(&address, at) == bit(&network, at))
}

impl Question {
    fn query(&self) -> IndexQuery {
        let address = |text: &Option<String>| text.as_ref().map(|text| text.parse().unwrap());
        IndexQuery {
            src: address(&self.src),
            dst: address(&self.dst),
            host: address(&self.host),
            dst_port: self.dst_port,
            port: self.port,
            domain: self.domain.as_ref().map(|name| name.parse().unwrap()),
            from_ns: self.from_ns,
            to_ns: self.to_ns,
        }
    }

    fn takes_ends(&self, ends: Ends) -> bool {
        let is = |range: &Option<String>, address| {
            range.as_ref().is_none_or(|range| within(address, range))
        };
        let client_port_counts = self.domain.is_none();
        is(&self.src, ends.src)
            && is(&self.dst, ends.dst)
            && (is(&self.host, ends.src) || is(&self.host, ends.dst))
            && self.dst_port.is_none_or(|port| ends.dst_port == port)
            && self.port.is_none_or(|port| {
                ends.dst_port == port || (client_port_counts && ends.src_port == port)
            })
    }

    fn takes_name(&self, name: &[u8]) -> bool {
        let Some(asked) = &self.domain else {
            return false;
        };
        let name = dotted(name);
        match asked.strip_prefix('*') {
            Some(below) => name.ends_with(below) && name.len() > below.len(),
            None => name == *asked,
        }
    }

    fn in_time(&self, time_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| time_ns >= from) && self.to_ns.is_none_or(|to| time_ns < to)
    }

    /// Who sent to whom in the parts of the packet that are asked for, whatever its time.
    fn matches(&self, packet: &Packet) -> Vec<Ends> {
        if self.domain.is_none() {
            return Some(packet.ends)
                .into_iter()
                .filter(|ends| self.takes_ends(*ends))
                .collect();
        }
        let questions = packet.questions.iter();
        questions
            .filter(|(ends, name)| self.takes_ends(*ends) && self.takes_name(name))
            .map(|(ends, _)| *ends)
            .collect()
    }
}

/// Questions about what is in the packets, about what is in them apart, and about what is not.
fn questions(packets: &[&Packet], every: usize) -> Vec<Question> {
    let mut questions = questions_of_ends(packets, every);
    questions.extend(questions_of_names(packets));
    questions
}

fn questions_of_ends(packets: &[&Packet], every: usize) -> Vec<Question> {
    let mut questions = Vec::new();
    let text = |address: IpAddr| Some(address.to_string());
    let sample: Vec<&&Packet> = packets.iter().step_by(every).collect();
    for (number, packet) in sample.iter().enumerate() {
        let ends = packet.ends;
        let other = sample[(number * 7 + 3) % sample.len()];
        let src = text(ends.src);
        let short = if ends.src.is_ipv4() { 20 } else { 44 };
        let network = Some(format!("{}/{short}", ends.src));
        let base = Question::default();
        questions.extend([
            Question {
                src: src.clone(),
                ..base.clone()
            },
            Question {
                dst: src.clone(),
                ..base.clone()
            },
            Question {
                host: src.clone(),
                port: Some(other.ends.dst_port),
                ..base.clone()
            },
            Question {
                src: src.clone(),
                dst: text(ends.dst),
                ..base.clone()
            },
            Question {
                src: src.clone(),
                dst: text(other.ends.dst),
                ..base.clone()
            },
            Question {
                src: src.clone(),
                dst_port: Some(ends.dst_port),
                ..base.clone()
            },
            Question {
                dst: text(ends.dst),
                dst_port: Some(other.ends.dst_port),
                ..base.clone()
            },
            Question {
                port: Some(ends.src_port),
                ..base.clone()
            },
            Question {
                src: src.clone(),
                port: Some(ends.src_port),
                ..base.clone()
            },
            Question {
                host: network.clone(),
                dst_port: Some(ends.dst_port),
                ..base.clone()
            },
            Question {
                src: network.clone(),
                dst: src.clone(),
                ..base.clone()
            },
            Question {
                dst: network.clone(),
                ..base.clone()
            },
            Question {
                host: src.clone(),
                from_ns: Some(packet.time_ns),
                to_ns: Some(packet.time_ns + 1),
                ..base.clone()
            },
            Question {
                src: src.clone(),
                from_ns: Some(other.time_ns),
                ..base.clone()
            },
            Question {
                host: Some("198.51.100.251".into()),
                ..base.clone()
            },
        ]);
    }
    questions
}

/// The same about names.
fn questions_of_names(packets: &[&Packet]) -> Vec<Question> {
    let mut questions = Vec::new();
    let text = |address: IpAddr| Some(address.to_string());
    let named = packets.iter().flat_map(|packet| &packet.questions);
    let named: Vec<&(Ends, Vec<u8>)> = named.collect();
    for (number, (ends, name)) in named.iter().step_by(1 + named.len() / 60).enumerate() {
        let name = dotted(name);
        let other = &named[(number * 31 + 5) % named.len()].0;
        let base = Question {
            domain: Some(name.clone()),
            ..Question::default()
        };
        questions.extend([
            base.clone(),
            Question {
                src: text(ends.src),
                ..base.clone()
            },
            Question {
                src: text(other.src),
                ..base.clone()
            },
            Question {
                dst: text(ends.dst),
                dst_port: Some(53),
                ..base.clone()
            },
            Question {
                host: text(ends.src),
                port: Some(53),
                ..base.clone()
            },
            Question {
                port: Some(ends.src_port),
                ..base.clone()
            },
        ]);
        // A dot behind a backslash does not end a label.
        let mut rest = name.as_str();
        while let Some((_, above)) = rest.split_once('.').filter(|_| !name.contains('\\')) {
            if !above.is_empty() {
                let domain = Some(format!("*.{above}"));
                questions.push(Question {
                    domain: domain.clone(),
                    ..Question::default()
                });
                questions.push(Question {
                    domain,
                    src: text(other.src),
                    ..Question::default()
                });
            }
            rest = above;
        }
    }
    questions
}

/// Every packet asked for stands in an answer, and every answer has such a packet.
fn check(question: &Question, scanned: &BTreeMap<PathBuf, Vec<Packet>>, archive: &Path) -> u64 {
    let (mut found, explained) = ask(archive, &question.query());
    assert_eq!(explained.problems, Vec::<String>::new());
    assert_eq!(
        explained.regions,
        explained.regions_by_node
            + explained.regions_by_time
            + explained.regions_by_filter
            + explained.regions_opened
    );
    let mut answers = 0;
    for (path, packets) in scanned {
        let records = found.remove(path).unwrap_or_default();
        answers += records.len() as u64;
        let covers = |record: &Record, ends: Ends, time_ns: i64| {
            let same_ends = record.directions().any(|of_record| {
                let same_hosts = (of_record.src, of_record.dst) == (ends.src, ends.dst);
                let ports = (of_record.src_port, of_record.dst_port);
                let same_ports = match record.domain {
                    Some(_) => of_record.dst_port == ends.dst_port,
                    None => ports == (ends.src_port, ends.dst_port),
                };
                same_hosts && same_ports
            });
            same_ends && record.start_ns <= time_ns && time_ns <= record.end_ns
        };
        let mut used = vec![false; records.len()];
        for packet in packets {
            for ends in question.matches(packet) {
                let mut covered = false;
                for (record, used) in records.iter().zip(&mut used) {
                    if covers(record, ends, packet.time_ns) {
                        covered = true;
                        *used = true;
                    }
                }
                assert!(
                    covered || !question.in_time(packet.time_ns),
                    "{question:?} misses {packet:?} of {}",
                    path.display()
                );
            }
        }
        assert!(
            used.iter().all(|used| *used),
            "{question:?}: an answer without a packet"
        );
        for record in &records {
            assert!(question.from_ns.is_none_or(|from| record.end_ns >= from));
            assert!(question.to_ns.is_none_or(|to| record.start_ns < to));
        }
    }
    assert!(
        found.is_empty(),
        "{question:?}: a capture that nobody added"
    );
    answers
}

fn compare_with_scan(captures: &[PathBuf], settings: Settings, nodes: usize, every: usize) {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let nodes: Vec<PathBuf> = (1..nodes)
        .map(|node| folder.path().join(format!("node-{node}")))
        .collect();
    build(&archive, settings, &nodes, captures);
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    let indexed: Vec<PathBuf> = {
        let captures = stats(&archive).unwrap().captures;
        captures.into_iter().map(|entry| entry.path).collect()
    };
    let scanned: BTreeMap<PathBuf, Vec<Packet>> = indexed
        .into_iter()
        .map(|path| (path.clone(), scan(&path)))
        .collect();
    let packets: Vec<&Packet> = scanned.values().flatten().collect();
    let questions = questions(&packets, every);
    let answered = questions
        .iter()
        .filter(|question| check(question, &scanned, &archive) > 0);
    let answered = answered.count();
    println!("{} questions, {answered} with answers", questions.len());
    assert!(answered > questions.len() / 4 && answered < questions.len());
}

#[test]
fn answers_are_those_of_a_scan() {
    let captures = repository_captures();
    assert!(captures.len() >= 4);
    compare_with_scan(&captures, settings(RegionFilter::Subset, 1), 1, 400);
    compare_with_scan(&captures, settings(RegionFilter::Subset, 300), 3, 1500);
    compare_with_scan(&captures, settings(RegionFilter::Cbfm, 2), 1, 1500);
    compare_with_scan(&captures, settings(RegionFilter::Mdbf, 2), 2, 1500);
}

#[test]
fn answers_are_those_of_a_scan_of_the_shared_captures() {
    let Some(folder) = std::env::var_os("FLOWSIEVE_TRACES") else {
        eprintln!("FLOWSIEVE_TRACES is unset: the shared captures were not searched");
        return;
    };
    let mut captures = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let length = fs::metadata(&path).unwrap().len();
            if path.is_dir() {
                folders.push(path);
            } else if length < 100_000 {
                // The large ones would make the naive side take minutes.
                captures.push(path);
            }
        }
    }
    captures.sort();
    assert!(captures.len() > 100);
    compare_with_scan(&captures, settings(RegionFilter::Subset, 5), 4, 1999);
}

/// The generated capture cut into pieces of so many packets, in files of a folder.
fn pieces(folder: &Path, packets: usize, most: usize) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/generated.pcap");
    let bytes = fs::read(path).unwrap();
    let mut at = 24;
    let mut paths = Vec::new();
    while at < bytes.len() && paths.len() < most {
        let start = at;
        for _ in 0..packets {
            if at < bytes.len() {
                let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
                at += 16 + length as usize;
            }
        }
        let path = folder.join(format!("{:03}.pcap", paths.len()));
        fs::write(&path, [&bytes[..24], &bytes[start..at]].concat()).unwrap();
        paths.push(path);
    }
    paths
}

/// What the index says of these questions, and how it came to it.
fn behaviour(archive: &Path, questions: &[Question]) -> Vec<(Vec<Record>, Explained)> {
    let ask = |question: &Question| {
        let (found, explained) = ask(archive, &question.query());
        (found.into_values().flatten().collect(), explained)
    };
    questions.iter().map(ask).collect()
}

/// Adds captures to an index of others, and drops them: it answers as one to which nobody added them.
/// With `to_the_bit` filters must rule out the same as well; a global filter that had to grow is larger
/// than that of the other index, and lets less through.
fn drop_what_was_added(packets: usize, stay: usize, leave: usize, to_the_bit: bool) {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), packets, stay + leave);
    let scanned: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
    let scanned: Vec<&Packet> = scanned.iter().collect();
    let questions = questions(&scanned, scanned.len() / 50);
    let (stay, leave) = paths.split_at(stay);
    let without = folder.path().join("without");
    build(&without, settings(RegionFilter::Subset, 300), &[], stay);
    let expected = behaviour(&without, &questions);

    let with = folder.path().join("with");
    build(&with, settings(RegionFilter::Subset, 300), &[], stay);
    let mut adding = writer(&with);
    for path in leave {
        let added = adding.add(path, &Unwatched).unwrap();
        assert!(
            matches!(added, Added::Indexed { damage: None, .. }),
            "{added:?}"
        );
        assert_eq!(adding.add(path, &Unwatched).unwrap(), Added::Known);
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
            assert!(
                found.1.nodes_ruled_out >= expected.1.nodes_ruled_out,
                "{question:?}"
            );
            assert!(
                found.1.regions_opened <= expected.1.regions_opened,
                "{question:?}"
            );
        }
    }
    assert_eq!(verify(&with).unwrap().problems, Vec::<String>::new());
    // Dropped as a directory: nothing is left, and nothing gets through the global filter.
    assert_eq!(dropping.drop_captures(folder.path()).unwrap(), stay.len());
    dropping.commit().unwrap();
    for (question, (records, explained)) in questions.iter().zip(behaviour(&with, &questions)) {
        // Of prefixes filters know nothing.
        let prefixes = [&question.src, &question.dst, &question.host];
        let exact = prefixes
            .iter()
            .all(|text| text.as_ref().is_none_or(|text| !text.contains('/')));
        assert_eq!((records.len(), explained.regions), (0, 0));
        assert!(explained.nodes_ruled_out == 1 || !exact, "{question:?}");
    }
    let node = fs::read_dir(with.join("node")).unwrap().count();
    assert_eq!(node, 1, "the global filter is all that is left");
}

#[test]
fn dropping_undoes_adding() {
    drop_what_was_added(15, 6, 4, true);
    drop_what_was_added(500, 6, 10, false);
}

#[test]
fn a_capture_is_known_by_its_content() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 300, 3);
    let archive = folder.path().join("archive");
    build(
        &archive,
        settings(RegionFilter::Subset, 300),
        &[],
        &paths[..1],
    );
    let mut writer = writer(&archive);
    let moved = folder.path().join("moved.pcap");
    fs::rename(&paths[0], &moved).unwrap();
    assert_eq!(writer.add(&moved, &Unwatched).unwrap(), Added::Known);
    // Another content under the same path takes the place of the first.
    fs::copy(&paths[1], &moved).unwrap();
    writer.add(&moved, &Unwatched).unwrap();
    writer.commit().unwrap();
    let captures = stats(&archive).unwrap().captures;
    let paths_now: Vec<&PathBuf> = captures.iter().map(|entry| &entry.path).collect();
    assert_eq!(paths_now, [&moved]);
    assert_eq!(captures[0].bytes, fs::metadata(&paths[1]).unwrap().len());
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
}

#[test]
fn packets_extracted_are_those_of_a_scan() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 500, 8);
    let archive = folder.path().join("archive");
    build(&archive, settings(RegionFilter::Subset, 300), &[], &paths);
    let packets: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
    let all: Vec<&Packet> = packets.iter().collect();
    let mut written = 0;
    for question in questions(&all, 500) {
        struct Captures(BTreeMap<u64, CaptureEntry>);
        impl HitSink for Captures {
            fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
                self.0.insert(hit.capture.id, hit.capture.clone());
                Ok(())
            }
        }
        let mut captures = Captures(BTreeMap::new());
        search(&archive, &question.query(), &mut captures).unwrap();
        let captures: Vec<CaptureEntry> = captures.0.into_values().collect();
        let out = folder.path().join("out.pcapng");
        let mut problems = Vec::new();
        let (_, count) = extract(
            &archive,
            &question.query(),
            &captures,
            fs::File::create(&out).unwrap(),
            WriteFormat::of_name(&out),
            &mut problems,
        )
        .unwrap();
        assert_eq!(problems, Vec::<String>::new());
        let expected: Vec<(i64, Ends)> = packets
            .iter()
            .filter(|packet| question.in_time(packet.time_ns))
            .filter(|packet| !question.matches(packet).is_empty())
            .map(|packet| (packet.time_ns, packet.ends))
            .collect();
        let found: Vec<(i64, Ends)> = scan(&out)
            .iter()
            .map(|packet| (packet.time_ns, packet.ends))
            .collect();
        assert_eq!(found, expected, "{question:?}");
        assert_eq!(count, expected.len() as u64);
        written += count;
    }
    assert!(written > 0);
}

#[test]
fn damage_is_named_and_the_rest_is_searched() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 4);
    let archive = folder.path().join("archive");
    build(&archive, settings(RegionFilter::Subset, 300), &[], &paths);
    let packets = scan(&paths[0]);
    let source = packets[0].ends.src;
    let query = Question {
        host: Some(source.to_string()),
        ..Question::default()
    }
    .query();
    let (whole, _) = ask(&archive, &query);
    assert!(whole.len() > 1);
    let mut files = Vec::new();
    let mut folders = vec![archive.join("node")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    assert_eq!(files.len(), 1 + 3 * paths.len());
    for path in files {
        let bytes = fs::read(&path).unwrap();
        for damage in 0..3 {
            let mut changed = bytes.clone();
            match damage {
                0 => changed[bytes.len() / 2] ^= 1,
                1 => changed.truncate(bytes.len() / 2),
                _ => changed.clear(),
            }
            fs::write(&path, &changed).unwrap();
            let name = path.display().to_string();
            let problems = verify(&archive).unwrap().problems;
            assert!(
                problems.iter().any(|problem| problem.contains(&name)),
                "{problems:?}"
            );
            let (found, explained) = ask(&archive, &query);
            if name.ends_with("records.parquet") {
                // The capture's own answers are gone, all others are there.
                assert!(found.len() >= whole.len() - 1);
                for (path, records) in &found {
                    assert_eq!(records, &whole[path]);
                }
            } else {
                assert_eq!(found, whole, "{name}");
            }
            assert!(
                explained
                    .problems
                    .iter()
                    .all(|problem| problem.contains(&name))
            );
        }
        fs::remove_file(&path).unwrap();
        let problems = verify(&archive).unwrap().problems;
        assert!(
            problems[0].contains(&path.display().to_string()),
            "{problems:?}"
        );
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    // The catalogue: nothing is believed that is not whole, and a newer format is called that.
    let path = archive.join("catalog.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("flowsieve.index/1", "flowsieve.index/2"),
    )
    .unwrap();
    let error = verify(&archive).unwrap_err();
    assert!(matches!(&error, IndexError::Newer { found, .. } if found == "flowsieve.index/2"));
    fs::write(&path, text.replacen("\"packets\":4", "\"packets\":5", 1)).unwrap();
    let error = verify(&archive).unwrap_err();
    assert!(matches!(error, IndexError::Catalog { .. }), "{error}");
}

#[test]
fn a_lost_global_filter_is_made_anew_by_the_next_writer() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 400, 4);
    let archive = folder.path().join("archive");
    build(&archive, settings(RegionFilter::Subset, 300), &[], &paths);
    for entry in fs::read_dir(archive.join("node")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(verify(&archive).unwrap().problems.len(), 1);
    let mut writer = writer(&archive);
    assert_eq!(writer.drop_captures(&paths[1]).unwrap(), 1);
    writer.commit().unwrap();
    let verified = verify(&archive).unwrap();
    assert_eq!((verified.captures, verified.problems.len()), (3, 0));
}

#[test]
fn there_is_one_writer_and_readers_go_on() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 200, 30);
    let archive = folder.path().join("archive");
    build(
        &archive,
        settings(RegionFilter::Subset, 300),
        &[],
        &paths[..2],
    );
    let mut writer = writer(&archive);
    let error = IndexWriter::open(&archive).unwrap_err();
    assert!(matches!(error, IndexError::Busy(_)), "{error}");
    let second = program(&["index", "add"], &archive, &paths[2..3])
        .wait_with_output()
        .unwrap();
    let words = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(words.contains("another flowsieve is writing"), "{words}");
    // Readers see one catalogue or the next, whatever the writer does between.
    let host = scan(&paths[0])[0].ends.src.to_string();
    let query = Question {
        host: Some(host),
        ..Question::default()
    }
    .query();
    let expected = ask(&archive, &query).0[&paths[0]].clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let started = Instant::now();
            let mut searches = 0;
            while started.elapsed() < Duration::from_secs(3) {
                let (found, explained) = ask(&archive, &query);
                assert_eq!(explained.problems, Vec::<String>::new());
                assert_eq!(found[&paths[0]], expected);
                searches += 1;
            }
            searches
        });
        let started = Instant::now();
        let mut commits = 0;
        while started.elapsed() < Duration::from_millis(2500) {
            for path in &paths[2..5] {
                writer.add(path, &Unwatched).unwrap();
                writer.commit().unwrap();
            }
            for path in &paths[2..5] {
                writer.drop_captures(path).unwrap();
                writer.commit().unwrap();
            }
            commits += 6;
        }
        let searches = reader.join().unwrap();
        println!("{searches} searches beside {commits} commits");
        assert!(searches > 10 && commits > 10);
    });
}

fn program(command: &[&str], archive: &Path, captures: &[PathBuf]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_flowsieve"))
        .args(command)
        .arg("--quiet")
        .arg(archive)
        .args(captures)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A few numbers that look random, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % end
    }
}

/// Kills the program at random moments of build, add and drop. After each the index opens, is whole, and
/// answers for what was committed before.
#[test]
fn a_killed_writer_leaves_what_was_committed() {
    const KILLS: usize = 210;
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 60, 8);
    let archive = folder.path().join("archive");
    let mut random = Random(7);
    // How long an operation takes, so that kills are spread over all of it.
    let mut usual = Duration::from_millis(60);
    let mut present: BTreeSet<PathBuf> = BTreeSet::new();
    let (mut killed, mut finished, mut runs) = (0, 0, 0);
    let mut of_kind = [0; 3];
    while killed < KILLS {
        runs += 1;
        assert!(runs < 4 * KILLS, "{killed} kills in {runs} runs");
        let some: Vec<PathBuf> = {
            let first = random.below(paths.len());
            let count = 1 + random.below(2);
            (first..first + count)
                .map(|at| paths[at % paths.len()].clone())
                .collect()
        };
        let kind = match random.below(8) {
            // Now and then from nothing.
            0 => 0,
            1..=3 => 2,
            _ if archive.join("catalog.json").exists() => 1,
            _ => 0,
        };
        if kind == 0 {
            let _ = fs::remove_dir_all(&archive);
            present.clear();
        }
        if kind == 2 && !archive.join("catalog.json").exists() {
            continue;
        }
        let command = ["build", "add", "drop"][kind];
        let started = Instant::now();
        let mut child = program(&["index", command], &archive, &some);
        sleep(usual.mul_f64(random.below(1300) as f64 / 1000.0));
        let was_running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if was_running && output.status.code().is_none() {
            killed += 1;
            of_kind[kind] += 1;
        } else {
            finished += 1;
            usual = usual.mul_f64(0.9)
                + started
                    .elapsed()
                    .min(Duration::from_millis(400))
                    .mul_f64(0.1);
        }
        if !archive.join("catalog.json").exists() {
            // Killed before there was an index; building it works as if nothing had been.
            assert!(present.is_empty());
            continue;
        }
        let verified = verify(&archive).unwrap();
        assert_eq!(verified.problems, Vec::<String>::new(), "run {runs}");
        let now: BTreeSet<PathBuf> = stats(&archive)
            .unwrap()
            .captures
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        let some: BTreeSet<PathBuf> = some.into_iter().collect();
        let with: BTreeSet<PathBuf> = present.union(&some).cloned().collect();
        let without: BTreeSet<PathBuf> = present.difference(&some).cloned().collect();
        match kind {
            2 => assert!(now.is_subset(&present) && now.is_superset(&without)),
            _ => assert!(now.is_superset(&present) && now.is_subset(&with)),
        }
        if output.status.success() {
            assert_eq!(now, if kind == 2 { without } else { with });
        }
        for path in now.iter().take(2) {
            let host = scan(path)[0].ends.src.to_string();
            let query = Question {
                host: Some(host),
                ..Question::default()
            }
            .query();
            assert!(!ask(&archive, &query).0[path].is_empty());
        }
        present = now;
    }
    println!(
        "{killed} kills (build, add, drop: {of_kind:?}) in {runs} runs, {finished} finished before"
    );
    assert!(finished > 0 && of_kind.iter().all(|count| *count > 0));
}

/// A value of more regions than a counter can count: what is dropped is forgotten all the same.
#[test]
fn what_saturated_a_counter_is_forgotten_too() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 20, 270);
    let archive = folder.path().join("archive");
    build(&archive, settings(RegionFilter::Subset, 300), &[], &paths);
    assert!(stats(&archive).unwrap().nodes[0].saturated > 0);
    let mut dropping = writer(&archive);
    for path in &paths[2..] {
        dropping.drop_captures(path).unwrap();
    }
    dropping.commit().unwrap();
    assert_eq!(stats(&archive).unwrap().nodes[0].saturated, 0);
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    let host = |packet: &Packet| packet.ends.src;
    let left: BTreeSet<IpAddr> = paths[..2]
        .iter()
        .flat_map(|path| scan(path))
        .map(|p| host(&p))
        .collect();
    let dropped: BTreeSet<IpAddr> = paths[2..]
        .iter()
        .flat_map(|path| scan(path))
        .map(|p| host(&p))
        .collect();
    let gone: Vec<&IpAddr> = dropped.difference(&left).collect();
    let mut ruled_out = 0;
    for address in &gone {
        let query = Question {
            src: Some(address.to_string()),
            ..Question::default()
        }
        .query();
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
