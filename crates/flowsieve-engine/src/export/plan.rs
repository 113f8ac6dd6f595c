//! The plan of a run: validated choices, no behaviour.

use crate::elements::ElementKind;
use crate::inputs::PlanError;
use crate::pipeline::Slicing;
use crate::plan::TracePlan;

/// Everything that the rows depend on.
#[derive(Clone, Debug)]
pub struct ExportPlan {
    /// Inputs and their packets.
    pub trace: TracePlan,
    /// Packets or elements.
    pub what: ExportWhat,
}

/// The kind of rows: packets, or elements of slices.
#[derive(Clone, Copy, Debug)]
pub enum ExportWhat {
    /// A packet.
    Packets,
    /// A distinct element of a time slice, with its packets there.
    Elements {
        /// The kind of element.
        kind: ElementKind,
        /// Both directions are one element, whose ends are those of its first packet.
        undirected: bool,
        /// DNS responses are no elements; for [`ElementKind::DNS`].
        queries_only: bool,
        /// Time slices.
        slicing: Slicing,
        /// Memory of the elements of open slices, names included.
        memory_bytes: u64,
    },
}

/// Least memory of elements: a thousand with the longest names.
const LEAST_MEMORY: u64 = 1 << 19;

impl ExportPlan {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// A slice without a width; too little memory.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), PlanError> {
        let ExportWhat::Elements { slicing, memory_bytes, .. } = self.what else { return Ok(()) };
        slicing.check()?;
        PlanError::unless(
            memory_bytes >= LEAST_MEMORY,
            format_args!(
                "elements need at least {LEAST_MEMORY} bytes of memory, not {memory_bytes}; --memory 1GiB is the default"
            ),
        )
    }
}
