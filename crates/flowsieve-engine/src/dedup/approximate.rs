//! The window without digests: Bloom filters in lines that take turns, in bounded memory.
//!
//! Each turn is half of the window's width, and the filters of three turns are kept, so together
//! they remember at least one width and at most one and a half. What they call a repeat is dropped.
//!
//! A turn begins with a filter for as many packets as the turns before had. When that has its share
//! of packets, one of twice the size follows it, until the memory of a turn is used up; then the
//! last one takes them all. So the memory is what the rate needs, which the caches hold most of the
//! time, and what is cleared for a turn is in proportion to what was put in.
//!
//! # Packets dropped wrongly
//!
//! A packet that is not there is called a repeat with p = 1 - ∏ (1 - pᵢ), where pᵢ is the rate of
//! filter i ([`blocked_fpr`] at the number of packets in it). Each packet that is called new was
//! called so with 1 - p, so it stands for p / (1 - p) others that were not: their sum is the
//! expected number of packets dropped wrongly. If nearly all packets are called repeats, few are
//! called new, and the sum says nothing.

use super::plan::WindowWidth;
use super::results::WindowReport;
use crate::bits::Lines;
use crate::filters::sizing::blocked_fpr;
use crate::filters::{ElementDigests, MembershipFilter, Sighting, SubsetFilter};
use crate::hashing::Digest;
use crate::memory::can_allocate;
use std::collections::VecDeque;

/// Bits that a packet sets in a line.
const PROBES: u32 = 6;

/// Turns that are remembered.
const TURNS: u64 = 3;

/// Lines of the smallest filter.
const LEAST_LINES: u64 = 256;

/// Packets a line after which a larger filter follows: 128 bits a packet.
const PACKETS_A_LINE: u64 = 4;

/// Packets between two computations of the rate.
const RATE_EVERY: u64 = 1024;

/// Chance to be called new below which the number of packets dropped wrongly is unknown.
const LEAST_RIGHT: f64 = 0.02;

/// A filter of a turn.
#[derive(Debug)]
struct Part {
    filter: SubsetFilter,
    lines: u64,
    packets: u64,
    /// Packets that it takes before a larger one is tried.
    room: u64,
    /// Number of its turn.
    turn: u64,
    /// Its rate, if no more packets come.
    rate: f64,
}

/// The window.
#[derive(Debug, Default)]
pub(super) struct Approximate {
    /// The latest first.
    parts: VecDeque<Part>,
    /// Most lines of a turn.
    most_lines: u64,
    /// Number of the present turn, and the stamp at which it began.
    turn: u64,
    began: Option<i64>,
    turn_width: u64,
    odds: f64,
    packets: u64,
    expected_wrong: f64,
    report: WindowReport,
}

impl Part {
    fn new(lines: u64, turn: u64) -> Self {
        Self {
            filter: SubsetFilter::new(lines, PROBES),
            lines,
            packets: 0,
            room: lines * PACKETS_A_LINE,
            turn,
            rate: 0.0,
        }
    }

    fn take_rate(&mut self) {
        let packets = self.filter.distinct().map_or(0.0, |count| count.distinct);
        self.rate = blocked_fpr(self.lines as f64, PROBES, packets);
    }
}

impl Approximate {
    pub(super) fn new(width: WindowWidth, memory_bytes: u64) -> Self {
        let width = match width {
            WindowWidth::Time(width) => width.cast_unsigned(),
            WindowWidth::Packets(count) => count - 1,
        };
        let most_lines = (memory_bytes / TURNS / Lines::LINE_BYTES).max(1);
        let mut window =
            Self { most_lines, turn_width: width.div_ceil(2).max(1), ..Self::default() };
        window.add(Part::new(LEAST_LINES.min(most_lines), 0));
        window
    }

    /// Takes in packets in order; says of each whether it seems to have been in the window.
    pub(super) fn see_all(&mut self, digests: &[u128], stamps: &[i64], repeats: &mut Vec<bool>) {
        for (&digest, &stamp) in digests.iter().zip(stamps) {
            self.turn_to(stamp);
            if self.parts[0].packets >= self.parts[0].room {
                self.grow();
            }
            if self.packets.is_multiple_of(RATE_EVERY) {
                self.take_odds();
            }
            self.packets += 1;
            let element =
                ElementDigests { whole: Digest::from_value(digest as u64), attributes: &[] };
            let mut parts = self.parts.iter_mut();
            let now = parts.next().expect("a turn has a filter");
            now.packets += 1;
            let repeat = now.filter.insert(element) == Sighting::Repeat
                || parts.any(|part| part.filter.contains(element));
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
        if since < self.turn_width || (stamp < began && since < TURNS * self.turn_width) {
            return;
        }
        self.pass(stamp, began, since / self.turn_width);
    }

    #[inline(never)]
    fn pass(&mut self, stamp: i64, began: i64, turns: u64) {
        let most = (0..TURNS).map(|ago| self.packets_of(ago)).max();
        self.parts[0].take_rate();
        self.turn += turns.min(TURNS);
        let is_over = |part: &Part| self.turn - part.turn >= TURNS;
        let kept = self.parts.iter().position(is_over);
        let over = self.parts.split_off(kept.unwrap_or(self.parts.len()));
        let wanted = most.unwrap_or(0).div_ceil(PACKETS_A_LINE).next_power_of_two();
        let lines = wanted.max(LEAST_LINES).min(self.most_lines);
        // Memory that is there already.
        let same = over.into_iter().find(|part| part.lines == lines);
        let part = match same {
            Some(mut part) => {
                part.filter.clear();
                Part {
                    filter: part.filter,
                    packets: 0,
                    room: lines * PACKETS_A_LINE,
                    turn: self.turn,
                    ..part
                }
            }
            None => Part::new(lines.min(self.given(lines)), self.turn),
        };
        self.add(part);
        let whole = i64::try_from(turns.saturating_mul(self.turn_width)).unwrap_or(i64::MAX);
        self.began = Some(if stamp < began { stamp } else { began.saturating_add(whole) });
    }

    /// Packets of the turn `ago` turns before this one.
    fn packets_of(&self, ago: u64) -> u64 {
        let parts = self.parts.iter();
        let parts = parts.filter(|part| part.turn + ago == self.turn);
        parts.map(|part| part.packets).sum()
    }

    /// Returns this many lines, or the fewest if the system refuses their memory.
    fn given(&self, lines: u64) -> u64 {
        if can_allocate(lines * Lines::LINE_BYTES) {
            lines
        } else {
            LEAST_LINES.min(self.most_lines)
        }
    }

    /// Goes on with a larger filter, if there is memory for it.
    #[cold]
    fn grow(&mut self) {
        let parts = self.parts.iter().filter(|part| part.turn == self.turn);
        let left = self.most_lines - parts.map(|part| part.lines).sum::<u64>().min(self.most_lines);
        let lines = (2 * self.parts[0].lines).min(left);
        // A smaller one would be full at once.
        if lines >= self.parts[0].lines && can_allocate(lines * Lines::LINE_BYTES) {
            self.parts[0].take_rate();
            self.add(Part::new(lines, self.turn));
        } else {
            self.parts[0].room = u64::MAX;
        }
    }

    /// A filter takes the packets from now on.
    fn add(&mut self, part: Part) {
        self.parts.push_front(part);
        let lines: u64 = self.parts.iter().map(|part| part.lines).sum();
        let bytes = lines * Lines::LINE_BYTES;
        self.report.memory_bytes = self.report.memory_bytes.max(bytes);
        self.take_odds();
    }

    fn take_odds(&mut self) {
        self.parts[0].take_rate();
        let right: f64 = self.parts.iter().map(|part| 1.0 - part.rate).product();
        self.odds = (1.0 - right) / right;
        if right < LEAST_RIGHT {
            self.expected_wrong = f64::INFINITY;
        }
    }

    pub(super) fn report(&self) -> WindowReport {
        let expected_wrong = Some(self.expected_wrong).filter(|packets| packets.is_finite());
        WindowReport { expected_wrong, ..self.report }
    }
}
