//! pcap: a file header of 24 bytes, then records of a header and a packet.
//!
//! The dialect of a file is determined once, at its header; the loop over the records is compiled
//! for each byte order, and for the common record header apart from the rest.
//!
//! The loop is not pcap-parser's, whose record functions know one dialect each and no limit of
//! length. It is not faster, nor slower: over 10 million packets of 90 bytes in the page cache,
//! `read` alone took 10.5 ns a packet on a busy two-core virtual machine, with this loop 12.7 ns,
//! which includes turning the time and writing a [`PacketRef`], and with `parse_pcap_frame` 12.6
//! ns. Packets of 870 bytes took 54, 59 and 59 ns.

use super::erf;
use super::error::{ReadError, TraceErrorKind};
use super::format::{Batch, Class, Format, PacketSource};
use super::link_type;
use super::packet::{LinkType, MAX_BATCH, PacketRef};
use super::pcapng_clock::Clock;
use super::read_buffer::ReadBuffer;
use super::record::{InterfaceInfo, RecordRef, Records};
use super::scan::{self, RecordReader, ScanEnd};
use super::time::NANOS_PER_SECOND;

pub(super) const FORMAT: Format = Format {
    containers: &[NAME],
    words: NAME,
    class: Class::Capture,
    recognise: |buffer| {
        // Four bytes first: a live stream may take long to bring more.
        buffer.fill(4);
        let magic = buffer.unread().first_chunk();
        magic.and_then(|&magic| dialect(magic)).map(|_| NAME)
    },
    open: |buffer, _| Ok(Box::new(Pcap::open(buffer)?)),
};

const NAME: &str = "pcap";

/// Longest packet that a record may hold, in bytes: libpcap's largest snapshot length.
pub(super) const MAX_PACKET_BYTES: u32 = 262_144;

pub(super) const FILE_HEADER_BYTES: usize = 24;

/// Number of records by which dialects with the same magic number are told apart.
pub(super) const RECORDS_TO_TRY: usize = 3;

/// Returns what the first bytes of a file say: whether its numbers are big-endian, the nanoseconds in
/// one unit of the fraction of a second, and the lengths that a record header may have.
fn dialect(magic: [u8; 4]) -> Option<(bool, i64, &'static [usize])> {
    let numbers = [(false, u32::from_le_bytes(magic)), (true, u32::from_be_bytes(magic))];
    numbers.into_iter().find_map(|(big_endian, number)| match number {
        0xa1b2_c3d4 => Some((big_endian, 1000, &[16, 24, 20][..])),
        0xa1b2_3c4d => Some((big_endian, 1, &[16][..])),
        0xa1b2_cd34 => Some((big_endian, 1000, &[24, 28][..])),
        _ => None,
    })
}

/// Order of the two lengths in a record header.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lengths {
    CapturedFirst,
    /// Files of version 2.2 and before.
    WireFirst,
    /// Version 2.3 was written both ways; the captured length is the smaller one.
    Unsure,
}

/// The dialect of a file.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    big_endian: bool,
    /// Bytes of a record header: 16, or more in dialects that append fields.
    record_header: usize,
    lengths: Lengths,
    /// Nanoseconds in one unit of the fraction of a second.
    pub(super) fraction: i64,
    link: LinkType,
    /// The other bits of the link type's field.
    flags: u32,
    snap_length: u32,
    packets: u64,
    /// Offset in the stream from which on other readers take the records.
    until: u64,
}

impl Pcap {
    /// Reads the file header and determines the dialect.
    fn open(buffer: &mut ReadBuffer) -> Result<Self, ReadError> {
        let present = buffer.require(FILE_HEADER_BYTES)?;
        let Some(&head) = buffer.unread().first_chunk::<FILE_HEADER_BYTES>() else {
            return Err(ReadError::cut_in_header(NAME, FILE_HEADER_BYTES, present));
        };
        let (mut pcap, record_headers) = Self::from_header(head)?;
        buffer.consume(FILE_HEADER_BYTES);
        pcap.choose_record_header(buffer, record_headers);
        Ok(pcap)
    }

    /// Reads the file header; also returns the lengths that a record header may have.
    fn from_header(head: [u8; FILE_HEADER_BYTES]) -> Result<(Self, &'static [usize]), ReadError> {
        let [magic, [a, b, c, d], _, _, snap_length, network]: [[u8; 4]; 6] = bytemuck::cast(head);
        let (big_endian, mut fraction, record_headers) = dialect(magic).ok_or_else(|| {
            let reason = "its header is none of pcap".to_owned();
            ReadError::at(0, TraceErrorKind::NotACapture { reason })
        })?;
        let short = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        let word = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        let (major, minor, network) = (short([a, b]), short([c, d]), word(network));
        let container = NAME;
        if major < 2 {
            let kind = TraceErrorKind::UnsupportedVersion { container, major, minor };
            return Err(ReadError::at(4, kind));
        }
        // Above these bits stands the length of the frame check sequence, below them the link type.
        if network & 0x03ff_0000 != 0 {
            let reason = format!("the reserved bits of its link type {network:#010x} are not zero");
            return Err(ReadError::at(20, TraceErrorKind::CorruptHeader { container, reason }));
        }
        let mut link = network as u16;
        if (major, minor) == (2, 2)
            && let Some(aix) = aix_link_type(link)
        {
            (link, fraction) = (aix, 1);
        }
        let lengths = match (major, minor) {
            (2, 0..=2) | (543, 0) => Lengths::WireFirst,
            (2, 3) => Lengths::Unsure,
            _ => Lengths::CapturedFirst,
        };
        let pcap = Self {
            big_endian,
            record_header: 16,
            lengths,
            fraction,
            link: link_type::canonical(link),
            flags: network & 0xffff_0000,
            snap_length: word(snap_length),
            packets: 0,
            until: u64::MAX,
        };
        Ok((pcap, record_headers))
    }

    /// Several dialects share a magic number and differ in the length of the record header only.
    /// The one whose first records make most sense is taken; of equals, the first.
    fn choose_record_header(&mut self, buffer: &mut ReadBuffer, candidates: &[usize]) {
        self.record_header = candidates[0];
        // Nothing more is waited for while what is here is sane: the stream may be live.
        buffer.fill(1);
        if self.oddities(buffer.unread(), false) == 0 {
            return;
        }
        buffer.fill((RECORDS_TO_TRY + 1) * MAX_PACKET_BYTES as usize);
        let complete = buffer.is_complete();
        let odd = |&length: &usize| {
            let candidate = Self { record_header: length, ..self.clone() };
            candidate.oddities(buffer.unread(), complete)
        };
        if let Some(&best) = candidates.iter().min_by_key(|length| odd(length)) {
            self.record_header = best;
        }
    }

    /// Counts the oddities of the first odd record among the first few. The weights are
    /// Wireshark's, so that both take a damaged file for the same dialect.
    fn oddities(&self, bytes: &[u8], complete: bool) -> u32 {
        let mut rest = bytes;
        for _ in 0..RECORDS_TO_TRY {
            if rest.is_empty() {
                return 0;
            }
            let (Some(header), Some(body)) = (rest.first_chunk(), rest.get(self.record_header..))
            else {
                return u32::from(complete);
            };
            let (_, fraction, captured, wire) = self.header_fields(header);
            let odd = [
                i64::from(fraction) * self.fraction >= NANOS_PER_SECOND,
                captured > MAX_PACKET_BYTES,
                wire > 128 << 20,
                captured > self.snap_length,
                captured > wire,
            ];
            let odd = odd.into_iter().map(u32::from).sum();
            if odd > 0 {
                return odd;
            }
            rest = match body.get(captured as usize..) {
                Some(rest) => rest,
                None if complete => return 2,
                None => return 0,
            };
        }
        0
    }

    /// Returns seconds, fraction, captured and wire length of a record.
    pub(super) fn header_fields(&self, header: &[u8; 16]) -> (u32, u32, u32, u32) {
        if self.big_endian {
            self.fields::<true, false>(header)
        } else {
            self.fields::<false, false>(header)
        }
    }

    /// Returns seconds, fraction, captured and wire length of a record.
    #[inline]
    fn fields<const BIG: bool, const PLAIN: bool>(
        &self,
        header: &[u8; 16],
    ) -> (u32, u32, u32, u32) {
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (first, second) = (word(8), word(12));
        let swap = !PLAIN
            && match self.lengths {
                Lengths::CapturedFirst => false,
                Lengths::WireFirst => true,
                Lengths::Unsure => first > second,
            };
        let (captured, wire) = if swap { (second, first) } else { (first, second) };
        (word(0), word(4), captured, wire)
    }

    fn is_plain(&self) -> bool {
        self.record_header == 16 && self.lengths == Lengths::CapturedFirst
    }

    /// Returns whether a record boundary can be found from the bytes around it.
    pub(super) fn can_be_entered(&self) -> bool {
        self.is_plain() && self.link != LinkType::ERF
    }

    /// Continues with the record after this many, up to records that begin at `until` or later.
    pub(super) fn restart(&mut self, packets: u64, until: u64) {
        (self.packets, self.until) = (packets, until);
    }

    #[inline]
    fn scan_dialect<const BIG: bool, const PLAIN: bool>(
        &self,
        bytes: &[u8],
        base: usize,
        limit: usize,
        out: &mut Vec<PacketRef>,
    ) -> (usize, ScanEnd) {
        let record_header = if PLAIN { 16 } else { self.record_header };
        let mut at = 0;
        while out.len() < MAX_BATCH {
            if at >= limit {
                return (at, ScanEnd::Elsewhere);
            }
            let Some(header) = bytes[at..].first_chunk::<16>() else {
                return (at, ScanEnd::Need(record_header));
            };
            let (seconds, fraction, captured, wire) = self.fields::<BIG, PLAIN>(header);
            if captured > MAX_PACKET_BYTES {
                let packet = self.packets + out.len() as u64 + 1;
                let kind = TraceErrorKind::too_long(packet, captured, MAX_PACKET_BYTES);
                return (at, ScanEnd::Damaged(kind));
            }
            let start = at + record_header;
            let next = start + captured as usize;
            if next > bytes.len() {
                return (at, ScanEnd::Need(next - at));
            }
            out.push(PacketRef {
                time_ns: i64::from(seconds) * NANOS_PER_SECOND
                    + i64::from(fraction) * self.fraction,
                start: (base + start) as u32,
                captured,
                wire,
                link: self.link,
            });
            at = next;
        }
        (at, ScanEnd::Full)
    }
}

impl PacketSource for Pcap {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let Batch { packets: out, records, .. } = batch;
        scan::fill(self, buffer, out, None)?;
        if self.link == LinkType::ERF {
            if let Some(records) = records {
                let all = out.iter().map(|packet| RecordRef::of(packet, 0));
                records.batch.extend(all);
            }
            erf::unwrap_all(buffer.buffered(), out);
        }
        Ok(())
    }

    /// Describes the only interface.
    fn describe(&self, records: &mut Records) {
        records.interfaces.push(InterfaceInfo {
            snap_length: self.snap_length,
            pcap_flags: self.flags,
            ..InterfaceInfo::plain(self.link, Clock::of(if self.fraction == 1 { 9 } else { 6 }))
        });
        records.is_plain_pcap = self.is_plain() && !self.big_endian && self.link != LinkType::ERF;
    }
}

impl RecordReader for Pcap {
    fn packets(&mut self) -> &mut u64 {
        &mut self.packets
    }

    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        offset: u64,
        out: &mut Vec<PacketRef>,
        _: Option<&mut Records>,
    ) -> (usize, ScanEnd) {
        let left = self.until.saturating_sub(offset);
        let limit = usize::try_from(left).unwrap_or(usize::MAX);
        match (self.big_endian, self.is_plain()) {
            (false, true) => self.scan_dialect::<false, true>(bytes, base, limit, out),
            (false, false) => self.scan_dialect::<false, false>(bytes, base, limit, out),
            (true, true) => self.scan_dialect::<true, true>(bytes, base, limit, out),
            (true, false) => self.scan_dialect::<true, false>(bytes, base, limit, out),
        }
    }
}

/// Returns the link type that AIX's tcpdump writes (interface types of RFC 1573) in files of
/// version 2.2, with fractions in nanoseconds.
fn aix_link_type(link: u16) -> Option<u16> {
    match link {
        6 => Some(1),
        9 => Some(6),
        15 => Some(10),
        24 => Some(0),
        _ => None,
    }
}
