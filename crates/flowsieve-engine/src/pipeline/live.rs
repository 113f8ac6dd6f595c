//! Counting while packets come: rows are emitted when nothing is expected to change them.

use super::observer::Observer;
use super::sequencer::{Sequencer, Stage, StageError};
use crate::elements::{Cursor, ElementBatch};
use crate::inputs::{A_WHILE, BatchBuilder, CaptureClock, Feed, PacketConsumer, Together};
use std::time::{Duration, Instant};

/// Consumes packets as they come, and emits rows meanwhile.
pub(super) struct Live<'a, 't, S> {
    pub(super) sequencer: &'a mut Sequencer<S>,
    pub(super) observers: Vec<&'t mut dyn Observer>,
    /// Time after their end at which slices are final; `None` if that is when all packets have come.
    pub(super) delay_ns: Option<i64>,
    /// Packet time at which the next pane closes, if windows slide.
    pane_ends_ns: Option<i64>,
    clock: CaptureClock,
    emitted: Instant,
}

impl<'a, 't, S: Stage> Live<'a, 't, S> {
    pub(super) fn new(
        sequencer: &'a mut Sequencer<S>,
        observers: Vec<&'t mut dyn Observer>,
        delay_ns: Option<i64>,
    ) -> Self {
        let pane_ends_ns = delay_ns.filter(|_| sequencer.slides()).map(|_| i64::MIN);
        let (clock, emitted) = (CaptureClock::new(), Instant::now());
        Self { sequencer, observers, delay_ns, pane_ends_ns, clock, emitted }
    }

    /// Takes packets up to number `end` where windows slide. A pane closes at the packet that moves
    /// packet time past its end and the delay, however many packets come at once.
    fn take_by_pane(
        &mut self,
        batch: &mut ElementBatch,
        cursor: &mut Cursor,
        end: usize,
        (mut ends_ns, delay_ns): (i64, i64),
    ) -> Result<(), StageError> {
        while cursor.packet < end {
            let mut times_ns = batch.times_ns[cursor.packet..end].iter();
            let last = times_ns.position(|&time_ns| {
                self.clock.note(&[time_ns]);
                self.clock.of_packets() >= ends_ns
            });
            let until = last.map_or(end, |last| cursor.packet + last + 1);
            self.sequencer.take(batch, cursor, until)?;
            if last.is_some() {
                let final_ns = self.clock.of_packets().saturating_sub(delay_ns);
                ends_ns = self.sequencer.end_panes(final_ns)?.saturating_add(delay_ns);
            }
        }
        self.pane_ends_ns = Some(ends_ns);
        Ok(())
    }

    fn emit_final(&mut self, now_ns: i64) -> Result<(), StageError> {
        self.emitted = Instant::now();
        match self.delay_ns {
            Some(delay_ns) => {
                let final_ns = now_ns.saturating_sub(delay_ns);
                self.sequencer.emit_final(final_ns, delay_ns)
            }
            None => Ok(()),
        }
    }
}

impl<S: Stage, M: BatchBuilder<Batch = ElementBatch>> PacketConsumer<Feed<M>, StageError>
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
        let panes = self.pane_ends_ns.zip(self.delay_ns);
        match panes {
            Some(panes) => self.take_by_pane(batch, cursor, end, panes)?,
            None => self.sequencer.take(batch, cursor, end)?,
        }
        for observer in &mut self.observers {
            observer.observe(batch, first..end, element..cursor.element);
        }
        if self.delay_ns.is_some() {
            if panes.is_none() {
                self.clock.note(&batch.times_ns[first..end]);
            }
            if self.emitted.elapsed() >= A_WHILE {
                self.emit_final(self.clock.of_packets())?;
            }
        }
        Ok(())
    }

    fn take_together(&mut self, inputs: &mut Together<'_, Feed<M>>) -> Result<bool, StageError> {
        let unobserved = self.observers.is_empty() && self.delay_ns.is_none();
        Ok(unobserved && self.sequencer.take_together(inputs)?)
    }

    fn patience(&self) -> Option<Duration> {
        self.delay_ns.map(|_| A_WHILE)
    }

    fn idle(&mut self) -> Result<(), StageError> {
        self.emit_final(self.clock.of_silence())
    }
}
