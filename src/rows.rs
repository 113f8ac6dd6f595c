//! The rows of a count as an iterator: the count runs in its own thread and waits while
//! nobody takes rows.

use crate::pipeline::{
    CountExtras, CountPlan, CountSummary, RunError, SliceResult, SliceSink, count,
};
use flowsieve_engine::internal::spawn;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Rows that may wait.
const AHEAD: usize = 64;

/// The slices of a count in the order of time, each as soon as it is over. Made by
/// [`Count::rows`](crate::Count::rows).
///
/// It ends early if the run fails; [`Self::finish`] says why. Dropping it ends the count.
#[derive(Debug)]
pub struct CountRows {
    /// Those that were not taken yet.
    rows: Option<Receiver<SliceResult>>,
    run: Option<Run>,
}

type Outcome = Result<CountSummary, RunError>;

#[derive(Debug)]
enum Run {
    Thread(JoinHandle<Option<Outcome>>),
    Over(Box<Outcome>),
}

impl CountRows {
    pub(crate) fn begin(plan: CountPlan) -> Self {
        let (sender, rows) = sync_channel(AHEAD);
        let run = |(plan, mut sender): (CountPlan, Sender)| {
            count(&plan, CountExtras::default(), &mut sender, &())
        };
        if let Some(thread) = spawn("count", 0, run) {
            let run = Run::Thread(thread.begin((plan, Sender(sender))));
            return Self { rows: Some(rows), run: Some(run) };
        }
        // There is no thread to be had: all rows wait.
        let mut all = Vec::new();
        let run = count(&plan, CountExtras::default(), &mut all, &());
        let (sender, rows) = sync_channel(all.len());
        all.into_iter().try_for_each(|row| sender.send(row)).expect("there is room for all");
        Self { rows: Some(rows), run: Some(Run::Over(Box::new(run))) }
    }

    /// Returns the inputs as they were read, and totals. Rows that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// The run failed.
    ///
    /// # Panics
    ///
    /// If the run panicked, which is a mistake in flowsieve.
    pub fn finish(mut self) -> Result<CountSummary, RunError> {
        self.by_ref().for_each(drop);
        match self.run.take().expect("taken here only") {
            Run::Thread(run) => {
                let outcome = run.join().expect("a run turns panics into errors");
                outcome.expect("it has a plan")
            }
            Run::Over(outcome) => *outcome,
        }
    }
}

impl Iterator for CountRows {
    type Item = SliceResult;

    fn next(&mut self) -> Option<SliceResult> {
        self.rows.as_ref()?.recv().ok()
    }
}

impl Drop for CountRows {
    fn drop(&mut self) {
        // The next row finds nobody; then the run ends.
        self.rows = None;
        if let Some(Run::Thread(run)) = self.run.take() {
            drop(run.join());
        }
    }
}

struct Sender(SyncSender<SliceResult>);

impl SliceSink for Sender {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the rows any more");
        self.0.send(slice.clone()).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use crate::Count;

    const PATH: &str = "traces/generated.pcap";

    /// Slices of a millisecond: far more than may wait.
    fn many() -> Count {
        Count::of([PATH]).slice(std::time::Duration::from_millis(1))
    }

    #[test]
    fn rows_are_those_of_a_run() {
        let counted = many().run().unwrap();
        let mut rows = many().rows().unwrap();
        assert_eq!(rows.by_ref().collect::<Vec<_>>(), counted.slices);
        assert_eq!(rows.finish().unwrap().totals, counted.summary.totals);
    }

    #[test]
    fn a_count_whose_rows_nobody_takes_ends() {
        let mut rows = many().rows().unwrap();
        assert!(rows.next().is_some());
        // It waits for its thread, which must not wait for a place for its rows.
        drop(rows);
        let totals = many().rows().unwrap().finish().unwrap().totals;
        assert_eq!(totals.packets, 8_000);
    }

    #[test]
    fn the_end_says_what_became_of_the_inputs() {
        let mut rows = Count::of(["missing.pcap"]).rows().unwrap();
        assert_eq!(rows.next(), None);
        let summary = rows.finish().unwrap();
        assert!(summary.inputs[0].error.is_some());
    }
}
