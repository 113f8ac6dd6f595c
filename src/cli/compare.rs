//! `flowsieve compare`: structures side by side on the same traffic, at equal memory.

use super::od::OdArgs;
use super::options::{
    ExactLimitArgs, FormatArgs, OutputArgs, SeedArgs, SpeechArgs, ThreadArgs, TraceArgs,
};
use super::run::{PARTIAL, Reading, Run, UNWRITTEN};
use super::same_file::keep_apart;
use super::structure::contenders;
use super::units::{in_short, parse_size, with_values};
use super::wanted::{mask_of, parse_expected};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::comparison::{ComparePlan, Contender, compare};
use flowsieve::elements::ElementKind;
use flowsieve::filters::{FilterKind, Structure};
use flowsieve::pipeline::InputResult;
use flowsieve::plan::TracePlan;
use flowsieve::planner::weighted;
use flowsieve::report::{CompareReport, EachReport};
use flowsieve::selection::Selection;
use flowsieve_engine::internal::Shown;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Which structure counts the host pairs of each second best, in two memories:
    flowsieve compare --memory 16KiB,64KiB capture.pcap.gz
  Whether cmdbf or mdbf counts better, on each of several captures:
    flowsieve compare --each --memory 12KiB monday.pcap tuesday.pcap
  Which one answers best whether a client asked for a name, for a program:
    flowsieve compare --element dns --want src,domain --format json dns.pcapng";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    trace: TraceArgs,

    /// Structures of `flowsieve help structures`, such as subset,mdbf
    /// [default: mdbf, cmdbf, bfm, cbfm, bloom, subset, subset-planned, hll, exact]
    ///
    /// subset stores whole elements only, as count does; subset-planned also every combination that
    /// is asked for, in the same memory.
    #[arg(long, value_parser = contenders(), value_name = "NAMES", value_delimiter = ',', hide_possible_values = true, help_heading = "Structures")]
    filter: Vec<Contender>,

    /// Two structures to compare first [default: mdbf,cmdbf]
    ///
    /// If one of mdbf and cmdbf does not take part, the default is the two of --filter. The first
    /// sentence says which of the two was nearer to the truth, and in how many slices, by the raw
    /// count (the elements seen as new), as in the papers; a structure without one takes part with
    /// its estimate. Both take part even if --filter does not name them.
    #[arg(long, value_parser = contenders(), value_name = "A,B", value_delimiter = ',', hide_possible_values = true, help_heading = "Structures")]
    pair: Vec<Contender>,

    /// Compare the pair on each capture: one line per capture
    ///
    /// Only the two structures of --pair run, on each capture separately, and a summary follows.
    #[arg(long, conflicts_with_all = ["filter", "timing", "bits"], help_heading = "Structures")]
    each: bool,

    #[command(flatten, next_help_heading = "Structures")]
    conditions: ConditionArgs,

    #[command(flatten, next_help_heading = "Exact count")]
    exact: ExactLimitArgs,

    #[command(flatten, next_help_heading = "Speed")]
    threads: ThreadArgs,

    /// Measure the time of an insertion; the only figure that differs from run to run
    #[arg(long, help_heading = "Speed", hide_short_help = true)]
    timing: bool,

    #[command(flatten)]
    format: FormatArgs,

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
    /// Memory of each structure for one slice; several are compared one by one
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1KiB,4KiB,16KiB", value_parser = parse_size)]
    memory: Vec<u64>,

    /// A combination that queries ask for, such as src,domain [default: the usual ones]
    ///
    /// All attributes together are always asked for. The usual ones are every single attribute; for
    /// flows also both addresses, and each with the destination port; for DNS triples src,domain
    /// and src,dst.
    #[arg(long, value_name = "NAMES", hide_short_help = true)]
    want: Vec<String>,

    /// Distinct elements per slice [default: 95th percentile of the first slices]
    ///
    /// Every structure gets the number of hash functions (k) that is best for this many by its
    /// formula. The default is the 95th percentile (nearest rank) over the slices that end within
    /// the first 48 MiB of elements, so that a flood does not spoil filters made for a usual slice.
    #[arg(long, value_name = "COUNT", value_parser = parse_expected, hide_short_help = true)]
    expect: Option<u64>,

    /// Number of hash functions (k) of every structure [default: the best for --expect]
    ///
    /// mdbf and cmdbf use k for each array, cartesian and the matrices for each attribute; a matrix
    /// keeps the cuts that it has without --k. subset-planned sets k bits for every combination.
    /// Each takes at most 32. dleft, hll, ell and exact have no k.
    #[arg(long, value_name = "N", hide_short_help = true)]
    k: Option<u32>,

    #[command(flatten)]
    seed: SeedArgs<0>,
}

/// The structures by default.
const USUAL: [Contender; 9] = [
    Contender::Plain(Structure::Filter(FilterKind::Mdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Cmdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Bfm)),
    Contender::Plain(Structure::Filter(FilterKind::Cbfm)),
    Contender::Plain(Structure::Filter(FilterKind::Bloom)),
    Contender::Plain(Structure::Filter(FilterKind::Subset)),
    Contender::SubsetPlanned,
    Contender::Plain(Structure::Hll),
    Contender::EXACT,
];

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
    let report = CompareReport {
        plan: &plan,
        comparison: &comparison,
        pair: args.pair_of(&plan.contenders)?,
        anonymized: args.od.is_anonymized(),
    };
    od.finish(run, |traffic| report.page(traffic))?;
    let style = output.style(None);
    run.commit(report.write(args.format.format, style, output).context(UNWRITTEN)?)?;
    args.output.write_summary(run, || report.summary())?;
    Ok(run.end(&comparison, args.speech, PARTIAL))
}

/// Compares the pair on each capture separately.
fn each(args: &CompareArgs, run: &mut Run, plan: &ComparePlan) -> Result<Outcome> {
    let pair = args.pair_of(&plan.contenders)?.unwrap_or(PUBLISHED);
    // Times that are relative to a capture are so to each.
    run.open(&mut TracePlan { selection: Selection::default(), ..plan.trace.clone() })?;
    let output = args.output.open(run)?;
    let od = args.od.begin(run)?;
    let mut report = EachReport::new(plan, pair);
    let mut plans = Vec::new();
    for input in &plan.trace.inputs {
        let mut alone = plan.clone();
        alone.trace.inputs = vec![input.clone()];
        alone.trace.resolve(run.stop()).map_err(UsageError::new)?;
        plans.push(alone);
    }
    let all = run.read(&plan.trace.inputs, |watch| {
        let mut all = AllRead::default();
        for alone in &plans {
            let comparison = compare(alone, None, watch)?;
            if comparison.inputs.iter().any(|input| input.container.is_some()) {
                let name = alone.trace.inputs[0].path().shown().to_string();
                report.add(&name, &comparison);
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
    od.finish(run, |_| report.page())?;
    let style = output.style(None);
    run.commit(report.write(args.format.format, style, output).context(UNWRITTEN)?)?;
    args.output.write_summary(run, || report.document())?;
    Ok(run.end(&all, args.speech, PARTIAL))
}

/// What was read of captures that are compared separately.
#[derive(Default)]
struct AllRead {
    inputs: Vec<InputResult>,
    packets: u64,
    interrupted: bool,
}

impl Reading for AllRead {
    fn inputs(&self) -> &[InputResult] {
        &self.inputs
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

/// The pair of the papers.
const PUBLISHED: [Contender; 2] = [
    Contender::Plain(Structure::Filter(FilterKind::Mdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Cmdbf)),
];

impl CompareArgs {
    /// Returns the two structures that are compared with each other, or `None` if there are not two.
    fn pair_of(&self, contenders: &[Contender]) -> Result<Option<[Contender; 2]>, UsageError> {
        let two = |list: &[Contender]| match *list {
            [a, b] if a != b => Some([a, b]),
            _ => None,
        };
        if !self.pair.is_empty() {
            let pair = two(&self.pair).ok_or_else(|| {
                UsageError::new("--pair takes two different structures; mdbf,cmdbf works")
            })?;
            return Ok(Some(pair));
        }
        let published = PUBLISHED.iter().all(|of| contenders.contains(of));
        Ok(if published { Some(PUBLISHED) } else { two(contenders) })
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<ComparePlan, UsageError> {
        let [html, pairs] = self.od.files();
        let [output, summary] = self.output.files();
        keep_apart([output, summary, html, pairs], &self.od.with_key(inputs))?;
        self.format.check(&self.output)?;
        self.od.check(self.output.path())?;
        let trace = self.trace.trace(inputs, &self.threads)?;
        let kind = self.trace.elements.element;
        let combinations = if self.conditions.want.is_empty() {
            ComparePlan::usual_combinations(kind)
        } else {
            combinations(kind, &self.conditions.want)?
        };
        let plan = ComparePlan {
            trace,
            rule: self.trace.elements.rule(),
            slicing: self.trace.slicing(),
            contenders: self.contenders(!combinations.is_empty())?,
            memories: self.conditions.memory.clone(),
            combinations,
            expected: self.conditions.expect,
            probes: self.conditions.k,
            weigh: Some(weighted),
            exact_limit_bytes: self.exact.exact_limit,
            seed: self.conditions.seed.seed,
            timing: self.timing,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Returns the structures that take part, the pair among them.
    fn contenders(&self, has_combinations: bool) -> Result<Vec<Contender>, UsageError> {
        let chosen: Vec<Contender> = if self.each {
            self.pair_of(&PUBLISHED)?.unwrap_or(PUBLISHED).to_vec()
        } else if self.filter.is_empty() {
            // Without combinations the two are the same.
            let differs = |it: &Contender| *it != Contender::SubsetPlanned || has_combinations;
            USUAL.into_iter().filter(differs).collect()
        } else {
            self.filter.clone()
        };
        let mut all: Vec<Contender> = Vec::new();
        for contender in chosen.iter().copied().chain(self.pair_of(&chosen)?.into_iter().flatten())
        {
            if !all.contains(&contender) {
                all.push(contender);
            }
        }
        Ok(all)
    }
}

/// Returns combinations by the names of their attributes. All attributes together are always asked
/// for.
fn combinations(kind: ElementKind, wants: &[String]) -> Result<Vec<u32>, UsageError> {
    let attributes: Vec<String> = kind.attributes().into_iter().map(str::to_owned).collect();
    let mut combinations = Vec::new();
    for want in wants {
        let mask = mask_of(&attributes, want)?;
        if mask != kind.all() && !combinations.contains(&mask) {
            combinations.push(mask);
        }
    }
    Ok(combinations)
}
