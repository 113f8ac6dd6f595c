//! The registers beside a filter: a small `HyperLogLog`.
//!
//! A digest belongs to one of 512 registers and has a rank of r or more with probability 2^(1-r),
//! from 1 to 50; a register is the highest rank that it has seen. Six bits of the digest are left
//! to samples (`lines/count.rs`), the next nine choose the register, and the zeros above them are
//! the rank: other bits than those that a filter's places come from, which are the highest or
//! mixtures of all.
//!
//! Reference: Flajolet, Fusy, Gandouet, Meunier, "`HyperLogLog`: the analysis of a near-optimal
//! cardinality estimation algorithm", `AofA` 2007; the estimator of a union is that of Ertl, "New
//! cardinality estimation algorithms for `HyperLogLog` sketches", 2017, algorithm 6.

use crate::Estimate;
use crate::hashing::Digest;

/// Registers of a byte each.
pub(crate) const REGISTERS: usize = 512;

/// Lowest bit of those that choose the register.
const INDEX_AT: u32 = 6;

/// Lowest bit of those that make the rank.
const RANK_AT: u32 = INDEX_AT + REGISTERS.trailing_zeros();

/// Highest rank: a register that has it is never raised.
const HIGHEST: u8 = (u64::BITS - RANK_AT) as u8 + 1;

/// Sum of [`chance`] over registers that are all 0.
const ALL: u64 = (REGISTERS as u64) << HIGHEST;

/// Registers, and what follows from them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Registers {
    ranks: [u8; REGISTERS],
    /// Ranks up to this are not distinguished.
    floor: u8,
    /// Sum of [`chance`] over the registers (Q).
    chances: u64,
    /// The lowest of them.
    least: u8,
    /// How many are as low.
    at_least: u16,
}

/// What raises a register.
#[derive(Clone, Copy)]
pub(crate) struct Rise {
    index: usize,
    rank: u8,
}

/// 2^50 times the probability that a new element of this register raises it.
const fn chance(rank: u8) -> u64 {
    if rank < HIGHEST { 1 << (HIGHEST - rank) } else { 0 }
}

impl Default for Registers {
    fn default() -> Self {
        Self::above(0)
    }
}

impl Registers {
    /// Registers that nothing raises: they say nothing, whatever is inserted.
    pub(crate) const SILENT: Self = Self::above(HIGHEST);

    /// Registers that only elements of a rank above `floor` raise: one in 2^`floor`, so that all
    /// others cost nothing.
    pub(crate) const fn above(floor: u8) -> Self {
        Self {
            ranks: [floor; REGISTERS],
            floor,
            chances: chance(floor) * REGISTERS as u64,
            least: floor,
            at_least: REGISTERS as u16,
        }
    }

    /// These registers, with no rank below `floor`.
    pub(crate) fn lifted(mut self, floor: u8) -> Self {
        self.floor = floor;
        for rank in &mut self.ranks {
            *rank = floor.max(*rank);
        }
        self.recount();
        self
    }

    /// Registers of these ranks; none if a rank is higher than any can be.
    pub(crate) fn of_ranks(ranks: &[u8; REGISTERS]) -> Option<Self> {
        ranks.iter().all(|&rank| rank <= HIGHEST).then(|| {
            let mut registers = Self { ranks: *ranks, ..Self::default() };
            registers.recount();
            registers
        })
    }

    /// Whether nothing raises them.
    pub(crate) const fn is_silent(&self) -> bool {
        self.floor == HIGHEST
    }

    /// The ranks.
    pub(crate) const fn ranks(&self) -> &[u8; REGISTERS] {
        &self.ranks
    }

    /// What an element would raise, if it raises a register.
    #[inline]
    pub(crate) fn rise(&self, digest: Digest) -> Option<Rise> {
        let index = (digest.value() >> INDEX_AT) as usize % REGISTERS;
        let zeros = (digest.value() >> RANK_AT).trailing_zeros() as u8;
        let rank = zeros.min(HIGHEST - 1) + 1;
        (rank > self.ranks[index]).then_some(Rise { index, rank })
    }

    /// Raises a register.
    pub(crate) fn raise(&mut self, Rise { index, rank }: Rise) {
        let before = std::mem::replace(&mut self.ranks[index], rank);
        self.chances = self.chances - chance(before) + chance(rank);
        if before == self.least {
            self.at_least -= 1;
            if self.at_least == 0 {
                self.recount();
            }
        }
    }

    /// Probability that a new element raises a register.
    #[inline]
    pub(crate) fn rise_probability(&self) -> f64 {
        self.chances as f64 / ALL as f64
    }

    /// The same as expected after this many elements, with registers above `floor`.
    pub(crate) fn expected_rise(floor: u8, elements: f64) -> f64 {
        let load = elements / REGISTERS as f64;
        let (mut below, mut sum) = (0.0, 0.0);
        for rank in floor..HIGHEST {
            // A register is at most r with probability e^(-load 2^-r), and raised with 2^-r.
            let rate = (-f64::from(rank)).exp2();
            let at_most = (-load * rate).exp();
            sum += rate * (at_most - below);
            below = at_most;
        }
        sum
    }

    /// Bits that are all clear in a digest that raises a register: few digests have them clear when
    /// all registers have risen.
    #[inline]
    pub(crate) const fn clear_bits(&self) -> u64 {
        let zeros = if self.least < HIGHEST { self.least } else { HIGHEST - 1 };
        ((1 << zeros) - 1) << RANK_AT
    }

    /// Makes these the registers of both inputs.
    pub(crate) fn unite(&mut self, other: &Self) {
        for (rank, &more) in self.ranks.iter_mut().zip(&other.ranks) {
            *rank = more.max(*rank);
        }
        self.recount();
    }

    /// The count of what raised them, for any order; none if they say nothing.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let mut of_rank = [0_u32; HIGHEST as usize + 1];
        for &rank in &self.ranks {
            of_rank[usize::from(rank)] += 1;
        }
        let [unseen, below @ .., highest] = &of_rank[usize::from(self.floor)..] else {
            return None;
        };
        if *highest > 0 {
            return None;
        }
        let m = REGISTERS as f64;
        let sum = below.iter().rev().fold(0.0, |sum, &count| 0.5 * (sum + f64::from(count)));
        let sum = sum + m * sigma(f64::from(*unseen) / m);
        // Those above the floor are a sample.
        let scale = f64::from(self.floor).exp2();
        let distinct = scale * m * m / (2.0 * std::f64::consts::LN_2 * sum);
        Some(Estimate::scattered(distinct, variance(distinct, scale)))
    }

    fn recount(&mut self) {
        self.chances = self.ranks.iter().map(|&rank| chance(rank)).sum();
        self.least = self.ranks.iter().copied().fold(HIGHEST, u8::min);
        let is_least = |&rank: &u8| u16::from(rank == self.least);
        self.at_least = self.ranks.iter().map(is_least).sum();
    }
}

/// Variance of the count of this many elements, of which one in `scale` is counted.
///
/// If the number of elements were Poisson, the estimator would nearly reach the bound that the
/// Fisher information of a register gives. The number is fixed, so its Poisson variance is
/// subtracted.
fn variance(elements: f64, scale: f64) -> f64 {
    let m = REGISTERS as f64;
    let load = elements / scale / m;
    if load <= 0.0 {
        return 0.0;
    }
    // A register is at most r with probability e^(-load 2^-r).
    let (mut below, mut slope_below, mut information) = (0.0, 0.0, 0.0);
    let mut rate = 1.0;
    for _ in 0..=HIGHEST {
        let at_most = (-load * rate).exp();
        let slope = -rate * at_most;
        let here = at_most - below;
        if here > 0.0 {
            information += (slope - slope_below) * (slope - slope_below) / here;
        }
        (below, slope_below) = (at_most, slope);
        rate /= 2.0;
    }
    (scale * scale * m / information - elements).max(0.0)
}

/// x + Σ x^(2^k) 2^(k-1) for k from 1 on (Ertl's σ); infinite for 1.
fn sigma(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (x, 1.0, x);
    loop {
        power *= power;
        let more = sum + power * factor;
        if more <= sum {
            return sum;
        }
        sum = more;
        factor += factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn insert(registers: &mut Registers, digest: Digest) -> bool {
        let rise = registers.rise(digest);
        if let Some(rise) = rise {
            assert_eq!(digest.value() & registers.clear_bits(), 0);
            registers.raise(rise);
        }
        rise.is_some()
    }

    /// Mean of 100 runs, whose scatter is a fifth of that of one register in 512.
    #[test]
    fn rises_are_as_rare_as_expected() {
        for (floor, elements) in [(0, 100_u32), (0, 3_000), (3, 3_000), (6, 40_000)] {
            let mean: f64 = (0..100)
                .map(|seed| {
                    let digester = Digester::new(seed);
                    let mut registers = Registers::above(floor);
                    for number in 0..elements {
                        insert(&mut registers, digester.digest(&number.to_le_bytes()));
                    }
                    registers.rise_probability() / 100.0
                })
                .sum();
            let expected = Registers::expected_rise(floor, elements.into());
            assert!((mean / expected - 1.0).abs() < 0.02, "{floor} {elements}: {mean} {expected}");
        }
        assert!((Registers::expected_rise(4, 0.0) - 1.0 / 16.0).abs() < 1e-15);
    }

    #[test]
    fn what_follows_from_the_ranks_is_kept() {
        let digester = Digester::new(1);
        let mut registers = Registers::above(2);
        for number in 0..40_000_u32 {
            insert(&mut registers, digester.digest(&number.to_le_bytes()));
            if number % 1000 == 0 {
                let again = Registers::of_ranks(&registers.ranks);
                assert_eq!(again.map(|it| it.lifted(2)), Some(registers.clone()));
            }
            assert!(!insert(&mut registers, digester.digest(&number.to_le_bytes())));
        }
        assert!(registers.least > 0);
        let mut silent = Registers::SILENT;
        let again = Registers::of_ranks(&silent.ranks);
        assert_eq!(again.map(|it| it.lifted(HIGHEST)), Some(silent.clone()));
        assert!(!insert(&mut silent, Digest::from_value(0)) && silent.estimate().is_none());
        assert!(Registers::of_ranks(&[HIGHEST + 1; REGISTERS]).is_none());
        for zeros in 0..64 {
            insert(&mut registers, Digest::from_value(1 << zeros));
        }
        insert(&mut registers, Digest::from_value(0));
        let again = Registers::of_ranks(&registers.ranks);
        assert_eq!(again.map(|it| it.lifted(2)), Some(registers));
    }

    /// Mean error and its scatter over 400 counts, in any order and beside the stated variance.
    #[test]
    fn counts_of_unions_are_as_exact_as_they_say() {
        assert_eq!(Registers::default().estimate().map(|e| e.distinct), Some(0.0));
        for (floor, elements) in [
            (0, 1_u64),
            (0, 10),
            (0, 100),
            (0, 500),
            (0, 1_000),
            (0, 2_000),
            (0, 10_000),
            (0, 50_000),
            (3, 1_000),
            (3, 5_000),
            (3, 50_000),
        ] {
            const RUNS: u64 = 400;
            let (mut sum, mut squares, mut stated) = (0.0, 0.0, 0.0);
            for seed in 0..RUNS {
                let digester = Digester::new(7_000 + seed);
                let mut halves = [Registers::above(floor), Registers::above(floor)];
                for number in 0..elements {
                    let digest = digester.digest(&number.to_le_bytes());
                    insert(&mut halves[number as usize % 2], digest);
                }
                let [mut one, other] = halves;
                one.unite(&other);
                let estimate = one.estimate().unwrap();
                let error = estimate.distinct - elements as f64;
                sum += error;
                squares += error * error;
                stated += estimate.variance;
            }
            let runs = RUNS as f64;
            let (mean, variance) = (sum / runs, squares / runs);
            let allowed = 4.0 * (variance / runs).sqrt() + 0.003 * elements as f64;
            assert!(mean.abs() < allowed, "{elements}: {mean}");
            let ratio = variance * runs / stated;
            assert!(elements < 100 || (0.72..1.38).contains(&ratio), "{elements}: {ratio}");
        }
    }
}
