//! The rate of a chain of small links, by the distribution of the counters in use.
//!
//! # Exact part
//!
//! An element that a link claims changes none of its counters from zero to one. So after u elements
//! were offered to a link that is not full, the number x of counters in use in a part is the number
//! of distinct ones among u independent places in m, and the parts do not depend on each other:
//!
//! ```text
//! p_0(0) = 1        p_u+1(x) = p_u(x) x/m + p_u(x - 1) (1 - (x - 1)/m)
//! ```
//!
//! The link is full when the sum of its k numbers reaches H = ceil(km/2). The k-fold convolution of
//! `p_u` up to H - 1 is the probability that it still has room; weighted with the product of x/m,
//! it is the rate of those links.
//!
//! # The chain
//!
//! The state is the number j of full links and the number u of elements that the newest was
//! offered. A new element is offered to the newest with probability `Q_j`, the probability that no
//! full link claims it.
//!
//! ```text
//!             Q_j · full(u)                            full(u): that this element fills the newest link
//!   (j, u) ──────────────────► (j + 1, 0)
//!      │       Q_j · (1 - full(u))
//!      └──────────────────────► (j, u + 1)
//! ```
//!
//! Each state keeps the mean of `Q_j` over its chains, since links that became full late claim
//! more. Among these chains `Q_j` varies a little with the division of the counters in use among
//! the parts. Only this is not followed exactly: the rate is the mean of two chains whose `Q_j` are
//! one standard deviation above and below.

use crate::sizing::split_fpr;

/// Probabilities below this are dropped.
const NEGLIGIBLE: f64 = 1e-14;

/// Probabilities, or weights, of the numbers from `first` on.
#[derive(Clone, Debug)]
struct Range {
    first: usize,
    values: Vec<f64>,
}

impl Range {
    /// Drops negligible values at both ends.
    fn trim(&mut self) {
        let small = |value: &&f64| **value < NEGLIGIBLE;
        let above = self.values.iter().rev().take_while(small).count();
        self.values.truncate(self.values.len() - above);
        let below = self.values.iter().take_while(small).count();
        self.values.drain(..below);
        self.first += below;
    }

    /// Multiplies each value by a weight of its number.
    fn weighted(&self, weight: impl Fn(f64) -> f64) -> Self {
        let numbers = self.first..;
        let values = self.values.iter().zip(numbers);
        Self {
            first: self.first,
            values: values.map(|(value, x)| value * weight(x as f64)).collect(),
        }
    }

    /// Returns the distribution of the counters in use in a part of m after one more element.
    fn with_one_more(&self, m: f64) -> Self {
        let mut next = vec![0.0; self.values.len() + 1];
        for (at, value) in self.values.iter().enumerate() {
            let share = (self.first + at) as f64 / m;
            next[at] += value * share;
            next[at + 1] += value * (1.0 - share);
        }
        let mut next = Self { first: self.first, values: next };
        next.trim();
        next
    }

    /// Returns the distribution of the sum of two numbers.
    fn plus(&self, other: &Self) -> Self {
        let mut values = vec![0.0; (self.values.len() + other.values.len()).saturating_sub(1)];
        for (at, a) in self.values.iter().enumerate() {
            for (sum, b) in values[at..].iter_mut().zip(&other.values) {
                *sum += a * b;
            }
        }
        Self { first: self.first + other.first, values }
    }

    /// Returns the distribution of the sum of `count` numbers.
    fn times(&self, count: u32) -> Self {
        if count == 1 {
            return self.clone();
        }
        let half = self.times(count / 2);
        let even = half.plus(&half);
        if count.is_multiple_of(2) { even } else { even.plus(self) }
    }

    /// Returns the weight below `limit` of the sum of `count` numbers.
    fn sum_below(&self, count: u32, limit: usize) -> f64 {
        let halves = [count / 2, count - count / 2];
        let zero = Self { first: 0, values: vec![1.0] };
        let [few, many] = halves.map(|count| match count {
            0 => zero.clone(),
            count => self.times(count),
        });
        let upto: Vec<f64> = few
            .values
            .iter()
            .scan(0.0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect();
        let Some(room) = limit.checked_sub(few.first + many.first) else { return 0.0 };
        // The other number is less than `room - at`.
        let terms = many.values.iter().enumerate().take(room);
        terms.map(|(at, value)| value * upto[(room - at - 1).min(upto.len() - 1)]).sum()
    }
}

/// How a link fills.
#[derive(Default)]
struct Filling {
    /// The probability that one more element fills the link, and the mean rate of the link then, by
    /// the number of elements that it was offered before.
    fills: Vec<(f64, f64)>,
    /// The rate of links that still have room, by the number of elements that they were offered.
    rates: Vec<f64>,
    /// Mean rate of a link that has just become full.
    full_rate: f64,
    /// Variance of the rate among links that became full with the same element.
    full_variance: f64,
}

impl Filling {
    fn of(part: u64, probes: u32) -> Self {
        let m = part as f64;
        let limit = (part * u64::from(probes)).div_ceil(2) as usize;
        let mut in_use = Range { first: 0, values: vec![1.0] };
        let mut filling = Self::default();
        let (mut room, mut rate) = (1.0, 0.0);
        let with_room = |weight: &dyn Fn(f64) -> f64, in_use: &Range| {
            in_use.weighted(weight).sum_below(probes, limit)
        };
        for offered in 1_u32.. {
            filling.rates.push(rate / room);
            if offered as usize * (probes as usize) < limit {
                // It cannot be full yet.
                in_use = in_use.with_one_more(m);
                filling.fills.push((0.0, 0.0));
                rate = split_fpr(m, probes, f64::from(offered));
                continue;
            }
            // Means of the rate and of its square after one more element, whether it fills the link
            // or not.
            let next_rate = with_room(&|x| (x + 1.0 - x / m) / m, &in_use);
            let square = |x: f64| (x * x + (2.0 * x + 1.0) * (1.0 - x / m)) / (m * m);
            let next_square = with_room(&square, &in_use);
            in_use = in_use.with_one_more(m);
            let still_room = with_room(&|_| 1.0, &in_use);
            let still_rate = with_room(&|x| x / m, &in_use);
            let still_square = with_room(&|x| (x / m).powi(2), &in_use);
            let share = (room - still_room).max(0.0);
            if share > NEGLIGIBLE {
                let mean = (next_rate - still_rate) / share;
                filling.fills.push((share / room, mean));
                filling.full_rate += share * mean;
                filling.full_variance += next_square - still_square - share * mean * mean;
            } else {
                filling.fills.push((0.0, 0.0));
            }
            (room, rate) = (still_room, still_rate);
            if room < NEGLIGIBLE {
                break;
            }
        }
        filling.full_variance = filling.full_variance.max(0.0);
        filling
    }
}

/// Chains with the same number of full links and of elements that the newest was offered.
#[derive(Clone, Copy, Debug, Default)]
struct Alike {
    /// Their share of all chains.
    share: f64,
    /// The share times the mean probability that none of their full links claims a new element.
    unclaimed: f64,
}

impl Alike {
    fn add(&mut self, other: Self) {
        self.share += other.share;
        self.unclaimed += other.unclaimed;
    }

    fn times(self, share: f64, unclaimed: f64) -> Self {
        Self { share: self.share * share, unclaimed: self.unclaimed * share * unclaimed }
    }
}

/// Chains with the same number of full links.
struct Newest {
    /// The chains, by the number of elements that the newest link was offered.
    chains: Vec<Alike>,
    /// The numbers whose chains are not negligible.
    active: std::ops::Range<usize>,
    /// Factor on the probability that a new element is offered to the newest link.
    spread: f64,
}

impl Newest {
    fn begin(&mut self, chains: Alike) {
        if chains.share > NEGLIGIBLE {
            self.chains[0].add(chains);
            self.active = 0..self.active.end.max(1);
        }
    }

    /// Inserts one more element into each chain. Removes and returns the chains whose newest link
    /// it fills.
    fn take(&mut self, fills: impl Fn(usize) -> (f64, f64)) -> Alike {
        let mut full = Alike::default();
        let numbers = self.chains.len();
        for offered in self.active.clone().rev() {
            let here = self.chains[offered];
            if here.share <= 0.0 {
                continue;
            }
            let offer = (here.unclaimed / here.share * self.spread).min(1.0);
            let (fills, rate) = fills(offered);
            self.chains[offered] = here.times(1.0 - offer, 1.0);
            full.add(here.times(offer * fills, 1.0 - rate));
            let stays = here.times(offer * (1.0 - fills), 1.0);
            match self.chains.get_mut(offered + 1) {
                Some(next) => next.add(stays),
                None => full.add(stays),
            }
        }
        if !self.active.is_empty() {
            self.active.end = (self.active.end + 1).min(numbers);
        }
        let negligible = |chains: &mut Alike| {
            let small = chains.share < NEGLIGIBLE;
            if small {
                *chains = Alike::default();
            }
            small
        };
        while !self.active.is_empty() && negligible(&mut self.chains[self.active.start]) {
            self.active.start += 1;
        }
        while !self.active.is_empty() && negligible(&mut self.chains[self.active.end - 1]) {
            self.active.end -= 1;
        }
        full
    }
}

/// Returns [`super::rate::chain_fpr`], element by element.
pub(super) fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: u64) -> f64 {
    let filling = Filling::of(part, probes);
    // After more elements the last link claims everything.
    let last_rates: Vec<f64> = (0..u32::MAX)
        .map(|offered| split_fpr(part as f64, probes, f64::from(offered)))
        .take_while(|rate| *rate < 1.0 - NEGLIGIBLE)
        .collect();
    let last = most_links as usize - 1;
    let rates = |number: usize| {
        if number == last { &last_rates } else { &filling.rates }
    };
    let rate_at = |place: f64| {
        let newest = |number: usize| {
            let unclaimed = (1.0 - filling.full_rate).max(f64::MIN_POSITIVE);
            let spread = (filling.full_variance * number as f64).sqrt() / unclaimed;
            Newest {
                chains: vec![Alike::default(); rates(number).len()],
                active: 0..0,
                spread: (1.0 + place * spread).max(0.0),
            }
        };
        let mut links = vec![newest(0)];
        links[0].begin(Alike { share: 1.0, unclaimed: 1.0 });
        let mut claimed = 0.0;
        for _ in 0..elements {
            if links.iter().all(|link| link.active.is_empty()) {
                break;
            }
            for number in (0..links.len()).rev() {
                if number == last {
                    claimed += links[number].take(|_| (0.0, 0.0)).share;
                    continue;
                }
                let full = links[number].take(|offered| filling.fills[offered]);
                if number + 1 == links.len() && full.share > NEGLIGIBLE {
                    links.push(newest(number + 1));
                }
                if let Some(next) = links.get_mut(number + 1) {
                    next.begin(full);
                }
            }
        }
        let (mut sum, mut of) = (claimed, claimed);
        for (number, link) in links.iter().enumerate() {
            for offered in link.active.clone() {
                let Alike { share, unclaimed } = link.chains[offered];
                sum += share - unclaimed * link.spread * (1.0 - rates(number)[offered]);
                of += share;
            }
        }
        sum / of
    };
    if filling.full_variance > 0.0 {
        f64::midpoint(rate_at(-1.0), rate_at(1.0))
    } else {
        rate_at(0.0)
    }
}
