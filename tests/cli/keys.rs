//! Compares elements that are keys of chosen fields with sets of the fields of each packet.

use super::program;
use std::collections::HashSet;
use std::net::IpAddr;

/// The rows of a command's output in CSV, by the names of their columns.
struct Rows {
    names: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl Rows {
    fn of(args: &[&str]) -> Self {
        let run = program(&[args, &["-q", "--format", "csv"]].concat()).output().unwrap();
        assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
        let mut reader = csv::Reader::from_reader(&run.stdout[..]);
        let names = reader.headers().unwrap().iter().map(str::to_owned).collect();
        Self { names, rows: reader.records().map(Result::unwrap).collect() }
    }

    fn get<'a>(&self, row: &'a csv::StringRecord, name: &str) -> &'a str {
        let column = self.names.iter().position(|column| column == name);
        &row[column.unwrap_or_else(|| panic!("no column {name} in {:?}", self.names))]
    }
}

/// Returns the leading bits of an address, twice as many for IPv6.
fn prefix(address: &str, bits: u32) -> String {
    match address.parse().unwrap() {
        IpAddr::V4(address) => (u32::from(address) >> (32 - bits)).to_string(),
        IpAddr::V6(address) => format!("six {}", u128::from(address) >> (128 - 2 * bits)),
    }
}

/// Returns the key of a packet, or `None` if it lacks a field.
fn key_of(
    packets: &Rows,
    packet: &csv::StringRecord,
    key: &str,
    undirected: bool,
) -> Option<String> {
    let get = |name: &str| packets.get(packet, name);
    let has_ports = get("src_port") != "0" || get("dst_port") != "0";
    let mut parts = Vec::new();
    for field in key.split(',') {
        parts.push(match field.split_once('/') {
            Some((end, bits)) => prefix(get(end), bits.parse().unwrap()),
            None if field.ends_with("-port") && !has_ports => return None,
            None if field == "domain" && get("domain").is_empty() => return None,
            None => get(&field.replace('-', "_")).to_owned(),
        });
    }
    if undirected {
        parts.sort();
    }
    Some(parts.join(" "))
}

#[test]
fn keys_of_fields_count_what_sets_of_the_fields_count() {
    for (trace, key, undirected) in [
        ("traces/netns-web-loss.pcap", "src/24,dst-port", false),
        ("traces/generated.pcap", "src/24,dst-port", false),
        ("traces/generated.pcap", "dst/12,proto", false),
        ("traces/generated.pcap", "vlan,src", false),
        ("traces/generated.pcap", "src/20,dst/20", true),
        ("traces/netns-dns.pcap", "dst-port,src-port", false),
        ("traces/netns-dns.pcap", "domain,src/30", false),
        ("traces/netns-mirror.pcap", "proto,vlan", false),
    ] {
        // A datagram has one message, so its row has all of them.
        let some = if key.contains("domain") { "udp" } else { "ip or ip6" };
        let packets = Rows::of(&["export", "--all", trace, "--where", some]);
        let all = packets.rows.iter();
        let seen = all.filter_map(|packet| key_of(&packets, packet, key, undirected));
        let seen: HashSet<String> = seen.collect();
        assert!(!seen.is_empty(), "{trace} {key}");

        let mut args = vec![trace, "--element", key, "--slice", "all", "--where", some];
        if undirected {
            args.push("--undirected");
        }
        let counted = Rows::of(&[&["count"][..], &args[..]].concat());
        let exact = counted.get(&counted.rows[0], "exact");
        assert_eq!(exact, seen.len().to_string(), "{trace} {key}");
        let exported = Rows::of(&[&["export"][..], &args[..]].concat());
        assert_eq!(exported.rows.len(), seen.len(), "{trace} {key}");
    }
}

/// Saved filters, rankings and reports name a key as the command line does.
#[test]
fn keys_are_named_as_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("services.fsieve").display().to_string();
    let trace = "traces/netns-web-loss.pcap";
    let key = ["--element", "dst/24,dst-port"];
    let says = |args: &[&str], said: &str| {
        let run = program(args).output().unwrap();
        let text = [run.stdout, run.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(said), "{args:?}: {text}");
    };
    let count = ["count", trace, "--slice", "all", "--format", "json", "--save-filter", &saved];
    says(&[&count[..], &key].concat(), r#""element":"dst/24,dst-port""#);
    says(&["filter", "info", &saved], "(dst/24, dst-port)");
    says(&["filter", "query", &saved, "198.51.100.0/24,80"], "198.51.100.0/24,80");
    says(&["count", trace, "--element", "src,dst", "--format", "json"], r#""element":"host-pair""#);
    says(&["count", trace, "--element", "pairs"], "host-pair, flow, dns, src, dst");
    says(&["count", trace, "--element", "src,src/24"], "one decides the other");
    says(&["count", trace, "--element", "src/24,dst", "--undirected"], "both ends alike");
    says(&["compare", trace, "--memory", "1KiB", "--element", "src/24,dst-port"], "src/24");
    says(&["top", trace, "--by", "vlan", "--distinct", "src"], "none");
}
