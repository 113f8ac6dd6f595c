//! The rate of a chain, full or not.

use super::{large_rate, small_rate};

/// Largest part that is small, in counters. For larger parts [`large_rate`] is so close that 3,000
/// chains do not show the difference.
pub(super) const SMALL: u64 = 128;

/// Most elements of a small chain, times the counters of a part, that are followed one by one. It
/// takes some milliseconds.
const STEPS: f64 = 2_097_152.0;

/// Returns the false-positive rate of a chain of at most `most_links` links of k = `probes` parts
/// of m = `part` counters, after `elements` distinct elements.
///
/// A new element that a full link claims is not offered to the newest one, so links fill more
/// slowly the higher the rate is; and the element that fills a link varies. [`small_rate`] follows
/// the distribution of the counters in use, [`large_rate`] their means and variances.
pub(super) fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: f64) -> f64 {
    if part <= SMALL && elements * part as f64 <= STEPS {
        // A mean of several slices need not be a whole number; in between the rate is nearly
        // linear.
        let below = elements.max(0.0).floor();
        let at = |elements: f64| small_rate::chain_fpr(part, probes, most_links, elements as u64);
        let (rate, share) = (at(below), elements - below);
        if share > 0.0 {
            return rate + share * (at(below + 1.0) - rate);
        }
        return rate;
    }
    large_rate::chain_fpr(part, probes, most_links, elements)
}
