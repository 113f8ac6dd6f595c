//! The packets that were asked for, taken from the captures that have some.

use super::catalog::{CaptureEntry, Catalog};
use super::record::{Ends, ends};
use super::{IndexError, IndexQuery};
use crate::decode::{DNS_PORT, Decoder, IpPacket, Tunnel, dns_messages};
use crate::trace::write::{CaptureWriter, WriteError, WriteFormat};
use crate::trace::{Capture, InputFormat, PacketRef, TraceBatch};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Decides of packets.
struct Chooser<'a> {
    query: &'a IndexQuery,
    decoder: Decoder,
    /// Finds DNS messages inside tunnels, as the index did.
    inner: Decoder,
    dns_ports: Vec<u16>,
}

impl Chooser<'_> {
    fn takes(&self, packet: &PacketRef, bytes: &[u8]) -> bool {
        if !self.query.takes_times(packet.time_ns, packet.time_ns) {
            return false;
        }
        let frame = &bytes[packet.start as usize..][..packet.captured as usize];
        let Ok(ip) = self.decoder.decode(packet.link, frame) else {
            return false;
        };
        let (src, dst) = ends(ip.addresses);
        let (src_port, dst_port) = ip.ports().unwrap_or_default();
        let there = Ends {
            src,
            dst,
            src_port,
            dst_port,
        };
        if self.query.domain.is_none() {
            return self.query.takes_ends(there);
        }
        if !ip.may_be_tunnel() {
            return self.takes_message(&ip, there);
        }
        let inner = self.inner.decode(packet.link, frame);
        inner.is_ok_and(|inner| self.takes_message(&inner, there))
    }

    /// Whether there is a message about a domain that is asked for; its ends are those of the packet.
    fn takes_message(&self, ip: &IpPacket<'_>, there: Ends) -> bool {
        let mut takes = false;
        // No message is no error: most packets are no DNS traffic.
        let _ = dns_messages(ip, &self.dns_ports, |message| {
            let ends = if message.is_response {
                Ends {
                    src: there.dst,
                    dst: there.src,
                    src_port: there.dst_port,
                    dst_port: there.src_port,
                }
            } else {
                there
            };
            let domain = self.query.domain.as_ref();
            takes |= domain.is_some_and(|domain| domain.contains(message.name))
                && self.query.takes_ends(ends);
        });
        takes
    }
}

/// Writes the packets that are asked for from these captures, one capture after the other in the
/// order of their start; how many they were. Captures that are gone or have changed are problems.
///
/// # Errors
///
/// There is no index, or writing failed.
pub fn extract<W: Write + Send + 'static>(
    archive: &Path,
    query: &IndexQuery,
    captures: &[CaptureEntry],
    out: W,
    format: WriteFormat,
    problems: &mut Vec<String>,
) -> Result<(W, u64), IndexError> {
    let settings = Catalog::load(archive)?.settings;
    let chooser = Chooser {
        query,
        decoder: Decoder::new(Tunnel::Outer),
        inner: Decoder::new(Tunnel::Inner),
        dns_ports: [&[DNS_PORT], &settings.dns_ports[..]].concat(),
    };
    let mut order: Vec<&CaptureEntry> = captures.iter().collect();
    order.sort_by_key(|entry| {
        (
            entry.regions.first().map(|region| region.start_ns),
            entry.id,
        )
    });
    let failed = |error: WriteError| {
        let error = match error {
            WriteError::Io(error) => error,
            other => io::Error::other(other),
        };
        IndexError::io(Path::new("the capture"))(error)
    };
    let single = captures.len() == 1;
    let mut writer =
        CaptureWriter::new(out, format, single).map_err(|error| failed(error.into()))?;
    for (input, entry) in order.into_iter().enumerate() {
        let length = fs::metadata(&entry.path).map(|data| data.len());
        if length.is_ok_and(|length| length != entry.bytes) {
            problems.push(format!(
                "{}: this capture has changed since it was indexed; its packets are those of today, and `flowsieve index add` indexes it anew",
                entry.path.display()
            ));
        }
        let mut capture = match Capture::open(&entry.path, InputFormat::Auto) {
            Ok(capture) => capture,
            Err(error) => {
                problems.push(error.to_string());
                continue;
            }
        };
        capture.keep_records();
        loop {
            match capture.next_batch() {
                Ok(None) => break,
                Ok(Some(TraceBatch::DnsLog(_))) => {}
                Ok(Some(TraceBatch::Packets { .. })) => {
                    let batch = capture.record_batch();
                    // Interfaces are described even where no packet is taken.
                    writer.write(input, &batch, 0, 0).map_err(failed)?;
                    for (at, packet) in batch.packets.iter().enumerate() {
                        if chooser.takes(packet, batch.bytes) {
                            writer.write(input, &batch, at, at + 1).map_err(failed)?;
                        }
                    }
                }
                Err(error) => {
                    problems.push(error.to_string());
                    break;
                }
            }
        }
    }
    let (out, written) = writer.finish().map_err(failed)?;
    Ok((out, written.packets))
}
