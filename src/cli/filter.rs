//! `flowsieve filter`: saved filters, looked at, asked, united and intersected.

use super::destination::is_written_at_once;
use super::options::{FormatArgs, OutputArgs};
use super::output::{Ending, Output};
use super::run::{PARTIAL, Run, UNWRITTEN};
use super::same_file::{Replaced, keep_apart};
use super::say::say;
use super::timezone::ZoneArgs;
use super::{Outcome, UsageError};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use flowsieve::elements::{ElementLabel, ElementQuery};
use flowsieve::filters::saved::{SavedFilter, UnionError};
use flowsieve::filters::{Estimate, Pattern, PatternAnswer};
use flowsieve::hashing::Digester;
use flowsieve::report::{AnswerReport, FilterInfo, OverlapReport, Summary, answer_summary};
use flowsieve::trace::{Stoppable, standard_input};
use flowsieve_engine::internal::Shown;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Save what a capture holds, and ask it:
    flowsieve count --slice all --save-filter pairs.fsieve capture.pcap
    flowsieve filter query pairs.fsieve 10.0.0.1,10.0.0.2
  The filter of two days, and what both days had:
    flowsieve filter union -o both.fsieve monday.fsieve tuesday.fsieve
    flowsieve filter intersect monday.fsieve tuesday.fsieve";

const INFO_EXAMPLES: &str = "\
Examples:
  What a filter is, and how many elements it holds:
    flowsieve filter info pairs.fsieve
  The same of several, for a program:
    flowsieve filter info --format json monday.fsieve tuesday.fsieve";

const QUERY_EXAMPLES: &str = "\
Examples:
  Was there a packet from one host to another:
    flowsieve filter query pairs.fsieve 10.0.0.1,10.0.0.2
  And one to any, of a filter that stores sources as well (so does one of a structure such as mdbf):
    flowsieve count --slice all --want all --want src --expect 100k --save-filter pairs.fsieve capture.pcap
    flowsieve filter query pairs.fsieve '10.0.0.1,*'
  Many DNS triples, one a line:
    flowsieve filter query dns.fsieve - < triples.csv";

const UNION_EXAMPLES: &str = "\
Examples:
  The filter of two days:
    flowsieve filter union -o both.fsieve monday.fsieve tuesday.fsieve
  Of a whole directory:
    flowsieve filter union -o all.fsieve days/*.fsieve";

const INTERSECT_EXAMPLES: &str = "\
Examples:
  Host pairs of both days, and of either:
    flowsieve filter intersect monday.fsieve tuesday.fsieve";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Clone, Debug, Subcommand)]
enum Task {
    Info(InfoArgs),
    Query(QueryArgs),
    Union(UnionArgs),
    Intersect(IntersectArgs),
}

/// Say what a saved filter is and how many distinct elements it holds
#[derive(Args, Clone, Debug)]
#[command(after_long_help = INFO_EXAMPLES)]
struct InfoArgs {
    /// Saved filters
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Ask a saved filter for elements, with * for any value
///
/// Values are separated by commas, in the order of the element's attributes: `10.0.0.1,10.0.0.2` is
/// a host pair, `10.0.0.1,10.0.0.2,6,1234,80` a flow, `192.0.2.1,192.0.2.53,www.example.com` a DNS
/// triple. A table answers each question by a line with the question, a tab and one word; the other
/// formats have the same words:
///
///   yes      seen, or a false positive
///   no       not seen, for certain (if an input of the count could not be read to its end, a
///            message says so: not seen in what was read)
///   apart    each value was seen, but perhaps in different elements: the filter cannot say
///   unknown  the filter keeps nothing about such a question, or looks at a sample of the elements
///            and not at this one: a crowded `subset` filter of a count does
#[derive(Args, Clone, Debug)]
#[command(after_long_help = QUERY_EXAMPLES, verbatim_doc_comment)]
struct QueryArgs {
    /// A saved filter
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Elements, or - to read one per line from standard input
    #[arg(required = true, value_name = "VALUE")]
    values: Vec<String>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Unite saved filters of equal parameters into the filter of all their inputs
///
/// They must have been saved with the same structure, memory, seed and shards, of the same kind of
/// element. Scalable filters can be united only if the union has no more links than a chain may
/// have. If they were made with --from and --to, `filter info` names the earliest and the latest time,
/// between which there may be gaps. The size of a union of crowded filters is known only within bounds; to know it better,
/// count the second day with `count --continue monday.fsieve`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = UNION_EXAMPLES)]
struct UnionArgs {
    /// Saved filters
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the union to this file, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Count what two saved filters have in common, and what is in either
///
/// They must be such that `filter union` unites them. Counts are by the fill of the filters, each
/// with its standard error and bounds.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = INTERSECT_EXAMPLES)]
struct IntersectArgs {
    /// A saved filter
    #[arg(value_name = "FILE")]
    first: PathBuf,

    /// Another one
    #[arg(value_name = "FILE")]
    second: PathBuf,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const UNREADABLE: &str = "standard input cannot be read";

pub(crate) fn run(args: &FilterArgs, run: &mut Run) -> Result<Outcome> {
    run.start(false)?;
    match &args.task {
        Task::Info(args) => info(args, run),
        Task::Query(args) => query(args, run),
        Task::Union(args) => union(args, run),
        Task::Intersect(args) => intersect(args, run),
    }
}

/// Loads a saved filter.
pub(super) fn load(path: &Path) -> Result<SavedFilter> {
    SavedFilter::load(path).with_context(|| path.shown().to_string())
}

fn info(args: &InfoArgs, run: &mut Run) -> Result<Outcome> {
    keep_apart(args.output.files(), &args.files)?;
    args.format.check(&args.output)?;
    let output = args.output.open(run)?;
    let mut info = FilterInfo::in_zone(args.zone.zone());
    for path in &args.files {
        if run.stop().is_set() {
            break;
        }
        // Loaded one after the other: only one is in memory.
        match load(path) {
            Ok(filter) => info.add(path, &filter),
            Err(error) => run.problem(format!("{error:#}")),
        }
    }
    let style = output.style(None);
    let written = info.complete().write(args.format.of(&args.output), style, output);
    finish(run, &args.output, written, || info.complete().summary())
}

/// Puts results in place, which are partial if a signal has come.
fn finish(
    run: &mut Run,
    output: &OutputArgs,
    written: io::Result<Output>,
    summary: impl FnOnce() -> Summary,
) -> Result<Outcome> {
    run.set_interrupted(run.stop().is_set());
    output.finish(run, written.context(UNWRITTEN), summary)?;
    Ok(run.finish(PARTIAL))
}

/// A filter whose elements are known.
struct Asked {
    filter: SavedFilter,
    label: ElementLabel,
}

impl Asked {
    fn load(path: &Path) -> Result<Self> {
        let filter = load(path)?;
        let label = ElementLabel::parse(filter.label()).ok_or_else(|| {
            anyhow!(
                "{}: its label does not say what its elements are, so nothing can be asked here; ask it through the library",
                path.shown()
            )
        })?;
        let attributes = label.rule.kind.arity();
        if filter.spec().attributes().is_some_and(|needed| needed != attributes) {
            return Err(anyhow!(
                "{}: its label and its parameters contradict each other in the number of attributes",
                path.shown()
            ));
        }
        Ok(Self { filter, label })
    }

    fn parse(&self, text: &str) -> Result<ElementQuery, UsageError> {
        let digester = Digester::new(self.filter.seed());
        ElementQuery::parse(text, &self.label.rule, digester).map_err(UsageError::new)
    }
}

/// Returns the answer of a saved filter to a question for elements.
pub fn answer(filter: &SavedFilter, query: &ElementQuery) -> &'static str {
    let answers = query.patterns.iter().map(|pattern| {
        filter.contains_where(Pattern { whole: pattern.whole, attributes: &pattern.attributes })
    });
    answers.fold(PatternAnswer::Absent, PatternAnswer::or).name()
}

fn query(args: &QueryArgs, run: &mut Run) -> Result<Outcome> {
    if args.values.iter().filter(|value| *value == "-").count() > 1 {
        bail!(UsageError::new("standard input can be read only once; name - once"));
    }
    let standard = args.values.iter().filter(|value| *value == "-").map(PathBuf::from);
    let inputs: Vec<PathBuf> = standard.chain([args.file.clone()]).collect();
    keep_apart(args.output.files(), &inputs)?;
    args.format.check(&args.output)?;
    let asked = Asked::load(&args.file)?;
    // All of the command line is understood before anything is answered.
    let queries = args
        .values
        .iter()
        .map(|text| match text.as_str() {
            "-" => Ok((text, None)),
            given => Ok((text, Some(asked.parse(given)?))),
        })
        .collect::<Result<Vec<_>, UsageError>>()?;
    let output = args.output.open(run)?;
    let mut is_complete = asked.label.is_complete;
    if !is_complete {
        say_incomplete(&args.file, "`no` means not seen in what was read");
    }
    let mut answers =
        AnswerReport::begin(args.format.of(&args.output), output).context(UNWRITTEN)?;
    let mut answer = |text: &str, query: &ElementQuery| {
        let answered = answers.answer(text.to_owned(), answer(&asked.filter, query));
        answered.context(UNWRITTEN)
    };
    for (text, query) in queries {
        if let Some(query) = query {
            answer(text, &query)?;
            continue;
        }
        let input = standard_input().context(UNREADABLE)?;
        let mut input = BufReader::new(Stoppable::new(input, run.stop().clone()));
        for number in 1_u64.. {
            let line = match next_line(&mut input) {
                // A line that was cut off by the signal is not asked.
                Err(_) if run.stop().is_set() => break,
                line => line.context(UNREADABLE)?,
            };
            let Some(line) = line else { break };
            let parsed = match &line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => asked.parse(line).map(|query| (line, query)),
                Err(why) => Err(UsageError::new(why)),
            };
            match parsed {
                Ok((line, query)) => answer(line, &query)?,
                Err(error) => run.problem(format!("line {number}: {error}")),
            }
        }
    }
    is_complete &= !run.stop().is_set() && !run.has_problems();
    finish(run, &args.output, answers.finish(is_complete), || answer_summary(is_complete))
}

fn say_incomplete(path: &Path, meaning: &str) {
    say(format_args!(
        "flowsieve: {}: an input could not be read to its end when this filter was saved, so {meaning}",
        path.shown()
    ));
}

/// Returns whether a filter has all that was to be read; otherwise says what that means.
fn has_all(path: &Path, filter: &SavedFilter, meaning: &str) -> bool {
    let has_all = ElementLabel::parse(filter.label()).is_none_or(|label| label.is_complete);
    if !has_all {
        say_incomplete(path, meaning);
    }
    has_all
}

/// Unites a filter with another, whose elements may be of another range of time.
///
/// # Errors
///
/// They differ in their parameters or in what their elements are. This filter is then as it was.
pub fn unite(united: &mut SavedFilter, mut other: SavedFilter) -> Result<(), UnionError> {
    let before = united.label().to_vec();
    unite_labels([&mut *united, &mut other]);
    united.unite(&other).inspect_err(|_| united.set_label(before))
}

/// Sets the label of both filters to that of their union, if their labels can be united.
fn unite_labels(filters: [&mut SavedFilter; 2]) {
    let labels = filters.each_ref().map(|filter| ElementLabel::parse(filter.label()));
    if let [Some(label), Some(other)] = labels
        && let Some(label) = label.united(&other)
    {
        for filter in filters {
            filter.set_label(label.to_string().into_bytes());
        }
    }
}

/// Returns the count of these filters together by the fill of their union alone: each is united
/// twice, so that no count of a stream is left.
fn by_fill(filters: &[&SavedFilter]) -> Result<Option<Estimate>> {
    let first = filters[0];
    let (spec, label) = (first.spec().clone(), first.label().to_vec());
    let mut united = SavedFilter::empty(spec, first.seed(), label, first.shards())?;
    for filter in filters.iter().chain(filters) {
        united.unite(filter)?;
    }
    Ok(united.distinct())
}

fn intersect(args: &IntersectArgs, run: &mut Run) -> Result<Outcome> {
    let files = [args.first.clone(), args.second.clone()];
    keep_apart(args.output.files(), &files)?;
    args.format.check(&args.output)?;
    let output = args.output.open(run)?;
    let mut is_complete = true;
    // A file may be replaced at any time, so each is read once.
    let [mut first, mut second] = [load(&args.first)?, load(&args.second)?];
    for (path, filter) in files.iter().zip([&first, &second]) {
        is_complete &= has_all(path, filter, "the counts are of what was read");
    }
    unite_labels([&mut first, &mut second]);
    let named = || format!("{} and {}", args.first.shown(), args.second.shown());
    let either = by_fill(&[&first, &second]).with_context(named)?;
    let counts = [by_fill(&[&first])?, by_fill(&[&second])?, either];
    let known = match counts {
        [Some(first), Some(second), Some(either)] => {
            let both = Estimate::common(first, second, either);
            both.map(|both| [first, second, either, both])
        }
        _ => None,
    };
    let counts = known.ok_or_else(|| {
        let is_counted = first.spec().counts_distinct() && first.spec().stored().is_empty();
        anyhow!(
            "the fill of these filters does not tell how many elements they hold; save both with `count --filter subset --fpr 0.01 --expect NUMBER`{}",
            if is_counted { ", or with more memory (--memory)" } else { "" }
        )
    })?;
    let report = OverlapReport::new(counts, is_complete);
    let style = output.style(None);
    let written = report.complete().write(args.format.of(&args.output), style, output);
    finish(run, &args.output, written, || report.complete().summary())
}

/// Bytes of the longest line: more than any question has.
const MOST_LINE: u64 = 64 << 10;

/// Reads a line, or says why it is no question. Returns `None` at the end.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    if input.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let is_long = line.len() as u64 == MOST_LINE && !line.ends_with(b"\n");
    if is_long {
        input.skip_until(b'\n')?;
    }
    let begin = |line: &[u8]| String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
    if is_long {
        let begin = begin(&line);
        return Ok(Some(Err(format!(
            "`{begin}...` is longer than 64 KiB; write one element a line"
        ))));
    }
    while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        line.pop();
    }
    Ok(Some(match String::from_utf8(line) {
        Ok(line) => Ok(line),
        Err(error) => Err(format!("`{}` is not in UTF-8; write it so", begin(error.as_bytes()))),
    }))
}

fn union(args: &UnionArgs, run: &mut Run) -> Result<Outcome> {
    let read = if is_written_at_once(&args.output) { &args.files[..] } else { &[] };
    keep_apart([("-o", Some(args.output.as_path()))], read)?;
    let replaced = Replaced::lock(&args.files, Some(&args.output))?;
    let (first, others) = args.files.split_first().expect("clap asks for two");
    let load = |path: &Path| {
        let filter = load(path)?;
        has_all(path, &filter, "the union lacks what was not read");
        Ok::<_, anyhow::Error>(filter)
    };
    let mut united = load(first)?;
    for path in others {
        if run.stop().is_set() {
            break;
        }
        let named = || format!("{} and {}", first.shown(), path.shown());
        unite(&mut united, load(path)?).with_context(named)?;
    }
    let mut output = run.output(Some(&args.output))?;
    united.save(&mut output).context(UNWRITTEN)?;
    // Half a union looks like a whole one: it is never put in place.
    if run.stop().is_set() {
        drop(output);
        run.set_interrupted(true);
    } else if let Some(replaced) = replaced.filter(|replaced| !replaced.is_same()) {
        output.commit(Ending::Partial)?;
        run.problem(format!(
            "{} stays as it is, because it changed after it had been read{}; unite again",
            replaced.path.shown(),
            run.partials.words()
        ));
    } else {
        run.commit(output)?;
    }
    Ok(run.finish("no filter was written"))
}
