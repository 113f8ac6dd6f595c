//! Decompression: one codec a file, each fed from one kind of input, all read through one reader.
//!
//! A codec hands over every byte that it could decompress before it says that the stream is
//! damaged.

mod ahead;
mod bzip2;
mod gzip;
mod input;
mod lz4;
mod parts;
#[cfg(all(test, feature = "zstd"))]
mod parts_tests;
mod streams;
#[cfg(test)]
mod tests;
mod xz;
#[cfg(feature = "zstd")]
mod zstd;

use std::io::{self, Read};

use self::input::{Input, Plain};
pub(super) use self::parts::Workers;
use self::parts::{Divided, Parts};
use super::compression::Compression;
use super::error::{CodecDamage, Fault};

/// The outcome of one step of a codec.
struct Step {
    /// Bytes written; 0 together with no damage means that all is complete, unless it goes on.
    produced: usize,
    /// Nothing was written, since a frame or a member ended: ask again.
    goes_on: bool,
    damage: Option<Damage>,
}

/// Reason that decompression cannot continue.
struct Damage {
    fault: Fault,
    reason: String,
}

impl Step {
    fn produced(produced: usize) -> Self {
        Self { produced, goes_on: false, damage: None }
    }

    fn between() -> Self {
        Self { goes_on: true, ..Self::produced(0) }
    }

    fn cut(produced: usize) -> Self {
        Self::stopped(produced, Fault::Cut, "the compressed data ends too early")
    }
    fn damaged(produced: usize, reason: impl Into<String>) -> Self {
        Self::stopped(produced, Fault::Damaged, reason)
    }
    fn stopped(produced: usize, fault: Fault, reason: impl Into<String>) -> Self {
        let damage = Some(Damage { fault, reason: reason.into() });
        Self { damage, ..Self::produced(produced) }
    }
}

/// Steps over the zeros that tapes and block devices append to the last frame; other bytes are
/// damage.
fn trailing(input: &mut Input, otherwise: &str) -> Step {
    if input.only_zeros_left() { Step::produced(0) } else { Step::damaged(0, otherwise) }
}

trait Codec: Send {
    /// Decompresses into `target`, which is never empty.
    fn step(&mut self, target: &mut [u8]) -> Step;

    fn input(&mut self) -> &mut Input;

    /// Returns whether it stands behind a frame or a member, of which it keeps no state.
    fn is_between(&self) -> bool {
        false
    }
}

/// Recognises how `source` is compressed, and wraps it in the decompressor for that.
pub(super) fn decompressor(source: Box<dyn Read + Send>) -> (Compression, Box<dyn Read + Send>) {
    decompressor_with(source, &Workers::default())
}

/// Like [`decompressor`], with workers for frames and members as soon as there are any: only for
/// files, where reading ahead does not wait.
pub(super) fn decompressor_with(
    source: Box<dyn Read + Send>,
    workers: &Workers,
) -> (Compression, Box<dyn Read + Send>) {
    let mut input = Input::new(source);
    let compression = Compression::sniff(input.peek(Compression::SNIFF_BYTES));
    let codec: fn(Input) -> Box<dyn Codec> = match compression {
        Compression::None => return (compression, Box::new(Plain(input))),
        Compression::Gzip => |input| Box::new(gzip::Gzip::new(input)),
        #[cfg(feature = "zstd")]
        Compression::Zstd => |input| Box::new(zstd::Zstd::new(input)),
        #[cfg(not(feature = "zstd"))]
        Compression::Zstd => |input| Box::new(Unknown(input)),
        Compression::Xz => |input| Box::new(xz::Xz::new(input)),
        Compression::Bzip2 => |input| Box::new(bzip2::Bzip2::new(input)),
        Compression::Lz4 => |input| Box::new(lz4::Lz4::new(input)),
    };
    let divided = match compression {
        Compression::Gzip => Some(Divided { extent: gzip::extent, codec }),
        #[cfg(feature = "zstd")]
        Compression::Zstd => Some(Divided { extent: zstd::extent, codec }),
        _ => None,
    };
    let parts = divided.map(|divided| Parts::new(divided, workers.clone()));
    let codec = codec(input);
    let reader = Decompressor { compression, codec, parts, pending: None, done: false };
    (compression, Box::new(reader))
}

/// Decompresses `source` as a capture.
pub fn decompressed(source: impl Read + Send + 'static) -> impl Read + Send {
    decompressor(Box::new(source)).1
}

/// A codec that this build does not have.
#[cfg(not(feature = "zstd"))]
struct Unknown(Input);

#[cfg(not(feature = "zstd"))]
impl Codec for Unknown {
    fn step(&mut self, _: &mut [u8]) -> Step {
        let reason = "this build of flowsieve has no decompressor for it";
        Step::stopped(0, Fault::Unsupported, reason)
    }

    fn input(&mut self) -> &mut Input {
        &mut self.0
    }
}

struct Decompressor {
    compression: Compression,
    codec: Box<dyn Codec>,
    /// The parts that workers decompress instead of the codec.
    parts: Option<Parts>,
    /// The error that follows the bytes already handed over.
    pending: Option<io::Error>,
    done: bool,
}

impl Read for Decompressor {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.done || target.is_empty() {
            return Ok(0);
        }
        let step = loop {
            if let Some(parts) = &mut self.parts {
                let count = parts.read(&mut *self.codec, target);
                if count > 0 {
                    return Ok(count);
                }
            }
            let step = self.codec.step(target);
            if !step.goes_on {
                break step;
            }
        };
        if step.produced > 0 && step.damage.is_none() {
            return Ok(step.produced);
        }
        self.done = true;
        let input = self.codec.input();
        // A refusal of the operating system looks like a cut to the codec, but is the cause of it.
        let error = input.take_failure().or_else(|| {
            step.damage.map(|Damage { fault, reason }| {
                if fault == Fault::Refused {
                    return io::Error::new(io::ErrorKind::OutOfMemory, reason);
                }
                let (codec, offset) = (self.compression, input.offset());
                io::Error::other(CodecDamage { codec, offset, fault, reason })
            })
        });
        match error {
            Some(error) if step.produced == 0 => Err(error),
            error => {
                self.pending = error;
                Ok(step.produced)
            }
        }
    }
}
