//! Tests of `flowsieve export`: the packets and elements, which are the same in every format and
//! for any number of threads.

use super::formats::{documented_set, fields, lines_of_one_schema, parquet_is_the_csv};
use super::{feed, flowsieve, record_offsets, sample};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

const CAPTURES: [&str; 3] =
    ["traces/generated.pcap", "traces/netns-dns.pcap", "traces/netns-web-loss.pcap"];

const KINDS: [&str; 5] = ["host-pair", "flow", "dns", "src", "dst"];

fn export(args: &[&str]) -> String {
    flowsieve(&[&["export"], args].concat()).done()
}

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&export(&[&["--format", "json"], args].concat())).unwrap()
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// Decodes an Ethernet frame independently of the program.
fn look(frame: &[u8]) -> Option<Value> {
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let (mut at, mut kind, mut vlan) = (14, word(12), None);
    while kind == 0x8100 || kind == 0x88a8 {
        vlan = vlan.or(Some(word(at) & 0xfff));
        (kind, at) = (word(at + 2), at + 4);
    }
    let (src, dst, protocol, bytes, upper): (String, String, u8, u16, usize) = match kind {
        0x0800 => {
            let address = |at: usize| Ipv4Addr::from(*frame[at..].first_chunk::<4>().unwrap());
            let header = usize::from(frame[at] & 15) * 4;
            let ends = [address(at + 12), address(at + 16)].map(|end| end.to_string());
            let [src, dst] = ends;
            (src, dst, frame[at + 9], word(at + 2), at + header)
        }
        0x86dd => {
            let address = |at: usize| Ipv6Addr::from(*frame[at..].first_chunk::<16>().unwrap());
            let ends = [address(at + 8), address(at + 24)].map(|end| end.to_string());
            let [src, dst] = ends;
            (src, dst, frame[at + 6], word(at + 4) + 40, at + 40)
        }
        _ => return None,
    };
    let has_ports = matches!(protocol, 6 | 17);
    let ports = if has_ports { (word(upper), word(upper + 2)) } else { (0, 0) };
    let message = frame.get(upper + 8..).unwrap_or_default();
    let is_dns = protocol == 17 && (ports.0 == 53 || ports.1 == 53) && message.len() > 12;
    let question = is_dns.then(|| {
        let (mut at, mut labels) = (12, Vec::new());
        while message[at] != 0 {
            let end = at + 1 + usize::from(message[at]);
            let label = String::from_utf8(message[at + 1..end].to_vec()).unwrap();
            labels.push(label.to_lowercase());
            at = end;
        }
        let kind = u16::from_be_bytes([message[at + 1], message[at + 2]]);
        let is_response = message[2] & 0x80 != 0;
        (labels.join("."), kind, is_response.then_some(message[3] & 15))
    });
    Some(json!({
        "src": src, "dst": dst, "src_port": ports.0, "dst_port": ports.1, "proto": protocol, "bytes": bytes,
        "tcp_flags": (protocol == 6).then(|| frame[upper + 13]), "vlan": vlan,
        "domain": question.as_ref().map(|question| &question.0),
        "dns_type": question.as_ref().map(|question| question.1),
        "dns_rcode": question.as_ref().and_then(|question| question.2),
    }))
}

#[test]
fn each_packet_is_a_row_with_what_its_bytes_say() {
    let (path, pcap) = sample();
    let offsets = record_offsets(&pcap);
    let word = |at: usize| i64::from(u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap()));
    let expected = offsets.windows(2).filter_map(|ends| {
        let mut row = look(&pcap[ends[0] + 16..ends[1]])?;
        // The magic number decides between nanoseconds and microseconds.
        let fraction = if pcap[0] == 0x4d { 1 } else { 1000 };
        row["start_ns"] = json!(word(ends[0]) * 1_000_000_000 + word(ends[0] + 4) * fraction);
        Some(row)
    });
    let expected: Vec<Value> = expected.collect();
    let document = document(&["--all", path.to_str().unwrap()]);
    let mut found = rows(&document).to_vec();
    for row in &mut found {
        let row = row.as_object_mut().unwrap();
        row.remove("start");
        assert!(row.remove("community_id").is_some());
    }
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    let some = |name: &str| expected.iter().any(|row| !row[name].is_null());
    assert!(["vlan", "tcp_flags", "domain", "dns_rcode"].into_iter().all(some));
    let totals = &document["totals"];
    let skipped: u64 = totals["skipped"]
        .as_object()
        .unwrap()
        .values()
        .map(|packets| packets.as_u64().unwrap())
        .sum();
    assert_eq!(totals["packets"].as_u64(), Some(offsets.len() as u64 - 1));
    assert_eq!(totals["rows"].as_u64().unwrap() + skipped, offsets.len() as u64 - 1);
}

/// Returns the five-tuple of each row and its Community ID.
fn identifiers(rows: &[Value]) -> BTreeMap<String, String> {
    let tuple = |row: &Value| {
        let names = ["src", "dst", "src_port", "dst_port", "proto"];
        names.map(|name| row[name].to_string()).join(" ")
    };
    let identified = rows.iter().filter(|row| row["proto"] != 1 && row["proto"] != 58);
    identified.map(|row| (tuple(row), row["community_id"].to_string())).collect()
}

#[test]
fn community_ids_are_those_of_the_flows() {
    for capture in CAPTURES {
        let flows = flowsieve(&["flows", "--format", "json", capture]).done();
        let flows: Value = serde_json::from_str(&flows).unwrap();
        let flows = identifiers(flows["flows"].as_array().unwrap());
        assert_eq!(identifiers(rows(&document(&["--all", capture]))), flows);
        let elements = document(&["--slice", "all", capture]);
        assert_eq!(identifiers(rows(&elements)), flows);
    }
}

#[test]
fn elements_are_those_that_a_count_finds() {
    for capture in CAPTURES {
        for kind in KINDS {
            for options in [
                &["--slice", "1s"][..],
                &["--slice", "250ms", "--align", "first"],
                &["--undirected"],
                &["--queries-only"],
                &["--queries-only", "--undirected", "--slice", "all"],
            ] {
                let has_two_ends = !matches!(kind, "src" | "dst");
                if options.contains(&"--undirected") && !has_two_ends
                    || options.contains(&"--queries-only") && kind != "dns"
                {
                    let run =
                        flowsieve(&[&["export"], options, &["--element", kind, capture]].concat());
                    assert_eq!(run.code, Some(2));
                    continue;
                }
                let line = [options, &["--element", kind, capture]].concat();
                let count = flowsieve(
                    &[&["count", "--filter", "exact", "--format", "json"][..], &line].concat(),
                );
                let count: Value = serde_json::from_str(&count.done()).unwrap();
                let slices = count["slices"].as_array().unwrap();
                let expected: Vec<(i64, u64, u64)> = slices
                    .iter()
                    .map(|slice| {
                        let number = |name: &str| slice[name].as_u64().unwrap();
                        let start = slice["start_ns"].as_i64().unwrap();
                        (start, number("exact"), number("elements"))
                    })
                    .filter(|&(_, exact, _)| exact > 0)
                    .collect();
                let document = document(&line);
                let mut found = vec![(0, 0); expected.len()];
                for row in rows(&document) {
                    let time = row["start_ns"].as_i64().unwrap();
                    let slice = expected.iter().rposition(|&(start, ..)| start <= time);
                    let (elements, packets) = &mut found[slice.unwrap()];
                    *elements += 1;
                    *packets += row["packets"].as_u64().unwrap();
                    assert_eq!(row["ended"], "slice");
                }
                let expected: Vec<(u64, u64)> =
                    expected.iter().map(|&(_, exact, elements)| (exact, elements)).collect();
                assert_eq!(found, expected, "{line:?}");
                assert_eq!(document["totals"]["slices"], expected.len());
            }
        }
    }
}

#[test]
fn elements_have_the_packets_and_bytes_of_their_flow() {
    for capture in CAPTURES {
        let flows = flowsieve(&["flows", "--format", "json", capture]).done();
        let flows: Value = serde_json::from_str(&flows).unwrap();
        let elements = document(&["--slice", "all", capture]);
        let names = [
            "start_ns",
            "src",
            "dst",
            "src_port",
            "dst_port",
            "proto",
            "packets",
            "bytes",
            "tcp_flags",
            "vlan",
            "domain",
            "community_id",
        ];
        let of = |rows: &[Value]| -> BTreeSet<String> {
            rows.iter().map(|row| names.map(|name| row[name].to_string()).join(" ")).collect()
        };
        assert_eq!(of(rows(&elements)), of(flows["flows"].as_array().unwrap()));
    }
}

#[test]
fn of_both_directions_the_first_packet_says_which_ends_are_which() {
    for capture in CAPTURES {
        let directed = document(&["--slice", "all", capture]);
        let ends =
            |row: &Value, names: [&str; 5]| names.map(|name| row[name].to_string()).join(" ");
        let there = ["src", "dst", "src_port", "dst_port", "proto"];
        let back = ["dst", "src", "dst_port", "src_port", "proto"];
        let flows: BTreeMap<String, &Value> =
            rows(&directed).iter().map(|row| (ends(row, there), row)).collect();
        let both = document(&["--slice", "all", "--undirected", capture]);
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
        let mut seen = 0;
        for row in rows(&both) {
            let first = flows[&ends(row, there)];
            let is_alone = ends(row, there) == ends(row, back);
            let second = flows.get(&ends(row, back)).filter(|_| !is_alone);
            seen += 1 + usize::from(second.is_some());
            for name in ["packets", "bytes"] {
                let back = second.map_or(0, |second| number(second, name));
                assert_eq!(number(row, name), number(first, name) + back, "{row}");
            }
            assert_eq!((&row["start_ns"], &row["vlan"]), (&first["start_ns"], &first["vlan"]));
            assert!(
                second.is_none_or(|second| number(second, "start_ns") >= number(row, "start_ns"))
            );
        }
        assert_eq!(seen, flows.len());
    }
}

#[test]
fn types_and_codes_of_dns_have_the_names_of_others() {
    let capture = "traces/netns-dns.pcap";
    let numbers = document(&["--all", capture]);
    let ecs = document(&["--all", "--names", "ecs", capture]);
    let zeek = document(&["--all", "--names", "zeek", capture]);
    let mut seen = BTreeSet::new();
    for ((row, ecs), zeek) in rows(&numbers).iter().zip(rows(&ecs)).zip(rows(&zeek)) {
        let kind = match row["dns_type"].as_u64() {
            None => Value::Null,
            Some(1) => json!("A"),
            Some(2) => json!("NS"),
            Some(6) => json!("SOA"),
            Some(12) => json!("PTR"),
            Some(15) => json!("MX"),
            Some(16) => json!("TXT"),
            Some(28) => json!("AAAA"),
            Some(33) => json!("SRV"),
            Some(other) => json!(format!("TYPE{other}")),
        };
        let code = match row["dns_rcode"].as_u64() {
            None => Value::Null,
            Some(0) => json!("NOERROR"),
            Some(3) => json!("NXDOMAIN"),
            Some(5) => json!("REFUSED"),
            other => panic!("{other:?}"),
        };
        assert_eq!((&ecs["dns.question.type"], &ecs["dns.response_code"]), (&kind, &code));
        assert_eq!((&zeek["qtype_name"], &zeek["rcode_name"]), (&kind, &code));
        assert_eq!((&zeek["qtype"], &zeek["rcode"]), (&row["dns_type"], &row["dns_rcode"]));
        seen.insert((kind.to_string(), code.to_string()));
    }
    assert!(seen.len() > 3, "{seen:?}");
}

#[test]
fn little_memory_divides_elements_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.pcap");
    let path = path.to_str().unwrap();
    let line = ["generate", "--packets", "40k", "--pairs", "30k", "-w", path];
    assert_eq!(flowsieve(&line).code, Some(0));
    let whole = document(&["--slice", "all", path]);
    let line = ["--slice", "all", "--memory", "512KiB", path];
    let parts = document(&line);
    let sum = |document: &Value| -> BTreeMap<String, (u64, u64)> {
        let mut sums = BTreeMap::<String, (u64, u64)>::new();
        for row in rows(document) {
            let names = ["src", "dst", "src_port", "dst_port", "proto"];
            let tuple = names.map(|name| row[name].to_string()).join(" ");
            let sum = sums.entry(tuple).or_default();
            sum.0 += row["packets"].as_u64().unwrap();
            sum.1 += row["bytes"].as_u64().unwrap();
        }
        sums
    };
    assert_eq!(sum(&parts), sum(&whole));
    let early = rows(&parts).iter().filter(|row| row["ended"] == "memory");
    let early = early.count();
    assert!(early > 1000, "{early}");
    assert_eq!(parts["totals"]["early"], early);
    assert_eq!(whole["totals"]["early"], 0);
    let csv = flowsieve(&[&["export"], &line[..]].concat());
    assert_eq!(csv.code, Some(0));
    assert!(csv.err.contains("because the memory was full"), "{}", csv.err);
}

#[test]
fn threads_and_containers_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let path = place("large.pcap");
    let line = ["generate", "--packets", "100k", "-w", &path];
    assert_eq!(flowsieve(&line).code, Some(0));
    let pcap = fs::read(&path).unwrap();
    let packed = place("large.pcap.gz");
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&pcap).unwrap();
    fs::write(&packed, gz.finish().unwrap()).unwrap();
    for more in [&["--all"][..], &["--slice", "100ms"], &["--element", "dns"]] {
        for format in ["csv", "parquet"] {
            let written = |threads: &str, input: &str, bytes: &[u8]| {
                let out = place("rows");
                let line = [
                    &["export", "-q", "--threads", threads, "--format", format][..],
                    more,
                    &["-o", &out, input],
                ];
                assert_eq!(feed(&line.concat(), bytes).done(), "");
                fs::read(&out).unwrap()
            };
            let first = written("1", &path, &[]);
            for threads in ["2", "4"] {
                assert!(first == written(threads, &path, &[]), "{more:?} {threads}");
                assert!(first == written(threads, &packed, &[]), "{more:?} {threads}");
            }
            assert!(first == written("2", "-", &pcap), "{more:?} from a pipe");
        }
    }
}

#[test]
fn all_formats_have_the_same_documented_fields() {
    for line in [
        &["--all", CAPTURES[1]][..],
        &[CAPTURES[1]],
        &["--element", "dns", CAPTURES[0]],
        &["--element", "src", CAPTURES[0]],
    ] {
        let document = document(line);
        parquet_is_the_csv(&[&["export"], line].concat());
        assert_eq!(lines_of_one_schema(&[&["export"], line].concat()), *rows(&document));
        let csv = export(line);
        let header: BTreeSet<String> =
            csv.lines().next().unwrap().split(',').map(str::to_owned).collect();
        assert_eq!(header, fields(&rows(&document)[0]));
        assert_eq!(csv.lines().count(), rows(&document).len() + 1);
        assert!(header.is_subset(&documented_set("**Fields of an exported row**", &[])));
        let parameters = documented_set("**Export parameters**", &[]);
        assert_eq!(fields(&document["parameters"]), parameters);
        assert_eq!(fields(&document["totals"]), documented_set("**Export totals**", &[]));
        assert_eq!(document["schema"], "flowsieve.export/1");
    }
    let flows = document(&[CAPTURES[1]]);
    assert_eq!(fields(&rows(&flows)[0]), documented_set("**Fields of an exported row**", &[]));
}

#[test]
fn others_names_are_theirs() {
    let csv = export(&["--names", "zeek", CAPTURES[1]]);
    assert!(
        csv.starts_with(
            "ts,id.orig_h,id.resp_h,id.orig_p,id.resp_p,proto,orig_pkts,orig_ip_bytes,"
        )
    );
    assert!(csv.contains(",udp,"));
    let csv = export(&["--names", "ecs", "--all", CAPTURES[1]]);
    assert!(csv.starts_with("event.start,source.ip,destination.ip,"));
    for names in ["zeek", "ecs"] {
        parquet_of(&["--names", names, "--all", CAPTURES[1]]);
    }
    let lines = export(&["--names", "ecs", "--format", "jsonl", CAPTURES[1]]);
    assert!(lines.lines().all(|line| line.starts_with("{\"event.start\":")));
}

/// Writes Parquet and checks its number of rows.
fn parquet_of(args: &[&str]) {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let out = ["--format", "parquet", "-o", path.to_str().unwrap()];
    assert_eq!(export(&[args, &out].concat()), "");
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let rows = reader.metadata().file_metadata().num_rows();
    assert_eq!(rows as usize + 1, export(args).lines().count());
}

#[test]
fn only_the_selected_packets_have_rows() {
    let line = ["--all", "--where", "udp port 53", "--from", "+1s", CAPTURES[0]];
    let document = document(&line);
    let found = rows(&document);
    assert!(found.len() > 10);
    assert!(found.iter().all(|row| row["src_port"] == 53 || row["dst_port"] == 53));
    assert_eq!(document["parameters"]["where"], "udp port 53");
    let left_out = document["inputs"][0]["left_out"].as_u64().unwrap();
    assert_eq!(left_out + found.len() as u64, 8000);
}

#[test]
fn wrong_command_lines_are_refused() {
    for (args, word) in [
        (&["--all", "--element", "dns", CAPTURES[0]][..], "--element"),
        (&["--all", "--slice", "1s", CAPTURES[0]], "--slice"),
        (&["--all", "--memory", "1GiB", CAPTURES[0]], "--memory"),
        (&["--memory", "1KiB", CAPTURES[0]], "at least 524288 bytes"),
        (&["--format", "table", CAPTURES[0]], "table"),
        (&["--element", "port", CAPTURES[0]], "port"),
        (&["--slice", "0", CAPTURES[0]], "0"),
        (&["-o", CAPTURES[0], CAPTURES[0]], "generated.pcap"),
        (&["-", "-"], "standard input"),
        (&[], "CAPTURE"),
    ] {
        let run = flowsieve(&[&["export"], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
        assert!(run.err.contains(word), "{args:?}: {}", run.err);
        assert_eq!(run.out, "");
    }
    let run = flowsieve(&["export", "no-such.pcap"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
}

/// Counts the packets and bytes of each flow in each slice independently of the program.
fn flows_of_slices(pcap: &[u8], width_ns: i64) -> BTreeMap<(i64, String), (u64, u64)> {
    let word = |at: usize| i64::from(u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap()));
    let mut flows = BTreeMap::<_, (u64, u64)>::new();
    for ends in record_offsets(pcap).windows(2) {
        let Some(row) = look(&pcap[ends[0] + 16..ends[1]]) else { continue };
        let fraction = if pcap[0] == 0x4d { 1 } else { 1000 };
        let time_ns = word(ends[0]) * 1_000_000_000 + word(ends[0] + 4) * fraction;
        let sum = flows.entry((time_ns / width_ns, tuple(&row))).or_default();
        sum.0 += 1;
        sum.1 += row["bytes"].as_u64().unwrap();
    }
    flows
}

fn tuple(row: &Value) -> String {
    let names = ["src", "dst", "src_port", "dst_port", "proto"];
    names.map(|name| row[name].to_string()).join(" ")
}

#[test]
fn of_packets_out_of_order_each_element_has_one_row_a_slice() {
    const WIDTH_NS: i64 = 50_000_000;
    let (_, pcap) = sample();
    let offsets = record_offsets(&pcap);
    // Moves every third packet to the end, and the last thousand to the beginning.
    let mut order: Vec<usize> = (0..offsets.len() - 1).collect();
    order.rotate_right(1000);
    order.sort_by_key(|number| number % 3 == 0);
    let mut shuffled = pcap[..24].to_vec();
    for number in order {
        shuffled.extend_from_slice(&pcap[offsets[number]..offsets[number + 1]]);
    }
    let expected = flows_of_slices(&pcap, WIDTH_NS);
    assert_eq!(flows_of_slices(&shuffled, WIDTH_NS), expected);
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (capture, out) = (place("shuffled.pcap"), place("rows.json"));
    fs::write(&capture, &shuffled).unwrap();
    for threads in ["1", "3"] {
        let line = ["--slice", "50ms", "--threads", threads, &capture];
        let printed = document(&line);
        let written = flowsieve(&[&["export", "--format", "json", "-o", &out], &line[..]].concat());
        written.done();
        let written: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        assert_eq!(rows(&written), rows(&printed));
        let mut found = BTreeMap::new();
        for row in rows(&printed) {
            assert_eq!(row["ended"], "slice");
            let slice = row["start_ns"].as_i64().unwrap() / WIDTH_NS;
            let sum = ["packets", "bytes"].map(|name| row[name].as_u64().unwrap());
            let before = found.insert((slice, tuple(row)), sum.into());
            assert_eq!(before, None, "{row}");
        }
        assert_eq!(found, expected);
        let slices: BTreeSet<i64> = expected.keys().map(|&(slice, _)| slice).collect();
        let totals = &printed["totals"];
        assert_eq!((&totals["late"], &totals["slices"]), (&json!(0), &json!(slices.len())));
        assert_eq!(&written["totals"], totals);
    }
    // A pipe cannot be read again: late packets have rows of their own, and the sums are the same.
    let piped = feed(&["export", "--format", "json", "--slice", "50ms", "-"], &shuffled);
    let piped: Value = serde_json::from_str(&piped.done()).unwrap();
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for row in rows(&piped) {
        let slice = row["start_ns"].as_i64().unwrap() / WIDTH_NS;
        let sum = sums.entry((slice, tuple(row))).or_default();
        sum.0 += row["packets"].as_u64().unwrap();
        sum.1 += row["bytes"].as_u64().unwrap();
    }
    assert_eq!(sums, expected);
    assert!(piped["totals"]["late"].as_u64().unwrap() > 1000);
}

#[test]
fn a_packet_behind_its_slice_has_a_row_of_its_own() {
    let (_, pcap) = sample();
    let offsets = record_offsets(&pcap);
    let mut shuffled = pcap[..24].to_vec();
    // Twelve slices are more than can be open at once, so the first one is closed before its last
    // packet.
    let seconds = (1_700_000_000_u32..1_700_000_012).chain([1_700_000_000]);
    for (second, ends) in seconds.zip(offsets.windows(2)) {
        shuffled.extend_from_slice(&second.to_le_bytes());
        shuffled.extend_from_slice(&pcap[ends[0] + 4..ends[1]]);
    }
    let run = feed(&["export", "--format", "json", "-"], &shuffled);
    let document: Value = serde_json::from_str(&run.done()).unwrap();
    let late: Vec<&Value> = rows(&document).iter().filter(|row| row["ended"] == "late").collect();
    assert_eq!(rows(&document).len(), 13);
    assert_eq!(late.len(), 1);
    assert_eq!(late[0]["packets"], 1);
    assert!(late[0]["start"].as_str().unwrap().starts_with("2023-11-14T22:13:20."));
    assert_eq!(document["totals"]["late"], 1);
    let csv = feed(&["export", "-"], &shuffled);
    assert!(csv.err.contains("came late"), "{}", csv.err);
}
