//! What a run shall do: validated choices, no behaviour.

use super::table::LEAST_MEMORY;
use crate::decode::Tunnel;
use crate::inputs::PlanError;
use crate::selection::Selection;
use crate::trace::{InputFormat, Source};

/// Everything that a list of flows depends on.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Captures, in the order given.
    pub inputs: Vec<Source>,
    /// How to recognise them.
    pub input_format: InputFormat,
    /// Which packets take part.
    pub selection: Selection,
    /// Which IP header counts.
    pub tunnel: Tunnel,
    /// Both directions are one flow; its originator is the sender of its first packet.
    pub bidirectional: bool,
    /// Ports on which DNS is spoken, besides 53.
    pub dns_ports: Vec<u16>,
    /// A packet that comes later than this after the latest one of its flow begins another one.
    pub idle_ns: Option<i64>,
    /// A packet that comes later than this after the first one of its flow begins another one.
    pub active_ns: Option<i64>,
    /// Memory of the flows that have not ended, names included.
    pub memory_bytes: u64,
    /// Threads; only speed depends on them.
    pub threads: usize,
    /// Where an input is a stream, such as a pipe: a flow ends also when other packets are later than
    /// its last one by this many nanoseconds more than `idle_ns`; so its end does not wait for its
    /// next packet. Only times of packets count, not the machine's clock.
    pub delay_ns: Option<i64>,
}

impl FlowPlan {
    /// Whether an input cannot be read twice, as a pipe.
    #[doc(hidden)]
    pub fn is_stream(&self) -> bool {
        !self.inputs.iter().all(Source::is_readable_twice)
    }

    /// Returns the delay if an input is a stream.
    pub(super) fn stream_delay_ns(&self) -> Option<i64> {
        self.delay_ns.filter(|_| self.is_stream())
    }

    /// The flows of these captures in one direction, without timeouts, in 1 GiB of memory.
    pub fn of(inputs: impl IntoIterator<Item = impl Into<Source>>) -> Self {
        Self {
            inputs: inputs.into_iter().map(Into::into).collect(),
            input_format: InputFormat::Auto,
            selection: Selection::default(),
            tunnel: Tunnel::Outer,
            bidirectional: false,
            dns_ports: Vec::new(),
            idle_ns: None,
            active_ns: None,
            memory_bytes: 1 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            delay_ns: None,
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
            if timeout.is_some_and(|timeout| timeout <= 0) {
                return Err(PlanError::new(format!(
                    "an {name} timeout is at least 1 ns; --{name} 15s works, and without it there is none"
                )));
            }
        }
        if self.memory_bytes < LEAST_MEMORY {
            return Err(PlanError::new(format!(
                "flows need at least {LEAST_MEMORY} bytes of memory, not {}; --memory 1GiB is the default",
                self.memory_bytes
            )));
        }
        Ok(())
    }
}
