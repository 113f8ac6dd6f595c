//! Checks of a plan that need the structures: what fits together, and what the machine gives.

use super::designs::{sized, with_arrays};
use super::plan::{MAX_BYTES, ProbeRule, Seeds, Sizes};
use super::results::Expected;
use super::{ComparePlan, Contender};
use crate::memory::can_allocate;
use crate::pipeline::{PlanError, RunError};

/// Maximum number of sizes in a sweep.
const MAX_SIZES: usize = 64;

/// Maximum number of replicates.
const MAX_SEEDS: u32 = 10_000;

/// Memory that must be left for sets and threads when the structures are made.
pub(super) const SETS_BYTES: u64 = 16 << 20;

/// A size that every structure can have: hash functions are checked with it where sizes follow from
/// the trace.
const MAX_CHECKED: u64 = 1 << 16;

impl ComparePlan {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// Nothing to compare, or the same twice.
    pub fn check(&self) -> Result<(), PlanError> {
        self.slicing.check()?;
        let sizes = self.sizes.of_user();
        PlanError::unless(
            !self.contenders.is_empty() && (!sizes.is_empty() || self.sizes == Sizes::Auto),
            "a comparison needs a structure and a memory; mdbf and 64KiB work",
        )?;
        if sizes.len() > MAX_SIZES {
            return Err(PlanError::new(format!(
                "at most {MAX_SIZES} sizes are compared at once, not {}; compare fewer",
                sizes.len()
            )));
        }
        for (index, size) in sizes.iter().enumerate() {
            if *size == 0 || *size > MAX_BYTES {
                return Err(PlanError::new(match self.sizes {
                    Sizes::Arrays(_) => {
                        format!("an array has from 1 to {MAX_BYTES} bits, not {size}; 65536 works")
                    }
                    _ => format!(
                        "a structure has from 1 byte to 1 TiB, not {size} bytes; 64KiB works"
                    ),
                }));
            }
            if sizes[..index].contains(size) {
                return Err(PlanError::new(format!(
                    "every size is compared once, and {size} is there twice; leave one out"
                )));
            }
        }
        if let Seeds::Fixed(seeds) = self.seeds
            && !(1..=MAX_SEEDS).contains(&seeds)
        {
            return Err(PlanError::new(format!(
                "a comparison has 1 to {MAX_SEEDS} seeds, not {seeds}; 20 works"
            )));
        }
        self.check_arrays()?;
        let full = self.rule.kind.all();
        for (index, &mask) in self.combinations.iter().enumerate() {
            PlanError::unless(
                mask > 0 && mask < full,
                "a combination has some of the attributes and not all, which are always asked for",
            )?;
            PlanError::unless(
                !self.combinations[..index].contains(&mask),
                "every combination is asked for once; leave out the one that is there twice",
            )?;
        }
        self.check_probes()
    }

    /// Whether equal arrays are asked for of structures that have arrays.
    fn check_arrays(&self) -> Result<(), PlanError> {
        let has_arrays = |contender: &Contender| {
            let kind = contender.filter();
            kind.is_some_and(|kind| with_arrays(kind, 1, 1, 1).is_some())
        };
        match self.contenders.iter().find(|contender| !has_arrays(contender)) {
            Some(other) if self.sizes.are_arrays() => Err(PlanError::new(format!(
                "{} has no arrays of bits, so their size cannot be set; compare mdbf, cmdbf and bloom",
                other.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether every structure can have the hash functions that are given, and one has such a
    /// number at all.
    fn check_probes(&self) -> Result<(), PlanError> {
        let ProbeRule::Given(probes) = self.probes else { return Ok(()) };
        let mut any = false;
        for &contender in &self.contenders {
            let Some(kind) = contender.filter() else { continue };
            let sizes = match self.sizes {
                Sizes::Auto => &[MAX_CHECKED],
                _ => self.sizes.of_user(),
            };
            for &size in sizes {
                let Ok(spec) = sized(kind, size, &Expected::default(), self) else {
                    // Too little memory is no matter of hash functions, and the result says it.
                    any = true;
                    continue;
                };
                match spec.with_probes(probes) {
                    Ok(spec) => any |= spec.is_some(),
                    Err(error) => {
                        return Err(PlanError::new(format!(
                            "--k {probes} is not possible for {}: {error}",
                            contender.name()
                        )));
                    }
                }
            }
        }
        if any {
            return Ok(());
        }
        Err(PlanError::new(format!(
            "--k {probes} changes none of these structures, which have no such number; add bloom to --filter, or leave --k out"
        )))
    }

    /// Checks, before anything is read, that the system gives the memory of all structures.
    ///
    /// # Errors
    ///
    /// The system refuses the memory.
    #[doc(hidden)]
    pub fn check_memory(&self) -> Result<(), RunError> {
        self.check_bytes(self.structure_bytes(self.sizes.of_user()))
    }

    pub(super) fn check_bytes(&self, bytes: u64) -> Result<(), RunError> {
        let structures = self.contenders.len();
        if can_allocate(bytes.saturating_add(SETS_BYTES)) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "{structures} structures take {bytes} bytes, which this machine does not give; compare fewer, or less --memory"
        )))
    }
}
