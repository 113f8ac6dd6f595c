//! Sizes and false-positive rates as pure functions: m bits, k positions, n distinct elements.

use super::dleft::fpr_of_hashes;
pub use super::dleft::{dleft_given_up, dleft_overfull_fpr};
use super::line_rates::LinesOf;
pub use super::line_rates::{best_line_probes, blocked_fpr, blocked_lines, shared_blocked_fpr};
use super::lines::LineShape;
use super::matrix_sizing::table_probes;
use std::f64::consts::LN_2;

/// Most hash functions of a filter.
pub const MAX_PROBES: usize = 32;

/// Default hash functions if the number of elements is not known: close to the optimum from 4 to 8
/// bits an element, and not much worse with more elements than bits.
pub const DEFAULT_PROBES: u32 = 4;

/// Most probes of a blocked filter in a line, one in each word; more are in further lines.
pub const MAX_LINE_PROBES: u32 = 8;

/// Returns the false-positive rate of a standard Bloom filter: (1 - e^(-kn/m))^k.
pub fn bloom_fpr(bits: f64, probes: u32, elements: f64) -> f64 {
    (-(-f64::from(probes) * elements / bits).exp_m1()).powi(probes as i32)
}

/// Returns the k with the lowest false-positive rate, round((m/n) ln 2), within `1..=most`.
pub fn best_probes(bits: f64, elements: f64, most: u32) -> u32 {
    if elements <= 0.0 {
        return DEFAULT_PROBES.min(most);
    }
    ((bits / elements * LN_2).round() as u32).clamp(1, most)
}

/// Returns the bits of a standard Bloom filter with the best k: n · log2(e) · log2(1/f).
pub fn bloom_bits(fpr: f64, elements: f64) -> f64 {
    elements * fpr.recip().log2() / LN_2
}

/// Returns bits and k of a standard filter by the rule of the CBFM paper's tables: m = floor(n
/// log2(e) log2(1/ε)) and k = floor(-log2 ε).
pub(crate) fn table_size(fpr: f64, elements: f64) -> (u64, u32) {
    let bits = bloom_bits(fpr, elements).floor().max(1.0) as u64;
    (bits, table_probes(fpr).clamp(1, MAX_PROBES as u32))
}

/// Returns the bits of a standard Bloom filter with at most [`MAX_PROBES`] functions, which the
/// best k exceeds for rates below 2^-32: these take -k n / ln(1 - f^(1/k)).
pub fn least_bloom_bits(fpr: f64, elements: f64) -> f64 {
    let most = MAX_PROBES as f64;
    if fpr.log2() >= -most {
        return bloom_bits(fpr, elements);
    }
    -most * elements / (-fpr.powf(most.recip())).ln_1p()
}

/// Returns the last number from `low` to `high` for which `holds` is true; `None` if it is false for
/// `low`. It must be true up to a border and false beyond it.
#[doc(hidden)]
pub fn last(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(low) {
        return None;
    }
    let mut good = low;
    let mut step = 1;
    // Doubling steps find a number that is too large; halving the gap then finds the last good one.
    while let Some(next) = good.checked_add(step).filter(|&next| next <= high) {
        if !holds(next) {
            break;
        }
        good = next;
        step *= 2;
    }
    let mut bad = good.saturating_add(step).min(high.saturating_add(1));
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// Bisects a range `times` times and returns the range that remains. `is_below` must hold up to a
/// border and not beyond it; the border stays within.
#[doc(hidden)]
pub fn halved(
    (mut low, mut high): (f64, f64),
    times: u32,
    is_below: impl Fn(f64) -> bool,
) -> (f64, f64) {
    for _ in 0..times {
        let middle = f64::midpoint(low, high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

/// Returns the smallest size, from 1 on, for which `reaches` is true, given that it is true for all
/// larger ones; `None` if no size up to `most`, a power of two, reaches it.
pub(super) fn least_size(most: u64, reaches: impl Fn(u64) -> bool) -> Option<u64> {
    match last(1, most, |size| !reaches(size)) {
        Some(size) if size == most => None,
        found => Some(found.map_or(1, |size| size + 1)),
    }
}

/// Returns the smallest size, from `size` on, for which `reaches` is true, given that it is true
/// for all larger ones; more than any filter has if there is none.
pub(super) fn enlarged(size: u64, reaches: impl Fn(u64) -> bool) -> u64 {
    const MOST: u64 = 1 << 44;
    let with = |more: u64| size.saturating_add(more - 1);
    with(least_size(MOST, |more| reaches(with(more))).unwrap_or(MOST))
}

/// Returns the bits with which a standard Bloom filter reaches a rate with [`best_probes`], the
/// rounding of which takes a little more than [`least_bloom_bits`].
pub(super) fn rounded_bloom_bits(fpr: f64, elements: f64) -> u64 {
    enlarged(least_bloom_bits(fpr, elements).ceil() as u64, |bits| {
        let probes = best_probes(bits as f64, elements, MAX_PROBES as u32);
        bloom_fpr(bits as f64, probes, elements) <= fpr
    })
}

/// Returns the mean false-positive rate of a standard Bloom filter while it is filled from empty to
/// `elements`: with U = kn/m it is (1/U) ∫₀ᵁ (1 - e^-u)^k du.
///
/// This is the share of the new elements that a raw count of first sightings misses.
pub fn bloom_fpr_while_filling(bits: f64, probes: u32, elements: f64) -> f64 {
    mean_while(elements, |n| bloom_fpr(bits, probes, n))
}

/// Returns n times the relative variance V of the unbiased count ([`super::DistinctCounter`]) of a
/// standard Bloom filter: (1/n) ∫₀ⁿ u / (1 - u) dx, where a new element after x others is missed
/// with probability u = (1 - e^(-kx/m))^k. The relative standard error is √(V/n).
pub fn bloom_count_variance(bits: f64, probes: u32, elements: f64) -> f64 {
    mean_while(elements, |n| {
        let missed = bloom_fpr(bits, probes, n);
        missed / (1.0 - missed)
    })
}

/// Returns [`bloom_count_variance`] for the whole elements, of `probes` bits each, in a blocked
/// filter, where u is [`shared_blocked_fpr`]. `written` lists all kinds of elements that it stores,
/// which are assumed to grow in proportion. With several shards, lines and elements are those of
/// one shard.
pub fn blocked_count_variance(
    shape: LineShape,
    probes: u32,
    written: &[(f64, u32)],
    elements: f64,
) -> f64 {
    mean_while(elements, |n| {
        let part = |&(all, probes): &(f64, u32)| (all * n / elements, probes);
        let so_far: Vec<(f64, u32)> = written.iter().map(part).collect();
        let repeat = LinesOf::from(shape).shared_fpr(probes, &so_far);
        repeat / (1.0 - repeat)
    })
}

/// Returns [`bloom_count_variance`] for a halving filter ([`SubsetSpec::counting`]): that of a
/// blocked filter up to 86 % of set bits, and then stage after stage.
///
/// [`SubsetSpec::counting`]: crate::SubsetSpec::counting
pub fn halving_count_variance(shape: LineShape, probes: u32, elements: f64) -> f64 {
    const STEPS: u32 = 64;
    let bits = LinesOf::from(shape).bits();
    let first = elements.min(-0.14_f64.ln() * bits / f64::from(probes));
    let mut variance = first * blocked_count_variance(shape, probes, &[(first, probes)], first);
    let mut counted = first;
    // Share of the sampled addresses, times the share of their places that are clear in all older
    // generations.
    let mut weight = 1.0 - LinesOf::from(shape).fpr(probes, first);
    while counted < elements {
        weight *= 0.5;
        for step in 0..STEPS {
            // The new half fills from 0 to 60 % of set bits.
            let seen = weight * (1.0 - 0.6 * (f64::from(step) + 0.5) / f64::from(STEPS));
            let new = 0.3 * bits / f64::from(STEPS);
            let new = new.min((elements - counted).max(0.0) * seen);
            counted += new / seen;
            variance += new * (1.0 - seen) / (seen * seen);
        }
        weight *= 0.4;
    }
    variance / elements
}

/// Returns the mean of `integrand` over 0 to `elements` elements, by Simpson's rule.
fn mean_while(elements: f64, integrand: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 256;
    let at = |step: u32| integrand(elements * f64::from(step) / f64::from(STEPS));
    let inner: f64 = (1..STEPS).map(|step| at(step) * if step % 2 == 0 { 2.0 } else { 4.0 }).sum();
    (at(0) + inner + at(STEPS)) / (3.0 * f64::from(STEPS))
}

/// Returns the false-positive rate of a split filter: (1 - (1 - 1/m)^n)^k with m counters a part.
pub fn split_fpr(part: f64, probes: u32, elements: f64) -> f64 {
    if part <= 1.0 {
        return f64::from(u8::from(elements > 0.0));
    }
    (-(elements * (-part.recip()).ln_1p()).exp_m1()).powi(probes as i32)
}

/// Returns functions k, counters a part m and elements n of a split filter of `counters` (M) in all
/// for a rate P: k = ceil(lb 1/P), m = floor(M/k), n = floor(M ln² 2 / ln 1/P).
pub fn split_design(counters: u64, fpr: f64) -> (u32, u64, u64) {
    let probes = fpr.recip().log2().ceil() as u32;
    let elements = counters as f64 * LN_2 * LN_2 / fpr.recip().ln();
    (probes, counters / u64::from(probes), elements as u64)
}

/// Returns the probability that a counter reaches `least` if it is incremented `load` = kn/m times
/// on average: the upper tail of a Poisson distribution, summed up directly so that no digits
/// cancel.
pub fn counter_reaches(load: f64, least: u32) -> f64 {
    let mut term = (-load).exp();
    for j in 1..=least {
        term *= load / f64::from(j);
    }
    let mut sum = 0.0;
    let mut j = least;
    while term > sum * f64::EPSILON && term > 0.0 || f64::from(j) < load {
        sum += term;
        j += 1;
        term *= load / f64::from(j);
    }
    sum
}

/// Returns the false-positive rate of a chain of `links` filters with the rate `link_fpr` each: 1 -
/// (1 - P)^d.
pub fn scalable_fpr(link_fpr: f64, links: u32) -> f64 {
    -(f64::from(links) * (-link_fpr).ln_1p()).exp_m1()
}

/// Returns the false-positive rate of a d-left filter whose elements hash to q = b + r bits and all
/// find room: 1 - (1 - 2^-q)^n. [`dleft_overfull_fpr`] is for any filter.
pub fn dleft_fpr(hash_bits: u32, elements: f64) -> f64 {
    fpr_of_hashes(f64::from(hash_bits).exp2(), elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_of_the_standard_filter() {
        // Rates from an independent computation: bits an element, k, rate.
        for (bits, probes, rate) in
            [(10.0, 7, 0.008_194), (8.0, 6, 0.021_577), (16.0, 11, 0.000_459)]
        {
            assert!((bloom_fpr(bits, probes, 1.0) / rate - 1.0).abs() < 1e-3);
            assert_eq!(best_probes(bits, 1.0, 32), probes);
        }
        assert!((bloom_bits(0.01, 1.0) - 9.585).abs() < 0.001);
    }

    fn assert_close(ours: f64, expected: f64, relative: f64) {
        assert!((ours / expected - 1.0).abs() < relative, "{ours} {expected}");
    }

    // The numbers below come from an independent computation with exact binomials and quadrature.

    #[test]
    fn a_raw_count_of_new_elements_misses_the_mean_rate() {
        // A course report's spelling dictionary: 466 550 words at 1 %.
        let (bits, probes, words) = (4_471_909.0, 7, 466_550.0);
        assert_eq!(bloom_bits(0.01, words).ceil() as u64, 4_471_909);
        assert_eq!(best_probes(bits, words, 32), probes);
        assert_close(bloom_fpr(bits, probes, words), 0.010_039_217, 1e-6);
        let mean = bloom_fpr_while_filling(bits, probes, words);
        assert_close(mean, 0.001_664_653, 1e-6);
    }

    #[test]
    fn bias_and_variance_of_the_counts() {
        // Bits an element, k, share lost by the raw count, relative error of the unbiased one, at
        // n = 10 000.
        for (bits, probes, bias, error) in [
            (1.0, 1, 0.367_88, 0.008_475),
            (2.0, 1, 0.213_06, 0.005_454),
            (2.0, 2, 0.168_09, 0.004_813),
            (4.0, 3, 0.045_61, 0.002_240),
            (6.0, 4, 0.013_93, 0.001_200),
            (8.0, 2, 0.017_34, 0.001_337),
            (8.0, 6, 0.004_071, 0.000_642),
            (10.0, 7, 0.001_34, 0.000_367),
            (12.0, 8, 0.000_46, 0.000_214),
            (16.0, 4, 0.000_52, 0.000_228),
            (16.0, 11, 0.000_05, 0.000_072),
        ] {
            let lost = bloom_fpr_while_filling(bits, probes, 1.0);
            assert!((lost - bias).abs() < 0.000_006, "{bits} {probes}: {lost}");
            let ours = (bloom_count_variance(bits * 1e4, probes, 1e4) / 1e4).sqrt();
            assert!((ours - error).abs() < 0.000_000_6, "{bits} {probes}: {ours}");
        }
        let variance = bloom_count_variance(20e4, 15, 1e4);
        assert_close(variance, 5.992_180_3e-6, 1e-6);
        let variance = bloom_count_variance(24e4, 18, 1e4);
        assert_close(variance, 7.475_486_0e-7, 1e-6);
    }

    #[test]
    fn table_1_of_the_split_counting_filter() {
        for (fpr, design, reached) in [
            (1e-3, (10, 36_864, 25_639), 0.000_999_780),
            (1e-4, (14, 26_331, 19_229), 0.000_100_755),
            (1e-5, (17, 21_684, 15_383), 1.001_585e-5),
            (1e-6, (20, 18_432, 12_819), 9.990_209e-7),
        ] {
            assert_eq!(split_design(45 * 1024 * 8, fpr), design);
            let (probes, part, elements) = design;
            let (part, elements) = (part as f64, elements as f64);
            assert_close(bloom_fpr(part * f64::from(probes), probes, elements), reached, 2e-5);
            assert_close(split_fpr(part, probes, elements), reached, 5e-4);
        }
        assert_close(split_fpr(36_864.0, 10, 25_639.0), 0.000_999_874, 1e-6);
    }

    #[test]
    fn counters_overflow_as_rarely_as_in_the_tables() {
        for (least, probability) in [
            (2, 0.153_426_409_720_027_36),
            (4, 0.005_561_101_908_066_199),
            (8, 7.154_280_616_004_26e-7),
            (16, 7.072_832_256_729_955e-17),
            (32, 1.564_683_245_148_849_6e-41),
        ] {
            assert_close(counter_reaches(LN_2, least), probability, 1e-12);
        }
        assert_close(counter_reaches(30.0, 1), 1.0, 1e-12);
    }

    #[test]
    fn rates_that_need_more_functions_take_more_bits() {
        // 32 / -ln(1 - f^(1/32)), computed with 40 digits; above 2^-32 it is lb e · lb 1/f.
        for (fpr, bits) in [
            (1e-9, 43.132_762_698_153_48),
            (1e-10, 47.946_099_088_081_2),
            (1e-15, 77.063_121_457_009_19),
            (1e-30, 260.781_443_917_570_35),
        ] {
            assert_close(least_bloom_bits(fpr, 1.0), bits, 1e-12);
        }
    }

    #[test]
    fn chains_of_links() {
        for (link, links, rate) in [
            (0.01, 2, 0.0199),
            (0.01, 8, 0.077_255_305_572_079_91),
            (0.001, 2, 0.001_999),
            (0.001, 4, 0.003_994_003_999),
            (0.001, 8, 0.007_972_055_930_055_972),
            (0.001, 16, 0.015_880_558_184_360_002),
            (0.000_1, 16, 0.001_598_800_559_818_043_7),
        ] {
            assert_close(scalable_fpr(link, links), rate, 1e-12);
        }
    }

    #[test]
    fn rates_and_memory_of_the_d_left_filter() {
        // n = 24 B: r, rate, bits an element of a 4-bit counting filter of that rate.
        for (r, rate, counting) in [
            (10, 0.023_164_976, 31.25),
            (11, 0.011_650_353, 37.02),
            (12, 0.005_842_242, 42.79),
            (14, 0.001_463_771, 54.33),
        ] {
            let ours = dleft_fpr(13 + r, 24.0 * 8192.0);
            assert_close(ours, rate, 1e-6);
            // Memory is compared at 24 · 2^-r, the rate to first order.
            assert_close(4.0 * bloom_bits(24.0 * (-f64::from(r)).exp2(), 1.0), counting, 2e-4);
        }
        assert_close(dleft_fpr(15 + 14, 500_000.0), 0.000_930_889_029, 1e-6);
    }
}
