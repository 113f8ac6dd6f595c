//! The plan of a run: validated choices, no behaviour.

use crate::inputs::PlanError;
use crate::plan::TracePlan;
use crate::trace::Source;

/// Least memory of a table: a thousand flows with the longest names.
pub(super) const LEAST_MEMORY: u64 = 1 << 19;

/// Everything that a list of flows depends on.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Inputs and their packets.
    pub trace: TracePlan,
    /// Both directions are one flow; its originator is the sender of its first packet.
    pub bidirectional: bool,
    /// A packet that comes later than this after the latest one of its flow begins another one. Of
    /// a stream a flow also ends when other packets are later than its last one by this and the
    /// delay of the trace, so that its end does not wait for its next packet.
    pub idle_ns: Option<i64>,
    /// A packet that comes later than this after the first one of its flow begins another one.
    pub active_ns: Option<i64>,
    /// Memory of the flows that have not ended, names included.
    pub memory_bytes: u64,
}

impl Default for FlowPlan {
    /// No inputs.
    fn default() -> Self {
        Self::new([] as [Source; 0])
    }
}

impl FlowPlan {
    /// The flows of these captures in one direction, without timeouts, in 1 GiB of memory.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<Source>>) -> Self {
        Self {
            trace: TracePlan::new(inputs),
            bidirectional: false,
            idle_ns: None,
            active_ns: None,
            memory_bytes: 1 << 30,
        }
    }

    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// A timeout of 0 or less; too little memory.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), PlanError> {
        let timeouts = [("idle", self.idle_ns), ("active", self.active_ns)];
        for (name, timeout) in timeouts {
            PlanError::unless(
                timeout.is_none_or(|timeout| timeout > 0),
                format_args!(
                    "an {name} timeout is at least 1 ns; --{name} 15s works, and without it there is none"
                ),
            )?;
        }
        let bytes = self.memory_bytes;
        PlanError::unless(
            bytes >= LEAST_MEMORY,
            format_args!(
                "flows need at least {LEAST_MEMORY} bytes of memory, not {bytes}; --memory 1GiB is the default"
            ),
        )
    }
}
