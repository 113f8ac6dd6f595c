//! pcapng: sections of blocks; each section has its own byte order and its own interfaces.
//!
//! ```text
//!   0      4        8                        length - 4
//!   │ type │ length │ body, padded to 4 bytes │ length │
//! ```
//!
//! Blocks without packets are skipped, however long they are. pcap-parser reads section headers and
//! interface descriptions. The loop over the blocks and the packet blocks are read here: the parser
//! allocates a list of options for each packet, requires the padding that some writers leave out of
//! a block's length, and has no limit of length.

use pcap_parser::pcapng::{
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock,
};

use super::erf;
use super::error::{ReadError, TraceErrorKind};
use super::format::{Batch, Class, Format, PacketSource};
use super::link_type;
use super::packet::{LinkType, MAX_BATCH, PacketRef};
use super::pcap::MAX_PACKET_BYTES;
use super::pcapng_annotations as annotations;
use super::pcapng_clock::Clock;
use super::read_buffer::ReadBuffer;
use super::record::{InterfaceInfo, MAX_INTERFACE_BYTES, RecordRef, Records};
use super::scan::{self, RecordReader, ScanEnd};

pub(super) const FORMAT: Format = Format {
    containers: &[NAME],
    words: NAME,
    class: Class::Capture,
    recognise: |buffer| {
        buffer.fill(4);
        buffer.unread().starts_with(&SECTION_HEADER.to_be_bytes()).then_some(NAME)
    },
    open: |buffer, _| Ok(Box::new(Pcapng::open(buffer)?)),
};

const NAME: &str = "pcapng";

/// Longest block that is kept whole, in bytes; the same bound as Wireshark's.
const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// More interfaces than any section has; it bounds the memory that a hostile file can take.
const MAX_INTERFACES: usize = 1 << 20;

/// Type, length, and the length again.
const FRAME_BYTES: usize = 12;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

#[derive(Debug)]
struct Interface {
    link: LinkType,
    /// Longest captured length; 0 for no limit.
    snap_length: u32,
    clock: Clock,
}

/// A pcapng file, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Time of the last packet that has one. Simple packets have none of their own and take this
    /// one; before the first packet with a time they take that of the first one in their batch, or
    /// 0.
    last_time_ns: Option<i64>,
    packets: u64,
}

impl Pcapng {
    fn open(buffer: &mut ReadBuffer) -> Result<Self, ReadError> {
        // A file of pcapng is at least a section header; a shorter one is cut there.
        const SECTION_HEADER_BYTES: usize = 28;
        let present = buffer.require(SECTION_HEADER_BYTES)?;
        if present < SECTION_HEADER_BYTES {
            return Err(ReadError::cut_in_header(NAME, SECTION_HEADER_BYTES, present));
        }
        Ok(Self::default())
    }

    /// Returns the kind and the bytes of the block at the start of `bytes`, or why it cannot be read
    /// yet.
    #[inline]
    fn next_block<'b>(&mut self, bytes: &'b [u8]) -> Result<(u32, &'b [u8]), ScanEnd> {
        if bytes.len() < FRAME_BYTES {
            return Err(ScanEnd::Need(FRAME_BYTES));
        }
        let kind = self.word_at(bytes, 0);
        if kind == SECTION_HEADER {
            self.enter_section(&bytes[8..12]).map_err(ScanEnd::Damaged)?;
        }
        let length = self.word_at(bytes, 4);
        if (length as usize) < FRAME_BYTES {
            let reason = format!("the length of the block is given as {length}, the least is 12");
            return Err(ScanEnd::Damaged(self.corrupt(reason)));
        }
        let wanted = matches!(
            kind,
            SECTION_HEADER | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET
        );
        if wanted && length > MAX_BLOCK_BYTES {
            let kind = TraceErrorKind::too_long(self.packets + 1, length, MAX_BLOCK_BYTES);
            return Err(ScanEnd::Damaged(kind));
        }
        // Some writers leave the padding out of the length; Wireshark reads them, so do we.
        let padded = length.saturating_add(3) & !3;
        let Some(block) = bytes.get(..padded as usize) else {
            return Err(if wanted {
                ScanEnd::Need(padded as usize)
            } else {
                ScanEnd::PassOver(padded, length)
            });
        };
        let trailer = block.last_chunk().expect("a block has at least 12 bytes");
        self.check_trailer(*trailer, padded, length).map_err(ScanEnd::Damaged)?;
        Ok((kind, block))
    }

    fn check_trailer(
        &self,
        trailer: [u8; 4],
        padded: u32,
        length: u32,
    ) -> Result<(), TraceErrorKind> {
        let again = self.word(trailer);
        if again == length || again == padded {
            return Ok(());
        }
        Err(self.corrupt(format!(
            "the length of the block is given as {length} at its start and as {again} at its end"
        )))
    }

    fn corrupt(&self, reason: impl Into<String>) -> TraceErrorKind {
        TraceErrorKind::CorruptBlock { packet: self.packets + 1, reason: reason.into() }
    }

    fn word(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn word_at(&self, bytes: &[u8], at: usize) -> u32 {
        self.word([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    fn short_at(&self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// Sets the byte order by the magic number of a section header.
    fn enter_section(&mut self, magic: &[u8]) -> Result<(), TraceErrorKind> {
        self.big_endian = match magic {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(self.corrupt("the section header has no byte-order magic")),
        };
        Ok(())
    }

    fn read_block(
        &mut self,
        kind: u32,
        block: &[u8],
        start: usize,
    ) -> Result<Option<PacketRef>, TraceErrorKind> {
        match kind {
            SECTION_HEADER => self.read_section(block).map(|()| None),
            INTERFACE => self.read_interface(block).map(|()| None),
            ENHANCED_PACKET | OBSOLETE_PACKET => self.read_packet(kind, block, start).map(Some),
            SIMPLE_PACKET => self.read_simple_packet(block, start).map(Some),
            _ => Ok(None),
        }
    }

    fn read_section(&mut self, block: &[u8]) -> Result<(), TraceErrorKind> {
        let (_, section) = parse_sectionheaderblock(block)
            .map_err(|_| self.corrupt("the section header cannot be read"))?;
        let (major, minor) = (section.major_version, section.minor_version);
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(TraceErrorKind::UnsupportedVersion { container: NAME, major, minor });
        }
        self.interfaces.clear();
        Ok(())
    }

    fn read_interface(&mut self, block: &[u8]) -> Result<(), TraceErrorKind> {
        let parsed = if self.big_endian {
            parse_interfacedescriptionblock_be(block)
        } else {
            parse_interfacedescriptionblock_le(block)
        };
        let (_, description) =
            parsed.map_err(|_| self.corrupt("the interface description cannot be read"))?;
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(self.corrupt("the section describes more than a million interfaces"));
        }
        // The parser's own clock knows neither powers of two nor big-endian offsets.
        let options = description.options.iter().map(|option| (option.code.0, option.value()));
        self.interfaces.push(Interface {
            link: link_type::canonical(description.linktype.0.cast_unsigned() as u16),
            snap_length: description.snaplen,
            clock: Clock::from_options(options, self.big_endian),
        });
        Ok(())
    }

    /// Enhanced packets, and the obsolete ones, which differ in the width of the interface number:
    ///
    /// ```text
    ///   8           12          16         20         24     28
    ///   │ interface │ time high │ time low │ captured │ wire │ packet, options
    /// ```
    ///
    /// The parser would allocate a list of options for each packet.
    fn read_packet(
        &mut self,
        kind: u32,
        block: &[u8],
        start: usize,
    ) -> Result<PacketRef, TraceErrorKind> {
        const HEAD_BYTES: usize = 28;
        if block.len() < HEAD_BYTES + 4 {
            return Err(self.corrupt("the block is too short for a packet block"));
        }
        let number = if kind == ENHANCED_PACKET {
            self.word_at(block, 8)
        } else {
            u32::from(self.short_at(block, 8))
        };
        let interface = self.interface(number)?;
        let ticks = u64::from(self.word_at(block, 12)) << 32 | u64::from(self.word_at(block, 16));
        let captured = self.word_at(block, 20);
        let (link, time_ns) = (interface.link, interface.clock.time_ns(ticks));
        self.check_captured(captured, block.len() - HEAD_BYTES - 4)?;
        self.last_time_ns = Some(time_ns);
        let wire = self.word_at(block, 24);
        Ok(PacketRef { time_ns, start: (start + HEAD_BYTES) as u32, captured, wire, link })
    }

    /// Stores what a writer needs of a block, which follows this many packets of the batch.
    fn store(
        &self,
        kind: u32,
        block: &[u8],
        start: usize,
        packet: Option<&PacketRef>,
        before: usize,
        records: &mut Records,
    ) -> Result<(), TraceErrorKind> {
        let Some(packet) = packet else {
            const SECTION_OPTIONS_AT: usize = 24;
            let body = |from: usize| block.get(from..block.len() - 4).unwrap_or_default();
            match kind {
                SECTION_HEADER => {
                    records.section = records.interfaces.len() as u32;
                    if records.keeps_annotations {
                        let options = body(SECTION_OPTIONS_AT);
                        annotations::store_comments(options, self.big_endian, before, records);
                    }
                }
                INTERFACE => self.store_interface(block, records)?,
                _ if records.keeps_annotations => {
                    annotations::store(kind, body(8), self.big_endian, before, records);
                }
                _ => {}
            }
            return Ok(());
        };
        let mut record = RecordRef::of(packet, records.section);
        if kind != SIMPLE_PACKET {
            let number = if kind == ENHANCED_PACKET {
                self.word_at(block, 8)
            } else {
                self.short_at(block, 8).into()
            };
            record.interface += number;
            let (high, low) = (self.word_at(block, 12), self.word_at(block, 16));
            record.ticks = Some(u64::from(high) << 32 | u64::from(low));
            let options = (packet.start as usize - start + packet.captured as usize + 3) & !3;
            if let Some(length) = (block.len() - 4).checked_sub(options) {
                record.options_start = (start + options) as u32;
                record.options_length = length as u32;
            }
            record.big_endian = self.big_endian;
        }
        records.batch.push(record);
        Ok(())
    }

    fn store_interface(&self, block: &[u8], records: &mut Records) -> Result<(), TraceErrorKind> {
        const OPTIONS_AT: usize = 16;
        let Some(interface) = self.interfaces.last() else { return Ok(()) };
        let options = block.get(OPTIONS_AT..block.len() - 4).unwrap_or_default().to_vec();
        records.interface_bytes += options.len() + size_of::<InterfaceInfo>();
        if records.interface_bytes > MAX_INTERFACE_BYTES {
            return Err(self.corrupt("its interface descriptions take more than 64 MiB"));
        }
        records.interfaces.push(InterfaceInfo {
            snap_length: interface.snap_length,
            options,
            big_endian: self.big_endian,
            ..InterfaceInfo::plain(interface.link, interface.clock)
        });
        Ok(())
    }

    fn read_simple_packet(&self, block: &[u8], start: usize) -> Result<PacketRef, TraceErrorKind> {
        const HEAD_BYTES: usize = 12;
        if block.len() < HEAD_BYTES + 4 {
            return Err(self.corrupt("the block is too short for a simple packet block"));
        }
        let interface = self.interface(0)?;
        let wire = self.word_at(block, 8);
        let captured = match interface.snap_length {
            0 => wire,
            limit => wire.min(limit),
        };
        self.check_captured(captured, block.len() - HEAD_BYTES - 4)?;
        Ok(PacketRef {
            time_ns: self.last_time_ns.unwrap_or(0),
            start: (start + HEAD_BYTES) as u32,
            captured,
            wire,
            link: interface.link,
        })
    }

    fn interface(&self, number: u32) -> Result<&Interface, TraceErrorKind> {
        self.interfaces.get(number as usize).ok_or_else(|| {
            self.corrupt(format!(
                "it belongs to interface {number}, the section has described {} so far",
                self.interfaces.len()
            ))
        })
    }

    fn check_captured(&self, captured: u32, room: usize) -> Result<(), TraceErrorKind> {
        if captured > MAX_PACKET_BYTES {
            return Err(TraceErrorKind::too_long(self.packets + 1, captured, MAX_PACKET_BYTES));
        }
        if captured as usize > room {
            return Err(self.corrupt(format!(
                "the block has room for {room} bytes and claims to hold {captured}"
            )));
        }
        Ok(())
    }
}

impl PacketSource for Pcapng {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let Batch { packets: out, records, .. } = batch;
        scan::fill(self, buffer, out, records.as_deref_mut())?;
        erf::unwrap_all(buffer.buffered(), out);
        Ok(())
    }

    fn has_far_times(&self) -> bool {
        true
    }
}

/// Decides about a block of no interest that is not all in the buffer: an annotation that a writer
/// wants is waited for, unless it is too long.
fn keep_or_pass_over(
    kind: u32,
    padded: u32,
    length: u32,
    is_first: bool,
    records: Option<&mut Records>,
) -> ScanEnd {
    match records.filter(|records| records.keeps_annotations && annotations::is_one(kind)) {
        Some(_) if length <= MAX_BLOCK_BYTES => return ScanEnd::Need(padded as usize),
        Some(records) if is_first => records.unkept += 1,
        _ => {}
    }
    ScanEnd::PassOver(padded, length)
}

impl RecordReader for Pcapng {
    fn packets(&mut self) -> &mut u64 {
        &mut self.packets
    }

    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        _: u64,
        out: &mut Vec<PacketRef>,
        mut records: Option<&mut Records>,
    ) -> (usize, ScanEnd) {
        let mut at = 0;
        let mut untimed = self.last_time_ns.is_none();
        while out.len() < MAX_BATCH {
            let (kind, block) = match self.next_block(&bytes[at..]) {
                Ok(block) => block,
                Err(ScanEnd::PassOver(padded, length)) => {
                    let kind = self.word_at(bytes, at);
                    return (at, keep_or_pass_over(kind, padded, length, out.is_empty(), records));
                }
                Err(end) => return (at, end),
            };
            let before = out.len();
            let read = self.read_block(kind, block, base + at).and_then(|packet| {
                if let Some(records) = records.as_deref_mut() {
                    self.store(kind, block, base + at, packet.as_ref(), before, records)?;
                }
                Ok(packet)
            });
            let packet = match read {
                Ok(packet) => packet,
                Err(damage) => return (at, ScanEnd::Damaged(damage)),
            };
            if let (true, Some(first)) = (untimed, self.last_time_ns) {
                untimed = false;
                for earlier in out.iter_mut() {
                    earlier.time_ns = first;
                }
            }
            out.extend(packet);
            at += block.len();
        }
        (at, ScanEnd::Full)
    }

    fn pass_over(
        &self,
        buffer: &mut ReadBuffer,
        padded: u32,
        length: u32,
    ) -> Result<(), ReadError> {
        let offset = buffer.offset();
        let whole = buffer.skip(u64::from(padded) - 4)? && buffer.require(4)? >= 4;
        let Some(&trailer) = buffer.unread().first_chunk::<4>().filter(|_| whole) else {
            let present = buffer.offset() + buffer.unread().len() as u64 - offset;
            return Err(ReadError::cut(offset, self.packets + 1, padded.into(), present));
        };
        self.check_trailer(trailer, padded, length).map_err(|kind| ReadError::at(offset, kind))?;
        buffer.consume(4);
        Ok(())
    }
}
