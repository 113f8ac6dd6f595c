//! Captures of many hosts a second, as traffic between networks has them, and others, as floods
//! have them.

use super::captures::{
    ExperimentCapture, count_capture, findings, generated, none_given, problems,
};
use super::result::ExperimentError;
use super::{Experiment, Settings};
use crate::elements::ElementKind;
use crate::pipeline::{Traffic, TrafficPair};
use std::collections::{HashMap, HashSet};

/// A capture with its traffic per second.
pub(super) struct Busy {
    pub(super) capture: ExperimentCapture,
    /// Distinct pairs of its fullest second.
    pub(super) most: u64,
    pub(super) hosts: Hosts,
    /// Its IP packets, and distinct pairs, second by second added up.
    packets: u64,
    pairs: u64,
}

/// The distribution of pairs among hosts. Shares are of pairs, in either direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hosts {
    /// No host dominates, as on a line between networks.
    Many,
    /// One host has more than half of the pairs: a flood, a scan, a single client or server.
    One(f64),
    /// More than half of the pairs are of hosts that no other pair has: made up, as in floods.
    Apart(f64),
}

impl Hosts {
    fn of(traffic: &Traffic) -> Self {
        let ends = |pair: TrafficPair| {
            let [a, b] = pair.names();
            if a <= b { [a, b] } else { [b, a] }
        };
        let is_listed = |pair: &TrafficPair| pair.addresses.is_some();
        let pairs: HashSet<[String; 2]> =
            traffic.pairs().into_iter().filter(is_listed).map(ends).collect();
        let mut pairs_of: HashMap<&str, u64> = HashMap::new();
        for [a, b] in &pairs {
            *pairs_of.entry(a).or_default() += 1;
            if a != b {
                *pairs_of.entry(b).or_default() += 1;
            }
        }
        let share = |pairs_with: u64| pairs_with as f64 / pairs.len().max(1) as f64;
        let busiest = share(pairs_of.values().copied().max().unwrap_or(0));
        let is_apart = |pair: &&[String; 2]| pair.iter().all(|host| pairs_of[host.as_str()] == 1);
        let apart = share(pairs.iter().filter(is_apart).count() as u64);
        if apart > 0.5 {
            Self::Apart(apart)
        } else if busiest > 0.5 {
            Self::One(busiest)
        } else {
            Self::Many
        }
    }

    /// In a few words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Many => "many hosts".to_owned(),
            Self::One(share) => format!("one host has {:.0} % of the pairs", 100.0 * share),
            Self::Apart(share) => {
                format!("{:.0} % of the pairs are of hosts that no other pair has", 100.0 * share)
            }
        }
    }
}

/// Captures of many hosts that are looked at, and others.
const MOST_OF_MANY: usize = 8;
const MOST_OTHERS: usize = 4;

/// Distinct pairs of the fullest second below which a capture says nothing.
const LEAST_PAIRS: u64 = 10;

/// Returns the user's captures with the fullest seconds: first those of many hosts, then the
/// others; and findings that begin with where they come from.
pub(super) fn busy(settings: &Settings) -> Result<(Vec<Busy>, Experiment), ExperimentError> {
    let kind = ElementKind::HOST_PAIR;
    let mut unread = Vec::new();
    let mut judged = |capture: ExperimentCapture| {
        let mut traffic = Traffic::new(32);
        let second = Some(1_000_000_000);
        let (summary, _) = count_capture(&capture.path, kind, second, None, vec![&mut traffic]);
        unread.extend(problems(&summary));
        Busy {
            capture,
            most: summary.totals.quantiles.map_or(0, |q| q.max),
            hosts: Hosts::of(&traffic),
            packets: summary.totals.ip_packets,
            pairs: summary.totals.exact.unwrap_or(0),
        }
    };
    let captures = settings.captures.iter();
    let mut busy: Vec<Busy> = captures
        .map(|path| judged(ExperimentCapture::from_path(path)))
        .filter(|busy| busy.most >= LEAST_PAIRS)
        .collect();
    busy.sort_by(|a, b| {
        let most = b.most.cmp(&a.most);
        most.then_with(|| a.capture.path.cmp(&b.capture.path))
    });
    // The same packets in several containers are one capture.
    let mut contents = HashSet::new();
    busy.retain(|busy| contents.insert((busy.most, busy.packets, busy.pairs)));
    if busy.is_empty() {
        let made = judged(generated(settings, kind)?);
        return Ok((vec![made], none_given(settings, kind, unread)));
    }
    let (mut many, others): (Vec<Busy>, Vec<Busy>) =
        busy.into_iter().partition(|busy| busy.hosts == Hosts::Many);
    many.truncate(MOST_OF_MANY);
    many.extend(others.into_iter().take(MOST_OTHERS));
    let from = format!(
        "Real captures: those with the fullest seconds of {} given; first up to {MOST_OF_MANY} of many hosts, then up to {MOST_OTHERS} others, in which one host has more than half of the pairs or most hosts have one pair alone (floods, scans, single hosts).",
        settings.captures.len()
    );
    Ok((many, findings(from, unread)))
}
