//! Counting distinct elements by the fill of an array, if no stream of insertions was counted.
//!
//! Each of n elements leaves a given one of m bits alone with probability 1 - p. With X set bits
//!
//! ```text
//!     n = ln(1 - X/m) / ln(1 - p)
//! ```
//!
//! - k independent positions ("linear counting" of k n balls): 1 - p = (1 - 1/m)^k, and
//!   variance m (e^U - U - 1) / k² with U = k n / m. The same holds for k parts of m / k.
//! - k of the eight words of a cache line, one bit in each: p = k / m. The bits of a line
//!   depend on each other, so the variance of the number of clear bits Z is a sum over all
//!   pairs. With A = (1 - p)^n, two bits are both clear with probability A² (1 + (r - p²) /
//!   (1 - p)²)^n, where r = P(an element sets both): 0 in the same word and in different
//!   lines, and c / (m / 512) / 64² for two words of a line that an element takes with
//!   probability c (analogously for shorter words). To first order the variance of n is that
//!   of Z over (m A ln(1 - p))². The bits of an element in several lines are independent, and
//!   count like those of several elements.
//!
//! Reference: Whang, Vander-Zanden, Taylor, "A linear-time probabilistic counting algorithm for
//! database applications", ACM TODS 15(2), 1990.

use super::Estimate;
use crate::bits::WORDS_PER_LINE;
use crate::lines::{LineShape, shares};

/// Estimates the distinct elements from the `ones` set bits of an array of `bits`, `probes`
/// independent positions per element; `None` if all are set.
pub(super) fn independent(ones: u64, bits: f64, probes: u32) -> Option<Estimate> {
    if ones == 0 {
        return Some(Estimate::scattered(0.0, 0.0));
    }
    if ones as f64 >= bits {
        return None;
    }
    let (m, k) = (bits, f64::from(probes));
    let distinct = (-(ones as f64 / m)).ln_1p() / (k * (-m.recip()).ln_1p());
    let load = k * distinct / m;
    Some(Estimate::scattered(distinct, m * (load.exp_m1() - load).max(0.0) / (k * k)))
}

/// Estimates the distinct elements from the set bits of all `lines`, one bit per element in each of
/// `probes` consecutive words of a line, or of several lines if they are more than eight; `None` if
/// all are set.
pub(super) fn in_lines(ones: u64, shape: LineShape, probes: u32) -> Option<Estimate> {
    let bits = 8 * shape.bytes();
    if ones == 0 {
        return Some(Estimate::scattered(0.0, 0.0));
    }
    if ones >= bits {
        return None;
    }
    let (m, words) = (bits as f64, WORDS_PER_LINE as f64);
    let (lines, width) = (shape.lines as f64, f64::from(shape.word_bits));
    let of_share = |share: u32| f64::from(share) / m;
    let missed: f64 = shares(probes).map(|share| (-of_share(share)).ln_1p()).sum();
    let distinct = (-(ones as f64 / m)).ln_1p() / missed;
    // Relative excess over A² of the probability that two bits are clear. `both` returns the
    // probability that an element sets both, given the number of bits that it sets in a line.
    let excess = |both: &dyn Fn(u32) -> f64| {
        let of_all: f64 = shares(probes)
            .map(|share| {
                let p = of_share(share);
                ((both(share) - p * p) / ((1.0 - p) * (1.0 - p))).ln_1p()
            })
            .sum();
        (distinct * of_all).exp_m1()
    };
    let mut pairs = (m - shape.line_bits() as f64 + width - 1.0) * excess(&|_| 0.0);
    for distance in 1..WORDS_PER_LINE as u32 {
        pairs += width
            * excess(&|share| {
                let starts = share.saturating_sub(distance)
                    + share.saturating_sub(WORDS_PER_LINE as u32 - distance);
                f64::from(starts) / words / (lines * width * width)
            });
    }
    // Var(Z) / (m A)² = (1/A - 1 + pairs) / m.
    let spread = ((-distinct * missed).exp_m1() + pairs) / m;
    Some(Estimate::scattered(distinct, spread.max(0.0) / (missed * missed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Digest, Digester};
    use crate::{BloomFilter, ElementDigests, MembershipFilter, SubsetFilter};

    #[test]
    fn ends_of_the_range() {
        assert_eq!(independent(0, 100.0, 3), Some(Estimate::scattered(0.0, 0.0)));
        assert_eq!(independent(100, 100.0, 3), None);
        assert_eq!(independent(1, 1.0, 1), None);
        assert_eq!(in_lines(0, 2.into(), 8), Some(Estimate::scattered(0.0, 0.0)));
        assert_eq!(in_lines(1024, 2.into(), 8), None);
    }

    /// Checks over 300 filters that the mean is within four standard errors, and the spread is that
    /// of the formula.
    fn check(name: &str, elements: u64, estimate: impl Fn(&[Digest]) -> Estimate) {
        const RUNS: u64 = 300;
        let n = elements as f64;
        let estimates: Vec<Estimate> = (0..RUNS)
            .map(|run| {
                let digester = Digester::new(run);
                let digests: Vec<Digest> =
                    (0..elements).map(|i| digester.digest(&i.to_le_bytes())).collect();
                estimate(&digests)
            })
            .collect();
        let runs = RUNS as f64;
        let mean = estimates.iter().map(|e| e.distinct).sum::<f64>() / runs;
        let predicted = estimates.iter().map(|e| e.variance).sum::<f64>() / runs;
        let observed = estimates.iter().map(|e| (e.distinct - n).powi(2)).sum::<f64>() / runs;
        // The estimate's own bias is below a thousandth at these sizes.
        let tolerance = 4.0 * (predicted / runs).sqrt() + n / 1000.0;
        assert!((mean - n).abs() < tolerance, "{name}: {mean} for {n}");
        // Relative standard error of a variance from 300 runs: sqrt(2 / 300) = 8 %.
        let ratio = observed / predicted;
        assert!((0.68..1.4).contains(&ratio), "{name}: variance x {ratio}");
    }

    #[test]
    fn the_fill_of_a_bloom_filter_counts_by_the_formula() {
        for (bits, probes, elements) in [(4096, 1, 3000), (8000, 4, 2000), (8000, 7, 1000)] {
            check("bloom", elements, |digests| {
                let mut filter = BloomFilter::new(bits, probes);
                for &whole in digests {
                    filter.insert(ElementDigests { whole, attributes: &[] });
                }
                let ones = (filter.stats().fill_ratio * bits as f64).round() as u64;
                independent(ones, bits as f64, probes).unwrap()
            });
        }
    }

    /// Two filters of 2,000 elements each, with and without common ones.
    #[test]
    fn intersections_vary_by_the_formula() {
        const RUNS: u64 = 300;
        for shared in [0, 100, 1000, 2000] {
            for lines in [false, true] {
                let count = |sets: &[&[Digest]]| {
                    let mut filter: Box<dyn MembershipFilter> = if lines {
                        Box::new(SubsetFilter::new(40, 4))
                    } else {
                        Box::new(BloomFilter::new(20_480, 4))
                    };
                    for &whole in sets.iter().copied().flatten() {
                        filter.insert(ElementDigests { whole, attributes: &[] });
                    }
                    let ones = (filter.stats().fill_ratio * 20_480.0).round() as u64;
                    let fill = if lines {
                        in_lines(ones, 40.into(), 4)
                    } else {
                        independent(ones, 20_480.0, 4)
                    };
                    fill.unwrap()
                };
                let (mut inside, mut sum, mut squares, mut predicted) = (0, 0.0, 0.0, 0.0);
                for run in 0..RUNS {
                    let digester = Digester::new(run);
                    let all: Vec<Digest> = (0..4000_u64 - shared)
                        .map(|number| digester.digest(&number.to_le_bytes()))
                        .collect();
                    let [a, b] = [&all[..2000], &all[2000 - shared as usize..]];
                    let both = Estimate::common(count(&[a]), count(&[b]), count(&[a, b])).unwrap();
                    let bounds = both.lower()..=both.upper().unwrap();
                    inside += u64::from(bounds.contains(&shared));
                    let error = both.distinct - shared as f64;
                    sum += error;
                    squares += error * error;
                    predicted += both.variance;
                }
                let name = format!("{shared} in common, lines: {lines}");
                assert!(inside >= RUNS * 92 / 100, "{name}: {inside}");
                // Counts are clamped at 0, so without common elements half of the errors are cut
                // off.
                if shared > 0 {
                    let runs = RUNS as f64;
                    assert!(
                        (sum / runs).abs() < 4.0 * (predicted / runs / runs).sqrt() + 2.0,
                        "{name}"
                    );
                    let ratio = squares / predicted;
                    assert!((0.6..1.4).contains(&ratio), "{name}: variance x {ratio}");
                }
            }
        }
    }

    #[test]
    fn the_fill_of_lines_counts_by_the_formula() {
        for (lines, probes, elements) in [(20, 1, 5000), (16, 4, 2000), (40, 8, 2000), (3, 5, 200)]
        {
            check("lines", elements, |digests| {
                let mut filter = SubsetFilter::new(lines, probes);
                for &whole in digests {
                    filter.insert(ElementDigests { whole, attributes: &[] });
                }
                let ones = (filter.stats().fill_ratio * (lines * 512) as f64).round() as u64;
                in_lines(ones, lines.into(), probes).unwrap()
            });
        }
    }
}
