//! Whether the system gives memory. Allocations that grow with the input or with options are tried: a refusal must
//! not end the program.

/// Whether the system would give so many bytes now.
pub(crate) fn is_given(bytes: u64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}
