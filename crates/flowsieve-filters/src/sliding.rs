//! A sliding bitmap: counts the distinct elements of the last k panes of time, after each of them.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► level (0 for 15 of 16 elements, 1 for 15 of the next 16, …) and a cell of it
//!     level 0  ┌──┬──┬──┬──┬──┬──┬──┬──┐  3/4 of the cells
//!              │ 7│ 0│ 9│ 9│ 4│ 0│ 8│ 9│  each keeps the last pane in which it was hit
//!     level 1  └──┴──┴──┴──┴──┴──┴──┴──┘  1/20 of the cells each, for more elements than level 0 can hold
//! ```
//!
//! A cell takes two bytes, and one bit of the [`PaneBitmap`], which collects the cells that a pane
//! hits. Several panes may be filled at the same time; they end one after another.
//!
//! # Operations
//!
//! - [`PaneBitmap::insert`]: set the bit of the element's cell.
//! - [`SlidingBitmap::take`]: end a pane; its cells get its number.
//! - [`SlidingBitmap::estimate`]: estimate the elements from the cells hit in the last k panes.
//!
//! # Formulas
//!
//! Level l has `m_l` cells, and a share `s_l` of the elements goes to them. With `o_l` of them hit,
//! the most likely n solves the first line:
//!
//! ```text
//!     P(a cell is hit) = 1 - exp(-λ_l),   λ_l = n s_l / m_l
//!     Σ (s_l / m_l) o_l / (1 - exp(-λ_l)) = 1          I(n) = Σ s_l² / (m_l (exp(λ_l) - 1))
//!     variance = 1 / I(n) - n                          bias = ½ (Σ s_l³ / (m_l² (exp(λ_l) - 1)) / I(n)² - Σ s_l λ_l)
//! ```
//!
//! Only n (n - 1) / 2 pairs of elements can share a cell, so the variance is multiplied by (n - 1)
//! / n, which matters for few elements. The bias is subtracted. With one level these are the
//! formulas of linear counting: variance m (eᵗ - t - 1) and bias ½ (eᵗ - t - 1) at t = n / m.
//!
//! # Limits
//!
//! It only counts: it is no [`MembershipFilter`](super::MembershipFilter).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::SlidingBitmap;
//!
//! // 1,000 elements a second, of which half were there in the second before: 30,500 in a minute.
//! let hasher = Digester::new(0);
//! let mut window = SlidingBitmap::new(20_000, 60);
//! let mut pane = window.pane();
//! for second in 0..100_u32 {
//!     for number in 0..1_000 {
//!         pane.insert(hasher.digest(&(500 * second + number).to_le_bytes()));
//!     }
//!     window.take(&mut pane);
//! }
//! let count = window.estimate();
//! assert!((count.distinct - 30_500.0).abs() < 4.0 * count.std_error());
//! ```
//!
//! References: Whang, Vander-Zanden, Taylor, "A linear-time probabilistic counting algorithm for
//! database applications", TODS 1990; Kim, `O'Hallaron`, "Counting network flows in real time",
//! GLOBECOM 2003 (times in the cells); Estan, Varghese, Fisk, "Bitmap algorithms for counting
//! active flows on high speed links", IMC 2003 (levels). The estimator of all levels together is
//! the method of maximum likelihood.

use super::estimate::{Basis, Estimate, Seen};
use crate::hashing::{Digest, mix, reduce};

/// Number of levels. The last one takes the remaining elements, one in 16^5.
const LEVELS: usize = 6;

/// Binary logarithm of the ratio of a level's elements to those of the next level.
const SHARE_BITS: u32 = 4;

/// Stream of [`mix`] for the choice of a cell.
const CELL: u64 = 0x51;

/// Cells of a level are whole words of a [`PaneBitmap`].
const WORD: usize = 64;

/// The number of items that were last seen in each of the last k panes.
#[derive(Clone, Debug)]
pub struct PaneCounts {
    counts: Box<[u64]>,
    live: u64,
}

impl PaneCounts {
    /// Creates empty counts for `panes` panes (k).
    ///
    /// # Panics
    ///
    /// If there is no pane.
    pub fn new(panes: u16) -> Self {
        assert!(panes > 0, "a window has panes");
        Self { counts: vec![0; panes.into()].into(), live: 0 }
    }

    /// Begins pane `now`, which follows the last one. Drops the items that were last seen in pane
    /// `now - k`.
    pub fn advance(&mut self, now: u64) {
        self.live -= std::mem::take(self.of(now));
    }

    /// Records an item in pane `now` that was last seen in pane `last`.
    #[inline]
    pub fn see(&mut self, last: Option<u64>, now: u64) {
        match last {
            Some(last) if now - last < self.counts.len() as u64 => *self.of(last) -= 1,
            _ => self.live += 1,
        }
        *self.of(now) += 1;
    }

    /// Returns the number of items that were seen in the last k panes.
    pub const fn live(&self) -> u64 {
        self.live
    }

    fn of(&mut self, pane: u64) -> &mut u64 {
        let panes = self.counts.len() as u64;
        &mut self.counts[(pane % panes) as usize]
    }
}

/// Where the cells of each level begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Layout {
    first: usize,
    other: usize,
}

impl Layout {
    /// Divides at most `cells` cells among the levels, at least one word each.
    fn of(cells: usize) -> Self {
        let other = (cells / 20 / WORD).max(1) * WORD;
        let rest = cells.saturating_sub((LEVELS - 1) * other);
        Self { first: (rest / WORD).max(1) * WORD, other }
    }

    const fn cells(self) -> usize {
        self.first + (LEVELS - 1) * self.other
    }

    fn cells_of(self, level: usize) -> std::ops::Range<usize> {
        if level == 0 {
            return 0..self.first;
        }
        let begin = self.first + (level - 1) * self.other;
        begin..begin + self.other
    }

    #[inline]
    fn cell(self, digest: Digest) -> usize {
        let mixed = mix(digest, CELL);
        let level = (mixed.trailing_zeros() / SHARE_BITS).min(LEVELS as u32 - 1) as usize;
        let cells = self.cells_of(level);
        cells.start + reduce(mixed, cells.len() as u64) as usize
    }

    /// Returns the share of the elements that goes to a level.
    fn share(level: usize) -> f64 {
        let reached = 2_f64.powi(-(SHARE_BITS as i32) * level as i32);
        if level + 1 == LEVELS {
            reached
        } else {
            reached * (1.0 - 2_f64.powi(-(SHARE_BITS as i32)))
        }
    }

    /// Returns the most likely number of elements, given the number of cells of each level that
    /// were hit.
    fn estimate(self, hit: [u64; LEVELS]) -> Estimate {
        let seen: u64 = hit.iter().sum();
        if seen == 0 {
            return Estimate::default();
        }
        let levels: [Level; LEVELS] = std::array::from_fn(|level| Level {
            rate: Self::share(level) / self.cells_of(level).len() as f64,
            share: Self::share(level),
            hit: hit[level] as f64,
        });
        // The left side of the equation is falling and convex, and above 1 at this n, so Newton's
        // steps approach the solution from below.
        let mut n = seen as f64;
        for _ in 0..STEPS {
            let (above, slope) = levels.iter().fold((-1.0, 0.0), |(above, slope), level| {
                let filled = -(-n * level.rate).exp_m1();
                let term = level.rate * level.hit / filled;
                (above + term, slope + term * level.rate * (1.0 - filled) / filled)
            });
            let step = above / slope;
            // If every cell is hit, there is no solution.
            if !step.is_finite() || step <= n * PRECISION || n * levels[LEVELS - 1].rate > FULL {
                break;
            }
            n += step;
        }
        let (mut information, mut curvature, mut collisions, mut new) = (0.0, 0.0, 0.0, 0.0);
        for (level, cells) in
            levels.iter().zip((0..).map(|level| self.cells_of(level).len() as f64))
        {
            let odds = level.share * level.rate / (n * level.rate).exp_m1();
            information += odds;
            curvature += odds * level.rate;
            collisions += level.share * n * level.rate;
            new += level.share * (1.0 - level.hit / cells);
        }
        let bias = 0.5 * (curvature / (information * information) - collisions);
        let missed = (1.0 - new) / new;
        Estimate {
            distinct: (n - bias).max(seen as f64),
            variance: ((1.0 / information - n) * (1.0 - n.recip())).max(0.0),
            basis: if missed.is_finite() {
                Basis::Stream(Seen::of_stream(seen, missed))
            } else {
                Basis::Scatter
            },
        }
    }
}

/// A level, as the estimator sees it.
#[derive(Clone, Copy)]
struct Level {
    /// Share of all elements that goes to one cell.
    rate: f64,
    share: f64,
    hit: f64,
}

/// Most steps to the solution. Each doubles the number while it is far too small.
const STEPS: usize = 100;

/// Relative precision of the solution.
const PRECISION: f64 = 1e-9;

/// Elements for each cell of the last level at which the search stops: all cells are hit.
const FULL: f64 = 30.0;

/// The cells that the elements of a pane hit.
#[derive(Clone, Debug)]
pub struct PaneBitmap {
    layout: Layout,
    words: Vec<u64>,
}

impl PaneBitmap {
    /// Creates an empty bitmap of about this many cells.
    pub fn new(cells: usize) -> Self {
        let layout = Layout::of(cells);
        Self { layout, words: vec![0; layout.cells() / WORD] }
    }

    /// Sets the bit of an element's cell.
    #[inline]
    pub fn insert(&mut self, digest: Digest) {
        let cell = self.layout.cell(digest);
        self.words[cell / WORD] |= 1 << (cell % WORD);
    }

    /// Returns the count of this pane alone, as [`SlidingBitmap::estimate`] of a window of one
    /// pane.
    pub fn estimate(&self) -> Estimate {
        self.layout.estimate(std::array::from_fn(|level| {
            let cells = self.layout.cells_of(level);
            let words = &self.words[cells.start / WORD..cells.end / WORD];
            words.iter().map(|word| u64::from(word.count_ones())).sum()
        }))
    }

    /// Returns the bytes of the bits.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(&self.words[..]) as u64
    }

    /// Clears the bitmap.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

/// Counts the distinct elements of the last k panes.
#[derive(Clone, Debug)]
pub struct SlidingBitmap {
    layout: Layout,
    /// The last pane that hit each cell, and 0 for none.
    last: Vec<u16>,
    now: u16,
    panes: u16,
    live: [PaneCounts; LEVELS],
}

impl SlidingBitmap {
    /// Most panes of a window.
    pub const MAX_PANES: u16 = 4096;

    /// Fewest bytes of the cells.
    const MIN_BYTES: u64 = 1024;

    /// Returns the bytes of the counts of cells that were last hit in each of `panes` panes.
    pub const fn pane_bytes(panes: u16) -> u64 {
        panes as u64 * (LEVELS * size_of::<u64>()) as u64
    }

    /// Returns the fewest bytes of a window of `panes` panes.
    pub const fn least_bytes(panes: u16) -> u64 {
        Self::MIN_BYTES + Self::pane_bytes(panes)
    }

    /// Returns the cells of a window of `panes` panes within this many bytes, at least
    /// [`Self::least_bytes`].
    pub const fn cells_within(bytes: u64, panes: u16) -> u64 {
        // A cell takes two bytes and a bit.
        bytes.saturating_sub(Self::pane_bytes(panes)) * 8 / 17
    }

    /// Returns the bytes of this many cells and panes, with the bitmap of one pane.
    pub fn bytes_of(cells: u64, panes: u16) -> u64 {
        Layout::of(cells as usize).cells() as u64 * 17 / 8 + Self::pane_bytes(panes)
    }

    /// Creates an empty window of `panes` panes (k) with about this many cells.
    ///
    /// # Panics
    ///
    /// If there is no pane, or more than [`Self::MAX_PANES`].
    pub fn new(cells: usize, panes: u16) -> Self {
        assert!(panes <= Self::MAX_PANES, "a window has too many panes");
        let layout = Layout::of(cells);
        Self {
            layout,
            last: vec![0; layout.cells()],
            now: 0,
            panes,
            live: std::array::from_fn(|_| PaneCounts::new(panes)),
        }
    }

    /// Creates an empty pane for this window.
    pub fn pane(&self) -> PaneBitmap {
        PaneBitmap { layout: self.layout, words: vec![0; self.last.len() / WORD] }
    }

    /// Ends a pane without elements.
    pub fn pass(&mut self) {
        if self.now == u16::MAX {
            // Lower the numbers of all panes by a multiple of the window, so that the counts keep
            // their places.
            let lower = (self.now - self.panes) / self.panes * self.panes;
            for last in &mut self.last {
                *last = last.saturating_sub(lower);
            }
            self.now -= lower;
        }
        self.now += 1;
        for level in &mut self.live {
            level.advance(self.now.into());
        }
    }

    /// Ends a pane and clears its bitmap.
    ///
    /// # Panics
    ///
    /// If the pane has other cells than this window.
    pub fn take(&mut self, pane: &mut PaneBitmap) {
        assert_eq!(self.layout, pane.layout, "a pane belongs to its window");
        self.pass();
        let now = self.now;
        for (level, live) in self.live.iter_mut().enumerate() {
            let cells = self.layout.cells_of(level);
            let words = &mut pane.words[cells.start / WORD..cells.end / WORD];
            let last = &mut self.last[cells];
            for (word, last) in words.iter_mut().zip(last.chunks_exact_mut(WORD)) {
                let mut bits = std::mem::take(word);
                while bits != 0 {
                    let cell = &mut last[bits.trailing_zeros() as usize];
                    let before = std::mem::replace(cell, now);
                    live.see((before > 0).then_some(before.into()), now.into());
                    bits &= bits - 1;
                }
            }
        }
    }

    /// Returns the count of the last k panes, with its standard error.
    pub fn estimate(&self) -> Estimate {
        let hit = std::array::from_fn(|level| self.live[level].live());
        self.layout.estimate(hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use std::collections::HashSet;

    /// Mean, spread and bounds over many runs are those of the formulas, from few elements to far
    /// more than cells.
    #[test]
    fn errors_are_as_stated() {
        const RUNS: u64 = 300;
        for n in [1_u32, 50, 1_000, 4_000, 20_000, 200_000] {
            let (mut sum, mut squares, mut variance, mut held) = (0.0, 0.0, 0.0, 0_u32);
            for seed in 0..RUNS {
                let digester = Digester::new(seed);
                let mut pane = PaneBitmap::new(4_000);
                for i in 0..n {
                    pane.insert(digester.digest(&i.to_le_bytes()));
                }
                let estimate = pane.estimate();
                let error = estimate.distinct - f64::from(n);
                sum += error;
                squares += error * error;
                variance += estimate.variance;
                let above = estimate.upper().is_none_or(|upper| u64::from(n) <= upper);
                held += u32::from(estimate.lower() <= n.into() && above);
            }
            let runs = RUNS as f64;
            let (mean, sd) = (sum / runs, (squares / runs).sqrt());
            let stated = (variance / runs).sqrt();
            assert!(
                mean.abs() <= 4.0 * stated / runs.sqrt() + 0.01,
                "{n}: bias {mean}, stated {stated}"
            );
            // The relative error of a standard deviation of 300 runs is 1 / √600 = 4.1 %.
            if n >= 1_000 {
                assert!((sd / stated - 1.0).abs() < 4.0 * 0.041, "{n}: {sd}, stated {stated}");
            }
            assert!(held >= 277, "{n}: bounds held in {held} of {RUNS}");
        }
    }

    /// Collisions of few elements are rare: over many windows the error is the stated one.
    #[test]
    fn the_stated_error_of_few_elements_is_not_too_large() {
        for n in [1_u32, 2, 5, 20] {
            let (mut squares, mut variance) = (0.0, 0.0);
            let mut pane = PaneBitmap::new(600);
            for seed in 0..40_000 {
                pane.clear();
                (0..n).for_each(|i| pane.insert(Digester::new(seed).digest(&i.to_le_bytes())));
                let estimate = pane.estimate();
                squares += (estimate.distinct - f64::from(n)).powi(2);
                variance += estimate.variance;
            }
            assert!(n > 1 || variance < 40_000.0 * 1e-5, "{variance}");
            let ratio = squares / variance;
            assert!(n == 1 || (0.75..1.3).contains(&ratio), "{n}: {ratio}");
        }
    }

    /// A window has the cells that any of its panes hit, for any number of panes, also after their
    /// numbers wrap around.
    #[test]
    fn a_window_is_the_union_of_its_panes() {
        for panes in [1_u16, 2, 7, 60] {
            let digester = Digester::new(panes.into());
            let mut window = SlidingBitmap::new(512, panes);
            window.now = u16::MAX - 100;
            let mut pane = window.pane();
            let mut past: Vec<PaneBitmap> = Vec::new();
            for number in 0..400_u32 {
                if number % 11 < 3 {
                    window.pass();
                    past.push(window.pane());
                } else {
                    for i in 0..number % 40 {
                        pane.insert(digester.digest(&(number * 5 + i).to_le_bytes()));
                    }
                    past.push(pane.clone());
                    window.take(&mut pane);
                }
                let mut union = window.pane();
                for pane in past.iter().rev().take(panes.into()) {
                    for (all, word) in union.words.iter_mut().zip(&pane.words) {
                        *all |= word;
                    }
                }
                assert_eq!(window.estimate(), union.estimate(), "{panes} {number}");
            }
        }
    }

    #[test]
    fn counts_of_panes_are_those_of_sets() {
        let mut counts = PaneCounts::new(5);
        let mut last = std::collections::HashMap::new();
        let mut past: Vec<HashSet<u64>> = Vec::new();
        for now in 1..200_u64 {
            counts.advance(now);
            let seen: HashSet<u64> = (0..now % 13).map(|i| (now * 3 + i * i) % 50).collect();
            for &thing in &seen {
                counts.see(last.insert(thing, now), now);
            }
            past.push(seen);
            let window: HashSet<_> = past.iter().rev().take(5).flatten().collect();
            assert_eq!(counts.live(), window.len() as u64, "{now}");
        }
    }

    #[test]
    fn memory_is_what_was_asked_for() {
        for bytes in [1024, 5000, 32 << 10, 1 << 20] {
            let bytes = bytes + SlidingBitmap::least_bytes(60) - SlidingBitmap::MIN_BYTES;
            let cells = SlidingBitmap::cells_within(bytes, 60);
            let window = SlidingBitmap::new(cells as usize, 60);
            let counts: usize = window.live.iter().map(|level| size_of_val(&*level.counts)).sum();
            let cell_bytes = 2 * window.last.len() as u64 + window.pane().memory_bytes();
            let taken = cell_bytes + counts as u64;
            assert!(taken <= bytes && taken + 200 + bytes / 50 > bytes, "{taken} of {bytes}");
            assert_eq!(SlidingBitmap::bytes_of(cells, 60), taken);
        }
    }
}
