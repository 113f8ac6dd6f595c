//! The plan of a run: validated choices, no behaviour.

use super::time_slice::{Align, SliceGrid};
use super::whole::WholeSpec;
use crate::elements::{ElementRule, Extractor};
use crate::filters::saved::SavedFilter;
use crate::filters::{
    CounterSpec, FilterKind, FilterSpec, Sizing, SlidingBitmap, SpecError, Structure,
};
use crate::hashing::Digester;
use crate::inputs::{PlanError, RunError};
use crate::memory::can_allocate;
use crate::plan::TracePlan;

/// How packet time is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slicing {
    /// Width in nanoseconds; `None` is one slice for everything.
    pub width_ns: Option<i64>,
    /// Where boundaries lie.
    pub align: Align,
}

impl Slicing {
    /// Checks that slices have a width.
    ///
    /// # Errors
    ///
    /// A width of 0 or less.
    pub(crate) fn check(self) -> Result<(), PlanError> {
        PlanError::unless(
            self.width_ns.is_none_or(|width| width > 0),
            "a time slice is at least 1 ns wide; 1s works, and `all` makes one slice of everything",
        )
    }

    /// Numbers the slices of a trace whose first packet has this time, if it has packets.
    pub(crate) fn grid(self, first_ns: Option<i64>) -> SliceGrid {
        SliceGrid::new(self.width_ns, self.align, first_ns.unwrap_or(0))
    }

    /// Returns how many slices of this many bytes are open at the same time: 8 while they are
    /// small, but never fewer than 2, so that packets that cross a boundary out of order still find
    /// their slice.
    pub(crate) fn open_slices(self, bytes: u64) -> usize {
        /// Memory below which more slices are kept open.
        const SMALL_BYTES: u64 = 16 << 20;
        match self.width_ns {
            None => 1,
            Some(_) => (SMALL_BYTES / bytes.max(1)).clamp(2, 8) as usize,
        }
    }

    /// Returns how many panes a sliding window has, if one ends at each multiple of `every_ns`; a
    /// pane is that wide. `None` if a window is one pane, or if windows do not slide.
    ///
    /// # Errors
    ///
    /// A width that is no multiple of `every_ns`, or too large a one.
    #[doc(hidden)]
    pub fn panes(self, every_ns: Option<i64>) -> Result<Option<u16>, PlanError> {
        const MOST: u16 = SlidingBitmap::MAX_PANES;
        let Some(every_ns) = every_ns else { return Ok(None) };
        let error =
            |rule: String| Err(PlanError::new(format!("{rule}; --slice 60s --every 1s works")));
        match self.width_ns {
            None => error("--every needs slices of a width, and not --slice all".into()),
            Some(width) if every_ns < 1 || width % every_ns != 0 => {
                error("--slice is a multiple of --every".into())
            }
            Some(width) => match u16::try_from(width / every_ns) {
                Ok(0 | 1) => Ok(None),
                Ok(panes @ ..=MOST) => Ok(Some(panes)),
                _ => error(format!(
                    "--slice is at most {MOST} times as long as --every, not {} times",
                    width / every_ns
                )),
            },
        }
    }
}

/// The counter of each shard, in addition to the exact set.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterChoice {
    /// Name of the structure, in the command line and in reports.
    pub name: &'static str,
    /// Parameters of the counter of one shard.
    pub shard: CounterSpec,
    /// Combinations of attributes (bit i for attribute i) whose counts are reported in addition to that
    /// of the whole element, for a filter that was designed for them. With any there is one shard.
    pub combinations: Option<Vec<u32>>,
}

/// Everything that a count depends on.
#[derive(Clone, Debug)]
pub struct CountPlan {
    /// Inputs and their packets.
    pub trace: TracePlan,
    /// The elements to count.
    pub rule: ElementRule,
    /// Time slices.
    pub slicing: Slicing,
    /// With this the slices are windows that slide: one ends at each multiple of this many
    /// nanoseconds, of which the width of a slice is a multiple, and counts what came in that width
    /// before its end. `None` is one slice after the other.
    pub every_ns: Option<i64>,
    /// A filter or another counter; `None` counts exactly only.
    pub counter: Option<CounterChoice>,
    /// Bytes that all exact sets may take together; `None` switches them off.
    pub exact_limit_bytes: Option<u64>,
    /// Seed of the digests.
    pub seed: u64,
    /// Partitions of the elements, each with its own counter; part of the experiment.
    pub shards: u32,
}

/// Most shards.
const MAX_SHARDS: u32 = 1024;

/// Most memory of the filters of a slice.
const MAX_FILTER_BYTES: u64 = 1 << 40;

impl CounterChoice {
    /// The filter of each of `shards` shards, `sizing` being for all of them together.
    ///
    /// # Errors
    ///
    /// Parameters that the structure cannot have.
    pub fn filter(
        kind: FilterKind,
        attributes: usize,
        sizing: Sizing,
        shards: u32,
    ) -> Result<Self, PlanError> {
        check_shards(shards)?;
        let shards = u64::from(shards);
        if let Sizing::Memory { bytes, .. } = sizing {
            check_most_memory(bytes)?;
        }
        let share = match sizing {
            Sizing::Memory { bytes, expected } => Sizing::Memory {
                bytes: bytes / shards,
                expected: expected.map(|n| n.div_ceil(shards)),
            },
            Sizing::Rate { fpr, expected } => {
                Sizing::Rate { fpr, expected: expected.div_ceil(shards) }
            }
        };
        let shard = FilterSpec::new(kind, attributes, share).map_err(|error| match error {
            SpecError::TooLittleMemory { least, .. } if shards == 1 => PlanError::new(format!(
                "a {} filter needs at least {least} bytes; ask for --memory {least} or more",
                kind.name()
            )),
            SpecError::TooLittleMemory { least, .. } => {
                let least = least * shards;
                PlanError::new(format!(
                    "{shards} shards of a {} filter need at least {least} bytes; ask for --memory {least} or more, or for fewer --shards",
                    kind.name()
                ))
            }
            error => PlanError::from(error),
        })?;
        Ok(Self { name: kind.name(), shard: CounterSpec::Filter(shard), combinations: None })
    }

    /// That of a count which goes on from this filter.
    #[doc(hidden)]
    pub fn saved(filter: &SavedFilter) -> Self {
        let spec = filter.spec().clone();
        Self { name: spec.name(), shard: CounterSpec::Filter(spec), combinations: None }
    }

    /// A filter designed for certain combinations of attributes, in one shard; the counts of
    /// `combinations`, those of some of the attributes, are reported.
    #[doc(hidden)]
    pub fn designed(kind: FilterKind, filter: FilterSpec, combinations: Vec<u32>) -> Self {
        Self {
            name: kind.name(),
            shard: CounterSpec::Filter(filter),
            combinations: Some(combinations),
        }
    }

    /// The [`SlidingBitmap`] of each of `shards` shards, for windows of `panes` panes, within this
    /// memory for all of them together.
    ///
    /// # Errors
    ///
    /// Too little memory, or a false-positive rate, which it does not have.
    #[doc(hidden)]
    pub fn sliding(sizing: Sizing, panes: u16, shards: u32) -> Result<Self, PlanError> {
        let Sizing::Memory { bytes, .. } = sizing else {
            return Err(PlanError::new(
                "windows that slide are counted without a filter, so there is no false-positive rate; size them with --memory",
            ));
        };
        check_most_memory(bytes)?;
        check_shards(shards)?;
        let least = SlidingBitmap::least_bytes(panes) * u64::from(shards);
        PlanError::unless(
            bytes >= least,
            format_args!(
                "windows of {panes} steps need at least {least} bytes in {shards} of --shards, not {bytes}; ask for --memory {least} or more"
            ),
        )?;
        let cells = SlidingBitmap::cells_within(bytes / u64::from(shards), panes);
        Ok(Self {
            name: "sliding",
            shard: CounterSpec::Sliding { cells, panes },
            combinations: None,
        })
    }

    /// The `HyperLogLog` or `ExaLogLog` of each of `shards` shards, of the highest precision whose
    /// registers fit into the memory, which is for all of them together.
    ///
    /// # Errors
    ///
    /// Memory for less than the least precision, or a false-positive rate, which it does not have.
    pub fn registers(structure: Structure, sizing: Sizing, shards: u32) -> Result<Self, PlanError> {
        let name = structure.name();
        let Sizing::Memory { bytes, .. } = sizing else {
            return Err(PlanError::new(format!(
                "{name} counts and answers no question about an element, so it has no false-positive rate; size it with --memory"
            )));
        };
        check_most_memory(bytes)?;
        check_shards(shards)?;
        let shards = u64::from(shards);
        let (counter, of_one) = CounterSpec::of_registers(structure, bytes / shards);
        let shard = counter.ok_or_else(|| {
            let least = shards * of_one;
            let counters = if shards == 1 {
                format!("an {name} counter needs")
            } else {
                format!("{shards} shards of an {name} counter need")
            };
            PlanError::new(format!(
                "{counters} at least {least} bytes, not {bytes}; ask for --memory {least} or more"
            ))
        })?;
        Ok(Self { name, shard, combinations: None })
    }
}

fn check_most_memory(bytes: u64) -> Result<(), PlanError> {
    PlanError::unless(
        bytes <= MAX_FILTER_BYTES,
        format_args!(
            "filters have at most {MAX_FILTER_BYTES} bytes (1 TiB), not {bytes}; ask for less with --memory"
        ),
    )
}

fn check_shards(shards: u32) -> Result<(), PlanError> {
    PlanError::unless(
        (1..=MAX_SHARDS).contains(&shards),
        format_args!("there are 1 to {MAX_SHARDS} shards, not {shards}; 8 works"),
    )
}

impl From<SpecError> for PlanError {
    fn from(error: SpecError) -> Self {
        Self::new(error.to_string())
    }
}

/// Bits per cell of a sliding window; a pane has one bit per cell.
const CELL_BITS: u64 = 16;

/// Maximum number of panes that wait for late packets.
const MOST_WAITING: u64 = 4096;

impl CountPlan {
    fn check_windows(&self) -> Result<(), PlanError> {
        let Some(panes) = self.slicing.panes(self.every_ns)? else { return Ok(()) };
        match &self.counter {
            Some(CounterChoice { shard: CounterSpec::Sliding { panes: own, .. }, .. })
                if *own == panes =>
            {
                Ok(())
            }
            Some(CounterChoice { name, .. }) => Err(PlanError::new(format!(
                "{name} cannot forget what leaves a window, so it does not go with --every; leave out --filter, or count with --filter exact"
            ))),
            None => Ok(()),
        }
    }

    /// How time is cut: into slices, or into the panes of windows that slide.
    pub(crate) fn grid(&self) -> Slicing {
        Slicing {
            width_ns: match self.panes() {
                Some(_) => self.every_ns,
                None => self.slicing.width_ns,
            },
            ..self.slicing
        }
    }

    /// Bytes that each exact set of one shard may take in one slice: that of the elements, and of
    /// each combination.
    pub(crate) fn exact_set_limit(&self) -> Option<u64> {
        let of_shard = 1 + self.combinations().len() as u64;
        let sets = u64::from(self.shards) * self.open_slices() as u64 * of_shard;
        // The elements of a window, or of all slices, take the other half.
        let share = if self.slicing.width_ns.is_some() { 2 } else { 1 };
        self.exact_limit_bytes.map(|limit| limit / share / sets)
    }

    /// Returns how a shard counts all slices together, if there may be several that do not overlap.
    pub(crate) fn whole(&self) -> Option<WholeSpec> {
        self.slicing.width_ns.filter(|_| self.panes().is_none())?;
        let counter = self.counter.as_ref().map(|counter| &counter.shard);
        let shards = u64::from(self.shards);
        Some(WholeSpec {
            exact_limit_bytes: self.window_limit(),
            places: counter.map(|it| WholeSpec::places(it.memory_bytes(), shards)),
            firsts_only: counter.is_some_and(|counter| {
                let is_roomy = counter.memory_bytes() * shards >= WholeSpec::ROOMY_BYTES;
                is_roomy && counter.tells_first() && counter.counts_distinct()
            }),
        })
    }

    /// Returns the bytes of the sample that counts all slices together, over all shards.
    #[doc(hidden)]
    pub fn whole_bytes(&self) -> Option<u64> {
        let places = self.whole()?.places?;
        Some(WholeSpec::sample_bytes(places).saturating_mul(self.shards.into()))
    }

    /// Bytes that the exact count of the windows, or of all slices, of one shard may take.
    pub(crate) fn window_limit(&self) -> Option<u64> {
        let shards = u64::from(self.shards);
        self.exact_limit_bytes.map(|limit| limit / 2 / shards)
    }

    /// Returns what turns packets into the elements of this plan; `attributes` and `keys` say whether these
    /// columns are wanted.
    pub(crate) fn extractor(&self, attributes: bool, keys: bool) -> Extractor {
        let digester = Digester::new(self.seed);
        Extractor::new(self.rule.clone(), &self.trace.headers, digester, attributes, keys)
    }

    /// Whether the counter looks at the attributes of elements.
    pub(crate) fn needs_attributes(&self) -> bool {
        let counter = self.counter.as_ref();
        counter.is_some_and(|counter| counter.shard.needs_attributes())
    }
}

/// For other crates of this program.
#[doc(hidden)]
impl CountPlan {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// A width of 0 or less, no or too many shards, several for combinations, or nothing to count
    /// with.
    pub fn check(&self) -> Result<(), PlanError> {
        self.slicing.check()?;
        check_shards(self.shards)?;
        self.check_windows()?;
        let shards = self.shards;
        PlanError::unless(
            shards == 1 || self.combinations().is_empty(),
            format_args!(
                "elements are divided among shards, and the values of a combination with them, so that no shard could count them: a filter of combinations has 1 shard, not {shards}"
            ),
        )?;
        PlanError::unless(
            self.counter.is_some() || self.exact_limit_bytes.is_some(),
            "with --filter exact the exact set is the answer, so it cannot be switched off; choose another filter or leave out --no-exact",
        )
    }

    /// Where windows slide: panes of a window, of which there are at least two.
    pub fn panes(&self) -> Option<u16> {
        self.slicing.panes(self.every_ns).ok().flatten()
    }

    /// Parameters of a shard's filter, if it can be kept when the run is over: that of one slice
    /// over everything.
    ///
    /// # Errors
    ///
    /// There are several slices, or no filter.
    pub fn kept_filter(&self) -> Result<&FilterSpec, PlanError> {
        PlanError::unless(
            self.slicing.width_ns.is_none(),
            "a filter is saved of everything and not of a time slice, so --save-filter needs --slice all",
        )?;
        let counter = self.counter.as_ref();
        counter.and_then(|counter| counter.shard.filter()).ok_or_else(|| {
            let what = counter.map_or("the exact set", |counter| counter.name);
            PlanError::new(format!(
                "{what} cannot be saved; choose a --filter that is one, such as subset"
            ))
        })
    }

    /// Checks that this filter of an earlier count can be counted on.
    ///
    /// # Errors
    ///
    /// There are several slices, an exact set, or other parameters.
    pub fn check_continued(&self, filter: &SavedFilter) -> Result<(), PlanError> {
        PlanError::unless(
            self.slicing.width_ns.is_none(),
            "a saved filter is one of everything and not of a time slice, so --continue needs --slice all",
        )?;
        PlanError::unless(
            self.exact_limit_bytes.is_none(),
            "an exact set does not know what a saved filter has seen; count with --no-exact",
        )?;
        let counter = self.counter.as_ref().and_then(|counter| counter.shard.filter());
        let shards = filter.shards() == self.shards as usize;
        PlanError::unless(
            counter == Some(filter.spec()) && self.seed == filter.seed() && shards,
            "the plan has another filter, seed or number of shards than the saved filter to go on from",
        )
    }

    /// Asks the system whether it would give the memory of all filters, before anything is read:
    /// later a refusal would end the program without a word.
    ///
    /// # Errors
    ///
    /// It would not.
    pub fn check_memory(&self) -> Result<(), RunError> {
        let slices = self.open_slices();
        let bytes = self.counter_bytes().unwrap_or(0).saturating_mul(slices as u64);
        // Count one bit per cell for each pane, and the window itself once.
        let bytes = match self.panes() {
            Some(_) => bytes / CELL_BITS + self.counter_bytes().unwrap_or(0),
            None => bytes,
        };
        let bytes = bytes.saturating_add(self.whole_bytes().unwrap_or(0));
        if can_allocate(bytes) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "the filters of up to {slices} open slices take {bytes} bytes, which this machine does not give; ask for less with --memory"
        )))
    }

    /// The combinations whose counts are reported.
    pub fn combinations(&self) -> &[u32] {
        let counter = self.counter.as_ref();
        counter.and_then(|counter| counter.combinations.as_deref()).unwrap_or_default()
    }

    /// Bytes of the counters of one slice, over all shards.
    pub fn counter_bytes(&self) -> Option<u64> {
        let counter = self.counter.as_ref()?;
        Some(counter.shard.memory_bytes() * u64::from(self.shards))
    }

    /// Returns the maximum number of open slices. Where windows slide, slices are panes, and those
    /// of a stream include the panes that wait for late packets.
    pub fn open_slices(&self) -> usize {
        let usual = self.slicing.open_slices(self.counter_bytes().unwrap_or(0));
        usual.max(self.waiting_panes().unwrap_or(0) as usize)
    }

    /// Returns the number of panes that a stream keeps open; `None` if windows do not slide or the
    /// input is no stream. Panes cover the delay, and three more the boundaries and a packet ahead of
    /// all others. Their memory is at most 64 MiB or eight times that of a window.
    fn waiting_panes(&self) -> Option<u64> {
        let (every_ns, delay_ns) = self.every_ns.zip(self.trace.stream_delay_ns())?;
        let waiting = delay_ns.cast_unsigned().div_ceil(every_ns.max(1).cast_unsigned()) + 3;
        let bytes = self.counter_bytes().unwrap_or(0);
        let fitting = bytes.saturating_mul(8).max(64 << 20) / (bytes / CELL_BITS).max(1);
        Some(waiting.min(fitting).min(MOST_WAITING))
    }

    /// Number of attributes of the elements that are counted.
    pub fn attributes(&self) -> usize {
        self.rule.kind.arity()
    }
}
