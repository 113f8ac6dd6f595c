//! DNS logs are indexed as the messages and questions that they tell of.

use super::answers::check;
use super::questions::{Question, questions};
use super::scan::{Packet, scan};
use super::{ask, build, settings};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Added, stats, verify};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

#[test]
fn logs_are_searched_like_captures() {
    let (mut csv, mut json) = ("ts,src,dst,qname\n".to_owned(), String::new());
    let mut events = String::new();
    for number in 0..300_u32 {
        let seconds = 3 * number;
        let time = 1_700_000_000 + seconds;
        let client = format!("10.1.{}.{}", number % 5, number % 23);
        let server = format!("192.0.2.{}", number % 3);
        let name = format!("host{}.zone{}.example", number % 40, number % 7);
        writeln!(csv, "{time},{client},{server},{name}").unwrap();
        writeln!(
            json,
            r#"{{"ts":{time},"id.orig_h":"{client}","id.orig_p":4000,"id.resp_h":"{server}","id.resp_p":53,"proto":"udp","query":"{name}"}}"#
        )
        .unwrap();
        // Responses have their server as source; some came without their query.
        for (kind, src, src_port, dst, dst_port) in
            [("query", &client, 4000, &server, 53), ("response", &server, 53, &client, 4000)]
        {
            if kind == "query" && number % 5 == 0 {
                continue;
            }
            writeln!(
                events,
                r#"{{"timestamp":"2023-11-14T22:{:02}:{:02}.5Z","event_type":"dns","src_ip":"{src}","src_port":{src_port},"dest_ip":"{dst}","dest_port":{dst_port},"proto":"UDP","dns":{{"type":"{kind}","rrname":"{name}"}}}}"#,
                seconds / 60,
                seconds % 60
            )
            .unwrap();
        }
    }
    // A record without a question is found by its addresses.
    csv.push_str("1700000900,10.9.9.9,192.0.2.1,\n");
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let paths: Vec<PathBuf> = [("dns.csv", csv), ("dns.log", json), ("eve.json", events)]
        .into_iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        })
        .collect();
    for added in build(&archive, settings(FilterKind::Subset, 60), &[], &paths) {
        assert!(matches!(added, Added::Indexed { regions: 4..=16, damage: None, .. }), "{added:?}");
    }
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    let regions = stats(&archive).unwrap().captures;
    let mut regions = regions.iter().flat_map(|capture| &capture.regions);
    assert!(regions.all(|region| region.flows > 0 && region.dns > 0));
    let scanned: BTreeMap<PathBuf, Vec<Packet>> =
        paths.iter().map(|path| (path.clone(), scan(path))).collect();
    let packets: Vec<&Packet> = scanned.values().flatten().collect();
    let asked = questions(&packets, 100);
    let answered = asked.iter().filter(|question| check(question, &scanned, &archive) > 0);
    let answered = answered.count();
    assert!(answered > 100 && answered < asked.len(), "{answered}");
    // A port that the log does not have is none that is asked for.
    let query = Question {
        domain: Some("host1.zone1.example".into()),
        dst_port: Some(53),
        ..Question::default()
    };
    let (found, _) = ask(&archive, &query.query());
    assert_eq!(found.keys().collect::<Vec<_>>(), paths[1..].iter().collect::<Vec<_>>());
    let nameless = Question { host: Some("10.9.9.9".into()), ..Question::default() };
    let (found, _) = ask(&archive, &nameless.query());
    assert_eq!(found.keys().collect::<Vec<_>>(), [&paths[0]]);
}
