//! Sizes and false-positive rates as pure functions: m bits, k positions, n distinct elements.

use std::f64::consts::LN_2;

/// Most hash functions that a filter takes.
pub const MAX_PROBES: usize = 32;

/// Hash functions used when nothing is known of the number of elements: close to the optimum from
/// 4 to 8 bits an element, and it degrades slowly when there are more elements than bits.
pub const DEFAULT_PROBES: u32 = 4;

/// Most probes that the blocked filter makes in a line, one a word.
pub const MAX_LINE_PROBES: u32 = 8;

/// False-positive rate of a standard Bloom filter: (1 - e^(-kn/m))^k.
pub fn bloom_fpr(bits: f64, probes: u32, elements: f64) -> f64 {
    (-(-f64::from(probes) * elements / bits).exp_m1()).powi(probes as i32)
}

/// The k with the least false-positive rate, round((m/n) ln 2), within `1..=most`.
pub fn best_probes(bits: f64, elements: f64, most: u32) -> u32 {
    if elements <= 0.0 {
        return DEFAULT_PROBES.min(most);
    }
    ((bits / elements * LN_2).round() as u32).clamp(1, most)
}

/// Bits of a standard Bloom filter with the best k: n · log2(e) · log2(1/f).
pub fn bloom_bits(fpr: f64, elements: f64) -> f64 {
    elements * fpr.recip().log2() / LN_2
}

/// False-positive rate of a blocked filter: lines of eight 64-bit words, k consecutive words of a
/// line (cyclic, from a random one) probed with one bit each.
///
/// Exact for a Poisson number of elements a line: [`shared_blocked_fpr`] with one kind of element.
pub fn blocked_fpr(lines: f64, probes: u32, elements: f64) -> f64 {
    shared_blocked_fpr(lines, probes, &[(elements, probes)])
}

/// False-positive rate of a query with `probes` in a blocked filter into which several kinds of
/// elements are written, each given by its number `n_j` of distinct elements and its `k_j`.
///
/// Exact for a Poisson number of elements a line. With `λ_j = n_j / lines` the number of elements of
/// kind j that begin at word s is Poisson with mean `λ_j / 8`, so by inclusion and exclusion over the
/// probes T that are clear
///
/// ```text
/// f = Σ_T (-1)^|T| Π_j Π_s exp(-(λ_j/8) (1 - (63/64)^|T ∩ window_j(s)|))
/// ```
///
/// with `window_j(s)` = the `k_j` words from s on. Costs 2^k · 8 steps a kind.
pub fn shared_blocked_fpr(lines: f64, probes: u32, written: &[(f64, u32)]) -> f64 {
    let window = |start: u32, probes: u32| {
        let low = (1_u32 << probes) - 1;
        ((low << start) | (low << start >> 8)) & 0xff
    };
    let mut sum = 0.0;
    for clear in 0..=window(0, probes) {
        let exponent: f64 = written
            .iter()
            .map(|&(elements, probes)| {
                let of_words: f64 = (0..8)
                    .map(|start| clear & window(start, probes))
                    .map(|hit| 1.0 - (63.0_f64 / 64.0).powi(hit.count_ones() as i32))
                    .sum();
                elements / lines / 8.0 * of_words
            })
            .sum();
        let sign = if clear.count_ones() % 2 == 0 {
            1.0
        } else {
            -1.0
        };
        sum += sign * (-exponent).exp();
    }
    // The alternating sum cancels to about 1e-13; a rate is never negative.
    sum.max(0.0)
}

/// The k with the least [`blocked_fpr`].
pub fn best_line_probes(lines: f64, elements: f64) -> u32 {
    (1..=MAX_LINE_PROBES)
        .min_by(|&a, &b| {
            blocked_fpr(lines, a, elements).total_cmp(&blocked_fpr(lines, b, elements))
        })
        .unwrap_or(DEFAULT_PROBES)
}

/// Least number of lines of a blocked filter that reaches `fpr` with `elements` at its best k.
pub fn blocked_lines(fpr: f64, elements: f64) -> u64 {
    let reaches = |lines: u64| {
        let lines = lines as f64;
        blocked_fpr(lines, best_line_probes(lines, elements), elements) <= fpr
    };
    let mut high = 1_u64;
    while !reaches(high) && high < 1 << 40 {
        high *= 2;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_of_the_standard_filter() {
        // Rates from an independent computation: bits an element, k, rate.
        for (bits, probes, rate) in [
            (10.0, 7, 0.008_194),
            (8.0, 6, 0.021_577),
            (16.0, 11, 0.000_459),
        ] {
            assert!((bloom_fpr(bits, probes, 1.0) / rate - 1.0).abs() < 1e-3);
            assert_eq!(best_probes(bits, 1.0, 32), probes);
        }
        assert!((bloom_bits(0.01, 1.0) - 9.585).abs() < 0.001);
    }

    #[test]
    fn a_full_line_probe_agrees_with_the_poisson_sum() {
        // With k = 8 every element puts one bit into every word, so words are independent given the
        // number j of elements in the line: sum over j of Poisson(j) (1 - (63/64)^j)^8.
        for bits_an_element in [4.0, 8.0, 10.0, 16.0] {
            let mean: f64 = 512.0 / bits_an_element;
            let mut poisson = (-mean).exp();
            let mut sum = 0.0;
            for j in 1..1000 {
                poisson *= mean / f64::from(j);
                sum += poisson * (1.0 - (63.0_f64 / 64.0).powi(j)).powi(8);
            }
            let ours = blocked_fpr(1.0, 8, mean);
            assert!((ours / sum - 1.0).abs() < 1e-6, "{ours} {sum}");
        }
        // The figure that an independent implementation measured at 10 bits an element.
        assert!((blocked_fpr(1.0, 8, 51.2) / 0.0105 - 1.0).abs() < 0.01);
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
    fn blocked_lines_reach_their_rate_and_no_less_would() {
        for (fpr, elements) in [(0.01, 20_000.0), (0.001, 500.0), (0.2, 1e6)] {
            let lines = blocked_lines(fpr, elements);
            let rate = |lines: u64| {
                let lines = lines as f64;
                blocked_fpr(lines, best_line_probes(lines, elements), elements)
            };
            assert!(rate(lines) <= fpr);
            assert!(rate(lines - 1) > fpr);
        }
    }
}
