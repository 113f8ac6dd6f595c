//! The plan of a comparison: validated choices, no behaviour.

use super::statistics::{LOOKS, Margin};
use super::truth::Floors;
use crate::elements::{ElementKind, ElementRule};
use crate::filters::{FilterKind, FilterSpec, Measure, Structure, Workload};
use crate::pipeline::{Align, Slicing};
use crate::plan::TracePlan;

/// A structure that takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Contender {
    /// As a count makes it; `subset` stores the whole element only.
    Plain(Structure),
    /// The structure that a plan recommends for the wanted queries.
    Planned,
}

impl Contender {
    /// All of them, in the order in which they are listed. The exact set is the truth that they are
    /// compared with.
    pub fn all() -> impl Iterator<Item = Self> {
        let structures = Structure::all().filter(|structure| *structure != Structure::Exact);
        structures.map(Self::Plain).chain([Self::Planned])
    }

    /// Whether an element that came before changes nothing.
    fn ignores_repeats(self) -> bool {
        match self {
            Self::Plain(structure) => structure.ignores_repeats(),
            // A plan may recommend anything.
            Self::Planned => false,
        }
    }

    /// The kind of filter, if it is one that is known before the trace is read.
    pub const fn filter(self) -> Option<FilterKind> {
        match self {
            Self::Plain(structure) => structure.filter(),
            Self::Planned => None,
        }
    }

    /// Returns how many elements of a slice the structure sees at most; `None` if it may see all.
    pub(super) fn sees_at_most(self, floors: Floors) -> Option<u64> {
        match self.filter()? {
            FilterKind::Mdbf => Some(floors.new_values),
            FilterKind::CmdbfXor => floors.new_sets,
            _ => None,
        }
    }

    /// The name in the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain(structure) => structure.name(),
            Self::Planned => "plan",
        }
    }

    /// Returns a description in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Plain(structure) => structure.summary(),
            Self::Planned => "What `flowsieve plan` recommends for the same --want and memory",
        }
    }
}

impl From<FilterKind> for Contender {
    fn from(kind: FilterKind) -> Self {
        Self::Plain(Structure::Filter(kind))
    }
}

/// Returns the best filter for some queries in this many bytes, if there is one.
pub type Weigh = fn(&Workload<'_>, bytes: u64) -> Option<FilterSpec>;

/// As [`Weigh`]; may measure filters first.
pub type Recommend = fn(&Workload<'_>, bytes: u64, &mut Measure<'_>) -> Option<FilterSpec>;

/// How large the structures are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sizes {
    /// From 1/8 to 8 bytes for each element of a large slice.
    Auto,
    /// Bytes of each structure for a slice.
    Total(Vec<u64>),
    /// Bits of each array of a structure, as in the paper.
    Arrays(Vec<u64>),
}

/// Bytes for an element, in eighths, of the sizes that are chosen by the trace.
pub const AUTO_EIGHTHS: [u64; 4] = [1, 4, 16, 64];

/// Arrays of whole words, two or three of them, fill multiples of so many bytes.
const EVEN_BYTES: u64 = 48;

impl Sizes {
    /// The sizes for this many elements in a large slice, ascending. Of few elements, some of
    /// [`Self::Auto`] are equal.
    pub fn ascending(&self, elements: Option<u64>) -> Vec<u64> {
        match self {
            Self::Total(sizes) | Self::Arrays(sizes) => {
                let mut sizes = sizes.clone();
                sizes.sort_unstable();
                sizes
            }
            Self::Auto => {
                let elements = elements.unwrap_or(0);
                let even = |eighths: &u64| {
                    let bytes = elements.saturating_mul(*eighths) / 8;
                    let even = (bytes + EVEN_BYTES / 2) / EVEN_BYTES * EVEN_BYTES;
                    even.clamp(EVEN_BYTES, MAX_BYTES / EVEN_BYTES * EVEN_BYTES)
                };
                AUTO_EIGHTHS.iter().map(even).collect()
            }
        }
    }

    /// Whether they are bits of an array.
    pub const fn are_arrays(&self) -> bool {
        matches!(self, Self::Arrays(_))
    }

    pub(super) fn of_user(&self) -> &[u64] {
        match self {
            Self::Total(sizes) | Self::Arrays(sizes) => sizes,
            Self::Auto => &[],
        }
    }
}

/// How the number of hash functions (k) is chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbeRule {
    /// By the formula, for the values that the structure's arrays get.
    Formula,
    /// By trial, on replicates that are not judged.
    Best,
    /// The same for all.
    Given(u32),
}

/// How many replicates there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seeds {
    /// As many as it takes to decide, up to a limit.
    Auto,
    /// So many.
    Fixed(u32),
}

/// Replicates at once where the trace is too long to be kept for further looks.
const STREAMED_SEEDS: u32 = 10;

impl Seeds {
    /// The looks; a single one if the trace is not kept.
    pub(super) fn looks(self, is_kept: bool) -> Vec<u32> {
        match self {
            Self::Fixed(seeds) => vec![seeds],
            Self::Auto if is_kept => LOOKS.to_vec(),
            Self::Auto => vec![STREAMED_SEEDS],
        }
    }
}

/// Everything that a comparison depends on.
#[derive(Clone, Debug)]
pub struct ComparePlan {
    /// Inputs and their packets.
    pub trace: TracePlan,
    /// Which elements.
    pub rule: ElementRule,
    /// Time slices.
    pub slicing: Slicing,
    /// Leave out slices that the trace covers only in part.
    pub whole_slices: bool,
    /// Structures, in the order in which they are reported.
    pub contenders: Vec<Contender>,
    /// Two of them that are compared with each other first.
    pub pair: Option<[Contender; 2]>,
    /// How large they are.
    pub sizes: Sizes,
    /// Ask for absent elements too.
    pub queries: bool,
    /// Combinations that queries ask for besides all attributes, bit i for attribute i.
    pub combinations: Vec<u32>,
    /// The queries that a plan is for, with their weights: of combinations that are asked for.
    pub wanted: Vec<(u32, f64)>,
    /// Distinct elements in a slice, if that is known: chooses the numbers of hash functions.
    pub expected: Option<u64>,
    /// How the numbers of hash functions are chosen.
    pub probes: ProbeRule,
    /// How `wcbfm` gets its weights; without it they are equal, and it is a `cbfm`.
    pub weigh: Option<Weigh>,
    /// How [`Contender::Planned`] gets its structure.
    pub recommend: Option<Recommend>,
    /// Bytes that the truth may take, for all open slices together, and what is kept of slices.
    pub exact_limit_bytes: u64,
    /// Seed of the digests and of the queries that are drawn.
    pub seed: u64,
    /// Replicates, with hash functions of their own.
    pub seeds: Seeds,
    /// Which differences do not matter.
    pub margin: Margin,
}

/// Most memory of one structure: as in a count.
pub(super) const MAX_BYTES: u64 = 1 << 40;

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

    /// Whether elements that come again count for a structure.
    pub(super) fn repeats_count(&self) -> bool {
        !self.contenders.iter().all(|contender| contender.ignores_repeats())
    }

    /// Whether the numbers of values of all combinations that are asked for are needed.
    pub(super) fn needs_combinations(&self) -> bool {
        let mut contenders = self.contenders.iter();
        self.asks() || contenders.any(|it| it.filter().is_some_and(FilterKind::has_weights))
    }

    /// Whether absent elements are asked for, if only to choose a filter.
    pub(super) fn asks(&self) -> bool {
        self.queries || self.contenders.contains(&Contender::Planned)
    }

    /// A plan for trials of filters on everything as one slice, for these queries.
    pub fn of_trial(trace: TracePlan, rule: ElementRule, wanted: Vec<(u32, f64)>) -> Self {
        Self {
            combinations: wanted
                .iter()
                .map(|&(mask, _)| mask)
                .filter(|&it| it != rule.kind.all())
                .collect(),
            trace,
            rule,
            slicing: Slicing { width_ns: None, align: Align::Epoch },
            whole_slices: false,
            contenders: vec![Contender::Planned],
            pair: None,
            sizes: Sizes::Auto,
            queries: true,
            wanted,
            expected: None,
            probes: ProbeRule::Formula,
            weigh: None,
            recommend: None,
            exact_limit_bytes: u64::MAX,
            seed: 0,
            seeds: Seeds::Fixed(1),
            margin: Margin { points: 0.0, share: 0.0 },
        }
    }

    /// Returns the maximum number of counts per slice: structures x sizes x seeds.
    pub(super) fn most_counts(&self) -> u64 {
        let seeds = self.seeds.looks(true).last().copied().unwrap_or(1);
        (self.contenders.len() * self.sizes.ascending(None).len()) as u64 * u64::from(seeds)
    }

    /// Bytes of all structures of these sizes.
    pub(super) fn structure_bytes(&self, sizes: &[u64]) -> u64 {
        let of_one = |size: &u64| match self.sizes {
            Sizes::Arrays(_) => (size / 8).saturating_mul(self.rule.kind.arity() as u64 + 1),
            _ => *size,
        };
        let all = sizes.iter().map(of_one).fold(0_u64, u64::saturating_add);
        all.saturating_mul(self.contenders.len() as u64)
    }

    /// How many slices are open at the same time.
    pub fn open_slices(&self) -> usize {
        // The memory of a structure does not matter: there is one for all slices.
        self.slicing.open_slices(0)
    }

    /// The combinations that are asked for, all attributes first.
    pub fn asked(&self) -> Vec<u32> {
        let mut asked = vec![self.rule.kind.all()];
        asked.extend(&self.combinations);
        asked
    }

    /// The combinations whose values are counted besides single attributes, all attributes first.
    pub(super) fn counted(&self) -> Vec<u32> {
        let full = self.rule.kind.all();
        if !self.needs_combinations() {
            return vec![full];
        }
        let mut counted = self.asked();
        // As in a sample for a plan.
        if self.rule.kind.arity() <= 3 && self.contenders.contains(&Contender::Planned) {
            counted.extend((1..full).filter(|mask| !self.combinations.contains(mask)));
        }
        counted
    }
}
