use super::*;
use crate::decode::Tunnel;
use crate::trace::{LogBatch, LogContent, LogEntry, LogQuestion};
use proptest::prelude::*;
use std::net::IpAddr;

fn filter(expression: &str) -> CaptureFilter {
    CaptureFilter::parse(expression, Tunnel::Outer).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(expression: &str) -> FilterError {
    CaptureFilter::parse(expression, Tunnel::Outer).unwrap_err()
}

/// An Ethernet frame from 02:00:00:00:00:01 to 02:00:00:00:00:02.
fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    [&addresses, &ether_type.to_be_bytes()[..], payload].concat()
}

/// From 10.0.0.1 to 192.0.2.2.
fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &[10, 0, 0, 1, 192, 0, 2, 2], payload].concat()
}

/// From `2001:db8::1` to `2001:db8::2`.
fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, length[0], length[1], next, 64];
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

fn tcp(source: u16, destination: u16) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..2].copy_from_slice(&source.to_be_bytes());
    segment[2..4].copy_from_slice(&destination.to_be_bytes());
    (segment[12], segment[13]) = (0x50, 0x02);
    segment
}

fn matches(expression: &str, frame: &[u8]) -> bool {
    filter(expression).matches(LinkType::ETHERNET, frame, frame.len() as u32)
}

fn matches_entry(expression: &str, entry: &LogEntry) -> bool {
    let text = b"WWW.example.org\0\0\0\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
    filter(expression).matches_entry(LogBatch { entries: &[], text }, entry)
}

#[test]
fn expressions_match_what_they_say() {
    let frame = ethernet(0x0800, &v4(6, &tcp(1234, 80)));
    for expression in [
        "",
        "ip",
        "tcp",
        "host 10.0.0.1",
        "src 10.0.0.1 and dst 192.0.2.2",
        "net 10",
        "net 10/8",
        "net 192.0.2.0/24",
        "net 192.0 mask 255.255.0.0",
        "tcp dst port 80",
        "tcp port http",
        "tcp port (22 or 80)",
        "tcp dst port 21 or 22 or 80",
        "portrange 1000-2000",
        "ip proto tcp",
        "proto \\tcp",
        "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
        "tcp[2:2] = 80",
        "ip[8] = 64",
        "len = 54",
        "less 54 and greater 54",
        "ether src 02:00:00:00:00:01",
        "ether proto ip",
        "not udp and not ip6 and not arp",
        "udp or tcp and ip",
        "(ip[0] & 15) * 4 + 20 = ip[2:2]",
    ] {
        assert!(matches(expression, &frame), "{expression}");
        let negated = format!("not ({expression})");
        assert!(expression.is_empty() || !matches(&negated, &frame), "{negated}");
    }
}

#[test]
fn tags_labels_and_extension_headers_need_no_keyword() {
    let segment = tcp(1234, 80);
    let ip = v4(6, &segment);
    let tagged = ethernet(0x8100, &[&[0, 5, 0x81, 0, 0, 6, 8, 0], &ip[..]].concat());
    for expression in ["ip", "tcp port 80", "vlan", "vlan 5", "vlan 6", "ether proto 0x8100"] {
        assert!(matches(expression, &tagged), "{expression}");
    }
    assert!(!matches("vlan 7 or mpls", &tagged));
    let labelled = ethernet(0x8847, &[&[0, 1, 0x01, 64], &ip[..]].concat());
    for expression in ["host 10.0.0.1", "mpls", "mpls 16", "not vlan"] {
        assert!(matches(expression, &labelled), "{expression}");
    }
    let behind = [&[6, 0, 0, 0, 0, 0, 0, 0], &segment[..]].concat();
    let extended = ethernet(0x86dd, &v6(0, &behind));
    for expression in ["tcp", "ip6 proto 0", "dst port 80", "tcp[13] = 2", "host 2001:db8::1"] {
        assert!(matches(expression, &extended), "{expression}");
    }
}

#[test]
fn the_inner_packet_is_meant_where_it_counts() {
    let inside = v4(6, &tcp(1234, 80));
    let mut outside = v4(47, &[&[0, 0, 8, 0], &inside[..]].concat());
    outside[12..16].copy_from_slice(&[172, 16, 0, 1]);
    let frame = ethernet(0x0800, &outside);
    let run = |expression: &str, tunnel| {
        let filter = CaptureFilter::parse(expression, tunnel).unwrap();
        filter.matches(LinkType::ETHERNET, &frame, frame.len() as u32)
    };
    assert!(run("src 172.16.0.1 and proto 47 and not tcp", Tunnel::Outer));
    assert!(run("src 10.0.0.1 and tcp port 80 and ip[9] = 6", Tunnel::Inner));
}

#[test]
fn what_was_not_captured_matches_nothing() {
    let frame = ethernet(0x0800, &v4(6, &tcp(1234, 80)));
    let cut = &frame[..36];
    let filter = |expression| filter(expression).matches(LinkType::ETHERNET, cut, 54);
    assert!(filter("host 10.0.0.1") && filter("src port 1234") && filter("port 1234"));
    assert!(!filter("dst port 80") && !filter("not dst port 80") && !filter("port 80 or ip"));
    assert!(filter("ip or port 80") && filter("udp port 80 or ip") && filter("len = 54"));
    assert!(!matches("not ip", &frame[..13]) && !matches("1 / (len - 54) = 1 or ip", &frame));
}

#[test]
fn later_fragments_have_no_ports() {
    let mut packet = v4(6, &tcp(1234, 80));
    packet[7] = 1;
    let frame = ethernet(0x0800, &packet);
    assert!(matches("tcp and not port 80 and not tcp[13] = 2 and ip[6:2] & 0x1fff != 0", &frame));
}

#[test]
fn records_of_logs_have_addresses_and_perhaps_ports() {
    let mut entry = LogEntry {
        time_ns: 0,
        source: Some(IpAddr::from([10, 0, 0, 1])),
        destination: Some(IpAddr::from([192, 0, 2, 2])),
        transport: Some((17, 40_000, 53)),
        content: LogContent::NotSelected,
    };
    for expression in
        ["ip and not ip6", "src net 10.0.0.0/8", "udp dst port 53", "not tcp", "host 10.0.0.1"]
    {
        assert!(matches_entry(expression, &entry), "{expression}");
    }
    for expression in ["ip[8] = 0", "not ip[8] = 0", "len > 0", "vlan", "not vlan", "tcp port 53"] {
        assert!(!matches_entry(expression, &entry), "{expression}");
    }
    entry.transport = None;
    assert!(matches_entry("host 10.0.0.1", &entry));
    assert!(!matches_entry("udp", &entry) && !matches_entry("not port 53", &entry));
    entry.content = LogContent::Dns { question: LogQuestion::Name(0..15), is_response: true };
    for expression in ["dns", "dns response", "not dns query", "dns name *.example.org"] {
        assert!(matches_entry(expression, &entry), "{expression}");
    }
    // The question type is unknown: the log has only the name, or only the query of this response.
    for question in [LogQuestion::Name(0..15), LogQuestion::Other(15..48)] {
        entry.content = LogContent::Dns { question, is_response: true };
        for expression in ["dns qtype A", "not dns qtype A", "dns rcode NOERROR", "dns query"] {
            assert!(!matches_entry(expression, &entry), "{expression}");
        }
        assert!(matches_entry("dns response and dns name www.example.org", &entry));
    }
    entry.content = LogContent::Dns { question: LogQuestion::Message(15..48), is_response: false };
    assert!(matches_entry("dns query and dns qtype A and dns name www.example.org", &entry));
}

#[test]
fn of_a_batch_what_matches_stays_chosen() {
    let frames =
        [v4(6, &tcp(1, 2)), v4(17, &[0; 8]), v4(6, &tcp(3, 4))].map(|ip| ethernet(0x0800, &ip));
    let (mut bytes, mut packets) = (Vec::new(), Vec::new());
    for frame in &frames {
        packets.push(PacketRef {
            time_ns: packets.len() as i64,
            start: bytes.len() as u32,
            captured: frame.len() as u32,
            wire: frame.len() as u32,
            link: LinkType::ETHERNET,
        });
        bytes.extend(frame);
    }
    let mut chosen = [true; 3];
    filter("tcp").choose(&bytes, &packets, &mut chosen);
    assert_eq!(chosen, [true, false, true]);
    filter("dst port 4").choose(&bytes, &packets, &mut chosen);
    assert_eq!(chosen, [false, false, true]);
}

#[test]
fn errors_mark_the_place_and_say_what_to_write() {
    assert_eq!(
        refused("tcp and ip.addr == 10.0.0.1").to_string(),
        "\"ip.addr\" belongs to display filters, and this is a capture filter\n  \
         tcp and ip.addr == 10.0.0.1\n          \
         ^^^^^^^\n\
         The capture filter for this is: host 10.0.0.1"
    );
    assert_eq!(
        refused("tcp port 80 or").to_string(),
        "A term is missing here\n  tcp port 80 or\n                ^"
    );
    for (expression, place) in [
        ("host example.org", "example.org"),
        ("net 10.0.0.1/8", "10.0.0.1/8"),
        ("host 10.0.0.0/8", "/"),
        ("tcp port 80 udp", "udp"),
        ("tcp 80", "80"),
        ("(tcp or udp", "("),
        ("tcp)", ")"),
        ("port 65536", "65536"),
        ("ip[0:3] = 1", "3"),
        ("ip[0] / 0 = 1", "0"),
        ("tcp and gateway x", "gateway"),
        ("tcp host 10.0.0.1", "tcp"),
        ("4294967296 = 1", "4294967296"),
        ("tcp and \u{e9}", "\u{e9}"),
    ] {
        let error = refused(expression);
        assert_eq!(&expression[error.place()], place, "{error}");
    }
}

#[test]
fn display_filters_are_said_as_capture_filters() {
    for (display, capture) in [
        ("ip.addr == 10.0.0.1", "host 10.0.0.1"),
        ("ip.addr == 10.0.0.0/8", "net 10.0.0.0/8"),
        ("ip.src==10.0.0.1", "src host 10.0.0.1"),
        ("ip.dst != 10.0.0.1", "not dst host 10.0.0.1"),
        ("ipv6.addr == 2001:db8::1", "host 2001:db8::1"),
        ("tcp.port == 80", "tcp port 80"),
        ("tcp.dstport eq 80", "tcp dst port 80"),
        ("udp.port >= 1024", "udp portrange 1024-65535"),
        ("tcp.flags.syn == 1", "tcp[tcpflags] & tcp-syn != 0"),
        ("tcp.flags.syn == 0", "tcp[tcpflags] & tcp-syn = 0"),
        ("tcp.flags.syn", "tcp[tcpflags] & tcp-syn != 0"),
        ("eth.addr == 02:00:00:00:00:01", "ether host 02:00:00:00:00:01"),
        ("ip.proto == 6", "ip proto 6"),
        ("vlan.id == 5", "vlan 5"),
        ("frame.len > 100", "len > 100"),
        ("ip.ttl lt 5", "ip[8] < 5"),
        ("dns.qry.type == 28", "dns qtype 28"),
        ("dns.flags.rcode == 3", "dns rcode 3"),
        ("dns.qry.name == \"a.b\"", "dns name a.b"),
        ("dns.flags.response == 0", "dns query"),
        ("dns.flags.response != 0", "dns response"),
        ("http", "tcp port 80"),
    ] {
        let error = refused(display);
        let hint = error.hint().unwrap();
        assert_eq!(hint, format!("The capture filter for this is: {capture}"), "{display}");
        assert!(CaptureFilter::parse(capture, Tunnel::Outer).is_ok(), "{capture}");
    }
    for display in
        ["http.host contains \"example\"", "frame matches \"x\"", "dns.qry.name == \"a.b\""]
    {
        assert!(refused(display).problem().contains("display filter"), "{display}");
    }
    let part = refused("ip.src==10.0.0.1 or ip.dst==10.0.0.2");
    assert_eq!(part.hint(), Some("The capture filter for this part is: src host 10.0.0.1"));
    for (expression, hint) in [
        ("eth and tcp", None),
        ("10.0.0.0/8", Some("net 10.0.0.0/8")),
        ("10.0.0.1", Some("host 10.0.0.1")),
        ("qtype A", Some("dns qtype AAAA")),
        ("rcode 3", Some("dns rcode NXDOMAIN")),
        ("domain a.b", Some("dns name example.com")),
        ("dns nxdomain", Some("dns rcode NXDOMAIN")),
        ("dns qtype A or AAAA", Some("dns qtype AAAA")),
        ("10.0.0.0/33", Some("host 10.0.0.0")),
    ] {
        let hint = hint.map(|hint| format!("For example: {hint}."));
        assert_eq!(refused(expression).hint(), hint.as_deref(), "{expression}");
    }
    for expression in ["port http https", "port 53 a", "dns query and port 80 443"] {
        let hint = refused(expression).hint().map(str::to_owned);
        assert_eq!(hint.as_deref(), Some("Terms are joined by \"and\" or \"or\"."), "{expression}");
    }
}

fn prefixed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// A DNS message over UDP, with the flags, type and name of its question.
fn dns(flags: [u8; 2], question_type: u8, name: &[u8]) -> Vec<u8> {
    let head = [&[0, 7], &flags[..], &[0, 1, 0, 0, 0, 0, 0, 0]].concat();
    let message = [&head[..], name, &[0, 0, question_type, 0, 1]].concat();
    let length = (8 + message.len() as u16).to_be_bytes();
    let (source, destination) = if flags[0] & 0x80 == 0 { (4000, 53) } else { (53, 4000) };
    let ports: [u16; 2] = [source, destination];
    let ports = ports.map(u16::to_be_bytes).concat();
    [&ports[..], &length, &[0, 0], &message].concat()
}

#[test]
fn dns_messages_are_asked_for_what_they_are() {
    let name = b"\x03WWW\x07example\x03org";
    let query = ethernet(0x0800, &v4(17, &dns([1, 0], 28, name)));
    let answer = ethernet(0x86dd, &v6(17, &dns([0x81, 3], 28, name)));
    for (expression, of_query, of_answer) in [
        ("dns", true, true),
        ("port dns", true, true),
        ("dns query", true, false),
        ("dns response", false, true),
        ("dns qtype AAAA", true, true),
        ("dns qtype aaaa and dns response", false, true),
        ("dns qtype TYPE28 and not dns qtype 1", true, true),
        ("dns rcode NXDOMAIN", false, true),
        ("dns rcode NOERROR", false, false),
        ("dns name www.example.org", true, true),
        ("dns name www.example.org.", true, true),
        ("dns name example.org", false, false),
        ("dns name .", false, false),
        ("dns name *.example.org", true, true),
        ("dns name *.org or host 192.0.2.2", true, true),
        ("dns name *.www.example.org", false, false),
        ("dns name *.xample.org", false, false),
        ("dns name \\and", false, false),
        ("ip and dns", true, false),
    ] {
        assert_eq!(matches(expression, &query), of_query, "{expression}");
        assert_eq!(matches(expression, &answer), of_answer, "{expression}");
    }
    let web = ethernet(0x0800, &v4(6, &tcp(1234, 80)));
    assert!(!matches("dns", &web) && matches("not dns", &web));
    // A message that was not captured is neither.
    let cut = &query[..query.len() - 6];
    assert!(!matches("dns response", cut) && !matches("not dns response", cut));
    // DNS tests ignore the trailer of a frame, and look into tunnels.
    let mut acknowledgement = ethernet(0x0800, &v4(6, &tcp(1234, 53)));
    acknowledgement.extend(prefixed(&query[42..]));
    assert!(!matches("dns", &acknowledgement) && matches("not dns", &acknowledgement));
    let vxlan = [&[0x12, 0xb5, 0x12, 0xb5][..], &(16 + query.len() as u16).to_be_bytes(), &[0; 2]];
    let vxlan = [&vxlan.concat()[..], &[8, 0, 0, 0, 0, 0, 5, 0], &query].concat();
    let tunnel = ethernet(0x0800, &v4(17, &vxlan));
    assert!(matches("dns query and udp port 4789 and not port 53", &tunnel));
    // The segment was captured whole, but its message continues in the next one.
    let segment = ethernet(0x0800, &v4(6, &[&tcp(1234, 53)[..], &[0, 40]].concat()));
    assert!(!matches("dns", &segment) && matches("not dns", &segment));
    // Cut before the payload, in a tunnel, and in an extension header.
    let extended = ethernet(0x86dd, &v6(0, &[0; 8]));
    for cut in [&segment[..54], &tunnel[..60], &tunnel[..72], &extended[..56]] {
        assert!(!matches("dns", cut) && !matches("not dns", cut), "{cut:?}");
    }
    let (mut offloaded, without_ports) = (segment.clone(), ethernet(0x0800, &v4(89, &[0; 8])));
    offloaded[16..18].fill(0);
    assert!(!matches("dns", &offloaded[..54]) && !matches("not dns", &offloaded[..54]));
    assert!(matches("not dns", &without_ports[..38]));
    let of_root = ethernet(0x0800, &v4(17, &dns([1, 0], 2, b"")));
    assert!(matches("(dns name .)", &of_root) && !matches("dns name *.org.", &of_root));
    let on_80 = filter("dns").with_dns_ports(&[80]);
    let frame = ethernet(0x0800, &v4(6, &[tcp(1234, 80), vec![0; 10]].concat()));
    assert!(!on_80.matches(LinkType::ETHERNET, &frame, 64));
    for wrong in
        ["dns qtype", "dns qtype FOO", "dns rcode 16", "dns name", "dns name and", "dns name a..b"]
    {
        assert!(refused(wrong).problem().starts_with("Here belongs"), "{wrong}");
    }
}

#[test]
fn names_are_asked_for_as_they_are_printed() {
    use crate::decode::dotted;
    for name in [
        &b"\x03a.b\x07example"[..],
        b"\x04\x01abc\x07example",
        b"\x0amy printer\x04_ipp\x04_tcp\x05local",
        b"\x011\x040/26\x012\x010\x03192\x07in-addr\x04arpa",
        b"\x02-a\x02b-",
        b"\x07b\xc3\xbccher\x07example",
        b"\x05a+b:c\x05d=e@f\x03'&|",
        b"\x03and",
        b"\x01*\x07example",
        b"\x0443ff\x0212",
    ] {
        let frame = ethernet(0x0800, &v4(17, &dns([1, 0], 28, name)));
        let printed = dotted(name);
        let printed = match printed.as_str() {
            // A keyword, and a name below a domain.
            special @ ("and" | "*.example") => format!("\\{special}"),
            _ => printed,
        };
        for rest in ["", " and dns query", "&& udp", ")||icmp"] {
            let open = if rest.starts_with(')') { "(" } else { "" };
            assert!(matches(&format!("{open}dns name {printed}{rest}"), &frame), "{printed}{rest}");
        }
        assert!(!matches(&format!("not dns name {printed}"), &frame), "{printed}");
    }
    for wrong in ["\"a.b\"", "'a.b'", "a.b, c.d", "= a.b", ":a"] {
        refused(&format!("dns name {wrong}"));
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, inside, close) in
        [("(", "tcp", ")"), ("(", "1", ") = 1"), ("ip[", "0", "]"), ("port (", "80", ")")]
    {
        for depth in [1000, 5000] {
            let expression = [&open.repeat(depth), inside, &close.repeat(depth)].concat();
            let _ = CaptureFilter::parse(&expression, Tunnel::Outer);
        }
    }
    let minuses = ["- ".repeat(20_000), "1 = 1".into()].concat();
    assert!(matches(&minuses, &[]));
    let nots = ["! ".repeat(20_000), "1 = 1".into()].concat();
    assert!(matches(&nots, &[]));
    let joined = ["1 = 1", &" and 1 = 1 or 1 = 0".repeat(3_000)].concat();
    assert!(matches(&joined, &[]));
    let deep = [&"(1+".repeat(90), "1", &")".repeat(90), " = 91"].concat();
    assert!(refused(&deep).problem().contains("too deeply"));
    assert!(refused(&"x".repeat(70_000)).problem().contains("longer than"));
}

/// Pieces that expressions are made of.
const PIECES: &[&str] = &[
    "ip",
    "ip6",
    "tcp",
    "udp",
    "arp",
    "ether",
    "vlan",
    "mpls",
    "pppoes",
    "host",
    "net",
    "port",
    "portrange",
    "proto",
    "src",
    "dst",
    "or",
    "and",
    "not",
    "(",
    ")",
    "[",
    "]",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "=",
    "!=",
    "<",
    ">=",
    "0",
    "1",
    "2",
    "4",
    "13",
    "80",
    "4294967295",
    "10.0.0.1",
    "10.0",
    "::1",
    "/",
    "8",
    "mask",
    "len",
    "less",
    "broadcast",
    "multicast",
    "80-90",
    "tcp-syn",
    "02:00:00:00:00:01",
    "ip[0] = 1",
    "tcp[13] & 2 != 0",
    "icmp6",
    "stp",
    "ip.addr",
    "tcp.flags.syn",
    "==",
    "\u{e9}",
    "\\tcp",
    "dns",
    "qtype AAAA",
    "rcode",
    "name *.example.org",
    "response",
    "contains",
];

fn texts() -> impl Strategy<Value = String> {
    let pieces = proptest::collection::vec(proptest::sample::select(PIECES), 0..12);
    prop_oneof![pieces.prop_map(|pieces| pieces.join(" ")), ".{0,40}"]
}

proptest! {
    #[test]
    fn no_text_and_no_frame_breaks_anything(
        text in texts(),
        link in prop_oneof![Just(1_u16), Just(101), 0_u16..300],
        noise in proptest::collection::vec(any::<u8>(), 0..120),
        ether_type in proptest::sample::select(&[0x0800_u16, 0x86dd, 0x0806, 0x8100, 0x8847, 0x8864][..]),
        wire in any::<u32>(),
        inner in any::<bool>(),
    ) {
        let tunnel = if inner { Tunnel::Inner } else { Tunnel::Outer };
        match CaptureFilter::parse(&text, tunnel) {
            Ok(filter) => {
                let shaped = ethernet(ether_type, &noise);
                for frame in [&noise, &shaped] {
                    filter.matches(LinkType(link), frame, wire);
                }
            }
            Err(error) => {
                prop_assert!(text.get(error.place()).is_some());
                prop_assert!(error.to_string().contains('^'));
            }
        }
    }

    /// A packet that a filter does not match matches its opposite, unless a byte is missing.
    #[test]
    fn whole_frames_match_a_filter_or_its_opposite(
        text in texts(),
        source in any::<u16>(),
        destination in any::<u16>(),
        is_v6 in any::<bool>(),
    ) {
        let segment = [tcp(source, destination), vec![0; 400]].concat();
        let frame = if is_v6 { ethernet(0x86dd, &v6(6, &segment)) } else { ethernet(0x0800, &v4(6, &segment)) };
        let negated = format!("not ({text})");
        let no_bytes = !text.contains(['[', '/', '%']);
        if let (Ok(filter), Ok(opposite), true) = (
            CaptureFilter::parse(&text, Tunnel::Outer),
            CaptureFilter::parse(&negated, Tunnel::Outer),
            no_bytes,
        ) {
            let run = |filter: &CaptureFilter| filter.matches(LinkType::ETHERNET, &frame, 460);
            prop_assert_ne!(run(&filter), run(&opposite), "{}", text);
        }
    }
}

/// Nanoseconds a packet, for those who change what is done for each.
#[test]
#[ignore = "a measurement: run it in release mode with --nocapture"]
fn measure() {
    let (mut bytes, mut packets) = (Vec::new(), Vec::new());
    let mut number = 1_u64;
    for _ in 0..1024 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let [a, b, c, d, ..] = number.to_be_bytes();
        let port = if a & 1 == 0 { 80 } else { 443 };
        let mut packet = v4(if b < 64 { 17 } else { 6 }, &tcp(u16::from(c) << 8 | 1, port));
        packet[12..16].copy_from_slice(&[10, 1, c, d & 3]);
        let frame = ethernet(0x0800, &[packet, vec![0; 40]].concat());
        packets.push(PacketRef {
            time_ns: 0,
            start: bytes.len() as u32,
            captured: frame.len() as u32,
            wire: frame.len() as u32,
            link: LinkType::ETHERNET,
        });
        bytes.extend(frame);
    }
    for expression in [
        "",
        "ip",
        "host 10.1.2.3",
        "net 10.0.0.0/8",
        "tcp port 80",
        "not port 53",
        "src net 10.1.0.0/16 and tcp dst port 80",
        "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
    ] {
        let filter = filter(expression);
        let mut chosen = vec![true; packets.len()];
        let mut best = f64::MAX;
        for _ in 0..200 {
            let start = std::time::Instant::now();
            for _ in 0..20 {
                chosen.fill(true);
                filter.choose(&bytes, &packets, &mut chosen);
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (20 * packets.len()) as f64);
        }
        println!(
            "{best:5.2} ns a packet, {:4} of 1024 kept: {expression}",
            chosen.iter().filter(|&&chosen| chosen).count()
        );
    }
}
