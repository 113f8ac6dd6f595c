//! Structures of the global level that an index may be built with.

use flowsieve_engine::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// Structure of the global level.
    #[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum GlobalFilter {
        /// A counting quotient filter.
        #[default]
        Quotient = "quotient",
        /// A scalable split counting filter.
        Scalable = "scalable",
    }
}

impl GlobalFilter {
    /// Returns the short description.
    #[doc(hidden)]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Quotient => {
                "Counting quotient filter, which forgets exactly and grows in place (Bender et al. 2012; Pandey et al. 2017)"
            }
            Self::Scalable => "Scalable split counting filter, as published (Huang et al. 2015)",
        }
    }
}
