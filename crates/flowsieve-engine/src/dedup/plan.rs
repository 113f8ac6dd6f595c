//! The plan of a run, as data.

use crate::decode::Tunnel;
use crate::inputs::{PlanError, RunError};
use crate::memory::can_allocate;
use crate::plan::TracePlan;
use crate::trace::Source;

named_enum! {
    /// Definition of equal packets.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Sameness {
        /// The same IP packet, whatever happened to its link header, its TTL and its header
        /// checksum.
        Packet = "packet",
        /// The same captured bytes.
        Frame = "frame",
        /// The same TCP segment sent again.
        Retransmission = "retransmission",
        /// The same flow.
        Flow = "flow",
    }
}

/// Further properties that distinguish IP packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they go together in any way"
)]
pub struct Difference {
    /// The VLANs that they were in.
    pub vlan: bool,
    /// The link-layer addresses; the whole link header where it is not Ethernet's.
    pub mac: bool,
    /// The TTL or hop limit.
    pub ttl: bool,
    /// The input and the interface that they were captured on.
    pub interface: bool,
}

/// Window in which a packet is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WindowWidth {
    /// With what was seen up to this many nanoseconds before.
    Time(i64),
    /// With the packets before it in a window of this many, itself included.
    Packets(u64),
}

/// Bytes of each packet that are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SnapLength {
    /// At most this many bytes.
    Bytes(u32),
    /// The headers: of the link, of IP with its extension headers, and of what IP carries; with
    /// [`Tunnel::Inner`] those inside tunnels, too.
    Headers,
}

named_enum! {
    /// The filter that follows the window.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum WindowFilterKind {
        /// d-left counting filter.
        Dleft = "dleft",
        /// Split counting filter.
        SplitCounting = "split-counting",
        /// Counting filter.
        Counting = "counting",
        /// Three Bloom filters in lines, used in turn.
        Rotating = "rotating",
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct DedupPlan {
    /// The inputs. There is one thread that reads and compares if packets are written, or if a
    /// packet alone does not say what it is compared by.
    pub trace: TracePlan,
    /// Definition of equal packets.
    pub by: Sameness,
    /// Further properties that distinguish IP packets.
    pub distinguish: Difference,
    /// Window in which a packet is compared.
    pub window: WindowWidth,
    /// The filter that follows the window.
    pub filter: WindowFilterKind,
    /// Drop what the filter calls a repeat, without looking it up.
    pub approximate: bool,
    /// Memory of the window and its filter, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each packet that are written; `None` for all that was captured. Packets are
    /// compared as they were captured.
    pub snap_length: Option<SnapLength>,
    /// Width of the slices that are reported, in nanoseconds; `None` without slices.
    pub slice_ns: Option<i64>,
    /// Seed of the digests; `None` for a random one. As long as nothing is approximate, only how often
    /// the filter spared a look-up depends on it.
    pub seed: Option<u64>,
}

/// Least memory, in bytes.
pub(super) const LEAST_MEMORY_BYTES: u64 = 256 << 10;

/// Most memory, in bytes: the window's positions have 31 bits.
pub(super) const MOST_MEMORY_BYTES: u64 = 1 << 36;

impl DedupPlan {
    /// IP packets that were seen up to 50 ms before, in 64 MiB, each confirmed by its digest.
    ///
    /// ```
    /// use flowsieve_engine::dedup::{DedupPlan, WindowWidth};
    ///
    /// let plan = DedupPlan { window: WindowWidth::Packets(5), ..DedupPlan::new(["mirror.pcap"]) };
    /// assert_eq!(plan.check(), Ok(()));
    /// ```
    pub fn new(inputs: impl IntoIterator<Item = impl Into<Source>>) -> Self {
        Self {
            trace: TracePlan::new(inputs),
            by: Sameness::Packet,
            distinguish: Difference::default(),
            window: WindowWidth::Time(50_000_000),
            filter: WindowFilterKind::Rotating,
            approximate: false,
            memory_bytes: 64 << 20,
            snap_length: None,
            slice_ns: None,
            seed: None,
        }
    }

    /// Checks that the parts go together.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), PlanError> {
        let fail = |reason: &str| Err(PlanError::new(reason));
        if self.by != Sameness::Packet && self.distinguish != Difference::default() {
            return fail(
                "--distinguish belongs to --by packet: the others leave nothing out of account",
            );
        }
        if self.by == Sameness::Frame && self.trace.headers.tunnel == Tunnel::Inner {
            return fail(
                "--by frame compares whole frames: leave out --tunnel inner, or choose another rule",
            );
        }
        if self.approximate && self.filter != WindowFilterKind::Rotating {
            return fail(
                "--approximate keeps no digests, by which the others know what to remove: it goes with --filter rotating",
            );
        }
        if !(LEAST_MEMORY_BYTES..=MOST_MEMORY_BYTES).contains(&self.memory_bytes) {
            return fail("--memory is from 256KiB to 64GiB");
        }
        match self.window {
            WindowWidth::Packets(0) => {
                fail("a window of packets includes the packet itself: it is 1p or more, such as 5p")
            }
            WindowWidth::Packets(1) if self.approximate => {
                fail("a window of 1p has no earlier packet: ask for 2p or more")
            }
            WindowWidth::Time(width) if width < 0 => fail("a window is not negative"),
            _ => match self.slice_ns {
                Some(width) if width <= 0 => fail("a time slice has a width above 0, such as 1s"),
                _ => Ok(()),
            },
        }
    }

    /// Asks the system whether it would give the memory of an approximate window, which is taken at
    /// once.
    ///
    /// # Errors
    ///
    /// It would not.
    #[doc(hidden)]
    pub fn check_memory(&self) -> Result<(), RunError> {
        if !self.approximate || can_allocate(self.memory_bytes) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "the window takes {} bytes, which this machine does not give; ask for less with --memory",
            self.memory_bytes
        )))
    }
}
