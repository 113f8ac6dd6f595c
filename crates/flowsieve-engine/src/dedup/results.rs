//! The results of a run.

use crate::inputs::InputResult;

named_enum! {
    /// Reason that a packet was dropped.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum DropKind {
        /// An IP packet that was seen before.
        Packet = "packet",
        /// A frame whose bytes were seen before.
        Frame = "frame",
        /// A TCP segment with data that was seen before.
        Retransmission = "retransmission",
        /// The same, with data that the other side had confirmed already.
        SpuriousRetransmission = "spurious_retransmission",
        /// A TCP keep-alive that was seen before.
        KeepAlive = "keep_alive",
        /// A packet of a flow that was seen before.
        Flow = "flow",
    }
}

/// Packets and captured bytes, and what was dropped of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drops {
    /// Packets read.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
    /// Captured bytes of the packets dropped.
    pub dropped_bytes: u64,
    /// Packets dropped, by kind.
    pub by_kind: [u64; DropKind::ALL.len()],
}

impl Drops {
    /// Packets dropped.
    pub fn dropped(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Packets kept.
    pub fn kept(&self) -> u64 {
        self.packets - self.dropped()
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: u32, dropped: Option<DropKind>) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        if let Some(kind) = dropped {
            self.dropped_bytes += u64::from(bytes);
            self.by_kind[kind as usize] += 1;
        }
    }
}

/// One time slice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DedupSlice {
    /// Its first nanosecond.
    pub start_ns: i64,
    /// The first one behind it.
    pub end_ns: i64,
    /// Its packets.
    pub drops: Drops,
}

/// Statistics of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowReport {
    /// Memory that the window and its filter took at last, in bytes.
    pub memory_bytes: u64,
    /// Packets that the filter called new.
    pub first: u64,
    /// Packets that it called repeats, and that were looked up among the digests.
    pub looked_up: u64,
    /// Packets that left the window early, for want of memory.
    pub left_early: u64,
    /// The least that the window reached back then, in nanoseconds or packets.
    pub least_reach: Option<u64>,
    /// Expected number of packets dropped wrongly, if nothing was looked up and the filter was not
    /// too full to tell.
    pub expected_wrong: Option<f64>,
}

/// The result of a run.
#[derive(Debug)]
pub struct DedupSummary {
    /// One an input, in the order given.
    pub inputs: Vec<InputResult>,
    /// Over everything.
    pub totals: Drops,
    /// Packets that could not be dropped: they have no flow, are no TCP segments with data, or have
    /// a time out of range in a window of time.
    pub not_compared: u64,
    /// The run was ended before the inputs were.
    pub interrupted: bool,
    /// Packets with a time before that of the packet before them.
    pub out_of_order: u64,
    /// The time slices in the order of time, if asked for.
    pub slices: Vec<DedupSlice>,
    /// Packets that are in no slice, since there were too many slices.
    pub outside_slices: u64,
    /// Statistics of the window.
    pub window: WindowReport,
}
