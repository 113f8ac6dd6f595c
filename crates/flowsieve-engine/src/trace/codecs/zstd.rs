//! Zstandard: frames one after another, skippable frames between them, in bounded memory.

use ::zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::ahead::Ahead;
use super::input::Input;
use super::parts::{Extent, MOST_BYTES};
use super::{Codec, Fault, Step, trailing};

/// Largest window that a frame may ask for, as a power of two: that of `zstd --ultra -22` and of
/// `--long`, and zstd's own limit.
const WINDOW_LOG_LIMIT: u32 = 27;

/// Bytes of the head of a block, which the decoder asks for together with the block before it.
const BLOCK_HEAD: usize = 3;

pub(super) struct Zstd {
    input: Input,
    frame: Decoder<'static>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before a frame; whether there was one already.
    Between { any: bool },
    /// The decoder wants this many bytes next.
    InFrame { wants: usize },
}

impl Zstd {
    pub(super) fn new(input: Input) -> Self {
        let mut frame = Decoder::new().expect("the system gives memory for a decoder");
        frame
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_LIMIT))
            .expect("the limit is one that zstd knows");
        Self { input, frame, state: State::Between { any: false } }
    }

    /// Enters the next frame; `Some` if there is none.
    fn enter_frame(&mut self, any: bool) -> Option<Step> {
        match self.input.peek(8) {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                if let Err(error) = self.frame.reinit() {
                    return Some(Step::damaged(0, error.to_string()));
                }
                self.state = State::InFrame { wants: BLOCK_HEAD };
                None
            }
            &[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
                let length = u32::from_le_bytes([a, b, c, d]);
                self.state = State::Between { any: true };
                Some(if self.input.skip(8 + u64::from(length)) {
                    Step::between()
                } else {
                    Step::cut(0)
                })
            }
            [] if any => Some(Step::produced(0)),
            short if short.len() < 8 && !any => Some(Step::cut(0)),
            _ => Some(trailing(&mut self.input, "what follows the last frame is not zstd data")),
        }
    }
}

impl Codec for Zstd {
    fn step(&mut self, target: &mut [u8]) -> Step {
        loop {
            let wants = match self.state {
                State::Between { any } => {
                    if let Some(end) = self.enter_frame(any) {
                        return end;
                    }
                    continue;
                }
                State::InFrame { wants } => wants,
            };
            // A block and the head of the next one in two steps: what a step decoded before it
            // finds damage is lost.
            let most = if wants > BLOCK_HEAD { wants - BLOCK_HEAD } else { wants };
            let here = self.input.available();
            let given = &here[..here.len().min(most)];
            let mut from = InBuffer::around(given);
            let mut to = OutBuffer::around(&mut *target);
            let result = self.frame.run(&mut from, &mut to);
            let (consumed, produced) = (from.pos(), to.pos());
            let ended = given.is_empty();
            self.input.consume(consumed);
            match result {
                Ok(0) => self.state = State::Between { any: true },
                Ok(wants) => self.state = State::InFrame { wants },
                Err(error) if error.to_string().contains("not enough memory") => {
                    let reason = "decompressing it takes memory that the system does not give";
                    return Step::stopped(0, Fault::Refused, reason);
                }
                Err(error) => return Step::damaged(0, reason(&error)),
            }
            if produced > 0 {
                return Step::produced(produced);
            }
            if self.is_between() {
                return Step::between();
            }
            if ended {
                return Step::cut(0);
            }
        }
    }

    fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    fn is_between(&self) -> bool {
        self.state == State::Between { any: true }
    }
}

/// The reason that the decoder gives. A damaged block may be longer than it says: the decoder then
/// complains of the room it was given, which depends on who reads, and not on the file.
fn reason(error: &std::io::Error) -> String {
    let reason = error.to_string();
    if reason == "Destination buffer is too small" {
        "Data corruption detected".into()
    } else {
        reason
    }
}

/// Largest content of a block.
const BLOCK_BYTES: usize = 128 * 1024;

/// Returns the extent of the frame at `at`, from the heads of its blocks; `None` if it is not all
/// there, too long, or unusual.
pub(super) fn extent(ahead: &mut Ahead, at: usize) -> Option<Extent> {
    match head(ahead, at, 4)? {
        0xfd2f_b528 => {}
        0x184d_2a50..=0x184d_2a5f => {
            let length = head(ahead, at + 4, 4)? as usize;
            if length > MOST_BYTES {
                return None;
            }
            let end = at + 8 + length;
            ahead.look(end)?;
            return Some(Extent { end, most: 0 });
        }
        _ => return None,
    }
    let frame = FrameHeader::read(ahead, at + 4)?;
    let most_of_block = frame.window.min(BLOCK_BYTES as u64) as usize;
    let (mut next, mut most) = (frame.end, 0);
    loop {
        let block = head(ahead, next, BLOCK_HEAD)? as usize;
        let (is_last, kind, size) = (block & 1 != 0, block >> 1 & 3, block >> 3);
        let (stored, made) = match kind {
            0 => (size, size),
            1 => (1, size),
            2 => (size, most_of_block),
            _ => return None,
        };
        next += BLOCK_HEAD + stored;
        most += made;
        if most.min(frame.content) > MOST_BYTES || next - at > MOST_BYTES + BLOCK_BYTES {
            return None;
        }
        if is_last {
            break;
        }
    }
    let end = if frame.has_checksum { next + 4 } else { next };
    ahead.look(end)?;
    Some(Extent { end, most: most.min(frame.content) })
}

/// Returns the little-endian number of `count` bytes at a place of what was read ahead.
fn head(ahead: &mut Ahead, at: usize, count: usize) -> Option<u64> {
    let bytes = ahead.look(at + count)?;
    let mut eight = [0; 8];
    eight[..count].copy_from_slice(&bytes[at..at + count]);
    Some(u64::from_le_bytes(eight))
}

/// The header of a frame, behind its magic number.
struct FrameHeader {
    window: u64,
    /// Length of the content, if it is given; the largest number if not.
    content: usize,
    has_checksum: bool,
    /// Where the first block begins.
    end: usize,
}

impl FrameHeader {
    /// Reads a header; `None` if its frame needs too much memory or a dictionary, or is unusual.
    fn read(ahead: &mut Ahead, at: usize) -> Option<Self> {
        let descriptor = head(ahead, at, 1)?;
        let is_single_segment = descriptor & 0x20 != 0;
        // A reserved bit, and the identifier of a dictionary.
        if descriptor & 0b1011 != 0 {
            return None;
        }
        let mut end = at + 1;
        let mut window = MOST_BYTES as u64;
        if !is_single_segment {
            let described = head(ahead, end, 1)?;
            end += 1;
            let base = 1_u64 << (10 + (described >> 3));
            window = base + base / 8 * (described & 7);
        }
        let (length, offset) = match (descriptor >> 6, is_single_segment) {
            (0, false) => (0, u64::MAX),
            (0, true) => (1, 0),
            (1, _) => (2, 256),
            (2, _) => (4, 0),
            _ => (8, 0),
        };
        let content = head(ahead, end, length)?.saturating_add(offset);
        // The decoder needs memory for a window, but no more than for the content.
        if window.min(content) > MOST_BYTES as u64 {
            return None;
        }
        Some(Self {
            window,
            content: usize::try_from(content).unwrap_or(usize::MAX),
            has_checksum: descriptor & 4 != 0,
            end: end + length,
        })
    }
}
