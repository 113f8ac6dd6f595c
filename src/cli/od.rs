//! Packets by origin and destination: `--od` and `--od-out`.

use super::UsageError;
use super::anonymize_args::AnonymizeArgs;
use super::output::Output;
use super::page::PageArgs;
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::anonymize::{AddressMap, AnonymizeKey};
use flowsieve::pipeline::Traffic;
use flowsieve::report::traffic_table;
use std::path::{Path, PathBuf};

// Whether packets are counted by origin and destination, and where all pairs go. (No doc comment: it would stand for the description of each command with these.)
#[derive(Args, Clone, Debug)]
pub(crate) struct OdArgs {
    /// Packets by origin and destination too, by prefixes of so many bits
    ///
    /// `--od 24` groups IPv4 addresses by /24.
    /// For IPv6 prefixes have twice as many bits. The page shows the 24 largest on each side. All
    /// packets with readable addresses count, whatever the elements are.
    #[arg(long = "od", value_name = "BITS", value_parser = clap::value_parser!(u8).range(1..=32), help_heading = "Output")]
    bits: Option<u8>,

    /// Write all of these pairs to this file: .csv or .parquet
    #[arg(
        long = "od-out",
        value_name = "FILE",
        requires = "bits",
        help_heading = "Output"
    )]
    out: Option<PathBuf>,

    #[command(flatten)]
    anonymize: AnonymizeArgs,
}

impl OdArgs {
    /// Says before the work begins what cannot go well after it.
    pub(crate) fn check(&self, page: &PageArgs) -> Result<(), UsageError> {
        if self.bits.is_some() && !page.is_wanted() && self.out.is_none() {
            return Err(UsageError(
                "--od goes into a page or a file of its own: add --html, --svg or --od-out".into(),
            ));
        }
        if self.is_anonymized() && self.bits.is_none() {
            return Err(UsageError(
                "counts show no addresses that could be replaced; --anonymize goes with --od"
                    .into(),
            ));
        }
        match &self.out {
            Some(path) if !has_end(path, "csv") && !has_end(path, "parquet") => {
                Err(UsageError(format!(
                    "{} must end in .csv or .parquet, which says how it is written",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// The file of all pairs.
    pub(crate) fn out(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    /// Whether addresses are to be replaced.
    pub(crate) fn is_anonymized(&self) -> bool {
        self.anonymize.is_wanted()
    }

    /// The key by which addresses are to be replaced, if they are.
    pub(crate) fn key(&self, quiet: bool) -> Result<Option<AnonymizeKey>> {
        self.anonymize.key(quiet)
    }

    /// Replaces the addresses of the matrix.
    pub(crate) fn replace(traffic: Option<&mut Traffic>, key: Option<&AnonymizeKey>) {
        if let Some((traffic, key)) = traffic.zip(key) {
            let mut map = AddressMap::new(key);
            traffic.replace_addresses(|addresses| map.addresses(addresses));
        }
    }

    /// An empty matrix, if one is wanted.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        self.bits.map(Traffic::new)
    }

    /// Opens the file of all pairs, so that a place that cannot be written is told before the work begins.
    pub(crate) fn open(&self) -> Result<Option<Output>> {
        let out = self.out.as_deref();
        out.map(|path| Output::open(Some(path))).transpose()
    }

    /// Writes all pairs to the file that was opened for them.
    pub(crate) fn write(&self, output: Option<Output>, traffic: Option<&Traffic>) -> Result<()> {
        let (Some(path), Some(output), Some(traffic)) = (&self.out, output, traffic) else {
            return Ok(());
        };
        let written = if has_end(path, "parquet") {
            traffic_table::parquet(traffic, output)
        } else {
            traffic_table::csv(traffic, output)
        };
        written
            .with_context(|| format!("cannot write {}", path.display()))?
            .commit()
    }
}

fn has_end(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|extension| extension == end)
}
