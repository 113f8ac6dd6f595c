//! `flowsieve man`: manual pages of the program and of each command.

use super::run::Run;
use super::same_file::keep_apart;
use super::{Arguments, Outcome};
use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use flowsieve_engine::internal::Shown;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  All pages, where man looks for yours:
    flowsieve man ~/.local/share/man/man1
  Read the page of the program without installing it:
    flowsieve man | man -l -";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write a page for the program and one for each command into this directory
    ///
    /// Without it, the page of the program goes to standard output.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, run: &Run) -> Result<Outcome> {
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let program = in_full(program);
    match &args.directory {
        None => write(&program, None, run)?,
        Some(folder) => {
            keep_apart([("the manual", Some(folder.join("flowsieve.1").as_path()))], &[])?;
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the directory {}", folder.shown()))?;
            write_all(&program, folder, run)?;
        }
    }
    Ok(Outcome::Done)
}

/// Returns the command with the help of all options, also of those that `-h` leaves out.
fn in_full(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(in_full)
}

fn write_all(command: &Command, folder: &Path, run: &Run) -> Result<()> {
    write(command, Some(folder), run)?;
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| write_all(command, folder, run))
}

/// Writes the page of a command to standard output, or into a folder.
fn write(command: &Command, folder: Option<&Path>, run: &Run) -> Result<()> {
    let man = Man::new(command.clone())
        .source(concat!("flowsieve ", env!("CARGO_PKG_VERSION")))
        .manual("flowsieve manual");
    let file = folder.map(|folder| folder.join(man.get_filename()));
    let mut page = Vec::new();
    man.render(&mut page).context("cannot make a manual page")?;
    let page = String::from_utf8(page).context("a manual page is text")?;
    let page = with_short_synopsis(&page, command);
    let mut output = run.output(file.as_deref())?;
    output
        .write_all(with_plain_examples(&page).as_bytes())
        .context("cannot write the manual page")?;
    run.commit(output)
}

/// Returns the page with the usage of the command as its synopsis: clap lists every option there.
fn with_short_synopsis(page: &str, command: &Command) -> String {
    const SYNOPSIS: &str = ".SH SYNOPSIS\n";
    let Some((head, rest)) = page.split_once(SYNOPSIS) else { return page.to_owned() };
    let behind = rest.find(".SH ").map_or("", |end| &rest[end..]);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim().replace('-', "\\-");
    format!("{head}{SYNOPSIS}{usage}\n{behind}")
}

/// Returns the page with what follows the options, examples above all, in lines as they are, under a
/// heading that says so.
fn with_plain_examples(page: &str) -> String {
    let page = page.replacen(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n", 1);
    page.replacen(".SH EXTRA\n", ".SH NOTES\n.nf\n", 1)
}
