//! Which structure, and how large.

/// The structures by their names in the command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterKind {
    /// Standard Bloom filter on the whole element.
    Bloom,
    /// One Bloom filter an attribute.
    Mdbf,
    /// MDBF and a combined filter.
    Cmdbf,
    /// Blocked filter with an unbiased count.
    Subset,
    /// Counting Bloom filter.
    Counting,
    /// Counting Bloom filter in parts.
    SplitCounting,
    /// Chain of split counting filters.
    Scalable,
    /// d-left counting Bloom filter.
    Dleft,
    /// Matrix of the Cartesian join.
    Cartesian,
    /// Bit matrix with flag positions.
    Bfm,
    /// Bit matrix without the combinations that are cut.
    Cbfm,
    /// The same with a size of its own for each attribute.
    Wcbfm,
}

impl FilterKind {
    /// Whether the structure knows whole elements only, and nothing of their attributes.
    pub const fn is_of_whole(self) -> bool {
        matches!(
            self,
            Self::Bloom | Self::Counting | Self::SplitCounting | Self::Scalable | Self::Dleft
        )
    }

    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Mdbf => "mdbf",
            Self::Cmdbf => "cmdbf",
            Self::Subset => "subset",
            Self::Counting => "counting",
            Self::SplitCounting => "split-counting",
            Self::Scalable => "scalable",
            Self::Dleft => "dleft",
            Self::Cartesian => "cartesian",
            Self::Bfm => "bfm",
            Self::Cbfm => "cbfm",
            Self::Wcbfm => "wcbfm",
        }
    }
}

/// How large a filter shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// So many bytes, for `expected` distinct elements if that is known.
    Memory {
        /// Bytes of all arrays together.
        bytes: u64,
        /// Distinct elements that are expected; chooses k.
        expected: Option<u64>,
    },
    /// As small as possible for a false-positive rate.
    Rate {
        /// The rate at `expected` elements, between 0 and 1.
        fpr: f64,
        /// Distinct elements.
        expected: u64,
    },
}
