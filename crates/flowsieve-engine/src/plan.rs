//! The inputs of a run and how they are read: the common part of the plans of all commands.

use crate::decode::Headers;
use crate::inputs::{BatchBuilder, Feed, Input, Merge, PlanError, Watch};
use crate::selection::{Selection, TimeRangeError};
use crate::trace::{Capture, InputFormat, Source, StopFlag};
use std::sync::Arc;
use std::thread::Scope;

impl From<TimeRangeError> for PlanError {
    fn from(error: TimeRangeError) -> Self {
        Self::new(error.to_string())
    }
}

/// The inputs of a run, which packets of them take part, and how they are read.
///
/// The plan of each command has one. An option that all commands have in common is a field here.
///
/// ```
/// use flowsieve_engine::plan::TracePlan;
///
/// let trace = TracePlan { threads: 2, ..TracePlan::new(["monday.pcap", "tuesday.pcap"]) };
/// assert_eq!(trace.inputs.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct TracePlan {
    /// Captures, in the order given; they are one trace in the order of time.
    pub inputs: Vec<Source>,
    /// How to recognise them.
    pub input_format: InputFormat,
    /// Which packets take part.
    pub selection: Selection,
    /// Headers in which addresses and DNS messages are looked for.
    pub headers: Headers,
    /// Threads; only speed depends on them.
    pub threads: usize,
    /// Where an input is a stream, such as a pipe: results are handed on this many nanoseconds of
    /// capture time after they can change no more. `None` hands all of them on at the end, as for
    /// files. Only times of packets count, not the machine's clock.
    pub delay_ns: Option<i64>,
}

impl Default for TracePlan {
    /// No inputs.
    fn default() -> Self {
        Self::new([] as [Source; 0])
    }
}

impl TracePlan {
    /// Returns a plan that reads all packets of these captures, with a thread for each processor.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<Source>>) -> Self {
        Self {
            inputs: inputs.into_iter().map(Into::into).collect(),
            input_format: InputFormat::Auto,
            selection: Selection::default(),
            headers: Headers::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            delay_ns: None,
        }
    }

    /// Returns this plan with another number of threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Keeps only packets of at least this many bytes.
    #[cfg(feature = "toy")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_toy(mut self, least: u32) -> Self {
        self.selection.toy_least = least;
        self
    }

    /// Replaces times that are relative to the inputs by absolute ones; the inputs are opened for
    /// it. The flag ends the reading.
    ///
    /// # Errors
    ///
    /// The times of a stream are needed, or the range of time is empty.
    #[doc(hidden)]
    pub fn resolve(&mut self, stop: &StopFlag) -> Result<(), PlanError> {
        self.selection = self.selection.resolved(&self.inputs, self.input_format, stop)?;
        Ok(())
    }

    /// Returns whether an input is a stream, such as a pipe, which can be read only once.
    #[doc(hidden)]
    pub fn is_stream(&self) -> bool {
        !self.inputs.iter().all(Source::is_readable_twice)
    }

    /// Returns the delay if an input is a stream.
    pub(crate) fn stream_delay_ns(&self) -> Option<i64> {
        self.delay_ns.filter(|_| self.is_stream())
    }

    /// Returns the inputs without the packets that take no part.
    pub(crate) fn sources(&self) -> Vec<Source> {
        self.selection.of(&self.inputs, self.input_format)
    }

    /// Merges the inputs in the order of time.
    pub(crate) fn merge<'a, I: Input>(
        &self,
        watch: &dyn Watch,
        begin: impl FnMut(Capture, usize) -> I + 'a,
    ) -> Merge<'a, I> {
        Merge::new(&self.sources(), self.input_format, watch, begin)
    }

    /// Merges the inputs in the order of time; up to `threads` threads decode each of them. In a
    /// live run one thread does, which sends packets as soon as they come.
    pub(crate) fn feeds<'scope, M: BatchBuilder>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        builder: &Arc<M>,
        threads: usize,
        is_live: bool,
    ) -> Merge<'scope, Feed<M>> {
        let builder = Arc::clone(builder);
        self.merge(watch, move |capture, open| {
            if is_live {
                Feed::start_prompt(scope, capture, &builder)
            } else {
                Feed::start(scope, capture, &builder, threads, open)
            }
        })
    }
}
