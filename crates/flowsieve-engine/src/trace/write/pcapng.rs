//! pcapng: one section, little-endian; every interface of every input, each packet on its own.

use std::io::Write;

use super::super::annotation::{Annotation, AnnotationKind};
use super::super::packet::LinkType;
use super::super::record::{InterfaceInfo, RecordBatch};
use super::behind::WriteBehind;
use super::options::{self, Block};
use super::{WriteError, between, snap_length};

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
    /// The block being put together.
    block: Vec<u8>,
}

impl PcapngWriter {
    pub(super) fn write<W: Write + Send + 'static>(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        self.begin(batch.annotations, out)?;
        if self.numbers.len() <= input {
            self.numbers.resize(input + 1, Vec::new());
        }
        for interface in &batch.interfaces[self.numbers[input].len()..] {
            self.put_interface(interface, out)?;
            self.numbers[input].push(self.interfaces);
            self.interfaces += 1;
        }
        let mut annotations = between(batch, from, to);
        for index in from..to {
            while let Some((next, rest)) = annotations.split_first()
                && next.before as usize <= index
            {
                annotations = rest;
                self.put_annotation(next, out)?;
            }
            self.put_packet(input, batch, index, out)?;
        }
        self.annotate(annotations, out)
    }

    /// Writes annotations, which are perhaps all that there is in the file.
    pub(super) fn annotate<W: Write + Send + 'static>(
        &mut self,
        annotations: &[Annotation],
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        self.begin(annotations, out)?;
        for annotation in annotations {
            // Readers may look for the interface no further than this.
            self.have_interface(out)?;
            self.put_annotation(annotation, out)?;
        }
        Ok(())
    }

    fn put_annotation<W: Write + Send + 'static>(
        &mut self,
        annotation: &Annotation,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        let Some(kind) = annotation.kind.block() else {
            return Ok(());
        };
        self.start(kind);
        self.block.extend_from_slice(&annotation.body);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        self.end(out)
    }

    /// Writes the section header, if that is not done, with the comments that stand in the section
    /// header of the input: they are among the first annotations.
    fn begin<W: Write + Send + 'static>(
        &mut self,
        first: &[Annotation],
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.start(SECTION_HEADER);
        self.words(&[BYTE_ORDER_MAGIC, 1]);
        // The section's length is not known.
        self.words(&[u32::MAX, u32::MAX]);
        let application = concat!("flowsieve ", env!("CARGO_PKG_VERSION"));
        let before = self.block.len();
        for comment in first.iter().filter(|annotation| annotation.kind == AnnotationKind::Comment)
        {
            options::push(COMMENT, &comment.body, &mut self.block);
        }
        options::push(SECTION_APPLICATION, application.as_bytes(), &mut self.block);
        options::end(before, &mut self.block);
        self.end(out)
    }

    fn put_interface<W: Write + Send + 'static>(
        &mut self,
        interface: &InterfaceInfo,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        self.start(INTERFACE);
        let snap_length = snap_length(interface.snap_length, self.snap_limit);
        self.words(&[interface.link.0.into(), snap_length]);
        let before = self.block.len();
        let (bytes, big_endian) = (&interface.options, interface.big_endian);
        let resolution = INTERFACE_RESOLUTION;
        let said =
            options::convert(Block::Interface, bytes, big_endian, resolution, &mut self.block);
        if !said && interface.resolution() != MICROSECONDS {
            options::push(resolution, &[interface.resolution()], &mut self.block);
        }
        options::end(before, &mut self.block);
        self.end(out)
    }

    fn put_packet<W: Write + Send + 'static>(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        index: usize,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        let record = batch.record(index);
        let interface = &batch.interfaces[record.interface as usize];
        let ticks =
            record.ticks.unwrap_or_else(|| interface.clock.ticks(batch.packets[index].time_ns));
        self.start(ENHANCED_PACKET);
        let number = self.numbers[input][record.interface as usize];
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        self.words(&[number, high, low, record.captured, record.wire]);
        let bytes = &batch.bytes[record.start as usize..][..record.captured as usize];
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        if record.options_length > 0 {
            let at = record.options_start as usize;
            let bytes = &batch.bytes[at..at + record.options_length as usize];
            let before = self.block.len();
            let big_endian = record.big_endian;
            options::convert(Block::Packet, bytes, big_endian, PACKET_FLAGS, &mut self.block);
            options::end(before, &mut self.block);
        }
        self.end(out)
    }

    fn start(&mut self, kind: u32) {
        self.block.clear();
        self.words(&[kind, 0]);
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.block.extend(word.to_le_bytes());
        }
    }

    /// Puts the block's length at both of its places, and hands it on.
    fn end<W: Write + Send + 'static>(
        &mut self,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.words(&[length]);
        Ok(out.put(&self.block)?)
    }

    /// A file without packets has a section, and an interface for readers that insist on one.
    pub(super) fn finish<W: Write + Send + 'static>(
        &mut self,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        self.begin(&[], out)?;
        self.have_interface(out)
    }

    fn have_interface<W: Write + Send + 'static>(
        &mut self,
        out: &mut WriteBehind<W>,
    ) -> Result<(), WriteError> {
        if self.interfaces == 0 {
            let clock = super::super::pcapng_clock::Clock::of(MICROSECONDS);
            self.put_interface(&InterfaceInfo::plain(LinkType::ETHERNET, clock), out)?;
            self.interfaces = 1;
        }
        Ok(())
    }
}
