//! The products in hash functions, computed in two ways that give the same numbers.
//!
//! The full product of two 64-bit numbers is one scalar instruction. Vectors only have products of
//! 32-bit halves, but many at once; with vectors of eight words that is faster.

/// How products are computed.
pub(crate) trait Products: Copy {
    /// The two halves of the product of 64-bit numbers, combined by XOR.
    fn fold(a: u64, b: u64) -> u64;

    /// [`super::reduce`], for an `n` that [fits](Products::fits).
    fn reduce(value: u64, n: u64) -> u64;

    /// Returns whether [`Products::reduce`] works for this `n`.
    #[inline(always)]
    fn fits(_n: u64) -> bool {
        true
    }
}

/// Products of 64-bit numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeProducts;

impl Products for WholeProducts {
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        super::probes::fold(a, b)
    }

    #[inline(always)]
    fn reduce(value: u64, n: u64) -> u64 {
        super::reduce(value, n)
    }
}

/// Products of 32-bit halves, for loops that are vectorised.
#[cfg(any(test, target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfProducts;

#[cfg(any(test, target_arch = "x86_64"))]
impl Products for HalfProducts {
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        let lowest = low(a) * low(b);
        // No sum overflows: a product of halves is at most (2^32 - 1)², which leaves room for two
        // halves.
        let middle = high(a) * low(b) + high(lowest);
        let other = low(a) * high(b) + low(middle);
        let highest = high(a) * high(b) + high(middle) + high(other);
        (other << 32 | low(lowest)) ^ highest
    }

    #[inline(always)]
    fn reduce(value: u64, n: u64) -> u64 {
        high(high(value) * low(n) + high(low(value) * low(n)))
    }

    #[inline(always)]
    fn fits(n: u64) -> bool {
        high(n) == 0
    }
}

/// A computation that is generic over its products.
pub(crate) trait ProductWork {
    /// Runs the computation with these products.
    fn run_with<P: Products>(self);
}

/// Runs the work with the fastest products of this machine that fit `n`.
pub(crate) fn run_with_products(n: u64, work: impl ProductWork) {
    #[cfg(target_arch = "x86_64")]
    {
        if HalfProducts::fits(n)
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return simd.vectorize(vectors::With(HalfProducts, work));
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(vectors::With(WholeProducts, work));
        }
    }
    work.run_with::<WholeProducts>();
}

/// The work on machines with vectors.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{ProductWork, Products};
    use pulp::NullaryFnOnce;

    pub(super) struct With<P, W>(pub(super) P, pub(super) W);

    impl<P: Products, W: ProductWork> NullaryFnOnce for With<P, W> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.1.run_with::<P>();
        }
    }
}

#[cfg(any(test, target_arch = "x86_64"))]
#[inline(always)]
const fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

#[cfg(any(test, target_arch = "x86_64"))]
#[inline(always)]
const fn high(word: u64) -> u64 {
    word >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(a: u64, b: u64) {
        let product = u128::from(a) * u128::from(b);
        let folded = product as u64 ^ (product >> 64) as u64;
        assert_eq!(HalfProducts::fold(a, b), folded, "{a} {b}");
        assert_eq!(WholeProducts::fold(a, b), folded, "{a} {b}");
        let n = b >> 32;
        assert!(HalfProducts::fits(n) && !HalfProducts::fits(1 << 32 | n));
        let reduced = ((u128::from(a) * u128::from(n)) >> 64) as u64;
        assert_eq!(HalfProducts::reduce(a, n), reduced, "{a} {n}");
        assert_eq!(WholeProducts::reduce(a, n), reduced, "{a} {n}");
    }

    #[test]
    fn products_of_extreme_numbers() {
        let half = u64::from(u32::MAX);
        let numbers = [0, 1, half, half + 1, !half, u64::MAX - 1, u64::MAX];
        for a in numbers {
            for b in numbers {
                check(a, b);
            }
        }
    }

    proptest! {
        #[test]
        fn both_ways_give_the_products(a: u64, b: u64) {
            check(a, b);
        }
    }
}
