//! Suricata's `eve.json`: a JSON object a line, each an event. Those of flows and of DNS are
//! records; others are passed over.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReadError;
use super::format::{self, Batch, Class, Format, PacketSource};
use super::log_entries::{Content, End, Entries, Fields, FlowFields, Lines, Time, as_written};
use super::read_buffer::ReadBuffer;

pub(super) const FORMAT: Format = Format {
    containers: &["eve-json"],
    words: "Suricata's eve.json",
    class: Class::TextLog,
    recognise: |buffer| {
        let head = format::text_head(buffer);
        let is_one = head.starts_with(b"{") && format::contains(head, b"\"event_type\"");
        is_one.then_some("eve-json")
    },
    open: |_, _| Ok(Box::new(Eve::default())),
};

#[derive(Debug, Default)]
pub(super) struct Eve {
    lines: Lines,
}

/// The fields of all events.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, rename = "event_type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    src_ip: Cow<'a, str>,
    #[serde(borrow, default)]
    dest_ip: Cow<'a, str>,
    #[serde(borrow, default)]
    src_port: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dest_port: Option<&'a RawValue>,
    #[serde(borrow, default)]
    proto: Cow<'a, str>,
    /// Other events have them in other forms.
    #[serde(borrow, default)]
    flow: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dns: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tcp: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Flow<'a> {
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(borrow, default)]
    end: Cow<'a, str>,
    #[serde(borrow, default)]
    pkts_toserver: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pkts_toclient: Option<&'a RawValue>,
    #[serde(borrow, default)]
    bytes_toserver: Option<&'a RawValue>,
    #[serde(borrow, default)]
    bytes_toclient: Option<&'a RawValue>,
}

/// The flags of a flow, in hexadecimal digits.
#[derive(Default, Deserialize)]
struct Tcp<'a> {
    #[serde(borrow, default)]
    tcp_flags_ts: Cow<'a, str>,
    #[serde(borrow, default)]
    tcp_flags_tc: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Dns<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    rrname: Option<Cow<'a, str>>,
    /// Since version 3 of the format, all questions.
    #[serde(borrow, default)]
    queries: Option<Vec<Query<'a>>>,
}

#[derive(Deserialize)]
struct Query<'a> {
    #[serde(borrow)]
    rrname: Cow<'a, str>,
}

impl PacketSource for Eve {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        self.lines.read_each(buffer, &mut batch.entries, read)
    }
}

fn read(line: &[u8], out: &mut Entries) -> Result<(), String> {
    let event: Event<'_> = parse(line)?;
    match &*event.kind {
        "flow" => flow(&event, out),
        "dns" => dns(&event, out),
        _ => Ok(()),
    }
}

fn flow(event: &Event<'_>, out: &mut Entries) -> Result<(), String> {
    let flow = event.flow.ok_or("an event of a flow has no flow")?;
    let flow: Flow<'_> = parse(flow.get().as_bytes())?;
    let tcp: Option<Tcp<'_>> = event.tcp.and_then(|tcp| parse(tcp.get().as_bytes()).ok());
    let tcp = tcp.unwrap_or_default();
    let flags = |text: &str| u8::from_str_radix(text, 16).unwrap_or(0).to_string();
    let flags = [flags(&tcp.tcp_flags_ts), flags(&tcp.tcp_flags_tc)];
    let end = (!flow.end.is_empty()).then_some(End::Time(Time::Text(&flow.end)));
    let content = Content::Flow(FlowFields {
        end,
        packets: [as_written(flow.pkts_toserver), as_written(flow.pkts_toclient)],
        bytes: [as_written(flow.bytes_toserver), as_written(flow.bytes_toclient)],
        tcp_flags: [Some(&*flags[0]), Some(&*flags[1])],
    });
    out.push(&event.fields(&flow.start, content, false))
}

fn dns(event: &Event<'_>, out: &mut Entries) -> Result<(), String> {
    let dns = event.dns.ok_or("an event of DNS has no dns")?;
    let dns: Dns<'_> = parse(dns.get().as_bytes())?;
    let first = dns.queries.as_ref().and_then(|queries| queries.first());
    let name = dns.rrname.as_ref().or(first.map(|query| &query.rrname));
    let content = Content::Dns {
        name: name.map(|name| name.as_bytes()),
        escaped: false,
        is_response: matches!(&*dns.kind, "answer" | "response"),
    };
    // Before version 3 of the format the source of an answer is who gets it.
    let exchanged = dns.kind == "answer";
    out.push(&event.fields(&event.timestamp, content, exchanged))
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

impl<'a> Event<'a> {
    /// Returns the record, with the ends exchanged where the event has them so.
    fn fields(&'a self, time: &'a str, content: Content<'a>, exchanged: bool) -> Fields<'a> {
        let mut ends = [
            (&*self.src_ip, as_written(self.src_port)),
            (&*self.dest_ip, as_written(self.dest_port)),
        ];
        if exchanged {
            ends.swap(0, 1);
        }
        Fields {
            time: Time::Text(time),
            source: ends[0].0,
            destination: ends[1].0,
            protocol: Some(&self.proto),
            source_port: ends[0].1,
            destination_port: ends[1].1,
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::TraceErrorKind;
    use super::super::log_tests::{names, read};
    use super::super::packet::{LogContent, LoggedFlow};

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

    #[test]
    fn a_malformed_line_is_named() {
        let log = read(EVENTS.replace("\"rrname\":\"a.example\"", "rrname").as_bytes());
        assert_eq!(log.entries.len(), 2);
        let kind = log.error.unwrap().kind;
        let is_third = matches!(kind, TraceErrorKind::LinesSkipped { line: 3, others: 1, .. });
        assert!(is_third, "{kind:?}");
    }
}
