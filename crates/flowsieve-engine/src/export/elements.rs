//! Elements that leave, until rows are made of them.

use super::rows::{ExportRows, Left};
use super::table::SliceTable;
use crate::elements::ElementKind;
use std::ops::Range;
use std::sync::Arc;

/// Rows that are made together: few enough that their columns stay in the second-level cache.
const ROWS_AT_ONCE: usize = 1024;

/// Elements that left their slice's table, in the order in which they were first seen. Copies are
/// the same elements.
#[derive(Clone, Debug)]
pub struct ElementRows {
    table: Arc<SliceTable>,
    kind: ElementKind,
    left: Left,
}

impl ElementRows {
    pub(super) fn new(table: SliceTable, kind: ElementKind, left: Left) -> Self {
        Self { table: Arc::new(table), kind, left }
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Makes rows of the elements with these numbers, which `take` takes some at a time.
    ///
    /// # Errors
    ///
    /// `take` failed.
    pub fn make<E>(
        &self,
        range: Range<usize>,
        take: &mut dyn FnMut(&mut ExportRows) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = ExportRows::default();
        for first in range.clone().step_by(ROWS_AT_ONCE) {
            let numbers = first..range.end.min(first + ROWS_AT_ONCE);
            self.table.write(numbers, self.kind, self.left, &mut rows);
            take(&mut rows)?;
            rows.clear();
        }
        Ok(())
    }

    /// Returns what tells how many bytes of their memory are not given back yet.
    pub(super) fn memory(&self) -> impl Fn() -> u64 + use<> {
        let (table, bytes) = (Arc::downgrade(&self.table), self.table.bytes());
        move || if table.strong_count() > 0 { bytes } else { 0 }
    }
}
