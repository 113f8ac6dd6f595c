//! `flowsieve top`: the keys with the most distinct others.

use super::divided::{DividedPlan, DividedRun, refuse};
use super::options::{
    DnsPortArgs, ExactArgs, FormatArgs, InputArgs, LiveArgs, OutputArgs, RowsArgs, SeedArgs,
    SliceArgs, SpeechArgs, ThreadArgs, by_name, elements,
};
use super::page::PageArgs;
use super::run::{PARTIAL, Run, UNWRITTEN, all_written};
use super::same_file::keep_apart;
use super::units::{in_short, parse_count, parse_size, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::elements::ElementKind;
use flowsieve::report::{TopPage, TopReport, slice_shortcomings, top_summary};
use flowsieve::top::{Question, RankBy, TopPlan, top};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Sources that contact the most destinations:
    flowsieve top capture.pcap.gz
  Who scans the ports of a host, 100 ports or more:
    flowsieve top --by src,dst --distinct dst-port --min 100 capture.pcap
  Sources that send the most bytes:
    flowsieve top --sort bytes capture.pcap
  Registered domains with the most names below them, in bounded memory, for a program:
    flowsieve top --by domain2 --distinct domain --no-exact --format json dns.pcapng";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct TopArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten, next_help_heading = "What to rank")]
    question: QuestionArgs,

    #[command(flatten, next_help_heading = "What to rank")]
    slices: SliceArgs<true>,

    /// Memory of one slice, half for the filter and half for the keys
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_size, help_heading = "Summary", hide_short_help = true)]
    memory: u64,

    #[command(flatten, next_help_heading = "Summary")]
    seed: SeedArgs<0>,

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

    #[command(flatten, next_help_heading = "Output")]
    page: PageArgs,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

// The question.
#[derive(Args, Clone, Debug)]
struct QuestionArgs {
    /// Keys to rank, such as src, dst/24 or src,dst
    ///
    /// Fields are src, dst, src-port, dst-port, proto, vlan, domain and domain2, the registered
    /// domain by the Public Suffix List; kinds of element, such as host-pair, stand for theirs.
    /// src/24 is a prefix of IPv4 addresses; for IPv6 it has twice as many bits. Questions about
    /// domains are about DNS messages.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "src", value_parser = elements(), hide_possible_values = true)]
    by: Vec<ElementKind>,

    /// Fields to count for each key, such as dst or dst-port [default: dst; src if dst is in the key]
    ///
    /// The same names as for --by. For ports, packets without ports do not count. If both addresses are in the
    /// key, name something, unless you rank by packets or bytes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = elements(), hide_possible_values = true)]
    distinct: Vec<ElementKind>,

    /// Keys listed per slice at most [default: 20; with --min: all]
    ///
    /// Never more than 1,048,576.
    #[arg(short = 'n', long = "number", value_name = "COUNT", value_parser = parse_count)]
    number: Option<u64>,

    /// Rank by distinct, packets or bytes
    ///
    /// By packets and bytes a key needs no two distinct others: --min is 1 unless you give it.
    /// Without the exact count they are those since the table holds the key, with an upper bound.
    #[arg(long, value_name = "NUMBER", value_parser = by_name(RankBy::ALL, RankBy::name), default_value = "distinct", hide_possible_values = true)]
    sort: RankBy,

    /// List keys with at least this many distinct others [default: 2; 1 with --sort bytes or packets]
    ///
    /// Without the exact count, each row says whether it is certain, likely or possible that the
    /// key has this many.
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    min: Option<u64>,

    /// Count DNS queries only
    #[arg(long, hide_short_help = true)]
    queries_only: bool,

    #[command(flatten)]
    dns: DnsPortArgs,
}

/// Default numbers of keys that are listed, and of distinct others of each.
const USUAL_KEYS: usize = 20;
const USUAL_LEAST: u64 = 2;

pub(crate) fn run(args: &TopArgs, run: &mut Run) -> Result<Outcome> {
    let files = run.start_on(&args.input, args.live.follow, args.speech.is_quiet())?;
    let mut plan = args.plan(&files)?;
    plan.check_memory()?;
    run.open(&mut plan.trace)?;
    let shown = (args.format, args.rows, args.live);
    let (output, style) = args.output.open_live(run, &mut plan.trace, shown)?;
    if args.page.is_wanted() {
        // The page takes each slice once, so rows come late.
        plan.trace.delay_ns = None;
        run.hides_progress = false;
    }
    let html = args.page.open(run)?;
    let report = TopReport::begin(args.format.of(&args.output), &plan, style, output);
    let mut sinks = (report.context(UNWRITTEN)?, args.page.is_wanted().then(TopPage::default));
    let summary = run.read(&plan.trace.inputs, |watch| top(&plan, &mut sinks, watch))?;
    let (report, page) = sinks;
    let written = report.finish(&summary).context(UNWRITTEN);
    all_written([
        args.output.finish(run, written, || top_summary(&plan, &summary)),
        page.map_or(Ok(()), |page| args.page.write(run, html, page.finish(&plan, &summary))),
    ])?;
    run.note(args.format.of(&args.output), slice_shortcomings(&summary.totals));
    Ok(run.end(&summary, args.speech, PARTIAL))
}

impl TopArgs {
    /// Returns the same for machines to divide.
    pub(super) fn divided(&self) -> Result<DividedRun, UsageError> {
        refuse(
            &self.input.read,
            &self.output,
            &[(self.live.follow, "--follow"), (self.page.is_wanted(), "--html or --svg")],
        )?;
        let plan = DividedPlan::Top(self.plan(&self.input.captures)?);
        Ok(plan.run(self.format.of(&self.output), &self.output, self.speech.is_quiet()))
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<TopPlan, UsageError> {
        keep_apart(self.output.files().into_iter().chain(self.page.files()), inputs)?;
        self.format.check(&self.output)?;
        self.page.check(self.output.path())?;
        let asked = &self.question;
        let fields = |kinds: &[ElementKind]| -> Vec<_> {
            kinds.iter().flat_map(|kind| kind.fields().to_vec()).collect()
        };
        let (by, mut distinct) = (fields(&asked.by), fields(&asked.distinct));
        if distinct.is_empty() {
            distinct.push(Question::usual_distinct(&by, asked.sort));
        }
        let question = Question::new(by, distinct);
        let question = question.map_err(UsageError::new)?;
        let about_dns = asked.queries_only || !asked.dns.dns_port.is_empty();
        UsageError::check(&[(
            about_dns && !question.is_about_dns(),
            "--queries-only and --dns-port are about DNS messages: ask for domain or domain2, or leave them out",
        )])?;
        let number = asked.number.map(|number| number.min(usize::MAX as u64) as usize);
        let plan = TopPlan {
            trace: self.input.read.trace(&self.live.sources(inputs), &asked.dns, &self.threads)?,
            question,
            queries_only: asked.queries_only,
            slicing: self.slices.slicing(self.input.read.zone()),
            most: number.or(asked.min.is_none().then_some(USUAL_KEYS)),
            least: asked.min.unwrap_or(match asked.sort {
                RankBy::Distinct => USUAL_LEAST,
                RankBy::Packets | RankBy::Bytes => 1,
            }),
            rank_by: asked.sort,
            memory_bytes: self.memory,
            exact_limit_bytes: self.exact.limit_bytes(),
            seed: self.seed.seed,
        };
        plan.check()?;
        Ok(plan)
    }
}
