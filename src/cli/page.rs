//! Pages and figures as files: `--html` and `--svg`.

use super::UsageError;
use super::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::report::figure::Page;
use flowsieve::report::{html, page_figures, svg};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where a page and its figures go.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Write a page with figures to this file: it opens in any browser and needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    /// Write the figures of that page into this directory, as SVG
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
}

impl PageArgs {
    /// Whether a page is to be made at all.
    pub(crate) fn is_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some()
    }

    /// Says before the work begins what could only fail after it.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        match &self.svg {
            Some(path) if fs::metadata(path).is_ok_and(|data| !data.is_dir()) => {
                Err(UsageError(format!(
                    "{} is no directory; --svg needs one for its figures",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Writes the page and its figures where they are wanted.
    pub(crate) fn write(&self, page: &Page) -> Result<()> {
        if let Some(path) = &self.html {
            written(path, &html::page(page))?;
        }
        if let Some(folder) = &self.svg {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the directory {}", folder.display()))?;
            for figure in page_figures(page) {
                let path = folder.join(format!("{}.svg", figure.name));
                written(&path, &svg::standalone(figure))?;
            }
        }
        Ok(())
    }
}

fn written(path: &Path, text: &str) -> Result<()> {
    let mut output = Output::open(Some(path))?;
    output
        .write_all(text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    output.commit()
}
