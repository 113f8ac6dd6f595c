//! pcapng files with content that other containers cannot hold: times far away, and blocks other
//! than packets.

use super::{document, flowsieve};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Returns a little-endian block.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &length[..], &body, &length].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn section(options: &[Vec<u8>]) -> Vec<u8> {
    let head = [&0x1a2b_3c4d_u32.to_le_bytes(), &[1, 0, 0, 0][..], &[255; 8]].concat();
    block(0x0a0d_0d0a, &[head, options.concat()].concat())
}

/// Returns an interface with Ethernet.
fn interface(options: &[Vec<u8>]) -> Vec<u8> {
    interface_of(1, options)
}

/// Returns an interface with this link type.
fn interface_of(link: u8, options: &[Vec<u8>]) -> Vec<u8> {
    let head = [link, 0, 0, 0, 0, 0, 0, 0];
    block(1, &[&head[..], &options.concat()].concat())
}

fn packet(interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let words = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
    let words = words.map(u32::to_le_bytes).concat();
    block(6, &[&words, frame].concat())
}

/// An Ethernet frame with an IPv4 packet.
fn frame() -> Vec<u8> {
    let ip = [8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 99, 0, 0, 10, 9, 8, 7, 10, 9, 8, 6];
    [&[2; 12][..], &ip].concat()
}

/// Returns a capture with a resolution of seconds: pairs of equal packets a hundred years apart
/// beyond both ends of the supported range, and pairs within it.
fn far_away() -> Vec<u8> {
    const CENTURY: u64 = 3_155_760_000;
    // Options 9 and 14 of an interface: the resolution, and the offset in seconds.
    let long_ago = (-30 * CENTURY.cast_signed()).to_le_bytes();
    [
        section(&[]),
        interface(&[option(9, &[0])]),
        interface(&[option(9, &[0]), option(14, &long_ago)]),
        packet(1, 0, &frame()),
        packet(1, CENTURY, &frame()),
        packet(0, 1_000_000_000, &frame()),
        packet(0, 1_000_000_000, &frame()),
        packet(0, 10_000_000_000, &frame()),
        packet(0, 10_000_000_000 + CENTURY, &frame()),
    ]
    .concat()
}

fn dedup(line: &[&str]) -> (Value, String) {
    let run = flowsieve(&[&["dedup", "--format", "json"], line].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    (serde_json::from_str(&run.out).unwrap(), run.err)
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn times_out_of_range_are_counted_and_make_no_twins() {
    let folder = tempfile::tempdir().unwrap();
    let far = written(folder.path(), "far.pcapng", &far_away());
    let out = folder.path().join("out.pcapng");
    let out = out.to_str().unwrap();
    let sentence = |place: &str, count: u64| {
        format!(
            "flowsieve: {place}: {count} packets have times outside 1677 to 2262; they count at the nearest time in that range\n"
        )
    };
    for extra in [&[][..], &["--approximate"], &["--by", "frame"], &["--window", "1000d"]] {
        let line = [&[&far, "-w", out], extra].concat();
        let (document, said) = dedup(&line);
        assert_eq!(document["totals"]["dropped"], 1, "{extra:?}");
        assert_eq!(document["totals"]["not_compared"], 4, "{extra:?}");
        assert_eq!(document["inputs"][0]["times_out_of_range"], 4);
        assert_eq!(said, sentence(&far, 4), "{extra:?}");
    }
    // The output has the times of the input.
    let (again, said) = dedup(&[out, "--dry-run"]);
    assert_eq!(again["totals"]["packets"], 5);
    assert_eq!(said, sentence(out, 4));
    // A window of packets needs no times.
    let (by_number, _) = dedup(&[&far, "-w", out, "--window", "2p", "--quiet"]);
    assert_eq!(by_number["totals"]["dropped"], 5);

    let (counted, run) = document(&[&far, &far]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains(&sentence("2 inputs", 8)), "{}", run.err);
    for input in counted["inputs"].as_array().unwrap() {
        assert_eq!(input["times_out_of_range"], 4);
    }
    // An end beyond the range leaves none of them out.
    let (counted, _) = document(&[&far, "--to", "2300-01-01"]);
    assert_eq!(counted["totals"]["packets"], 6);
    assert_eq!(flowsieve(&["flows", &far]).err, sentence(&far, 4));
    assert_eq!(flowsieve(&["flows", "--quiet", &far]).err, sentence(&far, 4));
    // Rows are marked, too.
    let run = flowsieve(&["count", "--quiet", "--format", "csv", &far]);
    assert_eq!((run.code, &run.err), (Some(0), &sentence(&far, 4)));
    let rows = run.out;
    let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let (packets, mark) = (column("packets"), column("out_of_range"));
    let marked: Vec<_> = lines.map(|row| (row[packets], row[mark])).collect();
    assert_eq!(marked.iter().filter(|(_, mark)| *mark == "true").count(), 2, "{rows}");
    assert!(marked.iter().any(|(_, mark)| *mark == "false"), "{rows}");
    let index = folder.path().join("index");
    let built = flowsieve(&["index", "build", index.to_str().unwrap(), &far]);
    assert!(built.err.contains(&sentence(&far, 4)), "{}", built.err);

    let log = "ts,src,dst,qname\n1e30,10.0.0.1,10.0.0.2,a.example\n5,10.0.0.1,10.0.0.2,b.example\n";
    let log = written(folder.path(), "log.csv", log.as_bytes());
    let (counted, run) = document(&["--element", "dns", &log]);
    assert_eq!(counted["inputs"][0]["times_out_of_range"], 1);
    let one =
        "1 packet has a time outside 1677 to 2262; it counts at the nearest time in that range";
    assert!(run.err.contains(one), "{}", run.err);
}

#[test]
fn copies_in_erf_records_are_copies_whatever_their_headers_say() {
    const ERF: u8 = 197;
    let folder = tempfile::tempdir().unwrap();
    // Time, type, flags, length, loss counter, length on the wire; an extension header; then the
    // captured bytes.
    let record = |time: u64, kind: u8, content: &[u8]| {
        let mut record = time.to_le_bytes().to_vec();
        record.extend([kind | 0x80, time as u8, 0, 24 + content.len() as u8, 0, time as u8]);
        record.extend((content.len() as u16).to_be_bytes());
        record.extend([0, 0, 0, 0, 0, 0, 0, time as u8]);
        record.extend(content);
        record
    };
    let ethernet = [&[0, 0], &frame()[..]].concat();
    let arp = [&[0, 0], &[2; 12][..], &[8, 6], &[7; 46]].concat();
    // The content of the last kind of record cannot be decoded.
    for (kind, content) in [(2, &ethernet[..]), (2, &arp), (27, &[9; 20])] {
        let other = [&content[..content.len() - 1], &[99]].concat();
        let capture = [
            section(&[]),
            interface_of(ERF, &[]),
            packet(0, 5_000_000, &record(5 << 32, kind, content)),
            packet(0, 5_000_001, &record(6 << 32, kind, content)),
            packet(0, 5_000_002, &record(6 << 32, kind, &other)),
        ]
        .concat();
        let capture = written(folder.path(), "erf.pcapng", &capture);
        let out = folder.path().join("out.pcapng");
        for by in ["packet", "frame"] {
            let line = ["--by", by, &capture, "-w", out.to_str().unwrap()];
            let (document, _) = dedup(&line);
            assert_eq!(document["totals"]["kept"], 2, "{by}, type {kind}");
        }
    }
}

/// Returns a capture with secrets, names, a comment, a custom block, and a packet twice.
fn annotated() -> Vec<u8> {
    let secrets = [&0x544c_534b_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), b"CLIENT_R"].concat();
    let names = [&[1, 0, 13, 0, 10, 9, 8, 7][..], b"my-host.a\0\0\0", &[0; 4]].concat();
    let custom = [&32_473_u32.to_le_bytes()[..], b"of my own"].concat();
    [
        section(&[option(1, b"section comment")]),
        interface(&[]),
        block(10, &secrets),
        packet(0, 5_000_000, &frame()),
        block(0x0bad, &custom),
        packet(0, 5_000_001, &frame()),
        block(4, &names),
    ]
    .concat()
}

#[test]
fn what_stands_besides_packets_is_kept_or_its_loss_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let input = written(folder.path(), "in.pcapng", &annotated());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, dropped, pcap) = (path("out.pcapng"), path("dropped.pcapng"), path("out.pcap"));
    let words: [&[u8]; 4] = [b"section comment", b"CLIENT_R", b"of my own", b"my-host.a"];
    let has = |path: &str| {
        let bytes = fs::read(path).unwrap();
        words.map(|word| bytes.windows(word.len()).any(|part| part == word))
    };
    let (document, said) = dedup(&[&input, "-w", &out, "--dropped", &dropped]);
    assert_eq!(document["totals"]["dropped"], 1);
    assert_eq!((has(&out), has(&dropped), said.as_str()), ([true; 4], [true; 4], ""));

    // Anonymizing has to remove names and keys, so they are dropped without a message.
    let key = written(folder.path(), "key", &[7; 32]);
    let (_, said) = dedup(&[&input, "-w", &out, "--anonymize-key", &key]);
    assert_eq!((has(&out), said.as_str()), ([false; 4], ""));

    let each = "what was written lacks 1 decryption secrets block, 1 name resolution block, 1 custom block \
                and 1 section comment; ";
    let (_, said) = dedup(&[&input, "-w", &pcap]);
    let remedy = "pcap cannot store them, so give the output a name that ends in .pcapng\n";
    assert_eq!(said, format!("flowsieve: {each}{remedy}"));
    assert_eq!(has(&pcap), [false; 4]);
    assert_eq!(dedup(&[&input, "-w", &pcap, "--quiet"]).1, "");
    assert_eq!(dedup(&[&input, "--dry-run"]).1, "");
    let (_, said) = dedup(&[&input, "traces/generated.pcap", "-w", &out]);
    assert_eq!(said, format!("flowsieve: {each}only a single input has them copied, to pcapng\n"));
    assert_eq!(has(&out), [false; 4]);

    // A file without packets has them, too.
    let empty = [section(&[option(1, b"section comment")]), interface(&[]), block(10, &[0; 8])];
    let empty = written(folder.path(), "empty.pcapng", &empty.concat());
    dedup(&[&empty, "-w", &out]);
    assert!(has(&out)[0]);
    // pcap has no such blocks.
    assert_eq!(dedup(&["traces/generated.pcap", "-w", &out]).1, "");
}
