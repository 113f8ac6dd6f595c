//! Frames and members that workers decompress, several at a time, while the codec would do one
//! after the other.
//!
//! Between two frames or members the codec remembers nothing. So whoever stands there looks ahead:
//! where those that follow end is known without decompressing them, if a member says how long it is
//! or if the heads of a frame's blocks are all there. A *part*, one large frame or several short
//! ones, goes to a worker, which decompresses it with a codec of its own. What it made is taken in
//! order, and the input skips the part.
//!
//! The codec does everything else: the first frame, what is too long or unusual, and a part that is
//! not as a worker expects, with all that follows it. Only the codec says what is damaged, and
//! where.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::Codec;
use super::ahead::{Ahead, Bytes};
use super::input::Input;
use crate::bits::Pages;
use crate::guard::guarded;
use crate::memory::is_given;
use crate::threads::spawn;

/// The most that a frame or a member of a part decompresses to: frames of `pzstd -9` have that
/// length.
#[cfg(feature = "zstd")]
pub(super) const MOST_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// A part has as many frames or members as it takes to reach this length, compressed or not.
const PART_BYTES: usize = if cfg!(test) { 64 << 10 } else { 1 << 20 };

/// Parts are looked for again so many bytes behind a place where there was none.
const NEXT_TRY_BYTES: u64 = if cfg!(test) { 8 << 10 } else { 256 << 10 };

/// The most workers: one thread takes what they make, and does not keep up with more.
const MOST_WORKERS: usize = 8;

/// Memory of a worker's codec; parts ask for theirs themselves.
const CODEC_BYTES: u64 = 1 << 20;

/// How many workers there may be, to be said when it is known. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Count>);

#[derive(Default)]
struct Count {
    workers: AtomicUsize,
    /// Bytes that they made and that were taken.
    #[cfg(test)]
    taken: AtomicUsize,
}

impl Workers {
    /// From now on there may be this many. With one, the codec itself is as fast.
    pub(crate) fn set(&self, workers: usize) {
        let workers = if workers > 1 { workers.min(MOST_WORKERS) } else { 0 };
        self.0.workers.store(workers, Ordering::Relaxed);
    }

    /// Bytes that workers made and that were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

/// Where a frame or a member ends in what was read ahead, and the most that it decompresses to.
pub(super) struct Extent {
    pub(super) end: usize,
    pub(super) most: usize,
}

/// A format of frames or members whose ends can be seen.
#[derive(Clone, Copy)]
pub(super) struct Divided {
    /// Extent of what stands at a place, if it is what a worker can do.
    pub(super) extent: fn(&mut Ahead, usize) -> Option<Extent>,
    pub(super) codec: fn(Input) -> Box<dyn Codec>,
}

pub(super) struct Parts {
    divided: Divided,
    workers: Workers,
    crew: Option<Crew>,
    under_way: VecDeque<UnderWay>,
    /// What was made of the part behind which the codec stands, as far as it was not read.
    made: Made,
    read: usize,
    /// Offset before which there is no further part.
    not_before: u64,
    given_up: bool,
}

/// The workers, from the side of whoever gives them tasks.
pub(super) struct Crew {
    pub(super) tasks: Sender<Task>,
    /// Buffers that were read, for whichever worker is next.
    pub(super) emptied: Sender<Pages<u8>>,
}

struct UnderWay {
    offset: u64,
    length: u64,
    made: Receiver<Option<Made>>,
}

/// A part to be decompressed.
pub(super) struct Task {
    bytes: Bytes,
    /// Where its frames or members end.
    ends: Vec<usize>,
    most: usize,
    answer: Sender<Option<Made>>,
}

/// The first `length` bytes of a buffer, which is used again.
#[derive(Default)]
struct Made {
    buffer: Option<Pages<u8>>,
    length: usize,
}

impl Parts {
    pub(super) fn new(divided: Divided, workers: Workers) -> Self {
        Self {
            divided,
            workers,
            crew: None,
            under_way: VecDeque::new(),
            made: Made::default(),
            read: 0,
            not_before: 0,
            given_up: false,
        }
    }

    /// What workers made of that before which the codec stands. Nothing, if the codec has to go on
    /// itself.
    pub(super) fn read(&mut self, codec: &mut dyn Codec, target: &mut [u8]) -> usize {
        while self.read == self.made.length {
            let wanted = self.workers.0.workers.load(Ordering::Relaxed);
            if wanted == 0 || self.given_up || !codec.is_between() {
                return 0;
            }
            if !self.take_next(codec.input(), wanted) {
                return 0;
            }
        }
        let Some(buffer) = &self.made.buffer else {
            return 0;
        };
        let made = &buffer.as_slice()[self.read..self.made.length];
        let count = made.len().min(target.len());
        target[..count].copy_from_slice(&made[..count]);
        self.read += count;
        count
    }

    /// Takes the part that begins where the input stands; false if there is none.
    fn take_next(&mut self, input: &mut Input, wanted: usize) -> bool {
        let here = input.offset();
        if let Some(next) = self.under_way.front() {
            if next.offset > here {
                return false;
            }
        } else if here < self.not_before {
            return false;
        } else if !input.go_on_ahead() {
            self.give_up();
            return false;
        }
        self.fill(input.ahead(), wanted);
        let Some(next) = self.under_way.pop_front() else {
            return false;
        };
        let made = next.made.recv().ok().flatten();
        let Some(made) = made.filter(|_| next.offset == here) else {
            self.give_up();
            return false;
        };
        #[cfg(test)]
        self.workers.0.taken.fetch_add(made.length, Ordering::Relaxed);
        let emptied = std::mem::replace(&mut self.made, made).buffer;
        self.read = 0;
        if let (Some(crew), Some(buffer)) = (&self.crew, emptied) {
            // If there are enough of them it is freed.
            let _ = crew.emptied.try_send(buffer);
        }
        let is_there = input.skip(next.length);
        debug_assert!(is_there, "it was read ahead");
        self.fill(input.ahead(), wanted);
        true
    }

    /// Gives parts to workers until each of them has one, and one more waits.
    fn fill(&mut self, ahead: &mut Ahead, wanted: usize) {
        while self.under_way.len() <= wanted && ahead.offset() >= self.not_before {
            let offset = ahead.offset();
            let Some((task, under_way)) = self.cut(ahead) else {
                self.not_before = offset + NEXT_TRY_BYTES;
                return;
            };
            let crew = self.crew.get_or_insert_with(|| start(self.divided, wanted));
            if crew.tasks.send(task).is_err() {
                return self.give_up();
            }
            self.under_way.push_back(under_way);
        }
    }

    /// Cuts off the next part.
    fn cut(&mut self, ahead: &mut Ahead) -> Option<(Task, UnderWay)> {
        let (mut ends, mut end, mut most) = (Vec::new(), 0, 0);
        while end.max(most) < PART_BYTES {
            let Some(next) = (self.divided.extent)(ahead, end) else {
                break;
            };
            end = next.end;
            most += next.most;
            ends.push(end);
        }
        if ends.is_empty() || !is_given((2 * end + most) as u64) {
            return None;
        }
        let (answer, made) = bounded(1);
        let under_way = UnderWay { offset: ahead.offset(), length: end as u64, made };
        let task = Task { bytes: ahead.cut(end)?, ends, most, answer };
        Some((task, under_way))
    }

    /// From now on the codec does everything.
    fn give_up(&mut self) {
        self.given_up = true;
        self.crew = None;
        self.under_way.clear();
    }
}

/// Starts workers, as many as there are threads to be had. They end when nobody gives tasks any
/// more; nobody waits for them.
pub(super) fn start(divided: Divided, workers: usize) -> Crew {
    // Bounded by the parts under way. If all workers are gone, their tasks are dropped, and nobody
    // waits for an answer.
    let (tasks, taken) = unbounded::<Task>();
    let (emptied, buffers) = bounded(workers + 1);
    for _ in 0..workers {
        let (taken, buffers) = (taken.clone(), buffers.clone());
        let thread = spawn("decompress part", CODEC_BYTES, move |()| {
            work(divided, &taken, &buffers);
        });
        let Some(thread) = thread else {
            break;
        };
        thread.begin(());
    }
    Crew { tasks, emptied }
}

fn work(divided: Divided, tasks: &Receiver<Task>, buffers: &Receiver<Pages<u8>>) {
    let mut codec = None;
    for task in tasks {
        let made = guarded(|| {
            let begin = || (divided.codec)(Input::new(Box::new(io::empty())));
            let codec = codec.get_or_insert_with(begin);
            let made = task.decompress(&mut **codec, buffer(buffers, task.most)?)?;
            // Whoever cut off the bytes uses their memory again.
            *codec.input() = Input::new(Box::new(io::empty()));
            Some(made)
        });
        // If it panicked, the codec of the reader panics as well, or does what this one should have
        // done.
        let made = made.ok().flatten();
        if made.is_none() {
            codec = None;
        }
        let Task { bytes, answer, .. } = task;
        drop(bytes);
        // If nobody takes it, the run was given up.
        let _ = answer.send(made);
    }
}

/// A buffer for one byte more than this, which shows that a frame makes more than it may; `None` if
/// the system has no memory for it.
fn buffer(emptied: &Receiver<Pages<u8>>, most: usize) -> Option<Pages<u8>> {
    let used = emptied.try_recv().ok().filter(|used| used.len() > most);
    // Of parts that differ a little one buffer has room for all.
    let bytes = most + most / 8 + 1;
    used.or_else(|| is_given(bytes as u64).then(|| Pages::new(bytes)))
}

impl Task {
    /// What all frames or members make, if each is whole and ends where it should.
    fn decompress(&self, codec: &mut dyn Codec, mut buffer: Pages<u8>) -> Option<Made> {
        let room = &mut buffer.as_mut_slice()[..=self.most];
        *codec.input() = Input::new(Box::new(Cursor::new(self.bytes.clone())));
        let mut length = 0;
        for &end in &self.ends {
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
        let buffer = Some(buffer);
        Some(Made { buffer, length })
    }
}
