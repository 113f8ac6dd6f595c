//! Counting while packets come: rows are handed on when nothing is expected to change them any more.

use super::sequencer::{Sequencer, Stage, StageError};
use super::traffic::Traffic;
use crate::elements::ElementBatch;
use crate::inputs::{A_WHILE, CaptureClock, Feed, Maker, Taker};
use std::time::{Duration, Instant};

/// Takes packets as they come, and has rows handed on meanwhile.
pub(super) struct Live<'a, 't, S> {
    pub(super) sequencer: &'a mut Sequencer<S>,
    pub(super) traffic: Option<&'t mut Traffic>,
    /// Slices are final so long after their end; `None` is when all packets have come.
    pub(super) delay_ns: Option<i64>,
    clock: CaptureClock,
    settled: Instant,
}

impl<'a, 't, S: Stage> Live<'a, 't, S> {
    pub(super) fn new(
        sequencer: &'a mut Sequencer<S>,
        traffic: Option<&'t mut Traffic>,
        delay_ns: Option<i64>,
    ) -> Self {
        Self {
            sequencer,
            traffic,
            delay_ns,
            clock: CaptureClock::new(),
            settled: Instant::now(),
        }
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

impl<S: Stage, M: Maker<Batch = ElementBatch>> Taker<Feed<M>, StageError> for Live<'_, '_, S> {
    fn take(
        &mut self,
        _number: usize,
        feed: &mut Feed<M>,
        packets: usize,
    ) -> Result<(), StageError> {
        let Feed { batch, cursor, .. } = feed;
        let first = cursor.packet;
        let end = first + packets;
        if let Some(traffic) = &mut self.traffic {
            traffic.add(&batch.addresses[first..end]);
        }
        self.sequencer.take(batch, cursor, end)?;
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
