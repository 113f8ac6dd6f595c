//! Elements: their kinds, byte encoding and digests, and the step from a packet
//! or a record of a log to elements. This module knows no filter.

mod batch;
mod extract;
mod field;
mod headers;
mod key;
mod kind;
mod label;
mod packet_rows;
mod query;

pub(crate) use batch::{Cursor, ShardElements};
pub use batch::{ElementBatch, ElementColumns, Keys};
pub use extract::Extractor;
pub use field::{Attribute, Field};
pub(crate) use field::{all_decided, check_fields, names, plural};
pub(crate) use headers::{HeaderFields, HeaderReader, PacketDecoder, with_name};
pub(crate) use key::{
    LONGEST_KEY, LONGEST_NAMELESS_KEY, NO_VLAN, ShortKey, has_address, is_short, key_text,
    prefix_v4, prefix_v6, prefixes, registered, write,
};
pub use kind::{ElementKind, ElementRule, NamedKind};
#[doc(hidden)]
pub use label::ElementLabel;
pub(crate) use packet_rows::{PacketRows, RowCursor, Rows};
#[doc(hidden)]
pub use query::{ElementQuery, QueryError, QueryPattern};
