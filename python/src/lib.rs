//! flowsieve for Python: the commands of the program, run in this process, and filters.
//!
//! This crate knows no options and no columns. A command is a list of words, as in a shell; its
//! rows are returned as Arrow record batches, and everything else as the JSON document that follows
//! them.

mod distributed;
mod figure;
mod filter;
mod packed;
mod run;
mod table;

use flowsieve::cli::Failure;
use pyo3::prelude::*;
use std::fmt::Display;

/// Creates the package's exception for a run without a result.
pub(crate) fn failure(Failure { sentence, is_usage, place }: Failure) -> PyErr {
    // As text: `pathlib` would make other names of addresses such as `s3://a/b`.
    let (path, offset) =
        place.map_or((None, None), |it| (Some(it.path.into_os_string()), it.offset));
    Python::attach(|py| {
        let made = py
            .import("flowsieve._errors")
            .and_then(|errors| errors.getattr("failure"))
            .and_then(|failure| failure.call1((sentence.trim_end(), is_usage, path, offset)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Creates the package's exception for arguments that make no sense.
pub(crate) fn misused(sentence: impl Display) -> PyErr {
    failure(Failure { sentence: sentence.to_string(), is_usage: true, place: None })
}

/// Returns the command line's declarations as JSON: commands, options, and fields of results.
#[pyfunction]
fn describe() -> String {
    flowsieve::cli::describe().to_string()
}

/// The native part of the package.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(figure::draw_count, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::captures, module)?)?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<distributed::DividedJob>()?;
    module.add_class::<distributed::PartsOfPiece>()?;
    module.add_class::<distributed::Shards>()?;
    module.add_class::<distributed::WholeShard>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<table::Table>()?;
    Ok(())
}
