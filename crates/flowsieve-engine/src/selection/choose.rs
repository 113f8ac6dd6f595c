//! The choice itself, packet by packet.

use super::{Selection, TimeBound};
use crate::capture_filter::CaptureFilter;
use crate::trace::{LogBatch, PacketRef, Select};
use std::ops::Range;
use std::sync::OnceLock;

/// Chooses for all captures of a run.
#[derive(Debug)]
pub(super) struct Choose {
    selection: Selection,
    /// The range of time, once it is known: at once, or from the first packet of a stream on.
    range: OnceLock<Range<i64>>,
}

impl Choose {
    pub(super) fn new(selection: &Selection) -> Self {
        let choose = Self { selection: selection.clone(), range: OnceLock::new() };
        if selection.is_resolved() {
            choose.range(0);
        }
        choose
    }

    /// The range of time of captures that begin at this time.
    fn range(&self, start_ns: i64) -> &Range<i64> {
        self.range.get_or_init(|| {
            let time = |bound| match bound {
                TimeBound::At(time_ns) => time_ns,
                TimeBound::AfterStart(after) => start_ns.saturating_add(after),
                // Only files have an end, and their times are known before.
                TimeBound::BeforeEnd(_) => i64::MAX,
            };
            let from = self.selection.from.map_or(i64::MIN, time);
            from..self.selection.to.map_or(i64::MAX, time)
        })
    }

    /// Appends, for each time, whether it is in the range.
    fn choose_times(&self, times_ns: impl Iterator<Item = i64>, chosen: &mut Vec<bool>) {
        let mut times_ns = times_ns.peekable();
        let Some(&first_ns) = times_ns.peek() else { return };
        let Range { start, end } = *self.range(first_ns);
        // The latest time of all is outside only if the range has an end.
        let to_the_end = self.selection.to.is_none();
        chosen.extend(times_ns.map(|time| time >= start && (time < end || to_the_end)));
    }
}

impl Select for Choose {
    fn asks_dns_codes(&self) -> bool {
        self.selection.capture_filter.as_ref().is_some_and(CaptureFilter::asks_dns_codes)
    }

    fn choose_packets(&self, bytes: &[u8], packets: &[PacketRef], chosen: &mut Vec<bool>) {
        #[cfg(feature = "toy")]
        let first = chosen.len();
        self.choose_times(packets.iter().map(|packet| packet.time_ns), chosen);
        #[cfg(feature = "toy")]
        for (packet, chosen) in packets.iter().zip(&mut chosen[first..]) {
            *chosen &= packet.wire >= self.selection.toy_least;
        }
        if let Some(filter) = &self.selection.capture_filter {
            // Packets at the wrong time are not looked into, but where others stand among them.
            if chosen.contains(&true) {
                filter.choose(bytes, packets, chosen);
            }
        }
    }

    fn choose_entries(&self, log: LogBatch<'_>, chosen: &mut Vec<bool>) {
        self.choose_times(log.entries.iter().map(|entry| entry.time_ns), chosen);
        if let Some(filter) = &self.selection.capture_filter {
            let entries = log.entries.iter().zip(chosen);
            for (entry, chosen) in entries.filter(|(_, chosen)| **chosen) {
                *chosen = filter.matches_entry(log, entry);
            }
        }
    }
}
