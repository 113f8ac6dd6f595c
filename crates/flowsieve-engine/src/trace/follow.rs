//! Reading what is still being written: a growing capture, or the captures that a program puts into
//! a directory one after the other.

use super::capture::{Capture, InputFormat};
use super::error::{Fault, TraceError};
use super::stop::StopFlag;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// Time between two looks at a file or a directory that nobody writes to.
const A_WHILE: Duration = Duration::from_millis(50);

/// No capture is shorter than this; a shorter file has just begun.
const LEAST_BYTES: u64 = 24;

/// A file or a directory that is followed. Clones follow together.
#[derive(Clone, Debug)]
pub(super) struct Follow {
    path: PathBuf,
    /// Of a directory: the files that were read, as they were then.
    done: Arc<Mutex<HashMap<PathBuf, Version>>>,
}

/// What tells a file from one that is written in its place later.
type Version = (Option<SystemTime>, u64);

fn version(data: &Metadata) -> Version {
    (data.modified().ok(), data.len())
}

impl Follow {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), done: Arc::default() }
    }

    /// Whether other captures may follow the one that was opened.
    pub(super) fn has_more(&self) -> bool {
        self.path.is_dir()
    }

    /// Opens the file, or the next one of the directory as soon as there is one.
    pub(super) fn open(&self, format: InputFormat, stop: &StopFlag) -> Result<Capture, TraceError> {
        let refused = |error| Fault::from_io(error, 0).in_file(&self.path);
        let is_directory = self.has_more();
        loop {
            let path = self.await_next(is_directory, stop).map_err(refused)?;
            let file = File::open(&path).map_err(refused)?;
            let data = file.metadata().map_err(refused)?;
            let reader = Following {
                file,
                read: 0,
                follow: is_directory.then(|| self.clone()),
                path: path.clone(),
                stop: stop.clone(),
            };
            let capture = Capture::from_reader(&path, Box::new(reader), format);
            if capture.is_ok() || !is_directory || stop.is_set() {
                return capture;
            }
            // Something else is in the directory, too.
            self.finish(&path, &data);
        }
    }

    fn await_next(&self, is_directory: bool, stop: &StopFlag) -> io::Result<PathBuf> {
        loop {
            let next = if is_directory {
                self.next()?
            } else {
                let data = fs::metadata(&self.path)?;
                (data.len() >= LEAST_BYTES).then(|| self.path.clone())
            };
            match next {
                Some(path) => return Ok(path),
                None if stop.is_set() => return Err(ended()),
                None => thread::sleep(A_WHILE),
            }
        }
    }

    /// The file that was written least lately of those that were not read.
    fn next(&self) -> io::Result<Option<PathBuf>> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = HashMap::new();
        let mut next: Option<(Option<SystemTime>, PathBuf)> = None;
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            // A file may be gone by now: a ring of captures drops the oldest.
            let Ok(data) = fs::metadata(&path) else {
                continue;
            };
            let hidden =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !data.is_file() || data.len() < LEAST_BYTES || hidden {
                continue;
            }
            let version = version(&data);
            if done.get(&path) == Some(&version) {
                there.insert(path, version);
                continue;
            }
            let candidate = (version.0, path);
            if next.as_ref().is_none_or(|best| candidate < *best) {
                next = Some(candidate);
            }
        }
        *done = there;
        Ok(next.map(|(_, path)| path))
    }

    /// Takes note that a file was read to its end.
    fn finish(&self, path: &Path, data: &Metadata) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.insert(path.to_owned(), version(data));
    }

    /// Whether there is a file to be read after this one.
    fn has_another(&self, path: &Path, data: &Metadata) -> bool {
        self.finish(path, data);
        let next = self.next();
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.remove(path);
        next.is_ok_and(|next| next.is_some_and(|next| next != path))
    }
}

/// A file whose end is not its end while nobody begins another one.
struct Following {
    file: File,
    read: u64,
    /// The directory in which it is.
    follow: Option<Follow>,
    path: PathBuf,
    stop: StopFlag,
}

impl Read for Following {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut is_last = false;
        loop {
            if self.stop.is_set() {
                return Err(ended());
            }
            let count = self.file.read(target)?;
            self.read += count as u64;
            if count > 0 || target.is_empty() {
                return Ok(count);
            }
            let data = self.file.metadata()?;
            if is_last || data.len() < self.read {
                // Another one follows, or this one was begun anew.
                if let Some(follow) = &self.follow {
                    follow.finish(&self.path, &data);
                }
                return Ok(0);
            }
            // What was written before the other one began is read first.
            is_last =
                self.follow.as_ref().is_some_and(|follow| follow.has_another(&self.path, &data));
            if !is_last {
                thread::sleep(A_WHILE);
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the run was ended")
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
            match capture.next_batch().unwrap() {
                Some(TraceBatch::Packets { packets, .. }) => {
                    seconds.extend(packets.iter().map(|packet| packet.time_ns / 1_000_000_000));
                }
                _ => break,
            }
        }
        seconds
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

    #[test]
    fn the_files_of_a_ring_are_read_one_after_the_other_also_when_one_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let follow = Follow::new(folder.path());
        let stop = StopFlag::default();
        let later = || thread::sleep(Duration::from_millis(20));
        fs::write(path("ring0"), capture(1..=2)).unwrap();
        let mut first = follow.open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut first, 2), [1, 2]);
        later();
        fs::write(path("ring1"), capture(3..=3)).unwrap();
        assert_eq!(seconds(&mut first, 1), [0; 0]);
        let mut second = follow.open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut second, 1), [3]);
        later();
        fs::write(path("ring0"), capture(4..=6)).unwrap();
        assert_eq!(seconds(&mut second, 1), [0; 0]);
        let mut third = follow.open(InputFormat::Auto, &stop).unwrap();
        assert_eq!(seconds(&mut third, 3), [4, 5, 6]);
        stop.set();
        assert!(third.next_batch().is_err());
    }
}
