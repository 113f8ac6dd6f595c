//! Pages and figures as files: `--html` and `--svg`; packets by origin and destination: `--od` and
//! `--od-out`.

use super::UsageError;
use super::anonymize_args::AnonymizeArgs;
use super::destination::{folder_of, is_standard_output};
use super::output::{Output, unwritten};
use super::run::{Run, all_written};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::anonymize::{AddressMap, AnonymizeKey};
use flowsieve::pipeline::Traffic;
use flowsieve::report::document::Document;
use flowsieve::report::{ReportFormat, html, svg, traffic_table};
use flowsieve_engine::internal::Shown;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

// Where a page and its figures go. (No doc comment: it would stand for the description of each
// command with these.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Write a page with figures to this file
    ///
    /// It opens in any browser and needs nothing of the network.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the figures of that page into this directory, as SVG
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) svg: Option<PathBuf>,
}

impl PageArgs {
    /// Returns whether a page is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some()
    }

    /// Returns the options that name files, with these.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--html", self.html.as_deref()), ("--svg", self.svg.as_deref())]
    }

    /// Refuses, before the work begins, files that could not be written after it.
    pub(crate) fn check(&self, results: Option<&Path>) -> Result<(), UsageError> {
        if let Some(path) = &self.html
            && (is_standard_output(path) || results == Some(path))
        {
            return Err(UsageError::new(
                "the page goes to a file of its own, so --html needs a name that is neither - nor that of --output",
            ));
        }
        match &self.svg {
            Some(path) if !path.exists() && path.extension().is_some_and(|end| end == "svg") => {
                Err(UsageError::new(format!(
                    "--svg names the directory of all figures, and {} looks like one of them; write `--svg {}`",
                    path.shown(),
                    folder_of(path).shown()
                )))
            }
            Some(path) if fs::metadata(path).is_ok_and(|data| !data.is_dir()) => {
                Err(UsageError::new(format!(
                    "{} is no directory; --svg needs one for its figures",
                    path.shown()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Opens the page's file and makes the directory of the figures, so that a place that cannot be
    /// written is reported before the work begins.
    pub(crate) fn open(&self, run: &Run) -> Result<Option<Output>> {
        if let Some(folder) = &self.svg {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the directory {}", folder.shown()))?;
            run.partials.note_output();
        }
        Output::named(&run.partials, self.html.as_deref())
    }

    /// Writes the page and its figures to the requested places.
    pub(crate) fn write(&self, run: &Run, html: Option<Output>, mut page: Document) -> Result<()> {
        page.command = Some(run.command_line(&[], &[]));
        let provenance = page.provenance();
        let figures = self.svg.iter().flat_map(|folder| {
            page.figures().map(|figure| {
                let path = folder.join(format!("{}.svg", figure.name));
                if path.is_symlink() {
                    anyhow::bail!(
                        "{}: figures replace no links; choose another directory for --svg",
                        path.shown()
                    );
                }
                write_text(run, run.output(Some(&path))?, &svg::standalone(figure, &provenance))
            })
        });
        let html = html.map(|output| write_text(run, output, &html::page(&page)));
        all_written(html.into_iter().chain(figures))
    }
}

fn write_text(run: &Run, mut output: Output, text: &str) -> Result<()> {
    output.write_all(text.as_bytes()).context("cannot write the page and its figures")?;
    run.commit(output)
}

// A page, whether packets are counted by origin and destination, and where all pairs go. (No doc
// comment: it would stand for the description of each command with these.)
#[derive(Args, Clone, Debug)]
pub(crate) struct OdArgs {
    #[command(flatten)]
    pub(crate) page: PageArgs,

    /// Also count packets by origin and destination, by prefixes of this many bits
    ///
    /// `--od 24` groups IPv4 addresses by /24. IPv6 prefixes have twice as many bits. The page
    /// shows the 24 largest on each side. All packets with readable addresses count, for any kind
    /// of element.
    #[arg(long = "od", value_name = "BITS", value_parser = parse_bits, hide_short_help = true)]
    bits: Option<u8>,

    /// Write all of these pairs to this file, in the format of its name, such as pairs.csv
    #[arg(long = "od-out", value_name = "FILE", requires = "bits", hide_short_help = true)]
    out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) anonymize: AnonymizeArgs,
}

fn parse_bits(text: &str) -> Result<u8, String> {
    let bits = text.parse().ok().filter(|bits| (1..=32).contains(bits));
    bits.ok_or_else(|| {
        "prefixes have 1 to 32 bits for IPv4, and twice as many for IPv6; --od 24 works".to_owned()
    })
}

impl OdArgs {
    /// Returns whether there is anything besides the rows.
    pub(crate) fn is_asked(&self) -> bool {
        self.bits.is_some() || self.page.is_wanted()
    }

    /// Refuses, before the work begins, options that do not go together.
    pub(crate) fn check(&self, results: Option<&Path>) -> Result<(), UsageError> {
        self.page.check(results)?;
        if self.bits.is_some() && !self.page.is_wanted() && self.out.is_none() {
            return Err(UsageError::new(
                "--od writes a page or a separate file: add --html, --svg or --od-out",
            ));
        }
        if self.anonymize.is_wanted() && self.bits.is_none() {
            return Err(UsageError::new(
                "--anonymize goes with --od, and replaces no other addresses of a count; add --od, or leave it out",
            ));
        }
        match &self.out {
            Some(path) => format_of(path).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Returns the options that name files, with these.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 3] {
        let [html, svg] = self.page.files();
        [html, svg, ("--od-out", self.out.as_deref())]
    }

    /// Opens the files, so that a place that cannot be written is reported before the work begins.
    pub(crate) fn begin(&self, run: &Run) -> Result<Od<'_>> {
        Ok(Od {
            args: self,
            key: self.anonymize.key(run.quiet)?,
            matrix: Output::named(&run.partials, self.out.as_deref())?,
            html: self.page.open(run)?,
            traffic: self.bits.map(Traffic::new),
        })
    }
}

/// The files of all pairs and of the page, which are open, and what goes into them.
pub(crate) struct Od<'a> {
    args: &'a OdArgs,
    key: Option<AnonymizeKey>,
    matrix: Option<Output>,
    html: Option<Output>,
    /// All pairs, if requested.
    pub(crate) traffic: Option<Traffic>,
}

impl Od<'_> {
    /// Writes the page and all pairs as requested, with anonymized addresses if requested.
    pub(crate) fn finish(
        mut self,
        run: &Run,
        page: impl FnOnce(Option<&Traffic>) -> Document,
    ) -> Result<()> {
        if let Some((traffic, key)) = self.traffic.as_mut().zip(self.key) {
            let mut map = AddressMap::new(&key);
            traffic.replace_addresses(|addresses| map.addresses(addresses));
        }
        let traffic = self.traffic.as_ref();
        let matrix = match (&self.args.out, self.matrix, traffic) {
            (Some(path), Some(output), Some(traffic)) => {
                let written = traffic_table::write(traffic, format_of(path)?, output);
                written.with_context(|| unwritten(path)).and_then(|output| run.commit(output))
            }
            _ => Ok(()),
        };
        let is_wanted = self.args.page.is_wanted();
        let write_page = || self.args.page.write(run, self.html, page(traffic));
        all_written([matrix, if is_wanted { write_page() } else { Ok(()) }])
    }
}

/// Returns the format for the extension of a file.
fn format_of(path: &Path) -> Result<ReportFormat, UsageError> {
    ReportFormat::of_name(path).ok_or_else(|| {
        UsageError::new(format!(
            "{} must end in a format, such as .csv, .json or .parquet",
            path.shown()
        ))
    })
}
