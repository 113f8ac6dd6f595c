//! Ground: where packets come from. Containers and decompression end here; what leaves is bytes
//! with a time, a length and a link type.
//!
//! ```text
//!   file ─► codecs ─► buffer ─► pcap │ pcapng │ erf │ tsh ─► batches of packets
//!                            └► zeek log │ csv ────────────► batches of DNS records
//! ```
//!
//! Packets are never copied: [`PacketRef`] points into the buffer that `read` filled.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that panics has failed")
)]

mod ahead;
mod annotation;
mod boundary;
mod capture;
mod codecs;
mod compression;
mod dns_csv;
mod dns_entries;
#[cfg(test)]
mod dns_tests;
mod dns_zeek;
mod erf;
mod error;
mod follow;
mod link_type;
mod packet;
mod pcap;
mod pcapng;
mod pcapng_clock;
mod range;
mod read_buffer;
mod record;
mod scan;
mod seek;
mod segments;
mod select;
mod sniff;
mod source;
mod stop;
#[cfg(test)]
mod tests;
mod time;
mod tsh;
pub mod write;

#[doc(hidden)]
pub use annotation::{Annotation, AnnotationKind, Lost};
pub use capture::{Capture, InputFormat, first_time_ns};
#[doc(hidden)]
pub use capture::{is_capture, standard_input};
pub use compression::Compression;
pub(crate) use erf::erf_content;
pub use error::{TraceError, TraceErrorKind};
pub use packet::{DnsLogBatch, DnsLogEntry, LinkType, MAX_BATCH, PacketRef, TraceBatch};
pub use range::{CaptureRange, RangeStart};
#[doc(hidden)]
pub use record::{InterfaceInfo, RecordBatch, RecordRef};
pub(crate) use seek::FilePart;
pub(crate) use segments::{SegmentReader, Segments};
#[doc(hidden)]
pub use select::Select;
pub use source::Source;
pub use stop::StopFlag;
#[doc(hidden)]
pub use stop::Stoppable;
pub use time::from_text as time_from_text;
pub(crate) use time::is_out_of_range;
