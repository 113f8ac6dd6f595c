//! Saving, loading and uniting matrices.

use super::MatrixFilter;
use crate::Estimate;
use crate::fill;
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use std::io;

impl FilterState for MatrixFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        for single in &self.singles {
            state.distinct(Some(&single.counter))?;
        }
        state.flag(self.united)?;
        for &first in &self.firsts {
            state.count(first)?;
        }
        state.bits(&self.bits)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        for single in &mut self.singles {
            single.counter = state.lasting_distinct()?;
        }
        self.united = state.flag()?;
        for first in &mut self.firsts {
            *first = state.count()?;
        }
        state.bits(&mut self.bits)?;
        self.recount();
        Ok(())
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        // The raw counts of a union are unknown, unless one side is empty.
        if self.bits.ones() == 0 {
            self.firsts.clone_from(&other.firsts);
            self.united = other.united;
        } else if other.bits.ones() != 0 {
            self.united = true;
        }
        let probes = self.probes;
        let sizes = || self.sizes.iter();
        let of_both: Vec<[Option<Estimate>; 2]> = self
            .singles
            .iter()
            .zip(&other.singles)
            .zip(sizes())
            .map(|(both, &size)| [both.0, both.1].map(|one| Some(one.estimate(size, probes))))
            .collect();
        self.bits.unite(&other.bits);
        self.recount();
        let singles = self.singles.iter_mut().zip(&other.singles);
        for (((single, more), of_both), &size) in singles.zip(of_both).zip(&self.sizes) {
            let fill = fill::independent(single.ones, size as f64, probes);
            single.counter.unite(&more.counter, of_both, fill);
        }
        Ok(())
    }
}

impl MatrixFilter {
    /// Recounts the set cells of each attribute alone.
    fn recount(&mut self) {
        for step in self.layout.steps.iter().skip(1).filter(|step| step.parent == 0) {
            let cells =
                (0..self.sizes[step.attribute]).map(|index| step.constant + index * step.stride);
            self.singles[step.attribute].ones =
                cells.filter(|&cell| self.bits.get(cell)).count() as u64;
        }
    }
}
