//! Reading ahead: a slow source, such as a decompressor, is read by a thread.

use std::io::{self, Read};

use crate::guard::{WorkerPanicked, catch_panic};
use crate::threads::{Crossbeam, PipeReceiver, PipeSender, pipe, spawn};

/// Size of a buffer: large enough that waking the consumer costs little a byte.
const BUFFER_BYTES: usize = 512 * 1024;

/// Buffers that wait for the consumer, besides the ones that are filled and read.
const QUEUED: usize = 2;

/// The bytes and the error of a source that a thread reads, in its order.
///
/// Dropping it ends the thread after its present read; nobody waits for it.
pub(super) struct ReadAhead {
    buffers: PipeReceiver<Vec<u8>, io::Error>,
    buffer: Vec<u8>,
    read: usize,
    ended: bool,
}

impl ReadAhead {
    /// Reads `source` ahead; returns the source itself if the system refuses a thread.
    pub(super) fn start(source: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let bytes = ((QUEUED + 2) * BUFFER_BYTES) as u64;
        let work = |(source, sender)| read_all(source, sender);
        let Some(thread) = spawn("decompress", bytes, work) else { return source };
        let (sender, buffers) = pipe::<_, _, Crossbeam>(QUEUED);
        thread.begin((source, sender));
        Box::new(Self { buffers, buffer: Vec::new(), read: 0, ended: false })
    }
}

/// Reads to the end of the source, or until the receiver is gone. Bytes before an error are sent
/// before it.
fn read_all(mut source: Box<dyn Read + Send>, sender: PipeSender<Vec<u8>, io::Error>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        // The buffer that came back may be shorter, or empty.
        buffer.resize(BUFFER_BYTES, 0);
        let filled = catch_panic(|| fill(&mut source, &mut buffer));
        let (len, error) = filled.unwrap_or_else(|panicked| (0, Some(broken(&panicked))));
        buffer.truncate(len);
        let is_last = len < BUFFER_BYTES;
        if len > 0 && !sender.send(&mut buffer) {
            return;
        }
        if is_last {
            return error.map_or((), |error| sender.fail(error));
        }
    }
}

fn broken(WorkerPanicked(reason): &WorkerPanicked) -> io::Error {
    io::Error::other(format!("decompression ended early ({reason}); please report it"))
}

/// Reads until the buffer is full or the source ends; returns the length and the error at its end.
fn fill(source: &mut dyn Read, bytes: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut len = 0;
    while len < bytes.len() {
        match source.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (len, Some(error)),
        }
    }
    (len, None)
}

impl Read for ReadAhead {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() && !self.ended {
            self.read = 0;
            match self.buffers.receive(std::mem::take(&mut self.buffer)) {
                Some(Ok(buffer)) => self.buffer = buffer,
                end => {
                    self.ended = true;
                    end.map_or(Ok(()), |error| error.map(drop))?;
                }
            }
        }
        let here = &self.buffer[self.read..];
        let count = here.len().min(target.len());
        target[..count].copy_from_slice(&here[..count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Hands out little at a time, and fails in the end.
    struct Failing(Cursor<Vec<u8>>);

    impl Read for Failing {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            let most = target.len().min(1 + self.0.position() as usize % 70_000);
            match self.0.read(&mut target[..most])? {
                0 => Err(io::Error::other("it fails")),
                count => Ok(count),
            }
        }
    }

    fn bytes() -> Vec<u8> {
        (0..3_000_000_u32).map(|i| (i ^ i >> 9) as u8).collect()
    }

    #[test]
    fn bytes_and_end_are_those_of_the_source() {
        for source in [bytes(), Vec::new()] {
            let mut ahead = ReadAhead::start(Box::new(Cursor::new(source.clone())));
            let mut read = Vec::new();
            ahead.read_to_end(&mut read).unwrap();
            assert!(read == source);
            assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 0);
        }
    }

    #[test]
    fn an_error_comes_after_all_bytes_before_it_and_once() {
        let mut ahead = ReadAhead::start(Box::new(Failing(Cursor::new(bytes()))));
        let mut read = Vec::new();
        let error = ahead.read_to_end(&mut read).unwrap_err();
        assert_eq!(error.to_string(), "it fails");
        assert!(read == bytes());
        assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 0);
    }

    #[test]
    fn a_panic_of_the_source_is_an_error() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("on purpose")
            }
        }
        let mut ahead = ReadAhead::start(Box::new(Panics));
        let error = ahead.read(&mut [0; 10]).unwrap_err();
        assert!(error.to_string().contains("please report"));
    }

    #[test]
    fn the_thread_ends_when_nobody_reads() {
        struct Endless(Arc<AtomicBool>);
        impl Read for Endless {
            fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
                Ok(target.len())
            }
        }
        impl Drop for Endless {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        let mut ahead = ReadAhead::start(Box::new(Endless(Arc::clone(&ended))));
        assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 10);
        drop(ahead);
        let since = Instant::now();
        while !ended.load(Ordering::SeqCst) {
            assert!(since.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
