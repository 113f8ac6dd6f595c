//! CMDBF paper, the worked examples, with the paper's own functions.

use super::result::Measured;
use super::{Findings, Found, Settings};
use crate::bits::BitArray;

/// h₁ = x mod m, h₂ = (2x + 3) mod m.
fn addresses(value: u64, size: u64) -> [u64; 2] {
    [value % size, (2 * value + 3) % size]
}

fn xor(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

fn set(filter: &mut BitArray, addresses: [u64; 2]) {
    for address in addresses {
        filter.set(address);
    }
}

fn contains(filter: &BitArray, addresses: [u64; 2]) -> bool {
    addresses.into_iter().all(|address| filter.get(address))
}

/// The set bits as a number: bit i for place i.
fn pattern(filter: &BitArray) -> f64 {
    (0..filter.len()).filter(|&place| filter.get(place)).map(|place| (1_u64 << place) as f64).sum()
}

fn number(answer: bool) -> f64 {
    f64::from(u8::from(answer))
}

pub(super) fn run(_: &Settings) -> Found {
    let mut found = Findings::new([
        "h1 = x mod m and h2 = (2x + 3) mod m, the same for both attributes. Sets of bits are written as numbers, bit i for place i; answers as 1 (yes) and 0 (no). With the same functions for both attributes, (x, x) has address 0 and (a, b) and (b, a) are one element; the filters here use functions of their own for each attribute.".into(),
    ]);
    let mut push = |label: &str, printed: f64, ours: f64, reason: &str| {
        found.cell(label).printed(printed, 0.0).measured(Measured::exactly(ours)).because(reason);
    };
    let mut single = BitArray::new(5);
    set(&mut single, addresses(9, 5));
    set(&mut single, addresses(11, 5));
    push("m=5, {9, 11}: set bits", 19.0, pattern(&single), "bits 0, 1 and 4");
    let answer = |value| number(contains(&single, addresses(value, 5)));
    push("m=5: 15 is contained", 0.0, answer(15), "bits 0 and 3");
    push("m=5: 16 is contained", 1.0, answer(16), "bits 1 and 0: a false positive");
    let [mut first, mut second, mut combined] = [(); 3].map(|()| BitArray::new(8));
    for (a, b) in [(9, 7), (11, 9)] {
        let (a, b) = (addresses(a, 8), addresses(b, 8));
        set(&mut first, a);
        set(&mut second, b);
        set(&mut combined, xor(a, b));
    }
    push("m=8, (9,7), (11,9): set bits of BF1", 42.0, pattern(&first), "bits 1, 3 and 5");
    push("m=8, (9,7), (11,9): set bits of BF2", 162.0, pattern(&second), "bits 1, 5 and 7");
    push("m=8, (9,7), (11,9): set bits of CBF", 84.0, pattern(&combined), "bits 2, 4 and 6");
    let (a, b) = (addresses(11, 8), addresses(15, 8));
    let apart = contains(&first, a) && contains(&second, b);
    push(
        "m=8: MDBF contains (11,15)",
        1.0,
        number(apart),
        "bits 3 and 1, and 7 and 1: a false positive of the MDBF",
    );
    push(
        "m=8: CMDBF contains (11,15)",
        0.0,
        number(apart && contains(&combined, xor(a, b))),
        "bit 4 is set, bit 0 is not: the CMDBF rejects it",
    );
    Ok(found)
}
