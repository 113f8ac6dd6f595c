//! Ground: from numbers to memory. Bit arrays, counters and cache lines.

mod bit_array;
mod counter_array;
mod lines;
mod pages;

pub use bit_array::BitArray;
pub use counter_array::CounterArray;
pub use lines::{Line, Lines, WORDS_PER_LINE};
pub use pages::{MEMORY_REFUSED, Pages, can_allocate};
