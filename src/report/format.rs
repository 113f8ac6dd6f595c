//! How results are written.

use std::fmt;

/// A format of results. Every command that lists something has all of them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ReportFormat {
    /// For people.
    #[default]
    Table,
    /// A header, and a line a row.
    Csv,
    /// One document.
    Json,
    /// An object a line.
    JsonLines,
    /// The rows of the CSV, for databases and data frames.
    Parquet,
    /// The rows of the CSV as an Arrow IPC stream, and behind it, as JSON, what stands around the
    /// rows.
    #[cfg(feature = "arrow")]
    ArrowStream,
}

impl ReportFormat {
    /// All formats.
    pub const ALL: &[Self] = &[
        Self::Table,
        Self::Csv,
        Self::Json,
        Self::JsonLines,
        Self::Parquet,
        #[cfg(feature = "arrow")]
        Self::ArrowStream,
    ];

    /// Its name in a command line, which is the end of a file's name as well.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
            #[cfg(feature = "arrow")]
            Self::ArrowStream => "arrows",
        }
    }

    /// What it is, for the help of a command.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Table => "For people",
            Self::Csv => "One line per row, with a header",
            Self::Json => "One document",
            Self::JsonLines => "One object per line",
            Self::Parquet => "The rows of the CSV, for databases and data frames",
            #[cfg(feature = "arrow")]
            Self::ArrowStream => "The rows of the CSV as an Arrow IPC stream",
        }
    }

    /// Whether each row can be read by itself, as soon as it is written.
    pub const fn is_line_by_line(self) -> bool {
        matches!(self, Self::Table | Self::Csv | Self::JsonLines) || self.is_followed()
    }

    /// Whether it has cells only, and neither objects nor lists.
    pub(super) const fn is_flat(self) -> bool {
        matches!(self, Self::Csv) || self.is_binary()
    }

    /// Whether a document follows the rows.
    pub(super) const fn is_followed(self) -> bool {
        #[cfg(feature = "arrow")]
        return matches!(self, Self::ArrowStream);
        #[cfg(not(feature = "arrow"))]
        false
    }

    /// Whether what could not be read and what was left out stands in it, with the names of
    /// flowsieve.
    pub const fn says_all(self) -> bool {
        matches!(self, Self::Table | Self::Json) || self.is_followed()
    }

    /// Whether it is not for a terminal.
    pub const fn is_binary(self) -> bool {
        !matches!(self, Self::Table | Self::Csv | Self::Json | Self::JsonLines)
    }
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
