//! `docs/commands.md`: every command and option of the program, from their declarations.

use super::{Arguments, topics};
use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An option that at least this many commands explain in the same words is explained once.
const COMMON: usize = 2;

const HEAD: &str = "\
# Commands

Every command and option, one line each. `flowsieve help COMMAND` explains them at length, with examples.
";

/// The page.
fn page() -> String {
    let mut program = Arguments::command();
    program.build();
    let mut page = format!("{HEAD}\n## Values and exit codes\n\n");
    if let Some(help) = program.get_after_long_help() {
        let help = help.to_string();
        block(&mut page, help.split("\n\nExamples:").next().expect("a text has a first part"));
    }
    let environment = ["flowsieve", "help", "environment"].map(str::to_owned);
    let environment = topics::asked(&environment).expect("the topic exists");
    page.push('\n');
    block(&mut page, &environment);
    let mut commands: Vec<&Command> = program.get_subcommands().collect();
    commands.sort_by_key(|command| command.get_display_order());
    let mut uses = BTreeMap::new();
    for command in &commands {
        count_uses(command, &mut uses);
    }
    page.push_str(
        "\n## Common options\n\nEach command below names those that it takes, or their heading; all take `--color`.\n",
    );
    let mut all: Vec<&Arg> = Vec::new();
    for command in &commands {
        for argument in descendants(command).into_iter().flat_map(arguments) {
            let known = all.iter().any(|other| explained(other) == explained(argument));
            if uses[&explained(argument)] >= COMMON && !known {
                all.push(argument);
            }
        }
    }
    options(&mut page, &all);
    for command in commands {
        section(&mut page, command, "flowsieve", 2, &all);
    }
    page
}

/// A command and all commands below it that people see.
fn descendants(command: &Command) -> Vec<&Command> {
    if command.is_hide_set() || command.get_name() == "help" {
        return Vec::new();
    }
    let below = command.get_subcommands().flat_map(descendants);
    std::iter::once(command).chain(below).collect()
}

/// Counts the commands that explain an option in the same words.
fn count_uses(command: &Command, uses: &mut BTreeMap<String, usize>) {
    for argument in descendants(command).into_iter().flat_map(arguments) {
        *uses.entry(explained(argument)).or_default() += 1;
    }
}

/// An option as the page explains it.
fn explained(argument: &Arg) -> String {
    let mut text = String::new();
    option(&mut text, argument);
    text
}

/// Returns the headings of options, each once.
fn headings<'a>(all: &[&'a Arg]) -> Vec<&'a str> {
    let mut headings: Vec<&str> = Vec::new();
    for argument in all {
        if !headings.contains(&heading(argument)) {
            headings.push(heading(argument));
        }
    }
    headings
}

/// Explains options under their headings.
fn options(page: &mut String, all: &[&Arg]) {
    for title in headings(all) {
        write!(page, "\n**{title}**\n\n").expect("text is written");
        for argument in all.iter().filter(|argument| heading(argument) == title) {
            option(page, argument);
        }
    }
}

/// A command with its subcommands.
fn section(page: &mut String, command: &Command, above: &str, level: usize, common: &[&Arg]) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about();
    let about = about.map_or_else(String::new, |text| paragraphs(&text.to_string()));
    let mut usage = command.clone();
    let usage = usage.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).trim();
    let marks = "#".repeat(level);
    write!(page, "\n{marks} `{name}`\n\n{about}\n\n    {usage}\n").expect("text is written");
    let has = |all: &[&Arg], argument: &Arg| {
        all.iter().any(|other| explained(other) == explained(argument))
    };
    let (taken, own): (Vec<&Arg>, Vec<&Arg>) =
        arguments(command).partition(|argument| has(common, argument));
    options(page, &own);
    let names = common_names(common, |argument| has(&taken, argument));
    if !names.is_empty() {
        write!(page, "\n[Common options](#common-options): {names}.\n").expect("text is written");
    }
    for below in command.get_subcommands() {
        section(page, below, &name, level + 1, common);
    }
}

/// Names the common options that a command takes: by heading where it takes nearly all of one.
fn common_names(common: &[&Arg], is_taken: impl Fn(&Arg) -> bool) -> String {
    let common: Vec<&Arg> =
        common.iter().copied().filter(|argument| argument.get_id() != "color").collect();
    let mut names = Vec::new();
    for title in headings(&common) {
        let here = common.iter().filter(|argument| heading(argument) == title);
        let (taken, left): (Vec<&Arg>, Vec<&Arg>) = here.partition(|argument| is_taken(argument));
        let list = |all: &[&Arg]| {
            let names: Vec<String> = all.iter().map(|argument| short_name(argument)).collect();
            names.join(", ")
        };
        if taken.len() > 2 * left.len() + 1 {
            let but = if left.is_empty() { String::new() } else { format!(" but {}", list(&left)) };
            names.push(format!("**{title}**{but}"));
        } else if !taken.is_empty() {
            names.push(list(&taken));
        }
    }
    names.join("; ")
}

/// Returns the arguments of a command except help.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    })
}

/// `--name`, or the placeholder of a positional argument.
fn short_name(argument: &Arg) -> String {
    argument.get_long().map_or_else(|| format!("`{argument}`"), |name| format!("`--{name}`"))
}

fn heading(argument: &Arg) -> &str {
    let other = if argument.is_positional() { "Arguments" } else { "Options" };
    argument.get_help_heading().unwrap_or(other)
}

/// An option with its short help, its default and the names of the values that it takes.
fn option(page: &mut String, argument: &Arg) {
    let text = argument.get_help().or(argument.get_long_help());
    let text = text.map_or_else(String::new, |text| paragraphs(&text.to_string()));
    let short = argument.get_short().map_or_else(String::new, |short| format!("-{short}, "));
    write!(page, "- `{short}{argument}`: {text}").expect("text is written");
    if argument.get_action().takes_values() {
        if let Some(default) = argument.get_default_values().first() {
            write!(page, " Default: `{}`.", default.to_string_lossy()).expect("text is written");
        }
        let values = argument.get_possible_values();
        // The page describes a default build, also where it is written by one with all features.
        let is_default = |value: &&PossibleValue| !value.get_name().starts_with("arrow");
        let shown = values.iter().filter(|value| !value.is_hide_set()).filter(is_default);
        let names: Vec<String> = shown.map(|value| format!("`{}`", value.get_name())).collect();
        if !names.is_empty() && !argument.is_hide_possible_values_set() {
            write!(page, " Values: {}.", names.join(", ")).expect("text is written");
        }
    }
    page.push('\n');
}

/// Returns paragraphs of help as Markdown, each with a full stop.
fn paragraphs(help: &str) -> String {
    let paragraphs = help.trim_end().split("\n\n").map(|paragraph| {
        // Lines that stand by themselves in help do so here.
        if paragraph.lines().all(|line| line.starts_with("  ")) {
            return format!("```text\n{paragraph}\n```");
        }
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        let text = escaped(&words.join(" "));
        let ends = text.is_empty() || text.ends_with(['.', ':', '?', '!']);
        text + if ends { "" } else { "." }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Text whose marks mean nothing to Markdown outside of code.
fn escaped(text: &str) -> String {
    let mut in_code = false;
    text.chars().fold(String::new(), |mut all, c| {
        in_code ^= c == '`';
        if !in_code && matches!(c, '*' | '_' | '<' | '>' | '[' | ']') {
            all.push('\\');
        }
        all.push(c);
        all
    })
}

/// Text that is shown as it is.
fn block(page: &mut String, text: &str) {
    write!(page, "```text\n{}\n```\n", text.trim_end()).expect("text is written");
}

#[test]
fn the_page_has_the_commands_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md");
    let page = page();
    if std::env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(path).is_ok_and(|written| written == page),
        "docs/commands.md is out of date: FLOWSIEVE_WRITE_DOCS=1 cargo test -p flowsieve --lib cli::reference writes it"
    );
    // An option of the last command and one of a command below another.
    assert!(page.contains("- `--names <WHOSE>`") && page.contains("### `flowsieve index search`"));
}
