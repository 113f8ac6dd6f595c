//! Digests in the order of a hash function.

use super::{Digest, mix};

/// Bits by which all numbers are divided. Parts of some millions fit into the second-level cache, and
/// a processor writes slowly to many more places at once.
const FIRST_BITS: u32 = 8;

/// Approximate numbers of a part that is sorted by comparisons.
const FEW: usize = 4;

/// Returns the distinct ones of these digests in ascending order of the hash function `stream` (see
/// [`mix`]): numbers with the value of that function in the upper half, and the digest in the lower
/// half ([`digest_of`]).
///
/// The values of a hash function are spread evenly: they are divided by their highest bits, and each
/// part by the next ones.
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
    let mut sorted = vec![0; numbers.len()];
    let ends = divide(numbers, 0, FIRST_BITS, &mut sorted);
    let mut unsorted = Vec::new();
    for part in parts(&mut sorted, &ends).filter(|part| part.len() > 1) {
        unsorted.clear();
        unsorted.extend_from_slice(part);
        let bits = (part.len() / FEW).max(1).ilog2();
        let ends = divide(unsorted.iter().copied(), FIRST_BITS, bits, part);
        parts(part, &ends).for_each(<[u128]>::sort_unstable);
    }
    sorted
}

/// Puts numbers into the order of `bits` bits behind the first `skipped`. Returns where the part
/// of each value of these bits ends.
fn divide(
    numbers: impl Iterator<Item = u128> + Clone,
    skipped: u32,
    bits: u32,
    target: &mut [u128],
) -> Vec<usize> {
    let value = |number: u128| ((number << skipped >> 64) as u64 >> 1 >> (63 - bits)) as usize;
    let mut ends = vec![0_usize; 1 << bits];
    for number in numbers.clone() {
        ends[value(number)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        // The beginning of the part until it is filled, then its end.
        start += std::mem::replace(end, start);
    }
    for number in numbers {
        let end = &mut ends[value(number)];
        target[*end] = number;
        *end += 1;
    }
    ends
}

/// Returns the parts of numbers that end at these places.
fn parts<'a>(numbers: &'a mut [u128], ends: &'a [usize]) -> impl Iterator<Item = &'a mut [u128]> {
    let (mut rest, mut start) = (numbers, 0);
    ends.iter().map(move |&end| {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(end - start);
        (rest, start) = (behind, end);
        part
    })
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
