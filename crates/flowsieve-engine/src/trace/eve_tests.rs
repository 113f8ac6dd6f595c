//! Events of Suricata, record by record.

use super::error::TraceErrorKind;
use super::log_tests::{names, read};
use super::packet::{LogContent, LoggedFlow};

const EVENTS: &str = r#"{"timestamp":"2023-11-14T22:13:29.000000+0000","event_type":"stats","stats":{"uptime":9}}
{"timestamp":"2023-11-14T22:13:30.000001+0000","flow_id":1,"event_type":"flow","src_ip":"10.0.0.1","src_port":1000,"dest_ip":"10.0.0.2","dest_port":80,"proto":"TCP","flow":{"pkts_toserver":3,"pkts_toclient":2,"bytes_toserver":180,"bytes_toclient":90,"start":"2023-11-14T22:13:20.500000+0000","end":"2023-11-15T00:13:21.500000+0200","state":"closed"},"tcp":{"tcp_flags":"1b","tcp_flags_ts":"1b","tcp_flags_tc":"12"}}
{"timestamp":"2023-11-14T22:13:21.000000+0000","event_type":"dns","src_ip":"10.0.0.1","src_port":5353,"dest_ip":"10.0.0.2","dest_port":53,"proto":"UDP","dns":{"type":"query","id":1,"rrname":"a.example","rrtype":"A"}}
{"timestamp":"2023-11-14T22:13:21.000000+0000","event_type":"dns","src_ip":"10.0.0.1","src_port":5353,"dest_ip":"10.0.0.2","dest_port":53,"proto":"UDP","dns":{"version":2,"type":"answer","id":1,"rrname":"a.example","rrtype":"A"}}
{"timestamp":"2023-11-14T22:13:21.000000+0000","event_type":"dns","src_ip":"10.0.0.2","src_port":53,"dest_ip":"10.0.0.1","dest_port":5353,"proto":"UDP","dns":{"version":3,"type":"response","id":1,"queries":[{"rrname":"b.example","rrtype":"A"}]}}
{"timestamp":"2023-11-14T22:13:22.000000+0000","event_type":"alert","src_ip":"10.0.0.1","dest_ip":"10.0.0.2","proto":"TCP","flow":7,"dns":[]}
"#;

#[test]
fn flows_and_dns_are_read() {
    let log = read(EVENTS.as_bytes());
    assert!(log.error.is_none(), "{:?}", log.error);
    assert_eq!(log.container, "eve-json");
    assert_eq!(names(&log), ["a.example", "a.example", "b.example"]);
    let expected = LoggedFlow {
        end_ns: 1_700_000_001_500_000_000,
        packets: [3, 2],
        bytes: [180, 90],
        tcp_flags: [27, 18],
    };
    assert_eq!(log.entries[0].content, LogContent::Flow(expected));
    assert_eq!(log.entries[0].time_ns, 1_700_000_000_500_000_000);
    // The source of a response is the server, in either version.
    let (query, answer, response) = (&log.entries[1], &log.entries[2], &log.entries[3]);
    assert_eq!(query.transport, Some((17, 5353, 53)));
    for one in [answer, response] {
        assert_eq!(one.transport, Some((17, 53, 5353)));
        assert_eq!((one.source, one.destination), (query.destination, query.source));
    }
}

/// Releases of 2017 wrote the addresses of the answer's packet.
#[test]
fn an_answer_from_a_dns_port_is_not_exchanged() {
    let packet = EVENTS.replace(
        r#""src_ip":"10.0.0.1","src_port":5353,"dest_ip":"10.0.0.2","dest_port":53,"proto":"UDP","dns":{"version":2"#,
        r#""src_ip":"10.0.0.2","src_port":53,"dest_ip":"10.0.0.1","dest_port":5353,"proto":"UDP","dns":{"version":1"#,
    );
    assert_ne!(packet, EVENTS);
    assert_eq!(read(packet.as_bytes()).entries, read(EVENTS.as_bytes()).entries);
}

#[test]
fn a_malformed_line_is_named() {
    let log = read(EVENTS.replace("\"rrname\":\"a.example\"", "rrname").as_bytes());
    assert_eq!(log.entries.len(), 2);
    let kind = log.error.unwrap().kind;
    let is_third = matches!(kind, TraceErrorKind::LinesSkipped { line: 3, others: 1, .. });
    assert!(is_third, "{kind:?}");
}
