//! Words on standard error.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Says a line on standard error. Where that cannot be written there is nobody to tell, and what was asked for
/// is done all the same.
pub(crate) fn say(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
