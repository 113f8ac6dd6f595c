//! `--where`, `--from` and `--to`, in every command that reads captures.

use super::{flowsieve, sample};
use serde_json::Value;
use std::path::Path;

fn json(line: &[&str]) -> Value {
    let output = flowsieve(line);
    assert!(output.code == Some(0), "{line:?}: {}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// An expression may begin with a minus sign.
#[test]
fn a_capture_filter_that_begins_like_an_option_is_one() {
    let (capture, _) = sample();
    let packets = |expression: &str| {
        let line = ["count", "--slice", "all", "--format", "json", "--where", expression];
        json(&[&line[..], &[text(&capture)]].concat())["totals"]["packets"].as_u64().unwrap()
    };
    // Numbers have no sign, as in tcpdump.
    assert_eq!(packets("-ip[8]<0"), 0);
    assert_eq!(packets("-ip[8]!=0"), packets("ip[8]!=0"));
    assert!(packets("-ip[8]!=0") > 1000);
}

#[test]
fn every_command_reads_the_selected_packets_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, _) = sample();
    let (capture, written) = (text(&capture), folder.path().join("x.pcap"));
    let selected = ["--where", "tcp port 443", "--from", "+1s", "--to", "-2s"];
    let more = ["--format", "json", capture];
    let line =
        |command: &[&'static str]| -> Value { json(&[command, &selected[..], &more[..]].concat()) };
    let count = line(&["count", "--slice", "all"]);
    let packets = count["totals"]["packets"].as_u64().unwrap();
    assert!((500..2000).contains(&packets), "{packets}");
    assert_eq!(count["inputs"][0]["left_out"], 8000 - packets);
    let names = ["where", "from", "to"];
    let parameters = |document: &Value| names.map(|name| document["parameters"][name].clone());
    let expected = parameters(&count);
    assert_eq!(expected[0], "tcp port 443");
    assert_eq!(expected[1], "2023-11-14T22:13:21.000298000Z");

    for other in [line(&["compare", "--slice", "all", "--filter", "subset"]), line(&["flows"])] {
        assert_eq!(other["totals"]["packets"], packets);
        assert_eq!(other["inputs"][0]["left_out"], 8000 - packets);
        assert_eq!(parameters(&other), expected);
    }
    let dedup = json(
        &[
            &["dedup", "--by", "frame", "--window", "1p", "-w", text(&written)][..],
            &selected[..],
            &more[..],
        ]
        .concat(),
    );
    assert_eq!(dedup["totals"]["packets"], packets);
    assert_eq!(parameters(&dedup), expected);
    let plan = json(
        &[
            &["plan", "--want", "src,dst", "--memory", "4KiB", "--format", "json"][..],
            &selected[..],
            &["--sample", capture],
        ]
        .concat(),
    );
    assert_eq!(plan["sample"]["packets"], packets);
    assert_eq!(names.map(|name| plan["sample"][name].clone()), expected);

    // The output holds exactly these packets.
    let again = json(&["count", "--slice", "all", "--format", "json", text(&written)]);
    assert_eq!(again["totals"]["packets"], dedup["totals"]["kept"]);
    let port = json(&["count", "--format", "json", "--where", "not tcp port 443", text(&written)]);
    assert_eq!(port["totals"]["packets"], 0);

    // The table says it, too.
    let table = flowsieve(&["count", "--where", "tcp port 443", capture]);
    let last = table.out.lines().last().unwrap();
    assert!(last.starts_with("only packets where tcp port 443: "), "{last}");
    let page = folder.path().join("page.html");
    flowsieve(&["count", "--html", text(&page), "--where", "tcp port 443", capture]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Only packets where tcp port 443"));
}

#[test]
fn an_index_knows_which_packets_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, _) = sample();
    let (capture, archive) = (text(&capture), folder.path().join("archive"));
    let (archive, out) = (text(&archive), folder.path().join("out.pcap"));
    let build = flowsieve(&["index", "build", archive, capture, "--where", "udp", "--to", "+4s"]);
    assert!(build.code == Some(0), "{}", build.err);
    let stats = json(&["index", "stats", "--captures", "--format", "json", archive]);
    let entry = &stats["capture_list"][0];
    assert_eq!(entry["where"], "udp");
    assert_eq!(entry["from_ns"], Value::Null);
    assert_eq!(entry["to_ns"], 1_700_000_004_000_298_000_i64);
    let reference = ["count", "--format", "json", "--to", "+4s", capture];
    let expected = json(&[&reference[..], &["--where", "udp and net 10.0.0.0/8"]].concat());
    assert_eq!(
        entry["packets"],
        json(&[&reference[..], &["--where", "udp"]].concat())["totals"]["packets"]
    );

    let search = |more: &[&str]| {
        let question = ["index", "search", archive, "--host", "10.0.0.0/8", "-w", text(&out)];
        let output = flowsieve(&[&question[..], more].concat());
        assert!(output.code == Some(0), "{}", output.err);
        let written = json(&["count", "--format", "json", text(&out)]);
        (written["totals"]["packets"].clone(), output.err)
    };
    let (packets, words) = search(&[]);
    assert_eq!(packets, expected["totals"]["packets"]);
    assert!(words.contains("of 1 capture the index holds only some packets"), "{words}");
    let (fewer, _) = search(&["--where", "dst port 53"]);
    let asked =
        json(&[&reference[..], &["--where", "udp dst port 53 and net 10.0.0.0/8"]].concat());
    assert_eq!(fewer, asked["totals"]["packets"]);
    assert!(fewer.as_u64() < packets.as_u64());

    // The known part stays, and is not reported as the whole.
    let add = |more: &[&str]| flowsieve(&[&["index", "add", archive, capture], more].concat());
    let same = add(&["--where", "udp", "--to", "+4s"]);
    assert!(same.code == Some(0) && same.err.contains("in the index already"), "{}", same.err);
    let whole = add(&["-q"]);
    assert_eq!(whole.code, Some(1));
    let told = whole.sentence();
    assert!(told.contains("where udp, before 2023-11-14") && told.contains("index drop"), "{told}");
    assert_eq!(json(&["index", "stats", "--format", "json", archive])["captures"], 1);
}

#[test]
fn a_saved_filter_knows_which_packets_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, _) = sample();
    let save = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let line = ["count", "--slice", "all", text(&capture), "--save-filter", text(&path)];
        let output = flowsieve(&[&line[..], more].concat());
        assert!(output.code == Some(0), "{}", output.err);
        path
    };
    let first = save("first", &["--where", "tcp or  udp", "--to", "2023-11-14T22:13:24Z"]);
    let second = save("second", &["--where", "tcp or  udp", "--to", "2023-11-14T22:13:26Z"]);
    let other = save("other", &["--where", "tcp"]);
    let info = |path: &Path| {
        json(&["filter", "info", "--format", "json", text(path)])["filters"][0].clone()
    };
    let of_first = info(&first);
    assert_eq!(of_first["where"], "tcp or  udp");
    assert_eq!(of_first["to_ns"], 1_700_000_004_000_000_000_i64);
    let union = folder.path().join("union");
    let unite =
        |with: &Path| flowsieve(&["filter", "union", text(&first), text(with), "-o", text(&union)]);
    let united = unite(&second);
    assert!(united.code == Some(0), "{}", united.err);
    let of_union = info(&union);
    assert_eq!(of_union["to_ns"], 1_700_000_006_000_000_000_i64);
    // Elements of other packets are not the same elements.
    assert_eq!(unite(&other).code, Some(1));
}

#[test]
fn what_is_no_capture_filter_is_marked_and_a_display_filter_translated() {
    let wrong = |line: &[&str]| {
        let output = flowsieve(&[&["count", "traces/generated.pcap"], line].concat());
        assert_eq!(output.code, Some(2), "{line:?}");
        assert!(output.out.is_empty());
        output.err
    };
    let display = wrong(&["--where", "ip.addr == 10.0.0.1"]);
    let lines: Vec<&str> = display.lines().collect();
    assert!(lines[0].starts_with("flowsieve: --where: "), "{display}");
    assert_eq!(lines[1..3], ["  ip.addr == 10.0.0.1", "  ^^^^^^^"]);
    assert_eq!(lines[3], "The capture filter for this is: host 10.0.0.1");
    let typo = wrong(&["--where", "tcp prt 443"]);
    assert!(typo.contains("\n  tcp prt 443\n      ^^^"), "{typo}");
    let tip = wrong(&["--filter", "tcp port 80"]);
    assert!(tip.contains("--where 'tcp port 80'"), "{tip}");
    let order = wrong(&["--from", "2023-11-15", "--to", "2023-11-14"]);
    assert!(order.contains("--to needs the later time"), "{order}");
    let time = wrong(&["--from", "yesterday"]);
    assert!(time.contains("+90s after the first packet"), "{time}");
}
