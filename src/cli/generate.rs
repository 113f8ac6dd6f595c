//! `flowsieve generate`: a capture made to order, and its exact counts.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use flowsieve::generate::{GenerateKind, GeneratePlan, GenerateSummary, SNAPLEN_MIN, generate};
use flowsieve::trace::StopFlag;

use super::output::Output;
use super::signals::Signals;
use super::units::{parse_count, parse_duration_ns};
use super::{Outcome, UsageError};

const EXAMPLES: &str = "\
Examples:
  Ten million packet headers of one minute:
    flowsieve generate -w headers.pcap
  Whole frames, a fifth of them from a host that scans the others:
    flowsieve generate -w scan.pcap --packets 100k --snaplen 65535 --scan 20";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// Capture to write, whole or not at all; `-` is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    write: PathBuf,

    /// What the capture consists of
    #[arg(long, value_enum, default_value_t = Kind::Traffic)]
    kind: Kind,

    /// Number of packets
    #[arg(long, value_name = "COUNT", default_value = "10M", value_parser = parse_count)]
    packets: u64,

    /// Number of host pairs to draw from (with `--kind dns`: of clients)
    /// [default: in proportion to the packets]
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pairs: Option<u64>,

    /// Number of DNS names to draw from [default: in proportion to the packets]
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    names: Option<u64>,

    /// Start of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Bytes kept of each frame [default: 96; with `--kind dns`: 65535]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(i64::from(SNAPLEN_MIN)..))]
    snaplen: Option<u32>,

    /// Time that the packets are spread over
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration_ns)]
    duration: u64,

    /// Time stamps with nanoseconds instead of microseconds
    #[arg(long)]
    nanoseconds: bool,

    /// Share of exact repeats of a frame shortly before
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = percent())]
    repeat: u8,

    /// Share of packets from one host that scans the others [default: 0; none with `--kind dns`]
    #[arg(long, value_name = "PERCENT", value_parser = percent())]
    scan: Option<u8>,

    /// Share of DNS messages in ordinary traffic [default: 2; all with `--kind dns`]
    #[arg(long, value_name = "PERCENT", value_parser = percent())]
    dns: Option<u8>,

    /// Share of host pairs that talk in a VLAN
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = percent())]
    vlan: u8,

    /// Share of host pairs that talk IPv6
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = percent())]
    ipv6: u8,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Conversations of many kinds
    Traffic,
    /// DNS queries and answers only
    Dns,
}

fn percent() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=100)
}

/// Generates the capture and says what is in it.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let signals = Signals::catch().context("cannot wait for signals")?;
    let plan = args.plan()?;
    let to_standard = args.write.as_os_str() == "-";
    if to_standard && io::stdout().is_terminal() {
        return Err(UsageError(
            "a capture is not for a terminal: name a file with -w, or redirect the output".into(),
        )
        .into());
    }
    let Some(summary) = write_whole(&args.write, &plan, signals.stop())? else {
        let what = "no capture was written";
        return Ok(signals.outcome(true, what, Outcome::Done));
    };
    let printed = if to_standard {
        print(&summary, &mut io::stderr())
    } else {
        print(&summary, &mut io::stdout())
    };
    printed.context("cannot write the counts")?;
    Ok(Outcome::Done)
}

/// Writes the capture; none is there if it was interrupted.
fn write_whole(
    path: &Path,
    plan: &GeneratePlan,
    stop: &StopFlag,
) -> anyhow::Result<Option<GenerateSummary>> {
    let mut output = Interruptible {
        output: Output::open(Some(path))?,
        stop,
    };
    let summary = match generate(plan, &mut output) {
        Ok(summary) => summary,
        Err(_) if stop.is_set() => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(UsageError(error.to_string()).into());
        }
        Err(error) => {
            return Err(
                anyhow::Error::from(error).context(format!("cannot write {}", path.display()))
            );
        }
    };
    output.output.commit()?;
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
        let kind = match self.kind {
            Kind::Traffic => GenerateKind::Traffic,
            Kind::Dns => GenerateKind::Dns,
        };
        let of_traffic = [("scan", self.scan), ("dns", self.dns)];
        let given = of_traffic.iter().find(|(_, share)| share.is_some());
        if let (GenerateKind::Dns, Some((name, _))) = (kind, given) {
            return Err(UsageError(format!(
                "--{name} is a share of ordinary traffic, of which there is none with --kind dns; leave one of them out"
            )));
        }
        let standard = GeneratePlan::new(kind, self.packets);
        let number = |option: Option<u64>, standard: u32, name: &str| {
            option.map_or(Ok(standard), u32::try_from).map_err(|_| {
                UsageError(format!(
                    "--{name} is too large: it must be at most 16,777,216"
                ))
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

fn print(summary: &GenerateSummary, out: &mut dyn Write) -> io::Result<()> {
    for (name, value) in [
        ("packets", summary.packets),
        ("bytes", summary.bytes),
        ("pairs", summary.pairs),
        ("flows", summary.flows),
        ("dns_triples", summary.dns_triples),
        ("dns_query_triples", summary.dns_query_triples),
    ] {
        writeln!(out, "{name:<18}{value:>14}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn parse(line: &[&str]) -> GenerateArgs {
        Line::try_parse_from([&["generate"], line].concat())
            .expect("good arguments")
            .args
    }

    #[test]
    fn the_defaults_are_those_of_the_plan() {
        assert_eq!(
            parse(&["-w", "x"]).plan().expect("a good plan"),
            GeneratePlan::default()
        );
        let dns = parse(&["-w", "x", "--kind", "dns", "--packets", "2M"])
            .plan()
            .expect("a good plan");
        assert_eq!(dns, GeneratePlan::new(GenerateKind::Dns, 2_000_000));
    }

    #[test]
    fn the_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.pcap");
        let plan = GeneratePlan::new(GenerateKind::Traffic, 100);
        write_whole(&path, &plan, &StopFlag::default()).expect("a good plan");
        let before = std::fs::read(&path).expect("the file");
        let bad = GeneratePlan { pairs: 0, ..plan };
        assert!(write_whole(&path, &bad, &StopFlag::default()).is_err());
        assert_eq!(std::fs::read(&path).expect("the file"), before);
        let files = std::fs::read_dir(folder.path())
            .expect("the folder")
            .count();
        assert_eq!(files, 1, "no temporary file is left behind");
    }
}
