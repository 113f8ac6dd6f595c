//! How the k bits of a digest are divided among lines, with up to eight in each.
//!
//! An element of k bits has ⌈k / 8⌉ lines, whose numbers of bits differ by at most one. The first
//! line is that of its digest. Each further line is that of another digest derived from it, so it
//! is independent of the others, and may be the same line.

use crate::hashing::{Digest, mix};
use crate::martingale::Chances;
use crate::sizing::MAX_LINE_PROBES;

/// Stream of [`mix`] for the digest of the second line, and following streams for the next ones;
/// part of the structures' definition.
const FURTHER: u64 = 0x40;

/// Returns the number of lines of `probes` ≥ 1 bits.
#[inline]
pub(super) const fn number_of(probes: u32) -> usize {
    probes.div_ceil(MAX_LINE_PROBES) as usize
}

/// Iterates over the lines of `probes` bits, with the number of bits in each.
#[inline]
pub(crate) fn shares(probes: u32) -> impl Iterator<Item = u32> + Clone {
    let number = number_of(probes) as u32;
    (0..number).map(move |share| (probes + number - 1 - share) / number)
}

/// Returns the digest that gives the line of a share, and the places in it.
#[inline]
pub(super) const fn digest_of(digest: Digest, share: usize) -> Digest {
    if share == 0 { digest } else { Digest::from_value(mix(digest, FURTHER + share as u64)) }
}

/// Iterates over the digests of the lines, with the number of bits in each.
#[inline]
pub(super) fn of_digest(digest: Digest, probes: u32) -> impl Iterator<Item = (Digest, u32)> {
    let digests = (0..).map(move |share| digest_of(digest, share));
    digests.zip(shares(probes))
}

/// Combines the chances of the bits in each line, which are independent.
#[inline]
pub(super) fn chances_of_lines(of_each: impl Iterator<Item = Chances>) -> Chances {
    let both = |lines: Chances, next: Chances| Chances {
        missed: lines.missed * next.missed,
        // Not 1 - missed, so that both keep their digits however small they are.
        seen: lines.seen + lines.missed * next.seen,
    };
    of_each.reduce(both).unwrap_or(Chances { missed: 1.0, seen: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use crate::sizing::MAX_PROBES;

    #[test]
    fn bits_are_shared_evenly() {
        for probes in 1..=MAX_PROBES as u32 {
            let all: Vec<u32> = shares(probes).collect();
            assert_eq!(all.iter().sum::<u32>(), probes);
            assert_eq!(all.len(), number_of(probes));
            assert!(all.len() <= 4 && all[0] <= MAX_LINE_PROBES);
            assert!(all.iter().all(|&share| share == all[0] || share + 1 == all[0]));
        }
        assert_eq!(shares(20).collect::<Vec<u32>>(), [7, 7, 6]);
    }

    /// The lines of one element are as independent as those of different elements.
    #[test]
    fn the_digests_of_further_lines_are_independent() {
        const CELLS: usize = 32;
        let digester = Digester::new(5);
        let mut cells = vec![0_u32; CELLS * CELLS];
        for number in 0..100_000_u32 {
            let digest = digester.digest(&number.to_le_bytes());
            let lines: Vec<usize> =
                of_digest(digest, 16).map(|(digest, _)| (digest.value() >> 59) as usize).collect();
            cells[lines[0] * CELLS + lines[1]] += 1;
        }
        let expected = 100_000.0 / (CELLS * CELLS) as f64;
        let chi: f64 =
            cells.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        let freedom = (CELLS * CELLS - 1) as f64;
        assert!((chi - freedom).abs() < 4.5 * (2.0 * freedom).sqrt(), "{chi}");
    }

    #[test]
    fn chances_of_independent_lines_multiply() {
        let lines = [(0.5, 0.5), (0.25, 0.75), (1.0, 0.0)];
        let lines = lines.map(|(missed, seen)| Chances { seen, missed });
        let Chances { seen, missed } = chances_of_lines(lines.into_iter());
        assert!((missed - 0.125).abs() < 1e-15 && (seen - 0.875).abs() < 1e-15);
    }
}
