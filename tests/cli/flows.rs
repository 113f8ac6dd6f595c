//! `flowsieve flows`: the same flows in every format, the documented fields, bad input, memory.

use super::formats::{documented_set, fields, lines_of_one_schema};
use super::{feed, flowsieve, program, record_offsets, sample, text_of};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs;
use std::io::BufWriter;
use std::process::Stdio;

const CAPTURE: &str = "traces/netns-dns.pcap";

fn flows(args: &[&str]) -> String {
    flowsieve(&[&["flows"], args].concat()).done()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&flows(&[&["--format", "json"], args].concat())).unwrap()
}

/// Rows of CSV by column.
fn csv_rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let cells = header.iter().zip(row.iter());
        cells.map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect()
    });
    rows.collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    }
}

#[test]
fn all_formats_have_the_same_flows() {
    for shape in [&[][..], &["--bidirectional"], &["--unique"]] {
        for names in ["flowsieve", "ecs"] {
            let args = [shape, &["--names", names, CAPTURE]].concat();
            let document = json(&args);
            let listed = document["flows"].as_array().unwrap();
            assert!(listed.len() > 10);
            let expected: Vec<Vec<(String, String)>> =
                csv_rows(&flows(&[&["--format", "csv"], &args[..]].concat()));
            let cells = |flow: &Value| -> Vec<(String, String)> {
                let fields = expected[0].iter().map(|(name, _)| name);
                let cells = fields.map(|name| (name.clone(), text(&flow[name])));
                cells.collect()
            };
            assert_eq!(listed.iter().map(cells).collect::<Vec<_>>(), expected);
            assert_eq!(fields(&listed[0]).len(), expected[0].len());
            let of_flows = lines_of_one_schema(&[&["flows"], &args[..]].concat());
            assert_eq!(&of_flows, listed);
        }
    }
}

#[test]
fn parquet_has_the_same_flows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.parquet");
    let name = path.to_str().unwrap();
    for shape in ["--bidirectional", "--unique"] {
        flows(&[shape, "--format", "parquet", "-o", name, CAPTURE]);
        let document = json(&[shape, CAPTURE]);
        let listed = document["flows"].as_array().unwrap();
        let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        let mut rows = 0;
        for (row, flow) in file.get_row_iter(None).unwrap().zip(listed) {
            for (column, value) in row.unwrap().get_column_iter() {
                let expected = &flow[column];
                match value {
                    Field::Null => assert_eq!(expected, &Value::Null, "{column}"),
                    Field::Str(text) => assert_eq!(expected, text, "{column}"),
                    Field::ULong(number) => assert_eq!(expected, number, "{column}"),
                    Field::UShort(number) => assert_eq!(expected, number, "{column}"),
                    Field::UByte(number) => assert_eq!(expected, number, "{column}"),
                    Field::Long(ns) if expected.is_string() => {
                        assert_eq!(&flow[&format!("{column}_ns")], ns, "{column}");
                    }
                    Field::Long(number) => assert_eq!(expected, number, "{column}"),
                    other => panic!("{column}: {other:?}"),
                }
            }
            rows += 1;
        }
        assert_eq!(rows, listed.len());
        assert_eq!(file.metadata().file_metadata().num_rows(), rows as i64);
    }
}

#[test]
fn json_has_the_documented_fields() {
    let document = json(&[CAPTURE]);
    assert_eq!(document["schema"], "flowsieve.flows/1");
    assert_eq!(fields(&document["parameters"]), documented_set("**Flow parameters**", &[]));
    assert_eq!(fields(&document["totals"]), documented_set("**Flow totals**", &[]));
    assert_eq!(fields(&document["inputs"][0]), documented_set("**`inputs`**", &[]));
    let mut both = fields(&document["flows"][0]);
    both.extend(fields(&json(&["--bidirectional", CAPTURE])["flows"][0]));
    assert_eq!(both, documented_set("**Fields of a flow**", &[]));
}

#[test]
fn zeek_gets_its_names_and_units() {
    let ours = csv_rows(&flows(&["--bidirectional", "--format", "csv", CAPTURE]));
    let zeek = flows(&["--bidirectional", "--format", "csv", "--names", "zeek", CAPTURE]);
    let header = "ts,duration,id.orig_h,id.resp_h,id.orig_p,id.resp_p,proto,orig_pkts,resp_pkts,\
                  orig_ip_bytes,resp_ip_bytes,tcp_flags_fwd,tcp_flags_rev,vlan,query,community_id,ended";
    assert_eq!(zeek.lines().next().unwrap(), header);
    // Zeek has no second column for a time.
    let is_twin = |(name, _): &(String, String)| name == "start" || name == "end";
    for (mut ours, zeek) in ours.into_iter().zip(csv_rows(&zeek)) {
        ours.retain(|cell| !is_twin(cell));
        let start: u64 = ours[0].1.parse().unwrap();
        let end: u64 = ours[1].1.parse().unwrap();
        assert_eq!(zeek[0].1.replace('.', ""), start.to_string());
        let duration = zeek[1].1.replace('.', "").parse::<u64>().unwrap();
        assert_eq!(duration, end - start);
        let protocol = match ours[6].1.as_str() {
            "6" => "tcp",
            "17" => "udp",
            "1" | "58" => "icmp",
            other => panic!("{other}"),
        };
        assert_eq!(zeek[6].1, protocol);
        assert_eq!(ours[2].1, zeek[2].1);
        assert_eq!(
            ours[7..],
            zeek[7..]
                .iter()
                .zip(&ours[7..])
                .map(|(z, o)| (o.0.clone(), z.1.clone()))
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_name_goes_with_its_flow() {
    let document = json(&["--bidirectional", CAPTURE]);
    let named =
        document["flows"].as_array().unwrap().iter().filter(|flow| !flow["domain"].is_null());
    let named: Vec<&Value> = named.collect();
    assert!(named.len() > 5);
    for flow in named {
        assert_eq!(flow["dst_port"], 53);
    }
    assert!(document["totals"]["dns_messages"].as_u64().unwrap() > 10);
}

#[test]
fn threads_change_nothing() {
    let (path, _) = sample();
    let path = path.to_str().unwrap();
    for more in [
        &["--format", "table"][..],
        &["--format", "csv", "--bidirectional", "--idle", "100ms", "--active", "1s"],
        &["--format", "json", "--memory", "800KiB", "--quiet"],
        &["--format", "jsonl", "--unique"],
        &["--format", "parquet"],
    ] {
        let run = |threads: &str| {
            let line = [&["flows", "--threads", threads][..], more, &[path, CAPTURE]].concat();
            let output = program(&line).output().unwrap();
            assert!(output.status.success());
            output.stdout
        };
        let one = run("1");
        assert!(one.len() > 1000);
        for threads in ["2", "4"] {
            assert!(run(threads) == one, "{more:?} with {threads} threads");
        }
    }
}

#[test]
fn a_capture_that_is_cut_is_listed_up_to_the_cut() {
    let (_, bytes) = sample();
    let cut = record_offsets(&bytes)[5_000] + 20;
    let whole = &bytes[..record_offsets(&bytes)[5_000]];
    for shape in [&["flows", "-"][..], &["flows", "--unique", "-"]] {
        let run = feed(shape, &bytes[..cut]);
        assert_eq!(run.code, Some(1));
        assert!(run.sentence().contains("record of packet 5001"), "{}", run.err);
        let (table, line) = run.out.split_once("1 input was not read in full; ").unwrap();
        assert!(line.contains("record of packet 5001"), "{line}");
        assert_eq!(table, feed(shape, whole).done());
        assert!(run.out.contains("5,000 packets"));
    }
}

#[test]
fn mistakes_are_told() {
    for (args, words) in [
        (&["--unique", "--idle", "1s"][..], "--idle"),
        (&["--idle", "0s"], "above 0"),
        (&["--memory", "1x"], "size"),
        (&["--memory", "64KiB"], "--memory"),
        (&["--names", "zeek"], "--format"),
    ] {
        let run = flowsieve(&[&["flows"], args, &[CAPTURE]].concat());
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.err.contains(words), "{}", run.err);
        assert_eq!(run.out, "");
    }
    let run = feed(&["flows", "-", "-"], &[]);
    assert_eq!(run.code, Some(2));
}

#[test]
#[cfg(target_os = "linux")]
fn a_million_flows_take_no_more_memory_than_promised() {
    for unique in [false, true] {
        let mut line = vec![
            "flows",
            "--threads",
            "2",
            "--memory",
            "16MiB",
            "--format",
            "csv",
            "-o",
            "/dev/null",
        ];
        if unique {
            line.push("--unique");
        }
        line.push("-");
        let mut child = program(&line)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
        let plan = GeneratePlan {
            scan_percent: 50,
            ..GeneratePlan::new(GenerateKind::Traffic, 1_000_000)
        };
        generate(&plan, &mut input).unwrap();
        let input = input.into_inner().unwrap();
        // The program has read everything but the rest in the pipe, and waits for more.
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let remark = String::from_utf8(output.stderr).unwrap();
        assert!(remark.contains("--memory"), "{remark}");
        let peak_kib: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .unwrap()
            .parse()
            .unwrap();
        println!("{peak_kib} KiB resident at most");
        assert!(peak_kib < (32 + 16) * 1024, "{peak_kib} KiB");
    }
}

/// Only first fragments have ports. The later fragments between two hosts are one more flow.
#[test]
fn later_fragments_are_a_flow_without_ports() {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.extend([0; 8]);
    pcap.extend(65_535_u32.to_le_bytes());
    pcap.extend(101_u32.to_le_bytes());
    let mut packet = |bytes: &[u8]| {
        pcap.extend(1_700_000_000_u32.to_le_bytes());
        pcap.extend([0; 4]);
        pcap.extend([bytes.len() as u32; 2].map(u32::to_le_bytes).concat());
        pcap.extend(bytes);
    };
    let payload = |port: u16| {
        let ports = [port.to_be_bytes(), 2000_u16.to_be_bytes()].concat();
        [&ports[..], &[0; 12]].concat()
    };
    for port in [1000, 1001] {
        // First the flag "more fragments", then an offset of 16 bytes.
        for (offset, bytes) in [([0x20, 0], payload(port)), ([0, 2], payload(7))] {
            let mut ip = [0; 20];
            (ip[0], ip[3], ip[9]) = (0x45, 20 + bytes.len() as u8, 17);
            ip[6..8].copy_from_slice(&offset);
            ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            packet(&[&ip[..], &bytes].concat());
        }
        for (offset, bytes) in [([0, 1], payload(port)), ([0, 16], payload(7))] {
            let mut ip = [0; 48];
            // A fragment header whose next header is UDP.
            (ip[0], ip[5], ip[6], ip[40]) = (0x60, 8 + bytes.len() as u8, 44, 17);
            ip[23] = 1;
            ip[39] = 2;
            ip[42..44].copy_from_slice(&offset);
            packet(&[&ip[..], &bytes].concat());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fragments.pcap");
    fs::write(&path, pcap).unwrap();
    let path = path.to_str().unwrap();
    let document = json(&[path]);
    let flows = document["flows"].as_array().unwrap().iter();
    let mut found: Vec<String> = flows
        .map(|flow| {
            let names = ["src", "proto", "src_port", "dst_port", "packets"];
            names.map(|name| text(&flow[name])).join(" ")
        })
        .collect();
    found.sort();
    let expected = [
        "10.0.0.1 17 0 0 2",
        "10.0.0.1 17 1000 2000 1",
        "10.0.0.1 17 1001 2000 1",
        "::1 17 0 0 2",
        "::1 17 1000 2000 1",
        "::1 17 1001 2000 1",
    ];
    assert_eq!(found, expected);
    let count = |kind: &str| {
        let line = ["count", "--slice", "all", "--element", kind, "--format", "json", path];
        let counted: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
        counted["slices"][0]["exact"].as_u64()
    };
    assert_eq!((count("flow"), count("host-pair")), (Some(6), Some(2)));
    // The help of both commands says so.
    for line in [["flows", "--help"], ["count", "--help"]] {
        let help = flowsieve(&line).done();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            help.contains("Only the first fragment")
                || help.contains("only the first fragment has ports"),
            "{help}"
        );
    }
    assert!(text_of("docs/output.md").contains("only the first fragment has ports"));
}

#[test]
fn the_largest_flows_are_those_of_the_whole_list() {
    let rows = |more: &[&str]| -> Vec<Value> {
        let line = [&["flows", "--format", "jsonl", "traces/generated.pcap"], more].concat();
        let out = flowsieve(&line).done();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = rows(&[]);
    assert_eq!(rows(&["-n", "7"]), all[..7]);
    for (sort, number) in [
        ("bytes", (|row: &Value| row["bytes"].as_i64().unwrap()) as fn(&Value) -> i64),
        ("packets", |row| row["packets"].as_i64().unwrap()),
        ("duration", |row| row["end_ns"].as_i64().unwrap() - row["start_ns"].as_i64().unwrap()),
    ] {
        let mut expected = all.clone();
        expected.sort_by_key(|row| -number(row));
        expected.truncate(20);
        assert_eq!(rows(&["--sort", sort, "-n", "20"]), expected, "{sort}");
    }
    assert_eq!(flowsieve(&["flows", "--sort", "bytes", "traces/generated.pcap"]).code, Some(2));
}
