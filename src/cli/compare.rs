//! `flowsieve compare`: structures side by side on the same traffic, at equal memory.

use super::design::{parse_expected, wanted_of};
use super::options::{
    ExactLimitArgs, FormatArgs, OutputArgs, SeedArgs, SpeechArgs, ThreadArgs, TraceArgs,
    contenders, contenders_or_all, one_of,
};
use super::page::OdArgs;
use super::run::{AllRead, PARTIAL, Reading as _, Run, UNWRITTEN, all_written};
use super::same_file::keep_apart;
use super::units::{in_short, parse_count, parse_share, parse_size, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use flowsieve::comparison::statistics::Margin;
use flowsieve::comparison::{ComparePlan, Contender, ProbeRule, Seeds, Sizes, compare};
use flowsieve::filters::{FilterKind, Structure};
use flowsieve::pipeline::InputResult;
use flowsieve::plan::TracePlan;
use flowsieve::planner::{recommended, weighted};
use flowsieve::report::{CaptureDigest, CompareReport, EachReport, Grouping};
use flowsieve::selection::Selection;
use flowsieve::trace::{FileState, Source, StopFlag};
use flowsieve_engine::internal::Shown;
use sha2::{Digest as _, Sha256};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Whether cmdbf or mdbf counts host pairs better, from which memory on:
    flowsieve compare capture.pcap.gz
  The same on each of several captures, in two memories:
    flowsieve compare --each --memory 192,3KiB monday.pcap tuesday.pcap
  A table for a paper:
    flowsieve compare --memory 96,192,768,3KiB --seeds 20 --format latex capture.pcap.gz
  Which structure answers best whether a client asked for a name, for a program:
    flowsieve compare --element dns --queries --want src,domain --filter all --format json dns.pcapng";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    trace: TraceArgs,

    /// Structures of `flowsieve help structures`, such as subset,mdbf; or all
    /// [default: mdbf,cmdbf,bloom]
    ///
    /// subset stores whole elements only, as count does; plan is what the command `plan` recommends
    /// for the same --want and memory. bloom is the simple alternative to the two of the papers.
    #[arg(long, value_parser = contenders_or_all(), value_name = "NAMES", value_delimiter = ',', hide_possible_values = true, help_heading = "Structures")]
    filter: Vec<Option<Contender>>,

    /// Two structures to compare with each other [default: mdbf,cmdbf]
    ///
    /// If one of mdbf and cmdbf does not take part, the default is the first two of --filter. Raw
    /// counts are compared (the elements seen as new), as in the papers; if one has none, estimates.
    /// Both take part even if --filter does not name them.
    #[arg(long, value_parser = contenders(), value_name = "A,B", value_delimiter = ',', hide_possible_values = true, hide_short_help = true, help_heading = "Structures")]
    pair: Vec<Contender>,

    /// Compare the pair on each capture, with a letter per memory
    ///
    /// Only the two structures of --pair run, on each capture separately; or those of --filter, if
    /// it names two.
    #[arg(long, conflicts_with_all = ["bits", "queries", "counts"], help_heading = "Structures")]
    each: bool,

    #[command(flatten, next_help_heading = "Structures")]
    conditions: ConditionArgs,

    #[command(flatten, next_help_heading = "Exact count")]
    exact: ExactLimitArgs,

    #[command(flatten, next_help_heading = "Speed")]
    threads: ThreadArgs,

    #[command(flatten)]
    format: FormatArgs,

    /// The count of each slice and seed too, in JSON
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    counts: bool,

    /// A table by slices of few, some and many elements (without --each), or by elements per byte
    #[arg(long, value_name = "GROUPS", value_parser = groupings(), help_heading = "Output", hide_short_help = true)]
    by: Option<Grouping>,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten)]
    od: OdArgs,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

// The conditions of the comparison.
#[derive(Args, Clone, Debug)]
struct ConditionArgs {
    /// Memory of each structure for one slice
    ///
    /// Several are separated by commas. auto is 1/8, 1/2, 2 and 8 bytes for each element of a large slice (95th percentile), in
    /// multiples of 48 bytes.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "auto", value_parser = parse_memory)]
    memory: Vec<Option<u64>>,

    /// Give each structure the same memory in all, or each array the same bits
    ///
    /// `array` is the setting of the paper: m bits for each array (--bits), k = 4 for all. Memory
    /// is then reported, not equal.
    #[arg(
        long,
        value_name = "SETTING",
        value_enum,
        default_value = "total",
        hide_possible_values = true,
        hide_short_help = true
    )]
    setting: Setting,

    /// Bits of each array (m) with --setting array, several separated by commas [default:
    /// 128,512,2048,8192,32768]
    #[arg(long = "bits", id = "array_bits", value_name = "COUNTS", value_delimiter = ',', value_parser = parse_count, hide_short_help = true)]
    bits: Vec<u64>,

    /// Seeds of hash functions; auto is as many as it takes
    ///
    /// auto is 5, 10, 20 or 30. The trace is fixed and the hash functions are drawn: each seed hashes the whole trace anew,
    /// and the spread over seeds gives the intervals. Seed number 0 is exactly what `count` gives
    /// with the same --seed and k, in one shard.
    #[arg(long, value_name = "auto|COUNT", default_value = "auto", value_parser = parse_seeds)]
    seeds: Seeds,

    /// Differences that do not matter: points, and a share of the larger error
    #[arg(long, value_name = "POINTS,SHARE", value_delimiter = ',', default_value = "0.1%,5%", value_parser = parse_margin, hide_short_help = true)]
    margin: Vec<f64>,

    /// Ask for absent elements too: false-positive rates
    #[arg(long, hide_short_help = true)]
    queries: bool,

    /// A combination that queries ask for, such as src,domain [default: the usual ones]
    ///
    /// All attributes together are always asked for. The usual ones are every single attribute; for
    /// flows also both addresses, and each with the destination port; for DNS triples src,domain
    /// and src,dst. A weight behind a colon (src,domain:3) is for --filter plan.
    #[arg(long, value_name = "NAMES", hide_short_help = true)]
    want: Vec<String>,

    /// Leave out slices that the capture covers only in part
    #[arg(long, hide_short_help = true)]
    whole_slices: bool,

    /// Distinct elements per slice [default: 95th percentile of the slices]
    ///
    /// Every structure gets the number of hash functions (k) that is best for this many by its
    /// formula. The default is the 95th percentile (nearest rank), so that a flood does not spoil
    /// filters made for a usual slice.
    #[arg(long, value_name = "COUNT", value_parser = parse_expected, hide_short_help = true)]
    expect: Option<u64>,

    /// Number of hash functions (k) of every structure: by the formula, the best, or a number
    ///
    /// `formula` loses least while arrays are filled, each with its own number of values, as far as
    /// formulas tell (of structures that are no Bloom filters: m/n ln 2); `best` is found by trial,
    /// with seeds that are not judged. mdbf and cmdbf use k for each array,
    /// cartesian and the matrices for each attribute; a matrix keeps the cuts that it has with the
    /// formula. Each takes at most 32. dleft, hll and ell have no k.
    #[arg(long, value_name = "formula|best|N", default_value = "formula", value_parser = parse_probes, hide_short_help = true)]
    k: ProbeRule,

    #[command(flatten)]
    seed: SeedArgs<0>,
}

/// The quantity that is equal for all structures.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Setting {
    /// Every structure has the same memory
    Total,
    /// Every array has the same number of bits
    Array,
}

/// Parses a part of `--margin`, of which 1 would be 100 points.
fn parse_margin(text: &str) -> Result<f64, String> {
    let share = parse_share(text).ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "a margin is a share from 0 to below 1, such as 0.001 or 0.1%".to_owned())
}

fn groupings() -> impl TypedValueParser<Value = Grouping> {
    one_of([
        ("size", "Thirds of the slices, by their number of elements", Grouping::Size),
        ("load", "Memories, by elements per byte", Grouping::Load),
    ])
}

fn parse_memory(text: &str) -> Result<Option<u64>, String> {
    match text {
        "auto" => Ok(None),
        _ => parse_size(text).map(Some).map_err(|error| format!("{error}; or auto")),
    }
}

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = || text.parse().ok().filter(|&seeds| seeds > 0).map(Seeds::Fixed);
    let seeds = if text == "auto" { Some(Seeds::Auto) } else { number() };
    seeds.ok_or_else(|| "seeds are auto, or a number from 1 on; --seeds 20 works".to_owned())
}

fn parse_probes(text: &str) -> Result<ProbeRule, String> {
    match text {
        "formula" => Ok(ProbeRule::Formula),
        "best" => Ok(ProbeRule::Best),
        _ => text
            .parse()
            .map(ProbeRule::Given)
            .map_err(|_| "hash functions are formula, best, or a number; --k 4 works".to_owned()),
    }
}

/// The pair of the papers.
const PUBLISHED: [Contender; 2] = [
    Contender::Plain(Structure::Filter(FilterKind::Mdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Cmdbf)),
];

/// The structures by default.
const USUAL: [Contender; 3] =
    [PUBLISHED[0], PUBLISHED[1], Contender::Plain(Structure::Filter(FilterKind::Bloom))];

pub(crate) fn run(args: &CompareArgs, run: &mut Run) -> Result<Outcome> {
    let files = run.start_on(&args.trace.input, false, args.speech.is_quiet())?;
    let mut plan = args.plan(&files)?;
    plan.check_memory()?;
    if args.each {
        return each(args, run, &plan);
    }
    run.open(&mut plan.trace)?;
    let output = args.output.open(run)?;
    let mut od = args.od.begin(run)?;
    let comparison =
        run.read(&plan.trace.inputs, |watch| compare(&plan, od.traffic.as_mut(), watch))?;
    let most = args.digested(comparison.is_interrupted());
    // Directories with problems come first among the inputs.
    let captures = plan.trace.inputs.iter();
    let report = CompareReport {
        plan: &plan,
        comparison: &comparison,
        anonymized: args.od.anonymize.is_wanted(),
        counts: args.counts,
        by: args.by,
        captures: captures
            .zip(&comparison.inputs[comparison.inputs.len() - plan.trace.inputs.len()..])
            .map(|(input, read)| digest_of(input, read, most, run.stop()))
            .collect(),
        command: run.command_line(&UNRELATED, &UNRELATED_FLAGS),
    };
    let style = output.style(None);
    let written =
        report.complete().write(args.format.of(&args.output), style, output).context(UNWRITTEN);
    all_written([
        args.output.finish(run, written, || report.complete().summary()),
        od.finish(run, |traffic| report.page(traffic)),
    ])?;
    Ok(run.end(&comparison, args.speech, PARTIAL))
}

/// Returns the SHA-256 of a capture; `None` if the capture cannot be read again, has more than `most`
/// bytes or has changed since it was read, or if `stop` is set.
fn digest_of(input: &Source, read: &InputResult, most: u64, stop: &StopFlag) -> CaptureDigest {
    let hashed = || {
        let mut file = File::open(input.path()).ok().filter(|_| input.is_readable_twice())?;
        let data = file.metadata().ok().filter(|it| it.len() <= most)?;
        let is_as_read = |data: &Metadata| read.file == Some(FileState::of(data));
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        let mut bytes = usize::from(is_as_read(&data));
        while bytes > 0 && !stop.is_set() {
            bytes = file.read(&mut buffer).ok()?;
            hash.update(&buffer[..bytes]);
        }
        file.metadata().ok().filter(|data| bytes == 0 && is_as_read(data))?;
        Some(hash.finalize().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
    };
    CaptureDigest { name: input.path().shown().into_raw().into_owned(), sha256: hashed() }
}

/// Compares the pair on each capture separately.
fn each(args: &CompareArgs, run: &mut Run, plan: &ComparePlan) -> Result<Outcome> {
    let pair = plan.pair.unwrap_or(PUBLISHED);
    // Times that are relative to a capture are so to each.
    run.open(&mut TracePlan { selection: Selection::default(), ..plan.trace.clone() })?;
    let output = args.output.open(run)?;
    let od = args.od.begin(run)?;
    let mut report =
        EachReport::new(plan, pair, args.by, run.command_line(&UNRELATED, &UNRELATED_FLAGS));
    let mut plans = Vec::new();
    for input in &plan.trace.inputs {
        let mut alone = plan.clone();
        alone.trace.inputs = vec![input.clone()];
        alone.trace.resolve(run.stop()).map_err(UsageError::new)?;
        plans.push(alone);
    }
    let stop = run.stop().clone();
    let all = run.read(&plan.trace.inputs, |watch| {
        let mut all = AllRead::default();
        for alone in &plans {
            let comparison = compare(alone, None, watch)?;
            if comparison.inputs.iter().any(|input| input.container.is_some()) {
                let input = &alone.trace.inputs[0];
                let most = args.digested(comparison.is_interrupted());
                report.add(digest_of(input, &comparison.inputs[0], most, &stop), &comparison);
            }
            all.packets += comparison.totals.packets;
            all.interrupted = comparison.totals.interrupted;
            all.inputs.extend(comparison.inputs);
            if all.interrupted {
                break;
            }
        }
        Ok(all)
    })?;
    report.ended(&all.inputs, all.interrupted);
    let style = output.style(None);
    let written =
        report.complete().write(args.format.of(&args.output), style, output).context(UNWRITTEN);
    all_written([
        args.output.finish(run, written, || report.complete().summary()),
        od.finish(run, |_| report.page()),
    ])?;
    Ok(run.end(&all, args.speech, PARTIAL))
}

/// Options that change no number: the command line without them is the same for all formats and
/// numbers of threads.
const UNRELATED: [&str; 11] = [
    "--threads",
    "--format",
    "--output",
    "-o",
    "--summary",
    "--html",
    "--svg",
    "--od",
    "--od-out",
    "--anonymize-key",
    "--color",
];
const UNRELATED_FLAGS: [&str; 6] = ["--quiet", "-q", "--verbose", "-v", "--counts", "--anonymize"];

impl CompareArgs {
    /// Bytes up to which a capture is read again for its digest. A table on a terminal comes without
    /// those of large captures, which would take as long as counting repeats; an interrupted run
    /// ends at once.
    fn digested(&self, interrupted: bool) -> u64 {
        if interrupted {
            return 0;
        }
        if self.format.of(&self.output).is_table() && !self.od.page.is_wanted() {
            32 << 20
        } else {
            u64::MAX
        }
    }

    /// Returns the two structures that are compared with each other, or `None` if there are not two.
    fn pair_of(&self, contenders: &[Contender]) -> Result<Option<[Contender; 2]>, UsageError> {
        let two = |list: &[Contender]| match *list {
            [a, b, ..] if a != b => Some([a, b]),
            _ => None,
        };
        if !self.pair.is_empty() {
            let pair = two(&self.pair).filter(|_| self.pair.len() == 2);
            return pair.map(Some).ok_or_else(|| {
                UsageError::new("--pair takes two different structures; mdbf,cmdbf works")
            });
        }
        let published = PUBLISHED.iter().all(|of| contenders.contains(of));
        Ok(if published { Some(PUBLISHED) } else { two(contenders) })
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<ComparePlan, UsageError> {
        let written = self.output.files().into_iter().chain(self.od.files());
        keep_apart(written, &self.od.anonymize.with_key(inputs))?;
        self.format.check(&self.output)?;
        self.od.check(self.output.path())?;
        let trace = self.trace.trace(inputs, &self.threads)?;
        let kind = self.trace.elements.element;
        let conditions = &self.conditions;
        let attributes: Vec<String> = kind.attributes().into_iter().map(str::to_owned).collect();
        let wanted = wanted_of(&attributes, &conditions.want)?;
        let mut combinations: Vec<u32> = Vec::new();
        for mask in wanted.iter().map(|wanted| wanted.mask) {
            if mask != kind.all() && !combinations.contains(&mask) {
                combinations.push(mask);
            }
        }
        if conditions.want.is_empty() {
            combinations = ComparePlan::usual_combinations(kind);
        }
        let contenders = self.contenders()?;
        // A filter planned for parts of elements has no count of whole elements.
        let is_counted = wanted.iter().any(|wanted| wanted.mask == kind.all());
        let has_count = |it: &Contender| is_counted || *it != Contender::Planned;
        let counted: Vec<Contender> = contenders.iter().copied().filter(has_count).collect();
        let (points, share) = match conditions.margin[..] {
            [points] => (points, 0.0),
            [points, share, ..] => (points, share),
            [] => (0.0, 0.0),
        };
        let plan = ComparePlan {
            trace,
            rule: self.trace.elements.rule(),
            slicing: self.trace.slicing(),
            whole_slices: conditions.whole_slices,
            pair: self.pair_of(&counted)?,
            contenders,
            sizes: conditions.sizes()?,
            queries: conditions.queries,
            combinations,
            wanted: wanted.iter().map(|wanted| (wanted.mask, wanted.weight)).collect(),
            expected: conditions.expect,
            probes: conditions.k,
            weigh: Some(weighted),
            recommend: Some(recommended),
            exact_limit_bytes: self.exact.exact_limit,
            seed: conditions.seed.seed,
            seeds: conditions.seeds,
            margin: Margin { points, share },
        };
        plan.check()?;
        Ok(plan)
    }

    /// Returns the structures that take part, the pair among them.
    fn contenders(&self) -> Result<Vec<Contender>, UsageError> {
        let chosen: Vec<Contender> = if self.filter.is_empty() {
            if self.each { PUBLISHED.into() } else { USUAL.into() }
        } else {
            let all = || Contender::all().filter(|contender| *contender != Contender::Planned);
            let chosen = self.filter.iter();
            chosen.flat_map(|one| one.map_or_else(|| all().collect(), |one| vec![one])).collect()
        };
        let mut all: Vec<Contender> = Vec::new();
        let pair = self.pair_of(&chosen)?.into_iter().flatten();
        for contender in pair.chain(chosen.iter().copied()) {
            if !all.contains(&contender) {
                all.push(contender);
            }
        }
        if self.each && self.filter.is_empty() {
            all.truncate(2);
        }
        if self.each && self.by == Some(Grouping::Size) {
            return Err(UsageError::new("--each has no --by size; --by load works"));
        }
        if self.each && all.len() != 2 {
            return Err(UsageError::new(
                "--each compares two structures on each capture; --filter bloom,subset works",
            ));
        }
        Ok(all)
    }
}

impl ConditionArgs {
    fn sizes(&self) -> Result<Sizes, UsageError> {
        if self.setting == Setting::Array {
            const ALL: [u64; 5] = [128, 512, 2048, 8192, 32768];
            if self.memory != [None] || self.expect.is_some() {
                return Err(UsageError::new(
                    "--setting array gives every array the same bits and k = 4, whatever --memory and --expect say; leave them out, and give --bits in their place",
                ));
            }
            let bits = if self.bits.is_empty() { &ALL[..] } else { &self.bits };
            return Ok(Sizes::Arrays(bits.to_vec()));
        }
        if !self.bits.is_empty() {
            return Err(UsageError::new(
                "--bits is the size of each array; add --setting array, or leave it out",
            ));
        }
        if let [None] = self.memory[..] {
            return Ok(Sizes::Auto);
        }
        let sizes: Option<Vec<u64>> = self.memory.iter().copied().collect();
        sizes
            .map(Sizes::Total)
            .ok_or_else(|| UsageError::new("--memory is auto, or sizes; --memory 192,3KiB works"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::Duration;

    #[test]
    fn a_capture_that_is_not_as_it_was_read_has_no_digest() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a capture").unwrap();
        let input = Source::from(file.path().to_owned());
        let read = |file: &File| InputResult {
            file: Some(FileState::of(&file.metadata().unwrap())),
            ..InputResult::default()
        };
        let as_it_was = read(file.as_file());
        let sha256 = |read, stop: &StopFlag| digest_of(&input, read, u64::MAX, stop).sha256;
        let stop = StopFlag::default();
        assert!(sha256(&as_it_was, &stop).unwrap().starts_with("53088c07"));
        file.write_all(b", and more").unwrap();
        assert_eq!(sha256(&as_it_was, &stop), None);
        let now = read(file.as_file());
        assert!(sha256(&now, &stop).is_some());
        // Change the file while it is hashed: 512 MiB take longer than 50 ms.
        file.as_file().set_len(1 << 29).unwrap();
        let long = read(file.as_file());
        let changed = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                file.as_file().set_len((1 << 29) + 1).unwrap();
            });
            sha256(&long, &stop)
        });
        assert_eq!(changed, None);
        let (now, stopped) = (read(file.as_file()), StopFlag::default());
        stopped.set();
        assert_eq!(sha256(&now, &stopped), None);
    }
}
