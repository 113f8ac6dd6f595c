//! Suricata's `eve.json`: a JSON object a line, each an event. Those of flows and of DNS are
//! records; others are passed over.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReadError;
use super::format::{self, Batch, Class, Format, PacketSource, Verdict};
use super::log_entries::{Content, End, Entries, Fields, FlowFields, Lines, Time, as_written};
use super::read_buffer::ReadBuffer;

pub(super) const FORMAT: Format = Format {
    containers: &["eve-json"],
    words: "Suricata's eve.json",
    class: Class::TextLog,
    recognise: |buffer| {
        format::ask_json_lines(buffer, |has| {
            if has("event_type") { Verdict::Break(Some("eve-json")) } else { Verdict::Continue(()) }
        })
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
    src_port: Option<&'a RawValue>,
    dest_port: Option<&'a RawValue>,
    #[serde(borrow, default)]
    proto: Cow<'a, str>,
    /// Other events have them in other forms.
    flow: Option<&'a RawValue>,
    dns: Option<&'a RawValue>,
    tcp: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Flow<'a> {
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(borrow, default)]
    end: Cow<'a, str>,
    pkts_toserver: Option<&'a RawValue>,
    pkts_toclient: Option<&'a RawValue>,
    bytes_toserver: Option<&'a RawValue>,
    bytes_toclient: Option<&'a RawValue>,
}

/// The flags of a flow, in hexadecimal digits.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tcp<'a> {
    #[serde(borrow)]
    tcp_flags_ts: Cow<'a, str>,
    #[serde(borrow)]
    tcp_flags_tc: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Dns<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    rrname: Option<Cow<'a, str>>,
    /// Since version 3 of the format, all questions.
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
        escaped: true,
        is_response: matches!(&*dns.kind, "answer" | "response"),
    };
    // Before version 3 of the format an answer has the addresses of its query, except in releases
    // that wrote those of its packet.
    let is_dns = |port: Option<&RawValue>| as_written(port) == Some("53");
    let from_server = is_dns(event.src_port) && !is_dns(event.dest_port);
    let exchanged = dns.kind == "answer" && !from_server;
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
