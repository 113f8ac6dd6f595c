//! Rows of windows that slide, from those of their panes.

use super::results::SliceResult;
use super::time_slice::SliceGrid;
use std::collections::VecDeque;

/// The panes of the last window. Panes come in the order of time.
pub(super) struct WindowRows {
    panes: u16,
    grid: SliceGrid,
    /// Panes with packets: their numbers, packets and elements.
    held: VecDeque<(i64, u64, u64)>,
    packets: u64,
    elements: u64,
}

impl WindowRows {
    /// Windows of `panes` panes.
    pub(super) const fn new(panes: u16, grid: SliceGrid) -> Self {
        Self { panes, grid, held: VecDeque::new(), packets: 0, elements: 0 }
    }

    /// Makes the row of pane `index` that of the window that ends with it: its counts are the
    /// window's already, and its packets become so.
    pub(super) fn widen(&mut self, index: i64, row: &mut SliceResult) {
        let first = index.saturating_sub(i64::from(self.panes) - 1);
        while let Some(&(pane, packets, elements)) = self.held.front()
            && pane < first
        {
            self.held.pop_front();
            self.packets -= packets;
            self.elements -= elements;
        }
        if row.packets > 0 {
            self.held.push_back((index, row.packets, row.elements));
            self.packets += row.packets;
            self.elements += row.elements;
        }
        (row.packets, row.elements) = (self.packets, self.elements);
        row.start_ns = self.grid.bounds(first).0;
    }
}
