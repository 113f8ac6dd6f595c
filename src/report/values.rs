//! Columns of many rows at once: what a writer of columns takes without a cell for each value.

use super::cell::IntoCell;
use crate::export::Texts;

/// Rows by column, which stand at one of them.
pub(super) trait RowBatch {
    /// Number of rows.
    fn len(&self) -> usize;

    /// The row whose cells are taken now.
    fn at(&self) -> usize;

    /// Goes to a row.
    fn go_to(&mut self, row: usize);
}

/// The values of a column, one a row.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "parquet", feature = "arrow")),
    expect(dead_code, reason = "only the writers of columns read them")
)]
pub(super) enum Values<'b> {
    Time(&'b [i64]),
    U8(&'b [u8]),
    U16(&'b [u16]),
    U64(&'b [u64]),
    OptionalU8(&'b [Option<u8>]),
    OptionalU16(&'b [Option<u16>]),
    Text(&'b Texts),
}

/// A type of which columns are made.
pub(super) trait ColumnValue: IntoCell + Copy {
    fn values(column: &[Self]) -> Values<'_>;
}

macro_rules! column_values {
    ($($own:ty => $values:expr;)*) => {$(
        impl ColumnValue for $own {
            fn values(column: &[Self]) -> Values<'_> { $values(column) }
        }
    )*};
}

column_values! {
    u8 => Values::U8;
    u16 => Values::U16;
    u64 => Values::U64;
    Option<u8> => Values::OptionalU8;
    Option<u16> => Values::OptionalU16;
}
