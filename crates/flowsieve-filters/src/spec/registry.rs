//! The list of structures. A new structure has a line here and everything else in its own file.

use super::{Descriptor, Parameters};
use crate::saved::{LoadError, Saved, StateReader, StateWriter};
use crate::{
    bfm, bloom, cartesian, cbfm, cmdbf, counting, cuckoo, dleft, matrix, mdbf, scalable,
    split_counting, subset, wcbfm,
};
use std::io;

/// Defines a variant for each line: `number structure(its parameters): name = descriptor, …`. The
/// number is that of the structure in saved files. A condition in front, as in `[cfg(test)] name`,
/// makes an entry conditional.
macro_rules! registry {
    ($($(#[$doc:meta])* $([$if:meta])? $number:literal $structure:ident($parameters:ty):
        $($([$kind_if:meta])? $kind:ident = $descriptor:path),+;)+) => {
        /// The names of the structures, in the order in which they are listed.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum FilterKind {
            $($(
                #[doc = concat!("See [`FilterSpec::", stringify!($structure), "`].")]
                $(#[$kind_if])? $kind,
            )+)+
        }

        impl FilterKind {
            const ALL: &'static [Self] = &[$($($(#[$kind_if])? Self::$kind,)+)+];

            pub(super) const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $($($(#[$kind_if])? Self::$kind => &$descriptor,)+)+
                }
            }
        }

        /// Parameters of a filter.
        #[derive(Clone, Debug, PartialEq)]
        pub enum FilterSpec {
            $($(#[$doc])* $(#[$if])? $structure($parameters),)+
        }

        impl FilterSpec {
            pub(crate) fn parameters(&self) -> &dyn Parameters {
                match self {
                    $($(#[$if])? Self::$structure(parameters) => parameters,)+
                }
            }

            /// Returns the structure.
            pub fn kind(&self) -> FilterKind {
                match self {
                    $($(#[$if])? Self::$structure(parameters) => {
                        let kinds = &[$($(#[$kind_if])? FilterKind::$kind),+];
                        kinds[parameters.variety()]
                    })+
                }
            }

            /// Writes the structure's number and its parameters.
            pub(crate) fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
                match self {
                    $($(#[$if])? Self::$structure(parameters) => {
                        out.u8($number)?;
                        parameters.save(out)
                    })+
                }
            }

            /// Reads saved parameters, without checking them.
            pub(crate) fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
                match input.u8()? {
                    $($(#[$if])? $number => Saved::load(input).map(Self::$structure),)+
                    _ => Err(input.damaged("a structure that is not known")),
                }
            }
        }

        $($(#[$if])? impl From<$parameters> for FilterSpec {
            fn from(parameters: $parameters) -> Self {
                Self::$structure(parameters)
            }
        })+
    };
}

impl FilterKind {
    /// Iterates over all kinds in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_listed())
    }

    /// Returns whether the kind is listed; the toy is only listed in tests that set a variable.
    #[cfg(feature = "toy")]
    fn is_listed(self) -> bool {
        self != Self::Bitmap || std::env::var_os("FLOWSIEVE_TOY").is_some()
    }

    #[cfg(not(feature = "toy"))]
    const fn is_listed(self) -> bool {
        let _ = self;
        true
    }
}

registry! {
    /// [`SubsetFilter`](crate::SubsetFilter).
    4 Subset(subset::SubsetSpec): Subset = subset::SUBSET;
    /// [`BloomFilter`](crate::BloomFilter).
    1 Bloom(bloom::BloomSpec): Bloom = bloom::BLOOM;
    /// [`Mdbf`](crate::Mdbf).
    2 Mdbf(mdbf::MdbfSpec): Mdbf = mdbf::MDBF;
    /// [`Cmdbf`](crate::Cmdbf), one kind for each [`Combination`](crate::Combination).
    3 Cmdbf(cmdbf::CmdbfSpec): Cmdbf = cmdbf::CMDBF, CmdbfXor = cmdbf::CMDBF_XOR,
        CmdbfXorIndependent = cmdbf::CMDBF_XOR_INDEPENDENT;
    /// [`CartesianFilter`](crate::CartesianFilter).
    9 Cartesian(cartesian::CartesianSpec): Cartesian = cartesian::CARTESIAN;
    /// [`MatrixFilter`](crate::MatrixFilter): BFM, CBFM or WCBFM.
    10 Matrix(matrix::MatrixSpec): Bfm = bfm::BFM, Cbfm = cbfm::CBFM, Wcbfm = wcbfm::WCBFM;
    /// [`CountingFilter`](crate::CountingFilter).
    5 Counting(counting::CountingSpec): Counting = counting::COUNTING;
    /// [`CountingFilter`](crate::CountingFilter) with a part for each hash function.
    6 SplitCounting(split_counting::SplitCountingSpec): SplitCounting = split_counting::SPLIT_COUNTING;
    /// [`ScalableFilter`](crate::ScalableFilter).
    7 Scalable(scalable::ScalableSpec): Scalable = scalable::SCALABLE;
    /// [`DleftFilter`](crate::DleftFilter).
    8 Dleft(dleft::DleftSpec): Dleft = dleft::DLEFT;
    /// [`CuckooFilter`](crate::CuckooFilter).
    11 Cuckoo(cuckoo::CuckooSpec): Cuckoo = cuckoo::CUCKOO;
    /// The toy of the recipe in CONTRIBUTING.md, which only tests have.
    [cfg(feature = "toy")] 200 Bitmap(crate::bitmap::BitmapSpec): [cfg(feature = "toy")] Bitmap = crate::bitmap::BITMAP;
}
