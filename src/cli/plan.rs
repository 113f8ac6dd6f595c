//! `flowsieve plan`: which structure, how large, and with which parameters.

use super::design::{DesignArgs, MOST_ELEMENTS, Numbers};
use super::inputs::Inputs;
use super::options::{
    ElementArgs, ExactLimitArgs, FormatArgs, OutputArgs, QuietArgs, ReadArgs, ThreadArgs,
    structures,
};
use super::run::Run;
use super::same_file::keep_apart;
use super::say::quoted;
use super::units::{in_short, parse_share, parse_size, whole, with_values};
use super::{Outcome, UsageError};
use crate::count::DEFAULT_MEMORY_BYTES;
use anyhow::{Context, Result, anyhow};
use clap::{Arg, Args};
use flowsieve::comparison::{ComparePlan, with_trial};
use flowsieve::decode::Tunnel;
use flowsieve::elements::ElementKind;
use flowsieve::filters::matrix_sizing::MAX_ATTRIBUTES;
use flowsieve::filters::{FilterKind, Reach};
use flowsieve::pipeline::{SKEWED, SamplePlan, SampleResult, sample};
use flowsieve::plan::TracePlan;
use flowsieve::planner::{
    Elements, Goal, Origin, Plan, PlanRequest, PlanRow, Structure, plan, plan_measured, sampled,
    usual_structures,
};
use flowsieve::report::PlanReport;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Queries for host pairs, and a third as many for sources, in a mebibyte:
    flowsieve plan --want src,dst:3 --want src:1 --expect 100k --memory 1MiB
  The same with the numbers of a capture, for a rate of one in a thousand:
    flowsieve plan --want src,dst:3 --want src --sample capture.pcap --fpr 0.001
  A cell of Table 3 of the CBFM paper; with --memory 1MiB --expect max one of Table 2:
    flowsieve plan --attributes 3 --expect 1k --attribute-fpr 0.1 --filter bfm,cbfm --cuts '1,3;1,2'";

/// In blocks that other commands have as well, `-h` shows the option that people need here, and not
/// the other. Nothing is chosen without a sample.
fn as_needed(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "want" => option.hide_short_help(false),
        "expression" => option.hide_short_help(true).requires("sample"),
        "from" | "to" | "dnstap_type" | "input_format" => option.requires("sample"),
        _ => option,
    }
}

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
#[command(mut_args(as_needed))]
pub(crate) struct PlanArgs {
    #[command(flatten, next_help_heading = "Elements")]
    elements: ElementArgs,

    /// Elements of this many attributes, named 1, 2, 3 and so on
    #[arg(long, value_name = "COUNT", value_parser = whole(0, usize::MAX), conflicts_with_all = ["element", "undirected", "queries_only", "tunnel", "dns_port"], hide_short_help = true)]
    attributes: Option<usize>,

    /// Distinct elements, such as 100k; src=5k for one combination; max for as many as fit
    ///
    /// The number of a combination without one is bounded by that of a larger combination, by the
    /// product of its parts, and by what its attributes can have (256 protocols, 65,536 ports).
    #[arg(long, value_name = "[NAMES=]COUNT")]
    expect: Vec<String>,

    /// Share of an absent element's values that occur in other elements
    ///
    /// A negative is an absent element that is asked for. 1 is the worst case, and typical of
    /// traffic: known hosts that did not talk to each other. MDBF, which keeps each attribute
    /// separately, then says yes to each negative with two or more attributes; so does CMDBF unless
    /// all are asked for. A negative with one attribute is always a value that does not occur.
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = parse_share, allow_negative_numbers = true, hide_short_help = true)]
    known: f64,

    /// A capture, as one slice, on which numbers and spread are measured
    #[arg(long, value_name = "CAPTURE", conflicts_with = "attributes", help_heading = "Sample")]
    sample: Vec<PathBuf>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    exact: ExactLimitArgs,

    #[command(flatten, next_help_heading = "Filter")]
    design: DesignArgs,

    /// Memory of the filter [default: 256KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,

    /// Weighted false-positive rate instead, in as little memory as possible
    #[arg(long, value_name = "RATE", value_parser = parse_share, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Rate of single attributes instead, by the rule of the CBFM paper's tables
    ///
    /// Each attribute gets m = floor(n log2(e) log2(1/rate)) and k = floor(-log2 rate).
    #[arg(long, value_name = "RATE", value_parser = parse_share, conflicts_with = "fpr", allow_negative_numbers = true, hide_short_help = true)]
    attribute_fpr: Option<f64>,

    /// Only these structures of `flowsieve help structures`, such as mdbf,cmdbf
    /// [default: all but the variants of cmdbf]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = structures(), hide_possible_values = true)]
    filter: Vec<Structure>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &PlanArgs, run: &mut Run) -> Result<Outcome> {
    let mut request = args.request()?;
    args.format.check(&args.output)?;
    let (mut sample, mut trace) = (None, None);
    if !args.sample.is_empty() {
        let (measured, read) = args.measure(run, &request)?;
        if measured.elements == 0 {
            return Ok(run.finish(NO_PLAN));
        }
        request.skewed = measured.spread.iter().any(|spread| spread.skew() > SKEWED);
        (sample, trace) = (Some(measured), Some(read));
    }
    request.elements = args.numbers(&request, sample.as_ref())?;
    let plan = if let Some((sample, trace)) = sample.as_mut().zip(trace) {
        args.plan_on(run, &request, trace, sample)?
    } else {
        keep_apart(args.output.files(), &[])?;
        plan(&request).map_err(UsageError::new)?
    };
    let output = args.output.open(run)?;
    let style = output.style(None);
    let report = PlanReport {
        element: args.kind().map(|kind| kind.name().into_owned()),
        request: &request,
        plan: &plan,
        sample: sample.as_ref(),
        command: args.command(run, &request, &plan),
    };
    let written = report.complete().write(args.format.of(&args.output), style, output);
    let summary = || report.complete().summary();
    args.output.finish(run, written.context("cannot write the plan"), summary)?;
    Ok(run.finish(PARTIAL))
}

/// Notes shown when a sample was interrupted.
const PARTIAL: &str = "the plan rests on what was read until then";
const NO_PLAN: &str = "nothing was read until then, so there is no plan";

/// Options that decide what is read of the sample.
const SELECTING: [&str; 6] =
    ["--where", "--from", "--to", "--timezone", "--dnstap-type", "--input-format"];

impl PlanArgs {
    /// Checks all values that do not depend on a sample.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let request = self.request()?;
        if self.sample.is_empty() {
            self.numbers(&request, None)?;
        }
        Ok(())
    }

    fn kind(&self) -> Option<ElementKind> {
        self.attributes.is_none().then_some(self.elements.element)
    }

    /// Returns everything but the numbers of elements, checked.
    fn request(&self) -> Result<PlanRequest, UsageError> {
        let attributes: Vec<String> = match (self.attributes, self.kind()) {
            (Some(count), _) if count == 0 || count > MAX_ATTRIBUTES => {
                return Err(UsageError::new(format!(
                    "a plan is for 1 to {MAX_ATTRIBUTES} attributes, not {count}; 3 works"
                )));
            }
            (Some(count), _) => (1..=count).map(|number| number.to_string()).collect(),
            (None, kind) => {
                let names = kind.unwrap_or_default().attributes();
                names.into_iter().map(str::to_owned).collect()
            }
        };
        self.elements.check()?;
        let structures = if self.filter.is_empty() {
            usual_structures().collect()
        } else {
            let chosen = |structure: &Structure| self.filter.contains(structure);
            Structure::all().filter(chosen).collect()
        };
        let most = self.expect.iter().any(|number| number == "max");
        let rate = match (self.fpr, self.attribute_fpr) {
            (Some(fpr), _) => Some(Goal::Rate { fpr }),
            (None, fpr) => fpr.map(|fpr| Goal::AttributeRate { fpr }),
        };
        let goal = match (most, self.memory, rate) {
            (true, Some(_), Some(rate)) | (false, None, Some(rate)) => rate,
            (true, ..) => {
                return Err(UsageError::new(
                    "--expect max asks how many elements keep to a rate in a memory, and needs both; --memory 1MiB --fpr 0.001 works",
                ));
            }
            (false, Some(_), Some(_)) => {
                return Err(UsageError::new(
                    "memory and rate follow from each other for a given number of elements; leave out one, or ask for --expect max",
                ));
            }
            (false, memory, None) => Goal::Memory { bytes: memory.unwrap_or(DEFAULT_MEMORY_BYTES) },
        };
        if most && (self.expect.len() > 1 || !self.sample.is_empty()) {
            return Err(UsageError::new(
                "--expect max finds the number of elements itself; leave out the other numbers and samples",
            ));
        }
        let key_bytes = match self.kind() {
            Some(ElementKind::HOST_PAIR) => 8,
            Some(kind) if kind.has_name() => 48,
            Some(_) => 16,
            None => 8 * attributes.len() as u64,
        };
        let request = PlanRequest {
            most_elements_in: self.memory.filter(|_| most),
            known: self.known,
            key_bytes,
            ..self.design.request(attributes, structures, goal)?
        };
        request.check().map_err(UsageError::new)?;
        Ok(request)
    }

    /// Returns the numbers of `--expect`, then those of the sample, then bounds.
    fn numbers(
        &self,
        request: &PlanRequest,
        sample: Option<&SampleResult>,
    ) -> Result<Elements, UsageError> {
        let names = &request.attributes;
        let mut numbers = Numbers::default();
        for number in &self.expect {
            if number == "max" {
                numbers.for_all = Some(1);
            } else {
                numbers.add(names, number)?;
            }
        }
        let known = &mut numbers.known;
        for &(mask, distinct) in sample.iter().flat_map(|sample| &sample.distinct) {
            let given = known.iter().any(|&(other, ..)| other == mask);
            if let (false, Some(distinct)) = (given, distinct) {
                known.push((mask, distinct, Origin::Measured));
            }
        }
        if sample.is_some() && numbers.for_all.is_some() {
            return Err(UsageError::new(
                "a sample has the numbers of all combinations; leave out --expect, or give it for one of them, such as --expect src=5k",
            ));
        }
        let none = || vec![None; names.len()];
        let caps = self.kind().map_or_else(none, ElementKind::most_values);
        numbers.elements(request, &caps)
    }

    /// Counts the sample. Damaged captures count up to the damage, which is said; a signal ends the
    /// reading, and only then a sample may have no element.
    fn measure(&self, run: &mut Run, request: &PlanRequest) -> Result<(SampleResult, TracePlan)> {
        run.start(self.quiet.quiet)?;
        let inputs = run.take(Inputs::find(&self.sample, self.read.format()));
        keep_apart(self.output.files(), &inputs)?;
        let wanted = |mask: u32| request.wanted.iter().any(|wanted| wanted.mask == mask);
        let mut plan = SamplePlan {
            trace: self.read.trace(&inputs, &self.elements.dns, &ThreadArgs::default())?,
            rule: self.elements.rule(),
            masks: sampled(request.attributes.len(), wanted),
            limit_bytes: self.exact.exact_limit,
        };
        plan.trace.resolve(run.stop()).map_err(UsageError::new)?;
        let mut result = run.watch(&plan.trace.inputs, |watch| sample(&plan, watch))?;
        run.check_read(&mut result)?;
        run.problems(&result.inputs);
        if let Some((mask, _)) = result.distinct.iter().find(|(_, n)| n.is_none()) {
            return Err(anyhow!(
                "the sample has more distinct {} than can be counted in its share of {} bytes; raise --exact-limit, or give the numbers with --expect",
                request.name(*mask),
                self.exact.exact_limit
            ));
        }
        // If nothing could be read, the reason was reported.
        let is_read = result.packets > 0 || !run.has_problems();
        if result.elements == 0 && !result.interrupted && is_read {
            return Err(anyhow!(
                "the sample has no element of the kind {}; name another capture, or give the numbers with --expect",
                self.elements.element.name()
            ));
        }
        Ok((result, plan.trace))
    }
    /// Plans by what the best structures do on the sample. A pipe cannot be read again, and an
    /// interrupted reading is not repeated: then the formulas decide.
    fn plan_on(
        &self,
        run: &mut Run,
        request: &PlanRequest,
        trace: TracePlan,
        sample: &mut SampleResult,
    ) -> Result<Plan> {
        let by_formula = || plan(request).map_err(UsageError::new);
        if trace.is_stream() || run.stop().is_set() {
            return Ok(by_formula()?);
        }
        let shares = request.wanted.iter().map(|wanted| wanted.mask).zip(request.shares());
        let trial = ComparePlan {
            exact_limit_bytes: self.exact.exact_limit,
            ..ComparePlan::of_trial(trace, self.elements.rule(), shares.collect())
        };
        // Directories with problems come first, and are not read again.
        let unread = sample.inputs.len() - trial.trace.inputs.len();
        let mut inputs = sample.inputs.split_off(unread);
        let is_fine: Vec<bool> = inputs.iter().map(|it| it.error.is_none()).collect();
        let measured = run.watch(&trial.trace.inputs, |watch| {
            with_trial(&trial, request.known, &mut inputs, watch, |it| plan_measured(request, it))
        })?;
        let again = inputs.iter().zip(is_fine).filter(|(_, was_fine)| *was_fine);
        run.report_all(again.filter_map(|(input, _)| input.error.as_ref()));
        sample.inputs.append(&mut inputs);
        Ok(measured.transpose().map_err(UsageError::new)?.map_or_else(by_formula, Ok)?)
    }

    /// `flowsieve count` with the options that make the recommended filter, an option with its
    /// value as one; `None` if nothing is recommended, or if `count` has no options for it: for
    /// elements that it does not know, sizes by the rule of the paper's tables, or a share of known
    /// values that its design would depend on.
    fn command(&self, run: &Run, request: &PlanRequest, plan: &Plan) -> Option<Vec<String>> {
        let kind = self.kind()?;
        let row = plan.rows.iter().find(|row| Some(row.structure) == plan.recommended)?;
        let Structure::Filter(filter) = row.structure else { return None };
        if request.known < 1.0 && rests_on_attributes(filter) {
            return None;
        }
        let mut words: Vec<String> = ["flowsieve", "count"].map(str::to_owned).into();
        let mut add = |option: &str, value: &str| words.push(format!("{option} {}", quoted(value)));
        if kind != ElementKind::default() {
            add("--element", &kind.name());
        }
        if self.read.tunnel == Tunnel::Inner {
            add("--tunnel", "inner");
        }
        if kind.has_name() {
            for port in &self.elements.dns.dns_port {
                add("--dns-port", &port.to_string());
            }
        }
        if !self.sample.is_empty() {
            // The numbers are those of the whole sample.
            add("--slice", "all");
        }
        add("--filter", filter.name());
        for want in &self.design.want {
            add("--want", want);
        }
        if self.design.want.is_empty() {
            add("--want", "all");
        }
        if let Some(cuts) = self.design.cuts.as_ref().filter(|_| filter.has_cuts()) {
            add("--cuts", cuts);
        }
        let weights = self.design.weights.as_ref();
        if let Some(weights) = weights.filter(|_| filter.has_weights()) {
            add("--weights", weights);
        }
        match request.goal {
            Goal::Memory { bytes } => add("--memory", &size(bytes)),
            Goal::Rate { fpr } => add("--fpr", &fpr.to_string()),
            Goal::AttributeRate { .. } => return None,
        }
        for number in numbers(request, row, filter, kind)? {
            add("--expect", &number);
        }
        words.extend(run.given(&SELECTING));
        if self.elements.undirected {
            words.push("--undirected".into());
        }
        if self.elements.queries_only && kind.has_name() {
            words.push("--queries-only".into());
        }
        words.push("CAPTURE".into());
        Some(words)
    }
}

/// Returns whether a structure's design depends on how many values its attributes have, and on how
/// many values of a negative are known.
fn rests_on_attributes(filter: FilterKind) -> bool {
    matches!(filter.reach(), Reach::Attributes | Reach::Matrix { .. })
}

/// Returns the values of `--expect`: the number of elements, and those of combinations that do not follow
/// from it but that the design depends on.
fn numbers(
    request: &PlanRequest,
    row: &PlanRow,
    filter: FilterKind,
    kind: ElementKind,
) -> Option<Vec<String>> {
    let elements = match row.elements {
        Some(elements) => request.elements.all(elements as f64),
        None => request.elements.clone(),
    };
    let relevant: Vec<u32> = if rests_on_attributes(filter) {
        (1..request.full()).collect()
    } else if filter.reach() == Reach::Planned {
        request.wanted.iter().map(|wanted| wanted.mask).collect()
    } else {
        Vec::new()
    };
    let whole = elements.whole();
    if !(1.0..=MOST_ELEMENTS as f64).contains(&whole) {
        return None;
    }
    let mut known = Vec::new();
    let mut numbers = vec![(whole as u64).to_string()];
    let derived = |known: &[_]| {
        let name = |mask| request.name(mask);
        Elements::new(&kind.most_values(), known, Some(whole as u64), name).ok()
    };
    for mask in relevant.iter().copied().filter(|&mask| mask != request.full()) {
        let number = elements.of(mask);
        if derived(&known)?.of(mask).total_cmp(&number).is_ne() {
            known.push((mask, number as u64, elements.origin(mask)));
            numbers.push(format!("{}={number}", request.name(mask)));
        }
    }
    // A number that was added later may bound one that was looked at before.
    let all = derived(&known)?;
    let same = |&mask: &u32| all.of(mask).total_cmp(&elements.of(mask)).is_eq();
    relevant.iter().all(same).then_some(numbers)
}

/// Returns bytes in the largest unit that keeps them whole, as options take them.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}
