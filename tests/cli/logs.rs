//! Logs instead of packets: their results equal those of the packets that they describe.

use super::{document, feed, flowsieve, slices};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Returns the number of distinct elements of a file.
fn exact(arguments: &[&str]) -> u64 {
    let line = [&["--slice", "all"], arguments].concat();
    let (document, run) = document(&line);
    run.done();
    document["totals"]["exact"].as_u64().unwrap()
}

#[test]
fn dnstap_of_servers_agrees_with_their_packets() {
    let dns = ["--element", "dns"];
    let queries = ["--element", "dns", "--queries-only"];
    let flows = ["--element", "flow"];
    let pairs = ["--element", "host-pair"];
    let all: &[&[&str]] = &[&dns, &queries, &flows, &pairs];
    // unbound writes wrong ports into some responses that it gets.
    let without_flows: &[&[&str]] = &[&dns, &queries, &pairs];
    for (packets, log, types, elements) in [
        ("clients.pcap", "unbound.dnstap", "client", all),
        ("server.pcap", "unbound.dnstap", "forwarder,resolver", without_flows),
        ("server.pcap", "knot.dnstap", "auth", all),
    ] {
        let packets = format!("tests/logs/{packets}");
        let log = format!("tests/logs/{log}");
        for element in elements {
            let expected = exact(&[element, &[packets.as_str()][..]].concat());
            let found = exact(&[element, &["--dnstap-type", types, &log][..]].concat());
            assert_eq!(found, expected, "{log} {element:?}");
            assert!(found > 1);
        }
    }
}

#[test]
fn messages_of_types_that_were_not_asked_for_are_tallied() {
    let log = "tests/logs/unbound.dnstap";
    let totals = |arguments: &[&str]| {
        let line = [&["--slice", "all", "--element", "dns"], arguments].concat();
        document(&line).0["totals"].clone()
    };
    let (default, all) = (totals(&[log]), totals(&["--dnstap-type", "all", log]));
    assert_eq!(default["packets"], 202);
    assert_eq!(default["skipped"], json!({"dnstap_type": 80}));
    assert_eq!(all["skipped"], json!({}));
    assert_eq!(default, totals(&["--dnstap-type", "auth,client-query,client-response", log]));
    // The result says which messages counted.
    for (arguments, said) in [
        (&[log][..], json!(null)),
        (&["--dnstap-type", "tool,auth-query", log], json!("auth-query,tool")),
    ] {
        assert_eq!(document(arguments).0["parameters"]["dnstap_type"], said);
    }
    let refused = flowsieve(&["count", "--dnstap-type", "clients", log]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("`clients` is no type"), "{}", refused.err);
}

#[test]
fn compressed_dnstap_is_read_like_plain() {
    let plain = fs::read("tests/logs/knot.dnstap").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knot.zst");
    fs::write(&path, zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(
        slices(&["--element", "dns", path]),
        slices(&["--element", "dns", "tests/logs/knot.dnstap"])
    );
}

#[test]
fn a_cut_dnstap_file_counts_up_to_the_cut() {
    let whole = fs::read("tests/logs/knot.dnstap").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.dnstap");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let run = flowsieve(&["count", "--format", "csv", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("ends inside the record of packet"));
    assert!(run.out.lines().count() > 1);
}

/// Writes the list of flows of `capture` as CSV.
fn list(folder: &Path, capture: &str, options: &[&str]) -> String {
    list_as("csv", folder, capture, options)
}

fn list_as(format: &str, folder: &Path, capture: &str, options: &[&str]) -> String {
    let path = folder.join(format!("list.{format}"));
    let path = path.to_str().unwrap();
    let line = ["flows", "--format", format, "-q", "-o", path];
    flowsieve(&[&line, options, &[capture]].concat()).done();
    path.to_owned()
}

#[test]
fn a_list_of_flows_counts_like_its_packets() {
    let folder = tempfile::tempdir().unwrap();
    for capture in ["traces/netns-web-loss.pcap", "traces/generated.pcap"] {
        for options in [
            &[][..],
            &["--bidirectional"],
            &["--unique"],
            &["--names", "zeek"],
            &["--bidirectional", "--names", "ecs"],
        ] {
            let list = list(folder.path(), capture, options);
            for element in ["host-pair", "flow", "src", "dst", "src,dst-port"] {
                assert_eq!(
                    exact(&["--element", element, &list]),
                    exact(&["--element", element, capture]),
                    "{capture} {options:?} {element}"
                );
            }
        }
    }
    let options = ["--bidirectional", "--names", "zeek"];
    let lines = list_as("jsonl", folder.path(), "traces/generated.pcap", &options);
    let packets = folder.path().join("packets.jsonl");
    let packets = packets.to_str().unwrap();
    let export = ["export", "--all", "--names", "zeek", "-o", packets, "traces/generated.pcap"];
    flowsieve(&export).done();
    for rows in [&*lines, packets] {
        assert_eq!(exact(&["--element", "flow", rows]), 3_953, "{rows}");
        let (document, _) = document(&["--slice", "all", "--element", "dns", rows]);
        let totals = &document["totals"];
        assert_eq!(totals["skipped"], json!({"flow_record": totals["packets"]}), "{rows}");
    }
    let generated = list(folder.path(), "traces/generated.pcap", &[]);
    assert_eq!(exact(&["--element", "flow", &generated]), 3_953);
    // Messages that are listed without ports stay messages.
    let export =
        ["export", "--element", "dns", "--names", "zeek", "-o", packets, "traces/netns-dns.pcap"];
    flowsieve(&export).done();
    let of = |input: &str| exact(&["--element", "dns", input]);
    assert_eq!(of(packets), of("traces/netns-dns.pcap"));
}

#[test]
fn parquet_is_refused_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let list = list_as("parquet", folder.path(), "traces/netns-web-loss.pcap", &[]);
    let piped = feed(&["count", "-"], &fs::read(&list).unwrap());
    for run in [piped, flowsieve(&["count", &list])] {
        assert_eq!(run.code, Some(1));
        assert!(run.sentence().contains("it is a Parquet file; write it as CSV"), "{}", run.err);
        assert!(run.err.contains("COPY 'list.parquet' TO 'list.csv'"), "{}", run.err);
    }
}

#[test]
fn an_index_in_a_directory_is_no_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::copy("traces/netns-web-loss.pcap", path("a.pcap")).unwrap();
    flowsieve(&["index", "build", "--quiet", &path("archive"), &path("a.pcap")]).done();
    let inputs = |input: &str| document(&[input]).0["inputs"].as_array().unwrap().len();
    assert_eq!(inputs(&path("")), 1);
    // If the user names one, there is a message.
    for folder in ["archive", "archive/node"] {
        let run = flowsieve(&["count", &path(folder)]);
        assert_eq!(run.code, Some(1));
        assert!(run.err.contains("an index of captures"), "{}", run.err);
    }
}

#[test]
fn nfdump_counts_like_the_packets() {
    for element in ["host-pair", "flow", "src", "dst", "src,dst-port"] {
        assert_eq!(
            exact(&["--element", element, "tests/logs/nfdump.csv"]),
            exact(&["--element", element, "traces/netns-web-loss.pcap"]),
            "{element}"
        );
    }
}

#[test]
fn a_list_of_flows_has_no_dns_triples_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), "traces/netns-dns.pcap", &[]);
    let (document, _) = document(&["--slice", "all", "--element", "dns", &list]);
    let totals = &document["totals"];
    assert_eq!(totals["exact"], 0);
    assert_eq!(totals["skipped"]["flow_record"], totals["packets"]);
}

#[test]
fn unique_flows_of_a_log_are_those_of_its_packets() {
    let ends = |line: &[&str]| {
        let out = flowsieve(&[&["flows", "--unique", "--format", "csv", "-q"], line].concat());
        let out = out.done();
        let mut rows: Vec<String> = out
            .lines()
            .map(|row| row.split(',').skip(2).take(5).collect::<Vec<_>>().join(","))
            .collect();
        rows.sort();
        rows
    };
    let folder = tempfile::tempdir().unwrap();
    let capture = "traces/netns-web-loss.pcap";
    let both = list(folder.path(), capture, &["--bidirectional"]);
    assert_eq!(ends(&["--bidirectional", &both]), ends(&["--bidirectional", capture]));
    let directed = list(folder.path(), capture, &[]);
    assert_eq!(ends(&[&directed]), ends(&[capture]));
    assert_eq!(ends(&["tests/logs/knot.dnstap"]), ends(&["tests/logs/server.pcap"]));
}

#[test]
fn a_log_is_indexed_like_its_packets() {
    let folder = tempfile::tempdir().unwrap();
    let hits = |name: &str, input: &str, asked: &[&str]| {
        let archive = folder.path().join(name);
        let archive = archive.to_str().unwrap();
        if !Path::new(archive).exists() {
            flowsieve(&["index", "build", "--quiet", archive, input]).done();
        }
        let line = [&["index", "search", archive, "--format", "csv"], asked].concat();
        flowsieve(&line).done().lines().count()
    };
    let capture = "traces/netns-web-loss.pcap";
    let flows = list(folder.path(), capture, &["--bidirectional"]);
    for asked in [
        &["--host", "192.0.2.11"][..],
        &["--dst-port", "81"],
        &["--src", "198.51.100.5", "--dst", "192.0.2.12"],
    ] {
        let found = hits("flows", &flows, asked);
        assert_eq!(found, hits("packets", capture, asked), "{asked:?}");
        assert!(found > 1, "{asked:?}");
    }
    for asked in [&["--domain", "host3.zone3.example"][..], &["--domain", "*.zone1.example"]] {
        let found = hits("dnstap", "tests/logs/unbound.dnstap", asked);
        assert_eq!(found, hits("clients", "tests/logs/clients.pcap", asked), "{asked:?}");
        assert!(found > 1, "{asked:?}");
    }
}

#[test]
fn a_capture_filter_chooses_among_the_messages_of_a_log() {
    for expression in ["host 192.0.2.11", "src net 192.0.2.0/29", "udp src port 53"] {
        let options = ["--where", expression, "--element", "dns"];
        assert_eq!(
            exact(&[&options[..], &["tests/logs/unbound.dnstap"]].concat()),
            exact(&[&options[..], &["tests/logs/clients.pcap"]].concat()),
            "{expression}"
        );
    }
}

/// Returns the path of a log of another program in the folder that `FLOWSIEVE_LOGS` names.
fn log_of_others(name: &str) -> Option<String> {
    let path = std::env::var_os("FLOWSIEVE_LOGS").map(|folder| Path::new(&folder).join(name));
    if path.is_none() {
        println!("FLOWSIEVE_LOGS is not set, so {name} is not read");
    }
    path.map(|path| path.to_str().unwrap().to_owned())
}

#[test]
fn a_record_with_one_address_counts_for_elements_that_need_none() {
    let Some(log) = log_of_others("test.dnstap") else { return };
    for element in ["domain", "domain2"] {
        let (document, _) = document(&["--slice", "all", "--element", element, &log]);
        assert_eq!(document["totals"]["skipped"], json!({"dns_malformed": 1}), "{element}");
    }
    let top = ["top", "--by", "domain", "--distinct", "src", "--min", "1", "--format", "csv", &log];
    assert_eq!(flowsieve(&top).done().lines().count(), 5);
}

#[test]
fn lines_without_an_address_count_for_elements_that_need_none() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let log = log.to_str().unwrap();
    let both = r#""src_ip":"::1","dest_ip":"::2","proto":"UDP","#;
    let event = |ends, name| {
        format!(
            r#"{{"timestamp":"2026-01-01T00:00:00Z","event_type":"dns",{ends}"dns":{{"type":"query","rrname":"{name}"}}}}"#
        )
    };
    for lines in [
        "#fields\tts\tid.orig_h\tid.resp_h\tquery\n1.0\t::1\t::2\ta.test\n1.0\t-\t::2\tb.test",
        "ts,src,dst,qname\n1,::1,::2,a.test\n1,,::2,b.test",
        concat!(
            r#"{"ts":1,"id.orig_h":"::1","id.resp_h":"::2","query":"a.test"}"#,
            "\n",
            r#"{"ts":1,"id.orig_h":"::1","query":"b.test"}"#
        ),
        &format!("{}\n{}", event(both, "a.test"), event("", "b.test")),
    ] {
        fs::write(log, lines).unwrap();
        let (names, _) = document(&["--element", "domain", log]);
        assert_eq!(names["totals"]["elements"], 2, "{lines}: {names}");
        let (pairs, _) = document(&[log]);
        assert_eq!(pairs["totals"]["elements"], 1, "{lines}: {pairs}");
        assert_eq!(pairs["totals"]["skipped"], json!({"no_address_in_log": 1}), "{lines}");
    }
    // A line with neither addresses nor a query is no record.
    fs::write(
        log,
        r#"{"ts":1,"id.orig_h":"::1","id.resp_h":"::2","query":"a"}
{"ts":1,"level":"info"}"#,
    )
    .unwrap();
    let run = flowsieve(&["count", log]);
    assert!(run.err.contains("line 2") && run.err.contains("nor a query"), "{}", run.err);
}

#[test]
fn types_that_a_log_does_not_say_make_the_answer_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("dns.log");
    let line = r#"{"ts":1.0,"id.orig_h":"::1","id.resp_h":"::2","query":"a.test","qtype":1}"#;
    fs::write(&log, format!("{line}\n")).unwrap();
    let log = log.to_str().unwrap();
    let asked = |expression, more: &[&str]| {
        let line = ["count", "--element", "dns", "--where", expression, log];
        flowsieve(&[&line[..], more].concat())
    };
    let reason = "find nothing in this log";
    for (expression, options) in
        [("udp or dns qtype A", &[][..]), ("dns rcode NXDOMAIN", &["-q", "--format", "json"])]
    {
        let run = asked(expression, options);
        assert!(run.code == Some(1) && run.err.contains(reason), "{}", run.err);
        assert!(options.is_empty() || run.out.contains("\"complete\":false"), "{}", run.out);
    }
    let run = asked("dns name a.test", &[]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

#[test]
fn c_dns_of_the_dns_stats_compactor_has_the_elements_of_its_packets() {
    let Some(log) = log_of_others("gold.cbor.xz") else { return };
    let packets = log_of_others("gold.pcap.xz").unwrap();
    for options in [&["--element", "dns"][..], &["--element", "dns", "--queries-only"], &[]] {
        let read = |input: &str| exact(&[options, &[input]].concat());
        assert_eq!(read(&log), read(&packets), "{options:?}");
    }
    for draft in ["gold.cbor05.xz", "gold.cbor02.xz"] {
        let run = flowsieve(&["count", &log_of_others(draft).unwrap()]);
        assert!(run.err.contains("is a draft") || run.err.contains("a draft of"), "{}", run.err);
    }
    let run = flowsieve(&[
        "count",
        "--element",
        "dns",
        "--slice",
        "all",
        "--format",
        "json",
        &log_of_others("noq.cdns").unwrap(),
    ]);
    let document: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["slices"][0]["elements"], 2, "{}", run.err);
}

/// Zeek's own tests keep their logs without times.
#[test]
fn logs_of_zeek_are_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "zeek-core.pcapng-pktsrc__conn.log",
        "zeek-core.tunnels.vxlan__conn.log",
        "zeek-scripts.base.frameworks.logging.scope_sep_and_field_name_map__conn.log",
        "zeek-scripts.base.protocols.dns.zero-responses__dns.log",
        "zeek-scripts.base.protocols.ftp.gridftp__conn.log",
        "zeek-scripts.base.protocols.ldap.add__conn.log",
    ] {
        let Some(path) = log_of_others(name) else { return };
        let log = fs::read_to_string(path).unwrap();
        let records = log.lines().filter(|line| !line.starts_with('#')).count();
        let path = folder.path().join(name);
        fs::write(&path, log.replace("XXXXXXXXXX.XXXXXX", "1700000000.000001")).unwrap();
        let run =
            flowsieve(&["count", "--slice", "all", "--format", "json", path.to_str().unwrap()]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{name}");
        let document: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(document["totals"]["packets"], records, "{name}");
    }
}

#[test]
fn a_log_without_bytes_shows_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, archive) = (path("conn.log"), path("archive"));
    let line = r#"{"ts":1.0,"id.orig_h":"10.0.0.1","id.orig_p":9,"id.resp_h":"10.0.0.2","id.resp_p":80,"proto":"tcp","conn_state":"S0"}"#;
    fs::write(&log, format!("{line}\n")).unwrap();
    let flows = ["flows", "--unique", &log];
    assert!(flowsieve(&flows).done().ends_with("1 flow: 1 packet, 1 of them IP\n"));
    let json = flowsieve(&[&flows[..], &["--format", "json"]].concat()).done();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["totals"]["bytes"], json!(null));
    let top = flowsieve(&["top", "--min", "1", "--format", "jsonl", &log]).done();
    assert!(top.contains(r#""bytes":null"#), "{top}");
    flowsieve(&["index", "build", "-q", &archive, &log]).done();
    let search = ["index", "search", &archive, "--host", "10.0.0.1"];
    assert!(flowsieve(&search).done().ends_with("tcp  1 + 0 packets\n"));
    let hit = flowsieve(&[&search[..], &["--format", "jsonl"]].concat()).done();
    assert!(hit.contains(r#""bytes_fwd":null"#), "{hit}");
}
