//! The rate of a d-left filter that may be too small for its elements.

use super::{CELLS, SUBTABLES, stash_limit};

/// Share of the cells up to which the stash is next to empty, for any size.
const NOTHING_OVERFLOWS: f64 = 0.89;

/// Elements for each bucket of a subtable at which all buckets are given up: twice as many as there
/// are cells.
const ALL_GIVEN_UP: f64 = (2 * SUBTABLES * CELLS) as f64;

/// Most steps of the integration for one element in each bucket.
const STEPS: f64 = 64.0;

/// Returns the number of different H.
fn hashes(buckets: u64, remainder_bits: u32) -> f64 {
    buckets as f64 * f64::from(remainder_bits).exp2()
}

/// Returns the false-positive rate of a d-left filter with this many H whose elements all find
/// room.
pub(crate) fn fpr_of_hashes(hashes: f64, elements: f64) -> f64 {
    -(elements * (-hashes.recip()).ln_1p()).exp_m1()
}

/// Returns the false-positive rate of a d-left filter of four subtables of `buckets` with
/// `elements` distinct elements, whether they find room or not. With g = [`dleft_given_up`], it is
/// 1 - (1 - g) (1 - 1/(B 2^r))^n: an element whose bucket is not given up is stored, in a cell or
/// in the stash.
pub fn dleft_overfull_fpr(buckets: u64, remainder_bits: u32, elements: f64) -> f64 {
    let given_up = dleft_given_up(buckets, remainder_bits, elements);
    let stored = fpr_of_hashes(hashes(buckets, remainder_bits), elements);
    given_up + (1.0 - given_up) * stored
}

/// Returns the share of the buckets of subtable 1 that a d-left filter has given up after
/// `elements` distinct elements.
///
/// Integrates Mitzenmacher's differential equations for d-left hashing ("The power of two choices
/// in randomized load balancing", 1996), with Vöcking's rule that the leftmost of equal loads wins.
/// With t elements a bucket, `y_jl` the share of subtable j's buckets with at least l elements, s
/// the stash's elements a bucket, and g the share that is given up, whose elements are not stored:
///
/// ```text
/// dy_jl/dt = (y_j,l-1 - y_jl) Π_{i<j} y'_il Π_{i>j} y_i,l-1      y'_1l = y_1l - g, y'_il = y_il
/// ds/dt = y'_18 y_28 y_38 y_48      until s B = B / 16 + 64, the stash's limit, then
/// dg/dt = the same
/// ```
///
/// With few buckets the steps are one element long. The element at which the first bucket is given
/// up varies by a few around the predicted one.
pub fn dleft_given_up(buckets: u64, remainder_bits: u32, elements: f64) -> f64 {
    overflow(buckets, remainder_bits, elements).0
}

/// Returns the share of the buckets of subtable 1 that are given up, and the elements in the stash.
pub(super) fn overflow(buckets: u64, remainder_bits: u32, elements: f64) -> (f64, f64) {
    // Elements that share an H share a cell.
    let hashes = hashes(buckets, remainder_bits);
    let different = hashes * fpr_of_hashes(hashes, elements);
    let limit = stash_limit(buckets) as f64;
    let buckets = buckets as f64;
    let cells = (SUBTABLES * CELLS) as f64 * buckets;
    if different <= NOTHING_OVERFLOWS * cells {
        return (0.0, 0.0);
    }
    let end = different / buckets;
    if end > ALL_GIVEN_UP + limit / buckets {
        return (1.0, limit);
    }
    let mut room = limit / buckets;
    let mut loads = Loads::default();
    let step = 1.0 / buckets.min(STEPS);
    let mut time = 0.0;
    while time < end {
        let overflow = loads.insert(step.min(end - time));
        let stashed = overflow.min(room);
        room -= stashed;
        loads.given_up += overflow - stashed;
        time += step;
    }
    let given_up = if different <= limit { 0.0 } else { loads.given_up.clamp(0.0, 1.0) };
    (given_up, limit - room * buckets)
}

/// The loads of the buckets.
#[derive(Default)]
struct Loads {
    /// Share of each subtable's buckets with more than this many elements.
    above: [[f64; CELLS]; SUBTABLES],
    /// Share of the first subtable's buckets that are given up.
    given_up: f64,
}

impl Loads {
    /// Inserts `elements` a bucket; returns how many of them found all four buckets full.
    fn insert(&mut self, elements: f64) -> f64 {
        // The share of a subtable's buckets with at least this many elements.
        let at_least = |above: &[f64; CELLS], count: usize| match count {
            0 => 1.0,
            _ => above[count - 1],
        };
        let before = self.above;
        // The same without the buckets that are given up.
        let open = |subtable: usize, count: usize| {
            let all = at_least(&before[subtable], count);
            if subtable == 0 { (all - self.given_up).max(0.0) } else { all }
        };
        for (subtable, above) in self.above.iter_mut().enumerate() {
            for (count, above) in above.iter_mut().enumerate() {
                let with_count = at_least(&before[subtable], count) - before[subtable][count];
                let left: f64 = (0..subtable).map(|other| open(other, count + 1)).product();
                let right: f64 =
                    (subtable + 1..SUBTABLES).map(|other| open(other, count)).product();
                *above += elements * with_count * left * right;
            }
        }
        let full: f64 = (0..SUBTABLES).map(|subtable| open(subtable, CELLS)).product();
        elements * full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use crate::sizing::dleft_fpr;
    use crate::{Bucket16, DleftFilter, ElementDigests, MembershipFilter};

    /// Returns the share of the buckets given up and the false-positive rate of several filters.
    fn measured(all: u64, elements: u32, runs: u64) -> (f64, f64) {
        let (mut given_up, mut wrong) = (0, 0);
        for run in 0..runs {
            let digester = Digester::new(100 + run);
            let mut filter = DleftFilter::<Bucket16>::new(all, 14, 2);
            let whole = |number: u32| ElementDigests {
                whole: digester.digest(&number.to_le_bytes()),
                attributes: &[],
            };
            for number in 0..elements {
                filter.insert(whole(number));
            }
            given_up += filter.given_up();
            wrong += (elements..elements + STRANGERS)
                .filter(|&number| filter.contains(whole(number)))
                .count();
        }
        let buckets = runs as f64 * all as f64;
        (given_up as f64 / buckets, wrong as f64 / (runs as f64 * f64::from(STRANGERS)))
    }

    const STRANGERS: u32 = 4000;

    #[test]
    fn overfull_filters_are_as_wrong_as_predicted() {
        // Bucket bits, elements, filters: below, around and beyond their 32 cells a bucket.
        for (bucket_bits, elements, runs) in [
            (6, 1950, 10),
            (6, 2080, 10),
            (6, 2104, 40),
            (6, 2150, 20),
            (6, 2250, 10),
            (8, 7800, 10),
            (8, 8192, 10),
            (8, 8420, 10),
            (8, 8600, 10),
            (8, 9000, 10),
            (8, 23_960, 2),
            (10, 31_100, 4),
            (10, 32_112, 4),
            (10, 32_768, 4),
            (10, 34_406, 4),
            (10, 40_960, 2),
            (4, 500, 20),
            (4, 600, 20),
            (4, 640, 20),
        ] {
            let buckets = 1 << bucket_bits;
            let (given_up, wrong) = measured(buckets, elements, runs);
            let n = f64::from(elements);
            let ours = dleft_given_up(buckets, 14, n);
            assert!(
                (ours - given_up).abs() < 0.05,
                "2^{bucket_bits} {elements}: {given_up} given up, {ours} predicted"
            );
            let rate = dleft_overfull_fpr(buckets, 14, n);
            assert!(
                (rate - wrong).abs() < 0.05,
                "2^{bucket_bits} {elements}: {wrong} wrong, {rate} predicted"
            );
            // If nothing is given up, it is the formula for filters with room.
            if ours <= 0.0 {
                assert!((rate - dleft_fpr(bucket_bits + 14, n)).abs() < 1e-15);
            }
        }
    }

    /// The offsets spread the elements as well if B is no power of two.
    #[test]
    fn any_number_of_buckets_overflows_as_predicted() {
        for (buckets, elements, runs) in [
            (67, 1950, 10),
            (67, 2215, 40),
            (67, 2400, 10),
            (300, 9_130, 10),
            (300, 9_870, 10),
            (300, 10_500, 10),
            (1000, 30_300, 4),
            (1000, 31_400, 4),
            (1000, 34_000, 4),
        ] {
            let (given_up, wrong) = measured(buckets, elements, runs);
            let n = f64::from(elements);
            let ours = dleft_given_up(buckets, 14, n);
            let rate = dleft_overfull_fpr(buckets, 14, n);
            assert!(
                (ours - given_up).abs() < 0.05 && (rate - wrong).abs() < 0.05,
                "{buckets} {elements}: {given_up} given up, {ours} predicted; {wrong} wrong, {rate} predicted"
            );
        }
    }

    #[test]
    fn what_overflows_takes_as_much_as_predicted() {
        use crate::{FilterKind, FilterSpec, Sizing};
        for (bytes, elements) in
            [(256, 100), (256, 150), (1024, 440), (1024, 985), (3072, 1100), (65_536, 16_000)]
        {
            let sizing = Sizing::Memory { bytes, expected: Some(elements) };
            let spec = FilterSpec::new(FilterKind::Dleft, 2, sizing).unwrap();
            let predicted = spec.memory_bytes() + spec.additional_bytes(elements as f64);
            let mut filter = spec.build();
            for number in 0..elements {
                let whole = Digester::new(7).digest(&number.to_le_bytes());
                filter.insert(ElementDigests { whole, attributes: &[] });
            }
            let taken = filter.stats().memory_bytes;
            let is_near = taken.abs_diff(predicted) <= 96 + taken / 50;
            assert!(is_near, "{elements} in {bytes}: {taken}, not {predicted}");
            // Wherever the narrowest cells have room, nothing beyond the memory is taken.
            assert!(elements > bytes / 16 * 7 || taken <= bytes, "{elements} in {bytes}: {taken}");
        }
    }

    #[test]
    fn a_single_bucket_is_given_up_with_the_element_that_finds_no_room() {
        // 32 cells and a stash of 64; q = 30 bits, so that no two elements are equal.
        assert!(dleft_given_up(1, 30, 96.0) < 1e-6);
        assert!(dleft_given_up(1, 30, 97.0) > 1.0 - 1e-4);
    }

    #[test]
    fn more_elements_never_give_up_less() {
        for bucket_bits in [0, 3, 6, 9, 33] {
            let buckets = f64::from(bucket_bits).exp2();
            let mut before = 0.0;
            for load in 1..400 {
                let elements = f64::from(load) * buckets / 2.0;
                let share = dleft_given_up(1 << bucket_bits, 14, elements);
                assert!(before <= share && share <= 1.0, "{bucket_bits} {load}");
                before = share;
            }
            assert!(before > 1.0 - 1e-9);
        }
        // Any number of elements has at most 2^q hashes, which find room here.
        assert!(dleft_given_up(256, 4, 1e9) <= 0.0);
    }
}
