//! Counting while packets come: rows are handed on when nothing is expected to change them any more.

use super::sequencer::{Sequencer, Stage, StageError};
use super::traffic::Traffic;
use crate::elements::Extractor;
use crate::inputs::{Feed, Taker};
use std::time::{Duration, Instant};

/// Time between two looks at what is final.
const A_WHILE: Duration = Duration::from_millis(50);

/// Packets that agree on how late it is: one with a wild time makes nothing final.
const WITNESSES: usize = 4;

/// What time it is in the capture: that of the packets, and while none come, that of this machine.
#[derive(Debug)]
pub(super) struct CaptureClock {
    /// Times of the last packets, in a ring.
    last_ns: [i64; WITNESSES],
    packets: usize,
    now_ns: i64,
    /// When it was so late.
    at: Instant,
}

impl CaptureClock {
    pub(super) fn new() -> Self {
        Self {
            last_ns: [i64::MAX; WITNESSES],
            packets: 0,
            now_ns: i64::MIN,
            at: Instant::now(),
        }
    }

    /// Takes note of packets that have come.
    pub(super) fn note(&mut self, times_ns: &[i64]) {
        for &time_ns in &times_ns[times_ns.len().saturating_sub(WITNESSES)..] {
            self.last_ns[self.packets % WITNESSES] = time_ns;
            self.packets += 1;
            if self.packets >= WITNESSES && self.agreed() > self.now_ns {
                self.now_ns = self.agreed();
                self.at = Instant::now();
            }
        }
        if self.packets < WITNESSES {
            self.at = Instant::now();
        }
    }

    /// All of the last packets are at least so late.
    fn agreed(&self) -> i64 {
        self.last_ns.iter().copied().min().unwrap_or(i64::MIN)
    }

    /// The time of the packets.
    pub(super) const fn of_packets(&self) -> i64 {
        self.now_ns
    }

    /// The same, if packets would have come since.
    pub(super) fn of_silence(&self) -> i64 {
        let since = i64::try_from(self.at.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let last_ns = match self.packets {
            0 => return i64::MIN,
            1..WITNESSES => self.agreed(),
            _ => self.now_ns,
        };
        last_ns.saturating_add(since)
    }
}

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

impl<S: Stage> Taker<Feed<Extractor>, StageError> for Live<'_, '_, S> {
    fn take(
        &mut self,
        _number: usize,
        feed: &mut Feed<Extractor>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wild_times_make_nothing_final() {
        let mut clock = CaptureClock::new();
        clock.note(&[10, 20, 9_000_000, 9_000_000, 9_000_000, 30, 40]);
        assert_eq!(clock.of_packets(), 10);
        clock.note(&[50, 60]);
        assert_eq!(clock.of_packets(), 30);
        clock.note(&[5]);
        assert_eq!(clock.of_packets(), 30);
        assert!(clock.of_silence() >= 30);
    }
}
