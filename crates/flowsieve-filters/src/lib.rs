//! Bloom filters of many kinds: membership without false negatives, queries for some attributes of
//! an element, removal, union, and unbiased counts of distinct elements.
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::saved::SavedFilter;
//! use flowsieve_filters::{ElementDigests, Pattern, PatternAnswer, PlannedCombination, SubsetSpec};
//!
//! // Create: pairs of hosts with 6 bits each in 16 KiB, and their sources with 4.
//! let sources = PlannedCombination { mask: 0b01, probes: 4 };
//! let spec = SubsetSpec { combinations: vec![sources], ..SubsetSpec::knowing(2, 256, 6) };
//! let mut monday = SavedFilter::empty(spec.into(), 0, b"pairs of hosts".to_vec(), 1)?;
//! let hasher = Digester::new(monday.seed());
//! let pair = |src: u32, dst: u32| [src, dst].map(|host| hasher.digest(&host.to_le_bytes()));
//! // Insert and query.
//! (0..5_000).for_each(|n| monday.insert(ElementDigests::of_attributes(&pair(n % 70, n))));
//! assert!(monday.contains(ElementDigests::of_attributes(&pair(3, 3))));
//! // Query one attribute: did host 69 talk to anybody?
//! let talked = Pattern { whole: None, attributes: &[Some(pair(69, 0)[0]), None] };
//! assert_eq!(monday.contains_where(talked), PatternAnswer::Present);
//! // Count without bias, with bounds.
//! let count = monday.distinct().expect("a subset filter counts");
//! assert!(count.lower() <= 5_000 && 5_000 <= count.upper().unwrap());
//! // Save, load, and unite.
//! let mut file = Vec::new();
//! monday.save(&mut file)?;
//! let mut week = SavedFilter::read(&mut &*file, file.len() as u64)?;
//! week.unite(&monday)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which structure does what
//!
//! | structure | whole elements | some attributes | removal | unbiased count |
//! |---|---|---|---|---|
//! | [`subset`] | yes | combinations planned for | no | of elements and planned combinations |
//! | [`bloom`] | yes | no | no | of elements |
//! | [`mdbf`] | only if no value occurs | yes, each on its own | no | no |
//! | [`cmdbf`] | yes | yes, each on its own | no | of elements, hashed jointly |
//! | [`cartesian`] | yes | yes | no | with one attribute |
//! | [`bfm`] | yes | yes | no | of single attributes |
//! | [`cbfm`], [`wcbfm`] | yes | combinations that are not cut; others by their parts | no | of single attributes |
//! | [`counting`], [`split_counting`] | yes | no | yes | until something is removed |
//! | [`scalable`] | yes, and grows | no | yes | until something is removed |
//! | [`dleft`] | yes | no | yes | until something is removed |
//! | [`cuckoo`] | yes, until it is full | no | no | of elements |
//! | [`quotient`] | yes, and grows | no | yes | no |
//! | [`ribbon`] | yes, built at once | no | no | no |
//! | [`hll`], [`ell`] | no | no | no | of elements |
//! | [`sliding`] | no | no | no | of the elements of the last panes of time |
//!
//! Counts are unbiased and have bounds ([`Estimate`]). A halving [`SubsetFilter`] counts at any
//! load; the count of any other filter that is too full has no upper bound.
//!
//! Each structure's page has its memory, operations, formulas, an example and its source.
//! [`FilterSpec`] holds the parameters of any structure and predicts its rates,
//! [`saved::SavedFilter`] is any filter with everything to use it elsewhere, and [`sizing`],
//! [`matrix_sizing`] and [`allocation`] have the formulas.
//!
//! Filters see digests ([`hashing::Digest`]) and never the elements, so they take elements of any
//! type.

#![cfg_attr(test, allow(clippy::excessive_nesting, reason = "tests loop over all cases"))]
#![allow(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine"
)]

pub mod allocation;
pub mod bfm;
#[cfg(feature = "toy")]
#[path = "../tests/recipe/bitmap.rs"]
mod bitmap;
pub mod bits;
pub mod bloom;
pub mod cartesian;
pub mod cbfm;
pub mod cmdbf;
mod combination_count;
mod counter;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub mod ell;
mod estimate;
mod fill;
mod filter;
pub mod hashing;
pub mod hll;
mod line_rates;
mod lines;
mod martingale;
pub mod matrix;
pub mod matrix_sizing;
pub mod mdbf;
pub mod quotient;
pub mod ribbon;
pub mod saved;
pub mod scalable;
pub mod sizing;
pub mod sliding;
mod spec;
pub mod split_counting;
pub mod subset;
pub mod wcbfm;

pub use bloom::{BloomFilter, BloomSpec};
pub use cartesian::{CartesianFilter, CartesianSpec};
pub use cmdbf::{Cmdbf, CmdbfSpec, Combination};
pub use combination_count::CombinationCount;
pub use counter::{Counter, CounterSpec};
pub use counting::{CountingFilter, CountingSpec};
pub use cuckoo::{CuckooFilter, CuckooSpec};
pub use dleft::{Bucket, Bucket16, Bucket24, Bucket32, DleftFilter, DleftSpec};
pub use ell::{DifferentPrecision, ExaLogLog};
pub use estimate::{Basis, Estimate, Seen};
pub use filter::{
    CounterStats, DigestColumns, ElementDigests, FilterStats, MembershipFilter,
    MultiAttributeFilter, Pattern, PatternAnswer, PatternColumns, RemovableFilter, Sighting,
};
pub use hll::HyperLogLog;
pub use lines::{LineShape, WeighingFilter, Weight};
pub use martingale::DistinctCounter;
pub use matrix::{IndexMap, MAX_COMBINATIONS, MatrixFilter, MatrixSpec};
pub use mdbf::{Mdbf, MdbfSpec};
pub use quotient::{QuotientFilter, QuotientInPlace, Words};
pub use ribbon::{RibbonFilter, RibbonInPlace};
pub use scalable::{Refill, ScalableFilter, ScalableSpec};
pub use sliding::{PaneBitmap, PaneCounts, SlidingBitmap};
pub use spec::{
    FilterKind, FilterSpec, Known, Measure, Query, Reach, Search, Shape, Sizing, SpecError,
    Structure, Workload,
};
pub use split_counting::SplitCountingSpec;
pub use subset::{PlannedCombination, SubsetFilter, SubsetSpec};
