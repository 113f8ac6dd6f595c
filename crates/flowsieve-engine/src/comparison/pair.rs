//! Two structures compared: which of them was nearer to the truth, slice by slice.

use super::Contender;
use super::results::{Comparison, CountErrors, Entry, JudgedSlice, SliceCount};

/// Two structures at one memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PairResult {
    /// Slices that are judged and have elements.
    pub slices: u64,
    /// Distinct elements in them, slice by slice.
    pub exact: u64,
    /// Slices in which both were equally far from the truth.
    pub equal: u64,
    /// The two, in the order in which they were asked for.
    pub sides: [PairSide; 2],
}

/// One of the two.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSide {
    /// Which structure.
    pub contender: Contender,
    /// Most bytes that it used in a slice.
    pub memory_bytes: Option<u64>,
    /// Which of its counts is compared with the truth.
    pub count: CountKind,
    /// Slices in which it was nearer to the truth than the other one.
    pub nearer: u64,
    /// Errors of that count.
    pub errors: CountErrors,
    /// Errors of its estimate, if it has one.
    pub estimate: Option<CountErrors>,
}

/// A count of a structure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CountKind {
    /// Elements called new.
    Raw,
    /// The unbiased estimate.
    Estimate,
}

/// Why there is nothing to say of two structures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoPair {
    /// One of them does not run in this memory.
    Unfit {
        /// Which one.
        contender: Contender,
        /// Why not.
        why: String,
    },
    /// One of them was not compared.
    Missing(Contender),
    /// No slice is judged and has elements.
    NoSlice,
}

impl CountKind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Estimate => "estimate",
        }
    }

    /// The raw count if the structure has one, else its estimate.
    fn of(entry: &Entry, slices: &[JudgedSlice]) -> Option<(Self, CountErrors)> {
        let raw = entry.first_errors(slices).map(|errors| (Self::Raw, errors));
        let estimate = || Some((Self::Estimate, entry.estimate_errors(slices)?));
        raw.or_else(estimate)
    }

    /// How far this count is from the truth.
    fn distance(self, count: &SliceCount, exact: u64) -> Option<f64> {
        let counted = match self {
            Self::Raw => count.first.map(|first| first as f64),
            Self::Estimate => count.estimate,
        };
        Some((counted? - exact as f64).abs())
    }
}

impl Comparison {
    /// The entry of a structure in a memory; the exact set knows no memory.
    pub fn entry(&self, contender: Contender, memory: u64) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| {
            entry.contender == contender
                && entry.memory_asked_bytes.is_none_or(|asked| asked == memory)
        })
    }

    /// How far a structure's raw count, or else its estimate, is from the truth in each slice, as a
    /// share of it; nothing where a slice is not judged or has no elements.
    pub fn distances(&self, contender: Contender, memory: u64) -> Vec<Option<f64>> {
        let entry = self.entry(contender, memory);
        let kind = entry.and_then(|entry| CountKind::of(entry, &self.slices));
        let Some((entry, (kind, _))) = entry.zip(kind) else {
            return vec![None; self.slices.len()];
        };
        let counts = self.slices.iter().zip(&entry.counts);
        counts
            .map(|(slice, count)| {
                let exact = slice.exact.filter(|&exact| exact > 0)?;
                Some(kind.distance(count, exact)? / exact as f64)
            })
            .collect()
    }

    /// Compares two structures in a memory: raw count against raw count, as published; a
    /// structure without one takes part by its estimate.
    ///
    /// # Errors
    ///
    /// One of them is not there, or there is no slice to judge them by.
    pub fn pair(&self, pair: [Contender; 2], memory: u64) -> Result<PairResult, NoPair> {
        let side = |contender: Contender| {
            let entry = self.entry(contender, memory);
            let entry = entry.ok_or(NoPair::Missing(contender))?;
            if let Some(why) = &entry.unfit {
                let why = why.clone();
                return Err(NoPair::Unfit { contender, why });
            }
            let (count, errors) = CountKind::of(entry, &self.slices).ok_or(NoPair::NoSlice)?;
            Ok(PairSide {
                contender,
                memory_bytes: entry.memory_bytes,
                count,
                nearer: 0,
                errors,
                estimate: entry.estimate_errors(&self.slices),
            })
        };
        let [first, second] = pair;
        let mut result =
            PairResult { slices: 0, exact: 0, equal: 0, sides: [side(first)?, side(second)?] };
        let distances = pair.map(|contender| self.distances(contender, memory));
        for (slice, (a, b)) in self.slices.iter().zip(distances[0].iter().zip(&distances[1])) {
            let (Some(a), Some(b)) = (a, b) else {
                continue;
            };
            result.slices += 1;
            result.exact += slice.exact.unwrap_or(0);
            if a < b {
                result.sides[0].nearer += 1;
            } else if b < a {
                result.sides[1].nearer += 1;
            } else {
                result.equal += 1;
            }
        }
        Ok(result)
    }
}
