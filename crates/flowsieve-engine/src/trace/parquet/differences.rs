//! Numbers as differences, in blocks, each of which has parts of a width of their own.
//!
//! ```text
//!     numbers of a block, parts of a block, numbers, first │ least difference │ widths │ what each has beyond the least │ ...
//! ```

/// Most numbers of a block and of its parts: more than any program writes.
const MOST_IN_BLOCK: u64 = 1 << 16;
const MOST_PARTS: u64 = 1 << 10;

/// Bits of the widest number.
const WIDEST: u64 = 64;

/// Numbers of one column, and which is next. The bytes are those of the page.
#[derive(Clone, Debug)]
pub(super) struct Differences {
    /// Where the next part or block begins.
    at: usize,
    parts: usize,
    numbers_a_part: u64,
    /// Widths of the parts of this block that were not read: where they stand, and how many they
    /// are.
    widths: usize,
    parts_left: usize,
    least: i64,
    /// The present part.
    bit: u64,
    width: u64,
    left_in_part: u64,
    number: i64,
    is_first: bool,
    left: u64,
}

impl Differences {
    /// Those that begin here, at most so many.
    pub(super) fn new(bytes: &[u8], mut at: usize, most: u64) -> Option<Self> {
        let block = number(bytes, &mut at)?;
        let parts = number(bytes, &mut at)?;
        let left = number(bytes, &mut at)?;
        let first = signed(bytes, &mut at)?;
        let is_possible = (1..=MOST_IN_BLOCK).contains(&block)
            && (1..=MOST_PARTS).contains(&parts)
            && block % (8 * parts) == 0
            && left <= most;
        is_possible.then(|| Self {
            at,
            parts: parts as usize,
            numbers_a_part: block / parts,
            widths: 0,
            parts_left: 0,
            least: 0,
            bit: 0,
            width: 0,
            left_in_part: 0,
            number: first,
            is_first: true,
            left,
        })
    }

    /// The next number.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        if self.is_first {
            self.is_first = false;
            return Some(self.number);
        }
        if self.left_in_part == 0 {
            self.turn(bytes)?;
        }
        self.left_in_part -= 1;
        let beyond = self.bits(bytes)?.cast_signed();
        self.bit += self.width;
        let difference = self.least.wrapping_add(beyond);
        self.number = self.number.wrapping_add(difference);
        Some(self.number)
    }

    /// Where the bytes behind the last number begin.
    pub(super) fn end(&self, bytes: &[u8]) -> Option<usize> {
        let mut rest = self.clone();
        while rest.left > 0 {
            rest.next(bytes)?;
        }
        Some(rest.at)
    }

    /// Goes to the next part.
    fn turn(&mut self, bytes: &[u8]) -> Option<()> {
        if self.parts_left == 0 {
            self.least = signed(bytes, &mut self.at)?;
            self.widths = self.at;
            self.at = self.at.checked_add(self.parts)?;
            self.parts_left = self.parts;
        }
        self.width = u64::from(*bytes.get(self.widths)?);
        if self.width > WIDEST {
            return None;
        }
        self.widths += 1;
        self.parts_left -= 1;
        self.left_in_part = self.numbers_a_part;
        self.bit = self.at as u64 * 8;
        let length = self.numbers_a_part * self.width / 8;
        self.at = self.at.checked_add(length as usize)?;
        (self.at <= bytes.len()).then_some(())
    }

    /// The number of the present width that begins at the present bit, which is in the page.
    fn bits(&self, bytes: &[u8]) -> Option<u64> {
        if self.width == 0 {
            return Some(0);
        }
        let here = bytes.get((self.bit / 8) as usize..)?;
        let mut word = [0; 16];
        let length = here.len().min(9);
        word[..length].copy_from_slice(&here[..length]);
        let word = u128::from_le_bytes(word) >> (self.bit % 8);
        Some(word as u64 & u64::MAX >> (WIDEST - self.width))
    }
}

fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let number = number(bytes, at)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block of 16 numbers in two parts: 4 bits each, and none.
    const PAGE: [u8; 13] = [16, 2, 17, 20, 1, 4, 0, 0x21, 0x43, 0x65, 0x87, 0, 9];

    #[test]
    fn numbers_are_sums_of_differences() {
        // First 10; each difference is -1 and what is beyond that.
        let mut numbers = Differences::new(&PAGE, 0, 17).expect("a page");
        let mut expected = vec![10];
        for beyond in [1, 2, 3, 4, 5, 6, 7, 8] {
            expected.push(expected[expected.len() - 1] + beyond - 1);
        }
        for _ in 0..8 {
            expected.push(expected[expected.len() - 1] - 1);
        }
        assert_eq!(numbers.end(&PAGE), Some(11));
        for number in expected {
            assert_eq!(numbers.next(&PAGE), Some(number));
        }
        assert_eq!(numbers.next(&PAGE), None);
        assert!(Differences::new(&PAGE, 0, 16).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_numbers_or_none(
            head in prop::sample::select(vec![vec![], vec![128, 1, 4], vec![16, 2]]),
            rest in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..9], 0..60),
        ) {
            let bytes = [head, rest].concat();
            if let Some(mut numbers) = Differences::new(&bytes, 0, 1000) {
                let end = numbers.end(&bytes);
                let count = (0..=1000).take_while(|_| numbers.next(&bytes).is_some()).count();
                prop_assert!(count <= 1000);
                prop_assert!(end.is_none_or(|end| end <= bytes.len()));
            }
        }
    }
}
