//! The window without digests: three Bloom filters in lines that take turns, in fixed memory.
//!
//! Each is filled for half of the window's width, so together they remember at least one width and at
//! most one and a half. What they call a repeat is dropped.
//!
//! # Packets dropped wrongly
//!
//! A packet that is not there is called a repeat with p = 1 - (1 - p₁)(1 - p₂)(1 - p₃), where pᵢ is the
//! rate of filter i ([`blocked_fpr`] at the number of packets in it). Each packet that is called new
//! was called so with 1 - p, so it stands for p / (1 - p) others that were not: their sum is the
//! expected number of packets dropped wrongly.

use super::plan::WindowWidth;
use super::results::WindowReport;
use crate::bits::Lines;
use crate::filters::sizing::blocked_fpr;
use crate::filters::{BloomLineFilter, ElementDigests, MembershipFilter, Sighting};
use crate::hashing::Digest;

/// Bits that a packet sets in a line.
const PROBES: u32 = 6;

/// Filters.
const TURNS: usize = 3;

/// Packets between two computations of the rate.
const RATE_EVERY: u64 = 1024;

/// The window.
#[derive(Debug)]
pub(super) struct Approximate {
    turns: [BloomLineFilter; TURNS],
    /// Rates of the filters whose turn is over.
    rates: [f64; TURNS],
    lines: u64,
    /// Stamp at which the present turn began.
    began: Option<i64>,
    turn: u64,
    odds: f64,
    packets: u64,
    expected_wrong: f64,
    report: WindowReport,
}

impl Approximate {
    pub(super) fn new(width: WindowWidth, memory_bytes: u64) -> Self {
        let width = match width {
            WindowWidth::Time(width) => width.cast_unsigned(),
            WindowWidth::Packets(count) => count - 1,
        };
        let lines = (memory_bytes / TURNS as u64 / Lines::LINE_BYTES).max(1);
        Self {
            turns: std::array::from_fn(|_| BloomLineFilter::new(lines, PROBES)),
            rates: [0.0; TURNS],
            lines,
            began: None,
            turn: width.div_ceil(2).max(1),
            odds: 0.0,
            packets: 0,
            expected_wrong: 0.0,
            report: WindowReport {
                memory_bytes: lines * Lines::LINE_BYTES * TURNS as u64,
                ..WindowReport::default()
            },
        }
    }

    /// Takes in packets in order; says of each whether it seems to have been in the window.
    pub(super) fn see_all(
        &mut self,
        packets: impl Iterator<Item = (u128, i64)>,
        repeats: &mut Vec<bool>,
    ) {
        for (digest, stamp) in packets {
            self.turn_to(stamp);
            if self.packets.is_multiple_of(RATE_EVERY) {
                self.take_rate();
            }
            self.packets += 1;
            let element = ElementDigests {
                whole: Digest::from_value(digest as u64),
                attributes: &[],
            };
            let [now, before @ ..] = &mut self.turns;
            let known = before.iter().any(|filter| filter.contains(element));
            let repeat = now.insert(element) == Sighting::Repeat || known;
            if !repeat {
                self.report.first += 1;
                self.expected_wrong += self.odds;
            }
            repeats.push(repeat);
        }
    }

    /// Lets turns pass until a packet with this stamp belongs to the present one. A clock that goes
    /// back leaves the turn as it is, unless it goes back further than the filters remember.
    #[inline]
    fn turn_to(&mut self, stamp: i64) {
        let began = *self.began.get_or_insert(stamp);
        let since = stamp.abs_diff(began);
        if since < self.turn || (stamp < began && since < TURNS as u64 * self.turn) {
            return;
        }
        self.pass(stamp, began, since / self.turn);
    }

    #[inline(never)]
    fn pass(&mut self, stamp: i64, began: i64, turns: u64) {
        for _ in 0..turns.min(TURNS as u64) {
            self.rates[0] = self.rate_of_present();
            self.turns.rotate_right(1);
            self.rates.rotate_right(1);
            self.turns[0].clear();
            self.rates[0] = 0.0;
        }
        let whole = i64::try_from(turns.saturating_mul(self.turn)).unwrap_or(i64::MAX);
        self.began = Some(if stamp < began {
            stamp
        } else {
            began.saturating_add(whole)
        });
        self.take_rate();
    }

    fn rate_of_present(&self) -> f64 {
        let packets = self.turns[0].distinct().map_or(0.0, |count| count.distinct);
        blocked_fpr(self.lines as f64, PROBES, packets)
    }

    fn take_rate(&mut self) {
        self.rates[0] = self.rate_of_present();
        let right: f64 = self.rates.iter().map(|rate| 1.0 - rate).product();
        self.odds = (1.0 - right) / right.max(f64::MIN_POSITIVE);
    }

    pub(super) fn report(&self) -> WindowReport {
        WindowReport {
            expected_wrong: Some(self.expected_wrong),
            ..self.report
        }
    }
}
