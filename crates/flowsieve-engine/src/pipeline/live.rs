//! Counting while packets come: rows are handed on when nothing is expected to change them any
//! more.

use super::beside::Beside;
use super::sequencer::{Sequencer, Stage, StageError};
use crate::elements::ElementBatch;
use crate::inputs::{A_WHILE, BatchBuilder, CaptureClock, Feed, Taker};
use std::time::{Duration, Instant};

/// Takes packets as they come, and has rows handed on meanwhile.
pub(super) struct Live<'a, 't, S> {
    pub(super) sequencer: &'a mut Sequencer<S>,
    pub(super) beside: Vec<&'t mut dyn Beside>,
    /// Slices are final so long after their end; `None` is when all packets have come.
    pub(super) delay_ns: Option<i64>,
    clock: CaptureClock,
    settled: Instant,
}

impl<'a, 't, S: Stage> Live<'a, 't, S> {
    pub(super) fn new(
        sequencer: &'a mut Sequencer<S>,
        beside: Vec<&'t mut dyn Beside>,
        delay_ns: Option<i64>,
    ) -> Self {
        Self { sequencer, beside, delay_ns, clock: CaptureClock::new(), settled: Instant::now() }
    }

    fn settle(&mut self, now_ns: i64) -> Result<(), StageError> {
        self.settled = Instant::now();
        match self.delay_ns {
            Some(delay_ns) => {
                let final_ns = now_ns.saturating_sub(delay_ns);
                self.sequencer.settle(final_ns, delay_ns)
            }
            None => Ok(()),
        }
    }
}

impl<S: Stage, M: BatchBuilder<Batch = ElementBatch>> Taker<Feed<M>, StageError>
    for Live<'_, '_, S>
{
    fn take(
        &mut self,
        _number: usize,
        feed: &mut Feed<M>,
        packets: usize,
    ) -> Result<(), StageError> {
        let Feed { batch, cursor, .. } = feed;
        let first = cursor.packet;
        let end = first + packets;
        let element = cursor.element;
        self.sequencer.take(batch, cursor, end)?;
        for beside in &mut self.beside {
            beside.take(batch, first..end, element..cursor.element);
        }
        if self.delay_ns.is_some() {
            self.clock.note(&batch.times_ns[first..end]);
            if self.settled.elapsed() >= A_WHILE {
                self.settle(self.clock.of_packets())?;
            }
        }
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        self.delay_ns.map(|_| A_WHILE)
    }

    fn idle(&mut self) -> Result<(), StageError> {
        self.settle(self.clock.of_silence())
    }
}
