//! The parts of a plan that the processes of a distributed run share.

use crate::elements::ElementBatch;
use crate::export::{ExportPlan, ExportWhat, PackedSightingBuilder};
use crate::flows::{FlowPlan, PackedFlowBuilder};
use crate::hashing::Digester;
use crate::inputs::BatchBuilder;
use crate::pipeline::{Align, CountPlan, PlanError, Slicing};
use crate::plan::TracePlan;
use crate::top::{RankBy, TopExtractor, TopPlan};

/// A plan of a run that can be distributed: a count, a ranking, a list of flows, or an export.
pub trait PiecePlan {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    #[doc(hidden)]
    fn check(&self) -> Result<(), PlanError>;

    /// Returns what pieces know of the plan.
    #[doc(hidden)]
    fn outline(&self) -> Outline<'_>;
}

/// The parts of a plan that pieces know: what is read, and how it is cut into slices and shards.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    /// Inputs and their packets.
    pub trace: &'a TracePlan,
    pub(super) slicing: Slicing,
    pub(super) shards: u32,
    run: Run<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Run<'a> {
    Count(&'a CountPlan),
    Top(&'a TopPlan),
    Flows(&'a FlowPlan),
    Export(&'a ExportPlan),
}

/// Number of shards of a list of flows, and of the exact sets of a ranking of one slice, unless it
/// is set.
const FLOW_SHARDS: u32 = 64;

/// Number of shards of each slice of an export; there are many slices.
const EXPORT_SHARDS: u32 = 8;

/// Slices of flows and packets, which have none.
const NO_SLICES: Slicing = Slicing { width_ns: None, align: Align::Epoch };

/// The part of an element that a piece emits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// Its digest.
    Digest,
    /// Its bytes.
    Bytes,
    /// A record with a key and one of its others. The packets and bytes of each key's repeats are
    /// emitted as sums.
    Record,
    /// The record of every packet, repeats included.
    EveryRecord,
    /// Every packet: how far its time is behind the latest, its number in the piece, and its
    /// compact form.
    Packet,
}

impl Outline<'_> {
    /// Returns the plan in this many shards, where no number depends on them.
    #[must_use]
    pub fn in_shards(mut self, shards: Option<u32>) -> Self {
        let Some(shards) = shards.filter(|_| self.slicing.width_ns.is_none()) else { return self };
        match self.run {
            Run::Flows(_) | Run::Export(_) => self.shards = shards.max(1),
            Run::Top(_) if self.shards > 1 => self.shards = shards.clamp(1, u32::MAX - 1) + 1,
            Run::Top(_) | Run::Count(_) => {}
        }
        self
    }

    /// Returns what turns packets into elements.
    pub(super) fn builder(&self) -> Box<dyn BatchBuilder<Batch = ElementBatch>> {
        match self.run {
            Run::Count(plan) => Box::new(plan.extractor(false, self.form() == Form::Bytes)),
            Run::Top(plan) => Box::new(TopExtractor::new(plan)),
            Run::Flows(plan) => Box::new(PackedFlowBuilder::of(plan, self.digester())),
            Run::Export(plan) => Box::new(PackedSightingBuilder::of(plan, self.digester())),
        }
    }

    pub(super) fn form(&self) -> Form {
        match self.run {
            Run::Count(plan) if plan.exact_limit_bytes.is_some() || plan.needs_attributes() => {
                Form::Bytes
            }
            Run::Count(_) => Form::Digest,
            // Which keys the summary evicts depends on every packet, in order.
            Run::Top(plan)
                if plan.rank_by != RankBy::Distinct && plan.exact_limit_bytes.is_none() =>
            {
                Form::EveryRecord
            }
            Run::Top(_) => Form::Record,
            Run::Flows(_) | Run::Export(_) => Form::Packet,
        }
    }

    pub(super) fn digester(&self) -> Digester {
        Digester::new(match self.run {
            Run::Count(plan) => plan.seed,
            Run::Top(plan) => plan.seed,
            Run::Flows(_) | Run::Export(_) => 0,
        })
    }
}

impl PiecePlan for CountPlan {
    fn check(&self) -> Result<(), PlanError> {
        PlanError::unless(
            self.panes().is_none(),
            "windows that slide over the borders of pieces cannot be counted in pieces; leave out --every",
        )?;
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        let run = Run::Count(self);
        Outline { trace: &self.trace, slicing: self.slicing, shards: self.shards, run }
    }
}

impl PiecePlan for TopPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        // One filter and one summary see all elements of a slice. The exact sets of one that is
        // everything are in further shards.
        let shards = match (self.slicing.width_ns, self.exact_limit_bytes) {
            (None, Some(_)) => 1 + FLOW_SHARDS,
            _ => 1,
        };
        Outline { trace: &self.trace, slicing: self.slicing, shards, run: Run::Top(self) }
    }
}

impl PiecePlan for FlowPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        let run = Run::Flows(self);
        Outline { trace: &self.trace, slicing: NO_SLICES, shards: FLOW_SHARDS, run }
    }
}

impl PiecePlan for ExportPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        let slicing = match self.what {
            ExportWhat::Elements { slicing, .. } => slicing,
            ExportWhat::Packets => NO_SLICES,
        };
        let shards = if slicing.width_ns.is_some() { EXPORT_SHARDS } else { FLOW_SHARDS };
        Outline { trace: &self.trace, slicing, shards, run: Run::Export(self) }
    }
}
