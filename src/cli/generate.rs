//! `flowsieve generate`: a capture made to order, and its exact counts.

use super::options::{Choice, one_of};
use super::output::{Ending, Output, refuse_compressed, uncompressed, unwritten};
use super::run::Run;
use super::same_file::keep_apart;
use super::units::{in_short, parse_count, parse_duration_ns, parse_size, whole, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result, bail};
use clap::Args;
use flowsieve::generate::{GenerateKind, GeneratePlan, GenerateSummary, SNAPLEN_MIN, generate};
use flowsieve::trace::StopFlag;
use flowsieve_engine::internal::Shown;
use indicatif::HumanCount;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Ten million packet headers of one minute:
    flowsieve generate -w headers.pcap
  Whole frames, about a fifth of them from a host that scans the others:
    flowsieve generate -w scan.pcap --packets 100k --snaplen 65535 --scan 20";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct GenerateArgs {
    /// Capture to write, whole or not at all; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,

    /// What the capture consists of
    #[arg(long, default_value = "traffic", value_parser = one_of(KINDS))]
    kind: GenerateKind,

    /// Number of packets
    #[arg(long, value_name = "COUNT", default_value = "10M", value_parser = parse_count)]
    packets: u64,

    /// Number of host pairs to draw from (with `--kind dns`: of clients)
    /// [default: in proportion to the packets]
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pairs: Option<u64>,

    /// Number of DNS names to draw from [default: in proportion to the packets]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, hide_short_help = true)]
    names: Option<u64>,

    /// Seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole(0, u64::MAX), hide_short_help = true)]
    seed: u64,

    /// Bytes kept of each frame [default: 96; with `--kind dns`: 65535]
    #[arg(long, value_name = "SIZE", value_parser = parse_snaplen)]
    snaplen: Option<u32>,

    /// Time that the packets are spread over
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration_ns)]
    duration: u64,

    /// Time stamps with nanoseconds instead of microseconds
    #[arg(long, hide_short_help = true)]
    nanoseconds: bool,

    /// Share of exact repeats of a frame shortly before; they add to the shares of scans and DNS
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = parse_percent, hide_short_help = true)]
    repeat: u8,

    /// Share of packets from one host that scans the others [default: 0; none with `--kind dns`]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    scan: Option<u8>,

    /// Share of DNS messages in ordinary traffic [default: 2; all with `--kind dns`]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    dns: Option<u8>,

    /// Share of host pairs that talk in a VLAN
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = parse_percent, hide_short_help = true)]
    vlan: u8,

    /// Share of host pairs that talk IPv6
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = parse_percent, hide_short_help = true)]
    ipv6: u8,
}

const KINDS: &[Choice<GenerateKind>] = &[
    ("traffic", "Conversations of many kinds", GenerateKind::Traffic),
    ("dns", "DNS queries and answers only", GenerateKind::Dns),
];

fn parse_snaplen(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text)?;
    let snaplen = u32::try_from(bytes).ok().filter(|&n| n >= SNAPLEN_MIN);
    snaplen.ok_or_else(|| {
        format!("at least {SNAPLEN_MIN} bytes and less than 4GiB are kept, such as 96")
    })
}

/// Parses a whole percentage, `5` or `5%`.
fn parse_percent(text: &str) -> Result<u8, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
    percent
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| "a percentage is a whole number from 0 to 100, such as 5 or 5%".to_owned())
}

/// Generates the capture and says what is in it.
pub(crate) fn run(args: &GenerateArgs, run: &mut Run) -> Result<Outcome> {
    run.start(false)?;
    let plan = args.plan()?;
    keep_apart([("--write", Some(args.write.as_path()))], &[])?;
    let plain = uncompressed(&args.write);
    if plain.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pcapng")) {
        bail!(UsageError::new(format!(
            "{}: generate writes pcap, not pcapng; write {}",
            args.write.shown(),
            plain.with_extension("pcap").shown()
        )));
    }
    refuse_compressed(&args.write)?;
    let output = Output::capture(&run.partials, &args.write)?;
    let is_file = output.is_file();
    let Some(summary) = write_whole(&args.write, output, &plan, run.stop())? else {
        run.set_interrupted(true);
        return Ok(run.finish(if is_file {
            "no capture was written"
        } else {
            "the capture that was written is not whole"
        }));
    };
    let mut output = Output::report(&run.partials, [&args.write], None)?;
    print(&summary, &mut output).context("cannot write the counts")?;
    run.commit(output)?;
    Ok(Outcome::Done)
}

/// Writes the capture. Returns its exact counts, or `None` if a signal has come and there is no
/// capture.
fn write_whole(
    path: &Path,
    output: Output,
    plan: &GeneratePlan,
    stop: &StopFlag,
) -> Result<Option<GenerateSummary>> {
    let mut output = Interruptible { output, stop };
    let summary = match generate(plan, &mut output) {
        Ok(summary) => summary,
        Err(_) if stop.is_set() => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => bail!(UsageError::new(error)),
        Err(error) => return Err(error).with_context(|| unwritten(path)),
    };
    output.output.commit(Ending::Complete)?;
    Ok(Some(summary))
}

/// An output that takes nothing more when the run is to end.
struct Interruptible<'a> {
    output: Output,
    stop: &'a StopFlag,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("the run was ended"));
        }
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl GenerateArgs {
    fn plan(&self) -> Result<GeneratePlan, UsageError> {
        let of_traffic = [("scan", self.scan), ("dns", self.dns)];
        let given = of_traffic.iter().find(|(_, share)| share.is_some());
        if let (GenerateKind::Dns, Some((name, _))) = (self.kind, given) {
            return Err(UsageError::new(format!(
                "--{name} is a share of ordinary traffic, of which there is none with --kind dns; leave one of them out"
            )));
        }
        let standard = GeneratePlan::new(self.kind, self.packets);
        let number = |option: Option<u64>, standard: u32, name: &str| {
            option.map_or(Ok(standard), u32::try_from).map_err(|_| {
                UsageError::new(format!("--{name} is too large: it must be at most 16,777,216"))
            })
        };
        Ok(GeneratePlan {
            pairs: number(self.pairs, standard.pairs, "pairs")?,
            names: number(self.names, standard.names, "names")?,
            seed: self.seed,
            snaplen: self.snaplen.unwrap_or(standard.snaplen),
            duration_ns: self.duration,
            nanoseconds: self.nanoseconds,
            repeat_percent: self.repeat,
            scan_percent: self.scan.unwrap_or(standard.scan_percent),
            dns_percent: self.dns.unwrap_or(standard.dns_percent),
            vlan_percent: self.vlan,
            ipv6_percent: self.ipv6,
            ..standard
        })
    }
}

fn print(summary: &GenerateSummary, out: &mut Output) -> io::Result<()> {
    let is_terminal = out.is_terminal();
    for (name, value) in [
        ("packets", summary.packets),
        ("bytes", summary.bytes),
        ("pairs", summary.pairs),
        ("flows", summary.flows),
        ("dns_triples", summary.dns_triples),
        ("dns_query_triples", summary.dns_query_triples),
    ] {
        let value = if is_terminal { HumanCount(value).to_string() } else { value.to_string() };
        writeln!(out, "{name:<18}{value:>14}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::output::Partials;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn parse(line: &[&str]) -> GenerateArgs {
        Line::try_parse_from([&["generate"], line].concat()).expect("good arguments").args
    }

    #[test]
    fn the_defaults_are_those_of_the_plan() {
        assert_eq!(parse(&["-w", "x"]).plan().expect("a good plan"), GeneratePlan::default());
        let dns =
            parse(&["-w", "x", "--kind", "dns", "--packets", "2M"]).plan().expect("a good plan");
        assert_eq!(dns, GeneratePlan::new(GenerateKind::Dns, 2_000_000));
    }

    #[test]
    fn the_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.pcap");
        let plan = GeneratePlan::new(GenerateKind::Traffic, 100);
        let write = |plan| {
            let output = Output::open(&Partials::default(), Some(&path)).expect("a place");
            write_whole(&path, output, plan, &StopFlag::default())
        };
        write(&plan).expect("a good plan");
        let before = std::fs::read(&path).expect("the file");
        let bad = GeneratePlan { pairs: 0, ..plan };
        assert!(write(&bad).is_err());
        assert_eq!(std::fs::read(&path).expect("the file"), before);
        let files = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(files, 1, "no temporary file is left behind");
    }
}
