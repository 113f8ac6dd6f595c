//! The inputs of a run, in every format.

use super::cell::Cell;
use super::column::Columns;
use crate::pipeline::InputResult;
use flowsieve_engine::internal::Shown;

/// The columns of an input.
pub(super) fn input_columns() -> Columns<InputResult> {
    Columns::default()
        .field("path", |input: &InputResult| input.path.shown().into_raw().into_owned())
        .doc("as given; files of a directory by their path; a directory only if there is a problem with it")
        .field("container", |input| input.container.clone())
        .doc("its format ([names](inputs.md)), with the compression (`pcap in gzip`)")
        .field("packets", |input| input.packets)
        .doc("selected packets that were read (records of a log)")
        .field("left_out", |input| input.left_out)
        .doc("packets read and not selected")
        .field("unread_bytes", |input| input.unread_bytes)
        .doc("bytes of a large pcap file that were skipped as outside the range of time; their packets are not in `left_out`")
        .field("times_out_of_range", |input| input.times_out_of_range)
        .doc("packets with times outside 1677 to 2262, which count at its nearer end")
        .field("error", |input| input.error.as_ref().map(ToString::to_string))
        .doc("why reading stopped early, in a sentence")
}

/// Returns all inputs as a list.
pub(super) fn inputs_cell(inputs: &[InputResult]) -> Cell {
    input_columns().list_of(inputs)
}
