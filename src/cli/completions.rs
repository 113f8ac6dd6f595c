//! `flowsieve completions`: a script that completes command lines in a shell.

use super::run::Run;
use super::{Arguments, Outcome};
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  bash, for you alone:
    flowsieve completions bash > ~/.local/share/bash-completion/completions/flowsieve
  zsh, in a directory of $fpath:
    flowsieve completions zsh > ~/.zfunc/_flowsieve
  fish:
    flowsieve completions fish > ~/.config/fish/completions/flowsieve.fish
  PowerShell, in your profile:
    flowsieve completions powershell | Out-String | Invoke-Expression";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, run: &Run) -> Result<Outcome> {
    // The generator panics where it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "flowsieve", &mut script);
    let mut output = run.output(None)?;
    output.write_all(&script).context("cannot write the completions")?;
    run.commit(output)?;
    Ok(Outcome::Done)
}
