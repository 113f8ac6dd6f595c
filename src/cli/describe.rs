//! The commands and their options as data, for programs that offer them under another face.

use super::Arguments;
use clap::builder::{PossibleValue, ValueRange};
use clap::{Arg, ArgAction, Command, CommandFactory};
use flowsieve::report::manual::{FieldDoc, tables};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Commands that are about the shell, and nothing for another face.
const OF_THE_SHELL: [&str; 3] = ["help", "completions", "man"];

/// Options that are about the terminal.
const OPTIONS_OF_THE_SHELL: [&str; 4] = ["help", "version", "color", "rows"];

/// Returns all commands with their options but those about the shell, as they are declared (names,
/// help, defaults, the values that are allowed), and the fields of all results.
pub fn describe() -> Value {
    let mut program = Arguments::command();
    program.build();
    json!({ "commands": commands(&program), "results": results() })
}

/// Returns the fields of all results.
fn results() -> Value {
    let field = |field: &FieldDoc| {
        json!({
            "names": field.names,
            "type": field.kind,
            "unit": field.unit,
            "nullable": field.nullable,
            "doc": field.doc,
        })
    };
    let results = tables().into_iter();
    let results = results.map(|(name, fields)| (name, fields.iter().map(field).collect()));
    let results: BTreeMap<&str, Vec<Value>> = results.collect();
    json!(results)
}

fn commands(of: &Command) -> Vec<Value> {
    let commands = of.get_subcommands();
    let commands = commands.filter(|command| !OF_THE_SHELL.contains(&command.get_name()));
    commands.map(command).collect()
}

fn command(command: &Command) -> Value {
    let arguments = command.get_arguments();
    let arguments =
        arguments.filter(|argument| !OPTIONS_OF_THE_SHELL.contains(&argument.get_id().as_str()));
    json!({
        "name": command.get_name(),
        "about": command.get_about().map(ToString::to_string),
        "long_about": command.get_long_about().map(ToString::to_string),
        "arguments": arguments.map(argument).collect::<Vec<_>>(),
        "commands": commands(command),
    })
}

fn argument(argument: &Arg) -> Value {
    let takes = argument.get_action().takes_values();
    let many = argument.get_num_args().is_some_and(|range: ValueRange| range.max_values() > 1);
    let values = if takes { argument.get_possible_values() } else { Vec::new() };
    let values = values.iter().filter(|value| !value.is_hide_set());
    json!({
        "name": argument.get_id().as_str(),
        "option": argument.get_long(),
        "heading": argument.get_help_heading(),
        "help": argument.get_help().map(ToString::to_string),
        "long_help": argument.get_long_help().map(ToString::to_string),
        "takes_value": takes,
        "is_list": matches!(argument.get_action(), ArgAction::Append) || many,
        "is_required": argument.is_required_set(),
        "value_name": argument.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        "default": argument.get_default_values().first().map(|value| value.to_string_lossy()),
        "values": values.map(PossibleValue::get_name).collect::<Vec<_>>(),
    })
}
