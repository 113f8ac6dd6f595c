//! Options that several commands share, each declared once.
//!
//! The doc comments of the fields are the texts of `--help`. A block itself has none: clap would
//! show it as the description of each command with the block.

use super::UsageError;
use super::destination::{is_standard, is_standard_output};
use super::output::is_shown;
use super::timezone::ZoneArgs;
use super::units::{
    TypedBound, parse_bound, parse_delay_ns, parse_one_port, parse_seed, parse_size,
    parse_width_ns, whole,
};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use flowsieve::capture_filter::CaptureFilter;
use flowsieve::comparison::Contender;
use flowsieve::decode::{Headers, Tunnel};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::Structure;
use flowsieve::index::{GlobalFilter, RegionFilter};
use flowsieve::pipeline::{Align, Slicing};
use flowsieve::plan::TracePlan;
use flowsieve::report::ReportFormat;
use flowsieve::selection::{Selection, TimeBound};
use flowsieve::trace::{DnstapTypes, InputFormat, Source};
use flowsieve::zone::Zone;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// A value of an option: its name, its text in `--help`, and the value.
pub(super) type Choice<T> = (&'static str, &'static str, T);

/// Returns a parser of these values by name; `help` is the text of `--help`.
pub(super) fn named<T>(
    values: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
    help: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let choices = values.into_iter().map(|value| (name(value), help(value), value));
    one_of(choices.collect::<Vec<_>>())
}

/// Returns a parser of these values by name, without texts for `--help`.
pub(super) fn by_name<T, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.map(name)).map(move |chosen| {
        let value = values.into_iter().find(|&value| name(value) == chosen);
        value.expect("only these names are possible")
    })
}

/// Returns a parser of these choices by name.
pub(super) fn one_of<T>(choices: impl Into<Vec<Choice<T>>>) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let choices = choices.into();
    let values = choices.iter();
    let values = values.map(|(name, help, _)| {
        // A toy has no help.
        PossibleValue::new(*name).help(*help).hide(help.is_empty())
    });
    PossibleValuesParser::new(values).map(move |chosen| {
        let choice = choices.iter().find(|(name, ..)| *name == chosen);
        choice.expect("only these names are possible").2.clone()
    })
}

// Captures, as one trace.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(super) struct InputArgs {
    /// Files, directories, or - for standard input
    #[arg(required = true, value_name = "CAPTURE", display_order = 0)]
    pub(super) captures: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) read: ReadArgs,
}

// How captures are read, and which of their packets take part: what all commands that read them
// have in common. An option that is added here is one of all of them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(super) struct ReadArgs {
    /// How inputs are read; tsh has no mark and must be named
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = one_of(INPUT_FORMATS), hide_short_help = true)]
    input_format: InputFormat,

    /// Which messages of dnstap files count: client, auth, resolver and more
    ///
    /// A comma-separated list of `auth`, `resolver`, `client`, `forwarder`, `stub`, `tool` and
    /// `update`, each of which may end in `-query` or `-response`, or `all`. By default
    /// `client,auth`: what a server was asked and what it answered, as in a capture of the traffic
    /// with its clients. Other messages are tallied as skipped.
    #[arg(long, value_name = "TYPES", value_parser = parse_dnstap_types, hide_short_help = true)]
    dnstap_type: Option<DnstapTypes>,

    #[command(flatten)]
    pub(super) selection: SelectionArgs,

    /// Which IP header of tunnelled packets counts
    #[arg(long, value_name = "WHICH", default_value = "outer", value_parser = one_of(HEADERS), hide_short_help = true)]
    pub(super) tunnel: Tunnel,

    /// Only packets of at least this many bytes
    #[cfg(feature = "toy")]
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide = true)]
    toy_least: u32,
}

impl ReadArgs {
    /// Returns how inputs are recognised.
    pub(super) fn format(&self) -> InputFormat {
        match (self.input_format, self.dnstap_type) {
            (InputFormat::Auto, Some(types)) => InputFormat::AutoWith(types),
            (format, _) => format,
        }
    }

    /// Returns the zone in which times are shown.
    pub(super) fn zone(&self) -> Zone {
        self.selection.zone.zone()
    }

    /// Returns the plan of these inputs. Times may still be relative to them.
    pub(super) fn trace(
        &self,
        inputs: &[impl Clone + Into<Source>],
        dns: &DnsPortArgs,
        threads: &ThreadArgs,
    ) -> Result<TracePlan, UsageError> {
        let trace = TracePlan {
            inputs: inputs.iter().cloned().map(Into::into).collect(),
            input_format: self.format(),
            selection: self.selection.selection(self.tunnel, &dns.dns_port)?,
            headers: Headers { tunnel: self.tunnel, dns_ports: dns.dns_port.clone() },
            threads: threads.count(),
            delay_ns: None,
        };
        #[cfg(feature = "toy")]
        let trace = trace.with_toy(self.toy_least);
        Ok(trace)
    }
}

const INPUT_FORMATS: &[Choice<InputFormat>] = &[
    ("auto", "Recognised by content", InputFormat::Auto),
    ("tsh", "NLANR's 44-byte records", InputFormat::Tsh),
];

const HEADERS: &[Choice<Tunnel>] = &[
    ("outer", "The outermost", Tunnel::Outer),
    (
        "inner",
        "The innermost of IP in IP, GRE, ERSPAN, VXLAN, Geneve, GTP-U, Teredo, L2TP",
        Tunnel::Inner,
    ),
];

// Which packets take part.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(super) struct SelectionArgs {
    /// Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'
    ///
    /// The language is that of tcpdump and of Wireshark's capture filters (pcap-filter). VLAN tags
    /// and MPLS labels need no keyword, and with `--tunnel inner` the expression is about the inner
    /// packet.
    #[arg(long = "where", value_name = "EXPRESSION", allow_hyphen_values = true)]
    expression: Option<String>,

    /// Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min
    ///
    /// RFC 3339, a date or a time of --timezone, seconds since 1970 (from 18 digits on
    /// nanoseconds), a duration after the first packet (+90s), or one before the last packet of
    /// files (-5min).
    #[arg(long, value_name = "TIME", value_parser = parse_bound, allow_hyphen_values = true, hide_short_help = true)]
    from: Option<TypedBound>,

    /// Only packets before this time
    #[arg(long, value_name = "TIME", value_parser = parse_bound, allow_hyphen_values = true, hide_short_help = true)]
    to: Option<TypedBound>,

    #[command(flatten)]
    pub(super) zone: ZoneArgs,
}

impl SelectionArgs {
    /// Returns which packets take part; times may be relative to the captures. The capture filter
    /// asks this IP header, and looks for DNS messages on these ports, too.
    pub(super) fn selection(
        &self,
        tunnel: Tunnel,
        dns_ports: &[u16],
    ) -> Result<Selection, UsageError> {
        let zone = self.zone.zone();
        let [from, to] = [self.from, self.to].map(|bound| Some(bound?.in_zone(zone)));
        // Times beyond the range saturate to its end, as those of packets do: neither is left out.
        let to = to.filter(|&to| to != TimeBound::At(i64::MAX));
        let capture_filter = capture_filter(self.expression.as_deref(), tunnel)?;
        Ok(Selection {
            capture_filter: capture_filter.map(|filter| filter.with_dns_ports(dns_ports)),
            from,
            to,
            zone,
            #[cfg(feature = "toy")]
            toy_least: 0,
        })
    }
}

// Captures that are still being written.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct LiveArgs {
    /// Keep reading captures that grow, and new ones in directories, until interrupted
    ///
    /// Names a capture that is being written, or a directory into which a program such as tcpdump
    /// -C or dumpcap -b writes captures one after the other.
    #[arg(long, help_heading = "Input", hide_short_help = true)]
    pub(super) follow: bool,

    /// Wait this long, in capture time, for late packets of a pipe before a row is printed
    ///
    /// Packets that come later still count. Formats written at the end (JSON, Parquet, and all
    /// files) and captures that are files ignore it. With --every, all formats wait so long, and
    /// packets that come later do not count.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_delay_ns, help_heading = "Output", hide_short_help = true)]
    pub(super) delay: i64,
}

impl LiveArgs {
    /// Returns these inputs as files, or followed as they grow. Pipes and standard input are read
    /// until their end anyway.
    pub(super) fn sources(self, files: &[PathBuf]) -> Vec<Source> {
        let is_pipe = |path: &PathBuf| {
            let data = std::fs::metadata(path);
            is_standard(path) || data.is_ok_and(|data| !data.is_file() && !data.is_dir())
        };
        let source = |path: &PathBuf| {
            if self.follow && !is_pipe(path) { Source::followed(path) } else { Source::from(path) }
        };
        files.iter().map(source).collect()
    }
}

/// Parses the value of `--where`; a capture filter asks this IP header.
pub(super) fn capture_filter(
    expression: Option<&str>,
    tunnel: Tunnel,
) -> Result<Option<CaptureFilter>, UsageError> {
    let filter = expression.map(|text| CaptureFilter::parse(text, tunnel)).transpose();
    filter.map_err(|error| UsageError::new(format!("--where: {error}")))
}

fn parse_dnstap_types(text: &str) -> Result<DnstapTypes, String> {
    let types = text.split(',').map(|name| {
        DnstapTypes::of_name(name.trim()).ok_or_else(|| {
            format!(
                "`{name}` is no type of dnstap messages: {}, each also with -query or -response, or all",
                DnstapTypes::NAMES.join(", ")
            )
        })
    });
    let sets = types.collect::<Result<Vec<_>, _>>()?;
    let set = sets.into_iter().reduce(DnstapTypes::and);
    set.ok_or_else(|| "name at least one type".to_owned())
}

// Where DNS messages are looked for.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct DnsPortArgs {
    /// Another DNS port besides 53
    #[arg(long, value_name = "PORT", value_parser = parse_one_port, hide_short_help = true)]
    pub(super) dns_port: Vec<u16>,
}

// The elements of a packet.
#[derive(Args, Clone, Debug)]
pub(super) struct ElementArgs {
    /// What is counted
    ///
    /// A kind of element, or the fields of a key separated by commas, such as `src/24,dst-port`:
    /// `src`, `dst`, prefixes of them, `proto`, `src-port`, `dst-port`, `domain`, `domain2` and
    /// `vlan`.
    ///
    /// Only the first fragment of a datagram has ports, so its later fragments are a flow with
    /// ports 0.
    #[arg(long, value_name = "KIND", default_value = "host-pair", value_parser = elements())]
    pub(super) element: ElementKind,

    /// Count both directions as one
    #[arg(long, hide_short_help = true)]
    pub(super) undirected: bool,

    /// Count DNS queries only
    #[arg(long, hide_short_help = true)]
    pub(super) queries_only: bool,

    #[command(flatten)]
    pub(super) dns: DnsPortArgs,
}

/// Refuses `--undirected` for elements with one end.
pub(super) fn check_ends(element: ElementKind, undirected: bool) -> Result<(), UsageError> {
    if undirected && !element.is_symmetric() {
        return Err(UsageError::new(
            "--undirected needs two ends: it goes with host-pair, flow, dns, and keys with both ends alike, such as src/24,dst/24",
        ));
    }
    Ok(())
}

/// Takes the name of a kind of element, or the fields of a key.
pub(super) fn elements() -> impl TypedValueParser<Value = ElementKind> {
    ElementParser
}

#[derive(Clone)]
struct ElementParser;

impl TypedValueParser for ElementParser {
    type Value = ElementKind;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<ElementKind, clap::Error> {
        let parser = StringValueParser::new().try_map(|text| text.parse::<ElementKind>());
        parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = ElementKind::named();
        Some(Box::new(kinds.map(|kind| PossibleValue::new(kind.name).help(kind.summary))))
    }
}

impl ElementArgs {
    /// Returns which elements are counted.
    pub(super) fn rule(&self) -> ElementRule {
        ElementRule {
            kind: self.element,
            undirected: self.undirected,
            queries_only: self.queries_only,
        }
    }

    /// Checks what the types cannot say.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        check_ends(self.element, self.undirected)?;
        let about_dns = self.queries_only || !self.dns.dns_port.is_empty();
        if about_dns && !self.element.has_name() {
            return Err(UsageError::new(
                "--queries-only and --dns-port are about DNS messages: add --element dns, or leave them out",
            ));
        }
        Ok(())
    }
}

// Captures as one trace, cut into elements and slices.
#[derive(Args, Clone, Debug)]
pub(super) struct TraceArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,

    #[command(flatten, next_help_heading = "What to count")]
    pub(super) elements: ElementArgs,

    #[command(flatten, next_help_heading = "What to count")]
    slices: SliceArgs<false>,
}

impl TraceArgs {
    /// Returns the plan of these inputs.
    pub(super) fn trace(
        &self,
        inputs: &[impl Clone + Into<Source>],
        threads: &ThreadArgs,
    ) -> Result<TracePlan, UsageError> {
        self.elements.check()?;
        self.input.read.trace(inputs, &self.elements.dns, threads)
    }

    /// Returns the time slices.
    pub(super) fn slicing(&self) -> Slicing {
        self.slices.slicing(self.input.read.zone())
    }
}

// How time is cut. With WHOLE there is one slice unless the user says otherwise.
#[derive(Args, Clone, Debug)]
pub(super) struct SliceArgs<const WHOLE: bool> {
    /// Width of a time slice, such as 500ms or 5min, or `all`
    #[arg(long, default_value = if WHOLE { "all" } else { "1s" }, value_name = "DURATION", value_parser = or_all(parse_width_ns), allow_hyphen_values = true)]
    slice: OrAll<i64>,

    /// Where slices begin
    #[arg(long, value_name = "TO", default_value = "epoch", value_parser = boundaries(), hide_short_help = true)]
    align: Align,
}

fn boundaries() -> impl TypedValueParser<Value = Align> {
    named([Align::Epoch, Align::First], Align::name, |align| match align {
        Align::Epoch | Align::Local(_) => "Multiples of the width since 1970 began in --timezone",
        Align::First => "Multiples of the width since the first packet",
    })
}

/// A value, or `None` for `all`. Clap takes a plain `Option` for an option that may be missing.
type OrAll<T> = Option<T>;

/// Returns a parser that also takes `all`.
fn or_all<T>(
    parse: fn(&str) -> Result<T, &'static str>,
) -> impl Fn(&str) -> Result<OrAll<T>, String> + Clone {
    move |text| match text {
        "all" => Ok(None),
        _ => parse(text).map(Some).map_err(|error| format!("{error}, or `all`")),
    }
}

impl<const WHOLE: bool> SliceArgs<WHOLE> {
    /// Returns the time slices, in local time of this zone.
    pub(super) fn slicing(&self, zone: Zone) -> Slicing {
        Slicing {
            width_ns: self.slice,
            align: match self.align {
                Align::Epoch if !zone.is_utc() => Align::Local(zone),
                align => align,
            },
        }
    }
}

// The memory of exact counts.
#[derive(Args, Clone, Debug)]
pub(super) struct ExactLimitArgs {
    /// Memory of the exact count; a slice that needs more has none
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size, hide_short_help = true)]
    pub(super) exact_limit: u64,
}

// Whether there is an exact count, and its memory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Exact count")]
pub(super) struct ExactArgs {
    /// Skip the exact count: memory stays small for any traffic
    #[arg(long)]
    no_exact: bool,

    #[command(flatten)]
    limit: ExactLimitArgs,
}

impl ExactArgs {
    /// Returns how many bytes the exact count may take, or `None` if there is none.
    pub(super) fn limit_bytes(&self) -> Option<u64> {
        (!self.no_exact).then_some(self.limit.exact_limit)
    }
}

// The seed of random numbers.
#[derive(Args, Clone, Debug)]
pub(super) struct SeedArgs<const DEFAULT: u64> {
    /// Seed of all hash functions and of what is drawn
    ///
    /// `random` draws one and reports it in the results, so that nobody can craft traffic that
    /// collides.
    // clap keeps one text of a `default_value_t` for all uses of a generic struct.
    #[arg(long, value_name = "NUMBER", default_value = if DEFAULT == 0 { "0" } else { "1" }, value_parser = parse_seed, hide_short_help = true)]
    pub(super) seed: u64,
}

// How many threads work.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ThreadArgs {
    /// Threads; results do not depend on them [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = whole(1_u16, 1024), hide_short_help = true)]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// Returns the number of threads: one per processor unless the user says otherwise.
    pub(super) fn count(&self) -> usize {
        let all = || available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(all, usize::from)
    }
}

// How results are written.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(super) struct FormatArgs {
    /// How results are written [default: as the name of the output ends, or a table]
    #[arg(long, value_parser = formats())]
    pub(super) format: Option<ReportFormat>,
}

/// Parses the name of a format.
pub(super) fn formats() -> impl TypedValueParser<Value = ReportFormat> {
    named(ReportFormat::ALL.iter().copied(), ReportFormat::name, ReportFormat::help)
}

impl FormatArgs {
    /// Returns the format: the one that was asked for, that of the file, or a table.
    pub(super) fn of(self, output: &OutputArgs) -> ReportFormat {
        self.format.or_else(|| output.format()).unwrap_or_default()
    }

    /// Refuses a binary format on a terminal.
    pub(super) fn check(self, output: &OutputArgs) -> Result<(), UsageError> {
        let to_standard = output.path().is_none_or(is_standard_output);
        let format = self.of(output);
        UsageError::check(&[(
            format.is_binary() && to_standard && is_shown(),
            &format!(
                "the format {format} is not for a terminal; name a file with --output, or pipe it on"
            ),
        )])
    }
}

// How much of a table a terminal shows.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct RowsArgs {
    /// Rows of a table on a terminal, half of them the first and half the last, or `all`
    ///
    /// Files and pipes get all rows, and so does whoever watches a pipe being counted.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = or_all(parse_rows), hide_short_help = true)]
    rows: OrAll<usize>,
}

fn parse_rows(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|&rows| rows > 0).ok_or("a number of rows from 1 on")
}

impl RowsArgs {
    /// Returns how many rows a terminal shows, or `None` for all.
    pub(super) fn shown(self) -> Option<usize> {
        self.rows
    }
}

// Where results go.
#[derive(Args, Clone, Debug)]
pub(super) struct OutputArgs {
    /// Write results to this file, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Write parameters and totals to this file as JSON, beside rows of any format
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) summary: Option<PathBuf>,
}

impl OutputArgs {
    /// Returns the file, or `None` for standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Returns the format that the name of the file ends with.
    pub(super) fn format(&self) -> Option<ReportFormat> {
        ReportFormat::of_name(self.path()?)
    }

    /// Returns the files that are written, with the options that name them.
    pub(super) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--output", self.path()), ("--summary", self.summary.as_deref())]
    }
}

// Whether progress and remarks are shown.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct QuietArgs {
    /// No progress bar and no remarks
    #[arg(short, long, hide_short_help = true)]
    pub(super) quiet: bool,
}

// How much is shown besides results and problems.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct SpeechArgs {
    #[command(flatten)]
    pub(super) quiet: QuietArgs,

    /// Say how fast it went, even in a pipe
    #[arg(short, long, conflicts_with = "quiet", hide_short_help = true)]
    pub(super) verbose: bool,
}

impl SpeechArgs {
    /// Returns whether only problems are reported.
    pub(super) fn is_quiet(self) -> bool {
        self.quiet.quiet
    }
}

/// Returns a filter, another counter, or the exact set alone.
pub(crate) fn structures() -> impl TypedValueParser<Value = Structure> {
    named(Structure::all(), Structure::name, Structure::summary)
}

/// Returns a structure that a comparison knows.
pub(crate) fn contenders() -> impl TypedValueParser<Value = Contender> {
    named(Contender::all(), Contender::name, Contender::summary)
}

/// Returns a structure that a comparison knows, or `None` for all but [`Contender::Planned`].
pub(crate) fn contenders_or_all() -> impl TypedValueParser<Value = Option<Contender>> {
    let all = Contender::all().map(|it| (it.name(), it.summary(), Some(it)));
    one_of(all.chain([("all", "All of them but plan", None)]).collect::<Vec<_>>())
}

/// Returns a filter of a region in an index.
pub(crate) fn filters_of_regions() -> impl TypedValueParser<Value = RegionFilter> {
    named(RegionFilter::all(), RegionFilter::name, RegionFilter::summary)
}

/// Returns a filter of the global level of an index.
pub(crate) fn global_filters() -> impl TypedValueParser<Value = GlobalFilter> {
    named(GlobalFilter::ALL, GlobalFilter::name, GlobalFilter::summary)
}
