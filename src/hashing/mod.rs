//! Ground: from bytes to numbers.
