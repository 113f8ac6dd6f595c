//! The clock of a pcapng interface: how its ticks become time.

use super::time::{NANOS_PER_SECOND, saturate};

const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

/// Length of a tick.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tick {
    /// So many nanoseconds.
    Nanoseconds(u64),
    /// A nanosecond has this many ticks.
    PerNanosecond(u64),
    /// A second has 2 to this power ticks.
    PowerOfTwo(u32),
    /// So short that no 64-bit number of them makes a nanosecond.
    Negligible,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Clock {
    tick: Tick,
    /// `if_tsresol`, as the interface has it or would have it.
    pub(super) resolution: u8,
    offset_ns: i128,
}

impl Clock {
    /// A clock of this resolution (`if_tsresol`), counted from the epoch.
    pub(super) fn of(resolution: u8) -> Self {
        Self { tick: tick(resolution), resolution, offset_ns: 0 }
    }

    /// Reads `if_tsresol` and `if_tsoffset` among the options of an interface; without them a tick
    /// is a microsecond, counted from the epoch.
    pub(super) fn from_options<'a>(
        options: impl Iterator<Item = (u16, &'a [u8])>,
        big_endian: bool,
    ) -> Self {
        let mut clock = Self::of(6);
        for (code, value) in options.take_while(|&(code, _)| code != OPTION_END) {
            if let (OPTION_RESOLUTION, &[resolution, ..]) = (code, value) {
                clock = Self { offset_ns: clock.offset_ns, ..Self::of(resolution) };
            }
            if let (OPTION_OFFSET, Some(&bytes)) = (code, value.first_chunk()) {
                let parse = if big_endian { i64::from_be_bytes } else { i64::from_le_bytes };
                clock.offset_ns = i128::from(parse(bytes)) * i128::from(NANOS_PER_SECOND);
            }
        }
        clock
    }

    /// A stamp that [`Self::time_ns`] turns into this time, or into the nearest one before it; the
    /// nearest that there is.
    pub(super) fn ticks(self, time_ns: i64) -> u64 {
        let time = (i128::from(time_ns) - self.offset_ns).max(0).cast_unsigned();
        let ticks = match self.tick {
            Tick::Nanoseconds(nanoseconds) => time / u128::from(nanoseconds),
            Tick::PerNanosecond(count) => time.saturating_mul(u128::from(count)),
            Tick::PowerOfTwo(power) => {
                let second = NANOS_PER_SECOND as u128;
                let whole = (time / second).saturating_mul(1 << power);
                let rest = time % second;
                let part = (rest << power.min(90)).div_ceil(second);
                // A tick longer than a nanosecond may begin later.
                let is_later = (part * second) >> power > rest;
                whole.saturating_add(part - u128::from(is_later))
            }
            Tick::Negligible => u128::MAX,
        };
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Time of a stamp in nanoseconds since the epoch, rounded down.
    #[inline]
    pub(super) fn time_ns(self, ticks: u64) -> i64 {
        if let Tick::Nanoseconds(nanoseconds) = self.tick
            && self.offset_ns == 0
            && let Some(time) = ticks.checked_mul(nanoseconds)
        {
            return i64::try_from(time).unwrap_or(i64::MAX);
        }
        let time = match self.tick {
            Tick::Nanoseconds(nanoseconds) => u128::from(ticks) * u128::from(nanoseconds),
            Tick::PerNanosecond(count) => u128::from(ticks / count),
            Tick::PowerOfTwo(power) => (u128::from(ticks) * NANOS_PER_SECOND as u128) >> power,
            Tick::Negligible => 0,
        };
        // 2^64 seconds are 2^94 nanoseconds: the sum stays far inside.
        saturate(time.cast_signed() + self.offset_ns)
    }
}

/// `if_tsresol`: the negative power of ten of the tick, or of two if the highest bit is set.
fn tick(resolution: u8) -> Tick {
    match resolution {
        0..=9 => Tick::Nanoseconds(10u64.pow(u32::from(9 - resolution))),
        10..=28 => Tick::PerNanosecond(10u64.pow(u32::from(resolution - 9))),
        29..=0x7f => Tick::Negligible,
        _ => Tick::PowerOfTwo(u32::from(resolution & 0x7f)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(resolution: u8, offset: i64) -> Clock {
        let offset = offset.to_be_bytes();
        let options =
            [(9, [resolution].to_vec()), (14, offset.to_vec()), (0, vec![]), (9, vec![0])];
        Clock::from_options(options.iter().map(|(code, value)| (*code, value.as_slice())), true)
    }

    #[test]
    fn powers_of_ten_and_of_two() {
        assert_eq!(clock(0, 0).time_ns(7), 7_000_000_000);
        assert_eq!(clock(6, 0).time_ns(7), 7000);
        assert_eq!(clock(9, 0).time_ns(7), 7);
        assert_eq!(clock(12, 0).time_ns(7999), 7);
        assert_eq!(clock(0x80, 0).time_ns(7), 7_000_000_000);
        assert_eq!(clock(0x8a, 0).time_ns(512), 500_000_000);
        assert_eq!(clock(6, -1).time_ns(7), -999_993_000);
        assert_eq!(Clock::from_options([].into_iter(), false).time_ns(3), 3000);
    }

    #[test]
    fn stamps_are_the_last_ones_that_are_no_later() {
        let times = [0, 1, 999, 123_456_789, 1_999_999_999];
        for resolution in (0..=17).chain(0x80..=0xbb) {
            for clock in [0, -17].map(|offset| clock(resolution, offset)) {
                for time in times {
                    let ticks = clock.ticks(time);
                    let before = clock.time_ns(ticks);
                    let is_last = before == time || clock.time_ns(ticks + 1) > time;
                    assert!(before <= time && is_last, "{resolution:#x} {time} {before}");
                }
            }
        }
    }

    #[test]
    fn nothing_overflows() {
        for resolution in 0..=255 {
            for offset in [0, i64::MIN, i64::MAX] {
                let _ = clock(resolution, offset).time_ns(u64::MAX);
            }
        }
        assert_eq!(clock(0, 0).time_ns(u64::MAX), i64::MAX);
        assert_eq!(clock(0, i64::MIN).time_ns(0), i64::MIN);
        assert_eq!(clock(9, 0).time_ns(u64::MAX), i64::MAX);
    }
}
