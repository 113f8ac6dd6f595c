//! A capture: opened, recognised, and read batch by batch.

use crate::untrusted::Shown;
use std::any::Any;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::codecs;
use super::compression::Compression;
use super::error::{ReadError, TraceError, TraceErrorKind};
use super::followed_files::{Noting, SharedProgress};
use super::format::{Batch, Class, Format, InputFormat, PacketSource};
use super::formats;
use super::packet::{MAX_BATCH, TraceBatch};
use super::part::FilePart;
use super::pcap::Pcap;
use super::read_buffer::ReadBuffer;
use super::record::{RecordBatch, Records};
use super::select::{Chooser, Select};
use super::stop::{Ending, StopFlag, Stoppable, open_file};
use super::time;
use super::tsh;

/// Bytes that are read behind damage of a compressed stream, to see whether its codec finds it too:
/// more than the largest block of any codec but LZMA's.
const DAMAGE_SEARCH_BYTES: u64 = 16 << 20;

/// Files up to this size are read before another thread has begun.
const SHORT_BYTES: u64 = 128 << 10;

/// The limit for compressed files, which are longer than they look.
const SHORT_COMPRESSED_BYTES: u64 = 16 << 10;

/// A capture file or a log, from which packets or records are read in batches.
///
/// Everything before a damaged place is delivered; then comes one error, then the end.
pub struct Capture {
    path: PathBuf,
    buffer: ReadBuffer,
    source: Box<dyn PacketSource>,
    class: Class,
    container: &'static str,
    compression: Compression,
    /// Number of threads that help to decompress.
    decompress: codecs::Workers,
    bytes_read: Arc<AtomicU64>,
    times_out_of_range: Arc<AtomicU64>,
    batch: Batch,
    /// Chooses among the packets, if not all of them are wanted.
    pub(super) chooser: Option<Box<Chooser>>,
    /// The part of the file that is read, if not all of it is.
    pub(crate) part: Option<FilePart>,
    /// The error that follows the batch just delivered.
    pending: Option<ReadError>,
    finished: bool,
    /// The file itself, where it can be read from anywhere.
    pub(super) file: Option<PlainFile>,
    /// Packets or records that come again and are passed over.
    passed: u64,
    /// Packets or records that were read.
    handed_out: u64,
    /// How far a followed file was read.
    progress: Option<SharedProgress>,
    /// Time of the first packet or record that was read, selected or not.
    pub(crate) begins_ns: Option<i64>,
}

/// A regular file, and what ends its reading.
pub(super) struct PlainFile {
    pub(super) file: File,
    pub(super) stop: StopFlag,
    /// Its length when it was opened.
    length: u64,
    state: FileState,
}

/// Which file this is, and in which state: device and inode, length, time of the last change.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileState([u64; 2], u64, Option<SystemTime>);

impl FileState {
    /// Returns the state that the system tells.
    pub fn of(data: &Metadata) -> Self {
        #[cfg(unix)]
        let file = [data.dev(), data.ino()];
        #[cfg(not(unix))]
        let file = [0; 2];
        Self(file, data.len(), data.modified().ok())
    }

    /// Returns whether it is the file that was in the state `before` and is longer now.
    pub fn has_grown(self, before: Self) -> bool {
        self.0 == before.0 && self.1 > before.1
    }
}

impl Capture {
    /// Opens the capture at `path`, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// The file cannot be read, is empty, is no capture, or is cut or damaged in its header.
    pub fn open(path: &Path, format: InputFormat) -> Result<Self, TraceError> {
        Self::open_until(path, format, &StopFlag::default())
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

    /// Opens a followed file, and notes in `progress` how far it was read.
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
        // A codec may turn few bytes into many.
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
        let opened = open_source(&mut buffer, format);
        let (format, container, source) = opened.map_err(|error| error.in_file(name))?;
        Ok(Self {
            class: format.class,
            container,
            compression,
            decompress,
            file,
            progress,
            ..Self::new(name, buffer, source, bytes_read)
        })
    }

    fn new(
        name: &Path,
        buffer: ReadBuffer,
        source: Box<dyn PacketSource>,
        bytes_read: Arc<AtomicU64>,
    ) -> Self {
        let batch = Batch { packets: Vec::with_capacity(MAX_BATCH), ..Batch::default() };
        Self {
            path: name.to_path_buf(),
            buffer,
            source,
            class: Class::Capture,
            container: "pcap",
            compression: Compression::None,
            decompress: codecs::Workers::default(),
            bytes_read,
            times_out_of_range: Arc::default(),
            batch,
            chooser: None,
            part: None,
            pending: None,
            finished: false,
            file: None,
            passed: 0,
            handed_out: 0,
            progress: None,
            begins_ns: None,
        }
    }

    /// Opens a pcap file with a known header; `source` can be put to any place of it.
    pub(super) fn of_pcap(
        path: &Path,
        source: Box<dyn Read + Send>,
        pcap: Pcap,
        bytes_read: Arc<AtomicU64>,
    ) -> Self {
        Self::new(path, ReadBuffer::new(source), Box::new(pcap), bytes_read)
    }

    fn pcap(&self) -> Option<&Pcap> {
        let source: &dyn Any = &*self.source;
        source.downcast_ref()
    }

    /// Reads only a part of a plain pcap file; call it before the first batch.
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

    /// Returns the bytes of the file that are not read, because no wanted packet is there.
    pub(crate) fn unread_bytes(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.unread_bytes)
    }

    /// Returns the counter of packets or records that were read and not wanted. Another thread may
    /// read it.
    pub(crate) fn left_out(&self) -> Arc<AtomicU64> {
        let chooser = self.chooser.as_deref();
        chooser.map_or_else(Arc::default, |chooser| Arc::clone(&chooser.left_out))
    }

    /// Continues at `offset`, where its source stands, with the record after `packets` others, up
    /// to records that begin at `until` or later.
    pub(super) fn restart(&mut self, offset: u64, packets: u64, until: u64) {
        self.buffer.restart(offset);
        let source: &mut dyn Any = &mut *self.source;
        if let Some(pcap) = source.downcast_mut::<Pcap>() {
            pcap.restart(packets, until);
        }
        (self.pending, self.finished) = (None, false);
    }

    /// Continues at `offset` of a followed file, where its source stands, behind `packets` others.
    pub(super) fn resume(&mut self, offset: u64, packets: u64) {
        if let Some(progress) = &self.progress {
            progress.lock().seek(offset);
        }
        self.restart(offset, packets, u64::MAX);
        self.handed_out = packets;
    }

    /// Skips the first packets or records.
    pub(super) fn pass(&mut self, packets: u64) {
        self.passed = packets;
    }

    /// Steps to the first place at hand that looks like a record boundary; returns false if none
    /// does.
    pub(super) fn step_to_boundary(&mut self, at_hand: usize) -> bool {
        self.buffer.fill(at_hand);
        let guess = self.pcap().and_then(|pcap| pcap.guess_boundary(self.buffer.unread()));
        self.buffer.consume(guess.unwrap_or(0));
        guess.is_some()
    }

    /// Returns the dialect of a plain pcap file whose records can be found from any place.
    pub(super) fn enterable(&self) -> Option<&Pcap> {
        let pcap = self.pcap().filter(|_| self.compression == Compression::None);
        pcap.filter(|pcap| pcap.can_be_entered())
    }

    /// Returns which file this is, and in which state it was opened; `None` for what is no regular file.
    pub(crate) fn file_state(&self) -> Option<FileState> {
        self.file.as_ref().map(|file| file.state)
    }

    /// Returns whether the file is so short that reading it takes less time than starting a thread.
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
        if let Some(records) = &mut self.batch.records
            && !self.finished
        {
            records.clear_batch();
        }
        let mut more = self.read_batch()?;
        while more && self.batch.is_empty() {
            more = self.read_batch()?;
        }
        if !more {
            return Ok(None);
        }
        Ok(Some(if self.batch.packets.is_empty() {
            let text = self.log_text().unwrap_or(self.batch.entries.text());
            TraceBatch::Log(self.batch.entries.batch_in(text))
        } else {
            TraceBatch::Packets { bytes: self.buffer.buffered(), packets: &self.batch.packets }
        }))
    }

    /// Reads packets or records, perhaps none that are wanted; returns false at the end.
    fn read_batch(&mut self) -> Result<bool, TraceError> {
        if let Some(error) = self.pending.take() {
            self.finished = true;
            return Err(self.cause_of(error).in_file(&self.path));
        }
        if self.finished {
            return Ok(false);
        }
        self.batch.clear();
        let records = self.batch.records.as_deref();
        let annotations = records.map_or(0, |records| records.annotations.len());
        let result = self.source.fill(&mut self.buffer, &mut self.batch);
        if let Some(progress) = &self.progress {
            self.handed_out += self.batch.len() as u64;
            progress.lock().note_packets(self.handed_out, self.buffer.offset());
        }
        self.count_times();
        if self.batch.is_empty() {
            self.finished = true;
            result.map_err(|error| self.cause_of(error).in_file(&self.path))?;
            let skipped = self.batch.entries.take_skipped();
            return skipped.map_or(Ok(false), |error| Err(error.in_file(&self.path)));
        }
        self.pending = result.err();
        if self.passed > 0 {
            self.passed -= self.batch.remove_first(self.passed) as u64;
        }
        if self.begins_ns.is_none() {
            let entry = self.batch.entries.batch().entries.first().map(|entry| entry.time_ns);
            self.begins_ns = self.batch.packets.first().map(|packet| packet.time_ns).or(entry);
        }
        self.choose(annotations);
        Ok(true)
    }

    /// Returns the time of the next packet or record, if there is one.
    pub(crate) fn first_time_ns(&mut self) -> Result<Option<i64>, TraceError> {
        Ok(self.next_batch()?.and_then(|batch| batch.times_ns().next()))
    }

    /// Returns the text that the log records of the present batch point into, if it is not that of
    /// the batch.
    fn log_text(&self) -> Option<&[u8]> {
        self.source.points_into_buffer().then(|| self.buffer.buffered())
    }

    /// Removes what is not wanted from the present batch, before which there were this many
    /// annotations.
    fn choose(&mut self, annotations: usize) {
        let Some(chooser) = &mut self.chooser else { return };
        let bytes = self.buffer.buffered();
        let Batch { packets, entries, records } = &mut self.batch;
        if packets.is_empty() {
            entries.choose(chooser, self.source.points_into_buffer().then_some(bytes));
        } else {
            chooser.packets(bytes, packets, records.as_deref_mut(), annotations);
        }
    }

    /// Counts the times of the present batch that are out of range.
    fn count_times(&self) {
        let entries = self.batch.entries.batch().entries.iter().map(|entry| entry.time_ns);
        let mut count = entries.filter(|&time| time::is_out_of_range(time)).count();
        if self.source.has_far_times() {
            let packets = self.batch.packets.iter().map(|packet| packet.time_ns);
            count += packets.filter(|&time| time::is_out_of_range(time)).count();
        }
        if count > 0 {
            self.times_out_of_range.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Decompresses frames or members of a file in this many threads from now on, if their ends can
    /// be found. Batches and errors stay the same.
    pub(crate) fn decompress_in(&mut self, threads: usize) {
        // Looking ahead in a pipe may wait, even if the next bytes are there.
        if self.file.is_some() {
            self.decompress.set(threads);
        }
    }

    /// Decompresses in another thread from now on, if there is anything to decompress. Batches and
    /// errors stay the same.
    pub(crate) fn decompress_ahead(&mut self) {
        if self.compression != Compression::None {
            self.buffer.read_ahead();
        }
    }

    /// Returns the number of annotations that were too long, or too many, to be kept.
    pub(crate) fn unkept_annotations(&self) -> u64 {
        self.batch.records.as_ref().map_or(0, |records| records.unkept)
    }

    /// Returns the damage of the compressed stream if there is any behind an error of the
    /// container: codecs yield wrong bytes before they find damage.
    fn cause_of(&mut self, error: ReadError) -> ReadError {
        if self.compression == Compression::None {
            let before = self.part.as_ref().map(|part| self.packets_before(part));
            return error.behind(before.unwrap_or(0));
        }
        match self.buffer.skip(DAMAGE_SEARCH_BYTES) {
            Err(cause) => cause,
            Ok(_) => error,
        }
    }
}

/// For other crates of this program.
#[doc(hidden)]
impl Capture {
    /// Opens a capture as [`Self::open`] does. Once `stop` is set, reading it fails, which is then
    /// taken for the end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_until(
        path: &Path,
        format: InputFormat,
        stop: &StopFlag,
    ) -> Result<Self, TraceError> {
        let refused = |error| TraceErrorKind::Io(error).in_file(path);
        let is_standard = path.as_os_str() == "-";
        let file = if is_standard { standard_input() } else { open_file(path, stop) };
        let file = file.map_err(refused)?;
        let data = file.metadata().map_err(refused)?;
        if data.is_dir() {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        let regular = !is_standard && data.is_file();
        let itself = if regular { file.try_clone().ok() } else { None };
        let source = Box::new(Stoppable::new(file, stop.clone()));
        let (length, state) = (data.len(), FileState::of(&data));
        let itself = itself.map(|file| PlainFile { file, stop: stop.clone(), length, state });
        Self::begin(path, source, format, stop, itself, None)
    }

    /// Yields only wanted packets from now on.
    pub fn select(&mut self, select: Arc<dyn Select>) {
        self.chooser = Some(Box::new(Chooser::new(select, Arc::default())));
    }

    /// Returns why this log does not answer the selection: it tests DNS types and response codes,
    /// which are read from dnstap only. `None` for all others.
    #[doc(hidden)]
    pub fn unanswered(&self) -> Option<TraceError> {
        let asks = self.chooser.as_ref().is_some_and(|chooser| chooser.asks_dns_codes());
        let lacks = asks && self.is_log() && self.container() != "dnstap";
        let sentence = || {
            format!(
                "{}: `dns qtype` and `dns rcode` find nothing in this log, since types and response codes are read from packets and dnstap only; name captures or dnstap, or leave these tests out",
                self.path.shown()
            )
        };
        lacks.then(|| TraceErrorKind::Reported { sentence: sentence() }.in_file(&self.path))
    }

    /// Returns the offset of the next record in the container.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// Stores what a writer needs in addition to the packets; call it before the first batch is
    /// read. It costs some time.
    pub fn keep_records(&mut self) {
        let mut records = Box::<Records>::default();
        self.source.describe(&mut records);
        self.batch.records = Some(records);
    }

    /// Stores the annotations of pcapng, too; call it after [`Self::keep_records`]. At the end of
    /// the capture those behind the last packet are in [`Self::record_batch`].
    pub fn keep_annotations(&mut self) {
        if let Some(records) = &mut self.batch.records {
            records.keeps_annotations = true;
        }
    }

    /// Returns the batch of packets that [`Self::next_batch`] read last, with what
    /// [`Self::keep_records`] stored; without that, only the packets.
    pub fn record_batch(&self) -> RecordBatch<'_> {
        let records = self.batch.records.as_deref();
        RecordBatch {
            bytes: self.buffer.buffered(),
            packets: &self.batch.packets,
            records: records.map_or(&[], |records| &records.batch),
            interfaces: records.map_or(&[], |records| &records.interfaces),
            annotations: records.map_or(&[], |records| &records.annotations),
            is_plain_pcap: records.is_some_and(|records| records.is_plain_pcap),
        }
    }

    /// Returns the name of the container: `pcap`, `zeek-dns-tsv` and so on.
    pub fn container(&self) -> &'static str {
        self.container
    }

    /// Returns whether it is a log, which has records and no packets.
    pub fn is_log(&self) -> bool {
        self.class != Class::Capture
    }

    /// Returns the names of the container and of the compression, if there is one: `pcap in gzip`.
    pub fn description(&self) -> String {
        match self.compression {
            Compression::None => self.container().to_owned(),
            compression => format!("{} in {}", self.container(), compression.name()),
        }
    }

    /// Returns the compression around the container.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the counter of bytes read from the file, as they are on disk, that is, compressed.
    /// Another thread may read it.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Returns the counter of packets or records whose times are outside 1677 to 2262, beyond what
    /// nanoseconds in 64 bits can hold. They have the nearest time in that range.
    pub fn times_out_of_range(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.times_out_of_range)
    }

    /// Returns the path, or name, under which it was opened.
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

/// A recognised stream: its format, its container and what reads it.
type Opened = (&'static Format, &'static str, Box<dyn PacketSource>);

/// Recognises the container and opens it.
fn open_source(buffer: &mut ReadBuffer, format: InputFormat) -> Result<Opened, ReadError> {
    let (found, container) = match format {
        InputFormat::Auto | InputFormat::AutoWith(_) => formats::recognise(buffer)?,
        InputFormat::Tsh => (&tsh::FORMAT, "tsh"),
    };
    Ok((found, container, (found.open)(buffer, format)?))
}

/// Returns whether [`Capture::open`] would recognise the file, from its first bytes: for searching
/// directories.
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
        // A damaged capture is better reported than skipped.
        Err(error) => match &error.kind {
            TraceErrorKind::NotACapture { .. } | TraceErrorKind::Empty => Ok(false),
            TraceErrorKind::Io(_) => Err(error),
            _ => Ok(true),
        },
    }
}

/// Opens standard input without a buffer, whose bytes a wait for more would not see.
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
