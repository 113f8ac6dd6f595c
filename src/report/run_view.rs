//! The inputs of a run, its skipped packets and its problems.

use super::cell::Cell;
use super::column::{Columns, columns};
use super::document::{Block, TextColumns};
use super::heading::Heading;
use super::number::{counted, grouped, some, some_slices};
use crate::decode::Skip;
use crate::pipeline::{InputResult, Totals};
use flowsieve_engine::internal::Shown;
use std::collections::BTreeMap;

/// Note on a run that a signal ended.
const INTERRUPTED: &str =
    "the run was interrupted: there was more to read; this is what was read until then";

/// The name of the only capture that was read, or the number of those that were.
pub(super) fn captures(inputs: &[InputResult]) -> String {
    let is_read = |input: &&InputResult| input.container.is_some() || input.error.is_none();
    match &inputs.iter().filter(is_read).collect::<Vec<_>>()[..] {
        [input] => {
            let name = input.path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.unwrap_or_else(|| input.path.shown().to_string())
        }
        inputs => format!("{} captures", grouped(inputs.len() as u64)),
    }
}

/// The inputs, each with its format and how reading ended.
pub(super) fn inputs_table(inputs: &[InputResult]) -> Block {
    let mut columns = TextColumns::<InputResult>::default();
    columns.push(Heading::text("input"), |input| input.path.shown().to_string());
    columns.push(Heading::text("format"), |input| {
        input.container.clone().unwrap_or_else(|| "not recognised".to_owned())
    });
    columns.push(Heading::number("packets"), |input| grouped(input.packets));
    columns.push(Heading::text("how it went"), |input| {
        input.error.as_ref().map_or_else(|| "complete".to_owned(), ToString::to_string)
    });
    Block::Table(columns.table(inputs))
}

/// Says why a result is incomplete. Every table has these sentences: a file with a table lacks the
/// messages on standard error.
pub(super) fn shortcomings(inputs: &[InputResult], interrupted: bool) -> Vec<String> {
    let mut errors = inputs.iter().filter_map(|input| input.error.as_ref());
    let unread = errors.next().map(|first| {
        let inputs = counted(1 + errors.count() as u64, "input was", "inputs were");
        format!("{inputs} not read in full; {first}")
    });
    interrupted.then(|| INTERRUPTED.to_owned()).into_iter().chain(unread).collect()
}

/// As [`shortcomings`], for a page: with a warning for every input.
pub(super) fn problems(inputs: &[InputResult], interrupted: bool) -> Vec<Block> {
    let mut warnings = Vec::new();
    warnings.extend(interrupted.then(|| Block::Warning(INTERRUPTED.to_owned())));
    for input in inputs {
        if let Some(error) = &input.error {
            warnings.push(Block::Warning(format!("not read in full: {error}")));
        }
        let packets = some(input.times_out_of_range, "packet", "packets");
        warnings.extend(packets.map(|packets| {
            let path = input.path.shown();
            Block::Warning(format!("{packets} of {path} with a time that no slice can have"))
        }));
    }
    warnings
}

/// Returns a sentence if packets are in no slice.
pub fn slice_shortcomings(totals: &Totals) -> Option<String> {
    some(totals.uncounted, "packet is", "packets are").map(|packets| {
        format!("{packets} in no slice, since they came too late; in a file, which can be read twice, all count")
    })
}

/// Says in how many slices the exact set passed its limit.
pub(super) fn over_limit(number: u64, all: u64) -> Option<String> {
    some_slices(number, all).map(|slices| {
        format!("the exact set passed its limit in {slices}; raise it with --exact-limit, if this machine has the memory")
    })
}

/// Packets that were read, and those without an element.
pub(super) fn packets_read(totals: &Totals) -> Vec<Block> {
    let (packets, ip) = (counted(totals.packets, "packet", "packets"), grouped(totals.ip_packets));
    let mut read = vec![format!("{packets}, {ip} of them IP")];
    let late = [
        (totals.late, "after the row of their slice, which was revised"),
        (totals.uncounted, "in no slice, since they came too late"),
    ];
    let late = late.into_iter().filter(|(packets, _)| *packets > 0);
    read.extend(late.map(|(packets, words)| format!("{} {words}", grouped(packets))));
    let skipped = (!totals.skipped.is_empty())
        .then(|| format!("without an element: {}", reasons(&totals.skipped)));
    [Some(read.join(", ")), skipped].into_iter().flatten().map(Block::Answer).collect()
}

/// Packets by reason, in a sentence.
pub(super) fn reasons(skipped: &BTreeMap<Skip, u64>) -> String {
    const PLURALS: [&str; 5] = ["frames", "fragments", "messages", "responses", "records"];
    let reasons = skipped.iter().map(|(skip, &count)| {
        let mut words = skip.words();
        let plural = PLURALS.into_iter().find(|plural| count == 1 && words.contains(plural));
        if let Some(plural) = plural {
            words = words.replacen(plural, &plural[..plural.len() - 1], 1).into();
        }
        format!("{} {words}", grouped(count))
    });
    reasons.collect::<Vec<_>>().join(", ")
}

/// The columns of an input.
pub(super) fn input_columns() -> Columns<InputResult> {
    columns! { field input: InputResult;
        path = input.path.shown().into_raw().into_owned(),
            "as given; files of a directory by their path; a directory only if there is a problem with it";
        container = input.container.clone(),
            "its format ([names](inputs.md)), with the compression (`pcap in gzip`)";
        packets = input.packets, "selected packets that were read (records of a log)";
        left_out = input.left_out, "packets read and not selected";
        unread_bytes = input.unread_bytes,
            "bytes of a large pcap file that were skipped as outside the range of time; their packets are not in `left_out`";
        times_out_of_range = input.times_out_of_range,
            "packets with times outside 1677 to 2262, which count at its nearer end";
        error = input.error.as_ref().map(ToString::to_string),
            "why it was not read in full, in a sentence";
    }
}

/// Returns whether a run was interrupted, and whether it read all inputs to their ends.
pub(super) fn ended(inputs: &[InputResult], interrupted: bool) -> [bool; 2] {
    [interrupted, InputResult::all_read(inputs, interrupted)]
}

/// Returns all inputs as a list.
pub(super) fn inputs_cell(inputs: &[InputResult]) -> Cell {
    input_columns().list_of(inputs)
}
