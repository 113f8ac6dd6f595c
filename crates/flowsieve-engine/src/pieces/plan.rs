//! What pieces know of the run that is divided.

use crate::elements::ElementBatch;
use crate::export::{ExportPlan, ExportWhat, PackedSightingMaker};
use crate::flows::{FlowPlan, PackedMaker};
use crate::hashing::Digester;
use crate::inputs::Maker;
use crate::pipeline::{Align, CountPlan, PlanError, Slicing};
use crate::plan::TracePlan;
use crate::top::{TopExtractor, TopPlan};

/// A plan of a run that can be divided: of a count, a ranking, a list of flows, or an export.
pub trait PiecePlan {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    #[doc(hidden)]
    fn check(&self) -> Result<(), PlanError>;

    /// What pieces know of it.
    #[doc(hidden)]
    fn outline(&self) -> Outline<'_>;
}

/// Of a plan: what is read, how it is cut into slices, and what is handed on.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    pub(super) trace: &'a TracePlan,
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

/// Among how many shards flows are divided.
const FLOW_SHARDS: u32 = 64;

/// Among how many shards the elements of a slice are divided that are exported; slices are many.
const EXPORT_SHARDS: u32 = 8;

/// What is handed on of an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// Its digest.
    Digest,
    /// Its bytes.
    Bytes,
    /// A record with a key and one of its others; and what packets and bytes there were of each key
    /// besides.
    Record,
    /// The packet, and each one: how far its time is behind the latest, its number in the piece,
    /// and its compact form.
    Packet,
}

impl Outline<'_> {
    /// What turns packets into elements.
    pub(super) fn maker(&self) -> Box<dyn Maker<Batch = ElementBatch>> {
        match self.run {
            Run::Count(plan) => Box::new(plan.extractor(false, self.form() == Form::Bytes)),
            Run::Top(plan) => Box::new(TopExtractor::of(plan)),
            Run::Flows(plan) => Box::new(PackedMaker::of(plan, self.digester())),
            Run::Export(plan) => Box::new(PackedSightingMaker::of(plan, self.digester())),
        }
    }

    pub(super) fn form(&self) -> Form {
        match self.run {
            Run::Count(plan) if plan.exact_limit_bytes.is_some() || plan.needs_attributes() => {
                Form::Bytes
            }
            Run::Count(_) => Form::Digest,
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

/// Of flows and packets, which know no slices.
const NO_SLICES: Slicing = Slicing { width_ns: None, align: Align::Epoch };

impl PiecePlan for CountPlan {
    fn check(&self) -> Result<(), PlanError> {
        if self.panes().is_some() {
            return Err(PlanError::new(
                "windows that slide over the borders of pieces cannot be counted in pieces; leave out --every",
            ));
        }
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        Outline {
            trace: &self.trace,
            slicing: self.slicing,
            shards: self.shards,
            run: Run::Count(self),
        }
    }
}

impl PiecePlan for TopPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check()
    }

    fn outline(&self) -> Outline<'_> {
        Outline {
            trace: &self.trace,
            slicing: self.slicing,
            // One filter and one summary see all elements of a slice.
            shards: 1,
            run: Run::Top(self),
        }
    }
}

impl PiecePlan for FlowPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check().map_err(|error| PlanError::new(error.to_string()))
    }

    fn outline(&self) -> Outline<'_> {
        Outline {
            trace: &self.trace,
            slicing: NO_SLICES,
            shards: FLOW_SHARDS,
            run: Run::Flows(self),
        }
    }
}

impl PiecePlan for ExportPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.check().map_err(|error| PlanError::new(error.to_string()))
    }

    fn outline(&self) -> Outline<'_> {
        let slicing = match self.what {
            ExportWhat::Elements { slicing, .. } => slicing,
            ExportWhat::Packets => NO_SLICES,
        };
        Outline {
            trace: &self.trace,
            slicing,
            shards: match slicing.width_ns {
                Some(_) => EXPORT_SHARDS,
                None => FLOW_SHARDS,
            },
            run: Run::Export(self),
        }
    }
}
