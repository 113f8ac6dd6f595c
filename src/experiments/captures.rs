//! Traffic for experiments: the captures of the user, or generated ones. For host pairs these are
//! captures of many hosts a second, as traffic between networks has them, and others, as floods have
//! them.

use super::result::ExperimentError;
use super::{Experiment, Settings};
use crate::elements::{ElementKind, ElementRule};
use crate::filters::{CounterSpec, FilterSpec};
use crate::generate::{GenerateKind, GeneratePlan, generate};
use crate::pipeline::{
    Align, CountExtras, CountPlan, CountSummary, CounterChoice, Observer, SliceResult, Slicing,
    Traffic, TrafficPair, count,
};
use crate::plan::TracePlan;
use crate::trace::InputFormat;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// Maximum number of captures in an experiment.
const MOST: usize = 3;

/// Minimum number of distinct elements in the fullest slice of a capture.
const LEAST: u64 = 100;

/// Memory of an exact set.
const EXACT_LIMIT_BYTES: u64 = 1 << 30;

/// A capture to experiment with.
pub(super) struct ExperimentCapture {
    /// Its name for people: the file's, without the folder.
    pub(super) name: String,
    /// The file.
    pub(super) path: PathBuf,
    /// A generated capture, and its name if it has one, which is removed at the end.
    _generated: Option<(File, Option<TempPath>)>,
}

/// Starts an experiment with remarks on the origin of its captures and on problems in reading them.
fn findings(from: String, problems: Vec<String>) -> Experiment {
    let mut found = Experiment::new([from]);
    found.remarks.extend(problems.first().map(|first| {
        let captures = if problems.len() == 1 { "capture was" } else { "captures were" };
        format!("{} {captures} not read in full; {first}.", problems.len())
    }));
    found.problems = problems;
    found
}

/// Returns why a capture was not read to its end, if it was not.
fn problems(summary: &CountSummary) -> impl Iterator<Item = String> {
    summary.inputs.iter().filter_map(|input| Some(input.error.as_ref()?.to_string()))
}

/// Returns the captures of the user with the most DNS triples, and an experiment that begins with
/// their origin.
pub(super) fn dns_traffic(
    settings: &Settings,
) -> Result<(Vec<ExperimentCapture>, Experiment), ExperimentError> {
    let kind = ElementKind::DNS;
    let mut unread = Vec::new();
    let mut ranked: Vec<(u64, &PathBuf)> = Vec::new();
    for path in &settings.captures {
        let (summary, _) = count_capture(path, kind, None, None, Vec::new());
        unread.extend(problems(&summary));
        if summary.totals.quantiles.is_some_and(|it| it.max >= LEAST) {
            ranked.push((summary.totals.exact.unwrap_or(0), path));
        }
    }
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    if ranked.is_empty() {
        let generated = generated(settings, kind)?;
        return Ok((vec![generated], none_given(settings, kind, unread)));
    }
    let from = format!(
        "Real captures: those with the most distinct {} of {} given.",
        kind.plural(),
        settings.captures.len()
    );
    let traffic = ranked.into_iter().take(MOST).map(|(_, path)| ExperimentCapture::from_path(path));
    Ok((traffic.collect(), findings(from, unread)))
}

/// Starts an experiment with the reason why its traffic is generated.
fn none_given(settings: &Settings, kind: ElementKind, problems: Vec<String>) -> Experiment {
    let why = if settings.captures.is_empty() {
        "No capture was given".to_owned()
    } else {
        let read = if problems.is_empty() { "" } else { ", as far as they could be read" };
        format!(
            "None of the {} captures given has {LEAST} distinct {} in a slice and enough slices{read}",
            settings.captures.len(),
            kind.plural()
        )
    };
    let why = format!(
        "{why}: this is traffic made by the generator of flowsieve generate, not real traffic."
    );
    findings(why, problems)
}

fn generated(settings: &Settings, kind: ElementKind) -> Result<ExperimentCapture, ExperimentError> {
    let (kind, packets) = match kind {
        ElementKind::DNS => (GenerateKind::Dns, settings.scale.pick(4_000, 200_000, 200_000)),
        _ => (GenerateKind::Traffic, settings.scale.pick(5_000, 400_000, 4_000_000)),
    };
    let mut plan = GeneratePlan::new(kind, packets);
    plan.seed = settings.seed;
    plan.duration_ns = 20_000_000_000;
    let file = NamedTempFile::new().map_err(|error| not_generated(&error))?;
    let (file, name) = file.into_parts();
    // Without a name, nothing is left behind however the program ends.
    let (path, name) = match in_proc(&file).filter(|path| path.is_file()) {
        Some(path) => {
            drop(name);
            (path, None)
        }
        None => (name.to_path_buf(), Some(name)),
    };
    let mut out = io::BufWriter::new(&file);
    generate(&plan, &mut out).and_then(|_| out.flush()).map_err(|error| not_generated(&error))?;
    drop(out);
    Ok(ExperimentCapture { name: "generated".into(), path, _generated: Some((file, name)) })
}

fn not_generated(error: &io::Error) -> ExperimentError {
    ExperimentError(format!(
        "traffic for the experiment cannot be written to the directory for temporary files ({error}); make room there, or name another one in TMPDIR"
    ))
}

/// Returns another path to an open file.
#[cfg(target_os = "linux")]
fn in_proc(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;

    Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}

#[cfg(not(target_os = "linux"))]
fn in_proc(_: &File) -> Option<PathBuf> {
    None
}

impl ExperimentCapture {
    /// Opens a capture of the user.
    fn from_path(path: &Path) -> Self {
        let name = path.file_name();
        Self {
            name: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            path: path.to_owned(),
            _generated: None,
        }
    }
}

/// Counts a capture, a damaged one up to the damage. Returns its summary and its slices.
pub(super) fn count_capture(
    path: &Path,
    kind: ElementKind,
    width_ns: Option<i64>,
    filter: Option<FilterSpec>,
    observers: Vec<&mut dyn Observer>,
) -> (CountSummary, Vec<SliceResult>) {
    // TSH has no mark.
    let is_tsh = path.extension().is_some_and(|end| end == "tsh");
    let plan = CountPlan {
        trace: TracePlan {
            input_format: if is_tsh { InputFormat::Tsh } else { InputFormat::Auto },
            threads: 1,
            ..TracePlan::new([path])
        },
        rule: ElementRule { kind, ..ElementRule::default() },
        slicing: Slicing { width_ns, align: Align::First },
        counter: filter.map(|spec| CounterChoice {
            name: spec.name(),
            shard: CounterSpec::Filter(spec),
            combinations: None,
        }),
        exact_limit_bytes: Some(EXACT_LIMIT_BYTES),
        seed: 0,
        shards: 1,
        every_ns: None,
    };
    let mut slices = Vec::new();
    let extras = CountExtras { observers, ..CountExtras::default() };
    let summary = count(&plan, extras, &mut slices, &());
    (summary.expect("the plan is sound and the slices are only gathered"), slices)
}

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
