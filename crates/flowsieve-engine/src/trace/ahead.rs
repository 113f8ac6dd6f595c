//! Reading ahead: a source that takes its time, such as a decompressor, reads in a thread of its
//! own.

use std::io::{self, Read};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::threads::spawn;

/// Size of a buffer: large enough that waking the one who waits for it costs little a byte.
const BUFFER_BYTES: usize = 512 * 1024;

/// Buffers that are filled, read or on their way.
const BUFFERS: usize = 4;

/// What another thread read. The bytes and the error are those of the source, in its order.
///
/// When this is dropped the thread ends with the read that it is in; nobody waits for it.
pub(super) struct ReadAhead {
    full: Receiver<io::Result<Buffer>>,
    empty: Sender<Vec<u8>>,
    buffer: Buffer,
    read: usize,
    ended: bool,
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many of them were read; none at the end.
    len: usize,
}

impl ReadAhead {
    /// Reads `source` ahead; if there is no thread to be had, the source itself.
    pub(super) fn of(source: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let (send, full) = bounded(BUFFERS);
        let (empty, emptied) = bounded(BUFFERS);
        let bytes = (BUFFERS * BUFFER_BYTES) as u64;
        let work = move |source| read_all(source, &send, &emptied);
        let Some(thread) = spawn("decompress", bytes, work) else {
            return source;
        };
        for _ in 0..BUFFERS {
            let _ = empty.send(Vec::new());
        }
        thread.begin(source);
        Box::new(Self { full, empty, buffer: Buffer::default(), read: 0, ended: false })
    }
}

/// Ends with the source, or when nobody wants more. What was read before an error goes before it.
fn read_all(
    mut source: Box<dyn Read + Send>,
    full: &Sender<io::Result<Buffer>>,
    emptied: &Receiver<Vec<u8>>,
) {
    while let Ok(mut bytes) = emptied.recv() {
        bytes.resize(BUFFER_BYTES, 0);
        let (len, error) = fill(&mut source, &mut bytes);
        let last = len < BUFFER_BYTES;
        if len > 0 && full.send(Ok(Buffer { bytes, len })).is_err() {
            return;
        }
        if last {
            let end = error.map_or_else(|| Ok(Buffer::default()), Err);
            let _ = full.send(end);
            return;
        }
    }
}

/// Reads until the buffer is full, or the source at its end; how much, and the error at the end.
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
        if self.read == self.buffer.len {
            if self.ended {
                return Ok(0);
            }
            let gone =
                || io::Error::other("the thread that decompresses has ended; please report it");
            let next = self.full.recv().map_err(|_| gone())?;
            self.ended = !matches!(&next, Ok(Buffer { len: 1.., .. }));
            let emptied = std::mem::replace(&mut self.buffer, next?);
            self.read = 0;
            if !emptied.bytes.is_empty() {
                let _ = self.empty.send(emptied.bytes);
            }
        }
        let here = &self.buffer.bytes[self.read..self.buffer.len];
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
            let mut ahead = ReadAhead::of(Box::new(Cursor::new(source.clone())));
            let mut read = Vec::new();
            ahead.read_to_end(&mut read).unwrap();
            assert!(read == source);
            assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 0);
        }
    }

    #[test]
    fn an_error_comes_after_all_bytes_before_it_and_once() {
        let mut ahead = ReadAhead::of(Box::new(Failing(Cursor::new(bytes()))));
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
        let mut ahead = ReadAhead::of(Box::new(Panics));
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
        let mut ahead = ReadAhead::of(Box::new(Endless(Arc::clone(&ended))));
        assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 10);
        drop(ahead);
        let since = Instant::now();
        while !ended.load(Ordering::SeqCst) {
            assert!(since.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
