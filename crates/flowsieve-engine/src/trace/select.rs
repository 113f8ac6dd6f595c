//! Selects packets of a capture before anything else looks at them.

use super::annotation::Annotation;
use super::packet::{LogBatch, LogEntry, PacketRef};
use super::record::Records;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Selects packets of a capture, or records of a log. All others are as if they were not in it.
pub trait Select: fmt::Debug + Send + Sync {
    /// Appends, for each packet, whether it is wanted. The packets point into `bytes`.
    fn choose_packets(&self, bytes: &[u8], packets: &[PacketRef], chosen: &mut Vec<bool>);

    /// Appends, for each record of a log, whether it is wanted.
    fn choose_entries(&self, log: LogBatch<'_>, chosen: &mut Vec<bool>);

    /// Returns whether it tests types or response codes of DNS messages.
    fn asks_dns_codes(&self) -> bool {
        false
    }
}

/// The selection for one capture, and the number of packets or records that it excluded.
pub(super) struct Chooser {
    select: Arc<dyn Select>,
    /// For each packet of the present batch whether it is wanted.
    chosen: Vec<bool>,
    /// Counts the excluded packets.
    pub(super) left_out: Arc<AtomicU64>,
}

impl Chooser {
    pub(super) fn new(select: Arc<dyn Select>, left_out: Arc<AtomicU64>) -> Self {
        Self { select, chosen: Vec::new(), left_out }
    }

    pub(super) fn asks_dns_codes(&self) -> bool {
        self.select.asks_dns_codes()
    }

    /// Returns the same selection for another reader, with its own count.
    pub(super) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.select), Arc::default())
    }

    /// Returns the same selection for another reader, with the same count.
    pub(super) fn shared(&self) -> Self {
        Self::new(Arc::clone(&self.select), Arc::clone(&self.left_out))
    }

    /// Removes the packets that are not wanted, with their records.
    pub(super) fn packets(
        &mut self,
        bytes: &[u8],
        packets: &mut Vec<PacketRef>,
        records: Option<&mut Records>,
        earlier: usize,
    ) {
        self.chosen.clear();
        self.select.choose_packets(bytes, packets, &mut self.chosen);
        debug_assert_eq!(self.chosen.len(), packets.len());
        if !self.count() {
            return;
        }
        if let Some(records) = records {
            stay_before(&mut records.annotations[earlier..], &self.chosen);
            keep(&mut records.batch, &self.chosen);
        }
        keep(packets, &self.chosen);
    }

    /// Removes the records of a log that are not wanted.
    pub(super) fn entries(&mut self, entries: &mut Vec<LogEntry>, text: &[u8]) {
        self.chosen.clear();
        let log = LogBatch { entries, text };
        self.select.choose_entries(log, &mut self.chosen);
        debug_assert_eq!(self.chosen.len(), entries.len());
        if self.count() {
            let mut chosen = self.chosen.iter();
            entries.retain(|_| chosen.next().is_none_or(|&wanted| wanted));
        }
    }

    /// Counts the excluded packets; returns whether there are any.
    fn count(&self) -> bool {
        let left_out = self.chosen.iter().filter(|&&wanted| !wanted).count() as u64;
        if left_out > 0 {
            self.left_out.fetch_add(left_out, Ordering::Relaxed);
        }
        left_out > 0
    }
}

/// Keeps the items that were chosen, in their order. There may be no items at all. No branch
/// depends on the choice, which no predictor knows.
fn keep<T: Copy>(items: &mut Vec<T>, chosen: &[bool]) {
    let mut kept = 0;
    for (from, &wanted) in (0..items.len()).zip(chosen) {
        items[kept] = items[from];
        kept += usize::from(wanted);
    }
    items.truncate(kept);
}

/// Adjusts the places of annotations to the packets that stay.
fn stay_before(annotations: &mut [Annotation], chosen: &[bool]) {
    for annotation in annotations {
        let before = chosen.iter().take(annotation.before as usize);
        annotation.before = before.filter(|&&wanted| wanted).count() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::super::annotation::AnnotationKind;
    use super::super::packet::LinkType;
    use super::super::record::RecordRef;
    use super::*;

    /// Wants packets at even times.
    #[derive(Debug)]
    struct Even;

    impl Select for Even {
        fn choose_packets(&self, _: &[u8], packets: &[PacketRef], chosen: &mut Vec<bool>) {
            chosen.extend(packets.iter().map(|packet| packet.time_ns % 2 == 0));
        }

        fn choose_entries(&self, log: LogBatch<'_>, chosen: &mut Vec<bool>) {
            chosen.extend(log.entries.iter().map(|entry| entry.time_ns % 2 == 0));
        }
    }

    #[test]
    fn records_stay_with_their_packets_and_annotations_between_them() {
        let packet = |time_ns: i64| PacketRef {
            time_ns,
            start: time_ns as u32,
            captured: 0,
            wire: 0,
            link: LinkType::ETHERNET,
        };
        let mut packets: Vec<PacketRef> = [1, 2, 3, 4, 6, 7].map(packet).to_vec();
        let mut records = Records::default();
        let all = packets.iter().map(|packet| RecordRef::of(packet, 0));
        records.batch.extend(all);
        // One of an earlier batch of which nothing was wanted, and one before each packet and at
        // the end.
        for before in [0, 0, 1, 2, 3, 4, 5, 6] {
            records.annotations.push(Annotation::for_test(AnnotationKind::Custom, before));
        }
        let mut chooser = Chooser::new(Arc::new(Even), Arc::default());
        chooser.packets(&[], &mut packets, Some(&mut records), 1);
        assert_eq!(packets, [2, 4, 6].map(packet));
        let starts: Vec<u32> = records.batch.iter().map(|record| record.start).collect();
        assert_eq!(starts, [2, 4, 6]);
        let places: Vec<u32> = records.annotations.iter().map(|one| one.before).collect();
        assert_eq!(places, [0, 0, 0, 1, 1, 2, 3, 3]);
        assert_eq!(chooser.left_out.load(Ordering::Relaxed), 3);
    }
}
