//! Frames and members that workers decompress, several at a time, while the codec would do one
//! after the other.
//!
//! Between two frames or members the codec remembers nothing. There the reader looks ahead: it finds
//! where the next ones end without decompressing them, if a member says its length or if the heads
//! of a frame's blocks are all there. A *part*, one large frame or several short ones, goes to a
//! worker, which decompresses it with its own codec. Its output is taken in order, and the input
//! skips the part.
//!
//! The codec does everything else: the first frame, what is too long or unusual, and a part that is
//! not as a worker expects, with everything behind it. Only the codec reports damage, and where it
//! is.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Codec;
use super::ahead::{Ahead, Bytes};
use super::input::Input;
use crate::bits::Pages;
use crate::memory::can_allocate;
use crate::threads::OrderedWorkers;

/// The most that a frame or a member of a part decompresses to: frames of `pzstd -9` have that
/// length.
#[cfg(feature = "zstd")]
pub(super) const MOST_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// A part has as many frames or members as it takes to reach this length, compressed or not.
const PART_BYTES: usize = if cfg!(test) { 64 << 10 } else { 1 << 20 };

/// Bytes behind a place without a part after which parts are looked for again.
const NEXT_TRY_BYTES: u64 = if cfg!(test) { 8 << 10 } else { 256 << 10 };

/// The most workers: one thread takes their output, and does not keep up with more.
const MOST_WORKERS: usize = 8;

/// Memory of a worker's codec; parts ask for theirs themselves.
const CODEC_BYTES: u64 = 1 << 20;

/// The number of workers, set once it is known; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Count>);

#[derive(Default)]
struct Count {
    workers: AtomicUsize,
    /// Bytes of their output that were taken.
    #[cfg(test)]
    taken: AtomicUsize,
}

impl Workers {
    /// Sets the number. With one, the codec itself is as fast.
    pub(crate) fn set(&self, workers: usize) {
        let workers = if workers > 1 { workers.min(MOST_WORKERS) } else { 0 };
        self.0.workers.store(workers, Ordering::Relaxed);
    }

    /// Returns how many bytes of the workers' output were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

/// The end of a frame or member in the bytes read ahead, and its largest decompressed length.
pub(super) struct Extent {
    pub(super) end: usize,
    pub(super) most: usize,
}

/// A format of frames or members whose ends can be found without decompressing them.
#[derive(Clone, Copy)]
pub(super) struct Divided {
    /// Returns the extent of the frame or member at a place, if a worker can decompress it.
    pub(super) extent: fn(&mut Ahead, usize) -> Option<Extent>,
    pub(super) codec: fn(Input) -> Box<dyn Codec>,
}

pub(super) struct Parts {
    divided: Divided,
    workers: Workers,
    decompressors: Option<Decompressors>,
    /// Offset and length of the parts under way.
    pending: VecDeque<(u64, u64)>,
    /// Output of the part behind which the codec stands, as far as it was not read.
    output: Output,
    read: usize,
    /// Buffers that were read.
    spare: Vec<Pages<u8>>,
    /// Offset before which there is no further part.
    not_before: u64,
    given_up: bool,
}

/// Threads that decompress parts; they yield nothing for a part that is not as expected.
type Decompressors = OrderedWorkers<Part, Option<Output>>;

/// Frames or members to decompress.
struct Part {
    bytes: Bytes,
    /// Where they end.
    ends: Vec<usize>,
    most: usize,
    buffer: Option<Pages<u8>>,
}

/// The first `length` bytes of a buffer, which is used again.
#[derive(Default)]
struct Output {
    buffer: Option<Pages<u8>>,
    length: usize,
}

impl Parts {
    pub(super) fn new(divided: Divided, workers: Workers) -> Self {
        Self {
            divided,
            workers,
            decompressors: None,
            pending: VecDeque::new(),
            output: Output::default(),
            read: 0,
            spare: Vec::new(),
            not_before: 0,
            given_up: false,
        }
    }

    /// Copies what workers decompressed of the parts before which the codec stands; returns 0 if
    /// the codec has to go on itself.
    pub(super) fn read(&mut self, codec: &mut dyn Codec, target: &mut [u8]) -> usize {
        while self.read == self.output.length {
            let wanted = self.workers.0.workers.load(Ordering::Relaxed);
            if wanted == 0 || self.given_up || !codec.is_between() {
                return 0;
            }
            if !self.take_next(codec.input(), wanted) {
                return 0;
            }
        }
        let Some(buffer) = &self.output.buffer else { return 0 };
        let unread = &buffer.as_slice()[self.read..self.output.length];
        let count = unread.len().min(target.len());
        target[..count].copy_from_slice(&unread[..count]);
        self.read += count;
        count
    }

    /// Takes the part that begins where the input stands; returns false if there is none.
    fn take_next(&mut self, input: &mut Input, wanted: usize) -> bool {
        let here = input.offset();
        if let Some(&(offset, _)) = self.pending.front() {
            if offset > here {
                return false;
            }
        } else if here < self.not_before {
            return false;
        } else if !input.go_on_ahead() {
            self.give_up();
            return false;
        }
        self.fill(input.ahead(), wanted);
        let Some((offset, length)) = self.pending.pop_front() else { return false };
        // If a worker panicked, the codec panics as well, or does what that one should have done.
        let output = self.decompressors.as_mut().and_then(|workers| workers.next()?.ok().flatten());
        let Some(output) = output.filter(|_| offset == here) else {
            self.give_up();
            return false;
        };
        #[cfg(test)]
        self.workers.0.taken.fetch_add(output.length, Ordering::Relaxed);
        self.read = 0;
        let used = std::mem::replace(&mut self.output, output).buffer;
        if self.spare.len() <= wanted {
            self.spare.extend(used);
        }
        let is_there = input.skip(length);
        debug_assert!(is_there, "it was read ahead");
        self.fill(input.ahead(), wanted);
        true
    }

    /// Pushes parts until each worker has one, and one more waits.
    fn fill(&mut self, ahead: &mut Ahead, wanted: usize) {
        while self.pending.len() <= wanted && ahead.offset() >= self.not_before {
            let offset = ahead.offset();
            let Some(part) = self.cut(ahead) else {
                self.not_before = offset + NEXT_TRY_BYTES;
                return;
            };
            if self.decompressors.is_none() {
                self.decompressors = start(self.divided, wanted);
            }
            let Some(workers) = &mut self.decompressors else { return self.give_up() };
            self.pending.push_back((offset, part.bytes.as_ref().len() as u64));
            let earlier = workers.push(part);
            debug_assert!(earlier.is_none(), "two parts for each worker may be under way");
        }
    }

    /// Cuts off the next part.
    fn cut(&mut self, ahead: &mut Ahead) -> Option<Part> {
        let (mut ends, mut end, mut most) = (Vec::new(), 0, 0);
        while end.max(most) < PART_BYTES {
            let Some(next) = (self.divided.extent)(ahead, end) else { break };
            end = next.end;
            most += next.most;
            ends.push(end);
        }
        if ends.is_empty() || !can_allocate((2 * end + most) as u64) {
            return None;
        }
        let bytes = ahead.cut(end)?;
        Some(Part { bytes, ends, most, buffer: self.spare.pop() })
    }

    /// From now on the codec does everything.
    fn give_up(&mut self) {
        self.given_up = true;
        self.decompressors = None;
        self.pending.clear();
    }
}

/// Starts workers, as many as the system gives threads.
fn start(divided: Divided, workers: usize) -> Option<Decompressors> {
    OrderedWorkers::start("decompress part", workers, CODEC_BYTES, 2, move || {
        let mut codec: Option<Box<dyn Codec>> = None;
        move |part: Part| {
            let codec = codec.get_or_insert_with(|| (divided.codec)(empty_input()));
            let output = part.decompress(&mut **codec)?;
            // The memory of the bytes is used again.
            *codec.input() = empty_input();
            Some(output)
        }
    })
}

pub(super) fn empty_input() -> Input {
    Input::new(Box::new(io::empty()))
}

/// Returns a buffer with room for one byte more than `most`, which shows that a frame is longer
/// than it may be; `None` if the system has no memory for it.
fn with_room(used: Option<Pages<u8>>, most: usize) -> Option<Pages<u8>> {
    // Parts differ a little in size; one buffer has room for all.
    let bytes = most + most / 8 + 1;
    let used = used.filter(|used| used.len() > most);
    used.or_else(|| can_allocate(bytes as u64).then(|| Pages::new(bytes)))
}

impl Part {
    /// Decompresses all frames or members, if each is whole and ends where it should.
    fn decompress(mut self, codec: &mut dyn Codec) -> Option<Output> {
        let mut buffer = with_room(self.buffer.take(), self.most)?;
        let room = &mut buffer.as_mut_slice()[..=self.most];
        *codec.input() = Input::new(Box::new(Cursor::new(self.bytes)));
        let mut length = 0;
        for end in self.ends {
            loop {
                let step = codec.step(&mut room[length..]);
                length += step.produced;
                let goes_on = step.produced > 0 || step.goes_on;
                if step.damage.is_some() || !goes_on || length > self.most {
                    return None;
                }
                if codec.is_between() {
                    break;
                }
            }
            if codec.input().offset() != end as u64 {
                return None;
            }
        }
        Some(Output { buffer: Some(buffer), length })
    }
}
