//! The structures by name, as options take them.

use clap::ValueEnum;
use flowsieve::filters::FilterKind;

/// A filter, another counter, or the exact set alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Structure {
    /// Blocked Bloom filter with an unbiased count
    Subset,
    /// Standard Bloom filter
    Bloom,
    /// One Bloom filter an attribute (Xie et al. 2008)
    Mdbf,
    /// MDBF with a combined filter (Xie et al. 2008)
    Cmdbf,
    /// Matrix of the Cartesian join (Wang et al. 2016)
    Cartesian,
    /// Bloom filter matrix (Wang et al. 2016)
    Bfm,
    /// Cutted Bloom filter matrix (Wang et al. 2016)
    Cbfm,
    /// Weighted CBFM (Wang et al. 2016)
    Wcbfm,
    /// Counting Bloom filter (Fan et al. 2000)
    Counting,
    /// Split counting Bloom filter (Huang et al. 2015)
    SplitCounting,
    /// Chain of split counting Bloom filters (Huang et al. 2015)
    Scalable,
    /// d-left counting Bloom filter (Bonomi et al. 2006)
    Dleft,
    /// Counter that is no filter: a HyperLogLog (Flajolet et al. 2007)
    #[expect(clippy::doc_markdown, reason = "the text of --help has no code marks")]
    Hll,
    /// No filter: the exact set alone
    Exact,
}

impl Structure {
    /// The kind of filter; none if it is no filter.
    pub(crate) const fn kind(self) -> Option<FilterKind> {
        Some(match self {
            Self::Subset => FilterKind::Subset,
            Self::Bloom => FilterKind::Bloom,
            Self::Mdbf => FilterKind::Mdbf,
            Self::Cmdbf => FilterKind::Cmdbf,
            Self::Cartesian => FilterKind::Cartesian,
            Self::Bfm => FilterKind::Bfm,
            Self::Cbfm => FilterKind::Cbfm,
            Self::Wcbfm => FilterKind::Wcbfm,
            Self::Counting => FilterKind::Counting,
            Self::SplitCounting => FilterKind::SplitCounting,
            Self::Scalable => FilterKind::Scalable,
            Self::Dleft => FilterKind::Dleft,
            Self::Hll | Self::Exact => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_library() {
        for structure in Structure::value_variants() {
            let name = structure.to_possible_value().expect("none is hidden");
            let expected = match structure {
                Structure::Hll => "hll",
                Structure::Exact => "exact",
                _ => structure.kind().expect("the others are filters").name(),
            };
            assert_eq!(name.get_name(), expected);
        }
    }
}
