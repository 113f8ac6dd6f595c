//! The sizes of a filter for reports.

/// The sizes of a filter, under the same names for all structures. Sizes that a structure does not
/// have are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Hash functions (k), or the bits of a whole element in a subset filter.
    pub probes: Option<u32>,
    /// Size of each array, part or attribute (m).
    pub size: Option<u64>,
    /// Unit of `size`: `bits`, `lines`, `counters`, `buckets`, `values`, `registers`.
    pub unit: &'static str,
    /// Arrays, links or subtables of that size.
    pub arrays: Option<u32>,
    /// Sizes of a WCBFM's attributes (mᵢ).
    pub sizes: Vec<u64>,
    /// Cells of a matrix (M).
    pub cells: Option<f64>,
    /// Cuts of a matrix, as masks.
    pub cuts: Vec<u32>,
    /// Combinations that a subset filter stores in addition to the whole element, and their bits
    /// (`k_S`).
    pub stored: Vec<(u32, u32)>,
    /// Bits of a remainder of a d-left filter, or of a fingerprint of a cuckoo filter.
    pub remainder_bits: Option<u32>,
    /// Bits of a counter.
    pub counter_bits: Option<u32>,
}

impl Shape {
    /// Creates the shape of one or more arrays of `size` (m) units for `probes` (k) hash functions.
    pub(crate) fn new(probes: u32, size: u64, unit: &'static str) -> Self {
        Self { probes: Some(probes), size: Some(size), unit, ..Self::default() }
    }
}
