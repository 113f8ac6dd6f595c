//! Logs of Zeek, record by record.

use super::error::TraceErrorKind;
use super::log_tests::{names, read};
use super::packet::LogContent;
use super::{Capture, InputFormat};
use std::path::Path;

const TSV: &str = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
    #path\tdns\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\n\
    #types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring\n\
    1700000000.123456\tC1\t10.0.0.1\t5353\t2001:db8::1\t53\tudp\tWWW.Example.COM\n\
    1700000001.5\tC2\t10.0.0.1\t5353\t10.0.0.2\t53\ttcp\t-\n\
    1700000002.5\tC3\t10.0.0.1\t-\t10.0.0.2\t53\ttcp\t(empty)\n\
    1700000003\tC4\t10.0.0.1\t1\t10.0.0.2\t53\ttcp\ta\\x09b\\x2d.example\n#close\t2023\n";

#[test]
fn tsv_is_read_with_its_escapes() {
    let log = read(TSV.as_bytes());
    assert!(log.error.is_none(), "{:?}", log.error);
    assert_eq!(names(&log), ["WWW.Example.COM", "", "a\tb-.example"]);
    assert_eq!(log.without_query, 1);
    assert_eq!(log.entries[0].time_ns, 1_700_000_000_123_456_000);
    assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
    assert_eq!(log.entries[0].destination.unwrap().to_string(), "2001:db8::1");
    assert_eq!(log.entries[1].transport, None);
    assert_eq!(log.container, "zeek-dns-tsv");
}

/// `\x5c` is written for it in TSV, and `\\` in JSON; in the text of a name it is escaped.
#[test]
fn a_backslash_is_a_byte_of_a_name() {
    let tsv = "#fields\tts\tid.orig_h\tid.resp_h\tquery\n1\t::1\t::2\td\\x5cuser.\\xff\n";
    let json = r#"{"ts":1,"id.orig_h":"::1","id.resp_h":"::2","query":"d\\user.\\xff"}"#;
    for text in [tsv, json] {
        assert_eq!(read(text.as_bytes()).names, [b"d\\\\user.\xff"], "{text}");
    }
}

#[test]
fn concatenated_logs_are_one() {
    let log = read(TSV.repeat(3).as_bytes());
    assert_eq!(log.entries.len(), 9);
    assert_eq!(log.without_query, 3);
}

#[test]
fn empty_lines_in_the_header_are_passed_over() {
    let log = read(TSV.replacen('\n', "\n\n\r\n", 6).as_bytes());
    assert_eq!((log.container, log.entries.len()), ("zeek-dns-tsv", 3));
}

#[test]
fn times_in_milliseconds_are_known_by_their_digits() {
    let line = r#""id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2","proto":"udp","query":"a"}"#;
    let log =
        read(format!("{{\"ts\":1700000000123,{line}\n{{\"ts\":1700000000.123,{line}\n").as_bytes());
    assert_eq!(
        log.entries.iter().map(|entry| entry.time_ns).collect::<Vec<_>>(),
        [1_700_000_000_123_000_000; 2]
    );
}

#[test]
fn a_malformed_line_is_named_and_everything_else_is_delivered() {
    let good = "1700000005\tC6\t10.0.0.1\t1\t10.0.0.2\t53\tudp\tlast\n";
    let bad = "1700000004\tC5\tnobody\t1\t10.0.0.2\t53\tudp\tx\n";
    let log = read(format!("{TSV}{bad}{good}{bad}{good}").as_bytes());
    assert_eq!(log.entries.len(), 5);
    assert_eq!(names(&log)[3..], ["last", "last"]);
    let error = log.error.unwrap();
    assert!(
        matches!(error.kind, TraceErrorKind::LinesSkipped { line: 13, others: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("the source is \"nobody\", not an IP address"), "{error}");
}

const CONNECTIONS: &str = "#separator \\x09\n#unset_field\t-\n#path\tconn\n\
    #fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\tconn_state\torig_pkts\torig_ip_bytes\tresp_pkts\tresp_ip_bytes\n\
    1700000000.5\t10.0.0.1\t5353\t10.0.0.2\t53\tudp\t0.25\tSF\t1\t60\t2\t300\n\
    1700000001\t::1\t128\t::2\t129\ticmp\t-\tOTH\t3\t300\t0\t0\n\
    1700000002\t10.0.0.1\t1\t10.0.0.2\t2\tunknown_transport\t-\tOTH\t-\t-\t-\t-\n";

#[test]
fn connections_are_flows() {
    let log = read(CONNECTIONS.as_bytes());
    assert!(log.error.is_none(), "{:?}", log.error);
    assert_eq!(log.container, "zeek-conn-tsv");
    let flow = |number: usize| match log.entries[number].content {
        LogContent::Flow(flow) => flow,
        _ => panic!("a flow"),
    };
    assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
    assert_eq!(flow(0).end_ns, 1_700_000_000_750_000_000);
    assert_eq!((flow(0).packets, flow(0).bytes), ([1, 2], [60, 300]));
    assert_eq!(flow(0).directions(), [true, true]);
    // The port columns of ICMP have type and code.
    assert_eq!(log.entries[1].transport, Some((58, 0, 0)));
    assert_eq!(flow(1).end_ns, log.entries[1].time_ns);
    assert_eq!(flow(1).directions(), [true, false]);
    assert_eq!(log.entries[2].transport, None);
    assert_eq!(flow(2).directions(), [true, false]);
}

#[test]
fn connections_are_known_by_their_fields() {
    let expected = read(CONNECTIONS.as_bytes()).entries;
    let fields = CONNECTIONS.lines().nth(3).unwrap();
    let without_state =
        CONNECTIONS.replace("\tconn_state", "").replace("\tSF", "").replace("\tOTH", "");
    for changed in [
        without_state.clone(),
        // Newer versions have the number as well, which may be unset.
        CONNECTIONS
            .replace("\tproto", "\tip_proto\tproto")
            .replace("\tudp", "\t-\tudp")
            .replace("\ticmp", "\t58\ticmp")
            .replace("\tunknown", "\t-\tunknown"),
        CONNECTIONS.replace("id.", "id_"),
        CONNECTIONS
            .replace("id.orig_h", "src")
            .replace("id.orig_p", "src_port")
            .replace("id.resp_h", "dst")
            .replace("id.resp_p", "dst_port"),
        // Nothing but the fields.
        CONNECTIONS[CONNECTIONS.find(fields).unwrap()..].to_owned(),
    ] {
        let log = read(changed.as_bytes());
        assert!(log.error.is_none(), "{:?}: {changed}", log.error);
        assert_eq!(log.container, "zeek-conn-tsv");
        assert_eq!(log.entries, expected, "{changed}");
    }
    // Another log of Zeek's.
    let other = without_state
        .replace("orig_", "a_")
        .replace("resp_", "b_")
        .replace("id.a_", "id.orig_")
        .replace("id.b_", "id.resp_");
    let reader = Box::new(std::io::Cursor::new(other.into_bytes()));
    let capture = Capture::from_reader(Path::new("x.log"), reader, InputFormat::Auto);
    let error = capture.unwrap_err();
    assert!(matches!(error.kind, TraceErrorKind::NotACapture { .. }), "{error}");
}

#[test]
fn connections_as_json_are_the_same() {
    let text = r#"{"ts":1700000000.5,"id.orig_h":"10.0.0.1","id.orig_p":5353,"id.resp_h":"10.0.0.2","id.resp_p":53,"proto":"udp","duration":0.25,"conn_state":"SF","orig_pkts":1,"orig_ip_bytes":60,"resp_pkts":2,"resp_ip_bytes":300}
{"ts":1700000001,"id.orig_h":"::1","id.orig_p":128,"id.resp_h":"::2","id.resp_p":129,"proto":"icmp","conn_state":"OTH","orig_pkts":3,"orig_ip_bytes":300,"resp_pkts":0,"resp_ip_bytes":0}
{"ts":1700000002,"id.orig_h":"10.0.0.1","id.orig_p":1,"id.resp_h":"10.0.0.2","id.resp_p":2,"proto":"unknown_transport","conn_state":"OTH"}
"#;
    for text in [text.to_owned(), text.replace(r#""conn_state":"OTH"}"#, r#""orig_bytes":0}"#)] {
        let log = read(text.as_bytes());
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.container, "zeek-conn-json");
        assert_eq!(log.entries, read(CONNECTIONS.as_bytes()).entries, "{text}");
    }
}

#[test]
fn json_lines_are_read() {
    let log = read(
        br#"{"ts":1700000000.123456789,"id_orig_h":"10.0.0.1","id_orig_p":5353,"id_resp_h":"10.0.0.2","id_resp_p":53,"proto":"udp","query":"a.example","rcode":0}
{"ts":"2023-11-14T22:13:20.5Z","id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2"}
{"ts":"2023-11-14T22:13:20.5Z","id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2","query":"b\\x2e.example."}
"#,
    );
    assert!(log.error.is_none(), "{:?}", log.error);
    assert_eq!(names(&log), ["a.example", "b..example"]);
    assert_eq!(log.without_query, 1);
    assert_eq!(log.entries[0].time_ns, 1_700_000_000_123_456_789);
    assert_eq!(log.entries[1].time_ns, 1_700_000_000_500_000_000);
    assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
    assert_eq!(log.container, "zeek-dns-json");
}
