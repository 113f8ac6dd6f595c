//! Digests in the order of a hash function.

use super::{Digest, mix};

/// Approximate digests of a part, which is sorted within the second-level cache.
const PART: usize = 256;

/// Binary logarithm of the most parts: a processor writes slowly to more places at once.
const MOST_PARTS: u32 = 12;

/// Returns the distinct ones of these digests in ascending order of the hash function `stream` (see
/// [`mix`]): numbers with the value of that function in the upper half, and the digest in the lower
/// half ([`digest_of`]).
///
/// The values of a hash function are spread evenly: they are divided by their highest bits, and
/// each part is sorted.
pub(crate) fn in_order_of(stream: u64, digests: &[Digest]) -> Vec<u128> {
    let pairs = digests
        .iter()
        .map(|&digest| u128::from(mix(digest, stream)) << 64 | u128::from(digest.value()));
    let mut pairs = sorted(pairs);
    pairs.dedup();
    pairs
}

/// Returns the digest in the lower half of a number of [`in_order_of`].
pub(crate) const fn digest_of(number: u128) -> Digest {
    Digest::from_value(number as u64)
}

/// Sorts numbers whose highest bits are spread evenly; others take more time.
pub fn sorted(numbers: impl ExactSizeIterator<Item = u128> + Clone) -> Vec<u128> {
    let bits = (numbers.len() / PART).max(1).ilog2().min(MOST_PARTS);
    if bits == 0 {
        let mut numbers: Vec<u128> = numbers.collect();
        numbers.sort_unstable();
        return numbers;
    }
    let part = |number: u128| (number >> (128 - bits)) as usize;
    let mut ends = vec![0_usize; 1 << bits];
    for number in numbers.clone() {
        ends[part(number)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        // The beginning of the part until it is filled, then its end.
        start += std::mem::replace(end, start);
    }
    let mut sorted = vec![0; start];
    for number in numbers {
        let end = &mut ends[part(number)];
        sorted[*end] = number;
        *end += 1;
    }
    let mut rest = &mut sorted[..];
    let mut start = 0;
    for end in ends {
        let (part, behind) = rest.split_at_mut(end - start);
        part.sort_unstable();
        (rest, start) = (behind, end);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use std::collections::BTreeSet;

    #[test]
    fn they_are_what_an_ordered_set_holds() {
        let digester = Digester::new(3);
        for count in [0_u64, 1, 2, 511, 512, 2000, 50_000] {
            let digests: Vec<Digest> = (0..count)
                .map(|number| digester.digest(&(number % 20_000).to_le_bytes()))
                .collect();
            let pair = |of: &Digest| (mix(*of, 7), of.value());
            let expected: BTreeSet<(u64, u64)> = digests.iter().map(pair).collect();
            let found = in_order_of(7, &digests).into_iter();
            let found = found.map(|pair| ((pair >> 64) as u64, pair as u64));
            assert!(found.eq(expected), "{count}");
        }
    }

    #[test]
    fn numbers_that_are_not_spread_are_sorted_as_well() {
        let numbers: Vec<u128> = (0..5000).rev().chain((0..3000).map(|at| at << 120)).collect();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        assert_eq!(sorted(numbers.into_iter()), expected);
    }
}
