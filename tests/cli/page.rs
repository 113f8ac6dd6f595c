//! Tests the content and the writing of pages, figures, origin-destination matrices and Parquet
//! files.

use super::wanted::PAIRS;
use super::{flowsieve, record_offsets, sample, slices};
use etherparse::{LaxNetSlice, LaxSlicedPacket};
use roxmltree::Document;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Reads the packets by origin and destination from a matrix file.
fn matrix(path: &Path) -> BTreeMap<(String, String), u64> {
    let mut csv = csv::Reader::from_path(path).unwrap();
    let columns: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(columns, ["origin", "destination", "packets"]);
    csv.records()
        .map(|row| {
            let row = row.unwrap();
            let pair = (row[0].to_owned(), row[1].to_owned());
            (pair, row[2].parse().unwrap())
        })
        .collect()
}

/// Counts the same from the bytes of the capture.
fn counted(bits: u8) -> BTreeMap<(String, String), u64> {
    let (_, pcap) = sample();
    let mut pairs = BTreeMap::new();
    for ends in record_offsets(&pcap).windows(2) {
        let packet = LaxSlicedPacket::from_ethernet(&pcap[ends[0] + 16..ends[1]]).unwrap();
        let pair = match packet.net.unwrap() {
            LaxNetSlice::Ipv4(ip) => {
                [ip.header().source(), ip.header().destination()].map(|address| {
                    let number = u32::from_be_bytes(address) >> (32 - bits) << (32 - bits);
                    format!("{}/{bits}", Ipv4Addr::from(number))
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                [ip.header().source(), ip.header().destination()].map(|address| {
                    let bits = 2 * bits;
                    let number = u128::from_be_bytes(address) >> (128 - bits) << (128 - bits);
                    format!("{}/{bits}", Ipv6Addr::from(number))
                })
            }
            LaxNetSlice::Arp(_) => continue,
        };
        let [origin, destination] = pair;
        *pairs.entry((origin, destination)).or_default() += 1;
    }
    pairs
}

/// The counts of combinations in a page equal those of the CSV.
#[test]
fn a_page_tells_the_counts_of_combinations() {
    let folder = tempfile::tempdir().unwrap();
    let (page, figures) = (folder.path().join("page.html"), folder.path().join("f"));
    let wanted = [&["traces/generated.pcap"], PAIRS].concat();
    let files = ["--html", page.to_str().unwrap(), "--svg", figures.to_str().unwrap()];
    let counted = slices(&[&wanted[..], &files].concat());
    assert_eq!(counted, slices(&wanted));
    let mut table = csv::Reader::from_reader(counted.as_bytes());
    let mut names = table.headers().unwrap().iter();
    let column = names.position(|name| name == "src_estimate").unwrap();
    let estimates = table.records().map(|row| row.unwrap()[column].to_owned());
    let sum: f64 = estimates.map(|text| text.parse::<f64>().unwrap()).sum();
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Combinations of attributes"));
    let (thousands, rest) = (sum.round() as u64 / 1000, sum.round() as u64 % 1000);
    let told = format!(">{thousands},{rest:03} \u{b1} ");
    assert!(thousands > 0 && html.contains(&told), "{told}");
    let svg = fs::read_to_string(figures.join("combinations-over-time.svg")).unwrap();
    let names: Vec<String> = Document::parse(&svg)
        .unwrap()
        .descendants()
        .filter_map(|node| node.text().map(str::to_owned))
        .collect();
    for name in ["src", "dst"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
}

#[test]
fn a_page_leaves_the_results_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (page, figures) = (folder.path().join("page.html"), folder.path().join("a/b"));
    let capture = "traces/generated.pcap";
    let args = [
        capture,
        "--html",
        page.to_str().unwrap(),
        "--svg",
        figures.to_str().unwrap(),
        "--od",
        "24",
    ];
    assert_eq!(slices(&args), slices(&[capture]));
    let html = fs::read_to_string(&page).unwrap();
    for heading in [
        "Distinct host pairs of generated.pcap, in slices of 1 s",
        "Distinct host pairs in each slice",
        "How far from exact",
        "Packets from origin (row) to destination (column)",
    ] {
        assert!(html.contains(heading), "{heading}");
    }
    // The totals have no column without values.
    let totals = texts_of_section(&html, "Over time");
    assert!(totals.contains("|observed FPR|sum of 8 slices|"), "{totals}");
    let mut names: Vec<String> = fs::read_dir(&figures)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "distribution.svg",
            "elements-over-time.svg",
            "error-over-time.svg",
            "origin-destination.svg",
            "packets-over-time.svg"
        ]
    );
    for name in names {
        let text = fs::read_to_string(figures.join(name)).unwrap();
        assert_eq!(Document::parse(&text).unwrap().root_element().tag_name().name(), "svg");
    }
}

/// A page and each of its figures name the command line, the capture, the filter and its memory.
#[test]
fn a_page_and_its_figures_say_what_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let (page, figures) = (folder.path().join("page.html"), folder.path().join("figures"));
    let files = ["--html", page.to_str().unwrap(), "--svg", figures.to_str().unwrap()];
    let line = [&["count", "-q", "traces/generated.pcap", "--memory", "4KiB"], &files[..]].concat();
    flowsieve(&line).done();
    let command = line.join(" ");
    let html = fs::read_to_string(&page).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(html.contains(&format!("flowsieve {command} (flowsieve {version})")), "{command}");
    assert!(html.contains("subset filter, 4 KiB a slice"));
    for file in fs::read_dir(&figures).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let document = Document::parse(&text).unwrap();
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        let notes = texts.join(" ");
        for part in ["subset filter, 4 KiB a slice", "flowsieve count -q traces/generated.pcap"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }
}

/// Warnings about the result are a list at the top of the page.
#[test]
fn a_page_begins_with_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let (page, cut) = (folder.path().join("page.html"), folder.path().join("cut.pcap"));
    let bytes = fs::read("traces/generated.pcap").unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 5]).unwrap();
    let [page_name, cut] = [&page, &cut].map(|path| path.to_str().unwrap());
    let run = flowsieve(&["count", "-q", cut, "--html", page_name, "-o", "/dev/null"]);
    assert_eq!(run.code, Some(1));
    let html = fs::read_to_string(&page).unwrap();
    let head = &html[..html.find("<main>").unwrap()];
    let warnings = &head[head.find("class=\"warnings\"").unwrap()..];
    assert!(warnings.contains("Not read in full: "), "{warnings}");
    // The headline has no count that is not reliable.
    let line = ["traces/generated.pcap", "--html", page_name, "--no-exact"];
    let full = ["--filter", "cbfm", "--memory", "16", "--shards", "1"];
    slices(&[&line[..], &full].concat());
    let html = fs::read_to_string(&page).unwrap();
    let sentence = "There is no count of all host pairs: filters were full in 8 of 8 slices.";
    assert!(html.contains(sentence) && html.contains("<li>Filters were full in 8 of 8 slices: "));
    slices(&line);
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("class=\"warnings\""));
}

#[test]
fn every_run_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    for more in [
        &["--slice", "all"][..],
        &["--no-exact"],
        &["--filter", "mdbf"],
        &["--filter", "exact", "--exact-limit", "1"],
        &["--element", "dns", "--slice", "10ms"],
    ] {
        let args = [&["traces/netns-dns.pcap", "--html", page.to_str().unwrap()], more].concat();
        slices(&args);
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.contains("Packets without an element"), "{more:?}");
        fs::remove_file(&page).unwrap();
    }
}

#[test]
fn the_matrix_is_what_another_parser_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("od.csv");
    for bits in [8, 24] {
        let prefix = bits.to_string();
        let args = ["--od", &prefix, "--od-out", path.to_str().unwrap()];
        // All packets count, whatever the elements are.
        slices(&[&["traces/generated.pcap", "--element", "dns"], &args[..]].concat());
        let matrix = matrix(&path);
        assert_eq!(matrix, counted(bits));
        assert!(matrix.len() > 3);
    }
}

#[test]
fn the_matrix_is_the_same_for_every_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("od.parquet");
    let mut seen = Vec::new();
    for threads in ["1", "2", "4"] {
        let args = [
            "traces/generated.pcap",
            "traces/netns-dns.pcap",
            "--threads",
            threads,
            "--od",
            "32",
            "--od-out",
            path.to_str().unwrap(),
        ];
        slices(&args);
        seen.push(fs::read(&path).unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

#[test]
fn parquet_has_the_numbers_of_the_csv() {
    super::formats::parquet_is_the_csv(&["count", "traces/generated.pcap"]);
}

/// Returns the texts of a page's section, joined by bars.
fn texts_of_section(html: &str, heading: &str) -> String {
    let begin = html.find(&format!(">{heading}</h2>")).unwrap();
    let section = &html[begin + 1..];
    let section = &section[..section.find("<h2").unwrap_or(section.len())];
    let texts = section.split('<').map(|part| {
        let text = part.split_once('>').map_or(part, |(_, text)| text);
        text.trim()
    });
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    format!("|{}|", texts.join("|"))
}

/// Returns the addresses of one end with the most distinct addresses of the other end, counted from
/// the bytes of the capture.
fn most_others(by_source: bool, most: usize) -> Vec<(String, usize)> {
    let mut others: BTreeMap<IpAddr, BTreeSet<IpAddr>> = BTreeMap::new();
    let (_, pcap) = sample();
    for ends in record_offsets(&pcap).windows(2) {
        let packet = LaxSlicedPacket::from_ethernet(&pcap[ends[0] + 16..ends[1]]).unwrap();
        let (source, destination): (IpAddr, IpAddr) = match packet.net.unwrap() {
            LaxNetSlice::Ipv4(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            LaxNetSlice::Ipv6(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            LaxNetSlice::Arp(_) => continue,
        };
        let (key, other) = if by_source { (source, destination) } else { (destination, source) };
        others.entry(key).or_default().insert(other);
    }
    let mut ranked: Vec<(String, usize)> =
        others.into_iter().map(|(key, others)| (key.to_string(), others.len())).collect();
    ranked.sort_by_key(|(_, number)| usize::MAX - number);
    ranked.truncate(most);
    ranked
}

#[test]
fn a_page_says_who_has_the_most_others() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let capture = "traces/generated.pcap";
    let html = |args: &[&str]| {
        let wanted = [args, &["--html", page.to_str().unwrap()]].concat();
        let counted = slices(&wanted);
        (fs::read_to_string(&page).unwrap(), counted)
    };
    let (without, plain) = html(&[capture]);
    assert!(!without.contains(">Who<"));
    for options in
        [&["--threads", "1"][..], &["--threads", "3"], &["--no-exact"], &["--element", "flow"]]
    {
        let (html, counted) = html(&[&[capture, "--top", "6"], options].concat());
        if options[0] == "--threads" {
            assert_eq!(counted, plain);
        }
        let who = texts_of_section(&html, "Who");
        for by_source in [true, false] {
            let expected = most_others(by_source, 6);
            // The choice among equal keys is arbitrary.
            let last = expected.last().unwrap().1;
            for (key, number) in expected.into_iter().filter(|(_, number)| *number > last) {
                assert!(who.contains(&format!("|{key}|{number}|")), "{key} {who}");
            }
        }
    }
    let (html, _) = html(&["traces/netns-dns.pcap", "--element", "dns", "--top", "3"]);
    let who = texts_of_section(&html, "Who");
    let ranked = flowsieve(&[
        "top",
        "--distinct",
        "domain",
        "-n",
        "3",
        "--format",
        "csv",
        "traces/netns-dns.pcap",
    ]);
    let mut rows = csv::Reader::from_reader(ranked.out.as_bytes());
    let column = |name: &str, headers: &csv::StringRecord| {
        headers.iter().position(|header| header == name).unwrap()
    };
    let headers = rows.headers().unwrap().clone();
    let (key, exact) = (column("key", &headers), column("exact", &headers));
    let mut listed = 0;
    for row in rows.records() {
        let row = row.unwrap();
        assert!(who.contains(&format!("|{}|{}|", &row[key], &row[exact])), "{who}");
        listed += 1;
    }
    assert!(listed > 0);
}

#[test]
fn what_does_not_go_together_is_told_before_anything_is_read() {
    let capture = "traces/generated.pcap";
    for (args, word) in [
        (&["--top", "10"][..], "flowsieve top"),
        (&["--top", "10", "--html", "p.html", "--undirected"], "--undirected"),
        (&["--top", "10", "--html", "p.html", "--element", "src"], "--element"),
        (&["--top", "0", "--html", "p.html"], "--top 10"),
        (&["--top", "9", "--html", "p.html", "--od", "24", "--anonymize"], "--anonymize"),
        (&["--od", "24"], "--od-out"),
        (&["--od", "24", "--od-out", "matrix.txt"], ".parquet"),
        (&["--od-out", "matrix.csv"], "--od"),
        (&["--od", "33", "--od-out", "matrix.csv"], "33"),
        (&["--svg", "Cargo.toml"], "directory"),
        (&["--svg", "new/figure.svg"], "write `--svg new`"),
        (&["--html", "-"], "--html"),
    ] {
        let run = flowsieve(&[&["count", capture], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
        assert!(run.out.is_empty() && run.err.contains(word), "{}", run.err);
    }
}
