//! Shared by several tests: runs a count in memory, and finds the shared captures.

use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Sizing};
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CountSummary, CounterChoice, SliceResult, SliceSink, Slicing,
    count,
};
use flowsieve::plan::TracePlan;
use std::io;
use std::path::PathBuf;

/// Collects the slices.
#[derive(Debug, Default)]
pub(crate) struct Slices(pub(crate) Vec<SliceResult>);

impl SliceSink for Slices {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        self.0.push(slice.clone());
        Ok(())
    }
}

/// Returns a plan with the command line's defaults.
pub(crate) fn plan(inputs: &[PathBuf], kind: ElementKind) -> CountPlan {
    let shards = 8;
    let sizing = Sizing::Memory { bytes: 256 << 10, expected: None };
    CountPlan {
        trace: TracePlan::new(inputs).with_threads(1),
        rule: ElementRule { kind, ..ElementRule::default() },
        slicing: Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch },
        counter: Some(
            CounterChoice::filter(FilterKind::Subset, kind.arity(), sizing, shards)
                .expect("the defaults hold"),
        ),
        exact_limit_bytes: Some(1 << 30),
        seed: 0,
        shards,
        every_ns: None,
    }
}

/// Runs a plan.
pub(crate) fn run(plan: &CountPlan) -> (Vec<SliceResult>, CountSummary) {
    let mut slices = Slices::default();
    let summary = count(plan, CountExtras::default(), &mut slices, &()).expect("the plan holds");
    (slices.0, summary)
}
