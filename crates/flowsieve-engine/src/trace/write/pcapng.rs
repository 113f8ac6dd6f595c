//! pcapng: one section, little-endian; every interface of every input, each packet on its own.

use super::super::annotation::{Annotation, AnnotationKind};
use super::super::packet::LinkType;
use super::super::record::{InterfaceInfo, RecordBatch};
use super::options::{self, Block};
use super::{between, put_words, snap_length};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Resolution of an interface that does not say it.
const MICROSECONDS: u8 = 6;

/// A pcapng file being written.
#[derive(Debug, Default)]
pub(super) struct PcapngWriter {
    begun: bool,
    /// No captured length exceeds this.
    pub(super) snap_limit: Option<u32>,
    interfaces: u32,
    /// For each input, the number here of each of its interfaces.
    numbers: Vec<Vec<u32>>,
}

impl PcapngWriter {
    pub(super) fn write(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
        out: &mut Vec<u8>,
    ) {
        self.begin(batch.annotations, out);
        if self.numbers.len() <= input {
            self.numbers.resize(input + 1, Vec::new());
        }
        for interface in &batch.interfaces[self.numbers[input].len()..] {
            self.put_interface(interface, out);
            self.numbers[input].push(self.interfaces);
            self.interfaces += 1;
        }
        let mut annotations = between(batch, from, to);
        for index in from..to {
            while let Some((next, rest)) = annotations.split_first()
                && next.before as usize <= index
            {
                annotations = rest;
                put_annotation(next, out);
            }
            self.put_packet(input, batch, index, out);
        }
        self.annotate(annotations, out);
    }

    /// Writes annotations, which are perhaps all that there is in the file.
    pub(super) fn annotate(&mut self, annotations: &[Annotation], out: &mut Vec<u8>) {
        self.begin(annotations, out);
        for annotation in annotations {
            // Readers may look for the interface no further than this.
            self.have_interface(out);
            put_annotation(annotation, out);
        }
    }

    /// Writes the section header, if that is not done, with the comments that stand in the section
    /// header of the input: they are among the first annotations.
    fn begin(&mut self, first: &[Annotation], out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let start = start(SECTION_HEADER, out);
        // The section's length is not known.
        put_words(&[BYTE_ORDER_MAGIC, 1, u32::MAX, u32::MAX], out);
        let application = concat!("flowsieve ", env!("CARGO_PKG_VERSION"));
        let before = out.len();
        for comment in first.iter().filter(|annotation| annotation.kind == AnnotationKind::Comment)
        {
            options::push(COMMENT, &comment.body, out);
        }
        options::push(SECTION_APPLICATION, application.as_bytes(), out);
        options::end(before, out);
        end(start, out);
    }

    fn put_interface(&mut self, interface: &InterfaceInfo, out: &mut Vec<u8>) {
        let start = start(INTERFACE, out);
        let snap_length = snap_length(interface.snap_length, self.snap_limit);
        put_words(&[interface.link.0.into(), snap_length], out);
        let before = out.len();
        let (bytes, big_endian) = (&interface.options, interface.big_endian);
        let resolution = INTERFACE_RESOLUTION;
        let said = options::convert(Block::Interface, bytes, big_endian, resolution, out);
        if !said && interface.resolution() != MICROSECONDS {
            options::push(resolution, &[interface.resolution()], out);
        }
        options::end(before, out);
        end(start, out);
    }

    fn put_packet(&self, input: usize, batch: &RecordBatch<'_>, index: usize, out: &mut Vec<u8>) {
        let record = batch.record(index);
        let interface = &batch.interfaces[record.interface as usize];
        let ticks =
            record.ticks.unwrap_or_else(|| interface.clock.ticks(batch.packets[index].time_ns));
        let start = start(ENHANCED_PACKET, out);
        let number = self.numbers[input][record.interface as usize];
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        put_words(&[number, high, low, record.captured, record.wire], out);
        let bytes = &batch.bytes[record.start as usize..][..record.captured as usize];
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(4), 0);
        if record.options_length > 0 {
            let at = record.options_start as usize;
            let bytes = &batch.bytes[at..at + record.options_length as usize];
            let before = out.len();
            options::convert(Block::Packet, bytes, record.big_endian, PACKET_FLAGS, out);
            options::end(before, out);
        }
        end(start, out);
    }

    /// A file without packets has a section, and an interface for readers that insist on one.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(&[], out);
        self.have_interface(out);
    }

    fn have_interface(&mut self, out: &mut Vec<u8>) {
        if self.interfaces == 0 {
            let clock = super::super::pcapng_clock::Clock::of(MICROSECONDS);
            self.put_interface(&InterfaceInfo::plain(LinkType::ETHERNET, clock), out);
            self.interfaces = 1;
        }
    }
}

fn put_annotation(annotation: &Annotation, out: &mut Vec<u8>) {
    if let Some(kind) = annotation.kind.block() {
        let start = start(kind, out);
        out.extend_from_slice(&annotation.body);
        out.resize(out.len().next_multiple_of(4), 0);
        end(start, out);
    }
}

/// Begins a block; returns its place. Blocks begin at multiples of four bytes.
fn start(kind: u32, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    put_words(&[kind, 0], out);
    start
}

/// Puts the length of the block that begins at `start` at both of its places.
fn end(start: usize, out: &mut Vec<u8>) {
    let length = (out.len() - start) as u32 + 4;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    put_words(&[length], out);
}
