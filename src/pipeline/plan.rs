//! What a run shall do: validated choices, no behaviour.

use super::time_slice::Align;
use crate::decode::Tunnel;
use crate::elements::ElementRule;
use crate::filters::{FilterKind, FilterSpec, Sizing, SpecError};
use crate::trace::InputFormat;
use std::path::PathBuf;

/// How packet time is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slicing {
    /// Width in nanoseconds; `None` is one slice for everything.
    pub width_ns: Option<i64>,
    /// Where boundaries lie.
    pub align: Align,
}

/// The filter of each shard, and how much memory all shards have together.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterChoice {
    /// The structure.
    pub kind: FilterKind,
    /// Parameters of the filter of one shard.
    pub shard: FilterSpec,
}

/// Everything that a count depends on.
#[derive(Clone, Debug)]
pub struct CountPlan {
    /// Captures, in the order given; `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// How to recognise them.
    pub input_format: InputFormat,
    /// What is counted.
    pub rule: ElementRule,
    /// Which IP header counts.
    pub tunnel: Tunnel,
    /// Time slices.
    pub slicing: Slicing,
    /// The filter; `None` counts exactly only.
    pub filter: Option<FilterChoice>,
    /// Bytes that all exact sets may take together; `None` switches them off.
    pub exact_limit_bytes: Option<u64>,
    /// Seed of the digests.
    pub seed: u64,
    /// Partitions of the elements, each with its own filter; part of the experiment.
    pub shards: u32,
    /// Threads; only speed depends on them.
    pub threads: usize,
}

/// Choices that do not go together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    pub(crate) fn new(rule: impl Into<String>) -> Self {
        Self(rule.into())
    }
}

/// Most shards.
const MAX_SHARDS: u32 = 1024;

/// Most memory of the filters of a slice.
const MAX_FILTER_BYTES: u64 = 1 << 40;

/// Filter memory below which more slices are kept open.
const OPEN_SLICES_BYTES: u64 = 16 << 20;

impl FilterChoice {
    /// The filter of each of `shards` shards, `sizing` being for all of them together.
    ///
    /// # Errors
    ///
    /// Parameters that the structure cannot have.
    pub fn new(
        kind: FilterKind,
        attributes: usize,
        sizing: Sizing,
        shards: u32,
    ) -> Result<Self, PlanError> {
        let shards = u64::from(shards.max(1));
        if let Sizing::Memory { bytes, .. } = sizing
            && bytes > MAX_FILTER_BYTES
        {
            return Err(PlanError(format!(
                "filters have at most {MAX_FILTER_BYTES} bytes (1 TiB), not {bytes}; ask for less with --memory"
            )));
        }
        let share = match sizing {
            Sizing::Memory { bytes, expected } => Sizing::Memory {
                bytes: bytes / shards,
                expected: expected.map(|n| n.div_ceil(shards)),
            },
            Sizing::Rate { fpr, expected } => Sizing::Rate {
                fpr,
                expected: expected.div_ceil(shards),
            },
        };
        let shard = FilterSpec::new(kind, attributes, share).map_err(|error| match error {
            SpecError::TooLittleMemory { least, .. } if shards > 1 => {
                let least = least * shards;
                PlanError(format!(
                    "{shards} shards of a {} filter need at least {least} bytes; ask for --memory {least} or more, or for fewer --shards",
                    kind.name()
                ))
            }
            error => PlanError::from(error),
        })?;
        Ok(Self { kind, shard })
    }
}

impl From<SpecError> for PlanError {
    fn from(error: SpecError) -> Self {
        Self(error.to_string())
    }
}

impl CountPlan {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// A width of 0 or less, no or too many shards, nothing to count with, or filters that do not fit
    /// into the memory that the system gives.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.slicing.width_ns.is_some_and(|width| width <= 0) {
            return Err(PlanError(
                "a time slice is at least 1 ns wide; 1s works, and `all` makes one slice of everything".into(),
            ));
        }
        if self.shards == 0 || self.shards > MAX_SHARDS {
            return Err(PlanError(format!(
                "there are 1 to {MAX_SHARDS} shards, not {}; 8 works",
                self.shards
            )));
        }
        if self.filter.is_none() && self.exact_limit_bytes.is_none() {
            return Err(PlanError(
                "with --filter exact the exact set is the answer, so it cannot be switched off; choose another filter or leave out --no-exact".into(),
            ));
        }
        self.check_memory()
    }

    /// The filter, if it can be kept when the run is over: that of one slice over everything.
    ///
    /// # Errors
    ///
    /// There are several slices, or no filter.
    pub fn kept_filter(&self) -> Result<&FilterChoice, PlanError> {
        if self.slicing.width_ns.is_some() {
            return Err(PlanError(
                "a filter is saved of everything and not of a time slice, so --save-filter needs --slice all".into(),
            ));
        }
        self.filter.as_ref().ok_or_else(|| {
            PlanError(
                "the exact set cannot be saved; choose a --filter that is one, such as subset"
                    .into(),
            )
        })
    }

    /// Asks the system whether it would give the memory of all filters, before anything is read: later
    /// a refusal would end the program without a word.
    fn check_memory(&self) -> Result<(), PlanError> {
        let slices = self.open_slices();
        let bytes = self
            .filter_bytes()
            .unwrap_or(0)
            .saturating_mul(slices as u64);
        let granted = usize::try_from(bytes)
            .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if granted {
            return Ok(());
        }
        Err(PlanError(format!(
            "the filters of up to {slices} open slices take {bytes} bytes, which this machine does not give; ask for less with --memory"
        )))
    }

    /// Bytes of the filters of one slice, over all shards.
    pub fn filter_bytes(&self) -> Option<u64> {
        let filter = self.filter.as_ref()?;
        Some(filter.shard.memory_bytes() * u64::from(self.shards))
    }

    /// How many slices are open at the same time: 8 while their filters are small, but never fewer
    /// than 2, so that packets that cross a boundary out of order still find their slice.
    pub fn open_slices(&self) -> usize {
        if self.slicing.width_ns.is_none() {
            return 1;
        }
        let bytes = self.filter_bytes().unwrap_or(0).max(1);
        (OPEN_SLICES_BYTES / bytes).clamp(2, 8) as usize
    }

    /// Bytes that the exact set of one shard may take in one slice.
    pub fn exact_set_limit(&self) -> Option<u64> {
        let sets = u64::from(self.shards) * self.open_slices() as u64;
        self.exact_limit_bytes.map(|limit| limit / sets)
    }

    /// Names of the attributes of the elements that are counted.
    pub fn attributes(&self) -> usize {
        self.rule.kind.attributes().len()
    }
}
