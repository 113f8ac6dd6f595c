//! ERF, the record format of Endace's DAG cards: bare records one after another, or inside pcap.
//!
//! ```text
//!   0            8      9       10      12      14      16
//!   │ time 32.32 │ type │ flags │ rlen  │ lctr  │ wlen  │ extension headers, subheader, packet
//!     little-endian               everything else is big-endian
//! ```

use super::error::{ReadError, TraceErrorKind};
use super::format::{self, Batch, Class, Format, PacketSource};
use super::packet::{LinkType, MAX_BATCH, PacketRef};
use super::read_buffer::ReadBuffer;
use super::record::Records;
use super::scan::{self, RecordReader, ScanEnd};
use super::time;

pub(super) const FORMAT: Format = Format {
    containers: &["erf"],
    words: "ERF",
    class: Class::Capture,
    recognise: |buffer| {
        format::head(buffer);
        is_plausible(buffer.unread(), buffer.is_complete()).then_some("erf")
    },
    open: |_, _| Ok(Box::new(Erf::default())),
};

const HEADER_BYTES: usize = 16;

/// Extension headers follow, each with the same bit in its first byte if another one follows.
const EXTENDED: u8 = 0x80;

const PAD: u8 = 48;

/// The header of an ATM cell, which the length on the wire counts.
const CELL_HEADER_BYTES: usize = 4;

/// Records that must make sense before a file without magic number is taken for ERF, and records
/// that are looked at.
const ENOUGH_RECORDS: usize = 3;
const RECORDS_TO_TRY: usize = 10;

/// The packet in an ERF record; places count from the first byte of its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Inner {
    start: usize,
    captured: usize,
    wire: u32,
    link: LinkType,
}

/// Returns the length of the header and the extension headers of a record; `None` if they are not
/// complete.
fn headers_bytes(record: &[u8]) -> Option<usize> {
    let mut more = record.first_chunk::<HEADER_BYTES>()?[8] & EXTENDED != 0;
    let mut length = HEADER_BYTES;
    while more {
        more = record.get(length)? & EXTENDED != 0;
        length += 8;
    }
    Some(length)
}

/// Returns the content of a packet of link type ERF, behind the headers with the time and other
/// marks of the capturing card. A record with incomplete headers stays whole.
pub(crate) fn erf_content(record: &[u8]) -> &[u8] {
    headers_bytes(record).and_then(|length| record.get(length..)).unwrap_or(record)
}

/// Reads the headers of a record of which `record` was captured; `None` if they are not complete.
fn inner(record: &[u8]) -> Option<Inner> {
    let header = record.first_chunk::<HEADER_BYTES>()?;
    // A multichannel header and what stands before the packet: two bytes of alignment for Ethernet,
    // for ATM the 4-byte header of a cell without its checksum, behind which an AAL5 frame starts.
    let (multichannel, subheader, link): (_, _, fn(&[u8]) -> LinkType) = match header[8] & !EXTENDED
    {
        1 | 10 | 15 | 19 => (0, 0, hdlc_link),
        5 | 17 => (4, 0, hdlc_link),
        2 | 11 | 16 | 20 => (0, 2, |_| LinkType::ETHERNET),
        3 | 4 => (0, CELL_HEADER_BYTES, atm_link),
        7 | 9 => (4, CELL_HEADER_BYTES, atm_link),
        22 | 23 => (0, 0, |_| LinkType::RAW_IP),
        21 => (0, 0, |_| LinkType::INFINIBAND),
        _ => return None,
    };
    let start = headers_bytes(record)? + multichannel + subheader;
    let frame = record.get(start..)?;
    let wire = u32::from(u16::from_be_bytes([header[14], header[15]]));
    let wire = if subheader == CELL_HEADER_BYTES { wire.saturating_sub(4) } else { wire };
    Some(Inner { start, captured: frame.len().min(wire as usize), wire, link: link(frame) })
}

/// HDLC is PPP or Cisco HDLC; their address and control bytes tell which.
fn hdlc_link(frame: &[u8]) -> LinkType {
    match frame {
        [0x0f | 0x8f, 0, ..] => LinkType::CISCO_HDLC,
        [0xff, 0x03, ..] | [_, _] | [_] | [] => LinkType::PPP,
        [first, second, ..] if first & 1 == 0 && second & 1 == 1 => LinkType::FRAME_RELAY,
        _ => LinkType::PPP,
    }
}

/// An AAL5 frame is LLC encapsulated (RFC 2684), or bare IP on its own virtual circuit.
fn atm_link(frame: &[u8]) -> LinkType {
    match frame {
        [0x45..=0x4f, ..] | [0x60..=0x6f, 0, ..] => LinkType::RAW_IP,
        _ => LinkType::ATM_RFC1483,
    }
}

/// Narrows `packet`, whose bytes are an ERF record in `bytes`, to the packet inside. A record
/// without a known packet keeps the link type ERF.
fn unwrap(bytes: &[u8], packet: &mut PacketRef) {
    let start = packet.start as usize;
    let record = &bytes[start..start + packet.captured as usize];
    if let Some(inner) = inner(record) {
        packet.start += inner.start as u32;
        packet.captured = inner.captured as u32;
        packet.wire = inner.wire;
        packet.link = inner.link;
    } else {
        packet.link = LinkType::ERF;
    }
}

/// Unwraps the packets of a pcap or pcapng file of link type ERF; their times stay those of the
/// file.
pub(super) fn unwrap_all(bytes: &[u8], packets: &mut [PacketRef]) {
    for packet in packets {
        if packet.link == LinkType::ERF {
            unwrap(bytes, packet);
        }
    }
}

/// ERF has no magic number: the first records must have known types, legal lengths, and times that
/// neither go back nor leap more than a week.
fn is_plausible(head: &[u8], complete: bool) -> bool {
    const WEEK_SECONDS: u64 = 7 * 86_400;
    let mut before = None;
    let mut rest = head;
    for seen in 0..RECORDS_TO_TRY {
        if rest.is_empty() {
            return if complete { seen > 0 && before.is_some() } else { seen >= ENOUGH_RECORDS };
        }
        let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
            return seen >= ENOUGH_RECORDS;
        };
        let time = u64::from_le_bytes(*rest.first_chunk().expect("the header is longer"));
        let length = usize::from(u16::from_be_bytes([header[10], header[11]]));
        let kind = header[8] & !EXTENDED;
        // Behind enough good records it is damage, not another format.
        if length < HEADER_BYTES || !(matches!(kind, 1..=28) || kind == PAD) {
            return seen >= ENOUGH_RECORDS;
        }
        if kind != PAD {
            if let Some(before) = before {
                // Reassembled AAL5 frames may be a little out of order.
                let slack = if matches!(kind, 4 | 9) { 2 << 32 } else { 0 };
                if time.saturating_add(slack) < before
                    || time.saturating_sub(before) >> 32 > WEEK_SECONDS
                {
                    return false;
                }
            }
            before = Some(time);
        }
        let Some(next) = rest.get(length..) else { return seen >= ENOUGH_RECORDS };
        rest = next;
    }
    before.is_some()
}

/// A file of bare ERF records.
#[derive(Debug, Default)]
pub(super) struct Erf {
    packets: u64,
}

impl PacketSource for Erf {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let Batch { packets: out, records, .. } = batch;
        scan::fill(self, buffer, out, None)?;
        unwrap_all(buffer.buffered(), out);
        if let Some(records) = records {
            records.by_link(out);
        }
        Ok(())
    }
}

impl RecordReader for Erf {
    fn packets(&mut self) -> &mut u64 {
        &mut self.packets
    }

    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        _: u64,
        out: &mut Vec<PacketRef>,
        _: Option<&mut Records>,
    ) -> (usize, ScanEnd) {
        let mut at = 0;
        while out.len() < MAX_BATCH {
            let Some(header) = bytes[at..].first_chunk::<HEADER_BYTES>() else {
                return (at, ScanEnd::Need(HEADER_BYTES));
            };
            let length = usize::from(u16::from_be_bytes([header[10], header[11]]));
            if length < HEADER_BYTES {
                let kind = TraceErrorKind::CorruptBlock {
                    packet: self.packets + out.len() as u64 + 1,
                    reason: format!("its length is given as {length}, its header alone takes 16"),
                };
                return (at, ScanEnd::Damaged(kind));
            }
            if at + length > bytes.len() {
                return (at, ScanEnd::Need(length));
            }
            // Padding between records is not a packet.
            if header[8] & !EXTENDED != PAD {
                let time = u64::from_le_bytes(*header.first_chunk().expect("the header is longer"));
                out.push(PacketRef {
                    time_ns: time::from_fixed_point(time),
                    start: (base + at) as u32,
                    captured: length as u32,
                    wire: u32::from(u16::from_be_bytes([header[14], header[15]])),
                    link: LinkType::ERF,
                });
            }
            at += length;
        }
        (at, ScanEnd::Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, kind: u8, wire: u16, payload: &[u8]) -> Vec<u8> {
        let mut record = time.to_le_bytes().to_vec();
        record.extend([kind, 0]);
        record.extend((16 + payload.len() as u16).to_be_bytes());
        record.extend([0, 0]);
        record.extend(wire.to_be_bytes());
        record.extend(payload);
        record
    }

    #[test]
    fn every_kind_of_payload_is_unwrapped() {
        let cases: [(u8, &[u8], usize, LinkType); 10] = [
            (2, &[0, 0, 1, 2, 3], 18, LinkType::ETHERNET),
            (11, &[0, 0, 1, 2, 3], 18, LinkType::ETHERNET),
            (1, &[0xff, 3, 1, 2, 3], 16, LinkType::PPP),
            (10, &[0x0f, 0, 1, 2, 3], 16, LinkType::CISCO_HDLC),
            (15, &[0x18, 0x41, 1, 2, 3], 16, LinkType::FRAME_RELAY),
            (5, &[0, 0, 0, 0, 0x8f, 0, 3], 20, LinkType::CISCO_HDLC),
            (3, &[0, 0, 0, 0, 0xaa, 0xaa, 3], 20, LinkType::ATM_RFC1483),
            (4, &[0, 0, 0, 0, 0x45, 0, 0], 20, LinkType::RAW_IP),
            (9, &[0, 0, 0, 0, 0, 0, 0, 0, 0xaa], 24, LinkType::ATM_RFC1483),
            (22, &[0x45, 0, 0], 16, LinkType::RAW_IP),
        ];
        for (kind, payload, start, link) in cases {
            let record = record(0, kind, 1500, payload);
            let inner = inner(&record).unwrap();
            assert_eq!((inner.start, inner.link), (start, link), "type {kind}");
            assert_eq!(inner.captured, record.len() - start, "type {kind}");
        }
    }

    #[test]
    fn extension_headers_are_a_chain() {
        let mut payload = vec![0x80, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0, 0, 0];
        payload.extend([0, 0, 1, 2, 3, 4]);
        let record = record(0, 0x82, 3, &payload);
        let inner = inner(&record).unwrap();
        // The wire length bounds what belongs to the packet: the rest is padding.
        assert_eq!((inner.start, inner.captured), (34, 3));
    }

    #[test]
    fn what_cannot_be_unwrapped_stays_erf() {
        assert_eq!(inner(&record(0, 27, 100, &[1, 2, 3])), None);
        assert_eq!(inner(&record(0, 2, 100, &[])), None);
        assert_eq!(inner(&record(0, 0x82, 100, &[0x80])), None);
        assert_eq!(inner(&[0; 15]), None);
    }

    #[test]
    fn plausibility_looks_at_types_lengths_and_times() {
        let good = record(5 << 32, 2, 64, &[0; 20]);
        let file = good.repeat(4);
        assert!(is_plausible(&file, true));
        assert!(is_plausible(&good, true), "one whole record is a file");
        assert!(!is_plausible(&good, false), "one record may be chance");
        assert!(!is_plausible(&[], true));
        assert!(!is_plausible(&[0; 64], true));
        let mut back = file.clone();
        back.extend(record(4 << 32, 2, 64, &[0; 20]));
        assert!(!is_plausible(&back, true));
        let mut leap = file;
        leap.extend(record(5 << 52, 2, 64, &[0; 20]));
        assert!(!is_plausible(&leap, true));
    }
}
