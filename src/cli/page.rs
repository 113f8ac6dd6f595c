//! Pages and figures as files: `--html` and `--svg`.

use super::UsageError;
use super::destination::{folder_of, is_standard_output};
use super::output::Output;
use super::run::{Run, all_written};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::report::document::Document;
use flowsieve::report::{html, svg};
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
