//! What is compared: validated choices, no behaviour.

use super::candidate::sized;
use super::results::Expected;
use crate::elements::{ElementKind, ElementRule};
use crate::filters::{FilterKind, FilterSpec, Structure, Workload};
use crate::memory::can_allocate;
use crate::pipeline::{PlanError, RunError, Slicing};
use crate::plan::TracePlan;

/// A structure that takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Contender {
    /// As a count makes it; `subset` stores the whole element only, and `exact` takes whatever
    /// memory it needs.
    Plain(Structure),
    /// A subset filter that also stores the asked combinations, in the same memory.
    SubsetPlanned,
}

impl Contender {
    /// The exact set of the elements.
    pub const EXACT: Self = Self::Plain(Structure::Exact);

    /// All of them, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        Structure::all().flat_map(|structure| {
            let is_subset = structure == Structure::Filter(FilterKind::Subset);
            let planned = is_subset.then_some(Self::SubsetPlanned);
            std::iter::once(Self::Plain(structure)).chain(planned)
        })
    }

    /// Whether an element that came before changes nothing.
    fn ignores_repeats(self) -> bool {
        match self {
            Self::Plain(structure) => structure.ignores_repeats(),
            Self::SubsetPlanned => Self::from(FilterKind::Subset).ignores_repeats(),
        }
    }

    /// Which filter it is made of, if it is one.
    pub(super) const fn filter(self) -> Option<FilterKind> {
        match self {
            Self::Plain(structure) => structure.filter(),
            Self::SubsetPlanned => Some(FilterKind::Subset),
        }
    }

    /// The name in the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain(structure) => structure.name(),
            Self::SubsetPlanned => "subset-planned",
        }
    }

    /// What it is, in a line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Plain(structure) => structure.summary(),
            Self::SubsetPlanned => "The same, with every combination that is asked for",
        }
    }
}

impl From<FilterKind> for Contender {
    fn from(kind: FilterKind) -> Self {
        Self::Plain(Structure::Filter(kind))
    }
}

/// Returns the best weighted matrix for some queries in this many bytes, if there is one.
pub type Weigh = fn(&Workload<'_>, bytes: u64) -> Option<FilterSpec>;

/// What has to be left for sets and threads when the structures are made.
pub(super) const SETS_BYTES: u64 = 16 << 20;

/// Everything that a comparison depends on.
#[derive(Clone, Debug)]
pub struct ComparePlan {
    /// What is read.
    pub trace: TracePlan,
    /// Which elements.
    pub rule: ElementRule,
    /// Time slices.
    pub slicing: Slicing,
    /// Structures, in the order in which they are reported.
    pub contenders: Vec<Contender>,
    /// Bytes that each structure gets for a slice; one run with each of them.
    pub memories: Vec<u64>,
    /// Combinations that queries ask for besides all attributes, bit i for attribute i.
    pub combinations: Vec<u32>,
    /// Distinct elements in a slice, if that is known: chooses the numbers of hash functions.
    pub expected: Option<u64>,
    /// Hash functions (k) of every structure that has such a number, instead of the best ones.
    pub probes: Option<u32>,
    /// How `wcbfm` gets its weights; without it they are equal, and it is a `cbfm`.
    pub weigh: Option<Weigh>,
    /// Bytes that the truth may take, for all open slices together.
    pub exact_limit_bytes: u64,
    /// Seed of the digests and of the queries that are drawn.
    pub seed: u64,
    /// Measure the time of insertions. Results differ from run to run then, in nothing but the
    /// times.
    pub timing: bool,
}

/// Most memory of one structure: as in a count.
const MAX_BYTES: u64 = 1 << 40;

/// Memories of a sweep, at most.
const MAX_MEMORIES: usize = 64;

impl ComparePlan {
    /// The combinations that are asked for by default: every single attribute, and the pairs that
    /// users of such elements ask for.
    pub fn usual_combinations(kind: ElementKind) -> Vec<u32> {
        match kind {
            // src,dst; src,dst_port; dst,dst_port.
            ElementKind::FLOW => {
                vec![0b0_0001, 0b0_0010, 0b0_0100, 0b0_1000, 0b1_0000, 0b0_0011, 0b1_0001, 0b1_0010]
            }
            // src,domain; src,dst.
            ElementKind::DNS => vec![0b001, 0b010, 0b100, 0b101, 0b011],
            _ if kind.arity() < 2 => Vec::new(),
            _ => (0..kind.arity()).map(|attribute| 1 << attribute).collect(),
        }
    }

    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// Nothing to compare, or the same twice.
    pub fn check(&self) -> Result<(), PlanError> {
        self.slicing.check()?;
        if self.contenders.is_empty() || self.memories.is_empty() {
            return Err(PlanError::new(
                "a comparison needs a structure and a memory; subset and 64KiB work",
            ));
        }
        if self.memories.len() > MAX_MEMORIES {
            return Err(PlanError::new(format!(
                "at most {MAX_MEMORIES} memories are compared at once, not {}; compare fewer",
                self.memories.len()
            )));
        }
        for (index, bytes) in self.memories.iter().enumerate() {
            if *bytes == 0 || *bytes > MAX_BYTES {
                return Err(PlanError::new(format!(
                    "a structure has from 1 byte to 1 TiB, not {bytes} bytes; 64KiB works"
                )));
            }
            if self.memories[..index].contains(bytes) {
                return Err(PlanError::new(format!(
                    "every memory is compared once, and {bytes} bytes are there twice; leave one out"
                )));
            }
        }
        let full = self.rule.kind.all();
        for (index, &mask) in self.combinations.iter().enumerate() {
            if mask == 0 || mask >= full {
                return Err(PlanError::new(
                    "a combination has some of the attributes and not all, which are always asked for",
                ));
            }
            if self.combinations[..index].contains(&mask) {
                return Err(PlanError::new(
                    "every combination is asked for once; leave out the one that is there twice",
                ));
            }
        }
        self.check_probes()
    }

    /// Whether elements that come again count: for a structure, or in a time that is measured.
    pub(super) fn repeats_count(&self) -> bool {
        let mut contenders = self.contenders.iter();
        self.timing || !contenders.all(|contender| contender.ignores_repeats())
    }

    /// Bytes of all structures in all open slices.
    pub(super) fn structure_bytes(&self) -> u64 {
        let memories = self.memories.iter();
        memories
            .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes))
            .saturating_mul(self.contenders.len() as u64)
            .saturating_mul(self.open_slices() as u64)
    }

    /// Asks the system whether it would give the memory of all structures, before anything is read.
    ///
    /// # Errors
    ///
    /// It would not.
    #[doc(hidden)]
    pub fn check_memory(&self) -> Result<(), RunError> {
        let (structures, bytes) = (self.contenders.len(), self.structure_bytes());
        if can_allocate(bytes.saturating_add(SETS_BYTES)) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "{structures} structures take {bytes} bytes in {} open slices, which this machine does not give; compare fewer, or less --memory",
            self.open_slices()
        )))
    }

    /// Whether every structure can have the hash functions that are given, and one has such a
    /// number at all.
    fn check_probes(&self) -> Result<(), PlanError> {
        let Some(probes) = self.probes else {
            return Ok(());
        };
        let mut any = false;
        for &contender in &self.contenders {
            let Some(kind) = contender.filter() else {
                continue;
            };
            for &bytes in &self.memories {
                let Ok(spec) = sized(contender, kind, bytes, &Expected::default(), self) else {
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

    /// How many slices are open at the same time: as many as in a count with the largest memory.
    pub fn open_slices(&self) -> usize {
        self.slicing.open_slices(self.memories.iter().copied().max().unwrap_or(0))
    }

    /// The combinations that are asked for, all attributes first.
    pub fn asked(&self) -> Vec<u32> {
        let mut asked = vec![self.rule.kind.all()];
        asked.extend(&self.combinations);
        asked
    }
}
