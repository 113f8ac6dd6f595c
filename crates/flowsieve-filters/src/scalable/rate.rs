//! The rate of a chain, full or not.

use super::FULL;
use crate::sizing::split_fpr;
use std::f64::consts::LN_2;

/// False-positive rate of a chain of at most `most_links` links of k = `probes` parts of m = `part` counters, after
/// `elements` distinct elements.
///
/// A new element that a full link claims is not offered to the newest one, so links fill more slowly the higher
/// the rate is. With P for the rate of a full link, the newest of j + 1 links has been offered u elements, where
///
/// ```text
/// du/dn = (1 - P)^j        p(u) = (1 - (1 - 1/m)^u)^k
/// ```
///
/// until half of its counters are above zero, at u = ln 2 / -ln(1 - 1/m) on average. The last link goes on from
/// there. The rate is 1 - (1 - P)^j (1 - p(u)).
///
/// When a link is full varies with the variance σ² = (1 - ln 2) m / k: that of the counters in use, M (1 - ln 2) / 4,
/// over the square of the k / 2 that an element adds. The rate is the mean over this spread, which matters where a
/// new link begins.
pub(super) fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: f64) -> f64 {
    let part = part as f64;
    let rate = |offered: f64| split_fpr(part, probes, offered);
    // Half an element more: a link is full at the first whole number beyond.
    let capacity = if part > 1.0 {
        (1.0 - FULL).ln() / (-part.recip()).ln_1p() + 0.5
    } else {
        1.0
    };
    // Their sum is known then, so that parts with more make up for parts with fewer: the product is smaller.
    let known_sum = (-(1.0 - LN_2) * f64::from(probes) / (2.0 * part)).exp();
    let full_says_no = 1.0 - rate(capacity) * known_sum;
    // The rate if each link is full with this many elements, and the number of those that are.
    let at = |capacity: f64| {
        let (mut left, mut others_say_no, mut full) = (elements, 1.0, 0_u32);
        while full + 1 < most_links && left * others_say_no > capacity {
            left -= capacity / others_say_no;
            others_say_no *= full_says_no;
            full += 1;
        }
        let newest = rate(left * others_say_no);
        (1.0 - others_say_no * (1.0 - newest), full)
    };
    let (_, full) = at(capacity);
    // The capacities of the links so far add up, and so do their variances.
    let spread = ((1.0 - LN_2) * part / f64::from(probes) / f64::from(full.max(1))).sqrt();
    let rates = NORMAL.map(|(place, weight)| weight * at((capacity + place * spread).max(1.0)).0);
    rates.iter().sum()
}

/// Places and weights of the Gauss-Hermite rule of nine points for the mean over a standard normal distribution.
const NORMAL: [(f64, f64); 9] = [
    (-4.512_745_863_399_78, 2.234_584_400_774_66e-5),
    (-3.205_429_002_856_47, 2.789_141_321_231_76e-3),
    (-2.076_847_978_677_83, 4.991_640_676_521_78e-2),
    (-1.023_255_663_789_13, 2.440_975_028_949_39e-1),
    (0.0, 4.063_492_063_492_06e-1),
    (1.023_255_663_789_13, 2.440_975_028_949_39e-1),
    (2.076_847_978_677_83, 4.991_640_676_521_78e-2),
    (3.205_429_002_856_47, 2.789_141_321_231_76e-3),
    (4.512_745_863_399_78, 2.234_584_400_774_66e-5),
];
