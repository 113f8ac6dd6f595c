//! Writing the packets that match a query, from the captures that have some.

use super::catalog::{CaptureEntry, Catalog};
use super::disk::state_of;
use super::record::Ends;
use super::{IndexError, IndexQuery};
use crate::anonymize::PacketAnonymizer;
use crate::decode::{DNS_PORT, Decoder, IpPacket, Tunnel, dns_messages};
use crate::selection::Selection;
use crate::trace::write::{CaptureWriter, WriteError, WriteFormat};
use crate::trace::{Capture, InputFormat, LogBatch, PacketRef, Select, Source, StopFlag};
use flowsieve_engine::internal::Shown;
use flowsieve_engine::internal::{Merge, RecordInput};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Chooses the packets of a capture.
#[derive(Debug)]
struct Chooser {
    query: IndexQuery,
    /// Further conditions, and what of the capture was indexed.
    selections: Vec<Arc<dyn Select>>,
    decoder: Decoder,
    /// Decodes inside tunnels, where the index found DNS messages, too.
    inner: Decoder,
    dns_ports: Arc<[u16]>,
}

impl Select for Chooser {
    fn choose_packets(&self, bytes: &[u8], packets: &[PacketRef], chosen: &mut Vec<bool>) {
        chosen.extend(packets.iter().map(|packet| self.takes(packet, bytes)));
        let mut selected = Vec::new();
        for selection in &self.selections {
            selected.clear();
            selection.choose_packets(bytes, packets, &mut selected);
            let both = chosen.iter_mut().zip(&selected);
            both.for_each(|(chosen, selected)| *chosen &= selected);
        }
    }

    /// Logs have no packets.
    fn choose_entries(&self, log: LogBatch<'_>, chosen: &mut Vec<bool>) {
        chosen.extend(log.entries.iter().map(|_| false));
    }
}

impl Chooser {
    fn takes(&self, packet: &PacketRef, bytes: &[u8]) -> bool {
        if !self.query.takes_times(packet.time_ns, packet.time_ns) {
            return false;
        }
        let frame = &bytes[packet.start as usize..][..packet.captured as usize];
        let Ok(ip) = self.decoder.decode(packet.link, frame) else { return false };
        let (src, dst) = ip.addresses.ends();
        let (src_port, dst_port) = ip.ports().unwrap_or_default();
        let there = Ends { src, dst, src_port, dst_port };
        if self.query.domain.is_none() {
            return self.query.takes_ends(there);
        }
        if !ip.may_be_tunnel() {
            return self.takes_message(&ip, there);
        }
        let inner = self.inner.decode(packet.link, frame);
        inner.is_ok_and(|inner| self.takes_message(&inner, there))
    }

    /// Returns whether the packet has a DNS message that matches.
    fn takes_message(&self, ip: &IpPacket<'_>, there: Ends) -> bool {
        let mut takes = false;
        // Most packets have no message, which is no error.
        let _ = dns_messages(ip, &self.dns_ports, |message| {
            let ends = if message.is_response { there.reversed() } else { there };
            let domain = self.query.domain.as_ref();
            takes |= domain.is_some_and(|domain| domain.contains(message.name))
                && self.query.takes_ends(ends);
        });
        takes
    }
}

/// Captures that are open at one time. More are merged in groups, in temporary files.
const MOST_OPEN: usize = 128;

/// Result of writing packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Extracted {
    /// Packets.
    pub packets: u64,
    /// DNS logs among the captures, which have no packets.
    pub logs: u64,
    /// A signal ended the reading, and there were more.
    pub interrupted: bool,
    /// No capture could be opened.
    pub nothing_read: bool,
}

/// The packets to write, and their format.
#[derive(Debug)]
pub struct ExtractPlan<'a> {
    /// The query.
    pub query: &'a IndexQuery,
    /// Further conditions.
    pub selection: &'a Selection,
    /// The captures with answers.
    pub captures: &'a [CaptureEntry],
    /// How they are written.
    pub format: WriteFormat,
    /// Replaces the addresses in what is written.
    pub anonymizer: Option<&'a mut PacketAnonymizer>,
    /// Ends the reading.
    pub stop: &'a StopFlag,
}

/// Writes the packets of a plan, in the order of time. Captures that are gone or have changed are
/// problems.
///
/// # Errors
///
/// There is no index, or writing failed.
pub fn extract<W: Write + Send + 'static>(
    archive: &Path,
    plan: ExtractPlan<'_>,
    out: W,
    problems: &mut Vec<String>,
) -> Result<(W, Extracted), IndexError> {
    let settings = Catalog::load(archive)?.settings;
    let dns_ports: Arc<[u16]> = [&[DNS_PORT], &settings.dns_ports[..]].concat().into();
    let (mut sources, mut nothing_read) = (Vec::new(), !plan.captures.is_empty());
    let mut states = Vec::new();
    for entry in plan.captures {
        let mut selections: Vec<_> = plan.selection.select().into_iter().collect();
        selections.extend(entry.selection()?.select());
        let chooser = Chooser {
            query: plan.query.clone(),
            selections,
            decoder: Decoder::new(Tunnel::Outer),
            inner: Decoder::new(Tunnel::Inner),
            dns_ports: Arc::clone(&dns_ports),
        };
        if let Some(problem) = not_a_file(&entry.path) {
            problems.push(problem);
            continue;
        }
        nothing_read =
            nothing_read && Capture::open_until(&entry.path, InputFormat::Auto, plan.stop).is_err();
        states.extend(state_of(&entry.path).map(|state| (&entry.path, state)));
        sources.push(source(entry, Arc::new(chooser), plan.stop, problems));
    }
    sources.sort_by_key(|source| source.1);
    let mut extraction = Extraction { stop: plan.stop, logs: 0, problems };
    let _merged = extraction.merge_groups(&mut sources)?;
    let (out, packets) = extraction.write(&sources, out, plan.format, plan.anonymizer)?;
    let interrupted = plan.stop.is_set();
    let extracted = Extracted { packets, logs: extraction.logs, interrupted, nothing_read };
    // Captures may change between the check of their digests and the reading of packets.
    let replaced =
        states.into_iter().filter(|(path, state)| state_of(path).is_some_and(|now| now != *state));
    problems.extend(replaced.map(|(path, _)| {
        format!(
            "{}: this capture changed while it was read, so its packets may not be those that were indexed; search again when no program writes to it",
            path.shown()
        )
    }));
    Ok((out, extracted))
}

/// Returns why a capture is not opened: it has become a pipe or a device since it was indexed, and
/// opening that may wait for ever. `None` if it is a file.
fn not_a_file(path: &Path) -> Option<String> {
    let is_other = fs::metadata(path).is_ok_and(|data| !data.is_file());
    is_other.then(|| {
        format!(
            "{}: this was a capture when it was indexed and is no file any more, so it is not opened; drop it with `flowsieve index drop`",
            path.shown()
        )
    })
}

/// A capture to be read, and the earliest time of its packets.
type Timed = (Source, i64);

fn source(
    entry: &CaptureEntry,
    chooser: Arc<Chooser>,
    stop: &StopFlag,
    problems: &mut Vec<String>,
) -> Timed {
    // Bytes are compared, because length and time can be the same. If the capture cannot be read,
    // reading its packets reports that.
    let is_there = fs::metadata(&entry.path).is_ok();
    let changed = is_there && entry.is_content_of(&entry.path, stop) == Some(false);
    if changed {
        problems.push(format!(
            "{}: this capture has changed since it was indexed; its packets are those of today, and `flowsieve index add` indexes it anew",
            entry.path.shown()
        ));
    }
    let first_ns = entry.regions.iter().map(|region| region.start_ns).min();
    // The times of one that changed are unknown: it is opened first.
    let first_ns = first_ns.filter(|_| !changed).unwrap_or(i64::MIN);
    (Source::from(&entry.path).selected_by(chooser), first_ns)
}

/// State of reading captures.
struct Extraction<'a> {
    stop: &'a StopFlag,
    /// DNS logs among the captures.
    logs: u64,
    problems: &'a mut Vec<String>,
}

impl Extraction<'_> {
    /// Merges sources in groups until all can be open together. Returns the folder of temporary files,
    /// if there are any.
    fn merge_groups(&mut self, sources: &mut Vec<Timed>) -> Result<Option<TempDir>, IndexError> {
        if sources.len() <= MOST_OPEN {
            return Ok(None);
        }
        let folder = TempDir::new().map_err(IndexError::io(Path::new("temporary")))?;
        while sources.len() > MOST_OPEN {
            let mut merged = Vec::new();
            for group in sources.chunks(MOST_OPEN) {
                let name = format!("{}-{}.pcapng", sources.len(), merged.len());
                let path = folder.path().join(name);
                let out = File::create(&path).map_err(IndexError::io(&path))?;
                self.write(group, out, WriteFormat::of_name(&path), None)?;
                merged.push((path.into(), group[0].1));
            }
            *sources = merged;
        }
        Ok(Some(folder))
    }

    /// Writes the packets of some captures, and returns their number.
    fn write<W: Write + Send + 'static>(
        &mut self,
        sources: &[Timed],
        out: W,
        format: WriteFormat,
        mut anonymizer: Option<&mut PacketAnonymizer>,
    ) -> Result<(W, u64), IndexError> {
        let mut writer = CaptureWriter::new(out, format, sources.len() == 1)
            .map_err(|error| unwritten(error.into()))?;
        let begin = |capture, _| RecordInput::new(capture);
        let sources = sources.iter().cloned();
        let merge = Merge::with_times(sources, InputFormat::Auto, self.stop, begin);
        let (inputs, _) = merge.drain(&(), |number, input, count| {
            let (batch, range) = input.next(count);
            let anonymizer = anonymizer.as_deref_mut();
            let anonymized =
                anonymizer.map(|anonymizer| anonymizer.batch(number, &batch, range.clone()));
            let batch = anonymized.as_ref().unwrap_or(&batch);
            writer.write(number, batch, range.start, range.end).map_err(unwritten)
        })?;
        for input in inputs {
            self.logs += u64::from(input.is_log);
            let error = input.error.map(|error| error.to_string());
            self.problems.extend(error);
        }
        let (out, written) = writer.finish().map_err(unwritten)?;
        Ok((out, written.packets))
    }
}

fn unwritten(error: WriteError) -> IndexError {
    let error = match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    };
    IndexError::io(Path::new("the capture"))(error)
}
