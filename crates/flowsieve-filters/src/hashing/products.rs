//! The products in hash functions, computed in two ways that give the same numbers.
//!
//! One by one the whole product of two 64-bit numbers is one instruction. Vectors have no such
//! instruction, but products of many pairs of 32-bit halves at once; with vectors of eight words
//! that is faster.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine"
)]

/// How products are computed.
pub trait Products: Copy {
    /// The two halves of the product of 64-bit numbers, combined by XOR.
    fn fold(a: u64, b: u64) -> u64;

    /// As [`super::reduce`], for `n` that [`Products::fits`].
    fn reduce(value: u64, n: u64) -> u64;

    /// Whether [`Products::reduce`] can have this `n`.
    fn fits(n: u64) -> bool;
}

/// By products of 64-bit numbers.
#[derive(Clone, Copy, Debug)]
pub struct WholeProducts;

impl Products for WholeProducts {
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        super::probes::fold(a, b)
    }

    #[inline(always)]
    fn reduce(value: u64, n: u64) -> u64 {
        super::reduce(value, n)
    }

    #[inline(always)]
    fn fits(_: u64) -> bool {
        true
    }
}

/// By products of 32-bit halves, for loops that become vectors.
#[derive(Clone, Copy, Debug)]
pub struct HalfProducts;

impl Products for HalfProducts {
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        let lowest = low(a) * low(b);
        // No sum overflows: a product of halves is at most (2^32 - 1)², two halves less than all
        // bits.
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
pub trait ProductWork {
    /// Computes it by these products.
    fn run_with<P: Products>(self);
}

/// Does the work by the products that are the fastest on this machine and can reduce to `n`.
pub fn run_with_products(n: u64, work: impl ProductWork) {
    #[cfg(target_arch = "x86_64")]
    {
        if HalfProducts::fits(n)
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return simd.vectorize(vectors::OfHalves(work));
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(vectors::Whole(work));
        }
    }
    work.run_with::<WholeProducts>();
}

/// The work on machines with vectors of eight words, and of four.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{HalfProducts, ProductWork, WholeProducts};
    use pulp::NullaryFnOnce;

    pub(super) struct OfHalves<W>(pub(super) W);

    impl<W: ProductWork> NullaryFnOnce for OfHalves<W> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.0.run_with::<HalfProducts>();
        }
    }

    pub(super) struct Whole<W>(pub(super) W);

    impl<W: ProductWork> NullaryFnOnce for Whole<W> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.0.run_with::<WholeProducts>();
        }
    }
}

#[inline(always)]
const fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

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
