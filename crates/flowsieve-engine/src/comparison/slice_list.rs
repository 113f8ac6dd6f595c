//! The list that is kept of each slice, and everything that was read.

use super::negatives::{Asking, Questions};
use super::results::{Comparison, JudgedSlice};
use super::truth::Counted;
use crate::elements::ElementColumns;
use crate::hashing::Digest;
use crate::memory::can_allocate;
use std::sync::Arc;

/// Digests of a slice's first sightings, in the order of the trace, and the questions about it.
#[derive(Default)]
pub(super) struct SliceList {
    /// Digests of whole elements.
    pub(super) whole: Vec<Digest>,
    /// Digests of attributes, one element after the other.
    pub(super) attributes: Vec<Digest>,
    pub(super) questions: Option<Questions>,
}

impl SliceList {
    pub(super) fn bytes(&self) -> usize {
        let questions = self.questions.as_ref().map_or(0, Questions::bytes);
        (self.whole.capacity() + self.attributes.capacity()) * size_of::<Digest>() + questions + 256
    }

    /// Appends these elements; `None` if the system does not give the memory.
    pub(super) fn extend(
        &mut self,
        elements: &ElementColumns,
        numbers: &[u32],
        asking: &Asking,
    ) -> Option<()> {
        let (whole, attributes) = (&mut self.whole, &mut self.attributes);
        let kind = asking.counted.kind;
        let values = numbers.len() * kind.arity();
        for (digests, more) in [(&mut *whole, numbers.len()), (&mut *attributes, values)] {
            if digests.len() + more > digests.capacity() {
                let bytes = 2 * (digests.len() + more) * size_of::<Digest>();
                can_allocate(bytes as u64).then_some(())?;
                digests.try_reserve(more).ok()?;
            }
        }
        for &number in numbers {
            let number = number as usize;
            whole.push(elements.digests[number]);
            let values = kind.values(elements.keys.get(number), kind.all());
            attributes.extend(values.map(|(_, value)| asking.digester.digest(value)));
        }
        Some(())
    }
}

/// A closed slice: its number, its truth, and its list while that is kept.
pub(super) struct ClosedList {
    /// Number of the slice in the grid.
    pub(super) index: i64,
    pub(super) slice: JudgedSlice,
    /// `None` if the truth passed its limit, and once it was evaluated.
    pub(super) list: Option<Arc<SliceList>>,
}

/// The slices of the whole trace.
pub(super) struct Collected {
    /// The slices, in the order in which they closed.
    pub(super) slices: Vec<ClosedList>,
    pub(super) slices_omitted: u64,
    pub(super) counted: Counted,
    /// The comparison of earlier slices, if not all slices were kept.
    pub(super) evaluated: Option<Comparison>,
}

impl Collected {
    /// Puts the slices into the order of time.
    pub(super) fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.slices.len()).collect();
        order.sort_by_key(|&number| self.slices[number].index);
        if let Some(evaluated) = &mut self.evaluated {
            for it in evaluated.entries.iter_mut().flat_map(|entry| &mut entry.replicates) {
                it.first = in_order(&it.first, &order);
                it.estimates = in_order(&it.estimates, &order);
            }
        }
        self.slices.sort_by_key(|closed| closed.index);
    }
}

/// Puts the counts of slices in this order, with 0 for a slice that has none.
fn in_order<T: Copy + Default>(counts: &[T], order: &[usize]) -> Vec<T> {
    let order = order.iter().filter(|_| !counts.is_empty());
    order.map(|&number| counts.get(number).copied().unwrap_or_default()).collect()
}
