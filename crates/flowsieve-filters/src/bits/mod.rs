//! Arrays of bits, counters and cache lines, and their memory.

mod bit_array;
mod counter_array;
mod fields;
mod lines;
mod pages;

pub use bit_array::BitArray;
pub use counter_array::CounterArray;
pub(crate) use fields::{field, flip};
pub use lines::{Line, Lines, WORDS_PER_LINE};
pub use pages::{MEMORY_REFUSED, Pages, can_allocate};
