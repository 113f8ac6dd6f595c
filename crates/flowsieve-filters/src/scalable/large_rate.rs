//! The rate of a chain of large links, by means and variances.
//!
//! With P for the rate of a full link, a new element is offered to link j + 1 with probability
//! `Q_j` = (1 - P)^j, and the chain's rate is
//!
//! ```text
//! sum over its links of Q_j p_j        p_j: the rate of link j + 1 after the elements that it was offered
//! ```
//!
//! - After u elements S = M (1 - (1 - 1/m)^u) of a link's M = km counters are in use on average,
//!   with a variance of M (e^-c - (1 + c) e^-2c), c = u/m. The rate of a link is (S/M)^k, where S
//!   is at most half of M, since it is full then. Given S, parts with more counters in use go with
//!   parts with fewer, which lowers the product a little.
//! - A link is full after ln 2 / -ln(1 - 1/m) elements on average, with the variance (1 - ln 2) m /
//!   k: that of S over the square of the k / 2 that an element adds. Each of these elements takes 1
//!   / `Q_j` elements of the chain, with the variance (1 - `Q_j`) / `Q_j`². The sums of both over
//!   the links are mean and variance of the element with which the next link begins.

use crate::sizing::split_fpr;
use std::f64::consts::LN_2;

/// Returns [`super::rate::chain_fpr`] for links that are not small.
pub(super) fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: f64) -> f64 {
    let m = part as f64;
    let k = f64::from(probes);
    let counters = m * k;
    // A link is full with the element that reaches half of the counters. It exceeds the half
    // by (k - 1) / 4 on average, the mean overshoot of binomially distributed steps.
    let most_in_use = ((counters / 2.0).ceil() + (k - 1.0) / 4.0) / counters;
    let capacity = (-most_in_use).ln_1p() / (-m.recip()).ln_1p();
    let in_use = |offered: f64| split_fpr(m, 1, offered.max(0.0));
    // The variance of S / M, and the factor by which the rate is lower if S is known.
    let variance = |offered: f64| {
        let left = (-offered.max(0.0) / m).exp();
        left * (1.0 - left * (1.0 + offered.max(0.0) / m)) / (m * k)
    };
    let known = |offered: f64, share: f64| {
        if share > 0.0 {
            (-variance(offered) * k * (k - 1.0) / (2.0 * share * share)).exp()
        } else {
            1.0
        }
    };
    let filling = |offered: f64| {
        let (mean, spread) = (in_use(offered), variance(offered).sqrt());
        let known = known(offered.min(capacity), mean.min(most_in_use));
        over_normal(|z| known * (mean + z * spread).clamp(0.0, most_in_use).powi(probes as i32))
    };
    let full_says_no = 1.0 - known(capacity, most_in_use) * most_in_use.powi(probes as i32);
    let takes = (1.0 - LN_2) * m / k;
    let (mut began, mut began_variance) = (0.0, 0.0);
    let (mut others_say_no, mut sum) = (1.0, 0.0);
    for link in 1..=most_links {
        let offered = (elements - began) * others_say_no;
        let offered_variance =
            began_variance * others_say_no.powi(2) + offered.max(0.0) * (1.0 - others_say_no);
        let spread = offered_variance.sqrt();
        if offered + 8.0 * spread <= 0.0 || others_say_no < f64::EPSILON {
            break;
        }
        let rate = |z: f64| {
            let offered = offered + z * spread;
            if link == most_links {
                split_fpr(m, probes, offered.max(0.0))
            } else {
                filling(offered)
            }
        };
        let rate = if spread > 0.0 { over_normal(rate) } else { rate(0.0) };
        sum += others_say_no * rate;
        began += capacity / others_say_no;
        began_variance += (takes + capacity * (1.0 - others_say_no)) / others_say_no.powi(2);
        others_say_no *= full_says_no;
    }
    sum
}

/// Returns the mean over a standard normal distribution.
fn over_normal(of: impl Fn(f64) -> f64) -> f64 {
    const STEPS: i32 = 24;
    let points = (-STEPS..=STEPS).map(|step| 6.0 * f64::from(step) / f64::from(STEPS));
    let (sum, weights) = points.fold((0.0, 0.0), |(sum, weights), z| {
        let weight = (-z * z / 2.0).exp();
        (sum + weight * of(z), weights + weight)
    });
    sum / weights
}
