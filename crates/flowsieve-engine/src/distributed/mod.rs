//! Distributed runs: a count, a ranking, a list of flows or an export is divided among processes or
//! machines, and joined again so that its report is that of a single run, byte for byte.
//!
//! ```text
//!   divide ─► Piece ─► PieceReader ─► SlicePart ─┐ by (slice, shard)
//!                          └► InputPart ─► InputTable ─► ShardCount ─► ShardTally ─► SliceSums ─► report
//!                                                            └► WholePart ─► ShardWhole ─► WholeTally ┘
//!                                                               by shard
//! ```
//!
//! This relies on three facts. Repeats change no reported number, so a piece emits each distinct
//! element of a (slice, shard) once, in the order of first sight, with its time. Merging inputs by
//! time equals sorting by the running maximum of time within an input, whose first packet counts
//! there even if it is left out, then by input, then by position. And a shard of a slice is
//! independent of all others.
//!
//! A ranking has one filter and one summary for all elements of a slice, so its parts are those of
//! shard 0 and a slice is ranked as a whole. If there is one slice, the exact sets, which take most
//! of the memory, are divided among further shards by key, and shard 0 has filter and summary alone:
//!
//! ```text
//!   SlicePart ─┐ by (slice, shard)
//!   InputTable ─► SliceRanking ─► RankedSlice ─► RankingSums ─► report
//! ```
//!
//! Repeats matter only for the packets and bytes of keys, so each part has their sums. Without an
//! exact count, a single run adds these up only while it holds the key; here they are complete.
//!
//! Flows belong to no slice: all parts are of slice 0 and contain every packet, because any packet
//! may decide when a flow ends. Each shard lists its flows, and these are ordered over all
//! shards:
//!
//! ```text
//!   SlicePart ─┐ by shard
//!   InputTable ─► ShardFlows ─► PlacedFlow (sorted by start and place) ─► report
//!                     └► FlowTally ─► FlowSums ─► totals
//! ```
//!
//! An export has slices like a count. Its parts contain every packet too, since a row adds up the
//! bytes and flags of all:
//!
//! ```text
//!   SlicePart ─┐ by (slice, shard)
//!   InputTable ─► ShardRows ─► rows and their RowPlaces (sorted by place) ─► report
//!                     └► RowTally ─► RowSums ─► totals
//! ```
//!
//! Parts, tallies and tables have a binary form with a version ([`WireFormat`]), which is checked
//! when it is read.

mod count;
mod divide;
mod error;
mod flows;
mod part;
mod plan;
mod rank;
mod reader;
mod rows;
mod sums;
mod table;
mod trace_order;
mod whole;
mod wire;

pub use count::{ShardCount, ShardTally};
#[doc(hidden)]
pub use divide::{OpenPiece, divide_by};
pub use divide::{Piece, divide, grid_of};
pub use error::PieceError;
pub use flows::{FlowSums, FlowTally, PlacedFlow, ShardFlows};
pub use part::{InputPart, SlicePart};
#[doc(hidden)]
pub use plan::Outline;
pub use plan::PiecePlan;
pub use rank::{RankedSlice, RankingSums, SliceRanking};
pub use reader::PieceReader;
#[doc(hidden)]
pub use rows::{RowPlace, RowSums, RowTally, ShardRows};
pub use sums::SliceSums;
pub use table::{InputTable, Joined};
pub use trace_order::PacketPlace;
pub use whole::{ShardWhole, WholePart, WholeTally};
pub use wire::WireFormat;
