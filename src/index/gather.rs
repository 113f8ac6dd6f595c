//! The records of a capture, region by region, in bounded memory.
//!
//! ```text
//!   flows::list ─► flows, cut after a region's length ─┐
//!              └─► DNS messages, added up by question ─┴─► SortedFlows ─► regions in order of start
//!   log ─► its flows; its DNS messages, added up by flow and by question ┘
//! ```
//!
//! A region has the records that begin in one range of time. It extends into the next range while it
//! has fewer than 64 records, and ends early at 131,072, so that neither a clock that jumps nor a
//! flood makes regions that cost more than they hold.

use super::catalog::Settings;
use super::record::addresses;
use super::{IndexError, Record};
use crate::decode::{
    Addresses, Headers, NAME_MAX, dns_message, labels_from_text, logged_addresses,
};
use crate::flows::{
    Direction, DnsRecord, Ended, FlowPlan, FlowRecord, FlowSink, SortedFlows, Upper, list,
};
use crate::plan::TracePlan;
use crate::selection::Selection;
use crate::trace::{
    Capture, InputFormat, LogBatch, LogContent, LogEntry, LogQuestion, LoggedFlow, Source,
    TraceBatch, TraceError,
};
use flowsieve_engine::internal::{Watch, allocatable};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;

/// A region extends into the next range of time until it has this many records.
const LEAST_RECORDS: usize = 64;

/// Most records of a region.
const MOST_RECORDS: usize = 1 << 17;

/// Questions and flows whose messages are summed at one time.
const MOST_QUESTIONS: usize = 1 << 16;

/// Bit in the number of a record of DNS messages.
const DNS: u64 = 1 << 63;

/// Memory for building a region.
pub(super) const REGION_BYTES: u64 = 160 << 20;

/// Least memory for flows.
const LEAST_BYTES: u64 = 1 << 20;

/// Checks that the system grants the minimum memory for indexing a capture.
pub(super) fn check_memory() -> Result<(), IndexError> {
    let bytes = REGION_BYTES;
    if allocatable(bytes, LEAST_BYTES) == bytes {
        return Ok(());
    }
    Err(IndexError::Refused(format!(
        "indexing takes at least {bytes} bytes of memory, which this machine does not give; allow the program more (ulimit -v), or index on another machine"
    )))
}

/// Result of reading a capture.
#[derive(Default)]
pub(super) struct CaptureReading {
    /// Packets, or entries of a log.
    pub(super) packets: u64,
    /// Packets whose times are outside 1677 to 2262.
    pub(super) times_out_of_range: u64,
    /// Whether it was recognised as a capture or a log.
    pub(super) is_capture: bool,
    /// Why it could only be read up to some place.
    pub(super) error: Option<TraceError>,
    /// A signal ended the reading, and there are no regions.
    pub(super) interrupted: bool,
}

/// Reads the selected packets of a capture or a log with this memory for flows and this many threads,
/// and passes the records of each region to `see`.
pub(super) fn regions(
    source: Source,
    settings: &Settings,
    selection: &Selection,
    (memory_bytes, threads): (u64, usize),
    watch: &dyn Watch,
    see: impl FnMut(Vec<Record>) -> Result<(), IndexError>,
) -> Result<CaptureReading, IndexError> {
    let path = &source.path().to_owned();
    // Regions are built while flows are in memory. If the system gives less than both need, flows get
    // less.
    let memory_bytes =
        allocatable(memory_bytes.saturating_add(REGION_BYTES), REGION_BYTES + LEAST_BYTES)
            - REGION_BYTES;
    let plan = FlowPlan {
        trace: TracePlan {
            selection: selection.clone(),
            headers: Headers { dns_ports: settings.dns_ports.clone(), ..Headers::default() },
            threads,
            ..TracePlan::new([source])
        },
        bidirectional: true,
        idle_ns: None,
        active_ns: Some(settings.region_ns),
        memory_bytes: memory_bytes / 4 * 3,
    };
    let mut gather = Gather {
        sorted: SortedFlows::new(memory_bytes / 4),
        questions: HashMap::new(),
        region_ns: settings.region_ns,
        number: 0,
    };
    let gathered = gather.read(path, &plan, watch)?;
    if gathered.interrupted || watch.stop().is_set() {
        return Ok(CaptureReading { interrupted: true, ..gathered });
    }
    gather.pass_on().map_err(IndexError::io(path))?;
    divide(gather.sorted, settings.region_ns, path, see)?;
    Ok(gathered)
}

/// Divides flows, which come in the order of their start, among regions.
fn divide(
    flows: SortedFlows,
    region_ns: i64,
    path: &Path,
    mut see: impl FnMut(Vec<Record>) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let mut records: Vec<Record> = Vec::new();
    let mut range = 0;
    let mut failed = None;
    let drained = flows.drain(|flow| {
        let at = flow.start_ns.div_euclid(region_ns);
        if (at != range && records.len() >= LEAST_RECORDS) || records.len() >= MOST_RECORDS {
            see(std::mem::take(&mut records)).map_err(|error| {
                failed = Some(error);
                io::Error::other("a region could not be kept")
            })?;
        }
        range = at;
        records.push(record(flow));
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    drained.map_err(IndexError::io(path))?;
    if records.is_empty() { Ok(()) } else { see(records) }
}

/// A question of a client to a server; without a name, a flow of DNS messages in a log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Question {
    client: IpAddr,
    server: IpAddr,
    /// That of the client is 0 in a question.
    ports: (u16, u16),
    protocol: u8,
    name: Option<Box<[u8]>>,
}

/// The messages about a question, or of a flow.
#[derive(Clone, Copy, Debug)]
struct Messages {
    number: u64,
    start_ns: i64,
    end_ns: i64,
    /// Queries and responses.
    count: [u64; 2],
}

struct Gather {
    sorted: SortedFlows,
    questions: HashMap<Question, Messages>,
    region_ns: i64,
    number: u64,
}

impl Gather {
    /// Reads a capture or a log.
    fn read(
        &mut self,
        path: &Path,
        plan: &FlowPlan,
        watch: &dyn Watch,
    ) -> Result<CaptureReading, IndexError> {
        let stop = watch.stop();
        let head = Capture::open_until(path, InputFormat::Auto, &stop);
        if head.is_ok_and(|capture| capture.is_log()) {
            return match plan.trace.inputs[0].open(InputFormat::Auto, &stop) {
                Ok(mut capture) => {
                    if let Some(select) = plan.trace.selection.select() {
                        capture.select(select);
                    }
                    self.log(capture, watch)
                }
                Err(error) => Ok(CaptureReading { error: Some(error), ..Default::default() }),
            };
        }
        let summary = list(plan, self, watch);
        let mut summary = summary.map_err(|error| IndexError::from_flows(path, error))?;
        let input = summary.inputs.remove(0);
        Ok(CaptureReading {
            packets: input.packets,
            is_capture: input.container.is_some(),
            times_out_of_range: input.times_out_of_range,
            error: input.error,
            interrupted: summary.totals.interrupted,
        })
    }

    /// Takes all entries of a log.
    fn log(
        &mut self,
        mut capture: Capture,
        watch: &dyn Watch,
    ) -> Result<CaptureReading, IndexError> {
        let path = capture.path().to_owned();
        let bytes = capture.bytes_read();
        let out_of_range = capture.times_out_of_range();
        let error = capture.unanswered();
        let mut gathered = CaptureReading { is_capture: true, error, ..CaptureReading::default() };
        loop {
            match capture.next_batch() {
                Ok(Some(TraceBatch::Log(log))) => {
                    self.entries(&log).map_err(IndexError::io(&path))?;
                    gathered.packets += log.entries.len() as u64;
                    gathered.times_out_of_range = out_of_range.load(Ordering::Relaxed);
                }
                Ok(Some(TraceBatch::Packets { .. })) => {}
                Ok(None) => return Ok(gathered),
                Err(error) => {
                    gathered.error = Some(error);
                    return Ok(gathered);
                }
            }
            watch.progress(bytes.load(Ordering::Relaxed), gathered.packets);
        }
    }

    /// Takes entries of a log. Those without two ends of one family give no record, as they give no
    /// element; DNS messages without a valid name are in flows alone.
    fn entries(&mut self, log: &LogBatch<'_>) -> io::Result<()> {
        for entry in log.entries {
            let Ok(addresses) = logged_addresses(entry) else { continue };
            match &entry.content {
                LogContent::NotSelected => {}
                LogContent::Flow(flow) => self.logged_flow(entry, addresses, flow)?,
                LogContent::Dns { question, is_response } => {
                    let (protocol, from, to) = entry.transport.unwrap_or_default();
                    let ((client, server), ports) = if *is_response {
                        (addresses.reversed().ends(), (to, from))
                    } else {
                        (addresses.ends(), (from, to))
                    };
                    let flow = Question { client, server, ports, protocol, name: None };
                    let mut buffer = [0; NAME_MAX];
                    if let Some(name) = labels(log, question, &mut buffer) {
                        let (ports, name) = ((0, ports.1), Some(name.into()));
                        let question = Question { ports, name, ..flow };
                        self.message(question, entry.time_ns, *is_response)?;
                    }
                    self.message(flow, entry.time_ns, *is_response)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a flow of a log. One without a protocol and ports has an unknown protocol.
    fn logged_flow(
        &mut self,
        entry: &LogEntry,
        addresses: Addresses,
        flow: &LoggedFlow,
    ) -> io::Result<()> {
        self.number += 1;
        let (protocol, source, destination) = entry.transport.unwrap_or_default();
        let direction = |end: usize| Direction {
            packets: flow.packets[end].max(u64::from(flow.directions()[end])),
            bytes: flow.bytes[end],
            tcp_flags: flow.tcp_flags[end],
        };
        self.sorted.flow(FlowRecord {
            start_ns: entry.time_ns,
            end_ns: flow.end_ns.max(entry.time_ns),
            addresses,
            protocol,
            ports: (source, destination),
            forward: direction(0),
            reverse: direction(1),
            vlan: None,
            domain: None,
            upper: Upper::Unknown,
            ended: Ended::Input,
            number: self.number,
        })
    }

    /// Emits all questions.
    fn pass_on(&mut self) -> io::Result<()> {
        for (question, messages) in std::mem::take(&mut self.questions) {
            self.sorted.flow(as_flow(question, messages))?;
        }
        Ok(())
    }

    /// Counts a message of a question, or of a flow.
    fn message(&mut self, question: Question, time_ns: i64, is_response: bool) -> io::Result<()> {
        if self.questions.len() >= MOST_QUESTIONS {
            self.pass_on()?;
        }
        self.number += 1;
        let first = Messages {
            number: if question.name.is_some() { self.number | DNS } else { self.number },
            start_ns: time_ns,
            end_ns: time_ns,
            count: [0, 0],
        };
        let known = self.questions.entry(question.clone()).or_insert(first);
        // Like flows.
        let reach = known.start_ns.abs_diff(time_ns).max(known.end_ns.abs_diff(time_ns));
        if reach > self.region_ns.unsigned_abs() {
            let before = std::mem::replace(known, first);
            known.count[usize::from(is_response)] = 1;
            return self.sorted.flow(as_flow(question, before));
        }
        known.start_ns = known.start_ns.min(time_ns);
        known.end_ns = known.end_ns.max(time_ns);
        known.count[usize::from(is_response)] += 1;
        Ok(())
    }
}

impl FlowSink for Gather {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        // Names have separate records.
        self.sorted.flow(FlowRecord { domain: None, ..flow })
    }

    fn dns(&mut self, message: &DnsRecord<'_>) -> io::Result<()> {
        let (client, server) = message.addresses.ends();
        let question = Question {
            client,
            server,
            ports: (0, message.server_port),
            protocol: message.protocol,
            name: Some(message.name.into()),
        };
        self.message(question, message.time_ns, message.is_response)
    }
}

/// Returns the name in a question in wire form.
fn labels<'b>(
    log: &LogBatch<'_>,
    question: &LogQuestion,
    buffer: &'b mut [u8; NAME_MAX],
) -> Option<&'b [u8]> {
    match question {
        LogQuestion::None => None,
        LogQuestion::Name(range) => labels_from_text(log.at(range), buffer),
        LogQuestion::Message(range) | LogQuestion::Other(range) => {
            let mut length = None;
            let found = dns_message(log.at(range), |message| {
                buffer[..message.name.len()].copy_from_slice(message.name);
                length = Some(message.name.len());
            });
            found.ok()?;
            Some(&buffer[..length?])
        }
    }
}

/// Returns DNS messages as a flow record, so that they can be sorted with flows. A flow that has
/// responses alone comes from the server.
fn as_flow(question: Question, messages: Messages) -> FlowRecord {
    let Question { client, server, ports, protocol, name } = question;
    let [queries, responses] =
        messages.count.map(|packets| Direction { packets, ..Direction::default() });
    let addresses = addresses(client, server);
    let (addresses, ports, forward, reverse) = if name.is_none() && messages.count[0] == 0 {
        (addresses.reversed(), (ports.1, ports.0), responses, queries)
    } else {
        (addresses, ports, queries, responses)
    };
    FlowRecord {
        start_ns: messages.start_ns,
        end_ns: messages.end_ns,
        addresses,
        protocol,
        ports,
        forward,
        reverse,
        vlan: None,
        domain: name,
        upper: Upper::Unknown,
        ended: Ended::Input,
        number: messages.number,
    }
}

fn record(mut flow: FlowRecord) -> Record {
    let name = flow.domain.take();
    let is_dns = flow.number & DNS != 0;
    Record { domain: name.filter(|_| is_dns), ..Record::of_flow(&flow) }
}
