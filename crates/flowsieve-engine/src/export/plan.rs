//! What a run shall do: validated choices, no behaviour.

use crate::decode::Tunnel;
use crate::elements::ElementKind;
use crate::inputs::PlanError;
use crate::pipeline::Slicing;
use crate::selection::Selection;
use crate::trace::{InputFormat, Source};

/// Everything that the rows depend on.
#[derive(Clone, Debug)]
pub struct ExportPlan {
    /// Captures, in the order given.
    pub inputs: Vec<Source>,
    /// How to recognise them.
    pub input_format: InputFormat,
    /// Which packets take part.
    pub selection: Selection,
    /// Which IP header counts.
    pub tunnel: Tunnel,
    /// Ports on which DNS is spoken, besides 53.
    pub dns_ports: Vec<u16>,
    /// What a row is.
    pub what: ExportWhat,
    /// Threads; only speed depends on them.
    pub threads: usize,
}

/// What a row is.
#[derive(Clone, Copy, Debug)]
pub enum ExportWhat {
    /// A packet.
    Packets,
    /// A distinct element of a time slice, with its packets there.
    Elements {
        /// What an element is.
        kind: ElementKind,
        /// Both directions are one element, whose ends are those of its first packet.
        undirected: bool,
        /// DNS responses are no elements; for [`ElementKind::Dns`].
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
        let ExportWhat::Elements { slicing, memory_bytes, .. } = self.what else {
            return Ok(());
        };
        if slicing.width_ns.is_some_and(|width| width <= 0) {
            return Err(PlanError::new("a slice is at least 1 ns wide; --slice 1s is the default"));
        }
        if memory_bytes < LEAST_MEMORY {
            return Err(PlanError::new(format!(
                "elements need at least {LEAST_MEMORY} bytes of memory, not {memory_bytes}; --memory 1GiB is the default"
            )));
        }
        Ok(())
    }
}
