//! Windows that slide: the last panes of a shard's time, counted after each of them.
//!
//! A slice of the grid is a pane. What an element was last seen in is a pane, so the distinct
//! elements of a window are those last seen in one of its panes ([`PaneCounts`]): exactly, by a map
//! of all elements of the window, and estimated, by a [`SlidingBitmap`].

use super::byte_map::{ByteMap, ExactSet, Put};
use super::shard_spec::{ShardSpec, ShardTally, SliceCounts};
use crate::filters::{Counter, CounterSpec, PaneCounts, SlidingBitmap};

/// The windows of a shard. Panes come in the order of time.
#[derive(Debug)]
pub(super) struct ShardWindow {
    panes: u16,
    /// The last pane that came.
    last: Option<i64>,
    exact: Option<LastSeen>,
    estimated: Option<SlidingBitmap>,
}

impl ShardWindow {
    /// Returns the windows of a shard, if they slide.
    pub(super) fn new(spec: &ShardSpec) -> Option<Self> {
        let panes = spec.panes?;
        Some(Self {
            panes,
            last: None,
            exact: spec.window_limit_bytes.map(|limit_bytes| LastSeen::new(limit_bytes, panes)),
            estimated: match spec.counter {
                Some(CounterSpec::Sliding { cells, .. }) => {
                    Some(SlidingBitmap::new(cells as usize, panes))
                }
                _ => None,
            },
        })
    }

    /// A pane without elements, and what the window that ends with it has.
    pub(super) fn pass(&mut self, pane: i64) -> ShardTally {
        self.skip_to(pane);
        self.pass_one();
        self.tally()
    }

    /// A pane's elements, and what the window that ends with it has.
    pub(super) fn take(
        &mut self,
        pane: i64,
        exact: Option<&ExactSet>,
        counter: Option<&mut Counter>,
    ) -> ShardTally {
        self.skip_to(pane);
        if let Some((last_seen, elements)) = self.exact.as_mut().zip(exact) {
            last_seen.begin();
            last_seen.take(elements);
        }
        if let Some((estimated, Counter::Pane(cells))) = self.estimated.as_mut().zip(counter) {
            estimated.take(cells);
        }
        self.tally()
    }

    /// Ends the panes without elements that lie before this one.
    fn skip_to(&mut self, pane: i64) {
        let since =
            self.last.replace(pane).map_or(0, |last| i128::from(pane) - i128::from(last) - 1);
        // Nothing is left after a whole window.
        for _ in 0..since.clamp(0, self.panes.into()) {
            self.pass_one();
        }
    }

    fn pass_one(&mut self) {
        self.exact.iter_mut().for_each(LastSeen::begin);
        self.estimated.iter_mut().for_each(SlidingBitmap::pass);
    }

    fn tally(&self) -> ShardTally {
        let exact = self.exact.as_ref().and_then(LastSeen::distinct);
        let counts = SliceCounts {
            estimate: self.estimated.as_ref().map(SlidingBitmap::estimate),
            exact,
            exact_over_limit: self.exact.is_some() && exact.is_none(),
            ..SliceCounts::default()
        };
        ShardTally { counts, ..ShardTally::default() }
    }
}

/// The elements of the last panes, each with the pane in which it was last seen.
#[derive(Debug)]
struct LastSeen {
    elements: ByteMap<u32>,
    counts: PaneCounts,
    panes: u16,
    limit_bytes: u64,
    /// Panes that began.
    now: u32,
    /// Elements of earlier panes were lost for want of memory: from this one on windows have an
    /// answer again.
    whole_from: u32,
}

/// Elements that are too old, above which they are removed: no fewer, and no fewer than the others.
const MANY: u64 = 1024;

impl LastSeen {
    fn new(limit_bytes: u64, panes: u16) -> Self {
        Self {
            elements: ByteMap::new(limit_bytes),
            counts: PaneCounts::new(panes),
            panes,
            limit_bytes,
            now: 0,
            whole_from: 0,
        }
    }

    /// A pane begins.
    fn begin(&mut self) {
        let (now, live) = (self.now, self.counts.live());
        let held = self.elements.distinct().unwrap_or(0);
        if now == u32::MAX {
            self.forget();
            self.now = 0;
            self.whole_from = 0;
        } else if held - live > live.max(MANY) {
            self.remove_old();
        }
        self.now += 1;
        self.counts.advance(self.now.into());
    }

    /// Takes the elements of the pane that began.
    fn take(&mut self, pane: &ExactSet) {
        let now = self.now;
        if pane.distinct().is_none() {
            self.lose();
            return;
        }
        pane.for_each(|element, ()| match self.elements.put(element, now) {
            Put::New => self.counts.see(None, now.into()),
            Put::Known(last) => self.counts.see(Some(last.into()), now.into()),
            Put::Refused => {}
        });
        if self.elements.distinct().is_none() {
            self.lose();
        }
    }

    fn remove_old(&mut self) {
        let (now, panes) = (self.now, u32::from(self.panes));
        let old = std::mem::replace(&mut self.elements, ByteMap::new(self.limit_bytes));
        old.for_each(|element, last| {
            if now - last < panes {
                self.elements.put(element, last);
            }
        });
    }

    /// The elements of this pane are not known: windows with it have no answer.
    fn lose(&mut self) {
        self.forget();
        self.counts.advance(self.now.into());
        self.whole_from = self.now.saturating_add(self.panes.into());
    }

    fn forget(&mut self) {
        self.elements = ByteMap::new(self.limit_bytes);
        self.counts = PaneCounts::new(self.panes);
    }

    fn distinct(&self) -> Option<u64> {
        (self.now >= self.whole_from).then_some(self.counts.live())
    }
}
