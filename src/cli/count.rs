//! `flowsieve count`: distinct elements in each time slice.

use super::design::{DesignArgs, parse_expected};
use super::destination::{is_standard_output, is_written_at_once};
use super::divided::{DividedPlan, DividedRun, refuse};
use super::filter::load;
use super::options::{
    ExactArgs, FormatArgs, LiveArgs, OutputArgs, RowsArgs, SeedArgs, SpeechArgs, ThreadArgs,
    TraceArgs, structures,
};
use super::output::{Ending, Output};
use super::page::OdArgs;
use super::run::{PARTIAL, Run, UNWRITTEN, all_written};
use super::same_file::{Replaced, keep_apart};
use super::say::say;
use super::units::{
    in_short, parse_count, parse_share, parse_size, parse_width_ns, whole, with_values,
};
use super::{Outcome, UsageError};
use crate::count::{DEFAULT_MEMORY_BYTES, counter};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::elements::{ElementKind, ElementLabel};
use flowsieve::filters::saved::{MAX_LABEL, SavedFilter};
use flowsieve::filters::{FilterKind, Sizing, Structure};
use flowsieve::pipeline::{CountExtras, CountPlan, CounterChoice, Observer, count};
use flowsieve::planner::Goal;
use flowsieve::report::{
    CountPage, CountParameters, CountReport, count_summary, slice_shortcomings,
};
use flowsieve::selection::SelectedPart;
use flowsieve::top::{TopObserver, TopPlan};
use flowsieve_engine::internal::Shown;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Host pairs in each second, with the exact count beside the estimate:
    flowsieve count capture.pcap.gz
  DNS triples (client, server, name) in each minute, in bounded memory:
    flowsieve count --element dns --slice 1min --no-exact captures/
  How many flows there are altogether, for a program:
    flowsieve count --element flow --slice all --format json capture.pcap
  Sources and destinations as well, in the same filter, designed for so many pairs a slice:
    flowsieve count --want src,dst:2 --want src --want dst --expect 100k capture.pcap
  A page with figures, and who talks to whom by /24:
    flowsieve count --html report.html --od 24 capture.pcap";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct CountArgs {
    #[command(flatten)]
    trace: TraceArgs,

    /// Print a row this often, each for the --slice before it
    ///
    /// With --slice 60s --every 1s each second has a row for the minute that ends with it. --slice
    /// is a multiple of --every, at most 4096 times as long. Windows are counted by the exact set
    /// and by a bitmap of their own: a filter cannot forget what leaves a window.
    #[arg(long, value_name = "DURATION", value_parser = parse_width_ns, help_heading = "What to count", hide_short_help = true)]
    every: Option<i64>,

    #[command(flatten, next_help_heading = "Filter")]
    filter: FilterArgs,

    #[command(flatten)]
    exact: ExactArgs,

    #[command(flatten, next_help_heading = "Speed")]
    threads: ThreadArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    rows: RowsArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten)]
    live: LiveArgs,

    #[command(flatten)]
    od: OdArgs,

    /// List this many keys with the most distinct others on the page
    ///
    /// Sources by distinct destinations, and destinations by distinct sources; with --element dns
    /// sources by distinct names. Estimated over everything in 1 MiB for each. `flowsieve top`
    /// ranks by slice, exactly, and other keys.
    #[arg(long, value_name = "COUNT", value_parser = parse_count, help_heading = "Output", hide_short_help = true)]
    top: Option<u64>,

    /// Save the filter for `flowsieve filter`; needs --slice all
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    save_filter: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

#[derive(Args, Clone, Debug)]
struct FilterArgs {
    /// The structure that counts; those of the papers: `flowsieve help structures` [default: subset]
    #[arg(long, value_name = "NAME", value_parser = structures(), hide_possible_values = true)]
    filter: Option<Structure>,

    /// Go on from the filter that an earlier count saved
    ///
    /// Counts the distinct elements of both, more exactly than the union of two filters could: the
    /// elements of the first count are not counted again. Structure, memory, seed and shards are
    /// those of the file, and the elements have to be of the same kind. Needs --slice all; there is
    /// no exact count.
    #[arg(id = "continue", long = "continue", value_name = "FILE", conflicts_with_all = ["filter", "memory", "fpr", "expect", "shards", "seed"], hide_short_help = true)]
    continued: Option<PathBuf>,

    /// Memory of the filter for one slice, such as 64KiB [default: 256KiB]
    ///
    /// An overfull dleft filter takes up to 1/12 of it and 1 KiB more, for elements without a cell.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "fpr")]
    memory: Option<u64>,

    /// Size the filter for this false-positive rate at --expect elements
    #[arg(long, value_name = "RATE", requires = "expect", value_parser = parse_share, hide_short_help = true)]
    fpr: Option<f64>,

    /// Distinct elements expected per slice; with --want also src=5k for one combination
    ///
    /// Chooses the number of hash functions (4 without it).
    #[arg(long, value_name = "[NAMES=]COUNT", hide_short_help = true)]
    expect: Vec<String>,

    #[command(flatten)]
    design: DesignArgs,

    #[command(flatten)]
    seed: SeedArgs<0>,

    /// Partitions with a filter each [default: 8; published structures, and with --want: 1]
    ///
    /// Elements are divided among shards by their digest. Results depend on the number of shards;
    /// more than two threads need more than one.
    #[arg(long, value_name = "COUNT", value_parser = whole(0, u32::MAX), hide_short_help = true)]
    shards: Option<u32>,
}

pub(crate) fn run(args: &CountArgs, run: &mut Run) -> Result<Outcome> {
    let files = run.start_on(&args.trace.input, args.live.follow, args.speech.is_quiet())?;
    let continued = args.filter.continued.as_slice();
    let replaced = Replaced::lock(continued, args.save_filter.as_deref())?;
    let continued = args.filter.continued()?;
    let mut plan = args.plan(&files, continued.as_ref())?;
    plan.check_memory()?;
    run.open(&mut plan.trace)?;
    args.check_range(&plan)?;
    let shown = (args.format, args.rows, args.live);
    let (output, style) = args.output.open_live(run, &mut plan.trace, shown)?;
    if args.every.is_some() {
        // The delay decides which packets a window of a pipe contains, so all formats need the same.
        plan.trace.delay_ns = Some(args.live.delay);
    }
    let saved = Output::named(&run.partials, args.save_filter.as_deref())?;
    let mut od = args.od.begin(run)?;
    let parameters = CountParameters {
        anonymized: args.od.anonymize.is_wanted(),
        ..CountParameters::from(&plan)
    };
    let report = CountReport::begin(args.format.of(&args.output), &parameters, style, output);
    let mut sinks = (report.context(UNWRITTEN)?, args.od.page.is_wanted().then(CountPage::default));
    let mut who = args.who(&plan)?;
    let label = label_of_both(&plan, continued.as_ref());
    if !label.is_complete {
        say(format_args!(
            "flowsieve: the filter to go on from lacks elements: an input could not be read to its end when it was saved"
        ));
    }
    let traffic = od.traffic.as_mut().map(|it| it as &mut dyn Observer);
    let ranked = who.as_mut().map(|it| it as &mut dyn Observer);
    let extras = CountExtras {
        observers: traffic.into_iter().chain(ranked).collect(),
        filter_label: saved.as_ref().map(|_| label.to_string().into_bytes()),
        continued,
    };
    let mut summary =
        run.read(&plan.trace.inputs, |watch| count(&plan, extras, &mut sinks, watch))?;
    let is_read = summary.totals.complete && !run.has_problems();
    summary.totals.complete &= label.is_complete;
    let saved = saved.filter(|_| !summary.totals.interrupted);
    let saved = summary.filter.take().zip(saved);
    let (report, page) = sinks;
    let page = page.unwrap_or_default();
    let who = who.map(TopObserver::finish).unwrap_or_default();
    let written = report.finish(&summary).context(UNWRITTEN);
    all_written([
        args.output.finish(run, written, || count_summary(&parameters, &summary)),
        saved.map_or(Ok(()), |(filter, output)| {
            CountArgs::save(run, filter, output, (label, is_read), replaced)
        }),
        od.finish(run, |traffic| page.finish(&parameters, &summary, traffic, &who)),
    ])?;
    run.note(args.format.of(&args.output), slice_shortcomings(&summary.totals));
    let what = match &args.save_filter {
        Some(path) => format!("{PARTIAL}; {} was not saved", path.shown()),
        None => PARTIAL.to_owned(),
    };
    Ok(run.end(&summary, args.speech, &what))
}

impl CountArgs {
    /// Saves the filter. If not all inputs were read to their ends, it has a mark, since it would deny
    /// having seen what it lacks; and it does not replace the filter from which the count went on.
    fn save(
        run: &mut Run,
        mut filter: SavedFilter,
        mut output: Output,
        (mut label, is_read): (ElementLabel, bool),
        replaced: Option<Replaced>,
    ) -> Result<()> {
        label.is_complete &= is_read;
        filter.set_label(label.to_string().into_bytes());
        filter.save(&mut output).context("cannot save the filter")?;
        let Some(replaced) = replaced else { return run.commit(output) };
        let is_same = replaced.is_same();
        if is_read && is_same {
            return run.commit(output);
        }
        output.commit(Ending::Partial)?;
        let kept = run.partials.words();
        let path = replaced.path.shown();
        if is_same {
            say(format_args!(
                "flowsieve: {path} stays as it was, because an input could not be read to its end{kept}"
            ));
        } else {
            run.problem(format!(
                "{path} stays as it is, because it changed after the count had gone on from it{kept}; count again"
            ));
        }
        Ok(())
    }

    /// Returns the same for machines to divide.
    pub(super) fn divided(&self) -> Result<DividedRun, UsageError> {
        refuse(
            &self.trace.input.read,
            &self.output,
            &[
                (self.live.follow, "--follow"),
                (self.every.is_some(), "--every"),
                (self.od.is_asked(), "--html, --svg or --od"),
                (self.od.anonymize.is_wanted(), "--anonymize"),
                (self.top.is_some(), "--top"),
                (self.save_filter.is_some(), "--save-filter"),
                (self.filter.continued.is_some(), "--continue"),
            ],
        )?;
        let plan = DividedPlan::Count(self.plan(&self.trace.input.captures, None)?);
        Ok(plan.run(self.format.of(&self.output), &self.output, self.speech.is_quiet()))
    }

    /// Returns the ranking for the page, if requested.
    fn who(&self, plan: &CountPlan) -> Result<Option<TopObserver>, UsageError> {
        let Some(most) = self.top else { return Ok(None) };
        UsageError::check(&[
            (
                !self.od.page.is_wanted(),
                "--top goes onto a page: add --html, or rank with `flowsieve top`",
            ),
            (
                self.od.anonymize.is_wanted(),
                "--top shows addresses as they are; leave out --top or --anonymize",
            ),
            (
                !(1..=TopPlan::MOST_LISTED as u64).contains(&most),
                "--top lists 1 to 1,048,576 keys; --top 10 works",
            ),
        ])?;
        let who = TopObserver::new(&plan.rule, most as usize, plan.seed);
        who.map(Some).ok_or_else(|| {
            UsageError::new(
                "--top needs elements with a source and something else: --element host-pair, flow or dns, without --undirected",
            )
        })
    }

    fn plan(
        &self,
        inputs: &[PathBuf],
        continued: Option<&SavedFilter>,
    ) -> Result<CountPlan, UsageError> {
        let results = || self.output.files().into_iter().chain(self.od.files());
        let saved = ("--save-filter", self.save_filter.as_deref());
        keep_apart(results().chain([saved]), &self.od.anonymize.with_key(inputs))?;
        // Only the saved filter may replace the filter that the count continues.
        let saved = saved.1.is_some_and(is_written_at_once).then_some(saved);
        keep_apart(results().chain(saved), self.filter.continued.as_slice())?;
        let slicing = self.trace.slicing();
        let kind = self.trace.elements.element;
        let (counter, shards) = match continued {
            Some(filter) => {
                UsageError::check(&[(
                    self.filter.design.is_asked() || self.every.is_some(),
                    "--continue goes on with the saved filter as it is; leave out --want, --cuts, --weights and --every",
                )])?;
                (Some(CounterChoice::saved(filter)), filter.shards() as u32)
            }
            None if self.filter.design.is_asked() => (Some(self.filter.designed(kind)?), 1),
            None => self.filter.usual(kind, slicing.panes(self.every)?)?,
        };
        let plan = CountPlan {
            trace: self.trace.trace(&self.live.sources(inputs), &self.threads)?,
            rule: self.trace.elements.rule(),
            slicing,
            every_ns: self.every,
            counter,
            exact_limit_bytes: self.exact.limit_bytes().filter(|_| continued.is_none()),
            seed: continued.map_or(self.filter.seed.seed, SavedFilter::seed),
            shards,
        };
        plan.check()?;
        if let Some(filter) = continued {
            plan.check_continued(filter)?;
            let before = ElementLabel::parse(filter.label());
            UsageError::check(&[(
                before.is_none_or(|before| before.united(&label(&plan)).is_none()),
                "the saved filter to go on from holds other elements; give the --element, --tunnel, --where and the other choices of the count that saved it (`flowsieve filter info` shows them)",
            )])?;
        }
        self.check_results(&plan, continued)?;
        Ok(plan)
    }

    /// Checks the files that are written, before anything is read.
    fn check_results(
        &self,
        plan: &CountPlan,
        continued: Option<&SavedFilter>,
    ) -> Result<(), UsageError> {
        self.format.check(&self.output)?;
        self.od.check(self.output.path())?;
        self.who(plan)?;
        let Some(path) = &self.save_filter else { return Ok(()) };
        UsageError::check(&[(
            self.od.anonymize.is_wanted(),
            "a saved filter answers whether an address was seen, so it would reveal what is hidden; leave out --save-filter or --anonymize",
        )])?;
        plan.kept_filter()?;
        // With the mark of a filter that lacks elements.
        let label = ElementLabel { is_complete: false, ..label_of_both(plan, continued) };
        UsageError::check(&[
            (
                label.to_string().len() > MAX_LABEL,
                "a saved filter states which packets took part in at most 1024 bytes; give a shorter --where, or leave out --save-filter",
            ),
            (
                is_standard_output(path) || self.output.path() == Some(path),
                "the filter goes to a file of its own, so --save-filter needs a name that is neither - nor that of --output",
            ),
        ])
    }

    /// Checks that the range of time of a saved filter is known before the count.
    fn check_range(&self, plan: &CountPlan) -> Result<(), UsageError> {
        UsageError::check(&[(
            self.save_filter.is_some() && !plan.trace.selection.is_resolved(),
            "a saved filter states its range of time, and that of a pipe is not known beforehand; name a date and time, or leave out --save-filter",
        )])
    }
}

/// Returns the label of the elements of this plan.
fn label(plan: &CountPlan) -> ElementLabel {
    let part = SelectedPart::from(&plan.trace.selection);
    ElementLabel { part, ..ElementLabel::new(&plan.rule, &plan.trace.headers) }
}

/// Returns the label of the elements of this plan and of the filter that the count goes on from.
fn label_of_both(plan: &CountPlan, continued: Option<&SavedFilter>) -> ElementLabel {
    let label = label(plan);
    let before = continued.and_then(|filter| ElementLabel::parse(filter.label()));
    let both = before.and_then(|before| before.united(&label));
    both.unwrap_or(label)
}

impl FilterArgs {
    /// Loads the filter to go on from.
    fn continued(&self) -> Result<Option<SavedFilter>> {
        self.continued.as_deref().map(load).transpose()
    }

    /// Returns the counter of each shard, sized by the rules of its structure, and the number of
    /// shards.
    fn usual(
        &self,
        kind: ElementKind,
        panes: Option<u16>,
    ) -> Result<(Option<CounterChoice>, u32), UsageError> {
        let sizing = match (self.fpr, self.expected()?) {
            (Some(fpr), Some(expected)) => Sizing::Rate { fpr, expected },
            (_, expected) => {
                Sizing::Memory { bytes: self.memory.unwrap_or(DEFAULT_MEMORY_BYTES), expected }
            }
        };
        Ok(counter(self.filter, panes, kind.arity(), sizing, self.shards)?)
    }

    /// Returns the only number of `--expect`.
    fn expected(&self) -> Result<Option<u64>, UsageError> {
        match self.expect.as_slice() {
            [] => Ok(None),
            [text] if !text.contains('=') => Ok(Some(parse_expected(text)?)),
            _ => Err(UsageError::new(
                "without --want there is one number of elements, and none of combinations; --expect 100k works",
            )),
        }
    }

    /// Returns the filter that the planner designs for the combinations that are wanted.
    fn designed(&self, kind: ElementKind) -> Result<CounterChoice, UsageError> {
        if let Some(shards) = self.shards.filter(|&shards| shards != 1) {
            return Err(UsageError::new(format!(
                "the values of a combination would be spread over the shards, and none of them could count them, so a filter with --want, --cuts or --weights has 1 shard, not {shards}; leave out --shards"
            )));
        }
        let goal = match self.fpr {
            Some(fpr) => Goal::Rate { fpr },
            None => Goal::Memory { bytes: self.memory.unwrap_or(DEFAULT_MEMORY_BYTES) },
        };
        let default = Structure::Filter(FilterKind::Subset);
        self.design.counter(self.filter.unwrap_or(default), kind, &self.expect, goal)
    }
}
