//! Reading what is still being written: a growing capture, or the captures that a program puts into
//! a directory one after the other.

use super::capture::Capture;
use super::error::{ReadError, TraceError};
use super::followed_files::{Edges, FollowedFiles, Next, SharedProgress, Version, identity};
use super::format::InputFormat;
use super::stop::{StopFlag, ended};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks at a file or a directory.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// No capture is shorter than this; a shorter file has just begun.
pub(super) const LEAST_BYTES: u64 = 24;

/// A file or a directory that is followed. Clones follow together.
#[derive(Clone, Debug)]
pub(super) struct Follow {
    path: PathBuf,
    files: Arc<Mutex<FollowedFiles>>,
}

impl Follow {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), files: Arc::default() }
    }

    /// Whether other captures may follow the one that was opened.
    pub(super) fn has_more(&self) -> bool {
        self.path.is_dir()
    }

    fn files(&self) -> MutexGuard<'_, FollowedFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file, or the next one of the directory as soon as there is one.
    pub(super) fn open(&self, format: InputFormat, stop: &StopFlag) -> Result<Capture, TraceError> {
        let refused = |error| ReadError::from_io(error, 0).in_file(&self.path);
        if self.has_more() {
            self.files().close();
            loop {
                let found = self.files().look(&self.path, format, stop).map_err(refused)?;
                match found {
                    Some(next) => match self.open_next(next, format, stop) {
                        Err(error) if !stop.is_set() => {
                            let mut files = self.files();
                            files.close();
                            // It may have changed meanwhile, and is opened again if it changes.
                            files.postpone(error);
                        }
                        opened => return opened,
                    },
                    None if stop.is_set() => return Err(refused(ended())),
                    None => {}
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
        while fs::metadata(&self.path).map_err(refused)?.len() < LEAST_BYTES {
            if stop.is_set() {
                return Err(refused(ended()));
            }
            thread::sleep(POLL_INTERVAL);
        }
        let file = File::open(&self.path).map_err(refused)?;
        let reader =
            Following::new(file, SharedProgress::default(), Place::Alone(self.path.clone()), stop);
        Capture::from_reader(&self.path, Box::new(reader), format)
    }

    /// Opens a file of the directory, at the first packet that was not read before.
    fn open_next(
        &self,
        next: Next,
        format: InputFormat,
        stop: &StopFlag,
    ) -> Result<Capture, TraceError> {
        let Next { path, file, progress } = next;
        let (packets, offset, has_bytes) = {
            let begun = progress.lock();
            // Bytes before the next packet were read, and not only counted in packets.
            (begun.packets, begun.offset, begun.bytes > 0)
        };
        let mut handle = file.try_clone().map_err(|error| {
            let fault = ReadError::from_io(error, 0);
            fault.in_file(&path)
        })?;
        let place = Place::Directory(self.clone(), format);
        let reader = Following::new(file, progress.clone(), place, stop);
        let mut capture = Capture::from_followed(&path, Box::new(reader), format, progress)?;
        if packets > 0 {
            let can_be_entered = capture.enterable().is_some();
            // A file that was damaged is read again, and its packets are passed over.
            if has_bytes && can_be_entered && handle.seek(SeekFrom::Start(offset)).is_ok() {
                capture.resume(offset, packets);
            } else {
                capture.pass(packets);
            }
        }
        Ok(capture)
    }

    /// Keeps the error of a file that may be continued or completed. Returns it if there is no file.
    pub(super) fn postpone(&self, error: TraceError) -> Option<TraceError> {
        self.files().postpone(error)
    }

    /// Returns the first error of a file that was not continued, and remarks on others.
    pub(super) fn finish(&self, format: InputFormat) -> (Option<TraceError>, Vec<String>) {
        self.files().finish(&self.path, format)
    }
}

/// Where a file is that is followed.
enum Place {
    /// At this path, alone.
    Alone(PathBuf),
    /// Among others.
    Directory(Follow, InputFormat),
}

/// A file that may grow until another one is begun.
struct Following {
    file: File,
    progress: SharedProgress,
    place: Place,
    /// The last version that was found to have what was read.
    verified: Option<Version>,
    /// Version of the file when its last byte was read.
    read_in: Option<Version>,
    /// All was read at the last look.
    waits: bool,
    ended: bool,
    stop: StopFlag,
}

impl Following {
    fn new(file: File, progress: SharedProgress, place: Place, stop: &StopFlag) -> Self {
        Self {
            file,
            progress,
            place,
            verified: None,
            read_in: None,
            waits: false,
            ended: false,
            stop: stop.clone(),
        }
    }

    /// Whether the file still has what was read of it, and perhaps more.
    fn has_what_was_read(&mut self) -> io::Result<bool> {
        let data = self.file.metadata()?;
        let version = Version::new(&data);
        if self.verified.as_ref() == Some(&version) {
            self.read_in.get_or_insert(version);
            return Ok(true);
        }
        let (mut edges, raw_at) = {
            let progress = self.progress.lock();
            let is_shorter = data.len() < progress.raw;
            let edges = if is_shorter {
                Edges::Different
            } else {
                progress.compare_edges(&mut self.file)?
            };
            (edges, progress.raw_at)
        };
        self.file.seek(SeekFrom::Start(raw_at))?;
        if edges == Edges::Patched {
            match &self.place {
                Place::Directory(follow, _) => follow.files().remark_open_patched(),
                // It may have been begun anew between a look and a read.
                Place::Alone(_) => edges = Edges::Different,
            }
        }
        if edges != Edges::Different {
            self.read_in.get_or_insert_with(|| version.clone());
            self.verified = Some(version);
        }
        Ok(edges != Edges::Different)
    }

    /// Ends the reading of the file.
    fn end(&mut self, tell: impl FnOnce(&mut FollowedFiles)) {
        self.ended = true;
        if let Place::Directory(follow, _) = &self.place {
            tell(&mut follow.files());
        }
    }

    /// Whether another file has its path now. A file that was renamed is still followed.
    fn is_replaced(&self, path: &Path) -> io::Result<bool> {
        let own = identity(path, &self.file.metadata()?);
        Ok(fs::metadata(path).is_ok_and(|data| identity(path, &data) != own))
    }
}

impl Read for Following {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut is_last = false;
        while !self.ended {
            if self.stop.is_set() {
                return Err(ended());
            }
            // Also if there is more to read: a file may be begun anew and outgrow what was read.
            if !self.has_what_was_read()? {
                if matches!(self.place, Place::Alone(_)) {
                    return Err(begun_anew("it was begun anew while it was read"));
                }
                self.end(FollowedFiles::end_anew);
                break;
            }
            let count = self.file.read(target)?;
            if count > 0 || target.is_empty() {
                self.progress.lock().note_raw(&target[..count]);
                (self.waits, self.read_in) = (false, None);
                return Ok(count);
            }
            if !self.waits {
                self.waits = true;
                continue;
            }
            if is_last {
                // Another one follows.
                let version = self.verified.clone().filter(|_| self.verified == self.read_in);
                self.end(|files| files.end(version));
                break;
            }
            // Bytes that were written before the other one began are read first.
            match &self.place {
                Place::Directory(follow, format) => {
                    let next = follow.files().look(&follow.path, *format, &self.stop);
                    // A directory that is gone has no more packets; the end says so.
                    is_last = !matches!(next, Ok(None));
                }
                Place::Alone(path) if self.is_replaced(path)? => {
                    return Err(begun_anew("another file has taken its name"));
                }
                Place::Alone(_) => {}
            }
            if !is_last {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(0)
    }
}

/// The error of a file that is followed alone, and of which nothing more comes.
fn begun_anew(why: &str) -> io::Error {
    io::Error::other(format!(
        "{why}, and what came since is not counted; follow its directory to read such files, too"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::trace::TraceBatch;
    use std::io::Write;

    fn capture(seconds: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1];
        let header = words.iter().flat_map(|word| word.to_le_bytes());
        let records = seconds.into_iter().flat_map(|second| {
            let words = [second, 0, 4, 4, 0];
            words.into_iter().flat_map(u32::to_le_bytes)
        });
        header.chain(records).collect()
    }

    fn seconds(capture: &mut Capture, count: usize) -> Vec<i64> {
        let mut seconds = Vec::new();
        while seconds.len() < count {
            let batch = capture.next_batch().unwrap();
            if batch.is_none() {
                break;
            }
            seconds.extend(seconds_of(batch.as_ref()));
        }
        seconds
    }

    fn seconds_of(batch: Option<&TraceBatch<'_>>) -> Vec<i64> {
        match batch {
            Some(TraceBatch::Packets { packets, .. }) => {
                packets.iter().map(|packet| packet.time_ns / 1_000_000_000).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_growing_file_is_read_as_it_grows_until_the_flag_is_set() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes = capture(1..=4);
        file.write_all(&bytes[..24 + 20 + 7]).unwrap();
        let stop = StopFlag::default();
        let mut followed = Follow::new(file.path()).open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut followed, 1), [1]);
        file.write_all(&bytes[24 + 20 + 7..]).unwrap();
        assert_eq!(seconds(&mut followed, 3), [2, 3, 4]);
        stop.set();
        assert!(followed.next_batch().is_err());
    }

    /// The rest was lost, and the result looked whole.
    #[test]
    fn a_file_that_is_followed_alone_and_begun_anew_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&capture(1..=4)).unwrap();
        let stop = StopFlag::default();
        let mut followed = Follow::new(file.path()).open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut followed, 4), [1, 2, 3, 4]);
        fs::write(file.path(), capture(5..=5)).unwrap();
        let error = loop {
            match followed.next_batch() {
                Ok(batch) => assert!(batch.is_some(), "an end like that of a whole file"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("begun anew"), "{error}");
    }

    /// Old and new packets were mixed, and the result looked whole.
    #[test]
    fn a_file_that_is_begun_anew_before_all_of_it_was_read_is_an_error() {
        for seconds in [50_001..=60_000, 50_001..=80_000, 50_001..=99_999] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&capture(1..=30_000)).unwrap();
            let stop = StopFlag::default();
            let mut followed = Follow::new(file.path()).open(InputFormat::Auto, &stop).unwrap();
            let mut read = seconds_of(followed.next_batch().unwrap().as_ref());
            fs::write(file.path(), capture(seconds)).unwrap();
            let error = loop {
                match followed.next_batch() {
                    Ok(batch) => read.extend(seconds_of(batch.as_ref())),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains("begun anew"), "{error}");
            assert!(!read.is_empty() && read.iter().all(|second| *second <= 30_000));
        }
        // Nobody knows how much of it is new.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = capture(1..=99);
        file.write_all(&bytes).unwrap();
        let stop = StopFlag::default();
        let mut followed = Follow::new(file.path()).open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut followed, 99).len(), 99);
        bytes[60] ^= 1;
        bytes.extend(&capture([100])[24..]);
        fs::write(file.path(), bytes).unwrap();
        let error = followed.next_batch().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("begun anew"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_followed_alone_is_an_error_when_another_takes_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved, other] = ["a", "b", "c"].map(|name| folder.path().join(name));
        fs::write(&path, capture(1..=4)).unwrap();
        let stop = StopFlag::default();
        let mut followed = Follow::new(&path).open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut followed, 4), [1, 2, 3, 4]);
        fs::rename(&path, &moved).unwrap();
        let mut file = File::options().append(true).open(&moved).unwrap();
        file.write_all(&capture(5..=5)[24..]).unwrap();
        assert_eq!(seconds(&mut followed, 1), [5]);
        fs::write(&other, capture(6..=6)).unwrap();
        fs::rename(&other, &path).unwrap();
        let error = followed.next_batch().map(|batch| batch.is_some()).unwrap_err().to_string();
        assert!(error.contains("another file has taken its name"), "{error}");
    }

    /// Time in which something has to happen.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A directory that is followed in another thread.
    struct Followed {
        folder: tempfile::TempDir,
        follow: Follow,
        stop: StopFlag,
        /// The packets' seconds.
        read: Arc<Mutex<Vec<u32>>>,
        reader: Option<thread::JoinHandle<Vec<TraceError>>>,
    }

    impl Followed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut followed = Self {
                follow: Follow::new(folder.path()),
                folder,
                stop: StopFlag::default(),
                read: Arc::default(),
                reader: None,
            };
            followed.write("ring0", capture(1..=2));
            followed.start();
            followed.await_packets(1..=2);
            followed
        }

        fn start(&mut self) {
            let (follow, stop, read) =
                (self.follow.clone(), self.stop.clone(), Arc::clone(&self.read));
            self.reader = Some(thread::spawn(move || {
                let mut errors = Vec::new();
                while let Ok(mut capture) = follow.open(InputFormat::Auto, &stop) {
                    loop {
                        match capture.next_batch() {
                            Ok(Some(TraceBatch::Packets { packets, .. })) => {
                                let seconds = packets.iter().map(|packet| packet.time_ns);
                                let seconds = seconds.map(|time| (time / 1_000_000_000) as u32);
                                read.lock().unwrap().extend(seconds);
                            }
                            Ok(_) => break,
                            Err(_) if stop.is_set() => break,
                            Err(error) => {
                                errors.extend(follow.postpone(error));
                                break;
                            }
                        }
                    }
                }
                errors
            }));
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Writes a file in place, if it is there already.
        fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
            fs::write(self.path(name), bytes).unwrap();
        }

        fn append(&self, name: &str, bytes: &[u8]) {
            let mut file = fs::OpenOptions::new().append(true).open(self.path(name)).unwrap();
            file.write_all(bytes).unwrap();
        }

        /// Writes over the first bytes of a file.
        fn overwrite(&self, name: &str, bytes: &[u8]) {
            let mut file = File::options().write(true).open(self.path(name)).unwrap();
            file.write_all(bytes).unwrap();
        }

        fn set_time(&self, name: &str, time: std::time::SystemTime) {
            let file = File::options().append(true).open(self.path(name)).unwrap();
            file.set_modified(time).unwrap();
        }

        fn time(&self, name: &str) -> std::time::SystemTime {
            fs::metadata(self.path(name)).unwrap().modified().unwrap()
        }

        /// Waits until these packets were read, in any order, and no others.
        fn await_packets(&self, expected: impl IntoIterator<Item = u32>) {
            let mut expected: Vec<u32> = expected.into_iter().collect();
            expected.sort_unstable();
            let begun = std::time::Instant::now();
            loop {
                let mut read = self.read.lock().unwrap().clone();
                read.sort_unstable();
                if read == expected {
                    return;
                }
                let late = begun.elapsed() > PATIENCE || read.len() > expected.len();
                assert!(!late, "{read:?} for {expected:?}");
                thread::sleep(Duration::from_millis(5));
            }
        }

        /// Waits until nothing is left to be read but what is unclear.
        fn settle(&self, unclear: usize) {
            let begun = std::time::Instant::now();
            while !self.follow.files().is_settled(self.folder.path(), unclear) {
                assert!(begun.elapsed() < PATIENCE, "{:?}", self.follow.files());
                thread::sleep(Duration::from_millis(5));
            }
        }

        /// Ends the run; these packets were read, and this is said.
        fn end(mut self, expected: impl IntoIterator<Item = u32>, said: &[&str]) {
            self.settle(0);
            self.await_packets(expected);
            let (error, remarks) = self.stop();
            assert!(error.is_empty(), "{error:?}");
            assert_eq!(remarks.len(), said.len(), "{remarks:?}");
            for (remark, part) in remarks.iter().zip(said) {
                assert!(remark.contains(part), "{remark}");
            }
        }

        /// Looks for the next file, which is open then.
        fn look(&self) -> bool {
            let stop = StopFlag::default();
            let found = self.follow.files().look(self.folder.path(), InputFormat::Auto, &stop);
            found.unwrap().is_some()
        }

        fn stop(&mut self) -> (Vec<TraceError>, Vec<String>) {
            self.stop.set();
            let mut errors = self.reader.take().unwrap().join().unwrap();
            let (error, remarks) = self.follow.finish(InputFormat::Auto);
            errors.extend(error);
            (errors, remarks)
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn the_files_of_a_ring_are_read_one_after_the_other_also_when_one_is_written_anew() {
        let ring = Followed::new();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        ring.write("ring0", capture(4..=6));
        ring.await_packets(1..=6);
        ring.write("ring1", capture(7..=7));
        ring.end(1..=7, &[]);
    }

    #[test]
    fn a_file_that_is_compressed_when_it_was_read_counts_once() {
        let ring = Followed::new();
        let bytes = capture(3..=2000);
        ring.write("ring1", &bytes);
        ring.await_packets(1..=2000);
        ring.write("ring2", capture(2001..=2001));
        ring.await_packets(1..=2001);
        // The compressor takes its time, and removes the file when it is through.
        let compressed = gzip(&bytes);
        ring.write("ring1.gz", &compressed[..compressed.len() / 2]);
        ring.settle(1);
        ring.append("ring1.gz", &compressed[compressed.len() / 2..]);
        fs::remove_file(ring.path("ring1")).unwrap();
        ring.end(1..=2001, &[]);
    }

    #[test]
    fn a_file_that_is_compressed_before_it_is_read_is_read() {
        let mut ring = Followed::new();
        ring.stop();
        let bytes = capture(4..=9);
        ring.write("ring1", capture(3..=3));
        ring.write("ring2", &bytes);
        assert!(ring.look());
        fs::remove_file(ring.path("ring2")).unwrap();
        ring.write("ring2.gz", gzip(&bytes));
        ring.stop = StopFlag::default();
        ring.start();
        ring.end(1..=9, &[]);
    }

    #[test]
    fn a_compressed_file_and_its_source_count_once_if_both_are_there() {
        let ring = Followed::new();
        let bytes = capture(3..=9);
        ring.write("ring1.gz", gzip(&bytes));
        ring.write("ring1", &bytes);
        ring.end(1..=9, &[]);
    }

    #[test]
    fn a_file_that_is_renamed_counts_once_while_it_grows_and_later() {
        let ring = Followed::new();
        ring.write("tmp.part", capture(3..=3));
        ring.await_packets(1..=3);
        fs::rename(ring.path("tmp.part"), ring.path("r3.pcap")).unwrap();
        ring.append("r3.pcap", &capture(4..=4)[24..]);
        ring.await_packets(1..=4);
        ring.write("ring1", capture(5..=5));
        ring.await_packets(1..=5);
        fs::rename(ring.path("r3.pcap"), ring.path("r4.pcap")).unwrap();
        ring.end(1..=5, &[]);
    }

    #[test]
    fn a_file_that_is_touched_counts_once() {
        let ring = Followed::new();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        let hour = Duration::from_secs(3600);
        ring.set_time("ring0", ring.time("ring0") + hour);
        ring.settle(0);
        ring.set_time("ring0", ring.time("ring0") - 2 * hour);
        ring.end(1..=3, &[]);
    }

    #[test]
    fn what_is_appended_after_the_next_file_began_is_read_and_nothing_twice() {
        for compress in [false, true] {
            let ring = Followed::new();
            let bytes = capture(3..=9);
            let bytes = if compress { gzip(&bytes) } else { bytes };
            // The last record is there in part.
            let cut = bytes.len() - 30;
            ring.write("ring1", &bytes[..cut]);
            if !compress {
                ring.await_packets(1..=7);
            }
            ring.write("ring2", capture(10..=10));
            ring.await_packets((1..=7).chain([10]));
            ring.append("ring1", &bytes[cut..]);
            ring.end(1..=10, &[]);
        }
    }

    #[test]
    fn a_file_that_ends_in_the_middle_of_a_record_is_an_error_at_the_end() {
        let mut ring = Followed::new();
        let bytes = capture(3..=4);
        ring.write("ring1", &bytes[..bytes.len() - 7]);
        ring.await_packets(1..=3);
        ring.write("ring2", capture(5..=5));
        ring.await_packets([1, 2, 3, 5]);
        let (errors, remarks) = ring.stop();
        assert_eq!((errors.len(), remarks.len()), (1, 0));
        assert!(errors[0].to_string().contains("ring1"), "{}", errors[0]);
    }

    #[test]
    fn two_files_that_grow_in_turns_are_read_and_nothing_twice() {
        let ring = Followed::new();
        let mut files = [("a", capture([])), ("b", capture([]))];
        for second in 3..40 {
            let (name, written) = &mut files[second as usize % 2];
            // Records are completed when the next ones begin.
            let record = capture([second]);
            written.extend(&record[24..]);
            ring.write_more(name, &written[..written.len() - second as usize % 17]);
            ring.await_packets(ring.complete(&files));
        }
        for (name, written) in &files {
            ring.write_more(name, written);
        }
        ring.end(1..40, &[]);
    }

    impl Followed {
        /// Appends what is not in the file yet.
        fn write_more(&self, name: &str, bytes: &[u8]) {
            let length = fs::metadata(self.path(name)).map_or(0, |data| data.len());
            let mut file = File::options().create(true).append(true).open(self.path(name)).unwrap();
            file.write_all(&bytes[length as usize..]).unwrap();
        }

        /// The packets that are there as a whole.
        fn complete(&self, files: &[(&str, Vec<u8>)]) -> Vec<u32> {
            let mut seconds = vec![1, 2];
            for (name, written) in files {
                let length = fs::metadata(self.path(name)).map_or(0, |data| data.len()) as usize;
                let records = written[24.min(length)..length].chunks_exact(20);
                let second = |record: &[u8]| u32::from_le_bytes(record[..4].try_into().unwrap());
                seconds.extend(records.map(second));
            }
            seconds
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_with_two_names_counts_once() {
        let ring = Followed::new();
        fs::hard_link(ring.path("ring0"), ring.path("aring")).unwrap();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        fs::hard_link(ring.path("ring0"), ring.path("zring")).unwrap();
        fs::hard_link(ring.path("ring1"), ring.path("zring1")).unwrap();
        ring.end(1..=3, &[]);
    }

    #[test]
    fn a_file_that_was_read_and_is_begun_anew_is_read_anew() {
        // With the same length, with a shorter one, and a longer one.
        for seconds in [4..=5, 4..=4, 4..=9] {
            let ring = Followed::new();
            ring.write("ring1", capture(3..=3));
            ring.await_packets(1..=3);
            ring.write("ring0", capture(seconds.clone()));
            ring.end((1..=3).chain(seconds), &[]);
        }
    }

    #[test]
    fn a_file_that_is_begun_anew_while_it_is_read_is_read_anew_and_that_is_said() {
        for seconds in [4..=5, 4..=4, 4..=9] {
            let ring = Followed::new();
            ring.write("ring0", capture(seconds.clone()));
            ring.end((1..=2).chain(seconds), &["begun anew while it was read"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_overwritten_with_the_same_time_and_length_is_read_anew() {
        let ring = Followed::new();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        let time = ring.time("ring0");
        ring.write("ring0", capture(4..=5));
        ring.set_time("ring0", time);
        ring.await_packets(1..=5);
        // Another file takes its name.
        ring.write(".next", capture(6..=7));
        ring.set_time(".next", time);
        fs::rename(ring.path(".next"), ring.path("ring0")).unwrap();
        ring.end(1..=7, &[]);
    }

    #[test]
    fn a_copy_counts_once_and_that_is_said() {
        let ring = Followed::new();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        fs::copy(ring.path("ring0"), ring.path("copy")).unwrap();
        ring.settle(0);
        // A copy that goes on is read from where it goes on.
        ring.write("longer", capture([1, 2, 4]));
        ring.end(1..=4, &["copy: it has the bytes of"]);
    }

    /// The file that goes on later has the packets that its copy had before it.
    #[test]
    fn a_file_that_goes_on_as_a_longer_copy_did_counts_once() {
        for (count, is_compressed) in [(2, false), (2, true), (900, false), (900, true)] {
            let ring = Followed::new();
            ring.append("ring0", &capture(3..=count)[24..]);
            ring.await_packets(1..=count);
            let more = count * 2;
            let before = more - 1;
            let bytes = capture(1..=more);
            let (name, copy) =
                if is_compressed { ("ring0.gz", gzip(&bytes)) } else { ("copy", bytes) };
            ring.write(name, copy);
            ring.await_packets(1..=more);
            ring.append("ring0", &capture(count + 1..=before)[24..]);
            ring.settle(1);
            ring.append("ring0", &capture(more..=more)[24..]);
            ring.settle(0);
            ring.await_packets(1..=more);
            // Packets that only this file has count, even if it never stops growing.
            let mut read = 0;
            for second in 1..=30 {
                ring.append("ring0", &capture([more + second])[24..]);
                thread::sleep(Duration::from_millis(40));
                read = ring.read.lock().unwrap().len();
            }
            assert!(read > more as usize, "{read}");
            ring.end(1..=more + 30, if is_compressed { &[] } else { &["ring0: it has the bytes"] });
        }
    }

    #[test]
    fn two_copies_that_go_on_in_their_own_ways_are_both_read() {
        let ring = Followed::new();
        ring.append("ring0", &capture(3..=900)[24..]);
        ring.await_packets(1..=900);
        ring.write("copy", capture(1..=1200));
        ring.await_packets(1..=1200);
        ring.append("ring0", &capture(2001..=2400)[24..]);
        ring.await_packets((1..=1200).chain(2001..=2400));
        ring.append("copy", &capture(1201..=1300)[24..]);
        ring.end((1..=1300).chain(2001..=2400), &[]);
    }

    /// The same length, and the same first and last bytes.
    #[test]
    fn a_file_that_is_overwritten_in_its_middle_while_it_is_open_is_read_anew() {
        let ring = Followed::new();
        ring.write("ring1", capture(3..=99));
        ring.await_packets(1..=99);
        thread::sleep(4 * POLL_INTERVAL);
        let other = || (3..=29).chain(130..=140).chain(41..=99);
        ring.overwrite("ring1", &capture(other()));
        thread::sleep(4 * POLL_INTERVAL);
        ring.write("ring2", capture([200]));
        ring.end((1..=99).chain(other()).chain([200]), &[]);
    }

    #[test]
    fn a_part_of_a_copy_is_not_read_and_that_is_said() {
        let mut ring = Followed::new();
        ring.write("ring1", capture(3..=3));
        ring.await_packets(1..=3);
        ring.write("part", capture(1..=1));
        ring.settle(1);
        let (errors, remarks) = ring.stop();
        assert!(errors.is_empty() && ring.read.lock().unwrap().len() == 3);
        assert!(remarks.len() == 1 && remarks[0].contains("part: not read"), "{remarks:?}");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_left_out_of_a_directory_is_said() {
        let leave = |ring: &Followed, name: &str| {
            let path = ring.path(name);
            match name {
                "day" => fs::create_dir(path).unwrap(),
                "latest" => std::os::unix::fs::symlink("/", path).unwrap(),
                _ => fs::write(path, capture(9..=9)).unwrap(),
            }
        };
        let names = [".hidden", "day", "latest", "ring0.partial"];
        for name in names {
            let ring = Followed::new();
            leave(&ring, name);
            ring.write(".notes", "these are no packets at all");
            ring.end(1..=2, &[&format!("{name}: not read")]);
        }
        let ring = Followed::new();
        for name in names {
            leave(&ring, name);
        }
        ring.end(1..=2, &["(4 here)"]);
    }

    #[test]
    fn a_file_that_vanishes_before_it_is_read_is_named() {
        let mut ring = Followed::new();
        ring.stop();
        ring.write("ring1", capture(3..=3));
        ring.write("ring2", capture(4..=4));
        assert!(ring.look());
        fs::remove_file(ring.path("ring2")).unwrap();
        assert!(!ring.look());
        let (_, remarks) = ring.follow.finish(InputFormat::Auto);
        assert!(remarks[0].contains("ring2: it was gone before it was read"), "{remarks:?}");
    }

    #[test]
    fn a_damaged_file_is_an_error_once_and_not_read_again() {
        let mut ring = Followed::new();
        let mut bytes = capture(3..=20);
        // The seventh record claims more than any has.
        bytes[24 + 6 * 20 + 8..][..8].fill(0xff);
        ring.write("ring1", &bytes);
        ring.await_packets(1..=8);
        ring.append("ring1", &capture(21..=21)[24..]);
        ring.write("ring2", capture(22..=22));
        ring.await_packets((1..=8).chain([22]));
        ring.settle(0);
        let (errors, remarks) = ring.stop();
        assert_eq!((errors.len(), remarks.len()), (1, 0), "{errors:?}");
    }

    /// A capture in pcapng whose section has this length.
    fn pcapng(section: u64, seconds: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let [low, high] = [section as u32, (section >> 32) as u32];
        let begin = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, low, high, 28];
        let interface = [1, 20, 1, 0, 20];
        let mut words: Vec<u32> = begin.into_iter().chain(interface).collect();
        for second in seconds {
            let micros = u64::from(second) * 1_000_000;
            words.extend([6, 36, 0, (micros >> 32) as u32, micros as u32, 4, 4, 0, 36]);
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Interfaces, names or secrets may take more bytes than are compared first. Shorter files were
    /// taken for parts of longer ones, and never read.
    #[test]
    fn files_with_the_same_long_header_are_told_apart() {
        let long = |seconds| {
            let plain = pcapng(u64::MAX, seconds);
            let (head, packets) = plain.split_at(48);
            let [kind, length] = [0x8000_0001_u32, 6000].map(u32::to_le_bytes);
            let block = [&kind[..], &length, &[7; 6000 - 12], &length].concat();
            [head, &block, packets].concat()
        };
        let ring = Followed::new();
        ring.write("ring1", long(3..=300));
        ring.await_packets(1..=300);
        ring.write("ring2", long(301..=310));
        ring.await_packets(1..=310);
        ring.write("ring3", long(311..=390));
        ring.write("ring4", long(391..=500));
        // A part of one is still a part.
        let copy = long(301..=310);
        ring.write("part", &copy[..copy.len() - 36]);
        ring.await_packets(1..=500);
        ring.settle(1);
        ring.write("part", &copy);
        ring.end(1..=500, &["part: it has the bytes of"]);
    }

    #[test]
    fn a_file_whose_header_is_changed_when_it_is_closed_counts_once() {
        for count in [5, 400] {
            let ring = Followed::new();
            let closed = pcapng(999, 3..=count);
            ring.write("ring1", pcapng(u64::MAX, 3..=count));
            ring.await_packets(1..=count);
            // While it is open, and after the next one was begun.
            ring.overwrite("ring1", &closed[..24]);
            ring.write("ring2", pcapng(u64::MAX, count + 1..=count + 2));
            ring.await_packets(1..=count + 2);
            ring.write("ring3", capture([count + 3]));
            ring.await_packets(1..=count + 3);
            ring.overwrite("ring2", &closed[..24]);
            ring.append("ring2", &pcapng(0, [count + 4])[48..]);
            ring.await_packets(1..=count + 4);
            // The compressed file has the other header.
            ring.write("ring1.gz", gzip(&closed));
            fs::remove_file(ring.path("ring1")).unwrap();
            ring.end(1..=count + 4, &[]);
        }
    }

    #[test]
    fn a_file_whose_first_bytes_are_changed_counts_once_and_that_is_said() {
        let ring = Followed::new();
        let mut bytes = capture(3..=99);
        ring.write("ring1", &bytes);
        ring.write("ring2", capture(100..=100));
        ring.await_packets(1..=100);
        bytes[60] ^= 1;
        ring.overwrite("ring1", &bytes[..80]);
        ring.append("ring1", &capture([101])[24..]);
        ring.end(1..=101, &["ring1: its first bytes have changed"]);
    }

    #[test]
    fn a_damaged_file_that_is_completed_is_read_from_where_it_was_damaged() {
        for is_renamed in [false, true] {
            let ring = Followed::new();
            let whole = capture(3..=20);
            let mut bytes = whole.clone();
            bytes[24 + 6 * 20 + 8..].fill(0xff);
            ring.write("ring1", &bytes);
            ring.await_packets(1..=8);
            // It is still damaged after the first change.
            bytes[24 + 6 * 20 + 8..].fill(0xfe);
            ring.overwrite("ring1", &bytes);
            ring.settle(0);
            if is_renamed {
                ring.write(".ring1.part", &whole);
                fs::rename(ring.path(".ring1.part"), ring.path("ring1")).unwrap();
            } else {
                ring.overwrite("ring1", &whole);
            }
            ring.await_packets(1..=20);
            let said = "ring1: it was damaged when it was read, and has changed since; its first 6";
            ring.end(1..=20, &[said]);
        }
    }

    #[test]
    fn a_file_that_is_damaged_in_its_header_is_named() {
        let mut ring = Followed::new();
        ring.write("ring1", &pcapng(0, [])[..26]);
        ring.write("ring2", capture(3..=3));
        ring.await_packets(1..=3);
        let (errors, remarks) = ring.stop();
        assert!(errors.is_empty(), "{errors:?}");
        assert!(remarks.len() == 1 && remarks[0].contains("ring1: "), "{remarks:?}");
    }

    #[test]
    fn the_error_of_a_file_that_is_gone_bad_before_it_is_opened_is_kept() {
        let mut ring = Followed::new();
        ring.stop();
        ring.write("ring1", capture(3..=3));
        let stop = StopFlag::default();
        ring.follow.files().close();
        let look = || ring.follow.files().look(ring.folder.path(), InputFormat::Auto, &stop);
        let begun = std::time::Instant::now();
        let next = loop {
            assert!(begun.elapsed() < PATIENCE);
            match look().unwrap() {
                Some(next) if next.path.ends_with("ring1") => break next,
                _ => ring.follow.files().close(),
            }
        };
        ring.write("ring1", vec![0xff; 200_000]);
        let Err(error) = ring.follow.open_next(next, InputFormat::Auto, &stop) else {
            panic!("it is no capture any more");
        };
        ring.follow.files().close();
        ring.follow.files().postpone(error);
        assert!(look().unwrap().is_none());
        let (error, _) = ring.follow.finish(InputFormat::Auto);
        assert!(error.unwrap().to_string().contains("ring1"));
    }

    #[test]
    fn a_file_that_is_bad_when_it_is_opened_and_mended_is_no_error() {
        let mut ring = Followed::new();
        ring.stop();
        ring.write("ring1", capture(3..=3));
        let stop = StopFlag::default();
        ring.follow.files().close();
        let error = ReadError::from_io(io::Error::other("no"), 0).in_file(&ring.path("ring1"));
        assert!(ring.look());
        ring.follow.files().close();
        ring.follow.files().postpone(error);
        ring.write("ring1", capture(4..=5));
        assert!(!stop.is_set());
        ring.stop = StopFlag::default();
        ring.start();
        ring.end([1, 2, 4, 5], &[]);
    }

    /// The rest was lost: the file was taken for damaged.
    #[test]
    fn a_file_that_could_not_be_read_on_is_read_on_when_it_changes() {
        let mut ring = Followed::new();
        ring.stop();
        ring.follow.files().close();
        let error = io::Error::from_raw_os_error(5);
        let error = ReadError::from_io(error, 24 + 2 * 20).in_file(&ring.path("ring0"));
        ring.follow.files().postpone(error);
        // As long as it is as it was, it is left.
        assert!(!ring.look());
        ring.append("ring0", &capture(3..=4)[24..]);
        ring.stop = StopFlag::default();
        ring.start();
        ring.end(1..=4, &[]);
    }

    #[test]
    fn other_files_of_the_directory_end_nothing() {
        let ring = Followed::new();
        ring.write("notes.txt", "these are no packets at all");
        ring.settle(0);
        ring.append("ring0", &capture(3..=3)[24..]);
        ring.await_packets(1..=3);
        // A header alone is no other capture yet.
        ring.write("ring1", capture([]));
        ring.append("notes.txt", b", and never will be");
        ring.append("ring0", &capture(4..=4)[24..]);
        ring.await_packets(1..=4);
        ring.append("ring1", &capture(5..=5)[24..]);
        ring.end(1..=5, &[]);
    }
}
