//! The rate of a chain, full or not.

use super::FULL;
use crate::sizing::split_fpr;

/// Steps in which a link's filling is followed.
const STEPS: u32 = 256;

/// Elements a link from which it says yes to everything, as a multiple of those that fill half of it.
const OVERFULL: f64 = 64.0;

/// False-positive rate of a chain of at most `most_links` links of k = `probes` parts of m = `part` counters, after
/// `elements` distinct elements.
///
/// A new element that some link claims is not stored, so links fill more slowly the higher the rate is. With
/// p(x) = (1 - (1 - 1/m)^x)^k for a link that has taken x elements and P for one that is full, while link
/// j + 1 is filled
///
/// ```text
/// dx/dn = (1 - P)^j (1 - p(x))
/// ```
///
/// until half of its counters are above zero. The last link goes on from there. The rate is
/// 1 - (1 - P)^j (1 - p(x)).
pub(super) fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: f64) -> f64 {
    let part = part as f64;
    let rate = |taken: f64| split_fpr(part, probes, taken).min(1.0);
    // Half of the counters, and half an element: the link is full at the first whole number beyond.
    let capacity = if part > 1.0 {
        (1.0 - FULL).ln() / (-part.recip()).ln_1p() + 0.5
    } else {
        1.0
    };
    // New elements of which one link, were it alone, takes its capacity: ∫ dx / (1 - p(x)).
    let to_fill = integral(0.0, capacity, STEPS, |x| (1.0 - rate(x)).recip());
    let full_says_no = 1.0 - rate(capacity);
    let mut left = elements;
    let mut others_say_no = 1.0;
    for _ in 1..most_links {
        let needed = to_fill / others_say_no;
        if needed > left || !needed.is_finite() {
            break;
        }
        left -= needed;
        others_say_no *= full_says_no;
    }
    // What the newest link has taken of the elements that are left.
    let most = capacity * OVERFULL;
    let step = capacity / f64::from(STEPS);
    let (mut taken, mut left) = (0.0, left * others_say_no);
    while left > 0.0 && taken < most {
        let says_no = 1.0 - rate(taken + step / 2.0);
        let needed = step / says_no;
        if needed >= left {
            taken += left * says_no;
            break;
        }
        left -= needed;
        taken += step;
    }
    1.0 - others_say_no * (1.0 - rate(taken))
}

/// ∫ of `f` by the midpoint rule.
fn integral(from: f64, to: f64, steps: u32, f: impl Fn(f64) -> f64) -> f64 {
    let width = (to - from) / f64::from(steps);
    let sum: f64 = (0..steps)
        .map(|i| f(from + (f64::from(i) + 0.5) * width))
        .sum();
    sum * width
}
