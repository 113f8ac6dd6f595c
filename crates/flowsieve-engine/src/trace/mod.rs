//! Reads captures and logs: containers and decompression. It yields bytes with a time, a length and
//! a link type.
//!
//! ```text
//!   file ─► codecs ─► buffer ─► pcap │ pcapng │ erf │ tsh ─► batches of packets
//!                            └► dnstap │ c-dns │ zeek │ eve │ csv ─► batches of records
//! ```
//!
//! Packets are never copied: [`PacketRef`] points into the buffer that `read` filled.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod ahead;
mod annotation;
mod boundary;
mod capture;
mod cbor;
mod cdns;
mod codecs;
mod compression;
mod dnstap;
mod dnstap_types;
mod erf;
mod error;
mod eve;
#[cfg(test)]
mod eve_tests;
mod failure_as_end;
mod follow;
mod followed_files;
mod format;
mod formats;
mod frame_streams;
mod link_type;
mod log_columns;
mod log_csv;
mod log_entries;
#[cfg(test)]
mod log_tests;
mod packet;
mod part;
mod pcap;
mod pcapng;
mod pcapng_annotations;
mod pcapng_clock;
mod protobuf;
mod range;
mod read_buffer;
mod record;
mod scan;
mod seek;
mod segments;
mod select;
mod source;
mod stop;
#[cfg(test)]
mod tests;
mod time;
#[cfg(feature = "toy")]
#[path = "../../tests/recipe/toycap.rs"]
mod toycap;
mod tsh;
mod unreadable;
pub mod write;
mod zeek;
#[cfg(test)]
mod zeek_tests;

pub use capture::Capture;
pub use compression::Compression;
pub use dnstap_types::DnstapTypes;
pub(crate) use erf::erf_content;
pub use error::{TraceError, TraceErrorKind};
pub use format::InputFormat;
pub(crate) use link_type::{Runs, name_in, number_in};
pub(crate) use log_entries::{has_ports, protocol_number};
pub use packet::{LinkType, PacketRef, TraceBatch};
pub(crate) use part::FilePart;
pub(crate) use segments::{SegmentReader, Segments};
pub use source::Source;
pub use stop::StopFlag;
pub(crate) use time::is_out_of_range;
#[doc(hidden)]
pub use {
    annotation::{Annotation, AnnotationKind, Lost},
    capture::{FileState, is_capture, standard_input},
    codecs::decompressed,
    followed_files::{is_compressed, is_named_capture, is_unfinished},
    formats::{container_names, recognised_formats},
    packet::{LogBatch, LogContent, LogEntry, LogQuestion, LoggedFlow, MAX_BATCH},
    range::{CaptureRange, RangeStart},
    record::{InterfaceInfo, RecordBatch, RecordRef},
    select::Select,
    stop::Stoppable,
    time::from_text as time_from_text,
};
