//! A capture: opened, recognised, and read batch by batch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cdns::Cdns;
use super::codecs;
use super::compression::Compression;
use super::dnstap::{Dnstap, DnstapTypes};
use super::erf::Erf;
use super::error::{Fault, TraceError, TraceErrorKind};
use super::eve::Eve;
use super::followed_files::{Noting, SharedProgress};
use super::log_columns::Rows;
use super::log_csv::LogCsv;
use super::log_entries::Entries;
use super::packet::{MAX_BATCH, PacketRef, TraceBatch};
use super::parquet::{Parquet, Place};
use super::pcap::Pcap;
use super::pcapng::Pcapng;
use super::read_buffer::ReadBuffer;
use super::record::{RecordBatch, Records};
use super::seek::FilePart;
use super::segments::Segments;
use super::select::{Chooser, Select};
use super::sniff::{self, Container};
use super::stop::{Ending, StopFlag, Stoppable};
use super::time;
use super::tsh::Tsh;
use super::zeek::{ZeekJson, ZeekTsv};

/// How far a damaged compressed stream is read on to see whether its codec finds the damage too:
/// more than the largest block of any codec but LZMA's.
const DAMAGE_SEARCH_BYTES: u64 = 16 << 20;

/// Files up to this size are read before another thread has begun.
const SHORT_BYTES: u64 = 128 << 10;

/// The same for compressed files, which are longer than they look.
const SHORT_COMPRESSED_BYTES: u64 = 16 << 10;

/// How the container of an input is found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum InputFormat {
    /// By its content.
    #[default]
    Auto,
    /// By its content; of dnstap files messages of these types are records, and not those that
    /// [`DnstapTypes::default`] names.
    AutoWith(DnstapTypes),
    /// TSH, which cannot be recognised by its content. Compression is still recognised.
    Tsh,
}

/// A capture file or a log, from which packets or records are read in batches.
///
/// Everything before a damaged place is delivered; then comes one error, then the end.
pub struct Capture {
    path: PathBuf,
    buffer: ReadBuffer,
    reader: Reader,
    container: Container,
    compression: Compression,
    /// Those that help to decompress.
    decompress: codecs::Workers,
    bytes_read: Arc<AtomicU64>,
    times_out_of_range: Arc<AtomicU64>,
    packets: Vec<PacketRef>,
    entries: Entries,
    /// What a writer needs besides, if it was asked for.
    records: Option<Box<Records>>,
    /// Chooses among the packets, if not all of them are wanted.
    chooser: Option<Box<Chooser>>,
    /// The part of the file that is read, if not all of it is.
    part: Option<FilePart>,
    /// The error that follows the batch just delivered.
    pending: Option<Fault>,
    finished: bool,
    /// The file itself, where it can be read from anywhere.
    file: Option<PlainFile>,
    /// Packets or records that come again and are passed over.
    passed: u64,
    /// Packets or records that were read.
    handed_out: u64,
    /// How far a followed file was read.
    progress: Option<SharedProgress>,
}

/// A regular file, and what ends its reading.
struct PlainFile {
    file: File,
    stop: StopFlag,
    /// How many bytes it had when it was opened.
    length: u64,
}

enum Reader {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Erf(Erf),
    Tsh(Tsh),
    ZeekTsv(ZeekTsv),
    ZeekJson(ZeekJson),
    LogCsv(Box<LogCsv>),
    Parquet(Box<Parquet>),
    Dnstap(Dnstap),
    Cdns(Cdns),
    Eve(Eve),
}

impl Capture {
    /// Opens the capture at `path`, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// The file cannot be read, is empty, is no capture, or is cut or damaged in its header.
    pub fn open(path: &Path, format: InputFormat) -> Result<Self, TraceError> {
        Self::open_until(path, format, &StopFlag::default())
    }

    /// Opens a capture as [`Self::open`] does. Once `stop` is set, reading it fails: whoever set
    /// the flag takes that for the end.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[doc(hidden)]
    pub fn open_until(
        path: &Path,
        format: InputFormat,
        stop: &StopFlag,
    ) -> Result<Self, TraceError> {
        let refused = |error| {
            let fault = Fault { offset: None, kind: TraceErrorKind::Io(error) };
            fault.in_file(path)
        };
        let file = if path.as_os_str() == "-" { standard_input() } else { File::open(path) };
        let file = file.map_err(refused)?;
        let data = file.metadata().map_err(refused)?;
        if data.is_dir() {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        let regular = path.as_os_str() != "-" && data.is_file();
        let itself = if regular { file.try_clone().ok() } else { None };
        let source = Box::new(Stoppable::new(file, stop.clone()));
        let itself = itself.map(|file| PlainFile { file, stop: stop.clone(), length: data.len() });
        Self::begin(path, source, format, stop, itself, None)
    }

    /// Reads a capture from `reader`; errors call it `name`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_reader(
        name: &Path,
        reader: Box<dyn Read + Send>,
        format: InputFormat,
    ) -> Result<Self, TraceError> {
        Self::begin(name, reader, format, &StopFlag::default(), None, None)
    }

    /// The same for a followed file, of which is noted how far it was read.
    pub(super) fn from_followed(
        name: &Path,
        reader: Box<dyn Read + Send>,
        format: InputFormat,
        progress: SharedProgress,
    ) -> Result<Self, TraceError> {
        Self::begin(name, reader, format, &StopFlag::default(), None, Some(progress))
    }

    fn begin(
        name: &Path,
        reader: Box<dyn Read + Send>,
        format: InputFormat,
        stop: &StopFlag,
        file: Option<PlainFile>,
        progress: Option<SharedProgress>,
    ) -> Result<Self, TraceError> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let source = Box::new(CountedReader { source: reader, count: Arc::clone(&bytes_read) });
        let decompress = codecs::Workers::default();
        let (compression, source) = codecs::decompressor_with(source, &decompress);
        // The little that a codec holds may become a lot.
        let source: Box<dyn Read + Send> = match compression {
            Compression::None => source,
            _ => Box::new(Ending::new(source, stop.clone())),
        };
        let source: Box<dyn Read + Send> = match &progress {
            None => source,
            Some(progress) => Box::new(Noting { source, progress: progress.clone() }),
        };
        let plain = file.as_ref().filter(|_| compression == Compression::None);
        let mut buffer = match plain {
            Some(plain) => ReadBuffer::for_bytes(source, plain.length),
            None => ReadBuffer::new(source),
        };
        let opened = match open_container(&mut buffer, format) {
            Ok(None) => open_parquet(plain, &bytes_read),
            Ok(Some(found)) => Ok(found),
            Err(fault) => Err(fault),
        };
        let (container, reader) = opened.map_err(|fault| fault.in_file(name))?;
        Ok(Self {
            container,
            compression,
            decompress,
            file,
            progress,
            ..Self::of(name, buffer, reader, bytes_read)
        })
    }

    fn of(name: &Path, buffer: ReadBuffer, reader: Reader, bytes_read: Arc<AtomicU64>) -> Self {
        Self {
            path: name.to_path_buf(),
            buffer,
            reader,
            container: Container::Pcap,
            compression: Compression::None,
            decompress: codecs::Workers::default(),
            bytes_read,
            times_out_of_range: Arc::default(),
            packets: Vec::with_capacity(MAX_BATCH),
            entries: Entries::default(),
            records: None,
            chooser: None,
            part: None,
            pending: None,
            finished: false,
            file: None,
            passed: 0,
            handed_out: 0,
            progress: None,
        }
    }

    /// A pcap file of which the header is known, read by a source that can be put to any place of
    /// it.
    pub(super) fn of_pcap(
        path: &Path,
        source: Box<dyn Read + Send>,
        pcap: Pcap,
        bytes_read: Arc<AtomicU64>,
    ) -> Self {
        Self::of(path, ReadBuffer::new(source), Reader::Pcap(pcap), bytes_read)
    }

    /// Reads only a part of a plain pcap file; to be asked for before the first batch.
    pub(crate) fn read_part(&mut self, part: FilePart) {
        let from = SeekFrom::Start(part.bytes.start);
        let can_be_entered = self.enterable().is_some();
        let plain = self.file.as_mut().filter(|_| can_be_entered);
        if plain.is_some_and(|plain| plain.file.seek(from).is_ok()) {
            self.bytes_read.store(part.bytes.start, Ordering::Relaxed);
            self.restart(part.bytes.start, 0, part.bytes.end);
            self.part = Some(part);
        }
    }

    /// The part of the file that is read, of which the source was put to its begin by somebody
    /// else.
    pub(crate) fn set_part(&mut self, part: Option<FilePart>) {
        self.part = part;
    }

    /// Bytes of the file that are not read, since no packet that is wanted stands there.
    pub(crate) fn unread_bytes(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.unread_bytes)
    }

    /// From now on yields only what is wanted.
    #[doc(hidden)]
    pub fn select(&mut self, select: Arc<dyn Select>) {
        self.chooser = Some(Box::new(Chooser::new(select, Arc::default())));
    }

    pub(super) fn set_chooser(&mut self, chooser: Option<Chooser>) {
        self.chooser = chooser.map(Box::new);
    }

    /// Counter of the packets or records read so far that were not wanted. It may be read from
    /// another thread.
    pub(crate) fn left_out(&self) -> Arc<AtomicU64> {
        let chooser = self.chooser.as_deref();
        chooser.map_or_else(Arc::default, |chooser| Arc::clone(chooser.left_out()))
    }

    /// Goes on at `offset`, where its source was put, with the record after `packets` others, up to
    /// those that begin at `until` or later.
    pub(super) fn restart(&mut self, offset: u64, packets: u64, until: u64) {
        self.buffer.restart(offset);
        if let Reader::Pcap(pcap) = &mut self.reader {
            pcap.restart(packets, until);
        }
        (self.pending, self.finished) = (None, false);
    }

    /// Goes on at `offset` of a followed file, where it was put, behind `packets` others.
    pub(super) fn resume(&mut self, offset: u64, packets: u64) {
        if let Some(progress) = &self.progress {
            progress.lock().seek(offset);
        }
        self.restart(offset, packets, u64::MAX);
        self.handed_out = packets;
    }

    /// Passes over the first packets or records.
    pub(super) fn pass(&mut self, packets: u64) {
        self.passed = packets;
    }

    /// Steps on to the first place at hand that looks like a record boundary; false if none does.
    pub(super) fn step_to_boundary(&mut self, at_hand: usize) -> bool {
        self.buffer.fill(at_hand);
        let guess = match &self.reader {
            Reader::Pcap(pcap) => pcap.guess_boundary(self.buffer.unread()),
            _ => None,
        };
        self.buffer.consume(guess.unwrap_or(0));
        guess.is_some()
    }

    /// Offset of the next record in the container.
    #[doc(hidden)]
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The dialect of a plain pcap file, whose records can be found from any place of it.
    pub(super) fn enterable(&self) -> Option<&Pcap> {
        match &self.reader {
            Reader::Pcap(pcap)
                if self.compression == Compression::None && pcap.can_be_entered() =>
            {
                Some(pcap)
            }
            _ => None,
        }
    }

    /// The capture in segments of this many bytes that can be read in any order, if it is a plain
    /// pcap file with several of them. To be asked before the first batch is read.
    pub(crate) fn segments(&self, bytes: u64) -> Option<Segments> {
        let PlainFile { file, stop, .. } = self.file.as_ref()?;
        let pcap = self.enterable()?;
        let file = file.try_clone().ok()?;
        let bytes_read = Arc::clone(&self.bytes_read);
        let chooser = self.chooser.as_deref().map(Chooser::shared);
        let mut segments = Segments::new(&self.path, file, pcap.clone(), bytes, stop, bytes_read)?;
        segments.choose(chooser);
        match &self.part {
            Some(part) => segments.within(part.clone()),
            None => Some(segments),
        }
    }

    /// Whether it was opened as a file so short that reading it takes less time than starting a
    /// thread for it.
    pub(crate) fn is_short(&self) -> bool {
        let most = match self.compression {
            Compression::None => SHORT_BYTES,
            _ => SHORT_COMPRESSED_BYTES,
        };
        let file = self.file.as_ref();
        file.is_some_and(|file| file.length <= most)
    }

    /// Reads the next batch, of at most [`MAX_BATCH`] packets or records and never empty; `None` at
    /// the end.
    ///
    /// # Errors
    /// The capture is cut or damaged here, or cannot be read on. All packets before that place have
    /// been returned; the next call returns `None`.
    pub fn next_batch(&mut self) -> Result<Option<TraceBatch<'_>>, TraceError> {
        if let Some(records) = &mut self.records
            && !self.finished
        {
            records.clear_batch();
        }
        loop {
            if !self.fill()? {
                return Ok(None);
            }
            if !self.packets.is_empty() || !self.entries.is_empty() {
                break;
            }
        }
        Ok(Some(if self.packets.is_empty() {
            TraceBatch::Log(self.entries.batch_in(self.log_text()))
        } else {
            TraceBatch::Packets { bytes: self.buffer.buffered(), packets: &self.packets }
        }))
    }

    /// Reads packets or records, of which perhaps none are wanted; false at the end.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if let Some(fault) = self.pending.take() {
            self.finished = true;
            return Err(self.cause_of(fault).in_file(&self.path));
        }
        if self.finished {
            return Ok(false);
        }
        self.packets.clear();
        self.entries.clear();
        let (buffer, packets, entries) = (&mut self.buffer, &mut self.packets, &mut self.entries);
        let mut records = self.records.as_deref_mut();
        let annotations = records.as_deref().map_or(0, |kept| kept.annotations.len());
        if let Some(records) = records.as_deref_mut() {
            records.batch.clear();
        }
        let result = match &mut self.reader {
            Reader::Pcap(reader) => reader.fill(buffer, packets, records.as_deref_mut()),
            Reader::Pcapng(reader) => reader.fill(buffer, packets, records.as_deref_mut()),
            Reader::Erf(reader) => reader.fill(buffer, packets),
            Reader::Tsh(reader) => reader.fill(buffer, packets),
            Reader::ZeekTsv(reader) => reader.fill(buffer, entries),
            Reader::ZeekJson(reader) => reader.fill(buffer, entries),
            Reader::LogCsv(reader) => reader.fill(entries),
            Reader::Parquet(reader) => reader.fill(entries),
            Reader::Dnstap(reader) => reader.fill(buffer, entries),
            Reader::Cdns(reader) => reader.fill(buffer, entries),
            Reader::Eve(reader) => reader.fill(buffer, entries),
        };
        if let (Some(records), Reader::Erf(_) | Reader::Tsh(_)) = (records, &self.reader) {
            records.by_link(&self.packets);
        }
        if let Some(progress) = &self.progress {
            self.handed_out += (self.packets.len() + self.entries.len()) as u64;
            progress.lock().note_packets(self.handed_out, self.buffer.offset());
        }
        self.count_times();
        let nothing = self.packets.is_empty() && self.entries.is_empty();
        match result {
            Err(fault) if nothing => {
                self.finished = true;
                return Err(self.cause_of(fault).in_file(&self.path));
            }
            Err(fault) => self.pending = Some(fault),
            Ok(()) if nothing => {
                self.finished = true;
                return match self.entries.take_skipped() {
                    Some(fault) => Err(fault.in_file(&self.path)),
                    None => Ok(false),
                };
            }
            Ok(()) => {}
        }
        if self.passed > 0 {
            let known = usize::try_from(self.passed).unwrap_or(usize::MAX);
            let known = known.min(self.packets.len().max(self.entries.len()));
            self.packets.drain(..known.min(self.packets.len()));
            self.entries.pass(known);
            self.passed -= known as u64;
        }
        self.choose(annotations);
        Ok(true)
    }

    /// Time of the first packet or record that follows, if any does.
    pub(super) fn first_time_ns(&mut self) -> Result<Option<i64>, TraceError> {
        Ok(match self.next_batch()? {
            Some(TraceBatch::Packets { packets, .. }) => {
                packets.first().map(|packet| packet.time_ns)
            }
            Some(TraceBatch::Log(log)) => log.entries.first().map(|entry| entry.time_ns),
            None => None,
        })
    }

    /// What the records of the present batch point into.
    fn log_text(&self) -> &[u8] {
        match &self.reader {
            Reader::Dnstap(_) => self.buffer.buffered(),
            _ => self.entries.text(),
        }
    }

    /// Removes what is not wanted of what was just read, before which there were this many
    /// annotations.
    fn choose(&mut self, annotations: usize) {
        let Some(chooser) = &mut self.chooser else {
            return;
        };
        if self.packets.is_empty() {
            let in_buffer = matches!(self.reader, Reader::Dnstap(_));
            let text = in_buffer.then(|| self.buffer.buffered());
            self.entries.choose(chooser, text);
        } else {
            let records = self.records.as_deref_mut();
            let bytes = self.buffer.buffered();
            chooser.packets(bytes, &mut self.packets, records, annotations);
        }
    }

    /// Counts the times of the present batch that are out of range. Other containers have no such
    /// times.
    fn count_times(&self) {
        let count = match &self.reader {
            Reader::Pcapng(_) => {
                let times = self.packets.iter().map(|packet| packet.time_ns);
                times.filter(|&time| time::is_out_of_range(time)).count()
            }
            Reader::Pcap(_) | Reader::Erf(_) | Reader::Tsh(_) => return,
            _ => {
                let times = self.entries.batch().entries.iter();
                times.filter(|entry| time::is_out_of_range(entry.time_ns)).count()
            }
        };
        if count > 0 {
            self.times_out_of_range.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// From now on decompresses frames or members of a file in this many threads, if their ends can
    /// be seen. Batches and errors stay the same.
    pub(crate) fn decompress_in(&mut self, threads: usize) {
        // A pipe lets whoever looks ahead wait, even if the next bytes are there.
        if self.file.is_some() {
            self.decompress.set(threads);
        }
    }

    /// From now on decompresses in a thread of its own, if there is anything to decompress. Batches
    /// and errors stay the same.
    pub(crate) fn decompress_ahead(&mut self) {
        if self.compression != Compression::None {
            self.buffer.read_ahead();
        }
    }

    /// From now on takes down what a writer needs besides the packets; to be called before the
    /// first batch is read. It costs some time.
    #[doc(hidden)]
    pub fn keep_records(&mut self) {
        let mut records = Box::<Records>::default();
        if let Reader::Pcap(reader) = &self.reader {
            reader.describe(&mut records);
        }
        self.records = Some(records);
    }

    /// From now on takes down the annotations of pcapng, too; to be called behind
    /// [`Self::keep_records`]. At the end of the capture those behind the last packet are in
    /// [`Self::record_batch`].
    #[doc(hidden)]
    pub fn keep_annotations(&mut self) {
        if let Some(records) = &mut self.records {
            records.keeps_annotations = true;
        }
    }

    /// Annotations that were too long, or too many, to be kept.
    pub(crate) fn unkept_annotations(&self) -> u64 {
        self.records.as_ref().map_or(0, |records| records.unkept)
    }

    /// The batch of packets that [`Self::next_batch`] read last, as [`Self::keep_records`] took it
    /// down; without it there are packets and nothing besides.
    #[doc(hidden)]
    pub fn record_batch(&self) -> RecordBatch<'_> {
        let records = self.records.as_deref();
        RecordBatch {
            bytes: self.buffer.buffered(),
            packets: &self.packets,
            records: records.map_or(&[], |records| &records.batch),
            interfaces: records.map_or(&[], |records| &records.interfaces),
            annotations: records.map_or(&[], |records| &records.annotations),
            is_plain_pcap: records.is_some_and(|records| records.is_plain_pcap),
        }
    }

    /// Codecs find damage later than they hand over bytes that are wrong. What the container trips
    /// over is then not the cause, and not the place to look at.
    fn cause_of(&mut self, fault: Fault) -> Fault {
        if self.compression == Compression::None {
            let before = self.part.as_ref().map(|part| self.packets_before(part));
            return fault.behind(before.unwrap_or(0));
        }
        match self.buffer.skip(DAMAGE_SEARCH_BYTES) {
            Err(cause) => cause,
            Ok(_) => fault,
        }
    }

    /// Name of the container: `pcap`, `pcapng`, `erf`, `tsh`, or for a log `dnstap`, `cdns`,
    /// `zeek-dns-tsv`, `zeek-dns-json`, `zeek-conn-tsv`, `zeek-conn-json`, `eve-json`, `dns-csv`,
    /// `flow-csv`, `nfdump-csv`, `flow-parquet` or `dns-parquet`.
    #[doc(hidden)]
    pub fn container(&self) -> &'static str {
        self.container.name()
    }

    /// Whether it is a log, which has records and no packets.
    #[doc(hidden)]
    pub fn is_log(&self) -> bool {
        !matches!(
            self.container,
            Container::Pcap | Container::Pcapng | Container::Erf | Container::Tsh
        )
    }

    /// Names of the container and of the compression, if there is one: `pcap in gzip`.
    #[doc(hidden)]
    pub fn description(&self) -> String {
        match self.compression {
            Compression::None => self.container().to_owned(),
            compression => format!("{} in {}", self.container(), compression.name()),
        }
    }

    /// Compression around the container.
    #[doc(hidden)]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Counter of the bytes taken from the file so far, as they are on disk, that is, compressed.
    /// It may be read from another thread.
    #[doc(hidden)]
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Counter of the packets or records read so far whose times are outside 1677 to 2262, beyond
    /// what nanoseconds in 64 bits can hold. They have the nearest time in that range.
    #[doc(hidden)]
    pub fn times_out_of_range(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.times_out_of_range)
    }

    /// Path, or name, under which it was opened.
    #[doc(hidden)]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("path", &self.path)
            .field("container", &self.container)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

/// Parquet, which is read from its end.
fn open_parquet(
    plain: Option<&PlainFile>,
    bytes_read: &Arc<AtomicU64>,
) -> Result<(Container, Reader), Fault> {
    let place = plain.map(|plain| Place::new(plain.file.try_clone()?, &plain.stop));
    let Some(place) = place else {
        let looks_like = Some(
            "it is a Parquet file, which is read from its end; give the path of the plain file, not a pipe or a compressed \
             file",
        );
        return Err(Fault::at(0, TraceErrorKind::NotACapture { looks_like }));
    };
    let place = place.map_err(|error| Fault::from_io(error, 0))?;
    let reader = Parquet::open(place, Arc::clone(bytes_read))?;
    let container = match reader.rows() {
        Rows::Queries => Container::DnsParquet,
        Rows::Flows | Rows::Nfdump => Container::FlowParquet,
    };
    Ok((container, Reader::Parquet(Box::new(reader))))
}

/// Recognises the container and opens it; none for Parquet, which is not read through the buffer.
fn open_container(
    buffer: &mut ReadBuffer,
    format: InputFormat,
) -> Result<Option<(Container, Reader)>, Fault> {
    let container = match format {
        InputFormat::Auto | InputFormat::AutoWith(_) => sniff::sniff(buffer)?,
        InputFormat::Tsh => Container::Tsh,
    };
    let reader = match container {
        Container::Pcap => Reader::Pcap(Pcap::open(buffer)?),
        Container::Pcapng => Reader::Pcapng(Pcapng::open(buffer)?),
        Container::Erf => Reader::Erf(Erf::default()),
        Container::Tsh => Reader::Tsh(Tsh::open(buffer)?),
        Container::Dnstap => Reader::Dnstap(Dnstap::new(match format {
            InputFormat::AutoWith(types) => types,
            _ => DnstapTypes::default(),
        })),
        Container::Cdns => Reader::Cdns(Cdns::open(buffer)?),
        Container::ZeekDnsTsv | Container::ZeekConnTsv => Reader::ZeekTsv(ZeekTsv::default()),
        Container::ZeekDnsJson | Container::ZeekConnJson => Reader::ZeekJson(ZeekJson::default()),
        Container::EveJson => Reader::Eve(Eve::default()),
        Container::DnsCsv | Container::FlowCsv | Container::NfdumpCsv => {
            let taken = std::mem::replace(buffer, ReadBuffer::new(Box::new(io::empty())));
            Reader::LogCsv(Box::new(LogCsv::open(taken)?))
        }
        Container::FlowParquet | Container::DnsParquet => return Ok(None),
    };
    Ok(Some((container, reader)))
}

/// Whether [`Capture::open`] would recognise the file as this format, from its first bytes: for
/// walking through directories.
///
/// # Errors
/// The file cannot be read.
pub fn is_capture(path: &Path, format: InputFormat) -> Result<bool, TraceError> {
    // Opening a pipe or a device for a look could wait forever.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(false);
    }
    match Capture::open(path, format) {
        Ok(_) => Ok(true),
        // What is a capture in a bad state is better reported than passed over.
        Err(error) => match &error.kind {
            TraceErrorKind::NotACapture { .. } | TraceErrorKind::Empty => Ok(false),
            TraceErrorKind::Io(_) => Err(error),
            _ => Ok(true),
        },
    }
}

/// Time of the first packet or record of a capture, in nanoseconds since the epoch; `None` if it
/// has none. Only the start of the file is read.
///
/// # Errors
/// The file cannot be opened, or is damaged before its first packet.
pub(crate) fn first_time_ns(path: &Path, format: InputFormat) -> Result<Option<i64>, TraceError> {
    Capture::open(path, format)?.first_time_ns()
}

/// Standard input without a buffer of its own, in which bytes would be that no wait knows of.
///
/// # Errors
///
/// The system gives no further handle of it.
pub fn standard_input() -> io::Result<File> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let own = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned();
    own.map(File::from)
}

pub(super) struct CountedReader {
    pub(super) source: Box<dyn Read + Send>,
    pub(super) count: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
