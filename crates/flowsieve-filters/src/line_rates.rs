//! False-positive rates of filters in cache lines, as pure functions: eight 64-bit words a line,
//! one bit in each of k consecutive words (cyclic, from a random one).
//!
//! More than eight bits lie in ⌈k / 8⌉ lines, which are chosen independently. So an element in two
//! lines acts like two elements, and the rate of a query is the product of the rates of its lines.
//!
//! # How many lines an element takes
//!
//! The lines fill unevenly, which costs memory: the lower the rate, the more. Memory relative to
//! that of a standard filter of the same rate with its best k:
//!
//! | rate | standard, bits an element | one line | two | three | four |
//! |---|---|---|---|---|---|
//! | 1e-2 | 9.59 | 1.04 | 1.01 | 1.01 | 1.00 |
//! | 1e-3 | 14.4 | 1.09 | 1.02 | 1.01 | 1.01 |
//! | 1e-4 | 19.2 | 1.23 | 1.04 | 1.02 | 1.01 |
//! | 1e-6 | 28.8 | 1.80 | 1.09 | 1.04 | 1.02 |
//! | 1e-8 | 38.3 | 3.10 | 1.23 | 1.07 | 1.04 |
//! | 1e-12 | 57.5 | | 1.80 | 1.23 | 1.09 |
//!
//! With one line up to 24 bits an element, two up to 48, and three up to 72, the factor is at most
//! 1.24. [`best_line_probes`] takes no more lines than that, since each is a cache miss, and fewer
//! if they reach a rate of 1e-12.

use super::lines::{LineShape, shares};
use super::sizing::{DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES, least_size};

/// Bits an element for each line, up to which one more line does not pay.
const BITS_A_LINE: f64 = 24.0;

/// Rate below which further lines do not pay.
const LOW_ENOUGH: f64 = 1e-12;

/// Words of a line.
const WORDS: u32 = 8;

/// Sets of up to eight words.
const SETS: usize = 1 << WORDS;

/// Higher rates are computed by the alternating sum, which is cheap and cancels to about 1e-13.
const CANCELS_BELOW: f64 = 1e-4;

/// Most lines that are tried: 2^40 bytes.
const MOST_LINES: u64 = 1 << 34;

/// Returns the false-positive rate of a blocked filter: lines of eight 64-bit words, k consecutive
/// words of a line (cyclic, from a random one) probed with one bit each.
///
/// Exact for a Poisson number of elements a line: [`shared_blocked_fpr`] with one kind of element.
pub fn blocked_fpr(lines: f64, probes: u32, elements: f64) -> f64 {
    LinesOf::cache(lines).fpr(probes, elements)
}

/// Returns the false-positive rate of a query with `probes` (1 to 32) in a blocked filter into
/// which several kinds of elements are written, each given by its number `n_j` of distinct elements
/// and its `k_j` (1 to 32).
///
/// Exact for a Poisson number of elements a line. With `λ_j = n_j / lines` the number of elements
/// of kind j that begin at word s is Poisson with mean `λ_j / 8`, so by inclusion and exclusion
/// over the probes T that are clear
///
/// ```text
/// f = Σ_T (-1)^|T| Π_j Π_s exp(-(λ_j/8) (1 - (63/64)^|T ∩ window_j(s)|))
/// ```
///
/// with `window_j(s)` = the `k_j` words from s on. Costs 2^k · 8 steps for each kind. The sum
/// cancels to about 1e-13, so rates below 1e-4 are computed from positive terms only, in about 4^k
/// steps, which keeps twelve digits however small they are. This holds for k up to 8, and for each
/// line of a larger k.
pub fn shared_blocked_fpr(lines: f64, probes: u32, written: &[(f64, u32)]) -> f64 {
    LinesOf::cache(lines).shared_fpr(probes, written)
}

/// Lines of eight words whose rates are predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinesOf {
    lines: f64,
    /// Probability that two elements set the same bit of a word: the inverse of its bits.
    same_bit: f64,
}

impl From<LineShape> for LinesOf {
    fn from(shape: LineShape) -> Self {
        Self { lines: shape.lines as f64, same_bit: f64::from(shape.word_bits).recip() }
    }
}

impl LinesOf {
    /// Creates lines of 64-bit words.
    const fn cache(lines: f64) -> Self {
        Self { lines, same_bit: 1.0 / 64.0 }
    }

    /// Returns the bits of all lines.
    pub(super) fn bits(self) -> f64 {
        self.lines * f64::from(WORDS) / self.same_bit
    }

    /// [`blocked_fpr`] in these lines.
    pub(super) fn fpr(self, probes: u32, elements: f64) -> f64 {
        self.shared_fpr(probes, &[(elements, probes)])
    }

    /// [`shared_blocked_fpr`] in these lines.
    pub(super) fn shared_fpr(self, probes: u32, written: &[(f64, u32)]) -> f64 {
        let in_lines = written
            .iter()
            .flat_map(|&(elements, probes)| shares(probes).map(move |share| (elements, share)));
        let in_lines: Vec<(f64, u32)> = in_lines.collect();
        // Consecutive lines mostly have the same number of bits, and so the same rate.
        let (mut last, mut rate, mut all) = (0, 1.0, 1.0);
        for share in shares(probes) {
            if share != last {
                (last, rate) = (share, self.rate_in_line(share, &in_lines));
            }
            all *= rate;
        }
        all
    }

    /// Returns the rate of a query in one line.
    fn rate_in_line(self, probes: u32, written: &[(f64, u32)]) -> f64 {
        let rate = self.by_inclusion_and_exclusion(probes, written);
        if rate > CANCELS_BELOW { rate } else { self.by_covering(probes, written) }
    }

    /// Computes the rate by the alternating sum over the probes that are clear.
    fn by_inclusion_and_exclusion(self, probes: u32, written: &[(f64, u32)]) -> f64 {
        let term = |clear: usize| -> f64 {
            let of_kind = |&(elements, probes): &(f64, u32)| -> f64 {
                let of_words: f64 = (0..WORDS)
                    .map(|start| (clear & window(start, probes)).count_ones())
                    .map(|hit| 1.0 - (1.0 - self.same_bit).powi(hit as i32))
                    .sum();
                elements / self.lines / f64::from(WORDS) * of_words
            };
            let exponent: f64 = written.iter().map(of_kind).sum();
            let sign = if clear.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * (-exponent).exp()
        };
        (0..1 << probes).map(term).sum()
    }

    /// Computes the rate from positive terms only.
    ///
    /// An element sets exactly the query's bits in the set A of words with probability
    /// `(1/64)^|A| (63/64)^(w - |A|)`, where w counts the words that it has in common with the
    /// query. So the elements that set exactly A are Poisson as well, independently for each A:
    ///
    /// ```text
    /// μ_A = Σ_j Σ_s (λ_j / 8) (1/64)^|A| (63/64)^(w_js - |A|)        if A is within window_j(s)
    /// ```
    ///
    /// and f is the probability that the A that occur, each with `1 - exp(-μ_A)`, cover all probes.
    /// They are added one after the other, ordered by their last word, to the distribution of the
    /// set of words covered so far.
    fn by_covering(self, probes: u32, written: &[(f64, u32)]) -> f64 {
        let means = self.means_of_sets(probes, written);
        let mut covered = [0.0; SETS];
        covered[0] = 1.0;
        for last in (0..probes).rev() {
            let half = 1 << last;
            for (set, mean) in means.iter().enumerate().take(2 * half).skip(half) {
                let occurs = -(-mean).exp_m1();
                if occurs <= 0.0 {
                    continue;
                }
                for before in (0..2 * half).filter(|before| before & set != set) {
                    let moved = covered[before] * occurs;
                    covered[before] -= moved;
                    covered[before | set] += moved;
                }
            }
            // The remaining sets do not have this word, so it has to be covered by now.
            covered.copy_within(half..2 * half, 0);
        }
        covered[0]
    }

    /// Returns `μ_A` of each set of probed words.
    fn means_of_sets(self, probes: u32, written: &[(f64, u32)]) -> [f64; SETS] {
        // Elements a line that have exactly these words in common with the query.
        let mut common = [0.0; SETS];
        for &(elements, of_element) in written {
            for start in 0..WORDS {
                let words = window(start, of_element) & window(0, probes);
                common[words] += elements / self.lines / f64::from(WORDS);
            }
        }
        let mut means = [0.0; SETS];
        for (words, &elements) in common.iter().enumerate() {
            if elements <= 0.0 {
                continue;
            }
            let shares: [f64; WORDS as usize + 1] = std::array::from_fn(|set| {
                let set = set as i32;
                let clear = (words.count_ones() as i32 - set).max(0);
                self.same_bit.powi(set) * (1.0 - self.same_bit).powi(clear)
            });
            // All nonempty subsets of these words, from the largest on.
            let mut set = words;
            while set != 0 {
                means[set] += elements * shares[set.count_ones() as usize];
                set = (set - 1) & words;
            }
        }
        means
    }
}

/// Returns the set of words of an element that begins at `start`.
const fn window(start: u32, probes: u32) -> usize {
    let low = (1 << probes) - 1;
    ((low << start) | (low << start >> WORDS)) & (SETS - 1)
}

impl LinesOf {
    /// Returns the most bits of an element that pay off in these lines, with this many elements of
    /// all kinds. `rate` returns the rate of the filter with at most the given bits.
    pub(super) fn most_probes(self, elements: f64, rate: impl Fn(u32) -> f64) -> u32 {
        let bits = self.bits() / elements;
        let mut most = MAX_LINE_PROBES;
        while most < MAX_PROBES as u32
            && bits > BITS_A_LINE * f64::from(most / MAX_LINE_PROBES)
            && rate(most) > LOW_ENOUGH
        {
            most += MAX_LINE_PROBES;
        }
        most
    }

    /// [`best_line_probes`] in these lines.
    pub(super) fn best_probes(self, elements: f64) -> u32 {
        let fpr = |probes: u32| self.fpr(probes, elements);
        let most = self.most_probes(elements, fpr);
        (most - MAX_LINE_PROBES + 1..=most)
            .min_by(|&a, &b| fpr(a).total_cmp(&fpr(b)))
            .unwrap_or(DEFAULT_PROBES)
    }
}

/// Returns the k with the lowest [`blocked_fpr`], in as many lines an element as pay off.
pub fn best_line_probes(lines: f64, elements: f64) -> u32 {
    LinesOf::cache(lines).best_probes(elements)
}

/// Returns the fewest lines of a blocked filter that reaches `fpr` with `elements` at its best k,
/// or `None` if 2^40 bytes are not enough.
pub fn blocked_lines(fpr: f64, elements: f64) -> Option<u64> {
    let reaches = |lines: u64| {
        let lines = lines as f64;
        blocked_fpr(lines, best_line_probes(lines, elements), elements) <= fpr
    };
    least_size(MOST_LINES, reaches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::bloom_bits;

    fn assert_close(ours: f64, expected: f64, relative: f64) {
        assert!((ours / expected - 1.0).abs() < relative, "{ours} {expected}");
    }

    #[test]
    fn a_full_line_probe_agrees_with_the_poisson_sum() {
        // With k = 8 every element puts one bit into every word, so words are independent given the
        // number j of elements in the line: sum over j of Poisson(j) (1 - (63/64)^j)^8.
        for bits_an_element in [4.0, 8.0, 10.0, 16.0, 1000.0, 1e9] {
            let mean: f64 = 512.0 / bits_an_element;
            let mut poisson = (-mean).exp();
            let mut sum = 0.0;
            for j in 1..1000 {
                poisson *= mean / f64::from(j);
                sum += poisson * (1.0 - (63.0_f64 / 64.0).powi(j)).powi(8);
            }
            assert_close(blocked_fpr(1.0, 8, mean), sum, 1e-11);
        }
        // The figure that an independent implementation measured at 10 bits an element.
        assert_close(blocked_fpr(1.0, 8, 51.2), 0.0105, 0.01);
    }

    /// With 16 and 24 bits an element has a bit in every word of its lines: the rate is a power of
    /// that sum.
    #[test]
    fn rates_of_several_lines_agree_with_the_poisson_sum() {
        for (bits_an_element, probes, rate) in [
            (31.4, 16, 1.017_353_107_128_838_4e-6),
            (31.4, 24, 5.926_126_678_212_872e-7),
            (40.0, 16, 6.741_288_651_416_559e-8),
            (40.0, 24, 1.446_009_781_646_615_7e-8),
            (47.2, 16, 1.003_344_239_184_200_6e-8),
            (47.2, 24, 9.908_953_678_463_275e-10),
        ] {
            let load: f64 = 512.0 / bits_an_element;
            // A line's rate may come from the alternating sum, which cancels.
            assert_close(blocked_fpr(1.0, probes, load), rate, 1e-8);
            // An element in two lines acts like two elements.
            let lines = f64::from(probes / 8);
            let each = shared_blocked_fpr(1.0, 8, &[(load * lines, 8)]);
            assert_close(each.powf(lines), rate, 1e-8);
        }
    }

    #[test]
    fn no_rate_takes_more_than_a_quarter_above_a_standard_filter() {
        for elements in [20_000.0, 500_000.0] {
            for eighth in 16..=64 {
                let fpr = 10_f64.powf(f64::from(eighth) / -8.0);
                let bits = blocked_lines(fpr, elements).unwrap() as f64 * 512.0;
                let ratio = bits / bloom_bits(fpr, elements);
                assert!((1.0..=1.25).contains(&ratio), "{fpr:e}: {ratio}");
            }
        }
    }

    /// The best k stays as it was for little memory, and needs more lines for more.
    #[test]
    fn best_probes_take_more_lines_with_more_memory() {
        for (bits, probes) in [(4.0, 3), (8.0, 5), (16.0, 8), (24.0, 8), (24.1, 15), (31.4, 16)] {
            assert_eq!(best_line_probes(1000.0, 512_000.0 / bits), probes, "{bits}");
        }
        let most = |bits: f64| best_line_probes(1000.0, 512_000.0 / bits).div_ceil(8);
        assert_eq!([48.0, 49.0, 72.0, 80.0, 110.0, 2000.0].map(most), [2, 3, 3, 3, 2, 1]);
    }

    #[test]
    fn rates_keep_their_digits_however_small() {
        // Inclusion and exclusion with 80 decimal digits: lines, k, kinds, rate.
        let one = |n: f64, probes: u32| vec![(n, probes)];
        let three = || vec![(200.0, 5), (30.0, 3), (500.0, 8)];
        for (lines, probes, written, rate) in [
            (16_384.0, 8, one(1000.0, 8), 2.546_429_134_782_547e-15),
            (16_384.0, 8, one(10.0, 8), 2.326_867_807_247_548e-18),
            (262_144.0, 8, one(5.0, 8), 6.791_673_885_951_718e-20),
            (40_000.0, 8, one(1000.0, 8), 4.023_458_986_902_786e-16),
            (17_179_869_184.0, 8, one(1.0, 8), 2.067_951_545_732_597e-25),
            (17_179_869_184.0, 3, one(1.0, 3), 2.775_557_561_860_474e-17),
            (100.0, 5, three(), 2.051_666_320_856_86e-5),
            (10_000.0, 3, three(), 2.638_999_801_677_005e-7),
            (10_000.0, 8, three(), 1.930_956_853_418_66e-15),
            (50.0, 6, one(4000.0, 6), 5.404_858_661_176_221e-2),
            (1e6, 7, vec![(100.0, 2), (20.0, 7)], 5.703_576_045_971_873e-19),
            (1e6, 5, one(1e6, 4), 1.336_644_773_568_059e-9),
            (1.0, 8, one(51.2, 8), 1.048_982_602_074_595e-2),
        ] {
            for ours in [
                shared_blocked_fpr(lines, probes, &written),
                LinesOf::cache(lines).by_covering(probes, &written),
            ] {
                let digits = if rate > CANCELS_BELOW { 1e-11 } else { 1e-12 };
                assert_close(ours, rate, digits);
            }
        }
        assert_close(blocked_fpr(1.0, 4, 1e5), 1.0, 1e-12);
    }

    #[test]
    fn rates_are_those_of_inclusion_and_exclusion_where_it_keeps_its_digits() {
        for probes in 1..=MAX_LINE_PROBES {
            for load in [20.0, 40.0, 60.0, 120.0, 1000.0] {
                for written in [vec![(load, probes)], vec![(load, 8), (load, 3), (load / 2.0, 5)]] {
                    let ours = LinesOf::cache(1.0).by_covering(probes, &written);
                    let theirs = LinesOf::cache(1.0).by_inclusion_and_exclusion(probes, &written);
                    assert_close(ours, theirs, 1e-9);
                }
            }
        }
    }

    #[test]
    fn rates_fall_with_the_size_as_long_as_they_are_numbers() {
        for probes in [1, 5, 8] {
            let mut before = 1.0;
            for exponent in 0..200 {
                let lines = 1.5_f64.powi(exponent);
                let rate = blocked_fpr(lines, probes, 500.0);
                assert!(0.0 < rate && rate <= before, "{probes} {lines} {rate}");
                before = rate;
            }
        }
        for empty in [&[][..], &[(0.0, 8)]] {
            let rate = shared_blocked_fpr(100.0, 8, empty);
            assert!(rate.to_bits() == 0, "{rate}");
        }
    }

    #[test]
    fn kinds_of_elements_add_up_in_a_line() {
        let alone = blocked_fpr(100.0, 5, 4000.0);
        let halves = shared_blocked_fpr(100.0, 5, &[(1500.0, 5), (2500.0, 5)]);
        assert!((halves / alone - 1.0).abs() < 1e-9);
        assert!(shared_blocked_fpr(100.0, 5, &[(4000.0, 5), (1.0, 1)]) > alone);
        assert!(shared_blocked_fpr(100.0, 3, &[(4000.0, 5)]) > alone);
        assert!(shared_blocked_fpr(100.0, 8, &[]).abs() < 1e-12);
    }

    #[test]
    fn blocked_lines_are_the_fewest_that_reach_the_rate() {
        for (fpr, elements) in
            [(0.01, 20_000.0), (0.001, 500.0), (0.2, 1e6), (1e-14, 1000.0), (1e-22, 3.0)]
        {
            let lines = blocked_lines(fpr, elements).unwrap();
            let rate = |lines: u64| {
                let lines = lines as f64;
                blocked_fpr(lines, best_line_probes(lines, elements), elements)
            };
            assert!(rate(lines) <= fpr);
            assert!(rate(lines - 1) > fpr);
        }
        // With one element in 2^34 lines the rate is 2^-34 · 64^-8 = 2.07e-25.
        assert_eq!(blocked_lines(2.06e-25, 1.0), None);
        assert!(blocked_lines(2.08e-25, 1.0).is_some());
    }
}
