//! The operations with vectors of four and of eight words on x86-64.

use super::instructions::{Instructions, Work};
use super::places::{BATCH, MULTIPLIERS, Places};
use crate::bits::Line;
use crate::hashing::{Digest, HalfProducts, Products, reduce};
use pulp::x86::{V3, V4};
use pulp::{NullaryFnOnce, u64x4, u64x8};

/// Work together with the proof that the machine has its instructions.
pub(super) struct Run<I, T>(pub(super) I, pub(super) T);

impl<I: Instructions, T: Work> NullaryFnOnce for Run<I, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run_with(self.0);
    }
}

const PLACES: u64x8 = u64x8(0, 6, 12, 18, 24, 30, 36, 42);

/// [`super::places::bits_of`] for eight digests.
#[inline(always)]
fn bits_v4(simd: V4, digests: u64x8) -> u64x8 {
    let (f, dq) = (simd.avx512f, simd.avx512dq);
    let mut bits = bytemuck::cast(digests);
    for multiplier in MULTIPLIERS {
        let multiplier = bytemuck::cast(simd.splat_u64x8(multiplier));
        bits = dq._mm512_mullo_epi64(bits, multiplier);
        bits = f._mm512_xor_si512(bits, f._mm512_srli_epi64::<32>(bits));
    }
    bytemuck::cast(bits)
}

/// [`super::places::probed`] for eight digests, from their [windows](super::places::windows).
#[inline(always)]
fn probed_v4(simd: V4, bits: u64x8, windows: u64x8) -> [u8; 8] {
    let f = simd.avx512f;
    let first = f._mm512_srli_epi64::<61>(bytemuck::cast(bits));
    let amount = f._mm512_slli_epi64::<3>(first);
    let shifted = f._mm512_srlv_epi64(bytemuck::cast(windows), amount);
    let probed = f._mm512_cvtepi64_epi8(shifted);
    let [probed, _]: [[u8; 8]; 2] = bytemuck::cast(probed);
    probed
}

/// [`HalfProducts::reduce`] for eight digests, with one instruction for each product, which the
/// compiler does not find.
#[inline(always)]
fn reduce_v4(simd: V4, digests: u64x8, n: u64) -> u64x8 {
    let f = simd.avx512f;
    let (digests, n) = (bytemuck::cast(digests), bytemuck::cast(simd.splat_u64x8(n)));
    let low = f._mm512_srli_epi64::<32>(f._mm512_mul_epu32(digests, n));
    let high = f._mm512_mul_epu32(f._mm512_srli_epi64::<32>(digests), n);
    bytemuck::cast(f._mm512_srli_epi64::<32>(f._mm512_add_epi64(low, high)))
}

/// Returns the bit of each word, also of those that are not probed.
#[inline(always)]
fn ones_v4(simd: V4, bits: u64) -> u64x8 {
    let bits = bytemuck::cast(simd.splat_u64x8(bits));
    let one = bytemuck::cast(simd.splat_u64x8(1));
    let f = simd.avx512f;
    // Shows the compiler that no place is beyond a word, so that it adds no masks.
    let below_64 = bytemuck::cast(simd.splat_u64x8(63));
    let places = f._mm512_and_si512(bytemuck::cast(PLACES), below_64);
    let place = f._mm512_srlv_epi64(bits, places);
    // A rotation takes its amount modulo 64.
    bytemuck::cast(f._mm512_rolv_epi64(one, place))
}

impl Instructions for V4 {
    #[inline(always)]
    fn find(
        self,
        batch: &[Digest; BATCH],
        lines: u64,
        windows: &[u64; BATCH],
        places: &mut Places,
    ) {
        let digests: [u64x8; BATCH / 8] = bytemuck::cast(batch.map(Digest::value));
        let (bits, _) = places.bits.as_chunks_mut::<8>();
        let (probed, _) = places.probed.as_chunks_mut::<8>();
        // Loops and not `map`, whose closures are not compiled for these instructions.
        let (windows, _) = windows.as_chunks::<8>();
        let all = digests.iter().zip(windows).zip(bits).zip(probed);
        for (((digests, windows), bits), probed) in all {
            let of_eight = bits_v4(self, *digests);
            *bits = bytemuck::cast(of_eight);
            *probed = probed_v4(self, of_eight, bytemuck::cast(*windows));
        }
        let (found, _) = places.lines.as_chunks_mut::<8>();
        if HalfProducts::fits(lines) {
            for (digests, found) in digests.iter().zip(found) {
                *found = bytemuck::cast(reduce_v4(self, *digests, lines));
            }
        } else {
            for (i, &digest) in batch.iter().enumerate() {
                places.lines[i] = reduce(digest.value(), lines);
            }
        }
    }

    #[inline(always)]
    fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8) {
        let ones = bytemuck::cast(ones_v4(self, bits));
        let before = bytemuck::cast(*before);
        let f = self.avx512f;
        let cleared = f._mm512_mask_testn_epi64_mask(probed, before, ones);
        let after = f._mm512_mask_or_epi64(before, probed, before, ones);
        (bytemuck::cast(after), cleared)
    }

    #[inline(always)]
    fn only(self, line: &Line, probed: u8) -> Line {
        let one = bytemuck::cast(self.splat_u64x8(1));
        let f = self.avx512f;
        bytemuck::cast(f._mm512_mask_blend_epi64(probed, one, bytemuck::cast(*line)))
    }
}

/// Four words for each number below 16, which are its bits.
static ONES: Ones = {
    let mut ones = [[0; 4]; 16];
    let mut place = 0;
    while place < 64 {
        let (number, word) = (place / 4, place % 4);
        ones[number][word] = number as u64 >> word & 1;
        place += 1;
    }
    Ones(ones)
};

/// Each row lies in one line of the cache.
#[repr(align(64))]
struct Ones([[u64; 4]; 16]);

#[inline(always)]
fn masks_v3(simd: V3, bits: u64, probed: u8, half: usize) -> u64x4 {
    let places = [u64x4(0, 6, 12, 18), u64x4(24, 30, 36, 42)];
    let place = simd.shr_dyn_u64x4(simd.splat_u64x4(bits), places[half]);
    let place = simd.and_u64x4(place, simd.splat_u64x4(63));
    let one = bytemuck::cast(ONES.0[usize::from(probed >> (4 * half) & 15)]);
    simd.shl_dyn_u64x4(one, place)
}

impl Instructions for V3 {
    #[inline(always)]
    fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8) {
        let before: [u64x4; 2] = bytemuck::cast(*before);
        let mut after = before;
        let mut same = 0;
        for half in 0..2 {
            let mask = masks_v3(self, bits, probed, half);
            after[half] = self.or_u64x4(before[half], mask);
            let equal = self.cmp_eq_u64x4(after[half], before[half]);
            same |= self.avx._mm256_movemask_pd(bytemuck::cast(equal)) << (4 * half);
        }
        (bytemuck::cast(after), !same as u8)
    }
}
