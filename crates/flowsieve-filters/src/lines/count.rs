//! The count of a combination whose bits stand in lines: every element that is seen, and what was
//! missed beside them.
//!
//! The union martingale ([`DistinctCounter`]) adds 1 / (1 - u) when an element is seen, that is 1
//! for the element and u / (1 - u) for those that were missed beside it. The first part costs
//! nothing. The second is small as long as the filter is good, but costs more than the whole
//! insertion, since p is a product over eight words. So it is taken from a sample: of one seen
//! element in 2^s, chosen by bits of its digest that nothing else depends on, it is added 2^s
//! times. That leaves the count unbiased, and makes the variance of each seen element u / (1 - u) +
//! (2^s - 1) u² / (1 - u) instead of u / (1 - u).
//!
//! s depends on how many bits were written only, so that the same elements give the same count
//! however they come in batches. It is the largest with (2^s - 1) E p² ≤ E p / 8, at most 6: the
//! sample makes the standard error larger by 6 % or so at most. In a crowded filter (s = 0) every
//! new element is taken, with the probability over all lines in place of its own line's
//! ([`super::full`]).

use crate::Estimate;
use crate::hashing::Digest;
use crate::martingale::{Chances, DistinctCounter, Registers, Rise};
use crate::sizing::MAX_PROBES;

/// Written bits a bit of the array, in 1024ths, at which s falls from 6 to 5, from 5 to 4, and so
/// on to 0, for k = 1 to 32: -ln(1 - x) where (2^s - 1) (x + (1 - x) / 64)^k = 1/8. That is E p² /
/// E p in place of p, with Poisson numbers of bits in a word: where words are next to empty, few
/// elements have nearly all of the p. Numbers and not the formula, since logarithms differ in their
/// last bit from machine to machine.
const FALLS_AT: [[u64; MAX_SHIFT as usize]; MAX_PROBES] = [
    [0, 0, 0, 2, 27, 121],
    [31, 51, 82, 131, 218, 431],
    [121, 161, 216, 294, 420, 694],
    [227, 281, 352, 450, 599, 908],
    [332, 397, 480, 591, 756, 1088],
    [432, 505, 597, 717, 894, 1241],
    [526, 605, 703, 831, 1016, 1375],
    [614, 698, 801, 934, 1126, 1494],
    [695, 783, 891, 1028, 1225, 1600],
    [772, 863, 973, 1115, 1316, 1697],
    [843, 937, 1050, 1195, 1400, 1785],
    [910, 1007, 1122, 1269, 1477, 1866],
    [974, 1072, 1190, 1339, 1549, 1942],
    [1033, 1133, 1253, 1404, 1616, 2012],
    [1090, 1191, 1312, 1465, 1679, 2077],
    [1144, 1246, 1369, 1523, 1739, 2139],
    [1195, 1298, 1422, 1578, 1795, 2197],
    [1243, 1348, 1473, 1630, 1849, 2253],
    [1290, 1396, 1522, 1680, 1899, 2305],
    [1335, 1441, 1568, 1727, 1948, 2355],
    [1377, 1485, 1612, 1772, 1994, 2402],
    [1418, 1527, 1655, 1815, 2038, 2447],
    [1458, 1567, 1696, 1857, 2081, 2491],
    [1496, 1605, 1735, 1897, 2121, 2533],
    [1533, 1643, 1773, 1935, 2160, 2573],
    [1568, 1679, 1809, 1972, 2198, 2611],
    [1602, 1713, 1845, 2008, 2234, 2648],
    [1636, 1747, 1879, 2043, 2270, 2684],
    [1668, 1780, 1912, 2076, 2304, 2719],
    [1699, 1811, 1944, 2109, 2336, 2752],
    [1729, 1842, 1975, 2140, 2368, 2785],
    [1759, 1872, 2005, 2170, 2399, 2816],
];

/// Largest s.
const MAX_SHIFT: u32 = 6;

/// Rank up to which values raise no register beside an array of this many bits.
///
/// Registers are of use once the array misses values. Before, they would be raised by many: so a
/// large array, which misses none of its first values, has registers for the others. When it misses
/// one value, they have risen beyond the floor; what the floor costs is less than one value of the
/// count.
pub(super) fn floor(bits: u64) -> u8 {
    (bits >> 13).checked_ilog2().unwrap_or(0).min(6) as u8
}

/// Count of the distinct values of one combination in an array of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineCounter {
    probes: u32,
    /// Bits of the array.
    bits: u64,
    /// Whether it counts at all.
    on: bool,
    /// Values that were new to the lines.
    firsts: u64,
    /// Values that were new to the lines or to the registers.
    count: DistinctCounter,
    shift: u32,
    /// Written bits from which `shift` is another.
    falls_at: u64,
}

impl LineCounter {
    /// The count for values of `probes` (1 to 32) bits each in an array of `bits`.
    pub(crate) fn new(probes: u32, bits: u64) -> Self {
        let mut counter = Self {
            probes,
            bits,
            on: true,
            firsts: 0,
            count: DistinctCounter::above(floor(bits)),
            shift: MAX_SHIFT,
            falls_at: 0,
        };
        counter.follow(0);
        counter
    }

    /// A count to go on from, when `written` bits have been written into the array.
    pub(crate) fn restore(&mut self, firsts: u64, count: DistinctCounter, written: u64) {
        self.firsts = firsts;
        self.count = count.lifted(floor(self.bits));
        self.follow(written);
    }

    /// The same without a count: for filters of which only membership is asked.
    pub(crate) fn off(probes: u32, bits: u64) -> Self {
        Self { count: DistinctCounter::LOST, on: false, ..Self::new(probes, bits) }
    }

    /// Whether new values are counted: not where the count is not known any more.
    #[inline]
    pub(super) const fn counts(&self) -> bool {
        self.count.is_watched()
    }

    /// Whether a new value leaves a trace in the count, or its registers.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Bits that a value sets.
    pub(crate) const fn probes(&self) -> u32 {
        self.probes
    }

    /// New values so far, unless they are not known any more.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.counts().then_some(self.firsts)
    }

    /// The two parts of the count, to be saved.
    pub(crate) const fn parts(&self) -> (u64, &DistinctCounter) {
        (self.firsts, &self.count)
    }

    /// Whether nothing was ever counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.firsts == 0 && self.count.is_empty()
    }

    /// The count when `written` bits have been written, where the bits of a new value are all set,
    /// or not, with the probabilities that `chances` gives; by the fill if that is better.
    pub(crate) fn estimate(
        &self,
        written: u64,
        chances: impl FnOnce() -> (f64, f64),
        fill: impl FnOnce() -> Option<Estimate>,
    ) -> Option<Estimate> {
        let of_stream = |count: &DistinctCounter| {
            let (repeat, first) = chances();
            count.chances(repeat, first)
        };
        // What was missed is recorded beside the values of the sample only.
        let scale = f64::from(1_u32 << self.shift_at(written));
        self.count.estimate_with(of_stream, scale, fill)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        if self.on {
            *self = Self::new(self.probes, self.bits);
        }
    }

    /// What is known when the elements of another filter come in all at once
    /// ([`DistinctCounter::unite`]).
    pub(crate) fn unite(&mut self, other: &Self, written: u64) {
        self.firsts = self.firsts.saturating_add(other.firsts);
        self.count.unite(&other.count);
        self.follow(written);
    }

    /// The sample, if it is the same for each of the next `elements`, however many of them are new.
    #[inline]
    pub(super) fn sample(&mut self, written: u64, elements: usize) -> Option<Sample> {
        self.sample_until(written, written + u64::from(self.probes) * elements as u64)
    }

    /// The sample, if it is the same while more bits are written, until they are `most`.
    #[inline]
    pub(super) fn sample_until(&mut self, written: u64, most: u64) -> Option<Sample> {
        if written >= self.falls_at {
            self.follow(written);
        }
        (most < self.falls_at).then(|| self.current_sample())
    }

    /// The sample at the number of written bits that was last looked at.
    #[inline]
    pub(super) fn current_sample(&self) -> Sample {
        Sample::new(self.shift)
    }

    /// Whether the array is crowded: every new value is taken, with the probability over all lines.
    /// As of the number of written bits that was last looked at.
    #[inline]
    pub(super) const fn is_crowded(&self) -> bool {
        self.shift == 0
    }

    /// Whether it is when this many bits have been written.
    pub(crate) fn is_crowded_at(&self, written: u64) -> bool {
        self.shift_at(written) == 0
    }

    /// Records `firsts` values that were new to the lines.
    #[inline]
    pub(super) const fn add(&mut self, firsts: u64) {
        self.firsts += firsts;
        self.count.record_seen(firsts);
    }

    /// Records a value that was new to its register only.
    #[inline]
    pub(super) const fn add_risen(&mut self) {
        self.count.record_seen(1);
    }

    /// The sample when `written` bits have been written.
    #[inline]
    pub(super) fn sample_at(&mut self, written: u64) -> Sample {
        if written >= self.falls_at {
            self.follow(written);
        }
        self.current_sample()
    }

    /// Probabilities for a new value whose bits are all set, or not, with these.
    #[inline]
    pub(super) fn chances(&self, (repeat, first): (f64, f64)) -> Chances {
        self.count.chances(repeat, first)
    }

    /// Records what was missed beside a value of the sample that was seen, and returns how much.
    #[inline]
    pub(super) fn record_missed(&mut self, chances: Chances) -> f64 {
        self.count.record_missed(chances, f64::from(1_u32 << self.shift))
    }

    /// What the value raises, if it raises a register.
    #[inline]
    pub(super) fn rise(&self, digest: Digest) -> Option<Rise> {
        self.count.rise(digest)
    }

    /// Raises a register.
    #[inline]
    pub(super) fn raise(&mut self, rise: Rise) {
        self.count.raise(rise);
    }

    /// Bits that are all clear in a value that raises a register.
    #[inline]
    pub(super) const fn clear_bits(&self) -> u64 {
        self.count.clear_bits()
    }

    /// What is expected of the next value's part in the variance of the count after this many
    /// `elements`, if `written` bits have been written and its bits are all set with probability
    /// `repeat`.
    pub(crate) fn expected_variance(&self, elements: f64, written: f64, repeat: f64) -> f64 {
        let clear = (-written / self.bits as f64).exp();
        let unrisen = 1.0 - Registers::expected_rise(floor(self.bits), elements);
        let missed = repeat * unrisen;
        // E p² / E p in place of p, as for `FALLS_AT`.
        let uneven = (1.0 - clear + clear / 64.0).powi(self.probes as i32) * unrisen;
        let others = f64::from((1_u32 << self.shift_at(written as u64)) - 1);
        missed * others.mul_add(uneven, 1.0) / (1.0 - missed)
    }

    fn shift_at(&self, written: u64) -> u32 {
        let falls = self.falls();
        MAX_SHIFT - falls.iter().filter(|&&at| at <= written).count() as u32
    }

    /// Written bits at which the sample becomes another.
    fn falls(&self) -> [u64; MAX_SHIFT as usize] {
        FALLS_AT[self.probes as usize - 1].map(|share| {
            let at = u128::from(self.bits) * u128::from(share) / 1024;
            u64::try_from(at).unwrap_or(u64::MAX)
        })
    }

    fn follow(&mut self, written: u64) {
        self.shift = self.shift_at(written);
        let fallen = (MAX_SHIFT - self.shift) as usize;
        self.falls_at = self.falls().get(fallen).copied().unwrap_or(u64::MAX);
    }
}

/// One digest in 2^s: those whose lowest s bits are clear. The line depends on the highest bits,
/// and the bits in it on a mixture of all.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct Sample {
    mask: u64,
}

impl Sample {
    #[inline]
    pub(super) const fn new(shift: u32) -> Self {
        Self { mask: (1 << shift) - 1 }
    }

    /// The bits that are clear.
    #[inline]
    pub(super) const fn mask(self) -> u64 {
        self.mask
    }

    #[inline]
    pub(super) const fn has(self, digest: Digest) -> bool {
        digest.value() & self.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_thins_out_where_the_formula_says() {
        for (k, falls) in (1..).zip(FALLS_AT) {
            for (shift, at) in (1..=MAX_SHIFT).rev().zip(falls) {
                let p = 1.0 / (8.0 * f64::from((1_u32 << shift) - 1));
                let filled = (p.powf(1.0 / f64::from(k)) * 64.0 - 1.0) / 63.0;
                let load = -(1.0 - filled.max(0.0)).ln();
                assert!((load * 1024.0 - at as f64).abs() <= 0.5, "k {k} s {shift}");
            }
        }
    }

    /// Also where nothing was new since: other values wrote the bits.
    #[test]
    fn a_sample_follows_what_others_have_written() {
        let mut counter = LineCounter::new(4, 1024);
        assert!(counter.sample(0, 56).is_some());
        assert!(counter.sample(0, 57).is_none(), "s falls at 227");
        assert!(counter.sample(1 << 40, 1).is_some_and(|sample| sample.mask() == 0));
    }

    #[test]
    fn everything_is_in_the_sample_of_a_crowded_array() {
        let samples = |shift: u32, value: u64| {
            [0, 1].map(|more| Sample::new(shift).has(Digest::from_value(value << shift | more)))
        };
        let mut counter = LineCounter::new(4, 1024);
        let digest = |value| Digest::from_value(value);
        assert!(counter.sample(210, 4).is_some_and(|sample| sample.has(digest(0b100_0000))));
        assert!(counter.sample(210, 4).is_some_and(|sample| !sample.has(digest(0b10_0000))));
        assert!(counter.sample(210, 5).is_none(), "s falls at 227");
        assert!(counter.sample_at(227).has(digest(0b10_0000)));
        assert!(!counter.sample_at(227).has(digest(0b1_0000)) && !counter.is_crowded());
        assert!(counter.sample_at(908).has(digest(u64::MAX)) && counter.is_crowded());
        assert!(counter.is_crowded_at(908) && !counter.is_crowded_at(907));
        assert!(counter.sample(1 << 40, 32).is_some_and(|sample| sample.has(digest(1))));
        assert_eq!(samples(3, 5), [true, false]);
    }
}
