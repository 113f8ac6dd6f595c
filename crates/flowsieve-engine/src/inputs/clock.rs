//! The time in captures that are read while packets arrive.

use std::time::{Duration, Instant};

/// Time between two looks at what is final.
pub(crate) const A_WHILE: Duration = Duration::from_millis(50);

/// Packets that agree on how late it is: one with a wild time makes nothing final.
const WITNESSES: usize = 4;

/// The time in the capture, by its packets alone.
pub(crate) struct PacketClock {
    /// Times of the last packets, in a ring.
    last_ns: [i64; WITNESSES],
    packets: usize,
    now_ns: i64,
}

impl PacketClock {
    pub(crate) const fn new() -> Self {
        Self { last_ns: [i64::MAX; WITNESSES], packets: 0, now_ns: i64::MIN }
    }

    /// Notes a packet and returns the time: what the last packets agree on, and never less than
    /// before.
    #[inline]
    pub(crate) fn note(&mut self, time_ns: i64) -> i64 {
        self.last_ns[self.packets % WITNESSES] = time_ns;
        self.packets += 1;
        if self.packets >= WITNESSES {
            // All of the last packets are at least so late.
            let agreed_ns = self.last_ns.into_iter().min().unwrap_or(i64::MIN);
            self.now_ns = self.now_ns.max(agreed_ns);
        }
        self.now_ns
    }
}

/// The time in the capture: that of the packets, and while none arrive, that of this machine.
pub(crate) struct CaptureClock {
    packets: PacketClock,
    /// Arrivals of the last packets, in the same ring.
    came: [Instant; WITNESSES],
}

impl CaptureClock {
    pub(crate) fn new() -> Self {
        Self { packets: PacketClock::new(), came: [Instant::now(); WITNESSES] }
    }

    /// Takes note of packets that have come.
    pub(crate) fn note(&mut self, times_ns: &[i64]) {
        let now = Instant::now();
        for &time_ns in &times_ns[times_ns.len().saturating_sub(WITNESSES)..] {
            self.came[self.packets.packets % WITNESSES] = now;
            self.packets.note(time_ns);
        }
    }

    /// The time of the packets.
    pub(crate) const fn of_packets(&self) -> i64 {
        self.packets.now_ns
    }

    /// Returns the time as if packets had arrived since: the least sum of a last packet's time and
    /// the time since its arrival.
    pub(crate) fn of_silence(&self) -> i64 {
        let packets = self.packets.last_ns.iter().zip(&self.came).take(self.packets.packets);
        let now_ns = packets.map(|(last_ns, came)| {
            let since = i64::try_from(came.elapsed().as_nanos()).unwrap_or(i64::MAX);
            last_ns.saturating_add(since)
        });
        now_ns.min().unwrap_or(i64::MIN).max(self.packets.now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_in_real_time_keep_up_with_the_clock_however_few_they_are() {
        const GAP: Duration = Duration::from_millis(20);
        let mut clock = CaptureClock::new();
        for packet in 0..WITNESSES as u32 {
            clock.note(&[(GAP * packet).as_nanos() as i64]);
            std::thread::sleep(GAP);
        }
        assert!(clock.of_silence() >= (GAP * WITNESSES as u32).as_nanos() as i64);
    }

    #[test]
    fn a_few_wild_times_make_nothing_final() {
        let mut clock = CaptureClock::new();
        clock.note(&[10, 20, 30, 9_000_000, 9_000_000, 9_000_000]);
        assert_eq!(clock.of_packets(), 30);
        clock.note(&[40, 50]);
        assert_eq!(clock.of_packets(), 40);
        clock.note(&[5]);
        assert_eq!(clock.of_packets(), 40);
        assert!(clock.of_silence() >= 40);
    }
}
