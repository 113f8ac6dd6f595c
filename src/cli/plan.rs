//! `flowsieve plan`: which structure, how large, and with which parameters.

use super::inputs::{Inputs, total_bytes};
use super::output::Output;
use super::progress::Progress;
use super::structure::Structure as Named;
use super::trace_args::{Element, Format, Header};
use super::units::{parse_count, parse_size};
use super::{Outcome, UsageError};
use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::matrix_sizing::MAX_ATTRIBUTES;
use flowsieve::pipeline::{SKEWED, SamplePlan, SampleResult, sample};
use flowsieve::planner::{Elements, Goal, Origin, PlanRequest, RateRule, Structure, Wanted, plan};
use flowsieve::report::{PlanFormat, PlanReport};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Queries for host pairs, and a third as many for sources, in a mebibyte:
    flowsieve plan --want src,dst:3 --want src:1 --n 100k --memory 1MiB
  The same with the numbers of a capture, for a rate of one in a thousand:
    flowsieve plan --want src,dst:3 --want src:1 --sample capture.pcap --fpr 0.001
  A cell of Table 3 of the CBFM paper; with --memory 1MiB --n max one of Table 2:
    flowsieve plan --attributes 3 --n 1000 --attribute-fpr 0.1 --filter bfm,cbfm --cuts '1,3;1,2'";

/// Plan a filter: for every structure its parameters, memory and false-positive rate
///
/// What is planned for is a mixture of queries: combinations of attributes (--want) with weights.
/// Predicted are the rates of negatives, combinations that do not occur; see --known. For CBFM and
/// WCBFM the cuts and weights with the least weighted rate are searched for.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// What the elements are
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Element::HostPair, help_heading = "Elements")]
    element: Element,

    /// Elements of so many attributes, named 1, 2, 3, …
    #[arg(
        long,
        value_name = "COUNT",
        conflicts_with = "element",
        help_heading = "Elements"
    )]
    attributes: Option<usize>,

    /// A combination that queries ask for, and its weight, such as src,dst:3 or all [default: all]
    #[arg(long, value_name = "NAMES[:WEIGHT]", help_heading = "Elements")]
    want: Vec<String>,

    /// Distinct elements, such as 100k; src=5k for one combination; max for as many as fit
    ///
    /// Combinations without a number have at most as many values as a larger one, as their parts
    /// multiplied, and as their attributes can have (256 protocols, 65,536 ports).
    #[arg(long, value_name = "[NAMES=]COUNT", help_heading = "Elements")]
    n: Vec<String>,

    /// Share of the single values of a negative that occur in the set, though not together
    ///
    /// 1 is the worst case, and what traffic has: known hosts that did not talk to each other. A
    /// negative with one attribute is always a value that does not occur.
    #[arg(
        long,
        value_name = "0..1",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        help_heading = "Elements"
    )]
    known: f64,

    /// A capture, as one slice, on which numbers and spread are measured
    #[arg(
        long,
        value_name = "CAPTURE",
        conflicts_with = "attributes",
        help_heading = "Sample"
    )]
    sample: Vec<PathBuf>,

    /// auto recognises all formats but tsh, which has no mark
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Auto, help_heading = "Sample")]
    input_format: Format,

    /// Count both directions as one
    #[arg(long, help_heading = "Sample")]
    undirected: bool,

    /// Which IP header of tunnelled packets counts
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Header::Outer, help_heading = "Sample")]
    tunnel: Header,

    /// Of DNS messages count the queries only
    #[arg(long, help_heading = "Sample")]
    queries_only: bool,

    /// One more port on which DNS is spoken, besides 53
    #[arg(long, value_name = "PORT", help_heading = "Sample")]
    dns_port: Vec<u16>,

    /// Memory for counting the sample
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size, help_heading = "Sample")]
    exact_limit: u64,

    /// Memory of the filter [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Filter")]
    memory: Option<u64>,

    /// Weighted false-positive rate instead, in as little memory as possible
    #[arg(
        long,
        value_name = "RATE",
        allow_negative_numbers = true,
        help_heading = "Filter"
    )]
    fpr: Option<f64>,

    /// Rate of single attributes instead, by the rule of the CBFM paper's tables
    ///
    /// Each attribute gets m = floor(n log2(e) log2(1/rate)) and k = floor(-log2 rate).
    #[arg(
        long,
        value_name = "RATE",
        conflicts_with = "fpr",
        allow_negative_numbers = true,
        help_heading = "Filter"
    )]
    attribute_fpr: Option<f64>,

    /// Only these structures [default: all]
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Filter"
    )]
    filter: Vec<Planned>,

    /// Cuts of CBFM and WCBFM by hand, such as '1,3;1,2' or 'src,domain'
    #[arg(long, value_name = "CUTS", help_heading = "Filter")]
    cuts: Option<String>,

    /// Weights of WCBFM by hand, one an attribute, such as 1,2,1
    #[arg(
        long,
        value_name = "WEIGHTS",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    weights: Option<String>,

    /// How the plan is written
    #[arg(long, value_enum, default_value_t = ResultFormat::Table, help_heading = "Output")]
    format: ResultFormat,

    /// Write the plan to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No progress bar
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResultFormat {
    /// For people
    Table,
    /// A line for each structure and wanted combination
    Csv,
    /// One document
    Json,
}

/// The structures of `count`, and the sketch that they are compared with.
#[derive(Clone, Copy, Debug)]
struct Planned(Structure);

impl ValueEnum for Planned {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Planned; Structure::ALL.len()] = {
            let mut all = [Planned(Structure::Hll); Structure::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = Planned(Structure::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let help = Named::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .find(|value| value.get_name() == self.0.name())
            .and_then(|value| value.get_help().cloned());
        let value = clap::builder::PossibleValue::new(self.0.name());
        Some(match (self.0, help) {
            (Structure::Exact, _) => value.help("Hash sets, for comparison"),
            (Structure::Hll, _) => value.help("HyperLogLog, for comparison"),
            (_, Some(help)) => value.help(help),
            (_, None) => value,
        })
    }
}

pub(crate) fn run(args: &PlanArgs) -> Result<Outcome> {
    let mut request = args.request()?;
    let mut outcome = Outcome::Done;
    let mut measured = None;
    if !args.sample.is_empty() {
        let sample = args.measure(&request, &mut outcome)?;
        request.skewed = sample.spread.iter().any(|spread| spread.skew() > SKEWED);
        measured = Some(sample);
    }
    request.elements = args.elements(&request, measured.as_ref())?;
    let plan = plan(&request).map_err(|error| UsageError(error.to_string()))?;
    let output = Output::open(args.output.as_deref())?;
    let styled = output.is_styled();
    let report = PlanReport {
        element: args.kind().map(ElementKind::name),
        request: &request,
        plan: &plan,
        sample: measured.as_ref(),
    };
    let format = match args.format {
        ResultFormat::Table => PlanFormat::Table,
        ResultFormat::Csv => PlanFormat::Csv,
        ResultFormat::Json => PlanFormat::Json,
    };
    let written = report
        .write(format, styled, output)
        .context("cannot write the plan")?;
    written.commit()?;
    Ok(outcome)
}

impl PlanArgs {
    fn kind(&self) -> Option<ElementKind> {
        self.attributes.is_none().then(|| self.element.into())
    }

    /// Everything but the numbers of elements, checked.
    fn request(&self) -> Result<PlanRequest, UsageError> {
        let usage = |text: String| UsageError(text);
        let attributes: Vec<String> = match (self.attributes, self.kind()) {
            (Some(count), _) if count == 0 || count > MAX_ATTRIBUTES => {
                return Err(usage(format!(
                    "a plan is for 1 to {MAX_ATTRIBUTES} attributes, not {count}; 3 works"
                )));
            }
            (Some(count), _) => (1..=count).map(|number| number.to_string()).collect(),
            (None, kind) => {
                let names = kind.unwrap_or_default().attributes();
                names.iter().map(ToString::to_string).collect()
            }
        };
        if self.undirected && matches!(self.element, Element::Src | Element::Dst) {
            return Err(usage(
                "--undirected needs two ends: it goes with host-pair, flow and dns".into(),
            ));
        }
        let wants: &[String] = if self.want.is_empty() {
            &["all".to_owned()]
        } else {
            &self.want
        };
        let wanted = wants
            .iter()
            .map(|want| {
                let (names, weight) = match want.rsplit_once(':') {
                    Some((names, weight)) => (names, parse_weight(weight)?),
                    None => (want.as_str(), 1.0),
                };
                Ok(Wanted {
                    mask: mask_of(&attributes, names)?,
                    weight,
                })
            })
            .collect::<Result<Vec<_>, UsageError>>()?;
        let cuts = self.cuts.as_ref().map(|cuts| {
            let cuts = cuts.split(';');
            cuts.map(|cut| mask_of(&attributes, cut)).collect()
        });
        let weights = self.weights.as_ref().map(|weights| {
            let weights = weights.split(',');
            weights.map(parse_weight).collect()
        });
        let structures = if self.filter.is_empty() {
            Structure::ALL.to_vec()
        } else {
            let chosen = |structure: &Structure| self.filter.iter().any(|f| f.0 == *structure);
            Structure::ALL.into_iter().filter(chosen).collect()
        };
        let most = self.n.iter().any(|n| n == "max");
        let rate = match (self.fpr, self.attribute_fpr) {
            (Some(fpr), _) => Some(RateRule::Weighted(fpr)),
            (None, fpr) => fpr.map(RateRule::Attribute),
        };
        let goal = match (most, self.memory, rate) {
            (true, Some(bytes), Some(rate)) => Goal::MostElements { bytes, rate },
            (true, ..) => {
                return Err(usage(
                    "--n max asks how many elements keep to a rate in a memory, and needs both; --memory 1MiB --fpr 0.001 works".into(),
                ));
            }
            (false, Some(_), Some(_)) => {
                return Err(usage(
                    "memory and rate follow from each other for a given number of elements; leave out one, or ask for --n max".into(),
                ));
            }
            (false, None, Some(rate)) => rate.into(),
            (false, memory, None) => Goal::Memory {
                bytes: memory.unwrap_or(DEFAULT_MEMORY_BYTES),
            },
        };
        if most && (self.n.len() > 1 || !self.sample.is_empty()) {
            return Err(usage(
                "--n max finds the number of elements itself; leave out the other numbers and samples".into(),
            ));
        }
        let caps = vec![None; attributes.len()];
        let request = PlanRequest {
            elements: Elements::new(&caps, &[], Some(1), |_| String::new())
                .map_err(|error| usage(error.to_string()))?,
            key_bytes: match self.kind() {
                Some(ElementKind::HostPair) => 8,
                Some(ElementKind::Flow | ElementKind::Source | ElementKind::Destination) => 16,
                Some(ElementKind::Dns) => 48,
                None => 8 * attributes.len() as u64,
            },
            attributes,
            wanted,
            goal,
            known: self.known,
            structures,
            cuts: cuts.transpose()?,
            weights: weights.transpose()?,
            skewed: false,
        };
        request.check().map_err(|error| usage(error.to_string()))?;
        Ok(request)
    }

    /// Counts the sample. Damaged captures count up to the damage, which is said.
    fn measure(&self, request: &PlanRequest, outcome: &mut Outcome) -> Result<SampleResult> {
        let mut inputs = Inputs::find(&self.sample, self.input_format.into());
        let full = request.full();
        // All combinations where they are few; else the wanted ones and the single attributes.
        let all = 1..full;
        let masks: Vec<u32> = if request.attributes.len() <= 3 {
            all.collect()
        } else {
            let wanted = |mask: &u32| request.wanted.iter().any(|w| w.mask == *mask);
            all.filter(|mask| mask.is_power_of_two() || wanted(mask))
                .collect()
        };
        let progress = Progress::start(!self.quiet, total_bytes(&inputs.files));
        let plan = SamplePlan {
            inputs: std::mem::take(&mut inputs.files),
            input_format: self.input_format.into(),
            rule: ElementRule {
                kind: self.element.into(),
                undirected: self.undirected,
                queries_only: self.queries_only,
                dns_ports: self.dns_port.clone(),
            },
            tunnel: self.tunnel.into(),
            masks,
            limit_bytes: self.exact_limit,
        };
        let result = sample(&plan, &progress);
        progress.finish();
        let errors = result
            .inputs
            .iter()
            .filter_map(|input| input.error.as_ref());
        for problem in inputs
            .problems
            .iter()
            .cloned()
            .chain(errors.map(ToString::to_string))
        {
            eprintln!("flowsieve: {problem}");
            *outcome = Outcome::Incomplete;
        }
        if let Some((mask, _)) = result.distinct.iter().find(|(_, n)| n.is_none()) {
            return Err(anyhow!(
                "the sample has more distinct {} than can be counted in its share of {} bytes; raise --exact-limit, or give the numbers with --n",
                request.name(*mask),
                self.exact_limit
            ));
        }
        if result.elements == 0 {
            return Err(anyhow!(
                "the sample has no element of the kind {}; name another capture, or give the numbers with --n",
                ElementKind::from(self.element).name()
            ));
        }
        Ok(result)
    }

    /// The numbers of `--n`, then those of the sample, then bounds.
    fn elements(
        &self,
        request: &PlanRequest,
        sample: Option<&SampleResult>,
    ) -> Result<Elements, UsageError> {
        let names = &request.attributes;
        let mut known: Vec<(u32, u64, Origin)> = Vec::new();
        let mut for_all = None;
        for n in &self.n {
            if n == "max" {
                for_all = Some(1);
            } else if let Some((combination, number)) = n.split_once('=') {
                let mask = mask_of(names, combination)?;
                if known.iter().any(|&(other, ..)| other == mask) {
                    return Err(UsageError(format!(
                        "the number of {} is there twice; leave one out",
                        request.name(mask)
                    )));
                }
                known.push((mask, number_of(number)?, Origin::Given));
            } else if for_all.replace(number_of(n)?).is_some() {
                return Err(UsageError(
                    "there is one number for all combinations; --n 100k --n src=5k names another one".into(),
                ));
            }
        }
        for &(mask, distinct) in sample.iter().flat_map(|sample| &sample.distinct) {
            let given = known.iter().any(|&(other, ..)| other == mask);
            if let (false, Some(distinct)) = (given, distinct) {
                known.push((mask, distinct, Origin::Measured));
            }
        }
        if sample.is_some() && for_all.is_some() {
            return Err(UsageError(
                "a sample has the numbers of all combinations; leave out --n, or give it for one of them, such as --n src=5k".into(),
            ));
        }
        let none = vec![None; names.len()];
        let caps = self
            .kind()
            .map_or(none.as_slice(), |kind| kind.most_values());
        Elements::new(caps, &known, for_all, |mask| request.name(mask))
            .map_err(|error| UsageError(error.to_string()))
    }
}

/// Filter memory unless the user says otherwise, as in `count`.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 10;

/// Names, or numbers from 1, of attributes, separated by commas; or `all`.
fn mask_of(attributes: &[String], names: &str) -> Result<u32, UsageError> {
    if names == "all" {
        return Ok(((1_u64 << attributes.len()) - 1) as u32);
    }
    names.split(',').try_fold(0, |mask, name| {
        let number = name.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let place = attributes.iter().position(|attribute| attribute == name);
        match place.or(number.filter(|&number| number < attributes.len())) {
            Some(place) if mask >> place & 1 == 1 => Err(UsageError(format!(
                "a combination names each attribute once, and {name} is there twice in {names:?}; leave one out"
            ))),
            Some(place) => Ok(mask | 1 << place),
            None => Err(UsageError(format!(
                "the attributes are {}, not {name:?}; {} works",
                attributes.join(", "),
                attributes[0]
            ))),
        }
    })
}

fn number_of(text: &str) -> Result<u64, UsageError> {
    match parse_count(text) {
        Ok(0) => Err(UsageError(
            "a plan is for at least one element, not 0; 100k works".into(),
        )),
        Ok(number) if number > MOST_ELEMENTS => Err(UsageError(format!(
            "a plan is for at most 2^40 elements, not {number}; 100M works"
        ))),
        Ok(number) => Ok(number),
        Err(error) => Err(UsageError(format!(
            "{error}; {text:?} is none (--n takes 100k, src=5k or max)"
        ))),
    }
}

/// Elements beyond which nothing is planned.
const MOST_ELEMENTS: u64 = 1 << 40;

fn parse_weight(text: &str) -> Result<f64, UsageError> {
    text.parse().map_err(|_| {
        UsageError(format!(
            "a weight is a number from 0 on, such as 3 or 0.5, not {text:?}"
        ))
    })
}
