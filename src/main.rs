//! The command-line tool: parse, run, exit code.

fn main() {}
