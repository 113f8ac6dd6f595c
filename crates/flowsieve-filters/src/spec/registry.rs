//! The structures. A new one has a line here and all else in its own file.

use super::{Descriptor, Parameters};
use crate::saved::{LoadError, StateReader};
use crate::{
    bfm, bloom, cartesian, cbfm, cmdbf, counting, dleft, matrix, mdbf, scalable, split_counting,
    subset, wcbfm,
};

/// One variant and one arm for each line: `structure(its parameters): name = descriptor, …`.
macro_rules! registry {
    ($($(#[$doc:meta])* $structure:ident($parameters:ty): $($kind:ident = $descriptor:path),+;)+) => {
        /// The structures by their names, in the order in which they are listed.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum FilterKind {
            $($(#[doc = concat!("See [`FilterSpec::", stringify!($structure), "`].")] $kind,)+)+
        }

        impl FilterKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($(Self::$kind,)+)+];

            pub(super) const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $($(Self::$kind => &$descriptor,)+)+
                }
            }
        }

        /// A filter's parameters, sizes in bits.
        #[derive(Clone, Debug, PartialEq)]
        pub enum FilterSpec {
            $($(#[$doc])* $structure($parameters),)+
        }

        impl FilterSpec {
            pub(crate) fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Self::$structure(parameters) => parameters,)+
                }
            }

            /// The structure's number in files.
            pub(super) const fn number(&self) -> u8 {
                match self {
                    $(Self::$structure(_) => <$parameters>::NUMBER,)+
                }
            }

            /// Reads what was saved; it need not be such that a filter can have it.
            pub(crate) fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
                match input.u8()? {
                    $(<$parameters>::NUMBER => <$parameters>::load(input).map(Self::$structure),)+
                    _ => Err(input.damaged("a structure that is not known")),
                }
            }
        }

        $(impl From<$parameters> for FilterSpec {
            fn from(parameters: $parameters) -> Self {
                Self::$structure(parameters)
            }
        })+
    };
}

registry! {
    /// [`SubsetFilter`](crate::SubsetFilter).
    Subset(subset::SubsetSpec): Subset = subset::SUBSET;
    /// [`BloomFilter`](crate::BloomFilter), or [`BloomLineFilter`](crate::BloomLineFilter).
    Bloom(bloom::BloomSpec): Bloom = bloom::BLOOM;
    /// [`Mdbf`](crate::Mdbf).
    Mdbf(mdbf::MdbfSpec): Mdbf = mdbf::MDBF;
    /// [`Cmdbf`](crate::Cmdbf).
    Cmdbf(cmdbf::CmdbfSpec): Cmdbf = cmdbf::CMDBF;
    /// [`CartesianFilter`](crate::CartesianFilter).
    Cartesian(cartesian::CartesianSpec): Cartesian = cartesian::CARTESIAN;
    /// [`MatrixFilter`](crate::MatrixFilter): BFM, CBFM or WCBFM.
    Matrix(matrix::MatrixSpec): Bfm = bfm::BFM, Cbfm = cbfm::CBFM, Wcbfm = wcbfm::WCBFM;
    /// [`CountingFilter`](crate::CountingFilter).
    Counting(counting::CountingSpec): Counting = counting::COUNTING;
    /// [`SplitCountingFilter`](crate::SplitCountingFilter).
    SplitCounting(split_counting::SplitCountingSpec): SplitCounting = split_counting::SPLIT_COUNTING;
    /// [`ScalableFilter`](crate::ScalableFilter).
    Scalable(scalable::ScalableSpec): Scalable = scalable::SCALABLE;
    /// [`DleftFilter`](crate::DleftFilter).
    Dleft(dleft::DleftSpec): Dleft = dleft::DLEFT;
}
