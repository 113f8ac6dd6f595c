//! Ground: from numbers to memory. Bit arrays and cache lines.

mod bit_array;
mod lines;

pub use bit_array::BitArray;
pub use lines::{Lines, WORDS_PER_LINE};
