//! Tests of anonymized addresses: where they are replaced, by which, and what does not change.

use super::{flowsieve, program};
use flowsieve::anonymize::{AddressMap, AnonymizeKey, MacMap, PacketAnonymizer, VendorPart};
use flowsieve::decode::{Decoder, Tunnel};
use flowsieve::trace::{Capture, InputFormat, TraceBatch};
use serde_json::Value;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const KEY: [u8; 32] = *b"thirty-two bytes of no secret...";

const CAPTURES: [&str; 4] = [
    "traces/generated.pcap",
    "traces/netns-dns.pcap",
    "traces/netns-mirror.pcap",
    "traces/netns-web-loss.pcap",
];

fn key_in(folder: &Path) -> String {
    let path = folder.join("key");
    fs::write(&path, KEY).unwrap();
    path.into_os_string().into_string().unwrap()
}

fn map() -> AddressMap {
    AddressMap::new(&AnonymizeKey::new(KEY))
}

fn image(map: &mut AddressMap, text: &str) -> String {
    match text.parse().unwrap() {
        IpAddr::V4(address) => IpAddr::from(map.v4(address.octets())).to_string(),
        IpAddr::V6(address) => IpAddr::from(map.v6(address.octets())).to_string(),
    }
}

#[test]
fn flows_differ_in_their_addresses_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let mut map = map();
    for capture in CAPTURES {
        for unique in [&[][..], &["--unique"]] {
            let line = [&["flows", "--format", "json", capture], unique].concat();
            let old: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
            let line = [&line[..], &["--anonymize-key", &key]].concat();
            let new: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
            assert_eq!(old["parameters"]["anonymized"], false);
            assert_eq!(new["parameters"]["anonymized"], true);
            assert_eq!(old["totals"], new["totals"]);
            let flows = |document: &Value| document["flows"].as_array().unwrap().clone();
            assert!(!flows(&old).is_empty());
            for (mut old, mut new) in flows(&old).into_iter().zip(flows(&new)) {
                for end in ["src", "dst"] {
                    old[end] = image(&mut map, old[end].as_str().unwrap()).into();
                }
                // The Community ID depends on the addresses.
                for flow in [&mut old, &mut new] {
                    flow.as_object_mut().unwrap().remove("community_id");
                }
                assert_eq!(old, new);
            }
        }
    }
}

/// Returns time, bytes and link type of each packet.
fn packets(path: &Path) -> Vec<(i64, Vec<u8>, flowsieve::trace::LinkType)> {
    let mut capture = Capture::open(path, InputFormat::Auto).unwrap();
    let mut all = Vec::new();
    while let Some(batch) = capture.next_batch().unwrap() {
        let TraceBatch::Packets { bytes, packets } = batch else { panic!("no packets") };
        all.extend(packets.iter().map(|packet| {
            let start = packet.start as usize;
            let bytes = bytes[start..start + packet.captured as usize].to_vec();
            (packet.time_ns, bytes, packet.link)
        }));
    }
    all
}

/// Asserts that the packets of the second capture are those of the first with other addresses.
fn assert_images(old: &Path, new: &Path, map: &mut AddressMap) {
    let (old, new) = (packets(old), packets(new));
    assert_eq!(old.len(), new.len());
    let mut mapped = 0;
    for ((time, old, link), (new_time, new, _)) in old.iter().zip(&new) {
        assert_eq!((time, old.len()), (new_time, new.len()));
        for tunnel in [Tunnel::Outer, Tunnel::Inner] {
            let decoder = Decoder::new(tunnel);
            match (decoder.decode(*link, old), decoder.decode(*link, new)) {
                (Ok(old), Ok(new)) => {
                    assert_eq!(map.addresses(old.addresses), new.addresses);
                    assert_eq!(old.ports(), new.ports());
                    mapped += 1;
                }
                (old, new) => assert_eq!(old.unwrap_err(), new.unwrap_err()),
            }
        }
    }
    assert!(mapped > 0 || old.is_empty());
}

#[test]
fn answers_of_an_index_differ_in_their_addresses_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (archive, old_packets, new_packets) = (path("archive"), path("old.pcap"), path("new.pcap"));
    let mut map = map();
    flowsieve(&["index", "build", "--quiet", &archive, "traces"]).done();
    let asked = ["--host", "10.0.0.2", "--dst-port", "53"];
    let search = ["index", "search", &archive, "--format", "json"];
    let line = [&search[..], &asked].concat();
    let answers = |more: &[&str]| {
        let run = flowsieve(&[&line[..], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    let old = answers(&["-w", &old_packets]);
    let new = answers(&["-w", &new_packets, "--anonymize-key", &key]);
    assert_eq!((&old["anonymized"], &new["anonymized"]), (&false.into(), &true.into()));
    assert_eq!(old["explain"], new["explain"]);
    let hits = |document: &Value| document["hits"].as_array().unwrap().clone();
    assert!(hits(&old).len() > 10);
    for (mut old, new) in hits(&old).into_iter().zip(hits(&new)) {
        for end in ["src", "dst"] {
            old[end] = image(&mut map, old[end].as_str().unwrap()).into();
        }
        assert_eq!(old, new);
    }
    assert!(packets(Path::new(&old_packets)).len() > 10);
    assert_images(Path::new(&old_packets), Path::new(&new_packets), &mut map);
    let csv = ["--format", "csv", "--anonymize-key", &key];
    let line = [&search[..3], &asked, &csv].concat();
    assert!(!flowsieve(&line).done().contains("10.0.0.2,"));
}

/// The output with the option equals that without it, except for the addresses. This holds for kept
/// and for dropped packets, in both containers, and from one input and several that overlap.
#[test]
fn captures_differ_in_their_addresses_and_checksums_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let mut map = map();
    let inputs = CAPTURES.map(|capture| vec![capture]);
    let in_turns = vec![CAPTURES[1], CAPTURES[2], CAPTURES[1]];
    for inputs in inputs.iter().chain([&in_turns]) {
        for end in ["pcap", "pcapng"] {
            // These have several link types.
            if inputs.len() > 1 && end == "pcap" {
                continue;
            }
            let written = ["old-kept", "old-dropped", "new-kept", "new-dropped"]
                .map(|name| path(&format!("{name}.{end}")));
            let [old_kept, old_dropped, new_kept, new_dropped] =
                written.each_ref().map(|path| path.to_str().unwrap());
            let line = [&["dedup", "--quiet"], &inputs[..]].concat();
            flowsieve(&[&line[..], &["-w", old_kept, "--dropped", old_dropped]].concat()).done();
            let new = ["-w", new_kept, "--dropped", new_dropped];
            flowsieve(&[&line[..], &new, &["--anonymize-key", &key]].concat()).done();
            for (old, new) in [(old_kept, new_kept), (old_dropped, new_dropped)] {
                assert_images(Path::new(old), Path::new(new), &mut map);
            }
        }
    }
}

/// The Ethernet addresses of every packet are their images; with their vendors, only the last three
/// bytes are.
#[test]
fn mac_addresses_in_captures_are_images() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let new = folder.path().join("new.pcapng");
    let capture = CAPTURES[3];
    for (more, vendor) in [(&[][..], VendorPart::Replaced), (&["--keep-vendors"], VendorPart::Kept)]
    {
        let mut map = MacMap::new(&AnonymizeKey::new(KEY), vendor);
        let line = ["dedup", "-q", "--window", "1p", capture, "-w"];
        let line = [&line[..], &[new.to_str().unwrap(), "--anonymize-key", &key], more].concat();
        flowsieve(&line).done();
        let (old, new) = (packets(Path::new(capture)), packets(&new));
        assert_eq!(old.len(), new.len());
        let mut changed = 0;
        for ((_, old, _), (_, new, _)) in old.iter().zip(&new) {
            for at in [0, 6] {
                let old: [u8; 6] = old[at..at + 6].try_into().unwrap();
                assert_eq!(new[at..at + 6], map.image(old));
                changed += u32::from(new[at..at + 6] != old);
            }
        }
        assert!(changed > 100);
    }
    for (line, words) in [
        (&["dedup", capture, "-w", "x.pcap", "--keep-vendors"][..], "--anonymize"),
        (
            &["index", "search", "x", "--host", "1.1.1.1", "--anonymize", "--keep-vendors"],
            "goes with -w",
        ),
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains(words), "{}", run.err);
    }
}

/// Returns time, length on the wire, bytes and link type of each packet.
fn with_lengths(path: &Path) -> Vec<(i64, u32, Vec<u8>, flowsieve::trace::LinkType)> {
    let mut capture = Capture::open(path, InputFormat::Auto).unwrap();
    let mut all = Vec::new();
    while let Some(batch) = capture.next_batch().unwrap() {
        let TraceBatch::Packets { bytes, packets } = batch else { panic!("no packets") };
        all.extend(packets.iter().map(|packet| {
            let bytes = &bytes[packet.start as usize..][..packet.captured as usize];
            (packet.time_ns, packet.wire, bytes.to_vec(), packet.link)
        }));
    }
    all
}

/// Packets that are cut after their headers decode as before and have no payload; the rest is
/// unchanged, also if addresses are replaced.
#[test]
fn packets_are_cut_behind_their_headers() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    for capture in CAPTURES {
        for (end, more) in
            [("pcap", &[][..]), ("pcapng", &[]), ("pcap", &["--anonymize-key", &key])]
        {
            let path = |name: &str| folder.path().join(format!("{name}.{end}"));
            let (whole, cut) = (path("whole"), path("cut"));
            let line = [&["dedup", "-q", "--window", "1p", capture], more].concat();
            flowsieve(&[&line[..], &["-w", whole.to_str().unwrap()]].concat()).done();
            let snap = ["--snaplen", "headers", "-w", cut.to_str().unwrap()];
            flowsieve(&[&line[..], &snap].concat()).done();
            let (old, new) = (with_lengths(&whole), with_lengths(&cut));
            assert_eq!(old.len(), new.len());
            let (mut tcp, mut shorter) = (0, 0);
            for ((time, wire, old, link), (new_time, new_wire, new, _)) in old.iter().zip(&new) {
                assert_eq!((time, wire), (new_time, new_wire));
                assert!(old.starts_with(new));
                shorter += u32::from(new.len() < old.len());
                let of = |frame| Decoder::default().decode(*link, frame);
                let (Ok(old), Ok(new)) = (of(old), of(new)) else { continue };
                assert_eq!((old.addresses, old.protocol), (new.addresses, new.protocol));
                assert_eq!((old.ports(), old.bytes), (new.ports(), new.bytes));
                if let Some(offset) = new.transport.get(12).filter(|_| new.protocol == 6) {
                    assert_eq!(new.transport.len(), usize::from(offset >> 4) * 4);
                    tcp += 1;
                }
                if new.protocol == 17 {
                    assert_eq!(new.transport.len(), 8);
                }
            }
            assert!(shorter > 0, "{capture}");
            if capture.contains("web") {
                assert!(tcp > 100);
                let files = [&whole, &cut].map(|path| has(&fs::read(path).unwrap(), b"HTTP/1."));
                assert_eq!(files, [true, false]);
            }
            assert!(fs::metadata(&cut).unwrap().len() < fs::metadata(&whole).unwrap().len());
        }
    }
}

/// Packets cut to a number of bytes; the file states that none is longer.
#[test]
fn packets_are_cut_to_a_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let capture = CAPTURES[3];
    let old = with_lengths(Path::new(capture));
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    for name in ["cut.pcap", "cut.pcapng"] {
        let (out, dropped) = (path(name), path(&format!("dropped-{name}")));
        let line = ["dedup", "-q", "--format", "json", "--by", "flow", capture];
        let out_names = ["-w", out.to_str().unwrap(), "--dropped", dropped.to_str().unwrap()];
        let line = [&line[..], &out_names, &["--snaplen", "70"]].concat();
        let report: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
        assert_eq!(report["parameters"]["snap_bytes"], 70);
        assert_eq!(report["parameters"]["headers_only"], false);
        let mut new = [with_lengths(&out), with_lengths(&dropped)].concat();
        new.sort_by_key(|packet| packet.0);
        assert_eq!(new.len(), old.len());
        for (old, new) in old.iter().zip(&new) {
            assert_eq!((old.0, old.1), (new.0, new.1));
            assert_eq!(new.2, old.2[..old.2.len().min(70)]);
        }
        let bytes = fs::read(&out).unwrap();
        // The length in the header of the file, or in the interface after the section header block.
        let stated = match name {
            "cut.pcap" => word(&bytes, 16),
            _ => word(&bytes, word(&bytes, 4) as usize + 12),
        };
        assert_eq!(stated, 70);
    }
    for (line, words) in [
        (["--snaplen", "0", "-w", "x.pcap"], "such as 96"),
        (["--snaplen", "header", "-w", "x.pcap"], "behind their headers: headers"),
        (["--snaplen", "99999999999", "-w", "x.pcap"], "such as 96"),
        (["--snaplen", "headers", "--dry-run", "-q"], "leave out"),
    ] {
        let run = flowsieve(&[&["dedup", capture], &line[..]].concat());
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains(words), "{}", run.err);
    }
}

/// Descriptions of interfaces and comments on packets may name anything; they are dropped.
#[test]
fn words_in_captures_are_left_away() {
    let option = |code: u16, value: &[u8]| {
        let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes(), &length[..], body, &length].concat()
    };
    let frame: Vec<u8> = [
        &[2; 12][..],
        &[8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 99, 0, 0, 10, 9, 8, 7, 10, 9, 8, 6],
        &[0, 0],
    ]
    .concat();
    let words = [0_u32, 0, 1_000_000, 34, 34].map(u32::to_le_bytes).concat();
    let capture = [
        block(
            0x0a0d_0d0a,
            &[&0x1a2b_3c4d_u32.to_le_bytes(), &[1, 0, 0, 0][..], &[255; 8]].concat(),
        ),
        block(
            1,
            &[
                &[1, 0, 0, 0, 0, 0, 0, 0][..],
                &option(2, b"eth-secret"),
                &option(4, &[10, 9, 8, 1, 255, 0, 0, 0]),
                &option(9, &[9]),
                &option(11, b"\0host 10.9.8.7"),
                &option(0, b""),
            ]
            .concat(),
        ),
        block(6, &[&words, &frame[..], &option(1, b"my comment"), &option(0, b"")].concat()),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.pcapng"), folder.path().join("new.pcapng"));
    fs::write(&old, &capture).unwrap();
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let key = key_in(folder.path());
    let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    let secrets: [&[u8]; 6] =
        [b"eth-secret", b"host 10", b"my comment", &[10, 9, 8, 1], &[10, 9, 8, 7], &[10, 9, 8, 6]];
    flowsieve(&["dedup", old, "-w", new]).done();
    let bytes = fs::read(new).unwrap();
    assert!(secrets.iter().all(|secret| has(&bytes, secret)));
    flowsieve(&["dedup", old, "-w", new, "--anonymize-key", &key]).done();
    let bytes = fs::read(new).unwrap();
    assert!(!secrets.iter().any(|secret| has(&bytes, secret)));
    let times = |path: &str| -> Vec<i64> { packets(Path::new(path)).iter().map(|p| p.0).collect() };
    assert_eq!(times(old), times(new), "the clock's resolution stays");
}

#[test]
fn matrices_have_other_prefixes_and_the_same_packets() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_in(folder.path());
    let mut map = map();
    for bits in ["8", "19", "24", "32"] {
        let rows = |more: &[&str]| {
            let path = folder.path().join("od.csv");
            let out = ["--od", bits, "--od-out", path.to_str().unwrap()];
            flowsieve(&[&["count", "traces/generated.pcap"][..], &out, more].concat()).done();
            let text = fs::read_to_string(path).unwrap();
            let rows = text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect());
            let mut rows: Vec<Vec<String>> = rows.collect();
            rows.sort();
            rows
        };
        let new = rows(&["--anonymize-key", &key]);
        let mut old = rows(&[]);
        for prefix in old.iter_mut().flat_map(|row| &mut row[..2]) {
            // Cut the image of the prefix, which has any bits behind it.
            let (address, bits) = prefix.split_once('/').unwrap_or((prefix, "32"));
            let image = image(&mut map, address);
            let bits: u32 = bits.parse().unwrap();
            let cut = match image.parse().unwrap() {
                IpAddr::V4(image) => {
                    IpAddr::V4((u32::from(image) & (u32::MAX << (32 - bits))).into())
                }
                IpAddr::V6(image) => {
                    IpAddr::V6((u128::from(image) & (u128::MAX << (128 - bits))).into())
                }
            };
            *prefix = match prefix.split_once('/') {
                Some((_, bits)) => format!("{cut}/{bits}"),
                None => cut.to_string(),
            };
        }
        old.sort();
        assert!(old.len() > 1);
        assert_eq!(old, new, "{bits}");
    }
}

#[test]
fn keys_are_checked_and_random_ones_announced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let name = path.to_str().unwrap();
    let line = ["flows", "traces/netns-dns.pcap", "--anonymize-key", name];
    for (bytes, words) in [
        (None, "cannot be read"),
        (Some(vec![1; 31]), "a key has 32 bytes, and 31 are there"),
        (Some(vec![1; 33]), "a key has 32 bytes, and more are there"),
    ] {
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
        let run = flowsieve(&line);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert!(run.err.starts_with(&format!("flowsieve: {name}: ")));
        assert!(run.err.contains(words), "{}", run.err);
        assert!(run.err.contains("head -c 32 /dev/urandom > FILE"));
    }
    fs::write(&path, [1; 32]).unwrap();
    let first = flowsieve(&line).done();
    assert_eq!(flowsieve(&line).done(), first);
    fs::write(&path, [2; 32]).unwrap();
    assert_ne!(flowsieve(&line).done(), first);

    let line = ["flows", "traces/netns-dns.pcap", "--anonymize"];
    let (one, two) = (flowsieve(&line), flowsieve(&line));
    assert_eq!((one.code, two.code), (Some(0), Some(0)));
    assert!(one.sentence().contains("cannot be joined"));
    assert_ne!(one.out, two.out);
    let quiet = program(&line).arg("--quiet").output().unwrap();
    assert!(quiet.stderr.is_empty());
}

#[test]
fn where_there_is_nothing_to_replace_it_is_refused() {
    let capture = "traces/netns-dns.pcap";
    for (line, words) in [
        (&["count", capture, "--anonymize"][..], "goes with --od"),
        (&["dedup", capture, "--dry-run", "--anonymize"], "leave out"),
        (
            &[
                "count",
                capture,
                "--od",
                "24",
                "--od-out",
                "x.csv",
                "--slice",
                "all",
                "--save-filter",
                "x",
                "--anonymize",
            ],
            "saved filter",
        ),
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains(words), "{}", run.err);
    }
}

/// Debug output of keys does not reveal them.
#[test]
fn keys_are_not_shown() {
    let key = AnonymizeKey::new(KEY);
    assert_eq!(format!("{key:?}"), "AnonymizeKey(…)");
    assert!(
        !format!("{:?}", PacketAnonymizer::new(&key, VendorPart::Replaced)).contains("116, 104")
    );
}
