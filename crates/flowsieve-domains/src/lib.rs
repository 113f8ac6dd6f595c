//! The registered domain of a name, by the [Public Suffix List](https://publicsuffix.org).
//!
//! The list is code, compiled for size in a crate of its own and at the same time as the crates
//! that are compiled for speed. Its functions are generic, so it is compiled here, where it is
//! first called.

/// The part of a name, in text, that somebody registered: its public suffix and one label more.
/// None if the name is nothing but a public suffix.
///
/// Case matters: the list has small letters. Takes time in proportion to the labels of the name,
/// and no memory.
///
/// ```
/// assert_eq!(flowsieve_domains::registered(b"www.example.co.uk"), Some(&b"example.co.uk"[..]));
/// assert_eq!(flowsieve_domains::registered(b"co.uk"), None);
/// ```
pub fn registered(name: &[u8]) -> Option<&[u8]> {
    Some(psl::domain(name)?.as_bytes())
}
