//! A comparison in words: one sentence for each verdict, the crossovers and the floors.

use super::compare_model::{CaptureDigest, CompareReport, Crossing, VerdictRow, size_words};
use super::number::{bare, counted, duration, grouped, joined, short_percent, some, some_slices};
use super::run_view::captures;
use super::selection::{selection_words, zone_words};
use crate::comparison::statistics::{Crossover, Interval, Margin, PairJudgement, Verdict};
use crate::comparison::{
    ComparePlan, Comparison, Contender, CountKind, ExpectedFrom, Floor, ProbeRule, Seeds,
};
use flowsieve_engine::internal::Shown;

/// Sizes that a sentence lists.
const LISTED: usize = 3;

/// A difference below this many points may be due to the rounding of k.
const SMALL_DIFFERENCE: f64 = 0.003;

/// Returns the title: captures, elements, slices, counts and setting.
pub(super) fn title(report: &CompareReport<'_>) -> String {
    let (plan, comparison) = (report.plan, report.comparison);
    let slices = comparison.judged().count() as u64;
    let distinct = comparison.judged().filter_map(|slice| slice.exact).sum();
    let direction = if plan.rule.undirected { "undirected " } else { "" };
    let elements = counted_elements(plan, distinct);
    let setting = if comparison.has_arrays { "arrays of equal size" } else { "equal total memory" };
    let kinds = if report.main_kind() == CountKind::Raw { "raw counts" } else { "estimates" };
    let (captures, slices) = (captures(&comparison.inputs), slices_words(plan, slices));
    let (seeds, zone) = (seeds_words(comparison), zone_words(plan.trace.selection.zone));
    format!("{captures}: {direction}{elements} in {slices}; {kinds}, {seeds}, {setting}{zone}")
}

fn counted_elements(plan: &ComparePlan, number: u64) -> String {
    let elements = plan.rule.kind.plural();
    let elements = if number == 1 { elements.trim_end_matches('s') } else { &elements };
    format!("{} {elements}", grouped(number))
}

/// Returns the word for a slice.
pub(super) fn slice_word(plan: &ComparePlan) -> &'static str {
    if plan.slicing.width_ns == Some(1_000_000_000) { "second" } else { "slice" }
}

fn slices_words(plan: &ComparePlan, slices: u64) -> String {
    let (one, s) = (slice_word(plan), if slices == 1 { "" } else { "s" });
    match plan.slicing.width_ns {
        None => "one slice".to_owned(),
        Some(width) if one == "slice" => {
            format!("{} slice{s} of {}", grouped(slices), duration(width))
        }
        Some(_) => format!("{} {one}{s}", grouped(slices)),
    }
}

pub(super) fn seeds_of(seeds: usize) -> String {
    counted(seeds as u64, "seed", "seeds")
}

/// The replicates of all sizes.
fn seeds_words(comparison: &Comparison) -> String {
    let seeds = comparison.entries.iter().map(|entry| entry.replicates.len());
    let used = seeds.clone().filter(|seeds| *seeds > 0);
    let (fewest, most) = (used.clone().min().unwrap_or(0), used.max().unwrap_or(0));
    if fewest == most { seeds_of(most) } else { format!("{fewest} to {most} seeds") }
}

/// How the numbers of hash functions were chosen.
pub(super) fn probes_words(report: &CompareReport<'_>) -> String {
    let expected = &report.comparison.expected;
    match (report.plan.probes, expected.elements, expected.from) {
        (ProbeRule::Given(k), ..) => format!("k = {k} for every structure that has a k, as given"),
        _ if report.comparison.has_arrays => "k = 4, as in the paper".to_owned(),
        (ProbeRule::Best, ..) => "k: the best of trials that are not judged".to_owned(),
        (ProbeRule::Formula, Some(n), from) => {
            let from = if from == ExpectedFrom::Given { "as given" } else { "p95" };
            format!("k: by formula for {} a slice, {from}", counted_elements(report.plan, n))
        }
        _ if report.comparison.slices.iter().any(|slice| slice.exact.is_none()) => {
            "k = 4, since slices passed --exact-limit".to_owned()
        }
        (ProbeRule::Formula, None, _) => "k = 4, since no slice ended".to_owned(),
    }
}

/// Differences that do not matter.
pub(super) fn margin_words(plan: &ComparePlan) -> String {
    let Margin { points, share } = plan.margin;
    let [points, share] = [points, share].map(|share| (share * 1e8).round() / 1e6);
    format!("margin {points} points or {share} % of the larger error")
}

/// Which seeds ran, why no more, and what does not matter.
pub(super) fn seeds_rule(report: &CompareReport<'_>) -> String {
    let (plan, comparison) = (report.plan, report.comparison);
    let seeds = comparison.entries.iter().map(|entry| entry.replicates.len());
    let seeds = match seeds.max().unwrap_or(0) {
        0 => return format!("no seed ran; {}", margin_words(plan)),
        1 => "seed 0".to_owned(),
        seeds => format!("seeds 0-{}", seeds - 1),
    };
    let why = match (plan.seeds, &comparison.looks[..]) {
        (Seeds::Auto, [.., most]) if comparison.looks.len() > 1 => {
            format!("until decided at level {} % or {most}", bare(comparison.rule.level()))
        }
        (Seeds::Auto, _) => "all at once".to_owned(),
        (Seeds::Fixed(_), _) => "as asked for".to_owned(),
    };
    format!("{seeds} of --seed {}, {why}; {}", plan.seed, margin_words(plan))
}

/// The digest of each capture.
pub(super) fn digests(captures: &[CaptureDigest]) -> impl Iterator<Item = String> {
    captures.iter().filter_map(|capture| {
        Some(format!("SHA-256 of {}: {}", file_name(&capture.name), capture.sha256.as_ref()?))
    })
}

/// The last part of a path, as it may be shown.
pub(super) fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().shown().to_string()
}

/// The program and its command line.
pub(super) fn program_words(command: &str) -> String {
    format!("flowsieve {}: {command}", env!("CARGO_PKG_VERSION"))
}

/// The count that structures are compared by: the raw one if the pair has it.
pub(super) fn main_kind(plan: &ComparePlan) -> CountKind {
    let has_raw = |it: Contender| it.filter().is_some() || it == Contender::Planned;
    match plan.pair {
        Some(pair) if !pair.into_iter().all(has_raw) => CountKind::Estimate,
        _ => CountKind::Raw,
    }
}

/// Which hash functions a CMDBF has that takes part.
pub(super) fn variant_words(plan: &ComparePlan) -> Vec<String> {
    let has = |name: &str| plan.contenders.iter().any(|it| it.name() == name);
    let joint = has("cmdbf").then_some("cmdbf: joint hash, not the paper's XOR (cmdbf-xor)");
    let xor = has("cmdbf-xor").then_some("cmdbf-xor: XOR of the addresses, as in the paper");
    joint.into_iter().chain(xor).map(str::to_owned).collect()
}

impl CompareReport<'_> {
    pub(super) fn main_kind(&self) -> CountKind {
        main_kind(self.plan)
    }

    /// The sentences that come first.
    pub(super) fn sentences(&self) -> Vec<String> {
        let kind = self.main_kind();
        let rows = self.verdicts(kind);
        let mut sentences = verdict_sentences(&rows, self.plan);
        sentences.extend(self.crossing_sentence(&rows));
        sentences.extend(self.arrays_sentence());
        sentences.extend(floor_sentence(&self.comparison.floors(self.plan), self.plan));
        sentences
    }

    /// Where the pair changes places.
    pub(super) fn crossings(&self) -> Vec<Crossing> {
        let (comparison, kind) = (self.comparison, self.main_kind());
        let crossings = self.plan.pair.into_iter().flat_map(|pair| {
            let probes = move |size: u64| pair.map(|it| comparison.entry(it, size)?.probes);
            comparison.crossovers(pair, kind).into_iter().map(move |at: Crossover| {
                let mut names = pair.map(Contender::name);
                if at.below == Verdict::B {
                    names.reverse();
                }
                let [from, to] = at.between.map(probes);
                Crossing { at, names, k_changes: from != to }
            })
        });
        crossings.collect()
    }

    /// Where the two change places, or that they do not.
    fn crossing_sentence(&self, rows: &[VerdictRow]) -> Option<String> {
        let words = self.crossings().into_iter().map(|Crossing { at, names, k_changes }| {
            let [from, to] = at.between.map(|size| self.size(size));
            let near = self.size(at.interpolated.round() as u64);
            let [below, above] = names;
            let k = if k_changes { ", and k changes there" } else { "" };
            format!("{below} up to {from}, {above} from {to} on; they cross near {near}{k}")
        });
        if let Some(words) = joined(words, "; ") {
            return Some(format!("Nearer: {words}."));
        }
        let judged = || rows.iter().filter_map(VerdictRow::judged);
        let near = judged().find(|it| it.verdict.is_nearer())?.joint.value;
        let turned = |it: &PairJudgement| it.joint.low * near < 0.0 && it.joint.high * near < 0.0;
        let open = judged().any(|it| it.verdict == Verdict::Open);
        // Within the margin, too, the other one may be nearer for certain.
        let slightly = judged().any(|it| it.verdict == Verdict::NoMatter && turned(it));
        let turned = judged().any(|it| it.verdict.is_nearer() && turned(it));
        (judged().count() > 1 && !turned).then(|| {
            let matters = if slightly { " that matters" } else { "" };
            let decided = if open { " where it is decided" } else { "" };
            format!("No crossover{matters}{decided}.")
        })
    }

    /// Compares MDBF and CMDBF with the same arrays and hash functions: a CMDBF has one more array,
    /// which can only say no more often.
    fn arrays_sentence(&self) -> Option<String> {
        let pair = self.plan.pair?;
        if !self.comparison.has_arrays || pair.map(Contender::name) != ["mdbf", "cmdbf"] {
            return None;
        }
        let size = self.main_size()?;
        let [mdbf, cmdbf] = pair.map(|it| self.comparison.entry(it, size));
        if mdbf?.probes != cmdbf?.probes {
            return None;
        }
        let [of_mdbf, of_cmdbf] = [mdbf?, cmdbf?]
            .map(|entry| Some(self.comparison.errors(entry, CountKind::Raw)?.error.value));
        let [bytes, more] = [mdbf?, cmdbf?].map(|entry| entry.memory_bytes);
        let [removed, of_mdbf] = [of_mdbf? - of_cmdbf?, of_mdbf?].map(bare);
        let (size, times) = (self.size(size), more? as f64 / bytes? as f64);
        Some(format!(
            "With the same arrays cmdbf is never farther off: at {size} it removes {removed} of mdbf's {of_mdbf} points, and takes {times:.1} times the memory."
        ))
    }

    /// Returns the limits of the answers.
    pub(super) fn remarks(&self) -> Vec<String> {
        let (plan, comparison) = (self.plan, self.comparison);
        let mut remarks = Vec::new();
        let selected = selection_words(&plan.trace.selection, &comparison.inputs);
        remarks.extend(selected.map(|words| format!("{words}.")));
        let rows = self.verdicts(self.main_kind());
        remarks.extend(rounded_probes(&rows));
        remarks.extend(turned_by_probes(&rows));
        remarks.extend(self.small_slices());
        let over = comparison.slices.iter().filter(|slice| slice.exact.is_none()).count() as u64;
        remarks.extend(some_slices(over, comparison.slices.len() as u64).map(|slices| {
            let are = if over == 1 { "is" } else { "are" };
            format!("{slices} {are} not judged: the exact sets passed their limit; raise it with --exact-limit.")
        }));
        let omitted = some(comparison.slices_omitted, "later slice is", "later slices are");
        remarks.extend(omitted.map(|slices| {
            format!("{slices} left out of all results; widen --slice, or raise --exact-limit.")
        }));
        remarks.extend(comparison.is_streamed.then(|| {
            let seeds = comparison.looks.last().copied().unwrap_or(1);
            format!("The trace is too long for further looks within --exact-limit: {seeds} seeds at once.")
        }));
        remarks.extend(self.unequal_memory());
        let planned = comparison.entries.iter().filter(|it| it.contender == Contender::Planned);
        let planned = planned.filter_map(|entry| {
            Some(format!("{} at {}", entry.kind?.name(), self.size(entry.size)))
        });
        remarks.extend(joined(planned, ", ").map(|planned| format!("plan recommends {planned}.")));
        let unfit = comparison.entries.iter().filter_map(|entry| {
            let (name, why) = (entry.contender.name(), entry.unfit.as_ref()?);
            Some(format!("{name} does not fit into {}: {why}.", self.size(entry.size)))
        });
        remarks.extend(unfit);
        remarks
    }

    /// Says that most slices are small, and what the others give.
    fn small_slices(&self) -> Option<String> {
        const SMALL: u64 = 10;
        let (pair, kind) = (self.plan.pair?, self.main_kind());
        let judged: Vec<u64> = self.comparison.judged().filter_map(|slice| slice.exact).collect();
        let all = judged.len() as u64;
        let small = judged.iter().filter(|&&exact| exact < SMALL).count() as u64;
        if 2 * small <= all {
            return None;
        }
        let size = middle(&self.comparison.sizes)?;
        let others = pair.map(|contender| {
            let entry = self.comparison.entry(contender, size)?;
            let errors = self.comparison.slice_errors(entry, kind).into_iter();
            let slices = errors.zip(&self.comparison.slices);
            let large = slices.filter(|(_, slice)| slice.exact >= Some(SMALL));
            let mean = mean(large.filter_map(|(error, _)| error))?;
            Some(format!("{} {}", contender.name(), short_percent(mean)))
        });
        let others = joined(others.into_iter().flatten(), ", ");
        let others = others.map_or_else(String::new, |others| {
            format!("; mean error of the others at {}: {others}", self.size(size))
        });
        let (slices, elements) = (some_slices(small, all)?, self.plan.rule.kind.plural());
        let have = if small == 1 { "has" } else { "have" };
        Some(format!("{slices} {have} fewer than {SMALL} {elements}{others}."))
    }

    /// Names structures that take more or less memory than they were given, and the nearest that all
    /// can fill.
    fn unequal_memory(&self) -> Option<String> {
        if self.comparison.has_arrays {
            return None;
        }
        let differs = |used: u64, asked: u64| used.abs_diff(asked) as f64 > 0.01 * asked as f64;
        let unequal = self.comparison.entries.iter().filter_map(|entry| {
            let used = entry.memory_bytes.filter(|&used| differs(used, entry.size))?;
            let (name, size) = (entry.contender.name(), self.size(entry.size));
            Some(format!("{name} at {size} uses {}", self.size(used)))
        });
        let unequal: Vec<String> = unequal.collect();
        let listed = joined(unequal.iter().take(LISTED).cloned(), ", ")?;
        let more = unequal.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "Not the memory that was asked for: {listed}{more}; multiples of 48 B are filled by most."
        ))
    }
}

/// The mean; `None` of no numbers.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let numbers: Vec<f64> = numbers.collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The middle one; of an even number the lower.
pub(super) fn middle<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Sizes at which two structures have the same verdict.
type Judged<'a> = [(&'a VerdictRow, &'a PairJudgement)];

/// Returns a sentence for each kind of verdict, the one about most sizes first.
pub(super) fn verdict_sentences(rows: &[VerdictRow], plan: &ComparePlan) -> Vec<String> {
    let Some(pair) = plan.pair else { return Vec::new() };
    let of = |verdict: Verdict| -> Vec<(&VerdictRow, &PairJudgement)> {
        let judged = rows.iter().filter_map(|row| Some((row, row.judged()?)));
        judged.filter(|(_, judged)| judged.verdict == verdict).collect()
    };
    let elements = plan.rule.kind.plural();
    let names = pair.map(Contender::name);
    let mut nearer = [(0, of(Verdict::A)), (1, of(Verdict::B))];
    if nearer[1].1.len() >= nearer[0].1.len() {
        nearer.swap(0, 1);
    }
    let mut sentences = Vec::new();
    for (near, rows) in nearer.iter().filter(|(_, rows)| !rows.is_empty()) {
        sentences.push(nearer_sentence(rows, names, *near, sentences.is_empty(), &elements));
    }
    sentences.extend(no_matter_sentence(&of(Verdict::NoMatter), &elements));
    sentences.extend(same_sentence(&of(Verdict::Same), rows));
    sentences.extend(open_sentence(&of(Verdict::Open)));
    let why = |row: &VerdictRow| row.verdict.result.clone().err();
    let alike = rows.chunk_by(|a, b| why(a) == why(b));
    let unjudged = alike.filter_map(|rows| Some((rows, why(&rows[0])?))).take(LISTED);
    sentences.extend(unjudged.map(|(same, why)| {
        let sizes = listed(&same.iter().map(size_of).collect::<Vec<_>>());
        let at = if same.len() == rows.len() { String::new() } else { format!(" at {sizes}") };
        format!("{} and {} cannot be compared{at}: {why}.", names[0], names[1])
    }));
    sentences
}

/// Says which of the two is nearer at these sizes; `is_whole` with its intervals.
fn nearer_sentence(
    rows: &Judged<'_>,
    names: [&str; 2],
    near: usize,
    is_whole: bool,
    elements: &str,
) -> String {
    let (row, judged) = rows[rows.len().saturating_sub(1) / 2];
    let (far, sizes, at) = (1 - near, list_of(rows), at(row, rows));
    let [[own, low], [other, high]] = [near, far].map(|it| error(row, judged, it));
    let hopeless = hopeless(judged, elements);
    if !is_whole {
        let near = names[near];
        return format!("At {sizes} {near}'s is: {at}{own} against {other}{hopeless}.");
    }
    let nearer = judged.seeds_nearer[near];
    let seeds = if judged.difference.low < judged.difference.high {
        format!("in {nearer} of {} seeds", judged.seeds)
    } else {
        format!("the same difference in all {} seeds", judged.seeds)
    };
    let (count, error) = (row.verdict.count.words(), row.verdict.count.error_words());
    let [near, far] = [names[near], names[far]];
    format!(
        "At {sizes} {near}'s {count} is nearer: {at}{error} {own}{low} against {far}'s {other}{high}, {seeds}{hopeless}."
    )
}

fn no_matter_sentence(rows: &Judged<'_>, elements: &str) -> Option<String> {
    let (row, judged) = middle(rows)?;
    let [[a, _], [b, _]] = [0, 1].map(|it| error(row, judged, it));
    let by = match row.verdict.count {
        CountKind::Raw => format!(", {} points", points(judged.difference)),
        CountKind::Estimate => String::new(),
    };
    let (sizes, at, seeds) = (list_of(rows), at(row, rows), judged.seeds);
    let hopeless = hopeless(judged, elements);
    Some(format!(
        "At {sizes} there is no difference that matters: {at}{a} against {b}{by} ({seeds} seeds){hopeless}."
    ))
}

fn same_sentence(same: &Judged<'_>, rows: &[VerdictRow]) -> Option<String> {
    let seeds = same.iter().map(|(_, judged)| judged.seeds).min()?;
    // Whether they are the last ones.
    let tail = rows[rows.len() - same.len()..].iter();
    let is_tail = tail.zip(same).all(|(row, (own, _))| row.verdict.size == own.verdict.size);
    let at = if same.len() > 1 && is_tail {
        format!("From {} on", size_of(same[0].0))
    } else {
        format!("At {}", list_of(same))
    };
    Some(format!("{at} both counts are the same in all {seeds} seeds."))
}

fn open_sentence(rows: &Judged<'_>) -> Option<String> {
    let &(row, judged) = rows.first()?;
    let range = match row.verdict.count {
        CountKind::Raw if judged.joint.low.is_finite() => {
            format!(" ({}{} points)", at(row, rows), points(judged.joint))
        }
        _ => String::new(),
    };
    let more = [30, 100].into_iter().find(|&more| judged.seeds < more);
    let more = more.map_or(String::new(), |more| format!("; try `--seeds {more}`"));
    let seeds = seeds_of(judged.seeds) + if judged.seeds == 1 { " does" } else { " do" };
    Some(format!("At {} {seeds} not decide{range}{more}.", list_of(rows)))
}

/// Returns the size of a row, if it is one of several.
fn at(row: &VerdictRow, rows: &Judged<'_>) -> String {
    if rows.len() > 1 { format!("at {} ", size_of(row)) } else { String::new() }
}

fn hopeless(judged: &PairJudgement, elements: &str) -> String {
    if !judged.hopeless {
        return String::new();
    }
    format!("; both lose more than half of the {elements}, so neither is of use")
}

/// The error of one of the two in per cent, and its interval behind it, if that has a width.
fn error(row: &VerdictRow, judged: &PairJudgement, number: usize) -> [String; 2] {
    let [value, low, high] = in_percent(row.verdict.count.shown_interval(judged.means[number]));
    let interval = if low == high { String::new() } else { format!(" (95 % {low}-{high})") };
    [format!("{value} %"), interval]
}

/// A mean and its interval in per cent, with as many decimals as the interval is narrow, and as a
/// small mean needs. Without an interval its ends are empty.
pub(super) fn in_percent(interval: Interval) -> [String; 3] {
    let Interval { value, low, high } = interval;
    let half = (high - low) * 50.0;
    if half == 0.0 || !half.is_finite() {
        let ends = if half == 0.0 { bare(value) } else { String::new() };
        return [bare(value), ends.clone(), ends];
    }
    let narrow = if value > 0.0 { half.min(value * 100.0) } else { half };
    [value, low.max(0.0), high].map(|share| as_narrow_as(narrow, share))
}

/// A share in per cent, with as many decimals as half of its interval is narrow.
fn as_narrow_as(half: f64, share: f64) -> String {
    let decimals = (-half.log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{:.decimals$}", share * 100.0)
}

/// An interval of a difference in points: `2.3 to 3.2`, without sign if it has one sign only.
pub(super) fn points(difference: Interval) -> String {
    let Interval { low, high, .. } = difference;
    let half = (high - low) * 50.0;
    if half == 0.0 {
        return bare(low.abs());
    }
    let number = |share| as_narrow_as(half, share);
    if low < 0.0 && high > 0.0 {
        return format!("{} to +{}", number(low), number(high));
    }
    let (least, most) = if high <= 0.0 { (-high, -low) } else { (low, high) };
    format!("{} to {}", number(least), number(most))
}

pub(super) fn size_of(row: &VerdictRow) -> String {
    size_words(row.has_arrays, row.verdict.size)
}

/// Sizes: `192, 768 B and 3 KiB`; the first and the last of many.
fn list_of(rows: &Judged<'_>) -> String {
    let sizes: Vec<String> = rows.iter().map(|(row, _)| size_of(row)).collect();
    listed(&sizes)
}

fn listed(sizes: &[String]) -> String {
    match sizes {
        [] => String::new(),
        [one] => one.clone(),
        [first, .., last] if sizes.len() > LISTED => {
            format!("{first} to {last} ({} sizes)", sizes.len())
        }
        [others @ .., last] => {
            // A unit that the next size has too is said once.
            let unit = |size: &str| size.rsplit_once(' ').map_or("", |(_, unit)| unit).to_owned();
            let followers = sizes[1..].iter();
            let others =
                others.iter().zip(followers).map(|(size, next)| match size.rsplit_once(' ') {
                    Some((number, own)) if own == unit(next) => number.to_owned(),
                    _ => size.clone(),
                });
            format!("{} and {last}", others.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Says what the pair misses at any memory.
pub(super) fn floor_sentence(floors: &[Floor], plan: &ComparePlan) -> Option<String> {
    let pair = plan.pair.unwrap_or([Contender::Planned; 2]);
    let floors = floors.iter().filter(|floor| floor.mean > 0.0);
    let floors = floors.filter(|floor| pair.contains(&floor.contender)).map(|floor| {
        let is_more = (floor.lost - floor.mean).abs() > 0.001;
        let lost = is_more.then(|| format!(" ({} of all)", short_percent(floor.lost)));
        let lost = lost.unwrap_or_default();
        format!("{} loses at least {}{lost}", floor.contender.name(), short_percent(floor.mean))
    });
    let (floors, elements) = (joined(floors, ", ")?, plan.rule.kind.plural());
    Some(format!("{floors} here at any memory: {elements} of values that were each seen before."))
}

/// Says that a small difference may be one of rounding: few hash functions, and not as many in both.
fn rounded_probes(rows: &[VerdictRow]) -> Option<String> {
    const FEW: u32 = 3;
    let row = rows.iter().find(|row| {
        let differ = matches!(row.verdict.probes, [Some(a), Some(b)] if a != b && a.min(b) <= FEW);
        let small = row.judged().is_some_and(|judged| {
            matches!(judged.verdict, Verdict::A | Verdict::B | Verdict::Open)
                && judged.difference.value.abs() < SMALL_DIFFERENCE
        });
        row.by_formula.is_none() && row.verdict.count == CountKind::Raw && differ && small
    })?;
    let [a, b] = row.verdict.pair.map(Contender::name);
    let [k_a, k_b] = row.verdict.probes.map(Option::unwrap_or_default);
    let at = size_of(row);
    Some(format!(
        "At {at} k is rounded to {k_a} ({a}) and {k_b} ({b}), which may decide; `--k best` tells."
    ))
}

/// Says which verdicts another number of hash functions turned.
fn turned_by_probes(rows: &[VerdictRow]) -> Option<String> {
    let turned = rows.iter().filter_map(|row| {
        let verdicts = [row.judged()?.verdict, row.by_formula?];
        let ([best, formula], size) = (verdicts.map(|it| row.word(it)), size_of(row));
        (verdicts[0] != verdicts[1])
            .then(|| format!("{best} with the best k, {formula} by the formula at {size}"))
    });
    let turned = joined(turned, "; ")?;
    Some(format!("The number of hash functions decides: {turned}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_their_intervals_allow() {
        let of = |value: f64, half: f64| {
            in_percent(Interval { value, low: value - half, high: value + half }).join(" ")
        };
        assert_eq!(of(0.047_3, 0.002), "4.7 4.5 4.9");
        assert_eq!(of(0.494_6, 0.004_4), "49.5 49.0 49.9");
        assert_eq!(of(0.000_26, 0.000_22), "0.03 0.00 0.05");
        assert_eq!(of(0.075, 0.0), "7.5 7.5 7.5");
        let small = Interval { value: 0.004_7, low: 0.002_2, high: 0.033 };
        assert_eq!(in_percent(small), ["0.5", "0.2", "3.3"]);
        let none = Interval { value: 0.1, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(in_percent(none), ["10", "", ""]);
        let range = |low: f64, high: f64| points(Interval { value: 0.0, low, high });
        assert_eq!(range(0.023, 0.032), "2.3 to 3.2");
        assert_eq!(range(-0.032, -0.023), "2.3 to 3.2");
        assert_eq!(range(-0.012, 0.006), "-1.2 to +0.6");
    }

    #[test]
    fn sizes_say_their_unit_once() {
        let of =
            |sizes: &[&str]| listed(&sizes.iter().map(|&size| size.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["96 B"]), "96 B");
        assert_eq!(of(&["192 B", "768 B", "3 KiB"]), "192, 768 B and 3 KiB");
        assert_eq!(of(&["96 B", "192 B", "768 B", "3 KiB"]), "96 B to 3 KiB (4 sizes)");
    }

    #[test]
    fn the_middle_of_a_sweep() {
        assert_eq!(middle::<u64>(&[]), None);
        assert_eq!(middle(&[1, 2, 3, 4]), Some(2));
        assert_eq!(middle(&[1, 2, 3]), Some(2));
    }
}
